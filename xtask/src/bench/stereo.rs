//! Dense stereo of a synthetic scene of 1920×1080, beside OpenCV's semi-global matching.

use super::{OpenCv, Row};
use crate::Result;
use tiepoint::device::{Cpu, Processor, SimdLevel};
use tiepoint::image::{AnyImage, Size};
use tiepoint::options::Named;
use tiepoint::stereo::{Cost, Masks, Paths, Stereo, StereoOptions};
use tiepoint::synth::{StereoScene, StereoSceneOptions};

pub(super) struct Pair {
    left: AnyImage,
    right: AnyImage,
}

impl Pair {
    pub(super) fn new(opencv: &mut OpenCv) -> Result<Self> {
        let failed = |e: tiepoint::Error| e.to_string();
        let cpu = Cpu::with_threads(2).map_err(failed)?;
        let options = StereoSceneOptions::default().with_size(Size::new(1920, 1080));
        let pair = StereoScene::new(&options).map_err(failed)?.render::<u8>(&cpu);
        opencv.load("left", &pair.left)?;
        opencv.load("right", &pair.right)?;
        Ok(Self { left: AnyImage::U8(pair.left), right: AnyImage::U8(pair.right) })
    }

    pub(super) fn rows(&self) -> Result<Vec<Row<'_>>> {
        let default = StereoOptions::default();
        let mut rows = Vec::new();
        let mut row = |name: &str, opencv: &str, options: StereoOptions, level: SimdLevel| -> Result<()> {
            let stereo = Stereo::new(options).map_err(|e| e.to_string())?;
            let (left, right) = (&self.left, &self.right);
            rows.push(Row::new(format!("stereo 1080p {name}"), opencv, move |cpu| {
                let processor = Processor::from(cpu.clone().at_level(level)?);
                stereo.compute(left.into(), right.into(), Masks::default(), &processor).map(|_| None)
            }));
            Ok(())
        };
        let (hh, way) = ("sgbm left right 128 hh", "sgbm left right 128 3way");
        let best = SimdLevel::Best;
        row("128 disparities, 8 paths, to HH", hh, default, best)?;
        row("128 disparities, 8 paths, to 3WAY", way, default, best)?;
        if Cpu::levels().contains(&SimdLevel::Avx2) {
            row("128 disparities, 8 paths, AVX2, to HH", hh, default, SimdLevel::Avx2)?;
        }
        let four = default.with_paths(Paths::Four);
        row("128 disparities, 4 paths, to HH4", "sgbm left right 128 hh4", four, best)?;
        row("128 disparities, 16 paths, to HH", hh, default.with_paths(Paths::Sixteen), best)?;
        for choice in Cost::ALL.iter().filter(|choice| choice.value != Cost::default()) {
            let (name, options) = (choice.name, default.with_cost(choice.value));
            row(&format!("128 disparities, {name}, to HH"), hh, options, best)?;
        }
        let wide = default.with_disparities(256);
        row("256 disparities, 8 paths, to HH", "sgbm left right 256 hh", wide, best)?;
        let small = wide.with_memory(Some(300 << 20));
        row("256 disparities, 8 paths, 300 MiB, to HH", "sgbm left right 256 hh", small, best)?;
        Ok(rows)
    }
}
