//! Collections: the stages of a work folder, and its contents.

use crate::call::{abandonable, interruptible};
use crate::device::{device_of, run_on};
use crate::errors::{raised, wrong_option};
use crate::features::Features;
use crate::files::{Limits, limits};
use crate::image::{rows, table, vector};
use crate::matching::{Assessed, assessed};
use crate::options::Options;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use tiepoint::collection::{CollectionOptions, PhotographFeatures, Shard, VerifiedPair, WrittenPairs};
use tiepoint::device::{Cpu, Processor};
use tiepoint::image::ReadOptions;
use tiepoint::matching::files::MatchFormat;
use tiepoint::options::Named;
use tiepoint_colmap::ExportOptions;
use tiepoint_report::{CollectionPage, DEFAULT_LIMIT};

/// A collection in its work folder. Threads may share it.
#[pyclass(frozen, module = "tiepoint._core")]
pub(crate) struct Collection {
    collection: Arc<tiepoint::collection::Collection>,
}

impl Collection {
    fn of(collection: tiepoint::collection::Collection, limits: ReadOptions, sync: bool) -> Self {
        Self { collection: Arc::new(collection.with_limits(limits).with_sync(sync)) }
    }
}

self_cell::self_cell!(
    /// The results of a collection, together with the collection that they borrow.
    struct Borrowed {
        owner: Arc<tiepoint::collection::Collection>,
        #[covariant]
        dependent: Verified,
    }
);

type Verified<'c> = tiepoint::collection::Results<'c>;

/// The verified pairs of a finished collection, opened once and read block by block. Threads may share them.
#[pyclass(frozen, module = "tiepoint._core")]
pub(crate) struct Results {
    results: Arc<Borrowed>,
}

#[pymethods]
impl Results {
    #[getter]
    fn blocks(&self) -> usize {
        self.results.borrow_dependent().blocks()
    }

    /// The verified pairs whose first photograph is in this block: photographs, matches, inliers, configuration, and F,
    /// E and H if there are any.
    fn pairs_of<'py>(&self, py: Python<'py>, block: usize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let results = self.results.clone();
        let found = abandonable(py, move || results.borrow_dependent().pairs_of(block))?.map_err(raised)?;
        found.into_iter().map(|pair| pair_dict(py, pair)).collect()
    }
}

fn shard_of((index, count): (u32, u32)) -> PyResult<Shard> {
    Shard::new(index, count).map_err(raised)
}

/// Runs a stage on all these devices; the threads are those of the first.
fn on_all<R: Send>(
    py: Python<'_>,
    devices: &[Bound<'_, PyAny>],
    stage: impl Fn(&[Processor]) -> tiepoint::Result<R> + Sync,
) -> PyResult<R> {
    let [first, others @ ..] = devices else { return Err(wrong_option("no device is named")) };
    let open = |device: &Bound<'_, PyAny>| -> PyResult<Processor> {
        let device = device_of(py, Some(device))?;
        py.detach(|| device.get().processor()).map_err(raised)
    };
    let others = others.iter().map(open).collect::<PyResult<Vec<_>>>()?;
    device_of(py, Some(first))?.get().run(py, |processor| {
        let all: Vec<Processor> = std::iter::once(processor).chain(&others).cloned().collect();
        stage(&all)
    })
}

#[pymethods]
impl Collection {
    /// Opens the collection of a work folder that exists.
    #[new]
    fn new(py: Python<'_>, work: PathBuf, limited: Limits<'_>, sync: bool) -> PyResult<Self> {
        let limits = limits(&limited)?;
        let opened = abandonable(py, || tiepoint::collection::Collection::open(work))?.map_err(raised)?;
        Ok(Self::of(opened, limits, sync))
    }

