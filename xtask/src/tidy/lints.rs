//! No function is over 70 lines unless a reason is written beside it.
//!
//! The linter counts (`too_many_lines`, in tests too) and demands the reason (`allow_attributes_without_reason`;
//! `allow_attributes` makes the exception vanish once it is no longer needed). Here it is checked that this guard is
//! up in every crate, and that no attribute takes it down in silence: whoever switches off the demand for reasons
//! is asked for no reason by the linter.

use toml::de::{DeTable, DeValue};

use super::Problem;
use super::manifest::{self, find, is_true};
use super::tree::File;

const GUARDS: [&str; 3] = ["too_many_lines", "allow_attributes", "allow_attributes_without_reason"];

/// The groups that contain one of the guards.
const GROUPS: [&str; 3] = ["clippy::pedantic", "clippy::restriction", "warnings"];

const MAX_FUNCTION_LINES: &str = "70";

pub(super) fn check_configuration(files: &[File]) -> Vec<Problem> {
    let members = manifest::of_members(files);
    // A manifest that cannot be read is reported by `dependencies`.
    let members = members.filter_map(|(file, manifest)| Some((file, manifest.ok()?)));
    let bare = members.filter(|(_, manifest)| !is_true(find(manifest, &["lints", "workspace"])));
    let sentence = "says nothing of lints: add `[lints]` with `workspace = true`";
    let mut problems: Vec<_> = bare.map(|(file, _)| file.problem(1, sentence)).collect();
    problems.extend(check_root_file(files, "Cargo.toml", missing_guards));
    problems.extend(check_root_file(files, "clippy.toml", wrong_threshold));
    problems
}

