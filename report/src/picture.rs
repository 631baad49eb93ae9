//! Pictures as the page holds them: 8 bits, reduced to a longest side, JPEG.

use crate::Detail;
use crate::block::base64;
use crate::page::visible;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use serde_json::{Value, json};
use tiepoint::image::{AnyView, Image, ImageView, Pixel, Shades, Size};
use tiepoint::{Error, Result, by_pixel};

/// A picture with its name.
#[derive(Clone, Debug)]
pub struct Picture<'a> {
    /// Its name, such as its file: any text.
    pub name: String,
    /// Its pixels, of any type and one to four channels; alpha is left out.
    pub image: AnyView<'a>,
}

impl<'a> Picture<'a> {
    /// A picture of this name.
    pub fn new(name: impl Into<String>, image: impl Into<AnyView<'a>>) -> Self {
        Self { name: visible(&name.into()), image: image.into() }
    }
}

/// The JPEG quality, from 1 to 100, at which errors hardly change descriptors.
const QUALITY: u8 = 88;

#[derive(Debug)]
pub(crate) struct Embedded {
    pub(crate) described: Value,
    pub(crate) url: String,
    /// The size of the picture before reduction.
    pub(crate) size: Size,
    /// The width and height that the reduced picture covers: multiples of the step.
    pub(crate) covers: [usize; 2],
}

impl Embedded {
    /// Its name, or the id of its element.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.described[key].as_str().unwrap_or_default()
    }
}

/// Reduces a picture and packs it. `id` is its element in the still picture.
pub(crate) fn embed(picture: &Picture<'_>, id: &str, detail: Detail) -> Result<Embedded> {
    let size = picture.image.size();
    if size.is_empty() {
        return Err(Error::Image(format!("{} is empty ({size})", picture.name)));
    }
    let step = detail.step(size);
    let shades = Shades::of(picture.image, None);
    let small = by_pixel!(picture.image, view => reduced(view, step, |v| shades.shade(v)));
    let url = format!("data:image/jpeg;base64,{}", base64(&jpeg(&small)?));
    let covers = [small.size().width * step, small.size().height * step];
    let described =
        json!({ "name": picture.name, "id": id, "width": size.width, "height": size.height, "step": step });
    Ok(Embedded { described, url, size, covers })
}

/// JPEG, with colour at full resolution.
pub(crate) fn jpeg(image: &Image<u8>) -> Result<Vec<u8>> {
    let failed = |e: jpeg_encoder::EncodingError| Error::Image(format!("JPEG: {e}"));
    let too_large = |_| Error::Image(format!("{} is too large for a JPEG", image.size()));
    let (width, height) = (u16::try_from(image.size().width), u16::try_from(image.size().height));
    let (width, height) = (width.map_err(too_large)?, height.map_err(too_large)?);
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    encoder.set_optimized_huffman_tables(true);
    let colour = if image.channels() == 1 { ColorType::Luma } else { ColorType::Rgb };
    encoder.encode(image.data(), width, height, colour).map_err(failed)?;
    Ok(bytes)
}

/// The mean of every square of `step` pixels, as far as it lies in the image: grey or red, green and blue.
fn reduced<T: Pixel>(view: ImageView<'_, T>, step: usize, to_byte: impl Fn(T) -> f32) -> Image<u8> {
    let (size, of) = (view.size(), view.channels());
    let channels = if of < 3 { 1 } else { 3 };
    let small = Size::new(size.width.div_ceil(step), size.height.div_ceil(step));
    let mut out = Image::filled(small, channels, 0_u8);
    let mut sums = vec![0.0_f32; small.width * channels];
    for y in 0..small.height {
        let rows = y * step..((y + 1) * step).min(size.height);
        let many = rows.len() as f32;
        sums.fill(0.0);
        for row in rows {
            for (x, pixel) in view.row(row).chunks_exact(of).enumerate() {
                let sums = &mut sums[x / step * channels..][..channels];
                sums.iter_mut().zip(pixel).for_each(|(s, v)| *s += to_byte(*v));
            }
        }
        for (x, (out, sums)) in
            out.row_mut(y).chunks_exact_mut(channels).zip(sums.chunks_exact(channels)).enumerate()
        {
            let columns = ((x + 1) * step).min(size.width) - x * step;
            out.iter_mut().zip(sums).for_each(|(o, s)| *o = u8::from_f32(s / (many * columns as f32)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_averaged_as_far_as_they_reach() {
        let image = Image::from_fn(Size::new(5, 3), |x, y| (10 * x + 100 * y) as u8);
        let small = reduced(image.view(), 2, f32::from);
        assert_eq!(small.size(), Size::new(3, 2), "rounded up");
        assert_eq!(small.data(), [55, 75, 90, 205, 225, 240], "means; the last column and row hold less");
    }
}
