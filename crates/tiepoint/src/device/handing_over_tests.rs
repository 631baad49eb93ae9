//! Work that the CPU begins and a GPU finishes gives the same result, whenever the GPU's kernels are ready.

use super::gpu::all;
use super::{Cpu, Processor};
use crate::collection::{Collection, CollectionOptions, Shard};
use crate::feature::surf::SurfOptions;
use crate::feature::{Detector, Features};
use crate::files::tests::Folder;
use crate::image::{self, AnyImage, Image, Size};
use crate::matching::{Match, MatchOptions, match_features};
use crate::stereo::{Masks, Stereo, StereoOptions, StereoStream};
use crate::synth::{Random, Texture};
use std::collections::BTreeMap;
use std::path::Path;

/// The name of some work, and the work, whose result must not depend on the device.
pub(super) type Call<'c, R> = (&'static str, Box<dyn Fn(&Processor) -> R + 'c>);

/// Runs a call on the CPU, then with every GPU after it has refused a random number of requests for programs.
fn at_any_moment<R: PartialEq>(most: usize, (what, call): &Call<'_, R>) {
    let cpu = Cpu::with_threads(2).unwrap();
    let wanted = call(&cpu.clone().into());
    let mut random = Random::new(what.len() as u64);
    for gpu in all() {
        let warm = Processor::with_gpu(cpu.clone(), gpu.clone());
        assert!(call(&warm) == wanted, "{what} on {gpu:?}, which compiles what it needs");
        let mut shared = 0;
        for round in 0..20 {
            let refused = if round == 0 { 0 } else { random.below(most) };
            let processor = Processor::with_gpu(cpu.clone(), gpu.handing_over_after(refused));
            assert!(call(&processor) == wanted, "{what} on {gpu:?}, after {refused} refusals");
            assert_eq!(processor.take_notes(), Vec::<String>::new(), "notes");
            let was_refused = processor.take_not_ready() > 0;
            assert!(!was_refused || refused > 0, "{what} on {gpu:?}: refused though ready");
            shared += usize::from(was_refused && processor.take_computed().len() == 2);
        }
        assert!(shared > 0, "{what} on {gpu:?}: in none of 20 runs both computed");
    }
}

fn textures(count: u64, size: Size) -> Vec<Image<u8>> {
    let cpu = Cpu::with_threads(2).unwrap();
    (0..count).map(|seed| Texture::new(seed).image::<u8>(size, &cpu)).collect()
}

/// A list of pictures of two sizes, with both detectors.
pub(super) fn detected() -> Call<'static, Vec<Features>> {
    let (mut images, others) = (textures(6, Size::new(72, 54)), textures(3, Size::new(60, 42)));
    images.extend(others);
    let images: Vec<AnyImage> = images.into_iter().map(AnyImage::from).collect();
    let call = move |processor: &Processor| {
        let detectors = [Detector::default(), Detector::Surf(SurfOptions::default())];
        let found = detectors.map(|detector| detector.open(processor).unwrap().detect_batch(&images));
        found.into_iter().flatten().map(Result::unwrap).collect()
    };
    ("a list of pictures", Box::new(call))
}

#[test]
fn lists_of_pictures_are_handed_over() {
    at_any_moment(120, &detected());
}

/// Features of three pictures with each other.
pub(super) fn matched() -> Call<'static, Vec<Vec<Match>>> {
    let images = textures(3, Size::new(160, 120));
    let found: Vec<Features> = images
        .iter()
        .map(|image| Detector::default().detect(image, None, &Cpu::sequential().into()).unwrap())
        .collect();
    let call = move |processor: &Processor| {
        let of = |a: &Features, b| match_features(a, b, &MatchOptions::default(), processor).unwrap();
        found.iter().flat_map(|a| found.iter().map(|b| of(a, b)).collect::<Vec<_>>()).collect()
    };
    ("matches", Box::new(call))
}

#[test]
fn pairs_of_features_are_handed_over() {
    at_any_moment(6, &matched());
}

fn stereo_options() -> StereoOptions {
    StereoOptions::default().with_disparities(16)
}

/// Six pairs in a stream.
pub(super) fn of_stream() -> Call<'static, Vec<Image<f32>>> {
    let images = textures(6, Size::new(70, 40));
    let call = move |processor: &Processor| {
        let mut stream = StereoStream::new(stereo_options(), processor).unwrap().with_batch(2).unwrap();
        for pair in images.windows(2) {
            stream.push((&pair[0]).into(), (&pair[1]).into(), Masks::default()).unwrap();
        }
        let taken = std::iter::from_fn(|| stream.pop().unwrap());
        taken.map(|found| found.disparity).collect()
    };
    ("a stream of pairs", Box::new(call))
}

/// The same one by one.
pub(super) fn of_pairs() -> Call<'static, Vec<Image<f32>>> {
    let images = textures(6, Size::new(70, 40));
    let call = move |processor: &Processor| {
        let stereo = Stereo::new(stereo_options()).unwrap();
        let of_pair = |pair: &[Image<u8>]| {
            stereo.compute((&pair[0]).into(), (&pair[1]).into(), Masks::default(), processor).unwrap()
        };
        images.windows(2).map(|pair| of_pair(pair).disparity).collect()
    };
    ("pairs one by one", Box::new(call))
}

#[test]
fn streams_and_calls_of_stereo_are_handed_over() {
    at_any_moment(60, &of_stream());
    at_any_moment(60, &of_pairs());
}

/// The files of a collection of nine photographs; `name` is that of its folder.
pub(super) fn collection_files(name: &str) -> Call<'static, BTreeMap<String, Vec<u8>>> {
    let folder = Folder::new(name);
    let photographs = folder.join("images");
    std::fs::create_dir_all(&photographs).unwrap();
    for (i, picture) in textures(9, Size::new(72, 54)).into_iter().enumerate() {
        image::write(photographs.join(format!("{i}.pgm")), &AnyImage::from(picture)).unwrap();
    }
    let options = CollectionOptions::default();
    let call = move |processor: &Processor| {
        let work = folder.join("work");
        let (collection, _) =
            Collection::scan(&work, std::slice::from_ref(&photographs), &options, &processor.cpu).unwrap();
        let processors = std::slice::from_ref(processor);
        collection.extract(Shard::ALL, processors).unwrap();
        collection.choose_pairs(Shard::ALL, &processor.cpu).unwrap();
        collection.match_pairs(Shard::ALL, processors).unwrap();
        let mut files = BTreeMap::new();
        read_all(&work, &mut files);
        assert!(files.len() > 10, "features of 9 photographs, pairs, a tile: {:?}", files.keys());
        std::fs::remove_dir_all(&work).unwrap();
        files
    };
    ("a collection", Box::new(call))
}

#[test]
fn collections_are_handed_over() {
    at_any_moment(150, &collection_files("handing-over"));
}

fn read_all(folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => read_all(&path, files),
            false => drop(files.insert(path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
}
