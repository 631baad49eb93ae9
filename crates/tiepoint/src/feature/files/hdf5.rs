//! HDF5: features and matches of hloc, which Python's h5py writes.
//!
//! The crate `hdf5-reader`, pure Rust, reads only the needed parts of a file. External files and links are not
//! followed, and no array may take more memory than [`MOST_BYTES`].

use super::arrays::{self, Array};
use crate::feature::Features;
use crate::{Error, Result};
use hdf5_reader::error::Error as Damage;
use hdf5_reader::storage::{DynStorage, FileStorage};
use hdf5_reader::{ByteOrder, Datatype, Hdf5File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The largest array that is read: descriptors of two million features of 256 floats.
const MOST_BYTES: usize = 1 << 31;
/// The largest size of an array as a multiple of its file's size: more than deflate can compress. Arrays up to
/// [`SMALL`] bytes are not limited by this, because they may consist of fill values.
const MOST_TIMES: u64 = 1100;
const SMALL: u64 = 1 << 24;

/// An HDF5 file that is open.
pub(crate) struct Hdf5 {
    file: Hdf5File,
    /// The bytes of the file.
    len: u64,
}

/// Why something in a file cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The system failed to read, which may pass.
    System(io::Error),
    /// The file is damaged, or is one that is not read.
    File(String),
    /// An array is not as it should be; others may be.
    Array(String),
}

impl Fault {
    /// The fault of the file at `place` in it.
    fn of(error: Damage, place: &str) -> Self {
        if let Damage::Io(e) = error {
            return Self::System(e);
        }
        let told = error.to_string();
        // lzf, of h5py, has the number 32000.
        let advice = match told.contains("unsupported filter") {
            true => ": expected no compression or gzip, to which `h5repack -f GZIP=4 OLD NEW` converts",
            false => "",
        };
        Self::File(format!("{place}: {told}{advice}"))
    }

    /// As an error of the file at `path`.
    pub(crate) fn at(self, path: &Path) -> Error {
        match self {
            Self::System(e) => Error::io(path, e),
            Self::File(reason) | Self::Array(reason) => Error::format(path, reason),
        }
    }
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Array(reason)
    }
}

impl Hdf5 {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let is_file = std::fs::metadata(path).map_err(|e| Error::io(path, e))?.is_file();
        if !is_file {
            return Err(Error::format(path, "is not a regular file"));
        }
        let storage = FileStorage::open(path).map_err(|e| Fault::of(e, NO_FILE));
        storage.and_then(|storage| Self::of(Arc::new(storage))).map_err(|fault| fault.at(path))
    }

    /// A file whose bytes are read from `storage`.
    pub(crate) fn of(storage: DynStorage) -> std::result::Result<Self, Fault> {
        // Every array is read once.
        let options = OpenOptions::default().with_max_read_bytes(MOST_BYTES).with_chunk_cache_bytes(0);
        let len = storage.len();
        let file = Hdf5File::from_storage_with_options(storage, options);
        Ok(Self { file: file.map_err(|e| Fault::of(e, NO_FILE))?, len })
    }

    /// The names of the groups and of the arrays in a group.
    pub(crate) fn members(&self, group: &str) -> std::result::Result<(Vec<String>, Vec<String>), Fault> {
        let names = self.file.group(group).and_then(|group| group.member_names());
        names.map_err(|e| Fault::of(e, &format!("the group {group:?}")))
    }

    /// The features in the group of a photograph; `None` if there is none.
    pub(crate) fn features(&self, name: &str) -> std::result::Result<Option<Features>, Fault> {
        match self.file.group(name) {
            Err(Damage::GroupNotFound(_)) => return Ok(None),
            found => found.map_err(|e| Fault::of(e, NO_FILE))?,
        };
        arrays::features(|array| self.array(&format!("{name}/{array}")), arrays::Lie::Columns).map(Some)
    }

    /// The array at a place; `None` if there is none.
    pub(crate) fn array(&self, place: &str) -> std::result::Result<Option<Array>, Fault> {
        let (group, name) = place.rsplit_once('/').unwrap_or(("", place));
        let fault = |e| Fault::of(e, place);
        let group = self.file.group(group).map_err(fault)?;
        if !group.member_names().map_err(fault)?.1.iter().any(|there| there == name) {
            return Ok(None);
        }
        let data = group.dataset(name).map_err(fault)?;
        let (letter, size, order) = match data.dtype() {
            Datatype::FixedPoint { size, signed: true, byte_order } => ('i', size, byte_order),
            Datatype::FixedPoint { size, signed: false, byte_order } => ('u', size, byte_order),
            Datatype::FloatingPoint { size, byte_order } => ('f', size, byte_order),
            other => return Err(format!("{place} holds {other:?}, expected numbers").into()),
        };
        if *order == ByteOrder::BigEndian && *size > 1 {
            return Err(format!("{place} is big-endian, expected little-endian").into());
        }
        let shape = data.shape().iter().map(|side| usize::try_from(*side));
        let shape = shape.collect::<std::result::Result<Vec<_>, _>>().map_err(|e| format!("{place}: {e}"))?;
        let bytes = shape.iter().fold(*size as u64, |bytes, side| bytes.saturating_mul(*side as u64));
        if bytes > SMALL.max(self.len.saturating_mul(MOST_TIMES)) {
            return Err(Fault::File(format!(
                "{place}: {shape:?} is too large for a file of {} bytes; it is damaged",
                self.len
            )));
        }
        let kind = format!("{}{letter}{size}", if *size == 1 { '|' } else { '<' });
        let bytes = data.read_raw_bytes().map_err(fault)?;
        Ok(Some(Array::new(&kind, shape, bytes).map_err(|e| format!("{place}: {e}"))?))
    }
}

