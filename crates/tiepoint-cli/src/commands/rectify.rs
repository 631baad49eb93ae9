//! `tiepoint rectify`: LEFT and RIGHT turned so that corresponding points lie in the same row.

use super::matched_pair::{MatchedPair, PairSearch};
use super::rectified::{FocalSource, describe_focal, focal_lines, rectified};
use super::report::{self, Page, file_name};
use crate::arguments::rectify::RectifyArguments;
use crate::context::Context;
use crate::draw::{Canvas, rows};
use crate::failure::{Failure, Outcome};
use crate::input::Kept;
use crate::output::{self, Clock, Part, write_picture};
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::assess::Assessment;
use tiepoint::device::{Cpu, Processor};
use tiepoint::feature::{Features, Keypoint};
use tiepoint::geometry::calibration::{Projection, RectifiedCalibration, StereoCalibration};
use tiepoint::geometry::rectify::{Agreement, OutputFrame, Rectification, RectifiedView, RectifyOptions};
use tiepoint::geometry::warp::WarpOptions;
use tiepoint::geometry::{Correspondence, Fundamental, Model};
use tiepoint::image::{self, AnyCow, AnyImage, FileImage, Image, Known, Size};
use tiepoint::matching::Match;
use tiepoint::numeric::length;
use tiepoint::options::Named;
use tiepoint::stereo::survey::range_to_search;
use tiepoint_report::{KeypointMatch, MatchesView, Picture, Section, View, counted};

pub(crate) fn run(arguments: &RectifyArguments, context: &Context) -> Outcome {
    let mut clock = Clock::start(&context.processor.cpu);
    let rig = arguments
        .calibration
        .first()
        .map(|_| clock.time(Part::Read, || StereoCalibration::read(&arguments.calibration)));
    let rig = rig.transpose()?;
    let matching = arguments.matching();
    let search = PairSearch::new(&arguments.detector, &matching);
    let paths = [arguments.left.as_path(), &arguments.right];
    let found = search.run(paths, [Kept::File; 2], &arguments.report, &mut clock, context)?;
    context.progress.say("rectifying");
    let pair = clock.time(Part::Compute, || match &rig {
        Some(rig) => calibrated(rig, &found, arguments),
        None => uncalibrated(&found, arguments, &context.processor.cpu),
    })?;
    let images = clock.time(Part::Compute, || pair.warp(&found, arguments, &context.processor))?;
    clock.time(Part::Write, || write(arguments, &pair, &images, context))?;
    let between = format!("{} - {}", arguments.left.display(), arguments.right.display());
    let size = pair.rectification.left.size;
    let agreement = pair.agreement_summary();
    context.say(&format!("{between}: {size}, {agreement}, {:.1} ms", clock.compute() * 1e3));
    let [focal, weak] = focal_lines(&pair.rectification, pair.source);
    focal.iter().for_each(|line| context.say(line));
    weak.iter().for_each(|weak| context.note(weak));
    if pair.exchanged {
        let second = arguments.right.display();
        context
            .say(&format!("{second} was taken from the left: it is the left picture of the rectified pair"));
    }
    pair.doubts().iter().for_each(|doubt| context.note(doubt));
    pair.assess(&found).iter().for_each(|assessment| context.say(&assessment.to_string()));
    let names = json!({
        "left": arguments.left.display().to_string(),
        "right": arguments.right.display().to_string(),
    });
    let device = json!({ "device": context.take_device(), "threads": context.processor.cpu.threads() });
    let described = output::joined([names, pair.describe(&found, rig.is_some())?, device]);
    let seen = [images[0].seen()?, images[1].seen()?];
    report::finish(&arguments.report, &described, clock, context, || {
        pair.page(&found, arguments, &seen, &described)
    })
}

/// A rectified pair and what is known about it.
struct RectifiedPair {
    rectification: Rectification,
    calibration: RectifiedCalibration,
    source: FocalSource,
    agreement: Option<Agreement>,
    /// Whether the second picture is the left one.
    exchanged: bool,
    /// Whether the calibration stores it (`--stored`).
    stored: bool,
}

/// Puts a pair of points into the order of the rectified pictures.
fn in_order(exchanged: bool) -> impl Fn(Correspondence) -> Correspondence {
    move |p| if exchanged { Correspondence { a: p.b, b: p.a, ..p } } else { p }
}

