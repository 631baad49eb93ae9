//! SIFT as in the paper, on whole images and one value at a time: the reference of the streamed form, with
//! which it shares only the taps, the elementary functions, the options and the type of a point.

use super::refine::Point;
use super::scale_space::gaussian_taps;
use super::{SiftOptions, SiftPreset};
use crate::device::Cpu;
use crate::feature::DescriptorKind;
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::{Border, Image, ImageView, Pixel, Size};
use crate::numeric::{atan2, exp, exp_f64, sin_cos};
use std::f32::consts::{LN_2, SQRT_2, TAU};

const FIXED: f32 = 2_097_152.0;

fn fixed(v: f32) -> i64 {
    v.round_ties_even() as i64
}

pub(super) fn detect<T: Pixel>(image: ImageView<'_, T>, options: &SiftOptions) -> Features {
    let octaves = octaves(image, options);
    let points = octaves.iter().flat_map(|o| o.points().into_iter().map(move |p| (o, p)));
    let mut found: Vec<_> = points.flat_map(|(octave, point)| octave.features(&point)).collect();
    // Features in their order, selected, with descriptors in the form that is asked for.
    found.sort_by(|a, b| a.0.order(&b.0));
    let keypoints = found.iter().map(|f| f.0).collect();
    let values = found.iter().flat_map(|f| f.1);
    let (descriptors, dimension) = match options.descriptors {
        DescriptorKind::F32 => (Descriptors::F32(values.collect()), 128),
        DescriptorKind::U8 => {
            (Descriptors::U8(values.map(|v| (v * 512.0).round_ties_even().min(255.0) as u8).collect()), 128)
        }
        DescriptorKind::None => (Descriptors::U8(Vec::new()), 0),
    };
    let all = Features { keypoints, descriptors, dimension, image: image.size() };
    options.selection.of(&all, &Cpu::sequential())
}

/// The octaves, finest first.
pub(super) fn octaves<'o, T: Pixel>(image: ImageView<'_, T>, options: &'o SiftOptions) -> Vec<Octave<'o>> {
    let mut base = base(image, options);
    let mut octaves = Vec::new();
    let levels = usize::from(options.levels);
    for number in options.first_octave.. {
        let size = base.size();
        let room = size.width.min(size.height) > 2 * options.border();
        if !octaves.is_empty() && !room || octaves.len() >= usize::from(options.octaves.unwrap_or(u8::MAX)) {
            break;
        }
        let octave = Octave::new(base, number, options);
        let half = Size::new(size.width / 2, size.height / 2);
        base = Image::from_fn(half, |x, y| octave.gaussians[levels].row(2 * y)[2 * x]);
        octaves.push(octave);
    }
    octaves
}

fn border(options: &SiftOptions) -> Border {
    if options.preset == SiftPreset::VlFeat { Border::Clamp } else { Border::Reflect }
}

fn base<T: Pixel>(image: ImageView<'_, T>, options: &SiftOptions) -> Image<f32> {
    let unit = Image::from_fn(image.size(), |x, y| image.row(y)[x].unit());
    let (source, has) = match options.first_octave {
        0 => (unit, options.input_sigma),
        _ => (doubled(&unit, options.preset), 2.0 * options.input_sigma),
    };
    let (has, sigma) = (f64::from(has), f64::from(options.sigma));
    blur(&source, &gaussian_taps((sigma * sigma - has * has).max(0.01).sqrt()), border(options))
}

