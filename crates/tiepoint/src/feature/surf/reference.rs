//! SURF written to be read alongside its sources: on the whole image, one sample, window and value at a time.
//! The order of its f32 operations is the contract that the fast form keeps.

use super::{SurfOptions, SurfPreset};
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::{ImageView, Pixel, Size};
use crate::numeric;
use std::f32::consts::TAU;

/// An integral image, from which boxes and wavelets are computed one by one.
struct Sums {
    total: Vec<i128>,
    size: Size,
    white: f32,
}

impl Sums {
    fn new<T: Pixel>(view: ImageView<'_, T>) -> Self {
        let size = view.size();
        let stride = size.width + 1;
        let mut total = vec![0; stride * (size.height + 1)];
        for y in 0..size.height {
            let mut row = 0;
            for x in 0..size.width {
                row += i128::from(view.row(y)[x].level());
                total[(y + 1) * stride + x + 1] = total[y * stride + x + 1] + row;
            }
        }
        Self { total, size, white: if T::WHITE == 255.0 { 255.0 } else { 65535.0 } }
    }

    fn contains(&self, x: i64, y: i64, width: i64, height: i64) -> bool {
        x >= 0 && y >= 0 && x + width <= self.size.width as i64 && y + height <= self.size.height as i64
    }

    /// The sum over a box, which lies inside the image.
    fn area(&self, x: i64, y: i64, width: i64, height: i64) -> i64 {
        let at = |x: i64, y: i64| self.total[y as usize * (self.size.width + 1) + x as usize];
        (at(x + width, y + height) - at(x, y + height) - at(x + width, y) + at(x, y)) as i64
    }

    /// The wavelets about the corner (x, y): right minus left, lower minus upper.
    fn haar(&self, x: i64, y: i64, h: i64) -> (i64, i64) {
        if !self.contains(x - h, y - h, 2 * h, 2 * h) {
            return (0, 0);
        }
        let (left, right) = (self.area(x - h, y - h, h, 2 * h), self.area(x, y - h, h, 2 * h));
        let (upper, lower) = (self.area(x - h, y - h, 2 * h, h), self.area(x - h, y, 2 * h, h));
        (right - left, lower - upper)
    }
}

fn size_of_filter(options: &SurfOptions, o: usize, i: usize) -> i64 {
    match options.preset {
        SurfPreset::Paper | SurfPreset::OpenSurf => 3 * ((1 << (o + 1)) * (i as i64 + 1) + 1),
        SurfPreset::OpenCv => (9 + 6 * i as i64) << o,
    }
}

/// The signed response at the pixel (x, y); `None` where the filter leaves the image.
fn response(sums: &Sums, options: &SurfOptions, o: usize, i: usize, x: i64, y: i64) -> Option<f32> {
    let w = size_of_filter(options, o, i);
    let (xx, yy, xy, norm, norm_xy);
    if options.preset == SurfPreset::OpenCv {
        let step = (options.step_of(o)) as i64;
        let (left, top) = (x - w / 2 / step * step, y - w / 2 / step * step);
        if !sums.contains(left, top, w, w) {
            return None;
        }
        // The 9×9 patterns of OpenCV: corners (x1, y1), (x2, y2), and weight.
        let pattern = |boxes: &[[i64; 5]]| {
            let r = |v: i64| (v as f64 * w as f64 / 9.0).round() as i64;
            let mut sum = 0;
            for &[x1, y1, x2, y2, weight] in boxes {
                sum += weight * sums.area(left + r(x1), top + r(y1), r(x2) - r(x1), r(y2) - r(y1));
            }
            (sum, ((r(boxes[0][2]) - r(boxes[0][0])) * (r(boxes[0][3]) - r(boxes[0][1]))) as f64)
        };
        let (area, area_xy);
        (xx, area) = pattern(&[[0, 2, 3, 7, 1], [3, 2, 6, 7, -2], [6, 2, 9, 7, 1]]);
        (yy, _) = pattern(&[[2, 0, 7, 3, 1], [2, 3, 7, 6, -2], [2, 6, 7, 9, 1]]);
        (xy, area_xy) = pattern(&[[1, 1, 4, 4, 1], [5, 1, 8, 4, -1], [1, 5, 4, 8, -1], [5, 5, 8, 8, 1]]);
        (norm, norm_xy) = (255.0 / area, 255.0 * 0.9 / area_xy);
    } else {
        let l = w / 3;
        let b = w / 2;
        if !sums.contains(x - b, y - b, w, w) {
            return None;
        }
        let area = |x, y, width, height| sums.area(x, y, width, height);
        xx = area(x - b, y - l + 1, w, 2 * l - 1) - 3 * area(x - l / 2, y - l + 1, l, 2 * l - 1);
        yy = area(x - l + 1, y - b, 2 * l - 1, w) - 3 * area(x - l + 1, y - l / 2, 2 * l - 1, l);
        xy = area(x + 1, y - l, l, l) + area(x - l, y + 1, l, l)
            - area(x - l, y - l, l, l)
            - area(x + 1, y + 1, l, l);
        (norm, norm_xy) = (1.0 / (w * w) as f64, 0.9 / (w * w) as f64);
    }
    let dxx = xx as f32 * (norm as f32 / sums.white);
    let dyy = yy as f32 * (norm as f32 / sums.white);
    let dxy = xy as f32 * (norm_xy as f32 / sums.white);
    let det = dxx.mul_add(dyy, -(dxy * dxy));
    let blob = if det < 0.0 { 0.0 } else { det };
    Some(if xx + yy < 0 { blob } else { -blob })
}

