//! A camera of ROS, `sensor_msgs/CameraInfo`: as `camera_calibration` writes it, and as `rostopic echo` and `ros2 topic echo`
//! print the message, whose matrices are lists under the names D, K, R and P (ROS 2: in small letters).

use super::document::{Entry, Parsed, Value};

const NAMES: [(&str, &str); 4] = [
    ("D", "distortion_coefficients"),
    ("K", "camera_matrix"),
    ("R", "rectification_matrix"),
    ("P", "projection_matrix"),
];

/// The entries under `camera_calibration`'s names; those of other files as they are. Fails for unknown lens models.
pub(super) fn renamed(mut entries: Vec<Entry>) -> Parsed<Vec<Entry>> {
    let has = |name: &str, count: usize| {
        let holds = |e: &Entry| matches!(&e.value, Value::Matrix(m) if m.data.len() == count);
        entries.iter().any(|e| e.key.eq_ignore_ascii_case(name) && holds(e))
    };
    if has("K", 9) && has("P", 12) {
        for entry in &mut entries {
            if let Some((_, name)) = NAMES.iter().find(|(name, _)| entry.key.eq_ignore_ascii_case(name)) {
                entry.key = (*name).into();
            }
        }
        // A camera without distortion has an empty list.
        for entry in entries.iter_mut().filter(|e| e.key == NAMES[0].1 && e.value == Value::Other) {
            entry.value = Value::matrix(1, vec![0.0; 5]);
        }
    }
    entries.iter().try_for_each(check_lens)?;
    Ok(entries)
}

/// Names of lenses, in any program's file, that are no pinhole with distortion.
const OTHER_LENSES: [&str; 6] = ["fisheye", "equidistant", "kannala", "omni", "equirectangular", "spherical"];

/// Fails for an entry that names another lens model, such as `fisheye_model: 1` of OpenCV's calibration program.
fn check_lens(Entry { key, value, line }: &Entry) -> Parsed<()> {
    let (name, refused) = match value {
        Value::Text(lens) if key == "distortion_model" => {
            (lens.as_str(), !matches!(lens.as_str(), "" | "plumb_bob" | "rational_polynomial"))
        }
        Value::Text(text) => {
            let (named, lower) = (key.to_lowercase(), text.to_lowercase());
            let is_model = ["model", "lens", "projection", "type"].iter().any(|word| named.contains(word));
            let is_yes = named.contains("fisheye") && matches!(lower.as_str(), "true" | "yes" | "on");
            let is_other = is_model && OTHER_LENSES.iter().any(|lens| lower.contains(lens));
            (if is_other { text } else { key }.as_str(), is_yes || is_other)
        }
        Value::Number(flag) => (key.as_str(), *flag != 0.0 && key.to_lowercase().contains("fisheye")),
        Value::Matrix(_) | Value::Other => return Ok(()),
    };
    match refused {
        true => Err(format!(
            "line {line}: the lens is {name}: expected plumb_bob (k1 k2 p1 p2 k3) or rational_polynomial; undistort the pictures \
             first, for instance with cv2.fisheye"
        )),
        false => Ok(()),
    }
}
