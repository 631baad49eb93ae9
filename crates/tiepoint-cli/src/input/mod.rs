//! What is read: which images, and the images themselves.

mod lists;
mod picture;

pub(crate) use lists::{expand, listed_lines};
pub(crate) use picture::{Picture, ReadPicture, Reader, bytes};
