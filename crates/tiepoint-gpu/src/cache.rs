//! Compiled programs on disk, one file each, found by everything that they depend on.
//!
//! The folder is `$TIEPOINT_CACHE`, or `tiepoint` in the user's cache folder (`$XDG_CACHE_HOME`, `$LOCALAPPDATA` or
//! `$HOME/.cache`, the first that is set and not empty); an empty `$TIEPOINT_CACHE` turns the cache off. A file begins
//! with its whole key (source, options, device, driver), so that neither a collision of names nor a broken file can
//! bring a wrong program. What cannot be read or written is silently compiled anew. The folder keeps to 256 MiB: what
//! was used longest ago is removed when something is added.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 8] = b"tpgpu 1\n";

/// The most bytes of all files. A program takes ten to a hundred thousand.
const MOST: u64 = 256 << 20;
/// A temporary file that is older was left by a process that ended.
const LEFT: Duration = Duration::from_secs(3600);

/// The folder by these environment variables; `None` where the cache is off or no folder is known.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // An empty variable counts as not set: otherwise the folder would be a part of the current one.
    let named = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if variable("TIEPOINT_CACHE").is_some() {
        return named("TIEPOINT_CACHE");
    }
    let home = || named("HOME").map(|home| home.join(".cache"));
    let users = named("XDG_CACHE_HOME").or_else(|| named("LOCALAPPDATA")).or_else(home);
    users.map(|folder| folder.join("tiepoint"))
}

pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn file(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!("{:016x}.kernel", hash(key.as_bytes())))
}

pub(crate) fn load(key: &str) -> Option<Vec<u8>> {
    load_from(&folder(|name| std::env::var_os(name))?, key)
}

fn load_from(folder: &Path, key: &str) -> Option<Vec<u8>> {
    let mut file = File::open(file(folder, key)).ok()?;
    let mut content = Vec::new();
    file.read_to_end(&mut content).ok()?;
    let rest = content.strip_prefix(MAGIC)?;
    let (sizes, rest) = rest.split_first_chunk::<16>()?;
    let (key_len, check) = sizes.split_first_chunk::<8>()?;
    let key_len = usize::try_from(u64::from_le_bytes(*key_len)).ok()?;
    let check = u64::from_le_bytes(check.try_into().ok()?);
    let binary = rest.strip_prefix(key.as_bytes()).filter(|_| key_len == key.len())?;
    // If this cannot be recorded, the file counts as used when it was made.
    let _ = file.set_modified(SystemTime::now());
    (hash(binary) == check).then(|| binary.to_vec())
}

pub(crate) fn store(key: &str, binary: &[u8]) {
    if let Some(folder) = folder(|name| std::env::var_os(name)) {
        store_in(&folder, key, binary);
        shrink(&folder, MOST);
    }
}

fn store_in(folder: &Path, key: &str, binary: &[u8]) {
    let path = file(folder, key);
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

/// Removes the files that were used longest ago until all take no more than `most` bytes, and what killed processes
/// have left. Another process that is reading such a file reads it to its end, or compiles anew.
fn shrink(folder: &Path, most: u64) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let ours = |path: &Path| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        name.len() == 16 && name.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok().filter(|entry| ours(&entry.path()))?;
            let about = entry.metadata().ok().filter(Metadata::is_file)?;
            Some((about.modified().ok()?, about.len(), entry.path()))
        })
        .collect();
    files.sort_unstable();
    let mut bytes: u64 = files.iter().map(|file| file.1).sum();
    for (used, len, path) in files {
        let is_left =
            path.extension().is_none_or(|e| e != "kernel") && used.elapsed().is_ok_and(|t| t > LEFT);
        if (is_left || bytes > most) && std::fs::remove_file(&path).is_ok() {
            bytes -= len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LEFT, file, folder, load_from, shrink, store_in};
    use std::fs::File;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_least_recently_used_files_make_room() {
        let folder = std::env::temp_dir().join(format!("tiepoint-cache-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let long_ago = SystemTime::now() - 2 * LEFT;
        let set_used = |path: &Path, time| {
            File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
        };
        let names = ["a", "b", "c", "d"];
        for (name, seconds) in names.into_iter().zip(0..) {
            store_in(&folder, name, &[7; 1000]);
            set_used(&file(&folder, name), long_ago + Duration::from_secs(seconds));
        }
        // A file that another process is writing, an old unfinished one, and one that the cache did not make.
        let [writing, left, other] =
            ["00000000000000aa.5-x", "00000000000000bb.5-x", "notes.txt"].map(|name| folder.join(name));
        [&writing, &left, &other].iter().for_each(|path| std::fs::write(path, [0; 100]).unwrap());
        set_used(&left, long_ago);
        assert_eq!(load_from(&folder, "a").as_deref(), Some(&[7; 1000][..]), "a is used");
        shrink(&folder, u64::MAX);
        assert!(names.iter().all(|name| load_from(&folder, name).is_some()), "room for all");
        assert!(!left.exists() && writing.exists() && other.exists(), "the old unfinished file goes");
        for (name, seconds) in names.into_iter().zip([3, 0, 1, 2]) {
            set_used(&file(&folder, name), long_ago + Duration::from_secs(seconds));
        }
        shrink(&folder, 2500);
        let kept = names.map(|name| load_from(&folder, name).is_some());
        assert_eq!(kept, [true, false, false, true], "the two that were used last");
        assert!(writing.exists() && other.exists(), "files of others were removed");
        std::fs::remove_dir_all(&folder).unwrap();
    }

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
