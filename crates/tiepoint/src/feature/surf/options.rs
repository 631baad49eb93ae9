//! The options of SURF, with their defaults and sources.

use crate::feature::DescriptorKind;
use crate::feature::select::{Keep, Selection};
use crate::options::{named, setters};
use crate::{Error, Result};

/// Whose conventions are followed where implementations differ.
///
/// Common to all: extrema are searched where the largest filter of the 3×3×3 neighbourhood lies inside the
/// image, and a wavelet that leaves the image counts as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SurfPreset {
    /// Bay et al. 2008. Filters 9, 15, 21, 27; 15, 27, 39, 51; …, those of equal size computed once; Dxy
    /// weighted by 0.9. Orientation: 113 wavelets of side 4s within 6s, Gaussian of 2s. Descriptor: a square
    /// of 20s, cells of 5×5 wavelets of side 2s, Gaussian of 3.3s; per cell Σdx, Σ|dx|, Σdy, Σ|dy|, cells row
    /// by row.
    #[default]
    Paper,
    /// OpenSURF. Filters as in the paper. Orientation: 109 wavelets on whole pixels round(s) apart, Gaussian
    /// of 2.5s. Descriptor: the square of 24s of Agrawal et al., cells of 9×9 wavelets that overlap by 4,
    /// Gaussian of 2.5s in a cell and of 1.5 cells over them; cells column by column.
    OpenSurf,
    /// OpenCV. Filters (9 + 6·layer)·2^octave with rounded corners, every box divided by its own area (which
    /// weighs Dxy 2.78 times as much in the square), grey values from 0 to 255; offsets up to 1 are accepted
    /// and the filter size is rounded to an integer. Orientation as in the paper with a Gaussian of 2.5s and
    /// windows every 5°; upright means 3π/2. Descriptor: the paper's square; its 2×2 differences of area
    /// means are the wavelets of side 2s; per cell Σdx, Σdy, Σ|dx|, Σ|dy|. OpenCV itself resamples to 8 bits,
    /// so that its values agree closely and not exactly.
    OpenCv,
}

named! {
    SurfPreset as "preset" {
        "paper": SurfPreset::Paper, "Bay et al. 2008, every pixel of the first octave sampled";
        "opensurf": SurfPreset::OpenSurf, "OpenSURF's filters, sampling and descriptor";
        "opencv": SurfPreset::OpenCv, "OpenCV's filters, threshold and descriptor";
    }
}

/// Options of SURF. [`Default`] is [`SurfPreset::Paper`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SurfOptions {
    /// Whose conventions are followed.
    pub preset: SurfPreset,
    /// Least determinant of the Hessian, of an image from 0 to 1; with [`SurfPreset::OpenCv`] of one from 0
    /// to 255 by its filters (OpenCV's `hessianThreshold`). Default 0.0004 (OpenSURF); OpenCV: 100.
    pub threshold: f32,
    /// Octaves, 1 to 6; `None`: as many as the preset has, 4 (Bay et al.) or OpenSURF's 5.
    pub octaves: Option<u8>,
    /// Filter sizes per octave, 3 to 8; maxima are searched in all but the first and the last. Default 4 (Bay
    /// et al.). OpenCV's `nOctaveLayers` counts the searched ones: its preset has 5, for its 3.
    pub intervals: u8,
    /// Pixels from sample to sample in the first octave, 1, 2 or 4; doubles with every octave. Default 1 (Bay
    /// et al.); OpenSURF: 2, which the paper calls its fast variant.
    pub step: u8,
    /// Leaves the orientation out: for images that are not rotated against each other.
    pub upright: bool,
    /// Descriptors of 128 values: the sums split by the sign of the other derivative.
    pub extended: bool,
    /// The form of the descriptors: floats, the default, or none. Keypoints without descriptors have an angle
    /// too.
    pub descriptors: DescriptorKind,
    /// Which features are kept. Default: all; where there is a limit the strongest, which come again more often (the
    /// figures are with [`select`](crate::feature::select)).
    pub selection: Selection,
}

setters!(SurfOptions {
    with_threshold: threshold = f32,
    with_octaves: octaves = Option<u8>,
    with_intervals: intervals = u8,
    with_step: step = u8,
    with_upright: upright = bool,
    with_extended: extended = bool,
    with_descriptors: descriptors = DescriptorKind,
    with_selection: selection = Selection,
});

impl Default for SurfOptions {
    fn default() -> Self {
        Self::preset(SurfPreset::default())
    }
}

impl SurfOptions {
    /// The options that a preset starts from.
    pub const fn preset(preset: SurfPreset) -> Self {
        let (threshold, intervals, step) = match preset {
            SurfPreset::Paper => (4e-4, 4, 1),
            SurfPreset::OpenSurf => (4e-4, 4, 2),
            SurfPreset::OpenCv => (100.0, 5, 1),
        };
        Self {
            preset,
            threshold,
            octaves: None,
            intervals,
            step,
            upright: false,
            extended: false,
            descriptors: DescriptorKind::F32,
            selection: Selection { keep: Keep::Response, ..Selection::ALL },
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`Error::Option`] naming the field, its value and what is allowed.
    pub fn check(&self) -> Result<()> {
        match self {
            o if !(o.threshold >= 0.0 && o.threshold.is_finite()) => {
                Err(Error::option("threshold", o.threshold, "a finite number, 0 or more"))
            }
            o if !(1..=6).contains(&o.octave_count()) => {
                Err(Error::option("octaves", o.octave_count(), "1 to 6"))
            }
            o if !(3..=8).contains(&o.intervals) => Err(Error::option("intervals", o.intervals, "3 to 8")),
            o if ![1, 2, 4].contains(&o.step) => Err(Error::option("step", o.step, "1, 2 or 4")),
            o if o.descriptors == DescriptorKind::U8 => {
                Err(Error::option("descriptors", o.descriptors, "float or none for SURF"))
            }
            o => o.selection.check(),
        }
    }

    /// Values of a descriptor; 0 when none is wanted.
    pub(crate) fn dimension(&self) -> usize {
        match (self.descriptors, self.extended) {
            (DescriptorKind::None, _) => 0,
            (DescriptorKind::U8 | DescriptorKind::F32, false) => 64,
            (DescriptorKind::U8 | DescriptorKind::F32, true) => 128,
        }
    }

    /// How many octaves are searched.
    pub(super) fn octave_count(&self) -> usize {
        let default = match self.preset {
            SurfPreset::Paper | SurfPreset::OpenCv => 4,
            SurfPreset::OpenSurf => 5,
        };
        usize::from(self.octaves.unwrap_or(default))
    }

    /// Filter sizes of an octave.
    pub(super) fn interval_count(&self) -> usize {
        usize::from(self.intervals)
    }

    /// Pixels from sample to sample in octave `octave`.
    pub(super) fn step_of(&self, octave: usize) -> usize {
        usize::from(self.step) << octave
    }
}
