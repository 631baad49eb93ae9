//! The layout of the device's memory.

use crate::device::gpu::{Buffer, Gpu};
use crate::feature::gpu::GpuKeypoints;
use crate::feature::sift::SiftOptions;
use crate::feature::sift::scale_space::{octave_sizes, pixel};
use crate::image::Size;
use crate::{Error, Result};
use std::ops::Range;

/// The layout of the Gaussian levels of some images of one size, or of some octaves of a band of rows.
///
/// Level l (0 to `levels` + 2) of octave o of image i begins at f32 number
/// `i · image_stride + octaves[o].offset + l · pitch · height`. Rows begin at multiples of 128 bytes; what lies
/// between width and pitch is undefined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The size of the images, or of the band of them.
    pub(crate) input: Size,
    /// The size of the images.
    pub(crate) whole: Size,
    pub(crate) images: usize,
    /// Levels of an octave that are searched: `options.levels`.
    pub(crate) levels: usize,
    /// Finest first; as many as on the CPU.
    pub(crate) octaves: Vec<OctavePlan>,
    /// Of a band: level 0 of the octave that would be next, behind the last octave's levels.
    pub(crate) seed: Option<OctavePlan>,
    /// f32s from one image's levels to the next's.
    pub(crate) image_stride: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OctavePlan {
    /// −1 is the image at twice its size.
    pub(crate) number: i8,
    pub(crate) size: Size,
    /// f32s from the start of a row to the start of the next.
    pub(crate) pitch: usize,
    /// f32s from the start of the image's levels to level 0.
    pub(crate) offset: usize,
}

impl OctavePlan {
    /// f32s from one level to the next.
    pub(crate) fn level_len(&self) -> usize {
        self.pitch * self.size.height
    }

    /// The number of rows of the octave for this many rows of the image.
    pub(crate) fn rows_of(&self, rows: usize) -> usize {
        if self.number < 0 { rows * 2 } else { rows >> self.number }
    }
}

/// Which rows of an image a plan is for. Except at the end of the image, `first` and `taken` lie at whole rows of every
/// octave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) first: usize,
    /// Rows of the image in which extrema are taken.
    pub(crate) taken: Range<usize>,
}

impl Plan {
    /// f32s of 128 bytes.
    pub(crate) const ALIGNMENT: usize = 32;
    /// Columns and rows that one work group searches for extrema.
    pub(crate) const SEARCHED: [usize; 2] = [256, 16];
    /// Words of an octave in [`table`](Self::table).
    pub(crate) const OCTAVE_WORDS: usize = 12;

    /// The layout for `images` images of size `input`.
    ///
    /// # Errors
    /// [`Error::Image`] for an image without pixels, [`Error::Unsupported`] when the levels exceed any memory, or a row
    /// what a kernel counts in 32 bits.
    pub(crate) fn new(input: Size, images: usize, options: &SiftOptions) -> Result<Self> {
        if input.is_empty() {
            return Err(Error::Image(format!("the image is empty ({input})")));
        }
        let too_large = || Error::Unsupported {
            device: "a GPU".into(),
            feature: format!("SIFT in {images} images of {input}; a side is below 2²⁹ pixels"),
        };
        if input.width.max(input.height) >= 1 << 29 {
            return Err(too_large());
        }
        let levels = usize::from(options.levels);
        let octaves = octave_sizes(input, options).into_iter().zip(options.first_octave..);
        let (octaves, image_stride) = laid_out(octaves, levels).ok_or_else(too_large)?;
        image_stride.checked_mul(images).and_then(|n| n.checked_mul(4)).ok_or_else(too_large)?;
        Ok(Self { input, whole: input, images, levels, octaves, seed: None, image_stride })
    }

    /// The first `octaves` of a band of `rows` rows of one image, with the seed of the others.
    pub(crate) fn band(&self, octaves: usize, rows: usize) -> Option<Self> {
        let of_rows = |o: &OctavePlan| Size { height: o.rows_of(rows), ..o.size };
        let (first, others) = self.octaves.split_at_checked(octaves)?;
        let (octaves, len) = laid_out(first.iter().map(|o| (of_rows(o), o.number)), self.levels)?;
        let seed = others.first().map(|o| OctavePlan { size: of_rows(o), offset: len, ..*o });
        let image_stride = len.checked_add(seed.map_or(0, |s| s.level_len()))?;
        let input = Size { height: rows, ..self.whole };
        Some(Self { input, images: 1, octaves, seed, image_stride, ..*self })
    }

    /// The octaves after the first `octaves` of one image, if there are any.
    pub(crate) fn rest(&self, octaves: usize) -> Option<Self> {
        let rest = self.octaves.get(octaves..).filter(|rest| !rest.is_empty())?;
        let (octaves, image_stride) = laid_out(rest.iter().map(|o| (o.size, o.number)), self.levels)?;
        Some(Self { images: 1, octaves, seed: None, image_stride, ..*self })
    }

