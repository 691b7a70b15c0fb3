//! Paths of one person's machine, which lead nowhere on any other.

use super::Problem;
use super::tree::File;

const PRIVATE: [&str; 3] = ["/home/", "/root/", "/work/"];

/// Folders whose files came from elsewhere and may speak of places there.
const FROM_ELSEWHERE: [&str; 2] = ["fixtures", "seeds"];

pub(super) fn check(file: &File) -> Vec<Problem> {
    // The checks and their tests must be able to name what they look for.
    if file.is_below(&FROM_ELSEWHERE) || file.path.starts_with("xtask/src/tidy") {
        return Vec::new();
    }
    let found = file.lines().flat_map(|(number, line)| {
        PRIVATE.into_iter().filter(|place| names(line, place)).map(move |place| (number, place))
    });
    let sentence =
        |place| format!("`{place}` is a place on one person's machine: write a path from the root");
    found.map(|(number, place)| file.problem(number, sentence(place))).collect()
}

/// Whether the path begins here: in `https://example.org/work/` or `../work/` it goes on from something else.
fn names(line: &str, place: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || "._-~*})]>".contains(c);
    line.match_indices(place).any(|(at, _)| !line.get(..at).is_some_and(|before| before.ends_with(continues)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_path_is_found_on_its_line() {
        let text = "data = \"/home/anna/rota\"\n/root/x\nsee file:///work/a\nPATH=/bin:/home/a\n";
        let problems = check(&File::new("docs/page.md", text));
        let lines: Vec<_> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 2, 3, 4]);
    }

    #[test]
    fn paths_that_only_pass_through_such_a_name_are_fine() {
        let text =
            "https://example.org/work/1\n../home/a\n$HOME/work/a\n${dir}/root/\n/var/home/\n/api/work/\n";
        assert_eq!(check(&File::new("docs/page.md", text)), []);
    }

    #[test]
    fn recordings_may_speak_of_their_own_machine() {
        assert_eq!(check(&File::new("crates/backup/fixtures/junos.session", "cd /root/\n")), []);
        assert_ne!(check(&File::new("crates/rota/golden/help.txt", "cd /root/\n")), []);
    }
}
