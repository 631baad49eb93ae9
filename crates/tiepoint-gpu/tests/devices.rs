//! Every device that this machine has keeps the contract of the dialect and of the queue.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests; a skipped one says so")]

use tiepoint_gpu::{
    Api, Buffer, Commands, Element, Error, Gpu, Kernel, KernelSource, Mark, Pinned, devices, kernel,
    kernel_struct,
};

/// The numbers of host memory. Tests run nothing while they have them, and nothing behind the mark uses them.
#[expect(unsafe_code, reason = "memory that a device writes")]
fn numbers<T: Element>(pinned: &Pinned<T>) -> &[T] {
    // SAFETY: as above.
    unsafe { pinned.numbers() }.unwrap()
}

/// As [`numbers`], to be written.
#[expect(unsafe_code, reason = "memory that a device reads")]
fn numbers_mut<T: Element>(pinned: &mut Pinned<T>) -> &mut [T] {
    // SAFETY: as above.
    unsafe { pinned.numbers_mut() }.unwrap()
}

/// As [`numbers`], some of them once the queue has come to a mark.
#[expect(unsafe_code, reason = "memory that a device writes")]
fn numbers_at<'a, T: Element>(
    pinned: &'a Pinned<T>,
    mark: &Mark,
    range: std::ops::Range<usize>,
) -> Result<&'a [T], Error> {
    // SAFETY: as above.
    unsafe { pinned.numbers_at(mark, range) }
}

/// All devices whose name contains what `TIEPOINT_TEST_DEVICE` says. Where there are none a test proves nothing, which
/// is a failure if devices are promised.
fn all() -> Vec<Gpu> {
    let wanted = std::env::var("TIEPOINT_TEST_DEVICE").unwrap_or_default();
    let found: Vec<Gpu> = [Api::Cuda, Api::OpenCl]
        .into_iter()
        .flat_map(|api| match devices(api) {
            Err(Error::Absent { .. }) => Vec::new(),
            listed => listed.unwrap().complete().unwrap(),
        })
        .filter(|info| info.name.contains(&wanted))
        .map(|info| Gpu::open(info.api, info.index).unwrap())
        .collect();
    if found.is_empty() {
        let promised = std::env::var_os("TIEPOINT_REQUIRE_GPU").is_some();
        assert!(!promised, "TIEPOINT_REQUIRE_GPU is set and there is no such CUDA or OpenCL device");
        println!("SKIPPED: neither a CUDA nor an OpenCL device (PoCL would do: pocl-opencl-icd)");
    }
    found
}

/// Values of every size and sign, some of them denormal, from a linear congruential generator.
fn floats(n: usize, mut seed: u32, spread: u32) -> Vec<f32> {
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    };
    let value = |bits: u32, exponent: u32| {
        f32::from_bits(bits << 31 | (127 - spread / 2 + exponent) << 23 | bits >> 1)
    };
    (0..n).map(|_| value(next(), next() % spread)).collect()
}

kernel! {
    unsafe kernel arithmetic(groups) = Arithmetic {
        write out: f32 [8 * n],
        read a: f32 [n],
        read b: f32 [n],
        read c: f32 [n],
    } {
        n: i32,
    }
}

const ARITHMETIC: &str = "
KERNEL(arithmetic) {
    i32 i = GROUP_X * 64 + LANE_X;
    if (i >= args.n) return;
    f32 x = a[i], y = b[i], z = c[i];
    out[8 * i] = FMA(x, y, z);
    out[8 * i + 1] = x * y + z;
    out[8 * i + 2] = x / y;
    out[8 * i + 3] = SQRT(ABS(x));
    out[8 * i + 4] = FMA(FMA(x, TABLE[0], y), TABLE[1], z) - x * HALF;
    out[8 * i + 5] = ROUND_EVEN(x);
    out[8 * i + 6] = FLOOR(y) + (f32)(i32)MIN_F(MAX_F(z, -1e6f), 1e6f);
    out[8 * i + 7] = FLOAT_OF(BITS_OF(x) ^ 1u) / (x * x + y * y);
}";

