//! Filters on a GPU: [`GpuFilter`], and the code that their kernels share.
//!
//! [`GpuFilter`] has a constructor for every filter, in the file beside its CPU form. Separable filters share a kernel,
//! `tile.h`, which does the vertical and the horizontal pass at once; filters that reach farther than a tile's margin
//! use two kernels, `passes.h`.

use super::border;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::gpu::{GpuImage, GpuStack, Plane};
use crate::image::{Border, Size};
use crate::{Error, Result};
use tiepoint_gpu::{Element, Kernel, KernelSource};

/// A filter for images of one pixel type and number of channels, compiled for a device.
///
/// ```no_run
/// use tiepoint::device::gpu::{Api, Gpu};
/// use tiepoint::filter::{gauss::GaussOptions, gpu::GpuFilter};
/// use tiepoint::image::{Image, Size, gpu::GpuImage};
/// let gpu = Gpu::open(Api::Cuda, 0).map_err(tiepoint::Error::from)?;
/// let image = GpuImage::upload(&gpu, Image::<f32>::new(Size::new(640, 480)).view())?;
/// let smooth = GpuFilter::gauss(&gpu, &GaussOptions::sigma(1.6), 1)?.filter(&image)?;
/// # Ok::<(), tiepoint::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GpuFilter<I: Element, O: Element> {
    gpu: Gpu,
    stage: &'static str,
    steps: Steps<I, O>,
    /// Channels of the input and of the output.
    channels: [usize; 2],
    resized: fn(Size) -> Size,
}

