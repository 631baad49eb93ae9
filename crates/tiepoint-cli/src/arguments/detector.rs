//! The options of the detectors as flags, and the detector with these options.

use super::limits::LimitArguments;
use super::table::{Flags, argument, default_of, flags, given};
use super::values::{named, range};
use crate::failure::{Failure, Outcome};
use crate::output::fill;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::path::{Path, PathBuf};
use tiepoint::feature::sift::{SiftOptions, SiftPreset};
use tiepoint::feature::surf::{SurfOptions, SurfPreset};
use tiepoint::feature::{Detector, DetectorKind};
use tiepoint::image::Range;
use tiepoint::options::{Field, Kind, Named, OptionTable, Value};

// The detector and its options.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Detector")]
pub(crate) struct DetectorArguments {
    /// What finds and describes keypoints
    #[arg(long, value_parser = named::<DetectorKind>(), default_value_t)]
    pub(crate) detector: DetectorKind,
    /// Keep only keypoints where this image is not 0. {} stands for the image's name; for a pair of images this is the mask of
    /// the first. Transparent pixels never have keypoints
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask: Option<String>,
    /// Which values are black and white: auto or LOW:HIGH. auto leaves 8 bits as they are, and stretches 16 bits and
    /// floats between their 1st and 99th percentile, widened by a quarter; pixels without data, masked ones and
    /// values that only mark missing data or saturation do not count
    #[arg(long, default_value = "auto", value_parser = range, allow_hyphen_values = true)]
    pub(crate) range: Range,
    #[command(flatten)]
    options: DetectorFlags,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

flags! {
    /// The options of SIFT as flags.
    SiftFlags: SiftOptions, "Detector"
}

flags! {
    /// The options of SURF as flags.
    SurfFlags: SurfOptions, "Detector", SurfOptions::default(), {
        fn presets() -> Vec<(&'static str, SurfOptions)> {
            SurfPreset::ALL.iter().map(|choice| (choice.name, SurfOptions::preset(choice.value))).collect()
        }
    }
}

/// The options of both detectors. Options of the same name share a flag.
#[derive(Clone, Debug, Default)]
struct DetectorFlags {
    given: Vec<(Field, Value)>,
}

impl DetectorFlags {
    /// The fields of both, each with its help and its default, which say where the detectors differ.
    fn fields() -> Vec<(Field, String, String)> {
        let of = |name: &'static str, fields: Vec<Field>, default: fn(&Field) -> String| {
            fields.into_iter().map(move |field| {
                let default = default(&field);
                (name, field, default)
            })
        };
        let sift = of("sift", SiftFlags::fields(), default_of::<SiftFlags>);
        let surf = of("surf", SurfFlags::fields(), default_of::<SurfFlags>);
        let mut all: Vec<(Field, String, String)> = Vec::new();
        for (detector, mut field, default) in sift.chain(surf) {
            if let Kind::Name(names) = &mut field.kind
                && field.field == "preset"
            {
                names.iter_mut().for_each(|(_, help)| *help = format!("{detector}: {help}").leak());
            }
            let Some((first, help, defaults)) = all.iter_mut().find(|(first, ..)| first.flag == field.flag)
            else {
                let help = format!("{detector}: {}", field.help);
                all.push((field, help, default));
                continue;
            };
            *help = match first.help == field.help {
                true => first.help.clone(),
                false => format!("{}; {detector}: {}", help.trim_end_matches('.'), field.help),
            };
            if *defaults != default {
                *defaults = format!("sift {defaults}, surf {default}");
            }
            if let (Kind::Name(names), Kind::Name(more)) = (&mut first.kind, &field.kind) {
                let unknown = more.iter().filter(|(name, _)| names.iter().all(|(known, _)| known != name));
                let unknown: Vec<_> = unknown.copied().collect();
                names.extend(unknown);
            }
        }
        all
    }

    /// `options` with the values that are given; fails for an option that only the `other` detector has.
    fn on<T: OptionTable>(&self, mut options: T, other: &str) -> Outcome<T> {
        for (field, value) in &self.given {
            if !options.set(field.name, value)? {
                let flag = &field.flag;
                return Err(Failure::usage(format!(
                    "--{flag} is an option of {other}: leave it out or use --detector {other}"
                )));
            }
        }
        Ok(options)
    }

    fn get(&self, field: &str) -> Option<String> {
        self.given.iter().find(|(given, _)| given.field == field).map(|(_, value)| value.to_string())
    }
}

impl Args for DetectorFlags {
    fn augment_args(command: Command) -> Command {
        Self::fields().iter().fold(command, |command, (field, help, default)| {
            command.arg(argument(field, help, default).help_heading(SiftFlags::HEADING))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for DetectorFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let fields = Self::fields().into_iter().map(|(field, ..)| field);
        let given = fields.filter_map(|field| given(matches, &field).map(|value| (field, value)));
        Ok(Self { given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl DetectorArguments {
    /// Whether any option of the detector is given.
    pub(crate) fn is_any(&self) -> bool {
        self.detector != DetectorKind::default() || !self.options.given.is_empty()
    }

    /// The detector with its options, checked.
    pub(crate) fn detector(&self) -> Outcome<Detector> {
        let given = |field| self.options.get(field).is_some();
        if (given("keep") || given("even")) && !given("limit") {
            return Err(Failure::usage(
                "--keep and --even choose which features are kept, so they need --max-features N",
            ));
        }
        let detector = match self.detector {
            DetectorKind::Sift => {
                Detector::Sift(self.options.on(SiftOptions::preset(self.preset()?), "surf")?)
            }
            DetectorKind::Surf => {
                Detector::Surf(self.options.on(SurfOptions::preset(self.preset()?), "sift")?)
            }
        };
        detector.check()?;
        Ok(detector)
    }

    /// The name of the preset that is given, or of the default one.
    pub(crate) fn preset_name(&self) -> String {
        let first = match self.detector {
            DetectorKind::Sift => SiftPreset::default().name(),
            DetectorKind::Surf => SurfPreset::default().name(),
        };
        self.options.get("preset").unwrap_or_else(|| first.to_owned())
    }

    /// The preset that is given, or the detector's default one.
    fn preset<P: Named + Default>(&self) -> Outcome<P> {
        self.options.get("preset").map_or(Ok(P::default()), |name| {
            P::from_name(&name).map_err(|_| {
                let (detector, expected) = (self.detector.name(), P::EXPECTED);
                Failure::usage(format!("--preset is {name}: expected {expected} for {detector}"))
            })
        })
    }

    /// The mask of an image.
    pub(crate) fn mask_of(&self, image: &Path) -> Option<PathBuf> {
        self.mask.as_ref().map(|mask| fill(mask, image))
    }

    /// The masks of a pair of images; `mask_b` is the one of the second image.
    pub(crate) fn masks(&self, [a, b]: [&Path; 2], mask_b: Option<&str>) -> impl Iterator<Item = PathBuf> {
        self.mask_of(a).into_iter().chain(mask_b.map(|mask| fill(mask, b)))
    }
}
