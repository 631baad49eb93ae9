//! Aerial photographs of one terrain, and the truth about them.

use crate::arguments::demo::DemoArguments;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use serde_json::{Value, json};
use std::io::Write;
use tiepoint::files::write_atomically;
use tiepoint::image::{self, AnyImage};
use tiepoint::synth::{AerialBlock, AerialOptions};

pub(super) fn run(photographs: usize, arguments: &DemoArguments, context: &Context) -> Outcome {
    let options = AerialOptions::default().with_photographs(photographs);
    let block = AerialBlock::new(options.with_size(arguments.size).with_seed(arguments.seed))?;
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder).map_err(|e| Failure::work(format!("{}: {e}", folder.display())))?;
    let name = |i: usize| format!("aerial_{:05}.png", i + 1);
    for i in 0..photographs {
        context.progress.say(&format!("{}/{photographs} {}", i + 1, name(i)));
        let photograph: AnyImage = block.photograph::<u8>(i, &context.processor.cpu)?.into();
        image::write(folder.join(name(i)), &photograph)?;
    }
    let cameras = block.cameras().iter().enumerate().map(|(i, camera)| {
        json!({
            "image": name(i),
            "centre": camera.centre,
            "rotation": camera.rotation,
            "focal_px": camera.focal_px,
            "principal": camera.principal,
        })
    });
    let cameras: Vec<Value> = cameras.collect();
    let pairs = (0..photographs).flat_map(|a| (a + 1..photographs).map(move |b| (a, b)));
    // The share that both show, measured in either photograph; the smaller counts.
    let shared =
        pairs.map(|(a, b)| (a, b, block.shared(a, b).min(block.shared(b, a)))).filter(|(.., s)| *s > 0.0);
    let shared: Vec<Value> = shared.map(|(a, b, s)| json!([name(a), name(b), s])).collect();
    let truth = json!({ "cameras": cameras, "shared": shared });
    write_atomically(folder.join("cameras.json"), |out| writeln!(out, "{truth}"))?;
    context.say(&format!("{photographs} aerial photographs in {}", folder.display()));
    context.report(|| json!({ "folder": folder.display().to_string(), "photographs": photographs }));
    Ok(())
}
