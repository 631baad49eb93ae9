//! A line on the terminal with the task, the share done and the time left; without a terminal, a log line each minute.

use super::{print_error, print_line};
use crate::failure::{Failure, Outcome};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tiepoint::device::{Cpu, Progress};

/// How often the progress is logged.
const LOGGED: Duration = Duration::from_secs(60);

/// How the progress of long work is logged where there is no terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    None,
    /// On stderr, as text.
    Lines,
    /// On stdout, as JSON objects.
    Objects,
}

/// The task that waits for another process; it is logged at once.
const WAITING: &str = "wait for another scan";

/// The line while the share done is unknown.
const MESSAGE: &str = "{wide_msg}";
/// The line during long work.
const SHARE: &str = "{percent:>2} %  {wide_msg} {eta} left";
/// The line during work whose message has the count of steps and the time left.
const COUNTED: &str = "{percent:>2} %  {wide_msg}";

/// The line, drawn on stderr if that is a terminal. It is erased when this is dropped.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    styles: [ProgressStyle; 3],
}

impl ProgressLine {
    /// Draws nothing unless `wanted` and stderr is a terminal.
    pub(crate) fn new(wanted: bool) -> Outcome<Self> {
        let visible = wanted && std::io::stderr().is_terminal();
        Self::on(if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() })
    }

    fn on(target: ProgressDrawTarget) -> Outcome<Self> {
        let style = |template| {
            ProgressStyle::with_template(template).map_err(|e| Failure::work(format!("{template}: {e}")))
        };
        let styles = [style(MESSAGE)?, style(SHARE)?, style(COUNTED)?];
        Ok(Self { bar: ProgressBar::with_draw_target(None, target), styles })
    }

    pub(crate) fn say(&self, message: &str) {
        self.bar.set_style(self.styles[0].clone());
        self.bar.set_message(message.to_owned());
        self.bar.tick();
    }

    /// Hides the line while `print` writes to the terminal.
    pub(crate) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }

    /// A CPU whose long work is shown by the line, or logged if there is no line. With a `log`, the line shows the text
    /// that would be logged.
    pub(crate) fn watch(&self, cpu: Cpu, log: Log) -> Cpu {
        if self.bar.is_hidden() {
            return match log {
                Log::None => cpu,
                Log::Lines | Log::Objects => logged(cpu, log),
            };
        }
        let (bar, [message, share, counted]) = (self.bar.clone(), self.styles.clone());
        let pace = Mutex::new(None::<Pace>);
        cpu.observed(move |work| {
            if log != Log::None {
                bar.set_message(match work.done == work.total {
                    true => work.task.to_owned(),
                    false => {
                        let mut pace = pace.lock().unwrap_or_else(PoisonError::into_inner);
                        let now = Instant::now();
                        Pace::kept(&mut pace, work, now).line(work, now)
                    }
                });
            }
            if work.done == work.total {
                bar.set_style(message.clone());
                bar.tick();
                return;
            }
            // Another task has begun.
            if work.done <= bar.position() || bar.length() != Some(work.total) {
                bar.set_style(if log == Log::None { share.clone() } else { counted.clone() });
                bar.reset();
                bar.set_length(work.total);
            }
            bar.set_position(work.done);
        })
    }
}

/// The CPU, with its work logged each minute.
fn logged(cpu: Cpu, log: Log) -> Cpu {
    let pace = Mutex::new(None::<Pace>);
    cpu.observed(move |work| {
        if work.task == WAITING {
            if work.done < work.total {
                print_error("tiepoint: waiting for another scan of this work folder");
            }
            return;
        }
        let mut pace = pace.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let kept = Pace::kept(&mut pace, work, now);
        if now.duration_since(kept.told) >= LOGGED {
            kept.told = now;
            // Errors of printing do not stop the work.
            match log {
                Log::Objects => print_line(&kept.object(work, now).to_string()),
                Log::Lines | Log::None => print_error(&format!("tiepoint: {}", kept.line(work, now))),
            }
        }
    })
}

#[derive(Clone)]
struct Pace {
    task: &'static str,
    began: Instant,
    /// Steps that were done when the task was first seen.
    done: u64,
    told: Instant,
}

