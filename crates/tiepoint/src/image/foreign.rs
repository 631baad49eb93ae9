//! Formats that are recognised by their first bytes but not read: their names, and commands that convert them.

use std::{fs::File, io::Read, path::Path};

/// An offset, the bytes found there, the name of the format, and the command that converts it.
type Foreign = (usize, &'static [u8], &'static str, &'static str);

const RAW: &str = "darktable-cli IN OUT.tif, or dcraw -T -c IN > OUT.tif";
const GDAL: &str = "gdal_translate IN OUT.tif";
const HEIF: &str = "heif-convert IN OUT.png";

const KNOWN: [Foreign; 31] = [
    (4, b"ftypheic", "HEIC", HEIF),
    (4, b"ftypheix", "HEIC", HEIF),
    (4, b"ftypmif1", "HEIF", HEIF),
    (4, b"ftyphevc", "HEIC", HEIF),
    (4, b"ftypavif", "AVIF", "avifdec IN OUT.png"),
    (4, b"ftypavis", "AVIF", "avifdec IN OUT.png"),
    (4, b"ftypcrx ", "a raw photograph (CR3)", RAW),
    (0, b"FUJIFILMCCD-RAW", "a raw photograph (RAF)", RAW),
    (0, b"IIRO", "a raw photograph (ORF)", RAW),
    (0, b"IIRS", "a raw photograph (ORF)", RAW),
    (0, b"MMOR", "a raw photograph (ORF)", RAW),
    (0, b"IIU\0", "a raw photograph (RW2)", RAW),
    (0, b"FOVb", "a raw photograph (X3F)", RAW),
    (4, b"ftyp", "a video", "ffmpeg -i IN OUT_%04d.png"),
    (0, b"\x1a\x45\xdf\xa3", "a video", "ffmpeg -i IN OUT_%04d.png"),
    (0, b"NITF", "NITF", GDAL),
    (0, b"NSIF", "NITF", GDAL),
    (0, b"<VRTDataset", "a virtual raster (VRT)", GDAL),
    (0, b"SIMPLE  =", "FITS", GDAL),
    (0, b"CDF", "netCDF", GDAL),
    (
        0,
        b"ENVI",
        "the header of an ENVI raster",
        "gdal_translate IMAGE OUT.tif, where IMAGE is the file beside it",
    ),
    (0, b"\x89HDF\r\n\x1a\n", "HDF5", GDAL),
    (0, b"EHFA_HEADER_TAG", "ERDAS Imagine", GDAL),
    (0, b"#?RADIANCE", "Radiance HDR", "magick IN OUT.pfm"),
    (0, b"8BPS", "Photoshop", "magick IN[0] OUT.png"),
    (0, b"gimp xcf", "GIMP", "magick IN OUT.png"),
    (0, b"DDS ", "DDS", "magick IN OUT.png"),
    (128, b"DICM", "DICOM", "dcm2pnm +on IN OUT.png"),
    (0, b"%PDF", "PDF", "pdftoppm -r 300 -png IN OUT"),
    (0, b"<svg", "SVG", "rsvg-convert IN -o OUT.png"),
    (0, b"\x00\x00\x01\x00", "an icon", "magick IN OUT.png"),
];

/// Why a file that begins with these bytes is not read, and what to do.
pub(super) fn refusal(head: &[u8]) -> String {
    if head.starts_with(b"version https://git-lfs") {
        return "is a pointer of Git LFS, not the image itself; run: git lfs pull".into();
    }
    let begins = |(at, bytes, ..): &&Foreign| head.get(*at..).is_some_and(|rest| rest.starts_with(bytes));
    match KNOWN.iter().find(begins) {
        Some((_, _, name, command)) => format!("{name} is not read; convert it: {command}"),
        None => format!("not an image of a known format; {READ} are read"),
    }
}

/// The formats that are read.
const READ: &str = "PNG, JPEG, TIFF, JPEG 2000, JPEG XL, WebP, BMP, GIF, OpenEXR, PNM, PFM and .npy";

/// Why the file at `path` is not read, if the header of an ENVI raster beside it says what it is: its own bytes do not.
pub(super) fn envi(path: &Path) -> Option<String> {
    let appended = path.with_added_extension("hdr");
    let says = |header: &Path| {
        let mut head = [0; 4];
        File::open(header).and_then(|mut file| file.read_exact(&mut head)).is_ok() && &head == b"ENVI"
    };
    let header = [appended, path.with_extension("hdr")].into_iter().find(|header| says(header))?;
    Some(format!("an ENVI raster (so {} says) is not read; convert it: {GDAL}", header.display()))
}

/// Why a raw photograph that is stored as a TIFF is not read.
pub(super) fn raw() -> String {
    format!(
        "is a raw photograph, whose picture is not developed here (what else it holds is a thumbnail); convert it: {RAW}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_known_formats_name_a_converter() {
        for (at, bytes, name, command) in KNOWN {
            let file = [&vec![b'.'; at], bytes, b"\0\0\0\x01"].concat();
            let said = refusal(&file);
            assert!(said.contains(name) && said.contains(command), "{name}: {said}");
        }
        assert!(refusal(b"version https://git-lfs.github.com/spec/v1\n").contains("git lfs pull"));
        assert!(refusal(b"neither").contains("PNG"), "what is read is listed");
    }
}
