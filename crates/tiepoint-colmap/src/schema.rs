//! The tables of COLMAP 4.1, and of 3.8.

/// For a file that is written once, by one process, and is discarded if the process ends early: it needs no journal,
/// and is flushed to disk as a whole before it is moved to its place.
pub(crate) const PRAGMAS: &str = "
    PRAGMA page_size = 16384;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA cache_size = -65536;
    PRAGMA foreign_keys = OFF;
";

/// `application_id` of databases that are written here: "tiep".
pub(crate) const APPLICATION: i32 = 0x7469_6570;

/// Tables that are the same in both layouts.
pub(crate) const TABLES: &str = "
    PRAGMA application_id = 0x74696570;
    CREATE TABLE cameras (
        camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
        model INTEGER NOT NULL,
        width INTEGER NOT NULL,
        height INTEGER NOT NULL,
        params BLOB,
        prior_focal_length INTEGER NOT NULL
    );
    CREATE TABLE keypoints (
        image_id INTEGER PRIMARY KEY NOT NULL,
        rows INTEGER NOT NULL,
        cols INTEGER NOT NULL,
        data BLOB,
        FOREIGN KEY (image_id) REFERENCES images (image_id) ON DELETE CASCADE
    );
    CREATE TABLE matches (
        pair_id INTEGER PRIMARY KEY NOT NULL,
        rows INTEGER NOT NULL,
        cols INTEGER NOT NULL,
        data BLOB
    );
    CREATE TABLE two_view_geometries (
        pair_id INTEGER PRIMARY KEY NOT NULL,
        rows INTEGER NOT NULL,
        cols INTEGER NOT NULL,
        data BLOB,
        config INTEGER NOT NULL,
        F BLOB,
        E BLOB,
        H BLOB,
        qvec BLOB,
        tvec BLOB
    );
";

/// The others of 4.1.
pub(crate) const NEW_TABLES: &str = "
    PRAGMA user_version = 4010100;
    CREATE TABLE rigs (
        rig_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
        ref_sensor_id INTEGER NOT NULL,
        ref_sensor_type INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX rig_ref_sensor_assignment ON rigs (ref_sensor_id, ref_sensor_type);
    CREATE TABLE rig_sensors (
        rig_id INTEGER NOT NULL,
        sensor_id INTEGER NOT NULL,
        sensor_type INTEGER NOT NULL,
        sensor_from_rig BLOB,
        FOREIGN KEY (rig_id) REFERENCES rigs (rig_id) ON DELETE CASCADE
    );
    CREATE UNIQUE INDEX rig_sensor_assignment ON rig_sensors (sensor_id, sensor_type);
    CREATE TABLE frames (
        frame_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
        rig_id INTEGER NOT NULL,
        FOREIGN KEY (rig_id) REFERENCES rigs (rig_id) ON DELETE CASCADE
    );
    CREATE TABLE frame_data (
        frame_id INTEGER NOT NULL,
        data_id INTEGER NOT NULL,
        sensor_id INTEGER NOT NULL,
        sensor_type INTEGER NOT NULL,
        FOREIGN KEY (frame_id) REFERENCES frames (frame_id) ON DELETE CASCADE
    );
    CREATE UNIQUE INDEX frame_sensor_assignment ON frame_data (data_id, sensor_type);
    CREATE TABLE images (
        image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
        name TEXT NOT NULL UNIQUE,
        camera_id INTEGER NOT NULL,
        CONSTRAINT image_id_check CHECK (image_id >= 0 AND image_id < 2147483647),
        FOREIGN KEY (camera_id) REFERENCES cameras (camera_id)
    );
    CREATE UNIQUE INDEX index_name ON images (name);
    CREATE TABLE pose_priors (
        pose_prior_id INTEGER PRIMARY KEY NOT NULL,
        corr_data_id INTEGER NOT NULL,
        corr_sensor_id INTEGER NOT NULL,
        corr_sensor_type INTEGER NOT NULL,
        position BLOB,
        position_covariance BLOB,
        gravity BLOB,
        coordinate_system INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX pose_prior_data_assignment ON pose_priors (corr_data_id, corr_sensor_id, corr_sensor_type);
    CREATE TABLE descriptors (
        image_id INTEGER PRIMARY KEY NOT NULL,
        type INTEGER NOT NULL,
        rows INTEGER NOT NULL,
        cols INTEGER NOT NULL,
        data BLOB,
        FOREIGN KEY (image_id) REFERENCES images (image_id) ON DELETE CASCADE
    );
";

/// Each camera is a rig of its own, each image a frame of its own. 0 is a camera, as a kind of sensor.
pub(crate) const RIGS_AND_FRAMES: &str = "
    INSERT INTO rigs SELECT camera_id, camera_id, 0 FROM cameras;
    INSERT INTO frames SELECT image_id, camera_id FROM images;
    INSERT INTO frame_data SELECT image_id, image_id, camera_id, 0 FROM images;
";

/// The other tables of 3.8: no rigs and frames, positions in the table of images, one type of descriptors.
pub(crate) const OLD_TABLES: &str = "
    PRAGMA user_version = 3800;
    CREATE TABLE images (
        image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
        name TEXT NOT NULL UNIQUE,
        camera_id INTEGER NOT NULL,
        prior_qw REAL,
        prior_qx REAL,
        prior_qy REAL,
        prior_qz REAL,
        prior_tx REAL,
        prior_ty REAL,
        prior_tz REAL,
        CONSTRAINT image_id_check CHECK (image_id >= 0 AND image_id < 2147483647),
        FOREIGN KEY (camera_id) REFERENCES cameras (camera_id)
    );
    CREATE UNIQUE INDEX index_name ON images (name);
    CREATE TABLE descriptors (
        image_id INTEGER PRIMARY KEY NOT NULL,
        rows INTEGER NOT NULL,
        cols INTEGER NOT NULL,
        data BLOB,
        FOREIGN KEY (image_id) REFERENCES images (image_id) ON DELETE CASCADE
    );
";
