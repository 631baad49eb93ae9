//! `tiepoint register`: MOVING warped onto REFERENCE.

use super::matched_pair::{MatchedPair, PairSearch};
use super::report::{self, Page, file_name};
use crate::arguments::register::{Extent, RegisterArguments};
use crate::context::Context;
use crate::draw::{Canvas, overlay};
use crate::failure::{Failure, Outcome};
use crate::input::{Kept, Picture};
use crate::output::{self, Clock, Part, place_of, write_picture};
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::geometry::warp::WarpOptions;
use tiepoint::geometry::{Homography, Model};
use tiepoint::image::{self, FileImage, Image, Known, OutputFormat, Size};
use tiepoint::register::{Warped, fineness, warp_onto};
use tiepoint_report::{Section, View};

pub(crate) fn run(arguments: &RegisterArguments, context: &Context) -> Outcome {
    let mut clock = Clock::start(&context.processor.cpu);
    let search = PairSearch::new(&arguments.pair.detector, &arguments.pair.matching).exchanged();
    // A is MOVING, the second in the command line, and B is REFERENCE, so that the matrix maps MOVING to REFERENCE.
    let paths = [arguments.moving.as_path(), &arguments.reference];
    // REFERENCE is kept only if it is drawn or laid on a larger canvas.
    let drawn = arguments.overlay.is_some() || arguments.draw.is_some() || arguments.pair.report.wanted();
    let is_larger = arguments.canvas != Extent::Reference;
    let kept = if drawn || is_larger { [Kept::Shown; 2] } else { [Kept::File, Kept::Grey] };
    let mut pair = search.run(paths, kept, &arguments.pair.report, &mut clock, context)?;
    if kept[1] == Kept::Grey {
        pair.pictures.iter_mut().for_each(Picture::end_search);
    }
    context.progress.say("warping");
    let laid = clock.time(Part::Compute, || Laid::new(&pair, arguments, context))?;
    context.print_notes();
    let moving = pair.features[0].image;
    if let Some(finer) = pair.tie.b_from_a.and_then(|model| fineness(&model, moving)) {
        context.note(&format!(
            "{} has {finer:.1} times the resolution of {}: it is sampled without averaging, so fine detail aliases; \
             downsample it first, for instance with gdalwarp -r average",
            arguments.moving.display(),
            arguments.reference.display()
        ));
    }
    if let Some((value, count)) = pair.pictures[0].file().and_then(FileImage::unnamed_no_data) {
        context.note(&format!(
            "{}: {count} pixels hold {value}, far from all others, and are mixed with those beside them; if it marks missing data, \
             name it in the file, for instance by gdal_edit.py -a_nodata {value}",
            arguments.moving.display()
        ));
    }
    let is_shown = arguments.overlay.is_some() || arguments.pair.report.wanted();
    let shown = is_shown.then(|| clock.time(Part::Compute, || laid.shown())).transpose()?;
    clock.time(Part::Write, || laid.write(arguments, &pair, shown.as_ref(), context))?;
    let names = json!({
        "reference": arguments.reference.display().to_string(),
        "moving": arguments.moving.display().to_string(),
    });
    let size = laid.file.image.size();
    let result = json!({
        "width": size.width,
        "height": size.height,
        "reference_at": laid.at,
        "covered": laid.covered(),
    });
    let described = output::joined([names, pair.describe(&search, context), result]);
    let between = format!("{} on {}", arguments.moving.display(), arguments.reference.display());
    let covered = 100.0 * laid.covered();
    let (summary, spent) = (pair.summary(), clock.compute() * 1e3);
    context.say(&format!("{between}: {summary}, {covered:.1} % of the reference covered, {spent:.1} ms"));
    pair.assess().iter().for_each(|assessment| context.say(&assessment.to_string()));
    let before = clock.clone();
    report::finish(&arguments.pair.report, &described, clock, context, || {
        page(arguments, &pair, (&laid, shown.as_ref()), &described, &before)
    })
}

