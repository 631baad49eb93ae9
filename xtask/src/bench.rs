//! `cargo xtask bench`: the library's times beside OpenCV's, row by row in one run, as a Markdown table.
//!
//! OpenCV's wheel is put into `.venv` in the workspace when it is missing. Both sides work on the same images
//! with the same number of threads and write to outputs that are used again; of many runs the shortest counts.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};
use tiepoint::{
    device::Cpu,
    filter::{
        gauss::{GaussOptions, gauss_into},
        sobel::{self, SobelOptions},
    },
    image::{Image, Size},
};

type Result<T> = std::result::Result<T, String>;

/// The wheel measured against.
const OPENCV: &str = "opencv-contrib-python-headless==5.0.0.93";

/// One run of something.
type Run<'a> = dyn FnMut(&Cpu) -> tiepoint::Result<()> + 'a;

/// One line of the table.
struct Row<'a> {
    name: String,
    /// One run on our side.
    ours: Box<Run<'a>>,
    /// The command for the other side.
    opencv: String,
}

/// Prints the table of all rows whose name contains the first argument.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if cfg!(debug_assertions) {
        return in_release(arguments);
    }
    let filter = arguments.first().map_or("", String::as_str);
    let mut opencv = OpenCv::start()?;
    let scene = Scene::new();
    opencv.load("u8", &scene.bytes)?;
    opencv.load("f32", &scene.floats)?;
    for threads in [1, 2] {
        let cpu = Cpu::with_threads(threads).map_err(|e| e.to_string())?;
        let version = opencv.ask(&format!("threads {threads}"))?;
        println!(
            "\n{threads} thread{}, {}, OpenCV {version}\n",
            if threads == 1 { "" } else { "s" },
            cpu.level_name()
        );
        println!("| | tiepoint ms | OpenCV ms | ratio |\n|---|---:|---:|---:|");
        for mut row in scene.rows().into_iter().filter(|r| r.name.contains(filter)) {
            let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
            // Two rounds, so that a neighbour's load hits both sides.
            for _ in 0..2 {
                ours = ours.min(best(&mut || (row.ours)(&cpu)).map_err(|e| e.to_string())?);
                theirs = theirs.min(opencv.time(&row.opencv)?);
            }
            println!("| {} | {ours:.2} | {theirs:.2} | {:.2} |", row.name, ours / theirs);
        }
    }
    Ok(())
}

/// Timings of a debug build mean nothing: the same command again, optimised.
fn in_release(arguments: &[String]) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--release", "--package", "xtask", "--", "bench"]).args(arguments);
    let status = command.current_dir(workspace()).status().map_err(|e| format!("cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err("the release build or its run failed".into()) }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The shortest of at least five runs and about 0.4 s in all, in milliseconds.
fn best(run: &mut dyn FnMut() -> tiepoint::Result<()>) -> tiepoint::Result<f64> {
    run()?;
    let begin = Instant::now();
    let (mut shortest, mut runs) = (Duration::MAX, 0);
    while runs < 5 || begin.elapsed() < Duration::from_millis(400) {
        let start = Instant::now();
        run()?;
        shortest = shortest.min(start.elapsed());
        runs += 1;
    }
    Ok(shortest.as_secs_f64() * 1e3)
}

/// The images that the filters work on: 3840×2160, smooth noise.
struct Scene {
    bytes: Image<u8>,
    floats: Image<f32>,
}

impl Scene {
    fn new() -> Self {
        let mut state = 1_u32;
        let mut level = 128_i32;
        let bytes = Image::from_fn(Size::new(3840, 2160), |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            level = (level + (state >> 27) as i32 - 15).clamp(0, 255);
            level as u8
        });
        let floats = bytes.data().iter().map(|&v| f32::from(v) / 255.0).collect();
        let floats = Image::from_vec(floats, bytes.size(), 1).unwrap_or_default();
        Self { bytes, floats }
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let sizes = [3, 5, 9, 15].map(|n| (format!("{n}"), GaussOptions::size(n), format!("{n} 0")));
        let mut rows = Vec::new();
        for (name, options, theirs) in
            sizes.into_iter().chain([("σ 1.6".into(), GaussOptions::sigma(1.6), "0 1.6".into())])
        {
            rows.push(self.gauss_u8(&name, options, &theirs));
            rows.push(self.gauss_f32(&name, options, &theirs));
        }
        rows.extend(self.sobel());
        rows
    }

    fn sobel(&self) -> [Row<'_>; 4] {
        let options = SobelOptions::default();
        let (mut a, mut b) = (Image::default(), Image::default());
        let (mut c, mut d) = (Image::default(), Image::default());
        [
            Row {
                name: "sobel x, 8-bit to 16".into(),
                ours: Box::new(move |cpu| sobel::x_into(self.bytes.view(), &options, cpu, &mut a)),
                opencv: "sobel u8 1 0".into(),
            },
            Row {
                name: "sobel y, 8-bit to 16".into(),
                ours: Box::new(move |cpu| sobel::y_into(self.bytes.view(), &options, cpu, &mut b)),
                opencv: "sobel u8 0 1".into(),
            },
            Row {
                name: "sobel x, f32".into(),
                ours: Box::new(move |cpu| sobel::x_into(self.floats.view(), &options, cpu, &mut c)),
                opencv: "sobel f32 1 0".into(),
            },
            Row {
                name: "sobel y, f32".into(),
                ours: Box::new(move |cpu| sobel::y_into(self.floats.view(), &options, cpu, &mut d)),
                opencv: "sobel f32 0 1".into(),
            },
        ]
    }

    fn gauss_u8(&self, name: &str, options: GaussOptions, theirs: &str) -> Row<'_> {
        let mut out = Image::default();
        Row {
            name: format!("gauss {name}, 8-bit"),
            ours: Box::new(move |cpu| gauss_into(self.bytes.view(), &options, cpu, &mut out)),
            opencv: format!("gauss u8 {theirs}"),
        }
    }

    fn gauss_f32(&self, name: &str, options: GaussOptions, theirs: &str) -> Row<'_> {
        let mut out = Image::default();
        Row {
            name: format!("gauss {name}, f32"),
            ours: Box::new(move |cpu| gauss_into(self.floats.view(), &options, cpu, &mut out)),
            opencv: format!("gauss f32 {theirs}"),
        }
    }
}