/// The kernel on which the promise of one answer everywhere rests. Devices that promise less are tried out when they
/// are opened (`ieee.rs`), by five operations; this holds every macro of the dialect.
#[test]
fn arithmetic_has_the_bits_of_rust() {
    let table = [0.1_f32, 1.0e-3 / 7.0];
    for gpu in all() {
        for (n, spread) in [(1 << 18, 24), (1 << 16, 250)] {
            let [a, b, c] = [1, 2, 3].map(|s| floats(n, s, spread));
            let source = KernelSource::new("arithmetic").table_f32("TABLE", &table).define_f32("HALF", 0.5);
            let source = source.kernel::<Arithmetic<'_>>([64, 1]).text(ARITHMETIC);
            let kernel = gpu.program(&source).unwrap().kernel::<Arithmetic<'_>>().unwrap();
            let out = gpu.buffer::<f32>(8 * n).unwrap();
            let [da, db, dc] = [&a, &b, &c].map(|v| gpu.upload(v).unwrap());
            let mut commands = Commands::new();
            let arguments = Arithmetic { out: &out, a: &da, b: &db, c: &dc, n: n as i32 };
            commands.launch(&kernel, kernel.covering(n, 1), arguments).unwrap();
            gpu.run(&commands).unwrap();
            let found = out.to_vec().unwrap();
            let mut differ = [0; 8];
            for (i, found) in found.chunks_exact(8).enumerate() {
                let (x, y, z) = (a[i], b[i], c[i]);
                let expected = [
                    x.mul_add(y, z),
                    x * y + z,
                    x / y,
                    x.abs().sqrt(),
                    x.mul_add(table[0], y).mul_add(table[1], z) - x * 0.5,
                    x.round_ties_even(),
                    y.floor() + z.clamp(-1e6, 1e6) as i32 as f32,
                    f32::from_bits(x.to_bits() ^ 1) / (x * x + y * y),
                ];
                for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
                    let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                    differ[k] += usize::from(!same);
                }
            }
            assert_eq!(differ, [0; 8], "{gpu:?}: of {n}, exponents over {spread}");
        }
    }
}

kernel! {
    unsafe kernel finite(groups) = Finite {
        write out: u32 [n],
        read bits: u64 [n],
    } {
        n: i32,
    }
}

#[test]
fn finite_numbers_are_told_from_others() {
    const F32: &str = "KERNEL(finite) {
        if (LANE_X < args.n) out[LANE_X] = IS_FINITE(FLOAT_OF((u32)bits[LANE_X])) ? 1u : 0u;
    }";
    const F64: &str = "KERNEL(finite) {
        if (LANE_X < args.n) out[LANE_X] = IS_FINITE_F64(F64_OF(bits[LANE_X])) ? 1u : 0u;
    }";
    let singles = [0.0, -0.0, 1.0, f32::MIN_POSITIVE / 8.0, f32::MAX, f32::MIN].into_iter().chain([
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        -f32::NAN,
        f32::from_bits(0x7f80_0001),
    ]);
    let doubles = [0.0, -0.0, 1.0, f64::MIN_POSITIVE / 8.0, f64::MAX, f64::MIN].into_iter().chain([
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7ff0_0000_0000_0001),
    ]);
    let singles: Vec<(u64, bool)> = singles.map(|v| (v.to_bits().into(), v.is_finite())).collect();
    let doubles: Vec<(u64, bool)> = doubles.map(|v| (v.to_bits(), v.is_finite())).collect();
    for gpu in all() {
        let both = [(F32, &singles), (F64, &doubles)];
        for (text, values) in both.into_iter().take(if gpu.info().has_f64 { 2 } else { 1 }) {
            let source = KernelSource::new("finite").kernel::<Finite<'_>>([64, 1]).text(text);
            let kernel = gpu.program(&source).unwrap().kernel::<Finite<'_>>().unwrap();
            let bits = gpu.upload(&values.iter().map(|v| v.0).collect::<Vec<_>>()).unwrap();
            let out = gpu.buffer::<u32>(values.len()).unwrap();
            let mut commands = Commands::new();
            let arguments = Finite { out: &out, bits: &bits, n: values.len() as i32 };
            commands.launch(&kernel, [1, 1, 1], arguments).unwrap();
            gpu.run(&commands).unwrap();
            let expected: Vec<u32> = values.iter().map(|v| v.1.into()).collect();
            assert_eq!(out.to_vec().unwrap(), expected, "{gpu:?}");
        }
    }
}

kernel! {
    unsafe kernel words(groups) = Words {
        write out: u32 [11 * 64 * groups[0]],
        read a: u32 [64 * groups[0]],
        read b: u32 [64 * groups[0]],
        read c: u32 [64 * groups[0]],
    } {}
}

const WORDS: &str = "KERNEL(words) {
    LOCAL u32 copied[64], turned[64];
    i32 i = GROUP_X * 64 + LANE_X;
    COPY_ASYNC(&copied[LANE_X], a + i);
    COPY_COMMIT();
    COPY_ASYNC(&turned[63 - LANE_X], b + i);
    COPY_COMMIT();
    u32 x = a[i], y = b[i], z = c[i];
    GLOBAL u32 *found = out + 11 * i;
    found[0] = PAIR_MIN(x, y);
    found[1] = PAIR_MIN3(x, y, z);
    found[2] = PAIR_OF(x & 0xffffu, y >> 16);
    found[3] = PAIR_LOWS(x, y);
    found[4] = PAIR_HIGHS(x, y);
    found[5] = PAIR_ENDS(x, y);
    found[6] = PAIR_BETWEEN(x, y);
    found[7] = BYTES_WIDENED(x) + POPCOUNT(y);
    found[8] = BYTES_REVERSED(x);
    COPY_WAIT(1);
    BARRIER();
    found[9] = copied[63 - LANE_X];
    COPY_WAIT_ALL();
    BARRIER();
    found[10] = turned[LANE_X];
}";

