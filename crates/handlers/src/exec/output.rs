//! What a program says: line by line to the log, and its end for the result. However much it is, little of it is held.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How much of the end is kept, in bytes.
const MAX_KEPT: usize = 64 * 1024;
/// How long a line may be, in bytes; the rest of it is left out.
const MAX_LINE: usize = 16 * 1024;
/// Stands at the end of a line that was cut.
const CUT: &str = "… (cut)";

/// The end of what was said.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: VecDeque<u8>,
    /// Whether there was more before it.
    pub(super) truncated: bool,
}

impl Kept {
    fn add(&mut self, piece: &[u8]) {
        self.bytes.extend(piece);
        let surplus = self.bytes.len().saturating_sub(MAX_KEPT);
        self.truncated |= surplus > 0;
        self.bytes.drain(..surplus);
    }

    /// As text that every document can hold. What was cut in the middle of a character begins after it.
    pub(super) fn text(mut self) -> String {
        let continues = |byte: &&u8| **byte & 0xc0 == 0x80;
        let rest = if self.truncated { self.bytes.iter().take(3).take_while(continues).count() } else { 0 };
        self.bytes.drain(..rest);
        printable(self.bytes.make_contiguous())
    }
}

fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

/// The line that is being said.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    cut: bool,
}

impl Line {
    fn add(&mut self, piece: &[u8]) {
        let room = MAX_LINE - self.bytes.len();
        self.cut |= piece.len() > room;
        self.bytes.extend(piece.iter().take(room));
    }

    fn take(&mut self) -> String {
        let Line { bytes, cut } = std::mem::take(self);
        let text = printable(bytes.strip_suffix(b"\r").unwrap_or(&bytes));
        if cut { text + CUT } else { text }
    }
}

/// Listens until nobody can say anything any more.
pub(super) async fn listen(
    from: Option<impl AsyncRead + Unpin>,
    kept: &mut Kept,
    mut tell: impl FnMut(String),
) {
    let Some(mut from) = from else { return };
    let mut line = Line::default();
    let mut piece = vec![0; 8 * 1024];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        let piece = piece.get(..count).unwrap_or_default();
        kept.add(piece);
        let mut parts = piece.split(|byte| *byte == b'\n');
        line.add(parts.next().unwrap_or_default());
        for part in parts {
            tell(line.take());
            line.add(part);
        }
    }
    if !line.bytes.is_empty() {
        tell(line.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn heard(said: &[u8]) -> (Vec<String>, Kept) {
        let (mut kept, mut lines) = (Kept::default(), Vec::new());
        listen(Some(said), &mut kept, |line| lines.push(line)).await;
        (lines, kept)
    }

    #[tokio::test]
    async fn lines_are_told_one_by_one() {
        let (lines, kept) = heard(b"one\ntwo\r\n\n\xff\0\nlast").await;
        assert_eq!(lines, ["one", "two", "", "\u{fffd}\u{fffd}", "last"]);
        assert!(!kept.truncated);
        assert_eq!(kept.text(), "one\ntwo\r\n\n\u{fffd}\u{fffd}\nlast");
    }

    #[tokio::test]
    async fn a_long_line_is_cut_with_a_mark() {
        let said = [vec![b'x'; 1024 * 1024], b"\nnext\n".to_vec()].concat();
        let (lines, kept) = heard(&said).await;
        assert_eq!((lines.len(), lines[0].len(), lines[1].as_str()), (2, MAX_LINE + CUT.len(), "next"));
        assert!(lines[0].ends_with(CUT) && kept.truncated);
        let text = kept.text();
        assert!(text.len() == MAX_KEPT && text.ends_with("x\nnext\n"));
        let (lines, _) = heard(&[vec![b'x'; MAX_LINE], b"\n".to_vec()].concat()).await;
        assert_eq!(lines[0].len(), MAX_LINE);
    }

    #[tokio::test]
    async fn a_cut_character_is_left_out() {
        let (_, kept) = heard("é".repeat(MAX_KEPT).as_bytes()).await;
        assert!(kept.text().chars().all(|c| c == 'é'));
        let (_, kept) = heard(format!("é{}", "x".repeat(MAX_KEPT - 1)).as_bytes()).await;
        assert_eq!(kept.text(), "x".repeat(MAX_KEPT - 1));
    }
}
