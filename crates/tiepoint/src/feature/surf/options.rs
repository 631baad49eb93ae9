//! The options of SURF, with their defaults and sources.

use crate::feature::DescriptorKind;
use crate::feature::select::{Keep, Selection};
use crate::options::{named, options};

named! {
    /// Whose conventions are followed where implementations differ.
    ///
    /// Common to all: extrema are searched where the largest filter of the 3×3×3 neighbourhood lies inside the
    /// image, and a wavelet that leaves the image counts as 0.
    pub enum SurfPreset as "preset" {
        /// Filters 9, 15, 21, 27; 15, 27, 39, 51; …, those of equal size computed once; Dxy weighted by 0.9.
        /// Orientation: 113 wavelets of side 4s within 6s, Gaussian of 2s. Descriptor: a square of 20s, cells of 5×5
        /// wavelets of side 2s, Gaussian of 3.3s; per cell Σdx, Σ|dx|, Σdy, Σ|dy|, cells row by row.
        #[default]
        "paper": Paper, "Bay et al. 2008, every pixel of the first octave sampled";
        /// Filters as in the paper. Orientation: 109 wavelets on whole pixels round(s) apart, Gaussian of 2.5s.
        /// Descriptor: the square of 24s of Agrawal et al., cells of 9×9 wavelets that overlap by 4, Gaussian of 2.5s in
        /// a cell and of 1.5 cells over them; cells column by column.
        "opensurf": OpenSurf, "OpenSURF's filters, sampling and descriptor";
        /// Filters (9 + 6·layer)·2^octave with rounded corners, every box divided by its own area (which weighs Dxy 2.78
        /// times as much in the square), grey values from 0 to 255; offsets up to 1 are accepted and the filter size is
        /// rounded to an integer. Orientation as in the paper with a Gaussian of 2.5s and windows every 5°; upright
        /// means 3π/2. Descriptor: the paper's square; its 2×2 differences of area means are the wavelets of side 2s;
        /// per cell Σdx, Σdy, Σ|dx|, Σ|dy|. OpenCV itself resamples to 8 bits, so that its values agree closely and not
        /// exactly.
        "opencv": OpenCv, "OpenCV's filters, threshold and descriptor";
    }
}

options! {
    /// SURF after Bay et al. (CVIU 2008), and as OpenSURF and OpenCV have it.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct SurfOptions {
        /// Whose conventions are followed where implementations differ.
        preset / with_preset: SurfPreset = SurfPreset::Paper;
        /// Least determinant of the Hessian, for an image from 0 to 1.
        ///
        /// With [`SurfPreset::OpenCv`] for an image from 0 to 255 and OpenCV's filters: its `hessianThreshold`.
        threshold / with_threshold: f32 = 4e-4 => 0.0.., unit "T";
        /// Octaves; by default 4 (Bay et al.), with OpenSURF's preset 5.
        octaves / with_octaves: Option<u8> = None => 1..=6, unit "N";
        /// Filter sizes in an octave; maxima are searched in all but the first and the last.
        ///
        /// OpenCV's `nOctaveLayers` counts the searched ones: its preset has 5, for its 3.
        intervals / with_intervals: u8 = 4 => 3..=8, unit "N";
        /// Pixels from one sample to the next in the first octave; doubled with every octave.
        ///
        /// OpenSURF's 2 is what the paper calls its fast variant.
        step / with_step: u8 = 1 => [1, 2, 4], unit "N";
        /// No orientation. For images that are not turned against each other.
        upright / with_upright: bool = false;
        /// Descriptors of 128 values instead of 64: the sums split by the sign of the other derivative.
        extended / with_extended: bool = false;
        /// Form of the descriptors: unit vectors, or none, which gives only keypoints with their angles.
        descriptors / with_descriptors: DescriptorKind = DescriptorKind::F32
            => [DescriptorKind::F32, DescriptorKind::None];
    }
    tables {
        /// Which features are kept: all, or with a limit the strongest, which are found again more often (see
        /// [`select`](crate::feature::select)).
        selection / with_selection: Selection = Selection { keep: Keep::Response, ..Selection::ALL };
    }
}

impl SurfOptions {
    /// The options that a preset starts from.
    pub fn preset(preset: SurfPreset) -> Self {
        let start = Self::default().with_preset(preset);
        match preset {
            SurfPreset::Paper => start,
            SurfPreset::OpenSurf => start.with_step(2),
            SurfPreset::OpenCv => start.with_threshold(100.0).with_intervals(5),
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

    pub(super) fn octave_count(&self) -> usize {
        let default = match self.preset {
            SurfPreset::Paper | SurfPreset::OpenCv => 4,
            SurfPreset::OpenSurf => 5,
        };
        usize::from(self.octaves.unwrap_or(default))
    }

    pub(super) fn step_of(&self, octave: usize) -> usize {
        usize::from(self.step) << octave
    }
}