fn page<'a>(
    arguments: &RegisterArguments,
    pair: &'a MatchedPair,
    (laid, warped): (&'a Laid, Option<&'a Warped>),
    described: &Value,
    clock: &Clock,
) -> Page<'a> {
    let names = || [&arguments.moving, &arguments.reference].map(|path| file_name(path));
    let [moving, reference] = names();
    let shown = laid.reference.as_ref().map_or(pair.pictures[1].seen(), |reference| &reference.image);
    let view = warped.map(|warped| report::registration_view(pair, warped, (shown, laid.at), names()));
    let section = Section::new("One on the other")
        .assessed(pair.assess())
        .tile("covered", format!("{:.1} %", 100.0 * laid.covered()));
    let section = match view {
        Some(view) => section.view(View::Registration(view)),
        None => section,
    };
    let roles = [format!("{moving} (moving)"), format!("{reference} (reference)")];
    let matches = report::matches_view(pair, roles);
    let matches = report::tiles(Section::new("Matches"), pair, clock)
        .assessed(None)
        .view(View::Matches(matches))
        .figures(described.clone());
    (format!("{moving} on {reference}"), pair.summary(), vec![section, matches])
}

/// MOVING resampled on the canvas.
struct Laid {
    /// The image as it is written; its mask is 0 where MOVING has no pixel with data.
    file: FileImage,
    /// Whether MOVING has pixels without data, which the written image marks in every format.
    has_holes: bool,
    /// The place of REFERENCE's top-left pixel on the canvas.
    at: [f64; 2],
    /// REFERENCE on the canvas, if the canvas is larger than it.
    reference: Option<Warped>,
    /// The size of REFERENCE.
    size: Size,
}

impl Laid {
    fn new(pair: &MatchedPair, arguments: &RegisterArguments, context: &Context) -> Outcome<Self> {
        let model = pair.tie.b_from_a.ok_or_else(|| Failure::work("no model was found"))?;
        let moving = pair.pictures[0].file();
        let moving = moving.ok_or_else(|| Failure::work("the moving image was not kept"))?;
        let (size, has_holes) = (pair.features[1].image, moving.valid()?.is_some());
        let processor = &context.processor;
        let options = WarpOptions::default().with_interpolation(arguments.interpolation);
        let laid = |canvas: Size, model: &Model| {
            moving.resampled(canvas, |image, fill| {
                let warped = warp_onto(image, canvas, model, &options.with_fill(fill), processor)?;
                let Warped { image, covered } = warped.into_host()?;
                Ok((image, covered))
            })
        };
        if arguments.canvas == Extent::Reference {
            return Ok(Self { file: laid(size, &model)?, has_holes, at: [0.0; 2], reference: None, size });
        }
        let map = model.homography().unwrap_or_default();
        let (at, canvas) = union([moving.image.size(), size], &map)?;
        let shift = Homography::new([[1.0, 0.0, at[0]], [0.0, 1.0, at[1]], [0.0, 0.0, 1.0]])?;
        let reference = pair.pictures[1].seen();
        let reference = warp_onto(reference.view(), canvas, &Model::Homography(shift), &options, processor)?;
        let reference = reference.into_host()?;
        let file = laid(canvas, &Model::Homography(shift.compose(&map)))?;
        Ok(Self { file, has_holes, at, reference: Some(reference), size })
    }

    /// The share of REFERENCE that MOVING covers.
    fn covered(&self) -> f64 {
        let Some(shown) = &self.file.shown else { return 1.0 };
        let [left, top] = self.at.map(|v| v as usize);
        let rows = (top..top + self.size.height).map(|y| &shown.row(y)[left..left + self.size.width]);
        let covered: usize =
            rows.map(|row| row.iter().map(|v| u32::from(*v != 0)).sum::<u32>() as usize).sum();
        covered as f64 / self.size.area().max(1) as f64
    }

    fn shown(&self) -> Outcome<Warped> {
        let FileImage { image, shown, .. } = &self.file;
        let covered = shown.clone().unwrap_or_else(|| Image::filled(image.size(), 1, 255));
        Ok(Warped { image: self.file.seen()?.into_image(), covered })
    }

