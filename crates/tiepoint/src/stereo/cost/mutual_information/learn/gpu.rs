//! Learning on a device: as part of a plan or, if the host prepares the pair, before the plan. Maps, histograms and
//! tables stay on the device.

use super::super::information;
use super::super::projection::gpu::GpuProjection;
use super::super::projection::{self, ColourImage};
use super::super::{CostTable, LIMIT, VALUES};
use super::{FIRST, finest, halved, levels, nearest_to_zero, rounds, searching};
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::filter::gpu::GpuFilter;
use crate::filter::resample::Scaling;
use crate::image::Size;
use crate::image::gpu::{GpuStack, Plane};
use crate::stereo::aggregation::gpu::GpuAggregationInput;
use crate::stereo::cost::gpu::{CostKernel, GpuCost};
use crate::stereo::cost::{self, DescriptorCost};
use crate::stereo::gpu::lanes::{GROUP, covering, launch, pixel_a_lane};
use crate::stereo::gpu::{check_memory, matching};
use crate::stereo::pair::Pair;
use crate::stereo::pair::gpu::{Compares, ViewStacks};
use crate::stereo::{StereoOptions, View, consistency_check, median};
use crate::{Error, Result};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    unsafe kernel halve_mask(groups) = HalveMask {
        write to (plane: Plane): u8 [plane.numbers(groups[2])],
        read from (from_plane: Plane): u8 [from_plane.numbers(groups[2])],
    } {
        across: i32,
    }
}

fn source() -> KernelSource {
    pixel_a_lane(KernelSource::new("learning"))
        .structure::<Plane>()
        .kernel::<HalveMask<'_>>(GROUP)
        .text(include_str!("halve_mask.cl"))
}

/// Records the learning from pairs, whose cost looks a table up; learnt tables are copied to that cost's table.
struct GpuLearning<'a> {
    pairs: GpuAggregationInput<'a>,
    halve: &'a GpuFilter<u8, u8>,
    commands: &'a mut Commands,
}

/// How the table of the cost is learnt on the device on which the pair lies.
#[derive(Clone, Copy, Debug)]
pub(in crate::stereo) struct LearnTable {
    /// Which part of the left and of the right picture it learns from.
    pub(in crate::stereo) learns_from: [Compares; 2],
}

/// The table that the cost looks up, the table for the pair with its images exchanged, and the view whose compared
/// image is [learnt](Compares::LearntGrey), if any, with that image.
type Learnt = ([Buffer<u8>; 2], Option<(View, GpuStack<u8>)>);

/// The cost that learns from each pair; `are_colour` is which of the pictures have colour.
pub(in super::super) fn cost(are_colour: [bool; 2]) -> GpuCost {
    const GREY: Compares = Compares::OwnGrey;
    const COLOURS: Compares = Compares::OwnColours;
    let learns_from = match are_colour {
        [true, true] => [Compares::OwnGreen; 2],
        one_or_none => one_or_none.map(|colour| if colour { COLOURS } else { GREY }),
    };
    let compares = learns_from.map(|from| if from == COLOURS { Compares::LearntGrey } else { from });
    let cost = GpuCost::new(no_table(), Some(no_table()), LIMIT.into());
    GpuCost { learner: Some(LearnTable { learns_from }), compares, ..cost }
}

/// The cost with a table of zeroes, which the learnt table replaces.
fn no_table() -> CostKernel {
    DescriptorCost::kernel(&CostTable(vec![0; VALUES * VALUES]))
}

impl LearnTable {
    /// The view of a pair whose grey is learnt.
    fn colour(&self) -> Option<View> {
        [View::Left, View::Right]
            .into_iter()
            .find(|view| self.learns_from[view.index()] == Compares::OwnColours)
    }

    /// The computations of disparities while learning, in order: their sizes and options.
    fn runs(&self, options: &StereoOptions, size: Size) -> Vec<(Size, StereoOptions)> {
        let mut runs = match options.iterations {
            Some(n) => vec![(size, *options); usize::from(n).saturating_sub(1)],
            None => coarse_to_fine(options, size),
        };
        if self.colour().is_some() && rounds(size) > 0 {
            // All rounds use the memory of the first.
            let (size, options) = (half(size), halved(options, 1));
            runs.extend(coarse_to_fine(&options, size));
            runs.push((size, options));
        }
        runs
    }