fn check_root_file(files: &[File], path: &str, faults: fn(&DeTable<'_>) -> Vec<String>) -> Vec<Problem> {
    let Some(file) = files.iter().find(|file| file.path == path) else {
        return vec![File::new(path, "").problem(1, "is missing: it holds the linter's settings")];
    };
    match manifest::parse(file) {
        Ok(table) => faults(&table).into_iter().map(|fault| file.problem(1, fault)).collect(),
        Err(unreadable) => vec![unreadable],
    }
}

fn missing_guards(root: &DeTable<'_>) -> Vec<String> {
    let is_on =
        |lint: &&str| level(root, lint).is_some_and(|level| ["warn", "deny", "forbid"].contains(&level));
    let off = GUARDS.iter().filter(|lint| !is_on(lint));
    off.map(|lint| format!("does not switch `{lint}` on in [workspace.lints.clippy]")).collect()
}

/// A lint is set by its level alone, or by a table that holds the level.
fn level<'a>(root: &'a DeTable<'a>, lint: &str) -> Option<&'a str> {
    let way = ["workspace", "lints", "clippy", lint];
    let value = find(root, &way)?;
    value.as_str().or_else(|| find(root, &["workspace", "lints", "clippy", lint, "level"])?.as_str())
}

fn wrong_threshold(clippy: &DeTable<'_>) -> Vec<String> {
    let threshold = find(clippy, &["too-many-lines-threshold"]);
    let right = matches!(threshold, Some(DeValue::Integer(number)) if number.as_str() == MAX_FUNCTION_LINES);
    let fault = format!("does not say `too-many-lines-threshold = {MAX_FUNCTION_LINES}`");
    if right { Vec::new() } else { vec![fault] }
}

pub(super) fn check_attributes(file: &File) -> Vec<Problem> {
    if !file.is_rust() {
        return Vec::new();
    }
    let silent = attributes(&file.text).filter(|(_, attribute)| !has_reason(attribute));
    let silencing = silent.filter_map(|(at, attribute)| Some((at, silenced(attribute)?)));
    let sentence = |lint| format!("turns off `{lint}` without a reason: write `reason = \"…\"`");
    silencing.map(|(at, lint)| file.problem(file.line_at(at), sentence(lint))).collect()
}

/// The guard or group that an `allow` or `expect` names.
fn silenced(attribute: &str) -> Option<&str> {
    let mut words = attribute.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    let is_guard = |word: &str| word.strip_prefix("clippy::").is_some_and(|lint| GUARDS.contains(&lint));
    words.find(|word| matches!(*word, "allow" | "expect"))?;
    words.find(|word| is_guard(word) || GROUPS.contains(word))
}

fn has_reason(attribute: &str) -> bool {
    let after = attribute.match_indices("reason").filter_map(|(at, word)| attribute.get(at + word.len()..));
    let mut given = after.map(|rest| rest.trim_start_matches([' ', '=']));
    given.any(|given| given.starts_with('"') && !given.starts_with("\"\""))
}

/// The attributes that begin a line, each with its place. One may go on over several lines.
fn attributes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let openings = ["#[", "#!["].into_iter().flat_map(|opening| text.match_indices(opening));
    let indent = |at: usize| text.get(..at).and_then(|before| before.rsplit('\n').next());
    let at_line_start = openings.map(|(at, _)| at).filter(move |&at| indent(at).is_some_and(is_blank));
    at_line_start.filter_map(|at| Some((at, up_to_its_end(text.get(at..)?))))
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Brackets inside a string are text.
fn up_to_its_end(text: &str) -> &str {
    let (mut depth, mut in_string) = (0_usize, false);
    let closing = text.char_indices().find(|&(_, c)| {
        match c {
            '"' => in_string = !in_string,
            '[' if !in_string => depth += 1,
            ']' if !in_string => depth -= 1,
            _ => return false,
        }
        c == ']' && depth == 0
    });
    closing.and_then(|(end, _)| text.get(..=end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "[workspace.lints.clippy]\ntoo_many_lines = \"warn\"\nallow_attributes = \"deny\"\n\
                        allow_attributes_without_reason = { level = \"warn\", priority = 1 }\n";
    const CLIPPY: &str = "too-many-lines-threshold = 70\n";
    const MEMBER: &str = "[lints]\nworkspace = true\n";

    fn faults(root: &str, clippy: &str, member: &str) -> Vec<String> {
        let files = [("Cargo.toml", root), ("clippy.toml", clippy), ("crates/a/Cargo.toml", member)];
        let problems = check_configuration(&files.map(|(path, text)| File::new(path, text)));
        problems.iter().map(ToString::to_string).collect()
    }

    fn lines_at_fault(text: &str) -> Vec<usize> {
        let problems = check_attributes(&File::new("crates/a/src/lib.rs", text));
        problems.into_iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn the_guard_as_it_should_be_is_fine() {
        assert!(faults(ROOT, CLIPPY, MEMBER).is_empty());
    }

    #[test]
    fn another_threshold_or_none_is_a_problem() {
        for clippy in ["too-many-lines-threshold = 700\n", "", "too-many-lines-threshold = \"70\"\n"] {
            let expected = ["clippy.toml:1: does not say `too-many-lines-threshold = 70`"];
            assert_eq!(faults(ROOT, clippy, MEMBER), expected);
        }
    }

    #[test]
    fn a_lint_that_is_off_is_a_problem() {
        let root = ROOT.replace("too_many_lines = \"warn\"", "too_many_lines = \"allow\"");
        let expected = "Cargo.toml:1: does not switch `too_many_lines` on in [workspace.lints.clippy]";
        assert_eq!(faults(&root, CLIPPY, MEMBER), [expected]);
        assert_eq!(faults("", CLIPPY, MEMBER).len(), 3);
    }

    #[test]
    fn a_crate_that_does_not_inherit_the_lints_is_a_problem() {
        for member in ["", "[lints]\nworkspace = false\n", "[lints.clippy]\ntoo_many_lines = \"warn\"\n"] {
            assert!(
                faults(ROOT, CLIPPY, member)[0].starts_with("crates/a/Cargo.toml:1: says nothing of lints")
            );
        }
    }

    #[test]
    fn settings_that_are_missing_or_cannot_be_read_are_problems() {
        assert_eq!(check_configuration(&[]).len(), 2);
        assert!(faults(ROOT, "too-many =\n", MEMBER)[0].starts_with("clippy.toml:1: cannot be read"));
    }

    #[test]
    fn an_exception_without_a_reason_is_a_problem() {
        assert_eq!(lines_at_fault("//! A.\n#![allow(clippy::too_many_lines)]\n"), [2]);
        assert_eq!(
            lines_at_fault("    #[expect(\n    clippy::too_many_lines,\n    reason = \"\"\n)]\nmod a;\n"),
            [1]
        );
        assert_eq!(
            lines_at_fault("#![cfg_attr(test, allow(clippy::allow_attributes_without_reason))]\n"),
            [1]
        );
        assert_eq!(lines_at_fault("#![allow(clippy::pedantic)]\n\n#![allow(warnings)]\n"), [1, 3]);
    }

    #[test]
    fn an_exception_with_its_reason_is_fine() {
        let several_lines =
            "#![expect(\n    clippy::too_many_lines,\n    reason = \"a table [of cases]\"\n)]\n";
        assert!(lines_at_fault(several_lines).is_empty());
        let named_reason = "#![expect(clippy::allow_attributes_without_reason, reason = \"generated\")]\n";
        assert!(lines_at_fault(named_reason).is_empty());
    }

    #[test]
    fn other_attributes_are_left_to_the_linter() {
        assert!(lines_at_fault("#[allow(dead_code)]\n#[deny(warnings)]\n#[derive(Debug)]\n").is_empty());
        assert!(lines_at_fault("let text = \"#![allow(clippy::too_many_lines)]\";\n").is_empty());
    }
}
