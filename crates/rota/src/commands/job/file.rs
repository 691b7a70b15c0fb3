//! `rota job submit --file`: many jobs, one per line, sent in batches. A line that cannot be used is named with its number,
//! and in nobody's way.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use rota_client::{Client, Problem};
use rota_model::check::MAX_BODY_BYTES;
use rota_model::json_text;
use serde_json::json;
use serde_json::value::RawValue;

use super::Context;
use crate::exit::{Exit, Failure, details};
use crate::output::progress::Bar;

/// How many jobs are sent at once.
const BATCH: usize = 1_000;
/// How many bytes are sent at once, but for a last job.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// What became of the lines so far.
#[derive(Default)]
struct Tally {
    accepted: u64,
    refused: u64,
}

/// A line that holds a job, as far as can be told without asking.
struct Line {
    number: u64,
    text: Box<RawValue>,
}

pub(super) async fn submit(context: &Context, path: &Path) -> Result<(), Failure> {
    let mut lines = Lines::open(path)?;
    let client = context.client()?;
    let bar = Bar::begin("Submitting", "lines");
    let total = if bar.is_watched() { count_lines(path) } else { None };
    let mut tally = Tally::default();
    loop {
        let batch = lines.batch(&bar, &mut tally)?;
        if batch.is_empty() {
            break;
        }
        send(context, &client, batch, &bar, &mut tally).await?;
        match total {
            Some(total) => bar.at(lines.number, total),
            None => bar.so_far(lines.number),
        }
    }
    drop(bar);
    let Tally { accepted, refused } = tally;
    let said = format!("{accepted} {} accepted.", if accepted == 1 { "job is" } else { "jobs are" });
    context.out.text(&said, &json!({"accepted": accepted, "refused": refused}))?;
    match refused {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Failed, "1 line was refused; it is named above")),
        _ => Err(Failure::new(Exit::Failed, format!("{refused} lines were refused; they are named above"))),
    }
}

async fn send(
    context: &Context,
    client: &Client,
    batch: Vec<Line>,
    bar: &Bar,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let texts: Vec<&RawValue> = batch.iter().map(|line| line.text.as_ref()).collect();
    let answers = client.submit_jobs(&context.domain, &texts).await.map_err(|error| {
        let failure = Failure::from(error);
        let (first, last) =
            (batch.first().map_or(0, |line| line.number), batch.last().map_or(0, |line| line.number));
        let doubt = match failure.exit {
            Exit::Unreachable => format!("; whether lines {first} to {last} were taken is not known"),
            _ => format!("; from line {first} on nothing was taken"),
        };
        Failure::new(
            failure.exit,
            format!("{}{doubt}; {} jobs are accepted", failure.message, tally.accepted),
        )
    })?;
    for (line, answer) in batch.iter().zip(answers) {
        match answer {
            Ok(_) => tally.accepted += 1,
            Err(problem) => tally.refuse(bar, line.number, &said_of(&problem)),
        }
    }
    Ok(())
}

impl Tally {
    fn refuse(&mut self, bar: &Bar, line: u64, why: &str) {
        self.refused += 1;
        bar.say(&format!("line {line}: {why}"));
    }
}

fn said_of(problem: &Problem) -> String {
    if problem.errors.is_empty() { problem.detail.clone() } else { details(&problem.errors, "; ") }
}

/// The lines of a file, or of the standard input.
struct Lines {
    name: String,
    input: Box<dyn BufRead + Send>,
    /// Of the last line that was read, from 1.
    number: u64,
}

impl Lines {
    fn open(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let input: Box<dyn BufRead + Send> = if path == Path::new("-") {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let file = File::open(path)
                .map_err(|error| Failure::refused(format!("the file {name} cannot be read: {error}")))?;
            Box::new(BufReader::new(file))
        };
        Ok(Self { name, input, number: 0 })
    }

