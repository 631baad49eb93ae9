//! Which features to keep: all, the strongest N, or N spread evenly over the image.

use super::Features;

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
    /// Applies the selection; the order of what stays is unchanged.
    #[must_use]
    pub fn apply(self, features: Features) -> Features {
        match self {
            Self::Strongest(n) if n < features.len() => features.subset(&(0..n).collect::<Vec<_>>()),
            Self::Even(n) if n < features.len() => features.subset(&even(&features, n)),
            _ => features,
        }
    }
}

/// The indices, ascending, of `n` features taken round by round from the cells of a grid.
fn even(features: &Features, n: usize) -> Vec<usize> {
    let (width, height) = (features.image.width.max(1) as f64, features.image.height.max(1) as f64);
    let cell = (width * height * 4.0 / n.max(1) as f64).sqrt().max(1.0);
    let columns = (width / cell).ceil() as usize;
    let mut taken_in_cell = std::collections::HashMap::<usize, usize>::new();
    // A feature's rank inside its cell is the round in which it is taken; features come strongest first.
    let mut rounds: Vec<(usize, usize)> = (features.keypoints.iter().enumerate())
        .map(|(i, k)| {
            let at = |v: f32| (f64::from(v.max(0.0)) / cell) as usize;
            let rank = taken_in_cell.entry(at(k.y) * columns + at(k.x)).or_default();
            *rank += 1;
            (*rank, i)
        })
        .collect();
    rounds.sort_unstable();
    let mut indices: Vec<usize> = rounds.into_iter().take(n).map(|(_, i)| i).collect();
    indices.sort_unstable();
    indices
}
