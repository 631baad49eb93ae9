//! One scene by several sensors, registered by its structure.

use crate::context::Context;
use crate::failure::Outcome;
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::evaluate::corner_error;
use tiepoint::image::{self, AnyImage, Size};
use tiepoint::options::{Choice, Named};
use tiepoint::register::{RegisterOptions, locate};
use tiepoint::synth::{Scene, SceneOptions, Sensor, viewpoint};
use tiepoint_report::{Section, counted};

const SIZE: Size = Size::new(512, 384);

/// What one sensor shows, and how well it was registered.
#[derive(Debug)]
pub(super) struct Seen {
    sensor: &'static Choice<Sensor>,
    /// The number of places that were tied.
    places: usize,
    corner_error: f64,
}

impl Seen {
    pub(super) fn describe(&self) -> Value {
        json!({ "sensor": self.sensor.name, "places": self.places, "corner_error": self.corner_error })
    }
}

/// Draws the pictures, `sensors-camera.png` and one for each sensor, and finds where each lies on the first.
pub(super) fn run(folder: &Path, seed: u64, context: &Context) -> Outcome<Vec<Seen>> {
    let truth = viewpoint(SIZE, 0.6, 1.2, [0.0; 2], [14.0, -9.0])?;
    let options =
        SceneOptions::default().with_size(SIZE).with_moving_from_reference(truth).with_seed(seed + 2);
    let scene = Scene::<u8>::render(&options, &context.processor.cpu)?;
    let camera = AnyImage::U8(scene.reference);
    image::write(folder.join("sensors-camera.png"), &camera)?;
    let mut seen = Vec::new();
    for choice in Sensor::ALL {
        context.progress.say(&format!("a scene by another sensor: {}", choice.name));
        let picture = AnyImage::U8(choice.value.shows(&scene.moving, seed));
        image::write(folder.join(format!("sensors-{}.png", choice.name)), &picture)?;
        let found = locate(&picture, &camera, &RegisterOptions::default(), &context.processor)?;
        let model = found.reference_from_moving.homography().unwrap_or_default();
        let corner_error = corner_error(&model, &truth, SIZE);
        let one = Seen { sensor: choice, places: found.tie.matches.len(), corner_error };
        context.say(&format!(
            "sensors {:<10}{:>6} places, corners off by {corner_error:.2} px",
            choice.name, one.places
        ));
        seen.push(one);
    }
    Ok(seen)
}

pub(super) fn section<'a>(seen: &[Seen]) -> Section<'a> {
    let head = ["sensor", "what it shows", "places", "corner error"].map(str::to_owned).to_vec();
    let row = |one: &Seen| {
        let error = format!("{:.2} px", one.corner_error);
        vec![one.sensor.name.to_owned(), one.sensor.help.to_owned(), counted(one.places), error]
    };
    Section::new("One scene by several sensors")
        .text(
            "A scene, and the same scene turned, nearer, and with another brightness: sensors-camera.png and one \
             picture for each sensor. Features of brightness agree on nothing, so the pictures are registered by their \
             structure: where edges are and how they run.",
        )
        .table(std::iter::once(head).chain(seen.iter().map(row)).collect())
}
