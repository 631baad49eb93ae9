//! Work that the CPU begins and a GPU finishes gives the same result, whenever the GPU's kernels are ready.

use super::gpu::all;
use super::{Cpu, Processor};
use crate::collection::{Collection, CollectionOptions, Shard};
use crate::feature::surf::SurfOptions;
use crate::feature::{Detector, Features};
use crate::files::tests::Folder;
use crate::image::{self, AnyImage, Image, Size};
use crate::matching::{MatchOptions, match_features};
use crate::stereo::{Masks, Stereo, StereoOptions, StereoStream};
use crate::synth::{Random, Texture};
use std::collections::BTreeMap;
use std::path::Path;

/// Runs a call on the CPU, then with every GPU after it has refused a random number of requests for programs.
fn at_any_moment<R: PartialEq>(what: &str, most: usize, call: impl Fn(&Processor) -> R) {
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

#[test]
fn lists_of_pictures_are_handed_over() {
    let (mut images, others) = (textures(6, Size::new(120, 90)), textures(3, Size::new(100, 70)));
    images.extend(others);
    let images: Vec<AnyImage> = images.into_iter().map(AnyImage::from).collect();
    for detector in [Detector::default(), Detector::Surf(SurfOptions::default())] {
        at_any_moment("a list of pictures", 60, |processor| -> Vec<Features> {
            let finder = detector.open(processor).unwrap();
            finder.detect_batch(&images).into_iter().map(Result::unwrap).collect()
        });
    }
}

#[test]
fn pairs_of_features_are_handed_over() {
    let images = textures(3, Size::new(160, 120));
    let found: Vec<Features> = images
        .iter()
        .map(|image| Detector::default().detect(image, None, &Cpu::sequential().into()).unwrap())
        .collect();
    at_any_moment("matches", 6, |processor| {
        let matched = |a: &Features| {
            found.iter().map(|b| match_features(a, b, &MatchOptions::default(), processor).unwrap()).collect()
        };
        found.iter().map(matched).collect::<Vec<Vec<_>>>()
    });
}

#[test]
fn streams_and_calls_of_stereo_are_handed_over() {
    let options = StereoOptions::default().with_disparities(16);
    let images = textures(6, Size::new(70, 40));
    at_any_moment("a stream of pairs", 60, |processor| {
        let mut stream = StereoStream::new(options, processor).unwrap().with_batch(2).unwrap();
        for pair in images.windows(2) {
            stream.push((&pair[0]).into(), (&pair[1]).into(), Masks::default()).unwrap();
        }
        let taken = std::iter::from_fn(|| stream.pop().unwrap());
        taken.map(|found| found.disparity).collect::<Vec<_>>()
    });
    at_any_moment("pairs one by one", 60, |processor| {
        let stereo = Stereo::new(options).unwrap();
        let of_pair = |pair: &[Image<u8>]| {
            stereo.compute((&pair[0]).into(), (&pair[1]).into(), Masks::default(), processor).unwrap()
        };
        images.windows(2).map(|pair| of_pair(pair).disparity).collect::<Vec<_>>()
    });
}

#[test]
fn collections_are_handed_over() {
    let folder = Folder::new("handing-over");
    let photographs = folder.join("images");
    std::fs::create_dir_all(&photographs).unwrap();
    for (i, picture) in textures(9, Size::new(120, 90)).into_iter().enumerate() {
        image::write(photographs.join(format!("{i}.pgm")), &AnyImage::from(picture)).unwrap();
    }
    let options = CollectionOptions::default();
    at_any_moment("a collection", 150, |processor| {
        let work = folder.join("work");
        let (collection, _) =
            Collection::scan(&work, std::slice::from_ref(&photographs), &options, &processor.cpu).unwrap();
        collection.extract(Shard::ALL, std::slice::from_ref(processor)).unwrap();
        collection.choose_pairs(Shard::ALL, &processor.cpu).unwrap();
        collection.match_pairs(Shard::ALL, std::slice::from_ref(processor)).unwrap();
        let mut files = BTreeMap::new();
        read_all(&work, &mut files);
        assert!(files.len() > 10, "features of 9 photographs, pairs, a tile: {:?}", files.keys());
        std::fs::remove_dir_all(&work).unwrap();
        files
    });
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
