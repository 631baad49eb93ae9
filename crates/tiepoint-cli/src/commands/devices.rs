//! `tiepoint devices`: what can run here.

use crate::failure::Outcome;
use crate::report::Object;
use crate::session::Session;

pub(crate) fn run(session: &Session) -> Outcome {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let simd = session.cpu.level_name();
    session.say(&format!("cpu        {cores} cores, {simd}; chosen by --device auto"))?;
    session.say("cuda       not in this version")?;
    session.say("opencl     not in this version")?;
    session.report(|| {
        let cpu = Object::new().text("device", "cpu").count("cores", cores).text("simd", &simd);
        Object::new().text("auto", "cpu").objects("devices", &[cpu])
    })
}
