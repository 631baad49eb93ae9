//! Features of simulated views: for pictures whose viewpoints are too far apart for SIFT or SURF alone.
//!
//! ASIFT (Morel, Yu: ASIFT, a new framework for fully affine invariant image comparison. SIAM J. Imaging Sciences 2,
//! 2009). A camera that looks obliquely at a plane sees it turned by φ and compressed along x by the tilt t = 1/cos θ.
//! Each view of a picture is that picture turned by φ, smoothed along x by σ = 0.8 √(t² − 1) against aliasing and
//! compressed by t (their section 3); the tilts are √2ᵏ and the turns 72°/t apart, below 180° (their section 4). A
//! detector searches the views, and its features are mapped back to the picture: position and direction by the inverse
//! map, the scale by the root of its determinant. Keypoints whose window reaches beyond the picture are left out.
//!
//! The views of one tilt have one size, so that a GPU searches them side by side. Arithmetic on places is f64, with
//! sines and arctangents from `numeric`: the same bits everywhere.

use super::{Features, Finder, Keypoint};
use crate::device::Cpu;
use crate::filter::convolve::{Kernel, convolve};
use crate::geometry::warp::{WarpOptions, warp_into};
use crate::geometry::{Affine, Homography};
use crate::image::range::mapped;
use crate::image::{AnyView, Border, Image, ImageView, Pixel, Size, check_mask};
use crate::numeric::{atan2, exp_f64, sin_cos, within_a_turn};
use crate::{Error, Result, by_pixel};

/// The most views of a picture: tilts up to 4√2.
pub const MOST_VIEWS: usize = 43;

/// Degrees between turns at a tilt of 1.
const TURN: f64 = 72.0;

/// Radius of the window that must lie within the picture, in units of the scale: 6 √2, as in the authors' program.
const WINDOW: f64 = 8.5;

/// The most pixels of a turned picture.
const LARGEST: usize = 1 << 27;

/// The most pixels of views that are searched together, unless one view alone has more.
const TOGETHER: usize = 1 << 24;

/// Grey beyond the picture.
const BEYOND: f32 = 0.5;

/// A simulated view of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedView {
    /// Compression along x after the turn, 1 or more.
    pub tilt: f64,
    /// Turn from +x towards +y before the compression, radians.
    pub turn: f64,
}

impl SimulatedView {
    /// The picture itself.
    pub const PLAIN: Self = Self { tilt: 1.0, turn: 0.0 };

    /// The first `n` views, at most [`MOST_VIEWS`], tilt by tilt: complete tilts end after 1, 5, 10, 18, 28 and 43.
    pub fn first(n: usize) -> Vec<Self> {
        let turns = |tilt: f64| {
            let step = TURN / tilt;
            (0..).map(move |i| step * f64::from(i)).take_while(|degrees| *degrees < 180.0 - 1e-9)
        };
        let tilted = (1..6).map(|k| f64::from(1 << (k / 2)) * if k % 2 == 1 { 2_f64.sqrt() } else { 1.0 });
        let tilted = tilted.flat_map(|tilt| turns(tilt).map(move |t| Self { tilt, turn: t.to_radians() }));
        std::iter::once(Self::PLAIN).chain(tilted).take(n.min(MOST_VIEWS)).collect()
    }

    /// The side of the square that holds the picture at any turn.
    fn side(picture: Size) -> Result<usize> {
        let (w, h) = (picture.width as f64, picture.height as f64);
        let side = (w * w + h * h).sqrt().ceil() + 2.0;
        if side * side <= LARGEST as f64 {
            return Ok(side as usize);
        }
        Err(Error::Image(format!(
            "{picture} is too large for simulated views, whose turned pictures have {LARGEST} pixels at most; reduce it"
        )))
    }

    fn size(self, picture: Size) -> Result<Size> {
        let side = Self::side(picture)?;
        Ok(Size::new((side as f64 / self.tilt).ceil() as usize, side))
    }

