//! `-` as the name of a file: stdin for a file that is read, stdout for one that is written.

use crate::failure::{Failure, Outcome};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

const STDIN: &str = "/dev/stdin";
const STDOUT: &str = "/dev/stdout";

/// Flags whose file is read; the file of every other flag is written.
const READ: [&str; 8] = [
    "--mask",
    "--mask-b",
    "--mask-right",
    "--calibration",
    "--truth",
    "--truth-right",
    "--matches",
    "--pairs",
];

/// Flags that name a folder, or a file that is read again later.
const NO_STREAM: [&str; 3] = ["--work", "--masks", "--features"];

/// The flag that handles `-` itself.
const LIST: &str = "--list";

/// The words of a command line, with the system's name of a stream for each `-` that names a file. Fails for a folder.
pub(crate) fn named(words: impl IntoIterator<Item = OsString>) -> Outcome<Vec<OsString>> {
    let (mut all, mut plain) = (Vec::<OsString>::new(), false);
    for word in words {
        let before = all.last().and_then(|word| word.to_str()).unwrap_or_default().to_owned();
        plain |= before == "--";
        let joined = word.to_str().and_then(|word| word.strip_suffix("=-")).map(str::to_owned);
        all.push(match joined {
            Some(flag) if flag.starts_with("--") && flag != LIST && !plain => {
                format!("{flag}={}", stream_of(&flag)?).into()
            }
            _ if word == "-" && (plain || before != LIST) => {
                stream_of(if plain { "" } else { &before })?.into()
            }
            _ => word,
        });
    }
    Ok(all)
}

/// The stream for which `-` stands after this word, which may be the beginning of a flag.
fn stream_of(before: &str) -> Outcome<&'static str> {
    if cfg!(windows) {
        return Err(Failure::usage("- stands for a stream, which has no path on Windows: expected a file"));
    }
    if NO_STREAM.contains(&before) {
        return Err(Failure::usage(format!(
            "{before} is -: expected a name, because stdin can be read only once"
        )));
    }
    let is_read = !before.starts_with('-') || READ.iter().any(|flag| flag.starts_with(before));
    Ok(if is_read { STDIN } else { STDOUT })
}

/// The path of an output given without a flag; `-` stands for stdout.
pub(crate) fn written(path: PathBuf) -> PathBuf {
    if path == Path::new(STDIN) { STDOUT.into() } else { path }
}

pub(crate) fn is_stdin(path: impl AsRef<Path>) -> bool {
    [Path::new("-"), Path::new(STDIN)].contains(&path.as_ref())
}

/// Whether a word names stdin or another pipe, which may deliver nothing for a long time.
pub(crate) fn is_pipe(word: &OsStr) -> bool {
    let name = word.to_str().map_or("", |word| word.split_once('=').map_or(word, |(_, value)| value));
    is_stdin(name) || is_fifo(name)
}

#[cfg(unix)]
fn is_fifo(name: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(name).is_ok_and(|found| found.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_fifo(_: &str) -> bool {
    false
}

pub(crate) fn is_stdout(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| word == STDOUT || word.ends_with(&format!("={STDOUT}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_dash_stands_for_stdin_or_stdout_by_its_place() {
        for (given, expected) in [
            ("detect -", "detect /dev/stdin"),
            ("detect - -o -", "detect /dev/stdin -o /dev/stdout"),
            (
                "match a.png - --draw - --mask-b -",
                "match a.png /dev/stdin --draw /dev/stdout --mask-b /dev/stdin",
            ),
            ("detect --output=- --mask=- a.png", "detect --output=/dev/stdout --mask=/dev/stdin a.png"),
            ("detect --list - -o x/", "detect --list - -o x/"),
            ("detect --list=- -- -", "detect --list=- -- /dev/stdin"),
            ("match a.png b.png --matches -", "match a.png b.png --matches /dev/stdin"),
            ("stereo a-b.png -c", "stereo a-b.png -c"),
            ("collect s --pairs - -o a.db", "collect s --pairs /dev/stdin -o a.db"),
            ("collect s --matche - --pair-list -", "collect s --matche /dev/stdin --pair-list /dev/stdout"),
        ] {
            let words = named(given.split(' ').map(OsString::from)).unwrap();
            let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(words.join(" "), expected);
        }
        for folder in ["collect s --work -", "collect s --masks=- -o a.db", "collect s --features - -o a.db"]
        {
            let refused = named(folder.split(' ').map(OsString::from)).unwrap_err().to_string();
            assert!(refused.contains("is -: expected a name"), "{refused}");
        }
    }
}
