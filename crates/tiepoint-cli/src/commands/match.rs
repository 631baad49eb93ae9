//! `tiepoint match`: verified tie points of two images.

use super::matched_pair::PairSearch;
use super::report::{self, file_name};
use crate::arguments::r#match::MatchArguments;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::Kept;
use crate::output::{Clock, Part, joined, place_of};
use serde_json::json;
use std::path::{Path, PathBuf};
use tiepoint::matching::files::{MatchFormat, MatchedImages, write_matches};
use tiepoint::register::Modality;
use tiepoint_report::{Section, View};

pub(crate) fn run(arguments: &MatchArguments, context: &Context) -> Outcome {
    let mut clock = Clock::start(&context.processor.cpu);
    let format = arguments.format()?;
    let stored = format.is_some_and(MatchFormat::is_of_stored_pixels);
    let search = PairSearch::new(&arguments.pair.detector, &arguments.pair.matching).as_stored(stored);
    let (paths, page_of) = ([arguments.a.as_path(), &arguments.b], &arguments.pair.report);
    let kept = [if arguments.draw.is_some() { Kept::Shown } else { Kept::Grey }; 2];
    let pair = search.run(paths, kept, page_of, &mut clock, context)?;
    if format == Some(MatchFormat::Colmap) && (pair.views > 1 || pair.modality == Modality::Cross) {
        return Err(Failure::work(format!(
            "COLMAP's format stores indices of the features that `detect` finds, but these pictures were tied by {}; \
             choose another --format, or allow features alone: --views 1 --modality same",
            if pair.views > 1 { "simulated views" } else { "their structure" }
        )));
    }
    let turned = pair.pictures.iter().zip(paths).filter(|(picture, _)| stored && picture.stored);
    for (_, path) in turned {
        context.note(&format!(
            "{}: matches and model are of the pixels as they are stored, as COLMAP, QGIS and GDAL want them; its orientation \
             would turn it",
            path.display()
        ));
    }
    let [a, b] = paths.map(|path| path.display().to_string());
    let described = joined([json!({ "a": a, "b": b }), pair.describe(&search, context)]);
    clock.time(Part::Write, || -> Outcome {
        if let Some(path) = &arguments.output {
            let names = names_of([&arguments.a, &arguments.b], format);
            let place = |path, placed| if placed { place_of(path, context) } else { Ok(None) };
            let is_qgis = format == Some(MatchFormat::Qgis);
            let places = [
                place(&arguments.a, is_qgis)?,
                place(&arguments.b, is_qgis || format == Some(MatchFormat::Vrt))?,
            ];
            let lacks = match &places[1] {
                Some(of) if of.transform().is_none() => {
                    Some("it lies on the map by control points alone (gdalwarp lays it there)")
                }
                Some(of) if !of.has_system() => {
                    Some("it lies on the map by a world file, which names no coordinate system")
                }
                Some(of) if of.epsg().is_none() => Some("its coordinate system has no EPSG number"),
                _ => None,
            };
            if let Some(lacks) = lacks {
                let (b, path) = (arguments.b.display(), path.display());
                let in_pixels = match format {
                    Some(MatchFormat::Qgis) => {
                        ", and its mapX and mapY are pixels of that picture, not places on the map"
                    }
                    _ => "",
                };
                context.note(&format!("{b}: {lacks}, so {path} names none{in_pixels}"));
            }
            let images = MatchedImages {
                names: names.each_ref().map(String::as_str),
                places: places.each_ref().map(Option::as_ref),
                sizes: Some(pair.features.each_ref().map(|features| features.image)),
                model: pair.tie.b_from_a,
            };
            write_matches(path, format, images, &pair.rows())?;
        }
        pair.write(arguments.output_model.as_ref(), arguments.draw.as_ref())
    })?;
    let between = format!("{} - {}", arguments.a.display(), arguments.b.display());
    context.say(&format!("{between}: {}, {:.1} ms", pair.summary(), clock.compute() * 1e3));
    pair.assess().iter().for_each(|assessment| context.say(&assessment.to_string()));
    if let Some(model) = &pair.tie.b_from_a {
        context.say(&model.to_string());
    }
    let before = clock.clone();
    report::finish(&arguments.pair.report, &described, clock, context, || {
        let names = paths.map(file_name);
        let title = format!("{} and {}", names[0], names[1]);
        let view = report::matches_view(&pair, names);
        let section = report::tiles(Section::new("Matches"), &pair, &before).view(View::Matches(view));
        (title, pair.summary(), vec![section.figures(described.clone())])
    })
}

/// The names of the images in a file of matches: their paths. For COLMAP, which names images relative to a folder,
/// these are relative to the deepest folder that holds both.
fn names_of(paths: [&PathBuf; 2], format: Option<MatchFormat>) -> [String; 2] {
    let common = match format {
        Some(MatchFormat::Colmap) => {
            let folders = paths.map(|path| path.parent().unwrap_or(Path::new("")).components());
            let [a, b] = folders;
            a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
        }
        _ => PathBuf::new(),
    };
    paths.map(|path| path.strip_prefix(&common).unwrap_or(path).display().to_string())
}
