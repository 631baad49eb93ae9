//! Pseudorandom numbers that are the same on every machine.

/// A small generator (`SplitMix64`: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014)
/// and the hash of lattice points built on its finaliser.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers follow from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator of one lattice point.
    pub(crate) fn at(seed: u64, layer: u64, x: i64, y: i64) -> Self {
        let row = finish(seed ^ finish(layer.wrapping_add(0x51_7c_c1_b7) ^ (y as u64)));
        Self(finish(row ^ (x as u64)))
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        finish(self.0)
    }

    /// A whole number below `n`; 0 when `n` is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// A number in \[0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A number in \[`low`, `high`).
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        self.unit().mul_add(high - low, low)
    }

    /// A number with mean 0 and standard deviation 1: the sum of four uniform numbers, which is close to normal and
    /// lies within ±3.46.
    pub fn normal(&mut self) -> f64 {
        let bits = self.bits();
        let sum: u64 = (0..4).map(|i| bits >> (16 * i) & 0xffff).sum();
        (sum as f64 * (1.0 / 65536.0) - (2.0 - 2.0 / 65536.0)) * 3_f64.sqrt()
    }

    /// The cosine and sine of a random direction, without these functions: from the rational parametrisation of a
    /// quarter of the circle, turned by a random multiple of 90°.
    pub(crate) fn direction(&mut self) -> [f64; 2] {
        let t = self.range(-0.414_213_562, 0.414_213_562);
        let (c, s) = ((1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t));
        match self.bits() >> 62 {
            0 => [c, s],
            1 => [-s, c],
            2 => [-c, -s],
            _ => [s, -c],
        }
    }
}

/// The finaliser of `SplitMix64`: every output bit depends on every input bit.
pub(crate) const fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let mut random = Random::new(1);
        let n = 200_000;
        let values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let variance = values.iter().map(|v| v * v).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.01, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.01, "variance {variance}");
        let unit = (0..n).map(|_| random.unit()).sum::<f64>() / f64::from(n);
        assert!((unit - 0.5).abs() < 0.005, "mean of the unit interval {unit}");
    }

    #[test]
    fn directions_fill_the_circle() {
        let mut random = Random::new(2);
        let mut octants = [0; 8];
        for _ in 0..8000 {
            let [c, s] = random.direction();
            assert!((c * c + s * s - 1.0).abs() < 1e-12, "unit length");
            octants[(s.atan2(c).rem_euclid(std::f64::consts::TAU) / std::f64::consts::FRAC_PI_4) as usize
                % 8] += 1;
        }
        assert!(octants.iter().all(|n| (850..1150).contains(n)), "evenly: {octants:?}");
    }
}
