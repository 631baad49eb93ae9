//! Learning the table of costs on a device: the iterations of [`learn`](super::learn), whose maps and histograms stay there.
//! What comes to the host is the last table.

use super::{
    CostTable, LIMIT, VALUES,
    information::{EPSILON, FREE, SCALE},
    learn::{FIRST, halved, levels, nearest_to_zero},
};
use crate::{
    Error, Result,
    device::gpu::{Buffer, Commands, Gpu},
    error::Shortage,
    filter::gpu::GpuFilter,
    image::{
        Image, Size,
        gpu::{GpuImage, GpuStack, Plane},
    },
    stereo::{
        INVALID, Learning, StereoOptions, View,
        aggregation::gpu::{GpuAggregationInput, GpuStrips},
        consistency_check::gpu::GpuConsistencyCheck,
        cost::{
            DescriptorCost,
            gpu::{GpuDescribe, GpuView},
        },
        gpu::lanes::{GROUP, covering, pixel_a_lane},
        median::gpu::GpuMedian,
        pair::Pair,
        winner_takes_all::gpu::{GpuWinnerTakesAll, Selection},
    },
};
use tiepoint_gpu::{Kernel, KernelSource};

tiepoint_gpu::kernel! {
    /// A mask at half the size.
    unsafe kernel halve_mask(groups) = HalveMask {
        write to: u8 [plane.numbers(groups[2])],
        read from: u8 [from_plane.numbers(groups[2])],
    } {
        plane: Plane,
        from_plane: Plane,
        /// Groups beside each other.
        across: i32,
    }
}

tiepoint_gpu::kernel! {
    /// The joint histogram of a disparity map.
    unsafe kernel joint(groups) = Joint {
        write counts: u32 [65536],
        write total: u32 [1],
        read left: u8 [left_plane.numbers(1)],
        read right: u8 [right_plane.numbers(1)],
        read mask: u8 [mask_plane.numbers(1)],
        read disparity: f32 [disparity_plane.numbers(1)],
    } {
        left_plane: Plane,
        right_plane: Plane,
        /// A row of 0 numbers: the right view holds something everywhere.
        mask_plane: Plane,
        disparity_plane: Plane,
        /// 1, or 2 for a map of half the size.
        step: i32,
    }
}

tiepoint_gpu::kernel! {
    /// The share of each pair of values.
    unsafe kernel shares(groups) = Shares {
        write out: f64 [65536],
        read counts: u32 [65536],
        read total: u32 [1],
    } {}
}

tiepoint_gpu::kernel! {
    /// What the margins contribute.
    unsafe kernel margins(groups) = Margins {
        write out: f64 [512],
        read shares: f64 [65536],
    } {}
}

tiepoint_gpu::kernel! {
    /// The negative logarithms of smoothed shares.
    unsafe kernel logarithms(groups) = Logarithms {
        write out: f64 [65536],
        read shares: f64 [65536],
    } {}
}

tiepoint_gpu::kernel! {
    /// v(i, k): how seldom two values occur together.
    unsafe kernel unlikeness(groups) = Unlikeness {
        write out: f64 [65536],
        read logarithms: f64 [65536],
        read margins: f64 [512],
    } {}
}

tiepoint_gpu::kernel! {
    /// o: the v of what costs nothing.
    unsafe kernel offset(groups) = Offset {
        write out: f64 [1],
        read values: f64 [65536],
        read counts: u32 [65536],
        read total: u32 [1],
    } {}
}

tiepoint_gpu::kernel! {
    /// C(i, k): the costs.
    unsafe kernel table(groups) = Table {
        write out: u8 [65536],
        read values: f64 [65536],
        read offset: f64 [1],
    } {}
}

/// Left values whose counters a group has in local memory.
const TILE: usize = 16;
/// Groups that share the rows of an image.
const SLICES: usize = 128;

