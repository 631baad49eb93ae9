//! GPUs, as stages use them: re-exports of [`tiepoint_gpu`] and the conversion of its errors.
//!
//! A stage with a GPU form is a folder, with the launches in `gpu.rs` and the kernels in a `.cl` file of the stage's
//! name, in the dialect of [`tiepoint_gpu::dialect`]. Its results are the CPU's, bit for bit, unless its contract says
//! otherwise.

use crate::error::Shortage;
use tiepoint_gpu::KernelSource;
pub(crate) use tiepoint_gpu::lower_priority;
pub use tiepoint_gpu::{
    Api, Buffer, Commands, Devices, Element, ForeignStream, Gpu, Graph, Info, Pinned, devices,
    finish_background, has_driver, pause_opening, resume_opening, stop_background,
};

impl From<tiepoint_gpu::Error> for crate::Error {
    fn from(error: tiepoint_gpu::Error) -> Self {
        use tiepoint_gpu::Error as Gpu;
        let failed = |device: String, reason: String| Self::Device { device, reason };
        match error {
            Gpu::Memory { device, asked, free } => {
                let shortage = Shortage::Device { name: device, free };
                Self::Memory { what: "a buffer for the GPU", needed: asked, shortage }
            }
            Gpu::Unsupported { device, feature } => Self::Unsupported { device, feature: feature.into() },
            Gpu::Absent { api, reason } | Gpu::Driver { api, reason } => failed(api.to_string(), reason),
            Gpu::Index { api, index, found } => {
                failed(format!("{api}:{index}"), format!("it is not there: {found}"))
            }
            Gpu::Compile { program, device, log } => {
                failed(device, format!("{program} does not compile:\n{log}"))
            }
            Gpu::NotReady { device } => Self::NotReady { device },
            Gpu::Cancelled => Self::Cancelled,
            Gpu::Usage(reason) => Self::Mismatch(reason),
            other => failed("gpu".into(), other.to_string()),
        }
    }
}

/// Compiles programs in parallel on the CPU's threads, so that the first call on a machine waits for the slowest alone.
/// Known programs cost nothing. A GPU that is [handing over](Gpu::handing_over) compiles them beside the work:
/// [`Error::NotReady`](crate::Error::NotReady) until the last is there.
pub(crate) fn compile(gpu: &Gpu, cpu: &super::Cpu, sources: Vec<KernelSource>) -> crate::Result<()> {
    let unknown = gpu.unknown(sources);
    if unknown.is_empty() {
        return Ok(());
    }
    let asked = cpu.try_map_task("compile kernels", unknown.len(), |i| {
        match gpu.program(&unknown[i]).map_err(crate::Error::from) {
            // Every program is requested, so that the compilation of all of them starts.
            Err(not_ready @ crate::Error::NotReady { .. }) => Ok(Err(not_ready)),
            program => program.map(|_| Ok(())),
        }
    });
    asked?.into_iter().collect()
}

#[cfg(test)]
#[path = "../../../tiepoint-gpu/tests/listed/mod.rs"]
mod listed;

/// The devices of this machine, for tests that run one body on each; see [`listed::require`].
#[cfg(test)]
pub(crate) fn all() -> &'static [Gpu] {
    const APIS: [Api; 2] = [Api::Cuda, Api::OpenCl];
    static ALL: std::sync::OnceLock<Vec<Gpu>> = std::sync::OnceLock::new();
    let found = ALL.get_or_init(|| listed::found(&APIS));
    listed::require(found, &APIS);
    found
}
