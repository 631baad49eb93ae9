//! The filters of the scale space: their sizes, their boxes, and which of them octaves share.
//!
//! Bay et al. 2008, section 3.3. With lobe l a filter is w = 3l wide; octave o (from 0) has the lobes
//! l = 2^(o+1)·(i + 1) + 1 for its intervals i. Interval i of octave o has the size of interval 2i + 1 of
//! octave o − 1, so of I intervals in O octaves only I + (I − ⌊I/2⌋)(O − 1) are computed.

use super::{SurfOptions, SurfPreset};
use std::ops::Range;

/// The bounds of a filter's boxes, as columns (or rows) of the integral image relative to the sample.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// Side in pixels.
    pub size: usize,
    /// The whole filter along its derivative.
    pub outer: [isize; 2],
    /// Its central lobe, of weight −2 against 1.
    pub inner: [isize; 2],
    /// The extent of Dxx along y and of Dyy along x.
    pub across: [isize; 2],
    /// The two lobes of Dxy, in x and in y.
    pub diagonal: [isize; 4],
    /// The factor of the sums of Dxx and Dyy.
    pub norm: f32,
    /// The factor of the sum of Dxy: its own norm times 0.9.
    pub norm_xy: f32,
}

impl Filter {
    fn paper(octave: usize, interval: usize) -> Self {
        let lobe = (interval + 1) * (2 << octave) + 1;
        let (l, b) = (lobe as isize, (3 * lobe / 2) as isize);
        let area = (9 * lobe * lobe) as f64;
        Self {
            size: 3 * lobe,
            outer: [-b, b + 1],
            inner: [-(l / 2), l - l / 2],
            across: [1 - l, l],
            diagonal: [-l, 0, 1, l + 1],
            norm: (1.0 / area) as f32,
            norm_xy: (0.9 / area) as f32,
        }
    }

    /// OpenCV scales the 9×9 pattern from the filter's top-left corner and rounds the corners of its boxes.
    fn opencv(octave: usize, interval: usize, step: usize) -> Self {
        let size = (9 + 6 * interval) << octave;
        let origin = -((size / 2 / step * step) as isize);
        let at = |ninths: usize| origin + ((2 * ninths * size + 9) / 18) as isize;
        let [across, diagonal] = [[at(2), at(7)], [at(1), at(4)]].map(|[a, b]| b - a);
        Self {
            size,
            outer: [at(0), at(9)],
            inner: [at(3), at(6)],
            across: [at(2), at(7)],
            diagonal: [at(1), at(4), at(5), at(8)],
            norm: (255.0 / ((size / 3) as f64 * across as f64)) as f32,
            norm_xy: (255.0 * 0.9 / (diagonal * diagonal) as f64) as f32,
        }
    }

    /// The samples, as multiples of `step`, at which the filter lies inside `n` pixels.
    pub(super) fn inside(&self, step: usize, n: usize) -> Range<usize> {
        let before = self.outer[0].unsigned_abs();
        let after = self.outer[1].unsigned_abs();
        let end = if n >= after { (n - after) / step + 1 } else { 0 };
        before.div_ceil(step).min(end)..end
    }
}

#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub filter: Filter,
    /// The interval of the octave before that has the same responses at half the step.
    pub shared: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Octave {
    /// Pixels from sample to sample.
    pub step: usize,
    /// Layers by growing filter.
    pub layers: Vec<Layer>,
    /// Centre of the filters relative to the sample's pixel.
    pub centre: f32,
}

impl Octave {
    /// Rows of the integral image needed above a sample's row, and below it.
    pub(super) fn reach(&self) -> [usize; 2] {
        self.layers.last().map_or([0; 2], |l| l.filter.outer.map(isize::unsigned_abs))
    }

    /// The largest σ that a keypoint of this octave can have.
    pub(super) fn largest_scale(&self) -> f32 {
        self.layers.last().map_or(0.0, |l| l.filter.size as f32 * (1.2 / 9.0))
    }
}

pub(super) fn octaves(options: &SurfOptions) -> Vec<Octave> {
    (0..options.octave_count())
        .map(|o| {
            let (step, intervals) = (options.step_of(o), usize::from(options.intervals));
            let opencv = options.preset == SurfPreset::OpenCv;
            let layer = |i| Layer {
                filter: if opencv { Filter::opencv(o, i, step) } else { Filter::paper(o, i) },
                shared: (!opencv && o > 0 && i < intervals / 2).then_some(2 * i + 1),
            };
            let layers: Vec<_> = (0..intervals).map(layer).collect();
            // Even filters have their centre between pixels.
            let [before, after] = layers[0].filter.outer;
            Octave { step, centre: (before + after - 1) as f32 * 0.5, layers }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_sharing() {
        let plan = octaves(&SurfOptions::default());
        let sizes = |o: &Octave| o.layers.iter().map(|l| l.filter.size).collect::<Vec<_>>();
        let all: Vec<_> = plan.iter().map(sizes).collect();
        assert_eq!(all, [[9, 15, 21, 27], [15, 27, 39, 51], [27, 51, 75, 99], [51, 99, 147, 195]], "sizes");
        let computed = plan.iter().flat_map(|o| &o.layers).filter(|l| l.shared.is_none()).count();
        assert_eq!(computed, 10, "4 intervals in 4 octaves need 10 layers");
        for (before, octave) in plan.iter().zip(&plan[1..]) {
            for layer in &octave.layers {
                if let Some(i) = layer.shared {
                    assert_eq!(before.layers[i].filter.size, layer.filter.size, "shared layers are equal");
                }
            }
        }
        let plan = octaves(&SurfOptions::preset(SurfPreset::OpenCv));
        assert_eq!(sizes(&plan[1]), [18, 30, 42, 54, 66], "OpenCV's second octave");
        for octave in &plan {
            for layer in &octave.layers {
                let [before, after] = layer.filter.outer;
                assert_eq!((before + after - 1) as f32 * 0.5, octave.centre, "one centre per octave");
            }
        }
    }
}
