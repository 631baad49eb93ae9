//! SIFT on a GPU: the stages of the CPU with their names and their bits. An image too large for the memory is searched
//! in [`bands`] of rows.

mod bands;
#[cfg(test)]
pub(crate) mod bisect;
mod pipeline;
pub(crate) mod plan;
#[cfg(test)]
pub(crate) mod tests;

use pipeline::SiftPipeline;

use crate::feature::gpu::GpuDetector;

/// A SIFT detector on a GPU. Its features are those of [`super::Sift`], bit for bit.
///
/// It takes about 4 · (levels + 3) · 4/3 bytes for every pixel of the first octave: 32 for each pixel of an image that
/// is not doubled, 128 if it is. An image that needs too much memory is searched in bands of rows, with the same
/// result: [`parts`](Self::parts) tells how many. The narrower they are, the more is computed twice: for 400
/// megapixels, doubled, a fifth with 16 bytes for each pixel, and everything with 8; with less than 6 it is refused.
///
/// ```no_run
/// use tiepoint::device::Device;
/// use tiepoint::feature::sift::{GpuSift, SiftOptions};
/// use tiepoint::image::{Image, Size};
/// let processor = Device::Cuda(0).open(2)?;
/// let sift = GpuSift::new(&processor, SiftOptions::default())?;
/// let image = Image::<u8>::new(Size::new(1920, 1080));
/// let features = sift.detect(&image, None)?;
/// println!("{} features", features.len());
/// # Ok::<(), tiepoint::Error>(())
/// ```
pub type GpuSift = GpuDetector<SiftPipeline>;
