//! `tiepoint rectify`: LEFT and RIGHT turned so that what corresponds lies in the same row.

use super::r#match::{Asked, Found, places};
use crate::arguments::matching::{MatchingArguments, ModelName};
use crate::arguments::rectify::{CropName, RectifyArguments};
use crate::context::Context;
use crate::draw::{Canvas as Drawing, rows};
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{Clock, Object, Part};
use std::path::Path;
use tiepoint::device::Cpu;
use tiepoint::geometry::calibration::{RectifiedCalibration, StereoCalibration};
use tiepoint::geometry::rectify::{
    Agreement, OutputFrame, Rectification, RectifiedView, RectifyOptions, SelfCalibrationOptions,
    from_tie_points,
};
use tiepoint::geometry::{Correspondence, Model};
use tiepoint::image::{self, AnyImage, Image};

pub(crate) fn run(arguments: &RectifyArguments, context: &Context) -> Outcome {
    check(arguments)?;
    let mut clock = Clock::start(&context.processor.cpu);
    let rig = arguments
        .calibration
        .first()
        .map(|_| clock.time(Part::Read, || StereoCalibration::read(&arguments.calibration)));
    let rig = rig.transpose()?;
    let matching = matching(arguments, rig.is_some());
    let asked = Asked { detector: &arguments.detector, matching: &matching };
    let found = asked.run([&arguments.left, &arguments.right], true, &mut clock, context)?;
    context.progress.say("rectifying");
    let pair = clock.time(Part::Compute, || match &rig {
        Some(rig) => calibrated(rig, &found, arguments),
        None => uncalibrated(&found, arguments, &context.processor.cpu),
    })?;
    let images = clock.time(Part::Compute, || pair.warp(&found, arguments, &context.processor.cpu))?;
    clock.time(Part::Write, || write(arguments, &pair, &images, &context.processor.cpu))?;
    speak(arguments, &pair, &clock, context)?;
    context.report(|| {
        let object = Object::new()
            .text("left", &arguments.left.display().to_string())
            .text("right", &arguments.right.display().to_string());
        pair.describe(object, &found, rig.is_some())
            .text("device", &context.device())
            .count("threads", context.processor.cpu.threads())
            .object("seconds", &clock.seconds(&context.processor.cpu))
    })
}

/// What can be told before any work.
fn check(arguments: &RectifyArguments) -> Outcome {
    if arguments.calibration.is_empty() && arguments.stored {
        return Err(Failure::usage("--stored: the rectification of which file? Give --calibration FILE"));
    }
    if !arguments.calibration.is_empty() && arguments.focal.is_some() {
        return Err(Failure::usage("--focal: the calibration file says what the focal lengths are"));
    }
    SelfCalibrationOptions::default().with_focal(arguments.focal).check()?;
    let pictures = [
        &arguments.output_left,
        &arguments.output_right,
        &arguments.valid_left,
        &arguments.valid_right,
        &arguments.draw,
    ];
    pictures.into_iter().flatten().try_for_each(|p| input::writable_image(p))?;
    arguments.output_calibration.as_deref().map_or(Ok(()), input::writable)
}

/// With a calibration, matches are only looked at; without, they must obey a fundamental matrix.
fn matching(arguments: &RectifyArguments, calibrated: bool) -> MatchingArguments {
    MatchingArguments {
        model: if calibrated { ModelName::None } else { ModelName::Fundamental },
        ratio: arguments.ratio,
        one_way: false,
        any_sign: false,
        inlier_distance: Some(arguments.inlier_distance),
        no_rematch: false,
        mask_b: arguments.mask_b.clone(),
    }
}

/// A rectified pair and what is known of it.
struct Pair {
    rectification: Rectification,
    calibration: RectifiedCalibration,
    agreement: Option<Agreement>,
    /// The second picture is the left one.
    exchanged: bool,
}

fn correspondences(found: &Found) -> Vec<Correspondence> {
    let [a, b] = &found.features;
    let pair = |(a, b)| Correspondence { a, b, quality: 0.0 };
    places(a, b, &found.tie).into_iter().map(pair).collect()
}

fn original(found: &Found, side: usize) -> &AnyImage {
    let picture = &found.pictures[side];
    picture.original.as_ref().unwrap_or(&picture.image)
}

impl CropName {
    fn frame(self) -> OutputFrame {
        match self {
            Self::Input => OutputFrame::Input,
            Self::Fit => OutputFrame::Fit,
            Self::Valid => OutputFrame::Valid,
            Self::All => OutputFrame::All,
        }
    }
}

fn calibrated(rig: &StereoCalibration, found: &Found, arguments: &RectifyArguments) -> Outcome<Pair> {
    let sizes = [0, 1].map(|i| original(found, i).size());
    let exchanged = !arguments.stored && !Rectification::in_order(rig);
    let rectification = if arguments.stored {
        Rectification::stored(rig, sizes)?
    } else {
        let frame = arguments.crop.unwrap_or(CropName::Input).frame();
        let options = RectifyOptions::default().with_frame(frame);
        let swapped = exchanged.then(|| rig.exchanged());
        let sizes = if exchanged { [sizes[1], sizes[0]] } else { sizes };
        Rectification::new(swapped.as_ref().unwrap_or(rig), sizes, &options)?
    };
    let turned = |p: Correspondence| if exchanged { Correspondence { a: p.b, b: p.a, ..p } } else { p };
    let pairs: Vec<_> = correspondences(found).into_iter().map(turned).collect();
    let agreement = rectification.agreement(&rectification.near_rows(&pairs, arguments.inlier_distance));
    Ok(Pair::new(rectification, agreement, exchanged))
}

