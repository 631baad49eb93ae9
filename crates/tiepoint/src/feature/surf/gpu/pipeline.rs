//! All stages for images of one size: memory reserved once, work kept as one graph.

use super::super::{SurfOptions, plan};
use super::layers::Layers;
use super::stages::{DeviceLayers, Found, Stages, most};
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, Graph, Pinned};
use crate::feature::gpu::{GpuDescriptors, GpuFeatures, GpuOrder, WORDS, from_words};
use crate::feature::{Descriptors, Features};
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
    graph: Graph,
    results: Results,
    /// Features of an image that are read along with the counts: a few more than the images before had.
    expected: usize,
}

/// Where results arrive on the host.
#[derive(Debug)]
struct Results {
    counts: Pinned<u32>,
    keypoints: Pinned<u32>,
    values: Pinned<f32>,
    /// Features of an image.
    room: usize,
}

impl Results {
    fn new(gpu: &Gpu, images: usize, room: usize, dimension: usize) -> Result<Self> {
        let keypoints = gpu.pinned(images * room * WORDS)?;
        let values = gpu.pinned(images * room * dimension)?;
        Ok(Self { counts: gpu.pinned(images)?, keypoints, values, room })
    }
}

/// What the stages hand on.
#[derive(Debug)]
struct Memory<A> {
    integral: GpuIntegral<A>,
    responses: Buffer<f32>,
    counts: Buffer<u32>,
    keypoints: Buffer<u32>,
    order: [Buffer<u32>; 2],
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
        let results = Results::new(gpu, kind.images, 0, options.dimension())?;
        let (options, gpu) = (*options, gpu.clone());
        Ok(Self { kind, launches, options, gpu, input, mask, memory, graph, results, expected: 0 })
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

    /// The numbers of keypoints found by what was put into the queue, which may exceed the capacity. Where `features`
    /// will be asked for, as many as are expected come along, so that the host waits once.
    pub(super) fn counts(&mut self, features: bool) -> Result<Vec<usize>> {
        let mut commands = Commands::new();
        commands.stage("to the host");
        commands.download(&self.memory.counts, &mut self.results.counts)?;
        if features {
            self.download(&mut commands, self.expected)?;
        }
        self.gpu.run(&commands)?;
        Ok(self.results.counts.numbers()?.iter().map(|&n| n as usize).collect())
    }

    /// The first `count` features of every image.
    fn download(&mut self, commands: &mut Commands, count: usize) -> Result<()> {
        let (capacity, room, dimension) = (self.kind.capacity, self.results.room, self.options.dimension());
        let Memory { oriented, descriptors, .. } = &self.memory;
        for i in 0..self.kind.images {
            let (from, to) = (i * capacity * WORDS, i * room * WORDS);
            commands.download_part((oriented, from), (&mut self.results.keypoints, to), count * WORDS)?;
            let (from, to) = (i * capacity * dimension, i * room * dimension);
            commands.download_part((descriptors, from), (&mut self.results.values, to), count * dimension)?;
        }
        Ok(())
    }

    /// The features of every image, of which there are `found`.
    pub(super) fn read(&mut self, found: &[usize], cpu: &Cpu) -> Result<Vec<Features>> {
        let kept: Vec<usize> = found.iter().map(|&n| n.min(most(&self.options))).collect();
        let longest = kept.iter().copied().max().unwrap_or(0);
        let capacity = self.kind.capacity;
        if longest > self.results.room {
            let room = (longest + longest / 4).next_multiple_of(256).min(capacity);
            self.results = Results::new(&self.gpu, self.kind.images, room, self.options.dimension())?;
            self.expected = 0;
        }
        if longest > self.expected {
            let mut commands = Commands::new();
            commands.stage("to the host");
            self.download(&mut commands, longest)?;
            self.gpu.run(&commands)?;
        }
        self.expected = (longest + longest / 16).min(self.results.room);
        let (words, values) = (self.results.keypoints.numbers()?, self.results.values.numbers()?);
        let (room, dimension) = (self.results.room, self.options.dimension());
        let features = |i: usize| Features {
            keypoints: words[i * room * WORDS..][..kept[i] * WORDS]
                .chunks_exact(WORDS)
                .map(from_words)
                .collect(),
            descriptors: Descriptors::F32(values[i * room * dimension..][..kept[i] * dimension].to_vec()),
            dimension,
            image: self.kind.size,
        };
        Ok(cpu.map(kept.len(), features))
    }

    /// The features of the first image, of which there are `found`, in memory of their own.
    pub(super) fn keep(&self, found: usize) -> Result<GpuFeatures> {
        let (count, dimension) = (found.min(most(&self.options)), self.options.dimension());
        let keypoints = self.gpu.buffer(count * WORDS)?;
        let descriptors = self.gpu.buffer(count * dimension)?;
        let mut commands = Commands::new();
        commands.copy((&self.memory.oriented, 0), (&keypoints, 0), keypoints.len())?;
        commands.copy((&self.memory.descriptors, 0), (&descriptors, 0), descriptors.len())?;
        self.gpu.run(&commands)?;
        Ok(GpuFeatures {
            count: self.gpu.upload(&[count as u32])?,
            keypoints,
            descriptors: GpuDescriptors::F32(descriptors),
            dimension,
            image: self.kind.size,
        })
    }
}