fn source() -> KernelSource {
    const LANES: [u32; 2] = [VALUES as u32, 1];
    pixel_a_lane(KernelSource::new("mutual information"))
        .define("TILE", TILE)
        .define("LANES", VALUES)
        .define("LIMIT", LIMIT)
        .define("EPSILON", format!("{EPSILON:e}"))
        .define("SCALE", format!("{SCALE:?}"))
        .define("FREE", format!("{FREE:?}"))
        .define_f32("INVALID", INVALID)
        .structure::<Plane>()
        .kernel::<HalveMask<'_>>(GROUP)
        .kernel::<Joint<'_>>(LANES)
        .kernel::<Shares<'_>>(LANES)
        .kernel::<Margins<'_>>(LANES)
        .kernel::<Logarithms<'_>>(LANES)
        .kernel::<Unlikeness<'_>>(LANES)
        .kernel::<Offset<'_>>(LANES)
        .kernel::<Table<'_>>(LANES)
        .text(include_str!("learn.cl"))
}

/// The kernels of learning.
struct GpuLearning {
    gpu: Gpu,
    halve: GpuFilter<u8, u8>,
    halve_mask: Kernel<HalveMask<'static>>,
    joint: Kernel<Joint<'static>>,
    shares: Kernel<Shares<'static>>,
    margins: Kernel<Margins<'static>>,
    logarithms: Kernel<Logarithms<'static>>,
    unlikeness: Kernel<Unlikeness<'static>>,
    offset: Kernel<Offset<'static>>,
    table: Kernel<Table<'static>>,
    nothing: Buffer<u8>,
}

/// A pair on a device: what learning looks at.
struct Views {
    /// Grey in 8 bits of the left view, whose differences give P2.
    grey: GpuImage<u8>,
    compared: [GpuImage<u8>; 2],
    masks: [Option<GpuImage<u8>>; 2],
}

impl Views {
    fn upload(gpu: &Gpu, pair: &Pair) -> Result<Self> {
        let image = |image: &Image<u8>| GpuImage::upload(gpu, image.view());
        let mask = |view| pair.mask(view).map(image).transpose();
        Ok(Self {
            grey: image(pair.bytes(View::Left))?,
            compared: [image(pair.compared(View::Left))?, image(pair.compared(View::Right))?],
            masks: [mask(View::Left)?, mask(View::Right)?],
        })
    }
}

/// The table for the pair at its full size; the bytes of [`learn::table`](super::learn::table).
///
/// # Errors
/// Where the device is too small or lacks `f64`, as [`Error::is_device_limit`](crate::Error::is_device_limit) tells.
pub(super) fn table(gpu: &Gpu, pair: &Pair, options: &StereoOptions) -> Result<CostTable> {
    let learning = GpuLearning::new(gpu)?;
    let mut commands = Commands::new();
    let views = Views::upload(gpu, pair)?;
    let table = match options.learning {
        Learning::Iterations(n) => learning.iterate(&mut commands, &views, options, usize::from(n))?,
        Learning::CoarseToFine => learning.coarse_to_fine(&mut commands, views, options)?,
    };
    gpu.run(&commands)?;
    Ok(CostTable(table.to_vec()?))
}

impl GpuLearning {
    fn new(gpu: &Gpu) -> Result<Self> {
        gpu.require_f64()?;
        let program = gpu.program(&source())?;
        Ok(Self {
            gpu: gpu.clone(),
            halve: GpuFilter::halve_mean(gpu, 1)?,
            halve_mask: program.kernel::<HalveMask<'_>>()?,
            joint: program.kernel::<Joint<'_>>()?,
            shares: program.kernel::<Shares<'_>>()?,
            margins: program.kernel::<Margins<'_>>()?,
            logarithms: program.kernel::<Logarithms<'_>>()?,
            unlikeness: program.kernel::<Unlikeness<'_>>()?,
            offset: program.kernel::<Offset<'_>>()?,
            table: program.kernel::<Table<'_>>()?,
            nothing: gpu.buffer(1)?,
        })
    }

    fn half(&self, commands: &mut Commands, views: &Views) -> Result<Views> {
        let Size { width, height } = views.grey.size();
        let size = Size::new(width.div_ceil(2), height.div_ceil(2));
        let mut halve = |from: &GpuImage<u8>| -> Result<_> {
            let to = GpuImage::new(&self.gpu, size)?;
            self.halve.record(commands, from, &to)?;
            Ok(to)
        };
        let grey = halve(&views.grey)?;
        let compared = [halve(&views.compared[0])?, halve(&views.compared[1])?];
        let mut mask = |i: usize| {
            let Some(from) = &views.masks[i] else { return Ok(None) };
            let to = GpuImage::new(&self.gpu, size)?;
            let (across, groups) = covering(size, 1);
            let (plane, from_plane) = (to.plane(), from.plane());
            let arguments = HalveMask { to: to.buffer(), from: from.buffer(), plane, from_plane, across };
            commands.launch(&self.halve_mask, groups, arguments)?;
            Result::Ok(Some(to))
        };
        Ok(Views { grey, compared, masks: [mask(0)?, mask(1)?] })
    }

