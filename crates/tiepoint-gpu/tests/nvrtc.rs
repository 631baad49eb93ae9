//! NVRTC compiles for cards that the machine lacks, and its errors are passed on.

use tiepoint_gpu::{Error, KernelSource, compile_for_cuda, kernel, kernel_struct};

kernel_struct! {
    struct Rows {
        step: u64,
        pitch: i32,
    }
}

kernel! {
    unsafe kernel twice(groups) = Twice {
        write data: f32 as f32x4 [256],
        read more: u8 [64],
        shared words: u64 [64],
    } {
        by: f32,
        rows: Rows,
        matrix: [f64; 9],
    }
}

kernel! {
    unsafe kernel broken(groups) = Broken {
        write a: f32 [1],
    } {}
}

#[test]
fn compiles_for_every_generation() {
    let source = KernelSource::new("twice")
        .table_f32("TABLE", &[0.5, 3e-40])
        .kernel_resident::<Twice<'_>>([64, 1], 2)
        .text(
            "KERNEL(twice) {
                 f32 *to = &data[args.rows.step + LANE_X].y;
                 *to = FMA(*to, args.by, TABLE[1]) + (f32)args.matrix[8];
                 words[LANE_X] = more[LANE_X] + (u64)args.rows.pitch;
             }",
        );
    for architecture in ["sm_75", "sm_80", "sm_90"] {
        match compile_for_cuda(&source, architecture) {
            Ok(binary) => assert!(binary.starts_with(b"\x7fELF"), "{architecture}: a CUBIN is an ELF file"),
            Err(Error::Absent { reason, .. }) => {
                let promised = std::env::var_os("TIEPOINT_REQUIRE_NVRTC").is_some();
                assert!(!promised, "TIEPOINT_REQUIRE_NVRTC is set: {reason}");
                println!("SKIPPED: {reason}");
                return;
            }
            Err(other) => panic!("{architecture}: {other}"),
        }
    }
    match compile_for_cuda(
        &KernelSource::new("broken").kernel::<Broken<'_>>([1, 1]).text("KERNEL(broken) { nonsense; }"),
        "sm_90",
    ) {
        Err(Error::Compile { log, .. }) => assert!(log.contains("nonsense"), "{log}"),
        other => panic!("{other:?}"),
    }
}
