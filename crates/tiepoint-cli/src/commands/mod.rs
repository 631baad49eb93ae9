//! The work: one file for each command.

mod bench;
mod demo;
mod detect;
mod devices;
mod evaluate;
mod features;
mod filter;
mod r#match;
mod matched_pair;
mod rectify;
mod register;
mod stereo;

use crate::arguments::{Arguments, Command};
use crate::context::Context;
use crate::failure::Outcome;

/// Runs the command and prints the profile, if one is wanted, also after a failure.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let command = &arguments.command;
    let has_gpu_form = !matches!(command, Command::Stereo(_) | Command::Devices);
    let context = Context::open(&arguments.global, has_gpu_form)?;
    let outcome = match command {
        Command::Detect(a) => detect::run(a, &context),
        Command::Match(a) => r#match::run(a, &context),
        Command::Register(a) => register::run(a, &context),
        Command::Rectify(a) => rectify::run(a, &context),
        Command::Stereo(a) => stereo::run(a, &context),
        Command::Filter(a) => filter::run(a, &context),
        Command::Evaluate(a) => evaluate::run(a, &context),
        Command::Bench(a) => bench::run(a, &context),
        Command::Devices => devices::run(&context),
        Command::Demo(a) => demo::run(a, &context),
    };
    context.close();
    outcome
}
