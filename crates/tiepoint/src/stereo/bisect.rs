//! Which stage of dense stereo differs on a GPU from the CPU: every stage gets what the CPU's stages before it have
//! made, on both, and what it makes is compared. The first that differs is named.
//!
//! `cargo xtask bisect LEFT RIGHT` asks for a pair by the variables below; otherwise the pair is synthetic.

use super::{
    Cost, INVALID, Masks, StereoOptions, View,
    aggregation::{AggregationInput, AggregationOutput, Workspace, aggregate},
    consistency_check::{self, gpu::GpuConsistencyCheck},
    cost::{CostSource, Learn, gpu::CostKernel},
    fill::{self, gpu::GpuFill},
    gpu::GpuMatching,
    median::{self, gpu::GpuMedian},
    pair::{
        Pair, Pictures,
        gpu::{Compares, GpuPictures, PictureShape, ViewStacks, make_ready, pictures_of},
    },
    speckle::{self, gpu::GpuSpeckle},
    winner_takes_all::gpu::Selection,
};
use crate::{
    device::{
        Cpu, Device,
        gpu::{Commands, Gpu, all},
    },
    for_any_view,
    image::{
        AnyImage, Image, Pixel, ReadOptions, Size,
        gpu::{GpuImage, GpuStack},
        read,
    },
    options::Named,
    synth::{StereoScene, StereoSceneOptions},
};

/// The files of a pair, both or neither.
const FILES: [&str; 2] = ["TIEPOINT_BISECT_LEFT", "TIEPOINT_BISECT_RIGHT"];
/// A device, such as `opencl:1`; otherwise all.
const DEVICE: &str = "TIEPOINT_BISECT_DEVICE";
/// A cost by its name; otherwise all.
const COST: &str = "TIEPOINT_BISECT_COST";
/// The disparities that are searched.
const DISPARITIES: &str = "TIEPOINT_BISECT_DISPARITIES";

