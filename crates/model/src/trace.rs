//! Where in a trace something happens: the W3C trace context, level 1, as the header `traceparent` carries it.
//!
//! ```text
//! 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//! version    trace id                  parent id      flags
//! ```

use std::fmt;
use std::str::FromStr;

/// The length of a `traceparent` of version 00, in bytes.
const LENGTH: usize = 55;
const SAMPLED: u8 = 1;

/// Names one piece of work within a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// A piece of work in a trace, as those that it causes know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: [u8; 16],
    pub span_id: SpanId,
    flags: u8,
}

impl TraceParent {
    /// The beginning of a trace of its own, which is recorded.
    pub fn root(trace_id: [u8; 16], span_id: SpanId) -> Self {
        Self { trace_id, span_id, flags: SAMPLED }
    }

    /// A piece of work that this one causes.
    #[must_use]
    pub fn child(self, span_id: SpanId) -> Self {
        Self { span_id, ..self }
    }

    /// Whether whoever began the trace wants it recorded.
    pub fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// It is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a traceparent of the W3C trace context, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)]
pub struct NoTraceParent;

impl FromStr for TraceParent {
    type Err = NoTraceParent;

    /// A later version may say more behind what version 00 says; that much of it is understood.
    fn from_str(text: &str) -> Result<Self, NoTraceParent> {
        let (known, rest) = text.split_at_checked(LENGTH).ok_or(NoTraceParent)?;
        let parts: Vec<&str> = known.split('-').collect();
        let [version, trace_id, span_id, flags] = parts[..] else { return Err(NoTraceParent) };
        let [version] = bytes::<1>(version)?;
        let later = version > 0 && version < 0xff && rest.starts_with('-');
        if !rest.is_empty() && !later || version == 0xff {
            return Err(NoTraceParent);
        }
        let (trace_id, span_id, [flags]) = (bytes(trace_id)?, bytes(span_id)?, bytes::<1>(flags)?);
        if trace_id == [0; 16] || span_id == [0; 8] {
            return Err(NoTraceParent);
        }
        Ok(Self { trace_id, span_id: SpanId(span_id), flags: flags & SAMPLED })
    }
}

/// Lower case hexadecimal digits, as many as are asked for.
fn bytes<const N: usize>(digits: &str) -> Result<[u8; N], NoTraceParent> {
    if digits.len() != 2 * N || !digits.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(NoTraceParent);
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| NoTraceParent)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| NoTraceParent)?;
    }
    Ok(bytes)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span_id.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", self.flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_read_is_what_was_written() {
        let read: TraceParent = GOOD.parse().unwrap();
        assert!(read.is_sampled() && read.to_string() == GOOD, "{read}");
        let child = read.child(SpanId([7; 8]));
        assert_eq!(child.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0707070707070707-01");
        let quiet = GOOD.replace("-01", "-00").parse::<TraceParent>().unwrap();
        assert!(!quiet.is_sampled() && quiet.child(SpanId([7; 8])).to_string().ends_with("-00"));
    }

    #[test]
    fn a_later_version_is_understood_as_far_as_this_one_goes() {
        for text in [GOOD.replacen("00", "cc", 1), GOOD.replacen("00", "01", 1) + "-more-to-come"] {
            assert_eq!(text.parse::<TraceParent>().unwrap().to_string(), GOOD, "{text}");
        }
        // Flags that this version does not know are not handed on.
        assert_eq!(GOOD.replace("-01", "-ff").parse::<TraceParent>().unwrap().to_string(), GOOD);
    }

    #[test]
    fn what_the_specification_calls_invalid_is_refused() {
        for text in [
            "",
            "00",
            "4bf92f3577b34da6a3ce929d0e0e4736",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            "00-4bf92f3577b34da6a3ce929d0e0e47é-00f067aa0ba902b7-01",
            " 0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert!(text.parse::<TraceParent>().is_err(), "{text}");
        }
    }
}
