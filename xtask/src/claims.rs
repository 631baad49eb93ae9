//! Each claim of the README is held by tests that `docs/claims.md` names.

use crate::workspace;
use std::fs::read_to_string;

/// The bold words that open the items of a list.
fn leads(text: &str, before: &str) -> Vec<String> {
    let items = text.lines().filter_map(|line| line.strip_prefix(before)?.split_once("**"));
    items.map(|(lead, _)| lead.to_owned()).collect()
}

#[test]
fn every_claim_of_the_readme_names_tests_that_exist() {
    let read = |path: &str| read_to_string(workspace().join(path)).unwrap();
    let (readme, claims) = (read("README.md"), read("docs/claims.md"));
    let claimed = leads(&readme, "- **");
    assert!(claimed.len() >= 5, "the README's list of claims is found");
    assert_eq!(leads(&claims, "| **"), claimed, "a row for each claim, in their order");
    let names = claims.lines().filter(|line| line.starts_with("| **")).flat_map(|line| {
        let code: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        code.chunks(2).map(|pair| (pair[0].to_owned(), pair[1..].join(""))).collect::<Vec<_>>()
    });
    for (file, test) in names.filter(|(file, _)| file.ends_with(".rs")) {
        let source = read(&format!("crates/{file}"));
        assert!(source.contains(&format!("fn {test}(")), "{file} has no test {test}");
    }
}
