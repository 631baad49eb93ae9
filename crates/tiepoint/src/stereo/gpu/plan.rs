//! The stages for pairs of one shape as one list of commands, and the memory that it works in.

use super::arrange::GpuArrange;
use crate::{
    Error, Result,
    device::gpu::{Buffer, Commands, Gpu},
    error::Shortage,
    image::{
        AnyImage, Image, Rect, Size,
        gpu::{GpuPixel, GpuStack, PixelKind},
    },
    stereo::{
        RightView, StereoOptions, View,
        aggregation::gpu::{GpuAggregationInput, GpuStrips},
        cost::{
            CostSource,
            gpu::{CostKernel, GpuDescribe, GpuView},
        },
        pair::Pair,
        refinement::gpu::GpuRefinement,
        winner_takes_all::gpu::{GpuMaps, GpuWinnerTakesAll, Selection},
    },
};
use std::ops::Range;

/// Bytes of a pixel beside the aggregation: both views, what refinement works in, the maps and what keeps them.
const PIXEL: u64 = 100;

/// What the work for pairs depends on, beside the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) size: Size,
    /// Pairs at a time.
    pub(super) pairs: usize,
    pub(super) views: [ViewShape; 2],
}

/// The same of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ViewShape {
    /// The pixels of its grey.
    pub(super) grey: PixelKind,
    /// Channels of what the cost compares; `None`: the grey in 8 bits.
    pub(super) compared: Option<usize>,
    /// Whether it has pixels without data.
    pub(super) masked: bool,
    /// Differences of grey up to this may come from rounding alone.
    pub(super) rounding: u8,
}

impl Shape {
    /// That of a pair, so many at a time.
    pub(super) fn of(pair: &Pair, pairs: usize) -> Self {
        let view = |view| ViewShape {
            grey: pair.grey(view).view().pixel(),
            compared: compared(pair, view).map(Image::channels),
            masked: pair.mask(view).is_some(),
            rounding: pair.rounding(view),
        };
        Self { size: pair.size(), pairs, views: [view(View::Left), view(View::Right)] }
    }

    /// Whether either view has pixels without data.
    pub(super) fn masked(&self) -> bool {
        self.views.iter().any(|view| view.masked)
    }
}

/// What the cost compares where it is not the grey in 8 bits.
fn compared(pair: &Pair, view: View) -> Option<&Image<u8>> {
    Some(pair.compared(view)).filter(|compared| !std::ptr::eq(*compared, pair.bytes(view)))
}

/// The images of 8 bits of a pair in the order of [`Plan::bytes`].
pub(super) fn bytes_of(pair: &Pair) -> impl Iterator<Item = &Image<u8>> {
    [View::Left, View::Right]
        .into_iter()
        .flat_map(|view| std::iter::once(pair.bytes(view)).chain(compared(pair, view)).chain(pair.mask(view)))
}

/// Grey that is not of 8 bits.
#[derive(Clone, Debug)]
pub(super) enum FineGrey {
    U16(GpuStack<u16>),
    F32(GpuStack<f32>),
}

/// A view of some pairs on a device.
#[derive(Clone, Debug)]
pub(super) struct ViewStacks {
    /// Grey in 8 bits.
    pub(super) bytes: GpuStack<u8>,
    /// Grey in the picture's type, where that is not 8 bits.
    pub(super) grey: Option<FineGrey>,
    /// What the cost compares, where it is not the grey in 8 bits.
    pub(super) compared: Option<GpuStack<u8>>,
    pub(super) mask: Option<GpuStack<u8>>,
    rounding: u8,
}

impl ViewStacks {
    fn new(gpu: &Gpu, shape: &Shape, view: View) -> Result<Self> {
        let ViewShape { grey, compared, masked, rounding } = shape.views[view.index()];
        let stack = |channels| GpuStack::new(gpu, shape.size, channels, shape.pairs);
        Ok(Self {
            bytes: stack(1)?,
            grey: match grey {
                PixelKind::U8 => None,
                PixelKind::U16 => Some(FineGrey::U16(GpuStack::new(gpu, shape.size, 1, shape.pairs)?)),
                PixelKind::F32 => Some(FineGrey::F32(GpuStack::new(gpu, shape.size, 1, shape.pairs)?)),
            },
            compared: compared.map(stack).transpose()?,
            mask: masked.then(|| stack(1)).transpose()?,
            rounding,
        })
    }

