//! A disk that loses what was not synced: replays a record of file operations (`recorder.c`) up to some moment and
//! gives the files that a power cut at that moment would leave.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use tiepoint::synth::Random;

/// A change to files, or text printed on stdout.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) kind: u8,
    file: u64,
    offset: usize,
    first: Vec<u8>,
    second: Vec<u8>,
}

impl Event {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.first).unwrap()
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(self.text())
    }
}

pub(super) fn events(record: &Path) -> Vec<Event> {
    let bytes = std::fs::read(record).unwrap();
    let (mut rest, mut events) = (&bytes[..], Vec::new());
    let number = |rest: &mut &[u8]| u64::from_le_bytes(rest.split_off(..8).unwrap().try_into().unwrap());
    while let Some(&kind) = rest.split_off_first() {
        let (file, offset) = (number(&mut rest), number(&mut rest) as usize);
        let mut text = || {
            let length = number(&mut rest) as usize;
            rest.split_off(..length).unwrap().to_vec()
        };
        let (first, second) = (text(), text());
        events.push(Event { kind, file, offset, first, second });
    }
    events
}

/// What a power cut loses besides bytes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Names in folders that were not synced.
    NamesToo,
    /// Nothing: names reach the disk at once, before the bytes of their files.
    BytesAlone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File(usize),
}

#[derive(Default)]
struct File {
    now: Vec<u8>,
    synced: Vec<u8>,
}

/// Names and files, as programs see them (`now`) and as they are on the disk (`synced`).
#[derive(Default)]
pub(super) struct Disk {
    files: Vec<File>,
    /// The index in `files` of each inode number. The system reuses the number of a removed file.
    numbers: HashMap<u64, usize>,
    now: BTreeMap<PathBuf, Node>,
    synced: BTreeMap<PathBuf, Node>,
}

impl Disk {
    /// A disk with files that were synced before the record begins.
    pub(super) fn with(root: &Path, before: &[(PathBuf, Vec<u8>)]) -> Self {
        let mut disk = Self::default();
        disk.now.insert(root.to_owned(), Node::Folder);
        for (path, content) in before {
            disk.now.insert(path.clone(), Node::File(disk.files.len()));
            disk.files.push(File { now: content.clone(), synced: content.clone() });
        }
        disk.synced = disk.now.clone();
        disk
    }

    pub(super) fn apply(&mut self, event: &Event) {
        let of = |disk: &Self| disk.numbers.get(&event.file).copied();
        match event.kind {
            b'C' => {
                self.numbers.insert(event.file, self.files.len());
                self.now.insert(event.path(), Node::File(self.files.len()));
                self.files.push(File::default());
            }
            b'W' => {
                let Some(file) = of(self) else { panic!("a file of the test itself is written") };
                let (now, end) = (&mut self.files[file].now, event.offset + event.first.len());
                now.resize(now.len().max(end), 0);
                now[event.offset..end].copy_from_slice(&event.first);
            }
            b'T' => {
                let Some(file) = of(self) else { panic!("a file of the test itself is cut") };
                self.files[file].now.resize(event.offset, 0);
            }
            b'R' => {
                let (from, to) = (event.path(), PathBuf::from(std::str::from_utf8(&event.second).unwrap()));
                let node = self.now.remove(&from).unwrap();
                assert!(matches!(node, Node::File(_)), "no folder is renamed");
                self.now.insert(to, node);
            }
            b'U' => drop(self.now.remove(&event.path())),
            b'M' => drop(self.now.insert(event.path(), Node::Folder)),
            b'S' => {
                if let Some(file) = of(self) {
                    self.files[file].synced = self.files[file].now.clone();
                }
            }
            b'F' => {
                let folder = event.path();
                let within = |path: &PathBuf| path.parent() == Some(&folder);
                self.synced.retain(|path, _| !within(path));
                let entries = self.now.iter().filter(|(path, _)| within(path));
                self.synced.extend(entries.map(|(path, node)| (path.clone(), *node)));
            }
            b'P' => {}
            _ => panic!("{}: a change that this disk does not know", event.text()),
        }
    }

    /// Fills `root` with the files that a power cut now would leave.
    pub(super) fn leave(&self, root: &Path, loss: Loss, random: &mut Random) {
        std::fs::remove_dir_all(root).unwrap();
        let names = if loss == Loss::NamesToo { &self.synced } else { &self.now };
        for (path, node) in names {
            // A file is lost with its folder.
            if path != root && !path.parent().is_some_and(Path::is_dir) {
                continue;
            }
            match node {
                Node::Folder => std::fs::create_dir(path).unwrap(),
                Node::File(number) => {
                    let File { now, synced } = &self.files[*number];
                    let lost = [now[..now.len() / 2].to_vec(), vec![0; now.len()], synced.clone()];
                    let content = match now == synced {
                        true => synced,
                        false => &lost[(random.unit() * 3.0) as usize],
                    };
                    std::fs::write(path, content).unwrap();
                }
            }
        }
    }
}
