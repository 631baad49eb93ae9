//! Descriptors of given keypoints, such as those of other programs.
//!
//! A keypoint is described in the octave and layer that it names if a search there could find its scale, so that
//! keypoints of [`Sift::detect`] get the same descriptors again; otherwise in the finest layer that is at most half a
//! layer finer than its scale. Its place, scale and angle are not changed.
//!
//! The preset of OpenCV describes it as `cv2.SIFT.compute` does: in the octave and layer that it names, however large it
//! is, and without doubling the image if none names the doubled one. There, keypoints of other detectors and of regular
//! grids name octave 0 and layer 0: the image with the blur of the first level.

use super::describe::{as_bytes, describe, reach_of};
use super::refine::Point;
use super::scale_space::{Pyramid, pixel};
use super::{Sift, SiftOptions, SiftPreset};
use crate::device::Cpu;
use crate::feature::{DescriptorKind, Descriptors, Features, Keypoint};
use crate::image::{ImageView, Pixel, Size};
use crate::{Result, numeric};
use std::f32::consts::LN_2;

impl Sift {
    /// Describes keypoints of a grey image. Returns their features in the given order, each with the octave and layer
    /// in which it was described, and the indices of their keypoints. Keypoints outside the image, too large for its
    /// last octave, or without a positive scale and a finite angle are left out. There is no selection.
    ///
    /// # Errors
    /// [`Error::Image`](crate::Error::Image) when the image is empty or has several channels,
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn describe<T: Pixel>(
        &self,
        image: ImageView<'_, T>,
        keypoints: &[Keypoint],
        cpu: &Cpu,
    ) -> Result<(Features, Vec<usize>)> {
        image.require_grey()?;
        let mut options = self.options;
        let as_named = options.preset == SiftPreset::OpenCv;
        if as_named && keypoints.iter().all(|k| k.octave >= 0) {
            options.first_octave = 0;
        }
        let options = &options;
        let pyramid = &mut Pyramid::new(image.size(), options);
        let octaves: Vec<(i8, Size)> = pyramid.octaves().collect();
        let placed = |(i, k): (usize, &Keypoint)| placed(k, &octaves, options).map(|point| (i, point));
        let mut waiting: Vec<(usize, Point)> = keypoints.iter().enumerate().filter_map(placed).collect();
        for (_, point) in waiting.iter().filter(|_| as_named) {
            pyramid.keep_for(point.keypoint.octave, reach_of(point.scale, options));
        }
        let mut found = Vec::with_capacity(waiting.len());
        let cpu = &cpu.begin_task("SIFT", pyramid.rows());
        cpu.run(|| {
            pyramid.run(image, cpu, |octave, ready| {
                let is_ready = |(_, p): &mut (usize, Point)| {
                    p.keypoint.octave == octave.number && p.y < ready.describe as f32
                };
                let points: Vec<(usize, Point)> = waiting.extract_if(.., is_ready).collect();
                found.extend(cpu.try_map(points.len(), |i| {
                    let (index, point) = &points[i];
                    let angle = numeric::within_a_turn(point.keypoint.angle);
                    let values = (options.descriptors != DescriptorKind::None)
                        .then(|| describe(octave, point, angle, options, cpu));
                    Ok((*index, point.keypoint, values))
                })?);
                Ok(())
            })
        })?;
        found.sort_unstable_by_key(|(index, ..)| *index);
        let indices = found.iter().map(|(index, ..)| *index).collect();
        let keypoints = found.iter().map(|(_, keypoint, _)| *keypoint).collect();
        let values = found.into_iter().filter_map(|(.., values)| values);
        let descriptors = match options.descriptors {
            DescriptorKind::F32 => Descriptors::F32(values.flatten().collect()),
            DescriptorKind::U8 | DescriptorKind::None => Descriptors::U8(values.flat_map(as_bytes).collect()),
        };
        let dimension = options.dimension();
        Ok((Features { keypoints, descriptors, dimension, image: image.size() }, indices))
    }
}

