//! Kernels from source: constants and tables from Rust, compiled once, kept on disk.

use crate::driver::{DriverKernel, DriverProgram};
use crate::{Error, Gpu, Result, cache, dialect};
use std::fmt::{Display, Write};
use std::sync::Arc;

/// The source of a program: constants and tables from Rust, then files of the [`dialect`].
#[derive(Clone, Debug)]
pub struct Source {
    name: &'static str,
    text: String,
}

impl Source {
    /// An empty source; the name stands in errors.
    pub fn new(name: &'static str) -> Self {
        Self { name, text: String::new() }
    }

    /// `#define NAME value`, an integer or a word.
    #[must_use]
    pub fn define(mut self, name: &str, value: impl Display) -> Self {
        let _ = writeln!(self.text, "#define {name} {value}");
        self
    }

    /// `#define NAME value`, the same f32 to the bit.
    #[must_use]
    pub fn define_f32(mut self, name: &str, value: f32) -> Self {
        let _ = writeln!(self.text, "#define {name} ({})", literal(value));
        self
    }

    /// `CONSTANT f32 NAME[]`, the same numbers to the bit.
    #[must_use]
    pub fn table_f32(self, name: &str, values: &[f32]) -> Self {
        self.table("f32", name, values.iter().map(|&v| literal(v)))
    }

    /// `CONSTANT i32 NAME[]`.
    #[must_use]
    pub fn table_i32(self, name: &str, values: &[i32]) -> Self {
        self.table("i32", name, values.iter())
    }

    fn table(mut self, kind: &str, name: &str, values: impl ExactSizeIterator<Item: Display>) -> Self {
        let _ = write!(self.text, "CONSTANT {kind} {name}[{}] = {{", values.len().max(1));
        for value in values {
            let _ = write!(self.text, "{value},");
        }
        self.text.push_str("};\n");
        self
    }

    /// A piece of the dialect, as `include_str!` brings it.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self.text.push('\n');
        self
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The whole source, as a driver's compiler gets it.
    pub(crate) fn for_api(&self, api: crate::Api) -> String {
        let dialect = match api {
            crate::Api::Cuda => dialect::CUDA,
            crate::Api::OpenCl => dialect::OPENCL,
        };
        format!("{dialect}\n{}", self.text)
    }
}

/// An f32 as C reads it back: Rust prints as many digits as identify it.
fn literal(value: f32) -> String {
    match value {
        v if v.is_nan() => "FLOAT_OF(0x7fc00000u)".into(),
        v if v.is_infinite() => format!("FLOAT_OF(0x{:08x}u)", v.to_bits()),
        v => format!("{v:e}f"),
    }
}

/// A program that the device can run.
#[derive(Clone, Debug)]
pub struct Program {
    program: Arc<dyn DriverProgram>,
    source: Arc<str>,
}

impl Program {
    pub(crate) fn new(gpu: &Gpu, source: &Source) -> Result<Self> {
        let driver = gpu.driver();
        let text = source.for_api(gpu.info().api);
        let key = format!("{}\n{text}", driver.binary_key());
        if let Some(binary) = cache::load(&key) {
            // A file that the driver refuses (another version's, a broken one) is made anew.
            if let Ok(program) = driver.load(source.name(), &binary) {
                return Ok(Self { program, source: text.into() });
            }
        }
        let binary = driver.compile(source.name(), &text)?;
        let program = driver.load(source.name(), &binary)?;
        cache::store(&key, &binary);
        Ok(Self { program, source: text.into() })
    }

    /// The kernel of this name, declared as `KERNEL(group[0], group[1])`.
    ///
    /// # Errors
    /// [`crate::Error::Driver`] when there is none, or the device does not take groups of this size.
    pub fn kernel(&self, name: &'static str, group: [u32; 2]) -> Result<Kernel> {
        let parameters = parameters(&self.source, name).ok_or_else(|| {
            Error::Usage(format!(
                "the source has no kernel {name}, declared as KERNEL(width, height) {name}(...)"
            ))
        })?;
        Ok(Kernel { kernel: self.program.kernel(name, group)?, name, group, parameters })
    }
}

/// How many parameters the kernel of this name declares, each written out: CUDA does not tell, except by a call that
/// fails.
fn parameters(source: &str, name: &str) -> Option<usize> {
    let mut rest = source;
    loop {
        let (_, after) = rest.split_once("KERNEL")?;
        rest = after;
        let Some(after) = after.strip_prefix("_RESIDENT").unwrap_or(after).strip_prefix('(') else {
            continue;
        };
        let (_, declared) = after.split_once(')')?;
        rest = declared;
        let Some(list) = declared.trim_start().strip_prefix(name) else { continue };
        let Some(list) = list.trim_start().strip_prefix('(') else { continue };
        let (list, _) = list.split_once(')')?;
        return Some(if list.trim().is_empty() { 0 } else { list.split(',').count() });
    }
}

/// A kernel, and the size of its work groups.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) kernel: Arc<dyn DriverKernel>,
    name: &'static str,
    group: [u32; 2],
    pub(crate) parameters: usize,
}

impl Kernel {
    /// Its name in the source.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Lanes of a work group, in x and y.
    pub fn group(&self) -> [u32; 2] {
        self.group
    }

    /// The work groups that cover an image, one lane a pixel.
    pub fn covering(&self, width: usize, height: usize) -> [usize; 3] {
        [width.div_ceil(self.group[0] as usize), height.div_ceil(self.group[1] as usize), 1]
    }
}

#[cfg(test)]
mod tests {
    use super::{literal, parameters};

    #[test]
    fn parameters_are_counted() {
        let source = "KERNEL(1, 1) none() {}\nKERNEL(N, 1)\n  none_too(GLOBAL f32 *a, i32 b) { f(a, b, 1); }";
        assert_eq!(parameters(source, "none"), Some(0), "no parameter");
        assert_eq!(parameters(source, "none_too"), Some(2), "two");
        assert_eq!(parameters(source, "f"), None, "no kernel");
        let resident = "KERNEL_RESIDENT(N, 1, 4) three(u32 a, u32 b, u32 c) {}";
        assert_eq!(parameters(resident, "three"), Some(3), "declared with its residents");
    }

    #[test]
    fn literals_are_floats() {
        for (value, text) in [(1.0, "1e0f"), (-0.25, "-2.5e-1f"), (0.0, "0e0f"), (3e-40, "3e-40f")] {
            assert_eq!(literal(value), text, "{value}");
        }
        assert_eq!(literal(f32::INFINITY), "FLOAT_OF(0x7f800000u)", "no literal exists");
    }
}
