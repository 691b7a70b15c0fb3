//! The first lines of a file are for the reader: `//!` says what lives there.

use super::Problem;
use super::tree::File;

pub(super) fn check(file: &File) -> Vec<Problem> {
    if !file.is_rust() || !file.is_in_a_crate() || file.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![file.problem(1, "begins without `//!`: say first what lives here")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_word_to_its_reader_is_a_problem() {
        for text in ["use std::fs;\n", "\n//! Late.\n", "// Not for the reader.\n", "//!\n", ""] {
            assert_eq!(check(&File::new("crates/a/tests/a.rs", text)).len(), 1, "{text:?}");
        }
    }

    #[test]
    fn a_file_that_introduces_itself_is_fine() {
        assert_eq!(check(&File::new("xtask/src/main.rs", "//! Tasks.\n")), []);
        assert_eq!(check(&File::new("docs/sketch.rs", "fn main() {}\n")), []);
        assert_eq!(check(&File::new("crates/a/README.md", "# A\n")), []);
    }
}
