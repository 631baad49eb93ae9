//! Launches whose arguments are given by position.

use crate::arguments::Block;
use crate::commands::Argument;
use crate::{Buffer, Commands, DeviceId, Element, Error, Kernel, Result};

/// Stands for the arguments of a kernel that are given by position.
#[derive(Clone, Copy, Debug)]
pub struct Untyped;

/// An argument by position.
#[derive(Clone, Debug)]
pub struct Positional {
    argument: Argument,
    device: Option<DeviceId>,
}

impl<T: Element> From<&Buffer<T>> for Positional {
    fn from(buffer: &Buffer<T>) -> Self {
        let device = Some(buffer.gpu().id().clone());
        Self { argument: Argument::Buffer(buffer.memory.clone()), device }
    }
}

macro_rules! positional {
    ($($t:ty),*) => { $(impl From<$t> for Positional {
        fn from(value: $t) -> Self {
            Self { argument: Argument::Values(Block::of(&value)), device: None }
        }
    })* };
}

positional!(i32, u32, f32, i64, u64, f64);

/// Arguments by position: `arguments![&buffer, width, 0.5_f32]`.
#[macro_export]
macro_rules! arguments {
    ($($value:expr),* $(,)?) => { vec![$($crate::Positional::from($value)),*] };
}

impl Commands {
    /// As [`launch`](Self::launch), with arguments by position.
    ///
    /// # Errors
    /// [`Error::Usage`] when the number of arguments is not the kernel's, or as [`launch`](Self::launch).
    pub fn launch_untyped(
        &mut self,
        kernel: &Kernel,
        groups: [usize; 3],
        arguments: Vec<Positional>,
    ) -> Result<()> {
        let (expected, found) = (kernel.parameters, arguments.len());
        if expected != found {
            let name = kernel.name();
            return Err(Error::Usage(format!(
                "kernel {name} takes {expected} arguments and was given {found}"
            )));
        }
        for device in arguments.iter().filter_map(|a| a.device.as_ref()) {
            self.belongs(device)?;
        }
        self.push_launch(kernel, groups, arguments.into_iter().map(|a| a.argument).collect())
    }
}

/// How many parameters the kernel of this name declares, each written out: CUDA does not tell, except by a call that
/// fails.
pub(crate) fn parameters(source: &str, name: &str) -> Option<usize> {
    let mut rest = source;
    loop {
        let (_, after) = rest.split_once("KERNEL")?;
        rest = after;
        let Some(after) = ["_RESIDENT(", "_OF("].iter().find_map(|head| after.strip_prefix(head)) else {
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
