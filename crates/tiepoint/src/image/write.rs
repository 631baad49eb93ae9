//! Writing image files, the format chosen by the name's extension.

use super::{AnyView, Georeference, ImageView, pfm, png, pnm, tiff};
use crate::{Error, Result, files::write_atomically};
use std::path::Path;

/// An image format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// `.png`: 8 or 16 bits, 1 to 4 channels; floats from 0 to 1 become 16 bits.
    Png,
    /// `.tif`, `.tiff`: every pixel type and channel count as it is; BigTIFF above 4 GiB.
    Tiff,
    /// `.pfm`: floats, 1 or 3 channels; integers become 0 to 1.
    Pfm,
    /// `.pgm`: 8 or 16 bits, grey; floats from 0 to 1 become 16 bits. The next three likewise.
    Pgm,
    /// `.ppm`: colour.
    Ppm,
    /// `.pnm`: grey or colour.
    Pnm,
    /// `.pam`: 1 to 4 channels.
    Pam,
}

impl OutputFormat {
    /// The format that `path`'s extension names; call it before long work, so that a wrong name is told at
    /// once.
    ///
    /// # Errors
    /// [`Error::Format`] listing the known extensions.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        Ok(match extension.as_str() {
            "png" => Self::Png,
            "tif" | "tiff" => Self::Tiff,
            "pfm" => Self::Pfm,
            "pgm" => Self::Pgm,
            "ppm" => Self::Ppm,
            "pnm" => Self::Pnm,
            "pam" => Self::Pam,
            _ => {
                let reason = format!(
                    "{extension:?} is not the extension of an image format that can be written; use .png, .tif, \
                     .tiff, .pfm, .pgm, .ppm, .pnm or .pam"
                );
                return Err(Error::format(path, reason));
            }
        })
    }

    /// Why this format cannot hold `view`, if it cannot.
    fn check(self, view: &AnyView<'_>) -> std::result::Result<(), String> {
        let channels: &[usize] = match self {
            Self::Tiff => return tiff::check(view),
            Self::Png | Self::Pam => &[1, 2, 3, 4],
            Self::Pfm | Self::Pnm => &[1, 3],
            Self::Pgm => &[1],
            Self::Ppm => &[3],
        };
        if !channels.contains(&view.channels()) {
            return Err(format!("{self:?} holds {channels:?} channels, not {}", view.channels()));
        }
        Ok(())
    }
}

/// Writes `image` to `path` in the format of its extension, [whole or not at all](write_atomically).
///
/// # Errors
/// [`Error::Format`] when the extension is unknown or the format cannot hold the image, [`Error::Io`] when
/// the file cannot be written.
pub fn write<'a>(path: impl AsRef<Path>, image: impl Into<AnyView<'a>>) -> Result<()> {
    write_view(path.as_ref(), image.into(), None)
}

/// [`write()`] of an image whose pixels lie on a map: a TIFF keeps where, as GeoTIFF; the other formats cannot.
///
/// # Errors
/// As [`write()`], and [`Error::Format`] for another format than TIFF.
pub fn write_georeferenced<'a>(
    path: impl AsRef<Path>,
    image: impl Into<AnyView<'a>>,
    place: &Georeference,
) -> Result<()> {
    let path = path.as_ref();
    match OutputFormat::of(path)? {
        OutputFormat::Tiff => write_view(path, image.into(), Some(place)),
        other => {
            Err(Error::format(path, format!("{other:?} does not hold a place on a map; use .tif or .tiff")))
        }
    }
}

fn write_view(path: &Path, view: AnyView<'_>, place: Option<&Georeference>) -> Result<()> {
    let format = OutputFormat::of(path)?;
    let size = view.size();
    let side = size.width.max(size.height);
    if size.is_empty() || u32::try_from(side).is_err() {
        return Err(Error::format(path, format!("an image of {size} pixels cannot be written")));
    }
    format.check(&view).map_err(|reason| Error::format(path, reason))?;
    write_atomically(path, |out| match format {
        OutputFormat::Png => png::write(out, &view),
        OutputFormat::Tiff => tiff::write(out, &view, place),
        OutputFormat::Pfm => pfm::write(out, &view),
        OutputFormat::Pgm | OutputFormat::Ppm | OutputFormat::Pnm => pnm::write(out, &view, false),
        OutputFormat::Pam => pnm::write(out, &view, true),
    })
}

/// [`write`] for one channel of floats as PFM, TIFF or PNG, for files whose numbers mean something of their
/// own: floats become what `value` makes of them, levels of a 16-bit PNG what `level` does.
pub(crate) fn write_values(
    path: &Path,
    view: ImageView<'_, f32>,
    value: fn(f32) -> f32,
    level: fn(f32) -> u16,
) -> Result<()> {
    let format = OutputFormat::of(path)?;
    if view.size().is_empty() || view.channels() != 1 {
        let found = format!("{} pixels of {} channels", view.size(), view.channels());
        return Err(Error::format(path, format!("expected pixels of one channel, found {found}")));
    }
    match format {
        OutputFormat::Png => write_atomically(path, |out| png::write_levels(out, view, level)),
        OutputFormat::Tiff => write_atomically(path, |out| tiff::write_floats(out, view, value)),
        OutputFormat::Pfm => write_atomically(path, |out| pfm::write_floats(out, view, value)),
        OutputFormat::Pgm | OutputFormat::Ppm | OutputFormat::Pnm | OutputFormat::Pam => {
            Err(Error::format(path, format!("{format:?} holds no floats; use .pfm, .png, .tif or .tiff")))
        }
    }
}
