//! Descriptors of given keypoints, such as those of other programs.
//!
//! A keypoint is described in the octave and layer that it names if a search there could find its scale, so that
//! keypoints of [`Sift::detect`] get the same descriptors again; otherwise in the finest layer that is at most half a
//! layer finer than its scale. Its place, scale and angle are not changed.

use super::describe::{as_bytes, describe};
use super::refine::Point;
use super::scale_space::pixel;
use super::{DIMENSION, Sift, SiftOptions, SiftPreset};
use crate::device::Cpu;
use crate::feature::{DescriptorKind, Descriptors, Features, Keypoint};
use crate::image::{ImageView, Pixel, Size};
use crate::{Result, numeric};
use std::f32::consts::LN_2;

impl Sift {
    /// Describes keypoints of a grey image. Returns their features in the given order, each with the octave and layer
    /// in which it was described, and the indices of their keypoints. Keypoints outside the image and those too large
    /// for its last octave are left out. Nothing is selected.
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
        let options = &self.options;
        let mut found = self.with_pyramid(image.size(), |pyramid| {
            let octaves: Vec<(i8, Size)> = pyramid.octaves().collect();
            let placed = |(i, k): (usize, &Keypoint)| placed(k, &octaves, options).map(|point| (i, point));
            let mut waiting: Vec<(usize, Point)> = keypoints.iter().enumerate().filter_map(placed).collect();
            let mut found = Vec::with_capacity(waiting.len());
            let cpu = &cpu.begin_task("SIFT", pyramid.rows());
            cpu.run(|| {
                pyramid.run(image, cpu, |octave, ready| {
                    let is_ready = |(_, p): &mut (usize, Point)| {
                        p.keypoint.octave == octave.number && p.y < ready.describe as f32
                    };
                    let points: Vec<(usize, Point)> = waiting.extract_if(.., is_ready).collect();
                    found.extend(cpu.map(points.len(), |i| {
                        let (index, point) = &points[i];
                        let described = || describe(octave, point, point.keypoint.angle, options, cpu);
                        let values = (options.descriptors != DescriptorKind::None).then(described);
                        (*index, point.keypoint, values)
                    }));
                    Ok(())
                })
            })?;
            Ok(found)
        })?;
        found.sort_unstable_by_key(|(index, ..)| *index);
        let indices = found.iter().map(|(index, ..)| *index).collect();
        let keypoints = found.iter().map(|(_, keypoint, _)| *keypoint).collect();
        let values = found.into_iter().filter_map(|(.., values)| values);
        let descriptors = match options.descriptors {
            DescriptorKind::F32 => Descriptors::F32(values.flatten().collect()),
            DescriptorKind::U8 | DescriptorKind::None => Descriptors::U8(values.flat_map(as_bytes).collect()),
        };
        let dimension = if options.descriptors == DescriptorKind::None { 0 } else { DIMENSION };
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
    let named =
        named.filter(|_| layers.contains(&keypoint.layer) && found(&keypoint.octave, &keypoint.layer));
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
    let sound = inside(x, size.width) && inside(y, size.height) && scale > 0.0 && keypoint.angle.is_finite();
    sound.then(|| Point { keypoint: Keypoint { octave, layer, ..*keypoint }, x, y, scale: scale / pixel })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::cpus;
    use crate::feature::sift::tests::scene;

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

    #[test]
    fn foreign_keypoints_get_a_layer_or_are_left_out() {
        let (image, cpu) = (scene(Size::new(180, 150), 3), Cpu::sequential());
        let sift = Sift::new(SiftOptions::default()).unwrap();
        let (response, sign, octave, layer) = (0.0, 1, 0, 0);
        let corner = Keypoint { x: 90.0, y: 149.0, scale: 3.5, angle: 1.0, response, sign, octave, layer };
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
