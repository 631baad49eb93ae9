//! Filters, resampling and warping of 3840×2160 pixels of smooth noise.

use super::{OpenCv, Row};
use crate::Result;
use tiepoint::filter::convolve::{Kernel, convolve_into};
use tiepoint::filter::gauss::{GaussOptions, gauss_into};
use tiepoint::filter::integral::Integral;
use tiepoint::filter::resample::{Scaling, resample_into};
use tiepoint::filter::sobel::{Sobel, X, Y, sobel_into};
use tiepoint::geometry::Homography;
use tiepoint::geometry::warp::{Interpolation, WarpOptions, warp_into};
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
        let kernel = Kernel::new(self.weights.data().to_vec(), self.weights.size());
        let kernel = kernel.map_err(|e| e.to_string())?;
        let map = Homography::new(WARP).map_err(|e| e.to_string())?;
        let mut rows = rows_of(["8-bit", "8-bit to 16", "u8"], &self.bytes, &kernel, map);
        let mut sums = Integral::<u32>::default();
        rows.push(Row::new("integral, 8-bit to 32", "integral u8", move |cpu| {
            sums.compute(self.bytes.view(), cpu).map(|()| None)
        }));
        rows.extend(rows_of(["f32"; 3], &self.floats, &kernel, map));
        Ok(rows)
    }
}

/// The rows of one type of pixels. Names: the type's, its and its gradients', the image's in OpenCV's program.
fn rows_of<'a, T: Sobel>(
    [kind, gradients, image]: [&str; 3],
    input: &'a Image<T>,
    kernel: &Kernel,
    map: Homography,
) -> Vec<Row<'a>>
where
    T::Gradient: 'a,
{
    let mut rows = Vec::new();
    let sizes = [3, 5, 9, 15].map(|n| (n.to_string(), GaussOptions::size(n), format!("{n} 0")));
    let sigma = ("σ 1.6".to_owned(), GaussOptions::sigma(1.6), "0 1.6".to_owned());
    for (name, options, theirs) in sizes.into_iter().chain([sigma]) {
        let mut out = like(input);
        rows.push(Row::new(format!("gauss {name}, {kind}"), format!("gauss {image} {theirs}"), move |cpu| {
            gauss_into(input.view(), &options, cpu, out.view_mut()).map(|()| None)
        }));
    }
    let (mut x, mut y) = (like(input), like(input));
    rows.push(Row::new(format!("sobel x, {gradients}"), format!("sobel {image} 1 0"), move |cpu| {
        sobel_into(input.view(), X, Border::Clamp, cpu, x.view_mut()).map(|()| None)
    }));
    rows.push(Row::new(format!("sobel y, {gradients}"), format!("sobel {image} 0 1"), move |cpu| {
        sobel_into(input.view(), Y, Border::Clamp, cpu, y.view_mut()).map(|()| None)
    }));
    let (kernel, mut out) = (kernel.clone(), like::<T, T>(input));
    rows.push(Row::new(
        format!("convolve {SIDE}×{SIDE}, {kind}"),
        format!("filter {image} weights"),
        move |cpu| convolve_into(input.view(), &kernel, Border::Clamp, cpu, out.view_mut()).map(|()| None),
    ));
    for (name, theirs, scaling) in [
        ("halve", "0.5 nearest", Scaling::Halve),
        ("halve by means", "0.5 area", Scaling::HalveMean),
        ("double", "2 linear", Scaling::Double),
    ] {
        let mut out = Image::filled(scaling.resized(input.size()), input.channels(), T::default());
        rows.push(Row::new(format!("{name}, {kind}"), format!("resize {image} {theirs}"), move |cpu| {
            resample_into(input.view(), scaling, cpu, out.view_mut()).map(|()| None)
        }));
    }
    let numbers = map.matrix().map(|row| row.map(|v| v.to_string()).join(" ")).join(" ");
    for (name, theirs, interpolation) in [
        ("bilinear", "linear", Interpolation::Bilinear),
        ("bicubic", "cubic", Interpolation::Bicubic),
        ("Lanczos", "lanczos", Interpolation::Lanczos3),
    ] {
        let options = WarpOptions::default().with_interpolation(interpolation);
        let (theirs, mut out) = (format!("warp {image} {theirs} {numbers}"), like(input));
        rows.push(Row::new(format!("warp {name}, {kind}"), theirs, move |cpu| {
            warp_into(input.view(), &map, &options, cpu, out.view_mut()).map(|()| None)
        }));
    }
    rows
}

fn like<T: Pixel, O: Copy + Default>(input: &Image<T>) -> Image<O> {
    Image::filled(input.size(), input.channels(), O::default())
}
