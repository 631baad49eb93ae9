//! Pictures made by formula, with the truth about them: textures without end, scenes of two images whose
//! homography is known exactly, and stereo pairs whose disparities and occlusions are.
//!
//! Everything follows from a seed by integer hashing and plain f64 arithmetic, so that one seed gives one
//! picture on every machine, and any window of a texture can be made without the rest of it.

mod random;
mod scene;
pub mod stereo;
mod texture;

pub use random::Random;
pub use scene::{Scene, SceneOptions, viewpoint};
pub use stereo::{Scenery, StereoPair, StereoScene, StereoSceneOptions};
pub use texture::{Texture, TextureKind};
