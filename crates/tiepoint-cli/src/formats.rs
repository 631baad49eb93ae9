//! Stand-in for the library's feature files: CSV alone.
use crate::failure::{Failure, Outcome};
use std::fmt::Write as _;
use std::path::Path;
use tiepoint::feature::{Descriptors, Features};

pub(crate) fn check_features(path: &Path) -> Outcome {
    match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => Ok(()),
        _ => Err(Failure::usage(format!("{}: unknown extension (expected .csv)", path.display()))),
    }
}

pub(crate) fn write_features(path: &Path, f: &Features) -> Outcome {
    let mut out = "x,y,scale,angle,response,sign,octave,layer".to_owned();
    (0..f.dimension).for_each(|i| {
        let _ = write!(out, ",d{i}");
    });
    out.push('\n');
    for (i, k) in f.keypoints.iter().enumerate() {
        let _ = write!(
            out,
            "{},{},{},{},{},{},{},{}",
            k.x, k.y, k.scale, k.angle, k.response, k.sign, k.octave, k.layer
        );
        for j in i * f.dimension..(i + 1) * f.dimension {
            let _ = match &f.descriptors {
                Descriptors::U8(v) => write!(out, ",{}", v[j]),
                Descriptors::F32(v) => write!(out, ",{}", v[j]),
            };
        }
        out.push('\n');
    }
    tiepoint::files::write_atomically(path, |w| std::io::Write::write_all(w, out.as_bytes()))?;
    Ok(())
}
