//! The work: one file for each command.

mod bench;
mod collect;
mod completions;
mod demo;
mod detect;
mod devices;
mod evaluate;
mod filter;
mod r#match;
mod matched_pair;
mod ordered;
mod rectified;
mod rectify;
mod register;
mod report;
mod stereo;

use crate::arguments::evaluate::EvaluateArguments;
use crate::arguments::report::check_page;
use crate::arguments::{Arguments, Command, GlobalArguments};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::be_verbose;

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    be_verbose(arguments.global.verbose);
    check(&arguments.command)?;
    let global = &arguments.global;
    tiepoint::files::wait_for_disk(!global.no_sync);
    match &arguments.command {
        Command::Detect(a) => on_device(global, |context| detect::run(a, context)),
        Command::Match(a) => on_device(global, |context| r#match::run(a, context)),
        Command::Register(a) => on_device(global, |context| register::run(a, context)),
        Command::Rectify(a) => on_device(global, |context| rectify::run(a, context)),
        Command::Stereo(a) => on_device(global, |context| stereo::run(a, context)),
        Command::Filter(a) => on_device(global, |context| filter::run(a, context)),
        Command::Evaluate(a) => on_device(global, |context| evaluate::run(a, context)),
        Command::Collect(a) => {
            in_context(&Context::open_several(global)?, |context| collect::run(a, context))
                .map_err(Failure::of_resumable)
        }
        Command::Report(a) => on_cpu(global, |context| report::compare(a, context)),
        Command::Bench(a) => on_device(global, |context| bench::run(a, context)),
        Command::Devices => on_cpu(global, devices::run),
        Command::Demo(a) => on_device(global, |context| demo::run(a, context)),
        Command::Completions(a) => completions::run(a),
        Command::Man(a) => completions::write_manual(a),
    }
}

/// Fails, before a device is opened, for arguments that are wrong whatever the files hold.
fn check(command: &Command) -> Outcome {
    match command {
        Command::Detect(a) => a.detector.detector().map(drop),
        Command::Match(a) => a.check(),
        Command::Register(a) => a.check(),
        Command::Rectify(a) => a.check(),
        Command::Filter(a) => a.check(),
        Command::Evaluate(EvaluateArguments::Disparity(a)) => {
            a.scoring().and_then(|_| a.truth_reading().map(drop))
        }
        Command::Evaluate(EvaluateArguments::Homography(a)) => a.files().map(drop),
        Command::Collect(a) => a.check(),
        Command::Stereo(a) => a.check(),
        Command::Report(a) => check_page(&a.output),
        Command::Bench(_)
        | Command::Devices
        | Command::Demo(_)
        | Command::Completions(_)
        | Command::Man(_) => Ok(()),
    }
}

/// Runs a command on the device asked for.
fn on_device(global: &GlobalArguments, command: impl FnOnce(&Context) -> Outcome) -> Outcome {
    in_context(&Context::open(global, true)?, command)
}

/// Runs a command that has no GPU form.
fn on_cpu(global: &GlobalArguments, command: impl FnOnce(&Context) -> Outcome) -> Outcome {
    in_context(&Context::open(global, false)?, command)
}

/// Runs a command, then prints the profile if one was asked for, even after a failure.
fn in_context(context: &Context, command: impl FnOnce(&Context) -> Outcome) -> Outcome {
    let outcome = command(context);
    context.close();
    outcome
}