fn calibrated(
    rig: &StereoCalibration,
    found: &MatchedPair,
    arguments: &RectifyArguments,
) -> Outcome<RectifiedPair> {
    let sizes = found.pictures.each_ref().map(|picture| picture.grey().size());
    let exchanged = !arguments.stored && !Rectification::in_order(rig);
    let rectification = if arguments.stored {
        Rectification::stored(rig, sizes)?
    } else {
        let frame = arguments.crop.unwrap_or(OutputFrame::Input);
        let options = RectifyOptions::default().with_frame(frame);
        let swapped = exchanged.then(|| rig.exchanged());
        let sizes = if exchanged { [sizes[1], sizes[0]] } else { sizes };
        Rectification::new(swapped.as_ref().unwrap_or(rig), sizes, &options)?
    };
    let pairs: Vec<_> = found.correspondences().into_iter().map(in_order(exchanged)).collect();
    let agreement = rectification.agreement(&rectification.near_rows(&pairs, arguments.inlier_distance()));
    let pair = RectifiedPair::new(rectification, FocalSource::Calibration, agreement, exchanged);
    Ok(RectifiedPair { stored: arguments.stored, ..pair })
}

fn uncalibrated(found: &MatchedPair, arguments: &RectifyArguments, cpu: &Cpu) -> Outcome<RectifiedPair> {
    let files: [&Path; 2] = [&arguments.left, &arguments.right];
    let sizes = found.pictures.each_ref().map(|picture| picture.grey().size());
    let frame = arguments.crop.unwrap_or(OutputFrame::Fit);
    let tied = (&found.tie, found.features.each_ref().map(|features| features.keypoints.as_slice()));
    let (pair, source) = rectified((files, sizes), tied, arguments.cameras, frame, cpu)?;
    Ok(RectifiedPair::new(pair.rectification, source, Some(pair.agreement), pair.exchanged))
}

impl RectifiedPair {
    fn new(
        rectification: Rectification,
        source: FocalSource,
        agreement: Option<Agreement>,
        exchanged: bool,
    ) -> Self {
        let range = agreement.map(|a| range_to_search(a.disparities));
        let calibration = RectifiedCalibration { range, ..rectification.calibration() };
        Self { rectification, calibration, source, agreement, exchanged, stored: false }
    }

    /// The matches that lie in the rectified pictures, in their pixels.
    fn rows(&self, found: &MatchedPair, tolerance: f64) -> Vec<KeypointMatch> {
        let pairs: Vec<_> = found.correspondences().into_iter().map(in_order(self.exchanged)).collect();
        // Without a model, matches in nearly the same row are inliers.
        let mut near = self.rectification.near_rows(&pairs, tolerance).into_iter().peekable();
        let verified = found.tie.b_from_a.is_some();
        let [a, b] = &found.features;
        let row = |((m, p), inlier): ((&Match, Correspondence), bool)| {
            let close = near.next_if(|n| *n == p).is_some();
            let (p, q) = (&a.keypoints[m.a as usize], &b.keypoints[m.b as usize]);
            let (left, right) = if self.exchanged { (q, p) } else { (p, q) };
            let [va, vb] = self.views();
            let (a, b) = (moved(left, va)?, moved(right, vb)?);
            let inlier = if verified { inlier } else { close };
            Some(KeypointMatch { pair: *m, a, b, residual: (a.y - b.y).abs(), inlier })
        };
        let matches = found.tie.matches.iter().zip(pairs.iter().copied()).zip(found.agreeing());
        matches.filter_map(row).collect()
    }

    fn agreement_summary(&self) -> String {
        match self.agreement {
            Some(a) => format!(
                "the rows of {} tie points differ by {:.2} px (rms), disparities {} to {}",
                counted(a.points),
                a.rms_vertical_px,
                a.disparities[0],
                a.disparities[1]
            ),
            None => "no tie points to check the rows by".into(),
        }
    }

