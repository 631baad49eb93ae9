//! The recipe for a cluster, on two workers of this machine.

use crate::python_package::python;
use crate::{CHECKED, Result, built, pip, succeed, workspace};
use std::path::PathBuf;

const PACKAGES: [&str; 3] = ["ray==2.60.0", "numpy>=2.0", "pytest==9.2.0"];

pub(crate) fn prepare() -> Result<PathBuf> {
    pip::unpack(&PACKAGES, &[], &workspace().join("target/cluster/packages"))
}

/// Runs the recipe's tests with the command that cargo has built.
pub(crate) fn test() -> Result<()> {
    let command = built(CHECKED, "tiepoint")?;
    let mut tests = python(&[&prepare()?], &["pytest", "--quiet", "-p", "no:cacheprovider", "cluster"])?;
    succeed(tests.env("TIEPOINT", command))
}
