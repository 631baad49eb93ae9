//! The median time of a pair, from pictures in the host's memory to the model; then what each stage takes, those of the
//! host by the wall clock and those of the device by its own. `--sensor` names the second sensor (inverted, folded, speckle
//! or edges).

use crate::timing::{
    Arguments, Outcome, RUNS, all_threads, checked, median, milliseconds, open_gpu, parse_size,
};
use std::time::Instant;
use tiepoint::device::{Processor, Profile};
use tiepoint::options::Named;
use tiepoint::register::{Modality, RegisterOptions, tie_images};
use tiepoint::synth::{Scene, SceneOptions, Sensor, viewpoint};

pub(crate) fn run(mut arguments: Arguments) -> Outcome<()> {
    let check = arguments.flag("--check");
    let sensor = arguments.value::<String>("--sensor")?;
    let sensor = sensor.map_or(Ok(Sensor::default()), |name| Sensor::from_name(&name))?;
    let [size, api] = arguments.words() else {
        return Err("usage: measure cross WIDTHxHEIGHT cuda|opencl [--sensor NAME] [--check]".into());
    };
    let size = parse_size(size)?;
    let gpu = open_gpu(Some(api))?;
    let cpu = all_threads()?;
    let truth = viewpoint(size, 0.7, 1.15, [0.0; 2], [12.0, -7.0])?;
    let scene = SceneOptions::default().with_size(size).with_moving_from_reference(truth).with_seed(5);
    let scene = Scene::<u8>::render(&scene, &cpu)?;
    let pictures = [scene.reference, sensor.shows(&scene.moving, 9)];
    let options = RegisterOptions::default().with_modality(Modality::Cross);
    let tie = |processor: &Processor| {
        tie_images([(&pictures[0]).into(), (&pictures[1]).into()], &options, processor)
    };
    let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
    let start = Instant::now();
    let found = tie(&processor)?;
    let (seconds, matches) = (start.elapsed().as_secs_f64(), found.1.tie.matches.len());
    println!("the first pair: {seconds:.3} s, {matches} tie points");
    processor.take_notes().iter().for_each(|note| println!("{note}"));
    if check {
        checked(|| Ok(tie(&cpu.clone().into())? == found))?;
    }
    let one = milliseconds(median(|| tie(&processor).map(drop))?);
    println!("{size}, SIFT's features and structure: {one}");
    let processor = Processor::with_gpu(cpu.profiled(), gpu);
    processor.profile_gpu(true);
    for _ in 0..RUNS {
        tie(&processor)?;
    }
    for stage in processor.cpu.profile().map(Profile::stages).unwrap_or_default() {
        println!("    {:22} {:.4} ms", stage.name, stage.seconds / RUNS as f64 * 1e3);
    }
    Ok(())
}