    /// The map from the view's pixels to the picture's, and its first step, the map to those of the turned picture.
    fn maps(self, picture: Size) -> Result<[Affine; 2]> {
        let side = Self::side(picture)? as f64;
        let width = self.size(picture)?.width as f64;
        let middle = |n: f64| 0.5 * (n - 1.0);
        let (cx, cy) = (middle(picture.width as f64), middle(picture.height as f64));
        let (s, c) = sin_cos(self.turn as f32);
        let (s, c) = (f64::from(s), f64::from(c));
        let (m, v) = (middle(side), middle(width));
        let picture_from_turned = Affine::new([[c, s, cx - c * m - s * m], [-s, c, cy + s * m - c * m]])?;
        let turned_from_view = Affine::new([[self.tilt, 0.0, m - self.tilt * v], [0.0, 1.0, 0.0]])?;
        Ok([picture_from_turned.compose(&turned_from_view), turned_from_view])
    }

    /// Draws the view of a grey picture from 0 to 1.
    fn draw(self, picture: &Image<f32>, cpu: &Cpu) -> Result<Image<f32>> {
        let [picture_from_view, turned_from_view] = self.maps(picture.size())?;
        let missing = Error::Degenerate { model: "affine", reason: "the view has no width" };
        let view_from_turned = turned_from_view.inverse().ok_or(missing)?;
        let picture_from_turned = Homography::from(picture_from_view.compose(&view_from_turned));
        let side = Self::side(picture.size())?;
        let turned = warped(picture, &picture_from_turned, Size::new(side, side), cpu)?;
        let kernel = Kernel::separable(vec![1.0], taps(0.8 * (self.tilt * self.tilt - 1.0).max(0.0).sqrt()))?;
        let smooth: Image<f32> = convolve(turned.view(), &kernel, Border::Clamp, cpu)?;
        let size = self.size(picture.size())?;
        warped(&smooth, &Homography::from(turned_from_view), size, cpu)
    }

    /// A keypoint of the view in its picture; `None` if its window reaches beyond the picture.
    fn put_back(self, k: &Keypoint, picture: Size, picture_from_view: &Affine) -> Option<Keypoint> {
        let [x, y] = picture_from_view.apply([f64::from(k.x), f64::from(k.y)]);
        let [rx, ry] = [0, 1].map(|i| picture_from_view.matrix()[i]);
        let window = WINDOW * f64::from(k.scale);
        // The distance from an edge of the picture is measured in the view.
        let within = |at: f64, n: usize, row: [f64; 3]| {
            let reach = window * (row[0] * row[0] + row[1] * row[1]).sqrt();
            at + 0.5 >= reach && n as f64 - 0.5 - at >= reach
        };
        if !within(x, picture.width, rx) || !within(y, picture.height, ry) {
            return None;
        }
        let (s, c) = sin_cos(k.angle);
        let (s, c) = (f64::from(s), f64::from(c));
        let angle = atan2((ry[0] * c + ry[1] * s) as f32, (rx[0] * c + rx[1] * s) as f32);
        let area = (rx[0] * ry[1] - rx[1] * ry[0]).abs();
        let scale = (f64::from(k.scale) * area.sqrt()) as f32;
        Some(Keypoint { x: x as f32, y: y as f32, scale, angle: within_a_turn(angle), ..*k })
    }
}

fn warped(picture: &Image<f32>, input_from_output: &Homography, size: Size, cpu: &Cpu) -> Result<Image<f32>> {
    let mut out = Image::new(size);
    let options = WarpOptions::default().with_fill(BEYOND);
    warp_into(picture.view(), input_from_output, &options, cpu, out.view_mut())?;
    Ok(out)
}

/// Gaussian weights of sum 1.
fn taps(sigma: f64) -> Vec<f32> {
    let radius = (4.0 * sigma).ceil() as i32;
    let weight = |i: i32| exp_f64(-0.5 * (f64::from(i) / sigma) * (f64::from(i) / sigma));
    let weights: Vec<f64> = (-radius..=radius).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| (w / sum) as f32).collect()
}

