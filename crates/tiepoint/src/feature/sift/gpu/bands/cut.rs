//! The division of an image into bands.

use super::super::plan::{Part, Plan};
use crate::feature::sift::SiftOptions;
use crate::feature::sift::describe::reach;
use crate::feature::sift::refine::REACH;
use crate::feature::sift::scale_space::taps;

/// The most rows that are computed for each row of the image; beyond that the CPU is as fast.
const MOST_WORK: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) band: Plan,
    /// The octaves after those of the bands, which are searched as a whole.
    pub(super) rest: Option<Plan>,
    /// Rows from the start of a band to the start of the next; cores have at most as many, except the outermost.
    step: usize,
    halo: usize,
}

impl Cut {
    /// Bands of about `step` rows besides the halo; `None` if the image is not high enough for two such bands.
    pub(super) fn new(whole: &Plan, seam: &Seam, step: usize) -> Option<Self> {
        let (height, step) = (whole.whole.height, step.next_multiple_of(seam.alignment));
        // The last band ends with the image.
        let rows = 2 * seam.halo + step + height % seam.alignment;
        // f32 must hold every row number of the first octave exactly: a band's row is the image's less its first.
        if rows >= height || whole.octaves[0].size.height > 1 << f32::MANTISSA_DIGITS {
            return None;
        }
        let (band, rest) = (whole.band(seam.octaves, rows)?, whole.rest(seam.octaves));
        Some(Self { band, rest, step, halo: seam.halo })
    }

    /// Of the cuts within the given number of bytes, the one that computes the fewest rows.
    pub(super) fn within(
        whole: &Plan,
        options: &SiftOptions,
        limit: u64,
        bytes: impl Fn(&Self) -> u64,
    ) -> Option<Self> {
        let height = whole.whole.height;
        let fitting = |octaves: usize| {
            let seam = Seam::new(options, octaves);
            let inside = height.saturating_sub(2 * seam.halo);
            let cuts = (2..=inside).filter_map(|n| Self::new(whole, &seam, inside.div_ceil(n)));
            cuts.take_while(|cut| cut.rows_computed() <= MOST_WORK * height).find(|cut| bytes(cut) <= limit)
        };
        (1..=whole.octaves.len()).filter_map(fitting).min_by_key(Self::rows_computed)
    }

    pub(super) fn count(&self) -> usize {
        self.last().div_ceil(self.step) + 1
    }

    fn rows_computed(&self) -> usize {
        self.count() * self.band.input.height
    }

    fn last(&self) -> usize {
        self.band.whole.height - self.band.input.height
    }

    /// The bands, whose cores follow each other without gaps.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let (height, step, halo, last) = (self.band.whole.height, self.step, self.halo, self.last());
        (0..last).step_by(step).chain([last]).map(move |first| {
            let start = if first == 0 { 0 } else { first + halo };
            let end = if first == last { height } else { last.min(first + step) + halo };
            Part { first, taken: start..end }
        })
    }
}

/// The conditions for cutting bands of some octaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seam {
    octaves: usize,
    /// Rows of the image that are a whole and even number of rows in each of the octaves, and whole in the next.
    pub(super) alignment: usize,
    /// The rows of the image on either side of a core that its features, or the octaves after the band's, need.
    pub(super) halo: usize,
}

impl Seam {
    pub(super) fn new(options: &SiftOptions, octaves: usize) -> Self {
        let doubled = usize::from(options.first_octave < 0);
        let radii: Vec<usize> = taps(options).iter().map(|t| t.len() - 1).collect();
        let blurred = |levels: std::ops::RangeInclusive<usize>| radii[levels].iter().sum::<usize>();
        let levels = usize::from(options.levels);
        // Rows of level 0 that the cut makes wrong. A row of the doubled image lies between two of the image.
        let mut wrong = doubled + radii[0];
        let mut halo = 0;
        for octave in 0..octaves {
            halo = halo.max((wrong + blurred(1..=levels + 2) + REACH + reach(options)) << octave);
            wrong = (wrong + blurred(1..=levels)).div_ceil(2);
        }
        let alignment = (1 << octaves) >> doubled;
        Self { octaves, alignment, halo: halo.div_ceil(1 << doubled).next_multiple_of(alignment) }
    }
}
