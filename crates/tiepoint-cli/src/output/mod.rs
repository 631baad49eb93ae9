//! What the command says about its work: JSON objects, the table of stage times, progress.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tiepoint::device::{Cpu, Profile, StageTime};

/// A JSON object under way; keys keep the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn key(&mut self, key: &str) -> &mut String {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        quote(&mut self.0, key);
        self.0.push(':');
        &mut self.0
    }

    pub(crate) fn text(mut self, key: &str, value: &str) -> Self {
        quote(self.key(key), value);
        self
    }

    pub(crate) fn number(mut self, key: &str, value: impl Into<f64>) -> Self {
        number(self.key(key), value.into());
        self
    }

    pub(crate) fn count(mut self, key: &str, value: usize) -> Self {
        let _ = write!(self.key(key), "{value}");
        self
    }

    pub(crate) fn flag(mut self, key: &str, value: bool) -> Self {
        let _ = write!(self.key(key), "{value}");
        self
    }

    pub(crate) fn numbers(mut self, key: &str, values: &[f64]) -> Self {
        let out = self.key(key);
        out.push('[');
        for (i, v) in values.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            number(out, *v);
        }
        out.push(']');
        self
    }

    pub(crate) fn object(mut self, key: &str, value: &Self) -> Self {
        let _ = write!(self.key(key), "{value}");
        self
    }

    pub(crate) fn objects(mut self, key: &str, values: &[Self]) -> Self {
        let all: Vec<String> = values.iter().map(ToString::to_string).collect();
        let _ = write!(self.key(key), "[{}]", all.join(","));
        self
    }
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{}}}", self.0)
    }
}

/// JSON knows no infinity and no NaN: they become null.
fn number(out: &mut String, v: f64) {
    let _ = if v.is_finite() { write!(out, "{v}") } else { write!(out, "null") };
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Takes the wall-clock times of one image or pair.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    before: Vec<StageTime>,
    spent: Spent,
}

/// What a piece of work is booked as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Read,
    Compute,
    Write,
}

impl Clock {
    /// Starts now; stage times noted before do not count.
    pub(crate) fn start(cpu: &Cpu) -> Self {
        let before = cpu.profile().map(Profile::stages).unwrap_or_default();
        Self { start: Instant::now(), before, spent: Spent::default() }
    }

    /// Runs `work` and books its time.
    pub(crate) fn time<R>(&mut self, part: Part, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        let spent = start.elapsed().as_secs_f64();
        match part {
            Part::Read => self.spent.read += spent,
            Part::Compute => self.spent.compute += spent,
            Part::Write => self.spent.write += spent,
        }
        result
    }

    pub(crate) fn compute(&self) -> f64 {
        self.spent.compute
    }

    /// What was spent until now, with the stages that the CPU has noted.
    pub(crate) fn spent(&self, cpu: &Cpu) -> Spent {
        let mut stages = cpu.profile().map(Profile::stages).unwrap_or_default();
        for stage in &mut stages {
            if let Some(before) = self.before.iter().find(|b| b.name == stage.name) {
                stage.seconds -= before.seconds;
                stage.calls -= before.calls;
            }
        }
        Spent { total: self.start.elapsed().as_secs_f64(), stages, ..self.spent.clone() }
    }

    /// The `seconds` of a JSON object.
    pub(crate) fn seconds(&self, cpu: &Cpu) -> Object {
        self.spent(cpu).seconds()
    }
}

/// Seconds of one image or pair: in all, reading, computing, writing, and of the stages inside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent {
    total: f64,
    read: f64,
    pub(crate) compute: f64,
    write: f64,
    pub(crate) stages: Vec<StageTime>,
}

impl Spent {
    /// Adds more of the same image.
    pub(crate) fn add(&mut self, more: &Self) {
        for stage in &more.stages {
            match self.stages.iter_mut().find(|s| s.name == stage.name) {
                Some(own) => own.seconds += stage.seconds,
                None => self.stages.push(*stage),
            }
        }
        self.total += more.total;
        self.read += more.read;
        self.compute += more.compute;
        self.write += more.write;
    }

    /// Of one of several images that were worked on together.
    pub(crate) fn share(mut self, images: usize) -> Self {
        let share = 1.0 / images.max(1) as f64;
        self.stages.iter_mut().for_each(|s| s.seconds *= share);
        let [total, read, compute, write] =
            [self.total, self.read, self.compute, self.write].map(|v| v * share);
        Self { total, read, compute, write, ..self }
    }