fn doubled(image: &Image<f32>, preset: SiftPreset) -> Image<f32> {
    let Size { width, height } = image.size();
    let size = Size::new(2 * width, 2 * height);
    // The two pixels that a position lies between, along one axis.
    let between = |i: usize, n: usize| match (preset, i % 2) {
        (SiftPreset::OpenCv, 0) => (i / 2, (i / 2).saturating_sub(1)),
        (SiftPreset::OpenCv, _) => (i / 2, (i / 2 + 1).min(n - 1)),
        (SiftPreset::Default | SiftPreset::VlFeat, _) => (i / 2, i.div_ceil(2).min(n - 1)),
    };
    let mix = |a: f32, b: f32| if preset == SiftPreset::OpenCv { a * 0.75 + b * 0.25 } else { (a + b) * 0.5 };
    let rows = Image::from_fn(Size::new(width, 2 * height), |x, y| {
        let (a, b) = between(y, height);
        mix(image.row(a)[x], image.row(b)[x])
    });
    Image::from_fn(size, |x, y| {
        let (a, b) = between(x, width);
        mix(rows.row(y)[a], rows.row(y)[b])
    })
}

fn blur(image: &Image<f32>, taps: &[f32], border: Border) -> Image<f32> {
    let Size { width, height } = image.size();
    let pass = |image: &Image<f32>, dx: isize, dy: isize| {
        Image::from_fn(image.size(), |x, y| {
            let at = |k: isize| {
                let x = border.index(x as isize + k * dx, width).unwrap();
                let y = border.index(y as isize + k * dy, height).unwrap();
                image.row(y)[x]
            };
            let mut sum = taps[0] * at(0);
            for (k, tap) in (0..).zip(taps).skip(1) {
                sum = tap.mul_add(at(-k) + at(k), sum);
            }
            sum
        })
    };
    pass(&pass(image, 0, 1), 1, 0)
}

pub(super) struct Octave<'o> {
    pub(super) number: i8,
    pub(super) gaussians: Vec<Image<f32>>,
    options: &'o SiftOptions,
}

type Position = [isize; 3];

impl<'o> Octave<'o> {
    fn new(base: Image<f32>, number: i8, options: &'o SiftOptions) -> Self {
        let levels = usize::from(options.levels);
        let sigma =
            |k: usize| f64::from(options.sigma) * exp_f64(std::f64::consts::LN_2 * k as f64 / levels as f64);
        let mut gaussians = vec![base];
        for k in 1..levels + 3 {
            let step = (sigma(k).powi(2) - sigma(k - 1).powi(2)).max(0.01).sqrt();
            gaussians.push(blur(&gaussians[k - 1], &gaussian_taps(step), border(options)));
        }
        Self { number, gaussians, options }
    }

    fn points(&self) -> Vec<Point> {
        self.extrema().into_iter().filter_map(|c| self.refine(c)).collect()
    }

    /// The keypoints and descriptors of a point, one for each direction.
    fn features(&self, point: &Point) -> Vec<(Keypoint, [f32; 128])> {
        let angles = self.orientations(point).into_iter();
        angles.map(|angle| (Keypoint { angle, ..point.keypoint }, self.describe(point, angle))).collect()
    }

    fn dog(&self, [x, y, layer]: Position) -> f32 {
        let at = |l: isize| self.gaussians[l as usize].row(y as usize)[x as usize];
        at(layer + 1) - at(layer)
    }

    /// Positions (x, y, layer) of the extrema among 26 neighbours.
    fn extrema(&self) -> Vec<Position> {
        let mut found = Vec::new();
        let Size { width, height } = self.gaussians[0].size();
        let border = self.options.border() as isize;
        for y in border..height as isize - border {
            for x in border..width as isize - border {
                for layer in 1..=self.options.levels as isize {
                    let value = self.dog([x, y, layer]);
                    let beats = |at: Position| {
                        let (own, other) =
                            if value < 0.0 { (-value, -self.dog(at)) } else { (value, self.dog(at)) };
                        let before = (at[2], at[1], at[0]) < (layer, y, x);
                        at == [x, y, layer] || own > other || own == other && !before
                    };
                    let around = (0..27).map(|i| [x + i % 3 - 1, y + i / 3 % 3 - 1, layer + i / 9 - 1]);
                    if value.abs() >= self.options.least_candidate() && around.into_iter().all(beats) {
                        found.push([x, y, layer]);
                    }
                }
            }
        }
        found
    }

