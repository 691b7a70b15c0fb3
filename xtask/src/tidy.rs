//! `cargo xtask tidy`: what neither the compiler nor the linter check about the tree.
//!
//! Everything is read once ([`tree`]); a check is then a pure function from what was read to the problems it sees.
//! Tidy is a test too, so that `cargo test` alone covers it.
//!
//! - [`length`], [`header`], [`names`], [`text`], [`leftovers`], [`places`]: each file by itself
//! - [`lints`]: the linter's guard over long functions is up, and nobody took it down in silence
//! - [`dependencies`]: versions are chosen in one place
//! - [`arrows`]: crates depend on each other as ARCHITECTURE.md says

mod arrows;
mod dependencies;
mod header;
mod leftovers;
mod length;
mod lints;
mod manifest;
mod names;
mod places;
mod text;
mod tree;

use std::fmt;

use crate::invocation;
use tree::{File, Tree};

/// The checks that look at one file at a time.
const FILE_CHECKS: [fn(&File) -> Vec<Problem>; 7] = [
    length::check,
    header::check,
    names::check,
    text::check,
    leftovers::check,
    places::check,
    lints::check_attributes,
];

/// Something to be put right, and where. The order is the one in which problems are shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    path: String,
    line: usize,
    sentence: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.sentence)
    }
}

/// Prints every problem of the tree and says whether there is none.
pub(crate) fn run() -> bool {
    match Tree::read(&invocation::root()) {
        Ok(tree) => report(&problems(&tree), tree.files.len()),
        Err(error) => {
            eprintln!("tidy cannot look at the tree: {error}");
            false
        }
    }
}

fn report(problems: &[Problem], files: usize) -> bool {
    for problem in problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => println!("tidy: {files} files, no problem"),
        1 => println!("tidy: 1 problem"),
        several => println!("tidy: {several} problems"),
    }
    problems.is_empty()
}

fn problems(tree: &Tree) -> Vec<Problem> {
    let by_file = tree.files.iter().flat_map(|file| FILE_CHECKS.iter().flat_map(|check| check(file)));
    let mut problems: Vec<_> = by_file.collect();
    problems.extend(lints::check_configuration(&tree.files));
    problems.extend(dependencies::check(&tree.files));
    problems.extend(arrows::check(tree));
    problems.sort();
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use tree::Member;

    #[test]
    fn the_tree_is_tidy() {
        let tree = Tree::read(&invocation::root()).unwrap();
        let problems: Vec<_> = problems(&tree).iter().map(ToString::to_string).collect();
        assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    }

    #[test]
    fn every_check_is_asked_and_problems_come_sorted() {
        let untidy =
            "use a;\nmod misc {}\nlet a = 1; \n// FIXME\n// /root/\n#![allow(clippy::too_many_lines)]\n";
        let files = vec![
            File::new("crates/b/Cargo.toml", "[dependencies]\nserde = \"1\"\n"),
            File::new("crates/a/src/lib.rs", &(untidy.to_owned() + &"\n".repeat(700) + "// end\n")),
        ];
        let stranger = Member::new("rota-stranger", "crates/b/Cargo.toml", &[]);
        let shown: Vec<_> =
            problems(&Tree { files, members: vec![stranger] }).iter().map(ToString::to_string).collect();
        let expected = [
            "Cargo.toml:1: is missing",
            "clippy.toml:1: is missing",
            "crates/a/src/lib.rs:1: begins without `//!`",
            "crates/a/src/lib.rs:2: `misc`",
            "crates/a/src/lib.rs:3: has whitespace",
            "crates/a/src/lib.rs:4: `FIXME`",
            "crates/a/src/lib.rs:5: `/root/`",
            "crates/a/src/lib.rs:6: turns off",
            "crates/a/src/lib.rs:701: the file has 707 lines",
            "crates/b/Cargo.toml:1: `rota-stranger`",
            "crates/b/Cargo.toml:1: says nothing of lints",
            "crates/b/Cargo.toml:2: `serde`",
        ];
        assert_eq!(shown.len(), expected.len(), "{shown:#?}");
        for (shown, expected) in shown.iter().zip(expected) {
            assert!(shown.starts_with(expected), "{shown:?} instead of {expected:?}");
        }
    }

    #[test]
    fn problems_fail_the_command() {
        let problem = Problem { path: "a.rs".to_owned(), line: 7, sentence: "is odd".to_owned() };
        assert_eq!(problem.to_string(), "a.rs:7: is odd");
        assert!(!report(&[problem], 1));
        assert!(report(&[], 1));
    }
}
