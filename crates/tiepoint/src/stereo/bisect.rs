//! Finds the stage of dense stereo that differs on a GPU: each runs on the CPU's results of the earlier stages.

use super::aggregation::gpu::GpuAggregationInput;
use super::aggregation::{AggregationInput, Workspace, aggregate};
use super::cost::{CostSource, Learn};
use super::gpu::matching;
use super::pair::gpu::{Compares, GpuPictures, PictureShape, ViewStacks, make_ready, pictures_of, take};
use super::pair::{Pair, Pictures};
use super::testing::after;
use super::{Masks, StereoOptions, StereoResult, View, consistency_check, fill, median, speckle};
use crate::bisect::{Stages, difference_of_images};
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu};
use crate::image::gpu::{AnyGpuImage, GpuStack};
use crate::image::{AnyImage, Image, Size};

/// Compares all stages. The options must ask for the right view, confidence and filling.
pub(crate) fn stages(images: &[AnyImage; 2], options: &StereoOptions, gpu: &Gpu, cpu: &Cpu) -> Stages {
    let [left, right] = images;
    let pictures = Pictures::new([left.into(), right.into()], Masks::default()).unwrap();
    let mut pair = Pair::for_cost(&pictures, options.cost.definition(), cpu).unwrap();
    let mut out = Stages::default();
    making_ready(&pictures, &pair, options, gpu, &mut out);
    let mut workspace = Workspace::default();
    let source = &*learning(&mut pair, &pictures, options, (gpu, cpu), &mut workspace, &mut out);
    let maps = selection((&pair, source), options, (gpu, cpu), &mut workspace, &mut out);
    refinement(maps, options, (gpu, cpu), &mut out);
    out
}

/// The cost source of the pair, after learning on the GPU and on the CPU if the cost learns; compares both tables.
fn learning(
    pair: &mut Pair,
    pictures: &Pictures<'_>,
    options: &StereoOptions,
    (gpu, cpu): (&Gpu, &Cpu),
    workspace: &mut Workspace,
    out: &mut Stages,
) -> Box<dyn CostSource> {
    let cost = options.cost.definition();
    let mut there = Pair::for_cost(pictures, cost, cpu).unwrap();
    let learn = Learn { pair: &mut there, pictures, options, workspace, cpu, gpu: Some(gpu) };
    let found = cost.source(learn).unwrap();
    let source = cost.source(Learn { pair, pictures, options, workspace, cpu, gpu: None }).unwrap();
    let table = |source: &dyn CostSource| {
        let table = source.kernel().table;
        let size = Size::new(256.min(table.len()), table.len() / 256);
        Image::from_vec(table, size, 1).unwrap()
    };
    let (found, expected) = (table(&*found), table(&*source));
    if !expected.data().is_empty() {
        let compared = |view| difference_of_images(there.compared(view), pair.compared(view));
        let learnt =
            difference_of_images(&found, &expected).or(compared(View::Left)).or(compared(View::Right));
        out.push("what is learnt", learnt);
    }
    source
}

/// A pair of pictures made ready on the device.
pub(super) fn made_ready(pictures: &Pictures<'_>, compares: [Compares; 2], gpu: &Gpu) -> [ViewStacks; 2] {
    let shapes = PictureShape::of_pictures(pictures).unwrap();
    let stacks = shapes.map(|shape| GpuPictures::new(gpu, shape, (pictures.size(), 1)).unwrap());
    let mut commands = Commands::new();
    for (to, from) in stacks.iter().flat_map(GpuPictures::stacks).zip(pictures_of(pictures)) {
        take(&to, 0, &AnyGpuImage::upload(gpu, from).unwrap(), &mut commands).unwrap();
    }
    let views = make_ready(&mut commands, gpu, &stacks, compares).unwrap();
    gpu.run(&commands).unwrap();
    views
}

