//! Pictures drawn by formula, with exact ground truth: endless textures, scenes of two images with the homography
//! between them (optionally rendered as another sensor would record them), stereo pairs with their disparities and
//! occlusions, and blocks of aerial photographs with their cameras.
//!
//! Everything follows from a seed by integer hashing and plain f64 arithmetic, so that one seed gives one
//! picture on every machine, and any window of a texture can be made without the rest of it.

mod aerial;
mod photometry;
mod scene;
mod sensor;
pub mod stereo;
mod texture;

pub use crate::numeric::Random;
pub use aerial::{AerialBlock, AerialCamera, AerialOptions};
pub use photometry::Photometry;
pub use scene::{Scene, SceneOptions, viewpoint};
pub use sensor::Sensor;
pub use stereo::{Scenery, StereoPair, StereoScene, StereoSceneOptions};
pub use texture::{Texture, TextureKind};
