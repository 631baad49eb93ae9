//! Verification of a pair of images: which of their matches agree with two views of one rigid scene, and which
//! configuration the two views have. The rules are COLMAP's (Schönberger, Frahm 2016, section 4.1; the thresholds are
//! in its `two_view_geometry.cc`), so that its mapper can continue from here.
//!
//! 1. Fewer matches than `min_inliers`: [`Configuration::Degenerate`], nothing is drawn.
//! 2. `evidence` says which matches to draw first.
//! 3. The robust search that all estimates share (`geometry::estimate`) finds a homography, a fundamental matrix and,
//!    where both focal lengths are known, an essential matrix. A model needs `min_inliers`, at places that determine it,
//!    and more than chance could explain.
//! 4. `decide` compares the numbers of inliers and names the configuration.
//!
//! Deterministic: samples are keyed by the seed, the pair's key and their number, and judged in batches of fixed size.
//! The result is the same, bit for bit, for any threads and device.

mod decide;
mod evidence;
mod gpu;
mod prepared;

pub use evidence::Evidence;

use super::calibration::Camera;
use super::{Correspondence, Essential, Fundamental, Homography};
use crate::device::gpu::Gpu;
use crate::device::{Cpu, Processor, Scratch};
use crate::image::Size;
use crate::options::{Above, AboveTo, Named, OrInfinite, named, options};
use crate::{Error, Result};
use decide::decide;
use gpu::GpuVerifier;
use prepared::{Budgets, FoundAll, Prepared, search_all};

named! {
    /// The configuration of the two views of a pair, by COLMAP's names and in the order of its numbers.
    pub enum Configuration as "configuration" {
        #[default]
        "undefined": Undefined, "Not verified";
        /// As far as the matches tell, the images do not show the same thing.
        "degenerate": Degenerate, "No model has enough inliers";
        "calibrated": Calibrated, "An essential matrix, of two cameras of known focal lengths";
        "uncalibrated": Uncalibrated, "A fundamental matrix";
        "planar": Planar, "A homography, of a plane";
        "panoramic": Panoramic, "A homography, of a camera that only turned";
        /// Without known focal lengths, a plane cannot be told from a camera that only turned.
        "planar or panoramic": PlanarOrPanoramic, "A homography";
        "watermark": Watermark, "The matches are those of a mark at the borders of both images";
    }
}

impl Configuration {
    /// The number in COLMAP's databases.
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The configuration of a number in COLMAP's databases, 0 to 7.
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).map(|choice| choice.value)
    }

    /// Its name in words.
    pub fn name(self) -> &'static str {
        Named::name(self)
    }

    /// Whether the inliers are tie points of one scene.
    pub const fn is_verified(self) -> bool {
        match self {
            Self::Undefined | Self::Degenerate | Self::Watermark => false,
            Self::Calibrated
            | Self::Uncalibrated
            | Self::Planar
            | Self::Panoramic
            | Self::PlanarOrPanoramic => true,
        }
    }
}

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
        /// The most samples for each model, rounded up to a multiple of 64.
        max_iterations / with_max_iterations: usize = 10_000 => 1..=1_000_000_000, unit "N";
        /// Draw enough samples to find, with the probability confidence, a model with this share of inliers, or with
        /// the fewest inliers if that is more.
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

/// One of the two images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImageCamera {
    /// Its size in pixels.
    pub size: Size,
    /// Its camera, if the focal length is known beforehand and not a guess. Lens distortion is ignored.
    pub camera: Option<Camera>,
}

impl ImageCamera {
    /// An image whose focal length is not known.
    pub fn new(size: Size) -> Self {
        Self { size, camera: None }
    }

    /// An image of known focal length.
    #[must_use]
    pub fn with_camera(self, camera: Camera) -> Self {
        Self { camera: Some(camera), ..self }
    }
}

/// The matches of two images, to be verified.
#[derive(Clone, Copy, Debug)]
pub struct ImagePair<'m> {
    /// The matches.
    pub matches: &'m [Correspondence],
    /// The scale and rotation that each match implies: one entry for each match, or none at all.
    pub evidence: &'m [Evidence],
    /// Image A and image B.
    pub views: [ImageCamera; 2],
    /// A number that distinguishes this pair from others, such as one made of the numbers of its images. Samples depend
    /// on it.
    pub key: u64,
}

impl<'m> ImagePair<'m> {
    /// A pair of key 0, without evidence.
    pub fn new(matches: &'m [Correspondence], a: ImageCamera, b: ImageCamera) -> Self {
        Self { matches, evidence: &[], views: [a, b], key: 0 }
    }

    /// The same with another key.
    #[must_use]
    pub fn with_key(self, key: u64) -> Self {
        Self { key, ..self }
    }

    /// The same with evidence, one for each match.
    #[must_use]
    pub fn with_evidence(self, evidence: &'m [Evidence]) -> Self {
        Self { evidence, ..self }
    }

    fn check(&self) -> Result<()> {
        let (matches, evidence) = (self.matches.len(), self.evidence.len());
        if evidence != 0 && evidence != matches {
            return Err(Error::Mismatch(format!(
                "{matches} matches have evidence for {evidence}: expected as many, or none"
            )));
        }
        if u32::try_from(matches).is_err() {
            return Err(Error::Mismatch(format!("{matches} matches: at most {} can be verified", u32::MAX)));
        }
        self.views.iter().filter_map(|view| view.camera).try_for_each(|camera| camera.check())
    }
}

