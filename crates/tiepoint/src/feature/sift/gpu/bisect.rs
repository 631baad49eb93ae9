//! SIFT on the CPU up to a stage, and on the GPU from there.

use super::detect_tests::{upload_levels, upload_list};
use super::plan::{GpuLevels, Plan};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::bisect::{Run, Runs};
use crate::feature::gpu::{GpuDescriptors, GpuFeatures, GpuKeypoints};
use crate::feature::order::GpuOrder;
use crate::feature::select::Selection;
use crate::feature::sift::describe::gpu::GpuDescribe;
use crate::feature::sift::extrema::gpu::GpuExtrema;
use crate::feature::sift::orient::gpu::GpuOrient;
use crate::feature::sift::scale_space::gpu::{GpuBase, GpuScaleSpace};
use crate::feature::sift::scale_space::whole;
use crate::feature::sift::{DIMENSION, SiftOptions, detect};
use crate::feature::{DescriptorKind, Keypoint};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{Image, ImageView};

/// Where the GPU can begin.
const STAGES: [&str; 5] = ["scale space", "extrema, refine", "orient", "order", "describe"];

/// The features when the GPU begins with each of the stages, with default options.
pub(crate) fn runs<T: GpuPixel>(image: ImageView<'_, T>, gpu: &Gpu, cpu: &Cpu) -> Runs {
    let stages = Stages::new(image, cpu);
    let found = STAGES.into_iter().enumerate().map(|(i, name)| (name, stages.run(i, gpu))).collect();
    Runs { expected: detect(image, &stages.options, None, cpu).unwrap(), found }
}

/// What the CPU makes of an image, stage by stage.
struct Stages<'i, T> {
    image: ImageView<'i, T>,
    options: SiftOptions,
    levels: Vec<Vec<Image<f32>>>,
    points: Vec<Keypoint>,
    /// In their order.
    oriented: Vec<Keypoint>,
}

impl<'i, T: GpuPixel> Stages<'i, T> {
    fn new(image: ImageView<'i, T>, cpu: &Cpu) -> Self {
        let options = SiftOptions::default();
        let found = |options: &SiftOptions| detect(image, options, None, cpu).unwrap();
        let oriented = SiftOptions { descriptors: DescriptorKind::None, ..options };
        Self {
            image,
            options,
            levels: whole(image, &options, cpu),
            points: found(&SiftOptions { upright: true, ..oriented }).keypoints,
            oriented: found(&oriented).keypoints,
        }
    }

    /// The features when the GPU begins with a stage, by its number in [`STAGES`].
    fn run(&self, first: usize, gpu: &Gpu) -> Run {
        // Many times too many is a difference, too.
        let capacity = 2 * self.oriented.len() + 1024;
        let mut way = Way { cpu: self, gpu, first, capacity, commands: Commands::new() };
        let levels = way.levels();
        let points = way.points(&levels);
        let features = way.features(&points, &levels);
        let order = way.order(&features);
        let described = way.described(&features, &order, &levels);
        gpu.run(&way.commands).unwrap();
        for (what, list) in [("points", &points), ("features", &features)] {
            let count = list.counts.to_vec().unwrap()[0] as usize;
            if count > capacity {
                return Err(format!("{count} {what} on the way to {} features", self.oriented.len()));
            }
        }
        Ok(described.download().unwrap())
    }
}

/// What the CPU made before stage `first`, uploaded, and the work of the GPU from there.
struct Way<'w, T> {
    cpu: &'w Stages<'w, T>,
    gpu: &'w Gpu,
    first: usize,
    capacity: usize,
    commands: Commands,
}

impl<T: GpuPixel> Way<'_, T> {
    fn levels(&mut self) -> GpuLevels {
        let Stages { image, options, levels, .. } = self.cpu;
        if self.first > 0 {
            return upload_levels(self.gpu, levels.iter().map(|o| &o[..]), options, image.size());
        }
        let plan = Plan::new(image.size(), 1, options).unwrap();
        let levels = GpuLevels::new(self.gpu, plan).unwrap();
        let image = GpuImage::upload(self.gpu, *image).unwrap();
        let base = GpuBase::<T>::new(self.gpu, options).unwrap();
        base.record(&mut self.commands, &image, 0, &levels).unwrap();
        GpuScaleSpace::new(self.gpu, options).unwrap().record(&mut self.commands, &levels).unwrap();
        levels
    }

    fn points(&mut self, levels: &GpuLevels) -> GpuKeypoints {
        let points = upload_list(self.gpu, &self.cpu.points, self.capacity);
        if self.first <= 1 {
            let extrema = GpuExtrema::new(self.gpu, &self.cpu.options).unwrap();
            extrema.record(&mut self.commands, levels, None, &points).unwrap();
        }
        points
    }

    /// The CPU's against their order, so that there is something to sort.
    fn features(&mut self, points: &GpuKeypoints, levels: &GpuLevels) -> GpuKeypoints {
        let reversed: Vec<Keypoint> = self.cpu.oriented.iter().rev().copied().collect();
        let features = upload_list(self.gpu, &reversed, self.capacity);
        if self.first <= 2 {
            self.commands.zero(&features.counts).unwrap();
            let orient = GpuOrient::new(self.gpu, &self.cpu.options).unwrap();
            orient.record(&mut self.commands, &features, points, levels).unwrap();
        }
        features
    }

    fn order(&mut self, features: &GpuKeypoints) -> Buffer<u64> {
        let mut order: Vec<u64> = (0..self.cpu.oriented.len() as u64).rev().collect();
        order.resize(self.capacity, 0);
        let (first, spare) = (self.gpu.upload(&order).unwrap(), self.gpu.buffer(self.capacity).unwrap());
        if self.first > 3 {
            return first;
        }
        let order = GpuOrder::new(self.gpu, Selection::ALL).unwrap();
        order.record(&mut self.commands, features, (&first, &spare)).unwrap().clone()
    }

    fn described(&mut self, features: &GpuKeypoints, order: &Buffer<u64>, levels: &GpuLevels) -> GpuFeatures {
        let described = GpuKeypoints::new(self.gpu, 1, self.capacity).unwrap();
        let descriptors = GpuDescriptors::U8(self.gpu.buffer(self.capacity * DIMENSION).unwrap());
        let describe = GpuDescribe::new(self.gpu, &self.cpu.options).unwrap();
        let to = (&described, &descriptors);
        let all = (0..1, u32::MAX);
        describe.record(&mut self.commands, to, (features, features, order), all, levels).unwrap();
        let GpuKeypoints { keypoints, counts: count, .. } = described;
        GpuFeatures { count, keypoints, descriptors, dimension: DIMENSION, image: self.cpu.image.size() }
    }
}
