//! What tests need besides Rust, installed if this process may: two OpenCL devices, NVRTC, Python packages, a browser.

use crate::{Result, Run, cluster, nvrtc, opencl, python_package, python_site, report, workspace};
use std::ffi::OsString;
use std::path::Path;

pub(crate) type Variables = Vec<(&'static str, OsString)>;

pub(crate) struct Prepared {
    /// With these set, a test that needs something that was found fails instead of being skipped.
    pub(crate) variables: Variables,
    rusticl: Option<Variables>,
    /// The parts of all tests that cannot run here.
    absent: Vec<&'static str>,
}

impl Prepared {
    /// The variables with which a part runs, if it can run here.
    pub(crate) fn variables_of(&self, part: &str) -> Option<&Variables> {
        match part {
            "rusticl" => self.rusticl.as_ref(),
            _ => (!self.absent.contains(&part)).then_some(&self.variables),
        }
    }
}

/// Software that only one part needs: the part, the function that prepares it, and what is left out without it.
const OF_PARTS: [(&str, Run, &str); 3] = [
    ("pages", report::prepare, "the pages of reports are not opened"),
    ("python", || python_package::prepare().map(drop), "the Python package is not tested"),
    ("cluster", || cluster::prepare().map(drop), "the recipe for a cluster is not tested"),
];

/// Looks for all of these and installs what is missing. What cannot be is reported, and is a failure under CI.
pub(crate) fn prepare() -> Result<Prepared> {
    let mut variables: Variables = vec![("TIEPOINT_CACHE", workspace().join("target/kernels").into())];
    let [pocl, rusticl] = opencl::prepare();
    if there(pocl, "kernels are not run")?.is_some() {
        variables.push(("TIEPOINT_REQUIRE_GPU", "1".into()));
    }
    let nvrtc = nvrtc::prepare().and_then(|folder| before_others(&folder, "LD_LIBRARY_PATH"));
    if let Some(path) = there(nvrtc, "kernels are not compiled for CUDA")? {
        variables.extend([("LD_LIBRARY_PATH", path), ("TIEPOINT_REQUIRE_NVRTC", "1".into())]);
    }
    let rusticl = there(rusticl, "kernels are run on one OpenCL alone")?.map(|()| {
        let only =
            [opencl::RUSTICL, ("TIEPOINT_TEST_DEVICE", opencl::RUSTICL.1), ("TIEPOINT_REQUIRE_GPU", "1")];
        let only = only.map(|(name, value)| (name, value.into()));
        variables.iter().cloned().chain(only).collect()
    });
    there(python_site::prepare(), "the documentation's site is not built")?;
    let mut absent = Vec::new();
    for (part, prepare, otherwise) in OF_PARTS {
        if there(prepare(), otherwise)?.is_none() {
            absent.push(part);
        }
    }
    Ok(Prepared { variables, rusticl, absent })
}

/// What was found, or a line about what is missing; under CI, that is a failure.
pub(crate) fn there<T>(found: Result<T>, otherwise: &str) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(missing) if std::env::var_os("CI").is_some() => Err(missing),
        Err(missing) => {
            println!("{missing}: {otherwise}");
            Ok(None)
        }
    }
}

/// The search path that a variable of the environment holds, with this folder first.
pub(crate) fn before_others(folder: &Path, variable: &str) -> Result<OsString> {
    let others = std::env::var_os(variable).unwrap_or_default();
    let all = std::iter::once(folder.to_path_buf()).chain(std::env::split_paths(&others));
    std::env::join_paths(all).map_err(|e| format!("{}: {e}", folder.display()))
}
