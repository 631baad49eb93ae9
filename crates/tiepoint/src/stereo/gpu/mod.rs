//! Dense stereo on a device: a pair is uploaded, goes through all stages as one list of commands, and the maps come back.

use super::{
    Penalties, Reason, RightView, StereoOptions, StereoResult, View,
    aggregation::gpu::{GpuAggregation, GpuAggregationInput},
    cost::{
        CostSource,
        gpu::{CostKernel, GpuDescribe, GpuView},
    },
    pair::Pair,
    refinement::gpu::GpuRefinement,
    winner_takes_all::gpu::{GpuMaps, GpuWinnerTakesAll, Selection},
};
use crate::{
    Result,
    device::gpu::{Buffer, Commands, Gpu},
    for_any_view,
    image::{
        AnyImage, Image,
        gpu::{GpuPixel, GpuStack, Plane},
    },
};
use lanes::{GROUP, covering, pixel_a_lane};
use tiepoint_gpu::{Kernel, KernelSource};

pub(in crate::stereo) mod lanes;

tiepoint_gpu::kernel! {
    /// Maps with left and right exchanged.
    unsafe kernel mirror(groups) = Mirror {
        write to: f32 [plane.numbers(groups[2])],
        read from: f32 [plane.numbers(groups[2])],
    } {
        plane: Plane,
        /// Groups beside each other.
        across: i32,
    }
}

fn mirror_source() -> KernelSource {
    pixel_a_lane(KernelSource::new("mirror"))
        .structure::<Plane>()
        .kernel::<Mirror<'_>>(GROUP)
        .text(include_str!("mirror.cl"))
}

/// The disparities of a pair by costs of the source, refined, on a device.
pub(super) fn disparities(
    gpu: &Gpu,
    options: &StereoOptions,
    pair: &Pair,
    source: &dyn CostSource,
    penalties: Penalties,
) -> Result<StereoResult> {
    let cost = CostKernel::of(source, gpu)?;
    let mut commands = Commands::new();
    let stereo = GpuDisparities { gpu, options, penalties, greatest: source.greatest() };
    let (mut maps, mask) = stereo.record(&mut commands, &cost, pair, Selection::of(options))?;
    if options.right_view == RightView::Aggregated
        && let Some(source) = source.exchanged()
    {
        let (cost, selection) = (CostKernel::of(&*source, gpu)?, Selection::of_left(options));
        let (exchanged, _) = stereo.record(&mut commands, &cost, &pair.exchanged(), selection)?;
        maps.right = Some(mirrored(&mut commands, &exchanged.disparity)?);
    }
    let maps = GpuRefinement::new(gpu, options)?.record(&mut commands, maps, mask.as_ref())?;
    gpu.run(&commands)?;
    download(&maps, 0)
}

/// The maps of image `i`, when the device has finished.
fn download(maps: &GpuMaps, i: usize) -> Result<StereoResult> {
    let map = |map: &Option<GpuStack<f32>>| map.as_ref().map(|map| map.download(i)).transpose();
    Ok(StereoResult {
        disparity: maps.disparity.download(i)?,
        right: map(&maps.right)?,
        confidence: map(&maps.confidence)?,
        reasons: maps.reasons.as_ref().map(|reasons| reasons_of(&reasons.download(i)?)).transpose()?,
    })
}

/// The reasons of these numbers.
fn reasons_of(numbers: &Image<u8>) -> Result<Image<Reason>> {
    let reason = |&n: &u8| Reason::ALL.get(usize::from(n)).copied().unwrap_or_default();
    Image::from_vec(numbers.data().iter().map(reason).collect(), numbers.size(), 1)
}

fn mirrored(commands: &mut Commands, map: &GpuStack<f32>) -> Result<GpuStack<f32>> {
    let kernel: Kernel<Mirror<'static>> = map.gpu().program(&mirror_source())?.kernel::<Mirror<'_>>()?;
    let to = GpuStack::new(map.gpu(), map.size(), 1, map.count())?;
    let (across, groups) = covering(map.size(), map.count());
    let mirror = Mirror { to: to.buffer(), from: map.buffer(), plane: map.plane(), across };
    commands.launch(&kernel, groups, mirror)?;
    Ok(to)
}

/// From a pair to disparities before refinement.
struct GpuDisparities<'a> {
    gpu: &'a Gpu,
    options: &'a StereoOptions,
    penalties: Penalties,
    greatest: u16,
}

impl GpuDisparities<'_> {
    /// Also gives where the left view holds something.
    fn record(
        &self,
        commands: &mut Commands,
        cost: &CostKernel,
        pair: &Pair,
        selection: Selection,
    ) -> Result<(GpuMaps, Option<GpuStack<u8>>)> {
        let Self { gpu, options, penalties, greatest } = *self;
        let masked = [View::Left, View::Right].iter().any(|&view| pair.mask(view).is_some());
        let StereoOptions { min_disparity, disparities, paths, .. } = *options;
        let size = pair.size();
        let input = GpuAggregationInput {
            size,
            images: 1,
            min_disparity,
            disparities,
            paths,
            penalties,
            greatest,
            masked,
        };
        let left = UploadedView::new(gpu, commands, pair, View::Left, (cost, masked))?;
        let right = UploadedView::new(gpu, commands, pair, View::Right, (cost, masked))?;
        let aggregation = GpuAggregation::new(gpu, cost, &input)?;
        let descriptors = (&left.descriptors, &right.descriptors);
        let sums = aggregation.record(commands, descriptors, &left.bytes)?;
        let layout = aggregation.layout();
        let winner = GpuWinnerTakesAll::new(gpu, (cost, masked), layout, min_disparity, selection)?;
        let maps = winner.record(commands, &sums, descriptors, (size, 1))?;
        Ok((maps, left.mask))
    }
}

/// A view on the device.
struct UploadedView {
    /// Grey in 8 bits.
    bytes: GpuStack<u8>,
    mask: Option<GpuStack<u8>>,
    descriptors: Buffer<u32>,
}

impl UploadedView {
    fn new(
        gpu: &Gpu,
        commands: &mut Commands,
        pair: &Pair,
        view: View,
        cost: (&CostKernel, bool),
    ) -> Result<Self> {
        let upload = |image: &Image<u8>| GpuStack::upload(gpu, &[image.view()]);
        let bytes = upload(pair.bytes(view))?;
        let compared = match std::ptr::eq(pair.compared(view), pair.bytes(view)) {
            true => bytes.clone(),
            false => upload(pair.compared(view))?,
        };
        let mask = pair.mask(view).map(upload).transpose()?;
        let (seen, rounding) = (mask.as_ref(), pair.rounding(view));
        let descriptors = match pair.grey(view) {
            // Grey of 8 bits is what it is in 8 bits.
            AnyImage::U8(_) => describe(
                commands,
                cost,
                &GpuView { grey: &bytes, compared: &compared, mask: seen, rounding },
            )?,
            grey @ (AnyImage::U16(_) | AnyImage::F32(_)) => for_any_view!(grey.view(), image => {
                let grey = &GpuStack::upload(gpu, &[image])?;
                describe(commands, cost, &GpuView { grey, compared: &compared, mask: seen, rounding })?
            }),
        };
        Ok(Self { bytes, mask, descriptors })
    }
}

fn describe<T: GpuPixel>(
    commands: &mut Commands,
    (cost, masked): (&CostKernel, bool),
    view: &GpuView<'_, T>,
) -> Result<Buffer<u32>> {
    GpuDescribe::<T>::new(view.grey.gpu(), cost, masked)?.record(commands, view)
}

#[cfg(test)]
mod tests;
