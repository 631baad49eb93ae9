//! Kernels have the arithmetic, the exchange between lanes and the layout that the dialect states.

use super::{Count, all, count_kernel, run};
use tiepoint_gpu::{Commands, KernelSource, kernel, kernel_struct};

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

/// Every macro of the dialect, on which equal results rest. Opening a device tests only five operations (`ieee.rs`).
#[test]
fn arithmetic_has_the_bits_of_rust() {
    let table = [0.1_f32, 1.0e-3 / 7.0];
    for gpu in all() {
        for (n, spread) in [(1 << 18, 24), (1 << 16, 250)] {
            let [a, b, c] = [1, 2, 3].map(|s| floats(n, s, spread));
            let source = KernelSource::new("arithmetic").table_f32("TABLE", &table).define_f32("HALF", 0.5);
            let source = source.kernel::<Arithmetic<'_>>([64, 1]).text(ARITHMETIC);
            let out = gpu.buffer::<f32>(8 * n).unwrap();
            let [da, db, dc] = [&a, &b, &c].map(|v| gpu.upload(v).unwrap());
            let arguments = Arithmetic { out: &out, a: &da, b: &db, c: &dc, n: n as i32 };
            run(&gpu, &source, [n.div_ceil(64), 1, 1], arguments);
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
fn finite_numbers_are_distinguished_from_nan_and_infinity() {
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
            let bits = gpu.upload(&values.iter().map(|v| v.0).collect::<Vec<_>>()).unwrap();
            let out = gpu.buffer::<u32>(values.len()).unwrap();
            run(&gpu, &source, [1; 3], Finite { out: &out, bits: &bits, n: values.len() as i32 });
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

/// Arithmetic on words of two or four numbers and copies to local memory, for which some devices have instructions.
#[test]
fn packed_words_give_the_same_on_all_devices() {
    const N: usize = 64 * 64;
    let words = |seed: u32| -> Vec<u32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Halves below 2^15; one word in eight has equal or extreme halves.
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
        let out = gpu.buffer::<u32>(11 * N).unwrap();
        let [a, b, c] = [&a, &b, &c].map(|words| gpu.upload(words).unwrap());
        run(&gpu, &source, [N / 64, 1, 1], Words { out: &out, a: &a, b: &b, c: &c });
        let found = out.to_vec().unwrap();
        let wrong = found.iter().zip(&expected).position(|(f, e)| f != e);
        let wrong = wrong.map(|at| (at / 11, at % 11, found[at], expected[at]));
        assert_eq!(wrong, None, "{gpu:?}: word, operation, found, expected");
    }
}

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

/// Members of every size, arrays and structs have the same offsets in a kernel and in Rust.
#[test]
fn blocks_of_values_have_one_layout() {
    for gpu in all() {
        let source =
            KernelSource::new("spread").structure::<Rows>().kernel::<Spread<'_>>([32, 1]).text(SPREAD);
        let (to, counter) = (gpu.buffer::<i32>(80).unwrap(), gpu.upload(&[0_u32]).unwrap());
        let word = gpu.upload(&[0_u32]).unwrap();
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
        run(&gpu, &source, [2, 1, 1], arguments);
        let expected = (0..40).flat_map(|_| [1 + 9 + 1000 + 20_000 + 300_000, 7 * 100 + 8]);
        assert!(to.to_vec().unwrap().into_iter().eq(expected), "{gpu:?}: {:?}", to.to_vec().unwrap());
        assert_eq!([counter.to_vec().unwrap(), word.to_vec().unwrap()], [[40], [77]], "{gpu:?}");
    }
}

kernel! {
    unsafe kernel turns(groups) = Turns {
        write sums: u32 [64 * groups[0]],
        /// The first turn of each group and the turn after its last.
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

/// Private variables of lanes survive barriers in loops whose length differs from group to group. PoCL 5.0 compiles a
/// kernel differently each time, and wrongly in one of fifteen if groups skip such a loop; this kernel follows the rule
/// that the dialect states against it.
#[test]
fn lanes_keep_private_variables_over_loops_with_barriers() {
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
            let (sums, on_device) =
                (gpu.buffer(64 * spans.len()).unwrap(), gpu.upload(spans.as_flattened()).unwrap());
            run(&gpu, &source, [spans.len(), 1, 1], Turns { sums: &sums, spans: &on_device });
            assert_eq!(sums.to_vec().unwrap(), expected, "{gpu:?}: compilation {compilation}");
        }
    }
}
