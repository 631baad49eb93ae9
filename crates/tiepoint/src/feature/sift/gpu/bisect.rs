//! SIFT on the CPU up to a stage, and on the GPU from there.

use super::describe::GpuDescribe;
use super::detect_tests::{upload_levels, upload_list};
use super::extrema::GpuExtrema;
use super::orient::GpuOrient;
use super::plan::{GpuLevels, GpuPoints, Plan};
use super::scale_space::GpuScaleSpace;
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu};
use crate::feature::Keypoint;
use crate::feature::bisect::{Run, Runs};
use crate::feature::gpu::{GpuDescriptors, GpuFeatures, GpuOrder};
use crate::feature::sift::scale_space::whole;
use crate::feature::sift::{DIMENSION, DescriptorKind, SiftOptions, detect};
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
        let (options, size) = (&self.options, self.image.size());
        // Many times too many is a difference, too.
        let capacity = 2 * self.oriented.len() + 1024;
        let mut commands = Commands::new();
        let levels = match first {
            0 => self.scale_space(gpu, &mut commands),
            _ => upload_levels(gpu, self.levels.iter().map(|o| &o[..]), options, size),
        };
        let points = match first {
            0..2 => GpuPoints::new(gpu, 1, capacity).unwrap(),
            _ => upload_list(gpu, &self.points, capacity),
        };
        if first < 2 {
            GpuExtrema::new(gpu, options).unwrap().record(&mut commands, &levels, None, &points).unwrap();
        }
        // Against their order, so that there is something to sort.
        let reversed: Vec<_> = self.oriented.iter().rev().copied().collect();
        let features = upload_list(gpu, if first < 3 { &[] } else { &reversed }, capacity);
        if first < 3 {
            let orient = GpuOrient::new(gpu, options).unwrap();
            orient.record(&mut commands, &features, &points, &levels).unwrap();
        }
        let mut indices: Vec<u32> = (0..self.oriented.len() as u32).rev().collect();
        indices.resize(capacity, 0);
        let (indices, spare) = (gpu.upload(&indices).unwrap(), gpu.buffer(capacity).unwrap());
        let order = GpuOrder::new(gpu).unwrap();
        let order = match first {
            0..4 => order.record(
                &mut commands,
                &features.keypoints,
                &features.counts,
                capacity,
                (&indices, &spare),
            ),
            _ => Ok(&indices),
        };
        let described = GpuPoints::new(gpu, 1, capacity).unwrap();
        let descriptors = GpuDescriptors::U8(gpu.buffer(capacity * DIMENSION).unwrap());
        let to = (&described, &descriptors);
        let describe = GpuDescribe::new(gpu, options).unwrap();
        describe.record(&mut commands, to, (&features, order.unwrap()), usize::MAX, &levels).unwrap();
        gpu.run(&commands).unwrap();
        for (what, list) in [("points", &points), ("features", &features)] {
            let count = list.counts.to_vec().unwrap()[0] as usize;
            if count > capacity {
                return Err(format!("{count} {what} on the way to {} features", self.oriented.len()));
            }
        }
        let GpuPoints { keypoints, counts: count, .. } = described;
        Ok(GpuFeatures { count, keypoints, descriptors, dimension: DIMENSION, image: size }
            .download()
            .unwrap())
    }

    fn scale_space(&self, gpu: &Gpu, commands: &mut Commands) -> GpuLevels {
        let plan = Plan::new(self.image.size(), 1, &self.options).unwrap();
        let levels = GpuLevels::new(gpu, plan).unwrap();
        let scale_space = GpuScaleSpace::new::<T>(gpu, &self.options).unwrap();
        let image = GpuImage::upload(gpu, self.image).unwrap();
        scale_space.record_base(commands, &image, 0, &levels).unwrap();
        scale_space.record_levels(commands, &levels).unwrap();
        levels
    }
}