/// Words of two 16-bit numbers or four bytes, and copies to local memory, which some devices have instructions for.
#[test]
fn words_are_taken_apart_alike() {
    const N: usize = 64 * 64;
    let words = |seed: u32| -> Vec<u32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Halves below 2^15; every seventh word has equal or extreme ones.
            match state >> 8 & 7 {
                7 => [0, 0x7fff_7fff, 0x7fff_0000, 0x0001_0001][(state >> 16 & 3) as usize],
                _ => (state ^ state >> 13) & 0x7fff_7fff,
            }
        };
        (0..N).map(|_| next()).collect()
    };
    let [a, b, c] = [1, 2, 3].map(words);
    let least = |a: u32, b: u32| (a & 0xffff).min(b & 0xffff) | (a >> 16).min(b >> 16) << 16;
    let expected = |i: usize| {
        let (x, y, z) = (a[i], b[i], c[i]);
        let (group, lane) = (i / 64 * 64, i % 64);
        [
            least(x, y),
            least(least(x, y), z),
            x & 0xffff | y >> 16 << 16,
            x & 0xffff | y << 16,
            x >> 16 | y & 0xffff_0000,
            x & 0xffff | y & 0xffff_0000,
            x >> 16 | y << 16,
            (x & 0xff | (x & 0xff00) << 8) + y.count_ones(),
            x.swap_bytes(),
            a[group + 63 - lane],
            b[group + 63 - lane],
        ]
    };
    let expected: Vec<u32> = (0..N).flat_map(expected).collect();
    for gpu in all() {
        let source = KernelSource::new("words").kernel::<Words<'_>>([64, 1]).text(WORDS);
        let kernel = gpu.program(&source).unwrap().kernel::<Words<'_>>().unwrap();
        let out = gpu.buffer::<u32>(11 * N).unwrap();
        let [a, b, c] = [&a, &b, &c].map(|words| gpu.upload(words).unwrap());
        let mut commands = Commands::new();
        commands.launch(&kernel, [N / 64, 1, 1], Words { out: &out, a: &a, b: &b, c: &c }).unwrap();
        gpu.run(&commands).unwrap();
        let found = out.to_vec().unwrap();
        let wrong = found.iter().zip(&expected).position(|(f, e)| f != e);
        let wrong = wrong.map(|at| (at / 11, at % 11, found[at], expected[at]));
        assert_eq!(wrong, None, "{gpu:?}: word, operation, found, expected");
    }
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

#[test]
fn groups_barriers_and_atomics_count() {
    for gpu in all() {
        let kernel = count_kernel(&gpu);
        let (total, most) = (gpu.buffer::<u32>(1).unwrap(), gpu.buffer::<u32>(1).unwrap());
        for (width, height) in [(1, 1), (33, 5), (640, 1), (1, 70), (257, 129)] {
            let mut commands = Commands::new();
            commands.zero(&total).unwrap();
            commands.zero(&most).unwrap();
            commands.stage("count");
            let arguments = Count::new(&total, &most, width, height);
            commands.launch(&kernel, kernel.covering(width, height), arguments).unwrap();
            assert_eq!(commands.launches(), 1, "one launch was put in");
            let graph = gpu.graph(commands).unwrap();
            for _ in 0..3 {
                graph.run().unwrap();
            }
            let pixels = (width * height) as u32;
            assert_eq!(
                (total.to_vec().unwrap()[0], most.to_vec().unwrap()[0]),
                (pixels, pixels - 1),
                "{gpu:?}"
            );
        }
    }
}

/// What runs at the same time follows what came before, and what comes later follows it: in the queue and in a graph.
#[test]
fn work_that_runs_together_has_its_place() {
    const SIDES: (usize, usize) = (257, 129);
    for gpu in all() {
        let kernel = count_kernel(&gpu);
        let numbers = || [gpu.buffer::<u32>(1).unwrap(), gpu.buffer::<u32>(1).unwrap()];
        let [one, other, copies] = [numbers(), numbers(), numbers()];
        let count = |[total, most]: &[Buffer<u32>; 2], times: usize| {
            let mut commands = Commands::new();
            for _ in 0..times {
                let arguments = Count::new(total, most, SIDES.0, SIDES.1);
                commands.launch(&kernel, kernel.covering(SIDES.0, SIDES.1), arguments).unwrap();
            }
            commands
        };
        let mut commands = Commands::new();
        for buffer in one.iter().chain(&other) {
            commands.zero(buffer).unwrap();
        }
        commands.together(count(&one, 3), count(&other, 2)).unwrap();
        commands.copy((&one[0], 0), (&copies[0], 0), 1).unwrap();
        commands.copy((&other[0], 0), (&copies[1], 0), 1).unwrap();
        assert_eq!(commands.launches(), 5, "of both");
        let graph = gpu.graph(commands.clone()).unwrap();
        for run in 0..4 {
            if run % 2 == 0 { gpu.run(&commands) } else { graph.run() }.unwrap();
            let counted = copies.each_ref().map(|copy| copy.to_vec().unwrap()[0]);
            let pixels = (SIDES.0 * SIDES.1) as u32;
            assert_eq!(counted, [3 * pixels, 2 * pixels], "{gpu:?}: run {run}");
        }
    }
}

