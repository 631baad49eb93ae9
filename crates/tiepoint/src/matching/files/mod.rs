//! Match files: `.csv`, `.json`, NumPy's `.npz`, COLMAP's text (`.txt`), and the files in which other programs read and
//! write tie points ([`read_matches`]).
//!
//! | format | lines | read by |
//! |---|---|---|
//! | `asp` | `x1 y1 σ1 x2 y2 σ2` | the Ames Stereo Pipeline (`--matches-as-txt`, in `PREFIX-IMAGE1__IMAGE2.txt`) |
//! | `micmac` | `x1 y1 x2 y2 1.0` | MicMac, from `Homol/PastisIMAGE1/IMAGE2.txt` and, exchanged, `Homol/PastisIMAGE2/IMAGE1.txt` |
//! | `s2p` | `x1 y1 x2 y2` | s2p, from `sift_matches.txt` of a tile |
//! | `qgis` | `mapX,mapY,sourceX,sourceY,enable,…` | QGIS's georeferencer, from `IMAGE.points` |
//! | `vrt` | elements `GCP` with `Pixel`, `Line`, `X`, `Y` | GDAL, as the first image with ground control points |
//!
//! The centre of the first pixel is (0, 0), except in the last two formats, whose origin is its corner; QGIS counts
//! rows upwards. In these two, points of the second image are map coordinates if its georeference is known (QGIS: with
//! an EPSG number), and in QGIS's then also those of the first, if it has one. All other points are pixels.
//!
//! These five hold each pair of points once, although features with several orientations may have several matches.

pub(crate) mod npz;
mod read;

pub use read::{MatchSides, ReadMatches, parse_matches, read_matches, read_matches_of};

use super::Match;
use crate::geometry::Model;
use crate::image::tiff::bands;
use crate::image::{FileImage, Georeference, PixelKind, ReadOptions, Size, read_file, stored};
use crate::options::{Named, named};
use crate::{
    Error, Result,
    files::{format_of, write_atomically},
};
use std::{
    collections::HashSet,
    fmt,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// One match as files hold it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchRow {
    /// The match: indices of both features, distance and ratio.
    pub pair: Match,
    /// Position of the feature in the first image, x and y in pixels.
    pub a_xy: [f32; 2],
    /// Position of the feature in the second image, in pixels.
    pub b_xy: [f32; 2],
    /// Scales σ of both features, in pixels.
    pub scales: [f32; 2],
    /// Whether the match agrees with the estimated model; true if no model was estimated.
    pub inlier: bool,
}

named! {
    /// A format of match files.
    pub enum MatchFormat as "format" {
        /// Header and lines of `ax,ay,bx,by,distance,ratio,inlier,a,b`.
        #[default]
        "csv": Csv, "A line for each match, with distance, ratio, whether it is an inlier, and indices";
        /// `{"images":[…],"matches":[{"ax":…},…]}`; a distance or ratio that is not finite becomes null, which is read as NaN.
        "json": Json, "The same with names, sizes and the model";
        /// Arrays with the names that they have in Python's `TiePoints`, and `sizes` and `matrix`.
        "npz": Npz, "NumPy's arrays xy_a, xy_b, pairs, distance, ratio and inliers, with sizes and the model's matrix";
        /// The names of both images, a line of two indices for each match, and an empty line.
        "colmap": Colmap, "Inliers, for COLMAP's matches_importer";
        /// The uncertainty is the scale of the keypoint, as in its binary files.
        "asp": Asp, "Inliers with uncertainties, as text of the Ames Stereo Pipeline";
        /// FILE is the folder; it gets both directions.
        "micmac": MicMac, "Inliers as a folder Homol of MicMac, named by --output";
        "s2p": S2p, "Inliers as sift_matches.txt of s2p";
        /// Pixels of the second image replace map coordinates unless its coordinate system is known.
        "qgis": Qgis, "Inliers as ground control points of QGIS: A is placed on the map of B, or on its pixels";
        "vrt": Vrt, "Inliers as ground control points in a virtual raster of GDAL, which shows A on the map of B";
    }
}

