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

pub(crate) fn check_matches(path: &Path) -> Outcome {
    check_features(path)
}

pub(crate) fn write_matches(
    path: &Path,
    a: &Features,
    b: &Features,
    r: &crate::commands::matching::Related,
) -> Outcome {
    let mut out = "ax,ay,bx,by,distance,ratio,inlier,a,b\n".to_owned();
    for (m, inlier) in r.matches.iter().zip(crate::commands::matching::agreeing(r)) {
        let (p, q) = (&a.keypoints[m.a as usize], &b.keypoints[m.b as usize]);
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{}",
            p.x,
            p.y,
            q.x,
            q.y,
            m.distance,
            m.ratio,
            u8::from(inlier),
            m.a,
            m.b
        );
    }
    tiepoint::files::write_atomically(path, |w| std::io::Write::write_all(w, out.as_bytes()))?;
    Ok(())
}

pub(crate) fn read_homography(path: &Path) -> Outcome<[f64; 9]> {
    let text =
        std::fs::read_to_string(path).map_err(|e| Failure::work(format!("{}: {e}", path.display())))?;
    let inner =
        text.split_once("<data>").map_or(text.as_str(), |(_, t)| t.split("</data>").next().unwrap_or(t));
    let inner = inner.split_once("\"matrix\":[").map_or(inner, |(_, t)| t.split(']').next().unwrap_or(t));
    let numbers: Vec<f64> =
        inner.split(|c: char| c.is_whitespace() || c == ',').filter_map(|t| t.parse().ok()).collect();
    numbers
        .get(..9)
        .and_then(|v| v.try_into().ok())
        .ok_or_else(|| Failure::work(format!("{}: expected nine numbers", path.display())))
}
