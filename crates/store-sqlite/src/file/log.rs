//! The log of writes beside the file, as far as must be known before SQLite is let at it: which pages are in it. After a
//! crash the file may lack pages at its end, but then the log has them.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

const HEAD_BYTES: usize = 32;
const FRAME_HEAD_BYTES: usize = 24;

/// The pages in a log.
pub(super) struct Log {
    pages: HashSet<u32>,
    /// How many pages the file has after the last commit in the log, if there is one.
    pub(super) page_count: Option<u32>,
}

impl Log {
    /// None if there is no log, or nothing in it.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut head = [0; HEAD_BYTES];
        if file.read_exact(&mut head).is_err() {
            return Ok(None);
        }
        let (page_bytes, salts) = (number_at(&head, 8), (number_at(&head, 16), number_at(&head, 20)));
        let mut log = Self { pages: HashSet::new(), page_count: None };
        let mut frame = [0; FRAME_HEAD_BYTES];
        // Frames of an older turn of the log have other salts; what is behind them does not count.
        while file.read_exact(&mut frame).is_ok() && (number_at(&frame, 8), number_at(&frame, 12)) == salts {
            log.pages.insert(number_at(&frame, 0));
            let page_count = number_at(&frame, 4);
            log.page_count = if page_count > 0 { Some(page_count) } else { log.page_count };
            file.seek(SeekFrom::Current(i64::from(page_bytes)))?;
        }
        Ok(Some(log))
    }

    pub(super) fn has(&self, page: u32) -> bool {
        self.pages.contains(&page)
    }
}

/// A number of four bytes, the highest first.
pub(super) fn number_at(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).unwrap_or_default();
    u32::from_be_bytes(four)
}
