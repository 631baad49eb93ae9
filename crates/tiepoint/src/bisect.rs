//! Finds the stage of a pipeline in which a GPU differs from the CPU. Every stage on the GPU gets its input from the
//! CPU's earlier stages, and its output is compared with that of the CPU. The first stage that differs is the one to
//! look at.
//!
//! `cargo xtask bisect IMAGE` compares the detectors, `cargo xtask bisect LEFT RIGHT` dense stereo; they set the
//! variables below. Without the variables all pipelines are compared, on synthetic images.

use crate::by_pixel;
use crate::device::{
    Cpu, Device,
    gpu::{Gpu, all},
};
use crate::feature::{DetectorKind, Keypoint, sift, surf, to_words};
use crate::image::{AnyImage, Image, Mask, Pixel, Range, ReadOptions, Size, prepare, read};
use crate::options::Named;
use crate::stereo::{self, Cost, StereoOptions};
use crate::synth::{StereoScene, StereoSceneOptions, Texture};
use std::fmt::Debug;

/// The files of one or two images.
const FILES: [&str; 2] = ["TIEPOINT_BISECT", "TIEPOINT_BISECT_RIGHT"];
/// A device, such as `opencl:1`; otherwise all.
const DEVICE: &str = "TIEPOINT_BISECT_DEVICE";
/// `sift` or `surf`; otherwise both.
const DETECTOR: &str = "TIEPOINT_BISECT_DETECTOR";
/// A cost by its name; otherwise all.
const COST: &str = "TIEPOINT_BISECT_COST";
/// The disparities that are searched.
const DISPARITIES: &str = "TIEPOINT_BISECT_DISPARITIES";

fn asked(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// The stages of a pipeline in their order, each with its first difference, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Stages(Vec<(&'static str, Option<String>)>);

impl Stages {
    pub(crate) fn push(&mut self, stage: &'static str, difference: Option<String>) {
        self.0.push((stage, difference));
    }

    /// Adds a stage whose result is a list. Two values are the same when their `bits` are.
    pub(crate) fn compare<T: Debug, B: PartialEq>(
        &mut self,
        stage: &'static str,
        [found, expected]: [&[T]; 2],
        bits: impl Fn(&T) -> B,
    ) {
        self.push(stage, difference([found, expected], bits, |i| format!("number {i}")));
    }

    /// Adds a stage whose result is keypoints.
    pub(crate) fn compare_keypoints(&mut self, stage: &'static str, both: [&[Keypoint]; 2]) {
        self.compare(stage, both, to_words);
    }

    /// Adds a stage whose result is an image.
    pub(crate) fn compare_images<T: Pixel>(
        &mut self,
        stage: &'static str,
        found: &Image<T>,
        expected: &Image<T>,
    ) {
        self.push(stage, difference_of_images(found, expected));
    }

    fn first_differing(&self) -> Option<&'static str> {
        self.0.iter().find(|(_, difference)| difference.is_some()).map(|(stage, _)| *stage)
    }

    /// Panics at the first stage that differs.
    pub(crate) fn assert_equal(&self, what: &str) {
        assert_eq!(self.first_differing(), None, "{what}: {self:?}");
    }
}

/// How many values differ, and the first that does: its place, and both values.
fn difference<T: Debug, B: PartialEq>(
    [found, expected]: [&[T]; 2],
    bits: impl Fn(&T) -> B,
    place: impl Fn(usize) -> String,
) -> Option<String> {
    let numbers = [found.len(), expected.len()];
    let count = (numbers[0] != numbers[1]).then(|| format!("{} in place of {}", numbers[0], numbers[1]));
    let differs = |(_, (a, b)): &(usize, (&T, &T))| bits(a) != bits(b);
    let mut pairs = found.iter().zip(expected).enumerate();
    let value = pairs.find(differs).map(|(i, (a, b))| {
        let all = 1 + pairs.filter(differs).count();
        format!("{all} differ, the first at {}: {a:?} in place of {b:?}", place(i))
    });
    match (count, value) {
        (Some(count), Some(value)) => Some(format!("{count}; {value}")),
        (count, value) => count.or(value),
    }
}

pub(crate) fn difference_of_images<T: Pixel>(found: &Image<T>, expected: &Image<T>) -> Option<String> {
    if (found.size(), found.channels()) != (expected.size(), expected.channels()) {
        return Some(format!("{} in place of {}", found.size(), expected.size()));
    }
    let (row, channels) = (found.row_len().max(1), found.channels());
    let place = |at: usize| format!("({}, {})", at % row / channels, at / row);
    difference([found.data(), expected.data()], |value| value.to_f32().to_bits(), place)
}

/// The name of a pipeline, and a function that compares its stages on a device and on the CPU.
type Pipeline<'a> = (String, Box<dyn Fn(&Gpu, &Cpu) -> Stages + 'a>);

