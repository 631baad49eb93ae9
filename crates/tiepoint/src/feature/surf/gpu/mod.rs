//! SURF on a GPU: the CPU's stages as kernels, with its bits.
//!
//! Everything from the integral image to the descriptors runs as one graph without the host: the number of keypoints
//! stays on the device, and the groups of a launch share the keypoints. The launches are: integral image
//! ([`GpuIntegral`](crate::filter::integral::GpuIntegral)), responses of all layers of all octaves, extrema and their
//! refinement, the total order, and the direction and the descriptor of every keypoint, each by one group. Only then
//! does the host read the counts and that many features. If there are more than fit, it makes room and runs the graph
//! again.

#[cfg(test)]
pub(crate) mod bisect;
pub(super) mod layers;
mod pipeline;
#[cfg(test)]
pub(crate) mod tests;

use pipeline::SurfPipeline;

use crate::feature::gpu::GpuDetector;

/// A SURF detector on a GPU. Its features are those of [`super::Surf`], bit for bit.
///
/// With the paper's options it takes 24 (8 bits) to 31 bytes (f32) for each pixel: the image, its sums and the
/// responses, of which the first octave has 16. There are no parts as for SIFT: an image that needs too much memory is
/// refused with [`crate::Error::Memory`]. It is used as [`GpuSift`](crate::feature::sift::GpuSift) is.
pub type GpuSurf = GpuDetector<SurfPipeline>;