    /// Some rows of a view.
    pub(super) fn of_rows(gpu: &Gpu, pair: &Pair, view: View, rows: &Range<usize>) -> Result<Self> {
        fn upload<T: GpuPixel>(gpu: &Gpu, image: &Image<T>, rows: &Range<usize>) -> Result<GpuStack<T>> {
            let size = Size::new(image.size().width, rows.len());
            GpuStack::upload(gpu, &[image.view().crop(Rect { x: 0, y: rows.start, size })?])
        }
        Ok(Self {
            bytes: upload(gpu, pair.bytes(view), rows)?,
            grey: match pair.grey(view) {
                AnyImage::U8(_) => None,
                AnyImage::U16(grey) => Some(FineGrey::U16(upload(gpu, grey, rows)?)),
                AnyImage::F32(grey) => Some(FineGrey::F32(upload(gpu, grey, rows)?)),
            },
            compared: compared(pair, view).map(|image| upload(gpu, image, rows)).transpose()?,
            mask: pair.mask(view).map(|image| upload(gpu, image, rows)).transpose()?,
            rounding: pair.rounding(view),
        })
    }

    /// The view mirrored.
    fn mirrored(&self, commands: &mut Commands) -> Result<Self> {
        let mut bytes = |stack: &GpuStack<u8>| mirrored(commands, stack);
        let (grey8, compared) = (bytes(&self.bytes)?, self.compared.as_ref().map(&mut bytes).transpose()?);
        let mask = self.mask.as_ref().map(&mut bytes).transpose()?;
        let grey = match &self.grey {
            None => None,
            Some(FineGrey::U16(grey)) => Some(FineGrey::U16(mirrored(commands, grey)?)),
            Some(FineGrey::F32(grey)) => Some(FineGrey::F32(mirrored(commands, grey)?)),
        };
        Ok(Self { bytes: grey8, grey, compared, mask, rounding: self.rounding })
    }

    /// Its descriptors.
    pub(super) fn describe(&self, commands: &mut Commands, cost: (&CostKernel, bool)) -> Result<Buffer<u32>> {
        match &self.grey {
            // Grey of 8 bits is what it is in 8 bits.
            None => self.describe_grey(commands, cost, &self.bytes),
            Some(FineGrey::U16(grey)) => self.describe_grey(commands, cost, grey),
            Some(FineGrey::F32(grey)) => self.describe_grey(commands, cost, grey),
        }
    }

    fn describe_grey<T: GpuPixel>(
        &self,
        commands: &mut Commands,
        (cost, masked): (&CostKernel, bool),
        grey: &GpuStack<T>,
    ) -> Result<Buffer<u32>> {
        let compared = self.compared.as_ref().unwrap_or(&self.bytes);
        let view = GpuView { grey, compared, mask: self.mask.as_ref(), rounding: self.rounding };
        GpuDescribe::<T>::new(grey.gpu(), cost, masked)?.record(commands, &view)
    }
}

fn mirrored<T: GpuPixel>(commands: &mut Commands, stack: &GpuStack<T>) -> Result<GpuStack<T>> {
    GpuArrange::<T>::new(stack.gpu())?.mirrored(commands, stack)
}

/// From the images of pairs of one shape to their disparities.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) gpu: Gpu,
    pub(super) shape: Shape,
    pub(super) views: [ViewStacks; 2],
    /// What the costs look up, where they do: for the left view, and for a right view aggregated for itself.
    pub(super) tables: Vec<Buffer<u8>>,
    /// The work.
    pub(super) commands: Commands,
    /// What it leaves.
    pub(super) maps: GpuMaps,
}

impl Plan {
    pub(super) fn new(
        gpu: &Gpu,
        options: &StereoOptions,
        shape: Shape,
        source: &dyn CostSource,
    ) -> Result<Self> {
        check_memory(gpu, options, &shape, source)?;
        let views = [ViewStacks::new(gpu, &shape, View::Left)?, ViewStacks::new(gpu, &shape, View::Right)?];
        let (mut commands, mut tables) = (Commands::new(), Vec::new());
        let stages = Stages { gpu, options, shape: &shape };
        let [left, right] = &views;
        let (mut maps, table) =
            stages.record(&mut commands, source, [left, right], Selection::of(options))?;
        tables.extend(table);
        if options.right_view == RightView::Aggregated
            && let Some(source) = source.exchanged()
        {
            let exchanged = [right.mirrored(&mut commands)?, left.mirrored(&mut commands)?];
            let (exchanged, table) =
                stages.record(&mut commands, &*source, exchanged.each_ref(), Selection::of_left(options))?;
            tables.extend(table);
            maps.right = Some(mirrored(&mut commands, &exchanged.disparity)?);
        }
        let maps = GpuRefinement::new(gpu, options)?.record(&mut commands, maps, left.mask.as_ref())?;
        Ok(Self { gpu: gpu.clone(), shape, views, tables, commands, maps })
    }

