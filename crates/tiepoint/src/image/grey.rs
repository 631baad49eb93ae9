//! Grey by Rec. 709 luma: Y = 0.2126 R + 0.7152 G + 0.0722 B.
//!
//! Integers are computed exactly, as (2126 R + 7152 G + 722 B + 5000) / 10000 rounded down; floats as
//! fma(0.0722, B, fma(0.7152, G, 0.2126 · R)). An alpha channel is ignored: two channels are grey and alpha,
//! four are R, G, B and alpha.

use super::{AnyImage, Image, ImageView, Pixel};
use crate::{Error, Result, device::Cpu};

/// One channel's arithmetic; implemented for every [`Pixel`].
fn luma<T: Pixel>(rgb: [T; 3]) -> T {
    if T::WHITE == 1.0 {
        let [r, g, b] = rgb.map(T::to_f32);
        return T::from_f32(0.0722_f32.mul_add(b, 0.7152_f32.mul_add(g, 0.2126 * r)));
    }
    let [r, g, b] = rgb.map(T::level);
    T::from_f32(((2126 * r + 7152 * g + 722 * b + 5000) / 10000) as f32)
}

/// One row of 1 to 4 channels to one of grey.
pub(super) fn grey_row<T: Pixel>(source: &[T], channels: usize, out: &mut [T]) {
    let pixels = out.iter_mut().zip(source.chunks_exact(channels));
    match channels {
        1 | 2 => pixels.for_each(|(o, p)| *o = p[0]),
        _ => pixels.for_each(|(o, p)| *o = luma([p[0], p[1], p[2]])),
    }
}

/// Fails unless grey is defined for this many channels.
pub(super) fn check_channels(channels: usize) -> Result<()> {
    match channels {
        1..=4 => Ok(()),
        _ => Err(Error::Image(format!("{channels} channels: grey is defined for 1 to 4"))),
    }
}

fn grey_view<T: Pixel>(view: ImageView<'_, T>, cpu: &Cpu) -> Result<Image<T>> {
    check_channels(view.channels())?;
    let mut out = Image::new(view.size());
    let width = view.size().width;
    cpu.for_chunks(out.data_mut(), width * 64, |chunk, rows| {
        for (i, row) in rows.chunks_mut(width.max(1)).enumerate() {
            grey_row(view.row(chunk * 64 + i), view.channels(), row);
        }
    });
    Ok(out)
}

/// The grey image of `image`, in the same pixel type; a grey image is handed through.
///
/// # Errors
/// [`Error::Image`] for more than four channels.
pub fn grey(image: AnyImage, cpu: &Cpu) -> Result<AnyImage> {
    if image.channels() == 1 {
        return Ok(image);
    }
    Ok(match image {
        AnyImage::U8(i) => AnyImage::U8(grey_view(i.view(), cpu)?),
        AnyImage::U16(i) => AnyImage::U16(grey_view(i.view(), cpu)?),
        AnyImage::F32(i) => AnyImage::F32(grey_view(i.view(), cpu)?),
    })
}
