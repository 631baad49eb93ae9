use super::nearest::search;
use super::product::{Distance, Element};
use super::*;
use crate::device::{progress::tests::told, tests::every_cpu};
use crate::feature::{Descriptors, Keypoint};
use crate::geometry::{Fundamental, Homography};
use crate::image::Size;
use proptest::prelude::*;

pub(crate) struct Numbers(pub(crate) u32);

impl Numbers {
    pub(super) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
    pub(crate) fn bytes(&mut self, n: usize, below: u32) -> Vec<u8> {
        (0..n).map(|_| (self.next() % below) as u8).collect()
    }
    pub(super) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.next() % 2001) as f32 * 1e-3 - 1.0).collect()
    }
}

/// The squared distance computed as in the contract of `product`.
trait Stated: Element {
    fn distance(a: &[Self], b: &[Self]) -> Self::Sum;
}

impl Stated for u8 {
    fn distance(a: &[Self], b: &[Self]) -> i32 {
        a.iter().zip(b).map(|(&a, &b)| (i32::from(a) - i32::from(b)).pow(2)).sum()
    }
}

impl Stated for f32 {
    fn distance(a: &[Self], b: &[Self]) -> Self {
        let chain =
            |a: &[Self], b: &[Self]| a.iter().zip(b).fold(0.0, |sum: Self, (a, b)| a.mul_add(*b, sum));
        chain(a, b).mul_add(-2.0, chain(a, a) + chain(b, b))
    }
}

fn pair_distance<E: Stated>(a: &[E], b: &[E], dimension: usize, i: usize, j: usize) -> E::Sum {
    E::distance(&a[i * dimension..(i + 1) * dimension], &b[j * dimension..(j + 1) * dimension])
}

/// The two nearest by the definition: all distances, sorted by (distance, index).
fn reference<E: Stated>(a: &[E], b: &[E], dimension: usize) -> Vec<Best<E::Sum>> {
    a.chunks(dimension)
        .map(|a| {
            let mut all: Vec<_> = (b.chunks(dimension).enumerate())
                .map(|(j, b)| (E::distance(a, b), j as u32))
                .filter(|(d, _)| *d < E::Sum::FAR)
                .collect();
            all.sort_by(|x, y| x.partial_cmp(y).unwrap());
            let none = (E::Sum::FAR, nearest::NONE);
            let (first, index) = all.first().copied().unwrap_or(none);
            Best { first, index, second: all.get(1).copied().unwrap_or(none).0 }
        })
        .collect()
}

fn twins<E: Stated>(a: &[E], b: &[E], dimension: usize) {
    let expected = [reference(a, b, dimension), reference(b, a, dimension)];
    for (cpu, name) in every_cpu() {
        assert_eq!(search(a, b, dimension, &cpu).unwrap(), expected, "{name}");
    }
}

fn noise_twins(numbers: &mut Numbers, n: usize, m: usize, dimension: usize) {
    twins(&numbers.bytes(n * dimension, 256), &numbers.bytes(m * dimension, 256), dimension);
    twins(&numbers.floats(n * dimension), &numbers.floats(m * dimension), dimension);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn search_equals_the_reference(n in 1_usize..150, m in 1_usize..150, dimension in 1_usize..70, seed: u32) {
        let mut numbers = Numbers(seed);
        // Few different values make many equal distances.
        let (a, b) = (numbers.bytes(n * dimension, 3), numbers.bytes(m * dimension, 3));
        twins(&a, &b, dimension);
        noise_twins(&mut numbers, n, m, dimension);
    }
}

#[test]
fn whole_blocks_and_usual_dimensions() {
    let mut numbers = Numbers(3);
    for (n, m, dimension) in [(1, 1, 128), (6, 64, 64), (7, 65, 128), (400, 300, 128), (193, 1, 64)] {
        noise_twins(&mut numbers, n, m, dimension);
    }
}

#[test]
fn extreme_bytes_do_not_overflow() {
    for dimension in [128, MAX_DIMENSION] {
        let (black, white) = (vec![0_u8; dimension * 2], vec![255_u8; dimension * 70]);
        twins(&black, &white, dimension);
        twins(&white, &white, dimension);
    }
}