    /// The number of octaves from which level 0 of the next is made.
    pub(crate) fn decimated(&self) -> usize {
        self.octaves.len() - usize::from(self.seed.is_none())
    }

    /// f32s of all levels of all images.
    pub(crate) fn len(&self) -> usize {
        self.image_stride * self.images
    }

    fn groups(octave: &OctavePlan) -> usize {
        let [columns, rows] = Self::SEARCHED;
        octave.size.width.div_ceil(columns) * octave.size.height.div_ceil(rows)
    }

    pub(crate) fn search_groups(&self) -> usize {
        self.octaves.iter().map(Self::groups).sum()
    }

    /// The octaves as a kernel's `Octave[]`, of a part of the image.
    pub(crate) fn table(&self, part: &Part) -> Vec<u32> {
        let mut first_group = 0;
        let octaves = self.octaves.iter().flat_map(|o| {
            let first = first_group;
            first_group += Self::groups(o) as u32;
            let pixel = pixel(o.number).to_bits();
            let [width, height, pitch] = [o.size.width, o.size.height, o.pitch].map(|n| n as u32);
            let number = i32::from(o.number) as u32;
            let [first_row, from, to, whole] =
                [part.first, part.taken.start, part.taken.end, self.whole.height]
                    .map(|n| o.rows_of(n) as u32);
            let (low, high) = (o.offset as u32, (o.offset as u64 >> 32) as u32);
            let words: [u32; Self::OCTAVE_WORDS] = [
                width,
                height,
                pitch,
                number,
                low,
                high,
                pixel,
                first,
                first_row,
                whole,
                from - first_row,
                to - first_row,
            ];
            words
        });
        octaves.collect()
    }
}

/// The octaves of these sizes and numbers one behind the other, and the f32s of them all.
fn laid_out(octaves: impl Iterator<Item = (Size, i8)>, levels: usize) -> Option<(Vec<OctavePlan>, usize)> {
    let mut offset = 0_usize;
    let octaves = octaves.map(|(size, number)| {
        let pitch = size.width.next_multiple_of(Plan::ALIGNMENT);
        let octave = OctavePlan { number, size, pitch, offset };
        let len = pitch.checked_mul(size.height)?.checked_mul(levels + 3)?;
        offset = offset.checked_add(len)?;
        Some(octave)
    });
    let octaves = octaves.collect::<Option<Vec<_>>>()?;
    Some((octaves, offset))
}

pub(crate) const OCTAVE: &str = include_str!("plan.h");

/// The Gaussian levels of some images in a device's memory.
#[derive(Clone, Debug)]
pub(crate) struct GpuLevels {
    pub(crate) plan: Plan,
    /// All levels as the plan lays them out.
    pub(crate) values: Buffer<f32>,
    /// The plan's octaves, for kernels: `const GLOBAL Octave *`.
    pub(crate) octaves: Buffer<u32>,
}

impl GpuLevels {
    /// Uninitialised memory for these levels.
    pub(crate) fn new(gpu: &Gpu, plan: Plan) -> Result<Self> {
        let whole = Part { first: 0, taken: 0..plan.whole.height };
        Ok(Self { values: gpu.buffer(plan.len())?, octaves: gpu.upload(&plan.table(&whole))?, plan })
    }
}

/// The number of groups that share the keypoints of all images of a launch: many more than run at a time, because
/// windows differ in size.
const GROUPS: usize = 1 << 15;

/// The groups that look around points, each around one at a time; images in the second dimension.
pub(crate) fn groups(points: &GpuKeypoints, images: usize) -> [usize; 3] {
    [points.capacity.min((GROUPS / images).max(64)), images, 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_do_not_overlap() {
        let options = SiftOptions::default();
        let plan = Plan::new(Size::new(1920, 1080), 2, &options).unwrap();
        assert_eq!(plan.octaves.len(), 8, "from 3840x2160 to 30x16");
        for pair in plan.octaves.windows(2) {
            assert_eq!(pair[0].offset + 6 * pair[0].level_len(), pair[1].offset, "packed without gaps");
            assert_eq!(pair[1].offset % Plan::ALIGNMENT, 0, "aligned");
        }
        let words = plan.table(&Part { first: 0, taken: 0..1080 }).len();
        assert_eq!(words, 8 * Plan::OCTAVE_WORDS, "one entry an octave");
        let refused = |size, images| Plan::new(size, images, &options).unwrap_err();
        assert!(matches!(refused(Size::new(0, 3), 1), Error::Image(_)), "no pixels");
        for (size, images) in [(Size::new(1 << 29, 3), 1), (Size::new(9, 9), usize::MAX / 8)] {
            let error = refused(size, images);
            assert!(error.is_device_limit(), "the CPU may do it: {error}");
        }
    }
}