    fn refine(&self, mut at: Position) -> Option<Point> {
        let o = self.options;
        let vlfeat = o.preset == SiftPreset::VlFeat;
        let Size { width, height } = self.gaussians[0].size();
        let border = o.border() as isize;
        let inside = |[x, y, l]: Position| {
            (border..width as isize - border).contains(&x)
                && (border..height as isize - border).contains(&y)
                && (1..=o.levels as isize).contains(&l)
        };
        for step in 1..=5 {
            let d = |x: isize, y: isize, l: isize| self.dog([at[0] + x, at[1] + y, at[2] + l]);
            let value = d(0, 0, 0);
            let g = [
                (d(1, 0, 0) - d(-1, 0, 0)) * 0.5,
                (d(0, 1, 0) - d(0, -1, 0)) * 0.5,
                (d(0, 0, 1) - d(0, 0, -1)) * 0.5,
            ];
            let xx = (d(1, 0, 0) + d(-1, 0, 0)) - value * 2.0;
            let yy = (d(0, 1, 0) + d(0, -1, 0)) - value * 2.0;
            let ss = (d(0, 0, 1) + d(0, 0, -1)) - value * 2.0;
            let xy = ((d(1, 1, 0) - d(-1, 1, 0)) - (d(1, -1, 0) - d(-1, -1, 0))) * 0.25;
            let xs = ((d(1, 0, 1) - d(-1, 0, 1)) - (d(1, 0, -1) - d(-1, 0, -1))) * 0.25;
            let ys = ((d(0, 1, 1) - d(0, -1, 1)) - (d(0, 1, -1) - d(0, -1, -1))) * 0.25;
            // The adjugate of [xx xy xs; xy yy ys; xs ys ss].
            let adjugate = [
                [yy * ss - ys * ys, xs * ys - xy * ss, xy * ys - xs * yy],
                [xs * ys - xy * ss, xx * ss - xs * xs, xy * xs - xx * ys],
                [xy * ys - xs * yy, xy * xs - xx * ys, xx * yy - xy * xy],
            ];
            let det = (xx * adjugate[0][0] + xy * adjugate[0][1]) + xs * adjugate[0][2];
            let x = adjugate.map(|row| -(((row[0] * g[0] + row[1] * g[1]) + row[2] * g[2]) / det));
            if x.iter().any(|v| !v.is_finite()) {
                return None;
            }
            let limit = o.settled_below();
            let mut by = x.map(|v| {
                if v >= limit {
                    1
                } else if v <= -limit {
                    -1
                } else {
                    0
                }
            });
            if vlfeat {
                by[2] = 0;
            }
            let mut next = [at[0] + by[0], at[1] + by[1], at[2] + by[2]];
            if !inside(next) {
                if !vlfeat {
                    return None;
                }
                next = at;
            }
            if next == at || vlfeat && step == 5 {
                if vlfeat && x.iter().any(|v| v.abs() >= 1.5) {
                    return None;
                }
                return self.accept(at, x, g, value, [xx, yy, xy]);
            }
            at = next;
        }
        None
    }

    fn accept(
        &self,
        at: Position,
        x: [f32; 3],
        g: [f32; 3],
        value: f32,
        [xx, yy, xy]: [f32; 3],
    ) -> Option<Point> {
        let o = self.options;
        let response = (value + ((g[0] * x[0] + g[1] * x[1]) + g[2] * x[2]) * 0.5).abs();
        let (trace, det) = (xx + yy, xx * yy - xy * xy);
        if response < o.least_contrast()
            || det <= 0.0
            || trace * trace * o.edge >= (o.edge + 1.0) * (o.edge + 1.0) * det
        {
            return None;
        }
        let pixel = 2_f32.powi(i32::from(self.number));
        let scale = o.sigma * exp((at[2] as f32 + x[2]) / f32::from(o.levels) * LN_2);
        let (px, py) = (at[0] as f32 + x[0], at[1] as f32 + x[1]);
        let keypoint = Keypoint {
            x: px * pixel,
            y: py * pixel,
            scale: scale * pixel,
            angle: 0.0,
            response,
            sign: if value < 0.0 { 1 } else { -1 },
            octave: self.number,
            layer: at[2] as u8,
        };
        Some(Point { keypoint, x: px, y: py, scale })
    }

