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
use crate::arguments::{Arguments, Command};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::be_verbose;

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    be_verbose(arguments.global.verbose);
    check(&arguments.command)?;
    let global = &arguments.global;
    tiepoint::files::wait_for_disk(!global.no_sync);
    // On the CPU: commands that have no GPU form.
    let (on_device, on_cpu) = (|| Context::open(global, true), || Context::open(global, false));
    match &arguments.command {
        Command::Detect(a) => within(&on_device()?, |context| detect::run(a, context)),
        Command::Match(a) => within(&on_device()?, |context| r#match::run(a, context)),
        Command::Register(a) => within(&on_device()?, |context| register::run(a, context)),
        Command::Rectify(a) => within(&on_device()?, |context| rectify::run(a, context)),
        Command::Stereo(a) => within(&on_device()?, |context| stereo::run(a, context)),
        Command::Filter(a) => within(&on_device()?, |context| filter::run(a, context)),
        Command::Evaluate(a) => within(&on_device()?, |context| evaluate::run(a, context)),
        Command::Collect(a) => within(&Context::open_several(global)?, |context| collect::run(a, context))
            .map_err(Failure::of_resumable),
        Command::Report(a) => within(&on_cpu()?, |context| report::compare(a, context)),
        Command::Bench(a) => within(&on_device()?, |context| bench::run(a, context)),
        Command::Devices => within(&on_cpu()?, devices::run),
        Command::Demo(a) => within(&on_device()?, |context| demo::run(a, context)),
        Command::Completions { shell } => completions::run(*shell),
        Command::Man { folder } => completions::write_manual(folder),
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
        | Command::Completions { .. }
        | Command::Man { .. } => Ok(()),
    }
}

/// Runs a command, then prints the profile if one was asked for, even after a failure.
fn within(context: &Context, command: impl FnOnce(&Context) -> Outcome) -> Outcome {
    let outcome = command(context);
    context.close();
    outcome
}
