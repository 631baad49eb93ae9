//! The oracle of tests: the stages by the formulas of their contracts. Filters are called: they have their own oracles.

use super::channels::Channels;
use super::intensity::Intensity;
use super::lanes::{BINS, COUNTS, LANES};
use crate::device::Cpu;
use crate::feature::Keypoint;
use crate::filter::gauss::{GaussOptions, gauss};
use crate::filter::resample::{Scaling, resample};
use crate::filter::shrink::shrink;
use crate::image::{Image, Size};
use crate::numeric::atan2;
use std::collections::BTreeSet;

fn smoothed(image: &Image<f32>, sigma: f64) -> Image<f32> {
    gauss(image.view(), &GaussOptions::sigma(sigma), &Cpu::sequential()).unwrap()
}

fn pixels(size: Size) -> impl Iterator<Item = (usize, usize)> {
    (0..size.height).flat_map(move |y| (0..size.width).map(move |x| (x, y)))
}

fn inside(size: Size, x: isize, y: isize) -> bool {
    x >= 0 && y >= 0 && (x as usize) < size.width && (y as usize) < size.height
}

/// Whether `is` holds for a pixel of the picture at most `reach` away along both axes.
fn any_near(size: Size, [x, y]: [usize; 2], reach: isize, is: impl Fn(usize, usize) -> bool) -> bool {
    (-reach..=reach).any(|dy| {
        (-reach..=reach).any(|dx| {
            let (u, v) = (x as isize + dx, y as isize + dy);
            inside(size, u, v) && is(u as usize, v as usize)
        })
    })
}

/// The parts of `of` that hang together along rows and columns: a label for every pixel, of which the smallest in a part
/// spreads until nothing changes, and the number of the part's pixels by label.
fn parts(of: &Image<bool>) -> (Image<usize>, Vec<usize>) {
    let size = of.size();
    let mut label = Image::from_fn(size, |x, y| y * size.width + x);
    loop {
        let spread = Image::from_fn(size, |x, y| {
            let beside =
                [(-1, 0), (1, 0), (0, -1), (0, 1)].map(|(dx, dy)| (x as isize + dx, y as isize + dy));
            let within =
                beside.into_iter().filter(|(u, v)| inside(size, *u, *v) && of.row(*v as usize)[*u as usize]);
            let labels = within.map(|(u, v)| label.row(v as usize)[u as usize]);
            if of.row(y)[x] { labels.fold(label.row(y)[x], usize::min) } else { label.row(y)[x] }
        });
        if spread == label {
            break;
        }
        label = spread;
    }
    let mut counts = vec![0; size.area()];
    pixels(size).filter(|&(x, y)| of.row(y)[x]).for_each(|(x, y)| counts[label.row(y)[x]] += 1);
    (label, counts)
}

/// Which pixels are void.
pub(super) fn void(grey: &Image<f32>) -> Image<bool> {
    let size = grey.size();
    let mut levels: Vec<usize> = grey.data().iter().map(|v| (v * 255.0) as usize).collect();
    levels.sort_by(|a, b| b.cmp(a));
    let bright = levels[(0.02 * size.area() as f64) as usize] as f32 / 255.0;
    let black = (10.0_f32 / 255.0).min(0.1 * bright);
    let dark = Image::from_fn(size, |x, y| !any_near(size, [x, y], 2, |u, v| grey.row(v)[u] > black));
    let (part, counts) = parts(&dark);
    let is_edge = |(x, y): &(usize, usize)| *x == 0 || *y == 0 || x + 1 == size.width || y + 1 == size.height;
    let at_edge: BTreeSet<usize> = pixels(size).filter(is_edge).map(|(x, y)| part.row(y)[x]).collect();
    let is_large = |part: usize| counts[part] as f64 >= 0.002 * size.area() as f64;
    let is_void = |part: usize| is_large(part) && at_edge.contains(&part);
    let void = Image::from_fn(size, |x, y| any_near(size, [x, y], 2, |u, v| is_void(part.row(v)[u])));
    if is_background(&void) { Image::filled(size, 1, false) } else { void }
}

/// Whether the rest of the picture is spread over the void.
fn is_background(void: &Image<bool>) -> bool {
    let size = Size::new(void.size().width.div_ceil(4), void.size().height.div_ceil(4));
    let rest = Image::from_fn(size, |x, y| !void.row(4 * y)[4 * x]);
    let far = Image::from_fn(size, |x, y| !any_near(size, [x, y], 2, |u, v| !rest.row(v)[u]));
    let count = |image: &Image<bool>| image.data().iter().filter(|is| **is).count();
    let largest = parts(&rest).1.into_iter().max().unwrap_or(0);
    2 * count(&far) < count(&rest) || 2 * largest < count(&rest)
}

