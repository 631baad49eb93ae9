//! Puts packaged kernels into the library: see `src/packaged.rs`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-env-changed=TIEPOINT_CUDA_KERNELS");
    println!("cargo::rerun-if-changed=build.rs");
    let place = Path::new(&std::env::var("OUT_DIR")?).join("cuda.kernels");
    match std::env::var("TIEPOINT_CUDA_KERNELS").ok().filter(|path| !path.is_empty()) {
        None => std::fs::write(place, [])?,
        Some(path) => {
            println!("cargo::rerun-if-changed={path}");
            std::fs::copy(&path, place).map_err(|e| format!("TIEPOINT_CUDA_KERNELS, {path}: {e}"))?;
        }
    }
    Ok(())
}
