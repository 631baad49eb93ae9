//! `completions` and `man`.

use super::*;
use std::io::Write;
use std::process::Stdio;

pub(super) fn commands() -> impl Iterator<Item = &'static str> {
    "collect detect match register rectify stereo filter evaluate report bench devices demo completions"
        .split(' ')
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = works(&format!("completions {shell}"));
        for word in commands().chain(["max-features"]) {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
        // The generators for PowerShell and Elvish write flags without their values.
        let knows_values = !["powershell", "elvish"].contains(&shell);
        assert_eq!(script.contains("lanczos"), knows_values, "{shell} and the values of flags");
    }
    refused(&mut tiepoint("completions command.com"), 2);
    let bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut bash) = bash else {
        eprintln!("skipped: there is no bash to parse its script");
        return;
    };
    bash.stdin.take().unwrap().write_all(works("completions bash").as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "bash does not parse its script: {stderr}");
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = Folder::new("manual");
    folder.works("man man1");
    let main = folder.text("man1/tiepoint.1");
    for command in commands() {
        assert!(main.contains(&format!("tiepoint\\-{command}")), "{command} is not in: {main}");
        let page = folder.text(&format!("man1/tiepoint-{command}.1"));
        assert!(page.contains(".SH SYNOPSIS"), "{command}: {page}");
    }
    let detect = folder.text("man1/tiepoint-detect.1");
    assert!(detect.contains("max\\-features"), "its flags: {detect}");
    folder.put("file", "");
    folder.fails("man file/man1", 1);
}
