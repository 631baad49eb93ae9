//! Bands of rows and borders, for all filters.

use crate::image::{Border, ImageView, ImageViewMut, Pixel, Size};
use tiepoint_gpu::KernelSource;

/// For kernels: `border_index`, and the rule as `BORDER_RULE`.
pub(crate) fn for_kernels(source: KernelSource, border: Border) -> KernelSource {
    let rule = match border {
        Border::Clamp => "CLAMP",
        Border::Reflect => "REFLECT",
        Border::Zero => "ZERO",
        Border::Skip => "SKIP",
    };
    source
        .define("CLAMP", 0)
        .define("REFLECT", 1)
        .define("ZERO", 2)
        .define("SKIP", 3)
        .define("BORDER_RULE", rule)
        .text(include_str!("border.h"))
}

/// The number of rows of a task, whatever the number of threads.
pub(crate) const BAND: usize = 32;

/// Fills the `radius` pixels at either end of `padded` from the pixels between them, or with `black` for
/// [`Border::Zero`] and [`Border::Skip`].
pub(crate) fn extend<E: Copy>(padded: &mut [E], radius: usize, channels: usize, border: Border, black: E) {
    let width = (padded.len() / channels).saturating_sub(2 * radius);
    if width == 0 {
        return;
    }
    let mut fill = |to: usize, x: isize| match border.index(x, width) {
        Some(from) => {
            let from = (from + radius) * channels;
            padded.copy_within(from..from + channels, to * channels);
        }
        None => padded[to * channels..(to + 1) * channels].fill(black),
    };
    for i in 0..radius {
        fill(i, i as isize - radius as isize);
        fill(radius + width + i, (width + i) as isize);
    }
}

/// The number of pixels before and after the anchor of a window of `n` pixels.
pub(super) fn reach(n: usize) -> [usize; 2] {
    [n / 2, n - 1 - n / 2]
}

/// For [`Border::Skip`]: restores the input values of pixels whose window leaves the image. `to` begins at row `first`
/// of the image.
pub(super) fn keep<T: Pixel, O: Pixel>(
    from: ImageView<'_, T>,
    window: Size,
    first: usize,
    to: &mut ImageViewMut<'_, O>,
) {
    let ([up, down], across) = (reach(window.height), reach(window.width));
    for (i, y) in (first..first + to.size().height).enumerate() {
        let (source, out, n) = (from.row(y), to.row_mut(i), from.size().width * from.channels());
        let whole = y < up || y + down >= from.size().height;
        let [left, right] = if whole { [n, 0] } else { across.map(|r| (r * from.channels()).min(n)) };
        for at in [0..left, n - right..n] {
            out[at.clone()].iter_mut().zip(&source[at]).for_each(|(o, v)| *o = O::from_f32(v.to_f32()));
        }
    }
}

/// Whether the window of `radius` around row `y` leaves an image of `height` rows.
pub(crate) fn leaves(y: usize, radius: usize, height: usize) -> bool {
    y < radius || y + radius >= height
}