impl Finder {
    /// The features of the first `n` [views](SimulatedView::first) of a grey picture, each at its place in the picture;
    /// none where `mask` is 0. A view keeps at most the detector's limit of features divided by its tilt.
    ///
    /// # Errors
    /// As [`detect`](Self::detect); [`Error::Option`] for no view or more than [`MOST_VIEWS`]; [`Error::Image`] for a
    /// picture that is too large to be turned.
    pub fn detect_simulated<'a>(
        &self,
        picture: impl Into<AnyView<'a>>,
        mask: Option<ImageView<'_, u8>>,
        n: usize,
    ) -> Result<Vec<Features>> {
        if !(1..=MOST_VIEWS).contains(&n) {
            return Err(Error::option("views", n, "1 to 43"));
        }
        let picture = picture.into();
        self.detect_simulated_besides(self.detect(picture, mask)?, picture, mask, n)
    }

    /// [`detect_simulated`](Self::detect_simulated) with the features of the picture itself, which are those of the
    /// first view.
    pub(crate) fn detect_simulated_besides(
        &self,
        plain: Features,
        picture: AnyView<'_>,
        mask: Option<ImageView<'_, u8>>,
        n: usize,
    ) -> Result<Vec<Features>> {
        let mut found = vec![plain];
        let size = picture.size();
        if n == 1 || size.is_empty() {
            return Ok(found);
        }
        check_mask(mask, size)?;
        let cpu = self.cpu();
        let unit = by_pixel!(picture, view => mapped(view, Pixel::unit, cpu));
        let in_picture = |view: &SimulatedView, features: &Features| {
            let [picture_from_view, _] = view.maps(size)?;
            let most = self.limit().map_or(usize::MAX, |limit| (limit as f64 / view.tilt).ceil() as usize);
            let placed = features.keypoints.iter().enumerate();
            let placed = placed.filter_map(|(i, k)| Some((i, view.put_back(k, size, &picture_from_view)?)));
            let (indices, keypoints): (Vec<usize>, Vec<Keypoint>) =
                placed.filter(|(_, k)| k.is_shown(mask)).take(most).unzip();
            Ok::<_, Error>(Features { keypoints, image: size, ..features.subset(&indices)? })
        };
        let views = SimulatedView::first(n);
        for of_one_tilt in views[1..].chunk_by(|a, b| a.tilt == b.tilt) {
            let at_once = (TOGETHER / of_one_tilt[0].size(size)?.area().max(1)).max(1);
            for views in of_one_tilt.chunks(at_once) {
                let drawn = views.iter().map(|view| view.draw(&unit, cpu)).collect::<Result<Vec<_>>>()?;
                for (view, features) in views.iter().zip(self.detect_batch(&drawn)) {
                    found.push(in_picture(view, &features?)?);
                }
            }
        }
        Ok(found)
    }
}

