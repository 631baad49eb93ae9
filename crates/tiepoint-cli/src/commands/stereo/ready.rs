//! A pair made ready to be searched: rectified, surveyed, and halved to a suitable size, as far as that was asked for.

use super::Work;
use super::pairs::PairFiles;
use crate::arguments::rectify::CameraArguments;
use crate::arguments::values::OrAuto;
use crate::commands::rectified::{FocalSource, describe_focal, focal_lines, rectified};
use crate::failure::Outcome;
use crate::input;
use crate::prefetch::Weight;
use serde_json::{Value, json};
use tiepoint::assess::{Assessment, PairEvidence};
use tiepoint::by_pixel;
use tiepoint::device::{Cpu, Processor};
use tiepoint::geometry::calibration::RectifiedCalibration;
use tiepoint::geometry::rectify::{Agreement, OutputFrame, Rectification, RectifiedView};
use tiepoint::geometry::warp::WarpOptions;
use tiepoint::geometry::{ModelKind, RobustOptions};
use tiepoint::image::{FileImage, Image, Mask};
use tiepoint::register::{Modality, RegisterInput, RegisterOptions, TieOptions, TiedPictures, tie_images};
use tiepoint::stereo::halving::{Side, halved, suitable_halvings};
use tiepoint::stereo::survey::{Survey, survey, to_search};
use tiepoint::stereo::{INVALID, Masks, Reason, StereoOptions, StereoResult};

/// Width of the border around pixels without data in which nothing is matched, because the windows of matching costs
/// reach that far.
pub(super) const MARGIN: usize = 4;

/// Photographs with a longer side are halved before they are rectified here, unless a size is asked for.
const LONGEST: usize = 2000;

#[derive(Debug)]
struct Rectified {
    rectification: Rectification,
    source: FocalSource,
    /// The width of a pixel that was rectified, in pixels of the photograph.
    pixels: f64,
    /// Whether the second photograph is the left one.
    exchanged: bool,
    agreement: Agreement,
    /// The verdict on the tie points and their epipolar geometry.
    assessment: Option<Assessment>,
}

#[derive(Debug)]
pub(super) struct Ready {
    pub(super) sides: [Side; 2],
    pub(super) options: StereoOptions,
    pub(super) calibration: Option<RectifiedCalibration>,
    /// What tie points tell about a pair that was not rectified here.
    pub(super) survey: Option<Survey>,
    rectified: Option<Rectified>,
    pub(super) halvings: u32,
}

impl Weight for Ready {
    fn bytes(&self) -> usize {
        let mask = |side: &Side| side.mask.as_ref().map_or(0, |mask| mask.data().len());
        self.sides.iter().map(|side| input::bytes(&side.image) + mask(side)).sum()
    }
}

impl Ready {
    /// A rectified pair, surveyed if its range has to be found.
    pub(super) fn of(sides: [Side; 2], work: &Work<'_>, cpu: &Cpu) -> Outcome<Self> {
        let cameras = &work.arguments.cameras;
        let calibration = work.calibration.or_else(|| cameras.rectified(sides[0].image.size()));
        let mut ready =
            Self { sides, options: work.options, calibration, survey: None, rectified: None, halvings: 0 };
        if work.measured {
            let found = survey(&ready.sides, cpu)?;
            ready.survey = Some(found);
            let mut search = found.search(work.least());
            // Only the safety margin is negative, which a PNG cannot hold, so it is cut off.
            let is_below_0 = search.is_some_and(|(first, _)| first < 0) && work.least().is_none();
            if is_below_0 && work.writes_png() && found.least.is_some_and(|least| least >= 0.0) {
                search = found.search(Some(0));
            }
            if let Some(search) = search {
                (ready.options.min_disparity, ready.options.disparities) = search;
            }
        }
        Ok(ready)
    }