impl MatchFormat {
    /// The format of `path` by its extension. Call it before long work, so that a wrong name is reported at once.
    ///
    /// # Errors
    /// [`Error::Format`] listing the known extensions.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let known = [
            ("csv", Self::Csv),
            ("json", Self::Json),
            ("npz", Self::Npz),
            ("txt", Self::Colmap),
            ("points", Self::Qgis),
            ("vrt", Self::Vrt),
        ];
        let what = "a match file; use .csv, .json, .npz (NumPy), .txt (COLMAP text), .points (QGIS) or .vrt (GDAL); \
                    GeoJSON is written in Python by tiepoint.raster";
        format_of(path.as_ref(), &known, what)
    }

    /// Whether its coordinates count pixels as they are stored, before the picture's orientation (EXIF) is applied.
    pub const fn is_of_stored_pixels(self) -> bool {
        match self {
            Self::Csv | Self::Json | Self::Npz => false,
            Self::Colmap | Self::Asp | Self::MicMac | Self::S2p | Self::Qgis | Self::Vrt => true,
        }
    }
}

/// The images that matches belong to. JSON stores names, sizes and model, NPZ the sizes and the model, COLMAP's text only the
/// names, and CSV none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatchedImages<'a> {
    /// Their names; the first is the path of its file where a virtual raster of GDAL is written.
    pub names: [&'a str; 2],
    /// The georeference of each.
    pub places: [Option<&'a Georeference>; 2],
    /// Their sizes.
    pub sizes: Option<[Size; 2]>,
    /// The model that the inliers agree on, from the first to the second.
    pub model: Option<Model>,
}

impl<'a> From<[&'a str; 2]> for MatchedImages<'a> {
    /// Only the names.
    fn from(names: [&'a str; 2]) -> Self {
        Self { names, places: [None; 2], sizes: None, model: None }
    }
}

/// Writes matches to `path`, [whole or not at all](write_atomically), in `format` or, without one, in the format of its
/// extension.
///
/// # Errors
/// [`Error::Format`] when the extension is unknown, a place is not finite, or the format cannot hold the images (COLMAP:
/// white space in a name; MicMac: a name that is no file name; GDAL: a second image without a georeference), [`Error::Io`] when the file
/// cannot be written; for GDAL those of [`read_file`] of the first image.
pub fn write_matches<'a>(
    path: impl AsRef<Path>,
    format: Option<MatchFormat>,
    images: impl Into<MatchedImages<'a>>,
    rows: &[MatchRow],
) -> Result<()> {
    let (path, images) = (path.as_ref(), images.into());
    let format = format.map_or_else(|| MatchFormat::of(path), Ok)?;
    let refused = |reason| Err(Error::format(path, reason));
    let is_finite = |row: &MatchRow| row.a_xy.iter().chain(&row.b_xy).all(|v| v.is_finite());
    if let Some(i) = rows.iter().position(|row| !is_finite(row)) {
        let [[ax, ay], [bx, by]] = [rows[i].a_xy, rows[i].b_xy];
        return refused(format!(
            "match {i} joins ({ax}, {ay}) with ({bx}, {by}): expected places that are finite; leave out such matches"
        ));
    }
    let unreadable = |name: &&str| name.is_empty() || name.contains(char::is_whitespace);
    if format == MatchFormat::Colmap
        && let Some(name) = images.names.iter().find(|n| unreadable(n))
    {
        return refused(format!("COLMAP's match file cannot hold the image name {name:?}"));
    }
    let inliers = || {
        let mut seen = HashSet::new();
        rows.iter().filter(move |MatchRow { a_xy: [ax, ay], b_xy: [bx, by], inlier, .. }| {
            *inlier && seen.insert([ax, ay, bx, by].map(|v| v.to_bits()))
        })
    };
    match format {
        MatchFormat::Csv => write_atomically(path, |out| csv(out, rows)),
        MatchFormat::Json => write_atomically(path, |out| json(out, &images, rows)),
        MatchFormat::Npz => write_atomically(path, |out| npz::write(out, &images, rows)),
        MatchFormat::Colmap => write_atomically(path, |out| colmap(out, images.names, rows)),
        MatchFormat::Asp => write_atomically(path, |out| {
            inliers().try_for_each(|MatchRow { a_xy: [ax, ay], b_xy: [bx, by], scales: [a, b], .. }| {
                writeln!(out, "{ax:?} {ay:?} {a:?} {bx:?} {by:?} {b:?}")
            })
        }),
        MatchFormat::S2p => write_atomically(path, |out| {
            inliers().try_for_each(|MatchRow { a_xy: [ax, ay], b_xy: [bx, by], .. }| {
                writeln!(out, "{ax:?} {ay:?} {bx:?} {by:?}")
            })
        }),
        MatchFormat::Qgis => write_atomically(path, |out| qgis(out, images.places, inliers())),
        MatchFormat::Vrt => {
            let on_map = images.places[1].and_then(|place| Some((place.epsg(), place.transform()?)));
            let [first, second] = images.names;
            let Some(on_map) = on_map else {
                return refused(format!(
                    "{second} has no place on a map that is read (GeoTIFF, world file): use .points for pixels"
                ));
            };
            vrt(path, first, on_map, inliers())
        }
        MatchFormat::MicMac => {
            let names = images.names.map(|name| Path::new(name).file_name().and_then(|name| name.to_str()));
            let [Some(a), Some(b)] = names else {
                let names = images.names;
                return refused(format!("MicMac's matches cannot be of {names:?}: no names of files"));
            };
            for (names, exchanged) in [([a, b], false), ([b, a], true)] {
                let file = micmac_file(path, names);
                let folder = file.parent().unwrap_or(path);
                std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
                write_atomically(&file, |out| {
                    inliers().try_for_each(|&MatchRow { a_xy, b_xy, .. }| {
                        let ([x, y], [u, v]) = if exchanged { (b_xy, a_xy) } else { (a_xy, b_xy) };
                        writeln!(out, "{x:?} {y:?} {u:?} {v:?} 1.0")
                    })
                })?;
            }
            Ok(())
        }
    }
}

