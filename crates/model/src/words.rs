//! Words that a document may hold, one enumeration per field: statuses, policies, outcomes.
//!
//! The word on the wire stands beside its variant, once; reading, writing, `as_str` and the sentence that lists what
//! is allowed all come from it.

/// An enumeration whose variants are words on the wire. (The word is a `tt`: wrapped as a `literal`, it would be
/// invisible to the derivation of the API's schema, which would then list the names of the variants.)
macro_rules! words {
    (
        $(#[$about:meta])*
        $name:ident {
            $($(#[$meaning:meta])* $variant:ident = $word:tt,)+
        }
    ) => {
        $(#[$about])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize, utoipa::ToSchema,
        )]
        pub enum $name {
            $($(#[$meaning])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::check::Invalid;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                let known = Self::ALL.iter().copied().find(|one| one.as_str() == word);
                known.ok_or_else(|| $crate::words::unknown(&[$($word),+]))
            }
        }
    };
}

pub(crate) use words;

pub(crate) fn unknown(allowed: &[&str]) -> crate::check::Invalid {
    crate::check::Invalid::one("", format!("must be one of {}", allowed.join(", ")))
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema;

    use crate::backup::schedule::Frequency;
    use crate::timer::DstGap;

    #[test]
    fn a_word_is_the_same_everywhere() {
        assert_eq!(serde_json::to_value(Frequency::Weekly).unwrap(), "WEEKLY");
        assert_eq!("WEEKLY".parse(), Ok(Frequency::Weekly));
        assert_eq!(Frequency::Weekly.to_string(), "WEEKLY");
        assert_eq!(Frequency::ALL.len(), 4);
        let schema = serde_json::to_value(Frequency::schema()).unwrap();
        assert_eq!(schema["enum"], serde_json::json!(["ONCE", "WEEKLY", "DAILY", "MONTHLY"]));
        let refused = "later".parse::<DstGap>().unwrap_err();
        assert_eq!(refused.to_string(), "the document: must be one of next, skip");
    }
}
