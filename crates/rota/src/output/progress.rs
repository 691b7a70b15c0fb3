//! A bar for long work, on the standard error. Where nobody watches, because it is not a terminal, nothing is drawn.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Something moves from the first moment on, although not all work can say how far it is.
const BEGINNING: &str = "{spinner} {prefix} … {elapsed}";
const TICK: Duration = Duration::from_millis(100);

/// A bar for one piece of work. It disappears with this.
pub(crate) struct Bar {
    bar: ProgressBar,
    unit: &'static str,
}

impl Bar {
    /// `work` is what is being done, `unit` what is counted.
    pub(crate) fn begin(work: &'static str, unit: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_prefix(work);
        set_style(&bar, BEGINNING);
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        Self { bar, unit }
    }

    /// Whether somebody sees it.
    pub(crate) fn is_watched(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// How much is done, of nobody knows how much.
    pub(crate) fn so_far(&self, done: u64) {
        if self.bar.position() == 0 {
            let unit = self.unit;
            set_style(
                &self.bar,
                &format!("{{spinner}} {{prefix}} … {{human_pos}} {unit}, {{per_sec:0}}, {{elapsed}}"),
            );
        }
        self.bar.set_position(done);
    }

    /// Says something that stays above the bar.
    pub(crate) fn say(&self, text: &str) {
        self.bar.suspend(|| super::warn(text));
    }

    /// How far it is.
    pub(crate) fn at(&self, done: u64, of: u64) {
        if self.bar.length().is_none() {
            let unit = self.unit;
            let pace = format!("{{human_len}} {unit}, {{per_sec:0}}, {{eta}} left");
            set_style(&self.bar, &format!("{{prefix}} [{{wide_bar}}] {{percent:>3}} %  {pace}"));
        }
        self.bar.set_length(of);
        self.bar.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    // A template that cannot be read leaves the bar as it was.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_where_nobody_watches() {
        let bar = Bar::begin("Working", "pages");
        bar.at(3, 10);
        assert_eq!((bar.bar.position(), bar.bar.length()), (3, Some(10)));
        // The tests may be run in a terminal.
        assert_eq!(bar.is_watched(), std::io::IsTerminal::is_terminal(&std::io::stderr()));
    }
}
