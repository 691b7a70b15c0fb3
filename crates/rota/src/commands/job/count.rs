//! `rota job count`: the queue in numbers.

use comfy_table::{Cell, Table};
use rota_model::job::{JobCounts, JobStatus};

use super::Context;
use crate::exit::Failure;
use crate::output::table::{self, short, text};

pub(super) const EXAMPLES: &str = "\
Examples:
  rota job count
  rota job count --domain blue --output json";

pub(super) async fn run(context: &Context) -> Result<(), Failure> {
    let counts = context.client()?.job_counts(&context.domain).await?;
    context.out.document(&counts, draw)
}

/// A row for each type, the total last.
fn draw(counts: &JobCounts) -> Table {
    let row = |kind: Cell, count: &dyn Fn(JobStatus) -> u64| -> [Cell; 7] {
        let of = JobStatus::ALL.map(count);
        let [queued, started, successful, failed, error] = of.map(text);
        [kind, queued, started, successful, failed, error, text(of.iter().sum::<u64>())]
    };
    let mut rows: Vec<_> = counts
        .by_type
        .iter()
        .map(|(kind, by_status)| row(short(kind), &|status| by_status.get(&status).copied().unwrap_or(0)))
        .collect();
    rows.push(row(text("all"), &|status| counts.by_status.get(&status).copied().unwrap_or(0)));
    let names = ["type", "queued", "started", "successful", "failed", "error", "total"];
    table::table(names, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_a_row_and_the_total_is_the_last() {
        let mut counts = JobCounts::default();
        counts.add("wait".to_owned(), JobStatus::Queued, 12);
        counts.add("http".to_owned(), JobStatus::Failed, 1);
        let expected = "\
TYPE  QUEUED  STARTED  SUCCESSFUL  FAILED  ERROR  TOTAL
http  0       0        0           1       0      1
wait  12      0        0           0       0      12
all   12      0        0           1       0      13";
        assert_eq!(draw(&counts).trim_fmt(), expected);
    }
}
