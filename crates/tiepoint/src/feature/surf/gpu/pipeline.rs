//! All stages for images of one size: memory reserved once, work kept as one graph.

use super::layers::{DeviceLayers, Layers};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, Graph, compile};
use crate::feature::WORDS;
use crate::feature::gpu::pipeline::{Core, Pipeline, Purpose};
use crate::feature::gpu::results::Lists;
use crate::feature::gpu::staging::copy_rows;
use crate::feature::gpu::{GpuDescriptors, GpuKeypoints};
use crate::feature::order;
use crate::feature::select::Selection;
use crate::feature::surf::{SurfOptions, describe, extrema, orient, plan, response};
use crate::filter::integral::{GpuIntegral, GpuIntegrator, GpuSum};
use crate::image::gpu::{AnyGpuImage, GpuImage, GpuPixel};
use crate::image::{PixelKind, Size};
use crate::{Result, by_pixel};
use std::convert::Infallible;
use std::ops::Range;

/// The memory and the work for images of one size and type of pixel.
#[derive(Debug)]
pub struct SurfPipeline {
    purpose: Purpose<Layout>,
    launches: usize,
    options: SurfOptions,
    /// All images in one, stacked vertically.
    input: AnyGpuImage,
    oriented: GpuKeypoints,
    descriptors: GpuDescriptors,
    graph: Graph,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    size: Size,
    images: usize,
}

impl Pipeline for SurfPipeline {
    const NAME: &'static str = "SURF";
    type Options = SurfOptions;
    type Layout = Layout;
    type Parts = Infallible;

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
        // At the default threshold a photograph has one feature in a few hundred pixels, an aerial photograph one in
        // 130.
        (layout.size.area() / 104).clamp(1024, 1 << 22).next_multiple_of(1024)
    }

    fn bytes(options: &SurfOptions, purpose: &Purpose<Layout>) -> u64 {
        let Purpose { layout: Layout { size, images }, pixel, masked, capacity } = purpose;
        let image = by_pixel!(type *pixel, T => {
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
        // The images as they arrive, and their copies that the work reads.
        (2 * images * image + usize::from(*masked) * mask + sums + responses + lists) as u64
    }

    fn mask_size(layout: &Layout) -> Size {
        layout.size
    }

    fn prepare(gpu: &Gpu, _: &Cpu, options: &SurfOptions) -> Result<()> {
        // The other programs also depend on the type of sums.
        Ok(gpu.program(&order::gpu::source(options.selection)).map(drop)?)
    }

    fn new(
        core: &Core<Self>,
        purpose: Purpose<Layout>,
        mask: Option<&GpuImage<u8>>,
        old: Option<Self>,
    ) -> Result<Self> {
        // Dropped first, because the new one may need its memory.
        drop(old);
        // Sums of bytes are 32 bits wide.
        match purpose.pixel {
            PixelKind::U8 => Self::of::<u8, u32>(core, purpose, mask),
            PixelKind::U16 => Self::of::<u16, u64>(core, purpose, mask),
            PixelKind::F32 => Self::of::<f32, u64>(core, purpose, mask),
        }
    }

    fn purpose(&self) -> &Purpose<Layout> {
        &self.purpose
    }

    fn launches(&self) -> usize {
        self.launches
    }

    fn begin(&self, images: &[AnyGpuImage], mask: Option<[&GpuImage<u8>; 2]>) -> Result<()> {
        let mut commands = Commands::new();
        commands.stage("input");
        let height = self.purpose.layout.size.height;
        for (i, image) in images.iter().enumerate() {
            copy_rows(&mut commands, (image, 0), (&self.input, i * height), height)?;
        }
        if let Some([from, to]) = mask {
            from.copy_rows(&mut commands, 0, (to.buffer(), 0, to.pitch()), to.size().height)?;
        }
        self.input.gpu().run(&commands)?;
        Ok(self.graph.run()?)
    }

    fn parcels(&self) -> &[(Range<usize>, Commands)] {
        &[]
    }

    fn lists(&self) -> Lists<'_> {
        Lists {
            found: &self.oriented,
            descriptors: &self.descriptors,
            dimension: self.options.dimension(),
            selection: self.options.selection,
            size: self.purpose.layout.size,
        }
    }
}

impl SurfPipeline {
    /// Reserves the memory and records the work for pixels `T`, summed in `A`.
    fn of<T: GpuPixel, A: GpuSum>(
        core: &Core<Self>,
        purpose: Purpose<Layout>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<Self> {
        let (gpu, options) = (&core.gpu, core.options);
        let Purpose { layout: Layout { size, images }, capacity, .. } = purpose;
        gpu.require_waiting()?;
        let mut sources = vec![
            GpuIntegrator::<T, A>::source(),
            response::gpu::source::<A>(),
            extrema::gpu::source(&options),
            orient::gpu::source::<A>(&options),
        ];
        sources.extend((options.dimension() > 0).then(|| describe::gpu::source::<A>(&options)));
        compile(gpu, &core.cpu, sources)?;
        let white = if T::WHITE == 255.0 { 255.0 } else { 65535.0 };
        let table = DeviceLayers::upload(gpu, Layers::new(&plan::octaves(&options), size, white))?;
        let input = GpuImage::<T>::new(gpu, Size { height: size.height.saturating_mul(images), ..size })?;
        // Buffers between the stages, which the graph keeps.
        let room = capacity.saturating_mul(images);
        let sums = GpuIntegral::<A>::new(gpu, size, images)?;
        let responses = gpu.buffer(table.layers.len.saturating_mul(images))?;
        let found = GpuKeypoints::new(gpu, images, capacity)?;
        let [order, spare] = [gpu.buffer(room)?, gpu.buffer(room)?];
        let oriented = GpuKeypoints { keypoints: gpu.buffer(room.saturating_mul(WORDS))?, ..found.clone() };
        let directions = gpu.buffer(room.saturating_mul(2))?;
        let descriptors = gpu.buffer(room.saturating_mul(options.dimension()))?;
        let mut commands = Commands::new();
        GpuIntegrator::<T, A>::new(gpu)?.record(&mut commands, input.buffer(), input.pitch(), &sums)?;
        response::gpu::record(&mut commands, &sums, &table, &responses)?;
        extrema::gpu::record(&mut commands, &options, &responses, &table, mask, size, &found)?;
        commands.stage("order");
        let order = order::gpu::record(&mut commands, options.selection, &found, (&order, &spare))?;
        orient::gpu::record(&mut commands, &options, &sums, (&found, order), (&oriented, &directions))?;
        describe::gpu::record(&mut commands, &options, &sums, (&oriented, &directions), &descriptors)?;
        let launches = commands.launches();
        let (graph, descriptors) = (gpu.graph(commands)?, GpuDescriptors::F32(descriptors));
        Ok(Self { purpose, launches, options, input: input.into(), oriented, descriptors, graph })
    }
}