/// A pixel position measured from the corner of the first pixel instead of its centre.
fn from_corner(xy: [f32; 2]) -> [f64; 2] {
    xy.map(|v| f64::from(v) + 0.5)
}

/// The map coordinates of a pixel, by [a transform](Georeference::transform).
fn on_map([a, b, c, d, e, f]: [f64; 6], xy: [f32; 2]) -> [f64; 2] {
    let [x, y] = from_corner(xy);
    [a * x + b * y + c, d * x + e * y + f]
}

fn qgis<'r>(
    out: &mut impl Write,
    [of_a, of_b]: [Option<&Georeference>; 2],
    rows: impl Iterator<Item = &'r MatchRow>,
) -> io::Result<()> {
    // Without a coordinate system the file could not show that its points are map coordinates.
    let on_b = of_b.and_then(|place| Some((place.epsg()?, place.transform()?)));
    if let Some((epsg, _)) = on_b {
        writeln!(out, "#CRS: EPSG:{epsg}")?;
    }
    // Rows are counted upwards. QGIS reads source points of a georeferenced picture as its map coordinates.
    let pixels = [1.0, 0.0, 0.0, 0.0, -1.0, 0.0];
    let to_b = on_b.map_or(pixels, |(_, transform)| transform);
    let to_a = of_a.and_then(Georeference::transform).filter(|_| on_b.is_some()).unwrap_or(pixels);
    writeln!(out, "mapX,mapY,sourceX,sourceY,enable,dX,dY,residual")?;
    for row in rows {
        let ([bx, by], [ax, ay]) = (on_map(to_b, row.b_xy), on_map(to_a, row.a_xy));
        writeln!(out, "{bx:?},{by:?},{ax:?},{ay:?},1,0,0,0")?;
    }
    Ok(())
}

