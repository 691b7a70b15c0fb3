//! Files stay short enough to be read in one go. How long a function may be is the linter's affair, see `lints`.

use super::Problem;
use super::tree::File;

const MAX_LINES: usize = 700;

pub(super) fn check(file: &File) -> Vec<Problem> {
    let lines = file.text.lines().count();
    if !file.is_rust() || lines <= MAX_LINES {
        return Vec::new();
    }
    let sentence =
        format!("the file has {lines} lines; it has more than one subject, split it (limit: {MAX_LINES})");
    vec![file.problem(MAX_LINES + 1, sentence)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_fine_and_one_more_is_not() {
        assert_eq!(check(&File::new("a.rs", &"\n".repeat(MAX_LINES))), []);
        let problems = check(&File::new("a.rs", &"\n".repeat(MAX_LINES + 1)));
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].line, 701);
    }

    #[test]
    fn other_files_may_be_long() {
        assert_eq!(check(&File::new("Cargo.lock", &"\n".repeat(5000))), []);
    }
}
