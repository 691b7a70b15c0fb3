//! Why an expression is refused: the field, the part of it that is at fault, and what is allowed.

use std::fmt;

use super::Field;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ExpressionError {
    /// The field at fault, unless it is the whole.
    pub field: Option<Field>,
    /// What stands there; empty if it is the whole.
    pub part: String,
    /// What is wrong and what is allowed.
    pub detail: String,
}

/// As much as is repeated of what somebody wrote.
const MAX_PART_CHARS: usize = 40;

impl ExpressionError {
    pub(super) fn in_field(field: Field, part: &str, detail: impl Into<String>) -> Self {
        Self { field: Some(field), ..Self::at(part, detail) }
    }

    pub(super) fn at(part: &str, detail: impl Into<String>) -> Self {
        Self { field: None, part: shortened(part), detail: detail.into() }
    }

    pub(super) fn never() -> Self {
        Self::at("", "can never fire: no month of the field has such a day")
    }

    pub(super) fn number_of_fields(found: usize) -> Self {
        let year = if found == 7 { "; there is no field for the year" } else { "" };
        let detail = format!(
            "must have 5 fields (minute, hour, day of month, month, day of week), or 6 with the second before them; \
             it has {found}{year}"
        );
        Self::at("", detail)
    }
}

/// The beginning of what somebody wrote, as much as is repeated of it.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_PART_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = self.field {
            write!(f, "{field} field, ")?;
        }
        match self.part.as_str() {
            "" if self.field.is_none() => write!(f, "{}", self.detail),
            part => write!(f, "{part:?}: {}", self.detail),
        }
    }
}
