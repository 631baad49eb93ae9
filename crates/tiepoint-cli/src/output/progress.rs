//! A line on the terminal with the task under way, the share done and the time left.

use crate::failure::{Failure, Outcome};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use tiepoint::device::Cpu;

/// The line while nothing is known of the share done.
const MESSAGE: &str = "{wide_msg}";
/// The line within long work.
const SHARE: &str = "{percent:>2} %  {wide_msg} {eta} left";

/// The line, drawn on stderr where that is a terminal. It is wiped when this is dropped.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    styles: [ProgressStyle; 2],
}

impl ProgressLine {
    /// Draws nothing unless `wanted` and stderr is a terminal.
    pub(crate) fn new(wanted: bool) -> Outcome<Self> {
        let style = |template| {
            ProgressStyle::with_template(template).map_err(|e| Failure::work(format!("{template}: {e}")))
        };
        let styles = [style(MESSAGE)?, style(SHARE)?];
        let visible = wanted && std::io::stderr().is_terminal();
        let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Ok(Self { bar: ProgressBar::with_draw_target(None, target), styles })
    }

    /// What is under way from now on.
    pub(crate) fn say(&self, message: &str) {
        self.bar.set_style(self.styles[0].clone());
        self.bar.set_message(message.to_owned());
        self.bar.tick();
    }

    /// Runs `print`, which writes lines to the terminal, without the line in their way.
    pub(crate) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }

    /// The CPU. Its long work moves the line.
    pub(crate) fn watch(&self, cpu: Cpu) -> Cpu {
        if self.bar.is_hidden() {
            return cpu;
        }
        let (bar, [message, share]) = (self.bar.clone(), self.styles.clone());
        cpu.observed(move |work| {
            if work.done == work.total {
                bar.set_style(message.clone());
                bar.tick();
                return;
            }
            // Other work has begun.
            if work.done <= bar.position() || bar.length() != Some(work.total) {
                bar.set_style(share.clone());
                bar.reset();
                bar.set_length(work.total);
            }
            bar.set_position(work.done);
        })
    }
}

impl std::fmt::Debug for ProgressLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ProgressLine").field(&self.bar).finish()
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
