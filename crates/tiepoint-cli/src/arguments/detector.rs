//! The options of the detectors as flags, and the detector that follows from them.

use super::limits::LimitArguments;
use super::values::{named, range, with_default};
use crate::failure::{Failure, Outcome};
use crate::output::fill;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use tiepoint::feature::select::{Keep, Selection};
use tiepoint::feature::sift::{SiftOptions, SiftPreset};
use tiepoint::feature::surf::{SurfOptions, SurfPreset};
use tiepoint::feature::{DescriptorKind, Detector, DetectorKind};
use tiepoint::image::Range;
use tiepoint::options::Named;

/// What finds keypoints, and how.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Detector")]
pub(crate) struct DetectorArguments {
    /// What finds and describes keypoints
    #[arg(long, value_parser = named::<DetectorKind>(), default_value_t)]
    pub(crate) detector: DetectorKind,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = presets(),
        help = with_default("Whose conventions", of_both(SiftPreset::default(), SurfPreset::default()))
    )]
    pub(crate) preset: Option<String>,
    /// Keep N features at most; of whole levels, those with N positions, each in all its directions
    #[arg(long, value_name = "N")]
    pub(crate) max_features: Option<usize>,
    #[arg(
        long,
        requires = "max_features",
        value_parser = named::<Keep>(),
        help = with_default(
            "Which features to keep",
            of_both(SiftOptions::default().selection.keep, SurfOptions::default().selection.keep)
        )
    )]
    pub(crate) keep: Option<Keep>,
    /// Spread the --max-features evenly over the image
    #[arg(long, requires = "max_features")]
    pub(crate) even: bool,
    /// Only keypoints where this image is not 0. {} stands for the image's name; of two images the first (REFERENCE,
    /// LEFT). Transparent pixels never have any, nor do those near them
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask: Option<String>,
    /// Which values are black and white: auto or LOW:HIGH. auto leaves 8 bits as they are, and stretches 16 bits and
    /// floats between their 1st and 99th percentile, widened by a quarter; holes, masked pixels and marks do not count
    #[arg(long, default_value = "auto", value_parser = range, allow_hyphen_values = true)]
    pub(crate) range: Range,
    /// Leave the orientation out: for images not turned against each other
    #[arg(long)]
    pub(crate) upright: bool,
    #[arg(
        long,
        value_parser = named::<DescriptorKind>(),
        help = with_default(
            "Values of descriptors",
            of_both(SiftOptions::default().descriptors, SurfOptions::default().descriptors)
        )
    )]
    pub(crate) descriptors: Option<DescriptorKind>,
    /// Octaves at most [default: sift as many as fit, surf 4 or its preset's]
    #[arg(long, value_name = "N")]
    pub(crate) octaves: Option<u8>,
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help = with_default("sift: -1 doubles the image first, 0 does not", SiftOptions::default().first_octave)
    )]
    pub(crate) first_octave: Option<i8>,
    #[arg(
        long,
        value_name = "N",
        help = with_default("sift: levels searched in an octave", SiftOptions::default().levels)
    )]
    pub(crate) levels: Option<u8>,
    #[arg(
        long,
        value_name = "C",
        allow_negative_numbers = true,
        help = with_default("sift: least contrast, for an image from 0 to 1", SiftOptions::default().contrast)
    )]
    pub(crate) contrast: Option<f32>,
    #[arg(
        long,
        value_name = "R",
        allow_negative_numbers = true,
        help = with_default("sift: greatest ratio of the principal curvatures", SiftOptions::default().edge)
    )]
    pub(crate) edge: Option<f32>,
    /// sift: descriptors compared by the Hellinger distance
    #[arg(long)]
    pub(crate) rootsift: bool,
    /// sift: descriptors averaged over three sizes of their window (DSP-SIFT): more matches, more time; on the CPU
    #[arg(long)]
    pub(crate) domain_size_pooling: bool,
    #[arg(
        long,
        value_name = "T",
        allow_negative_numbers = true,
        help = with_default("surf: least determinant of the Hessian", of_presets(|surf| surf.threshold))
    )]
    pub(crate) threshold: Option<f32>,
    #[arg(
        long,
        value_name = "N",
        help = with_default("surf: filter sizes in an octave", of_presets(|surf| surf.intervals))
    )]
    pub(crate) intervals: Option<u8>,
    #[arg(
        long,
        value_name = "N",
        help = with_default(
            "surf: pixels between samples of the first octave: 1, 2 or 4",
            of_presets(|surf| surf.step)
        )
    )]
    pub(crate) step: Option<u8>,
    /// surf: descriptors of 128 values instead of 64
    #[arg(long)]
    pub(crate) extended: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// The names of the presets of both detectors.
fn presets() -> PossibleValuesParser {
    let sift = SiftPreset::ALL.iter().map(|choice| (choice.name, format!("sift: {}", choice.help)));
    let surf = SurfPreset::ALL.iter().map(|choice| (choice.name, format!("surf: {}", choice.help)));
    let mut all: Vec<(&str, String)> = Vec::new();
    for (name, help) in sift.chain(surf) {
        match all.iter_mut().find(|(other, _)| *other == name) {
            Some((_, other)) => *other = format!("{other}; {help}"),
            None => all.push((name, help)),
        }
    }
    PossibleValuesParser::new(all.into_iter().map(|(name, help)| PossibleValue::new(name).help(help)))
}