fn uncalibrated(found: &Found, arguments: &RectifyArguments, cpu: &Cpu) -> Outcome<Pair> {
    let Some(Model::Fundamental(f)) = found.tie.b_from_a else {
        return Err(Failure::work("the tie points gave no epipolar geometry"));
    };
    let all = correspondences(found);
    let inliers: Vec<_> = found.tie.inliers.iter().map(|&i| all[i]).collect();
    let sizes = [0, 1].map(|i| original(found, i).size());
    let frame = arguments.crop.unwrap_or(CropName::Fit).frame();
    let options = SelfCalibrationOptions::default().with_focal(arguments.focal);
    let pair = from_tie_points(&f, &inliers, sizes, &options, frame, cpu)?;
    Ok(Pair::new(pair.rectification, Some(pair.agreement), pair.exchanged))
}

impl Pair {
    fn new(rectification: Rectification, agreement: Option<Agreement>, exchanged: bool) -> Self {
        let range = agreement.map(|a| a.disparities);
        let calibration = RectifiedCalibration { range, ..rectification.calibration() };
        Self { rectification, calibration, agreement, exchanged }
    }

    fn views(&self) -> [&RectifiedView; 2] {
        [&self.rectification.left, &self.rectification.right]
    }

    fn warp(&self, found: &Found, arguments: &RectifyArguments, cpu: &Cpu) -> Outcome<[AnyImage; 2]> {
        let warped = |side: usize| -> Outcome<AnyImage> {
            let (view, kind) = (self.views()[side], arguments.interpolation.into());
            let source = if self.exchanged { 1 - side } else { side };
            Ok(match original(found, source) {
                AnyImage::U8(i) => view.warp(i.view(), kind, 0, cpu)?.into(),
                AnyImage::U16(i) => view.warp(i.view(), kind, 0, cpu)?.into(),
                AnyImage::F32(i) => view.warp(i.view(), kind, 0.0, cpu)?.into(),
            })
        };
        Ok([warped(0)?, warped(1)?])
    }

    fn describe(&self, object: Object, found: &Found, calibrated: bool) -> Object {
        let counts: Vec<f64> = found.features.iter().map(|f| f.len() as f64).collect();
        let size = self.rectification.left.size;
        let agreement = self.agreement;
        let or_nothing = |v: Option<f64>| v.unwrap_or(f64::NAN);
        let matrix = |view: &RectifiedView| {
            view.homography().map(|h| h.matrix().as_flattened().to_vec()).unwrap_or_default()
        };
        let [left, right] = self.views();
        object
            .count("width", size.width)
            .count("height", size.height)
            .flag("calibrated", calibrated)
            .flag("exchanged", self.exchanged)
            .numbers("features", &counts)
            .count("matches", found.tie.matches.len())
            .count("inliers", agreement.map_or(0, |a| a.points))
            .number("rms_vertical_px", or_nothing(agreement.map(|a| a.rms_vertical_px)))
            .number("mean_vertical_px", or_nothing(agreement.map(|a| a.mean_vertical_px)))
            .number("min_disparity", or_nothing(agreement.map(|a| a.disparities[0])))
            .number("max_disparity", or_nothing(agreement.map(|a| a.disparities[1])))
            .number("focal", self.calibration.focal)
            .numbers("principal", &self.calibration.principal)
            .number("doffs", self.calibration.doffs)
            .number("baseline", self.calibration.baseline)
            .numbers("left_matrix", &matrix(left))
            .numbers("right_matrix", &matrix(right))
            .numbers("q", self.calibration.q().as_flattened())
    }
}

fn write(arguments: &RectifyArguments, pair: &Pair, images: &[AnyImage; 2], cpu: &Cpu) -> Outcome {
    let outputs = [&arguments.output_left, &arguments.output_right];
    for (path, image) in outputs.iter().zip(images) {
        path.as_deref().map_or(Ok(()), |path: &Path| image::write(path, image))?;
    }
    let masks = [&arguments.valid_left, &arguments.valid_right];
    for (path, view) in masks.iter().zip(pair.views()) {
        let Some(path) = path else { continue };
        let valid: Image<u8> = view.coverage(cpu)?;
        image::write(path, &valid)?;
    }
    if let Some(path) = &arguments.output_calibration {
        pair.calibration.write(path)?;
    }
    if let Some(path) = &arguments.draw {
        let [left, right] = images.each_ref().map(Drawing::of);
        image::write(path, &rows(&left, &right).into_image())?;
    }
    Ok(())
}

fn speak(arguments: &RectifyArguments, pair: &Pair, clock: &Clock, context: &Context) -> Outcome {
    let between = format!("{} - {}", arguments.left.display(), arguments.right.display());
    let size = pair.rectification.left.size;
    let agreement = match pair.agreement {
        Some(a) => format!(
            "{} tie points agree in their row to {:.2} px, disparities {} to {}",
            a.points, a.rms_vertical_px, a.disparities[0], a.disparities[1]
        ),
        None => "no tie points to check the rows by".into(),
    };
    context.say(&format!("{between}: {size}, {agreement}, {:.1} ms", clock.compute() * 1e3))?;
    if pair.exchanged {
        let second = arguments.right.display();
        context.say(&format!(
            "{second} shows the scene from the left: it is the left picture of the rectified pair"
        ))?;
    }
    Ok(())
}
