//! `collect --modality cross`: photographs of two sensors.

use super::*;
use tiepoint::synth::Sensor;

/// Three photographs of a plane by a camera; three, and one of another plane, by a sensor that shows black as white.
fn photographs_of_two_sensors(folder: &Folder) {
    folder.make("images");
    for i in 0..3_u8 {
        let at = f64::from(i);
        let seen = |turn: f64| {
            view(Size::new(320, 256), 4, turn, 1.0 + 0.02 * at, [0.01 * at, 0.0], [3.0 * at, -2.0])
        };
        folder.write(&format!("images/colour {i}.png"), seen(0.03 * at));
        folder.write(&format!("images/thermal {i}.png"), Sensor::Inverted.shows(&seen(0.4 - 0.03 * at), 1));
    }
    let other = view(Size::new(320, 256), 77, 0.0, 1.0, [0.0; 2], [0.0; 2]);
    folder.write("images/thermal other.png", Sensor::Inverted.shows(&other, 1));
}

/// Verified pairs of one photograph by each sensor whose names hold these words.
fn between(folder: &Folder, database: &str, words: [&str; 2]) -> i64 {
    let [a, b] = words;
    let sql = format!(
        "SELECT count(*) FROM two_view_geometries t JOIN images a ON a.image_id = t.pair_id / 2147483647 \
         JOIN images b ON b.image_id = t.pair_id % 2147483647 \
         WHERE t.rows >= 15 AND a.name LIKE '{a}%' AND b.name LIKE '{b}%'"
    );
    count(&folder.at(database), &sql)
}

#[test]
fn photographs_of_two_sensors_are_tied_by_structure() {
    let folder = Folder::with("collect-sensors", photographs_of_two_sensors);
    collected(&folder, "same", "--threads 2");
    assert_eq!(between(&folder, "same.db", ["colour", "thermal"]), 0, "by features alone");
    let whole = collected(&folder, "cross", "--threads 2 --modality cross");
    assert_eq!(between(&folder, "cross.db", ["colour", "thermal"]), 9, "every pair of the plane");
    assert_eq!(between(&folder, "cross.db", ["colour", "colour"]), 3, "as by features");
    assert_eq!(between(&folder, "cross.db", ["%", "thermal other"]), 0, "another place");
    assert_eq!(collected(&folder, "cross", "--threads 1 --modality cross"), whole, "with nothing left to do");

    let stages = ["features", "pairs", "match", "match"];
    let (found, status) = in_parts(&folder, "--modality cross", &stages, &[2, 0, 1]);
    assert_eq!(["pairs", "tried"].map(|key| value(&status, key)), ["21"; 2], "each counts once: {status}");
    assert_eq!(found, whole, "three parts");
}

#[test]
fn a_modality_that_does_not_fit_is_refused() {
    let folder = Folder::with("collect-sensors-refused", photographs_of_two_sensors);
    let plain = "collect images --output a.db --work work --device cpu";
    let collect = format!("{plain} --max-features 50");
    folder.refuses(format!("{collect} --modality auto"), 2, &["modality", "auto", "same, cross"]);
    folder.refuses(
        format!("{plain} --modality cross --features images"),
        2,
        &["modality", "corners of structure"],
    );
    folder.works(format!("{collect} --pairs sequence --overlap 1"));
    folder.refuses(
        format!("{collect} --pairs sequence --overlap 1 --modality cross"),
        1,
        &["`--modality same` and not cross", "another work folder"],
    );
}
