//! Whitespace that nobody sees and every diff shows.

use super::Problem;
use super::tree::File;

/// Folders whose files are kept byte for byte: recordings, what programs wrote, what others wrote.
const BYTE_FOR_BYTE: [&str; 3] = ["fixtures", "golden", "seeds"];

pub(super) fn check(file: &File) -> Vec<Problem> {
    if file.is_below(&BYTE_FOR_BYTE) {
        return Vec::new();
    }
    let mut problems: Vec<_> =
        (1..).zip(file.text.split('\n')).flat_map(|line| check_line(file, line)).collect();
    problems.extend(check_end(file));
    problems
}

fn check_line(file: &File, (number, line): (usize, &str)) -> Vec<Problem> {
    let without_return = line.strip_suffix('\r').unwrap_or(line);
    let faults = [
        (line.contains('\r'), "has a carriage return: lines end with a newline alone"),
        (without_return.ends_with([' ', '\t']), "has whitespace at its end"),
        (file.is_rust() && line.contains('\t'), "has a tab: Rust is indented with spaces, strings say `\\t`"),
    ];
    let present = faults.into_iter().filter(|(fault, _)| *fault);
    present.map(|(_, sentence)| file.problem(number, sentence)).collect()
}

fn check_end(file: &File) -> Option<Problem> {
    let text = &file.text;
    let last = text.lines().count();
    if !text.is_empty() && !text.ends_with('\n') {
        return Some(file.problem(last, "ends without a newline"));
    }
    let blank = text == "\n" || text.ends_with("\n\n") || text.ends_with("\n\r\n");
    blank.then(|| file.problem(last, "ends with an empty line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<(usize, String)> {
        check(&File::new(path, text)).into_iter().map(|problem| (problem.line, problem.sentence)).collect()
    }

    fn assert_fault(path: &str, text: &str, line: usize, beginning: &str) {
        let faults = faults(path, text);
        assert_eq!(faults.len(), 1, "{text:?}: {faults:?}");
        assert!(faults[0].0 == line && faults[0].1.starts_with(beginning), "{text:?}: {faults:?}");
    }

    #[test]
    fn each_fault_is_found_on_its_line() {
        assert_fault("a.md", "one\ntwo \n", 2, "has whitespace");
        assert_fault("a.md", "one\t\n", 1, "has whitespace");
        assert_fault("a.md", "one\r\ntwo\n", 1, "has a carriage return");
        assert_fault("a.rs", "a\n\tb\n", 2, "has a tab");
        assert_fault("a.md", "one\ntwo", 2, "ends without");
        assert_fault("a.md", "one\n\n", 2, "ends with an empty");
        assert_fault("a.md", "\n", 1, "ends with an empty");
    }

    #[test]
    fn clean_text_is_fine() {
        for (path, text) in [("a.rs", "a\n\n    b\n"), ("Makefile", "all:\n\tcargo build\n"), ("empty", "")] {
            assert!(faults(path, text).is_empty());
        }
    }

    #[test]
    fn recordings_stay_as_they_came() {
        assert!(faults("crates/backup/fixtures/ios.session", "login: \r\n").is_empty());
        assert!(faults("docs/seeds/000.txt", "{ \n}").is_empty());
        assert_ne!(faults("docs/fixtures.md", "login: \r\n"), []);
    }
}
