//! The CUDA driver, with NVRTC as its compiler.
#![expect(unsafe_code, reason = "a driver is foreign code")]

mod foreign;
mod library;
mod nvrtc;

pub(crate) use library::has_driver;
pub(crate) use nvrtc::compile;

use crate::commands::{Argument, Command};
use crate::driver::{Driver, DriverGraph, DriverKernel, DriverMark, DriverProgram, Raw, Side, Work, own};
use crate::{Api, Devices, Error, Info, Result, packaged};
use cudarc::driver::sys::{self, CUresult};
use library::{call, check, error, start};
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

fn count() -> Result<u32> {
    let mut count = 0;
    // SAFETY: writes one integer.
    unsafe { call!(cuDeviceGetCount(&raw mut count)) }?;
    Ok(count.unsigned_abs())
}

pub(crate) fn devices() -> Result<Devices> {
    start()?;
    Ok(Devices::of((0..count()?).map(|i| device(i).and_then(|d| info(d, i)))))
}

fn device(index: u32) -> Result<sys::CUdevice> {
    let mut device = 0;
    // SAFETY: writes one handle.
    unsafe { call!(cuDeviceGet(&raw mut device, index as c_int)) }?;
    Ok(device)
}

fn info(device: sys::CUdevice, index: u32) -> Result<Info> {
    use sys::CUdevice_attribute_enum as Is;
    let attribute = |which| {
        let mut value = 0;
        // SAFETY: writes one integer.
        unsafe { call!(cuDeviceGetAttribute(&raw mut value, which, device)) }?;
        Ok(value.unsigned_abs())
    };
    let (mut name, mut memory, mut version) = ([0_u8; 256], 0, 0);
    // SAFETY: the name's length is given, zero-terminated by the driver; the others are one number each.
    unsafe {
        call!(cuDeviceGetName(name.as_mut_ptr().cast(), 255, device))?;
        call!(cuDeviceTotalMem_v2(&raw mut memory, device))?;
        call!(cuDriverGetVersion(&raw mut version))?;
    }
    let name = CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy).unwrap_or_default().into_owned();
    let major = attribute(Is::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(Is::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(Info {
        api: Api::Cuda,
        index,
        name,
        driver: format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
        memory: memory as u64,
        units: attribute(Is::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        local_memory: attribute(Is::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        group: attribute(Is::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        capability: 10 * major + minor,
        has_f64: true,
        has_whole_words: true,
        warp: 32,
        is_cpu: false,
    })
}

/// The device's primary context and the streams of this crate in it.
#[derive(Debug)]
struct Stream {
    device: sys::CUdevice,
    context: sys::CUcontext,
    /// The queue.
    stream: sys::CUstream,
    /// One of the two lists of [`Command::Together`]; the other goes into `stream`.
    second: sys::CUstream,
    /// Work beside the queue, by [`Side`].
    sides: [sys::CUstream; Side::COUNT],
    /// The highest priority that a stream can have.
    first: i32,
    /// The event that orders `stream` with streams of other programs.
    order: Mutex<sys::CUevent>,
}

// SAFETY: contexts and streams may be used from any thread on which the context is current.
unsafe impl Send for Stream {}
// SAFETY: as above; the driver locks.
unsafe impl Sync for Stream {}

impl Stream {
    fn enter(&self) -> Result<()> {
        // SAFETY: the context was retained and not yet released.
        unsafe { call!(cuCtxSetCurrent(self.context)) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.enter();
        // SAFETY: made by `open`; nothing uses them any more.
        unsafe {
            for stream in [self.stream, self.second].into_iter().chain(self.sides) {
                let _ = sys::cuStreamDestroy_v2(stream);
            }
            let _ = sys::cuEventDestroy_v2(*self.order.get_mut().unwrap_or_else(PoisonError::into_inner));
            let _ = sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Cuda {
    info: Info,
    /// NVRTC's version; `None` if it is missing or does not support the card, for which there are packaged kernels.
    compiler: Option<String>,
    stream: Arc<Stream>,
}

impl Cuda {
    pub(crate) fn open(index: u32) -> Result<Self> {
        start()?;
        let count = count()?;
        if index >= count {
            let found = crate::devices::numbered(count as usize);
            return Err(Error::Index { api: Api::Cuda, index, found });
        }
        let device = device(index)?;
        let info = info(device, index)?;
        let compiler = match nvrtc::compiles_for(info.capability) {
            Err(error) if !packaged::serve(info.capability) => return Err(error),
            found => found.ok(),
        };
        let mut context = ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { call!(cuDevicePrimaryCtxRetain(&raw mut context, device)) }?;
        // From here on dropping `stream` releases the context; the driver refuses to destroy handles that are null.
        let (none, order) = (ptr::null_mut(), Mutex::new(ptr::null_mut()));
        let sides = [none; Side::COUNT];
        let mut stream = Stream { device, context, stream: none, second: none, sides, first: 0, order };
        // SAFETY: writes one handle each; the context is current before a stream is made in it.
        unsafe {
            stream.enter()?;
            let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
            call!(cuStreamCreate(&raw mut stream.stream, flags))?;
            call!(cuStreamCreate(&raw mut stream.second, flags))?;
            call!(cuCtxGetStreamPriorityRange(ptr::null_mut(), &raw mut stream.first))?;
            for (at, side) in stream.sides.iter_mut().enumerate() {
                let priority = if at == Side::Kernels as usize { stream.first } else { 0 };
                call!(cuStreamCreateWithPriority(&raw mut *side, flags, priority))?;
            }
            let mut order = ptr::null_mut();
            call!(cuEventCreate(&raw mut order, foreign::UNTIMED))?;
            stream.order = Mutex::new(order);
        }
        Ok(Self { info, compiler, stream: Arc::new(stream) })
    }

    fn architecture(&self) -> String {
        format!("sm_{}", self.info.capability)
    }

    fn mark_in(&self, stream: sys::CUstream) -> Result<Arc<DriverMark>> {
        let mark = CudaMark::new(&self.stream, 0)?;
        // SAFETY: the event is recorded in the context where it was made.
        unsafe { call!(cuEventRecord(mark.handle, stream)) }?;
        Ok(Arc::new(mark))
    }

    /// Puts a command into `stream`; of [`Command::Together`] one list goes into `second`.
    fn enqueue_into(&self, stream: sys::CUstream, second: sys::CUstream, command: &Command) -> Result<()> {
        // SAFETY: ranges were checked when the commands were made, which keep all memory alive. A kernel gets as many
        // pointers as it has parameters, each to one of its size that lives during the call and is only read.
        unsafe {
            match command {
                Command::Launch { kernel, groups, group, arguments } => {
                    let kernel = own::<CudaKernel>(kernel.as_ref())?;
                    let mut pointers: Vec<*mut c_void> = arguments.iter().map(pointer).collect();
                    let launched = sys::cuLaunchKernel(
                        kernel.function,
                        groups[0],
                        groups[1],
                        groups[2],
                        group[0],
                        group[1],
                        1,
                        0,
                        stream,
                        pointers.as_mut_ptr(),
                        ptr::null_mut(),
                    );
                    check(&format!("launching {}", kernel.name), launched)
                }
                Command::Zero { memory, bytes } => call!(cuMemsetD8Async(memory.raw.0, 0, *bytes, stream)),
                Command::Copy { from, from_offset, to, to_offset, bytes } => call!(cuMemcpyDtoDAsync_v2(
                    to.raw.0 + *to_offset as u64,
                    from.raw.0 + *from_offset as u64,
                    *bytes,
                    stream
                )),
                Command::CopyRows { from, from_at, to, to_at, row, rows } => {
                    let copy = sys::CUDA_MEMCPY2D {
                        srcXInBytes: 0,
                        srcY: 0,
                        srcHost: ptr::null(),
                        srcArray: ptr::null_mut(),
                        dstXInBytes: 0,
                        dstY: 0,
                        dstHost: ptr::null_mut(),
                        dstArray: ptr::null_mut(),
                        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                        srcDevice: from.raw.0 + from_at.offset as u64,
                        srcPitch: from_at.pitch,
                        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                        dstDevice: to.raw.0 + to_at.offset as u64,
                        dstPitch: to_at.pitch,
                        WidthInBytes: *row,
                        Height: *rows,
                    };
                    call!(cuMemcpy2DAsync_v2(&raw const copy, stream))
                }
                Command::Upload { from, to, bytes } => {
                    call!(cuMemcpyHtoDAsync_v2(to.raw.0, from.start.cast(), *bytes, stream))
                }
                Command::Download { from, from_offset, to, to_offset, bytes } => call!(cuMemcpyDtoHAsync_v2(
                    to.start.add(*to_offset).cast(),
                    from.raw.0 + *from_offset as u64,
                    *bytes,
                    stream
                )),
                Command::Together([one, other]) => {
                    one.iter().chain(other).try_for_each(share_multiprocessors)?;
                    follow(second, stream)?;
                    one.iter().try_for_each(|c| self.enqueue_into(second, second, c))?;
                    other.iter().try_for_each(|c| self.enqueue_into(stream, stream, c))?;
                    follow(stream, second)
                }
            }
        }
    }

    /// Records commands as a graph instead of running them, in streams of its own, so that other threads can go on
    /// using the queue. Kernels keep the priority of the stream that they were recorded in.
    fn capture(&self, commands: &[Command], priority: i32) -> Result<CapturedGraph> {
        let mut graph = CapturedGraph { handle: ptr::null_mut(), stream: self.stream.clone() };
        let (mut stream, mut second) = (ptr::null_mut(), ptr::null_mut());
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let _recording = foreign::RECORDING.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the stream is used by nothing else; a capture that was begun is always ended.
        unsafe {
            let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
            call!(cuStreamCreateWithPriority(&raw mut stream, flags, priority))?;
            let made = call!(cuStreamCreateWithPriority(&raw mut second, flags, priority));
            let begun = made.and_then(|()| call!(cuStreamBeginCapture_v2(stream, mode)));
            let enqueued =
                begun.and_then(|()| commands.iter().try_for_each(|c| self.enqueue_into(stream, second, c)));
            let ended = call!(cuStreamEndCapture(stream, &raw mut graph.handle));
            let _ = sys::cuStreamDestroy_v2(stream);
            let _ = sys::cuStreamDestroy_v2(second);
            enqueued?;
            ended?;
        }
        Ok(graph)
    }

    fn graph_of(&self, commands: &[Command], priority: i32) -> Result<Arc<dyn DriverGraph>> {
        self.stream.enter()?;
        let graph = self.capture(commands, priority)?;
        let mut handle = ptr::null_mut();
        // SAFETY: the graph was captured without an error; writes one handle.
        unsafe { call!(cuGraphInstantiateWithFlags(&raw mut handle, graph.handle, 0)) }?;
        Ok(Arc::new(CudaGraph { handle, stream: self.stream.clone() }))
    }
}

/// Asks for the largest share of local memory for a kernel. Kernels that divide the memory of a multiprocessor
/// differently between local memory and cache do not run on it at the same time.
fn share_multiprocessors(command: &Command) -> Result<()> {
    if let Command::Together(lists) = command {
        return lists.iter().flatten().try_for_each(share_multiprocessors);
    }
    let Command::Launch { kernel, .. } = command else { return Ok(()) };
    let kernel = own::<CudaKernel>(kernel.as_ref())?;
    let which = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    // SAFETY: the module of the kernel is loaded; a preference, in percent.
    unsafe { call!(cuFuncSetAttribute(kernel.function, which, 100)) }
}

/// Makes work that is put into `stream` from now on wait for the work that is in `other` now.
fn follow(stream: sys::CUstream, other: sys::CUstream) -> Result<()> {
    let mut event = ptr::null_mut();
    // SAFETY: both streams are alive; the driver keeps the event until it has been waited for.
    unsafe {
        call!(cuEventCreate(&raw mut event, foreign::UNTIMED))?;
        let waits =
            call!(cuEventRecord(event, other)).and_then(|()| call!(cuStreamWaitEvent(stream, event, 0)));
        let _ = sys::cuEventDestroy_v2(event);
        waits
    }
}

/// Where the driver finds an argument: a buffer's address, or the values.
fn pointer(argument: &Argument) -> *mut c_void {
    match argument {
        Argument::Buffer(memory) => (&raw const memory.raw.0).cast_mut().cast(),
        Argument::Values(block) => block.bytes().as_ptr().cast_mut().cast(),
    }
}

impl Driver for Cuda {
    fn info(&self) -> &Info {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<Raw> {
        self.stream.enter()?;
        let mut memory = 0;
        // SAFETY: writes one handle.
        let result = unsafe { sys::cuMemAlloc_v2(&raw mut memory, bytes) };
        if result == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            let (device, free) = (self.info.name.clone(), self.free_bytes());
            return Err(Error::Memory { device, asked: bytes as u64, free });
        }
        check("cuMemAlloc", result)?;
        Ok(Raw(memory))
    }

    fn free(&self, memory: Raw) {
        let _ = self.stream.enter();
        // SAFETY: made by `allocate`, freed once by the pool.
        let _ = unsafe { sys::cuMemFree_v2(memory.0) };
    }

    fn free_bytes(&self) -> Option<u64> {
        self.stream.enter().ok()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers.
        unsafe { call!(cuMemGetInfo_v2(&raw mut free, &raw mut total)) }.ok()?;
        Some(free as u64)
    }

    fn allocate_host(&self, bytes: usize) -> Result<*mut u8> {
        self.stream.enter()?;
        let mut memory = ptr::null_mut();
        // SAFETY: writes one pointer.
        match unsafe { sys::cuMemHostAlloc(&raw mut memory, bytes, 0) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                Err(Error::Memory { device: "the host".into(), asked: bytes as u64, free: None })
            }
            other => check("cuMemHostAlloc", other).map(|()| memory.cast()),
        }
    }

    fn free_host(&self, memory: *mut u8) {
        let _ = self.stream.enter();
        // SAFETY: made by `allocate_host`, freed once by its place.
        let _ = unsafe { sys::cuMemFreeHost(memory.cast()) };
    }

    fn binary_key(&self) -> String {
        format!("{} nvrtc {}", self.architecture(), self.compiler.as_deref().unwrap_or("missing"))
    }

    fn compile(&self, name: &str, source: &str) -> Result<(Arc<dyn DriverProgram>, Vec<u8>)> {
        if self.compiler.is_none() {
            return Err(Error::Unsupported {
                device: self.info.name.clone(),
                feature: "a kernel for these options: no NVRTC is found that could compile it",
            });
        }
        let binary = compile(name, source, &self.architecture())?;
        Ok((self.load(name, &binary)?, binary))
    }

    fn packaged(&self, source: &str) -> Option<Vec<u8>> {
        packaged::find(source, self.info.capability)
    }

    fn load(&self, name: &str, binary: &[u8]) -> Result<Arc<dyn DriverProgram>> {
        self.stream.enter()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the driver checks the image, whose length is in its own header.
        let loaded = unsafe { sys::cuModuleLoadData(&raw mut handle, binary.as_ptr().cast()) };
        check(&format!("loading {name}"), loaded)?;
        Ok(Arc::new(CudaProgram { module: Arc::new(Module { handle, stream: self.stream.clone() }) }))
    }

    fn write(&self, to: Raw, offset: usize, from: &[u8]) -> Result<()> {
        self.stream.enter()?;
        let (to, stream) = (to.0 + offset as u64, self.stream.stream);
        // SAFETY: the caller checked the range. Pageable memory is copied before the call returns.
        unsafe { call!(cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), stream)) }?;
        self.finish()
    }

    fn read(&self, from: Raw, offset: usize, to: &mut [u8]) -> Result<()> {
        self.stream.enter()?;
        let (from, stream) = (from.0 + offset as u64, self.stream.stream);
        // SAFETY: the caller checked the range; `to` is written when the stream has finished.
        unsafe { call!(cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), from, to.len(), stream)) }?;
        self.finish()
    }

    fn beside(&self, side: Side, work: Work<'_>, after: &[&DriverMark]) -> Result<Arc<DriverMark>> {
        self.stream.enter()?;
        let stream = self.stream.sides[side as usize];
        for mark in after {
            // SAFETY: the event was recorded when the mark was made.
            unsafe { call!(cuStreamWaitEvent(stream, event(*mark)?, 0))? }
        }
        match work {
            Work::Commands(commands) => {
                commands.iter().try_for_each(|c| self.enqueue_into(stream, stream, c))?;
            }
            Work::Graph(graph) => {
                let graph = own::<CudaGraph>(graph)?;
                // SAFETY: as in `launch`.
                unsafe { call!(cuGraphLaunch(graph.handle, stream))? }
            }
        }
        self.mark_in(stream)
    }

    fn hold(&self, mark: &DriverMark) -> Result<()> {
        self.stream.enter()?;
        // SAFETY: the event was recorded when the mark was made.
        unsafe { call!(cuStreamWaitEvent(self.stream.stream, event(mark)?, 0)) }
    }

    fn enqueue(&self, command: &Command) -> Result<()> {
        self.stream.enter()?;
        self.enqueue_into(self.stream.stream, self.stream.second, command)
    }

    fn mark(&self) -> Result<Arc<DriverMark>> {
        self.stream.enter()?;
        self.mark_in(self.stream.stream)
    }

    fn wait(&self, mark: &DriverMark) -> Result<()> {
        self.stream.enter()?;
        // SAFETY: the event was recorded when the mark was made.
        unsafe { call!(cuEventSynchronize(event(mark)?)) }
    }

    fn seconds_between(&self, start: &DriverMark, end: &DriverMark) -> Result<f64> {
        let mut milliseconds = 0.0_f32;
        // SAFETY: both events were recorded; writes one number.
        unsafe { call!(cuEventElapsedTime_v2(&raw mut milliseconds, event(start)?, event(end)?)) }?;
        Ok(f64::from(milliseconds) * 1e-3)
    }

    fn graph(&self, commands: &[Command]) -> Result<Option<Arc<dyn DriverGraph>>> {
        self.graph_of(commands, 0).map(Some)
    }

    fn graphs_beside(&self, [first, second]: [&[Command]; 2]) -> Result<Option<[Arc<dyn DriverGraph>; 2]>> {
        self.stream.enter()?;
        first.iter().chain(second).try_for_each(share_multiprocessors)?;
        Ok(Some([self.graph_of(first, 0)?, self.graph_of(second, self.stream.first)?]))
    }

    fn finish(&self) -> Result<()> {
        self.stream.enter()?;
        // SAFETY: the stream is ours.
        unsafe { call!(cuStreamSynchronize(self.stream.stream)) }
    }

    fn finish_all(&self) -> Result<()> {
        self.stream.enter()?;
        let Stream { stream, second, sides, .. } = *self.stream;
        // SAFETY: the streams are ours.
        [stream, second].into_iter().chain(sides).try_for_each(|s| unsafe { call!(cuStreamSynchronize(s)) })
    }

    fn is_done(&self, mark: &DriverMark) -> Result<bool> {
        self.stream.enter()?;
        // SAFETY: the event was recorded when the mark was made.
        match unsafe { sys::cuEventQuery(event(mark)?) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => check("cuEventQuery", other).map(|()| true),
        }
    }

    fn mark_everything(&self) -> Result<Arc<DriverMark>> {
        foreign::mark_everything(&self.stream)
    }

    fn stream(&self) -> Result<u64> {
        Ok(self.stream.stream as u64)
    }

    fn address(&self, memory: Raw) -> Result<u64> {
        Ok(memory.0)
    }

    fn foreign(&self, address: u64, bytes: usize) -> Result<Raw> {
        foreign::check(&self.stream, &self.info, address, bytes)?;
        Ok(Raw(address))
    }

    fn wait_for(&self, stream: u64) -> Result<()> {
        self.stream.enter()?;
        foreign::order(&self.stream, stream as sys::CUstream, self.stream.stream)
    }

    fn signal(&self, stream: u64) -> Result<()> {
        self.stream.enter()?;
        foreign::order(&self.stream, self.stream.stream, stream as sys::CUstream)
    }
}

/// A handle that the driver made in the context of `stream`, which is given back once, when it is dropped.
macro_rules! owned {
    ($destroy:ident($name:ident: $handle:ty)) => {
        #[derive(Debug)]
        struct $name {
            handle: $handle,
            stream: Arc<Stream>,
        }

        // SAFETY: any thread may use it in its context.
        unsafe impl Send for $name {}
        // SAFETY: as above; the driver locks.
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                let _ = self.stream.enter();
                // SAFETY: made once, destroyed once; the driver waits for its last use by itself and refuses null.
                let _ = unsafe { sys::$destroy(self.handle) };
            }
        }
    };
}

// Kernels hold their module.
owned!(cuModuleUnload(Module: sys::CUmodule));
owned!(cuEventDestroy_v2(CudaMark: sys::CUevent));
// A captured graph is no longer needed once it is instantiated.
owned!(cuGraphDestroy(CapturedGraph: sys::CUgraph));
// A graph that is launched twice runs twice, one run after the other.
owned!(cuGraphExecDestroy(CudaGraph: sys::CUgraphExec));

#[derive(Debug)]
struct CudaProgram {
    module: Arc<Module>,
}

impl DriverProgram for CudaProgram {
    fn kernel(&self, name: &str, group: [u32; 2]) -> Result<Arc<DriverKernel>> {
        self.module.stream.enter()?;
        let title = CString::new(name).map_err(|_| Error::Usage(format!("no kernel is named {name:?}")))?;
        let (mut function, mut most) = (ptr::null_mut(), 0);
        // SAFETY: the module is loaded; writes a handle and a number.
        unsafe {
            let found = sys::cuModuleGetFunction(&raw mut function, self.module.handle, title.as_ptr());
            check(&format!("kernel {name}"), found)?;
            let which = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
            call!(cuFuncGetAttribute(&raw mut most, which, function))?;
        }
        if group[0] * group[1] > most.unsigned_abs() {
            return Err(error(format!("kernel {name} takes groups of at most {most} lanes, not {group:?}")));
        }
        Ok(Arc::new(CudaKernel { name: name.into(), function, _module: self.module.clone() }))
    }
}

struct CudaKernel {
    name: String,
    function: sys::CUfunction,
    _module: Arc<Module>,
}

// SAFETY: functions are constant data of a module.
unsafe impl Send for CudaKernel {}
// SAFETY: as above.
unsafe impl Sync for CudaKernel {}

impl CudaMark {
    /// An event of the current context.
    fn new(stream: &Arc<Stream>, flags: u32) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { call!(cuEventCreate(&raw mut handle, flags)) }?;
        Ok(Self { handle, stream: stream.clone() })
    }
}

fn event(mark: &DriverMark) -> Result<sys::CUevent> {
    own::<CudaMark>(mark).map(|mark| mark.handle)
}

impl DriverGraph for CudaGraph {
    fn launch(&self) -> Result<()> {
        self.stream.enter()?;
        // SAFETY: the commands of the graph keep their memory alive beside it.
        unsafe { call!(cuGraphLaunch(self.handle, self.stream.stream)) }
    }
}