    /// The table of the disparities of the views (step 1) or of the views at half the size (step 2).
    fn table_from_disparities(
        &self,
        commands: &mut Commands,
        views: &Views,
        (disparity, step): (&GpuStack<f32>, usize),
    ) -> Result<Buffer<u8>> {
        const LENGTH: usize = VALUES * VALUES;
        let gpu = &self.gpu;
        let (counts, total) = (&gpu.buffer::<u32>(LENGTH)?, &gpu.buffer::<u32>(1)?);
        let doubles = |length| gpu.buffer::<f64>(length);
        let (shares, logarithms) = (&doubles(LENGTH)?, &doubles(LENGTH)?);
        let (margins, values, offset) = (&doubles(2 * VALUES)?, &doubles(LENGTH)?, &doubles(1)?);
        let (out, mask) = (gpu.buffer::<u8>(LENGTH)?, &views.masks[1]);
        let [left, right] = &views.compared;
        let nowhere = Plane { step: 0, row: 0, height: 0, pitch: 0 };
        commands.stage("mutual information");
        commands.zero(counts)?;
        commands.zero(total)?;
        commands.launch(
            &self.joint,
            [SLICES.min(left.size().height), VALUES / TILE, 1],
            Joint {
                counts,
                total,
                left: left.buffer(),
                right: right.buffer(),
                mask: mask.as_ref().map_or(&self.nothing, GpuImage::buffer),
                disparity: disparity.buffer(),
                left_plane: left.plane(),
                right_plane: right.plane(),
                mask_plane: mask.as_ref().map_or(nowhere, GpuImage::plane),
                disparity_plane: disparity.plane(),
                step: step as i32,
            },
        )?;
        let rows = [VALUES, 1, 1];
        commands.launch(&self.shares, rows, Shares { out: shares, counts, total })?;
        commands.launch(&self.margins, [2, 1, 1], Margins { out: margins, shares })?;
        commands.launch(&self.logarithms, rows, Logarithms { out: logarithms, shares })?;
        commands.launch(&self.unlikeness, rows, Unlikeness { out: values, logarithms, margins })?;
        commands.launch(&self.offset, [1, 1, 1], Offset { out: offset, values, counts, total })?;
        commands.launch(&self.table, rows, Table { out: &out, values, offset })?;
        Ok(out)
    }

    /// Disparities by a table, those that pass the left-right check.
    fn disparities(
        &self,
        commands: &mut Commands,
        views: &Views,
        options: &StereoOptions,
        table: &Buffer<u8>,
    ) -> Result<GpuStack<f32>> {
        let (gpu, masked) = (&self.gpu, views.masks.iter().any(Option::is_some));
        let size = views.grey.size();
        let cost = CostTable(vec![0; VALUES * VALUES]).kernel();
        let input = GpuAggregationInput::of(options, (size, 1), LIMIT.into(), masked);
        let aggregation = GpuStrips::new(gpu, &cost, &input)?;
        // The finest level takes most; all others together a third of it.
        let needed = aggregation.bytes(size) / 3 * 4;
        if let Some(limit) = options.device_memory.filter(|&limit| needed > limit) {
            let shortage = Shortage::Device { name: gpu.info().name.clone(), free: Some(limit) };
            return Err(Error::Memory { what: "learning mutual information on a GPU", needed, shortage });
        }
        commands.copy((table, 0), (aggregation.table(), 0), VALUES * VALUES)?;
        let grey = GpuStack::of(&views.grey, commands)?;
        let mut words = Vec::new();
        for (compared, mask) in views.compared.iter().zip(&views.masks) {
            let compared = GpuStack::of(compared, commands)?;
            let mask = mask.as_ref().map(|mask| GpuStack::of(mask, commands)).transpose()?;
            let view = GpuView { grey: &compared, compared: &compared, mask: mask.as_ref(), rounding: 0 };
            words.push(GpuDescribe::<u8>::new(gpu, &cost, masked)?.record(commands, &view)?);
        }
        let descriptors = (&words[0], &words[1]);
        let sums = aggregation.record(commands, descriptors, &grey)?;
        let winner = GpuWinnerTakesAll::new(
            gpu,
            (&cost, masked),
            aggregation.layout(),
            options.min_disparity,
            Selection::of_both(options),
        )?;
        let maps = winner.record(commands, &sums, descriptors, (size, 1))?;
        let median = GpuMedian::new(gpu, 3)?;
        let left = median.record(commands, &maps.disparity)?;
        let Some(right) = &maps.right else { return Ok(left) };
        let right = median.record(commands, right)?;
        GpuConsistencyCheck::new(gpu)?.record(commands, &left, &right, View::Left, 1.0)
    }