    /// Two photographs, rectified by their tie points at the size that was asked for; if their texture is to decide, at
    /// no more than [`LONGEST`] pixels.
    pub(super) fn rectified(
        mut sides: [Side; 2],
        files: &PairFiles,
        work: &Work<'_>,
        cpu: &Cpu,
    ) -> Outcome<Self> {
        let longest = |sides: &[Side; 2]| {
            let sizes = sides.each_ref().map(|side| side.image.size());
            sizes.map(|size| size.width.max(size.height)).into_iter().max()
        };
        let mut halvings = 0;
        while match work.arguments.halvings() {
            OrAuto::Given(times) => halvings < times,
            OrAuto::Auto => longest(&sides) > Some(LONGEST),
        } {
            sides = halved(&sides, cpu)?;
            halvings += 1;
        }
        let processor = &Processor::from(cpu.clone());
        let masks = sides
            .each_ref()
            .map(|side| Mask::from(side.mask.as_ref().map(Image::view)).without_margin(MARGIN, cpu));
        let inputs = [0, 1].map(|i| RegisterInput { image: sides[i].image.view(), mask: masks[i].view() });
        let options = TieOptions::default()
            .with_model(Some(ModelKind::Fundamental))
            .with_robust(RobustOptions::default().with_threshold_px(1.0));
        let register = RegisterOptions::default().with_tie(options).with_modality(Modality::Same);
        let ([a, b], TiedPictures { tie, .. }) = tie_images(inputs, &register, processor)?;
        let keypoints = [a.keypoints.as_slice(), &b.keypoints];
        let assessment =
            PairEvidence::of(keypoints, [a.image, b.image], &tie, &options).map(|of| of.assess());
        let (given, pixels) = (work.arguments.cameras, f64::from(1_u32 << halvings));
        let cameras = CameraArguments { focal: given.focal.map(|f| f / pixels), ..given };
        let files = ([files.left.as_path(), &files.right], sides.each_ref().map(|side| side.image.size()));
        let (pair, source) = rectified(files, (&tie, keypoints), cameras, OutputFrame::Fit, cpu)?;
        let rectification = pair.rectification;
        let [mut left, mut right] = sides;
        if pair.exchanged {
            (left, right) = (right, left);
        }
        let turned = |view: &RectifiedView, side: Side| -> Outcome<Side> {
            let picture = FileImage { shown: side.mask, ..side.image.into() };
            let FileImage { image, shown, .. } = picture.resampled(view.size, |image, fill| {
                let options = WarpOptions::default().with_fill(fill);
                let warped = by_pixel!(map image, image => view.warp(image.view(), &options, cpu)?);
                Ok((warped, view.coverage(cpu)?))
            })?;
            Ok(Side { mask: Mask::from(shown).without_margin(MARGIN, cpu).into_image(), image })
        };
        let sides = [turned(&rectification.left, left)?, turned(&rectification.right, right)?];
        let range = pair.agreement.disparities;
        let calibration = RectifiedCalibration { range: Some(range), ..rectification.calibration() };
        if work.arguments.depth.is_some() || work.arguments.cloud.is_some() {
            calibration.check_metric()?;
        }
        // Filled when it is complete.
        let mut options = work.options.with_fill(false);
        if work.measured {
            (options.min_disparity, options.disparities) = to_search(range, work.least());
        }
        Ok(Self {
            sides,
            options,
            calibration: Some(calibration),
            survey: None,
            rectified: Some(Rectified {
                rectification,
                source,
                pixels,
                exchanged: pair.exchanged,
                agreement: pair.agreement,
                assessment: assessment.map(|of| of.with(Assessment::of_depth(&pair.agreement).as_ref())),
            }),
            halvings,
        })
    }

    /// The same pair, halved to the size that was asked for, and its range; what flags give of this is for that size.
    pub(super) fn halved(mut self, work: &Work<'_>, cpu: &Cpu) -> Outcome<Self> {
        let times = match work.arguments.halvings() {
            OrAuto::Given(times) => times - self.halvings,
            OrAuto::Auto => suitable_halvings(&self.sides, &self.options, cpu)?,
        };
        for _ in 0..times {
            self.sides = halved(&self.sides, cpu)?;
            self.calibration = self.calibration.map(|c| c.halved(self.sides[0].image.size()));
            self.options = self.options.halved();
        }
        self.halvings += times;
        let StereoOptions { min_disparity, disparities, .. } = &mut self.options;
        if let Some(least) = work.least() {
            let end = i64::from(*min_disparity) + *disparities as i64;
            (*min_disparity, *disparities) = (least, (end - i64::from(least)).clamp(1, 4096) as usize);
        }
        if let Some(OrAuto::Given(count)) = work.arguments.disparities {
            *disparities = count;
        }
        Ok(self)
    }