    /// Why the result may be wrong.
    fn doubts(&self) -> Vec<String> {
        let agreement = self.agreement.iter().flat_map(|agreement| agreement.doubts(self.calibration.doffs));
        let outside = self.views().into_iter().find(|view| {
            let (Size { width, height }, [x, y]) = (view.size, view.principal);
            !(0.0..width as f64).contains(&x) || !(0.0..height as f64).contains(&y)
        });
        let outside = outside.filter(|_| self.stored).map(|view| {
            let [x, y] = view.principal;
            format!(
                "the principal point ({x:.0}, {y:.0}) lies outside of the rectified picture of {}: is the stored rectification for \
                 pictures of another size? Without --stored it is computed anew",
                view.size
            )
        });
        let depth = self.agreement.and_then(|agreement| agreement.depth_doubt());
        agreement.chain(outside).chain(depth).collect()
    }

    /// The verdict on the tie points, with what their rows say.
    fn assess(&self, found: &MatchedPair) -> Option<Assessment> {
        match &self.agreement {
            Some(rows) => Some(Assessment::of_rows(found.assess(), rows, self.calibration.doffs)),
            None => found.assess(),
        }
    }

    fn views(&self) -> [&RectifiedView; 2] {
        [&self.rectification.left, &self.rectification.right]
    }

    fn warp(
        &self,
        found: &MatchedPair,
        arguments: &RectifyArguments,
        processor: &Processor,
    ) -> Outcome<[FileImage; 2]> {
        let options = WarpOptions::default().with_interpolation(arguments.interpolation);
        let warped = |side: usize| -> Outcome<FileImage> {
            let view = self.views()[side];
            let picture = found.pictures[if self.exchanged { 1 - side } else { side }].file();
            let picture = picture.ok_or_else(|| Failure::work("the picture was not kept"))?;
            Ok(picture.resampled(view.size, |image, fill| {
                let warped = view.warp_with(image, &options.with_fill(fill), processor)?;
                Ok((warped.into_host()?, view.coverage_with(image, processor)?.into_host()?))
            })?)
        };
        Ok([warped(0)?, warped(1)?])
    }

    fn page<'a>(
        &self,
        found: &MatchedPair,
        arguments: &RectifyArguments,
        [left, right]: &'a [AnyCow<'_>; 2],
        described: &Value,
    ) -> Page<'a> {
        let names = [&arguments.left, &arguments.right].map(|path| file_name(path));
        let title = format!("{} and {}, rectified", names[0], names[1]);
        let [first, second] = if self.exchanged { [1, 0] } else { [0, 1] };
        let view = MatchesView {
            a: Picture::new(format!("{}, rectified", names[first]), left.view()),
            b: Picture::new(format!("{}, rectified", names[second]), right.view()),
            rows: self.rows(found, arguments.inlier_distance()),
            // The epipolar line of a point is its row.
            b_from_a: Fundamental::new([[0.0; 3], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
                .ok()
                .map(Model::Fundamental),
            truth: None,
            support: tiepoint_report::support(&found.features[0]),
            residual_name: Some("difference of rows"),
            parts: vec![],
            caption: "The cursor's row is drawn in the other picture: what corresponds lies on it."
                .to_owned(),
        };
        let section = Section::new("Rows")
            .assessed(self.assess(found))
            .view(View::Matches(view))
            .figures(described.clone());
        let section = match self.agreement {
            Some(a) => section
                .tile("tie points in both pictures", counted(a.points))
                .tile("difference of rows", format!("{:.2} px", a.rms_vertical_px))
                .tile("disparities", format!("{} to {} px", a.disparities[0], a.disparities[1])),
            None => section,
        };
        (title, self.agreement_summary(), vec![section])
    }

    /// The result as JSON. Values that come from tie points are null if there are none.
    fn describe(&self, found: &MatchedPair, calibrated: bool) -> Outcome<Value> {
        let (size, agreement, assessment) =
            (self.rectification.left.size, self.agreement, self.assess(found));
        let [left, right] = self.views().map(RectifiedView::homography);
        // Affine cameras have none of these values.
        let metric = |value: Value| match self.calibration.projection {
            Projection::Perspective => value,
            Projection::Affine => Value::Null,
        };
        let cameras = describe_focal(&self.rectification, self.source);
        let [_, weak] = focal_lines(&self.rectification, self.source);
        let rectified = json!({
            "width": size.width,
            "height": size.height,
            "calibrated": calibrated,
            "exchanged": self.exchanged,
            "features": found.features.each_ref().map(Features::len),
            "matches": found.tie.matches.len(),
            "modality": found.modality.name(),
            "inliers": agreement.map_or(0, |a| a.points),
            "verdict": assessment.as_ref().map(|assessment| assessment.verdict),
            "reasons": assessment.as_ref().map(|assessment| &assessment.reasons),
            "warnings": Vec::from_iter(self.doubts().into_iter().chain(weak)),
            "rms_vertical_px": agreement.map(|a| a.rms_vertical_px),
            "mean_vertical_px": agreement.map(|a| a.mean_vertical_px),
            "min_disparity": agreement.map(|a| a.disparities[0]),
            "max_disparity": agreement.map(|a| a.disparities[1]),
            "geometry": match self.calibration.projection {
                Projection::Perspective => "perspective",
                Projection::Affine => "affine",
            },
            "focal": metric(json!(self.calibration.focal)),
            "principal": metric(json!(self.calibration.principal)),
            "doffs": metric(json!(self.calibration.doffs)),
            "baseline": metric(json!(self.calibration.baseline)),
            "left_matrix": left?.matrix().as_flattened(),
            "right_matrix": right?.matrix().as_flattened(),
            "q": metric(json!(self.calibration.q().as_flattened())),
        });
        Ok(output::joined([rectified, cameras]))
    }
}

