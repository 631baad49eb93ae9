//! Filters on whole images: Gauss, Sobel, Hessian blobs, convolution, integral images, resampling.
//!
//! Every filter takes a view, its options and a [`Cpu`](crate::device::Cpu) and returns a new image. The
//! forms whose names end in `_into` write into memory of the caller through an
//! [`ImageViewMut`](crate::image::ImageViewMut). The forms in [`any`] take images of any pixel type, in the
//! host's memory or on a GPU, and a [`Processor`](crate::device::Processor), whose GPU they use.

pub mod any;
pub(crate) mod border;
pub mod convolve;
pub mod gauss;
pub mod gpu;
pub mod hessian;
pub mod integral;
#[cfg(test)]
mod into_tests;
pub mod resample;
mod separable;
pub mod shrink;
pub mod sobel;
#[cfg(test)]
mod testing;