fn making_ready(pictures: &Pictures<'_>, pair: &Pair, options: &StereoOptions, gpu: &Gpu, out: &mut Stages) {
    let cost = options.cost.definition();
    let shapes = PictureShape::of_pictures(pictures).unwrap();
    let compares = match cost.learnt_there(gpu, shapes, &|| Ok(pictures.are_colour())).unwrap() {
        Some(learnt) => learnt.compares,
        None if cost.compares_colour() => [Compares::Colour; 2],
        None => [Compares::Grey; 2],
    };
    let views = made_ready(pictures, compares, gpu);
    let compare = |view: View, found: &ViewStacks| {
        difference_of_images(&found.bytes.download(0).unwrap(), pair.bytes(view)).or_else(|| {
            let made = compares[view.index()] != Compares::LearntGrey;
            let compared = found.compared.as_ref().filter(|_| made)?.download(0).unwrap();
            // Of a grey picture the device stores the grey in every channel.
            let expected = pair.compared(view);
            if expected.channels() == compared.channels() {
                difference_of_images(&compared, expected)
            } else {
                None
            }
        })
    };
    out.push("grey, left", compare(View::Left, &views[0]));
    out.push("grey, right", compare(View::Right, &views[1]));
}

/// Compares aggregation and winner takes all as one stage: nothing is stored between them. Returns the CPU's maps.
fn selection(
    (pair, source): (&Pair, &dyn CostSource),
    options: &StereoOptions,
    (gpu, cpu): (&Gpu, &Cpu),
    workspace: &mut Workspace,
    out: &mut Stages,
) -> [Image<f32>; 2] {
    let mut expected = StereoResult::new(pair.size(), true, true);
    let input = AggregationInput::new(source, pair, options);
    aggregate(&input, (&mut expected, None), workspace, cpu).unwrap();
    let (left, right, confidence) =
        (expected.disparity, expected.right.unwrap(), expected.confidence.unwrap());
    let cost = source.kernel();
    let rows = 0..pair.size().height;
    let views = [View::Left, View::Right].map(|view| ViewStacks::of_rows(gpu, pair, view, &rows).unwrap());
    let mut commands = Commands::new();
    let (cost, greatest, masked) = (&cost, source.greatest(), pair.is_masked());
    let (options, size, images, banded, volume) = (*options, pair.size(), 1, false, None);
    let input = GpuAggregationInput { gpu, options, cost, greatest, masked, size, images, banded, volume };
    let (maps, _) = matching::record(&mut commands, input, views.each_ref(), None).unwrap();
    gpu.run(&commands).unwrap();
    let got = |map: &GpuStack<f32>| map.download(0).unwrap();
    out.compare_images("aggregation and selection, left", &got(&maps.disparity), &left);
    out.compare_images("aggregation and selection, right", &got(&maps.right.unwrap()), &right);
    out.compare_images("confidence", &got(&maps.confidence.unwrap()), &confidence);
    [left, right]
}

fn refinement(maps: [Image<f32>; 2], options: &StereoOptions, (gpu, cpu): (&Gpu, &Cpu), out: &mut Stages) {
    let upload = |map: &Image<f32>| GpuStack::upload(gpu, &[map.view()]).unwrap();
    let run = |work: &dyn Fn(&mut Commands) -> GpuStack<f32>| {
        let mut commands = Commands::new();
        let made = work(&mut commands);
        gpu.run(&commands).unwrap();
        made.download(0).unwrap()
    };
    let smooth = |map: &Image<f32>, side| {
        let found = run(&|commands| median::gpu::median(commands, &upload(map), side).unwrap());
        let expected = median::median(map.view(), side, cpu).unwrap();
        (difference_of_images(&found, &expected), expected)
    };
    let [(first, left), (second, right)] = maps.map(|map| smooth(&map, 3));
    out.push("median of 3×3", first.or(second));

    let (limit, other) = (options.max_difference, upload(&right));
    let found = run(&|commands| {
        consistency_check::gpu::check(commands, &upload(&left), &other, View::Left, limit).unwrap()
    });
    let checked = after(&left, |map| consistency_check::check(map, right.view(), View::Left, limit, cpu));
    out.compare_images("consistency check", &found, &checked);

    let found = run(&|commands| {
        let map = upload(&checked);
        speckle::gpu::speckle(commands, &map, &options.speckle()).unwrap();
        map
    });
    let checked = after(&checked, |map| speckle::speckle(map, &options.speckle(), cpu));
    out.compare_images("speckle", &found, &checked);

    let (last, checked) = smooth(&checked, options.median);
    out.push("last median", last);

    let occluded = consistency_check::occluded(right.view(), cpu).unwrap();
    let found = run(&|commands| {
        let hidden = consistency_check::gpu::occluded(commands, &other).unwrap();
        fill::gpu::fill(commands, &upload(&checked), Some(&hidden), None).unwrap()
    });
    let filled = after(&checked, |map| fill::fill(map, Some(occluded.view()), cpu));
    out.compare_images("fill", &found, &filled);
}