    /// The `seconds` of a JSON object.
    pub(crate) fn seconds(&self) -> Object {
        let own =
            [("total", self.total), ("read", self.read), ("compute", self.compute), ("write", self.write)];
        let object = own.iter().fold(Object::new(), |o, (k, v)| o.number(k, *v));
        let stages = self.stages.iter().filter(|s| own.iter().all(|(k, _)| *k != s.name));
        stages.fold(object, |o, s| o.number(s.name, s.seconds))
    }
}

/// The table that `--profile` prints.
pub(crate) fn profile_table(cpu: &Cpu) -> String {
    let stages = cpu.profile().map(Profile::stages).unwrap_or_default();
    let width = stages.iter().map(|s| s.name.len()).max().unwrap_or(0).max(5);
    let sum: f64 = stages.iter().map(|s| s.seconds).sum();
    let mut out = format!("{:width$}  {:>10}  {:>6}  {:>7}\n", "stage", "ms", "share", "calls");
    for s in &stages {
        let share = 100.0 * s.seconds / sum.max(1e-12);
        let _ =
            writeln!(out, "{:width$}  {:>10.2}  {:>5.1}%  {:>7}", s.name, s.seconds * 1e3, share, s.calls);
    }
    out
}

/// Says what is under way and how far it has got, on a terminal only; the line is wiped when this goes.
#[derive(Debug)]
pub(crate) struct Progress(Option<Arc<Mutex<Line>>>);

/// The line on the terminal.
#[derive(Debug)]
struct Line {
    message: String,
    drawn: Instant,
}

/// Time between two pictures of the line; work that is over sooner is not worth a number.
const PAUSE: Duration = Duration::from_millis(100);

/// Columns of the line: a longer one would not be wiped whole on the narrowest of the usual terminals.
const COLUMNS: usize = 79;

impl Line {
    fn draw(&mut self, text: &str) {
        let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        self.drawn = Instant::now();
    }
}

/// The message cut to its columns, after the share of the work that is done.
fn text(message: &str, share: Option<f64>) -> String {
    // Rounded down: 100 % would be over.
    let share = share.map(|s| format!("{:2.0} %  ", (s * 100.0).floor())).unwrap_or_default();
    share.chars().chain(message.chars()).take(COLUMNS).collect()
}

impl Progress {
    pub(crate) fn new(wanted: bool) -> Self {
        let line = || Arc::new(Mutex::new(Line { message: String::new(), drawn: Instant::now() }));
        Self((wanted && std::io::stderr().is_terminal()).then(line))
    }

    /// What is under way from now on.
    pub(crate) fn say(&self, message: &str) {
        self.with(|line| {
            message.clone_into(&mut line.message);
            line.draw(&text(message, None));
        });
    }

    /// Makes room for another line; what is under way goes on.
    pub(crate) fn wipe(&self) {
        self.with(|line| line.draw(""));
    }

    /// The device, whose work moves the line if there is one.
    pub(crate) fn watch(&self, cpu: Cpu) -> Cpu {
        let Some(line) = self.0.clone() else { return cpu };
        cpu.observed(move |work| {
            let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
            let ends = work.done == work.total;
            if ends || line.drawn.elapsed() >= PAUSE {
                let share = (!ends).then(|| work.share());
                let text = text(&line.message, share);
                line.draw(&text);
            }
        })
    }

    fn with(&self, change: impl FnOnce(&mut Line)) {
        if let Some(line) = &self.0 {
            change(&mut line.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.wipe();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_fits_a_line() {
        assert_eq!(text("1/2 a.png", None), "1/2 a.png");
        assert_eq!(text("1/2 a.png", Some(0.0)), " 0 %  1/2 a.png");
        assert_eq!(text("1/2 a.png", Some(0.999)), "99 %  1/2 a.png");
        assert_eq!(text(&"é".repeat(200), Some(0.5)).chars().count(), COLUMNS);
    }

    #[test]
    fn json_is_json() {
        let inner = Object::new().number("a", 0.5).number("b", f64::INFINITY);
        let object = Object::new()
            .text("image", "a \"b\"\\\n.png")
            .count("n", 3)
            .numbers("m", &[1.0, -2.5e-7])
            .object("seconds", &inner);
        let expected = concat!(
            r#"{"image":"a \"b\"\\\u000a.png","n":3,"m":[1,-0.00000025],"#,
            r#""seconds":{"a":0.5,"b":null}}"#
        );
        assert_eq!(object.to_string(), expected, "keys in order, text escaped, no infinity");
    }
}
