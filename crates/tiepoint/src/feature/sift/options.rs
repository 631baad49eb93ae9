//! The options of SIFT, with their defaults and sources.

use crate::feature::DescriptorKind;
use crate::feature::select::Selection;
use crate::options::{named, setters};
use crate::{Error, Result};

/// Whose conventions are followed where the paper leaves details open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SiftPreset {
    /// Ours: unbiased positions, thresholds and windows as OpenCV's; orientation and descriptor about the
    /// exact sub-pixel position, gradients split between the two nearest bins, points that move to and fro
    /// kept.
    #[default]
    Default,
    /// OpenCV's `SIFT_create()`, its half-pixel doubling (+0.25 px) included; descriptors about whole pixels.
    OpenCv,
    /// VLFeat 0.9.21: refinement in x and y only, histograms smoothed six times, at most four orientations, a
    /// border of one pixel, edges repeated.
    VlFeat,
}

named! {
    SiftPreset as "preset" {
        "default": SiftPreset::Default, "unbiased positions, OpenCV's thresholds";
        "opencv": SiftPreset::OpenCv, "OpenCV's SIFT_create()";
        "vlfeat": SiftPreset::VlFeat, "VLFeat 0.9.21";
    }
}

/// Options of SIFT. [`Default`] is the preset of that name.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SiftOptions {
    /// Conventions where the paper leaves them open.
    pub preset: SiftPreset,
    /// −1 doubles the image first (Lowe §3.3: about four times as many stable points); 0 starts at its own
    /// size.
    pub first_octave: i8,
    /// At most this many octaves; `None`: as many as the image has room for.
    pub octaves: Option<u8>,
    /// Levels of an octave that are searched, 1 to 8. Lowe §3.2: 3.
    pub levels: u8,
    /// Least contrast |D(x̂)| · levels for an image from 0 to 1. Lowe's 0.03 with his DoG scaling corresponds
    /// to OpenCV's 0.04, the default.
    pub contrast: f32,
    /// Greatest ratio r of the principal curvatures, above 1. Lowe §4.1: 10.
    pub edge: f32,
    /// σ of the first level. Lowe §3.3: 1.6.
    pub sigma: f32,
    /// The blur σ that the image is assumed to have. Lowe §3.3: 0.5.
    pub input_sigma: f32,
    /// No orientation: every angle is 0. For images known to be upright.
    pub upright: bool,
    /// RootSIFT: the descriptor is divided by its sum and each value replaced by its root (Arandjelović &
    /// Zisserman, CVPR 2012), so that the Euclidean distance becomes Hellinger's.
    pub root: bool,
    /// Descriptors pooled over domains of 1, 1½ and 2 times the usual size (Dong & Soatto, CVPR 2015): more matches,
    /// for about five times the time of description; see [`describe`](super::describe). A GPU leaves them to the CPU.
    /// Default no.
    #[serde(default)]
    pub domain_size_pooling: bool,
    /// The form of the descriptors.
    pub descriptors: DescriptorKind,
    /// Which features are kept.
    pub selection: Selection,
}

setters!(SiftOptions {
    with_first_octave: first_octave = i8,
    with_octaves: octaves = Option<u8>,
    with_levels: levels = u8,
    with_contrast: contrast = f32,
    with_edge: edge = f32,
    with_sigma: sigma = f32,
    with_input_sigma: input_sigma = f32,
    with_upright: upright = bool,
    with_root: root = bool,
    with_domain_size_pooling: domain_size_pooling = bool,
    with_descriptors: descriptors = DescriptorKind,
    with_selection: selection = Selection,
});

impl Default for SiftOptions {
    fn default() -> Self {
        Self {
            preset: SiftPreset::Default,
            first_octave: -1,
            octaves: None,
            levels: 3,
            contrast: 0.04,
            edge: 10.0,
            sigma: 1.6,
            input_sigma: 0.5,
            upright: false,
            root: false,
            domain_size_pooling: false,
            descriptors: DescriptorKind::U8,
            selection: Selection::ALL,
        }
    }
}

impl SiftOptions {
    /// The options that a preset starts from.
    pub fn preset(preset: SiftPreset) -> Self {
        Self { preset, ..Self::default() }
    }

    /// Values of a descriptor; 0 when none is wanted.
    pub(crate) fn dimension(&self) -> usize {
        match self.descriptors {
            DescriptorKind::U8 | DescriptorKind::F32 => super::DIMENSION,
            DescriptorKind::None => 0,
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`Error::Option`] naming the field, its value and what is allowed.
    pub fn check(&self) -> Result<()> {
        let positive = |v: f32, most: f32| v > 0.0 && v <= most;
        match self {
            o if !(-1..=0).contains(&o.first_octave) => {
                Err(Error::option("first_octave", o.first_octave, "-1 or 0"))
            }
            o if o.octaves == Some(0) => Err(Error::option("octaves", 0, "at least 1")),
            o if !(1..=8).contains(&o.levels) => Err(Error::option("levels", o.levels, "1 to 8")),
            o if !(o.contrast >= 0.0 && o.contrast <= 1.0) => {
                Err(Error::option("contrast", o.contrast, "0 to 1"))
            }
            o if !(o.edge > 1.0 && o.edge <= 1e4) => {
                Err(Error::option("edge", o.edge, "above 1, at most 10000"))
            }
            o if !(positive(o.sigma, 4.0) && o.sigma >= 0.8) => {
                Err(Error::option("sigma", o.sigma, "0.8 to 4"))
            }
            o if !positive(o.input_sigma, o.sigma) => {
                Err(Error::option("input_sigma", o.input_sigma, "above 0, at most sigma"))
            }
            o => o.selection.check(),
        }
    }

    /// The offset above which the search for an extremum's position moves to the next pixel or level. The
    /// margin above ½ keeps a point from moving to and fro until it is given up: with OpenCV's ½ every tenth
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

    /// Least |D(x̂)| of a keypoint.
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
