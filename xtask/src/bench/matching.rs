//! The two nearest neighbours among 5000 × 5000 descriptors of seeded noise: ours both ways, OpenCV's one way.

use super::{OpenCv, Row};
use crate::Result;
use tiepoint::feature::{Descriptors, Features, Keypoint};
use tiepoint::image::{ImageView, Size};
use tiepoint::matching::nearest_neighbours;
use tiepoint::synth::Random;

const COUNT: usize = 5000;
const DIMENSION: usize = 128;

/// Two sets of descriptors as bytes, and the same as unit vectors.
pub(super) struct Sets {
    bytes: [Vec<u8>; 2],
    floats: [Vec<f32>; 2],
}

impl Sets {
    pub(super) fn new() -> Self {
        let bytes = [1, 2].map(|seed| {
            let mut random = Random::new(seed);
            (0..COUNT * DIMENSION).map(|_| (random.bits() >> 56) as u8).collect::<Vec<_>>()
        });
        let floats = bytes.each_ref().map(|set| set.chunks_exact(DIMENSION).flat_map(unit).collect());
        Self { bytes, floats }
    }

    pub(super) fn load(&self, opencv: &mut OpenCv) -> Result<()> {
        let size = Size::new(DIMENSION, COUNT);
        for (i, (bytes, floats)) in self.bytes.iter().zip(&self.floats).enumerate() {
            let bytes = ImageView::new(bytes, size, 1, DIMENSION).map_err(|e| e.to_string())?;
            let floats = ImageView::new(floats, size, 1, DIMENSION).map_err(|e| e.to_string())?;
            opencv.load(&format!("bytes{i}"), bytes)?;
            opencv.load(&format!("floats{i}"), floats)?;
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> [Row<'_>; 2] {
        let row = |kind: &str, theirs: &str, [a, b]: [Features; 2]| {
            let name = format!("match {COUNT}×{COUNT}×{DIMENSION}, {kind}");
            Row::new(name, theirs, move |cpu| nearest_neighbours(&a, &b, &cpu.clone().into()).map(|_| None))
        };
        let bytes = self.bytes.clone().map(|v| features(Descriptors::U8(v)));
        let floats = self.floats.clone().map(|v| features(Descriptors::F32(v)));
        [row("8-bit", "match bytes0 bytes1", bytes), row("f32", "match floats0 floats1", floats)]
    }
}

fn unit(values: &[u8]) -> impl Iterator<Item = f32> {
    let norm = values.iter().map(|&v| f32::from(v) * f32::from(v)).sum::<f32>().sqrt();
    values.iter().map(move |&v| f32::from(v) / norm)
}

fn features(descriptors: Descriptors) -> Features {
    let (keypoints, image) = (vec![Keypoint::default(); COUNT], Size::new(1, 1));
    Features { keypoints, descriptors, dimension: DIMENSION, image }
}