pub(crate) fn concatenated(sets: &[Features]) -> Result<Features> {
    let mut sets = sets.iter();
    let none = || Error::Mismatch("no view has features".into());
    let mut all = sets.next().ok_or_else(none)?.clone();
    sets.try_for_each(|more| all.append(more))?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::Detector;
    use crate::feature::select::Selection;
    use crate::feature::sift::SiftOptions;
    use crate::synth::Texture;
    use std::f64::consts::PI;

    #[test]
    fn tilts_and_turns_are_those_of_the_paper() {
        let all = SimulatedView::first(usize::MAX);
        let counts: Vec<usize> = all.chunk_by(|a, b| a.tilt == b.tilt).map(<[SimulatedView]>::len).collect();
        assert_eq!(counts, [1, 4, 5, 8, 10, 15], "views of each tilt");
        assert_eq!(all.len(), MOST_VIEWS);
        for (k, views) in all.chunk_by(|a, b| a.tilt == b.tilt).enumerate() {
            assert!((views[0].tilt - 2_f64.powf(k as f64 / 2.0)).abs() < 1e-12, "{views:?}");
            let step = TURN.to_radians() / views[0].tilt;
            for (i, view) in views.iter().enumerate() {
                assert!((view.turn - i as f64 * step).abs() < 1e-12 && view.turn < PI, "{view:?}");
            }
        }
        assert_eq!(SimulatedView::first(1), [SimulatedView::PLAIN]);
    }

    #[test]
    fn a_view_is_the_tilted_picture_and_its_keypoints_map_back() {
        let cpu = Cpu::with_threads(2).unwrap();
        let size = Size::new(160, 120);
        let picture: Image<f32> = Texture::new(4).image(size, &cpu);
        for view in SimulatedView::first(10).into_iter().skip(1) {
            let drawn = view.draw(&picture, &cpu).unwrap();
            let [map, _] = view.maps(size).unwrap();
            // A bright dot appears where the map puts it.
            let [x, y] = [71.0, 58.0];
            let mut dot = Image::<f32>::filled(size, 1, 0.5);
            dot.row_mut(58)[71] = 9.0;
            let shown = view.draw(&dot, &cpu).unwrap();
            let weight = |x: usize, y: usize| f64::from(shown.row(y)[x] - 0.5);
            let all = || (0..shown.size().height).flat_map(|y| (0..shown.size().width).map(move |x| (x, y)));
            let sum: f64 = all().map(|(x, y)| weight(x, y)).sum();
            let mean = |f: &dyn Fn(usize, usize) -> usize| {
                all().map(|(x, y)| f(x, y) as f64 * weight(x, y)).sum::<f64>() / sum
            };
            let [u, v] = map.apply([mean(&|x, _| x), mean(&|_, y| y)]);
            assert!((u - x).abs() < 0.1 && (v - y).abs() < 0.1, "{view:?}: ({u}, {v})");
            assert_eq!(drawn.size(), view.size(size).unwrap());
            // Place, direction and size of a keypoint of the view, mapped back.
            let centre = map.inverse().unwrap().apply([80.0, 60.0]);
            let [x, y] = centre.map(|v| v as f32);
            let k = Keypoint { x, y, scale: 2.0, angle: 0.7, ..Keypoint::default() };
            let back = view.put_back(&k, size, &map).unwrap();
            let tip = map.apply([centre[0] + 0.7_f64.cos(), centre[1] + 0.7_f64.sin()]);
            let angle = (tip[1] - 60.0).atan2(tip[0] - 80.0).rem_euclid(2.0 * PI);
            assert!((f64::from(back.x) - 80.0).abs() < 1e-3 && (f64::from(back.y) - 60.0).abs() < 1e-3);
            assert!((f64::from(back.angle) - angle).abs() < 1e-4, "{view:?}: {} {angle}", back.angle);
            assert!((f64::from(back.scale) - 2.0 * view.tilt.sqrt()).abs() < 1e-4, "{view:?}");
            let [x, y] = map.inverse().unwrap().apply([3.0, 60.0]).map(|v| v as f32);
            let edge = Keypoint { x, y, ..k };
            assert_eq!(view.put_back(&edge, size, &map), None, "its window leaves the picture");
        }
    }

    #[test]
    fn views_have_the_same_features_everywhere() {
        let cpu = Cpu::sequential();
        let size = Size::new(240, 180);
        let picture: Image<u8> = Texture::new(9).image(size, &cpu);
        let mask = Image::from_fn(size, |x, _| u8::from(x >= 50));
        let options = SiftOptions::default().with_selection(Selection::strongest(60));
        let detector = Detector::Sift(options);
        let of = |processor: &crate::device::Processor| {
            let finder = detector.open(processor).unwrap();
            finder.detect_simulated(&picture, Some(mask.view()), 6).unwrap()
        };
        let expected = of(&cpu.clone().into());
        assert_eq!(expected.len(), 6);
        for (features, view) in expected.iter().zip(SimulatedView::first(6)) {
            let most = (60.0 / view.tilt).ceil() as usize;
            assert!((5..=most).contains(&features.len()), "{view:?}: {} features", features.len());
            assert!(features.keypoints.iter().all(|k| k.x.round_ties_even() >= 50.0), "{view:?}: masked");
            assert_eq!((features.image, features.check().is_ok()), (size, true));
        }
        for threads in [2, 5] {
            assert!(of(&Cpu::with_threads(threads).unwrap().into()) == expected, "{threads} threads");
        }
        for gpu in crate::device::gpu::all() {
            let processor = crate::device::Processor::with_gpu(cpu.clone(), gpu.clone());
            assert!(of(&processor) == expected, "{gpu:?}");
        }
        let finder = detector.open(&cpu.clone().into()).unwrap();
        for n in [0, 44] {
            let refused = finder.detect_simulated(&picture, None, n);
            assert!(matches!(refused, Err(Error::Option { name: "views", .. })), "{n}");
        }
        assert!(SimulatedView::side(Size::new(1 << 20, 1 << 20)).is_err(), "too large");
    }
}
