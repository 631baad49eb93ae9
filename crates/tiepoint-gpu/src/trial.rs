//! Tests, when a device is opened, properties that its driver does not report: whether loops run to their end, and
//! whether the groups of a launch may wait for one another.
//!
//! Mesa's llvmpipe (rusticl on a CPU) ends all loops of a kernel after 65 535 iterations in all (`gallivm`,
//! `LP_MAX_TGSI_LOOP_ITERATIONS`; seen with 22.3) and continues after them as if they had finished: results are wrong,
//! the same in every run, and no error is raised. Such a device is refused. A group that waits for one that started
//! before it needs the other to continue meanwhile, which OpenCL does not promise. If it does not, only work that needs
//! this is refused ([`Gpu::require_waiting`]), and the library runs it on the CPU.
//!
//! The kernel ends on every device: a group waits for a limited number of iterations, or until another has given up.

#![expect(unsafe_code, reason = "the kernel's promise, see its declaration")]

use crate::{Commands, Gpu, KernelSource, Result};

/// Groups that wait, each for the one before.
const GROUPS: usize = 64;
/// Iterations of a loop whose result no compiler can compute in advance; some devices end it after fewer.
const TURNS: u32 = 100_000;

crate::kernel! {
    /// A chain of groups in the order in which they began: each waits for the number of the one before, for at most
    /// `patience` iterations, and passes on the next one. The last of `numbers` says that a group gave up.
    unsafe kernel relay(groups) = Relay {
        write tickets: u32 [1],
        write ends: u32 [GROUPS as i128],
        shared numbers: u32 [GROUPS as i128 + 1],
    } {
        turns: u32,
        patience: u32,
    }
}

const KERNEL: &str = "
KERNEL(relay) {
    if (LANE_X > 0) return;
    const u32 ticket = ATOMIC_ADD(tickets, 1u);
    u32 end = ticket;
    for (u32 i = 0u; i < args.turns; i++) end = end * 1664525u + 1013904223u;
    ends[ticket] = end;
    u32 before = 1u;
    if (ticket > 0u) {
        u32 turns = 0u;
        do before = numbers[ticket - 1u];
        while (before == 0u && numbers[GROUPS] == 0u && ++turns < args.patience);
        if (before == 0u) numbers[GROUPS] = 1u;
    }
    if (before != 0u) numbers[ticket] = before + 1u;
}";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Loops run to their end, groups wait for one another.
    Passed,
    /// Groups that began do not all go on while others wait for them.
    NoProgress,
    /// Loops end early.
    CutsLoops,
}

/// Runs the trial; the first `missing` groups of the chain never begin, and those after wait in vain. Any error of a
/// program or kernel is returned.
pub(crate) fn check(gpu: &Gpu, missing: u32) -> Result<Trial> {
    let source = KernelSource::new("relay").define("GROUPS", GROUPS);
    let kernel = gpu.program(&source.kernel::<Relay<'_>>([32, 1]).text(KERNEL))?.kernel::<Relay<'_>>()?;
    let (tickets, numbers) = (gpu.upload(&[missing])?, gpu.upload(&[0_u32; GROUPS + 1])?);
    let ends = gpu.buffer::<u32>(GROUPS)?;
    // A second or so. On a CPU other programs may take its cores away from the group that is waited for.
    let patience = match missing {
        0 if gpu.info().is_cpu => 1 << 30,
        0 => 1 << 22,
        _ => 1 << 10,
    };
    let mut commands = Commands::new();
    let arguments = Relay { tickets: &tickets, ends: &ends, numbers: &numbers, turns: TURNS, patience };
    commands.launch(&kernel, [GROUPS - missing as usize, 1, 1], arguments)?;
    gpu.run(&commands)?;
    let end =
        |ticket| (0..TURNS).fold(ticket, |v: u32, _| v.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let ends = ends.to_vec()?;
    let loops_end = ends.iter().zip(0..).skip(missing as usize).all(|(&found, ticket)| found == end(ticket));
    let handed_on = numbers.to_vec()?[..GROUPS].iter().zip(2..).all(|(&found, number)| found == number);
    Ok(match (loops_end, handed_on) {
        (false, _) => Trial::CutsLoops,
        (true, false) => Trial::NoProgress,
        (true, true) => Trial::Passed,
    })
}