#[test]
fn memory_comes_and_goes_as_it_was() {
    for gpu in all() {
        let data: Vec<u16> = (0..70_001).map(|i| (i * 31) as u16).collect();
        let (buffer, copy) = (gpu.upload(&data).unwrap(), gpu.upload(&vec![7_u16; 70_001]).unwrap());
        let mut pinned = gpu.pinned::<u16>(500).unwrap();
        assert!(numbers(&pinned).iter().all(|&v| v == 0), "zeroed");
        let mut commands = Commands::new();
        commands.copy((&buffer, 17), (&copy, 3), 60_000).unwrap();
        commands.download(&copy, &mut pinned).unwrap();
        gpu.run(&commands).unwrap();
        assert_eq!(numbers(&pinned)[3..], data[17..514], "{gpu:?}: downloaded");
        let mut commands = Commands::new();
        commands.download_part((&buffer, 70_000), (&mut pinned, 499), 1).unwrap();
        commands.download_part((&buffer, 9), (&mut pinned, 1), 2).unwrap();
        gpu.run(&commands).unwrap();
        let expected = [7, data[9], data[10], data[17]];
        assert_eq!(numbers(&pinned)[..4], expected, "{gpu:?}: a part");
        assert_eq!(numbers(&pinned)[499], data[70_000], "{gpu:?}: the last");
        assert!(commands.download_part((&buffer, 70_000), (&mut pinned, 0), 2).is_err(), "beyond the buffer");
        assert!(
            commands.download_part((&buffer, 0), (&mut pinned, 499), 2).is_err(),
            "beyond the host's memory"
        );
        let found = copy.to_vec().unwrap();
        assert!(
            found[..3] == [7; 3] && found[3..60_003] == data[17..60_017] && found[60_003] == 7,
            "{gpu:?}"
        );

        numbers_mut(&mut pinned).fill(9);
        let mut commands = Commands::new();
        commands.upload(&pinned, &buffer).unwrap();
        commands.zero(&copy).unwrap();
        gpu.run(&commands).unwrap();
        let mut some = [0; 2];
        buffer.read(499, &mut some).unwrap();
        assert_eq!(some, [9, data[500]], "{gpu:?}: uploaded");
        assert!(copy.to_vec().unwrap().iter().all(|&v| v == 0), "{gpu:?}: zeroed");
        assert!(buffer.write(70_000, &[1, 2]).is_err(), "beyond the end");
        assert!(Commands::new().copy((&buffer, 0), (&copy, 2), 70_000).is_err(), "beyond the end");
        assert!(Commands::new().copy((&buffer, 0), (&buffer, 99), 100).is_err(), "onto itself");
        assert!(Commands::new().copy((&buffer, 0), (&buffer, 100), 100).is_ok(), "beside itself");
    }
}

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

const ADD: &str = "KERNEL(add) {
    i32 i = GROUP_X * 64 + LANE_X;
    if (i < args.n) sum[i] = 3u * sum[i] + part[i];
}";

#[test]
fn transfers_run_beside_the_work_and_in_order() {
    const N: usize = 100_000;
    for gpu in all() {
        let kernel = add_kernel(&gpu);
        let sum = gpu.upload(&vec![0_u32; N]).unwrap();
        let parts = [(); 2].map(|()| gpu.buffer::<u32>(N).unwrap());
        let pinned = [1_u32, 20, 300, 4000, 50_000].map(|v| {
            let mut pinned = gpu.pinned::<u32>(N).unwrap();
            numbers_mut(&mut pinned).fill(v);
            pinned
        });
        let mut read = [gpu.mark().unwrap(), gpu.mark().unwrap()];
        for (i, from) in pinned.iter().enumerate() {
            let part = &parts[i % 2];
            gpu.upload_beside(from, part, &read[i % 2]).unwrap();
            let mut commands = Commands::new();
            commands.launch(&kernel, kernel.covering(N, 1), Add { sum: &sum, part, n: N as u32 }).unwrap();
            gpu.run(&commands).unwrap();
            read[i % 2] = gpu.mark().unwrap();
        }
        let expected = [1_u32, 20, 300, 4000, 50_000].iter().fold(0, |s, v| 3 * s + v);
        assert!(sum.to_vec().unwrap().iter().all(|&v| v == expected), "{gpu:?}: in order");
        assert!(gpu.upload_beside(&pinned[0], &gpu.buffer(N - 1).unwrap(), &read[0]).is_err(), "too small");
    }
}

