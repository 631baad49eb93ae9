//! The options of SIFT, with their defaults and sources.

use crate::Error;
use crate::feature::DescriptorKind;
use crate::feature::select::Selection;
use crate::options::{Above, AboveTo, named, options};

named! {
    /// Whose conventions are followed where the paper leaves details open.
    pub enum SiftPreset as "preset" {
        /// Our own: thresholds and windows as OpenCV's; orientation and descriptor about the exact sub-pixel position,
        /// gradients split between the two nearest bins, and points that move to and fro are kept.
        #[default]
        "default": Default, "Unbiased positions, OpenCV's thresholds";
        /// Its half-pixel doubling (+0.25 px) included; descriptors about whole pixels.
        "opencv": OpenCv, "OpenCV's SIFT_create()";
        /// Refinement in x and y only, histograms smoothed six times, at most four orientations, a border of one pixel,
        /// edges repeated.
        "vlfeat": VlFeat, "VLFeat 0.9.21";
    }
}

options! {
    /// SIFT after Lowe (IJCV 2004), with every orientation and no positional bias.
    #[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct SiftOptions {
        /// Whose conventions are followed where the paper leaves them open.
        preset / with_preset: SiftPreset = SiftPreset::Default;
        /// -1 doubles the image first, 0 does not (Lowe, section 3.3: doubled, about four times as many stable points).
        first_octave / with_first_octave: i8 = -1 => -1..=0;
        /// The most octaves; by default as many as the image has room for.
        octaves / with_octaves: Option<u8> = None => 1.., unit "N";
        /// Levels of an octave that are searched (Lowe, section 3.2: 3); more than 8 on the CPU alone.
        levels / with_levels: u8 = 3 => 1..=32, unit "N";
        /// Least contrast of a keypoint times the number of levels, for an image from 0 to 1.
        ///
        /// |D(x̂)| · levels: Lowe's 0.03 with his scaling of D corresponds to OpenCV's 0.04.
        contrast / with_contrast: f32 = 0.04 => 0.0..=1.0, unit "C";
        /// Greatest ratio of the principal curvatures (Lowe, section 4.1: 10).
        edge / with_edge: f32 = 10.0 => AboveTo(1.0, 1e4), unit "R";
        /// Blur of the first level, the σ of a Gaussian in pixels (Lowe, section 3.3: 1.6); outside of 0.8 to 4 on the CPU
        /// alone.
        sigma / with_sigma: f32 = 1.6 => 0.5..=8.0, unit "PX";
        /// Blur that the image is assumed to have, a σ in pixels, at most that of the first level (Lowe, section 3.3:
        /// 0.5).
        input_sigma / with_input_sigma: f32 = 0.5 => Above(0.0), unit "PX";
        /// No orientation: every angle is 0. For images that are not turned against each other.
        upright / with_upright: bool = false;
        /// RootSIFT: descriptors compared by the Hellinger distance (Arandjelović and Zisserman, CVPR 2012).
        ///
        /// The descriptor is divided by its sum and each value replaced by its root.
        root / with_root: bool = false, flag "rootsift",
            without "Compare descriptors as they are, not by the Hellinger distance";
        /// Descriptors averaged over three sizes of their window (DSP-SIFT; Dong and Soatto, CVPR 2015): more matches;
        /// computing descriptors takes about five times as long, and always runs on the CPU.
        ///
        /// See [`describe`](super::describe).
        domain_size_pooling / with_domain_size_pooling: bool = false;
        /// Form of the descriptors: unit vectors times 512 as bytes, unit vectors, or none, which gives only keypoints.
        descriptors / with_descriptors: DescriptorKind = DescriptorKind::U8;
    }
    tables {
        /// Which features are kept.
        selection / with_selection: Selection = Selection::ALL;
    }
    check this {
        match this.input_sigma <= this.sigma {
            true => Ok(()),
            false => Err(Error::option("input_sigma", this.input_sigma, "above 0, at most sigma")),
        }
    }
}

impl SiftOptions {
    /// The options that a preset starts from.
    pub fn preset(preset: SiftPreset) -> Self {
        Self { preset, ..Self::default() }
    }

    /// The number of values of a descriptor; 0 without descriptors.
    pub(crate) fn dimension(&self) -> usize {
        match self.descriptors {
            DescriptorKind::U8 | DescriptorKind::F32 => super::DIMENSION,
            DescriptorKind::None => 0,
        }
    }

    /// The offset from which on the search for an extremum's position moves to the next pixel or level. The
    /// margin above ½ keeps a point from moving to and fro until it is dropped: with OpenCV's ½ every tenth
    /// point is lost, and of the 2000 strongest on graf, boat and leuven 3 in 100 fewer match within 3 px.
    pub(super) fn settled_below(&self) -> f32 {
        match self.preset {
            SiftPreset::OpenCv => 0.5,
            SiftPreset::Default => 0.55,
            SiftPreset::VlFeat => 0.6,
        }
    }

    /// Pixels at the edge of every octave in which no extremum is searched.
    pub(super) fn border(&self) -> usize {
        match self.preset {
            SiftPreset::VlFeat => 1,
            SiftPreset::Default | SiftPreset::OpenCv => 5,
        }
    }

    pub(super) fn least_contrast(&self) -> f32 {
        self.contrast / f32::from(self.levels)
    }

    /// Least |D| of a candidate: half (VLFeat: 0.8) of what it must reach after refinement.
    pub(super) fn least_candidate(&self) -> f32 {
        match self.preset {
            SiftPreset::VlFeat => 0.8 * self.least_contrast(),
            // OpenCV rounds down to a whole grey level of 255.
            SiftPreset::Default | SiftPreset::OpenCv => (0.5 * self.least_contrast() * 255.0).floor() / 255.0,
        }
    }
}