    /// The stacks of 8 bits, in one order.
    pub(super) fn bytes(&self) -> impl Iterator<Item = &GpuStack<u8>> {
        self.views
            .iter()
            .flat_map(|view| std::iter::once(&view.bytes).chain(&view.compared).chain(&view.mask))
    }

    /// The stacks of finer grey, in the order of [`fine_of`].
    pub(super) fn fine(&self) -> (Vec<&GpuStack<u16>>, Vec<&GpuStack<f32>>) {
        let (mut words, mut floats) = (Vec::new(), Vec::new());
        for grey in self.views.iter().filter_map(|view| view.grey.as_ref()) {
            match grey {
                FineGrey::U16(grey) => words.push(grey),
                FineGrey::F32(grey) => floats.push(grey),
            }
        }
        (words, floats)
    }
}

/// Fails where the work takes more of the device's memory than the options allow.
fn check_memory(gpu: &Gpu, options: &StereoOptions, shape: &Shape, source: &dyn CostSource) -> Result<()> {
    let Some(limit) = options.device_memory else { return Ok(()) };
    let cost = CostKernel::of(source, gpu)?;
    let pairs = (shape.size, shape.pairs);
    let input = GpuAggregationInput::of(options, pairs, source.greatest(), shape.masked());
    let aggregation = GpuStrips::new(gpu, &cost, &input)?;
    let pair = aggregation.bytes(shape.size).saturating_add(PIXEL.saturating_mul(shape.size.area() as u64));
    let views = if options.right_view == RightView::Aggregated { 2 } else { 1 };
    let needed = pair.saturating_mul(shape.pairs as u64).saturating_mul(views);
    match needed > limit {
        true => {
            let shortage = Shortage::Device { name: gpu.info().name.clone(), free: Some(limit) };
            Err(Error::Memory { what: "dense stereo on a GPU", needed, shortage })
        }
        false => Ok(()),
    }
}

/// The tables that a source looks up, in the order of [`Plan::tables`].
pub(super) fn tables_of(gpu: &Gpu, options: &StereoOptions, source: &dyn CostSource) -> Result<Vec<Vec<u8>>> {
    let exchanged = match options.right_view {
        RightView::Aggregated => source.exchanged(),
        RightView::Off | RightView::Diagonal => None,
    };
    let mut tables = vec![CostKernel::of(source, gpu)?.table];
    tables.extend(exchanged.map(|source| CostKernel::of(&*source, gpu)).transpose()?.map(|cost| cost.table));
    tables.retain(|table| !table.is_empty());
    Ok(tables)
}

/// From views to disparities before refinement.
struct Stages<'a> {
    gpu: &'a Gpu,
    options: &'a StereoOptions,
    shape: &'a Shape,
}

impl Stages<'_> {
    /// Also gives the table that the cost looks up.
    fn record(
        &self,
        commands: &mut Commands,
        source: &dyn CostSource,
        [left, right]: [&ViewStacks; 2],
        selection: Selection,
    ) -> Result<(GpuMaps, Option<Buffer<u8>>)> {
        let Self { gpu, options, shape } = *self;
        let (cost, masked) = (CostKernel::of(source, gpu)?, shape.masked());
        let input = GpuAggregationInput::of(options, (shape.size, shape.pairs), source.greatest(), masked);
        let left_words = left.describe(commands, (&cost, masked))?;
        let right_words = right.describe(commands, (&cost, masked))?;
        let descriptors = (&left_words, &right_words);
        let aggregation = GpuStrips::new(gpu, &cost, &input)?;
        let sums = aggregation.record(commands, descriptors, &left.bytes)?;
        let layout = aggregation.layout();
        let winner = GpuWinnerTakesAll::new(gpu, (&cost, masked), layout, options.min_disparity, selection)?;
        let maps = winner.record(commands, &sums, descriptors, (shape.size, shape.pairs))?;
        Ok((maps, (!cost.table.is_empty()).then(|| aggregation.table().clone())))
    }
}

/// The grey of 16 bits and the floats of a pair, in the order of its views.
pub(super) fn fine_of(pair: &Pair) -> (Vec<&Image<u16>>, Vec<&Image<f32>>) {
    let (mut words, mut floats) = (Vec::new(), Vec::new());
    for view in [View::Left, View::Right] {
        match pair.grey(view) {
            AnyImage::U8(_) => {}
            AnyImage::U16(grey) => words.push(grey),
            AnyImage::F32(grey) => floats.push(grey),
        }
    }
    (words, floats)
}
