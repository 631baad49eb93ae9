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
    for Entry { key, value, line } in &entries {
        if let Value::Text(lens) = value
            && key == "distortion_model"
            && !matches!(lens.as_str(), "" | "plumb_bob" | "rational_polynomial")
        {
            return Err(format!(
                "line {line}: the lens is {lens}: only plumb_bob is supported (k1 k2 p1 p2 k3)"
            ));
        }
    }
    Ok(entries)
}