#[test]
fn not_a_number_is_no_neighbour() {
    let mut b = Numbers(1).floats(40 * 8);
    b[3 * 8] = f32::NAN;
    b[9 * 8 + 2] = f32::INFINITY;
    let a = b.clone();
    twins(&a, &b, 8);
    let found = search(&a, &b, 8, &Cpu::sequential()).unwrap();
    assert_eq!([found[0][3].index, found[0][9].index], [nearest::NONE; 2], "no neighbour");
    assert_eq!(
        (found[0][5].index, found[0][5].first),
        (5, 0.0),
        "a descriptor is its own neighbour, exactly"
    );
}

pub(crate) fn features(places: &[[f32; 2]], descriptors: Descriptors, dimension: usize) -> Features {
    let keypoint = |&[x, y]: &[f32; 2]| Keypoint { x, y, scale: 2.0, sign: 1, ..Keypoint::default() };
    let keypoints = places.iter().map(keypoint).collect();
    Features { keypoints, descriptors, dimension, image: Size::new(1000, 1000) }
}

fn random(numbers: &mut Numbers, n: usize, dimension: usize) -> Features {
    let places: Vec<_> = (0..n).map(|_| [0; 2].map(|_| (numbers.next() % 10_000) as f32 * 0.1)).collect();
    features(&places, Descriptors::U8(numbers.bytes(n * dimension, 256)), dimension)
}

#[test]
fn filters_work_as_described() {
    // A₀ = B₁; B₀ and B₂ are equally near to A₁; the nearest of A₂ is B₁, whose nearest is A₀.
    let a = features(&[[0.0; 2]; 3], Descriptors::U8(vec![100, 0, 0, 100, 90, 0]), 2);
    let b = features(&[[0.0; 2]; 3], Descriptors::U8(vec![0, 90, 100, 0, 0, 110]), 2);
    let cpu = Cpu::sequential().into();
    let pairs = |o: MatchOptions| -> Vec<(u32, u32)> {
        match_features(&a, &b, &o, &cpu).unwrap().iter().map(|m| (m.a, m.b)).collect()
    };
    let all = MatchOptions { ratio: None, mutual: false, ..Default::default() };
    assert_eq!(pairs(all), [(0, 1), (1, 0), (2, 1)], "nearest neighbours; the smaller index of equals");
    assert_eq!(pairs(MatchOptions { mutual: true, ..all }), [(0, 1), (1, 0)], "mutual");
    assert_eq!(pairs(MatchOptions { ratio: Some(0.8), ..all }), [(0, 1), (2, 1)], "ratio");
    assert_eq!(pairs(MatchOptions { max_distance: Some(0.0), ..all }), [(0, 1)], "distance");
    let found = match_features(&a, &b, &all, &cpu).unwrap();
    assert_eq!((found[1].distance, found[1].ratio), (10.0 / 512.0, 1.0), "unit descriptors");
}

#[test]
fn features_match_only_those_of_their_sign() {
    let mut numbers = Numbers(5);
    let (mut a, mut b) = (random(&mut numbers, 200, 16), random(&mut numbers, 150, 16));
    a.keypoints
        .iter_mut()
        .chain(&mut b.keypoints)
        .for_each(|k| k.sign = if numbers.next().is_multiple_of(2) { 1 } else { -1 });
    let options = MatchOptions { ratio: None, mutual: false, ..Default::default() };
    let found = match_features(&a, &b, &options, &Cpu::sequential().into()).unwrap();
    assert_eq!(found.len(), a.len(), "each has a neighbour");
    assert!(found.iter().enumerate().all(|(i, m)| m.a as usize == i), "in the order of A");
    let (Descriptors::U8(va), Descriptors::U8(vb)) = (&a.descriptors, &b.descriptors) else {
        panic!("bytes")
    };
    for m in found {
        let alike = |j: &usize| b.keypoints[*j].sign == a.keypoints[m.a as usize].sign;
        let nearest = (0..b.len()).filter(alike).min_by_key(|&j| pair_distance(va, vb, 16, m.a as usize, j));
        assert_eq!(Some(m.b as usize), nearest, "nearest of its sign");
    }
    let any_sign = MatchOptions { same_sign: false, ..options };
    for side in [&mut a, &mut b] {
        side.keypoints[3].sign = 0;
    }
    let known =
        Features { keypoints: b.keypoints.iter().map(|k| Keypoint { sign: 1, ..*k }).collect(), ..b.clone() };
    for [a, b] in [[&a, &b], [&a, &known], [&known, &a]] {
        let [found, wanted] = [options, any_sign]
            .map(|options| match_features(a, b, &options, &Cpu::sequential().into()).unwrap());
        assert_eq!(found, wanted, "one sign is not known");
    }
}