/// The two-view geometry of a pair, from A to B.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TwoView {
    /// The configuration of the two views.
    pub configuration: Configuration,
    /// Indices of the matches that the configuration's model explains, ascending; none when degenerate.
    pub inliers: Vec<u32>,
    /// The fundamental matrix with most inliers, where one has enough.
    pub fundamental: Option<Fundamental>,
    /// The essential matrix with most inliers, where both cameras are known and one has enough.
    pub essential: Option<Essential>,
    /// The homography with most inliers, where one has enough.
    pub homography: Option<Homography>,
    /// Samples drawn, for all models.
    pub iterations: usize,
}

impl TwoView {
    fn degenerate(iterations: usize) -> Self {
        Self { configuration: Configuration::Degenerate, iterations, ..Self::default() }
    }
}

/// Fewer pairs are verified on the CPU: each fills only a small part of a GPU.
const FEWEST_FOR_GPU: usize = 32;

/// Verifies pairs of images on the CPU or on a GPU, with the same result. It keeps the GPU's kernels, and memory of
/// host and device, from call to call. Threads may share it.
#[derive(Debug)]
pub struct Verifier {
    options: TwoViewOptions,
    budgets: Budgets,
    processor: Processor,
    searches: Scratch<GpuVerifier>,
}

impl Verifier {
    /// A verifier with these options.
    ///
    /// # Errors
    /// [`Error::Option`] as [`TwoViewOptions::check`].
    pub fn new(options: &TwoViewOptions, processor: &Processor) -> Result<Self> {
        options.check()?;
        let (budgets, processor) = (Budgets::new(options), processor.clone());
        Ok(Self { options: *options, budgets, processor, searches: Scratch::default() })
    }

    /// The programs that a GPU needs.
    pub(crate) fn sources() -> [tiepoint_gpu::KernelSource; 3] {
        prepared::KINDS.map(super::estimate::gpu::source)
    }

    /// Reserves memory of a GPU, and of the host for transfers, for this many pairs and matches at a time, for instance
    /// while they are still being matched. If there is too little memory, nothing is reserved, and the search reports
    /// it.
    pub fn reserve(&self, pairs: usize, matches: usize) {
        if let Ok(Some(gpu)) = self.processor.joining_gpu()
            && gpu.info().has_f64
        {
            let new = || GpuVerifier::new(&gpu, &self.budgets);
            // The search meets the same error and reports it.
            let _ = self.searches.with(new, |search| search.reserve(pairs, matches));
        }
    }

    /// The two-view geometries of pairs of images, in their order, each from the matches between them. Too few matches, or
    /// matches that determine no model, give a degenerate configuration, not an error. Matches with coordinates that are
    /// not finite are outliers.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for cameras that [`Camera::check`](crate::geometry::calibration::Camera::check) refuses, and
    /// for a pair whose evidence and matches differ in number.
    pub fn geometries(&self, pairs: &[ImagePair<'_>]) -> Result<Vec<TwoView>> {
        pairs.iter().try_for_each(ImagePair::check)?;
        if pairs.len() < FEWEST_FOR_GPU {
            return self.on_cpu(pairs, &self.processor.cpu);
        }
        self.processor.gpu_or_cpu(
            "verification of image pairs",
            |gpu| self.on_gpu(pairs, gpu),
            |cpu| self.on_cpu(pairs, cpu),
        )
    }

    fn on_cpu(&self, pairs: &[ImagePair<'_>], cpu: &Cpu) -> Result<Vec<TwoView>> {
        let _stage = cpu.stage("verify");
        let alone = cpu.alone();
        cpu.try_map(pairs.len(), |i| Ok(self.verify(&pairs[i], &alone)))
    }

    fn verify(&self, pair: &ImagePair<'_>, cpu: &Cpu) -> TwoView {
        let Some(prepared) = Prepared::new(pair, &self.options) else { return TwoView::degenerate(0) };
        let found = search_all(&prepared, &self.budgets, cpu);
        decide(pair, &prepared, found, &self.options)
    }

    /// The CPU prepares the pairs and decides; the GPU searches.
    fn on_gpu(&self, pairs: &[ImagePair<'_>], gpu: &Gpu) -> Result<Vec<TwoView>> {
        gpu.require_f64()?;
        let (options, cpu) = (&self.options, &self.processor.cpu);
        let prepared = cpu.map(pairs.len(), |i| Prepared::new(&pairs[i], options));
        let searched: Vec<&Prepared> = prepared.iter().flatten().collect();
        let mut found = self.search_on(gpu, &searched)?.into_iter();
        let found: Vec<_> =
            prepared.iter().map(|p| p.as_ref().and_then(|p| Some((p, found.next()?)))).collect();
        Ok(cpu.map(pairs.len(), |i| match found[i] {
            None => TwoView::degenerate(0),
            Some((prepared, found)) => decide(&pairs[i], prepared, found, options),
        }))
    }

    /// Searches for every kind of model in every pair, as the CPU does. The pairs are searched part by part, two parts
    /// at a time, so that one is prepared while the device searches the other.
    fn search_on(&self, gpu: &Gpu, prepared: &[&Prepared]) -> Result<Vec<FoundAll>> {
        let (parts, cpu) = (gpu::parts(prepared), &self.processor.cpu);
        let lanes = parts.len().min(2);
        let new = || GpuVerifier::new(gpu, &self.budgets);
        let found = cpu.try_map(lanes, |lane| -> Result<Vec<Vec<FoundAll>>> {
            self.searches.with(new, |search| {
                let own = parts.iter().skip(lane).step_by(lanes);
                own.map(|part| search.search(part, &self.budgets, cpu)).collect()
            })
        })?;
        let mut found: Vec<_> = found.into_iter().map(Vec::into_iter).collect();
        let in_order = (0..parts.len()).filter_map(|i| found[i % lanes].next());
        Ok(in_order.flatten().collect())
    }
}

#[cfg(test)]
pub(crate) mod tests;