/// The magnitudes about a sample, `[layer][row][column]`; `None` unless all filters lie inside the image.
fn neighbours(
    sums: &Sums,
    options: &SurfOptions,
    o: usize,
    i: usize,
    x: i64,
    y: i64,
) -> Option<[[[f32; 3]; 3]; 3]> {
    let step = (options.step_of(o)) as i64;
    let mut cube = [[[0.0; 3]; 3]; 3];
    for (di, layer) in cube.iter_mut().enumerate().rev() {
        for (dy, row) in layer.iter_mut().enumerate() {
            for (dx, v) in row.iter_mut().enumerate() {
                let (x, y) = (x + (dx as i64 - 1) * step, y + (dy as i64 - 1) * step);
                *v = response(sums, options, o, i + di - 1, x, y)?.abs();
            }
        }
    }
    Some(cube)
}

fn is_extremum(v: &[[[f32; 3]; 3]; 3]) -> bool {
    v.as_flattened().as_flattened().iter().filter(|n| v[1][1][1] > **n).count() == 26
}

/// Δ = −H⁻¹g with the inverse written out.
fn refined(v: &[[[f32; 3]; 3]; 3]) -> [f32; 3] {
    let d = |di: i32, dy: i32, dx: i32| v[(di + 1) as usize][(dy + 1) as usize][(dx + 1) as usize];
    let c = d(0, 0, 0);
    let gx = -0.5 * (d(0, 0, 1) - d(0, 0, -1));
    let gy = -0.5 * (d(0, 1, 0) - d(0, -1, 0));
    let gs = -0.5 * (d(1, 0, 0) - d(-1, 0, 0));
    let h11 = d(0, 0, -1) - 2.0 * c + d(0, 0, 1);
    let h22 = d(0, -1, 0) - 2.0 * c + d(0, 1, 0);
    let h33 = d(-1, 0, 0) - 2.0 * c + d(1, 0, 0);
    let h12 = (d(0, 1, 1) - d(0, 1, -1) - d(0, -1, 1) + d(0, -1, -1)) * 0.25;
    let h13 = (d(1, 0, 1) - d(1, 0, -1) - d(-1, 0, 1) + d(-1, 0, -1)) * 0.25;
    let h23 = (d(1, 1, 0) - d(1, -1, 0) - d(-1, 1, 0) + d(-1, -1, 0)) * 0.25;
    let c11 = h22 * h33 - h23 * h23;
    let c12 = h13 * h23 - h12 * h33;
    let c13 = h12 * h23 - h13 * h22;
    let c22 = h11 * h33 - h13 * h13;
    let c23 = h13 * h12 - h11 * h23;
    let c33 = h11 * h22 - h12 * h12;
    let inverse = 1.0 / (h11 * c11 + h12 * c12 + h13 * c13);
    [
        inverse * (c11 * gx + c12 * gy + c13 * gs),
        inverse * (c12 * gx + c22 * gy + c23 * gs),
        inverse * (c13 * gx + c23 * gy + c33 * gs),
    ]
}

