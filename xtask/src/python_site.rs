//! The documentation's site: its pages, and a gallery of examples that are run and become notebooks.

use crate::python_package::python;
use crate::{Result, at, pip, remove, succeed, workspace};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The folder with the packages of docs/requirements.txt, which build the site; fetched if missing.
pub(crate) fn prepare() -> Result<PathBuf> {
    let list = workspace().join("docs/requirements.txt");
    let text = fs::read_to_string(&list).map_err(at(&list))?;
    let packages: Vec<&str> =
        text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    pip::unpack(&packages, &[], &workspace().join("target/python/site-packages"))
}

/// Builds the site anew with the package in this folder; every warning is an error, and so is an example that fails.
pub(crate) fn build(package: &Path, packages: &Path) -> Result<()> {
    let started = Instant::now();
    let (pages, site) = (workspace().join("docs"), workspace().join("target/python/site"));
    let gallery = pages.join("gallery");
    [&gallery, &site].into_iter().try_for_each(|made| remove(made))?;
    let mut sphinx = python(&[package, packages], &["sphinx", "-W", "--keep-going", "-q"])?;
    succeed(sphinx.arg(&pages).arg(&site))?;
    let [examples, notebooks] =
        [(pages.join("examples"), "py"), (gallery, "ipynb")].map(|(folder, kind)| count(&folder, kind));
    let (examples, notebooks) = (examples?, notebooks?);
    if examples == 0 || examples != notebooks {
        return Err(format!("{examples} examples became {notebooks} notebooks"));
    }
    println!("the site, {examples} examples run: {} s", started.elapsed().as_secs());
    Ok(())
}

fn count(folder: &Path, extension: &str) -> Result<usize> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    Ok(entries.flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == extension)).count())
}
