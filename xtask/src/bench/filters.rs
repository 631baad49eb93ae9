//! Filters, resampling and warping of 3840×2160 pixels of smooth noise.

use super::{OpenCv, Row};
use crate::Result;
use tiepoint::filter::{
    convolve::{Kernel, convolve_into},
    gauss::{GaussOptions, gauss_into},
    integral::Integral,
    resample::{Scaling, resample_into},
    sobel::{Sobel, X, Y, sobel_into},
};
use tiepoint::geometry::{
    Homography,
    warp::{Interpolation, WarpOptions, warp_into},
};
use tiepoint::image::{Border, Image, Pixel, Size};

/// From output to input: a small turn, shift and tilt.
const WARP: [[f64; 3]; 3] = [[0.98, -0.05, 60.0], [0.04, 0.99, -40.0], [4e-6, -3e-6, 1.0]];

const SIDE: usize = 5;

/// The image as bytes and from 0 to 1.
pub(super) struct Scene {
    bytes: Image<u8>,
    floats: Image<f32>,
    weights: Image<f32>,
}

impl Scene {
    pub(super) fn new() -> Result<Self> {
        let mut state = 1_u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 27
        };
        let mut level = 128_i32;
        let bytes = Image::from_fn(Size::new(3840, 2160), |_, _| {
            level = (level + random() as i32 - 15).clamp(0, 255);
            level as u8
        });
        let floats = bytes.data().iter().map(|&v| f32::from(v) / 255.0).collect();
        let floats = Image::from_vec(floats, bytes.size(), 1).map_err(|e| e.to_string())?;
        // Not separable, so that neither side can split it into a column and a row.
        let weights = Image::from_fn(Size::new(SIDE, SIDE), |_, _| random() as f32 / 400.0);
        Ok(Self { bytes, floats, weights })
    }

    pub(super) fn load(&self, opencv: &mut OpenCv) -> Result<()> {
        opencv.load("u8", &self.bytes)?;
        opencv.load("f32", &self.floats)?;
        opencv.load("weights", &self.weights)
    }

    pub(super) fn rows(&self) -> Result<Vec<Row<'_>>> {
        let mut rows = Vec::new();
        for n in [3, 5, 9, 15] {
            self.gauss(&n.to_string(), GaussOptions::size(n), &format!("{n} 0"), &mut rows);
        }
        self.gauss("σ 1.6", GaussOptions::sigma(1.6), "0 1.6", &mut rows);
        rows.extend(sobel_rows("8-bit to 16", "u8", &self.bytes));
        rows.extend(sobel_rows("f32", "f32", &self.floats));
        let kernel = Kernel::new(self.weights.data().to_vec(), self.weights.size());
        let kernel = kernel.map_err(|e| e.to_string())?;
        rows.push(convolve_row("8-bit", "u8", &self.bytes, kernel.clone()));
        rows.push(convolve_row("f32", "f32", &self.floats, kernel));
        let mut sums = Integral::<u32>::default();
        rows.push(Row::new("integral, 8-bit to 32", "integral u8", move |cpu| {
            sums.compute(self.bytes.view(), cpu)
        }));
        rows.extend(resample_rows("8-bit", "u8", &self.bytes));
        rows.extend(resample_rows("f32", "f32", &self.floats));
        let map = Homography::new(WARP).map_err(|e| e.to_string())?;
        for kind in [Interpolation::Bilinear, Interpolation::Bicubic, Interpolation::Lanczos3] {
            rows.push(warp_row("8-bit", "u8", &self.bytes, map, kind));
            rows.push(warp_row("f32", "f32", &self.floats, map, kind));
        }
        Ok(rows)
    }

    fn gauss<'a>(&'a self, name: &str, options: GaussOptions, theirs: &str, rows: &mut Vec<Row<'a>>) {
        let (mut bytes, mut floats) = (like(&self.bytes), like(&self.floats));
        rows.push(Row::new(format!("gauss {name}, 8-bit"), format!("gauss u8 {theirs}"), move |cpu| {
            gauss_into(self.bytes.view(), &options, cpu, bytes.view_mut())
        }));
        rows.push(Row::new(format!("gauss {name}, f32"), format!("gauss f32 {theirs}"), move |cpu| {
            gauss_into(self.floats.view(), &options, cpu, floats.view_mut())
        }));
    }
}

fn like<T: Pixel, O: Copy + Default>(input: &Image<T>) -> Image<O> {
    Image::filled(input.size(), input.channels(), O::default())
}

fn sobel_rows<'a, T: Sobel>(kind: &str, image: &str, input: &'a Image<T>) -> [Row<'a>; 2]
where
    T::Gradient: 'a,
{
    let (mut x, mut y) = (like(input), like(input));
    [
        Row::new(format!("sobel x, {kind}"), format!("sobel {image} 1 0"), move |cpu| {
            sobel_into(input.view(), X, Border::Clamp, cpu, x.view_mut())
        }),
        Row::new(format!("sobel y, {kind}"), format!("sobel {image} 0 1"), move |cpu| {
            sobel_into(input.view(), Y, Border::Clamp, cpu, y.view_mut())
        }),
    ]
}

fn convolve_row<'a, T: Pixel>(kind: &str, image: &str, input: &'a Image<T>, kernel: Kernel) -> Row<'a> {
    let mut out = like::<T, T>(input);
    Row::new(format!("convolve {SIDE}×{SIDE}, {kind}"), format!("filter {image} weights"), move |cpu| {
        convolve_into(input.view(), &kernel, Border::Clamp, cpu, out.view_mut())
    })
}

fn resample_rows<'a, T: Pixel>(kind: &str, image: &str, input: &'a Image<T>) -> [Row<'a>; 3] {
    [
        ("halve", "0.5 nearest", Scaling::Halve),
        ("halve by means", "0.5 area", Scaling::HalveMean),
        ("double", "2 linear", Scaling::Double),
    ]
    .map(|(ours, theirs, scaling)| {
        let mut out = Image::filled(scaling.resized(input.size()), input.channels(), T::default());
        Row::new(format!("{ours}, {kind}"), format!("resize {image} {theirs}"), move |cpu| {
            resample_into(input.view(), scaling, cpu, out.view_mut())
        })
    })
}

fn warp_row<'a, T: Pixel>(
    kind: &str,
    image: &str,
    input: &'a Image<T>,
    map: Homography,
    interpolation: Interpolation,
) -> Row<'a> {
    let (name, theirs) = match interpolation {
        Interpolation::Bilinear => ("bilinear", "linear"),
        Interpolation::Bicubic => ("bicubic", "cubic"),
        Interpolation::Lanczos3 => ("Lanczos", "lanczos"),
    };
    let numbers = map.matrix().map(|row| row.map(|v| v.to_string()).join(" ")).join(" ");
    let options = WarpOptions::default().with_interpolation(interpolation);
    let mut out = like(input);
    Row::new(format!("warp {name}, {kind}"), format!("warp {image} {theirs} {numbers}"), move |cpu| {
        warp_into(input.view(), &map, &options, cpu, out.view_mut())
    })
}