fn keypoint(
    options: &SurfOptions,
    sample: (usize, usize, i64, i64),
    v: f32,
    d: [f32; 3],
) -> Option<Keypoint> {
    let (o, i, x, y) = sample;
    let step = options.step_of(o);
    let opencv = options.preset == SurfPreset::OpenCv;
    for d in d {
        let accepted = if opencv { d.abs() <= 1.0 } else { d.abs() < 0.5 };
        if !accepted {
            return None;
        }
    }
    let (centre, scale) = if opencv {
        let size = |i| size_of_filter(options, o, i);
        let centre = (size(0) - 1) as f64 / 2.0 - (size(0) / 2 / step as i64 * step as i64) as f64;
        let size = (size(i) as f32 + d[2] * (size(i) - size(i - 1)) as f32).round_ties_even();
        (centre as f32, size * (1.2 / 9.0))
    } else {
        // Equation 13.
        (0.0, 0.4 * ((1 << (o + 1)) as f32 * (i as f32 + d[2] + 1.0) + 1.0))
    };
    let at = |pixel: i64, d: f32| ((pixel / step as i64) as f32 + d) * step as f32 + centre;
    let sign = if v > 0.0 { 1 } else { -1 };
    let (octave, layer) = (o as i8, i as u8);
    let response = v.abs();
    Some(Keypoint { x: at(x, d[0]), y: at(y, d[1]), scale, angle: 0.0, response, sign, octave, layer })
}

/// The angle, cosine and sine of the longest sum of wavelets in a window of 60°.
fn orientation(sums: &Sums, preset: SurfPreset, k: &Keypoint) -> (f32, f32, f32) {
    let (sigma, bins) = match preset {
        SurfPreset::Paper => (2.0, 42),
        SurfPreset::OpenSurf => (2.5, 42),
        SurfPreset::OpenCv => (2.5, 72),
    };
    let mut samples = vec![];
    for j in -6..=6_i32 {
        for i in -6..=6_i32 {
            let r2 = i * i + j * j;
            if r2 > 36 || preset == SurfPreset::OpenSurf && r2 == 36 {
                continue;
            }
            let weight =
                (numeric::exp_f64(-f64::from(r2) / (2.0 * sigma * sigma)) * 16384.0).round_ties_even();
            let ((cx, cy), half);
            if preset == SurfPreset::OpenSurf {
                let s = k.scale.round_ties_even();
                half = 2 * s as i64;
                cx = k.x.round_ties_even() + i as f32 * s;
                cy = k.y.round_ties_even() + j as f32 * s;
            } else {
                half = (2.0 * k.scale).round_ties_even() as i64;
                cx = (i as f32).mul_add(k.scale, k.x + 0.5).round_ties_even();
                cy = (j as f32).mul_add(k.scale, k.y + 0.5).round_ties_even();
            }
            let (dx, dy) = sums.haar(cx as i64, cy as i64, half);
            let bin = (numeric::atan2(dy as f32, dx as f32) * (bins as f32 / TAU)) as usize;
            samples.push((bin.min(bins - 1), weight as i64 * dx, weight as i64 * dy));
        }
    }
    let (mut best, mut x, mut y) = (0.0, 1.0, 0.0);
    for window in 0..bins {
        let (mut sum_x, mut sum_y) = (0, 0);
        for &(bin, dx, dy) in &samples {
            if (bin + bins - window) % bins < bins / 6 {
                sum_x += dx;
                sum_y += dy;
            }
        }
        let (sum_x, sum_y) = (sum_x as f32, sum_y as f32);
        let length2 = sum_x.mul_add(sum_x, sum_y * sum_y);
        if length2 > best {
            (best, x, y) = (length2, sum_x, sum_y);
        }
    }
    let length = if best > 0.0 { best.sqrt() } else { 1.0 };
    (numeric::atan2(y, x), x / length, y / length)
}

