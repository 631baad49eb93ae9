//! How a pair of images is verified.

use crate::Error;
use crate::options::{Above, AboveTo, OrInfinite, options};

options! {
    /// How a pair of images is verified, as COLMAP does.
    ///
    /// The defaults are COLMAP's (`TwoViewGeometryOptions`, version 4.2), except for the number of false alarms, which
    /// COLMAP does not ask for.
    #[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct TwoViewOptions {
        /// Largest distance of an inlier from the model, in pixels.
        ///
        /// For epipolar geometry the Sampson distance; for a homography the transfer error, as the harmonic mean over
        /// both images.
        threshold_px / with_threshold_px: f64 = 4.0 => Above(0.0), name "threshold", flag "inlier-distance", unit "PX";
        /// Stop when a better model would have been found with this probability.
        confidence / with_confidence: f64 = 0.999 => 0.0..1.0, unit "P";
        /// The fewest samples for each model.
        min_iterations / with_min_iterations: usize = 100, unit "N";
        /// The most samples for each model.
        max_iterations / with_max_iterations: usize = 10_000 => 1..=1_000_000_000, unit "N";
        /// Draw enough samples to find, with the confidence, a model with this share of inliers, or with the fewest
        /// inliers if that is more.
        min_inlier_ratio / with_min_inlier_ratio: f64 = 0.25 => AboveTo(0.0, 1.0), unit "SHARE";
        /// The fewest inliers of a model.
        min_inliers / with_min_inliers: usize = 15 => 8.., unit "N";
        /// An essential matrix needs this share of a fundamental matrix's inliers.
        min_essential_ratio / with_min_essential_ratio: f64 = 0.95 => AboveTo(0.0, 1.0), unit "SHARE";
        /// If a homography has more than this share of the epipolar geometry's inliers, the pair is planar or
        /// panoramic.
        max_homography_ratio / with_max_homography_ratio: f64 = 0.8 => AboveTo(0.0, 1.0), unit "SHARE";
        /// Recognise watermarks: matches at the borders that all have the same shift.
        detect_watermark / with_detect_watermark: bool = true, without "Also accept pairs that look like a watermark: matches at the borders that all have the same shift";
        /// Width of the border where watermarks are, as a share of the diagonal.
        watermark_border / with_watermark_border: f64 = 0.1 => 0.0..=0.5, unit "SHARE";
        /// A pair is a watermark if this share of its inliers lies in the borders of both images and this share has the
        /// same shift.
        watermark_ratio / with_watermark_ratio: f64 = 0.7 => AboveTo(0.0, 1.0), unit "SHARE";
        /// Refuse a model if wrong matches alone are expected to give more than this many models as good as it for one pair.
        ///
        /// See [`RobustOptions::false_alarms`](crate::geometry::RobustOptions::false_alarms).
        false_alarms / with_false_alarms: f64 = 1e-6 => OrInfinite(Above(0.0)), unit "N";
        /// Seed of the samples, which otherwise depend only on the pair's key and the number of the sample.
        seed / with_seed: u64 = 0, unit "N";
    }
    check this {
        match this.min_iterations <= this.max_iterations {
            true => Ok(()),
            false => Err(Error::option("min_iterations", this.min_iterations, "at most max_iterations")),
        }
    }
}
