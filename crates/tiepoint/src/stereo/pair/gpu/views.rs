//! The views of pairs on a device, in the form that the stages take.

use super::mirrored;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::gpu::{AnyGpuStack, GpuPixel, GpuStack};
use crate::image::{AnyImage, AnyView, Image, PixelKind, Rect, Size};
use crate::stereo::View;
use crate::stereo::cost::gpu::{CostKernel, describe};
use crate::stereo::pair::Pair;
use crate::{Result, by_pixel};
use std::ops::Range;

/// The shape of a view that the host has prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stereo) struct ViewShape {
    /// The pixels of its grey.
    pub(in crate::stereo) grey: PixelKind,
    /// The channels that the cost compares; `None`: the grey in 8 bits.
    compared: Option<usize>,
    /// Whether it has pixels without data.
    pub(in crate::stereo) masked: bool,
    /// Differences of grey up to this may come from rounding alone.
    rounding: u8,
}

impl ViewShape {
    pub(in crate::stereo) fn of(pair: &Pair) -> [Self; 2] {
        [View::Left, View::Right].map(|view| Self {
            grey: pair.grey(view).view().pixel(),
            compared: compared(pair, view).map(Image::channels),
            masked: pair.mask(view).is_some(),
            rounding: pair.rounding(view),
        })
    }
}

/// The image that the cost compares, unless it is the grey in 8 bits.
fn compared(pair: &Pair, view: View) -> Option<&Image<u8>> {
    Some(pair.compared(view)).filter(|compared| !std::ptr::eq(*compared, pair.bytes(view)))
}

/// The images of a pair in the order of [`ViewStacks::stacks`], the left view first.
pub(in crate::stereo) fn images_of(pair: &Pair) -> Vec<AnyView<'_>> {
    let view = |view| {
        let fine = match pair.grey(view) {
            AnyImage::U8(_) => None,
            fine => Some(fine.view()),
        };
        fn bytes(image: &Image<u8>) -> AnyView<'_> {
            AnyView::U8(image.view())
        }
        [Some(bytes(pair.bytes(view))), fine, compared(pair, view).map(bytes), pair.mask(view).map(bytes)]
    };
    [View::Left, View::Right].into_iter().flat_map(view).flatten().collect()
}

/// A view of some pairs on a device.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct ViewStacks {
    /// Grey in 8 bits.
    pub(in crate::stereo) bytes: GpuStack<u8>,
    /// Grey in the picture's type, unless that has 8 bits.
    pub(in crate::stereo) grey: Option<AnyGpuStack>,
    /// The images that the cost compares, unless it is the grey in 8 bits.
    pub(in crate::stereo) compared: Option<GpuStack<u8>>,
    pub(in crate::stereo) mask: Option<GpuStack<u8>>,
    pub(in crate::stereo) rounding: u8,
}

impl ViewStacks {
    /// Memory for views that the host prepares.
    pub(in crate::stereo) fn new(gpu: &Gpu, shape: ViewShape, (size, count): (Size, usize)) -> Result<Self> {
        let ViewShape { grey, compared, masked, rounding } = shape;
        let stack = |channels| GpuStack::new(gpu, size, channels, count);
        Ok(Self {
            bytes: stack(1)?,
            grey: match grey {
                PixelKind::U8 => None,
                fine => Some(by_pixel!(make fine, GpuStack::new(gpu, size, 1, count)?)),
            },
            compared: compared.map(stack).transpose()?,
            mask: masked.then(|| stack(1)).transpose()?,
            rounding,
        })
    }

    /// The stacks that the host's images are copied to, in the order of [`images_of`].
    pub(in crate::stereo) fn stacks(&self) -> impl Iterator<Item = AnyGpuStack> {
        let bytes = |stack: &Option<GpuStack<u8>>| stack.clone().map(AnyGpuStack::U8);
        let grey = [Some(AnyGpuStack::U8(self.bytes.clone())), self.grey.clone()];
        grey.into_iter().chain([bytes(&self.compared), bytes(&self.mask)]).flatten()
    }

    /// Views whose grey has 8 bits.
    pub(in crate::stereo) fn of_bytes(
        bytes: GpuStack<u8>,
        compared: Option<GpuStack<u8>>,
        mask: Option<GpuStack<u8>>,
    ) -> Self {
        Self { bytes, grey: None, compared, mask, rounding: 0 }
    }

    /// The images that the cost compares, in 8 bits.
    pub(in crate::stereo) fn compared(&self) -> &GpuStack<u8> {
        self.compared.as_ref().unwrap_or(&self.bytes)
    }

    /// As [`Pair::colours`].
    pub(in crate::stereo) fn colours(&self) -> &GpuStack<u8> {
        self.compared.as_ref().filter(|images| images.channels() == 3).unwrap_or(&self.bytes)
    }

    pub(in crate::stereo) fn of_rows(
        gpu: &Gpu,
        pair: &Pair,
        view: View,
        rows: &Range<usize>,
    ) -> Result<Self> {
        fn upload<T: GpuPixel>(gpu: &Gpu, image: &Image<T>, rows: &Range<usize>) -> Result<GpuStack<T>> {
            let size = Size::new(image.size().width, rows.len());
            GpuStack::upload(gpu, &[image.view().crop(Rect { x: 0, y: rows.start, size })?])
        }
        Ok(Self {
            bytes: upload(gpu, pair.bytes(view), rows)?,
            grey: match pair.grey(view) {
                AnyImage::U8(_) => None,
                fine => Some(by_pixel!(map fine, fine => upload(gpu, fine, rows)?)),
            },
            compared: compared(pair, view).map(|image| upload(gpu, image, rows)).transpose()?,
            mask: pair.mask(view).map(|image| upload(gpu, image, rows)).transpose()?,
            rounding: pair.rounding(view),
        })
    }

    pub(in crate::stereo) fn mirrored(&self, commands: &mut Commands) -> Result<Self> {
        let mut bytes = |stack: &GpuStack<u8>| mirrored(commands, stack);
        let (grey8, compared) = (bytes(&self.bytes)?, self.compared.as_ref().map(&mut bytes).transpose()?);
        let mask = self.mask.as_ref().map(&mut bytes).transpose()?;
        let grey = match &self.grey {
            None => None,
            Some(grey) => Some(by_pixel!(map grey, grey => mirrored(commands, grey)?)),
        };
        Ok(Self { bytes: grey8, grey, compared, mask, rounding: self.rounding })
    }

    pub(in crate::stereo) fn describe(
        &self,
        commands: &mut Commands,
        cost: (&CostKernel, bool),
    ) -> Result<Buffer<u32>> {
        match &self.grey {
            // The grey has 8 bits.
            None => describe(commands, cost, self, &self.bytes),
            Some(grey) => by_pixel!(grey, grey => describe(commands, cost, self, grey)),
        }
    }
}
