//! The pairs to work on, and the names of their results.

use crate::failure::{Failure, Outcome};
use crate::{input, output};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PairFiles {
    pub(super) left: PathBuf,
    pub(super) right: PathBuf,
    /// Its number in a numbered sequence.
    number: Option<u64>,
    /// Its output, if a list names one.
    output: Option<PathBuf>,
}

impl PairFiles {
    fn new(left: &Path, right: &Path) -> Self {
        Self { left: left.into(), right: right.into(), number: None, output: None }
    }
}

/// The pairs named on the command line, then those of the list. Sequences become their single pairs.
pub(super) fn pairs(images: &[PathBuf], list: Option<&Path>) -> Outcome<Vec<PairFiles>> {
    let (named, rest) = images.as_chunks::<2>();
    if let [lonely] = rest {
        return Err(Failure::usage(format!("{} has no right image: name LEFT RIGHT", lonely.display())));
    }
    if let Some([left, right]) = named.first().filter(|_| is_all_left_first(images)) {
        return Err(Failure::usage(format!(
            "{} {} would be a pair, but the names say that all left pictures come before all right ones: name LEFT RIGHT \
             LEFT RIGHT, or numbered files as left_%04d.png right_%04d.png, or a --list",
            left.display(),
            right.display()
        )));
    }
    let mut given: Vec<PairFiles> = named.iter().map(|[left, right]| PairFiles::new(left, right)).collect();
    if let Some(list) = list {
        for line in input::listed_lines(list)? {
            given.push(listed(&line).ok_or_else(|| {
                let wrong = format!("{}: {line:?}", list.display());
                Failure::work(format!("{wrong}: expected LEFT RIGHT and at most one output a line"))
            })?);
        }
    }
    let mut all = Vec::new();
    for pair in given {
        match (Numbered::of(&pair.left), Numbered::of(&pair.right)) {
            (None, None) => all.push(pair),
            (Some(left), Some(right)) => all.extend(sequence(&left, &right, pair.output.as_deref())?),
            _ => {
                let names = format!("{} {}", pair.left.display(), pair.right.display());
                return Err(Failure::usage(format!(
                    "{names}: a number stands in one name and not in the other"
                )));
            }
        }
    }
    if all.is_empty() {
        return Err(Failure::usage("the list names no pair"));
    }
    Ok(all)
}

/// Whether all left images seem to come before all right ones, as from `left_*.png right_*.png`: names i and i + n/2 of
/// the n names always differ in the same part, which either is a word for left or right, or is not also the difference
/// of all neighbours 2i and 2i + 1.
fn is_all_left_first(images: &[PathBuf]) -> bool {
    let names: Vec<_> = images.iter().map(|path| path.to_string_lossy()).collect();
    let half = names.len() / 2;
    let all_equal = |differences: &[[&str; 2]]| differences.windows(2).all(|two| two[0] == two[1]);
    let halves: Vec<_> = (0..half).map(|i| difference(&names[i], &names[i + half])).collect();
    let neighbours: Vec<_> = (0..half).map(|i| difference(&names[2 * i], &names[2 * i + 1])).collect();
    let words = halves.first().map(|difference| difference.map(str::to_lowercase));
    let are_sides = words
        .is_some_and(|[a, b]| ["l", "lef", "left"].contains(&&*a) && ["r", "righ", "right"].contains(&&*b));
    half > 1 && all_equal(&halves) && (!all_equal(&neighbours) || are_sides)
}

/// The parts of two names between their common start and their common end.
fn difference<'n>(a: &'n str, b: &'n str) -> [&'n str; 2] {
    let start: usize = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let [a, b] = [&a[start..], &b[start..]];
    let ends = a.chars().rev().zip(b.chars().rev());
    let end: usize = ends.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    [&a[..a.len() - end], &b[..b.len() - end]]
}

fn listed(line: &str) -> Option<PairFiles> {
    let words: Vec<&str> = match line.contains('\t') {
        true => line.split('\t').map(str::trim).filter(|w| !w.is_empty()).collect(),
        false => line.split_whitespace().collect(),
    };
    match words[..] {
        [left, right] => Some(PairFiles::new(left.as_ref(), right.as_ref())),
        [left, right, output] => {
            Some(PairFiles { output: Some(output.into()), ..PairFiles::new(left.as_ref(), right.as_ref()) })
        }
        _ => None,
    }
}

