//! Parsers of the values of flags.

use crate::failure::{Failure, Outcome};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tiepoint::device::Device;
use tiepoint::device::gpu::Api;
use tiepoint::geometry::ModelKind;
use tiepoint::image::{Range, Size};
use tiepoint::options::{self, Choice, Named};
use tiepoint::register::Views;

/// The values of a [`Named`] set, which the help lists with their meaning.
pub(super) fn named<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::ALL.iter().map(possible)).try_map(|name| T::from_name(&name))
}

/// The models that can be found without cameras, and `none`. Only `collect` reads cameras, for an essential matrix.
pub(super) fn model_or_none() -> impl TypedValueParser<Value = OrNone> {
    let none = PossibleValue::new(NONE).help("No verification");
    let offered = ModelKind::ALL.iter().filter(|choice| choice.value != ModelKind::Essential);
    let parser = PossibleValuesParser::new(offered.map(possible).chain([none]));
    parser.try_map(|name| match name.as_str() {
        NONE => Ok(OrNone(None)),
        name => ModelKind::from_name(name).map(|model| OrNone(Some(model))),
    })
}

fn possible<T>(choice: &Choice<T>) -> PossibleValue {
    PossibleValue::new(choice.name).help(choice.help)
}

const NONE: &str = "none";

/// A model, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrNone(pub(crate) Option<ModelKind>);

impl Default for OrNone {
    fn default() -> Self {
        Self(Some(ModelKind::default()))
    }
}

impl std::fmt::Display for OrNone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.map_or(NONE, ModelKind::name))
    }
}

/// Where to compute: a device, several, or all of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Devices {
    These(Vec<Device>),
    All(Api),
}

impl Devices {
    /// The device; an error if there are several.
    pub(crate) fn one(&self) -> Outcome<Device> {
        match self {
            Self::These(devices) if devices.len() == 1 => Ok(devices[0]),
            Self::These(_) | Self::All(_) => {
                Err(Failure::usage("this command computes on one device; only collect takes several"))
            }
        }
    }

    pub(crate) fn each(&self) -> Outcome<Vec<Device>> {
        let api = match self {
            Self::These(devices) => return Ok(devices.clone()),
            Self::All(api) => *api,
        };
        let found = tiepoint::device::gpu::devices(api).map_err(tiepoint::Error::from)?.found;
        let gpus = found.iter().filter(|info| !info.is_cpu).map(|info| match api {
            Api::Cuda => Device::Cuda(info.index),
            Api::OpenCl => Device::OpenCl(info.index),
        });
        let gpus: Vec<Device> = gpus.collect();
        if gpus.is_empty() {
            return Err(Failure::usage(format!(
                "{api} has no GPU here; `tiepoint devices` lists what there is"
            )));
        }
        Ok(gpus)
    }
}

impl std::fmt::Display for Devices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::These(devices) => {
                let names: Vec<String> = devices.iter().map(ToString::to_string).collect();
                f.write_str(&names.join(","))
            }
            Self::All(api) => write!(f, "{api}:all"),
        }
    }
}

pub(super) fn devices(text: &str) -> Result<Devices, String> {
    match text {
        "cuda:all" => return Ok(Devices::All(Api::Cuda)),
        "opencl:all" => return Ok(Devices::All(Api::OpenCl)),
        _ => {}
    }
    let devices = text.split(',').map(str::parse).collect::<Result<Vec<Device>, _>>();
    let distinct = |devices: &Vec<Device>| (1..devices.len()).all(|i| !devices[..i].contains(&devices[i]));
    devices.ok().filter(distinct).map(Devices::These).ok_or_else(|| {
        "expected auto, cpu, cuda[:N], opencl[:N], cpu+cuda[:N] or cpu+opencl[:N]; collect also takes cuda:all, \
         opencl:all or several, separated by commas"
            .to_owned()
    })
}

pub(super) fn size(text: &str) -> Result<Size, String> {
    let parsed = text.split_once('x').and_then(|(w, h)| Some(Size::new(w.parse().ok()?, h.parse().ok()?)));
    let sound = parsed.filter(|s| !s.is_empty() && s.area() <= 1 << 32);
    sound.ok_or_else(|| "expected WIDTHxHEIGHT such as 1920x1080, at most 2^32 pixels".to_owned())
}

/// A value, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OrAuto<T> {
    Auto,
    Given(T),
}

/// `auto` for the word, or what `parse` makes of the text.
pub(super) fn or_auto<T>(
    text: &str,
    auto: T,
    parse: impl FnOnce(&str) -> Option<T>,
    expected: &str,
) -> Result<T, String> {
    match text {
        "auto" => Ok(auto),
        _ => parse(text).ok_or_else(|| format!("expected {expected}")),
    }
}

pub(super) fn range(text: &str) -> Result<Range, String> {
    let between = |text: &str| {
        let (low, high) = text.split_once(':')?;
        Some(Range::Between(low.parse().ok()?, high.parse().ok()?)).filter(|range| range.check().is_ok())
    };
    or_auto(text, Range::Auto, between, "auto or LOW:HIGH with LOW below HIGH")
}

pub(super) fn views(text: &str) -> Result<Views, String> {
    let count = |text: &str| text.parse().ok().map(Views::Count).filter(|views| views.check().is_ok());
    or_auto(text, Views::Auto, count, "auto or a number of views, 1 to 43")
}

pub(super) fn bytes(text: &str) -> Result<u64, String> {
    options::bytes(text).ok_or_else(|| format!("expected {}", options::BYTES))
}
