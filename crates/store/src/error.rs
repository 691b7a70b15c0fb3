//! What can go wrong with a store, told apart by what the caller should do about it.

/// What was attempted and why it did not succeed. A conflict is not here: it is an answer, one per document.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The request makes no sense; repeating it changes nothing.
    #[error("{what}: {why}")]
    Refused { what: String, why: String },
    /// It did not happen; trying again later may help.
    #[error("{what}: {why}")]
    Unavailable { what: String, why: String },
    /// It may have happened, or may yet.
    #[error("{what}: {why}; it may or may not have happened")]
    Unknown { what: String, why: String },
    /// What is stored cannot be understood.
    #[error("{what}: {why}")]
    Damaged { what: String, why: String },
}

impl StoreError {
    pub fn refused(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Refused { what: what.into(), why: why.to_string() }
    }

    pub fn unavailable(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Unavailable { what: what.into(), why: why.to_string() }
    }

    pub fn unknown(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Unknown { what: what.into(), why: why.to_string() }
    }

    /// Whether trying again may help: the store is away, or its answer was lost.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Unknown { .. })
    }

    pub fn damaged(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Damaged { what: what.into(), why: why.to_string() }
    }

    /// What it means for something larger, of which other parts may have happened.
    #[must_use]
    pub fn in_part(self) -> Self {
        match self {
            Self::Unavailable { what, why } | Self::Refused { what, why } => Self::Unknown { what, why },
            other => other,
        }
    }
}
