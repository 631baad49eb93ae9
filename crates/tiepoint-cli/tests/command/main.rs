//! The built command, as a user runs it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "a test that was skipped says so; counts are the record of others")]
#![allow(clippy::disallowed_methods, reason = "tests compare with the C library's functions")]

mod changes;
mod collect;
mod detect;
#[cfg(target_os = "linux")]
mod drivers;
#[cfg(target_os = "linux")]
mod flags;
mod inputs;
#[cfg(unix)]
mod interrupts;
mod manual;
mod pairs;
mod places;
#[cfg(target_os = "linux")]
mod platform;
#[cfg(target_os = "linux")]
mod power_cut;
mod ranges;
mod rectify;
mod report;
mod stereo;
mod usage;

use std::path::{Path, PathBuf};
use std::process::Command;
use tiepoint::device::Cpu;
use tiepoint::evaluate::corner_error;
use tiepoint::geometry::Homography;
use tiepoint::image::{self, AnyImage, Image, ReadOptions, Size};
use tiepoint::synth::{Scene, SceneOptions, Texture, viewpoint};

const SIZE: Size = Size::new(320, 240);

/// The working directory of the command in one test, to which names of files are relative; removed if the test passes.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tiepoint-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A folder that `fill` has filled.
    fn with<T>(test: &str, fill: impl FnOnce(&Self) -> T) -> Self {
        let folder = Self::new(test);
        fill(&folder);
        folder
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn make(&self, folder: &str) {
        std::fs::create_dir_all(self.at(folder)).unwrap();
    }

    /// Removes what is in a folder.
    fn empty(&self, folder: &str) {
        std::fs::remove_dir_all(self.at(folder)).unwrap();
        self.make(folder);
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.at(name), content).unwrap();
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.at(name)).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.at(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    fn image(&self, name: &str) -> AnyImage {
        image::read(self.at(name), &ReadOptions::default()).unwrap()
    }

    fn floats(&self, name: &str) -> Image<f32> {
        match self.image(name) {
            AnyImage::F32(image) => image,
            _ => panic!("{name} holds no floats"),
        }
    }

    fn bytes(&self, name: &str) -> Image<u8> {
        match self.image(name) {
            AnyImage::U8(image) => image,
            _ => panic!("{name} is not of 8 bits"),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.at(name).exists()
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn write(&self, name: &str, image: impl Into<AnyImage>) {
        image::write(self.at(name), &image.into()).unwrap();
    }

    /// Gives a JPEG this EXIF orientation.
    fn orient(&self, name: &str, orientation: u8) {
        // An APP1 segment with the orientation alone, after the start of the image.
        let mut exif =
            b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x00\0\0\0\0\0\0\0"
                .to_vec();
        exif[28] = orientation;
        let mut bytes = self.read(name);
        bytes.splice(2..2, exif);
        self.put(name, bytes);
    }

    fn texture(&self, name: &str, size: Size, seed: u64) {
        let image: Image<u8> = Texture::new(seed).image(size, &Cpu::sequential());
        self.write(name, image);
    }

    /// Writes two views of a plane, `a.png` and `b.png`, and returns the true homography from the first to the second.
    fn scene(&self) -> Homography {
        let b_from_a = viewpoint(SIZE, 0.2, 1.1, [0.08, 0.0], [6.0, -4.0]).unwrap();
        let options = SceneOptions::default().with_size(SIZE).with_moving_from_reference(b_from_a);
        let options = options.with_seed(3).with_noise(0.01);
        let scene = Scene::<u8>::render(&options, &Cpu::sequential()).unwrap();
        self.write("a.png", scene.reference);
        self.write("b.png", scene.moving);
        b_from_a
    }

    /// Images of unusual size or content; the last is of [`SIZE`] and has holes.
    fn odd_images(&self) -> Vec<&'static str> {
        self.write("one.png", Image::<u8>::new(Size::new(1, 1)));
        self.write("row.png", Image::<u8>::new(Size::new(500, 1)));
        self.write("column.png", Image::<u8>::new(Size::new(1, 500)));
        self.write("black.png", Image::<u8>::new(SIZE));
        self.write("white.png", Image::filled(SIZE, 1, u16::MAX));
        let mut holes = Image::filled(SIZE, 1, f32::NAN);
        holes.row_mut(3)[5] = f32::INFINITY;
        self.write("holes.tif", holes);
        vec!["one.png", "row.png", "column.png", "black.png", "white.png", "holes.tif"]
    }

    /// The command with these arguments, separated by spaces.
    fn tiepoint(&self, line: impl AsRef<str>) -> Command {
        let mut command = tiepoint(line);
        command.current_dir(&self.0);
        command
    }

    /// Runs the command, which must succeed, and returns its stdout.
    fn works(&self, line: impl AsRef<str>) -> String {
        succeeds(&mut self.tiepoint(line))[0].clone()
    }

    /// Runs the command, which must succeed, and returns its stderr.
    fn notes(&self, line: impl AsRef<str>) -> String {
        succeeds(&mut self.tiepoint(line))[1].clone()
    }

    /// Runs the command, which must fail with this code and a message.
    fn fails(&self, line: impl AsRef<str>, code: i32) -> String {
        refused(&mut self.tiepoint(line), code)
    }

    /// As [`fails`](Self::fails); the message must contain every one of these words.
    fn refuses(&self, line: impl AsRef<str>, code: i32, words: &[&str]) {
        all_in(&self.fails(line.as_ref(), code), line.as_ref(), words);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A view of the texture with this seed from the place that [`viewpoint`] gives.
fn view(size: Size, seed: u64, angle: f64, scale: f64, tilt: [f64; 2], shift: [f64; 2]) -> Image<u8> {
    let moving = viewpoint(size, angle, scale, tilt, shift).unwrap();
    let options = SceneOptions::default().with_size(size).with_moving_from_reference(moving).with_seed(seed);
    Scene::<u8>::render(&options, &Cpu::sequential()).unwrap().moving
}

fn tiepoint(line: impl AsRef<str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiepoint"));
    command.args(line.as_ref().split_whitespace());
    command
}

fn works(line: &str) -> String {
    succeeds(&mut tiepoint(line))[0].clone()
}

/// The exit code of a command, if no signal ended it, and what it prints on stdout and on stderr.
fn ran(command: &mut Command) -> (Option<i32>, [String; 2]) {
    let output = command.output().unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), printed)
}

/// What a command that must succeed prints on stdout and on stderr.
fn succeeds(command: &mut Command) -> [String; 2] {
    let (code, printed) = ran(command);
    assert_eq!(code, Some(0), "{command:?}: {}", printed[1]);
    printed
}

/// The message of a command that must fail with this code.
fn refused(command: &mut Command, code: i32) -> String {
    let (found, [_, stderr]) = ran(command);
    assert_eq!(found, Some(code), "{command:?}: {stderr}");
    assert!(stderr.starts_with("tiepoint: ") && !stderr.contains("panicked"), "{command:?}: {stderr}");
    stderr
}

/// Fails unless the text, which `line` printed, contains every one of these words.
fn all_in(text: &str, line: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{line}: no {word:?} in {text}");
    }
}