fn vrt<'r>(
    path: &Path,
    source: &str,
    (epsg, transform): (Option<u64>, [f64; 6]),
    rows: impl Iterator<Item = &'r MatchRow>,
) -> Result<()> {
    let file = read_file(source, &ReadOptions::default().with_orient(false))?;
    let stored = stored(Path::new(source))?;
    if stored.palette {
        let reason = format!(
            "{source} has a palette, and a virtual raster of it would show indices; give it colours first \
                              (gdal_translate -expand rgb)"
        );
        return Err(Error::format(path, reason));
    }
    let no_data = stored.no_data.map_or(String::new(), |value| format!("<NoDataValue>{value}</NoDataValue>"));
    let Size { width, height } = file.image.size();
    let kind = stored.kind.unwrap_or(match file.image.view().pixel() {
        PixelKind::U8 => "Byte",
        PixelKind::U16 => "UInt16",
        PixelKind::F32 => "Float32",
    });
    let absolute = std::path::absolute(source).map_err(|e| Error::io(source, e))?;
    let name = absolute.display().to_string().replace('&', "&amp;").replace('<', "&lt;");
    let begin =
        format!("<SimpleSource><SourceFilename relativeToVRT=\"0\">{name}</SourceFilename><SourceBand>");
    let end = "</SourceBand></SimpleSource></VRTRasterBand>";
    let projection = epsg.map_or(String::new(), |epsg| format!(" Projection=\"EPSG:{epsg}\""));
    write_atomically(path, |out| {
        writeln!(
            out,
            "<VRTDataset rasterXSize=\"{width}\" rasterYSize=\"{height}\">\n  <GCPList{projection}>"
        )?;
        for (row, id) in rows.zip(1..) {
            let ([x, y], [column, line]) = (on_map(transform, row.b_xy), from_corner(row.a_xy));
            writeln!(
                out,
                "    <GCP Id=\"{id}\" Pixel=\"{column:?}\" Line=\"{line:?}\" X=\"{x:?}\" Y=\"{y:?}\"/>"
            )?;
        }
        writeln!(out, "  </GCPList>")?;
        for band in 1..=file.layout.channels {
            let about = about_band(&file, band - 1);
            write!(out, "  <VRTRasterBand dataType=\"{kind}\" band=\"{band}\">{no_data}{about}")?;
            writeln!(out, "{begin}{band}{end}")?;
        }
        if file.has_mask() && file.layout.alpha.is_none() {
            writeln!(out, "  <MaskBand><VRTRasterBand dataType=\"Byte\">{begin}mask,1{end}</MaskBand>")?;
        }
        writeln!(out, "</VRTDataset>")
    })
}

/// The metadata of a band, counted from 0, as XML of a virtual raster: its colour, scale, offset, unit and name.
fn about_band(file: &FileImage, band: usize) -> String {
    let colour = match band {
        _ if file.layout.alpha == Some(band) => Some("Alpha"),
        0..3 if file.layout.colours == 3 => Some(["Red", "Green", "Blue"][band]),
        0 => Some("Gray"),
        _ => None,
    };
    let told = file.bands.as_deref().map_or(String::new(), |text| bands::elements(text, band));
    match colour.filter(|_| !told.contains("<ColorInterp>")) {
        Some(name) => format!("<ColorInterp>{name}</ColorInterp>{told}"),
        None => told,
    }
}

/// The file of two images in MicMac's folder `Homol`.
pub(crate) fn micmac_file(homol: &Path, [first, second]: [&str; 2]) -> PathBuf {
    homol.join(format!("Pastis{first}")).join(format!("{second}.txt"))
}

fn csv(out: &mut impl Write, rows: &[MatchRow]) -> io::Result<()> {
    writeln!(out, "ax,ay,bx,by,distance,ratio,inlier,a,b")?;
    for MatchRow { pair, a_xy: [ax, ay], b_xy: [bx, by], inlier, .. } in rows {
        let Match { a, b, distance, ratio } = pair;
        let inlier = u8::from(*inlier);
        writeln!(out, "{ax:?},{ay:?},{bx:?},{by:?},{distance:?},{ratio:?},{inlier},{a},{b}")?;
    }
    Ok(())
}

/// A number as JSON holds it: null for NaN.
struct Number(f32);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_finite() { write!(f, "{:?}", self.0) } else { f.write_str("null") }
    }
}

fn json(out: &mut impl Write, images: &MatchedImages<'_>, rows: &[MatchRow]) -> io::Result<()> {
    write!(out, "{{\"images\":{},", serde_json::to_string(&images.names)?)?;
    if let Some(sizes) = images.sizes {
        write!(out, "\"sizes\":{},", serde_json::to_string(&sizes.map(|size| [size.width, size.height]))?)?;
    }
    if let Some(model) = &images.model {
        let matrix = serde_json::to_string(&model.matrix())?;
        write!(out, "\"model\":\"{}\",\"matrix\":{matrix},", model.kind().name())?;
    }
    write!(out, "\"matches\":[")?;
    for (i, row) in rows.iter().enumerate() {
        let MatchRow { pair: Match { a, b, distance, ratio }, a_xy, b_xy, inlier, .. } = row;
        let [ax, ay, bx, by] = [a_xy[0], a_xy[1], b_xy[0], b_xy[1]].map(Number);
        let [distance, ratio] = [*distance, *ratio].map(Number);
        let comma = if i > 0 { "," } else { "" };
        write!(out, "{comma}\n{{\"ax\":{ax},\"ay\":{ay},\"bx\":{bx},\"by\":{by},\"distance\":{distance},")?;
        write!(out, "\"ratio\":{ratio},\"inlier\":{inlier},\"a\":{a},\"b\":{b}}}")?;
    }
    writeln!(out, "\n]}}")
}