    /// As [`learn::iterate`](super::learn::iterate).
    fn iterate(
        &self,
        commands: &mut Commands,
        views: &Views,
        options: &StereoOptions,
        runs: usize,
    ) -> Result<Buffer<u8>> {
        let zero = nearest_to_zero(views.grey.size(), options);
        let zero = GpuStack::upload(&self.gpu, &[zero.view()])?;
        let mut table = self.table_from_disparities(commands, views, (&zero, 1))?;
        for _ in 1..runs {
            let disparity = self.disparities(commands, views, options, &table)?;
            table = self.table_from_disparities(commands, views, (&disparity, 1))?;
        }
        Ok(table)
    }

    /// As [`learn::coarse_to_fine`](super::learn::coarse_to_fine).
    fn coarse_to_fine(
        &self,
        commands: &mut Commands,
        views: Views,
        options: &StereoOptions,
    ) -> Result<Buffer<u8>> {
        // all[k] is at 1 / 2ᵏ of the size.
        let halvings = levels(views.grey.size());
        let mut all = vec![views];
        for k in 0..halvings {
            let half = self.half(commands, &all[k])?;
            all.push(half);
        }
        let mut table = self.iterate(commands, &all[halvings], &halved(options, halvings), FIRST)?;
        for level in (1..=halvings).rev() {
            let disparity = self.disparities(commands, &all[level], &halved(options, level), &table)?;
            table = self.table_from_disparities(commands, &all[level - 1], (&disparity, 2))?;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        device::{
            Cpu,
            gpu::{all, compiles_everywhere},
        },
        stereo::{Masks, aggregation::Workspace, cost::mutual_information::learn, pair::Pictures},
        synth::Random,
    };

    #[test]
    fn kernels_compile_for_every_card() {
        compiles_everywhere(&[source()]);
    }

    /// Tables of random pairs, with and without masks and of both ways to learn, have the CPU's bytes.
    #[test]
    fn tables_are_those_of_the_cpu() {
        let mut random = Random::new(77);
        for (n, size) in [Size::new(1, 1), Size::new(40, 9), Size::new(67, 101), Size::new(150, 98)]
            .into_iter()
            .enumerate()
        {
            let left = Image::from_fn(size, |x, y| {
                ((x * x / 7 + 3 * y + (x / 5) * (y / 9)) as u64 + random.bits() % 30) as u8
            });
            let right = Image::from_fn(size, |x, y| 255 - left.row(y)[(x + 3).min(size.width - 1)] / 2);
            let mask = Image::from_fn(size, |_, _| u8::from(!random.bits().is_multiple_of(9)));
            for learning in [Learning::CoarseToFine, Learning::Iterations(1), Learning::Iterations(3)] {
                for masks in [
                    Masks::default(),
                    Masks { left: None, right: Some(mask.view()) },
                    Masks { left: Some(mask.view()), right: None },
                ] {
                    let options = StereoOptions::default()
                        .with_disparities(9 + 5 * n)
                        .with_min_disparity(-2)
                        .with_cost(crate::stereo::Cost::MutualInformation)
                        .with_learning(learning);
                    let cpu = Cpu::sequential();
                    let pictures = Pictures::new((&left).into(), (&right).into()).unwrap();
                    let pair = Pair::new(&pictures, masks, &cpu).unwrap();
                    let expected = learn::table(&pair, &options, &mut Workspace::default(), &cpu).unwrap();
                    for gpu in all() {
                        let found = table(gpu, &pair, &options).unwrap();
                        assert!(found == expected, "{gpu:?}, {size}, {learning:?}");
                    }
                }
            }
        }
    }
}
