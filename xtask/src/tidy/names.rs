//! No drawers for odds and ends: what has no room needs a better name.

use super::Problem;
use super::tree::File;

const DRAWERS: [&str; 6] = ["utils", "util", "common", "helpers", "helper", "misc"];

pub(super) fn check(file: &File) -> Vec<Problem> {
    if !file.is_in_a_crate() {
        return Vec::new();
    }
    let parts = file.path.split('/').filter_map(|part| drawer(stem(part)).map(|name| (1, name)));
    let modules = file.lines().filter(|_| file.is_rust());
    let modules = modules.filter_map(|(number, line)| drawer(module(line)?).map(|name| (number, name)));
    let sentence = |name| format!("`{name}` says nothing of what is in it: find the name of the thing");
    parts.chain(modules).map(|(line, name)| file.problem(line, sentence(name))).collect()
}

fn drawer(name: &str) -> Option<&'static str> {
    DRAWERS.into_iter().find(|drawer| drawer.eq_ignore_ascii_case(name))
}

fn stem(part: &str) -> &str {
    part.split('.').next().unwrap_or(part)
}

/// The module that a line declares, in a file of its own or in place.
fn module(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub") || word.ends_with(')'));
    words.next().filter(|word| *word == "mod")?;
    words.next().map(|name| name.trim_end_matches([';', '{', '}']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_at_fault(path: &str, text: &str) -> Vec<usize> {
        check(&File::new(path, text)).into_iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn files_and_folders_that_are_drawers_are_problems() {
        for path in ["crates/a/src/utils.rs", "crates/a/tests/common/mod.rs", "crates/web/page/Helpers.js"] {
            assert_eq!(lines_at_fault(path, ""), [1], "{path}");
        }
        assert_eq!(lines_at_fault("crates/util/src/misc.rs", ""), [1, 1]);
    }

    #[test]
    fn modules_that_are_drawers_are_problems() {
        let text = "mod a;\npub mod util;\npub(in crate::a) mod helper {\n    pub(crate) mod misc {}\n}\n";
        assert_eq!(lines_at_fault("crates/a/src/lib.rs", text), [2, 3, 4]);
    }

    #[test]
    fn names_that_only_contain_such_a_word_are_fine() {
        assert!(
            lines_at_fault("crates/a/src/utilisation.rs", "mod common_name;\nlet util = 1;\n").is_empty()
        );
        assert!(lines_at_fault("docs/common/page.md", "").is_empty());
    }
}