    /// Lists photographs in a work folder. Returns the collection, and what the scan found.
    #[staticmethod]
    fn scan<'py>(
        py: Python<'py>,
        device: Option<&Bound<'py, PyAny>>,
        work: PathBuf,
        images: Vec<PathBuf>,
        options: &Bound<'py, PyDict>,
        limited: Limits<'py>,
        sync: bool,
    ) -> PyResult<(Self, Bound<'py, PyDict>)> {
        let limits = limits(&limited)?;
        let options = CollectionOptions::default().with(options)?;
        options.check().map_err(raised)?;
        let (collection, scanned) = run_on(py, device, |processor| {
            tiepoint::collection::Collection::scan(work.clone(), &images, &options, &processor.cpu)
        })?;
        let found = dict!(py, {
            "photographs": scanned.photographs,
            "added": scanned.added,
            "removed": scanned.removed,
            "masked": scanned.masked,
            "positions": scanned.positions,
            "warnings": scanned.warnings(&options),
            "refused": scanned.refused,
            "hidden": scanned.hidden,
        });
        Ok((Self::of(collection, limits, sync), found))
    }

    #[getter]
    fn work(&self) -> PathBuf {
        self.collection.folder().to_owned()
    }

    /// The folder below which the photographs lie.
    #[getter]
    fn root(&self) -> PathBuf {
        self.collection.root().to_owned()
    }

    /// The names of the photographs: index i has number i + 1 in a database.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.collection.photographs().iter().map(|photograph| photograph.name.clone()).collect()
    }

    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.collection.options().shown(py)
    }

    /// The most pixels, and the most bytes in memory, of a photograph or mask.
    #[getter]
    fn limits(&self) -> (u64, u64) {
        let limits = self.collection.limits();
        (limits.max_pixels, limits.max_bytes)
    }

    /// Whether the files of a stage are flushed to disk before it ends.
    #[getter]
    fn sync(&self) -> bool {
        self.collection.syncs()
    }

    fn extract<'py>(
        &self,
        py: Python<'py>,
        devices: Vec<Bound<'py, PyAny>>,
        shard: (u32, u32),
    ) -> PyResult<Bound<'py, PyDict>> {
        let shard = shard_of(shard)?;
        let found = on_all(py, &devices, |processors| self.collection.extract(shard, processors))?;
        Ok(dict!(py, {
            "searched": found.searched,
            "present": found.present,
            "warnings": found.warnings(self.collection.options()),
            "unreadable": found.unreadable,
            "failed": found.failed,
            "without_mask": found.without_mask,
        }))
    }

    /// Chooses pairs. Returns their number, and a warning if there are none; None while other parts are missing.
    fn choose_pairs(
        &self,
        py: Python<'_>,
        device: Option<&Bound<'_, PyAny>>,
        shard: (u32, u32),
    ) -> PyResult<Option<(u64, Option<String>)>> {
        let shard = shard_of(shard)?;
        let chosen = run_on(py, device, |p| self.collection.choose_pairs(shard, &p.cpu))?;
        let photographs = self.collection.photographs().len();
        Ok(chosen.map(|pairs| (pairs.count(photographs), pairs.warning(photographs))))
    }

    fn match_pairs<'py>(
        &self,
        py: Python<'py>,
        devices: Vec<Bound<'py, PyAny>>,
        shard: (u32, u32),
    ) -> PyResult<Bound<'py, PyDict>> {
        let shard = shard_of(shard)?;
        let found = on_all(py, &devices, |processors| self.collection.match_pairs(shard, processors))?;
        Ok(dict!(py, {
            "pairs": found.pairs,
            "structure": found.structure,
            "left_out": found.left_out,
            "tiles": found.tiles,
            "present": found.present,
            "complete": !found.closure_waits,
        }))
    }

    fn export<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        replace: bool,
        descriptors: bool,
        old_layout: bool,
        format: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        if let Some(format) = format {
            let format = MatchFormat::from_name(format).map_err(raised)?;
            let WrittenPairs { pairs, inliers, .. } =
                interruptible(py, |cpu| self.collection.write_tie_points(format, &path, cpu))?;
            return Ok(dict!(py, { "pairs": pairs, "inliers": inliers }));
        }
        let options = ExportOptions::default().with_replace(replace).with_without_descriptors(!descriptors);
        let options = options.with_old_layout(old_layout);
        let written =
            interruptible(py, |cpu| tiepoint_colmap::export(&self.collection, path, &options, cpu))?;
        Ok(dict!(py, {
            "warnings": Vec::from_iter(written.warning()),
            "images": written.images,
            "cameras": written.cameras,
            "keypoints": written.keypoints,
            "pairs": written.pairs,
            "inliers": written.inliers,
            "positions": written.positions,
        }))
    }

    /// Fails if a database could not be written to `path`.
    #[staticmethod]
    fn check_place(path: PathBuf, replace: bool) -> PyResult<()> {
        tiepoint_colmap::check_place(path, &ExportOptions::default().with_replace(replace)).map_err(raised)
    }

    /// The verdict on the finished collection, and its reasons.
    fn assess<'py>(&self, py: Python<'py>, device: Option<&Bound<'py, PyAny>>) -> PyResult<Assessed<'py>> {
        let found = run_on(py, device, |p| {
            let results = self.collection.results(&p.cpu)?;
            let mut counts = vec![];
            for block in 0..results.blocks() {
                p.cpu.check()?;
                counts.extend(results.pairs_of(block)?.iter().map(VerifiedPair::counts));
            }
            Ok(self.collection.evidence(self.collection.status(&p.cpu)?.unreadable.len(), &counts))
        })?;
        assessed(py, Some(&found.assess()))
    }

    fn status<'py>(
        &self,
        py: Python<'py>,
        device: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = run_on(py, device, |p| self.collection.status(&p.cpu))?;
        Ok(dict!(py, {
            "complete": found.is_complete(),
            "photographs": found.photographs,
            "searched": found.searched,
            "features": found.features,
            "unreadable": found.unreadable,
            "refused": found.refused,
            "pairs": found.pairs,
            "tried": found.tried,
            "left_out": found.left_out,
            "verified": found.verified,
            "inliers": found.inliers,
            "tiles": found.tiles,
            "tiles_done": found.tiles_done,
            "missing_features": found.missing,
            "changed": found.changed,
            "missing_pairs": found.missing_pairs,
            "missing_match": found.missing_tiles,
            "unfit": found.unfit,
        }))
    }

    /// The features of a photograph and None, or None and the reason why there are none.
    fn features(&self, py: Python<'_>, index: usize) -> PyResult<(Option<Features>, Option<String>)> {
        if index >= self.collection.photographs().len() {
            return Err(wrong_option(&format!("there is no photograph {index}")));
        }
        let collection = self.collection.clone();
        Ok(match abandonable(py, move || collection.features(index))?.map_err(raised)? {
            PhotographFeatures::Found(found) => (Some(Features::new(found)), None),
            PhotographFeatures::Unreadable(reason) => (None, Some(reason)),
            // Missing, or a state of a later version.
            _ => (None, Some("it has not been searched for features".into())),
        })
    }

    /// Stores features for a photograph. Returns warnings.
    fn import_features(&self, py: Python<'_>, index: usize, features: &Features) -> PyResult<Vec<String>> {
        let (collection, found) = (&self.collection, features.found(py)?);
        let imported = py.detach(|| collection.import_features(index, found)).map_err(raised)?;
        Ok(imported.warnings(collection.options()))
    }

    /// Stores matches: of each pair both photographs, and an array of two features for each match.
    fn import_matches(&self, py: Python<'_>, given: Vec<([u32; 2], Bound<'_, PyAny>)>) -> PyResult<()> {
        let rows = |(pair, array): ([u32; 2], Bound<'_, PyAny>)| {
            let rows = table::<u32, 2>(&array, "matches")?;
            Ok((pair, rows))
        };
        let given = given.into_iter().map(rows).collect::<PyResult<Vec<_>>>()?;
        interruptible(py, |cpu| self.collection.import_matches(given, cpu))
    }

    fn results(&self, py: Python<'_>) -> PyResult<Results> {
        let collection = self.collection.clone();
        let open = || Borrowed::try_new(collection, |collection| collection.results(&Cpu::sequential()));
        Ok(Results { results: Arc::new(abandonable(py, open)?.map_err(raised)?) })
    }

    /// The page, and the photographs of which it shows no picture.
    fn page(
        &self,
        py: Python<'_>,
        device: Option<&Bound<'_, PyAny>>,
        limit: Option<usize>,
        made: &str,
    ) -> PyResult<(String, Vec<(String, String)>)> {
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        let page =
            run_on(py, device, |p| CollectionPage::new(&self.collection, (limit, made), None, &p.cpu))?;
        Ok((page.html, page.without_picture))
    }
}

fn pair_dict(py: Python<'_>, pair: VerifiedPair) -> PyResult<Bound<'_, PyDict>> {
    let matrix = |m: Option<[f64; 9]>| m.map(|m| rows(py, m.as_chunks::<3>().0.to_vec())).transpose();
    let pairs = pair.matches.iter().map(|m| m.map(i64::from)).collect();
    Ok(dict!(py, {
        "a": pair.a,
        "b": pair.b,
        "pairs": rows(py, pairs)?,
        "inliers": vector(py, pair.inlier),
        "configuration": pair.configuration.name(),
        "fundamental": matrix(pair.fundamental)?,
        "essential": matrix(pair.essential)?,
        "homography": matrix(pair.homography)?,
    }))
}
