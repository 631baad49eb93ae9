//! The OpenCL driver: version 1.2 of the interface, which every vendor has.
#![expect(unsafe_code, reason = "a driver is foreign code")]

mod listing;

pub(crate) use listing::{devices, has_driver};

use crate::commands::{Argument, Command};
use crate::driver::{Driver, DriverKernel, DriverMark, DriverProgram, Raw, Side, Work, foreign, own};
use crate::{Api, Error, Info, Result, lock};
use cl3::command_queue as cl;
use listing::{LOOKING, all, info, nvidia_capability};
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::{CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, CL_FP_DENORM, CL_FP_FMA, Device};
use opencl3::error_codes::{
    CL_INVALID_BUFFER_SIZE, CL_MAP_FAILURE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY,
    CL_OUT_OF_RESOURCES, ClError,
};
use opencl3::event::{CL_COMPLETE, Event};
use opencl3::kernel::Kernel;
use opencl3::memory::{CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE};
use opencl3::platform::Platform;
use opencl3::program::{CL_PROGRAM_BUILD_LOG, Program};
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_bool, cl_event, cl_mem, cl_mem_flags};
use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex};

/// The host in messages.
const HOST: &str = "the host";

/// The name of PoCL's platform.
const POCL: &str = "Portable Computing Language";

/// The compiler's options for a device: `-w`, because PoCL prints how many warnings there were to standard error.
///
/// Division and roots are rounded as IEEE 754 says: NVIDIA's compiler takes shortcuts unless it is told. A device
/// without fused multiply-add computes it in integers. For a CPU, loops stay loops: its registers hold no unrolled
/// arrays, and PoCL compiles a kernel of unrolled sums over minutes instead of seconds.
fn options(float: u64, is_cpu: bool, nvidia_capability: Option<u32>) -> String {
    let mut options = "-cl-std=CL1.2 -w".to_owned();
    for (wanted, option) in [
        (float & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0, " -cl-fp32-correctly-rounded-divide-sqrt"),
        (float & CL_FP_FMA == 0, " -DFMA_IN_INTEGERS"),
        (is_cpu, " -DUNROLL="),
    ] {
        if wanted {
            options.push_str(option);
        }
    }
    if let Some(capability) = nvidia_capability {
        options += &format!(" -DNVIDIA_CAPABILITY={capability}");
    }
    options
}

fn failed(call: &str, ClError(code): ClError) -> Error {
    Error::Driver { api: Api::OpenCl, reason: format!("{call}: {}", ClError(code)) }
}

#[derive(Debug)]
pub(crate) struct OpenCl {
    info: Info,
    options: String,
    promises_ieee: bool,
    /// Whether this is PoCL, which keeps compiled programs on disk itself.
    is_pocl: bool,
    device: Device,
    queue: CommandQueue,
    /// For work beside it.
    sides: [CommandQueue; Side::COUNT],
    /// A queue for mapping host memory, so that this waits for no other work.
    mapping: CommandQueue,
    /// The memory objects of host memory, by its address.
    mapped: Mutex<HashMap<usize, Raw>>,
    context: Arc<Context>,
    /// Held from setting a kernel object's arguments until the kernel is in the queue.
    launching: Mutex<()>,
}

impl OpenCl {
    pub(crate) fn open(index: u32) -> Result<Self> {
        let _alone = lock(&LOOKING);
        let (devices, _) = all()?;
        let count = devices.len();
        let device = devices.into_iter().nth(index as usize).ok_or_else(|| Error::Index {
            api: Api::OpenCl,
            index,
            found: crate::devices::numbered(count),
        })?;
        let info = info(&device, index)?;
        let float = device.single_fp_config().map_err(|e| failed("clGetDeviceInfo", e))?;
        let ieee = CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT | CL_FP_DENORM;
        let context = Context::from_device(&device).map_err(|e| failed("clCreateContext", e))?;
        let queue = || {
            CommandQueue::create_default(&context, CL_QUEUE_PROFILING_ENABLE)
                .map_err(|e| failed("clCreateCommandQueue", e))
        };
        let (queue, sides, mapping) = (queue()?, [queue()?, queue()?, queue()?], queue()?);
        Ok(Self {
            options: options(float, info.is_cpu, nvidia_capability(&device)),
            promises_ieee: float & ieee == ieee,
            is_pocl: device
                .platform()
                .is_ok_and(|of| Platform::new(of).name().is_ok_and(|name| name == POCL)),
            info,
            device,
            queue,
            sides,
            mapping,
            mapped: Mutex::default(),
            context: Arc::new(context),
            launching: Mutex::default(),
        })
    }