    /// Calls `f(x, y, gx, gy)` for the pixels of a square window that have a gradient.
    fn gradients(&self, point: &Point, radius: isize, mut f: impl FnMut(f32, f32, f32, f32)) {
        let level = &self.gaussians[usize::from(point.keypoint.layer)];
        let Size { width, height } = level.size();
        let (cx, cy) = (point.x.round_ties_even() as isize, point.y.round_ties_even() as isize);
        let at = |x: isize, y: isize| level.row(y as usize)[x as usize];
        for y in (cy - radius).max(1)..=(cy + radius).min(height as isize - 2) {
            for x in (cx - radius).max(1)..=(cx + radius).min(width as isize - 2) {
                f(x as f32, y as f32, at(x + 1, y) - at(x - 1, y), at(x, y + 1) - at(x, y - 1));
            }
        }
    }

    fn orientations(&self, point: &Point) -> Vec<f32> {
        let vlfeat = self.options.preset == SiftPreset::VlFeat;
        if self.options.upright {
            return vec![0.0];
        }
        let sigma = 1.5 * point.scale;
        let exact = self.options.preset != SiftPreset::OpenCv;
        let (cx, cy) = match exact {
            true => (point.x, point.y),
            false => (point.x.round_ties_even(), point.y.round_ties_even()),
        };
        let mut histogram = [0_i64; 36];
        self.gradients(point, (3.0 * sigma).round_ties_even() as isize, |x, y, gx, gy| {
            let (dx, dy) = (x - cx, y - cy);
            let weight = exp(dx.mul_add(dx, dy * dy) * (-0.5 / (sigma * sigma)));
            let strength = gx.mul_add(gx, gy * gy).sqrt() * weight * FIXED;
            let bin = atan2(gy, gx) * (36.0 / TAU);
            if exact {
                let shifted = bin + 35.5;
                let first = (shifted - 0.5).round_ties_even();
                let second = fixed(strength * (shifted - first));
                histogram[first as usize % 36] += fixed(strength) - second;
                histogram[(first as usize + 1) % 36] += second;
            } else {
                histogram[bin.round_ties_even() as usize % 36] += fixed(strength);
            }
        });
        let passes = if vlfeat { vec![[0, 1, 1, 1, 0]; 6] } else { vec![[1, 4, 6, 4, 1]] };
        for kernel in passes {
            histogram =
                std::array::from_fn(|i| (0..5).map(|k| kernel[k] * histogram[(i + k + 34) % 36]).sum());
        }
        let most = *histogram.iter().max().unwrap();
        let mut angles = Vec::new();
        for i in 0..36 {
            let (left, own, right) = (histogram[(i + 35) % 36], histogram[i], histogram[(i + 1) % 36]);
            if own > left && own > right && own * 10 >= most * 8 {
                let offset = 0.5 * (left - right) as f32 / (left - 2 * own + right) as f32;
                let bin = i as f32 + offset + if exact { 0.5 } else { 0.0 };
                let angle = if bin < 0.0 { bin + 36.0 } else { bin } * (TAU / 36.0);
                angles.push(if angle >= TAU { 0.0 } else { angle });
            }
        }
        angles.truncate(if vlfeat { 4 } else { 36 });
        angles
    }

    pub(super) fn describe(&self, point: &Point, angle: f32) -> [f32; 128] {
        if !self.options.domain_size_pooling {
            return self.describe_domain(point, angle, self.options.root);
        }
        let sizes = [1.0, 1.5, 2.0];
        let each = sizes
            .map(|size| self.describe_domain(&Point { scale: point.scale * size, ..*point }, angle, false));
        let pooled: [f32; 128] = std::array::from_fn(|i| (each[0][i] + each[1][i]) + each[2][i]);
        if pooled.iter().all(|v| *v == 0.0) { pooled } else { normalised(pooled, self.options.root) }
    }

