//! Structure, which pictures of different sensors have in common: where one is bright the other may be dark, but edges
//! are in the same places and have the same directions.
//!
//! 1. **Intensity** (`intensity`): grey from 0 to 1, and which pixels count. Those of a dark border do not.
//! 2. **Channels** (`channels`): brightness less its local mean, over its local deviation; gradients at two scales, each
//!    over its local mean; their directions folded to 180° and shared between six bins. The result depends neither on
//!    the sign of the contrast nor on the unit of brightness. Radar speckle needs no filter of its own: it is
//!    proportional to brightness, which the division removes, and the two scales smooth what is left.
//! 3. **Corners** (`corners`): where edges of several directions meet, located to parts of a pixel and spread evenly
//!    over the picture.
//! 4. **Descriptor** (`polar`): the channels around a corner on three rings of twelve sectors. A turn of the picture by
//!    30° moves sectors and bins by one, which only permutes the bytes. Corners therefore need no direction, on which
//!    different sensors would not agree.
//!
//! **Numbers.** f32 without fusing, except in the filters that are called; local means are sums in the order of
//! `shrink` and `gauss`. No value depends on the threads or the SIMD level: tests compare with a plain form
//! (`reference`).

mod channels;
mod corners;
pub(crate) mod gpu;
mod intensity;
pub(crate) mod lanes;
mod means;
mod polar;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub(crate) use channels::{Channels, halved_lanes};
pub(crate) use intensity::Intensity;
pub(crate) use polar::{TURNS, turned};

use super::{Descriptors, Features, Keypoint, by_value};
use crate::Result;
use crate::device::gpu::Gpu;
use crate::device::{Cpu, Processor};
use crate::feature::gpu::GpuFeatures;
use crate::filter::resample::{Scaling, resample};
use crate::geometry::Homography;
use crate::image::gpu::GpuStack;
use crate::image::{Image, Size};
use gpu::GpuStructure;
use intensity::blur_before;
use lanes::Lanes;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The most corners of a level.
const MOST: usize = 1500;

/// A picture at one size, with its corners.
#[derive(Debug)]
pub(crate) struct Level {
    /// Its size over that of the picture.
    pub(crate) scale: f64,
    /// Corners in pixels of the picture, with their descriptors, unless these are on a device.
    features: Features,
    /// The picture itself, where this level has its size.
    pub(crate) own: Own,
    /// The descriptors in the memory of the GPU that made them; its keypoints are in pixels of the level.
    on_device: Option<GpuFeatures>,
}

impl Level {
    pub(crate) fn keypoints(&self) -> &[Keypoint] {
        &self.features.keypoints
    }

    /// The size of the picture.
    pub(crate) fn image(&self) -> Size {
        self.features.image
    }

    /// The corners in pixels of the picture, with their descriptors.
    pub(crate) fn on_host(&self) -> Result<Cow<'_, Features>> {
        let Some(GpuFeatures { descriptors, dimension, .. }) = &self.on_device else {
            return Ok(Cow::Borrowed(&self.features));
        };
        let descriptors = by_value!(map descriptors, values => values.to_vec()?);
        Ok(Cow::Owned(Features { descriptors, dimension: *dimension, ..self.features.clone() }))
    }

    /// The same in the host's memory, without the picture.
    pub(crate) fn to_host(&self) -> Result<Self> {
        let features = self.on_host()?.into_owned();
        Ok(Self { scale: self.scale, features, own: Own::default(), on_device: None })
    }

    /// As [`to_host`](Self::to_host), with only the corners of these numbers, which must be in range.
    pub(crate) fn subset(&self, corners: &[usize]) -> Result<Self> {
        let features = self.on_host()?.subset(corners)?;
        Ok(Self { scale: self.scale, features, own: Own::default(), on_device: None })
    }

    /// The same in the memory of a GPU, where keypoints may be in pixels of the level, not of the picture.
    pub(crate) fn on(&self, gpu: &Gpu) -> Result<GpuFeatures> {
        self.on_device.clone().map_or_else(|| GpuFeatures::upload(gpu, &self.features), Ok)
    }
}

/// A picture at its own size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    /// Its channels at half that size.
    pub(crate) lanes: Lanes,
    /// Its intensity (grey, and what counts) in the memory of the GPU that made the channels.
    on_device: Option<GpuStack<f32>>,
}

/// The least side of a level, in pixels; a picture that is smaller has one level.
const LEAST_SIDE: f64 = 24.0;

/// Finds structure on a processor; a GPU's kernels are looked up once.
#[derive(Debug)]
pub(crate) struct StructureFinder<'p> {
    pub(crate) processor: &'p Processor,
    on_gpu: OnceLock<GpuStructure>,
}

impl<'p> StructureFinder<'p> {
    pub(crate) fn new(processor: &'p Processor) -> Self {
        Self { processor, on_gpu: OnceLock::new() }
    }

    /// The stages on the processor's GPU.
    pub(crate) fn on(&self, gpu: &Gpu) -> Result<&GpuStructure> {
        match self.on_gpu.get() {
            Some(stages) => Ok(stages),
            None => {
                let stages = GpuStructure::new(gpu, &self.processor.cpu)?;
                Ok(self.on_gpu.get_or_init(|| stages))
            }
        }
    }