    /// Completes the disparities of a pair that was rectified here.
    pub(super) fn complete(&self, found: &mut StereoResult, fill: bool, cpu: &Cpu) -> Outcome {
        if self.rectified.is_some() {
            self.without_streaks(found);
            // Streaks must be gone by then: they would be continued, and leave holes.
            if fill {
                found.fill(Masks::from(&self.sides), cpu)?;
            }
        }
        Ok(())
    }

    /// Invalidates disparities whose match lies close to where the right photograph ends on the right, or just left of a
    /// part of it without data. Only the greatest disparities of such a pixel lead into that photograph, so the consistency
    /// check has no alternatives to compare, and surfaces without texture get streaks along the border.
    fn without_streaks(&self, found: &mut StereoResult) {
        let Some(mask) = &self.sides[1].mask else { return };
        let (width, beside) = (mask.size().width as f32, (self.options.disparities / 4).clamp(8, 64) as f32);
        for y in 0..mask.size().height {
            let shown = mask.row(y);
            for (x, d) in found.disparity.row_mut(y).iter_mut().enumerate().filter(|(_, d)| d.is_finite()) {
                let reached = x as f32 - *d + beside;
                if !(0.0..width).contains(&reached) || shown[reached as usize] == 0 {
                    *d = INVALID;
                    if let Some(confidence) = &mut found.confidence {
                        confidence.row_mut(y)[x] = 0.0;
                    }
                    if let Some(reasons) = &mut found.reasons {
                        reasons.row_mut(y)[x] = Reason::Occluded;
                    }
                }
            }
        }
    }

    /// The survey of the pair at the size at which it is searched; `None` for a pair that was rectified here.
    pub(super) fn survey_at_size(&self, cpu: &Cpu) -> Outcome<Option<Survey>> {
        match (&self.rectified, self.survey) {
            (Some(_), _) => Ok(None),
            (None, Some(found)) if self.halvings == 0 => Ok(Some(found)),
            (None, _) => Ok(Some(survey(&self.sides, cpu)?)),
        }
    }

    /// The row error of a pair that was rectified here, as a multiple of the one pixel that a rectified pair may have.
    pub(super) fn rows_rectified_here(&self) -> Option<f64> {
        self.rectified.as_ref().map(|rectified| rectified.agreement.mean_vertical_px)
    }

    /// The verdict on the tie points by which the pair was rectified here.
    pub(super) fn assessment(&self) -> Option<&Assessment> {
        self.rectified.as_ref()?.assessment.as_ref()
    }

    /// Why its geometry may be wrong, if the pair was rectified here.
    pub(super) fn doubt(&self) -> Option<String> {
        let doubt = |of: &Rectified| {
            focal_lines(&of.rectification, of.source, of.pixels)[1].take().or(of.agreement.depth_doubt())
        };
        self.rectified.as_ref().and_then(doubt)
    }

    /// Lines about how the pair was rectified.
    pub(super) fn about(&self) -> Vec<String> {
        let Some(Rectified { rectification, source, pixels, exchanged, .. }) = &self.rectified else {
            return Vec::new();
        };
        let [focal, _] = focal_lines(rectification, *source, *pixels);
        let exchanged =
            exchanged.then(|| "the second picture was taken from the left: disparities refer to it".into());
        let halved = self.calibration.as_ref().filter(|_| self.halvings > 0).map(|pair| {
            let (part, focal) = (1_u32 << self.halvings, pair.focal);
            format!(
                "computed at 1/{part} of the full size; at that size, in whose pixels disparities are given, the focal \
                 length is {focal:.0} px"
            )
        });
        focal.into_iter().chain(exchanged).chain(halved).collect()
    }

    pub(super) fn describe(&self) -> Value {
        let (Some(Rectified { rectification, source, pixels, exchanged, .. }), Some(pair)) =
            (&self.rectified, &self.calibration)
        else {
            return json!({});
        };
        let geometry = json!({
            "exchanged": exchanged,
            "focal": pair.focal,
            "principal": pair.principal,
            "doffs": pair.doffs,
            "baseline": pair.baseline,
        });
        crate::output::joined([geometry, describe_focal(rectification, *source, *pixels)])
    }
}