/// The local means at a pixel of all channels but the last, which is the weight.
fn means(weighted: &Image<f32>) -> impl Fn(usize, usize) -> Vec<f32> {
    let (size, channels) = (weighted.size(), weighted.channels());
    let small = Size::new(size.width.div_ceil(4), size.height.div_ceil(4));
    let grid = smoothed(&shrink(weighted.view(), small, &Cpu::sequential()).unwrap(), 3.0);
    let place = |i: usize, n: usize, m: usize| {
        let at = ((i as f64 + 0.5) * m as f64 / n as f64 - 0.5).clamp(0.0, (m - 1) as f64);
        (at as usize, (at as usize + 1).min(m - 1), (at - at.floor()) as f32)
    };
    move |x, y| {
        let ((left, right, fx), (top, bottom, fy)) =
            (place(x, size.width, small.width), place(y, size.height, small.height));
        let at = |x: usize, y: usize, c: usize| {
            let point = &grid.row(y)[x * channels..(x + 1) * channels];
            point[c] / point[channels - 1].max(1e-3)
        };
        let mixed = |c: usize| {
            let [a, b] = [left, right].map(|x| at(x, top, c) * (1.0 - fy) + at(x, bottom, c) * fy);
            a * (1.0 - fx) + b * fx
        };
        (0..channels - 1).map(mixed).collect()
    }
}

fn gradient(image: &Image<f32>, x: usize, y: usize) -> [f32; 2] {
    let Size { width, height } = image.size();
    let at = |x: usize, y: usize| image.row(y)[x];
    let across = at((x + 1).min(width - 1), y) - at(x.saturating_sub(1), y);
    let down = at(x, (y + 1).min(height - 1)) - at(x, y.saturating_sub(1));
    [0.5 * across, 0.5 * down]
}

pub(super) fn channels(intensity: &Intensity) -> Channels {
    let size = intensity.size();
    let (grey, counts) = (&intensity.grey, &intensity.counts);
    let mut squares = Image::filled(size, 3, 0.0_f32);
    let mut even = Image::filled(size, 1, 0.0_f32);
    for (x, y) in pixels(size) {
        let (g, c) = (grey.row(y)[x], counts.row(y)[x]);
        squares.row_mut(y)[3 * x..3 * x + 3].copy_from_slice(&[g * c, g * g * c, c]);
    }
    let mean = means(&squares);
    for (x, y) in pixels(size) {
        let [m, square] = mean(x, y).try_into().unwrap();
        let deviation = (square - m * m).max(0.0).sqrt();
        even.row_mut(y)[x] = (grey.row(y)[x] - m) / (deviation + 0.02) * counts.row(y)[x];
    }
    let first = smoothed(&even, 0.8);
    let second = smoothed(&first, 1.385_640_646_055_102);
    let mut magnitudes = Image::filled(size, 3, 0.0_f32);
    for (x, y) in pixels(size) {
        let hidden = any_near(size, [x, y], 3, |u, v| counts.row(v)[u] == 0.0);
        let safe = if hidden { 0.0 } else { 1.0 };
        let [m, n] = [&first, &second].map(|image| {
            let [gx, gy] = gradient(image, x, y);
            (gx * gx + gy * gy).sqrt() * safe
        });
        magnitudes.row_mut(y)[3 * x..3 * x + 3].copy_from_slice(&[m, n, safe]);
    }
    let mean = means(&magnitudes);
    let mut lanes = Image::filled(size, LANES, 0.0_f32);
    let mut strength = Image::filled(size, 1, 0.0_f32);
    for (x, y) in pixels(size) {
        let magnitude = &magnitudes.row(y)[3 * x..3 * x + 3];
        let pixel = &mut lanes.row_mut(y)[x * LANES..(x + 1) * LANES];
        pixel[COUNTS] = magnitude[2];
        for (scale, image) in [&first, &second].into_iter().enumerate() {
            let [gx, gy] = gradient(image, x, y);
            let m = (magnitude[scale] / (mean(x, y)[scale] + 0.05)).min(4.0) * magnitude[2];
            let turn = atan2(gy, gx) * (6.0 / std::f32::consts::PI);
            let bin = turn.floor();
            pixel[bin as usize % BINS] += m * (1.0 - (turn - bin));
            pixel[(bin as usize + 1) % BINS] += m * (turn - bin);
        }
        strength.row_mut(y)[x] = pixel[..BINS].iter().sum();
    }
    Channels { lanes, strength }
}

