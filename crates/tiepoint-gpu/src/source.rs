//! The source of a program: constants and tables from Rust, kernels' declarations, then text of the dialect.

use crate::arguments::{Definitions, KernelArguments};
use crate::{Api, dialect};
use std::fmt::{Display, Write};

/// The source of a program: constants and tables from Rust, declarations of kernels, and files of the [`dialect`].
#[derive(Clone, Debug)]
pub struct KernelSource {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    /// C types that the declarations need.
    definitions: Definitions,
    pub(crate) declarations: Vec<Declaration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) name: &'static str,
    pub(crate) parameters: String,
    pub(crate) group: [u32; 2],
}

impl KernelSource {
    /// An empty source; errors mention the name.
    pub fn new(name: &'static str) -> Self {
        Self { name, text: String::new(), definitions: Vec::new(), declarations: Vec::new() }
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

    /// Whether a piece of the dialect is part of this source.
    pub fn contains(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// Declares a kernel and the size of its work groups, for a text that follows and defines it:
    /// `KERNEL(name) { ... }`. The C types that its buffers are read as must be defined in the text before.
    #[must_use]
    pub fn kernel<A: KernelArguments>(self, group: [u32; 2]) -> Self {
        let [width, height] = group;
        self.declare::<A>(group, &format!("KERNEL_OF({width}, {height})"))
    }

    /// As [`kernel`](Self::kernel), for a kernel of which `groups` groups fit onto a CUDA multiprocessor at a time:
    /// this bounds the registers of a lane.
    #[must_use]
    pub fn kernel_resident<A: KernelArguments>(self, group: [u32; 2], groups: u32) -> Self {
        let [width, height] = group;
        self.declare::<A>(group, &format!("KERNEL_RESIDENT({width}, {height}, {groups})"))
    }

    /// The types of a [`kernel_struct!`](crate::kernel_struct), for text that comes before the kernels that get it.
    #[must_use]
    pub fn structure<V: crate::Value>(mut self) -> Self {
        self.with_definitions(V::define);
        self
    }

    /// Appends the C text of what `define` adds to the definitions, and returns its result.
    fn with_definitions<R>(&mut self, define: impl FnOnce(&mut Definitions) -> R) -> R {
        let known = self.definitions.len();
        let result = define(&mut self.definitions);
        for (_, text) in &self.definitions[known..] {
            self.text.push_str(text);
            self.text.push('\n');
        }
        result
    }

    fn declare<A: KernelArguments>(mut self, group: [u32; 2], opening: &str) -> Self {
        let name = A::NAME;
        let parameters = self.with_definitions(A::parameters);
        let _ = writeln!(self.text, "#define KERNEL_{name} {opening} {name}({parameters})");
        self.declarations.push(Declaration { name, parameters, group });
        self
    }

    /// The whole source, as a driver's compiler gets it.
    pub(crate) fn for_api(&self, api: Api) -> String {
        let dialect = match api {
            Api::Cuda => dialect::CUDA,
            Api::OpenCl => dialect::OPENCL,
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

#[cfg(test)]
#[expect(unsafe_code, reason = "declarations of kernels promise")]
mod tests {
    use super::{KernelSource, literal};

    #[test]
    fn literals_are_floats() {
        for (value, text) in [(1.0, "1e0f"), (-0.25, "-2.5e-1f"), (0.0, "0e0f"), (3e-40, "3e-40f")] {
            assert_eq!(literal(value), text, "{value}");
        }
        assert_eq!(literal(f32::INFINITY), "FLOAT_OF(0x7f800000u)", "no literal exists");
    }

    crate::kernel_struct! {
        struct Rows {
            step: u64,
            width: i32,
        }
    }

    crate::kernel! {
        unsafe kernel bare(groups) = Bare {
            write to: f32 [1],
        } {}
    }

    crate::kernel! {
        unsafe kernel all(groups) = All<T: crate::Element> {
            write to: T [rows.step as i128 * groups[2]],
            read from: u32 as Keypoint [1],
            shared words: u64 [n],
        } {
            rows: Rows,
            m: [f32; 9],
            n: i32,
        }
    }

    #[test]
    fn kernels_are_declared_in_c() {
        let source = KernelSource::new("all").structure::<Rows>().kernel::<Bare<'_>>([1, 2]);
        let text = source.kernel_resident::<All<'_, u8>>([64, 1], 3).text;
        let expected = "typedef struct { u64 step; i32 width; u8 padding_12[4]; } Rows;\n\
            #define KERNEL_bare KERNEL_OF(1, 2) bare(GLOBAL f32 *RESTRICT to)\n\
            typedef struct { Rows rows; f32 m[9]; i32 n; } AllValues;\n\
            #define KERNEL_all KERNEL_RESIDENT(64, 1, 3) all(GLOBAL u8 *RESTRICT to, \
            const GLOBAL Keypoint *RESTRICT from, volatile GLOBAL u64 *words, const AllValues args)\n";
        assert_eq!(text, expected);
    }
}
