//! [Extrema](super) of all octaves of some images, [refined](crate::feature::sift::refine): one launch.
//!
//! Cost: every level is read once, at 3840x2160 with all octaves 0.26 GB, which takes an H200 0.065 ms. The order of
//! the points is that of the device's threads; see [`order`](crate::feature::order::gpu).

use crate::device::gpu::Commands;
use crate::feature::gpu::GpuKeypoints;
use crate::feature::sift::gpu::plan::{self, GpuLevels, Plan};
use crate::feature::sift::refine::MOST_MOVES;
use crate::feature::sift::{SiftOptions, SiftPreset};
use crate::image::gpu::GpuImage;
use crate::{Result, feature, feature::WORDS, numeric};
use tiepoint_gpu::KernelSource;

// A candidate is packed into 16 bits: column, row and layer.
const _: () = assert!(Plan::SEARCHED[0] <= 256 && Plan::SEARCHED[1] <= 16, "see CANDIDATE in extrema.cl");

/// The number of work groups on a multiprocessor at a time, so that enough reads are in flight. Four leave too few
/// registers.
const RESIDENT: u32 = 3;

tiepoint_gpu::kernel! {
    /// Appends the points of every image (the third dimension) to its list, in any order.
    unsafe kernel find_points(groups) = FindPoints {
        write points: u32 as Keypoint [groups[2] * capacity * WORDS as i128],
        write counts: u32 [groups[2]],
        read values: f32 [groups[2] * image_stride],
        read octaves: u32 as Octave [octave_count * Plan::OCTAVE_WORDS as i128],
        /// One number if there is no mask.
        read mask: u8 [mask_pitch * height],
    } {
        image_stride: u64,
        capacity: u32,
        octave_count: i32,
        /// 0: there is no mask.
        mask_pitch: i32,
        /// Of the whole image and its mask.
        width: i32,
        height: i32,
        thresholds: Thresholds,
    }
}

tiepoint_gpu::kernel_struct! {
    /// The thresholds of a point, and the σ that refinement needs.
    struct Thresholds {
        /// Least |D| of a candidate.
        least_candidate: f32,
        least_contrast: f32,
        /// Greatest ratio of curvatures.
        edge: f32,
        /// σ of the first level.
        sigma: f32,
    }
}

pub(crate) fn source(options: &SiftOptions) -> KernelSource {
    let [columns, rows] = Plan::SEARCHED;
    let source = KernelSource::new("sift extrema")
        .define("LEVELS", options.levels)
        .define("SEARCH_COLUMNS", columns)
        .define("SEARCH_ROWS", rows)
        .define("BORDER", options.border())
        .define("MOST_MOVES", MOST_MOVES)
        .define("IN_PLACE", u8::from(options.preset == SiftPreset::VlFeat))
        .define_f32("SETTLED_BELOW", options.settled_below())
        .define_f32("LN_2", std::f32::consts::LN_2)
        .text(plan::OCTAVE);
    feature::for_kernels(numeric::for_kernels(source))
        .text(include_str!("../scale_space/dog.h"))
        .text(include_str!("../refine.h"))
        .kernel_resident::<FindPoints<'_>>([columns as u32, 1], RESIDENT)
        .text(include_str!("extrema.cl"))
}

/// Counts and writes the points of all images, in any order; none where the mask, which all images share, is 0.
pub(crate) fn record(
    commands: &mut Commands,
    options: &SiftOptions,
    levels: &GpuLevels,
    mask: Option<&GpuImage<u8>>,
    points: &GpuKeypoints,
) -> Result<()> {
    let (plan, gpu) = (&levels.plan, levels.values.gpu());
    let kernel = gpu.program(&source(options))?.kernel::<FindPoints<'_>>()?;
    let none = gpu.upload(&[0])?;
    let arguments = FindPoints {
        points: &points.keypoints,
        counts: &points.counts,
        values: &levels.values,
        octaves: &levels.octaves,
        mask: mask.map_or(&none, GpuImage::buffer),
        image_stride: plan.image_stride as u64,
        capacity: points.capacity as u32,
        octave_count: plan.octaves.len() as i32,
        mask_pitch: mask.map_or(0, GpuImage::pitch) as i32,
        width: plan.whole.width as i32,
        height: plan.whole.height as i32,
        thresholds: Thresholds {
            least_candidate: options.least_candidate(),
            least_contrast: options.least_contrast(),
            edge: options.edge,
            sigma: options.sigma,
        },
    };
    commands.zero(&points.counts)?;
    Ok(commands.launch(&kernel, [plan.search_groups(), 1, plan.images], arguments)?)
}
