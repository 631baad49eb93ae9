//! Lists of images, and reading the images.

mod lists;
mod picture;

pub(crate) use lists::{expand, listed_lines};
pub(crate) use picture::{Kept, Picture, ReadPicture, Reader, bytes};
