//! Marks of unfinished work. What is to be done later belongs in an issue, where somebody looks.

use super::Problem;
use super::tree::File;

const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];

pub(super) fn check(file: &File) -> Vec<Problem> {
    // The checks and their tests must be able to name what they look for.
    if !file.is_rust() || file.path.starts_with("xtask/src/tidy") {
        return Vec::new();
    }
    let marked = file.lines().filter_map(|(number, line)| Some((number, mark(line)?)));
    let sentence = |mark| format!("`{mark}` is left: finish it, or open an issue");
    marked.map(|(number, mark)| file.problem(number, sentence(mark))).collect()
}

fn mark(line: &str) -> Option<&'static str> {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.find_map(|word| MARKS.into_iter().find(|mark| *mark == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_found_on_its_line() {
        let problems =
            check(&File::new("crates/a/src/lib.rs", "// TODO: a\nfn a() {}\n/* FIXME */\n//XXX\n"));
        let lines: Vec<_> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 3, 4]);
        assert!(problems[1].sentence.starts_with("`FIXME`"), "{problems:?}");
    }

    #[test]
    fn words_that_contain_a_mark_are_fine() {
        assert_eq!(check(&File::new("crates/a/src/lib.rs", "const TODO_LIST: &str = \"XXXL, todo\";\n")), []);
        assert_eq!(check(&File::new("docs/writing.md", "Leave no TODO.\n")), []);
    }
}