    /// The next jobs; none at the end. What is no job is refused on the way.
    fn batch(&mut self, bar: &Bar, tally: &mut Tally) -> Result<Vec<Line>, Failure> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let read = self.next().map_err(|error| {
                let line = self.number;
                Failure::new(
                    Exit::Failed,
                    format!("{} cannot be read on after line {line}: {error}", self.name),
                )
            })?;
            let Some(text) = read else { break };
            let number = self.number;
            match text {
                Ok(text) if text.trim_ascii().is_empty() => {}
                Ok(text) => match job_in(&text) {
                    Ok(text) => {
                        bytes += text.get().len();
                        batch.push(Line { number, text });
                    }
                    Err(why) => tally.refuse(bar, number, &why),
                },
                Err(TooLong) => {
                    tally.refuse(bar, number, &format!("a job may have {MAX_BODY_BYTES} bytes at most"));
                }
            }
        }
        Ok(batch)
    }

    /// The next line, unless it is longer than a job can be; none at the end.
    fn next(&mut self) -> io::Result<Option<Result<Vec<u8>, TooLong>>> {
        let limit = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX) + 1;
        let mut text = Vec::new();
        if self.input.by_ref().take(limit).read_until(b'\n', &mut text)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if text.len() <= MAX_BODY_BYTES || text.ends_with(b"\n") {
            return Ok(Some(Ok(text)));
        }
        while !text.ends_with(b"\n") {
            text.clear();
            if self.input.by_ref().take(limit).read_until(b'\n', &mut text)? == 0 {
                break;
            }
        }
        Ok(Some(Err(TooLong)))
    }
}

#[derive(Debug, PartialEq)]
struct TooLong;

/// The text of a job: one JSON value, whatever it says. Rota knows better what is wrong with it.
fn job_in(line: &[u8]) -> Result<Box<RawValue>, String> {
    serde_json::from_slice(line).map_err(|_| match json_text::parse(line) {
        Err(fault) => format!("column {}: {}", fault.column, fault.detail),
        Ok(_) => "it is not JSON".to_owned(),
    })
}

fn count_lines(path: &Path) -> Option<u64> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    let mut input = BufReader::with_capacity(1024 * 1024, file);
    let mut count = 0;
    loop {
        let chunk = input.fill_buf().ok()?;
        if chunk.is_empty() {
            return Some(count);
        }
        count += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
        let length = chunk.len();
        input.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Lines {
        Lines { name: "test".to_owned(), input: Box::new(io::Cursor::new(text.to_vec())), number: 0 }
    }

    #[test]
    fn lines_are_numbered_and_what_is_no_json_is_refused() {
        let bar = Bar::begin("Testing", "lines");
        let mut tally = Tally::default();
        let batch = lines(b"{\"a\": 1}\r\n\n{oops\n[2]\n  {\"b\": 3}").batch(&bar, &mut tally).unwrap();
        let read: Vec<_> = batch.iter().map(|line| (line.number, line.text.get())).collect();
        assert_eq!(read, [(1, "{\"a\": 1}"), (4, "[2]"), (5, "{\"b\": 3}")]);
        assert_eq!(tally.refused, 1);
        assert!(job_in(b"{oops").unwrap_err().starts_with("column 2: not JSON"), "{:?}", job_in(b"{oops"));
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let long = "x".repeat(3 * MAX_BODY_BYTES);
        let mut lines = lines(format!("{long}\n7\n{long}").as_bytes());
        assert_eq!(lines.next().unwrap(), Some(Err(TooLong)));
        assert_eq!(lines.next().unwrap(), Some(Ok(b"7\n".to_vec())));
        assert_eq!(lines.next().unwrap(), Some(Err(TooLong)));
        assert_eq!((lines.next().unwrap(), lines.number), (None, 3));
    }

    #[test]
    fn a_batch_is_bounded_in_jobs_and_bytes() {
        let bar = Bar::begin("Testing", "lines");
        let mut many = lines("7\n".repeat(BATCH + 1).as_bytes());
        assert_eq!(many.batch(&bar, &mut Tally::default()).unwrap().len(), BATCH);
        assert_eq!(many.batch(&bar, &mut Tally::default()).unwrap().len(), 1);
        let large = format!("\"{}\"\n", "x".repeat(MAX_BODY_BYTES - 2));
        let mut large = lines(large.repeat(6).as_bytes());
        assert_eq!(large.batch(&bar, &mut Tally::default()).unwrap().len(), 4);
        assert_eq!(large.batch(&bar, &mut Tally::default()).unwrap().len(), 2);
    }
}
