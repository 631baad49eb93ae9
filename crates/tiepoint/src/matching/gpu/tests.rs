use super::super::tests::{Numbers, features, unlike};
use super::*;
use crate::device::gpu::all;
use crate::device::{Cpu, Processor};
use crate::feature::gpu::GpuDescriptors;
use crate::feature::{Descriptors, Features};
use crate::geometry::two_view::{ImageCamera, ImagePair, TwoViewOptions, Verifier};
use crate::geometry::{Affine, Correspondence, Fundamental, Homography, Model, ModelKind, Similarity};
use crate::image::Size;
use crate::matching::{Guide, nearest};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tiepoint_gpu::KernelSource;

fn random(numbers: &mut Numbers, n: usize, descriptors: Descriptors, dimension: usize) -> Features {
    let places: Vec<_> = (0..n).map(|_| [0; 2].map(|_| (numbers.next() % 10_000) as f32 * 0.1)).collect();
    let mut found = features(&places, descriptors, dimension);
    found.keypoints.iter_mut().for_each(|k| k.sign = if numbers.next() % 5 < 2 { -1 } else { 1 });
    found
}

/// Random bytes below `below`. A small `below` makes many distances equal.
fn bytes(numbers: &mut Numbers, n: usize, dimension: usize, below: u32) -> Features {
    let values = numbers.bytes(n * dimension, below);
    random(numbers, n, Descriptors::U8(values), dimension)
}

fn floats(numbers: &mut Numbers, n: usize, dimension: usize) -> Features {
    let values = numbers.floats(n * dimension);
    random(numbers, n, Descriptors::F32(values), dimension)
}

/// Copies every third descriptor of A to B.
fn copy_some(a: &Features, b: &mut Features) {
    let rows = (0..b.len().min(a.len())).step_by(3).flat_map(|i| i * a.dimension..(i + 1) * a.dimension);
    match (&a.descriptors, &mut b.descriptors) {
        (Descriptors::U8(a), Descriptors::U8(b)) => rows.for_each(|i| b[i] = a[i]),
        (Descriptors::F32(a), Descriptors::F32(b)) => rows.for_each(|i| b[i] = a[i]),
        _ => unreachable!("of one kind"),
    }
}

fn matchers() -> impl Iterator<Item = (&'static Gpu, GpuMatcher)> {
    let of = |gpu| [false, true].map(|portable| (gpu, GpuMatcher::new(gpu).portable(portable)));
    // Devices with only one form are tested once.
    all().iter().flat_map(of).filter(|(gpu, m)| m.portable || gpu.info().api == Api::Cuda)
}

/// Compares with the CPU bit by bit; no distance may be NaN.
fn check_nearest(a: &Features, b: &Features, what: &str) {
    let expected = super::super::nearest_neighbours(a, b, &Cpu::sequential().into()).unwrap();
    for (gpu, matcher) in matchers() {
        let [on_a, on_b] = [a, b].map(|f| GpuFeatures::upload(gpu, f).unwrap());
        let found = matcher.nearest_neighbours(&on_a, &on_b).unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            let differ = found.iter().zip(expected).position(|(f, e)| f != e);
            let at = differ.map(|i| (i, found[i], expected[i]));
            assert!(found.len() == expected.len() && at.is_none(), "{gpu:?} {what}: {at:?}");
        }
        let found = matcher.nearest_on_device(&on_a, &on_b).unwrap();
        let index = expected[0].iter().map(|n| n.map_or(-1, |n| i64::from(n.index)));
        assert_eq!(found.index.to_vec().unwrap(), index.collect::<Vec<_>>(), "{gpu:?} {what}");
        let far = |value: fn(Nearest) -> f32| -> Vec<f32> {
            expected[0].iter().map(|n| n.map_or(f32::INFINITY, value)).collect()
        };
        assert_eq!(found.distance.to_vec().unwrap(), far(|n| n.distance), "{gpu:?} {what}");
        assert_eq!(found.second.to_vec().unwrap(), far(|n| n.second), "{gpu:?} {what}");
    }
}

#[test]
fn nearest_neighbours_are_those_of_the_cpu() {
    let mut numbers = Numbers(7);
    for (n, m, dimension) in [
        (1, 1, 128),
        (2, 1, 64),
        (1, 700, 64),
        (129, 127, 128),
        (256, 257, 128),
        (300, 640, 64),
        (83, 60, 37),
    ] {
        for below in [3, 256] {
            let (a, mut b) =
                (bytes(&mut numbers, n, dimension, below), bytes(&mut numbers, m, dimension, below));
            copy_some(&a, &mut b);
            check_nearest(&a, &b, &format!("{n} x {m} x {dimension} bytes below {below}"));
        }
        let (a, mut b) = (floats(&mut numbers, n, dimension), floats(&mut numbers, m, dimension));
        copy_some(&a, &mut b);
        check_nearest(&a, &b, &format!("{n} x {m} x {dimension} floats"));
    }
}

