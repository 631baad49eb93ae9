//! Programs and their kernels: compiled once, kept on disk.

use crate::arguments::KernelArguments;
use crate::driver::{DriverKernel, DriverProgram};
use crate::source::{Declaration, KernelSource};
use crate::{DeviceId, Error, Gpu, Result, cache, lock};
use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

/// The time within which the LLVM in PoCL passes a signal on, even on a busy machine.
const SIGNAL: Duration = Duration::from_millis(200);

/// A program that the device can run.
#[derive(Clone, Debug)]
pub struct Program {
    program: Arc<dyn DriverProgram>,
    device: DeviceId,
    name: &'static str,
    declarations: Arc<[Declaration]>,
    kernels: Arc<Mutex<Vec<Known>>>,
}

/// The arguments of a kernel that was asked for before, its groups, and the driver's kernel.
type Known = (TypeId, [u32; 2], Arc<DriverKernel>);

impl Program {
    /// The packaged program, or else the one in the cache on disk, if there is one.
    pub(crate) fn stored(gpu: &Gpu, source: &KernelSource) -> Option<Self> {
        let driver = gpu.driver();
        // A binary that the driver refuses (of another version, or broken) counts as missing.
        let loaded = |binary: Vec<u8>| driver.load(source.name, &binary).ok();
        let along = driver.packaged(&source.for_api(gpu.info().api)).and_then(loaded);
        let program = along.or_else(|| cache::load(&Self::key(gpu, source)).and_then(loaded))?;
        Some(Self::of(gpu, source, program))
    }

    /// The program, compiled and kept in the cache on disk.
    pub(crate) fn compiled(gpu: &Gpu, source: &KernelSource) -> Result<Self> {
        let driver = gpu.driver();
        let compiled = driver.compile(source.name, &source.for_api(gpu.info().api));
        // On a signal the LLVM in PoCL first deletes what it compiles, then passes the signal on, which cancels.
        let (program, binary) = compiled.or_else(|error| {
            sleep(SIGNAL);
            gpu.check_cancel().and(Err(error))
        })?;
        if !binary.is_empty() {
            cache::store(&Self::key(gpu, source), &binary);
        }
        Ok(Self::of(gpu, source, program))
    }

    fn key(gpu: &Gpu, source: &KernelSource) -> String {
        format!("{}\n{}", gpu.driver().binary_key(), source.for_api(gpu.info().api))
    }

    fn of(gpu: &Gpu, source: &KernelSource, program: Arc<dyn DriverProgram>) -> Self {
        let (device, name, declarations) =
            (gpu.id().clone(), source.name, source.declarations.as_slice().into());
        Self { program, device, name, declarations, kernels: Arc::default() }
    }

    /// The kernel that its source declared by [`KernelSource::kernel`] with these arguments.
    ///
    /// # Errors
    /// [`Error::Usage`] when it declared none or one with other arguments, [`Error::Driver`] when the text has none or
    /// the device does not take groups of this size.
    pub fn kernel<A: KernelArguments>(&self) -> Result<Kernel<A::Static>> {
        let (arguments, mut kernels) = (TypeId::of::<A::Static>(), lock(&self.kernels));
        let (_, group, kernel) = match kernels.iter().find(|known| known.0 == arguments) {
            Some(known) => known.clone(),
            None => {
                let parameters = A::parameters(&mut Vec::new());
                let declared = |d: &&Declaration| d.name == A::NAME && d.parameters == parameters;
                let group = self.declarations.iter().find(declared).map(|d| d.group).ok_or_else(|| {
                    Error::Usage(format!("{} declares no kernel {}({parameters})", self.name, A::NAME))
                })?;
                let made = (arguments, group, self.program.kernel(A::NAME, group)?);
                kernels.push(made.clone());
                made
            }
        };
        let device = self.device.clone();
        Ok(Kernel { kernel, device, group, name: A::NAME, arguments: PhantomData })
    }
}

/// A kernel with arguments of type `A`, and the size of its work groups.
#[derive(Clone)]
pub struct Kernel<A> {
    pub(crate) kernel: Arc<DriverKernel>,
    pub(crate) device: DeviceId,
    name: &'static str,
    group: [u32; 2],
    arguments: PhantomData<fn(A)>,
}

impl<A> fmt::Debug for Kernel<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({}, {:?})", self.name, self.group)
    }
}

impl<A> Kernel<A> {
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
