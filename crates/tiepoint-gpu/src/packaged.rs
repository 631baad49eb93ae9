//! Packaged kernels: programs for CUDA that were compiled when the package was made, found by a hash of their source.
//!
//! The variable `TIEPOINT_CUDA_KERNELS` of the build names the file, which `cargo xtask kernels` writes; without it there
//! are none, and every program is compiled where it is first used. A program whose source was changed since has another
//! hash and is not found. All numbers are little-endian:
//!
//! ```text
//! magic, number of entries u32; of each, in order: hash of the source u64, architecture u32 (90 for sm_90, with 1000 more
//! for PTX), length u32; then the programs in the same order
//! ```

use crate::cache::hash;

const MAGIC: &[u8; 8] = b"tpcuda 1";
const ENTRY: usize = 16;
/// What is added to an architecture whose program is PTX, which the driver compiles for any later one.
const PTX: u32 = 1000;

static PACKAGED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cuda.kernels"));

/// A program for a card: a binary of its generation, or else the newest PTX that is not newer than the card.
pub(crate) fn find(source: &str, capability: u32) -> Option<Vec<u8>> {
    find_in(PACKAGED, source, capability)
}

/// Whether there are programs for a card.
pub(crate) fn serve(capability: u32) -> bool {
    parts(PACKAGED).is_some_and(|(entries, _)| {
        entries.chunks_exact(ENTRY).any(|entry| fit(Entry::of(entry).architecture, capability).is_some())
    })
}

/// The entries and the programs of a file.
fn parts(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let (count, rest) = file.strip_prefix(MAGIC)?.split_first_chunk::<4>()?;
    rest.split_at_checked((u32::from_le_bytes(*count) as usize).checked_mul(ENTRY)?)
}

struct Entry {
    source: u64,
    architecture: u32,
    length: usize,
}

impl Entry {
    fn of(entry: &[u8]) -> Self {
        let word = |i: usize| entry[i..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let source = u64::from(word(0)) | u64::from(word(4)) << 32;
        Self { source, architecture: word(8), length: word(12) as usize }
    }
}

fn find_in(file: &[u8], source: &str, capability: u32) -> Option<Vec<u8>> {
    let (entries, programs) = parts(file)?;
    let wanted = hash(source.as_bytes());
    let (mut at, mut best) = (0_usize, None);
    for entry in entries.chunks_exact(ENTRY).map(Entry::of) {
        let end = at.checked_add(entry.length)?;
        if let Some(fit) = fit(entry.architecture, capability).filter(|_| entry.source == wanted)
            && best.as_ref().is_none_or(|(known, _)| *known < fit)
        {
            best = Some((fit, at..end));
        }
        at = end;
    }
    programs.get(best?.1).map(<[u8]>::to_vec)
}

/// How well a program fits a card, if it runs there: a binary does on cards of its generation that are not older.
fn fit(architecture: u32, capability: u32) -> Option<(bool, u32)> {
    match architecture.checked_sub(PTX) {
        Some(ptx) => (ptx <= capability).then_some((false, ptx)),
        None => {
            let runs = architecture / 10 == capability / 10 && architecture <= capability;
            runs.then_some((true, architecture))
        }
    }
}

/// A file of programs: the source of each, its architecture (`sm_90`, or `compute_90` for PTX), and what the compiler
/// gave.
///
/// # Errors
/// The name of an unknown architecture.
pub fn packaged(programs: &[(String, String, Vec<u8>)]) -> Result<Vec<u8>, String> {
    let mut file = MAGIC.to_vec();
    file.extend((programs.len() as u32).to_le_bytes());
    for (source, architecture, binary) in programs {
        let number = |prefix| architecture.strip_prefix(prefix).and_then(|n| n.parse::<u32>().ok());
        let known = number("sm_").or_else(|| Some(number("compute_")? + PTX));
        file.extend(hash(source.as_bytes()).to_le_bytes());
        file.extend(known.ok_or_else(|| architecture.clone())?.to_le_bytes());
        file.extend((binary.len() as u32).to_le_bytes());
    }
    programs.iter().for_each(|(_, _, binary)| file.extend(binary));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::{find_in, packaged};

    #[test]
    fn programs_are_found_by_source_and_card() {
        let program = |source: &str, architecture: &str| {
            let binary = format!("{source} for {architecture}").into_bytes();
            (source.to_owned(), architecture.to_owned(), binary)
        };
        let sources = ["a", "b"];
        let of =
            |source: &&str| ["sm_75", "sm_80", "sm_86", "sm_90", "compute_90"].map(|a| program(source, a));
        let programs: Vec<_> = sources.iter().flat_map(of).collect();
        let file = packaged(&programs).unwrap();
        let found = |source: &str, capability: u32| {
            find_in(&file, source, capability).map(|found| String::from_utf8(found).unwrap())
        };
        for (capability, architecture) in [
            (70, None),
            (75, Some("sm_75")),
            (80, Some("sm_80")),
            (87, Some("sm_86")),
            (90, Some("sm_90")),
            (120, Some("compute_90")),
        ] {
            for source in sources {
                let wanted = architecture.map(|a| format!("{source} for {a}"));
                assert_eq!(found(source, capability), wanted, "{source} on {capability}");
            }
        }
        assert_eq!(found("a ", 90), None, "another source");
        assert!(
            (0..file.len()).all(|end| find_in(&file[..end], "b", 90).is_none_or(|f| f == b"b for sm_90"))
        );
        assert_eq!(find_in(b"", "a", 90), None, "no packaged kernels");
        assert!(packaged(&[program("a", "gfx90")]).is_err(), "no architecture of CUDA");
    }
}