/// A default of each detector.
fn of_both(sift: impl Display, surf: impl Display) -> String {
    format!("sift {sift}, surf {surf}")
}

/// A default of SURF, and those of its presets that differ.
fn of_presets<T: Display + PartialEq>(field: impl Fn(SurfOptions) -> T) -> String {
    let first = field(SurfOptions::default());
    let presets =
        SurfPreset::ALL.iter().map(|choice| (choice.name, field(SurfOptions::preset(choice.value))));
    let others = presets.filter(|(_, value)| *value != first);
    let others: String = others.map(|(name, value)| format!("; preset {name}: {value}")).collect();
    format!("{first}{others}")
}

impl DetectorArguments {
    /// The detector with its options, checked.
    pub(crate) fn detector(&self) -> Outcome<Detector> {
        self.refuse_foreign()?;
        let detector = match self.detector {
            DetectorKind::Sift => Detector::Sift(self.sift()?),
            DetectorKind::Surf => Detector::Surf(self.surf()?),
        };
        detector.check()?;
        Ok(detector)
    }

    /// The name of the preset, also of the default one.
    pub(crate) fn preset_name(&self) -> &str {
        let first = match self.detector {
            DetectorKind::Sift => SiftPreset::default().name(),
            DetectorKind::Surf => SurfPreset::default().name(),
        };
        self.preset.as_deref().unwrap_or(first)
    }

    /// Fails for a flag of the other detector, which would have no effect.
    fn refuse_foreign(&self) -> Outcome {
        let sift = [
            ("first-octave", self.first_octave.is_some()),
            ("levels", self.levels.is_some()),
            ("contrast", self.contrast.is_some()),
            ("edge", self.edge.is_some()),
            ("rootsift", self.rootsift),
            ("domain-size-pooling", self.domain_size_pooling),
            ("descriptors u8", self.descriptors == Some(DescriptorKind::U8)),
        ];
        let surf = [
            ("threshold", self.threshold.is_some()),
            ("intervals", self.intervals.is_some()),
            ("step", self.step.is_some()),
            ("extended", self.extended),
        ];
        let (foreign, owner) = match self.detector {
            DetectorKind::Sift => (&surf[..], "surf"),
            DetectorKind::Surf => (&sift[..], "sift"),
        };
        match foreign.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::usage(format!(
                "--{flag} is an option of {owner}: leave it out or use --detector {owner}"
            ))),
            None => Ok(()),
        }
    }

    /// The mask of an image.
    pub(crate) fn mask_of(&self, image: &Path) -> Option<PathBuf> {
        self.mask.as_ref().map(|mask| PathBuf::from(fill(mask, image)))
    }

    /// The masks of a pair of images; `mask_b` is the one of the second image.
    pub(crate) fn masks(&self, [a, b]: [&Path; 2], mask_b: Option<&str>) -> impl Iterator<Item = PathBuf> {
        self.mask_of(a).into_iter().chain(mask_b.map(|mask| PathBuf::from(fill(mask, b))))
    }

    fn selection(&self, start: Selection) -> Selection {
        start.with_limit(self.max_features).with_keep(self.keep.unwrap_or(start.keep)).with_even(self.even)
    }

    /// The preset of this name, or the detector's first.
    fn preset<P: Named + Default>(&self) -> Outcome<P> {
        match &self.preset {
            None => Ok(P::default()),
            Some(name) => P::from_name(name).map_err(|_| {
                let (detector, expected) = (self.detector.name(), P::EXPECTED);
                Failure::usage(format!("--preset is {name}: expected {expected} for {detector}"))
            }),
        }
    }

    fn sift(&self) -> Outcome<SiftOptions> {
        let start = SiftOptions::preset(self.preset()?);
        Ok(start
            .with_first_octave(self.first_octave.unwrap_or(start.first_octave))
            .with_octaves(self.octaves.or(start.octaves))
            .with_levels(self.levels.unwrap_or(start.levels))
            .with_contrast(self.contrast.unwrap_or(start.contrast))
            .with_edge(self.edge.unwrap_or(start.edge))
            .with_upright(self.upright)
            .with_root(self.rootsift)
            .with_domain_size_pooling(self.domain_size_pooling)
            .with_descriptors(self.descriptors.unwrap_or(start.descriptors))
            .with_selection(self.selection(start.selection)))
    }

    fn surf(&self) -> Outcome<SurfOptions> {
        let start = SurfOptions::preset(self.preset()?);
        Ok(start
            .with_threshold(self.threshold.unwrap_or(start.threshold))
            .with_octaves(self.octaves.or(start.octaves))
            .with_intervals(self.intervals.unwrap_or(start.intervals))
            .with_step(self.step.unwrap_or(start.step))
            .with_upright(self.upright)
            .with_extended(self.extended)
            .with_descriptors(self.descriptors.unwrap_or(start.descriptors))
            .with_selection(self.selection(start.selection)))
    }
}
