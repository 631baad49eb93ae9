//! Images read for a detector, and masks.

use crate::failure::{Failure, Outcome};
use crate::output::{Clock, Part};
use crate::prefetch::Weight;
use std::path::{Path, PathBuf};
use tiepoint::device::Cpu;
use tiepoint::image::{self, AnyImage, Image, Mask, Prepared, Range, ReadOptions, Size};

/// An image ready for a detector.
#[derive(Debug)]
pub(crate) struct Picture {
    /// The image as in its file, if colours were asked for and `image` is not that.
    pub(crate) colour: Option<AnyImage>,
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
    mask: Mask<'static>,
}

impl ReadPicture {
    /// The picture as a detector takes it. A picture that already has this form in its file is not copied.
    pub(crate) fn ready(self, range: Range, cpu: &Cpu) -> Outcome<Picture> {
        let Self { path, image, colour, mask } = self;
        let named = |error| Failure::from(error).about(path.display());
        if !colour {
            let Prepared { image, mask } = image::prepare(image, mask, range, cpu).map_err(named)?;
            return Ok(Picture { colour: None, image: image.into_image(), mask: mask.into_image() });
        }
        let Prepared { image: made, mask } = image::prepare(&image, mask, range, cpu).map_err(named)?;
        let mask = mask.into_image();
        Ok(match made.into_owned() {
            Some(made) => Picture { colour: Some(image), image: made, mask },
            None => Picture { colour: None, image, mask },
        })
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
        let image =
            if colour { image::read(path, limits)? } else { image::read_grey_alpha(path, limits, cpu)? };
        let mask = self.mask(mask, image.size())?;
        Ok(ReadPicture { path: path.to_owned(), image, colour, mask })
    }

    /// The mask in the file at `path`, if there is one, for an image of this size.
    pub(crate) fn mask(&self, path: Option<&Path>, image: Size) -> Outcome<Mask<'static>> {
        let mask = path.map(|path| Mask::read(path, image, &self.limits, self.cpu));
        Ok(mask.transpose()?.into())
    }
}

impl Picture {
    /// The image as it is in its file, if colours were asked for.
    pub(crate) fn original(&self) -> &AnyImage {
        self.colour.as_ref().unwrap_or(&self.image)
    }
}

impl Weight for Picture {
    fn bytes(&self) -> usize {
        let mask = self.mask.as_ref().map_or(0, |m| m.data().len());
        self.colour.as_ref().map_or(0, bytes) + bytes(&self.image) + mask
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