    /// The descriptor of one size of the window.
    fn describe_domain(&self, point: &Point, angle: f32, root: bool) -> [f32; 128] {
        let (cx, cy) = match self.options.preset {
            SiftPreset::OpenCv => (point.x.round_ties_even(), point.y.round_ties_even()),
            SiftPreset::Default | SiftPreset::VlFeat => (point.x, point.y),
        };
        let (sin, cos) = sin_cos(angle);
        let cell = 3.0 * point.scale;
        let (sin, cos) = (sin / cell, cos / cell);
        let radius = (cell * SQRT_2 * 5.0 * 0.5).round_ties_even() as isize + 1;
        // Beyond a scale of 24 a quarter for each doubling, so that the fast form's sums stay in the range of integers.
        let wide =
            std::iter::successors(Some(point.scale), |scale| Some(scale * 0.5)).take_while(|s| *s > 24.0);
        let unit = wide.fold(FIXED, |unit, _| unit * 0.25);
        let mut histogram = [[[0_i64; 8]; 6]; 6];
        self.gradients(point, radius, |x, y, gx, gy| {
            let (dx, dy) = (x - cx, y - cy);
            let u = cos.mul_add(dx, sin * dy);
            let v = cos.mul_add(dy, -(sin * dx));
            if u.abs() >= 2.5 || v.abs() >= 2.5 {
                return;
            }
            let weight = exp(u.mul_add(u, v * v) * -0.125);
            let strength = gx.mul_add(gx, gy * gy).sqrt() * weight * unit;
            let turned = (angle - atan2(gy, gx)) * (8.0 / TAU);
            let turned = if turned < 0.0 { turned + 8.0 } else { turned };
            let split = |v: f32| {
                let bin = (v - 0.5).round_ties_even().max(0.0);
                (bin as usize, v - bin)
            };
            let ((r, r1), (c, c1), (o, o1)) = (split(v + 2.5), split(u + 2.5), split(turned));
            let lower = strength * r1;
            for (r, strength) in [(r, strength - lower), (r + 1, lower)] {
                let right = strength * c1;
                for (c, strength) in [(c, strength - right), (c + 1, right)] {
                    let next = strength * o1;
                    // Beyond the last cell all weights are 0.
                    if r < 6 && c < 6 {
                        histogram[r][c][o % 8] += fixed(strength - next);
                        histogram[r][c][(o + 1) % 8] += fixed(next);
                    }
                }
            }
        });
        let raw: [f32; 128] = std::array::from_fn(|i| histogram[i / 32 + 1][i / 8 % 4 + 1][i % 8] as f32);
        let norm = sum(raw.map(|v| v * v)).sqrt();
        if norm == 0.0 {
            return [0.0; 128];
        }
        normalised(raw.map(|v| v.min(0.2 * norm)), root)
    }
}

/// A unit vector; for RootSIFT the roots of the shares of the sum.
fn normalised(values: [f32; 128], root: bool) -> [f32; 128] {
    if root {
        let total = sum(values);
        return values.map(|v| (v / total).sqrt());
    }
    let scale = 1.0 / sum(values.map(|v| v * v)).sqrt();
    values.map(|v| v * scale)
}

/// Sixteen sums of every sixteenth value, added in pairs.
fn sum(values: [f32; 128]) -> f32 {
    let mut sums: Vec<f32> = (0..16).map(|i| (0..8).fold(0.0, |sum, k| sum + values[16 * k + i])).collect();
    while sums.len() > 1 {
        let half = sums.len() / 2;
        sums = (0..half).map(|i| sums[i] + sums[i + half]).collect();
    }
    sums[0]
}
