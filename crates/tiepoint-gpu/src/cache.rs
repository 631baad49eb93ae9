//! Compiled programs on disk, one file each, found by everything that they depend on.
//!
//! The folder is `$TIEPOINT_CACHE`, or `tiepoint` in the user's cache folder; an empty `$TIEPOINT_CACHE` turns the
//! cache off. A file begins with its whole key (source, options, device, driver), so that neither a collision of names
//! nor a broken file can bring a wrong program. What cannot be read or written is silently compiled anew.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

const MAGIC: &[u8; 8] = b"tpgpu 1\n";

fn folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    match named("TIEPOINT_CACHE") {
        Some(folder) if folder.as_os_str().is_empty() => None,
        Some(folder) => Some(folder),
        None => {
            let home = || named("HOME").map(|h| h.join(".cache"));
            named("XDG_CACHE_HOME")
                .or_else(|| named("LOCALAPPDATA"))
                .or_else(home)
                .map(|f| f.join("tiepoint"))
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn file(key: &str) -> Option<PathBuf> {
    Some(folder()?.join(format!("{:016x}.kernel", hash(key.as_bytes()))))
}

/// The binary that was stored under this very key.
pub(crate) fn load(key: &str) -> Option<Vec<u8>> {
    let content = std::fs::read(file(key)?).ok()?;
    let rest = content.strip_prefix(MAGIC)?;
    let (sizes, rest) = rest.split_first_chunk::<16>()?;
    let (key_len, check) = sizes.split_first_chunk::<8>()?;
    let key_len = usize::try_from(u64::from_le_bytes(*key_len)).ok()?;
    let check = u64::from_le_bytes(check.try_into().ok()?);
    let binary = rest.strip_prefix(key.as_bytes()).filter(|_| key_len == key.len())?;
    (hash(binary) == check).then(|| binary.to_vec())
}

/// Keeps a binary for the next run.
pub(crate) fn store(key: &str, binary: &[u8]) {
    let Some(path) = file(key) else { return };
    let Some(folder) = path.parent() else { return };
    let mut content = MAGIC.to_vec();
    content.extend((key.len() as u64).to_le_bytes());
    content.extend(hash(binary).to_le_bytes());
    content.extend(key.as_bytes());
    content.extend(binary);
    // Whole or not at all: written beside its place and renamed, so that two processes do not disturb each other.
    let beside = path.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&beside, content));
    if written.and_then(|()| std::fs::rename(&beside, &path)).is_err() {
        let _ = std::fs::remove_file(&beside);
    }
}