/// The point at which a keypoint is described; `None` if it cannot be.
fn placed(keypoint: &Keypoint, octaves: &[(i8, Size)], options: &SiftOptions) -> Option<Point> {
    let times = |layers: f32| numeric::exp(layers / f32::from(options.levels) * LN_2);
    let level = |octave: i8, layer: u8| pixel(octave) * options.sigma * times(f32::from(layer));
    let beyond = if options.preset == SiftPreset::VlFeat { 1.5 } else { options.settled_below() };
    let scale = keypoint.scale;
    let found = |&octave: &i8, &layer: &u8| {
        let level = level(octave, layer);
        level <= scale * times(beyond) && scale <= level * times(beyond)
    };
    let layers = 1..=options.levels;
    let named = octaves.iter().find(|(octave, _)| *octave == keypoint.octave);
    let named = named.filter(|_| match options.preset {
        SiftPreset::OpenCv => keypoint.layer <= options.levels + 2,
        SiftPreset::Default | SiftPreset::VlFeat => {
            layers.contains(&keypoint.layer) && found(&keypoint.octave, &keypoint.layer)
        }
    });
    let (octave, size, layer) = match named {
        Some(&(octave, size)) => (octave, size, keypoint.layer),
        None => octaves
            .iter()
            .flat_map(|&(octave, size)| layers.clone().map(move |layer| (octave, size, layer)))
            .find(|&(octave, _, layer)| scale <= level(octave, layer) * times(0.5))?,
    };
    let pixel = pixel(octave);
    let (x, y) = (keypoint.x / pixel, keypoint.y / pixel);
    let inside = |v: f32, n: usize| (0.0..n as f32).contains(&v);
    let sound = inside(x, size.width)
        && inside(y, size.height)
        && scale > 0.0
        && scale.is_finite()
        && keypoint.angle.is_finite();
    sound.then(|| Point { keypoint: Keypoint { octave, layer, ..*keypoint }, x, y, scale: scale / pixel })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::cpus;
    use crate::feature::sift::{DIMENSION, reference, tests::scene};
    use std::f32::consts::TAU;

    #[test]
    fn keypoints_get_the_descriptors_of_the_search_that_found_them() {
        let image = scene(Size::new(180, 150), 3);
        for preset in [SiftPreset::Default, SiftPreset::OpenCv, SiftPreset::VlFeat] {
            for (root, pooled, kind) in [
                (false, false, DescriptorKind::U8),
                (true, true, DescriptorKind::F32),
                (false, false, DescriptorKind::None),
            ] {
                let options = SiftOptions::default().with_preset(preset).with_root(root);
                let options = options.with_domain_size_pooling(pooled).with_descriptors(kind);
                for cpu in cpus() {
                    let sift = Sift::new(options).unwrap();
                    let wanted = sift.detect(image.view(), None, &cpu).unwrap();
                    assert!(wanted.len() > 50, "{} features", wanted.len());
                    let (found, indices) = sift.describe(image.view(), &wanted.keypoints, &cpu).unwrap();
                    assert!(
                        found == wanted && indices == (0..wanted.len()).collect::<Vec<_>>(),
                        "{preset:?}"
                    );
                }
            }
        }
    }

    /// Keypoints as those of a regular grid, one of them larger than any that a search finds, and one in the last level.
    #[test]
    fn the_preset_of_opencv_describes_where_keypoints_say() {
        let image = scene(Size::new(180, 150), 3);
        let options = SiftOptions::preset(SiftPreset::OpenCv).with_descriptors(DescriptorKind::F32);
        let sift = Sift::new(options).unwrap();
        let angle = 0.5;
        let named =
            [(0, 0, 2.0), (0, 0, 8.0), (0, 0, 30.0), (0, 2, 1.0), (1, 0, 3.0), (1, 5, 40.0), (0, 4, 900.0)];
        let one = Keypoint { x: 91.2, y: 70.4, angle, sign: 1, ..Keypoint::default() };
        let given = named.map(|(octave, layer, scale)| Keypoint { octave, layer, scale, ..one });
        let undoubled = options.with_first_octave(0);
        let octaves = reference::octaves(image.view(), &undoubled);
        for cpu in cpus() {
            let (found, indices) = sift.describe(image.view(), &given, &cpu).unwrap();
            assert_eq!((&found.keypoints[..], indices), (&given[..], (0..given.len()).collect()));
            let Descriptors::F32(values) = &found.descriptors else { panic!("floats were asked for") };
            for (k, values) in given.iter().zip(values.chunks(DIMENSION)) {
                let pixel = pixel(k.octave);
                let point = Point { keypoint: *k, x: k.x / pixel, y: k.y / pixel, scale: k.scale / pixel };
                let expected = octaves[usize::from(k.octave.unsigned_abs())].describe(&point, angle);
                assert!(values == expected, "{k:?}");
            }
        }
        // The doubled image is made as soon as one keypoint names it.
        let doubled = Keypoint { octave: -1, layer: 1, ..given[0] };
        let (found, _) = sift.describe(image.view(), &[doubled, given[0]], &Cpu::sequential()).unwrap();
        assert_eq!(found.keypoints, [doubled, given[0]]);
    }

    #[test]
    fn an_angle_may_be_any_number_of_turns() {
        let (image, cpu) = (scene(Size::new(180, 150), 3), Cpu::sequential());
        let sift = Sift::new(SiftOptions::default()).unwrap();
        let corner = Keypoint { scale: 3.0, ..sift.detect(image.view(), None, &cpu).unwrap().keypoints[0] };
        let of = |angle: f32| {
            let (found, _) = sift.describe(image.view(), &[Keypoint { angle, ..corner }], &cpu).unwrap();
            assert_eq!(found.keypoints[0].angle, angle);
            let Descriptors::U8(bytes) = found.descriptors else { panic!("bytes were asked for") };
            bytes
        };
        for angle in [0.25, 3.0, 6.0] {
            for turned in [angle - TAU, angle + TAU, angle - 3.0 * TAU] {
                let differ = of(angle).iter().zip(of(turned)).map(|(a, b)| a.abs_diff(b)).max();
                assert!(differ <= Some(1), "{angle} and {turned} differ by {differ:?}");
            }
        }
        assert_eq!(of(-1e-12), of(0.0));
    }

    #[test]
    fn foreign_keypoints_get_a_layer_or_are_left_out() {
        let (image, cpu) = (scene(Size::new(180, 150), 3), Cpu::sequential());
        let sift = Sift::new(SiftOptions::default()).unwrap();
        let corner = Keypoint { x: 90.0, y: 149.0, scale: 3.5, angle: 1.0, sign: 1, ..Keypoint::default() };
        let given = [
            corner,
            Keypoint { x: -1.0, ..corner },
            Keypoint { y: 150.0, ..corner },
            Keypoint { x: 20.0, y: 30.0, scale: 0.5, ..corner },
            Keypoint { scale: 1e6, ..corner },
            Keypoint { angle: f32::NAN, ..corner },
            Keypoint { x: 10.0, y: 12.0, ..corner },
        ];
        let (found, indices) = sift.describe(image.view(), &given, &cpu).unwrap();
        assert_eq!(indices, [0, 3, 6]);
        // Between 1.6 · 2^(5/6) and 1.6 · 2^(7/6) in the octave of the image itself, and below 0.8 · 2^(1/2) in the first.
        let placed = |i: usize| (found.keypoints[i].octave, found.keypoints[i].layer);
        assert_eq!([placed(0), placed(1)], [(0, 3), (-1, 1)]);
        let Descriptors::U8(bytes) = &found.descriptors else { panic!("bytes were asked for") };
        assert!(bytes.chunks(DIMENSION).all(|d| d.iter().any(|&v| v > 0)), "no descriptor is empty");
    }
}