fn guided_reference(
    a: &Features,
    b: &Features,
    allowed: impl Fn([f64; 2], [f64; 2]) -> bool,
) -> Vec<Option<u32>> {
    let (Descriptors::U8(va), Descriptors::U8(vb)) = (&a.descriptors, &b.descriptors) else {
        panic!("bytes")
    };
    let at = |k: &Keypoint| [f64::from(k.x), f64::from(k.y)];
    (0..a.len())
        .map(|i| {
            (0..b.len())
                .filter(|&j| allowed(at(&a.keypoints[i]), at(&b.keypoints[j])))
                .min_by_key(|&j| pair_distance(va, vb, a.dimension, i, j))
                .map(|j| j as u32)
        })
        .collect()
}

#[test]
fn guided_distances_are_those_of_the_full_search() {
    let mut numbers = Numbers(2);
    let dimension = 37;
    let (a, b) = (numbers.floats(dimension), numbers.floats(dimension * 50));
    let lengths: Vec<f32> = b.chunks(dimension).map(f32::length).collect();
    let (bytes_a, bytes_b) = (numbers.bytes(dimension, 256), numbers.bytes(dimension * 50, 256));
    for count in [0, 1, 15, 16, 17, 50] {
        let indices: Vec<u32> = (0..count).rev().collect();
        let stated: Vec<f32> =
            indices.iter().map(|&j| pair_distance(&a, &b, dimension, 0, j as usize)).collect();
        let exact: Vec<i32> =
            indices.iter().map(|&j| pair_distance(&bytes_a, &bytes_b, dimension, 0, j as usize)).collect();
        for (cpu, name) in every_cpu() {
            let (mut found, mut bytes) = (vec![1.0], vec![1]);
            f32::distances(cpu.level(), &a, &b, &lengths, &indices, &mut found);
            u8::distances(cpu.level(), &bytes_a, &bytes_b, &[], &indices, &mut bytes);
            assert_eq!((&found, &bytes), (&stated, &exact), "{count} candidates, {name}");
        }
    }
}

#[test]
fn guided_search_equals_the_definition() {
    let mut numbers = Numbers(11);
    let (mut a, mut b) = (random(&mut numbers, 300, 8), random(&mut numbers, 400, 8));
    a.keypoints[7].x = f32::NAN;
    b.keypoints[8].y = f32::INFINITY;
    b.keypoints[9].x = -5000.0;
    let check = |model: Model, radius: f64, allowed: &dyn Fn([f64; 2], [f64; 2]) -> bool| {
        let expected = guided_reference(&a, &b, allowed);
        assert!(expected.iter().flatten().count() > 20, "the test compares something");
        for (cpu, name) in every_cpu() {
            let guide = Some(Guide { b_from_a: model, radius });
            let [found, _] = neighbours_on_cpu(&a, &b, guide, &cpu).unwrap();
            let found: Vec<_> = found.iter().map(|n| n.map(|n| n.index)).collect();
            assert_eq!(found, expected, "{model:?} {radius}, {name}");
        }
    };
    let h = Homography::new([[0.8, -0.2, 100.0], [0.3, 0.9, -50.0], [1e-4, -2e-4, 1.0]]).unwrap();
    for radius in [15.0, 40.0, 5000.0] {
        let near = |p: [f64; 2], q: [f64; 2]| {
            h.apply(p)
                .is_some_and(|[x, y]| (q[0] - x) * (q[0] - x) + (q[1] - y) * (q[1] - y) <= radius * radius)
        };
        check(Model::Homography(h), radius, &near);
    }
    for f in [
        [[0.0, -1e-4, 0.1], [2e-4, 0.0, -0.3], [-0.1, 0.25, 10.0]],
        [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]],
        [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]],
    ] {
        let f = Fundamental::new(f).unwrap();
        let near = |p: [f64; 2], q: [f64; 2]| {
            let [u, v, w] = f.line_in_b(p);
            let off = u * q[0] + v * q[1] + w;
            off * off <= 36.0 * (u * u + v * v)
        };
        check(Model::Fundamental(f), 6.0, &near);
    }
}

