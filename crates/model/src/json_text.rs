//! JSON as it comes in, looked at before it is parsed.
//!
//! A parser changes some texts silently or refuses them late: a number with more digits than a double holds comes
//! back as another number, and deep nesting costs stack. [`parse`] goes over the text once and refuses both, so that
//! what is stored is what was sent (promise 6: the same documents on every store). The rule for numbers is the one
//! that can be stated to a user: what is read and written again denotes the same decimal value. `1.10` and `1e2` are
//! fine, since they come back as `1.1` and `100.0`; `12345678901234567890123` and `1e400` are not.
//!
//! A text that is not JSON is told apart from one that is understood and refused. What is malformed is not quoted: it
//! may hold a secret, and nobody knows where in it.

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::check::MAX_NESTING;

/// How deep a whole text may nest: a payload's [`MAX_NESTING`] and the four levels of a batch around it,
/// `{"jobs": [{"input": {"payload": …}}]}`.
pub const MAX_TEXT_NESTING: usize = MAX_NESTING + 4;
/// A double prints at most this many significant digits; a number with more cannot come back the same.
const MAX_SIGNIFICANT_DIGITS: usize = 17;
/// An integer this long, sign included, certainly fits 64 bits.
const SHORT_INTEGER_CHARS: usize = 18;
/// How much of a number is quoted in a fault.
const MAX_TOKEN_CHARS: usize = 40;
/// Beyond any exponent that a double has, and small enough to add lengths of texts to it.
const HUGE_EXPONENT: i64 = 1_000_000_000_000;

/// Whether a text could not be read, or was read and is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is not JSON.
    Unreadable,
    /// It is JSON that not every store can hold.
    Refused,
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column} (byte {offset}): {detail}")]
pub struct JsonFault {
    pub kind: FaultKind,
    /// Counted from 0.
    pub offset: usize,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// What is wrong and what is allowed.
    pub detail: String,
}

impl JsonFault {
    fn at(text: &[u8], offset: usize, kind: FaultKind, detail: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let last_line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or(before);
        let is_start_of_char = |byte: &&u8| **byte & 0b1100_0000 != 0b1000_0000;
        Self {
            kind,
            offset: before.len(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            column: 1 + last_line.iter().filter(is_start_of_char).count(),
            detail,
        }
    }

    fn unreadable(text: &[u8], error: &serde_json::Error) -> Self {
        let lines_before = error.line().saturating_sub(1);
        let start: usize =
            text.split_inclusive(|byte| *byte == b'\n').take(lines_before).map(<[u8]>::len).sum();
        let message = error.to_string();
        let detail = message.split(" at line ").next().unwrap_or(&message);
        let offset = start + error.column().saturating_sub(1);
        Self::at(text, offset, FaultKind::Unreadable, format!("not JSON: {detail}"))
    }
}

/// The value of a JSON text that every store can hold and that comes back the same.
pub fn parse(text: &[u8]) -> Result<Value, JsonFault> {
    match refusal(text) {
        None => serde_json::from_slice(text).map_err(|error| JsonFault::unreadable(text, &error)),
        // The scan does not check the grammar. A text that is no JSON at all is called that first.
        Some(refused) => match serde_json::from_slice::<IgnoredAny>(text) {
            Err(error) => Err(JsonFault::unreadable(text, &error)),
            Ok(IgnoredAny) => Err(refused),
        },
    }
}

/// The first thing in a text that is refused, wherever it is otherwise JSON.
pub fn refusal(text: &[u8]) -> Option<JsonFault> {
    let refuse = |at, detail| Some(JsonFault::at(text, at, FaultKind::Refused, detail));
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = after_string(text, at);
                continue;
            }
            b'-' | b'0'..=b'9' => {
                let number = number_at(text, at);
                if let Some(detail) = number_fault(number) {
                    return refuse(at, detail);
                }
                at += number.len();
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_TEXT_NESTING {
            let bracket = char::from(*byte);
            return refuse(at, format!("{bracket} nests deeper than {MAX_TEXT_NESTING} levels"));
        }
        at += 1;
    }
    None
}

/// The offset behind a string that begins at `start`.
fn after_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(rest) = text.get(at..) {
        match rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
            None => return text.len(),
            Some(found) if rest.get(found) == Some(&b'"') => return at + found + 1,
            Some(found) => at += found + 2,
        }
    }
    text.len()
}

fn number_at(text: &[u8], start: usize) -> &str {
    let rest = text.get(start..).unwrap_or_default();
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
    rest.get(..length).and_then(|token| std::str::from_utf8(token).ok()).unwrap_or_default()
}

/// Why a number is refused; nothing for what is fine, and for what is no number: the parser says that better.
fn number_fault(token: &str) -> Option<String> {
    let is_integer = !token.contains(['.', 'e', 'E']);
    if is_integer && (token.len() <= SHORT_INTEGER_CHARS || token.parse::<i64>().is_ok()) {
        return None;
    }
    let sent = Decimal::read(token)?;
    let shown = cut(token);
    if is_integer {
        return Some(format!("the integer {shown} is not within {} and {}", i64::MIN, i64::MAX));
    }
    if sent.digits.len() <= MAX_SIGNIFICANT_DIGITS && Decimal::as_kept(token).is_some_and(|kept| kept == sent)
    {
        return None;
    }
    Some(format!(
        "the number {shown} does not survive being read and written: send at most {MAX_SIGNIFICANT_DIGITS} significant \
         digits that a 64-bit floating-point number can hold, or send a string"
    ))
}

fn cut(token: &str) -> String {
    if token.len() <= MAX_TOKEN_CHARS {
        return token.to_owned();
    }
    format!("{}…", token.chars().take(MAX_TOKEN_CHARS - 1).collect::<String>())
}

/// A decimal number in one form per value: `0.{digits} × 10^exponent` without zeros at either end.
#[derive(PartialEq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn read(token: &str) -> Option<Self> {
        let (negative, unsigned) = token.strip_prefix('-').map_or((false, token), |rest| (true, rest));
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if !(whole.bytes().chain(fraction.bytes())).all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let leading = all.iter().take_while(|digit| **digit == b'0').count();
        let trailing = all.iter().rev().take_while(|digit| **digit == b'0').count();
        let Some(digits) =
            all.get(leading..all.len().saturating_sub(trailing)).filter(|rest| !rest.is_empty())
        else {
            return Some(Self { negative: false, digits: Vec::new(), exponent: 0 });
        };
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()?;
        Some(Self { negative, digits: digits.to_vec(), exponent: read_exponent(exponent)? + point })
    }

    /// The number as it would come back.
    fn as_kept(token: &str) -> Option<Self> {
        let kept: serde_json::Number = serde_json::from_str(token).ok()?;
        Self::read(&kept.to_string())
    }
}

/// An exponent, or the largest of its sign for one that has too many digits.
fn read_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let huge = if text.starts_with('-') { -HUGE_EXPONENT } else { HUGE_EXPONENT };
    Some(text.parse::<i64>().map_or(huge, |exponent| exponent.clamp(-HUGE_EXPONENT, HUGE_EXPONENT)))
}