/// A keypoint in a rectified view, with its place, scale and direction there.
fn moved(k: &Keypoint, view: &RectifiedView) -> Option<Keypoint> {
    let (s, c) = libm::sincos(f64::from(k.angle));
    let (from, scale) = ([f64::from(k.x), f64::from(k.y)], f64::from(k.scale));
    let to = view.place(from)?;
    let tip = view.place([from[0] + scale * c, from[1] + scale * s])?;
    let [dx, dy] = [tip[0] - to[0], tip[1] - to[1]];
    Some(Keypoint {
        x: to[0] as f32,
        y: to[1] as f32,
        scale: length([dx, dy]) as f32,
        angle: libm::atan2(dy, dx).rem_euclid(std::f64::consts::TAU) as f32,
        ..*k
    })
}

fn write(
    arguments: &RectifyArguments,
    pair: &RectifiedPair,
    images: &[FileImage; 2],
    context: &Context,
) -> Outcome {
    let outputs = [&arguments.output_left, &arguments.output_right];
    let masks = [&arguments.valid_left, &arguments.valid_right];
    for (i, warped) in images.iter().enumerate() {
        if let Some(path) = outputs[i] {
            let opaque = if arguments.alpha { with_alpha(warped, path)? } else { None };
            let warped = opaque.as_ref().unwrap_or(warped);
            let known = Known { compression: arguments.tiff.compress, ..warped.known() };
            write_picture(path, &warped.image, &known, context)?;
        }
        if let Some(path) = masks[i] {
            write_picture(path, &valid(warped).into(), &arguments.tiff.known(), context)?;
        }
    }
    if let Some(path) = &arguments.output_calibration {
        pair.calibration.write(path)?;
    }
    if let Some(path) = &arguments.draw {
        let [left, right] = images;
        let canvas = |side: &FileImage| Canvas::of(side.seen()?.view(), side.shown.as_ref());
        image::write(path, &rows(&canvas(left)?, &canvas(right)?)?.into_image())?;
    }
    Ok(())
}

/// A picture of whole numbers with alpha; `None` for floats, in which NaN marks the pixels without input.
fn with_alpha(warped: &FileImage, path: &Path) -> Outcome<Option<FileImage>> {
    if matches!(warped.image, AnyImage::F32(_)) {
        return Ok(None);
    }
    if !warped.layout.is_usual() {
        let (path, n) = (path.display(), warped.image.channels());
        return Err(Failure::work(format!("{path}: --alpha: for grey and colour, not for {n} bands")));
    }
    Ok(Some(image::with_alpha(&warped.image, &valid(warped))?.into()))
}

/// 255 where a rectified picture holds data, else 0.
fn valid(warped: &FileImage) -> Image<u8> {
    warped.shown.clone().unwrap_or_else(|| Image::filled(warped.image.size(), 1, 255))
}