fn detectors(image: &AnyImage) -> impl Iterator<Item = Pipeline<'_>> {
    let wanted = asked(DETECTOR).map(|name| name.parse::<DetectorKind>().unwrap());
    let all = DetectorKind::ALL.iter().map(|choice| choice.value);
    all.filter(move |detector| wanted.is_none_or(|wanted| wanted == *detector)).map(move |detector| {
        let stages = move |gpu: &Gpu, cpu: &Cpu| {
            by_pixel!(image.view(), view => match detector {
                DetectorKind::Sift => sift::gpu::bisect::stages(view, gpu, cpu),
                DetectorKind::Surf => surf::gpu::bisect::stages(view, gpu, cpu),
            })
        };
        (detector.to_string(), Box::new(stages) as Box<_>)
    })
}

fn dense_stereo(pair: &[AnyImage; 2]) -> impl Iterator<Item = Pipeline<'_>> {
    let wanted = asked(COST).map(|name| name.parse::<Cost>().unwrap());
    let disparities = asked(DISPARITIES).map_or(32, |number| number.parse().unwrap());
    let all = Cost::ALL.iter().map(|choice| choice.value);
    all.filter(move |cost| wanted.is_none_or(|wanted| wanted == *cost)).map(move |cost| {
        let options = StereoOptions::default().with_disparities(disparities).with_cost(cost);
        let options = options.with_confidence(true).with_right(true).with_fill(true);
        let stages = move |gpu: &Gpu, cpu: &Cpu| stereo::bisect::stages(pair, &options, gpu, cpu);
        (format!("stereo by {cost}"), Box::new(stages) as Box<_>)
    })
}

/// A synthetic pair in colour, which is made ready on the device.
fn synthetic_pair(cpu: &Cpu) -> [AnyImage; 2] {
    let options = StereoSceneOptions::default().with_size(Size::new(150, 90)).with_disparities([1.0, 28.0]);
    let scene = StereoScene::new(&options).unwrap().render::<u8>(cpu);
    [&scene.left, &scene.right].map(|image| {
        let colours = image.data().iter().flat_map(|&v| [v, 255 - v / 2, v / 3]).collect();
        Image::from_vec(colours, image.size(), 3).unwrap().into()
    })
}

#[test]
fn every_stage_is_that_of_the_cpu() {
    let cpu = Cpu::with_threads(2).unwrap();
    let (image, pair): (Option<AnyImage>, Option<[AnyImage; 2]>) = match FILES.map(asked) {
        [None, _] => {
            let texture = Texture::new(5).image::<u8>(Size::new(300, 200), &cpu);
            (Some(texture.into()), Some(synthetic_pair(&cpu)))
        }
        [Some(path), None] => {
            let image = read(path, &ReadOptions::default()).unwrap();
            (Some(prepare(image, Mask::All, Range::Auto, &cpu).unwrap().image.into_image()), None)
        }
        [Some(left), Some(right)] => {
            (None, Some([left, right].map(|path| read(path, &ReadOptions::default()).unwrap())))
        }
    };
    let name = |gpu: &Gpu| format!("{}:{}", gpu.info().api, gpu.info().index);
    let device = asked(DEVICE).map(|device| device.parse::<Device>().unwrap().to_string());
    let gpus = || all().iter().filter(|gpu| device.as_ref().is_none_or(|device| name(gpu) == *device));
    assert!(device.is_none() || gpus().count() > 0, "{device:?} is not among {:?}", all());
    let mut guilty = Vec::new();
    for (pipeline, stages) in image.iter().flat_map(detectors).chain(pair.iter().flat_map(dense_stereo)) {
        for gpu in gpus() {
            let (what, stages) = (format!("{pipeline} on {}", name(gpu)), stages(gpu, &cpu));
            for (stage, difference) in &stages.0 {
                println!("bisect: {what}: {stage:<32}  {}", difference.as_deref().unwrap_or("equal"));
            }
            let first = stages.first_differing().map(|stage| format!("{stage} of {what}"));
            guilty.extend(first.inspect(|stage| println!("bisect: look at {stage}")));
        }
    }
    assert!(guilty.is_empty(), "the CPU and the GPU differ in {}", guilty.join(", and in "));
}

#[test]
fn the_first_difference_is_reported() {
    let expected = Image::from_fn(Size::new(4, 3), |x, y| (x + 10 * y) as f32);
    let mut stages = Stages::default();
    stages.compare_images("a", &expected, &expected);
    stages.assert_equal("nothing differs");
    let mut found = expected.clone();
    found.row_mut(1)[2] = f32::INFINITY;
    found.row_mut(2)[0] = -1.0;
    stages.compare_images("b", &found, &expected);
    stages.compare("c", [&[0.0_f32][..], &[-0.0, 1.0]], |value| value.to_bits());
    assert_eq!(stages.first_differing(), Some("b"));
    let told: Vec<_> = stages.0.iter().filter_map(|(_, difference)| difference.as_deref()).collect();
    assert_eq!(told[0], "2 differ, the first at (2, 1): inf in place of 12.0");
    assert_eq!(told[1], "1 in place of 2; 1 differ, the first at number 0: 0.0 in place of -0.0");
}
