//! Filters on whole images: Gauss, Sobel, Hessian blobs, convolution, integral images, resampling.

pub mod gauss;
