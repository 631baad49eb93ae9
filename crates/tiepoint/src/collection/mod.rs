//! Many photographs: a folder of images in, verified matches of all pairs that show the same thing out.
//!
//! ```text
//! scan ─▶ features ─▶ pairs ─▶ matches ─▶ (closure ─▶ matches) ─▶ export
//! ```
//!
//! **The work folder is the truth.** A [`Collection`] is a folder on disk: what is in it is done, what is missing is to
//! do. Every file is written beside its place and renamed, carries a checksum and a fingerprint of what it was made
//! from, and depends on nothing but the photographs and the options. So any stage may be killed at any time and started
//! again, on any number of threads, devices and machines ([`Shard`]), and the bytes are the same at the end. A file
//! that is damaged or belongs to another run is made again.
//!
//! | file | holds |
//! |---|---|
//! | `collection.json` | the options, and the version of the format |
//! | `images.json` | the photographs: number, name, length, time of change, camera data ([`Photograph`]) |
//! | `features/…/ID.features` | size, keypoints and descriptors of one photograph, or why it cannot be read |
//! | `pairs.bin` | which pairs are to be matched; missing where all are |
//! | `closure.bin` | the pairs that the matches of others suggest |
//! | `matches/…/I-J.tile` | of the photographs of blocks I and J: pairs tried, their matches and geometry |
//!
//! **Tiles.** Photographs are cut into blocks of [`CollectionOptions::block`], pairs into tiles: those of one block
//! with one other. A tile is the unit of work, of a file, and of what a crash loses.
//!
//! **Numbers.** Photographs are numbered from 1 in the order of their names; photographs that are added later follow in
//! theirs. Of a pair the photograph with the smaller number comes first, and so does its side of every match and model.

mod camera;
mod closure;
mod devices;
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
mod scan;
mod search;
mod shard;
mod status;
mod tile;
mod top_scale;
mod uploaded;
mod verify;
mod waiting;
mod work;
mod workers;

pub use camera::Camera;
pub use devices::MatchDevices;
pub use exif::{Focal, Metadata, Position};
pub use features::{Extracted, PhotographFeatures};
pub use folder::Collection;
pub use matches::Matched;
pub use options::{CollectionOptions, FeatureOptions, PairChoice, PairOptions};
pub use pairs::PairSet;
pub use results::Results;
pub use scan::{Photograph, Scanned};
pub use shard::Shard;
pub use status::Status;
pub use tile::VerifiedPair;
