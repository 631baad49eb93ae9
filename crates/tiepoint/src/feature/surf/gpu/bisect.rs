//! SURF on the CPU up to a stage, and on the GPU from there.

use super::super::integral::{Integral, Total};
use super::super::orient::Disc;
use super::super::{SurfOptions, detect, plan};
use super::layers::Layers;
use super::stages::{self, DeviceLayers, Found};
use super::tests::{extrema_of, responses_of, rows_of};
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu};
use crate::feature::Keypoint;
use crate::feature::bisect::{Run, Runs};
use crate::feature::gpu::{GpuDescriptors, GpuFeatures, GpuOrder, WORDS, to_words};
use crate::filter::{
    self,
    integral::{GpuIntegral, GpuIntegrator, GpuSum},
};
use crate::image::ImageView;
use crate::image::gpu::{GpuImage, GpuPixel};

/// Where the GPU can begin.
const STAGES: [&str; 6] = ["integral", "response", "extrema, refine", "order", "orient", "describe"];

/// The features when the GPU begins with each of the stages, with default options.
pub(crate) fn runs<T: GpuPixel>(image: ImageView<'_, T>, gpu: &Gpu, cpu: &Cpu) -> Runs {
    match T::WHITE {
        255.0 => Stages::<T, u32>::new(image, cpu).runs(gpu, cpu),
        _ => Stages::<T, u64>::new(image, cpu).runs(gpu, cpu),
    }
}

/// What the CPU makes of an image, stage by stage.
struct Stages<'i, T, A> {
    image: ImageView<'i, T>,
    options: SurfOptions,
    octaves: Vec<plan::Octave>,
    white: f32,
    integral: filter::integral::Integral<A>,
    responses: Vec<f32>,
    /// In their order.
    extrema: Vec<Keypoint>,
    oriented: Vec<Keypoint>,
    /// Cosine and sine of each.
    directions: Vec<f32>,
}

impl<'i, T: GpuPixel, A: GpuSum + Total> Stages<'i, T, A> {
    fn new(image: ImageView<'i, T>, cpu: &Cpu) -> Self {
        let (size, options) = (image.size(), SurfOptions::default());
        let octaves = plan::octaves(&options);
        let white = if T::WHITE == 255.0 { 255.0 } else { 65535.0 };
        let rows: Integral<A> = rows_of(image, cpu);
        let layers = Layers::new(&octaves, size, white);
        let responses = responses_of(&rows, &octaves, &layers, white, cpu);
        let mut extrema = extrema_of(&octaves, &layers.grids, &responses, size, &options);
        extrema.sort_by(Keypoint::order);
        let disc = Disc::new(options.convention);
        let found: Vec<_> = extrema.iter().map(|k| disc.direction(&rows, k)).collect();
        let oriented = extrema.iter().zip(&found).map(|(k, d)| Keypoint { angle: d.angle, ..*k }).collect();
        Self {
            image,
            options,
            octaves,
            white,
            integral: filter::integral::Integral::new(image, cpu).unwrap(),
            responses,
            extrema,
            oriented,
            directions: found.iter().flat_map(|d| [d.cos, d.sin]).collect(),
        }
    }

    fn runs(&self, gpu: &Gpu, cpu: &Cpu) -> Runs {
        let found = STAGES.into_iter().enumerate().map(|(i, name)| (name, self.run(i, gpu))).collect();
        Runs { expected: detect(self.image, &self.options, None, cpu).unwrap(), found }
    }

    /// The features when the GPU begins with a stage, by its number in [`STAGES`].
    fn run(&self, first: usize, gpu: &Gpu) -> Run {
        let (options, size) = (&self.options, self.image.size());
        // Many times too many is a difference, too.
        let capacity = 2 * self.extrema.len() + 1024;
        let stages = stages::Stages::new::<A>(gpu, options).unwrap();
        let layers = Layers::new(&self.octaves, size, self.white);
        let table = DeviceLayers::upload(gpu, layers).unwrap();
        let integral = match first {
            0 => {
                let image = GpuImage::upload(gpu, self.image).unwrap();
                GpuIntegrator::<T, A>::new(gpu).unwrap().integral(&image)
            }
            _ => GpuIntegral::upload(gpu, &self.integral),
        };
        let integral = integral.unwrap();
        let responses = gpu.upload(&self.responses).unwrap();
        let mut commands = Commands::new();
        if first < 2 {
            commands.zero(&responses);
            stages.respond(&mut commands, &integral, &table, &responses).unwrap();
        }
        let words = |keypoints: &mut dyn Iterator<Item = &Keypoint>| {
            let mut words: Vec<u32> = keypoints.flat_map(to_words).collect();
            words.resize(capacity * WORDS, 0);
            gpu.upload(&words).unwrap()
        };
        // Against their order, so that there is something to sort.
        let keypoints = words(&mut self.extrema.iter().rev());
        let counts = gpu.upload(&[self.extrema.len() as u32]).unwrap();
        let found = Found { keypoints: &keypoints, counts: &counts, capacity };
        if first < 3 {
            stages.search(&mut commands, &responses, &table, None, size, found).unwrap();
        }
        let mut indices: Vec<u32> = (0..self.extrema.len() as u32).rev().collect();
        indices.resize(capacity, 0);
        let (indices, spare) = (gpu.upload(&indices).unwrap(), gpu.buffer(capacity).unwrap());
        let order = GpuOrder::new(gpu).unwrap();
        let order = match first {
            0..4 => order.record(&mut commands, &keypoints, &counts, capacity, (&indices, &spare)),
            _ => Ok(&indices),
        };
        let oriented = words(&mut self.oriented.iter());
        let mut directions = self.directions.clone();
        directions.resize(2 * capacity, 0.0);
        let directions = gpu.upload(&directions).unwrap();
        if first < 5 {
            let to = (&oriented, &directions);
            stages.orient(&mut commands, &integral, found, order.unwrap(), to).unwrap();
        }
        let descriptors = gpu.buffer(capacity * options.dimension()).unwrap();
        let found = Found { keypoints: &oriented, ..found };
        stages.describe(&mut commands, &integral, found, &directions, &descriptors).unwrap();
        gpu.run(&commands).unwrap();
        let count = counts.to_vec().unwrap()[0] as usize;
        if count > capacity {
            return Err(format!("{count} features in place of {}", self.extrema.len()));
        }
        let (dimension, descriptors) = (options.dimension(), GpuDescriptors::F32(descriptors));
        let features =
            GpuFeatures { count: counts, keypoints: oriented, descriptors, dimension, image: size };
        Ok(features.download().unwrap())
    }
}
