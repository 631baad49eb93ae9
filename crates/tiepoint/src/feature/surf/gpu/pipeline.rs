//! All stages for images of one size: memory reserved once, work kept as one graph.

use super::layers::{DeviceLayers, Layers};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, Graph, compile};
use crate::feature::WORDS;
use crate::feature::gpu::pipeline::{Core, Pipeline, Purpose, WholeOnly};
use crate::feature::gpu::results::Lists;
use crate::feature::gpu::{GpuDescriptors, GpuKeypoints};
use crate::feature::order::GpuOrder;
use crate::feature::select::Selection;
use crate::feature::surf::describe::gpu::GpuDescribe;
use crate::feature::surf::extrema::gpu::GpuExtrema;
use crate::feature::surf::integral::Sums;
use crate::feature::surf::orient::gpu::GpuOrient;
use crate::feature::surf::response::gpu::GpuResponse;
use crate::feature::surf::{SurfOptions, plan};
use crate::filter::integral::{GpuIntegral, GpuIntegrator, GpuSum};
use crate::image::Size;
use crate::image::gpu::{AnyGpuImage, GpuImage, GpuPixel, PixelKind, for_pixel};
use crate::{Error, Result};
use std::ops::Range;

/// The memory and the work for images of one type of pixel. Sums of bytes are 32 bits wide.
#[derive(Debug)]
pub enum SurfPipeline {
    /// 8 bits.
    U8(Box<Typed<u8, u32>>),
    /// 16 bits.
    U16(Box<Typed<u16, u64>>),
    /// Floats.
    F32(Box<Typed<f32, u64>>),
}

/// Runs one generic expression for whichever pixel type a pipeline is for.
macro_rules! for_typed {
    ($pipeline:expr, $p:ident => $body:expr) => {
        match $pipeline {
            SurfPipeline::U8($p) => $body,
            SurfPipeline::U16($p) => $body,
            SurfPipeline::F32($p) => $body,
        }
    };
}

/// The size and number of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    size: Size,
    images: usize,
}

impl Pipeline for SurfPipeline {
    const NAME: &'static str = "SURF";
    type Options = SurfOptions;
    type Layout = Layout;
    /// The kernels that depend on the options alone; the others depend on the type of sums, too.
    type Stages = GpuOrder;
    type Parts = WholeOnly;

    fn check(options: &SurfOptions) -> Result<()> {
        options.check()
    }

    fn selection(options: &SurfOptions) -> Selection {
        options.selection
    }

    fn layout(_: &SurfOptions, size: Size, images: usize) -> Result<Layout> {
        crate::feature::surf::check_size(size)?;
        Ok(Layout { size, images })
    }

    fn pixels(layout: &Layout) -> usize {
        layout.size.area()
    }

    fn usual_capacity(layout: &Layout) -> usize {
        // Of a photograph at the default threshold one pixel in a few hundred is a feature, of the ground from the air
        // one in 130.
        (layout.size.area() / 104).clamp(1024, 1 << 22).next_multiple_of(1024)
    }

    fn bytes(options: &SurfOptions, purpose: &Purpose<Layout>) -> u64 {
        let Purpose { layout: Layout { size, images }, pixel, masked, capacity } = purpose;
        let image = for_pixel!(*pixel, T => {
            Buffer::<T>::taken(GpuImage::<T>::pitch_of(size.width) * size.height)
        });
        let mask = Buffer::<u8>::taken(GpuImage::<u8>::pitch_of(size.width) * size.height);
        let sums = match pixel {
            PixelKind::U8 => GpuIntegral::<u32>::taken(*size, *images),
            PixelKind::U16 | PixelKind::F32 => GpuIntegral::<u64>::taken(*size, *images),
        };
        let layers = Layers::new(&plan::octaves(options), *size, 1.0);
        let responses = Buffer::<f32>::taken(layers.len.saturating_mul(*images));
        let room = images.saturating_mul(*capacity);
        let lists = 2 * Buffer::<u32>::taken(room.saturating_mul(WORDS))
            + 2 * Buffer::<u64>::taken(room)
            + Buffer::<f32>::taken(room.saturating_mul(2))
            + Buffer::<f32>::taken(room.saturating_mul(options.dimension()));
        // The images before they are copied to where the work reads them, and after.
        (2 * images * image + usize::from(*masked) * mask + sums + responses + lists) as u64
    }

    fn mask_size(layout: &Layout) -> Size {
        layout.size
    }

    fn stages(gpu: &Gpu, _: &Cpu, options: &SurfOptions) -> Result<GpuOrder> {
        GpuOrder::new(gpu, options.selection)
    }

    fn new(
        core: &Core<Self>,
        purpose: Purpose<Layout>,
        mask: Option<&GpuImage<u8>>,
        old: Option<Self>,
    ) -> Result<Self> {
        // Its memory may be needed.
        drop(old);
        Ok(match purpose.pixel {
            PixelKind::U8 => Self::U8(Typed::new(core, purpose, mask)?.into()),
            PixelKind::U16 => Self::U16(Typed::new(core, purpose, mask)?.into()),
            PixelKind::F32 => Self::F32(Typed::new(core, purpose, mask)?.into()),
        })
    }

    fn purpose(&self) -> &Purpose<Layout> {
        for_typed!(self, p => &p.purpose)
    }

    fn launches(&self) -> usize {
        for_typed!(self, p => p.launches)
    }

    fn begin(&self, images: &[AnyGpuImage], mask: Option<[&GpuImage<u8>; 2]>) -> Result<()> {
        for_typed!(self, p => p.begin(images, mask))
    }

