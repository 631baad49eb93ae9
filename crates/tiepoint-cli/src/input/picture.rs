//! Images read for a detector, and masks.

use crate::failure::{Failure, Outcome};
use crate::output::{Clock, Part};
use crate::prefetch::Weight;
use std::path::{Path, PathBuf};
use tiepoint::device::Cpu;
use tiepoint::image::{self, AnyCow, AnyImage, Image, Pixel, Prepared, Range, ReadOptions, Size};

/// An image ready for a detector.
#[derive(Debug)]
pub(crate) struct Picture {
    /// As in the file, if colours were asked for and `image` is not that.
    pub(crate) original: Option<AnyImage>,
    /// Grey, on the scale of its type.
    pub(crate) image: AnyImage,
    /// 0 where no keypoint may lie.
    pub(crate) mask: Option<Image<u8>>,
}

/// A picture as its files hold it.
#[derive(Debug)]
pub(crate) struct ReadPicture {
    path: PathBuf,
    image: AnyImage,
    /// Keep the image as it is in its file, beside the grey one.
    colour: bool,
    mask: Option<Image<u8>>,
    /// Where the file says that it shows something.
    shown: Option<Image<u8>>,
}

impl ReadPicture {
    /// The picture as a detector takes it. One that is so in its file is not copied.
    pub(crate) fn ready(self, range: Range, cpu: &Cpu) -> Outcome<Picture> {
        let Self { path, image, colour, mask, shown } = self;
        // What the file holds under transparent pixels has edges that mean nothing.
        let shown = shown.map(|shown| image::without_margin(shown.view(), cpu));
        let mask = both(mask, shown);
        let counting = mask.as_ref().map(Image::view);
        let named = |error| Failure::from(error).about(path.display());
        let grey = image::grey(&image, cpu).map_err(named)?;
        let (made, holes) = match grey {
            AnyCow::Owned(grey) => {
                let Prepared { image, mask } =
                    image::prepare_owned(grey, counting, range, cpu).map_err(named)?;
                (Some(image.into_image()), mask)
            }
            AnyCow::Borrowed(grey) => {
                let Prepared { image, mask } = image::prepare(grey, counting, range, cpu).map_err(named)?;
                (image.into_owned(), mask)
            }
        };
        let (original, image) = match made {
            Some(made) => (colour.then_some(image), made),
            None => (None, image),
        };
        Ok(Picture { original, image, mask: both(mask, holes) })
    }
}

/// Reads images within limits.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) limits: ReadOptions,
    pub(crate) cpu: &'a Cpu,
}

impl<'a> Reader<'a> {
    /// An image as it is in its file.
    pub(crate) fn image(&self, path: &Path) -> Outcome<AnyImage> {
        Ok(image::read(path, &self.limits)?)
    }

    /// An image for a detector; `colour` keeps it as it is in the file too, for drawing and warping.
    pub(crate) fn picture(
        &self,
        path: &Path,
        colour: bool,
        mask: Option<&Path>,
        range: Range,
        clock: &mut Clock,
    ) -> Outcome<Picture> {
        let read = clock.time(Part::Read, || self.read(path, colour, mask))?;
        clock.time(Part::Compute, || read.ready(range, self.cpu))
    }

    /// What the files of a picture hold: the first part of [`picture`](Self::picture).
    pub(crate) fn read(&self, path: &Path, colour: bool, mask: Option<&Path>) -> Outcome<ReadPicture> {
        let Self { limits, cpu } = self;
        let (image, shown) = if colour {
            let original = image::read(path, limits)?;
            let shown = image::alpha_mask(&original);
            (original, shown)
        } else {
            image::read_grey_masked(path, limits, cpu)?
        };
        let mask = mask.map(|path| self.mask(path, image.size())).transpose()?;
        Ok(ReadPicture { path: path.to_owned(), image, colour, mask, shown })
    }

    /// The mask in the file at `path` for an image of `expected` size: not 0 where the image counts.
    pub(crate) fn mask(&self, path: &Path, expected: Size) -> Outcome<Image<u8>> {
        let mask = image::read_grey(path, &self.limits, self.cpu)?;
        let found = mask.size();
        if found != expected {
            return Err(Failure::work(format!(
                "{}: the mask is {found}, its image {expected}",
                path.display()
            )));
        }
        fn allowed<T: Pixel>(mask: &Image<T>) -> Image<u8> {
            Image::from_fn(mask.size(), |x, y| if mask.row(y)[x].to_f32() > 0.0 { 255 } else { 0 })
        }
        Ok(match mask {
            AnyImage::U8(m) => m,
            AnyImage::U16(m) => allowed(&m),
            AnyImage::F32(m) => allowed(&m),
        })
    }
}

impl Weight for Picture {
    fn bytes(&self) -> usize {
        let mask = self.mask.as_ref().map_or(0, |m| m.data().len());
        self.original.as_ref().map_or(0, bytes) + bytes(&self.image) + mask
    }
}

/// Bytes of an image.
pub(crate) fn bytes(image: &AnyImage) -> usize {
    match image {
        AnyImage::U8(i) => i.data().len(),
        AnyImage::U16(i) => 2 * i.data().len(),
        AnyImage::F32(i) => 4 * i.data().len(),
    }
}

/// What counts by both masks of an image; `None` excludes nothing.
pub(crate) fn both(mask: Option<Image<u8>>, other: Option<Image<u8>>) -> Option<Image<u8>> {
    match (mask, other) {
        (Some(mut mask), Some(other)) => {
            mask.data_mut().iter_mut().zip(other.data()).filter(|(_, o)| **o == 0).for_each(|(m, _)| *m = 0);
            Some(mask)
        }
        (mask, other) => mask.or(other),
    }
}
