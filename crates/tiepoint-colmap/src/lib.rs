//! A [`Collection`] as a database of COLMAP.
//!
//! | table | holds |
//! |---|---|
//! | `cameras` | `SIMPLE_RADIAL`: f, cx, cy, 0; `prior_focal_length` where the photographs say f |
//! | `images` | every photograph that can be read; ids are the collection's numbers |
//! | `keypoints` | x, y and the affine shape, 6 columns; COLMAP's first pixel has its centre at (½, ½) |
//! | `descriptors` | SIFT's 128 bytes, type SIFT; others as bytes or 4-byte floats, type undefined, not in 3.8 |
//! | `matches`, `two_view_geometries` | verified pairs alone: all their matches; those confirmed, configuration, F, E, H |
//! | `pose_priors` | WGS 84, of photographs that say latitude, longitude and altitude; gravity, of those that say their orientation and are not mirrored, as COLMAP 4.2 |
//! | `rigs`, `frames`, their tables | one rig for each camera, one frame for each image, as in COLMAP; not in 3.8 |
//!
//! The layout is that of COLMAP 4.1 (`user_version` 4010100), which later versions upgrade when they open it. On
//! request it is that of 3.8, which Debian and Ubuntu package: later versions read it, too, but it holds no gravity. F,
//! E and H go from the image with the smaller id to the other, row by row, in COLMAP's pixel coordinates.
//!
//! Rows are written in the order of their keys in one transaction, into a file beside the final one, which is flushed
//! to disk and renamed at the end. `application_id` tells databases that were written here from others.

mod place;
mod rows;
mod schema;

use place::Unfinished;
use rows::{descriptors, floats, keypoints, moved_fundamental, moved_homography, numbers};
use rusqlite::{Connection, OpenFlags, Statement, params};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use tiepoint::assess::CollectionEvidence;
use tiepoint::collection::{Collection, PhotographFeatures, VerifiedPair};
use tiepoint::device::Cpu;
use tiepoint::feature::Features;
use tiepoint::image::Size;
use tiepoint::{Error, Result};

/// How a database is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportOptions {
    /// Whether an existing file that was not written here is replaced. Default false.
    pub replace: bool,
    /// Whether descriptors are left out: the mapper does not read them, and without them the file has a sixth of the
    /// size. Default false.
    pub without_descriptors: bool,
    /// Whether the layout is that of COLMAP 3.8, which cannot open newer ones. Default false.
    pub old_layout: bool,
}

impl ExportOptions {
    /// These options with another [`replace`](Self::replace).
    #[must_use]
    pub fn with_replace(self, replace: bool) -> Self {
        Self { replace, ..self }
    }

    /// These options with another [`without_descriptors`](Self::without_descriptors).
    #[must_use]
    pub fn with_without_descriptors(self, without_descriptors: bool) -> Self {
        Self { without_descriptors, ..self }
    }

    /// These options with another [`old_layout`](Self::old_layout).
    #[must_use]
    pub fn with_old_layout(self, old_layout: bool) -> Self {
        Self { old_layout, ..self }
    }
}

/// The contents of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Exported {
    /// Cameras.
    pub cameras: usize,
    /// Images.
    pub images: usize,
    /// Keypoints of all images.
    pub keypoints: u64,
    /// Verified pairs.
    pub pairs: u64,
    /// Their inliers.
    pub inliers: u64,
    /// Images with a position.
    pub positions: usize,
    /// How well the verified pairs connect the images.
    #[serde(skip)]
    pub evidence: CollectionEvidence,
}

impl Exported {
    /// A warning if no pair was verified although one could have been.
    pub fn warning(&self) -> Option<String> {
        let none = self.pairs == 0 && self.images > 1;
        none.then(|| "no two photographs were found to show the same thing".into())
    }
}

/// Fails if [`export`] could not write to `path`. To be called before hours of work.
///
/// # Errors
/// [`Error::Format`] and [`Error::Io`] as [`export`].
pub fn check_place(path: impl AsRef<Path>, options: &ExportOptions) -> Result<()> {
    Unfinished::beside(path.as_ref(), options.replace).map(drop)
}

/// Writes the database of a finished collection to `path`.
///
/// # Errors
/// [`Error::Format`] for a file in the way that was not written here or is in use, or when a stage is missing;
/// [`Error::Mismatch`] when not all pairs are matched; [`Error::Io`] when the database cannot be written;
/// [`Error::Cancelled`] when the work of `cpu` is to end.
pub fn export(
    collection: &Collection,
    path: impl AsRef<Path>,
    options: &ExportOptions,
    cpu: &Cpu,
) -> Result<Exported> {
    export_beside(collection, path, options, cpu, || Ok(()))
}

