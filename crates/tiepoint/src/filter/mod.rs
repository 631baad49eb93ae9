//! Filters on whole images: Gauss, Sobel, Hessian blobs, convolution, integral images, resampling.
//!
//! Every filter takes a view, its options and a [`Cpu`](crate::device::Cpu) and returns a new image; the forms
//! ending in `_into` write to an image that is used again frame after frame.

mod border;
pub mod convolve;
pub mod gauss;
pub mod gpu;
pub mod hessian;
pub mod integral;
pub mod resample;
mod separable;
pub mod sobel;
#[cfg(test)]
mod testing;