fn descriptor(sums: &Sums, options: &SurfOptions, k: &Keypoint, cos: f32, sin: f32) -> Vec<f32> {
    let opensurf = options.preset == SurfPreset::OpenSurf;
    let opencv = options.preset == SurfPreset::OpenCv;
    let gauss = |r2: f64, sigma: f64| numeric::exp_f64(-r2 / (2.0 * sigma * sigma));
    let square = |v: f64| v * v;
    let (first, span, corner) = if opensurf { (-12.0, 9, 0.0) } else { (-9.5, 5, 0.5) };
    let half = k.scale.round_ties_even() as i64;
    let mut cells = vec![];
    for cell_v in 0..4 {
        for cell_u in 0..4 {
            let mut sum = vec![0.0_f32; if options.extended { 8 } else { 4 }];
            for sample in 0..span * span {
                let (in_u, in_v) = (sample % span, sample / span);
                let (i, j) = (5 * cell_u + in_u, 5 * cell_v + in_v);
                let (u, v) = (first + i as f32, first + j as f32);
                let weight = if opensurf {
                    gauss(square(in_u as f64 - 4.0) + square(in_v as f64 - 4.0), 2.5)
                        * gauss(square(cell_u as f64 - 1.5) + square(cell_v as f64 - 1.5), 1.5)
                } else {
                    gauss(square(f64::from(u)) + square(f64::from(v)), 3.3)
                } as f32;
                let (step_cos, step_sin) = (k.scale * cos, k.scale * sin);
                let x = step_cos.mul_add(u, (-step_sin).mul_add(v, k.x + corner)).round_ties_even();
                let y = step_sin.mul_add(u, step_cos.mul_add(v, k.y + corner)).round_ties_even();
                let (dx, dy) = sums.haar(x as i64, y as i64, half);
                let (dx, dy) = (dx as f32, dy as f32);
                let along = cos.mul_add(dx, sin * dy);
                let aside = cos.mul_add(dy, -(sin * dx));
                let mut add = |at: usize, v: f32| sum[at] = weight.mul_add(v, sum[at]);
                if options.extended {
                    let at = if aside >= 0.0 { 0 } else { 2 };
                    add(at, along);
                    add(at + 1, along.abs());
                    let at = if along >= 0.0 { 4 } else { 6 };
                    add(at, aside);
                    add(at + 1, aside.abs());
                } else {
                    add(0, along);
                    add(if opencv { 2 } else { 1 }, along.abs());
                    add(if opencv { 1 } else { 2 }, aside);
                    add(3, aside.abs());
                }
            }
            cells.push(sum);
        }
    }
    let mut squares: Vec<f32> =
        cells.iter().map(|c| c.iter().fold(0.0, |s: f32, v| v.mul_add(*v, s))).collect();
    while squares.len() > 1 {
        let (low, high) = squares.split_at(squares.len() / 2);
        squares = low.iter().zip(high).map(|(a, b)| a + b).collect();
    }
    let length = squares[0].sqrt();
    let inverse = if length > 0.0 { 1.0 / length } else { 0.0 };
    let mut out = vec![];
    for cell in 0..16 {
        let cell = if opensurf { cell % 4 * 4 + cell / 4 } else { cell };
        out.extend(cells[cell].iter().map(|v| v * inverse));
    }
    out
}

/// The features of an image, without mask and selection.
pub(super) fn detect<T: Pixel>(view: ImageView<'_, T>, options: &SurfOptions) -> Features {
    let sums = Sums::new(view);
    let mut found = vec![];
    for o in 0..options.octave_count() {
        let step = options.step_of(o);
        for i in 1..usize::from(options.intervals) - 1 {
            for y in (0..view.size().height).step_by(step) {
                for x in (0..view.size().width).step_by(step) {
                    let (x, y) = (x as i64, y as i64);
                    let Some(v) = response(&sums, options, o, i, x, y) else { continue };
                    if v.abs() <= options.threshold {
                        continue;
                    }
                    let Some(cube) = neighbours(&sums, options, o, i, x, y) else { continue };
                    if is_extremum(&cube) {
                        found.extend(keypoint(options, (o, i, x, y), v, refined(&cube)));
                    }
                }
            }
        }
    }
    let mut described = vec![];
    for mut k in found {
        let (angle, cos, sin) = match (options.upright, options.preset) {
            (false, preset) => orientation(&sums, preset, &k),
            (true, SurfPreset::OpenCv) => (0.75 * TAU, 0.0, -1.0),
            (true, _) => (0.0, 1.0, 0.0),
        };
        k.angle = angle;
        let values = if options.dimension() > 0 { descriptor(&sums, options, &k, cos, sin) } else { vec![] };
        described.push((k, values));
    }
    described.sort_by(|a, b| a.0.order(&b.0));
    Features {
        keypoints: described.iter().map(|d| d.0).collect(),
        descriptors: Descriptors::F32(described.into_iter().flat_map(|d| d.1).collect()),
        dimension: options.dimension(),
        image: view.size(),
    }
}