    /// Writes the warped image, with REFERENCE's place on the map if it has one and the format can hold it.
    fn write_warped(&self, path: &Path, arguments: &RegisterArguments, context: &Context) -> Outcome {
        let reference = arguments.reference.as_path();
        let (shown, named) = (path.display(), reference.display());
        let place = place_of(reference, context)?.map(|place| place.shifted(self.at));
        let is_tiff = OutputFormat::of(path)? == OutputFormat::Tiff;
        let has_transform = place.as_ref().is_some_and(|place| place.transform().is_some());
        let beside = has_transform && path.extension().is_some();
        let holds = is_tiff || beside;
        if place.is_some() && !is_tiff {
            let world =
                if beside { "; a world file beside it does, without the coordinate system" } else { "" };
            context
                .note(&format!("{shown} does not hold the place of {named} on the map{world}; a .tif would"));
        }
        let known = self.file.known();
        // A fill value other than 0 around the picture would look like data in a format that cannot record it.
        let is_filled = known.no_data.is_some_and(|value| value != 0.0);
        let valid = known.valid.filter(|_| is_tiff || is_filled || self.has_holes);
        let known = Known {
            place: place.as_ref().filter(|_| holds),
            valid,
            compression: arguments.tiff.compress,
            ..known
        };
        write_picture(path, &self.file.image, &known, context)
    }

    fn write(
        &self,
        arguments: &RegisterArguments,
        pair: &MatchedPair,
        warped: Option<&Warped>,
        context: &Context,
    ) -> Outcome {
        if let Some(path) = &arguments.output {
            self.write_warped(path, arguments, context)?;
        }
        if let Some((path, warped)) = arguments.overlay.as_ref().zip(warped) {
            let (own, seen) = match &self.reference {
                Some(laid) => (&laid.image, Some(&laid.covered)),
                None => (pair.pictures[1].seen(), None),
            };
            let moved = Canvas::of(&warped.image, Some(&warped.covered))?;
            let reference = Canvas::of(own, seen)?;
            let picture = overlay(reference, seen, &moved, &warped.covered, arguments.blend);
            image::write(path, &picture.into_image())?;
        }
        pair.write(arguments.output_model.as_ref(), arguments.draw.as_ref())
    }
}

/// The most pixels of a canvas for both pictures, as a multiple of their own.
const LARGEST_UNION: f64 = 8.0;

/// The canvas that holds both pictures: the place of REFERENCE on it, and its size.
fn union([moving, reference]: [Size; 2], reference_from_moving: &Homography) -> Outcome<([f64; 2], Size)> {
    let ends = |size: Size| [size.width, size.height].map(|n| n.saturating_sub(1) as f64);
    let [right, bottom] = ends(moving);
    let corners = [[0.0, 0.0], [right, 0.0], [right, bottom], [0.0, bottom]];
    let [_, _, third] = reference_from_moving.matrix();
    let side = |[x, y]: [f64; 2]| third[0] * x + third[1] * y + third[2];
    let before_horizon = corners.iter().all(|corner| side(*corner) * side(corners[0]) > 0.0);
    let placed = corners.iter().map(|corner| reference_from_moving.apply(*corner));
    let placed: Option<Vec<[f64; 2]>> = placed.collect();
    let spans = placed.filter(|_| before_horizon).map(|placed| {
        [0, 1].map(|c| {
            let own = ends(reference)[c];
            placed.iter().fold([0.0, own], |[low, high], p| [p[c].floor().min(low), p[c].ceil().max(high)])
        })
    });
    let most = LARGEST_UNION * (moving.area() + reference.area()) as f64;
    let area = |spans: &[[f64; 2]; 2]| spans.iter().map(|[low, high]| high - low + 1.0).product::<f64>();
    let [x, y] = spans.filter(|spans| area(spans) <= most).ok_or_else(|| {
        Failure::work(
            "--canvas union: the second image is seen so obliquely that no picture of sensible size holds it whole; \
             leave --canvas out",
        )
    })?;
    let size = Size::new((x[1] - x[0]) as usize + 1, (y[1] - y[0]) as usize + 1);
    Ok(([-x[0], -y[0]], size))
}
