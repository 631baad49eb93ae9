//! Where everything lies in the device's memory.

use crate::device::gpu::{Buffer, Gpu};
use crate::feature::gpu::WORDS;
use crate::feature::sift::SiftOptions;
use crate::feature::sift::scale_space::octave_sizes;
use crate::image::Size;
use crate::{Error, Result};
use tiepoint_gpu::Source;

/// The layout of the Gaussian levels of some images of one size.
///
/// Level l (0 to `levels` + 2) of octave o of image i begins at f32 number
/// `i · image_stride + octaves[o].offset + l · pitch · height`. Rows begin at multiples of 128 bytes; what lies
/// between width and pitch is undefined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The size of the images.
    pub(crate) input: Size,
    /// How many images.
    pub(crate) images: usize,
    /// Levels of an octave that are searched: `options.levels`.
    pub(crate) levels: usize,
    /// Finest first; as many as on the CPU.
    pub(crate) octaves: Vec<OctavePlan>,
    /// f32s from one image's levels to the next's.
    pub(crate) image_stride: usize,
}

/// The layout of one octave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OctavePlan {
    /// −1 is the image at twice its size.
    pub(crate) number: i8,
    /// The size of every level.
    pub(crate) size: Size,
    /// f32s from the start of a row to the start of the next.
    pub(crate) pitch: usize,
    /// f32s from the start of the image's levels to level 0.
    pub(crate) offset: usize,
}

impl OctavePlan {
    /// f32s from one level to the next.
    #[cfg(test)]
    pub(crate) fn level_len(&self) -> usize {
        self.pitch * self.size.height
    }
}

impl Plan {
    /// f32s of 128 bytes.
    pub(crate) const ALIGNMENT: usize = 32;
    /// Columns and rows that one work group searches for extrema.
    pub(crate) const SEARCHED: [usize; 2] = [256, 16];
    /// Words of an octave in [`table`](Self::table).
    const OCTAVE_WORDS: usize = 8;

    /// The layout for `images` images of size `input`.
    ///
    /// # Errors
    /// [`Error::Image`] when their levels exceed any memory, or a row what a kernel counts in 32 bits.
    pub(crate) fn new(input: Size, images: usize, options: &SiftOptions) -> Result<Self> {
        let too_large =
            || Error::Image(format!("{images} images of {input} are too large for SIFT on a GPU"));
        if input.width.max(input.height) >= 1 << 29 || input.area() == 0 {
            return Err(too_large());
        }
        let levels = usize::from(options.levels);
        let mut image_stride = 0_usize;
        let mut octaves = Vec::new();
        for (size, number) in octave_sizes(input, options).into_iter().zip(options.first_octave..) {
            let pitch = size.width.next_multiple_of(Self::ALIGNMENT);
            let octave = OctavePlan { number, size, pitch, offset: image_stride };
            let len = pitch.checked_mul(size.height).and_then(|n| n.checked_mul(levels + 3));
            image_stride = len.and_then(|n| n.checked_add(image_stride)).ok_or_else(too_large)?;
            octaves.push(octave);
        }
        image_stride.checked_mul(images).and_then(|n| n.checked_mul(4)).ok_or_else(too_large)?;
        Ok(Self { input, images, levels, octaves, image_stride })
    }

    /// f32s of all levels of all images.
    pub(crate) fn len(&self) -> usize {
        self.image_stride * self.images
    }

    /// Work groups that search an octave.
    fn groups(octave: &OctavePlan) -> usize {
        let [columns, rows] = Self::SEARCHED;
        octave.size.width.div_ceil(columns) * octave.size.height.div_ceil(rows)
    }

    /// Work groups that search all octaves of an image.
    pub(crate) fn search_groups(&self) -> usize {
        self.octaves.iter().map(Self::groups).sum()
    }

    /// The octaves as a kernel's `Octave[]`.
    pub(crate) fn table(&self) -> Vec<u32> {
        let mut first_group = 0;
        let octaves = self.octaves.iter().flat_map(|o| {
            let first = first_group;
            first_group += Self::groups(o) as u32;
            let pixel = 2_f32.powi(i32::from(o.number)).to_bits();
            let [width, height, pitch] = [o.size.width, o.size.height, o.pitch].map(|n| n as u32);
            let number = i32::from(o.number) as u32;
            let words: [u32; Self::OCTAVE_WORDS] =
                [width, height, pitch, number, o.offset as u32, (o.offset as u64 >> 32) as u32, pixel, first];
            words
        });
        octaves.collect()
    }
}

/// For kernels: the type `Octave`, `LEVELS` that are searched, and `FIRST_OCTAVE`, the number of the first.
pub(crate) fn for_kernels(source: Source, options: &SiftOptions) -> Source {
    source
        .define("LEVELS", options.levels)
        .define("FIRST_OCTAVE", format!("({})", options.first_octave))
        .text(OCTAVE)
}

/// The type `Octave` alone.
pub(crate) const OCTAVE: &str = include_str!("plan.cl");

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
    /// Memory for these levels, with anything in it.
    ///
    /// # Errors
    /// [`Error::Device`] when it is too small.
    pub(crate) fn new(gpu: &Gpu, plan: Plan) -> Result<Self> {
        Ok(Self { values: gpu.buffer(plan.len())?, octaves: gpu.upload(&plan.table())?, plan })
    }
}

/// Refined points of some images in a device's memory, in any order: keypoints whose angle is still 0.
#[derive(Clone, Debug)]
pub(crate) struct GpuPoints {
    /// `Keypoint`s; those of image i begin at number i · `capacity`.
    pub(crate) keypoints: Buffer<u32>,
    /// For each image how many were found: more than `capacity` when that was too small, the rest is then missing.
    pub(crate) counts: Buffer<u32>,
    /// How many fit for one image.
    pub(crate) capacity: usize,
}

impl GpuPoints {
    /// Memory for this many points an image.
    ///
    /// # Errors
    /// [`Error::Device`] when it is too small.
    pub(crate) fn new(gpu: &Gpu, images: usize, capacity: usize) -> Result<Self> {
        let words = capacity.saturating_mul(images).saturating_mul(WORDS);
        Ok(Self { keypoints: gpu.buffer(words)?, counts: gpu.buffer(images)?, capacity })
    }
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
        assert_eq!(plan.table().len(), 8 * Plan::OCTAVE_WORDS, "one entry an octave");
        assert!(Plan::new(Size::new(0, 3), 1, &options).is_err(), "no pixels");
        assert!(Plan::new(Size::new(usize::MAX / 2, 3), 1, &options).is_err(), "beyond all memory");
    }
}
