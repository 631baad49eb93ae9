//! Collections of photographs: from a folder of images to verified matches of all pairs that show the same thing.
//!
//! ```text
//! scan ─▶ features ─▶ pairs ─▶ matches ─▶ (closure ─▶ matches) ─▶ (structure) ─▶ export
//! ```
//!
//! **The work folder is the only state.** A [`Collection`] is a folder on disk: work whose file is there is done, all
//! other work is still to be done. Every file is written under another name and then renamed, and records checksums and
//! what it was made from. So any stage may be killed at any time and started again, on any number of threads, devices
//! and machines ([`Shard`]), and the results are the same at the end. A file that is damaged or belongs to another run
//! is made again.
//!
//! **A result is valid as long as its inputs are the same.** Features depend on the content of a photograph and its
//! mask, the result of a pair on the features of both photographs. [`Collection::scan`] finds what came, went and
//! changed. Only results that depend on it are made again, and the final results equal those of a fresh folder.
//!
//! | file | holds |
//! |---|---|
//! | `collection.json` | the options, and the versions of the format and of the stages |
//! | `images.json` | the photographs: name, length, times of change, camera data, mask, slot ([`Photograph`]) |
//! | `features/…/NAME.features` | the features of one photograph, or why there are none; NAME is a hash of its name |
//! | `top-scale/…/I-J.tile` | for the photographs of blocks I and J: how many of their largest features match |
//! | `pairs.bin` | the pairs to be matched |
//! | `given.bin` | matches that were found elsewhere, to be verified |
//! | `matches/…/I-J.tile` | for the photographs of blocks I and J: pairs tried, their matches and geometry |
//! | `closure.bin`, `closure/` | the pairs that verified pairs suggest, and their tiles |
//! | `structure/` | of photographs of different sensors: tiles of the pairs that are tried by structure |
//!
//! **Tiles.** Every photograph has a slot, which it keeps while others come and go. Slots are divided into blocks of
//! [`CollectionOptions::block`], and pairs into tiles: a tile has the pairs between two blocks, or within one. A tile
//! is the unit of work and has one file; it is also what a crash loses.
//!
//! **Numbers.** Photographs are numbered from 1 in the order of their names. In a pair the photograph with the smaller
//! number comes first, also in every match and model.

mod camera;
mod devices;
mod features;
mod folder;
mod forecast;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod given_matches;
mod matches;
mod options;
mod pair_files;
mod pairs;
mod recent;
mod record;
mod results;
mod round;
mod scan;
mod search;
mod shard;
mod status;
mod structure;
mod tile;
mod top_scale;
mod uploaded;
mod verify;
mod waiting;
mod warnings;
mod work;
mod workers;

pub use camera::Camera;
pub use devices::MatchDevices;
pub use features::{Extracted, PhotographFeatures};
pub use folder::Collection;
pub use forecast::Forecast;
pub use matches::Matched;
pub use options::{CollectionOptions, FeatureOptions, Metric, PairChoice, PairOptions};
pub use pair_files::WrittenPairs;
pub use pairs::PairSet;
pub use results::Results;
pub use scan::{FileVersion, Photograph, Scanned};
pub use shard::Shard;
pub use status::Status;
pub use tile::VerifiedPair;
