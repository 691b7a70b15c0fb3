//! The text in which Prometheus reads figures, version 0.0.4 of its format: each family with its help and its kind, then a line for
//! each of its values.
//!
//! Names follow its conventions: what they count, in base units, `_total` at the end of what only rises. Labels have a fixed number
//! of values, so that no tenant and no job can make the number of series grow.

use std::fmt::Write as _;
use std::time::Duration;

use rota_engine::meter::board::Standing;
use rota_engine::meter::spread::Spread;
use rota_engine::meter::{Count, Latency, Level, Reading};
use rota_model::job::JobStatus;
use rota_model::time::UnixMillis;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Bounds in microseconds for what a caller waits for.
const SHORT: [u64; 17] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];
/// Bounds in microseconds for what jobs wait and run, from a millisecond to a day.
const LONG: [u64; 17] = [
    1_000,
    5_000,
    10_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
    10_000_000_000,
    100_000_000_000,
];

/// What is known besides what was measured.
pub struct Facts<'a> {
    pub version: &'a str,
    pub began: UnixMillis,
    /// None if the store does not answer.
    pub standing: Option<Standing>,
}

/// All figures of a node.
pub fn text(reading: Option<&Reading>, facts: &Facts<'_>) -> String {
    let mut page = Page::default();
    page.facts(facts);
    if let Some(reading) = reading {
        page.counts(reading);
        page.levels(reading);
        page.latencies(reading);
    }
    page.0
}

#[derive(Default)]
struct Page(String);