#[derive(Clone, Debug)]
pub(crate) enum Steps<I: Element, O: Element> {
    One(Step<Filter<'static, I, O>>),
    /// One kernel that reads its weights from memory.
    Weighted(Step<Weighted<'static, I, O>>, Buffer<f32>),
    /// The kernel for columns, then that for rows.
    Two(Step<Columns<'static, I>>, Step<Rows<'static, I, O>>),
}

/// A kernel, and the part of the output, in elements, that one group computes. All groups of an image lie along the
/// first dimension, because the second allows fewer groups; the third counts images.
#[derive(Clone, Debug)]
pub(crate) struct Step<A> {
    kernel: Kernel<A>,
    covers: Size,
}

impl<A> Step<A> {
    pub(crate) fn new(kernel: Kernel<A>, covers: Size) -> Self {
        Self { kernel, covers }
    }

    /// The grid of groups of a launch, and how many groups lie side by side.
    fn groups<O: Element>(&self, to: &GpuStack<O>) -> ([usize; 3], i32) {
        let across = (to.size().width * to.channels()).div_ceil(self.covers.width);
        let all = across * to.size().height.div_ceil(self.covers.height);
        ([all, 1, to.count()], across as i32)
    }
}

tiepoint_gpu::kernel! {
    pub(crate) unsafe kernel filter(groups) = Filter<I: Element, O: Element> {
        write to (to_plane: Plane): O [to_plane.numbers(groups[2])],
        read from (from_plane: Plane): I [from_plane.numbers(groups[2])],
    } {
        /// Groups side by side.
        across: i32,
    }

    /// Computes one image from another with the WIDTH · HEIGHT weights of the program's window.
    pub(crate) unsafe kernel weighted(groups) = Weighted<I: Element, O: Element> {
        write to (to_plane: Plane): O [to_plane.numbers(groups[2])],
        read from (from_plane: Plane): I [from_plane.numbers(groups[2])],
        read weights: f32 [number],
    } {
        number: u32,
        across: i32,
    }

    /// Computes the vertical sums: 32-bit floats or integers.
    pub(crate) unsafe kernel columns(groups) = Columns<I: Element> {
        write to (to_plane: Plane): f32 as MID [to_plane.numbers(groups[2])],
        read from (from_plane: Plane): I [from_plane.numbers(groups[2])],
    } {
        across: i32,
    }

    /// Computes the image from the sums of columns; the pixels are read for [`Border::Skip`].
    pub(crate) unsafe kernel rows(groups) = Rows<I: Element, O: Element> {
        write to (to_plane: Plane): O [to_plane.numbers(groups[2])],
        read from (from_plane: Plane): f32 as MID [from_plane.numbers(groups[2])],
        read pixels (pixels_plane: Plane): I [pixels_plane.numbers(groups[2])],
    } {
        across: i32,
    }
}

impl<I: Element, O: Element> GpuFilter<I, O> {
    pub(crate) fn new(
        gpu: &Gpu,
        stage: &'static str,
        steps: Steps<I, O>,
        channels: [usize; 2],
        resized: fn(Size) -> Size,
    ) -> Self {
        Self { gpu: gpu.clone(), stage, steps, channels, resized }
    }

    pub(super) fn separable<D: Fn(KernelSource) -> KernelSource>(gpu: &Gpu, shape: Shape<D>) -> Result<Self> {
        let shape = shape.fitting(gpu);
        let program = gpu.program(&shape.source::<I, O>())?;
        let steps = match shape.tile() {
            Some(tile) => Steps::One(Step::new(program.kernel::<Filter<'_, I, O>>()?, tile.size)),
            None => {
                let covers = Size::new(ACROSS * LANES as usize, shape.rows_a_lane());
                let columns = Step::new(program.kernel::<Columns<'_, I>>()?, covers);
                let covers = Size::new(LANES as usize, 1);
                Steps::Two(columns, Step::new(program.kernel::<Rows<'_, I, O>>()?, covers))
            }
        };
        Ok(Self::new(gpu, shape.name, steps, [shape.channels; 2], |size| size))
    }

    /// Filters an image.
    ///
    /// # Errors
    /// [`Error::Image`] when the image has another number of channels than the filter was made for, [`Error::Memory`]
    /// when the device's memory is too small.
    pub fn filter(&self, image: &GpuImage<I>) -> Result<GpuImage<O>> {
        let size = (self.resized)(image.size());
        let out = GpuImage::with_channels(&self.gpu, size, self.channels[1])?;
        let mut commands = Commands::new();
        self.record(&mut commands, image, &out)?;
        self.gpu.run(&commands)?;
        Ok(out)
    }

    /// Records the work for an image. `to` must have the size that [`output_size`](Self::output_size) gives.
    ///
    /// # Errors
    /// As [`filter`](Self::filter), and [`Error::Image`] when `to` has the wrong shape.
    pub fn record(&self, commands: &mut Commands, from: &GpuImage<I>, to: &GpuImage<O>) -> Result<()> {
        let (from, to) = (GpuStack::of(from, commands)?, GpuStack::result(to)?);
        self.record_batch(commands, &from, &to)
    }

    /// As [`record`](Self::record), for all images of a stack.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn record_batch(&self, commands: &mut Commands, from: &GpuStack<I>, to: &GpuStack<O>) -> Result<()> {
        let found = (from.channels(), to.size(), to.channels(), to.count());
        let size = (self.resized)(from.size());
        if found != (self.channels[0], size, self.channels[1], from.count()) {
            let [channels, out] = self.channels;
            return Err(Error::Image(format!(
                "{}: this filter turns {channels} channels into {out} and {} into {size}; got an input of {} channels \
                 and an output of {} with {} channels, in {} images instead of {}",
                self.stage,
                from.size(),
                from.channels(),
                to.size(),
                to.channels(),
                to.count(),
                from.count(),
            )));
        }
        commands.stage(self.stage);
        let input = from.laid();
        match &self.steps {
            Steps::One(step) => {
                let (groups, across) = step.groups(to);
                commands.launch(&step.kernel, groups, Filter { to: to.laid(), from: input, across })?;
            }
            Steps::Weighted(step, weights) => {
                let (groups, across) = step.groups(to);
                let number = weights.len() as u32;
                let weighted = Weighted { to: to.laid(), from: input, weights, number, across };
                commands.launch(&step.kernel, groups, weighted)?;
            }
            Steps::Two(columns, rows) => {
                let sums = GpuStack::<f32>::new(&self.gpu, to.size(), to.channels(), to.count())?;
                let (groups, across) = columns.groups(&sums);
                let first = Columns { to: sums.laid(), from: input, across };
                commands.launch(&columns.kernel, groups, first)?;
                let (groups, across) = rows.groups(to);
                let second = Rows { to: to.laid(), from: sums.laid(), pixels: input, across };
                commands.launch(&rows.kernel, groups, second)?;
            }
        }
        Ok(())
    }

    /// The size of the filtered image.
    pub fn output_size(&self, input: Size) -> Size {
        (self.resized)(input)
    }
}

/// Lanes of a group.
pub(crate) const LANES: u32 = 256;

/// Neighbouring columns of elements that a lane sums.
const ACROSS: usize = 2;

/// The number of elements of a tile's row, including its margins.
const TILE_WIDTH: usize = 128;

/// A lane whose window has at most this many rows reads all of them before it uses the first.
const WHOLE_WINDOW: usize = 32;

/// The farthest that a filter with tiles may reach, in elements and in rows: a lane holds its window in registers.
const MARGIN: usize = 32;

/// For kernels: `LANES`, `CHANNELS`, `VECTOR`, and the struct `Plane`.
pub(crate) fn for_kernels(source: KernelSource, channels: usize) -> KernelSource {
    let source = source.define("LANES", LANES).define("CHANNELS", channels).structure::<Plane>();
    source.text(include_str!("vector.h"))
}

/// For kernels: the border rule, and the functions for elements and windows that depend on it.
pub(super) fn border_for_kernels(source: KernelSource, border: Border) -> KernelSource {
    border::for_kernels(source, border).text(include_str!("elements.h"))
}

/// A separable filter.
pub(super) struct Shape<D> {
    /// The name of the stage and of the program.
    pub(super) name: &'static str,
    /// Rows above and below the centre.
    pub(super) rows: [usize; 2],
    /// Pixels left and right of it.
    pub(super) columns: [usize; 2],
    pub(super) channels: usize,
    pub(super) border: Border,
    /// The type between the passes.
    pub(super) sum: &'static str,
    /// How many sums of each column the horizontal pass needs.
    pub(super) planes: usize,
    /// The kernel's functions `down` and `along`, and `far` where a filter may reach farther than [`MARGIN`].
    pub(super) text: &'static str,
    /// Adds the definitions of its arithmetic to the program.
    pub(super) definitions: D,
    /// Bytes of local memory available to a group: [`LOCAL_MEMORY`] until [`fitting`](Self::fitting) sets the device's.
    pub(super) local_memory: u32,
}

/// Bytes of local memory that nearly every GPU has for a group.
pub(super) const LOCAL_MEMORY: u32 = 48 << 10;

/// The number of lanes of a group that lie one above the other in a tile.
const SEGMENTS: usize = LANES as usize / (TILE_WIDTH / ACROSS);

struct Tile {
    size: Size,
    /// Elements of the left and of the right margin, in whole vectors of four.
    margins: [usize; 2],
}

impl<D: Fn(KernelSource) -> KernelSource> Shape<D> {
    /// With the local memory of a device.
    pub(super) fn fitting(self, gpu: &Gpu) -> Self {
        Self { local_memory: gpu.info().local_memory, ..self }
    }

    /// Elements left and right of the centre.
    fn reach(&self) -> [usize; 2] {
        self.columns.map(|n| n * self.channels)
    }

    /// The number of outputs of a column that a lane computes together, so that every row is loaded once for all of
    /// them.
    fn rows_a_lane(&self) -> usize {
        // Local memory is to hold every plane of a tile.
        let rows = if self.planes == 1 { 16 } else { 8 };
        let bytes = |rows| self.planes * SEGMENTS * rows * TILE_WIDTH * size_of::<f32>();
        if bytes(rows) <= self.local_memory as usize { rows } else { rows / 2 }
    }

    /// Rows of a lane's window.
    fn window(&self) -> usize {
        self.rows[0] + self.rows_a_lane() + self.rows[1]
    }

    /// The number of groups that a multiprocessor can hold at a time, with windows and sums in registers.
    fn resident(&self) -> u32 {
        if self.planes < 3 && self.window() <= WHOLE_WINDOW { 3 } else { 2 }
    }

    /// The tile, or `None` if the filter reaches too far for one.
    fn tile(&self) -> Option<Tile> {
        let margins = self.reach().map(|n| n.next_multiple_of(4));
        let fits = margins.iter().all(|&n| n <= MARGIN) && self.rows.iter().all(|&n| n <= MARGIN);
        let size = || Size::new(TILE_WIDTH - margins[0] - margins[1], SEGMENTS * self.rows_a_lane());
        fits.then(|| Tile { size: size(), margins })
    }

    pub(super) fn source<I: Element, O: Element>(&self) -> KernelSource {
        let tile = self.tile();
        let mut source = for_kernels(KernelSource::new(self.name), self.channels)
            .define("IN", I::NAME)
            .define("OUT", O::NAME)
            .define("MID", self.sum)
            .define("PLANES", self.planes)
            .define("V", self.rows_a_lane())
            .define("UP", self.rows[0])
            .define("DOWN", self.rows[1])
            .define("LEFT", self.reach()[0])
            .define("RIGHT", self.reach()[1]);
        if self.window() <= WHOLE_WINDOW {
            source = source.define("WHOLE_WINDOW", 1);
        }
        if let Some(tile) = &tile {
            source = source
                .define("FUSED", 1)
                .define("TILE_WIDTH", tile.size.width)
                .define("TILE_HEIGHT", tile.size.height)
                .define("HALO_LEFT", tile.margins[0])
                .define("HALO_RIGHT", tile.margins[1])
                .kernel_resident::<Filter<'_, I, O>>([LANES, 1], self.resident());
        }
        let source = border_for_kernels(source, self.border);
        let source = (self.definitions)(source).text(include_str!("tile.h")).text(self.text);
        match tile {
            Some(_) => source,
            None => source
                .kernel::<Columns<'_, I>>([LANES, 1])
                .kernel::<Rows<'_, I, O>>([LANES, 1])
                .text(include_str!("passes.h")),
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::device::Cpu;
    use crate::device::gpu::all;
    use crate::filter::testing::{data, strided};
    use crate::image::gpu::GpuPixel;
    use crate::image::testing::{Value, assert_same};
    use crate::image::{Image, ImageView};

    /// Images with sizes around those of tiles, some of several tiles in both directions, every third with one value
    /// far below black, and a photograph if the shared data have it.
    pub(crate) fn images<T: GpuPixel>(channels: usize) -> Vec<Image<T>> {
        let sizes = [(1_usize, 1), (1, 70), (70, 1), (2, 3), (33, 57), (129, 9), (131, 60), (300, 125)];
        let mut images: Vec<_> = (sizes.into_iter().enumerate())
            .map(|(n, (width, height))| {
                let size = Size::new(width.div_ceil(channels), height);
                let (mut buffer, stride) = strided::<T>(size, channels, n as u32 + 1);
                if n % 3 == 0 {
                    let at = buffer.len() / 2;
                    buffer[at] = T::from_f32(-3.5 * T::WHITE);
                }
                ImageView::new(&buffer, size, channels, stride).unwrap().to_image()
            })
            .collect();
        if channels == 1 {
            let photo = data("filters/elephant.png");
            if photo.is_none() {
                println!("no ../shared/data here: without the photograph");
            }
            images.extend(photo.map(|photo| {
                let values = photo.data().iter().map(|&v| T::from_f32(f32::from(v) / 255.0 * T::WHITE));
                Image::from_vec(values.collect(), photo.size(), 1).unwrap()
            }));
        }
        images
    }

    /// Asserts that a device's form gives the CPU's bits for all [`images`], alone and in a stack.
    pub(crate) fn twins<I: GpuPixel, O: Element + Value>(
        channels: usize,
        plan: impl Fn(&Gpu) -> Result<GpuFilter<I, O>>,
        on_cpu: impl Fn(ImageView<'_, I>, &Cpu) -> Result<Image<O>>,
        context: impl std::fmt::Display,
    ) {
        let (images, cpu) = (images::<I>(channels), Cpu::default());
        let cpu = |view: ImageView<'_, I>| on_cpu(view, &cpu).unwrap();
        let context = format!("{} x {channels} to {}, {context}", I::NAME, O::NAME);
        for gpu in all() {
            let plan = plan(gpu).unwrap();
            for image in &images {
                let context = format!("{gpu:?}, {}, {context}", image.size());
                let on_device = GpuImage::upload(gpu, image.view()).unwrap();
                let found = plan.filter(&on_device).unwrap().download().unwrap();
                assert_same(&found, &cpu(image.view()), context);
            }
            let image = &images[images.len().min(5) - 1];
            let mut turned = image.clone();
            turned.data_mut().reverse();
            let stack = GpuStack::upload(gpu, &[image.view(), turned.view(), image.view()]).unwrap();
            let size = plan.output_size(image.size());
            let out = GpuStack::new(gpu, size, plan.channels[1], 3).unwrap();
            let mut commands = Commands::new();
            plan.record_batch(&mut commands, &stack, &out).unwrap();
            gpu.run(&commands).unwrap();
            for (i, image) in [image, &turned, image].into_iter().enumerate() {
                let context = format!("{gpu:?}, image {i} of a stack, {context}");
                assert_same(&out.download(i).unwrap(), &cpu(image.view()), context);
            }
        }
    }

    #[test]
    fn wrong_shapes_are_refused() {
        for gpu in all() {
            let plan = GpuFilter::<u8, u8>::gauss(gpu, &Default::default(), 1).unwrap();
            let colour = GpuImage::<u8>::with_channels(gpu, Size::new(5, 5), 3).unwrap();
            assert!(plan.filter(&colour).is_err(), "three channels");
            let (from, to) = (GpuImage::new(gpu, Size::new(5, 5)), GpuImage::new(gpu, Size::new(5, 6)));
            assert!(plan.record(&mut Commands::new(), &from.unwrap(), &to.unwrap()).is_err(), "another size");
        }
    }
}