    /// A memory object of the device or of the host.
    fn create(&self, flags: cl_mem_flags, bytes: usize, place: &str) -> Result<Raw> {
        // SAFETY: no host pointer is given.
        let made = unsafe { cl3::memory::create_buffer(self.context.get(), flags, bytes, ptr::null_mut()) };
        made.map(|memory| Raw(memory as u64)).map_err(|code| no_memory("clCreateBuffer", code, place, bytes))
    }

    fn built(&self, program: Program) -> Arc<dyn DriverProgram> {
        Arc::new(OpenClProgram { program, device: self.device, _context: self.context.clone() })
    }

    fn launch(
        &self,
        queue: &CommandQueue,
        kernel: &Kernel,
        (groups, group): ([u32; 3], [u32; 2]),
        arguments: &[Argument],
        after: &[cl_event],
    ) -> Result<Event> {
        let _alone = lock(&self.launching);
        for (at, argument) in (0..).zip(arguments) {
            let handle;
            let (size, value) = match argument {
                Argument::Buffer(memory) => {
                    handle = mem(memory.raw);
                    (size_of::<cl_mem>(), (&raw const handle).cast())
                }
                Argument::Values(block) => (block.bytes().len(), block.bytes().as_ptr().cast()),
            };
            // SAFETY: `size` bytes lie at `value`; the driver compares number and sizes with the kernel's.
            let set = unsafe { cl3::kernel::set_kernel_arg(kernel.get(), at, size, value) };
            set.map_err(|e| {
                let name = kernel.function_name().unwrap_or_default();
                failed(&format!("argument {at} of {name}"), ClError(e))
            })?;
        }
        let local = [group[0] as usize, group[1] as usize, 1];
        let global: [usize; 3] = std::array::from_fn(|i| groups[i] as usize * local[i]);
        // SAFETY: three sizes each, alive during the call; the buffers live as long as the command list.
        let event = unsafe {
            queue.enqueue_nd_range_kernel(
                kernel.get(),
                3,
                ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                after,
            )
        };
        event.map_err(|e| failed(&format!("launching {}", kernel.function_name().unwrap_or_default()), e))
    }

    /// Puts commands into a queue; all of them wait for `after`. Returns the event of the last.
    fn enqueue_all<'c>(
        &self,
        queue: &CommandQueue,
        commands: impl IntoIterator<Item = &'c Command>,
        after: &[cl_event],
    ) -> Result<Option<Event>> {
        let mut last = None;
        for command in commands {
            // Commands after the first wait with it: the queue runs them in order.
            let after = if last.is_none() { after } else { &[] };
            last = self.enqueue_into(queue, command, after)?.or(last);
        }
        Ok(last)
    }

    /// Puts a command into a queue, which waits for `after`. Returns its event, or `None` where it is an empty list.
    fn enqueue_into(
        &self,
        queue: &CommandQueue,
        command: &Command,
        after: &[cl_event],
    ) -> Result<Option<Event>> {
        let (waited, after_these) = waits(after);
        let (call, event) = match command {
            Command::Launch { kernel, groups, group, arguments } => {
                let kernel = own::<OpenClKernel>(kernel.as_ref())?;
                return self.launch(queue, &kernel.kernel, (*groups, *group), arguments, after).map(Some);
            }
            // One after the other: NVIDIA's driver runs two queues at once, but no faster (`docs/notebook/gpu.md`).
            Command::Together(lists) => return self.enqueue_all(queue, lists.iter().flatten(), after),
            Command::Zero { memory, bytes } => {
                let (queue, memory, zero) = (queue.get(), mem(memory.raw), 0_u8);
                let pattern = (&raw const zero).cast();
                // SAFETY: one byte of pattern; the buffer has at least these bytes.
                let event = unsafe {
                    cl::enqueue_fill_buffer(queue, memory, pattern, 1, 0, *bytes, waited, after_these)
                };
                ("clEnqueueFillBuffer", event)
            }
            Command::Copy { from, from_offset, to, to_offset, bytes } => {
                let (queue, from, to) = (queue.get(), mem(from.raw), mem(to.raw));
                let (from_at, to_at) = (*from_offset, *to_offset);
                // SAFETY: both ranges were checked when the command was made.
                let event = unsafe {
                    cl::enqueue_copy_buffer(queue, from, to, from_at, to_at, *bytes, waited, after_these)
                };
                ("clEnqueueCopyBuffer", event)
            }
            Command::CopyRows { from, from_at, to, to_at, row, rows } => {
                let (from_origin, to_origin) = ([from_at.offset, 0, 0], [to_at.offset, 0, 0]);
                let region = [*row, *rows, 1];
                // SAFETY: both ranges were checked when the command was made; three numbers each, which live during the
                // call.
                let event = unsafe {
                    cl::enqueue_copy_buffer_rect(
                        queue.get(),
                        mem(from.raw),
                        mem(to.raw),
                        from_origin.as_ptr(),
                        to_origin.as_ptr(),
                        region.as_ptr(),
                        from_at.pitch,
                        0,
                        to_at.pitch,
                        0,
                        waited,
                        after_these,
                    )
                };
                ("clEnqueueCopyBufferRect", event)
            }
            Command::Upload { from, to, bytes } => {
                // SAFETY: the host memory outlives the queue's work: it waits when dropped.
                let event =
                    unsafe { write(queue, CL_NON_BLOCKING, (to.raw, 0), (from.start, *bytes), after) };
                ("clEnqueueWriteBuffer", event)
            }
            Command::Download { from, from_offset, to, to_offset, bytes } => {
                // SAFETY: as above; both ranges were checked when the command was made.
                let event = unsafe {
                    let to = to.start.add(*to_offset);
                    read(queue, CL_NON_BLOCKING, (from.raw, *from_offset), (to, *bytes), after)
                };
                ("clEnqueueReadBuffer", event)
            }
        };
        made(call, event).map(Some)
    }
}

