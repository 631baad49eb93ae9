//! Checks that the tests that `docs/claims.md` names for each claim of the README, and `docs/trust.md` for each past
//! error, exist and run.

use crate::{Result, workspace};
use std::fs::read_to_string;
use std::path::Path;

/// The mark of a file whose tests are skipped if there is no card.
const ON_A_CARD: &str = " (on a card)";

/// The pages, each with the column of its tests.
const PAGES: [(&str, usize); 2] = [("docs/claims.md", 2), ("docs/trust.md", 4)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Test<'a> {
    file: &'a str,
    name: &'a str,
    on_a_card: bool,
}

fn read() -> Result<Vec<String>> {
    let read = |(page, _)| read_to_string(workspace().join(page)).map_err(|e| format!("{page}: {e}"));
    PAGES.into_iter().map(read).collect()
}

fn all(texts: &[String]) -> Result<Vec<Test<'_>>> {
    let rows = texts.iter().zip(PAGES).flat_map(|(text, (_, column))| {
        text.lines().filter(|line| line.starts_with("| **")).map(move |row| tests(row, column))
    });
    Ok(rows.collect::<Result<Vec<_>>>()?.concat())
}

/// The tests in this column of a row. Each belongs to the last file named before it.
fn tests(row: &str, column: usize) -> Result<Vec<Test<'_>>> {
    let (mut file, mut tests) = (None, Vec::new());
    let pieces: Vec<&str> = row.split('|').nth(column).unwrap_or_default().split('`').collect();
    for piece in pieces[1..].chunks(2) {
        let (code, after) = (piece[0], piece.get(1).unwrap_or(&""));
        match code.ends_with(".rs") || code.ends_with(".py") {
            true => file = Some((code, after.starts_with(ON_A_CARD))),
            false => {
                let (file, on_a_card) = file.ok_or_else(|| format!("{code} follows no file: {row}"))?;
                tests.push(Test { file, name: code, on_a_card });
            }
        }
    }
    if tests.is_empty() { Err(format!("a claim without a test: {row}")) } else { Ok(tests) }
}

/// The tests that need a card, for the script that runs them there: `FILE::NAME` in Python, the name alone in Rust.
pub(crate) fn on_a_card() -> Result<String> {
    let told = |test: &Test<'_>| match test.file.rsplit_once('/') {
        Some((_, file)) if file.ends_with(".py") => format!("{file}::{}\n", test.name),
        _ => format!("{}\n", test.name),
    };
    Ok(all(&read()?)?.iter().filter(|test| test.on_a_card).map(told).collect())
}

/// Fails if a page names a Rust test that `cargo test -- --list` does not list, as when no program includes its file.
pub(crate) fn check(listed: &str) -> Result<()> {
    let runs = |test: &str| {
        let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        names.into_iter().any(|name| name.rsplit("::").next() == Some(test))
    };
    for Test { file, name, .. } in all(&read()?)?.into_iter().filter(|test| test.file.ends_with(".rs")) {
        if !runs(name) {
            return Err(format!("docs/ names {name} of {file}, which cargo test does not run"));
        }
    }
    Ok(())
}

/// Prints the claimed tests in Python that were skipped, by pytest's own report (`--junit-xml`). Fails if one did not
/// run at all and, under CI, if one was skipped that needs no card.
pub(crate) fn check_python(report: &Path) -> Result<()> {
    let text = read_to_string(report).map_err(|e| format!("{}: {e}", report.display()))?;
    let pages = read()?;
    for test in all(&pages)?.into_iter().filter(|test| test.file.ends_with(".py")) {
        let Test { file, name, on_a_card } = test;
        match skipped(&text, file, name)? {
            None => {}
            Some(reason) if !on_a_card && std::env::var_os("CI").is_some() => {
                return Err(format!("docs/ names {name} of {file}, which was skipped: {reason}"));
            }
            Some(reason) => println!("claimed, but skipped here: {name} of {file}: {reason}"),
        }
    }
    Ok(())
}

/// Why a test was skipped, if it was for at least one of its parameters.
fn skipped<'a>(report: &'a str, file: &str, test: &str) -> Result<Option<&'a str>> {
    let value = |of: &'a str, name: &str| Some(of.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0);
    let module = file.rsplit('/').next().and_then(|name| name.strip_suffix(".py"));
    let is_it = |case: &&'a str| {
        let (class, name) = (value(case, "classname"), value(case, "name"));
        class.and_then(|class| class.rsplit('.').next()) == module
            && name.and_then(|name| name.split('[').next()) == Some(test)
    };
    // Keeps the space before the first attribute, as `value` expects it.
    let cases: Vec<&str> = report.split("<testcase").skip(1).filter(is_it).collect();
    if cases.is_empty() {
        return Err(format!("docs/ names {test} of {file}, which pytest did not run"));
    }
    let reason = cases.iter().find_map(|case| Some(case.split_once("<skipped")?.1));
    Ok(reason.map(|skipped| value(skipped, "message").unwrap_or_default()))
}

