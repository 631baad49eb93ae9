//! `cargo xtask torture [SECONDS]`: random changes, kills, interrupts and power cuts, with other seeds until time is up.

use crate::prepare;
use crate::{CHECKED, Result, test};
use std::time::{Duration, Instant};

const SECONDS: u64 = 300;

/// The tests: each with its environment variable, that variable's value in a round, and the unit.
const TESTS: [(&str, &str, u64, &str); 4] = [
    ("the_database_follows_random_changes", "TIEPOINT_CHANGES", 10, "sequences of changes"),
    ("killed_at_any_time", "TIEPOINT_KILLS", 30, "kills"),
    ("a_signal_ends_every_command", "TIEPOINT_INTERRUPTS", 2, "signals to each command on each device"),
    (
        "power_cut",
        "TIEPOINT_POWER_CUTS",
        12,
        "power cuts, and what comes with them, in each recorded command",
    ),
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let seconds = match arguments {
        [] => SECONDS,
        [seconds] => seconds.parse().map_err(|_| format!("{seconds} is no number of seconds"))?,
        _ => return Err("torture takes one number of seconds".into()),
    };
    let prepared = prepare::prepare()?;
    // Builds the tests before the time starts.
    let build = ["test", "--workspace", "--test", "command", "--no-run"];
    test::cargo(CHECKED, &build, prepared.variables.clone())?;
    let (start, limit) = (Instant::now(), Duration::from_secs(seconds));
    let mut spent = [(0, Duration::ZERO); TESTS.len()];
    'rounds: for round in 0.. {
        for ((name, variable, count, _), (rounds, time)) in TESTS.iter().zip(&mut spent) {
            if start.elapsed() >= limit {
                break 'rounds;
            }
            let began = Instant::now();
            let mut variables = prepared.variables.clone();
            // The sequences of one round follow those of the round before.
            let seed = 1000 + round * count;
            variables
                .extend([(*variable, count.to_string().into()), ("TIEPOINT_SEED", seed.to_string().into())]);
            let arguments = ["test", "--workspace", "--test", "command", "--", name, "--nocapture"];
            test::cargo(CHECKED, &arguments, variables)
                .map_err(|e| format!("{e}: {name} with TIEPOINT_SEED={seed} {variable}={count}"))?;
            *rounds += 1;
            *time += began.elapsed();
        }
    }
    for ((_, _, count, what), (rounds, time)) in TESTS.iter().zip(spent) {
        println!("{rounds} rounds of {count} {what}: {time:.0?}");
    }
    Ok(())
}
