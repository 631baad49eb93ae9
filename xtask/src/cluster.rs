//! The recipe for a cluster, on two workers of this machine.

use crate::prepare::Variables;
use crate::python_package::python;
use crate::{Result, built, pip, succeed, workspace};
use std::path::{Path, PathBuf};
use std::time::Instant;

const PACKAGES: [&str; 3] = ["ray==2.60.0", "numpy>=2.0", "pytest==9.2.0"];

pub(crate) fn prepare() -> Result<PathBuf> {
    pip::unpack(&PACKAGES, &[], &workspace().join("target/cluster/packages"))
}

/// Runs the recipe's tests with the command that cargo has built.
pub(crate) fn test(packages: &Path, variables: &Variables) -> Result<()> {
    let started = Instant::now();
    let command = built("debug", "tiepoint")?;
    let mut tests = python(&[packages], &["pytest", "--quiet", "-p", "no:cacheprovider", "cluster"])?;
    succeed(tests.envs(variables.iter().cloned()).env("TIEPOINT", command))?;
    println!("the recipe for a cluster: {} s", started.elapsed().as_secs());
    Ok(())
}
