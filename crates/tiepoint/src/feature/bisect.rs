//! Which stage of a GPU's pipeline differs from the CPU's: the pipeline runs on the CPU up to a stage and on
//! the GPU from there, for every stage in turn, and the features are compared with those of the CPU alone.
//!
//! The last stage that the GPU cannot begin with is the one that differs, as all after it agree. `cargo xtask
//! bisect IMAGE` asks for an image by the variables below; otherwise the image is synthetic.

use super::{Descriptors, DetectorKind, Features, Keypoint, sift, surf};
use crate::device::gpu::{Gpu, all};
use crate::device::{Cpu, Device};
use crate::for_any_view;
use crate::image::gpu::GpuPixel;
use crate::image::{AnyImage, ImageView, Mask, Range, ReadOptions, Size, prepare, read};
use crate::options::Named;
use crate::synth::Texture;

/// An image's file.
const IMAGE: &str = "TIEPOINT_BISECT";
/// A device, such as `opencl:1`; otherwise all.
const DEVICE: &str = "TIEPOINT_BISECT_DEVICE";
/// `sift` or `surf`; otherwise both.
const DETECTOR: &str = "TIEPOINT_BISECT_DETECTOR";

fn asked(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

#[test]
fn the_gpu_may_begin_with_any_stage() {
    let cpu = Cpu::with_threads(2).unwrap();
    let image: AnyImage = match asked(IMAGE) {
        Some(path) => {
            let image = read(path, &ReadOptions::default()).unwrap();
            prepare(image, Mask::All, Range::Auto, &cpu).unwrap().image.into_image()
        }
        None => Texture::new(5).image::<u8>(Size::new(300, 200), &cpu).into(),
    };
    let name = |gpu: &Gpu| format!("{}:{}", gpu.info().api, gpu.info().index);
    let device = asked(DEVICE).map(|device| device.parse::<Device>().unwrap().to_string());
    let gpus = || all().iter().filter(|gpu| device.as_ref().is_none_or(|device| name(gpu) == *device));
    assert!(device.is_none() || gpus().count() > 0, "{device:?} is not among {:?}", all());
    let mut guilty = Vec::new();
    let wanted = asked(DETECTOR).map(|name| name.parse::<DetectorKind>().unwrap());
    let detectors = DetectorKind::ALL.iter().map(|choice| choice.value);
    for detector in detectors.filter(|d| wanted.is_none_or(|wanted| wanted == *d)) {
        for gpu in gpus() {
            let stages = for_any_view!(image.view(), view => differences(detector, view, gpu, &cpu));
            let what = format!("{detector} on {}", name(gpu));
            for (stage, difference) in &stages {
                let difference = difference.as_deref().unwrap_or("equal");
                println!("bisect: {what} from {stage:<16}  {difference}");
            }
            let verdict = last_differing(&stages).map(|stage| format!("{stage} of {what}"));
            guilty.extend(verdict.inspect(|stage| println!("bisect: look at {stage}")));
        }
    }
    assert!(guilty.is_empty(), "the CPU and the GPU differ in {}", guilty.join(", and in "));
}

/// Features, or why there are none.
pub(crate) type Run = Result<Features, String>;

/// The features of an image, by the CPU alone and with the GPU from each stage on.
pub(crate) struct Runs {
    /// Those of the CPU.
    pub(crate) expected: Features,
    /// The features when the GPU begins with each stage, in the order of the stages.
    pub(crate) found: Vec<(&'static str, Run)>,
}

/// For every stage what differs if the GPU begins with it.
type Differences = Vec<(&'static str, Option<String>)>;

/// The stage that differs, as all after it agree.
fn last_differing(stages: &Differences) -> Option<&'static str> {
    stages.iter().rev().find(|(_, difference)| difference.is_some()).map(|(stage, _)| *stage)
}

fn differences<T: GpuPixel>(
    detector: DetectorKind,
    image: ImageView<'_, T>,
    gpu: &Gpu,
    cpu: &Cpu,
) -> Differences {
    let Runs { expected, found } = match detector {
        DetectorKind::Sift => sift::gpu::bisect::runs(image, gpu, cpu),
        DetectorKind::Surf => surf::gpu::bisect::runs(image, gpu, cpu),
    };
    assert!(!expected.is_empty(), "{detector} finds nothing to compare");
    println!("bisect: {detector}: {} features in {}", expected.len(), image.size());
    let outcome = |run: Run| run.map_or_else(Some, |found| difference(&found, &expected));
    found.into_iter().map(|(stage, run)| (stage, outcome(run))).collect()
}

/// The first difference: feature, field, and both values.
fn difference(found: &Features, expected: &Features) -> Option<String> {
    let pairs = found.keypoints.iter().zip(&expected.keypoints).enumerate();
    let keypoint =
        pairs.flat_map(|(i, (a, b))| field(a, b).map(|field| format!("feature {i}, {field}"))).next();
    let numbers = [found.len(), expected.len()];
    let count =
        (numbers[0] != numbers[1]).then(|| format!("{} features in place of {}", numbers[0], numbers[1]));
    let descriptor = || match (&found.descriptors, &expected.descriptors) {
        (Descriptors::U8(a), Descriptors::U8(b)) => value(a, b, expected.dimension, |a, b| a == b),
        (Descriptors::F32(a), Descriptors::F32(b)) => {
            value(a, b, expected.dimension, |a, b| a.to_bits() == b.to_bits())
        }
        (Descriptors::U8(_), Descriptors::F32(_)) | (Descriptors::F32(_), Descriptors::U8(_)) => {
            Some("descriptors of another type".into())
        }
    };
    match (count, keypoint) {
        (Some(count), Some(keypoint)) => Some(format!("{count}; {keypoint}")),
        (count, keypoint) => count.or(keypoint).or_else(descriptor),
    }
}

/// The first field in which two keypoints differ.
fn field(found: &Keypoint, expected: &Keypoint) -> Option<String> {
    let fields = |k: &Keypoint| {
        let [sign, octave, layer] = [f32::from(k.sign), f32::from(k.octave), f32::from(k.layer)];
        [k.x, k.y, k.scale, k.angle, k.response, sign, octave, layer]
    };
    let names = ["x", "y", "scale", "angle", "response", "sign", "octave", "layer"];
    let mut pairs = names.into_iter().zip(fields(found).into_iter().zip(fields(expected)));
    let (name, (a, b)) = pairs.find(|(_, (a, b))| a.to_bits() != b.to_bits())?;
    Some(format!("{name}: {a} ({:#x}) in place of {b} ({:#x})", a.to_bits(), b.to_bits()))
}

/// The first value in which descriptors differ.
fn value<T: Copy + std::fmt::Debug>(
    found: &[T],
    expected: &[T],
    dimension: usize,
    same: impl Fn(T, T) -> bool,
) -> Option<String> {
    let i = found.iter().zip(expected).position(|(&a, &b)| !same(a, b))?;
    let (feature, value) = (i / dimension, i % dimension);
    Some(format!("feature {feature}, descriptor value {value}: {:?} in place of {:?}", found[i], expected[i]))
}

#[test]
fn the_first_difference_is_told() {
    let keypoint =
        Keypoint { x: 1.0, y: 2.0, scale: 3.0, angle: 0.5, response: 0.1, sign: 1, octave: -1, layer: 2 };
    let expected = Features {
        keypoints: vec![keypoint; 3],
        descriptors: Descriptors::F32(vec![0.25; 12]),
        dimension: 4,
        image: Size::new(9, 9),
    };
    assert_eq!(difference(&expected, &expected), None);
    let mut found = expected.clone();
    let Descriptors::F32(values) = &mut found.descriptors else { panic!("floats") };
    values[9] = -0.5;
    let told = |found: &Features| difference(found, &expected).unwrap();
    assert_eq!(told(&found), "feature 2, descriptor value 1: -0.5 in place of 0.25");
    found.keypoints[1].angle = -0.0;
    assert_eq!(told(&found), "feature 1, angle: -0 (0x80000000) in place of 0.5 (0x3f000000)");
    found.keypoints.pop();
    assert_eq!(
        told(&found),
        format!(
            "2 features in place of 3; {}",
            "feature 1, angle: -0 (0x80000000) in place of 0.5 (0x3f000000)"
        )
    );
    let stages = vec![("a", Some(String::new())), ("b", Some(String::new())), ("c", None)];
    assert_eq!(last_differing(&stages), Some("b"), "c, given what the CPU makes of b, agrees");
}