/// Events to wait for, as calls take them.
fn waits(after: &[cl_event]) -> (u32, *const cl_event) {
    (after.len() as u32, if after.is_empty() { ptr::null() } else { after.as_ptr() })
}

/// Enqueues a write of `bytes` bytes from the host to an offset in the device's memory.
///
/// # Safety
/// They must lie at `from`, and must not change before they are written; the memory must have room for them.
unsafe fn write(
    queue: &CommandQueue,
    blocking: cl_bool,
    (to, offset): (Raw, usize),
    (from, bytes): (*const u8, usize),
    after: &[cl_event],
) -> std::result::Result<cl_event, i32> {
    let ((waited, after), queue, to) = (waits(after), queue.get(), mem(to));
    // SAFETY: the caller's promise.
    unsafe { cl::enqueue_write_buffer(queue, to, blocking, offset, bytes, from.cast(), waited, after) }
}

/// Enqueues a read of `bytes` bytes of the device's memory, from an offset on, to the host.
///
/// # Safety
/// The device's memory must have them; the host's must have room for them, and must not be used before they are read.
unsafe fn read(
    queue: &CommandQueue,
    blocking: cl_bool,
    (from, offset): (Raw, usize),
    (to, bytes): (*mut u8, usize),
    after: &[cl_event],
) -> std::result::Result<cl_event, i32> {
    let ((waited, after), queue, from) = (waits(after), queue.get(), mem(from));
    // SAFETY: the caller's promise.
    unsafe { cl::enqueue_read_buffer(queue, from, blocking, offset, bytes, to.cast(), waited, after) }
}

/// The point in a queue after all that is in it, and after `after`.
fn mark_in(queue: &CommandQueue, after: &[cl_event]) -> Result<Arc<DriverMark>> {
    // SAFETY: the caller keeps the events.
    let event = unsafe { queue.enqueue_marker_with_wait_list(after) };
    mark_of(queue, event.map_err(|e| failed("clEnqueueMarker", e))?)
}

/// The point at which a command of a queue is done.
fn mark_of(queue: &CommandQueue, event: Event) -> Result<Arc<DriverMark>> {
    // So that the work begins at once, not only when it is waited for.
    queue.flush().map_err(|e| failed("clFlush", e))?;
    Ok(Arc::new(event))
}

fn event(mark: &DriverMark) -> Result<&Event> {
    own(mark)
}

fn mem(memory: Raw) -> cl_mem {
    memory.0 as cl_mem
}

/// The event that comes with every enqueued command.
fn made(call: &str, event: std::result::Result<cl_event, i32>) -> Result<Event> {
    event.map(Event::new).map_err(|e| failed(call, ClError(e)))
}

/// The error of a call that asks for memory of `place`.
fn no_memory(call: &str, code: i32, place: &str, bytes: usize) -> Error {
    match code {
        CL_MEM_OBJECT_ALLOCATION_FAILURE
        | CL_OUT_OF_RESOURCES
        | CL_OUT_OF_HOST_MEMORY
        | CL_INVALID_BUFFER_SIZE
        | CL_MAP_FAILURE => Error::Memory { device: place.to_owned(), asked: bytes as u64, free: None },
        code => failed(call, ClError(code)),
    }
}