/// A buffer may have memory whose last owner is gone and whose work is still to be done.
#[test]
fn memory_is_handed_on_to_transfers_when_its_last_work_is_done() {
    const N: usize = 100_000;
    for gpu in all() {
        let kernel = add_kernel(&gpu);
        let zeroes = gpu.upload(&vec![0_u32; N]).unwrap();
        let mut other = gpu.pinned::<u32>(N).unwrap();
        numbers_mut(&mut other).fill(77);
        let mut result = gpu.pinned::<u32>(N).unwrap();
        for _ in 0..20 {
            let sum = gpu.upload(&vec![1_u32; N]).unwrap();
            let mut commands = Commands::new();
            for _ in 0..8 {
                let arguments = Add { sum: &sum, part: &zeroes, n: N as u32 };
                commands.launch(&kernel, kernel.covering(N, 1), arguments).unwrap();
            }
            commands.download(&sum, &mut result).unwrap();
            gpu.run(&commands).unwrap();
            drop((sum, commands));
            let next = gpu.buffer::<u32>(N).unwrap();
            gpu.upload_beside(&other, &next, &gpu.mark().unwrap()).unwrap();
            assert!(next.to_vec().unwrap().iter().all(|&v| v == 77), "{gpu:?}: the new owner's");
            assert!(numbers(&result).iter().all(|&v| v == 6561), "{gpu:?}: the last owner's");
        }
    }
}

/// Each round's sum is made beside the queue from what has just arrived, and read in the queue, which meanwhile works
/// on the round before.
#[test]
fn work_beside_the_queue_keeps_its_order() {
    const N: usize = 100_000;
    for gpu in all() {
        let kernel = add_kernel(&gpu);
        let (part, made) = (gpu.buffer::<u32>(N).unwrap(), gpu.upload(&vec![0_u32; N]).unwrap());
        let kept = [(); 2].map(|()| gpu.buffer::<u32>(N).unwrap());
        let sum = gpu.upload(&vec![0_u32; N]).unwrap();
        let graphs = kept.each_ref().map(|kept| {
            let mut main = Commands::new();
            main.launch(&kernel, kernel.covering(N, 1), Add { sum: &sum, part: kept, n: N as u32 }).unwrap();
            let mut side = Commands::new();
            side.launch(&kernel, kernel.covering(N, 1), Add { sum: &made, part: &part, n: N as u32 })
                .unwrap();
            side.copy((&made, 0), (kept, 0), N).unwrap();
            gpu.graphs_beside([main, side]).unwrap()
        });
        let mut free = [gpu.mark().unwrap(), gpu.mark().unwrap()];
        let (mut expected, mut expected_made) = (0_u32, 0_u32);
        for round in 0..10_usize {
            let mut pinned = gpu.pinned::<u32>(N).unwrap();
            numbers_mut(&mut pinned).fill(round as u32 + 1);
            let arrived = gpu.upload_beside(&pinned, &part, &free[(round + 1) % 2]).unwrap();
            let [main, side] = &graphs[round % 2];
            side.run_beside(&[arrived, free[round % 2].clone()]).unwrap();
            main.run().unwrap();
            free[round % 2] = gpu.mark().unwrap();
            expected_made = expected_made.wrapping_mul(3).wrapping_add(round as u32 + 1);
            expected = expected.wrapping_mul(3).wrapping_add(expected_made);
        }
        assert!(sum.to_vec().unwrap().iter().all(|&v| v == expected), "{gpu:?}: in order");
    }
}

#[test]
fn results_are_read_while_later_work_runs() {
    const N: usize = 100_000;
    for gpu in all() {
        let kernel = add_kernel(&gpu);
        let (sum, one) = (gpu.upload(&vec![0_u32; N]).unwrap(), gpu.upload(&vec![1_u32; N]).unwrap());
        let mut results = [gpu.pinned::<u32>(N).unwrap(), gpu.pinned(N).unwrap(), gpu.pinned(N).unwrap()];
        let mut marks = Vec::new();
        for result in &mut results {
            let mut commands = Commands::new();
            commands
                .launch(&kernel, kernel.covering(N, 1), Add { sum: &sum, part: &one, n: N as u32 })
                .unwrap();
            commands.download(&sum, result).unwrap();
            gpu.run(&commands).unwrap();
            marks.push(gpu.mark().unwrap());
        }
        for (round, (result, mark)) in results.iter().zip(&marks).enumerate() {
            let expected = [1, 4, 13][round];
            assert!(
                numbers_at(result, mark, 0..N).unwrap().iter().all(|&v| v == expected),
                "{gpu:?}: {round}"
            );
        }
    }
}

