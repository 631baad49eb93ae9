//! Every device of this machine keeps the contract of the crate: the arithmetic and layout of the [`dialect`], the
//! order of the [`queue`], and the [`errors`] for impossible requests.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests; a skipped one says so")]

mod beside;
mod dialect;
mod errors;
#[path = "../listed/mod.rs"]
mod listed;
mod queue;

use tiepoint_gpu::{
    Api, Buffer, Commands, Element, Error, Gpu, Kernel, KernelArguments, KernelSource, Mark, Pinned, kernel,
};

fn all() -> Vec<Gpu> {
    listed::listed(&[Api::Cuda, Api::OpenCl])
}

/// Runs the kernel that takes these arguments once.
fn run<A: KernelArguments>(gpu: &Gpu, source: &KernelSource, groups: [usize; 3], arguments: A) {
    let kernel = gpu.program(source).unwrap().kernel::<A>().unwrap();
    let mut commands = Commands::new();
    commands.launch(&kernel, groups, arguments).unwrap();
    gpu.run(&commands).unwrap();
}

/// The numbers in host memory. Tests run no commands while they hold them.
#[expect(unsafe_code, reason = "memory that a device writes")]
fn numbers<T: Element>(pinned: &Pinned<T>) -> &[T] {
    // SAFETY: as above.
    unsafe { pinned.numbers() }.unwrap()
}

/// As [`numbers`], for writing.
#[expect(unsafe_code, reason = "memory that a device reads")]
fn numbers_mut<T: Element>(pinned: &mut Pinned<T>) -> &mut [T] {
    // SAFETY: as above.
    unsafe { pinned.numbers_mut() }.unwrap()
}

/// As [`numbers`], a range of them once the queue has reached a mark. No commands after the mark use them.
#[expect(unsafe_code, reason = "memory that a device writes")]
fn numbers_at<'a, T: Element>(
    pinned: &'a Pinned<T>,
    mark: &Mark,
    range: std::ops::Range<usize>,
) -> Result<&'a [T], Error> {
    // SAFETY: as above.
    unsafe { pinned.numbers_at(mark, range) }
}

kernel! {
    unsafe kernel count(groups) = Count {
        write total: u32 [1],
        write most: u32 [1],
    } {
        width: i32,
        far: i64,
        height: i32,
        mask: u64,
    }
}

impl<'b> Count<'b> {
    fn new(total: &'b Buffer<u32>, most: &'b Buffer<u32>, width: usize, height: usize) -> Self {
        let (far, mask) = (-5_000_000_000_i64, 0xfedc_ba98_7654_3210_u64);
        Self { total, most, width: width as i32, far, height: height as i32, mask }
    }
}

fn count_kernel(gpu: &Gpu) -> Kernel<Count<'static>> {
    let source = KernelSource::new("count").kernel::<Count<'_>>([32, 4]).text(COUNT);
    gpu.program(&source).unwrap().kernel::<Count<'_>>().unwrap()
}

const COUNT: &str = "
KERNEL(count) {
    i32 width = args.width, height = args.height;
    LOCAL u32 group[1];
    i32 x = GROUP_X * 32 + LANE_X, y = GROUP_Y * 4 + LANE_Y;
    if (LANE_X == 0 && LANE_Y == 0) group[0] = 0;
    BARRIER();
    if (x < width && y < height) {
        ATOMIC_ADD(&group[0], 1u);
        ATOMIC_MAX(most, (u32)(y * width + x));
    }
    BARRIER();
    if (LANE_X == 0 && LANE_Y == 0) {
        ATOMIC_ADD(total, group[0]);
        if (args.far != -5000000000l || args.mask != 0xfedcba9876543210ul) ATOMIC_ADD(total, 1000000u);
    }
}";

kernel! {
    unsafe kernel add(groups) = Add {
        write sum: u32 [n],
        read part: u32 [n],
    } {
        n: u32,
    }
}

fn add_kernel(gpu: &Gpu) -> Kernel<Add<'static>> {
    let source = KernelSource::new("add").kernel::<Add<'_>>([64, 1]).text(ADD);
    gpu.program(&source).unwrap().kernel::<Add<'_>>().unwrap()
}

/// Three times `sum` and `part` becomes `sum`.
fn adding(sum: &Buffer<u32>, part: &Buffer<u32>) -> Commands {
    let (kernel, n, mut commands) = (add_kernel(sum.gpu()), sum.len(), Commands::new());
    commands.launch(&kernel, kernel.covering(n, 1), Add { sum, part, n: n as u32 }).unwrap();
    commands
}

const ADD: &str = "KERNEL(add) {
    i32 i = GROUP_X * 64 + LANE_X;
    if (i < args.n) sum[i] = 3u * sum[i] + part[i];
}";
