//! All stages for images of one size: memory reserved once, work kept as one graph.

use super::super::{SurfOptions, plan};
use super::layers::Layers;
use super::stages::{DeviceLayers, Found, Stages};
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu, Graph};
use crate::feature::WORDS;
use crate::feature::gpu::{GpuDescriptors, Lists};
use crate::feature::order::GpuOrder;
use crate::filter::integral::{GpuIntegral, GpuIntegrator, GpuSum};
use crate::image::Size;
use crate::image::gpu::{GpuImage, GpuPixel};

/// What images a pipeline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub size: Size,
    pub images: usize,
    pub masked: bool,
    /// Features of an image that there is room for.
    pub capacity: usize,
}

/// The memory and the work for images of pixels `T`, summed in `A`.
#[derive(Debug)]
pub(super) struct Pipeline<T, A> {
    pub kind: Kind,
    pub launches: usize,
    options: SurfOptions,
    gpu: Gpu,
    input: Buffer<T>,
    mask: Option<Buffer<u8>>,
    memory: Memory<A>,
    descriptors: GpuDescriptors,
    graph: Graph,
}

/// What the stages hand on.
#[derive(Debug)]
struct Memory<A> {
    integral: GpuIntegral<A>,
    responses: Buffer<f32>,
    counts: Buffer<u32>,
    keypoints: Buffer<u32>,
    order: [Buffer<u64>; 2],
    oriented: Buffer<u32>,
    directions: Buffer<f32>,
    descriptors: Buffer<f32>,
}

impl<A: GpuSum> Memory<A> {
    fn new(gpu: &Gpu, kind: Kind, responses: usize, dimension: usize) -> Result<Self> {
        let features = kind.capacity * kind.images;
        Ok(Self {
            integral: GpuIntegral::new(gpu, kind.size, kind.images)?,
            responses: gpu.buffer(responses * kind.images)?,
            counts: gpu.buffer(kind.images)?,
            keypoints: gpu.buffer(features * WORDS)?,
            order: [gpu.buffer(features)?, gpu.buffer(features)?],
            oriented: gpu.buffer(features * WORDS)?,
            directions: gpu.buffer(2 * features)?,
            descriptors: gpu.buffer(features * dimension)?,
        })
    }
}

impl<T: GpuPixel, A: GpuSum> Pipeline<T, A> {
    /// Reserves memory and records the work for images like `image`.
    pub(super) fn new(
        gpu: &Gpu,
        options: &SurfOptions,
        order: &GpuOrder,
        kind: Kind,
        pitch: usize,
    ) -> Result<Self> {
        let white = if T::WHITE == 255.0 { 255.0 } else { 65535.0 };
        let table = DeviceLayers::upload(gpu, Layers::new(&plan::octaves(options), kind.size, white))?;
        let stages = Stages::new::<A>(gpu, options)?;
        let input = gpu.buffer(pitch * kind.size.height * kind.images)?;
        let memory = Memory::new(gpu, kind, table.layers.len, options.dimension())?;
        let mask_pitch = GpuImage::<u8>::pitch_of(kind.size.width);
        let mask = kind.masked.then(|| gpu.buffer(mask_pitch * kind.size.height)).transpose()?;

        let Memory { integral, responses, counts, keypoints, oriented, directions, descriptors, .. } =
            &memory;
        let capacity = kind.capacity;
        let mut commands = Commands::new();
        GpuIntegrator::<T, A>::new(gpu)?.record(&mut commands, &input, pitch, integral)?;
        stages.respond(&mut commands, integral, &table, responses)?;
        let found = Found { keypoints, counts, capacity };
        let masked = mask.as_ref().map(|m| (m, mask_pitch));
        stages.search(&mut commands, responses, &table, masked, kind.size, found)?;
        commands.stage("order");
        let [a, b] = &memory.order;
        let sorted = order.record(&mut commands, keypoints, counts, capacity, (a, b))?;
        stages.orient(&mut commands, integral, found, sorted, (oriented, directions))?;
        let found = Found { keypoints: oriented, ..found };
        stages.describe(&mut commands, integral, found, directions, descriptors)?;
        let launches = commands.launches();
        let graph = gpu.graph(commands)?;
        let (options, gpu) = (*options, gpu.clone());
        let descriptors = GpuDescriptors::F32(memory.descriptors.clone());
        Ok(Self { kind, launches, options, gpu, input, mask, memory, descriptors, graph })
    }

    /// Puts all stages into the device's queue.
    pub(super) fn enqueue(&self, images: &[GpuImage<T>], mask: Option<&GpuImage<u8>>) -> Result<()> {
        let mut commands = Commands::new();
        commands.stage("input");
        let len = self.input.len() / images.len();
        for (i, image) in images.iter().enumerate() {
            commands.copy((image.buffer(), 0), (&self.input, i * len), len)?;
        }
        if let (Some(from), Some(to)) = (mask, &self.mask) {
            commands.copy((from.buffer(), 0), (to, 0), to.len())?;
        }
        self.gpu.run(&commands)?;
        Ok(self.graph.run()?)
    }

    /// How many features the first image has, once the device has finished.
    pub(super) fn count(&self) -> Result<usize> {
        Ok(self.memory.counts.to_vec()?.first().map_or(0, |&n| n as usize))
    }

    /// Where the results lie.
    pub(super) fn lists(&self) -> Lists<'_> {
        Lists {
            counts: &self.memory.counts,
            keypoints: &self.memory.oriented,
            descriptors: &self.descriptors,
            dimension: self.options.dimension(),
            capacity: self.kind.capacity,
            selection: self.options.selection,
            size: self.kind.size,
        }
    }
}