#[test]
fn results_travel_beside_later_work() {
    const N: usize = 100_000;
    for gpu in all() {
        let kernel = add_kernel(&gpu);
        let (sum, one) = (gpu.upload(&vec![0_u32; N]).unwrap(), gpu.upload(&vec![1_u32; N]).unwrap());
        let mut results = [gpu.pinned::<u32>(N).unwrap(), gpu.pinned(N).unwrap(), gpu.pinned(N).unwrap()];
        let mut sent = Vec::new();
        for (round, result) in results.iter_mut().enumerate() {
            let mut add = Commands::new();
            add.launch(&kernel, kernel.covering(N, 1), Add { sum: &sum, part: &one, n: N as u32 }).unwrap();
            gpu.run(&add).unwrap();
            assert!(gpu.download_beside(add).is_err(), "{gpu:?}: a kernel is no download");
            let mut read = Commands::new();
            read.download(&sum, result).unwrap();
            sent.push(gpu.download_beside(read).unwrap());
            // The next round writes what this one reads.
            sent[round].hold().unwrap();
        }
        for (round, (result, sent)) in results.iter().zip(&sent).enumerate() {
            let expected = [1, 4, 13][round];
            let found = numbers_at(result, sent.done(), 7..N).unwrap();
            assert_eq!(found.len(), N - 7);
            assert!(found.iter().all(|&v| v == expected), "{gpu:?}: {round}");
            assert!(numbers_at(result, sent.done(), 7..N + 1).is_err(), "beyond the end");
        }
    }
}

#[test]
fn stages_are_timed() {
    for gpu in all() {
        let kernel = count_kernel(&gpu);
        let (total, most) = (gpu.upload(&[0_u32]).unwrap(), gpu.upload(&[0_u32]).unwrap());
        let mut commands = Commands::new();
        for name in ["first", "second"] {
            commands.stage(name);
            let arguments = Count::new(&total, &most, 2000, 2000);
            commands.launch(&kernel, kernel.covering(2000, 2000), arguments).unwrap();
        }
        // Mesa 22.3 has no clock: it answers 0 for every event.
        let has_clock = !gpu.info().name.starts_with("llvmpipe");
        gpu.profile(true);
        gpu.run(&commands).unwrap();
        gpu.graph(commands.clone()).unwrap().run().unwrap();
        let stages = gpu.take_stages();
        for name in ["first", "second"] {
            let stage = stages.iter().find(|s| s.name == name).expect("was run");
            assert!(stage.calls == 2 && (stage.seconds > 0.0) == has_clock, "{gpu:?}: {stage:?}");
        }
        gpu.profile(false);
        assert_eq!(gpu.seconds(|| gpu.run(&commands)).unwrap() > 0.0, has_clock, "{gpu:?}: some time");
        assert!(gpu.take_stages().is_empty(), "no longer profiled");
    }
}

kernel_struct! {
    struct Rows {
        step: u64,
        scale: f32,
        pair: [i32; 2],
    }
}

kernel! {
    unsafe kernel spread(groups) = Spread {
        write to: i32 as i32x2 [2 * n],
        write counter: u32 [1],
        shared word: u32 [1],
    } {
        byte: u32,
        rows: Rows,
        m: [f32; 9],
        n: i32,
        more: Rows,
    }
}

const SPREAD: &str = "
FUNCTION i32 second(Rows rows) { return rows.pair[1] + (i32)rows.scale; }
KERNEL(spread) {
    i32 i = GROUP_X * 32 + LANE_X;
    if (i >= args.n) return;
    ATOMIC_ADD(counter, 1u);
    if (i == 7) word[0] = 77u;
    to[i].x = (i32)args.m[0] + (i32)args.m[8] + (i32)args.byte + args.rows.pair[0] + (i32)(args.more.step - args.rows.step);
    to[i].y = second(args.rows) * 100 + second(args.more);
}";

