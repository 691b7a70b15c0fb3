//! The end of a test run at a glance: a line per step, then one line that says how it went.

use std::env;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// Failed so that whatever comes after it could only fail for the same reason.
    FailedToBuild,
    /// An earlier step failed to build.
    NotRun,
}

impl Outcome {
    pub(crate) fn of(succeeded: bool) -> Self {
        if succeeded { Self::Passed } else { Self::Failed }
    }

    fn failed(self) -> bool {
        matches!(self, Self::Failed | Self::FailedToBuild)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed | Self::FailedToBuild => "FAILED",
            Self::NotRun => "not run",
        }
    }
}

/// One line of the summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) step: String,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

impl Line {
    pub(crate) fn show(&self, style: Style) -> String {
        let Self { step, outcome, .. } = self;
        // Padded before it is painted: colour codes have a width for the formatter, and none on the screen.
        let word = format!("{:<8}", outcome.word());
        format!("{step:<10} {} {:>12}", style.outcome(*outcome, &word), time(self.took))
    }
}

pub(crate) fn passed(lines: &[Line]) -> bool {
    lines.iter().all(|line| line.outcome == Outcome::Passed)
}

/// The whole summary, without a newline at its end.
pub(crate) fn show(lines: &[Line], style: Style) -> String {
    let mut text = style.bold(&format!("{:<10} {:<8} {:>12}", "step", "result", "time"));
    for line in lines {
        text += &format!("\n{}", line.show(style));
    }
    let outcome = Outcome::of(passed(lines));
    text + "\n" + &style.outcome(outcome, &verdict(lines))
}

fn verdict(lines: &[Line]) -> String {
    let total = time(lines.iter().map(|line| line.took).sum());
    let failed = names(lines, Outcome::failed);
    let not_run = names(lines, |outcome| outcome == Outcome::NotRun);
    match (failed.as_str(), not_run.as_str(), lines) {
        ("", _, [only]) => format!("{} passed in {total}", only.step),
        ("", ..) => format!("all {} steps passed in {total}", lines.len()),
        (_, "", _) => format!("FAILED: {failed}"),
        _ => format!("FAILED: {failed} (not run: {not_run})"),
    }
}

fn names(lines: &[Line], wanted: impl Fn(Outcome) -> bool) -> String {
    let names: Vec<_> =
        lines.iter().filter(|line| wanted(line.outcome)).map(|line| line.step.as_str()).collect();
    names.join(", ")
}

fn time(took: Duration) -> String {
    // Whole seconds are rounded first, so that 59.96 s does not become "60.0 s" nor 119.6 s "1 min 60 s".
    let tenths = (took.as_millis() + 50) / 100;
    if tenths < 600 {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    let seconds = (took.as_millis() + 500) / 1000;
    format!("{} min {} s", seconds / 60, seconds % 60)
}

/// Whether words may be coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// Colour on a terminal only, and not for those who set NO_COLOR (see no-color.org).
    pub(crate) fn of_stdout() -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: io::stdout().is_terminal() && !refused }
    }

    pub(crate) fn has_colour(self) -> bool {
        self.colour
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn outcome(self, outcome: Outcome, text: &str) -> String {
        match outcome {
            Outcome::Passed => self.paint("32", text),
            Outcome::Failed | Outcome::FailedToBuild => self.paint("31", text),
            Outcome::NotRun => self.paint("33", text),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { colour: false };

    fn line(step: &str, outcome: Outcome, seconds: u64) -> Line {
        Line { step: step.to_owned(), outcome, took: Duration::from_secs(seconds) }
    }

    fn last_line(lines: &[Line]) -> String {
        show(lines, PLAIN).lines().last().unwrap().to_owned()
    }

    #[test]
    fn a_good_run_ends_with_the_number_of_steps_and_the_time() {
        let lines = [line("format", Outcome::Passed, 1), line("tests", Outcome::Passed, 251)];
        assert!(passed(&lines));
        assert_eq!(
            show(&lines, PLAIN),
            "step       result           time\n\
             format     ok              1.0 s\n\
             tests      ok         4 min 11 s\n\
             all 2 steps passed in 4 min 12 s"
        );
    }

    #[test]
    fn a_bad_run_ends_with_the_names_of_what_failed() {
        let lines = [line("format", Outcome::Failed, 1), line("clippy", Outcome::Passed, 2)];
        assert!(!passed(&lines));
        assert_eq!(last_line(&lines), "FAILED: format");
    }

    #[test]
    fn what_was_not_run_is_no_success_and_is_named() {
        let lines = [line("tests", Outcome::FailedToBuild, 1), line("docs", Outcome::NotRun, 0)];
        assert!(!passed(&lines));
        assert_eq!(last_line(&lines), "FAILED: tests (not run: docs)");
    }

    #[test]
    fn a_single_step_is_called_by_its_name() {
        assert_eq!(last_line(&[line("tidy", Outcome::Passed, 1)]), "tidy passed in 1.0 s");
    }

    #[test]
    fn times_are_rounded_without_odd_seconds() {
        let cases = [(0, "0.0 s"), (249, "0.2 s"), (59_949, "59.9 s"), (59_960, "1 min 0 s")];
        for (millis, shown) in cases.into_iter().chain([(119_600, "2 min 0 s"), (3_723_000, "62 min 3 s")]) {
            assert_eq!(time(Duration::from_millis(millis)), shown);
        }
    }

    #[test]
    fn colour_adds_codes_and_changes_no_word() {
        let lines = [line("format", Outcome::Failed, 1)];
        let painted = show(&lines, Style { colour: true });
        assert!(painted.contains("\x1b[31mFAILED"), "{painted:?}");
        let bare = painted.replace("\x1b[1m", "").replace("\x1b[31m", "").replace("\x1b[0m", "");
        assert_eq!(bare, show(&lines, PLAIN));
    }
}
