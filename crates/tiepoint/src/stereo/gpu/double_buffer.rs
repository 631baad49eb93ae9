//! Pairs on the device that a cost learns from, one after the other: learning from a pair runs while the device works
//! on the pair before.

use super::plan::{Plan, PlanLearning};
use crate::device::gpu::{Commands, Graph};
use crate::image::gpu::AnyGpuImage;
use crate::stereo::pair::gpu::take;
use crate::{Error, Result};
use std::array::from_fn;
use std::slice::from_ref;
use tiepoint_gpu::Mark;

/// Two sets of memory for what is learnt. Pairs use them alternately, so that the device works on one pair while it
/// learns from the next.
#[derive(Debug)]
pub(super) struct DoubleBuffer([Turn; 2]);

/// One of the two sets, with the lists of commands that fill and read it.
#[derive(Debug)]
struct Turn {
    learning: Graph,
    work: Graph,
}

impl DoubleBuffer {
    pub(super) fn new(plan: &Plan) -> Result<Self> {
        let learning = learning_of(plan)?;
        let turn = || -> Result<_> {
            let mut work = Commands::new();
            let learning = learning.apart(Commands::new(), &mut work, &plan.gpu)?;
            work.append(plan.commands.clone())?;
            let [work, learning] = plan.gpu.graphs_beside([work, learning])?;
            Ok(Turn { learning, work })
        };
        Ok(Self([turn()?, turn()?]))
    }

    /// Queues the work for some pairs, the images of each in the order of the plan's inputs. After that of pair i,
    /// `done(i)` is called, when its maps are those of the plan.
    pub(super) fn run(
        &self,
        plan: &Plan,
        pairs: &[Vec<&AnyGpuImage>],
        mut done: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        let (gpu, learning) = (&plan.gpu, learning_of(plan)?);
        // From here on the images are complete, and the memory of a turn may be overwritten.
        let start = gpu.mark()?;
        let mut free: [Mark; 2] = from_fn(|_| start.clone());
        for (i, images) in pairs.iter().enumerate() {
            let (turn, free) = (&self.0[i % 2], &mut free[i % 2]);
            let arrival = |inputs: &[_]| -> Result<_> {
                let mut commands = Commands::new();
                images.iter().zip(inputs).try_for_each(|(image, to)| take(to, 0, image, &mut commands))?;
                Ok(commands)
            };
            gpu.run_beside(&arrival(&learning.inputs)?, from_ref(free))?;
            turn.learning.run_beside(&[])?;
            gpu.run(&arrival(&plan.inputs)?)?;
            turn.work.run()?;
            *free = gpu.mark()?;
            done(i)?;
        }
        Ok(())
    }
}

fn learning_of(plan: &Plan) -> Result<&PlanLearning> {
    let nothing = || Error::Mismatch("learning beside the work, with a cost that learns nothing".into());
    plan.learning.as_ref().ok_or_else(nothing)
}
