//! Which features to keep: all, the strongest N, or N spread evenly over the image.

use super::{Features, Keypoint};
use crate::device::Cpu;
use crate::image::Size;

/// How many features to keep and which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Every feature.
    #[default]
    All,
    /// The `n` strongest.
    Strongest(usize),
    /// At most `n`, spread over the image: a square grid is laid so that a cell holds about four of the
    /// features wanted, and rounds are made in which every cell gives its next strongest.
    Even(usize),
}

impl Selection {
    /// It takes none but the strongest so many.
    pub(crate) fn most(self) -> usize {
        match self {
            Self::Strongest(n) => n,
            Self::All | Self::Even(_) => usize::MAX,
        }
    }

    /// The selected ones of `found`, in the total [order](super::Keypoint::order) of features.
    #[must_use]
    pub fn apply(self, found: &Features, cpu: &Cpu) -> Features {
        let mut order: Vec<(Keypoint, usize)> = found.keypoints.iter().copied().zip(0..).collect();
        cpu.sort_by(&mut order, |a, b| a.0.order(&b.0));
        let indices: Vec<usize> = match self {
            Self::All => order.iter().map(|o| o.1).collect(),
            Self::Strongest(n) => order.iter().take(n).map(|o| o.1).collect(),
            Self::Even(n) => even(&order, found.image, n).map(|rank| order[rank].1).collect(),
        };
        drop(order);
        found.gather(&indices, cpu)
    }
}

/// Ranks, ascending, of at most `n` keypoints taken round by round from the cells of a grid; keypoints come
/// strongest first.
fn even(ordered: &[(Keypoint, usize)], image: Size, n: usize) -> impl Iterator<Item = usize> {
    let (width, height) = (image.width.max(1) as f64, image.height.max(1) as f64);
    let cell = (width * height * 4.0 / n.max(1) as f64).sqrt().max(1.0);
    let columns = (width / cell).ceil() as usize;
    let mut taken_in_cell = std::collections::HashMap::<usize, usize>::new();
    // A keypoint's rank inside its cell is the round in which it is taken.
    let mut rounds: Vec<(usize, usize)> = (ordered.iter().enumerate())
        .map(|(rank, (k, _))| {
            let at = |v: f32| (f64::from(v.max(0.0)) / cell) as usize;
            let round = taken_in_cell.entry(at(k.y) * columns + at(k.x)).or_default();
            *round += 1;
            (*round, rank)
        })
        .collect();
    rounds.sort_unstable();
    rounds.truncate(n);
    let mut ranks: Vec<usize> = rounds.into_iter().map(|(_, rank)| rank).collect();
    ranks.sort_unstable();
    ranks.into_iter()
}