/// Features of bytes, and others that cannot be matched with them: of floats, longer, without descriptors, and none.
pub(super) fn unlike() -> [Features; 5] {
    [
        features(&[[0.0; 2]; 2], Descriptors::U8(vec![1; 8]), 4),
        features(&[[0.0; 2]; 2], Descriptors::F32(vec![1.0; 8]), 4),
        features(&[[0.0; 2]; 1], Descriptors::U8(vec![1; 8]), 8),
        features(&[[0.0; 2]; 2], Descriptors::U8(vec![]), 0),
        features(&[], Descriptors::F32(vec![]), 0),
    ]
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (cpu, [bytes, floats, longer, bare, none]) = (Cpu::sequential().into(), unlike());
    let options = MatchOptions::default();
    for other in [&floats, &longer, &bare] {
        assert!(
            matches!(match_features(&bytes, other, &options, &cpu), Err(Error::Mismatch(_))),
            "{other:?}"
        );
    }
    assert_eq!(match_features(&bytes, &none, &options, &cpu).unwrap(), [], "nothing to match is no error");
    assert_eq!(match_features(&none, &floats, &options, &cpu).unwrap(), [], "nothing to match is no error");
    // Raw patches: distances in 32 bits do not resolve small differences of long descriptors.
    let patches = |offset: f32, scale: f32| {
        let values = (0..40 * 16).map(|i| scale * (offset + (i * 7919 % 101) as f32)).collect();
        features(&[[0.0; 2]; 40], Descriptors::F32(values), 16)
    };
    for (offset, scale, expected) in [
        (100.0, 1.0, None),
        (30_000.0, 1.0, Some("subtract their mean")),
        (0.0, 1e18, Some("scale them")),
        (1.0, 1e-20, Some("scale them")),
    ] {
        let found = match_features(&patches(offset, scale), &patches(offset, scale), &options, &cpu);
        let told = found.map_err(|error| error.to_string());
        assert_eq!(told.as_ref().err().is_some(), expected.is_some(), "{offset} {scale}: {told:?}");
        assert!(
            expected.is_none_or(|words| told.is_err_and(|told| told.contains(words))),
            "{offset} {scale}"
        );
    }
    for wrong in [
        MatchOptions { ratio: Some(0.0), ..options },
        MatchOptions { ratio: Some(f32::NAN), ..options },
        MatchOptions { max_distance: Some(-0.5), ..options },
        MatchOptions { max_distance: Some(f32::NAN), ..options },
        MatchOptions {
            guide: Some(Guide { b_from_a: Model::Homography(Homography::default()), radius: 0.0 }),
            ..options
        },
    ] {
        assert!(matches!(wrong.check(), Err(Error::Option { .. })), "{wrong:?}");
    }
}

#[test]
fn every_device_matches_the_same() {
    let mut numbers = Numbers(21);
    let (a, b) = (random(&mut numbers, 200, 16), random(&mut numbers, 150, 16));
    let none = features(&[], Descriptors::U8(vec![]), 0);
    let (cpu, options) = (Cpu::with_threads(2).unwrap(), MatchOptions::default().with_ratio(None));
    let alone = Processor::from(cpu.clone());
    let expected = match_features(&a, &b, &options, &alone).unwrap();
    let nearest = nearest_neighbours(&a, &b, &alone).unwrap();
    assert!(expected.len() > 20 && nearest[1].len() == 150, "the test compares something");
    for gpu in crate::device::gpu::all() {
        let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
        assert_eq!(match_features(&a, &b, &options, &processor).unwrap(), expected, "{gpu:?}");
        assert_eq!(nearest_neighbours(&a, &b, &processor).unwrap(), nearest, "{gpu:?}");
        assert_eq!(nearest_neighbours(&a, &none, &processor).unwrap(), [vec![None; 200], vec![]], "{gpu:?}");
        assert!(processor.take_notes().is_empty(), "nothing that a GPU cannot do");
    }
}

#[test]
fn progress_is_told_of_descriptors() {
    let mut numbers = Numbers(9);
    let (a, b) = (numbers.bytes(1000 * 16, 256), numbers.bytes(50 * 16, 256));
    for threads in [1, 5] {
        let cpu = Cpu::with_threads(threads).unwrap();
        let told = told(&cpu, 5, |cpu| search(&a, &b, 16, cpu).unwrap());
        assert!(told.iter().all(|p| p.task == "match" && p.total == 1000), "descriptors of A");
    }
}
