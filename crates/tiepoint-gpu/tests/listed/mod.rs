//! The devices that tests run on; used by unit tests too.

use tiepoint_gpu::{Api, Error, Gpu, devices};

/// The devices of these drivers whose name contains the value of `TIEPOINT_TEST_DEVICE`; see [`require`].
#[allow(dead_code, reason = "tests of `tiepoint` list the devices once and ask for them each time")]
pub(crate) fn listed(apis: &[Api]) -> Vec<Gpu> {
    let found = found(apis);
    require(&found, apis);
    found
}

pub(crate) fn found(apis: &[Api]) -> Vec<Gpu> {
    let wanted = std::env::var("TIEPOINT_TEST_DEVICE").unwrap_or_default();
    apis.iter()
        .flat_map(|api| match devices(*api) {
            Err(Error::Absent { .. }) => Vec::new(),
            listed => listed.unwrap().complete().unwrap(),
        })
        .filter(|info| info.name.contains(&wanted))
        .map(|info| Gpu::open_for_short_loops(info.api, info.index).unwrap())
        .collect()
}

/// PoCL provides an OpenCL device on any machine: without any, a test for which OpenCL is enough fails under CI (the
/// variable `CI`) and where `TIEPOINT_REQUIRE_GPU` is set. Elsewhere, and where that is 0, the test says that it was
/// skipped.
pub(crate) fn require(found: &[Gpu], apis: &[Api]) {
    if found.is_empty() {
        let required = std::env::var("TIEPOINT_REQUIRE_GPU").or_else(|_| std::env::var("CI"));
        assert!(
            required.map_or(true, |required| required == "0") || !apis.contains(&Api::OpenCl),
            "there is no such device of {apis:?}, and one is required"
        );
        println!("SKIPPED: no device of {apis:?} (for OpenCL PoCL would do: pocl-opencl-icd)");
    }
}