    /// The corners of pictures, each at its own size, which is level 0, and at smaller ones down to 1 / `range` of it.
    /// Each level is smaller than the one before by a third of an octave or a little less. Only those levels are made
    /// whose numbers lie in the range that is given with the picture.
    pub(crate) fn levels<const N: usize>(
        &self,
        pictures: &[(&Intensity, Range<usize>); N],
        range: f64,
    ) -> Result<[Vec<Level>; N]> {
        let octaves = libm::log2(range);
        let steps = (3.0 * octaves - 1e-9).ceil().max(0.0);
        let scale = |i: usize| if i == 0 { 1.0 } else { libm::exp2(-octaves * i as f64 / steps) };
        let mut wanted = vec![];
        for (of, (intensity, numbers)) in pictures.iter().enumerate() {
            let full = intensity.size();
            let is_seen = |i: &usize| *i == 0 || full.width.min(full.height) as f64 * scale(*i) >= LEAST_SIDE;
            let end = (0..=steps as usize).take_while(is_seen).count().min(numbers.end);
            for i in numbers.start..end {
                let part = |n: usize| ((n as f64 * scale(i)).round() as usize).clamp(1, n);
                wanted.push((of, scale(i), Size::new(part(full.width), part(full.height))));
            }
        }
        let sizes: Vec<_> = wanted.iter().map(|(of, scale, size)| (pictures[*of].0, *scale, *size)).collect();
        let found = self.processor.gpu_or_cpu(
            "structure",
            |gpu| self.on(gpu)?.levels(&sizes, &self.processor.cpu),
            |cpu| {
                let _stage = cpu.stage("structure");
                cpu.try_map(sizes.len(), |i| found_in(sizes[i], cpu))
            },
        )?;
        let mut levels = [const { vec![] }; N];
        for ((of, _, size), mut level) in wanted.into_iter().zip(found) {
            let full = pictures[of].0.size();
            let ratio = [full.width as f32 / size.width as f32, full.height as f32 / size.height as f32];
            for k in &mut level.features.keypoints {
                (k.x, k.y) = ((k.x + 0.5) * ratio[0] - 0.5, (k.y + 0.5) * ratio[1] - 0.5);
                k.scale *= ratio[0];
            }
            level.features.image = full;
            levels[of].push(level);
        }
        Ok(levels)
    }

    /// The channels, at half its size, of a picture resampled on a grid of `size`.
    pub(crate) fn resampled(
        &self,
        (intensity, own): (&Intensity, &Own),
        picture_from_grid: &Homography,
        size: Size,
    ) -> Result<Lanes> {
        let laid = |cpu: &Cpu| intensity.resampled(picture_from_grid, size, cpu);
        self.processor.gpu_or_cpu(
            "structure",
            |gpu| {
                let stages = self.on(gpu)?;
                let cpu = &self.processor.cpu;
                let picture =
                    match own.on_device.as_ref().filter(|_| blur_before(picture_from_grid).is_none()) {
                        Some(there) => stages.resampled(there, picture_from_grid, size)?,
                        None => stages.upload([&laid(cpu)?], cpu)?,
                    };
                Ok(stages.halved_lanes(&picture)?.swap_remove(0))
            },
            |cpu| lanes_of(&laid(cpu)?, cpu),
        )
    }

    /// Channels at half their size.
    pub(crate) fn halved(&self, lanes: &Lanes) -> Result<Image<f32>> {
        let cpu = &self.processor.cpu;
        match lanes {
            Lanes::Host(image) => resample(image.view(), Scaling::HalveMean, cpu),
            Lanes::Device(image) => self.processor.gpu_or_cpu(
                "structure",
                |gpu| self.on(gpu)?.halved(image)?.download_by(cpu),
                |cpu| resample(image.download_by(cpu)?.view(), Scaling::HalveMean, cpu),
            ),
        }
    }

    /// The channels, at half their size, of pictures of one size.
    pub(crate) fn halved_lanes(&self, pictures: &[Intensity]) -> Result<Vec<Lanes>> {
        self.processor.gpu_or_cpu(
            "structure",
            |gpu| {
                let stages = self.on(gpu)?;
                stages.halved_lanes(&stages.upload(pictures, &self.processor.cpu)?)
            },
            |cpu| cpu.try_map(pictures.len(), |i| lanes_of(&pictures[i], cpu)),
        )
    }
}

fn lanes_of(picture: &Intensity, cpu: &Cpu) -> Result<Lanes> {
    let _stage = cpu.stage("structure");
    Ok(Lanes::Host(Arc::new(halved_lanes(&Channels::of(picture, cpu)?, cpu)?)))
}

/// A level whose corners are still in its own pixels.
fn found_in((intensity, scale, size): (&Intensity, f64, Size), cpu: &Cpu) -> Result<Level> {
    let channels = Channels::of(&intensity.shrunk(size, cpu)?, cpu)?;
    let keypoints = corners::corners(&channels, MOST, cpu)?;
    let lanes = halved_lanes(&channels, cpu)?;
    let features = described(keypoints, &lanes, cpu)?;
    let lanes = if size == intensity.size() { Lanes::Host(Arc::new(lanes)) } else { Lanes::default() };
    Ok(Level { scale, features, own: Own { lanes, on_device: None }, on_device: None })
}

/// Corners with their descriptors, in pixels of a picture with these channels at half its size.
pub(crate) fn described(keypoints: Vec<Keypoint>, lanes: &Image<f32>, cpu: &Cpu) -> Result<Features> {
    let descriptors = Descriptors::U8(polar::describe(lanes, &keypoints, cpu)?);
    let Size { width, height } = lanes.size();
    Ok(Features { keypoints, descriptors, dimension: polar::LENGTH, image: Size::new(2 * width, 2 * height) })
}
