//! Tests whether a device computes f32 by IEEE 754, if its driver does not promise it.
//!
//! Mesa's rusticl promises neither denormals nor correctly rounded division, but has both. A trial proves nothing about
//! other values, but no device is known that rounds wrongly or drops denormals only sometimes. It is fast enough to run
//! whenever a device is opened. The test `arithmetic_has_the_bits_of_rust` compares all macros of the dialect with
//! Rust's bits on more values, and also tests that nothing is fused unless written so, and constants from Rust.

#![expect(unsafe_code, reason = "the kernel's promise, see its declaration")]

use crate::{Commands, Error, Gpu, KernelSource, Result};

/// Results of a triple of numbers.
const OPERATIONS: usize = 5;
/// Triples.
const COUNT: usize = 1 << 14;

crate::kernel! {
    /// A result of every operation for each of `n` triples of numbers.
    unsafe kernel ieee(groups) = Ieee {
        write out: f32 [OPERATIONS as i128 * n],
        read a: f32 [n],
        read b: f32 [n],
        read c: f32 [n],
    } {
        n: i32,
    }
}

const KERNEL: &str = "
KERNEL(ieee) {
    i32 i = GROUP_X * 64 + LANE_X;
    if (i >= args.n) return;
    out[OPERATIONS * i] = a[i] + b[i];
    out[OPERATIONS * i + 1] = a[i] * b[i];
    out[OPERATIONS * i + 2] = a[i] / b[i];
    out[OPERATIONS * i + 3] = SQRT(ABS(a[i]));
    out[OPERATIONS * i + 4] = FMA(a[i], b[i], c[i]);
}";

/// Fails if sum, product, quotient, root, or fused product and sum of numbers of any size differ from the CPU's.
pub(crate) fn check(gpu: &Gpu) -> Result<()> {
    let source = KernelSource::new("ieee").define("OPERATIONS", OPERATIONS);
    let source = source.kernel::<Ieee<'_>>([64, 1]).text(KERNEL);
    let kernel = gpu.program(&source)?.kernel::<Ieee<'_>>()?;
    let [a, b, c] = [1, 2, 3].map(numbers);
    let (da, db, dc) = (gpu.upload(&a)?, gpu.upload(&b)?, gpu.upload(&c)?);
    let out = gpu.buffer::<f32>(OPERATIONS * COUNT)?;
    let mut commands = Commands::new();
    let arguments = Ieee { out: &out, a: &da, b: &db, c: &dc, n: COUNT as i32 };
    commands.launch(&kernel, kernel.covering(COUNT, 1), arguments)?;
    gpu.run(&commands)?;
    for (i, found) in out.to_vec()?.chunks_exact(OPERATIONS).enumerate() {
        let (a, b, c) = (a[i], b[i], c[i]);
        let expected = [a + b, a * b, a / b, a.abs().sqrt(), a.mul_add(b, c)];
        let names = ["sum", "product", "quotient", "root", "fused product and sum"];
        for ((found, expected), name) in found.iter().zip(expected).zip(names) {
            if found.to_bits() != expected.to_bits() && !(found.is_nan() && expected.is_nan()) {
                let info = gpu.info();
                return Err(Error::Driver {
                    api: info.api,
                    reason: format!(
                        "{} does not compute as IEEE 754 says (the {name} of {a:e}, {b:e}, {c:e} is {found:e}, not \
                         {expected:e}), so that its results would differ from the CPU's; use another device",
                        info.name
                    ),
                });
            }
        }
    }
    Ok(())
}

/// In turn: any bits; denormals and the least normal numbers; numbers near 1; numbers whose products are denormal.
fn numbers(seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    let mut number = |i: usize| {
        let bits = next() << 16 | next();
        match i % 4 {
            0 => f32::from_bits(bits),
            1 => f32::from_bits(bits & 0x80ff_ffff),
            2 => f32::from_bits(bits & 0x83ff_ffff | 0x3c00_0000),
            _ => f32::from_bits(bits & 0x87ff_ffff | 0x1c00_0000),
        }
    };
    (0..COUNT).map(&mut number).collect()
}
