//! OpenCV in a separate process, which answers each command with one line.

use crate::{Result, opencv_python::python};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tiepoint::image::AnyView;

pub(super) struct OpenCv {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl OpenCv {
    pub(super) fn start() -> Result<Self> {
        let mut child = Command::new(python()?)
            .args(["-u", "-c", include_str!("opencv.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start Python: {e}"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (commands, answers) = pipes.ok_or("no pipes to Python")?;
        Ok(Self { child, commands, answers: BufReader::new(answers) })
    }

    pub(super) fn ask(&mut self, command: &str) -> Result<String> {
        let mut answer = String::new();
        let asked = writeln!(self.commands, "{command}").and_then(|()| self.answers.read_line(&mut answer));
        match asked {
            Ok(n) if n > 0 => Ok(answer.trim().into()),
            Ok(_) => Err(format!("OpenCV ended at `{command}`")),
            Err(e) => Err(format!("OpenCV at `{command}`: {e}")),
        }
    }

    /// Milliseconds, and how many features were found where the command looks for some.
    pub(super) fn time(&mut self, command: &str) -> Result<(f64, Option<usize>)> {
        let answer = self.ask(command)?;
        let mut words = answer.split(' ');
        let ms = words.next().and_then(|w| w.parse().ok());
        let ms = ms.ok_or_else(|| format!("OpenCV answered `{answer}` to `{command}`"))?;
        let count = words.next().map(str::parse).transpose();
        let count = count.map_err(|_| format!("OpenCV counted `{answer}` for `{command}`"))?;
        Ok((ms, count))
    }

    /// An image, or a table of values, under a name.
    pub(super) fn load<'a>(&mut self, name: &str, image: impl Into<AnyView<'a>>) -> Result<()> {
        let file = std::env::temp_dir().join(format!("tiepoint-bench-{}-{name}.npy", std::process::id()));
        tiepoint::image::write(&file, image).map_err(|e| e.to_string())?;
        let loaded = self.ask(&format!("image {name} {}", file.display()));
        std::fs::remove_file(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        loaded.map(drop)
    }
}

impl Drop for OpenCv {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