    /// The programs that it needs, except very short ones.
    pub(in crate::stereo) fn sources(&self, pairs: &GpuAggregationInput<'_>) -> Result<Vec<KernelSource>> {
        pairs.gpu.require_f64()?;
        let mut sources = vec![
            source(),
            information::gpu::source(),
            median::gpu::source(3),
            consistency_check::gpu::source(),
            cost::gpu::source::<u8>(pairs.cost, pairs.masked),
        ];
        sources.extend(self.colour().map(|_| projection::gpu::source()));
        for (size, options) in self.runs(&pairs.options, pairs.size) {
            sources.extend(matching::sources(&at(pairs, size, &options))?);
        }
        Ok(sources)
    }

    /// Bytes of memory that it takes.
    pub(in crate::stereo) fn bytes(&self, pairs: &GpuAggregationInput<'_>) -> Result<u64> {
        let search = if self.colour().is_some() { projection::gpu::BYTES } else { 0 };
        self.runs(&pairs.options, pairs.size).iter().try_fold(search, |sum, (size, options)| {
            let pixels = PIXEL.saturating_mul(size.area() as u64);
            let bytes = at(pairs, *size, options).bytes()?;
            Ok(sum.saturating_add(bytes).saturating_add(pixels))
        })
    }

    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        pairs: &GpuAggregationInput<'_>,
        views: [&ViewStacks; 2],
    ) -> Result<Learnt> {
        let (gpu, options) = (pairs.gpu, &pairs.options);
        if u32::try_from(views[0].bytes.size().area()).is_err() {
            let device = gpu.info().name.clone();
            let feature = "counters for more than 2³² pixels, which the CPU has".into();
            return Err(Error::Unsupported { device, feature });
        }
        gpu.require_f64()?;
        let halve = &GpuFilter::resample(gpu, Scaling::HalveMean, 1)?;
        let mut views = views.map(Clone::clone);
        let mut learning = GpuLearning { pairs: *pairs, halve, commands };
        let grey = self.colour().map(|view| learning.project(&mut views, options, view)).transpose()?;
        let table = match options.iterations {
            Some(n) => learning.iterate(&views, options, usize::from(n))?,
            None => learning.coarse_to_fine(views, options)?,
        };
        let exchanged = information::gpu::exchanged(commands, &table)?;
        Ok(([table, exchanged], self.colour().zip(grey)))
    }
}

/// As [`LearnTable::runs`], from coarse to fine.
fn coarse_to_fine(options: &StereoOptions, size: Size) -> Vec<(Size, StereoOptions)> {
    let (halvings, options) = (levels(size), searching(options, size));
    let mut at = size;
    let mut runs: Vec<_> = (1..=halvings)
        .map(|level| {
            at = half(at);
            (at, halved(&options, level))
        })
        .skip(finest(size).saturating_sub(1))
        .collect();
    runs.extend([(at, halved(&options, halvings)); FIRST - 1]);
    runs
}

/// Bytes for each pixel besides the aggregation: both views in 8 bits with masks, and maps before and after filtering.
const PIXEL: u64 = 6 + 20;

fn half(size: Size) -> Size {
    Size::new(size.width.div_ceil(2), size.height.div_ceil(2))
}

/// The input for computing disparities from a table, at this size.
fn at<'a>(pairs: &GpuAggregationInput<'a>, size: Size, options: &StereoOptions) -> GpuAggregationInput<'a> {
    GpuAggregationInput { size, images: 1, options: options.for_both(), ..*pairs }
}

