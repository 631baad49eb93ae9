//! Tests that NVRTC compiles every kernel source of the library, with options of every kind, for two generations of
//! CUDA cards; no card is needed. Every stage with kernels lists its sources here: a test fails for a file of kernels
//! that no source contains.

use crate::{feature, filter, geometry, image, matching, register, stereo};
use rayon::prelude::*;
use tiepoint_gpu::{Error, KernelSource, compile_for_cuda};

/// Functions with the sources of stages that have many; the others are listed below.
const STAGES: [fn() -> Vec<KernelSource>; 20] = [
    feature::order::gpu::tests::kernel_sources,
    feature::sift::gpu::tests::kernel_sources,
    feature::surf::gpu::tests::kernel_sources,
    filter::convolve::gpu::tests::kernel_sources,
    filter::gauss::gpu::tests::kernel_sources,
    filter::hessian::gpu::tests::kernel_sources,
    filter::integral::gpu::tests::kernel_sources,
    filter::resample::gpu::tests::kernel_sources,
    filter::sobel::gpu::tests::kernel_sources,
    geometry::rectify::gpu::tests::kernel_sources,
    geometry::two_view::tests::kernel_sources,
    geometry::warp::gpu::tests::kernel_sources,
    image::range::gpu::tests::kernel_sources,
    matching::gpu::tests::kernel_sources,
    stereo::aggregation::gpu::tests::kernel_sources,
    stereo::cost::gpu::tests::kernel_sources,
    stereo::cost::mutual_information::learn::gpu::tests::kernel_sources,
    stereo::cost::volume::gpu::tests::kernel_sources,
    stereo::pair::gpu::tests::kernel_sources,
    stereo::winner_takes_all::gpu::tests::kernel_sources,
];

fn sources() -> Vec<KernelSource> {
    let mut sources = vec![
        feature::gpu::columns::source(),
        feature::gpu::gather::source::<u8>(),
        feature::gpu::gather::source::<f32>(),
        feature::structure::gpu::source(),
        filter::shrink::gpu::source(),
        image::grey::gpu::source::<u8>(3),
        image::grey::gpu::source::<u16>(4),
        image::grey::gpu::source::<f32>(3),
        image::grey::gpu::source::<f32>(2),
        register::cross::align::gpu::source(),
        register::cross::judge::gpu::source(),
        stereo::median::gpu::source(3),
        stereo::median::gpu::source(5),
        stereo::edges::gpu::source(),
        stereo::fill::gpu::source(),
        stereo::consistency_check::gpu::source(),
        stereo::pair::gpu::mirror::source::<u8>(),
        stereo::pair::gpu::mirror::source::<u16>(),
        stereo::pair::gpu::mirror::source::<f32>(),
        stereo::speckle::gpu::source(),
        stereo::gpu::dense::source(),
        stereo::refinement::gpu::source(),
    ];
    sources.extend(STAGES.iter().flat_map(|stage| stage()));
    sources
}

/// What a source uses if newer cards compile another branch of it, or of the dialect.
const DIFFERS: [&str; 3] = ["COPY_ASYNC", "PAIR_MIN3", "__CUDA_ARCH__"];

/// The oldest cards, and one for which every newer branch of the kernels is compiled.
#[test]
fn kernels_compile_for_every_card() {
    sources().par_iter().for_each(|source| {
        let newer = DIFFERS.iter().any(|name| source.contains(name)).then_some("sm_90");
        for architecture in ["sm_75"].into_iter().chain(newer) {
            match compile_for_cuda(source, architecture) {
                Ok(_) => {}
                Err(Error::Absent { reason, .. }) => {
                    let promised = std::env::var_os("TIEPOINT_REQUIRE_NVRTC").is_some();
                    assert!(!promised, "TIEPOINT_REQUIRE_NVRTC is set: {reason}");
                    println!("SKIPPED: {reason}");
                    return;
                }
                Err(other) => panic!("{architecture}: {other}"),
            }
        }
    });
}

/// Every file of kernels (`.cl`, `.cu`, `.h`) in the library is part of a source above.
#[test]
fn no_file_of_kernels_is_missing() {
    let sources = sources();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let files = walkdir::WalkDir::new(root).into_iter().map(|entry| entry.unwrap().into_path());
    let is_kernels = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|end| ["cl", "cu", "h"].iter().any(|&kernels| end == kernels))
    };
    let files: Vec<_> = files.filter(is_kernels).collect();
    assert!(files.len() > 50, "{root} holds the library's kernels");
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let listed = sources.iter().any(|source| source.contains(&text));
        assert!(listed, "{} is in no source above: add what contains it", path.display());
    }
}
