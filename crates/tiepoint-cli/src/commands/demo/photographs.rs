//! The photographs of the demo: a bookshelf from two places, and a cup of coffee registered with a copy of itself.

use crate::commands::matched_pair::MatchedPair;
use crate::commands::report::{self, matches_view, registration_view};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::Picture;
use crate::output::Clock;
use std::path::Path;
use tiepoint::evaluate::corner_error;
use tiepoint::feature::Detector;
use tiepoint::geometry::calibration::RectifiedCalibration;
use tiepoint::geometry::rectify::{OutputFrame, RectifiedView, SelfCalibrationOptions, from_tie_points};
use tiepoint::geometry::warp::{Interpolation, WarpOptions};
use tiepoint::geometry::{Homography, Model, ModelKind};
use tiepoint::image::{self, AnyCow, AnyImage, ReadOptions};
use tiepoint::register::{TieOptions, Warped, tie_points, warp_onto};
use tiepoint::stereo::{Masks, Stereo, StereoOptions, StereoResult};
use tiepoint::synth::viewpoint;
use tiepoint_report::{DisparityView, Section, View};

/// The names of the files, with their bytes.
const BOOKSHELF: [(&str, &[u8]); 2] = [
    ("bookshelf-left.jpg", include_bytes!("photographs/bookshelf-left.jpg")),
    ("bookshelf-right.jpg", include_bytes!("photographs/bookshelf-right.jpg")),
];
const COFFEE: (&str, &[u8]) = ("coffee.jpg", include_bytes!("photographs/coffee.jpg"));

/// Fails if the folder has files of these names, or a page, that no earlier demo wrote.
pub(super) fn check_folder(folder: &Path) -> Outcome {
    let read = |name: &str| std::fs::read(folder.join(name)).ok();
    let other =
        BOOKSHELF.into_iter().chain([COFFEE]).find(|(name, bytes)| read(name).is_some_and(|b| b != *bytes));
    let is_page = |bytes: &[u8]| bytes.windows(8).any(|part| part.eq_ignore_ascii_case(b"tiepoint"));
    let page = read("index.html").filter(|bytes| !is_page(bytes)).map(|_| "index.html");
    match other.map(|(name, _)| name).or(page) {
        Some(name) => Err(Failure::usage(format!(
            "{}: the demo writes a file of this name, and this one is not from a demo; choose another folder",
            folder.join(name).display()
        ))),
        None => Ok(()),
    }
}

/// Writes a photograph into the folder, so that commands can be tried on it, and decodes it.
fn photograph(folder: &Path, (name, bytes): (&str, &[u8])) -> Outcome<AnyImage> {
    tiepoint::files::write_atomically(folder.join(name), |out| std::io::Write::write_all(out, bytes))?;
    Ok(image::decode(bytes, name, &ReadOptions::default())?)
}

/// Features of two pictures and their matches.
pub(super) fn matched(
    images: [AnyImage; 2],
    detector: &Detector,
    options: &TieOptions,
    context: &Context,
    clock: &mut Clock,
) -> Outcome<MatchedPair> {
    let processor = &context.processor;
    let [a, b] = images.map(|image| -> Outcome<Picture> {
        let grey = image::grey(image.view(), &processor.cpu).map(AnyCow::into_image)?;
        Ok(Picture::of(image, grey))
    });
    let pictures = [a?, b?];
    clock.time(crate::output::Part::Compute, || {
        let [a, b] = pictures.each_ref().map(|p| detector.detect(p.grey().view(), None, processor));
        let features = [a?, b?];
        let tie = tie_points(&features[0], &features[1], options, processor)?;
        Ok(MatchedPair::new(pictures, features, tie, options))
    })
}

/// The default detector and matching.
fn of_model(model: ModelKind) -> (Detector, TieOptions) {
    (Detector::default(), TieOptions::default().with_model(Some(model)))
}

/// The bookshelf: matched, rectified, and its depth.
#[derive(Debug)]
pub(super) struct Bookshelf {
    pair: MatchedPair,
    clock: Clock,
    /// The rectified pictures, the left one first.
    rectified: [AnyImage; 2],
    /// Which photograph each of them shows.
    sources: [usize; 2],
    calibration: RectifiedCalibration,
    stereo: StereoResult,
}

impl Bookshelf {
    pub(super) fn compute(folder: &Path, context: &Context) -> Outcome<Self> {
        context.progress.say("a bookshelf");
        let cpu = &context.processor.cpu;
        let mut clock = Clock::start(cpu);
        let [left, right] = BOOKSHELF.map(|file| photograph(folder, file));
        let (detector, options) = of_model(ModelKind::Fundamental);
        let pair = matched([left?, right?], &detector, &options, context, &mut clock)?;
        let none = || Failure::work("the bookshelf gave no epipolar geometry");
        let keypoints = pair.features.each_ref().map(|features| features.keypoints.as_slice());
        let ties = pair.tie.epipolar(keypoints).ok_or_else(none)?;
        let sizes = pair.features.each_ref().map(|f| f.image);
        let options = SelfCalibrationOptions::default();
        let found = from_tie_points(&ties, sizes, &options, OutputFrame::Valid, cpu)?;
        let sources = if found.exchanged { [1, 0] } else { [0, 1] };
        let warped = |view: &RectifiedView, source: usize| -> Outcome<AnyImage> {
            let AnyImage::U8(image) = pair.pictures[source].grey() else {
                return Err(Failure::work("the bookshelf is of bytes"));
            };
            Ok(view.warp(image.view(), &WarpOptions::default(), cpu)?.into())
        };
        let views = [&found.rectification.left, &found.rectification.right];
        let rectified = [warped(views[0], sources[0])?, warped(views[1], sources[1])?];
        let [low, high] = found.agreement.disparities;
        let options = StereoOptions::default()
            .with_min_disparity(low as i32)
            .with_disparities((high - low) as usize + 1)
            .with_confidence(true)
            .with_reasons(true);
        let [a, b] = rectified.each_ref().map(AnyImage::view);
        let stereo = Stereo::new(options)?.compute(a, b, Masks::default(), &context.processor)?;
        let calibration = found.rectification.calibration();
        Ok(Self { pair, clock, rectified, sources, calibration, stereo })
    }

