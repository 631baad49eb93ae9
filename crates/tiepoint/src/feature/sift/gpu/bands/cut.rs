//! Where an image is cut into bands.

use super::super::plan::{Part, Plan};
use crate::feature::sift::SiftOptions;
use crate::feature::sift::describe::reach;
use crate::feature::sift::refine::REACH;
use crate::feature::sift::scale_space::taps;

/// Rows computed for a row of the image. With more the CPU is no slower.
const MOST_WORK: usize = 8;

/// How an image is cut.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// Of every band.
    pub(super) band: Plan,
    /// The octaves that bands do not have.
    pub(super) rest: Option<Plan>,
    /// Rows from the start of a band to the start of the next, and so at most those of a core.
    step: usize,
    /// Rows above and below a core.
    halo: usize,
}

impl Cut {
    /// Bands of `octaves` octaves and about `step` rows beside the halo; `None` where the image has no two such bands.
    pub(super) fn new(whole: &Plan, options: &SiftOptions, octaves: usize, step: usize) -> Option<Self> {
        let (height, alignment) = (whole.whole.height, alignment(options, octaves));
        // f32 must hold all rows of the first octave, so that a band's can be told from the image's.
        let exact = whole.octaves[0].size.height <= 1 << f32::MANTISSA_DIGITS;
        let (halo, step) = (halo(options, octaves), step.next_multiple_of(alignment));
        // The last band ends with the image.
        let rows = 2 * halo + step + height % alignment;
        let cut = || Some(Self { band: whole.band(octaves, rows)?, rest: whole.rest(octaves), step, halo });
        (exact && rows < height).then(cut)?
    }

    /// The cut with the fewest rows computed of those that take so many bytes at most.
    pub(super) fn within(
        whole: &Plan,
        options: &SiftOptions,
        limit: u64,
        bytes: impl Fn(&Self) -> u64,
    ) -> Option<Self> {
        let height = whole.whole.height;
        let fitting = |octaves: usize| {
            let steps = (2..height).map(|bands| height.div_ceil(bands));
            let cuts = steps.filter_map(|step| Self::new(whole, options, octaves, step));
            cuts.take_while(|cut| cut.rows_computed() <= MOST_WORK * height).find(|cut| bytes(cut) <= limit)
        };
        (1..=whole.octaves.len()).filter_map(fitting).min_by_key(Self::rows_computed)
    }

    /// How many bands.
    pub(super) fn count(&self) -> usize {
        self.last().div_ceil(self.step) + 1
    }

    fn rows_computed(&self) -> usize {
        self.count() * self.band.input.height
    }

    /// Where the last band begins.
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

/// Rows of the image that are a whole and even number of rows in every octave of a band, and whole in the next.
fn alignment(options: &SiftOptions, octaves: usize) -> usize {
    (1 << octaves) >> usize::from(options.first_octave < 0)
}

/// Rows of the image on either side of a core that its features, and what octaves after the band's need, may touch.
fn halo(options: &SiftOptions, octaves: usize) -> usize {
    let radii: Vec<usize> = taps(options).iter().map(|t| t.len() - 1).collect();
    let (to_level_0, between) = radii.split_at(1);
    let doubled = options.first_octave < 0;
    // A row of the doubled image has an input row of either side.
    let mut wrong = to_level_0[0] + usize::from(doubled);
    let mut most = 0;
    for octave in 0..octaves {
        let around = wrong + between.iter().sum::<usize>() + REACH + reach(options);
        most = most.max(around << octave);
        wrong = (wrong + between[..usize::from(options.levels)].iter().sum::<usize>()).div_ceil(2);
    }
    most.div_ceil(1 << usize::from(doubled)).next_multiple_of(alignment(options, octaves))
}