/// The table for the pair at its full size, with the bytes of [`learn::table`](super::table). If only one view is in
/// colour, also replaces its compared image, as [`learn::project`](super::project) does. If the device is too small or
/// lacks `f64`, fails with a device limit ([`Error::is_device_limit`](crate::Error::is_device_limit)) and does not
/// change the pair.
pub(in super::super) fn learn(
    gpu: &Gpu,
    pair: &mut Pair,
    colour: Option<&ColourImage>,
    options: &StereoOptions,
) -> Result<CostTable> {
    gpu.require_f64()?;
    let both = [View::Left, View::Right];
    let of =
        |view| if colour.is_some_and(|c| c.view == view) { Compares::OwnColours } else { Compares::OwnGrey };
    let learner = LearnTable { learns_from: both.map(of) };
    let (cost, greatest, masked) = (&no_table(), LIMIT.into(), pair.is_masked());
    let (options, size, images, banded, volume) = (*options, pair.size(), 1, false, None);
    let pairs = &GpuAggregationInput { gpu, options, cost, greatest, masked, size, images, banded, volume };
    let needed = learner.bytes(pairs)?;
    check_memory(gpu, &options, "learning mutual information on a GPU", needed)?;
    let rows = 0..pair.size().height;
    let view = |view| ViewStacks::of_rows(gpu, pair, view, &rows);
    let mut views = [view(View::Left)?, view(View::Right)?];
    if let Some(colour) = colour {
        let colours = GpuStack::upload(gpu, &[colour.channels.view()])?;
        views[colour.view.index()].compared = Some(colours);
    }
    let mut commands = Commands::new();
    let ([table, _], grey) = learner.record(&mut commands, pairs, views.each_ref())?;
    gpu.run(&commands)?;
    let table = CostTable(table.to_vec()?);
    if let Some((view, grey)) = grey {
        pair.compare_in(view, grey.download(0)?);
    }
    Ok(table)
}

