//! The software that tests need besides Rust, installed if this process may: two OpenCL devices, NVRTC, Python
//! packages, and a browser.

use crate::{Result, cluster, nvrtc, opencl, python_package, python_site, report, workspace};
use std::ffi::OsString;
use std::path::Path;

pub(crate) type Variables = Vec<(&'static str, OsString)>;

pub(crate) struct Prepared {
    /// With these set, a test that needs what was found may not skip.
    pub(crate) variables: Variables,
    pub(crate) rusticl: Option<Variables>,
    /// Whether the packages for the tests of the Python package are there.
    pub(crate) python: bool,
    /// Whether those for the tests of the recipe for a cluster are.
    pub(crate) cluster: bool,
    /// Whether there is a browser for the pages of reports.
    pub(crate) browser: bool,
}

/// Looks for all of these and installs what is missing. What cannot be installed is reported, and is a failure under
/// CI.
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
    Ok(Prepared {
        variables,
        rusticl,
        browser: there(report::prepare(), "the pages of reports are not opened")?.is_some(),
        python: there(python_package::prepare(), "the Python package is not tested")?.is_some(),
        cluster: there(cluster::prepare(), "the recipe for a cluster is not tested")?.is_some(),
    })
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