    pub(super) fn sections(&self) -> Vec<Section<'_>> {
        let names = BOOKSHELF.map(|(name, _)| name.to_owned());
        let matches = report::tiles(Section::new("A bookshelf from two places"), &self.pair, &self.clock)
            .text(
                "Each dot is a point that was found in both photographs by what surrounds it. The colour says how far \
                 it is from what the geometry of two cameras allows. Move over a dot to see both patches as their \
                 descriptors saw them; elsewhere the line shows where in the other photograph the point must lie.",
            )
            .command("tiepoint match bookshelf-left.jpg bookshelf-right.jpg --model fundamental --report matches.html")
            .view(View::Matches(matches_view(&self.pair, names)));
        let [a, b] = &self.rectified;
        let name = |i: usize| format!("{}, rectified", BOOKSHELF[self.sources[i]].0);
        let valid = self.stereo.disparity.data().iter().filter(|d| d.is_finite()).count();
        let share = valid as f64 / self.stereo.disparity.data().len().max(1) as f64;
        let depth = DisparityView {
            pair: Some([
                tiepoint_report::Picture::new(name(0), a),
                tiepoint_report::Picture::new(name(1), b),
            ]),
            calibration: Some(self.calibration),
            ..report::disparity_view(&self.stereo)
        };
        let depth = Section::new("How deep it is")
            .view(View::Disparity(depth))
            .text(
                "The matches alone tell how the two cameras stood. Both photographs are turned so that what corresponds \
                 lies in one row; then every pixel is matched. Turn the points to walk around the shelf.",
            )
            .command("tiepoint rectify bookshelf-left.jpg bookshelf-right.jpg --crop valid --output-left l.png --output-right r.png --output-calibration pair.txt")
            .command("tiepoint stereo l.png r.png --calibration pair.txt --report depth.html")
            .tile("pixels with a disparity", format!("{:.1} %", 100.0 * share));
        vec![matches, depth]
    }
}

/// A cup of coffee, and the same picture turned, nearer and darker, by a known homography.
#[derive(Debug)]
pub(super) struct Coffee {
    pair: MatchedPair,
    clock: Clock,
    warped: Warped,
    corner_error: f64,
}

impl Coffee {
    pub(super) fn compute(folder: &Path, context: &Context) -> Outcome<Self> {
        context.progress.say("a cup of coffee");
        let processor = &context.processor;
        let mut clock = Clock::start(&processor.cpu);
        let reference = photograph(folder, COFFEE)?;
        let size = reference.size();
        let moving_from_reference = viewpoint(size, 0.3, 1.15, [0.12, -0.08], [18.0, -12.0])?;
        let truth = Model::Homography(moving_from_reference);
        let lanczos = WarpOptions::default().with_interpolation(Interpolation::Lanczos3);
        let moving = warp_onto(reference.view(), size, &truth, &lanczos, processor)?.image.into_host()?;
        let moving = darker(moving);
        image::write(folder.join("coffee-turned.png"), &moving)?;
        let (detector, options) = of_model(ModelKind::Homography);
        let pair = matched([moving, reference], &detector, &options, context, &mut clock)?;
        let model = pair.tie.b_from_a.ok_or_else(|| Failure::work("the coffee gave no homography"))?;
        let picture = pair.pictures[0].seen();
        let warped =
            warp_onto(picture.view(), size, &model, &WarpOptions::default(), processor)?.into_host()?;
        let true_map = moving_from_reference.inverse().ok_or_else(|| Failure::work("no inverse"))?;
        let found = model.homography().unwrap_or_else(Homography::default);
        let corner_error = corner_error(&found, &true_map, size);
        Ok(Self { pair, clock, warped, corner_error })
    }

    pub(super) fn section(&self) -> Section<'_> {
        let names = ["coffee-turned.png".to_owned(), COFFEE.0.to_owned()];
        report::tiles(Section::new("One picture on the other"), &self.pair, &self.clock)
            .text(
                "The second picture is the first, turned, nearer and darker. Its place was found again from the matches \
                 alone. Drag the edge, let the two blink, or look at what is left when one is subtracted from the other.",
            )
            .command("tiepoint register coffee.jpg coffee-turned.png --report registration.html")
            .tile("corners off by", format!("{:.3} px", self.corner_error))
            .view(View::Registration(registration_view(
                &self.pair,
                &self.warped,
                (self.pair.pictures[1].seen(), [0.0; 2]),
                names,
            )))
    }
}

/// Three quarters as bright.
fn darker(image: AnyImage) -> AnyImage {
    match image {
        AnyImage::U8(mut i) => {
            i.data_mut().iter_mut().for_each(|v| *v = (u16::from(*v) * 3 / 4) as u8);
            i.into()
        }
        other => other,
    }
}