impl GpuLearning<'_> {
    /// As [`learn::project`](super::project): replaces the compared image of the colour view by a learnt grey.
    fn project(
        &mut self,
        views: &mut [ViewStacks; 2],
        options: &StereoOptions,
        colour: View,
    ) -> Result<GpuStack<u8>> {
        let (size, gpu) = (views[0].bytes.size(), self.pairs.gpu);
        let projection = GpuProjection::new(colour, views[colour.index()].compared())?;
        let grey = GpuStack::new(gpu, size, 1, 1)?;
        views[colour.index()].compared = Some(grey.clone());
        projection.begin(self.commands)?;
        projection.project(self.commands, &grey)?;
        if rounds(size) == 0 {
            return Ok(grey);
        }
        let (mut commands, options) = (Commands::new(), halved(options, 1));
        let mut round = GpuLearning { commands: &mut commands, ..*self };
        let [left, right] = &*views;
        let half = [round.half(left)?, round.half(right)?];
        let table = round.coarse_to_fine(half.clone(), &options)?;
        let disparity = round.disparities(&half, &options, &table)?;
        let other = (views[colour.other().index()].compared(), right.mask.as_ref());
        projection.search(&mut commands, other, &disparity)?;
        projection.project(&mut commands, &grey)?;
        (0..rounds(size)).try_for_each(|_| self.commands.append(commands.clone()))?;
        Ok(grey)
    }

    fn half(&mut self, view: &ViewStacks) -> Result<ViewStacks> {
        let (size, gpu) = (half(view.bytes.size()), self.pairs.gpu);
        let mut halve = |from: &GpuStack<u8>| -> Result<_> {
            let to = GpuStack::new(gpu, size, 1, 1)?;
            self.halve.record_batch(self.commands, from, &to)?;
            Ok(to)
        };
        let bytes = halve(&view.bytes)?;
        let compared = view.compared.as_ref().map(&mut halve).transpose()?;
        let mask = view.mask.as_ref().map(|from| -> Result<_> {
            let to = GpuStack::new(gpu, size, 1, 1)?;
            let (across, groups) = covering(size, 1);
            let arguments = HalveMask { to: to.laid(), from: from.laid(), across };
            launch(self.commands, &gpu.program(&source())?, groups, arguments)?;
            Ok(to)
        });
        Ok(ViewStacks::of_bytes(bytes, compared, mask.transpose()?))
    }

    /// Disparities computed with a table; those that fail the left-right check are invalid.
    fn disparities(
        &mut self,
        [left, right]: &[ViewStacks; 2],
        options: &StereoOptions,
        table: &Buffer<u8>,
    ) -> Result<GpuStack<f32>> {
        let commands = &mut *self.commands;
        let masked = left.mask.is_some() || right.mask.is_some();
        let input = GpuAggregationInput { masked, ..at(&self.pairs, left.bytes.size(), options) };
        let (maps, _) = matching::record(commands, input, [left, right], Some(table))?;
        let left = median::gpu::median(commands, &maps.disparity, 3)?;
        let Some(right) = &maps.right else { return Ok(left) };
        let right = median::gpu::median(commands, right, 3)?;
        consistency_check::gpu::check(commands, &left, &right, View::Left, 1.0)
    }

    /// As [`learn::iterate`](super::iterate).
    fn iterate(
        &mut self,
        views: &[ViewStacks; 2],
        options: &StereoOptions,
        runs: usize,
    ) -> Result<Buffer<u8>> {
        let zero = nearest_to_zero(views[0].bytes.size(), options);
        let zero = GpuStack::upload(self.pairs.gpu, &[zero.view()])?;
        let mut table = self.table(views, (&zero, 1))?;
        for _ in 1..runs {
            let disparity = self.disparities(views, options, &table)?;
            table = self.table(views, (&disparity, 1))?;
        }
        Ok(table)
    }

    /// As [`learn::coarse_to_fine`](super::coarse_to_fine).
    fn coarse_to_fine(&mut self, views: [ViewStacks; 2], options: &StereoOptions) -> Result<Buffer<u8>> {
        // all[k] is at 1 / 2ᵏ of the size.
        let size = views[0].bytes.size();
        let (halvings, finest, options) = (levels(size), finest(size), &searching(options, size));
        let mut all = vec![views];
        for k in 0..halvings {
            let [left, right] = &all[k];
            let half = [self.half(left)?, self.half(right)?];
            all.push(half);
        }
        let mut table = self.iterate(&all[halvings], &halved(options, halvings), FIRST)?;
        for level in (finest.max(1)..=halvings).rev() {
            let disparity = self.disparities(&all[level], &halved(options, level), &table)?;
            let finer = if level > finest { level - 1 } else { 0 };
            table = self.table(&all[finer], (&disparity, 1 << (level - finer)))?;
        }
        Ok(table)
    }

    /// As [`from_disparities`](super::from_disparities).
    fn table(&mut self, views: &[ViewStacks; 2], disparity: (&GpuStack<f32>, usize)) -> Result<Buffer<u8>> {
        let compared = views.each_ref().map(ViewStacks::compared);
        information::gpu::table(self.commands, compared, disparity, views[1].mask.as_ref())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::device::gpu::all;
    use crate::image::{AnyImage, Image};
    use crate::numeric::Random;
    use crate::stereo::Masks;
    use crate::stereo::aggregation::Workspace;
    use crate::stereo::cost::mutual_information::learn;
    use crate::stereo::pair::Pictures;

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        vec![source(), information::gpu::source(), projection::gpu::source()]
    }

    /// Tables of random pairs, with and without masks and by both ways of learning, equal the CPU's.
    #[test]
    fn tables_are_those_of_the_cpu() {
        let mut random = Random::new(77);
        let mut sizes = vec![Size::new(1, 1), Size::new(40, 9), Size::new(67, 101), Size::new(150, 98)];
        // Large enough that levels finer than a quarter of the size are not searched.
        sizes.push(Size::new(1801, 1103));
        for (n, size) in sizes.into_iter().enumerate() {
            let left = Image::from_fn(size, |x, y| {
                ((x * x / 7 + 3 * y + (x / 5) * (y / 9)) as u64 + random.bits() % 30) as u8
            });
            let right = Image::from_fn(size, |x, y| 255 - left.row(y)[(x + 3).min(size.width - 1)] / 2);
            let mask = Image::from_fn(size, |_, _| u8::from(!random.bits().is_multiple_of(9)));
            let all_ways = [None, Some(1), Some(3)];
            let all_masks = [
                Masks { left: None, right: Some(mask.view()) },
                Masks { left: Some(mask.view()), right: None },
                Masks::default(),
            ];
            let ways = if size.width > 1000 { 1 } else { 3 };
            for &iterations in &all_ways[..ways] {
                for &masks in &all_masks[..ways] {
                    let options = StereoOptions::default()
                        .with_disparities(9 + 5 * n)
                        .with_min_disparity(-2)
                        .with_cost(crate::stereo::Cost::MutualInformation)
                        .with_iterations(iterations);
                    let cpu = Cpu::sequential();
                    let pictures = Pictures::new([(&left).into(), (&right).into()], masks).unwrap();
                    let mut pair = Pair::new(&pictures, &cpu).unwrap();
                    let expected = learn::table(&pair, &options, &mut Workspace::default(), &cpu).unwrap();
                    for gpu in all() {
                        let found = learn(gpu, &mut pair, None, &options).unwrap();
                        assert!(found == expected, "{gpu:?}, {size}, {iterations:?}");
                    }
                }
            }
        }
    }

    /// The grey learnt for a colour picture, and its table, equal the CPU's: in either view, with masks, of 8 and 16
    /// bits, and for pairs too small to search.
    #[test]
    fn greys_are_those_of_the_cpu() {
        let (mut random, cpu) = (Random::new(79), Cpu::with_threads(2).unwrap());
        let sizes =
            [Size::new(1, 1), Size::new(60, 47), Size::new(97, 61), Size::new(131, 90), Size::new(290, 187)];
        for (n, size) in sizes.into_iter().enumerate() {
            let mut noise =
                || Image::from_fn(size, |x, y| (random.bits() % 60 + (x * 2 + y) as u64 % 190) as u16);
            let channels = [noise(), noise(), noise()];
            let scale = if n % 2 == 0 { 1 } else { 257 };
            let colours = (0..3 * size.area()).map(|i| scale * channels[i % 3].data()[i / 3]).collect();
            let colours = Image::from_vec(colours, size, 3).unwrap();
            let colours: AnyImage = match scale {
                1 => Image::from_vec(colours.data().iter().map(|&v| v as u8).collect(), size, 3)
                    .unwrap()
                    .into(),
                _ => colours.into(),
            };
            let step = 4 * (n % 2);
            let grey = Image::from_fn(size, |x, y| {
                let at = if n % 2 == 0 { x.saturating_sub(4) } else { (x + step).min(size.width - 1) };
                let of = |c: usize| f64::from(channels[c].row(y)[at]);
                let squares = 0.5 * of(0) * of(0) + 0.1 * of(1) * of(1) + 0.4 * of(2) * of(2);
                if n % 3 == 0 { (255.0 - squares.sqrt()) as u8 } else { (0.7 * of(0) + 0.3 * of(2)) as u8 }
            });
            let grey = AnyImage::from(grey);
            let images = if n % 2 == 0 { [&grey, &colours] } else { [&colours, &grey] };
            let mask = Image::from_fn(size, |x, y| u8::from((x / 7 + y / 5) % 6 != 0));
            let masks = Masks { left: None, right: Some(mask.view()).filter(|_| n >= 2) };
            let options = StereoOptions::default().with_disparities(14).with_min_disparity(-3);
            let options = options.with_cost(crate::stereo::Cost::MutualInformation);
            let pictures = Pictures::new([images[0].into(), images[1].into()], masks).unwrap();
            let colour = ColourImage::of(&pictures, &cpu).unwrap().unwrap();
            let mut expected = Pair::new(&pictures, &cpu).unwrap();
            learn::project(&mut expected, &colour, &options, &mut Workspace::default(), &cpu).unwrap();
            let table = learn::table(&expected, &options, &mut Workspace::default(), &cpu).unwrap();
            for gpu in all().iter().filter(|gpu| gpu.info().has_f64) {
                let mut pair = Pair::new(&pictures, &cpu).unwrap();
                let found = learn(gpu, &mut pair, Some(&colour), &options).unwrap();
                let greys = pair.compared(colour.view) == expected.compared(colour.view);
                assert!(greys, "{gpu:?}, {size}: another grey");
                assert!(found == table, "{gpu:?}, {size}: another table");
            }
        }
    }
}
