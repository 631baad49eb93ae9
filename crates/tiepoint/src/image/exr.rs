//! EXR: floats, the first layer of a file without deep data; every value stays as it is.

use super::{
    FileImage, ImageView, Layout, Pixel, Size,
    rows::{Request, Source, reserve},
};
use crate::files::Fault;
use ::exr::error::Error as Failed;
use ::exr::meta::{MetaData, header::Header};
use ::exr::prelude::*;
use std::io::{self, Cursor, Write};

/// The compressions that are read. The decoder of B44 assumes that a file is sound; for DWA there is none.
const READ: [Compression; 6] = [
    Compression::Uncompressed,
    Compression::RLE,
    Compression::ZIP1,
    Compression::ZIP16,
    Compression::PIZ,
    Compression::PXR24,
];

/// Bytes of samples that a byte of the file can stand for at most.
const RATIO: u64 = 2048;

impl From<Failed> for Fault {
    fn from(e: Failed) -> Self {
        match e {
            Failed::Io(e) => Self::Io(e),
            e => Self::Bad(format!(
                "damaged or unsupported OpenEXR: {e}; where it opens elsewhere, convert it: oiiotool IN --compression \
                 zip -o OUT.exr"
            )),
        }
    }
}

pub(super) fn read(mut source: impl Source, request: &Request<'_>) -> std::result::Result<FileImage, Fault> {
    let headers = MetaData::read_from_buffered(&mut source, false)?.headers;
    let header =
        headers.iter().find(|header| !header.deep).ok_or("OpenEXR with deep data alone is not read")?;
    if let Some(other) = headers.iter().map(|header| header.compression).find(|kind| !READ.contains(kind)) {
        return Err(format!(
            "OpenEXR with {other} is not read; convert it: oiiotool IN --compression zip -o OUT.exr"
        )
        .into());
    }
    let (order, layout) = order(header);
    if header.channels.list.iter().any(|channel| channel.sampling != Vec2(1, 1)) {
        return Err(
            "OpenEXR with subsampled channels is not read; convert it: oiiotool IN --ch R,G,B -o OUT.exr"
                .into(),
        );
    }
    let size = Size::new(header.layer_size.width(), header.layer_size.height());
    let channels = layout.channels;
    // The decoder may hold all layers with all their levels, at four bytes a sample; our own pixels come on top.
    let samples = headers.iter().try_fold(0_usize, |sum, header| {
        sum.checked_add(
            header.layer_size.0.checked_mul(header.layer_size.1)?.checked_mul(header.channels.list.len())?,
        )
    });
    request.plausible(size, (samples.unwrap_or(usize::MAX) as u64).saturating_mul(2), RATIO)?;
    let own = size.area().checked_mul(channels);
    request.affordable(
        size,
        samples.zip(own).and_then(|(all, own)| all.checked_mul(8)?.checked_add(own.checked_mul(8)?)),
    )?;
    request.begin::<f32>(size)?;
    source.rewind()?;
    let reader = ::exr::prelude::read().no_deep_data().largest_resolution_level().all_channels();
    let image = reader.first_valid_layer().all_attributes().non_parallel().from_buffered(source)?;
    let bands = image.layer_data.channel_data.list;
    let bands: Vec<&FlatSamples> = order.iter().filter_map(|i| Some(&bands.get(*i)?.sample_data)).collect();
    if bands.len() != channels || bands.iter().any(|band| band.len() != size.area()) {
        return Err("damaged OpenEXR: its channels do not fit its header".into());
    }
    let mut pixels: Vec<f32> = reserve(size.area() * channels)?;
    for at in 0..size.area() {
        pixels.extend(bands.iter().map(|band| match band {
            FlatSamples::F16(values) => values[at].to_f32(),
            FlatSamples::F32(values) => values[at],
            FlatSamples::U32(values) => values[at] as f32,
        }));
    }
    FileImage::whole(pixels, size, layout.with_band(request.options.band), request)
}

/// Which channels become which: red, green and blue first where there are all three, then alpha, then the others in the
/// order of their names, as the file holds them. Where only layers within the file have colours, with names such as
/// `ViewLayer.Combined.R`, those of the first come first.
fn order(header: &Header) -> (Vec<usize>, Layout) {
    let names: Vec<String> = header.channels.list.iter().map(|channel| channel.name.to_string()).collect();
    let at = |layer: &str, name: &str| names.iter().position(|whole| whole.strip_prefix(layer) == Some(name));
    let layers = || {
        let within = names.iter().filter_map(|name| name.rfind('.').map(|dot| &name[..=dot]));
        std::iter::once("").chain(within)
    };
    let all =
        |layer, names: &[&str]| names.iter().map(|name| at(layer, name)).collect::<Option<Vec<usize>>>();
    let first = |names: &[&str]| layers().find_map(|layer| Some((layer, all(layer, names)?)));
    let (layer, mut order) = first(&["R", "G", "B"]).or_else(|| first(&["Y"])).unwrap_or_default();
    let colours = if order.len() == 3 { 3 } else { 1 };
    let alpha = at(layer, "A").filter(|_| names.len() > 1);
    let others = (0..names.len()).filter(|i| !order.contains(i) && Some(*i) != alpha).collect::<Vec<_>>();
    if order.is_empty() {
        order.extend(others.first());
    }
    let opaque = order.len();
    order.extend(alpha);
    let rest: Vec<usize> = others.into_iter().filter(|i| !order.contains(i)).collect();
    order.extend(rest);
    let channels = order.len();
    (order, Layout { channels, first: 0, colours, alpha: alpha.map(|_| opaque) })
}

/// Writes an image, of each sample its `value`.
pub(super) fn write<T: Pixel>(
    mut out: impl Write,
    view: ImageView<'_, T>,
    value: impl Fn(T) -> f32,
) -> io::Result<()> {
    let (size, n) = (view.size(), view.channels());
    let names: &[&str] = match n {
        1 => &["Y"],
        2 => &["Y", "A"],
        3 => &["R", "G", "B"],
        _ => &["R", "G", "B", "A"],
    };
    let band = |(i, name): (usize, &&str)| {
        let row = |y: usize| view.row(y).iter().skip(i).step_by(n).map(|v| value(*v));
        AnyChannel::new(*name, FlatSamples::F32((0..size.height).flat_map(row).collect()))
    };
    let channels = AnyChannels::sort(names.iter().enumerate().map(band).collect());
    let blocks = Blocks::ScanLines;
    let encoding = Encoding { compression: Compression::ZIP16, blocks, line_order: LineOrder::Increasing };
    let image = ::exr::prelude::Image::from_encoded_channels((size.width, size.height), encoding, channels);
    let mut bytes = Cursor::new(Vec::new());
    image.write().non_parallel().to_buffered(&mut bytes).map_err(|e| match e {
        Failed::Io(e) => e,
        e => io::Error::other(e.to_string()),
    })?;
    out.write_all(bytes.get_ref())
}
