//! `tiepoint devices`: the devices that can compute here.

use crate::context::Context;
use crate::failure::Outcome;
use serde_json::{Value, json};
use tiepoint::device::Device;
use tiepoint::device::gpu::{Api, Gpu, Info, devices};

pub(crate) fn run(context: &Context) -> Outcome {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let simd = context.processor.cpu.level_name();
    let (mut gpus, mut refused) = (Vec::new(), Vec::new());
    for api in [Api::Cuda, Api::OpenCl] {
        match devices(api) {
            Ok(listed) => {
                gpus.extend(listed.found);
                refused.extend(listed.refused);
            }
            Err(e) => refused.push(e),
        }
    }
    // A device that is listed may still refuse to be opened.
    let auto = Device::Auto.open(1)?;
    let first = auto.gpu().map(Gpu::info);
    let chosen = |is: bool| if is { "  (auto)" } else { "" };
    context.say(&format!("cpu  {cores} cores, {simd}{}", chosen(first.is_none())));
    for gpu in &gpus {
        context.say(&format!("{gpu}{}", chosen(Some(gpu) == first)));
    }
    let mut missing = auto.take_passed_over();
    let not_listed = refused.iter().map(ToString::to_string);
    missing.extend(not_listed.filter(|reason| !missing.contains(reason)).collect::<Vec<_>>());
    missing.iter().for_each(|reason| context.say(reason));
    context.report(|| {
        let cpu = json!({ "device": "cpu", "cores": cores, "simd": simd });
        let listed: Vec<Value> = std::iter::once(cpu).chain(gpus.iter().map(describe)).collect();
        let auto = first.map_or_else(|| "cpu".into(), |gpu| format!("{}:{}", gpu.api, gpu.index));
        json!({ "auto": auto, "devices": listed })
    });
    Ok(())
}

fn describe(gpu: &Info) -> Value {
    json!({
        "device": format!("{}:{}", gpu.api, gpu.index),
        "name": gpu.name,
        "driver": gpu.driver,
        "memory": gpu.memory,
        "units": gpu.units,
    })
}