/// Bytes only: rusticl ends loops after a number of iterations that the loops of floats exceed.
#[test]
fn sets_of_many_tiles_equal_the_cpu() {
    let mut numbers = Numbers(8);
    let (a, mut b) = (bytes(&mut numbers, 40, 64, 4), bytes(&mut numbers, 5000, 64, 4));
    copy_some(&a, &mut b);
    check_nearest(&a, &b, "few and many");
}

#[test]
fn extremes_do_not_overflow() {
    for dimension in [255, 1000] {
        let all = |value: u8, n: usize| {
            features(&vec![[0.0; 2]; n], Descriptors::U8(vec![value; n * dimension]), dimension)
        };
        let (black, white) = (all(0, 3), all(255, 140));
        check_nearest(&black, &white, "black and white");
        check_nearest(&white, &white, "white");
    }
}

#[test]
fn not_a_number_is_no_neighbour() {
    let mut numbers = Numbers(9);
    let (mut a, mut b) = (floats(&mut numbers, 150, 64), floats(&mut numbers, 140, 64));
    for (at, value) in [(3, f32::NAN), (700, f32::INFINITY), (1500, 1e30), (64 * 100, -f32::NAN)] {
        for side in [&mut a, &mut b] {
            let Descriptors::F32(values) = &mut side.descriptors else { unreachable!() };
            values[at] = value;
        }
    }
    check_nearest(&a, &b, "not numbers");
    for side in [&mut a, &mut b] {
        let Descriptors::F32(values) = &mut side.descriptors else { unreachable!() };
        values.fill(f32::NAN);
    }
    check_nearest(&a, &b, "NaN alone");
}

fn check_matches(a: &Features, b: &Features, options: &MatchOptions, fewest: usize) {
    let expected = super::super::match_features(a, b, options, &Cpu::sequential().into()).unwrap();
    assert!(expected.len() >= fewest, "the test compares something: {} matches", expected.len());
    for (gpu, matcher) in matchers() {
        let [on_a, on_b] = [a, b].map(|f| GpuFeatures::upload(gpu, f).unwrap());
        let found = matcher.match_features(&on_a, &on_b, options);
        if options.guide.is_some() && !gpu.info().has_f64 {
            assert!(matches!(found, Err(Error::Unsupported { .. })), "{gpu:?}: {found:?}");
            continue;
        }
        let found = found.unwrap();
        assert!(found == expected, "{gpu:?} {options:?}: {} and not {}", found.len(), expected.len());
        let mut commands = Commands::new();
        let nearest = matcher.record(&mut commands, &on_a, &on_b, options).unwrap();
        gpu.run(&commands).unwrap();
        assert!(nearest.matches(options).unwrap() == expected, "{gpu:?} {options:?}: filtered by the host");
    }
}

#[test]
fn nothing_on_a_device_matches_nothing() {
    let (none, some) = (features(&[], Descriptors::U8(vec![]), 0), bytes(&mut Numbers(5), 3, 64, 9));
    for (gpu, matcher) in matchers() {
        let [none, some] = [&none, &some].map(|f| GpuFeatures::upload(gpu, f).unwrap());
        for [a, b] in [[&none, &some], [&some, &none], [&none, &none]] {
            let n = a.capacity();
            let found = matcher.nearest_on_device(a, b).unwrap();
            assert_eq!(found.index.to_vec().unwrap(), vec![-1; n], "{gpu:?}");
            assert_eq!(found.second.to_vec().unwrap(), vec![f32::INFINITY; n], "{gpu:?}");
            assert_eq!(matcher.match_on_device(a, b, &MatchOptions::default()).unwrap().len, 0, "{gpu:?}");
        }
    }
}