pub(super) fn corners(channels: &Channels, most: usize) -> Vec<Keypoint> {
    let size = channels.strength.size();
    let smooth = smoothed(&channels.strength, 0.8);
    let mut tensor = Image::filled(size, 3, 0.0_f32);
    for (x, y) in pixels(size) {
        let [gx, gy] = gradient(&smooth, x, y);
        tensor.row_mut(y)[3 * x..3 * x + 3].copy_from_slice(&[gx * gx, gx * gy, gy * gy]);
    }
    let tensor = smoothed(&tensor, 1.5);
    let response = Image::from_fn(size, |x, y| {
        let [xx, xy, yy] = [0, 1, 2].map(|c| tensor.row(y)[3 * x + c]);
        (xx * yy - xy * xy) / (xx + yy + 1e-6)
    });
    let seen = |x: usize, y: usize| {
        x >= 6
            && y >= 6
            && x + 6 < size.width
            && y + 6 < size.height
            && !any_near(size, [x, y], 3, |u, v| channels.lanes.row(v)[u * LANES + COUNTS] == 0.0)
    };
    let area = pixels(size).filter(|(x, y)| seen(*x, *y)).count();
    let mut found = Vec::new();
    for (x, y) in pixels(size).filter(|(x, y)| seen(*x, *y)) {
        let value = response.row(y)[x];
        // The first of equal neighbours, row by row, is the maximum.
        let beaten = any_near(size, [x, y], 2, |u, v| {
            let other = response.row(v)[u];
            other > value || (other == value && (v, u) < (y, x))
        });
        if value <= 1e-5 || beaten {
            continue;
        }
        let top = |left: f32, right: f32| {
            let bend = left - 2.0 * value + right;
            if bend < 0.0 { (0.5 * (left - right) / bend).clamp(-0.5, 0.5) } else { 0.0 }
        };
        let (row, above, below) = (response.row(y), response.row(y - 1)[x], response.row(y + 1)[x]);
        let at = [x as f32 + top(row[x - 1], row[x + 1]), y as f32 + top(above, below)];
        let keypoint = Keypoint { x: at[0], y: at[1], scale: 1.5, response: value, ..Keypoint::default() };
        found.push(Keypoint { sign: 1, ..keypoint });
    }
    found.sort_by(Keypoint::order);
    let side = (area as f64 * 4.0 / most as f64).sqrt().max(8.0) as f32;
    let cell = |k: &Keypoint| [(k.x.max(0.0) / side) as usize, (k.y.max(0.0) / side) as usize];
    let mut kept: Vec<Keypoint> = Vec::new();
    for k in found {
        if kept.iter().filter(|other| cell(other) == cell(&k)).count() < 4 {
            kept.push(k);
        }
    }
    kept.truncate(most);
    kept
}

pub(super) fn descriptors(channels: &Channels, corners: &[Keypoint]) -> Vec<u8> {
    let half = resample(channels.lanes.view(), Scaling::HalveMean, &Cpu::sequential()).unwrap();
    let first = smoothed(&half, 1.782_553);
    let second = smoothed(&first, 2.144_761);
    let third = smoothed(&second, 3.394_113);
    let cells = |k: &Keypoint| {
        let mut out = Vec::new();
        for (ring, radius) in [(&first, 8.0_f32), (&second, 17.0), (&third, 29.0)] {
            for sector in 0..12 {
                let angle = |sector: i32| (f64::from(sector) * std::f64::consts::PI / 6.0).cos() as f32;
                let (x, y) = (k.x + radius * angle(sector), k.y + radius * angle(sector - 3));
                let bins = bilinear(ring, 0.5 * (x - 0.5), 0.5 * (y - 0.5));
                let length = bins.iter().fold(0.0, |sum, v| sum + v * v).sqrt() + 0.3;
                out.extend(bins.map(|v| v / length));
            }
        }
        out
    };
    let all: Vec<Vec<f32>> = corners.iter().map(cells).collect();
    let mean = |i: usize| {
        let sum: f64 = all.iter().map(|one| f64::from(one[i])).sum();
        (sum / all.len() as f64) as f32
    };
    let mean: Vec<f32> = (0..all.first().map_or(0, Vec::len)).map(mean).collect();
    let mut bytes = Vec::new();
    for one in &all {
        let special: Vec<f32> = one.iter().zip(&mean).map(|(v, m)| v - m).collect();
        let length = special.iter().fold(0.0, |sum, v| sum + v * v).sqrt() + 1e-6;
        let byte = |v: &f32| ((v / length * 400.0).round_ties_even().clamp(-127.0, 127.0) + 128.0) as u8;
        bytes.extend(special.iter().map(byte));
    }
    bytes
}

/// The bins at a place between four pixels, along rows first; 0 outside.
fn bilinear(image: &Image<f32>, x: f32, y: f32) -> [f32; BINS] {
    let Size { width, height } = image.size();
    if x < 0.0 || y < 0.0 || x > (width - 1) as f32 || y > (height - 1) as f32 {
        return [0.0; BINS];
    }
    let (fx, fy) = (x - x.floor(), y - y.floor());
    std::array::from_fn(|bin| {
        let row = |y: usize| {
            let at = |x: usize| image.row(y.min(height - 1))[x.min(width - 1) * LANES + bin];
            at(x as usize) * (1.0 - fx) + at(x as usize + 1) * fx
        };
        row(y as usize) * (1.0 - fy) + row(y as usize + 1) * fy
    })
}
