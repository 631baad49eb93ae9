//! Many photographs: a folder of images in, verified matches of all pairs that show the same thing out.
//!
//! ```text
//! scan ─▶ features ─▶ pairs ─▶ matches ─▶ (closure ─▶ matches) ─▶ export
//! ```
//!
//! **The work folder is the truth.** A [`Collection`] is a folder on disk: what is in it is done, what is missing is to
//! do. Every file is written beside its place and renamed, and carries checksums and what it was made from. So any stage
//! may be killed at any time and started again, on any number of threads, devices and machines ([`Shard`]), and the
//! results are the same at the end. A file that is damaged or belongs to another run is made again.
//!
//! **What was made is valid for what it was made from.** Features follow from the content of a photograph and its mask,
//! pairs of photographs from the features of both. [`Collection::scan`] finds what came, went and changed; of the
//! rest nothing is done twice, and the results are those of a fresh folder.
//!
//! | file | holds |
//! |---|---|
//! | `collection.json` | the options, and the versions of the format and of the stages |
//! | `images.json` | the photographs: name, length, times of change, camera data, mask, slot ([`Photograph`]) |
//! | `features/…/NAME.features` | what was read; size, keypoints and descriptors of one photograph, or why there are none; NAME is a hash of the photograph's |
//! | `top-scale/…/I-J.tile` | of the photographs of blocks I and J: how many of their largest features match |
//! | `pairs.bin` | which pairs are to be matched |
//! | `matches/…/I-J.tile` | of the photographs of blocks I and J: pairs tried, their matches and geometry |
//! | `closure.bin`, `closure/` | the pairs that the matches of others suggest, and their tiles |
//!
//! **Tiles.** Every photograph has a slot, which it keeps while others come and go. Slots are cut into blocks of
//! [`CollectionOptions::block`], pairs into tiles: those of one block with one other. A tile is the unit of work, of a
//! file, and of what a crash loses.
//!
//! **Numbers.** Photographs are numbered from 1 in the order of their names. Of a pair the photograph with the smaller
//! number comes first, and so does its side of every match and model.

mod camera;
mod closure;
mod devices;
mod estimate;
mod exif;
mod features;
mod folder;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod matches;
mod options;
mod pairs;
mod record;
mod results;
mod round;
mod scan;
mod search;
mod shard;
mod status;
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
pub use estimate::Estimate;
pub use exif::{Focal, Metadata, Position};
pub use features::{Extracted, PhotographFeatures};
pub use folder::Collection;
pub use matches::Matched;
pub use options::{CollectionOptions, FeatureOptions, PairChoice, PairOptions};
pub use pairs::PairSet;
pub use results::Results;
pub use scan::{FileVersion, Photograph, Scanned};
pub use shard::Shard;
pub use status::Status;
pub use tile::VerifiedPair;