/// As [`export`], but the pairs need not be matched yet: `matching` matches them while another thread writes the
/// photographs and their features, which are most of the database. The file is the same.
///
/// # Errors
/// As [`export`], and those of `matching`.
pub fn export_beside<E: From<Error>>(
    collection: &Collection,
    path: impl AsRef<Path>,
    options: &ExportOptions,
    cpu: &Cpu,
    matching: impl FnOnce() -> std::result::Result<(), E>,
) -> std::result::Result<Exported, E> {
    let path = path.as_ref();
    collection.check_output(path)?;
    let unfinished = Unfinished::beside(path, options.replace)?;
    let fault = |e: rusqlite::Error| Error::io(path, std::io::Error::other(e));
    let (written, progress) = channel();
    let photographs = || -> Result<_> {
        let database = open(unfinished.path(), options.old_layout).map_err(fault)?;
        let mut exported = Exported::default();
        let mut tables = Tables::prepare(&database, options).map_err(fault)?;
        let mut sizes = Vec::with_capacity(collection.photographs().len());
        for_each_features(collection, |index, features| {
            cpu.check()?;
            // The receiver is gone when matching has failed.
            written.send(()).map_err(|_| Error::Cancelled)?;
            sizes.push(features.map(|features| features.image));
            let Some(features) = features else { return Ok(()) };
            exported.keypoints += features.len() as u64;
            tables.insert_features(index + 1, features).map_err(fault)
        })?;
        tables.insert_images(collection, &sizes, &mut exported).map_err(fault)?;
        drop((tables, written));
        if !options.old_layout {
            database.execute_batch(schema::RIGS_AND_FRAMES).map_err(fault)?;
        }
        Ok((database, exported))
    };
    let (results, cpu, inserted) = thread::scope(|scope| {
        let (thread, progress) = (scope.spawn(photographs), progress);
        matching()?;
        let results = collection.results(cpu)?;
        let cpu = cpu.begin_task("export", collection.photographs().len() + results.blocks());
        progress.iter().for_each(|()| cpu.advance(1));
        Ok::<_, E>((results, cpu, thread.join().unwrap_or_else(|panic| resume_unwind(panic))))
    })?;
    let (database, mut exported) = inserted?;
    let mut tables = Tables::prepare(&database, options).map_err(fault)?;
    let mut counts = vec![];
    for block in 0..results.blocks() {
        cpu.advance(1);
        for pair in results.pairs_of(block)? {
            cpu.check()?;
            exported.pairs += 1;
            counts.push(pair.counts());
            exported.inliers += tables.insert_pair(&pair).map_err(fault)? as u64;
        }
    }
    exported.evidence = collection.evidence(collection.photographs().len() - exported.images, &counts);
    drop(tables);
    database.execute_batch("COMMIT").map_err(fault)?;
    database.close().map_err(|(_, e)| fault(e))?;
    unfinished.take_place(collection.syncs())?;
    Ok(exported)
}

/// An empty database with COLMAP's tables, in a transaction. It needs no journal: what is interrupted is thrown away.
fn open(path: &Path, old_layout: bool) -> rusqlite::Result<Connection> {
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    database.execute_batch(schema::PRAGMAS)?;
    database.execute_batch(schema::TABLES)?;
    database.execute_batch(if old_layout { schema::OLD_TABLES } else { schema::NEW_TABLES })?;
    database.execute_batch("BEGIN")?;
    Ok(database)
}

/// Passes on the features of all photographs in order, read ahead by a thread; `None` for one that cannot be read.
fn for_each_features(
    collection: &Collection,
    mut take: impl FnMut(usize, Option<&Features>) -> Result<()>,
) -> Result<()> {
    let count = collection.photographs().len();
    let (send, read) = sync_channel(8);
    thread::scope(|scope| {
        // Sending fails once the receiver is dropped.
        scope.spawn(move || (0..count).try_for_each(|i| send.send(collection.features(i))).is_ok());
        for (index, features) in read.into_iter().enumerate() {
            match features? {
                PhotographFeatures::Found(features) => take(index, Some(&features))?,
                PhotographFeatures::Unreadable(_) => take(index, None)?,
                _ => {
                    let name = &collection.photographs()[index].name;
                    let reason = format!("{name} has no features; run the stage `features` first");
                    return Err(Error::Mismatch(reason));
                }
            }
        }
        Ok(())
    })
}

/// Types of descriptors, and the bytes of SIFT's.
const UNDEFINED: i32 = -1;
const SIFT: i32 = 0;
const SIFT_BYTES: usize = 128;
/// `SIMPLE_RADIAL`.
const MODEL: u32 = 2;
/// A camera, as a kind of sensor.
const CAMERA: u32 = 0;
/// WGS 84, and none, as coordinate systems.
const WGS84: i32 = 0;
const NO_SYSTEM: i32 = -1;

struct Tables<'d> {
    keypoints: Statement<'d>,
    descriptors: Statement<'d>,
    cameras: Statement<'d>,
    images: Statement<'d>,
    /// `None` if positions are columns of the table of images.
    priors: Option<Statement<'d>>,
    matches: Statement<'d>,
    geometries: Statement<'d>,
    options: ExportOptions,
}