/// Every pair of which an image exists, in the order of numbers.
fn sequence(left: &Numbered, right: &Numbered, output: Option<&Path>) -> Outcome<Vec<PairFiles>> {
    let mut numbers = Vec::new();
    for side in [left, right] {
        let folder = if side.folder.as_os_str().is_empty() { Path::new(".") } else { &side.folder };
        let failed = |e: std::io::Error| Failure::work(format!("{}: {e}", folder.display()));
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            // A name that is not UTF-8 does not belong to the sequence.
            let name = entry.map_err(failed)?.file_name();
            numbers.extend(name.to_str().and_then(|name| side.number(name)));
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() {
        return Err(Failure::work(format!("{}: no file of this name with a number", left.shown())));
    }
    let output = output.map(|o| Numbered::of(o).ok_or(o));
    let path = |n| match &output {
        Some(Ok(numbered)) => Some(numbered.path(n)),
        Some(Err(fixed)) => Some(fixed.to_path_buf()),
        None => None,
    };
    let pair =
        |n| PairFiles { number: Some(n), output: path(n), ..PairFiles::new(&left.path(n), &right.path(n)) };
    Ok(numbers.into_iter().map(pair).collect())
}

/// A file name with a number in it, written %d or %04d.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbered {
    folder: PathBuf,
    before: String,
    after: String,
    /// The least number of digits.
    digits: usize,
}

impl Numbered {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        name.match_indices('%').find_map(|(at, _)| {
            let (digits, after) = name[at + 1..].split_once('d')?;
            let digits = match digits {
                "" => 1,
                _ => digits.strip_prefix('0')?.parse().ok().filter(|n| (1..=18).contains(n))?,
            };
            let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
            Some(Self { folder, before: name[..at].into(), after: after.into(), digits })
        })
    }

    /// The number in `name`, if the name belongs to this sequence.
    fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        let n: u64 = digits.parse().ok()?;
        (self.name(n) == name).then_some(n)
    }

    fn name(&self, n: u64) -> String {
        format!("{}{n:0width$}{}", self.before, self.after, width = self.digits)
    }

    fn path(&self, n: u64) -> PathBuf {
        self.folder.join(self.name(n))
    }

    fn shown(&self) -> String {
        let digits = if self.digits == 1 { String::new() } else { format!("0{}", self.digits) };
        let name = format!("{}%{digits}d{}", self.before, self.after);
        self.folder.join(name).display().to_string()
    }
}

/// The file of each pair for the results whose name or pattern is `given`.
pub(super) fn paths(
    given: Option<&str>,
    pairs: &[PairFiles],
    extension: &str,
) -> Outcome<Vec<Option<PathBuf>>> {
    if let Some(numbered) = given.and_then(|given| Numbered::of(Path::new(given))) {
        let shown = numbered.shown();
        if Numbered::of(Path::new(&numbered.after)).is_some() {
            return Err(Failure::usage(format!("{shown}: expected one number (%d) in a name")));
        }
        if pairs.iter().any(|pair| pair.number.is_none()) {
            return Err(Failure::usage(format!(
                "{shown}: %d is the number of a pair, and LEFT and RIGHT are not numbered; {{}} is the name of LEFT"
            )));
        }
        let path = |pair: &PairFiles| {
            let numbered = numbered.path(pair.number?).display().to_string();
            Some(output::fill(&numbered, &pair.left))
        };
        return Ok(pairs.iter().map(path).collect());
    }
    let lefts: Vec<PathBuf> = pairs.iter().map(|p| p.left.clone()).collect();
    output::output_paths(given, &lefts, extension)
}