/// Members of every size, arrays and structs lie in a kernel where Rust put them.
#[test]
fn blocks_of_values_have_one_layout() {
    for gpu in all() {
        let source =
            KernelSource::new("spread").structure::<Rows>().kernel::<Spread<'_>>([32, 1]).text(SPREAD);
        let kernel = gpu.program(&source).unwrap().kernel::<Spread<'_>>().unwrap();
        let (to, counter) = (gpu.buffer::<i32>(80).unwrap(), gpu.upload(&[0_u32]).unwrap());
        let word = gpu.upload(&[0_u32]).unwrap();
        let mut commands = Commands::new();
        let arguments = Spread {
            to: &to,
            counter: &counter,
            word: &word,
            byte: 1000,
            rows: Rows { step: 5_000_000_000, scale: 3.5, pair: [20_000, 4] },
            m: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            n: 40,
            more: Rows { step: 5_000_300_000, scale: 1.0, pair: [0, 7] },
        };
        commands.launch(&kernel, kernel.covering(40, 1), arguments).unwrap();
        gpu.run(&commands).unwrap();
        let expected = (0..40).flat_map(|_| [1 + 9 + 1000 + 20_000 + 300_000, 7 * 100 + 8]);
        assert!(to.to_vec().unwrap().into_iter().eq(expected), "{gpu:?}: {:?}", to.to_vec().unwrap());
        assert_eq!([counter.to_vec().unwrap(), word.to_vec().unwrap()], [[40], [77]], "{gpu:?}");
    }
}

/// What another `Gpu::open` made is refused wherever it is named: the same number may be another device's memory.
#[test]
fn what_another_device_made_is_refused() {
    for gpu in all() {
        let other = Gpu::open(gpu.info().api, gpu.info().index).unwrap();
        let (kernel, foreign_kernel) = (add_kernel(&gpu), add_kernel(&other));
        let [own, part, foreign] = [&gpu, &gpu, &other].map(|gpu| gpu.upload(&[1_u32; 64]).unwrap());
        let refused = |result: Result<(), Error>| match result {
            Err(Error::Usage(message)) => assert!(message.contains("made them"), "{message}"),
            unexpected => panic!("{gpu:?}: {unexpected:?}"),
        };
        let add = |sum, part| Add { sum, part, n: 64 };
        refused(Commands::new().launch(&kernel, [1, 1, 1], add(&own, &foreign)));
        refused(Commands::new().launch(&foreign_kernel, [1, 1, 1], add(&own, &part)));
        let mut commands = Commands::new();
        commands.launch(&kernel, [1, 1, 1], add(&own, &part)).unwrap();
        refused(commands.zero(&foreign));
        refused(commands.copy((&own, 0), (&foreign, 0), 64));
        let (pinned, mut foreign_pinned) = (gpu.pinned::<u32>(64).unwrap(), other.pinned::<u32>(64).unwrap());
        refused(commands.upload(&foreign_pinned, &own));
        refused(commands.download(&own, &mut foreign_pinned));
        let mut foreign_commands = Commands::new();
        foreign_commands.zero(&foreign).unwrap();
        refused(commands.append(foreign_commands.clone()));
        refused(gpu.run(&foreign_commands));
        refused(gpu.graph(foreign_commands).map(drop));
        let mark = other.mark().unwrap();
        refused(gpu.wait(&mark));
        refused(gpu.upload_beside(&pinned, &own, &mark).map(drop));
        refused(other.upload_beside(&pinned, &own, &mark).map(drop));
        refused(numbers_at(&pinned, &mark, 0..1).map(drop));
        let mut read = Commands::new();
        read.download(&foreign, &mut foreign_pinned).unwrap();
        refused(gpu.download_beside(read).map(drop));
        gpu.run(&commands).unwrap();
        assert_eq!(own.to_vec().unwrap(), [4; 64], "{gpu:?}: what was refused left nothing behind");
    }
}

#[test]
fn short_and_shared_buffers_are_refused() {
    for gpu in all() {
        let (kernel, mut commands) = (add_kernel(&gpu), Commands::new());
        let [sum, part] = [64, 63].map(|n| gpu.upload(&vec![1_u32; n]).unwrap());
        let wrong = commands.launch(&kernel, [1, 1, 1], Add { sum: &sum, part: &part, n: 64 });
        let message = wrong.unwrap_err().to_string();
        assert!(["add", "`part`", "63", "64"].iter().all(|word| message.contains(word)), "{message}");
        let message = commands.launch(&kernel, [1, 1, 1], Add { sum: &sum, part: &sum, n: 64 });
        let message = message.unwrap_err().to_string();
        assert!(message.contains("`part` is written"), "{message}");
        commands.launch(&kernel, [1, 1, 1], Add { sum: &sum, part: &part, n: 63 }).unwrap();
        assert_eq!(commands.launches(), 1, "{gpu:?}: the last");
    }
}

kernel! {
    unsafe kernel turns(groups) = Turns {
        write sums: u32 [64 * groups[0]],
        /// The first turn of each group, and the one after its last.
        read spans: u32 [2 * groups[0]],
    } {}
}

