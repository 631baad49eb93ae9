//! The times of stages, which `--profile` prints.

use std::sync::Mutex;
use std::time::Instant;
pub use tiepoint_gpu::StageTime;
use tiepoint_gpu::lock;

/// Wall-clock times of stages, added up by name, in the order in which the names first occurred.
#[derive(Debug, Default)]
pub struct Profile {
    stages: Mutex<Vec<StageTime>>,
}

impl Profile {
    /// The times so far.
    pub fn stages(&self) -> Vec<StageTime> {
        lock(&self.stages).clone()
    }

    /// Adds times that were recorded elsewhere.
    pub fn extend(&self, stages: &[StageTime]) {
        stages.iter().for_each(|stage| stage.add_to(&mut lock(&self.stages)));
    }
}

/// A running stage. Its time is recorded when this is dropped.
#[derive(Debug)]
#[must_use = "the stage ends when this guard is dropped"]
pub struct Stage<'p> {
    pub(super) running: Option<(&'p Profile, &'static str, Instant)>,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if let Some((profile, name, start)) = self.running.take() {
            profile.extend(&[StageTime { name, seconds: start.elapsed().as_secs_f64(), calls: 1 }]);
        }
    }
}