impl Driver for OpenCl {
    fn info(&self) -> &Info {
        &self.info
    }

    fn promises_ieee(&self) -> bool {
        self.promises_ieee
    }

    fn promises_progress(&self) -> bool {
        nvidia_capability(&self.device).is_some()
    }

    fn allocate(&self, bytes: usize) -> Result<Raw> {
        let memory = self.create(CL_MEM_READ_WRITE, bytes, &self.info.name)?;
        // Drivers may defer the allocation until the memory is used; this forces it.
        let zero = 0_u8;
        // SAFETY: one byte of the new memory, from a byte that lives during the call.
        let touched =
            unsafe { write(&self.queue, CL_BLOCKING, (memory, bytes - 1), (&raw const zero, 1), &[]) };
        let event = touched.map_err(|code| {
            self.free(memory);
            no_memory("clEnqueueWriteBuffer", code, &self.info.name, bytes)
        })?;
        drop(Event::new(event));
        Ok(memory)
    }

    fn free(&self, memory: Raw) {
        // SAFETY: made by `create`, freed once.
        let _ = unsafe { cl3::memory::release_mem_object(mem(memory)) };
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn allocate_host(&self, bytes: usize) -> Result<*mut u8> {
        // OpenCL has no name for pinned memory: drivers take it for buffers of the host that stay mapped.
        let memory = self.create(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, HOST)?;
        let mut start = ptr::null_mut();
        // SAFETY: the whole of the new memory; the call blocks until it is mapped.
        let mapped = unsafe {
            cl::enqueue_map_buffer(
                self.mapping.get(),
                mem(memory),
                CL_BLOCKING,
                CL_MAP_READ | CL_MAP_WRITE,
                0,
                bytes,
                &mut start,
                0,
                ptr::null(),
            )
        };
        let event = mapped.map_err(|code| {
            self.free(memory);
            no_memory("clEnqueueMapBuffer", code, HOST, bytes)
        })?;
        drop(Event::new(event));
        lock(&self.mapped).insert(start as usize, memory);
        Ok(start.cast())
    }

    fn free_host(&self, start: *mut u8) {
        let Some(memory) = lock(&self.mapped).remove(&(start as usize)) else { return };
        // SAFETY: mapped by `allocate_host`, unmapped once; the driver keeps the memory until that is done.
        let unmapped = unsafe {
            cl::enqueue_unmap_mem_object(self.mapping.get(), mem(memory), start.cast(), 0, ptr::null())
        };
        drop(unmapped.map(Event::new));
        let _ = self.mapping.flush();
        self.free(memory);
    }

    fn binary_key(&self) -> String {
        format!("{} {} {}", self.info.name, self.info.driver, self.options)
    }

    fn compile(&self, name: &str, source: &str) -> Result<(Arc<dyn DriverProgram>, Vec<u8>)> {
        let mut program =
            Program::create_from_source(&self.context, source).map_err(|e| failed("clCreateProgram", e))?;
        if program.build(&[self.device.id()], &self.options).is_err() {
            let log =
                cl3::program::get_program_build_data(program.get(), self.device.id(), CL_PROGRAM_BUILD_LOG);
            let log = log.map(|l| String::from_utf8_lossy(&l).trim_end_matches('\0').to_owned());
            let (program, device) = (name.to_owned(), self.info.name.clone());
            return Err(Error::Compile { program, device, log: log.unwrap_or_default() });
        }
        // For a binary PoCL would compile each kernel once more, for groups of any size, which nothing then uses.
        let binaries = if self.is_pocl { Ok(Vec::new()) } else { program.get_binaries() };
        let binaries = binaries.map_err(|e| failed("clGetProgramInfo", e))?;
        Ok((self.built(program), binaries.into_iter().next().unwrap_or_default()))
    }

    fn load(&self, name: &str, binary: &[u8]) -> Result<Arc<dyn DriverProgram>> {
        let built = Program::create_and_build_from_binary(&self.context, &[binary], &self.options);
        Ok(self.built(built.map_err(|e| failed(&format!("loading {name}"), e))?))
    }

    fn write(&self, to: Raw, offset: usize, from: &[u8]) -> Result<()> {
        // SAFETY: the caller checked the range; the call blocks until `from` was read.
        let event =
            unsafe { write(&self.queue, CL_BLOCKING, (to, offset), (from.as_ptr(), from.len()), &[]) };
        made("clEnqueueWriteBuffer", event).map(drop)
    }

    fn read(&self, from: Raw, offset: usize, to: &mut [u8]) -> Result<()> {
        // SAFETY: the caller checked the range; the call blocks until `to` is written.
        let event =
            unsafe { read(&self.queue, CL_BLOCKING, (from, offset), (to.as_mut_ptr(), to.len()), &[]) };
        made("clEnqueueReadBuffer", event).map(drop)
    }

    fn beside(&self, side: Side, work: Work<'_>, after: &[&DriverMark]) -> Result<Arc<DriverMark>> {
        let queue = &self.sides[side as usize];
        let after = after.iter().map(|mark| event(*mark).map(Event::get)).collect::<Result<Vec<_>>>()?;
        let last = match work {
            Work::Commands(commands) => self.enqueue_all(queue, commands, &after)?,
            Work::Graph(_) => return Err(foreign()),
        };
        // With NVIDIA's driver a marker or a barrier in one queue holds up the work of all; a command that waits for
        // events and has an event itself does not (`docs/notebook/gpu.md`).
        match last {
            Some(last) => mark_of(queue, last),
            None => mark_in(queue, &after),
        }
    }

    fn hold(&self, mark: &DriverMark) -> Result<()> {
        // SAFETY: one event, which the mark keeps.
        let waits = unsafe { self.queue.enqueue_barrier_with_wait_list(&[event(mark)?.get()]) };
        waits.map(drop).map_err(|e| failed("clEnqueueBarrier", e))
    }

    fn enqueue(&self, command: &Command) -> Result<()> {
        self.enqueue_into(&self.queue, command, &[]).map(drop)
    }

    fn mark(&self) -> Result<Arc<DriverMark>> {
        mark_in(&self.queue, &[])
    }

    fn wait(&self, mark: &DriverMark) -> Result<()> {
        event(mark)?.wait().map_err(|e| failed("clWaitForEvents", e))
    }

    fn seconds_between(&self, start: &DriverMark, end: &DriverMark) -> Result<f64> {
        let time = |mark: &DriverMark| {
            event(mark)?.profiling_command_end().map_err(|e| failed("clGetEventProfilingInfo", e))
        };
        Ok(time(end)?.saturating_sub(time(start)?) as f64 * 1e-9)
    }

    fn finish(&self) -> Result<()> {
        // rusticl (Mesa 22.3) takes a queue that was flushed for one that has finished; for an event it waits.
        self.wait(self.mark()?.as_ref())?;
        self.queue.finish().map_err(|e| failed("clFinish", e))
    }

    fn finish_all(&self) -> Result<()> {
        self.finish()?;
        self.sides.iter().try_for_each(|queue| {
            self.wait(mark_in(queue, &[])?.as_ref())?;
            queue.finish().map_err(|e| failed("clFinish", e))
        })
    }

    fn is_done(&self, mark: &DriverMark) -> Result<bool> {
        let status = event(mark)?.command_execution_status();
        Ok(status.map_err(|e| failed("clGetEventInfo", e))?.0 == CL_COMPLETE)
    }
}

#[derive(Debug)]
struct OpenClProgram {
    program: Program,
    device: Device,
    _context: Arc<Context>,
}

impl DriverProgram for OpenClProgram {
    fn kernel(&self, name: &str, group: [u32; 2]) -> Result<Arc<DriverKernel>> {
        let named = |e| failed(&format!("kernel {name}"), e);
        let kernel = Kernel::create(&self.program, name).map_err(named)?;
        let declared = kernel.get_compile_work_group_size(self.device.id()).map_err(named)?;
        let found: Vec<u32> = declared.iter().map(|&n| n as u32).collect();
        if found != [group[0], group[1], 1] {
            return Err(Error::Usage(format!("kernel {name} declares groups of {found:?}, not {group:?}")));
        }
        // The compiler has seen the declared size. As the kernel's own limit Mesa 22.3 gives the length of its vectors.
        let most = self.device.max_work_group_size().map_err(named)?;
        if (group[0] * group[1]) as usize > most {
            return Err(Error::Driver {
                api: Api::OpenCl,
                reason: format!(
                    "kernel {name}: this device takes groups of at most {most} lanes, not {group:?}"
                ),
            });
        }
        Ok(Arc::new(OpenClKernel { kernel }))
    }
}

struct OpenClKernel {
    kernel: Kernel,
}

// SAFETY: the kernel object is used under the lock `launching` alone.
unsafe impl Sync for OpenClKernel {}