#[cfg(test)]
mod of_the_readme {
    use super::*;

    /// The bold words that open the items of a list.
    fn leads(text: &str, before: &str) -> Vec<String> {
        let items = text.lines().filter_map(|line| line.strip_prefix(before)?.split_once("**"));
        items.map(|(lead, _)| lead.to_owned()).collect()
    }

    /// Whether a file declares this test and ignores none. `check` and `check_python` verify that it runs.
    fn declares(file: &str, source: &str, test: &str) -> bool {
        let before = if file.ends_with(".py") { "\ndef" } else { "fn" };
        source.contains(&format!("{before} {test}(")) && !source.contains(concat!("#[", "ignore"))
    }

    #[test]
    fn every_claim_of_the_readme_and_what_was_wrong_names_tests_that_exist_and_run() {
        let read = |path: &str| read_to_string(workspace().join(path)).unwrap();
        let (readme, pages) = (read("README.md"), super::read().unwrap());
        let claimed = leads(&readme, "- **");
        assert!(claimed.len() >= 5, "the README's list of claims is found");
        assert_eq!(leads(&pages[0], "| **"), claimed, "a row for each claim, in their order");
        let tests = all(&pages).unwrap();
        let is_missing =
            |test: &&Test<'_>| !declares(test.file, &read(&format!("crates/{}", test.file)), test.name);
        let wrong = tests.iter().filter(is_missing).map(|test| format!("{}: {}", test.file, test.name));
        let wrong: Vec<String> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_check_finds_every_test_and_why_one_does_not_run() {
        let row = "| **A.** | `a/b.rs` `one`, `two`; `c/test_d.py` (on a card) `test_three`, `test_four`; `e.rs` `five` |";
        let wanted = [
            ("a/b.rs", "one", false),
            ("a/b.rs", "two", false),
            ("c/test_d.py", "test_three", true),
            ("c/test_d.py", "test_four", true),
            ("e.rs", "five", false),
        ];
        let wanted = wanted.map(|(file, name, on_a_card)| Test { file, name, on_a_card });
        assert_eq!(tests(row, 2).unwrap(), wanted, "two tests of one file, both languages");
        let ignored = concat!("#[test]\n#[", "ignore]\nfn one() {}\n");
        let python =
            "\n\ndef test_one(a):\n    pass\n\n\nclass Held:\n    def test_two(self):\n        pass\n";
        for (file, source, test, expected) in [
            ("a.rs", "#[test]\nfn one() {}\n", "one", true),
            ("a.rs", "#[test]\nfn one_more() {}\n", "one", false),
            ("a.rs", ignored, "one", false),
            ("test_a.py", python, "test_one", true),
            ("test_a.py", python, "test_two", false),
        ] {
            assert_eq!(declares(file, source, test), expected, "{test} in {source}");
        }
        assert!(tests("| **A.** | `test_of_no_file` |", 2).is_err());
        assert!(tests("| **A.** `a.rs` | none |", 2).is_err());
    }

    /// As pytest 9.2 writes it.
    #[test]
    fn tests_that_pytest_skips_or_does_not_run_are_found() {
        let report = "<?xml version=\"1.0\" encoding=\"utf-8\"?><testsuites name=\"pytest tests\"><testsuite \
        name=\"pytest\" errors=\"0\" failures=\"1\" skipped=\"2\" tests=\"4\"><testcase \
        classname=\"crates.python.tests.test_a\" name=\"test_one\" time=\"0.001\" /><testcase \
        classname=\"crates.python.tests.test_a\" name=\"test_two[Torch-1]\" time=\"0.001\"><skipped \
        type=\"pytest.skip\" message=\"no CUDA device\">a.py:1: no CUDA device</skipped></testcase><testcase \
        classname=\"crates.python.tests.test_a\" name=\"test_two[Cupy-1]\" time=\"0.001\" /><testcase \
        classname=\"crates.python.tests.test_b\" name=\"test_three\" time=\"0.001\"><failure message=\"&lt;testcase\">\
        no</failure></testcase></testsuite></testsuites>";
        let of = |file: &str, test: &str| skipped(report, file, test);
        assert_eq!(of("p/tests/test_a.py", "test_one"), Ok(None));
        let with_one = of("p/tests/test_a.py", "test_two");
        assert_eq!(with_one, Ok(Some("no CUDA device")), "with one of its parameters");
        assert_eq!(of("p/tests/test_b.py", "test_three"), Ok(None), "a failed test was not skipped");
        for (file, test) in [("test_b.py", "test_one"), ("test_a.py", "test_tw"), ("a.py", "test_one")] {
            assert!(of(file, test).unwrap_err().contains("did not run"), "{file}: {test}");
        }
    }
}
