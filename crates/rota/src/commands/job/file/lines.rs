//! The lines of a file, in batches, each with an idempotency key.
//!
//! A line that brings none gets one that follows from everything up to its end: the SHA-256 of what the line before came to
//! and of the line itself. So it depends on the content and the place, can be told while reading, is the same each time the
//! file is read, and stays the same when more is written at the end of the file. An empty line counts as a line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use rota_model::check::MAX_BODY_BYTES;
use rota_model::json_text;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::arguments::BOM;
use crate::exit::{Exit, Failure};

/// How many jobs are sent at once.
const BATCH: usize = 1_000;
/// How many bytes are sent at once, but for a last job.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// How many bytes of a digest make a key: as many as an id has.
const KEY_BYTES: usize = 16;
/// The name of what is said of a line by its key.
const KEY: &str = "idempotencyKey";

/// A line that holds a job, as far as can be told without asking.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) text: Box<RawValue>,
}

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) lines: Vec<Line>,
    /// Lines that hold no job, and why.
    pub(super) refused: Vec<(u64, String)>,
    /// The last line that was read.
    pub(super) read_to: u64,
}

/// The lines of a file, or of the standard input.
pub(super) struct Lines {
    name: String,
    input: Box<dyn BufRead + Send>,
    /// Of the last line that was read, from 1.
    number: u64,
    /// What the file came to so far.
    digest: [u8; 32],
}

impl Lines {
    /// Under another name for the repetition, the same lines have other keys.
    pub(super) fn open(path: &Path, again: Option<&str>) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let input: Box<dyn BufRead + Send> = if path == Path::new("-") {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let file = File::open(path)
                .map_err(|error| Failure::refused(format!("the file {name} cannot be read: {error}")))?;
            Box::new(BufReader::new(file))
        };
        Ok(Self::new(name, input, again))
    }

    fn new(name: String, input: Box<dyn BufRead + Send>, again: Option<&str>) -> Self {
        let digest = Sha256::digest(again.unwrap_or_default().as_bytes()).into();
        Self { name, input, number: 0, digest }
    }

    /// The next jobs; none at the end.
    pub(super) fn batch(&mut self) -> Result<Option<Batch>, Failure> {
        let (mut batch, mut bytes) = (Batch::default(), 0);
        let begin = self.number;
        while batch.lines.len() < BATCH && batch.refused.len() < BATCH && bytes < BATCH_BYTES {
            let Some(text) = self.next().map_err(|error| self.unreadable(&error))? else { break };
            match text.map(|text| job_in(&text, &self.key())) {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(text))) => {
                    bytes += text.get().len();
                    batch.lines.push(Line { number: self.number, text });
                }
                Ok(Err(why)) => batch.refused.push((self.number, why)),
                Err(TooLong) => {
                    let why = format!("a job may have {MAX_BODY_BYTES} bytes at most");
                    batch.refused.push((self.number, why));
                }
            }
        }
        batch.read_to = self.number;
        Ok((self.number > begin).then_some(batch))
    }

    fn unreadable(&self, error: &io::Error) -> Failure {
        let (name, line) = (&self.name, self.number);
        Failure::new(Exit::Failed, format!("{name} cannot be read on after line {line}: {error}"))
    }

    /// The next line, unless it is longer than a job can be; none at the end.
    fn next(&mut self) -> io::Result<Option<Result<Vec<u8>, TooLong>>> {
        let limit = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX) + 1;
        let mut text = Vec::new();
        if self.input.by_ref().take(limit).read_until(b'\n', &mut text)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        // It is no part of the first line, nor of its key.
        if self.number == 1 && text.starts_with(BOM) {
            text.drain(..BOM.len());
        }
        let mut digest = Sha256::new_with_prefix(self.digest);
        digest.update(without_end(&text));
        let is_whole = text.len() <= MAX_BODY_BYTES || text.ends_with(b"\n");
        let mut rest = Vec::new();
        while !is_whole && !rest.ends_with(b"\n") {
            rest.clear();
            if self.input.by_ref().take(limit).read_until(b'\n', &mut rest)? == 0 {
                break;
            }
            digest.update(without_end(&rest));
        }
        self.digest = digest.finalize().into();
        Ok(Some(if is_whole { Ok(text) } else { Err(TooLong) }))
    }

    /// The key of the line that was read last.
    fn key(&self) -> String {
        let hex = self.digest.iter().take(KEY_BYTES).map(|byte| format!("{byte:02x}"));
        format!("file-{}", hex.collect::<String>())
    }
}

#[derive(Debug, PartialEq)]
struct TooLong;

/// A last line without a line break is the same line once there is one.
fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The text of a job, with a key: one JSON value, whatever else it says. Rota knows better what is wrong with it. None for
/// an empty line.
fn job_in(line: &[u8], key: &str) -> Result<Option<Box<RawValue>>, String> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let as_it_is = || serde_json::from_slice(line).map(Some).map_err(|_| why_no_json(line));
    let Ok(fields) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(line) else { return as_it_is() };
    match fields.get(KEY).map(|key| key.get()) {
        Some("null") => Err(format!("/{KEY}: must be a text, or left out")),
        Some(_) => as_it_is(),
        None => with_key(line, key, fields.is_empty()).ok_or_else(|| why_no_json(line)).map(Some),
    }
}