impl Pace {
    /// The pace of the current task: the kept one, or a new one if another task has begun.
    fn kept(kept: &mut Option<Self>, work: Progress, now: Instant) -> &mut Self {
        let begun = Self { task: work.task, began: now, done: work.done, told: now };
        let kept = kept.get_or_insert_with(|| begun.clone());
        if kept.task != work.task || work.done < kept.done {
            *kept = begun;
        }
        kept
    }

    /// Steps per second, and seconds for the remaining ones.
    fn rate(&self, work: Progress, now: Instant) -> (f64, f64) {
        let rate = (work.done - self.done) as f64 / now.duration_since(self.began).as_secs_f64().max(1e-9);
        (rate, (work.total - work.done) as f64 / rate.max(1e-9))
    }

    fn object(&self, work: Progress, now: Instant) -> serde_json::Value {
        let (rate, left) = self.rate(work, now);
        json!({
            "progress": work.task,
            "done": work.done,
            "total": work.total,
            "rate": rate,
            "seconds_left": left,
            "left_out": work.left_out,
        })
    }

    fn line(&self, work: Progress, now: Instant) -> String {
        let (rate, left) = self.rate(work, now);
        let (task, done, total) = (work.task, work.done, work.total);
        let left_out = match work.left_out {
            0 => String::new(),
            n => format!(", {n} left out"),
        };
        format!("{task}: {done} of {total}{left_out}, {rate:.1}/s, {} left", span(left))
    }
}

/// A number of bytes in words.
pub(crate) fn size(bytes: u64) -> String {
    match bytes as f64 {
        few if few < 1e9 => format!("{:.1} MB", few / 1e6),
        many => format!("{:.1} GB", many / 1e9),
    }
}

/// A time in words.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 90.0 * 60.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal that records its output.
    #[derive(Clone, Debug, Default)]
    struct Written(std::sync::Arc<Mutex<String>>);

    impl indicatif::TermLike for Written {
        fn width(&self) -> u16 {
            100
        }

        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn write_line(&self, line: &str) -> std::io::Result<()> {
            self.write_str(line)
        }

        fn write_str(&self, text: &str) -> std::io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> std::io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_line_on_a_terminal_shows_what_a_log_would() {
        for (log, told) in [(Log::Lines, "50 %  features: 2 of 4, "), (Log::None, "50 %  ")] {
            let written = Written::default();
            let target = ProgressDrawTarget::term_like(Box::new(written.clone()));
            let line = ProgressLine::on(target).unwrap();
            line.say("stage");
            let cpu = line.watch(Cpu::sequential(), log).begin_task("features", 4);
            for _ in 0..2 {
                cpu.advance(1);
                // Leaves time to draw: the line is drawn a few times a second.
                std::thread::sleep(Duration::from_millis(200));
            }
            line.bar.force_draw();
            let shown = written.0.lock().unwrap().clone();
            let counted = shown.contains("/s, ") && shown.contains("features: ");
            assert!(shown.contains(told) && counted == (log == Log::Lines), "{shown:?}");
        }
    }

    #[test]
    fn a_log_has_counts_rate_and_remaining_time() {
        let began = Instant::now();
        let pace = Pace { task: "match", began, done: 100, told: began };
        let work = Progress { task: "match", done: 700, total: 2500, left_out: 0 };
        let now = began + Duration::from_secs(60);
        assert_eq!(pace.line(work, now), "match: 700 of 2500, 10.0/s, 3 min left");
        let with_bad = Progress { task: "features", left_out: 3, ..work };
        assert_eq!(pace.line(with_bad, now), "features: 700 of 2500, 3 left out, 10.0/s, 3 min left");
        let object = pace.object(work, now);
        assert_eq!((&object["rate"], &object["seconds_left"]), (&json!(10.0), &json!(180.0)), "{object}");
        let spans = [5.0, 600.0, 7200.0, 1e6].map(span);
        assert_eq!(spans, ["5 s", "10 min", "2.0 h", "11.6 days"]);
        assert_eq!([30_000_000, 2_500_000_000].map(size), ["30.0 MB", "2.5 GB"]);
    }
}