fn asked(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// What was compared, and the first difference, if there is one.
type Difference = (&'static str, Option<String>);

#[test]
fn every_stage_is_that_of_the_cpu() {
    let cpu = Cpu::with_threads(2).unwrap();
    let pair: [AnyImage; 2] = match FILES.map(asked) {
        [Some(left), Some(right)] => [left, right].map(|path| read(path, &ReadOptions::default()).unwrap()),
        _ => {
            let options =
                StereoSceneOptions::default().with_size(Size::new(150, 90)).with_disparities([1.0, 28.0]);
            let scene = StereoScene::new(&options).unwrap().render::<u8>(&cpu);
            // In colour, which is made ready on the device.
            let colour = |image: &Image<u8>| {
                let colours = image.data().iter().flat_map(|&v| [v, 255 - v / 2, v / 3]).collect();
                Image::from_vec(colours, image.size(), 3).unwrap().into()
            };
            [colour(&scene.left), colour(&scene.right)]
        }
    };
    let disparities = asked(DISPARITIES).map_or(32, |number| number.parse().unwrap());
    let name = |gpu: &Gpu| format!("{}:{}", gpu.info().api, gpu.info().index);
    let device = asked(DEVICE).map(|device| device.parse::<Device>().unwrap().to_string());
    let gpus = || all().iter().filter(|gpu| device.as_ref().is_none_or(|device| name(gpu) == *device));
    assert!(device.is_none() || gpus().count() > 0, "{device:?} is not among {:?}", all());
    let wanted = asked(COST).map(|name| name.parse::<Cost>().unwrap());
    let costs = Cost::ALL.iter().map(|choice| choice.value).filter(|cost| wanted.is_none_or(|w| w == *cost));
    let mut guilty = Vec::new();
    for cost in costs {
        let options = StereoOptions::default().with_disparities(disparities).with_cost(cost);
        let options = options.with_confidence(true).with_right(true).with_fill(true);
        for gpu in gpus() {
            let what = format!("stereo by {cost} on {}", name(gpu));
            let stages = stages(&pair, &options, gpu, &cpu);
            for (stage, difference) in &stages {
                println!("bisect: {what}: {stage:<30}  {}", difference.as_deref().unwrap_or("equal"));
            }
            let first = first_differing(&stages).map(|stage| format!("{stage} of {what}"));
            guilty.extend(first.inspect(|stage| println!("bisect: look at {stage}")));
        }
    }
    assert!(guilty.is_empty(), "the CPU and the GPU differ in {}", guilty.join(", and in "));
}

fn first_differing(stages: &[Difference]) -> Option<&'static str> {
    stages.iter().find(|(_, difference)| difference.is_some()).map(|(stage, _)| *stage)
}

/// The maps of the CPU on their way through refinement.
struct Maps {
    left: Image<f32>,
    right: Image<f32>,
}

/// Every stage, compared.
fn stages(images: &[AnyImage; 2], options: &StereoOptions, gpu: &Gpu, cpu: &Cpu) -> Vec<Difference> {
    let [left, right] = images;
    let pictures = Pictures::new(left.into(), right.into()).unwrap();
    let mut pair = Pair::new(&pictures, Masks::default(), cpu).unwrap();
    let cost = options.cost.definition();
    if let Some(compared) = cost.compared(&pictures, &pair, cpu).unwrap() {
        pair.compare(compared);
    }
    let mut out = making_ready(&pictures, &pair, options, gpu);
    let mut workspace = Workspace::default();
    let source = &*learning(&mut pair, &pictures, options, (gpu, cpu), &mut workspace, &mut out);
    let mut maps = selection((&pair, source), options, (gpu, cpu), &mut workspace, &mut out);
    refinement(&mut maps, options, (gpu, cpu), &mut out);
    out
}

/// What computes the cost, after the pair was learnt from where the cost learns.
fn learning(
    pair: &mut Pair,
    pictures: &Pictures<'_>,
    options: &StereoOptions,
    (gpu, cpu): (&Gpu, &Cpu),
    workspace: &mut Workspace,
    out: &mut Vec<Difference>,
) -> Box<dyn CostSource> {
    let cost = options.cost.definition();
    let mut there = Pair::new(pictures, Masks::default(), cpu).unwrap();
    if let Some(compared) = cost.compared(pictures, &there, cpu).unwrap() {
        there.compare(compared);
    }
    let learn = Learn { pair: &mut there, pictures, options, workspace, cpu, gpu: Some(gpu) };
    let found = cost.source(learn).unwrap();
    let source = cost.source(Learn { pair, pictures, options, workspace, cpu, gpu: None }).unwrap();
    let table = |source: &dyn CostSource| {
        let table = CostKernel::of(source, gpu).unwrap().table;
        let size = Size::new(256.min(table.len()), table.len() / 256);
        Image::from_vec(table, size, 1).unwrap()
    };
    let (found, expected) = (table(&*found), table(&*source));
    if !expected.data().is_empty() {
        let compared = |view| difference(there.compared(view), pair.compared(view));
        let learnt = difference(&found, &expected).or(compared(View::Left)).or(compared(View::Right));
        out.push(("what is learnt", learnt));
    }
    source
}

/// The pictures made ready.
fn making_ready(pictures: &Pictures<'_>, pair: &Pair, options: &StereoOptions, gpu: &Gpu) -> Vec<Difference> {
    let cost = options.cost.definition();
    let are_colour = pictures.are_colour();
    let compares = match (cost.known(1).is_some(), are_colour) {
        (true, _) if cost.compares_colour() => [Compares::Colour; 2],
        (true, _) => [Compares::Grey; 2],
        (false, [true, true]) => [Compares::OwnGreen; 2],
        (false, [false, false]) => [Compares::OwnGrey; 2],
        // The grey of the colours is learnt.
        (false, [true, false]) => [Compares::LearntGrey, Compares::OwnGrey],
        (false, [false, true]) => [Compares::OwnGrey, Compares::LearntGrey],
    };
    let shapes = PictureShape::of_pictures(pictures, Masks::default()).unwrap();
    let stacks = shapes.map(|shape| GpuPictures::new(gpu, shape, (pictures.size(), 1)).unwrap());
    let mut commands = Commands::new();
    let images = pictures_of(pictures, Masks::default());
    for (to, from) in stacks.iter().flat_map(GpuPictures::stacks).zip(images) {
        let from = for_any_view!(from, view => GpuImage::upload(gpu, view).unwrap().into());
        to.take(0, &from, &mut commands).unwrap();
    }
    let views = make_ready(&mut commands, gpu, &stacks, compares).unwrap();
    gpu.run(&commands).unwrap();
    let compare = |view: View, found: &ViewStacks| {
        difference(&found.bytes.download(0).unwrap(), pair.bytes(view)).or_else(|| {
            let made = compares[view.index()] != Compares::LearntGrey;
            let compared = found.compared.as_ref().filter(|_| made)?.download(0).unwrap();
            // Of a grey picture all channels are its grey.
            let expected = pair.compared(view);
            if expected.channels() == compared.channels() { difference(&compared, expected) } else { None }
        })
    };
    vec![("grey, left", compare(View::Left, &views[0])), ("grey, right", compare(View::Right, &views[1]))]
}

/// Aggregation and winner takes all, which leave nothing else that could be compared.
fn selection(
    (pair, source): (&Pair, &dyn CostSource),
    options: &StereoOptions,
    (gpu, cpu): (&Gpu, &Cpu),
    workspace: &mut Workspace,
    out: &mut Vec<Difference>,
) -> Maps {
    let image = || Image::<f32>::new(pair.size());
    let (mut left, mut right, mut confidence) = (image(), image(), image());
    let output = AggregationOutput {
        disparity: Some(&mut left),
        right: Some(&mut right),
        confidence: Some(&mut confidence),
        sums: None,
    };
    let input = AggregationInput::new(source, pair, options, options.penalties());
    aggregate(&input, output, workspace, cpu).unwrap();
    let cost = CostKernel::of(source, gpu).unwrap();
    let masked = [View::Left, View::Right].into_iter().any(|view| pair.mask(view).is_some());
    let rows = 0..pair.size().height;
    let views = [View::Left, View::Right].map(|view| ViewStacks::of_rows(gpu, pair, view, &rows).unwrap());
    let mut commands = Commands::new();
    let (greatest, selection) = (source.greatest(), Selection::of(options));
    let matching = GpuMatching { gpu, options, cost: &cost, greatest, masked, selection };
    let (maps, _) = matching.record(&mut commands, views.each_ref(), None).unwrap();
    gpu.run(&commands).unwrap();
    let got = |map: &GpuStack<f32>| map.download(0).unwrap();
    out.push(("aggregation and selection, left", difference(&got(&maps.disparity), &left)));
    out.push(("aggregation and selection, right", difference(&got(&maps.right.unwrap()), &right)));
    let found = got(&maps.confidence.unwrap());
    out.push(("confidence", difference(&found, &confidence)));
    Maps { left, right }
}

/// The stages of refinement, one after the other.
fn refinement(maps: &mut Maps, options: &StereoOptions, (gpu, cpu): (&Gpu, &Cpu), out: &mut Vec<Difference>) {
    let upload = |map: &Image<f32>| GpuStack::upload(gpu, &[map.view()]).unwrap();
    let run = |work: &dyn Fn(&mut Commands) -> GpuStack<f32>| {
        let mut commands = Commands::new();
        let made = work(&mut commands);
        gpu.run(&commands).unwrap();
        made.download(0).unwrap()
    };
    let smooth = |map: &Image<f32>, side| {
        let median = GpuMedian::new(gpu, side).unwrap();
        let found = run(&|commands| median.record(commands, &upload(map)).unwrap());
        let expected = median::median(map.view(), side, cpu).unwrap();
        (difference(&found, &expected), expected)
    };
    let (first, left) = smooth(&maps.left, 3);
    let (second, right) = smooth(&maps.right, 3);
    out.push(("median of 3×3", first.or(second)));
    *maps = Maps { left, right };

    let check = GpuConsistencyCheck::new(gpu).unwrap();
    let (limit, other) = (options.max_difference, upload(&maps.right));
    let found =
        run(&|commands| check.record(commands, &upload(&maps.left), &other, View::Left, limit).unwrap());
    let mut checked = maps.left.clone();
    consistency_check::check(checked.view_mut(), maps.right.view(), View::Left, limit, cpu).unwrap();
    out.push(("consistency check", difference(&found, &checked)));

    let speckle = GpuSpeckle::new(gpu).unwrap();
    let found = run(&|commands| {
        let map = upload(&checked);
        speckle.record(commands, &map, &options.speckle()).unwrap();
        map
    });
    speckle::speckle(checked.view_mut(), &options.speckle(), cpu).unwrap();
    out.push(("speckle", difference(&found, &checked)));

    let (last, checked) = smooth(&checked, options.median);
    out.push(("last median", last));

    let occluded = consistency_check::occluded(maps.right.view(), cpu).unwrap();
    let fill = GpuFill::new(gpu).unwrap();
    let found = run(&|commands| {
        let hidden = check.record_occluded(commands, &other).unwrap();
        fill.record(commands, &upload(&checked), Some(&hidden)).unwrap()
    });
    let mut filled = checked;
    fill::fill(filled.view_mut(), Some(occluded.view()), cpu).unwrap();
    out.push(("fill", difference(&found, &filled)));
}

/// The first difference: pixel, and both values.
fn difference<T: Pixel>(found: &Image<T>, expected: &Image<T>) -> Option<String> {
    if (found.size(), found.channels()) != (expected.size(), expected.channels()) {
        return Some(format!("{} in place of {}", found.size(), expected.size()));
    }
    let differs = |(a, b): (&T, &T)| a.to_f32().to_bits() != b.to_f32().to_bits();
    let mut pairs = found.data().iter().zip(expected.data());
    let at = pairs.position(differs)?;
    let count = 1 + pairs.filter(|pair| differs(*pair)).count();
    let (row, channels) = (found.row_len().max(1), found.channels());
    let (x, y) = (at % row / channels, at / row);
    let [a, b] = [found.data()[at], expected.data()[at]];
    Some(format!("{count} differ, the first at ({x}, {y}): {a:?} in place of {b:?}"))
}

#[test]
fn the_first_difference_is_told() {
    let expected = Image::from_fn(Size::new(4, 3), |x, y| (x + 10 * y) as f32);
    assert_eq!(difference(&expected, &expected), None);
    let mut found = expected.clone();
    found.row_mut(1)[2] = INVALID;
    found.row_mut(2)[0] = -1.0;
    let told = difference(&found, &expected).unwrap();
    assert_eq!(told, "2 differ, the first at (2, 1): inf in place of 12.0");
    let stages = [("a", None), ("b", Some(String::new())), ("c", Some(String::new()))];
    assert_eq!(first_differing(&stages), Some("b"));
}