impl<'d> Tables<'d> {
    fn prepare(database: &'d Connection, options: &ExportOptions) -> rusqlite::Result<Self> {
        let (descriptors, images) = match options.old_layout {
            true => ("?1, ?3, ?4, ?5", "?, ?, ?, NULL, NULL, NULL, NULL, ?, ?, ?"),
            false => ("?1, ?2, ?3, ?4, ?5", "?, ?, ?"),
        };
        let priors = "INSERT INTO pose_priors VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        Ok(Self {
            keypoints: database.prepare("INSERT INTO keypoints VALUES (?, ?, 6, ?)")?,
            descriptors: database.prepare(&format!("INSERT INTO descriptors VALUES ({descriptors})"))?,
            cameras: database.prepare("INSERT INTO cameras VALUES (?, ?, ?, ?, ?, ?)")?,
            images: database.prepare(&format!("INSERT INTO images VALUES ({images})"))?,
            priors: (!options.old_layout).then(|| database.prepare(priors)).transpose()?,
            matches: database.prepare("INSERT INTO matches VALUES (?, ?, 2, ?)")?,
            geometries: database.prepare(
                "INSERT INTO two_view_geometries (pair_id, rows, cols, data, config, F, E, H, qvec, tvec) VALUES (?, ?, 2, ?, ?, ?, ?, ?, ?, ?)",
            )?,
            options: *options,
        })
    }

    fn insert_features(&mut self, id: usize, features: &Features) -> rusqlite::Result<()> {
        let ExportOptions { without_descriptors, old_layout, .. } = self.options;
        self.keypoints.execute(params![id, features.len(), keypoints(&features.keypoints)])?;
        let (bytes, width) = descriptors(&features.descriptors);
        let (count, dimension) = (features.len(), features.dimension);
        let kind = if (width, dimension) == (1, SIFT_BYTES) { SIFT } else { UNDEFINED };
        // Version 3.8 holds only SIFT's descriptors.
        let written = !without_descriptors && dimension > 0 && (kind == SIFT || !old_layout);
        if written {
            self.descriptors.execute(params![id, kind, count, width * dimension, bytes])?;
        }
        Ok(())
    }

    fn insert_images(
        &mut self,
        collection: &Collection,
        sizes: &[Option<Size>],
        exported: &mut Exported,
    ) -> rusqlite::Result<()> {
        let (cameras, camera_of) = collection.cameras(sizes);
        exported.cameras = cameras.len();
        for (i, camera) in cameras.iter().enumerate() {
            let Size { width, height } = camera.size;
            let parameters = floats(&[camera.focal_px, width as f64 / 2.0, height as f64 / 2.0, 0.0]);
            self.cameras.execute(params![i + 1, MODEL, width, height, parameters, camera.focal_known])?;
        }
        let covariance = floats(&[f64::NAN; 9]);
        for ((index, photograph), camera) in collection.photographs().iter().enumerate().zip(camera_of) {
            let (id, Some(camera)) = (index + 1, camera) else { continue };
            exported.images += 1;
            let gravity = photograph.metadata.gravity;
            let position = photograph.metadata.position;
            let position = position.and_then(|at| Some([at.latitude, at.longitude, at.altitude?]));
            exported.positions += usize::from(position.is_some());
            let Some(priors) = &mut self.priors else {
                let [x, y, z] = [0, 1, 2].map(|i| position.map(|at| at[i]));
                self.images.execute(params![id, photograph.name, camera + 1, x, y, z])?;
                continue;
            };
            self.images.execute(params![id, photograph.name, camera + 1])?;
            if position.is_none() && gravity.is_none() {
                continue;
            }
            let (place, system) = match position {
                Some(at) => (at, WGS84),
                None => ([f64::NAN; 3], NO_SYSTEM),
            };
            let (place, gravity) = (floats(&place), floats(&gravity.unwrap_or([f64::NAN; 3])));
            priors.execute(params![id, id, camera + 1, CAMERA, place, covariance, gravity, system])?;
        }
        Ok(())
    }

    /// Returns the number of inliers.
    fn insert_pair(&mut self, pair: &VerifiedPair) -> rusqlite::Result<usize> {
        // COLMAP's key of a pair of images.
        let id = 2_147_483_647 * (pair.a as u64 + 1) + pair.b as u64 + 1;
        self.matches.execute(params![id, pair.matches.len(), numbers(&pair.matches)])?;
        let inliers: Vec<[u32; 2]> = pair.inliers().collect();
        // For unknown models and poses of a pair with inliers 3.8 writes zeros and not NULL.
        let zeros = self.options.old_layout && !inliers.is_empty();
        let unknown = |bytes: usize| zeros.then(|| vec![0_u8; bytes]);
        let f = pair.fundamental.map(|f| floats(&moved_fundamental(f))).or(unknown(72));
        let e = pair.essential.map(|e| floats(&e)).or(unknown(72));
        let h = pair.homography.map(|h| floats(&moved_homography(h))).or(unknown(72));
        let (rows, data, code) = (inliers.len(), numbers(&inliers), pair.configuration.code());
        self.geometries.execute(params![id, rows, data, code, f, e, h, unknown(32), unknown(24)])?;
        Ok(rows)
    }
}
