//! `tiepoint match`: verified tie points of two images.

use super::matched_pair::{MatchedPair, PairSearch};
use super::report::{self, Page, file_name};
use crate::arguments::r#match::MatchArguments;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Clock, Part};
use serde_json::{Value, json};
use tiepoint::matching::files::write_matches;
use tiepoint_report::{Section, View};

pub(crate) fn run(arguments: &MatchArguments, context: &Context) -> Outcome {
    let mut clock = Clock::start(&context.processor.cpu);
    let search = PairSearch::new(&arguments.pair.detector, &arguments.pair.matching);
    let colour = arguments.draw.is_some() || arguments.pair.report.wanted();
    let found = search.find([&arguments.a, &arguments.b], colour, &mut clock, context)?;
    let tied = match search.tie(&found, &mut clock, context) {
        Ok(tied) => tied,
        // When nothing agrees, the page shows why.
        Err(Failure::Work(message)) if arguments.pair.report.wanted() => {
            let tie = search.unverified(&found, context)?;
            let pair = found.with(tie);
            let lead = format!("{message}. What is shown are matches that no model has confirmed.");
            let described = describe(arguments, &pair, &search, context);
            report::write(&arguments.pair.report, || page(arguments, &pair, lead, &described, &clock))?;
            return Err(Failure::Work(message));
        }
        Err(other) => return Err(other),
    };
    let pair = found.tied(tied);
    let described = describe(arguments, &pair, &search, context);
    clock.time(Part::Write, || -> Outcome {
        if let Some(path) = &arguments.output {
            let [a, b] = [&arguments.a, &arguments.b].map(|p| p.display().to_string());
            write_matches(path, [&a, &b], &pair.rows())?;
        }
        arguments.draw.as_deref().map_or(Ok(()), |path| pair.draw(path))
    })?;
    let between = format!("{} - {}", arguments.a.display(), arguments.b.display());
    context.say(&format!("{between}: {}, {:.1} ms", pair.summary(), clock.compute() * 1e3));
    if let Some(model) = &pair.tie.b_from_a {
        context.say(&model.to_string());
    }
    let before = clock.clone();
    report::finish(&arguments.pair.report, &described, clock, context, || {
        page(arguments, &pair, pair.summary(), &described, &before)
    })
}

/// For programs: all but the times.
fn describe(
    arguments: &MatchArguments,
    pair: &MatchedPair,
    search: &PairSearch<'_>,
    context: &Context,
) -> Value {
    let names = json!({ "a": arguments.a.display().to_string(), "b": arguments.b.display().to_string() });
    output::joined([names, pair.describe(search, context)])
}

fn page<'a>(
    arguments: &MatchArguments,
    pair: &'a MatchedPair,
    lead: String,
    described: &Value,
    clock: &Clock,
) -> Page<'a> {
    let names = [&arguments.a, &arguments.b].map(|path| file_name(path));
    let title = format!("{} and {}", names[0], names[1]);
    let view = report::matches_view(pair, names, arguments.pair.detector.detector);
    let section = report::tiles(Section::new("Matches"), pair, clock)
        .view(View::Matches(view))
        .figures(described.clone());
    (title, lead, vec![section])
}