/// Written in front of what is there, which stays as it is to the letter.
fn with_key(line: &[u8], key: &str, is_alone: bool) -> Option<Box<RawValue>> {
    let rest = std::str::from_utf8(line.strip_prefix(b"{")?).ok()?;
    let comma = if is_alone { "" } else { "," };
    RawValue::from_string(format!("{{\"{KEY}\":\"{key}\"{comma}{rest}")).ok()
}

fn why_no_json(line: &[u8]) -> String {
    match json_text::parse(line) {
        Err(fault) => format!("column {}: {}", fault.column, fault.detail),
        Ok(_) => "it is not JSON".to_owned(),
    }
}

pub(super) fn count_lines(path: &Path) -> Option<u64> {
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
    use std::collections::BTreeSet;

    fn lines(text: &[u8]) -> Lines {
        Lines::new("test".to_owned(), Box::new(io::Cursor::new(text.to_vec())), None)
    }

    fn keys(text: &str) -> Vec<String> {
        let batch = lines(text.as_bytes()).batch().unwrap().unwrap_or_default();
        let key = |line: &Line| {
            let job: serde_json::Value = serde_json::from_str(line.text.get()).unwrap();
            job[KEY].as_str().unwrap().to_owned()
        };
        batch.lines.iter().map(key).collect()
    }

    #[test]
    fn lines_are_numbered_and_what_is_no_json_is_refused() {
        let text = b"{\"a\": 1, \"idempotencyKey\": \"k\"}\r\n\n{oops\n[2]\n  {}\n{\"idempotencyKey\": null}";
        let batch = lines(text).batch().unwrap().unwrap();
        let read: Vec<_> = batch.lines.iter().map(|line| (line.number, line.text.get())).collect();
        assert_eq!(read[..2], [(1, "{\"a\": 1, \"idempotencyKey\": \"k\"}"), (4, "[2]")]);
        assert!(read[2].0 == 5 && read[2].1.starts_with("{\"idempotencyKey\":\"file-"), "{read:?}");
        assert!(read[2].1.ends_with("\"}"), "{read:?}");
        let refused: Vec<_> = batch.refused.iter().map(|(line, why)| (*line, why.as_str())).collect();
        assert!(refused[0].0 == 3 && refused[0].1.starts_with("column 2: not JSON"), "{refused:?}");
        assert_eq!(refused[1], (6, "/idempotencyKey: must be a text, or left out"));
        assert_eq!(batch.read_to, 6);
    }

    #[test]
    fn a_key_follows_from_the_file_up_to_its_line() {
        let first = keys("{\"a\": 1}\n{\"a\": 1}\n{\"b\": 12345678901234567}\n");
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 3, "the same line elsewhere is another job");
        assert_eq!(first, keys("{\"a\": 1}\n{\"a\": 1}\r\n{\"b\": 12345678901234567}"), "each time");
        assert_eq!(
            first,
            keys("{\"a\": 1}\n{\"a\": 1}\n{\"b\": 12345678901234567}\n{}\n")[..3],
            "grown at its end"
        );
        let other = keys("{\"a\": 2}\n{\"a\": 1}\n{\"b\": 12345678901234567}\n");
        assert!(first.iter().zip(&other).all(|(one, two)| one != two), "another file");
        let input = Box::new(io::Cursor::new(b"{}\n".to_vec()));
        let mut again = Lines::new("test".to_owned(), input, Some("second"));
        again.next().unwrap();
        assert_ne!(vec![again.key()], keys("{}\n"));
    }

    #[test]
    fn a_mark_of_utf8_at_the_begin_is_no_part_of_the_file() {
        let marked = "\u{feff}{\"a\": 1}\n{\"a\": 1}\n";
        assert_eq!(keys(marked), keys("{\"a\": 1}\n{\"a\": 1}\n"));
        let elsewhere = lines("{}\n\u{feff}{}\n".as_bytes()).batch().unwrap().unwrap();
        assert_eq!((elsewhere.lines.len(), elsewhere.refused.len()), (1, 1), "elsewhere it is a mistake");
        let alone = lines("\u{feff}".as_bytes()).batch().unwrap().unwrap();
        assert_eq!((alone.lines.len(), alone.refused.len()), (0, 0));
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
        let mut many = lines("7\n".repeat(BATCH + 1).as_bytes());
        let mut count = || many.batch().unwrap().map(|batch| batch.lines.len());
        assert_eq!([count(), count(), count()], [Some(BATCH), Some(1), None]);
        let large = format!("\"{}\"\n", "x".repeat(MAX_BODY_BYTES - 2));
        let mut large = lines(large.repeat(6).as_bytes());
        let mut count = || large.batch().unwrap().map(|batch| batch.lines.len());
        assert_eq!([count(), count()], [Some(4), Some(2)]);
    }
}
