//! Reading of images and masks for a detector.

use crate::failure::{Failure, Outcome};
use crate::output::{Clock, Part};
use crate::prefetch::Weight;
use std::path::{Path, PathBuf};
use tiepoint::by_pixel;
use tiepoint::device::Cpu;
use tiepoint::image::{self, AnyImage, FileImage, Image, Mask, Prepared, Range, ReadOptions, Size};

/// What is kept of an image besides the form that a detector searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing.
    Grey,
    /// The image as its file holds it, to warp it.
    File,
    /// That and the image as it is shown, to draw it.
    Shown,
}

/// An image ready for a detector.
#[derive(Debug)]
pub(crate) struct Picture {
    /// The image as its file holds it, if it is to be drawn or warped.
    file: Option<FileImage>,
    /// The image as it is shown, if it is to be drawn and is not the same as in the file.
    seen: Option<AnyImage>,
    /// The image as the detector sees it, grey and on the scale of its type, unless that is the same as `seen`.
    made: Option<AnyImage>,
    /// 0 where no keypoint may lie.
    pub(crate) mask: Option<Image<u8>>,
    /// Whether the picture is not upright in its file and was not turned.
    pub(crate) stored: bool,
}

/// A picture and its mask as they were read.
#[derive(Debug)]
pub(crate) struct ReadPicture {
    path: PathBuf,
    image: FileImage,
    kept: Kept,
    mask: Mask<'static>,
}

impl ReadPicture {
    /// The picture made ready for a detector. A picture that already has this form is not copied.
    pub(crate) fn ready(self, range: Range, cpu: &Cpu) -> Outcome<Picture> {
        let Self { path, image, kept, mask } = self;
        let named = |error| Failure::from(error).about(path.display());
        let stored = image.orientation != 1 && !image.turned;
        if kept == Kept::Grey {
            let Prepared { image, mask } = image.prepared(mask, range, cpu).map_err(named)?;
            return Ok(Picture {
                file: None,
                seen: None,
                made: Some(image.into_image()),
                mask: mask.into_image(),
                stored,
            });
        }
        let Prepared { image: made, mask } = image.prepare(mask, range, cpu).map_err(named)?;
        let (made, mask) = (made.into_owned(), mask.into_image());
        let seen = match kept {
            Kept::Shown => image.seen().map_err(named)?.into_owned(),
            Kept::Grey | Kept::File => None,
        };
        Ok(Picture { file: Some(image), seen, made, mask, stored })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) limits: ReadOptions,
    pub(crate) cpu: &'a Cpu,
}

impl<'a> Reader<'a> {
    /// An image as it is in its file.
    pub(crate) fn image(&self, path: &Path) -> Outcome<FileImage> {
        Ok(image::read_file(path, &self.limits)?)
    }

    pub(crate) fn picture(
        &self,
        path: &Path,
        kept: Kept,
        mask: Option<&Path>,
        range: Range,
        clock: &mut Clock,
    ) -> Outcome<Picture> {
        let read = clock.time(Part::Read, || self.read(path, kept, mask))?;
        clock.time(Part::Compute, || read.ready(range, self.cpu))
    }

    /// Reads the files of a picture: the first part of [`picture`](Self::picture).
    pub(crate) fn read(&self, path: &Path, kept: Kept, mask: Option<&Path>) -> Outcome<ReadPicture> {
        let Self { limits, cpu } = self;
        let image = match kept {
            Kept::Grey => image::read_grey_alpha(path, limits, cpu)?,
            Kept::File | Kept::Shown => self.image(path)?,
        };
        let mask = self.mask(mask, image.image.size())?;
        Ok(ReadPicture { path: path.to_owned(), image, kept, mask })
    }

    /// The mask in the file at `path`, if there is one, for an image of this size.
    pub(crate) fn mask(&self, path: Option<&Path>, image: Size) -> Outcome<Mask<'static>> {
        let options = self.limits.with_band(None);
        let mask = path.map(|path| Mask::read(path, image, &options, self.cpu));
        Ok(mask.transpose()?.into())
    }
}

impl Picture {
    /// A picture whose `made` is for the detector.
    pub(crate) fn of(file: AnyImage, made: AnyImage) -> Self {
        Self { file: Some(file.into()), seen: None, made: Some(made), mask: None, stored: false }
    }

    /// The image for the detector: grey, on the scale of its type.
    pub(crate) fn grey(&self) -> &AnyImage {
        self.made.as_ref().unwrap_or_else(|| self.seen())
    }

    /// Gives back the memory of what only a search needs, of a picture that is not drawn.
    pub(crate) fn end_search(&mut self) {
        (self.made, self.mask) = (None, None);
    }

    /// Why nothing can be found in it, if it is blank.
    pub(crate) fn shows_nothing(&self) -> Option<&'static str> {
        image::shows_nothing(self.grey().view(), self.mask.as_ref().map(Image::view))
    }

    pub(crate) fn file(&self) -> Option<&FileImage> {
        self.file.as_ref()
    }

    /// The image as it is shown: in colour, if that was asked for.
    pub(crate) fn seen(&self) -> &AnyImage {
        let stored = || self.file.as_ref().map(|file| &file.image);
        let seen = self.seen.as_ref().or_else(stored).or(self.made.as_ref());
        seen.unwrap_or_else(|| unreachable!("it is asked for after a search only if it was kept"))
    }
}

impl Weight for Picture {
    fn bytes(&self) -> usize {
        let mask = self.mask.as_ref().map_or(0, |m| m.data().len());
        let file = self.file.as_ref().map_or(0, |file| bytes(&file.image));
        file + self.seen.iter().chain(&self.made).map(bytes).sum::<usize>() + mask
    }
}

pub(crate) fn bytes(image: &AnyImage) -> usize {
    by_pixel!(image, i => size_of_val(i.data()))
}
