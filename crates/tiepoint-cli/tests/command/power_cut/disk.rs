//! A disk that loses what was not brought to it: replays a record of file operations (`recorder.c`) up to some moment,
//! and gives what a power cut then would have left.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use tiepoint::synth::Random;

/// A change to files, or something that was said on stdout.
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

/// The events of a record, in their order.
pub(super) fn events(record: &Path) -> Vec<Event> {
    let bytes = std::fs::read(record).unwrap();
    let (mut rest, mut events) = (&bytes[..], Vec::new());
    let number = |rest: &mut &[u8]| {
        let (head, tail) = rest.split_at(8);
        *rest = tail;
        u64::from_le_bytes(head.try_into().unwrap())
    };
    while let Some((&kind, tail)) = rest.split_first() {
        rest = tail;
        let (file, offset) = (number(&mut rest), number(&mut rest) as usize);
        let mut text = || {
            let length = number(&mut rest) as usize;
            let (text, tail) = rest.split_at(length);
            rest = tail;
            text.to_vec()
        };
        let (first, second) = (text(), text());
        events.push(Event { kind, file, offset, first, second });
    }
    events
}

/// What has been lost, besides the bytes that were never synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Names too, of which the folder was not synced.
    NamesToo,
    /// No names: they reach the disk at once, before the bytes of their files.
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

/// Names and files, as programs see them and as they lie on the disk.
#[derive(Default)]
pub(super) struct Disk {
    files: Vec<File>,
    /// The file that has a number at present: a number is given again when its file is gone.
    numbers: HashMap<u64, usize>,
    now: BTreeMap<PathBuf, Node>,
    synced: BTreeMap<PathBuf, Node>,
}

impl Disk {
    /// With files that were there, and on the disk, before the record begins.
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

    /// Makes `root` hold what a power cut now would leave.
    pub(super) fn leave(&self, root: &Path, loss: Loss, random: &mut Random) {
        std::fs::remove_dir_all(root).unwrap();
        let names = if loss == Loss::NamesToo { &self.synced } else { &self.now };
        for (path, node) in names {
            // What lies in a folder that is lost is lost.
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