/// The number of random trials that an environment variable asks for.
fn asked_for(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |n| n.parse().unwrap())
}

/// The seed of random tests; `cargo xtask torture` gives each round another.
fn seed() -> u64 {
    asked_for("TIEPOINT_SEED", 0)
}

/// The devices to test on: the CPU, and those of `drivers` of which there is a device. PoCL provides an OpenCL device
/// on any machine: without one, a test fails under CI (the variable `CI`) and where `TIEPOINT_REQUIRE_GPU` is set.
/// Elsewhere, and where that is 0, the test says that it was skipped in part.
fn cpu_and(drivers: &[&'static str]) -> Vec<&'static str> {
    let listed = works("devices");
    let found = drivers.iter().copied().filter(|driver| listed.contains(&format!("{driver}:0 ")));
    let devices: Vec<_> = std::iter::once("cpu").chain(found).collect();
    if devices.len() == 1 {
        let required = std::env::var("TIEPOINT_REQUIRE_GPU").or_else(|_| std::env::var("CI"));
        assert!(
            required.map_or(true, |required| required == "0"),
            "there is no device of {drivers:?}, and one is required: {listed}"
        );
        println!("SKIPPED in part: no device of {drivers:?} (for OpenCL PoCL would do: pocl-opencl-icd)");
    }
    devices
}

/// The value of a key in a JSON object, as text.
fn value<'a>(json: &'a str, key: &str) -> &'a str {
    let found = json.split_once(&format!("\"{key}\":"));
    let rest = found.unwrap_or_else(|| panic!("no {key} in {json}")).1;
    match rest.as_bytes()[0] {
        b'[' => &rest[..=rest.find(']').unwrap()],
        b'{' => &rest[..=rest.find('}').unwrap()],
        _ => &rest[..rest.find([',', '}']).unwrap()],
    }
}

fn number(json: &str, key: &str) -> f64 {
    value(json, key).parse().unwrap_or_else(|_| panic!("{key} is no number in {json}"))
}

fn numbers(json: &str, key: &str) -> Vec<f64> {
    value(json, key).trim_matches(['[', ']']).split(',').map(|v| v.parse().unwrap()).collect()
}

fn matrix(json: &str) -> Homography {
    let m = numbers(json, "matrix");
    assert_eq!(m.len(), 9, "{json}");
    Homography::new(std::array::from_fn(|i| [m[3 * i], m[3 * i + 1], m[3 * i + 2]])).unwrap()
}
