//! One file for each command.

mod bench;
mod demo;
mod detect;
mod devices;
mod evaluate;
mod filter;
mod matching;
mod rectify;
mod register;
mod stereo;

pub(crate) use stereo::StereoCommand;

use crate::arguments::{Arguments, Command};
use crate::failure::Outcome;
use crate::session::Session;

/// Runs the command and prints the profile, if one is wanted, also after a failure.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let command = &arguments.command;
    let has_gpu_form = !matches!(command, Command::Stereo(_) | Command::Devices);
    let session = Session::open(&arguments.common, has_gpu_form)?;
    let outcome = match command {
        Command::Detect(a) => detect::run(a, &session),
        Command::Match(a) => matching::run(a, &session),
        Command::Register(a) => register::run(a, &session),
        Command::Rectify(a) => rectify::run(a, &session),
        Command::Stereo(a) => stereo::run(a, &session),
        Command::Filter(a) => filter::run(a, &session),
        Command::Evaluate(a) => evaluate::run(a, &session),
        Command::Bench(a) => bench::run(a, &session),
        Command::Devices => devices::run(&session),
        Command::Demo(a) => demo::run(a, &session),
    };
    session.close();
    outcome
}
