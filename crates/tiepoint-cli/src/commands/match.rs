//! `tiepoint match`: verified tie points of two images.

use super::matched_pair::PairSearch;
use crate::arguments::r#match::MatchArguments;
use crate::context::Context;
use crate::failure::Outcome;
use crate::output::{self, Clock, Part};
use serde_json::json;
use tiepoint::feature::files::write_matches;

pub(crate) fn run(arguments: &MatchArguments, context: &Context) -> Outcome {
    arguments.check()?;
    let mut clock = Clock::start(&context.processor.cpu);
    let search = PairSearch { detector: &arguments.detector, matching: &arguments.matching };
    let colour = arguments.draw.is_some();
    let pair = search.run([&arguments.a, &arguments.b], colour, &mut clock, context)?;
    clock.time(Part::Write, || -> Outcome {
        if let Some(path) = &arguments.output {
            let [a, b] = [&arguments.a, &arguments.b].map(|p| p.display().to_string());
            write_matches(path, [&a, &b], &pair.rows())?;
        }
        arguments.draw.as_deref().map_or(Ok(()), |path| pair.draw(path))
    })?;
    let between = format!("{} - {}", arguments.a.display(), arguments.b.display());
    context.say(&format!("{between}: {}, {:.1} ms", pair.summary(), clock.compute() * 1e3))?;
    if let Some(model) = &pair.tie.b_from_a {
        context.say(&model.to_string())?;
    }
    context.report(|| {
        let names = json!({ "a": arguments.a.display().to_string(), "b": arguments.b.display().to_string() });
        let seconds = json!({ "seconds": clock.seconds(&context.processor.cpu) });
        output::joined([names, pair.describe(&search, context), seconds])
    })
}