const TURNS: &str = "
KERNEL(turns) {
    LOCAL u32 staged[256];
    u32 lane = (u32)LANE_X, begin = spans[2 * GROUP_X], end = spans[2 * GROUP_X + 1];
    GLOBAL u32 *own = sums + 64 * GROUP_X + lane;
    if (begin == end) {
        own[0] = lane;
        return;
    }
    u32 held[4];
    for (u32 i = 0; i < 4; i++) held[i] = lane * 4 + i;
    u32 turn = begin;
    do {
        BARRIER();
        for (u32 i = 0; i < 4; i++) staged[lane * 4 + i] = turn + lane;
        BARRIER();
        for (u32 i = 0; i < 4; i++) held[i] += staged[(63 - lane) * 4 + i];
    } while (++turn < end);
    own[0] = 0;
    for (u32 part = 0; part < 2; part++) {
        BARRIER();
        for (u32 i = 0; i < 2; i++) staged[lane * 2 + i] = held[part * 2 + i];
        BARRIER();
        for (u32 i = 0; i < 4; i++) own[0] += staged[(lane * 2 + i) % 128];
    }
}";

/// What every lane holds outlasts barriers in loops of each group's own length. PoCL 5.0 compiles a kernel otherwise
/// each time, and groups that skip such a loop wrongly in one of fifteen: see the dialect, which this kernel keeps to.
#[test]
fn lanes_keep_what_they_hold_over_loops_with_barriers() {
    let spans = [[0, 3], [0, 0], [2, 2], [5, 6], [7, 7], [1, 4]];
    let held = |[begin, end]: [u32; 2], lane: u32, i: u32| {
        lane * 4 + i + (begin..end).map(|turn| turn + 63 - lane).sum::<u32>()
    };
    let sum = |span: [u32; 2], lane: u32| {
        let staged = |part: u32, at: u32| held(span, at / 2, part * 2 + at % 2);
        let parts = (0..2).flat_map(|part| (0..4).map(move |i| staged(part, (lane * 2 + i) % 128)));
        if span[0] == span[1] { lane } else { parts.sum() }
    };
    let expected: Vec<u32> = spans.iter().flat_map(|&s| (0..64).map(move |lane| sum(s, lane))).collect();
    for gpu in all() {
        for compilation in 0..12 {
            let source = KernelSource::new("turns").define("COMPILATION", compilation);
            let source = source.kernel::<Turns<'_>>([64, 1]).text(TURNS);
            let kernel = gpu.program(&source).unwrap().kernel::<Turns<'_>>().unwrap();
            let (sums, on_device) =
                (gpu.buffer(64 * spans.len()).unwrap(), gpu.upload(spans.as_flattened()).unwrap());
            let mut commands = Commands::new();
            commands.launch(&kernel, [spans.len(), 1, 1], Turns { sums: &sums, spans: &on_device }).unwrap();
            gpu.run(&commands).unwrap();
            assert_eq!(sums.to_vec().unwrap(), expected, "{gpu:?}: compilation {compilation}");
        }
    }
}

kernel! {
    unsafe kernel broken(groups) = Broken {
        write a: f32 [1],
    } {}
}

#[test]
fn errors_say_what_was_wrong() {
    for gpu in all() {
        let api = gpu.info().api;
        let broken = gpu.program(
            &KernelSource::new("broken")
                .kernel::<Broken<'_>>([1, 1])
                .text("KERNEL(broken) { a[0] = nonsense; }"),
        );
        let message = broken.unwrap_err().to_string();
        assert!(message.contains("broken") && message.contains("nonsense"), "the compiler's log: {message}");

        let declared = KernelSource::new("count").kernel::<Count<'_>>([32, 4]);
        let program = gpu.program(&declared.clone().text(COUNT)).unwrap();
        let message = program.kernel::<Add<'_>>().unwrap_err().to_string();
        assert!(message.contains("count declares no kernel add"), "{message}");
        let program = gpu.program(&declared.kernel::<Broken<'_>>([1, 1]).text(COUNT)).unwrap();
        let message = program.kernel::<Broken<'_>>().unwrap_err().to_string();
        assert!(message.contains("broken"), "names the kernel that the text lacks: {message}");
        let (kernel, mut commands) = (program.kernel::<Count<'_>>().unwrap(), Commands::new());
        let [total, most] = [(); 2].map(|()| gpu.upload(&[0_u32]).unwrap());
        let result = commands.launch(&kernel, [1, 70_000, 1], Count::new(&total, &most, 1, 1));
        assert!(result.unwrap_err().to_string().contains("too many"), "too many groups");

        let far = Gpu::open(api, 4_000).unwrap_err().to_string();
        assert!(far.contains(&format!("{api}:4000")) && far.contains("number"), "{far}");
        let memory = gpu.info().memory as usize;
        match gpu.buffer::<f32>(memory).unwrap_err() {
            Error::Memory { asked, .. } => assert!(asked >= memory as u64 * 4, "{asked}"),
            other => panic!("{other}"),
        }
        let after = gpu.upload(&[1_u8, 2, 3]).unwrap();
        assert_eq!(after.to_vec().unwrap(), [1, 2, 3], "{gpu:?}: works on after an error");
    }
}
