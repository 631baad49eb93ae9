//! The features of an image: keypoints and their descriptors.

use super::Keypoint;
use crate::device::Cpu;
use crate::image::Size;
use crate::options::named;
use crate::{Error, Result};

named! {
    /// The form in which descriptors are given.
    pub enum DescriptorKind as "descriptors" {
        /// 512 times the unit vector, rounded, at most 255.
        #[default]
        "u8": U8, "Bytes (sift only)";
        /// The unit vector.
        "float": F32, "Floats";
        "none": None, "Keypoints only";
    }
}

/// One of two types, by the kind of values of descriptors.
#[derive(Clone, Debug, PartialEq)]
pub enum ByValue<B, F> {
    /// 8-bit values: a unit vector times 512 (SIFT: rounded and saturated at 255).
    U8(B),
    /// Floats: a unit vector.
    F32(F),
}

/// The descriptors of a set of keypoints, one after the other.
pub type Descriptors = ByValue<Vec<u8>, Vec<f32>>;

/// Evaluates an expression for either kind of values: for the contents of a [`ByValue`]; with `map`, giving a `ByValue`
/// again; or for the contents of two, where `else` is for two different kinds.
macro_rules! by_value {
    (map $value:expr, $v:ident => $body:expr) => {
        match $value {
            $crate::feature::ByValue::U8($v) => $crate::feature::ByValue::U8($body),
            $crate::feature::ByValue::F32($v) => $crate::feature::ByValue::F32($body),
        }
    };
    (($a:expr, $b:expr), ($x:ident, $y:ident) => $body:expr, else $unlike:expr) => {
        match ($a, $b) {
            ($crate::feature::ByValue::U8($x), $crate::feature::ByValue::U8($y)) => $body,
            ($crate::feature::ByValue::F32($x), $crate::feature::ByValue::F32($y)) => $body,
            ($crate::feature::ByValue::U8(_), _) | ($crate::feature::ByValue::F32(_), _) => $unlike,
        }
    };
    ($value:expr, $v:ident => $body:expr) => {
        match $value {
            $crate::feature::ByValue::U8($v) => $body,
            $crate::feature::ByValue::F32($v) => $body,
        }
    };
}
pub(crate) use by_value;

impl Descriptors {
    /// An empty list of the kind that is asked for.
    pub(crate) const fn none(kind: DescriptorKind) -> Self {
        match kind {
            DescriptorKind::F32 => Self::F32(Vec::new()),
            DescriptorKind::U8 | DescriptorKind::None => Self::U8(Vec::new()),
        }
    }

    pub(crate) fn values(&self) -> usize {
        by_value!(self, values => values.len())
    }
}

/// The features of one image.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// Keypoints; those of a detector in their [order](Keypoint::order).
    pub keypoints: Vec<Keypoint>,
    /// Their descriptors, in the same order; empty when none were asked for.
    pub descriptors: Descriptors,
    /// Values per descriptor; 0 when there are none.
    pub dimension: usize,
    /// Size of the image they were found in.
    pub image: Size,
}

impl Features {
    /// The number of keypoints.
    pub fn len(&self) -> usize {
        self.keypoints.len()
    }

    /// True when nothing was found.
    pub fn is_empty(&self) -> bool {
        self.keypoints.is_empty()
    }

    /// Checks that there is one descriptor for each keypoint, for features that do not come from a detector.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when there are more values, or fewer.
    pub fn check(&self) -> Result<()> {
        check_values(self.len(), self.descriptors.values(), self.dimension)
    }

    /// The features at `indices`, in that order. Indices out of range are left out.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn subset(&self, indices: &[usize]) -> Result<Self> {
        self.check()?;
        let kept: Vec<usize> = indices.iter().copied().filter(|&i| i < self.len()).collect();
        Ok(self.gather(&kept, &Cpu::sequential()))
    }

    /// Appends other features of the same image.
    pub(super) fn append(&mut self, more: &Self) -> Result<()> {
        self.keypoints.extend_from_slice(&more.keypoints);
        by_value!(
            (&mut self.descriptors, &more.descriptors),
            (all, more) => all.extend_from_slice(more),
            else return Err(Error::Mismatch("features have descriptors of different kinds".into()))
        );
        Ok(())
    }

    /// Keypoints of an image of this size, without descriptors.
    pub(crate) fn without_descriptors(keypoints: Vec<Keypoint>, image: Size) -> Self {
        Self { keypoints, descriptors: Descriptors::U8(vec![]), dimension: 0, image }
    }

    /// The features at `indices`, all in range, in that order.
    pub(super) fn gather(&self, indices: &[usize], cpu: &Cpu) -> Self {
        Self {
            keypoints: indices.iter().map(|&i| self.keypoints[i]).collect(),
            descriptors: by_value!(map &self.descriptors, v => gather_rows(v, self.dimension, indices, cpu)),
            ..*self
        }
    }
}

/// Fails unless these are the values of `keypoints` descriptors.
pub(super) fn check_values(keypoints: usize, values: usize, dimension: usize) -> Result<()> {
    if keypoints.checked_mul(dimension) == Some(values) {
        return Ok(());
    }
    Err(Error::Mismatch(format!(
        "{keypoints} keypoints with {values} descriptor values: expected {dimension} for each"
    )))
}

/// The rows of `length` values at `indices`, one after the other.
fn gather_rows<T: Copy + Default + Send + Sync>(
    rows: &[T],
    length: usize,
    indices: &[usize],
    cpu: &Cpu,
) -> Vec<T> {
    const ROWS_PER_TASK: usize = 1024;
    let mut out = vec![T::default(); indices.len() * length];
    cpu.for_chunks(&mut out, ROWS_PER_TASK * length, |task, out| {
        for (to, &i) in out.chunks_exact_mut(length).zip(&indices[task * ROWS_PER_TASK..]) {
            to.copy_from_slice(&rows[i * length..(i + 1) * length]);
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::order::gpu::tests::keypoints;

    #[test]
    fn features_that_do_not_fit_together_are_refused() {
        let fitting = |values: usize, dimension: usize| Features {
            keypoints: keypoints(5, 1),
            descriptors: Descriptors::U8(vec![7; values]),
            dimension,
            image: Size::new(9, 9),
        };
        assert_eq!(fitting(20, 4).subset(&[4, 9, 0]).unwrap().len(), 2, "9 is out of range");
        assert!(fitting(0, 0).check().is_ok(), "keypoints only");
        for wrong in [fitting(19, 4), fitting(21, 4), fitting(0, 4), fitting(5, usize::MAX), fitting(1, 0)] {
            assert!(matches!(wrong.check(), Err(Error::Mismatch(_))), "{}", wrong.dimension);
            assert!(wrong.subset(&[0, 4]).is_err(), "a part of them");
        }
    }
}
