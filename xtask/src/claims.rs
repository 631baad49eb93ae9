//! Each claim of the README is held by tests that `docs/claims.md` names: that they exist, and that they run.

use crate::{Result, workspace};
use std::fs::read_to_string;

/// The rows of claims, each with its tests and their files.
fn rows(claims: &str) -> Result<Vec<Vec<(&str, &str)>>> {
    claims.lines().filter(|line| line.starts_with("| **")).map(tests).collect()
}

/// The tests of a row, each with its file: the last file before it.
fn tests(row: &str) -> Result<Vec<(&str, &str)>> {
    let (mut file, mut tests) = (None, Vec::new());
    for code in row.split('|').nth(2).unwrap_or_default().split('`').skip(1).step_by(2) {
        match code.ends_with(".rs") || code.ends_with(".py") {
            true => file = Some(code),
            false => tests.push((file.ok_or_else(|| format!("{code} follows no file: {row}"))?, code)),
        }
    }
    if tests.is_empty() { Err(format!("a claim without a test: {row}")) } else { Ok(tests) }
}

/// Fails where a claim names a Rust test that `cargo test -- --list` does not list: its file may belong to no
/// program.
pub(crate) fn check(listed: &str) -> Result<()> {
    let claims =
        read_to_string(workspace().join("docs/claims.md")).map_err(|e| format!("docs/claims.md: {e}"))?;
    let runs = |test: &str| {
        let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        names.into_iter().any(|name| name.rsplit("::").next() == Some(test))
    };
    for (file, test) in rows(&claims)?.into_iter().flatten().filter(|(file, _)| file.ends_with(".rs")) {
        if !runs(test) {
            return Err(format!("docs/claims.md names {test} of {file}, which cargo test does not run"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod of_the_readme {
    use super::*;

    /// The bold words that open the items of a list.
    fn leads(text: &str, before: &str) -> Vec<String> {
        let items = text.lines().filter_map(|line| line.strip_prefix(before)?.split_once("**"));
        items.map(|(lead, _)| lead.to_owned()).collect()
    }

    /// The attributes and decorators right above line `at`, also those of several lines, as one text.
    fn above(lines: &[&str], at: usize) -> String {
        let is_part = |line: &&&str| {
            let line = line.trim();
            !line.is_empty() && line != "}" && !line.ends_with("*/")
        };
        let mut found: Vec<&str> = lines[..at].iter().rev().take_while(is_part).copied().collect();
        found.reverse();
        found.join("\n")
    }

    /// Why a test does not run, if it does not.
    fn missing(file: &str, source: &str, test: &str) -> Option<String> {
        let python = file.ends_with(".py");
        let starts = |line: &&str| {
            let declared = line.trim_start();
            let name = declared.strip_prefix(if python { "def " } else { "fn " });
            name.and_then(|rest| rest.strip_prefix(test)).is_some_and(|rest| rest.starts_with('('))
        };
        let lines: Vec<&str> = source.lines().collect();
        let Some(at) = lines.iter().position(starts) else {
            return Some("is not there".into());
        };
        let before = above(&lines, at);
        if python {
            let signature = lines[at..].iter().position(|line| line.trim_end().ends_with(':')).unwrap_or(0);
            let first =
                lines[at + signature + 1..].iter().map(|line| line.trim()).find(|line| !line.is_empty());
            let skipped = before.lines().any(|line| line.trim() == "@pytest.mark.skip")
                || before.contains("mark.skip(")
                || first.is_some_and(|line| line.starts_with("pytest.skip("));
            let name = file.rsplit('/').next().unwrap_or(file);
            return match (lines[at].starts_with("def test_"), name.starts_with("test_"), skipped) {
                (true, true, false) => None,
                (false, _, _) => Some("is no function of its module that begins with `test_`".into()),
                (_, false, _) => Some("lies in a file that pytest does not collect".into()),
                (_, _, true) => Some("is skipped".into()),
            };
        }
        match (before.contains("#[test]"), before.contains("#[ignore")) {
            (true, false) => None,
            (false, _) => Some("has no #[test]".into()),
            (_, true) => Some("is ignored".into()),
        }
    }

    #[test]
    fn every_claim_of_the_readme_names_tests_that_exist_and_run() {
        let read = |path: &str| read_to_string(workspace().join(path)).unwrap();
        let (readme, claims) = (read("README.md"), read("docs/claims.md"));
        let claimed = leads(&readme, "- **");
        assert!(claimed.len() >= 5, "the README's list of claims is found");
        assert_eq!(leads(&claims, "| **"), claimed, "a row for each claim, in their order");
        let tests = rows(&claims).unwrap().concat();
        let wrong = tests.iter().filter_map(|(file, test)| {
            missing(file, &read(&format!("crates/{file}")), test).map(|why| format!("{file}: {test} {why}"))
        });
        let wrong: Vec<String> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_guard_sees_every_test_and_what_keeps_one_from_running() {
        let row =
            "| **A.** | `a/b.rs` `one`, `two`; `c/test_d.py` `test_three`, `test_four`; `e.rs` `five` |";
        let wanted = [
            ("a/b.rs", "one"),
            ("a/b.rs", "two"),
            ("c/test_d.py", "test_three"),
            ("c/test_d.py", "test_four"),
        ];
        assert_eq!(
            tests(row).unwrap(),
            [&wanted[..], &[("e.rs", "five")]].concat(),
            "two of a file, two languages"
        );
        let rust = "#[test]\n#[cfg(unix)]\nfn one() {\n}\n\nfn two() {}\n\n#[test]\n#[ignore = \"slow\"]\nfn five() {}\n";
        assert_eq!(missing("b.rs", rust, "one"), None, "an attribute between");
        for name in ["two", "five", "on", "three"] {
            assert!(missing("b.rs", rust, name).is_some(), "{name}");
        }
        let python = "@pytest.mark.parametrize(\n    \"a\", [1]\n)\ndef test_one(a):\n    assert a\n\n\n\
        @pytest.mark.skip(\"why\")\ndef test_two():\n    pass\n\n\ndef test_three(\n    a,\n):\n    pytest.skip(\"no\")\n\n\n\
        class Held:\n    def test_four(self):\n        pass\n";
        assert_eq!(missing("c/test_d.py", python, "test_one"), None, "a decorator of several lines");
        for name in ["test_two", "test_three", "test_four", "test_five"] {
            assert!(missing("c/test_d.py", python, name).is_some(), "{name}");
        }
        assert!(missing("c/helper.py", python, "test_one").is_some(), "of no file of tests");
        assert!(
            tests("| **A.** | `test_of_no_file` |").is_err() && tests("| **A.** `a.rs` | none |").is_err()
        );
    }
}
