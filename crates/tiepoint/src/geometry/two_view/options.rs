//! How a pair of images is verified.

use crate::options::setters;
use crate::{Error, Result};

/// How to verify a pair of images. The defaults are COLMAP's (`TwoViewGeometryOptions`, version 4.2), but for the
/// number of false alarms, which COLMAP does not ask for.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TwoViewOptions {
    /// A match is an inlier of epipolar geometry up to this Sampson distance, and of a homography up to this transfer
    /// error, the harmonic mean over both images: pixels, above 0. Default 4.
    pub threshold_px: f64,
    /// Stop when a better model would have been found with this probability, 0 to below 1. Default 0.999.
    pub confidence: f64,
    /// Samples at least, for each model; at most `max_iterations`. Default 100.
    pub min_iterations: usize,
    /// Samples at most, for each model, 1 to 10⁹. Default 10 000.
    pub max_iterations: usize,
    /// Samples are drawn until a model of this share of inliers, or of `min_inliers` where that is more, would have
    /// been found with `confidence`: above 0 and at most 1. Default 0.25.
    pub min_inlier_ratio: f64,
    /// Fewer inliers are no agreement, at least 8. Default 15.
    pub min_inliers: usize,
    /// An essential matrix needs this share of a fundamental matrix's inliers, above 0 and at most 1. Default 0.95.
    pub min_essential_ratio: f64,
    /// Above this share of inliers of the epipolar geometry a homography says all there is, above 0 and at most 1.
    /// Default 0.8.
    pub max_homography_ratio: f64,
    /// Whether to tell watermarks: matches at the borders that one shift explains. Default yes.
    pub detect_watermark: bool,
    /// Width of the border where watermarks are, as a share of the diagonal, 0 to 0.5. Default 0.1.
    pub watermark_border: f64,
    /// The share of inliers that must lie in the borders of both images, and then obey one shift, for a watermark:
    /// above 0 and at most 1. Default 0.7.
    pub watermark_ratio: f64,
    /// Refuse a model for which wrong matches agree as well more often than so many times in as many pairs, above 0;
    /// see [`RobustOptions::false_alarms`](crate::geometry::RobustOptions::false_alarms). Default 10⁻⁶.
    pub false_alarms: f64,
    /// Seed of the samples, which besides depend on the pair's key and their number alone. Default 0.
    pub seed: u64,
}

setters!(TwoViewOptions {
    with_threshold_px: threshold_px = f64,
    with_confidence: confidence = f64,
    with_min_iterations: min_iterations = usize,
    with_max_iterations: max_iterations = usize,
    with_min_inlier_ratio: min_inlier_ratio = f64,
    with_min_inliers: min_inliers = usize,
    with_min_essential_ratio: min_essential_ratio = f64,
    with_max_homography_ratio: max_homography_ratio = f64,
    with_detect_watermark: detect_watermark = bool,
    with_watermark_border: watermark_border = f64,
    with_watermark_ratio: watermark_ratio = f64,
    with_false_alarms: false_alarms = f64,
    with_seed: seed = u64,
});

impl Default for TwoViewOptions {
    fn default() -> Self {
        Self {
            threshold_px: 4.0,
            confidence: 0.999,
            min_iterations: 100,
            max_iterations: 10_000,
            min_inlier_ratio: 0.25,
            min_inliers: 15,
            min_essential_ratio: 0.95,
            max_homography_ratio: 0.8,
            detect_watermark: true,
            watermark_border: 0.1,
            watermark_ratio: 0.7,
            false_alarms: 1e-6,
            seed: 0,
        }
    }
}

impl TwoViewOptions {
    /// Checks every option.
    ///
    /// # Errors
    /// [`Error::Option`] names the first that is out of range.
    pub fn check(&self) -> Result<()> {
        if !(self.threshold_px > 0.0 && self.threshold_px.is_finite()) {
            return Err(Error::option("threshold_px", self.threshold_px, "above 0, in pixels"));
        }
        if !(0.0..1.0).contains(&self.confidence) {
            return Err(Error::option("confidence", self.confidence, "0 to below 1"));
        }
        if !(1..=1_000_000_000).contains(&self.max_iterations) {
            return Err(Error::option("max_iterations", self.max_iterations, "1 to 1000000000"));
        }
        if self.min_iterations > self.max_iterations {
            return Err(Error::option("min_iterations", self.min_iterations, "at most max_iterations"));
        }
        if self.min_inliers < 8 {
            return Err(Error::option("min_inliers", self.min_inliers, "at least 8"));
        }
        for (name, share) in [
            ("min_inlier_ratio", self.min_inlier_ratio),
            ("min_essential_ratio", self.min_essential_ratio),
            ("max_homography_ratio", self.max_homography_ratio),
            ("watermark_ratio", self.watermark_ratio),
        ] {
            if !(share > 0.0 && share <= 1.0) {
                return Err(Error::option(name, share, "above 0 and at most 1"));
            }
        }
        if !(0.0..=0.5).contains(&self.watermark_border) {
            return Err(Error::option("watermark_border", self.watermark_border, "0 to 0.5"));
        }
        if self.false_alarms.is_nan() || self.false_alarms <= 0.0 {
            return Err(Error::option("false_alarms", self.false_alarms, "above 0"));
        }
        Ok(())
    }
}