/// A value as the bytes that NumPy reads.
trait Raw: tiepoint::image::Pixel {
    const NUMPY: &'static str;
    fn bytes(self) -> impl Iterator<Item = u8>;
}

impl Raw for u8 {
    const NUMPY: &'static str = "u1";
    fn bytes(self) -> impl Iterator<Item = u8> {
        std::iter::once(self)
    }
}

impl Raw for f32 {
    const NUMPY: &'static str = "<f4";
    fn bytes(self) -> impl Iterator<Item = u8> {
        self.to_le_bytes().into_iter()
    }
}

/// OpenCV in a process of its own that answers one line a command.
struct OpenCv {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl OpenCv {
    fn start() -> Result<Self> {
        let mut child = Command::new(python()?)
            .args(["-u", "-c", include_str!("bench_opencv.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("cannot start Python: {e}"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (commands, answers) = pipes.ok_or("no pipes to Python")?;
        Ok(Self { child, commands, answers: BufReader::new(answers) })
    }

    fn ask(&mut self, command: &str) -> Result<String> {
        let mut answer = String::new();
        let asked = writeln!(self.commands, "{command}").and_then(|()| self.answers.read_line(&mut answer));
        match asked {
            Ok(n) if n > 0 => Ok(answer.trim().into()),
            Ok(_) => Err(format!("OpenCV ended at `{command}`")),
            Err(e) => Err(format!("OpenCV at `{command}`: {e}")),
        }
    }

    fn time(&mut self, command: &str) -> Result<f64> {
        let answer = self.ask(command)?;
        let first = answer.split(' ').next().unwrap_or_default();
        first.parse().map_err(|_| format!("OpenCV answered `{answer}` to `{command}`"))
    }

    fn load<T: Raw>(&mut self, name: &str, image: &Image<T>) -> Result<()> {
        let file = std::env::temp_dir().join(format!("tiepoint-bench-{}-{name}.raw", std::process::id()));
        let bytes: Vec<u8> = image.data().iter().flat_map(|v| v.bytes()).collect();
        std::fs::write(&file, bytes).map_err(|e| format!("{}: {e}", file.display()))?;
        let Size { width, height } = image.size();
        let loaded = self.ask(&format!("image {name} {} {} {width} {height}", file.display(), T::NUMPY));
        std::fs::remove_file(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        loaded.map(drop)
    }
}

impl Drop for OpenCv {
    fn drop(&mut self) {
        // It may have ended already; there is nothing more to do then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Python that has OpenCV: the one named by `TIEPOINT_PYTHON`, or `.venv` in the workspace, made if missing.
fn python() -> Result<PathBuf> {
    if let Some(python) = std::env::var_os("TIEPOINT_PYTHON") {
        return Ok(python.into());
    }
    let venv = workspace().join(".venv");
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let has_opencv = |python: &Path| {
        let check = Command::new(python).args(["-c", "import cv2, numpy"]).stderr(Stdio::null()).status();
        check.is_ok_and(|s| s.success())
    };
    if has_opencv(&python) {
        return Ok(python);
    }
    eprintln!("installing {OPENCV} into {} …", venv.display());
    let wanted = format!(
        "a Python with OpenCV is needed: install python3 with venv and pip, or set TIEPOINT_PYTHON to one that has {OPENCV} and numpy"
    );
    step(Command::new("python3").args(["-m", "venv"]).arg(&venv), &wanted)?;
    step(Command::new(&python).args(["-m", "pip", "install", "--quiet", OPENCV, "numpy"]), &wanted)?;
    if has_opencv(&python) { Ok(python) } else { Err(wanted) }
}

fn step(command: &mut Command, wanted: &str) -> Result<()> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}; {wanted}")),
        Err(e) => Err(format!("{command:?}: {e}; {wanted}")),
    }
}
