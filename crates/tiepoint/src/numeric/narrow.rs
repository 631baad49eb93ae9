//! Floats of fewer bits than 32, as files hold them.

/// A 16-bit float of IEEE 754: 5 bits of exponent, 10 of mantissa.
pub(crate) fn half(bits: u16) -> f32 {
    widened(u32::from(bits), 5, 10)
}

/// Adobe's 24-bit float: 7 bits of exponent, 16 of mantissa.
pub(crate) fn float_24(bits: u32) -> f32 {
    widened(bits, 7, 16)
}

/// A narrow float (sign, then `exponent` and `mantissa` bits) as an f32, which holds it exactly.
fn widened(bits: u32, exponent: u32, mantissa: u32) -> f32 {
    let sign = bits >> (exponent + mantissa) << 31;
    let most = (1 << exponent) - 1;
    let (e, m) = (bits >> mantissa & most, bits & ((1 << mantissa) - 1));
    let bias = most / 2;
    if e == most {
        return f32::from_bits(sign | 0x7f80_0000 | m << (23 - mantissa));
    }
    if e == 0 {
        // m · 2^(1 − bias − mantissa), in two steps that are both exact.
        let unit = f32::from_bits((127 + 1 - bias) << 23) * f32::from_bits((127 - mantissa) << 23);
        return f32::from_bits(sign | (m as f32 * unit).to_bits());
    }
    f32::from_bits(sign | (e + 127 - bias) << 23 | m << (23 - mantissa))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_16_bits() {
        let values = [
            (0, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (1, 1.0 / 16_777_216.0),
            (0x7bff, 65504.0),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (bits, expected) in values {
            assert_eq!(half(bits), expected, "{bits:#x}");
        }
        assert!(half(0x7e00).is_nan(), "not a number");
    }
}