#[test]
fn filters_are_those_of_the_cpu() {
    let mut numbers = Numbers(10);
    let (a, mut b) = (bytes(&mut numbers, 600, 64, 12), bytes(&mut numbers, 500, 64, 12));
    copy_some(&a, &mut b);
    let all = MatchOptions { ratio: None, mutual: false, same_sign: false, ..MatchOptions::default() };
    for options in [
        all,
        MatchOptions { same_sign: true, ..all },
        MatchOptions { mutual: true, same_sign: true, ..all },
        MatchOptions { ratio: Some(0.9), ..all },
        MatchOptions { max_distance: Some(0.2), ..all },
        MatchOptions::default(),
    ] {
        check_matches(&a, &b, &options, 30);
    }
    let mut bright = b.clone();
    bright.keypoints.iter_mut().for_each(|k| k.sign = 1);
    check_matches(&a, &bright, &MatchOptions { same_sign: true, ..all }, 200);
    b.keypoints[9].sign = 0;
    check_matches(&a, &b, &MatchOptions { same_sign: true, ..all }, 600);
}

#[test]
fn guided_search_is_that_of_the_cpu() {
    let mut numbers = Numbers(11);
    let (mut a, mut b) = (bytes(&mut numbers, 330, 64, 20), bytes(&mut numbers, 290, 64, 20));
    for side in [&mut a, &mut b] {
        side.keypoints[7].x = f32::NAN;
        side.keypoints[8].y = f32::INFINITY;
        side.keypoints[9].x = -5000.0;
    }
    let mut unknown = b.clone();
    unknown.keypoints[0].sign = 0;
    let mut of_floats = [a.clone(), b.clone()];
    for side in &mut of_floats {
        side.descriptors = Descriptors::F32(numbers.floats(side.len() * 64));
    }
    let homography = Homography::new([[0.8, -0.2, 100.0], [0.3, 0.9, -50.0], [1e-3, -2e-4, 1.0]]).unwrap();
    let affine = Affine::new([[0.8, -0.2, 100.0], [0.3, 0.9, -50.0]]).unwrap();
    let similarity = Similarity::new([0.9, 0.1], [20.0, -30.0]).unwrap();
    let lines = Fundamental::new([[0.0, -1e-4, 0.1], [2e-4, 0.0, -0.3], [-0.1, 0.25, 10.0]]).unwrap();
    let rows = Fundamental::new([[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]).unwrap();
    for (model, radius) in [
        (Model::Homography(homography), 60.0),
        (Model::Homography(homography), 5000.0),
        (Model::Affine(affine), 60.0),
        (Model::Similarity(similarity), 80.0),
        (Model::Fundamental(lines), 6.0),
        (Model::Fundamental(rows), 9.0),
    ] {
        for same_sign in [false, true] {
            let guide = Some(Guide { b_from_a: model, radius });
            let options =
                MatchOptions { ratio: None, mutual: same_sign, same_sign, guide, max_distance: None };
            check_matches(&a, &b, &options, 20);
            check_matches(&a, &unknown, &options, 20);
            if matches!(model, Model::Homography(_)) {
                check_matches(&of_floats[0], &of_floats[1], &options, 20);
            }
        }
    }
}

#[test]
fn equally_near_features_of_a_cell_come_in_their_order() {
    let mut numbers = Numbers(13);
    let (a, b) = (bytes(&mut numbers, 700, 8, 2), bytes(&mut numbers, 650, 8, 2));
    let model = Model::Affine(Affine::new([[1.0, 0.1, 3.0], [-0.1, 1.0, 90.0]]).unwrap());
    for radius in [0.3, 7.0, 150.0, 1e9] {
        for same_sign in [false, true] {
            let guide = Some(Guide { b_from_a: model, radius });
            let options = MatchOptions { ratio: None, mutual: false, same_sign, guide, max_distance: None };
            check_matches(&a, &b, &options, if radius < 100.0 { 0 } else { 30 });
        }
    }
}

#[test]
fn counts_on_the_device_limit_the_search() {
    let mut numbers = Numbers(12);
    let (a, b) = (bytes(&mut numbers, 300, 64, 256), bytes(&mut numbers, 310, 64, 256));
    for (gpu, matcher) in matchers() {
        let [on_a, on_b] = [&a, &b].map(|f| GpuFeatures::upload(gpu, f).unwrap());
        let mut commands = Commands::new();
        let options = MatchOptions::default();
        let found = matcher.record(&mut commands, &on_a, &on_b, &options).unwrap();
        let graph = gpu.graph(commands).unwrap();
        // A counter may exceed the capacity.
        for (n, m) in [(1000, 310), (300, 0), (0, 0), (129, 200), (1, 310)] {
            on_a.count.write(0, &[n]).unwrap();
            on_b.count.write(0, &[m]).unwrap();
            graph.run().unwrap();
            let first =
                |f: &Features, n: u32| f.subset(&(0..f.len().min(n as usize)).collect::<Vec<_>>()).unwrap();
            let (a, b) = (first(&a, n), first(&b, m));
            let expected = super::super::match_features(&a, &b, &options, &Cpu::sequential().into()).unwrap();
            assert_eq!(found.matches(&options).unwrap(), expected, "{gpu:?}: {n} and {m}");
            assert_eq!(found.download().unwrap().map(|s| s.len()), [a.len(), b.len()], "{gpu:?}");
        }
    }
}

#[test]
fn a_batch_is_what_each_pair_alone_is() {
    let mut numbers = Numbers(11);
    let mut sets: Vec<Features> = [300, 1, 129, 260].map(|n| bytes(&mut numbers, n, 128, 6)).into();
    for i in 1..sets.len() {
        let first = sets[0].clone();
        copy_some(&first, &mut sets[i]);
    }
    sets.push(features(&[], Descriptors::U8(vec![]), 0));
    let strict = MatchOptions::default().with_max_distance(Some(0.02));
    let loose = MatchOptions::default().with_ratio(None).with_mutual(false).with_same_sign(false);
    for (gpu, matcher) in matchers() {
        let on_gpu: Vec<GpuFeatures> = sets.iter().map(|f| GpuFeatures::upload(gpu, f).unwrap()).collect();
        let pairs: Vec<[usize; 2]> = (0..5).flat_map(|a| (0..5).map(move |b| [a, b])).collect();
        for options in [MatchOptions::default(), strict, loose] {
            let on_gpu: Vec<GpuPacked> = on_gpu.iter().map(|f| matcher.pack(f, &options).unwrap()).collect();
            let sides: Vec<_> = pairs.iter().map(|p| p.map(|i| &on_gpu[i])).collect();
            let found = matcher.match_batch(&sides, &options).unwrap();
            for ([a, b], found) in pairs.iter().zip(found) {
                let cpu = &Cpu::sequential().into();
                let expected = super::super::match_features(&sets[*a], &sets[*b], &options, cpu).unwrap();
                assert_eq!(found, expected, "{gpu:?} {a} and {b}, {options:?}");
            }
        }
        assert!(matcher.match_batch(&[], &strict).unwrap().is_empty(), "no pairs give no matches");
        let by_sign = matcher.pack(&on_gpu[0], &MatchOptions::default()).unwrap();
        let mixed = matcher.match_batch(&[[&by_sign, &by_sign]], &loose);
        assert!(matches!(mixed, Err(Error::Mismatch(_))), "packed for other options");
        let floats = floats(&mut numbers, 3, 128);
        let floats = matcher.pack(&GpuFeatures::upload(gpu, &floats).unwrap(), &strict).unwrap();
        let bytes = matcher.pack(&on_gpu[0], &strict).unwrap();
        let mixed = matcher.match_batch(&[[&bytes, &floats]], &strict);
        assert!(matches!(mixed, Err(Error::Mismatch(_))), "of another kind");
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let options = MatchOptions::default();
    for (gpu, matcher) in matchers() {
        let [bytes, floats, longer, bare, none] = unlike().map(|f| GpuFeatures::upload(gpu, &f).unwrap());
        for other in [&floats, &longer, &bare] {
            let found = matcher.match_features(&bytes, other, &options);
            assert!(matches!(found, Err(Error::Mismatch(_))), "{gpu:?} {other:?}");
        }
        assert_eq!(matcher.match_features(&bytes, &none, &options).unwrap(), [], "nothing is no error");
        assert_eq!(matcher.match_features(&none, &floats, &options).unwrap(), [], "nothing is no error");
        assert!(matcher.match_features(&none, &bare, &options).is_err(), "as on the CPU");
        let wrong = MatchOptions { ratio: Some(2.0), ..options };
        assert!(matches!(matcher.match_features(&bytes, &bytes, &wrong), Err(Error::Option { .. })));
    }
}

/// Kernels read sixteen bytes of a descriptor at a time; descriptors of another program may begin at any address.
#[test]
#[expect(unsafe_code, reason = "foreign memory is used by its address")]
fn descriptors_of_other_programs_match_alike_wherever_they_begin() {
    let bytes: Vec<u8> = (0..300 * 128_u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    let places = features(&[[5.0; 2]; 300], Descriptors::U8(vec![]), 0).keypoints;
    for gpu in all().iter().filter(|gpu| gpu.info().api == Api::Cuda) {
        let other = Gpu::open(Api::Cuda, gpu.info().index).unwrap();
        let features = |first: usize| {
            let buffer = other.upload(&[&vec![7; first], &bytes[..]].concat()).unwrap();
            let address = buffer.share().unwrap() + first as u64;
            // SAFETY: the bytes were uploaded, and the buffer keeps them alive.
            let there = unsafe { gpu.foreign::<u8>(address, bytes.len(), buffer) }.unwrap();
            let there = (GpuDescriptors::U8(there), 128);
            GpuFeatures::with_descriptors(&places, there, Size::new(1000, 1000)).unwrap()
        };
        let matcher = GpuMatcher::new(gpu);
        let found =
            |a: &GpuFeatures| matcher.match_features(a, &features(0), &MatchOptions::default()).unwrap();
        let wanted = found(&features(0));
        assert!(wanted.len() > 100, "{} matches", wanted.len());
        for first in [1, 4, 8, 15, 16] {
            assert_eq!(found(&features(first)), wanted, "{first} bytes after a multiple of 16");
        }
    }
}

pub(crate) fn kernel_sources() -> Vec<KernelSource> {
    let mut sources = vec![];
    for dimension in [64, 128] {
        for form in [Form::Portable, Form::Tensor] {
            let kind = SearchKind { form, floats: false, dimension };
            sources.extend([nearest::gpu::source::<u8>(kind), rows::source(kind)]);
        }
        let kind = SearchKind { form: Form::Portable, floats: true, dimension };
        sources.extend([nearest::gpu::source::<f32>(kind), rows::source(kind)]);
    }
    let by_warp_groups = SearchKind { form: Form::WarpGroups, floats: false, dimension: 128 };
    sources.extend([nearest::gpu::source::<u8>(by_warp_groups), rows::source(by_warp_groups)]);
    // The longer rows of tensor cores.
    let long = SearchKind { form: Form::Tensor, floats: false, dimension: 255 };
    sources.push(nearest::gpu::source::<u8>(long));
    let bytes = SearchKind { form: Form::Portable, floats: false, dimension: 64 };
    let floats = SearchKind { floats: true, ..bytes };
    sources.extend([lines::source::<u8>(bytes), lines::source::<f32>(floats)]);
    for model in [ModelKind::Homography, ModelKind::Affine] {
        sources.extend([places::source::<u8>(bytes, model), places::source::<f32>(floats, model)]);
    }
    sources
}

/// Other kernels on a card delay some warps of a search, which reveals missing waits between warps.
#[test]
fn searches_beside_other_work_repeat_themselves() {
    let (mut numbers, options) = (Numbers(31), MatchOptions::default().with_ratio(None).with_mutual(false));
    for gpu in all() {
        let is_card = gpu.info().api == Api::Cuda;
        let (features, matches, time) = if is_card { (15_840, 3000, 8.0) } else { (150, 40, 0.0) };
        let matcher = GpuMatcher::new(gpu);
        let sides: Vec<_> = (0..8)
            .map(|_| matcher.send(&bytes(&mut numbers, features, 128, 60), &options).unwrap())
            .collect();
        let pairs: Vec<_> = (1..8).flat_map(|b| (0..b).map(move |a| [a, b])).collect();
        let pairs: Vec<_> = pairs.iter().map(|[a, b]| [&sides[*a], &sides[*b]]).collect();
        let first = matcher.match_batch(&pairs, &options).unwrap();
        let mut place = || [0; 2].map(|_| f64::from(numbers.next() % 10_000) * 0.1);
        let mut moved =
            || (0..matches).map(|_| Correspondence { a: place(), b: place(), quality: 0.0 }).collect();
        let scenes: Vec<Vec<_>> = (0..32).map(|_| moved()).collect();
        let view = ImageCamera::new(Size::new(1000, 1000));
        let scenes: Vec<_> = scenes.iter().map(|scene| ImagePair::new(scene, view, view)).collect();
        let beside = Processor::with_gpu(Cpu::sequential(), gpu.beside().unwrap());
        let verifier = Verifier::new(&TwoViewOptions::default(), &beside).unwrap();
        let (began, over) = (Instant::now(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    verifier.geometries(&scenes).unwrap();
                }
            });
            let searches = [0; 3].map(|_| {
                scope.spawn(|| {
                    loop {
                        let same = matcher.match_batch(&pairs, &options).unwrap() == first;
                        if !same || began.elapsed().as_secs_f64() >= time {
                            break same;
                        }
                    }
                })
            });
            let same = searches.map(|search| search.join().unwrap());
            over.store(true, Ordering::Relaxed);
            assert_eq!(same, [true; 3], "{gpu:?}");
        });
    }
}
