//! SURF on the CPU up to a stage, and on the GPU from there.

use super::super::integral::{Integral, Sums, Total};
use super::super::orient::Disc;
use super::super::{SurfOptions, detect, plan};
use super::layers::{DeviceLayers, Layers};
use super::tests::{extrema_of, responses_of, rows_of};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::Keypoint;
use crate::feature::bisect::{Run, Runs};
use crate::feature::gpu::{GpuDescriptors, GpuFeatures, GpuKeypoints};
use crate::feature::order::GpuOrder;
use crate::feature::select::Selection;
use crate::feature::surf::describe::gpu::GpuDescribe;
use crate::feature::surf::extrema::gpu::GpuExtrema;
use crate::feature::surf::orient::gpu::GpuOrient;
use crate::feature::surf::response::gpu::GpuResponse;
use crate::feature::{WORDS, to_words};
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
        let disc = Disc::new(options.preset);
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
        // Many times too many is a difference, too.
        let capacity = 2 * self.extrema.len() + 1024;
        let mut way = Way { cpu: self, gpu, first, capacity, commands: Commands::new() };
        let integral = way.integral();
        let sums = Sums(&integral);
        let found = way.extrema(sums);
        let order = way.order(&found);
        let (oriented, directions) = way.oriented(sums, &found, &order);
        let descriptors = gpu.buffer(capacity * self.options.dimension()).unwrap();
        let describe = GpuDescribe::<A>::new(gpu, &self.options).unwrap();
        describe.record(&mut way.commands, sums, (&oriented, &directions), &descriptors).unwrap();
        gpu.run(&way.commands).unwrap();
        let GpuKeypoints { keypoints, counts: count, .. } = oriented;
        let number = count.to_vec().unwrap()[0] as usize;
        if number > capacity {
            return Err(format!("{number} features in place of {}", self.extrema.len()));
        }
        let (dimension, descriptors) = (self.options.dimension(), GpuDescriptors::F32(descriptors));
        let features = GpuFeatures { count, keypoints, descriptors, dimension, image: self.image.size() };
        Ok(features.download().unwrap())
    }
}

/// What the CPU made before stage `first`, uploaded, and the work of the GPU from there.
struct Way<'w, T, A> {
    cpu: &'w Stages<'w, T, A>,
    gpu: &'w Gpu,
    first: usize,
    capacity: usize,
    commands: Commands,
}

impl<T: GpuPixel, A: GpuSum + Total> Way<'_, T, A> {
    fn integral(&self) -> GpuIntegral<A> {
        if self.first > 0 {
            return GpuIntegral::upload(self.gpu, &self.cpu.integral).unwrap();
        }
        let image = GpuImage::upload(self.gpu, self.cpu.image).unwrap();
        GpuIntegrator::<T, A>::new(self.gpu).unwrap().integral(&image).unwrap()
    }

    /// Responses, and the extrema among them with their number; the CPU's against their order, so that there is
    /// something to sort.
    fn extrema(&mut self, sums: Sums<'_, A>) -> GpuKeypoints {
        let Stages { image, octaves, white, responses, extrema, options, .. } = self.cpu;
        let layers = Layers::new(octaves, image.size(), *white);
        let table = DeviceLayers::upload(self.gpu, layers).unwrap();
        let responses = self.gpu.upload(responses).unwrap();
        if self.first <= 1 {
            self.commands.zero(&responses).unwrap();
            let respond = GpuResponse::<A>::new(self.gpu).unwrap();
            respond.record(&mut self.commands, sums, &table, &responses).unwrap();
        }
        let found = self.list(extrema.iter().rev(), extrema.len());
        if self.first <= 2 {
            let search = GpuExtrema::new(self.gpu, options).unwrap();
            search.record(&mut self.commands, &responses, &table, None, image.size(), &found).unwrap();
        }
        found
    }

    fn order(&mut self, found: &GpuKeypoints) -> Buffer<u64> {
        let mut order: Vec<u64> = (0..self.cpu.extrema.len() as u64).rev().collect();
        order.resize(self.capacity, 0);
        let (first, spare) = (self.gpu.upload(&order).unwrap(), self.gpu.buffer(self.capacity).unwrap());
        if self.first > 3 {
            return first;
        }
        let order = GpuOrder::new(self.gpu, Selection::ALL).unwrap();
        order.record(&mut self.commands, found, (&first, &spare)).unwrap().clone()
    }

    /// The keypoints in their order with their angles, and the cosines and sines of these.
    fn oriented(
        &mut self,
        sums: Sums<'_, A>,
        found: &GpuKeypoints,
        order: &Buffer<u64>,
    ) -> (GpuKeypoints, Buffer<f32>) {
        let oriented = self.list(self.cpu.oriented.iter(), 0);
        let oriented = GpuKeypoints { counts: found.counts.clone(), ..oriented };
        let mut directions = self.cpu.directions.clone();
        directions.resize(2 * self.capacity, 0.0);
        let directions = self.gpu.upload(&directions).unwrap();
        if self.first <= 4 {
            let orient = GpuOrient::<A>::new(self.gpu, &self.cpu.options).unwrap();
            let to = (&oriented, &directions);
            orient.record(&mut self.commands, sums, (found, order), to).unwrap();
        }
        (oriented, directions)
    }

    /// Keypoints on the device, with room for as many as may be found.
    fn list<'k>(&self, keypoints: impl Iterator<Item = &'k Keypoint>, count: usize) -> GpuKeypoints {
        let mut words: Vec<u32> = keypoints.flat_map(to_words).collect();
        words.resize(self.capacity * WORDS, 0);
        let counts = self.gpu.upload(&[count as u32]).unwrap();
        GpuKeypoints { keypoints: self.gpu.upload(&words).unwrap(), counts, capacity: self.capacity }
    }
}
