//! Compiled programs on disk, one file each, found by everything that they depend on.
//!
//! The folder is `$TIEPOINT_CACHE`, or `tiepoint` in the user's cache folder (`$XDG_CACHE_HOME`, `$LOCALAPPDATA` or
//! `$HOME/.cache`, the first that is set and not empty); an empty `$TIEPOINT_CACHE` turns the cache off. A file begins
//! with its whole key (source, options, device, driver), so that neither a collision of names nor a broken file can
//! bring a wrong program. What cannot be read or written is silently compiled anew.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

const MAGIC: &[u8; 8] = b"tpgpu 1\n";

/// The folder by these environment variables; `None` where the cache is off or no folder is known.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // An empty variable counts as one that is not set: the folder would be a part of the current one.
    let named = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if variable("TIEPOINT_CACHE").is_some() {
        return named("TIEPOINT_CACHE");
    }
    let home = || named("HOME").map(|home| home.join(".cache"));
    let users = named("XDG_CACHE_HOME").or_else(|| named("LOCALAPPDATA")).or_else(home);
    users.map(|folder| folder.join("tiepoint"))
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn file(key: &str) -> Option<PathBuf> {
    Some(folder(|name| std::env::var_os(name))?.join(format!("{:016x}.kernel", hash(key.as_bytes()))))
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

#[cfg(test)]
mod tests {
    use super::folder;
    use std::path::Path;

    #[test]
    fn the_folder_follows_the_environment() {
        let found = |set: &[(&str, &str)]| {
            folder(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        let home = ("HOME", "/home/me");
        assert_eq!(found(&[home]).as_deref(), Some(Path::new("/home/me/.cache/tiepoint")));
        assert_eq!(found(&[home, ("XDG_CACHE_HOME", "/fast")]).as_deref(), Some(Path::new("/fast/tiepoint")));
        let empty = [home, ("XDG_CACHE_HOME", "")];
        assert_eq!(found(&empty).as_deref(), Some(Path::new("/home/me/.cache/tiepoint")), "empty is not set");
        assert_eq!(found(&[home, ("TIEPOINT_CACHE", "/mine")]).as_deref(), Some(Path::new("/mine")));
        assert_eq!(found(&[home, ("TIEPOINT_CACHE", "")]), None, "turned off");
        assert_eq!(found(&[]), None, "no folder is known");
    }
}