fn colmap(out: &mut impl Write, [first, second]: [&str; 2], rows: &[MatchRow]) -> io::Result<()> {
    writeln!(out, "{first} {second}")?;
    rows.iter().filter(|r| r.inlier).try_for_each(|r| writeln!(out, "{} {}", r.pair.a, r.pair.b))?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Folder;
    use ::tiff::encoder::{TiffEncoder, colortype::GrayI32};
    use ::tiff::tags::Tag;

    #[test]
    fn matches_look_as_documented() {
        let folder = Folder::new("matches");
        let path = |extension: &str| folder.join(format!("a.{extension}"));
        let pair = Match { a: 3, b: 4, distance: 12.0, ratio: f32::NAN };
        let row = MatchRow { pair, a_xy: [1.0, 2.5], b_xy: [0.1, 7.0], scales: [1.6, 3.0], inlier: true };
        let rows = [row, MatchRow { pair: Match { ratio: 0.5, ..pair }, inlier: false, ..row }];
        // The same points with another orientation of both features.
        let twice = [row, MatchRow { pair: Match { a: 8, b: 9, ..pair }, ..row }];
        let text = |extension: &str| {
            write_matches(path(extension), None, ["a \"1\".png", "b.png"], &rows)?;
            Ok::<_, Error>(std::fs::read_to_string(path(extension)).unwrap())
        };
        let csv = "ax,ay,bx,by,distance,ratio,inlier,a,b\n1.0,2.5,0.1,7.0,12.0,NaN,1,3,4\n1.0,2.5,0.1,7.0,12.0,0.5,0,3,4\n";
        assert_eq!(text("csv").unwrap(), csv, "csv");
        let json = "{\"images\":[\"a \\\"1\\\".png\",\"b.png\"],\"matches\":[\n\
                {\"ax\":1.0,\"ay\":2.5,\"bx\":0.1,\"by\":7.0,\"distance\":12.0,\"ratio\":null,\"inlier\":true,\"a\":3,\"b\":4},\n\
                {\"ax\":1.0,\"ay\":2.5,\"bx\":0.1,\"by\":7.0,\"distance\":12.0,\"ratio\":0.5,\"inlier\":false,\"a\":3,\"b\":4}\n]}\n";
        assert_eq!(text("json").unwrap(), json, "json");
        assert!(
            text("txt").unwrap_err().to_string().contains("image name"),
            "a name that COLMAP cannot read"
        );
        write_matches(path("txt"), None, ["a.png", "b.png"], &rows).unwrap();
        assert_eq!(std::fs::read_to_string(path("txt")).unwrap(), "a.png b.png\n3 4\n\n", "COLMAP");
        for (format, at, expected) in [
            (MatchFormat::Asp, "run-a__b.txt", "1.0 2.5 1.6 0.1 7.0 3.0\n"),
            (MatchFormat::S2p, "sift_matches.txt", "1.0 2.5 0.1 7.0\n"),
            (MatchFormat::MicMac, "Homol/Pastisa.tif/b.tif.txt", "1.0 2.5 0.1 7.0 1.0\n"),
            (MatchFormat::MicMac, "Homol/Pastisb.tif/a.tif.txt", "0.1 7.0 1.0 2.5 1.0\n"),
            (
                MatchFormat::Qgis,
                "a.tif.points",
                "mapX,mapY,sourceX,sourceY,enable,dX,dY,residual\n0.6000000014901161,-7.5,1.5,-3.0,1,0,0,0\n",
            ),
        ] {
            let path = folder.join(if format == MatchFormat::MicMac { "Homol" } else { at });
            write_matches(&path, Some(format), ["x/a.tif", "y/b.tif"], &twice).unwrap();
            assert_eq!(std::fs::read_to_string(folder.join(at)).unwrap(), expected, "{format}");
        }
        // On the map of the second picture, whose pixels are two metres wide.
        let place = Georeference::of_transform([2.0, 0.0, 100.0, 0.0, -2.0, 500.0]);
        let source = folder.join("a&b.tif");
        crate::image::write(&source, &crate::image::Image::<u16>::new(Size::new(7, 5))).unwrap();
        let name = source.to_str().unwrap();
        let images = MatchedImages { places: [None, Some(&place)], ..[name, "b.tif"].into() };
        write_matches(path("vrt"), None, images, &twice).unwrap();
        let expected = format!(
            "<VRTDataset rasterXSize=\"7\" rasterYSize=\"5\">\n  <GCPList>\n    <GCP Id=\"1\" Pixel=\"1.5\" Line=\"3.0\" \
             X=\"101.20000000298023\" Y=\"485.0\"/>\n  </GCPList>\n  <VRTRasterBand dataType=\"UInt16\" band=\"1\"><ColorInterp>Gray</ColorInterp>\
             <SimpleSource><SourceFilename relativeToVRT=\"0\">{}</SourceFilename><SourceBand>1</SourceBand></SimpleSource></VRTRasterBand>\n\
             </VRTDataset>\n",
            name.replace('&', "&amp;")
        );
        assert_eq!(std::fs::read_to_string(path("vrt")).unwrap(), expected);
        let mask = crate::image::Image::from_fn(Size::new(7, 5), |x, _| if x < 3 { 0_u8 } else { 255 });
        let grey = crate::image::Image::from_fn(Size::new(7, 5), |x, _| x as u16);
        crate::image::write(path("png"), &mask).unwrap();
        for (no_data, is_masked) in [(None, true), (Some(0.0), true), (Some(0.0), false)] {
            let known = crate::image::Known { no_data, ..crate::image::Known::default() };
            crate::image::write_known(&source, &grey, &known).unwrap();
            if is_masked {
                std::fs::copy(path("png"), source.with_added_extension("msk")).unwrap();
            }
            write_matches(path("vrt"), None, images, &twice).unwrap();
            let text_of = std::fs::read_to_string(path("vrt")).unwrap();
            let said = ["<MaskBand>", "<SourceBand>mask,1<"].map(|said| text_of.contains(said));
            assert_eq!(said, [is_masked; 2], "{text_of}");
        }
        std::fs::remove_file(source.with_added_extension("msk")).ok();
        // The metadata of the file's bands are kept: type, name, scale and no-data value.
        let mut encoder = TiffEncoder::new(std::fs::File::create(&source).unwrap()).unwrap();
        let mut image = encoder.new_image::<GrayI32>(7, 5).unwrap();
        let about =
            "<GDALMetadata><Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.5</Item></GDALMetadata>";
        image.encoder().write_tag(Tag::from_u16_exhaustive(42112), about).unwrap();
        image.encoder().write_tag(Tag::from_u16_exhaustive(42113), "-2147483647").unwrap();
        image.write_data(&[3; 35]).unwrap();
        write_matches(path("vrt"), None, images, &twice).unwrap();
        let text_of = std::fs::read_to_string(path("vrt")).unwrap();
        let expected = "dataType=\"Int32\" band=\"1\"><NoDataValue>-2147483647</NoDataValue><ColorInterp>Gray</ColorInterp>\
                        <Scale>0.5</Scale>";
        assert!(text_of.contains(expected), "{text_of}");
        let nowhere = write_matches(path("vrt"), None, [name, "b.tif"], &rows).unwrap_err().to_string();
        assert!(nowhere.contains("b.tif has no place on a map"), "{nowhere}");
        for (a_xy, b_xy) in [([f32::NAN, 2.5], row.b_xy), (row.a_xy, [0.1, f32::INFINITY])] {
            for format in MatchFormat::ALL {
                let rows = [row, MatchRow { a_xy, b_xy, ..row }];
                let told = write_matches(path("x"), Some(format.value), ["a", "b"], &rows).unwrap_err();
                assert!(told.to_string().contains("match 1 joins ("), "{}: {told}", format.name);
            }
        }
        let nameless = write_matches(folder.join("Homol"), Some(MatchFormat::MicMac), ["", "b"], &rows);
        assert!(nameless.unwrap_err().to_string().contains("no names of files"));
        assert!(text("xyz").unwrap_err().to_string().contains(".json"), "the known extensions are listed");
    }
}
