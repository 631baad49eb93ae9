//! The body of the targets that read calibration files.

use tiepoint::geometry::calibration::{RectifiedCalibration, StereoCalibration};
use tiepoint::geometry::rectify::{OutputFrame, Principal, Rectification, RectifyOptions};
use tiepoint::image::Size;

/// Reads `magic` followed by `data` as either kind of calibration, and rectifies with the result.
pub(super) fn read(magic: &str, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let text = format!("{magic}{text}");
    if let Ok(pair) = RectifiedCalibration::parse(&text, "fuzz") {
        assert!(pair.focal > 0.0 && pair.baseline > 0.0 && pair.doffs.is_finite(), "{pair:?}");
        let again = RectifiedCalibration::parse(&pair.to_text(), "again");
        assert!(again.is_ok_and(|p| p == pair || pair.range.is_some()), "what is written is read: {pair:?}");
    }
    if let Ok(rig) = StereoCalibration::parse(&text, "fuzz") {
        let sizes = rig.sizes.map(|size| size.unwrap_or(Size::new(64, 48)));
        let [size, _] = sizes;
        for frame in [OutputFrame::Input, OutputFrame::Fit, OutputFrame::Valid, OutputFrame::All] {
            for principal in [Principal::Shared, Principal::Own] {
                let found = Rectification::new(
                    &rig,
                    sizes,
                    &RectifyOptions::default().with_frame(frame).with_principal(principal),
                );
                let Ok(found) = found else { continue };
                let area = found.left.size.area() as f64;
                assert!(area <= 8.0 * size.area() as f64 + 1e4, "{area} pixels of {size}");
                assert!(found.left.focal > 0.0 && found.left.principal[0].is_finite(), "{found:?}");
                let _ = found.right.place([1.0, 1.0]).and_then(|p| found.right.source(p));
            }
        }
        let _ = Rectification::stored(&rig, sizes);
    }
}