const NO_FILE: &str = "is no HDF5 file, or damaged";

impl std::fmt::Debug for Hdf5 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hdf5").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::Descriptors;
    use crate::image::Size;
    use crate::numeric::Random;
    use hdf5_reader::{BytesStorage, Storage, StorageBuffer};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// Files as h5py 3.16 writes them, in the oldest and in the newest form.
    const FEATURES: [&[u8]; 2] = [
        include_bytes!("../../../tests/samples/hloc.h5"),
        include_bytes!("../../../tests/samples/hloc-latest.h5"),
    ];
    const MATCHES: &[u8] = include_bytes!("../../../tests/samples/hloc-matches.h5");

    fn opened(bytes: &[u8]) -> std::result::Result<Hdf5, Fault> {
        Hdf5::of(Arc::new(BytesStorage::new(bytes.to_vec())))
    }

    #[test]
    fn a_side_that_the_file_cannot_hold_is_refused() {
        let mut refused = 0;
        for bytes in FEATURES {
            for at in (0..bytes.len() - 8).filter(|at| bytes[*at..][..8] == 3_u64.to_le_bytes()) {
                let mut damaged = bytes.to_vec();
                damaged[at + 3] = 1;
                let found = opened(&damaged).and_then(|file| file.features("a.png"));
                let is_told =
                    |why| matches!(why, Fault::File(why) if why.contains("too large for a file of"));
                refused += usize::from(found.is_err_and(is_told));
            }
        }
        assert!(refused > 0);
    }

    #[test]
    fn files_of_hloc_are_read() {
        for bytes in FEATURES {
            let file = opened(bytes).unwrap();
            for (name, n) in [("a.png", 3_u8), ("sub/b.png", 2)] {
                let found = file.features(name).unwrap().unwrap();
                assert_eq!(
                    (found.len(), found.dimension, found.image),
                    (n.into(), 4, Size::new(8, 6)),
                    "{name}"
                );
                let last = found.keypoints[usize::from(n) - 1];
                assert_eq!([last.x, last.y], [2.0 * f32::from(n) - 1.5, 2.0 * f32::from(n) - 0.5], "{name}");
                assert_eq!(last.response, f32::from(n - 1) / 4.0, "{name}: floats of 16 bits");
                let columns: Vec<f32> =
                    (0..n).flat_map(|i| (0..4).map(move |d| f32::from(d * n + i) / 8.0)).collect();
                assert_eq!(found.descriptors, Descriptors::F32(columns), "{name}: compressed columns");
            }
            assert_eq!(file.features("c.png").unwrap(), None, "a photograph that is not there");
            assert!(file.array("a.png/nothing").unwrap().is_none(), "an array that is not there");
        }
        let file = opened(MATCHES).unwrap();
        assert_eq!(
            (file.members("").unwrap().0, file.members("sub-b.png").unwrap().0),
            (vec!["sub-b.png".into()], vec!["a.png".into()])
        );
        assert_eq!(file.array("sub-b.png/a.png/matches0").unwrap().unwrap().integers(), [2, -1]);
    }

    /// A file on a disk that fails from some moment on.
    struct Failing(BytesStorage, AtomicBool);

    impl Storage for Failing {
        fn len(&self) -> u64 {
            self.0.len()
        }

        fn read_range(&self, offset: u64, len: usize) -> hdf5_reader::error::Result<StorageBuffer> {
            match self.1.load(Relaxed) {
                true => Err(io::Error::other("the disk failed").into()),
                false => self.0.read_range(offset, len),
            }
        }
    }

    #[test]
    fn errors_of_the_system_the_file_and_an_array_are_told_apart() {
        for bytes in FEATURES {
            let disk = Arc::new(Failing(BytesStorage::new(bytes.to_vec()), AtomicBool::new(false)));
            let file = Hdf5::of(disk.clone()).unwrap();
            disk.1.store(true, Relaxed);
            let told = file.features("a.png").unwrap_err();
            assert!(matches!(told, Fault::System(_)), "{told:?}");
            assert!(matches!(told.at(Path::new("f.h5")), Error::Io { .. }));
        }
        let file = opened(MATCHES).unwrap();
        let told = file.features("sub-b.png/a.png").unwrap_err();
        assert!(matches!(&told, Fault::Array(why) if why.contains("keypoints is missing")), "{told:?}");
    }

    #[test]
    fn damaged_files_end_in_an_answer() {
        let mut random = Random::new(31);
        let mut below = |n: usize| (random.unit() * n as f64) as usize;
        for round in 0..3000 {
            let mut bytes = FEATURES[round % 2].to_vec();
            for _ in 0..1 + below(6) {
                let at = below(bytes.len());
                bytes[at] = [0, 1, 255, bytes[at] ^ 1 << below(8)][below(4)];
            }
            if below(5) == 0 {
                bytes.truncate(below(bytes.len()));
            }
            let Ok(file) = opened(&bytes) else { continue };
            for name in ["a.png", "sub/b.png"] {
                if let Ok(Some(found)) = file.features(name) {
                    assert!(found.check().is_ok(), "what is read is in order");
                }
            }
        }
    }
}