type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    fn facts(&mut self, facts: &Facts<'_>) {
        self.family("rota_build_info", "gauge", "The version of this node; always 1.");
        self.line("rota_build_info", &[("version", facts.version)], "1");
        self.family("process_start_time_seconds", "gauge", "When this process began, in seconds since 1970.");
        self.line("process_start_time_seconds", &[], &seconds(Duration::from_millis(facts.began.as_u64())));
        self.family("rota_store_up", "gauge", "Whether the store answers: 1 if it does.");
        self.line("rota_store_up", &[], if facts.standing.is_some() { "1" } else { "0" });
        let Some(Standing { jobs, nodes }) = &facts.standing else { return };
        self.family("rota_jobs", "gauge", "Jobs of the whole installation, by status.");
        for status in JobStatus::ALL {
            let count = jobs.get(&status).copied().unwrap_or_default();
            self.line("rota_jobs", &[("status", status.as_str())], &count.to_string());
        }
        self.family("rota_nodes", "gauge", "Nodes of the whole installation, by status.");
        for (status, count) in nodes {
            self.line("rota_nodes", &[("status", status.as_str())], &count.to_string());
        }
    }

    fn counts(&mut self, reading: &Reading) {
        let mut last = "";
        for what in Count::ALL {
            let (name, labels, help) = count(what);
            if name != last {
                self.family(name, "counter", help);
                last = name;
            }
            self.line(name, labels, &reading.count(what).to_string());
        }
    }

    fn levels(&mut self, reading: &Reading) {
        for what in Level::ALL {
            let (name, help) = level(what);
            self.family(name, "gauge", help);
            self.line(name, &[], &reading.level(what).to_string());
        }
    }

    fn latencies(&mut self, reading: &Reading) {
        let mut last = "";
        for what in Latency::ALL {
            let (name, labels, bounds, help) = latency(what);
            if name != last {
                self.family(name, "histogram", help);
                last = name;
            }
            self.histogram(name, labels, bounds, &reading.latency(what));
        }
    }

    fn histogram(&mut self, name: &str, labels: Labels<'_>, bounds: &[u64], spread: &Spread) {
        let bucket = format!("{name}_bucket");
        let (bounds, all) = (bounds.iter().copied().map(Duration::from_micros), spread.count().to_string());
        for bound in bounds {
            let le = seconds(bound);
            let labels: Vec<_> = labels.iter().copied().chain([("le", le.as_str())]).collect();
            self.line(&bucket, &labels, &spread.at_most(bound).to_string());
        }
        let last: Vec<_> = labels.iter().copied().chain([("le", "+Inf")]).collect();
        self.line(&bucket, &last, &all);
        self.line(&format!("{name}_sum"), labels, &seconds(spread.sum()));
        self.line(&format!("{name}_count"), labels, &all);
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: Labels<'_>, value: &str) {
        self.0.push_str(name);
        for (nth, (label, text)) in labels.iter().enumerate() {
            let before = if nth == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {value}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// As few digits as it takes.
fn seconds(span: Duration) -> String {
    let (whole, micros) = (span.as_secs(), span.subsec_micros());
    if micros == 0 {
        whole.to_string()
    } else {
        format!("{whole}.{micros:06}").trim_end_matches('0').to_owned()
    }
}

const PROCESSED: &str = "Jobs that ended on this node, by how they ended.";

fn count(what: Count) -> (&'static str, Labels<'static>, &'static str) {
    match what {
        Count::JobsSubmitted => {
            ("rota_jobs_submitted_total", &[], "Jobs that this node accepted and that were new.")
        }
        Count::JobsSuccessful => ("rota_jobs_processed_total", &[("outcome", "successful")], PROCESSED),
        Count::JobsFailed => ("rota_jobs_processed_total", &[("outcome", "failed")], PROCESSED),
        Count::JobsInError => ("rota_jobs_processed_total", &[("outcome", "error")], PROCESSED),
        Count::JobsRetried => {
            ("rota_jobs_retried_total", &[], "Attempts that failed on this node and are followed by another.")
        }
        Count::JobsGivenBack => (
            "rota_jobs_given_back_total",
            &[],
            "Jobs that this node claimed and gave back for others to run.",
        ),
        Count::Claims => ("rota_claims_total", &[], "Claims of due jobs by this node that were answered."),
        Count::JobsClaimed => ("rota_jobs_claimed_total", &[], "Jobs that these claims brought."),
        Count::Conflicts => (
            "rota_store_conflicts_total",
            &[],
            "Writes that found another version, because somebody else wrote first.",
        ),
        Count::StoreErrors => {
            ("rota_store_errors_total", &[], "Calls of the store by this node that failed.")
        }
        Count::ObserverMessages => ("rota_observer_messages_total", &[], "Messages sent to the observer."),
        Count::LogLinesDropped => {
            ("rota_log_lines_dropped_total", &[], "Lines for the log of jobs and nodes that found no room.")
        }
        Count::BucketsDropped => (
            "rota_metrics_buckets_dropped_total",
            &[],
            "Buckets of metrics that could not be stored for so long that they were given up.",
        ),
        Count::Cleared => {
            ("rota_documents_cleared_total", &[], "Documents that were older than they are kept, and went.")
        }
    }
}

fn level(what: Level) -> (&'static str, &'static str) {
    match what {
        Level::Running => ("rota_jobs_running", "Jobs that run on this node."),
        Level::Capacity => ("rota_jobs_capacity", "Jobs that may run on this node at once."),
        Level::Sections => ("rota_queue_sections", "Sections of the queue that this node looks at first."),
    }
}

fn latency(what: Latency) -> (&'static str, Labels<'static>, &'static [u64], &'static str) {
    const REQUEST: &str =
        "From the request of a job, or of a batch of jobs, until what is accepted is on disk.";
    const STORE: &str = "How long the store took for its answers to this node, by verb.";
    let store = |verb: Labels<'static>| ("rota_store_duration_seconds", verb, SHORT.as_slice(), STORE);
    match what {
        Latency::JobRequest => ("rota_job_request_duration_seconds", &[("kind", "single")], &SHORT, REQUEST),
        Latency::BatchRequest => ("rota_job_request_duration_seconds", &[("kind", "batch")], &SHORT, REQUEST),
        Latency::QueueWait => (
            "rota_job_queue_wait_seconds",
            &[],
            &LONG,
            "From the instant at which a job may run until its handler begins.",
        ),
        Latency::RunTime => {
            ("rota_job_run_duration_seconds", &[], &LONG, "From the beginning of a handler to its end.")
        }
        Latency::HeartbeatLag => (
            "rota_heartbeat_lag_seconds",
            &[],
            &SHORT,
            "From the instant at which a heartbeat is due until it is acknowledged.",
        ),
        Latency::Observer => (
            "rota_observer_latency_seconds",
            &[],
            &SHORT,
            "From the sending of a message until the observer has it.",
        ),
        Latency::StoreWrite => store(&[("verb", "write")]),
        Latency::StoreRead => store(&[("verb", "read")]),
        Latency::StoreFind => store(&[("verb", "find")]),
        Latency::StoreCount => store(&[("verb", "count")]),
        Latency::StoreClaim => store(&[("verb", "claim")]),
        Latency::StoreSequence => store(&[("verb", "sequence")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_no_more_digits_than_they_need() {
        let shown = |micros| seconds(Duration::from_micros(micros));
        let few = [0, 50, 250_000, 1_000_000, 2_500_000, 100_000_000_000].map(shown);
        assert_eq!(few, ["0", "0.00005", "0.25", "1", "2.5", "100000"]);
    }

    #[test]
    fn labels_are_escaped() {
        let mut page = Page::default();
        page.line("a", &[("b", "\"\\\n"), ("c", "d")], "1");
        assert_eq!(page.0, "a{b=\"\\\"\\\\\\n\",c=\"d\"} 1\n");
    }
}