/// The file of each pair's disparities: the one in the list, or else the one from --output.
pub(super) fn outputs(given: Option<&str>, pairs: &[PairFiles]) -> Outcome<Vec<Option<PathBuf>>> {
    let own = || pairs.iter().map(|p| p.output.clone());
    let given = given.filter(|_| own().any(|o| o.is_none()));
    Ok(own().zip(paths(given, pairs, "pfm")?).map(|(own, path)| own.or(path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_numbers() {
        let four = Numbered::of(Path::new("a/left_%04d.png")).unwrap();
        assert_eq!(four.path(7), Path::new("a/left_0007.png"), "padded with zeros");
        assert_eq!(four.path(12345), Path::new("a/left_12345.png"), "more digits than the pattern");
        for (name, number) in [("left_0012.png", Some(12)), ("left_12345.png", Some(12345))] {
            assert_eq!(four.number(name), number, "{name}");
        }
        for name in ["left_12.png", "left_00012.png", "left_.png", "left_+012.png", "right_0012.png"] {
            assert_eq!(four.number(name), None, "{name}");
        }
        let plain = Numbered::of(Path::new("%d.png")).unwrap();
        assert_eq!(
            (plain.number("0.png"), plain.number("10.png"), plain.number("01.png")),
            (Some(0), Some(10), None)
        );
        for name in ["left.png", "100%.png", "a%xd.png", "%4d.png", "%099d.png"] {
            assert_eq!(Numbered::of(Path::new(name)), None, "{name}");
        }
        assert_eq!(Numbered::of(Path::new("100%_%02d.png")).unwrap().path(7), Path::new("100%_07.png"));
    }

    #[test]
    fn lists() {
        let pair = listed("a.png b.png").unwrap();
        assert_eq!((pair.left, pair.right), ("a.png".into(), "b.png".into()), "two");
        let pair = listed("my left.png\tmy right.png\tout.pfm").unwrap();
        assert_eq!((pair.left, pair.output), ("my left.png".into(), Some("out.pfm".into())), "tabs");
        assert!(listed("a.png").is_none() && listed("a b c d").is_none(), "one or four");
        let images = ["a", "b", "c"].map(PathBuf::from);
        assert!(pairs(&images, None).is_err(), "an image without a partner");
        assert_eq!(pairs(&images[..2], None).unwrap().len(), 1, "a pair");
        assert!(pairs(&["a%d", "b"].map(PathBuf::from), None).is_err(), "a number in one name");
        for names in ["v/left_1 v/left_2 v/right_1 v/right_2", "l/1 l/2 r/1 r/2", "a1 a2 a3 a4 b1 b2 b3 b4"] {
            let images: Vec<_> = names.split(' ').map(PathBuf::from).collect();
            assert!(pairs(&images, None).is_err(), "{names}: all left images first");
        }
        for names in ["a/0 a/1 b/0 b/1", "l1 r1 l2 r2", "a0 a1 b0 b1 c0 c1", "left right"] {
            let images: Vec<_> = names.split(' ').map(PathBuf::from).collect();
            assert_eq!(pairs(&images, None).unwrap().len(), images.len() / 2, "{names}");
        }
    }

    #[test]
    fn outputs_of_several() {
        let two: Vec<PairFiles> = [("x/a1.png", "y/b1.png"), ("x/a2.png", "y/b2.png")]
            .map(|(l, r)| PairFiles::new(l.as_ref(), r.as_ref()))
            .to_vec();
        let some = |path: &str| Some(PathBuf::from(path));
        assert_eq!(paths(Some("o/{}.tif"), &two, "pfm").unwrap(), ["o/a1.tif", "o/a2.tif"].map(some));
        assert!(paths(Some("o.tif"), &two, "pfm").is_err(), "one file for two");
        assert!(paths(Some("o/%02d.tif"), &two, "pfm").is_err(), "no numbers");
        assert!(paths(Some("o/%d_%02d.tif"), &two, "pfm").is_err(), "two numbers");
        let numbered = [&two[0], &two[1]].map(|pair| PairFiles { number: Some(7), ..pair.clone() });
        let both = ["o/a1_07.tif", "o/a2_07.tif"].map(some);
        assert_eq!(paths(Some("o/{}_%02d.tif"), &numbered, "pfm").unwrap(), both, "name and number");
        let numbered: Vec<PairFiles> =
            two.iter().zip([1, 2]).map(|(p, n)| PairFiles { number: Some(n), ..p.clone() }).collect();
        let found = paths(Some("o/%02d.pfm"), &numbered, "pfm").unwrap();
        assert_eq!(found, ["o/01.pfm", "o/02.pfm"].map(some));
        let own = PairFiles { output: Some("own.pfm".into()), ..two[0].clone() };
        let mixed = outputs(Some("o/"), &[own.clone(), two[1].clone()]).unwrap();
        assert_eq!(mixed, ["own.pfm", "o/a2.pfm"].map(some), "the list's output, otherwise the pattern's");
        assert_eq!(outputs(Some("one.pfm"), &[own]).unwrap(), [some("own.pfm")], "the list's");
    }
}