    fn parcels(&self) -> &[(Range<usize>, Commands)] {
        &[]
    }

    fn lists(&self) -> Lists<'_> {
        for_typed!(self, p => p.lists())
    }
}

/// A pipeline for images of pixels `T`, summed in `A`.
#[derive(Debug)]
pub struct Typed<T, A> {
    purpose: Purpose<Layout>,
    launches: usize,
    options: SurfOptions,
    input: Buffer<T>,
    memory: Memory<A>,
    descriptors: GpuDescriptors,
    graph: Graph,
}

/// What the stages hand on.
#[derive(Debug)]
struct Memory<A> {
    integral: GpuIntegral<A>,
    responses: Buffer<f32>,
    found: GpuKeypoints,
    order: [Buffer<u64>; 2],
    oriented: GpuKeypoints,
    directions: Buffer<f32>,
    descriptors: Buffer<f32>,
}

impl<A: GpuSum> Memory<A> {
    fn new(gpu: &Gpu, purpose: &Purpose<Layout>, responses: usize, dimension: usize) -> Result<Self> {
        let Purpose { layout: Layout { size, images }, capacity, .. } = *purpose;
        let room = capacity.saturating_mul(images);
        let found = GpuKeypoints::new(gpu, images, capacity)?;
        let words = room.saturating_mul(WORDS);
        Ok(Self {
            integral: GpuIntegral::new(gpu, size, images)?,
            responses: gpu.buffer(responses.saturating_mul(images))?,
            order: [gpu.buffer(room)?, gpu.buffer(room)?],
            oriented: GpuKeypoints { keypoints: gpu.buffer(words)?, ..found.clone() },
            found,
            directions: gpu.buffer(room.saturating_mul(2))?,
            descriptors: gpu.buffer(room.saturating_mul(dimension))?,
        })
    }
}

impl<T: GpuPixel, A: GpuSum> Typed<T, A> {
    /// Reserves the memory and records the work.
    fn new(core: &Core<SurfPipeline>, purpose: Purpose<Layout>, mask: Option<&GpuImage<u8>>) -> Result<Self> {
        let (gpu, options) = (&core.gpu, core.options);
        let Layout { size, images } = purpose.layout;
        gpu.require_waiting()?;
        let mut sources = vec![
            GpuIntegrator::<T, A>::source(),
            GpuResponse::<A>::source(),
            GpuExtrema::source(&options),
            GpuOrient::<A>::source(&options),
        ];
        sources.extend((options.dimension() > 0).then(|| GpuDescribe::<A>::source(&options)));
        compile(gpu, &core.cpu, sources)?;
        let white = if T::WHITE == 255.0 { 255.0 } else { 65535.0 };
        let table = DeviceLayers::upload(gpu, Layers::new(&plan::octaves(&options), size, white))?;
        let pitch = GpuImage::<T>::pitch_of(size.width);
        let input = gpu.buffer((pitch * size.height).saturating_mul(images))?;
        let memory = Memory::<A>::new(gpu, &purpose, table.layers.len, options.dimension())?;
        let Memory { integral, responses, found, oriented, directions, descriptors, .. } = &memory;
        let sums = Sums(integral);
        let mut commands = Commands::new();
        GpuIntegrator::<T, A>::new(gpu)?.record(&mut commands, &input, pitch, integral)?;
        GpuResponse::<A>::new(gpu)?.record(&mut commands, sums, &table, responses)?;
        let mask = mask.map(|mask| (mask.buffer(), mask.pitch()));
        GpuExtrema::new(gpu, &options)?.record(&mut commands, responses, &table, mask, size, found)?;
        commands.stage("order");
        let [order, spare] = &memory.order;
        let order = core.stages.record(&mut commands, found, (order, spare))?;
        let orient = GpuOrient::<A>::new(gpu, &options)?;
        orient.record(&mut commands, sums, (found, order), (oriented, directions))?;
        let describe = GpuDescribe::<A>::new(gpu, &options)?;
        describe.record(&mut commands, sums, (oriented, directions), descriptors)?;
        let launches = commands.launches();
        let graph = gpu.graph(commands)?;
        let descriptors = GpuDescriptors::F32(descriptors.clone());
        Ok(Self { purpose, launches, options, input, memory, descriptors, graph })
    }

    /// Puts all stages into the device's queue.
    fn begin(&self, images: &[AnyGpuImage], mask: Option<[&GpuImage<u8>; 2]>) -> Result<()>
    where
        for<'a> &'a GpuImage<T>: TryFrom<&'a AnyGpuImage, Error = Error>,
    {
        let mut commands = Commands::new();
        commands.stage("input");
        let len = self.input.len() / images.len();
        for (i, image) in images.iter().enumerate() {
            let image = <&GpuImage<T>>::try_from(image)?;
            let pitch = GpuImage::<T>::pitch_of(image.size().width);
            image.copy_rows(&mut commands, 0, (&self.input, i * len, pitch), image.size().height)?;
        }
        if let Some([from, to]) = mask {
            from.copy_rows(&mut commands, 0, (to.buffer(), 0, to.pitch()), to.size().height)?;
        }
        self.input.gpu().run(&commands)?;
        Ok(self.graph.run()?)
    }

    /// Where the results lie.
    fn lists(&self) -> Lists<'_> {
        Lists {
            counts: &self.memory.oriented.counts,
            keypoints: &self.memory.oriented.keypoints,
            descriptors: &self.descriptors,
            dimension: self.options.dimension(),
            capacity: self.purpose.capacity,
            selection: self.options.selection,
            size: self.purpose.layout.size,
        }
    }
}
