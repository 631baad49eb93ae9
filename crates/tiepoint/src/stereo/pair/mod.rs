//! A prepared pair: grey in the pictures' types and in 8 bits, the images that the cost compares, and the masks.

pub(crate) mod gpu;
mod grey;
mod pictures;

pub(super) use pictures::Pictures;

use super::View;
use super::cost::CostDefinition;
use crate::Result;
use crate::device::Cpu;
use crate::filter::resample::{Scaling, resample};
use crate::image::{AnyImage, Image, Size};
use grey::{Bytes, Grey};

/// The two images of a pair, the left one first.
pub(super) struct Pair {
    grey: [Grey; 2],
    /// Grey in 8 bits, on one scale.
    bytes: [Image<u8>; 2],
    scale: Bytes,
    /// The images that the cost compares, unless it is `bytes`.
    compared: Option<[Image<u8>; 2]>,
    masks: [Option<Image<u8>>; 2],
}

impl Pair {
    pub(super) fn new(pictures: &Pictures<'_>, cpu: &Cpu) -> Result<Self> {
        let _stage = cpu.stage("grey");
        let [left, right] = pictures.views;
        let grey = [Grey::new(left, cpu)?, Grey::new(right, cpu)?];
        let masks = pictures.validity()?;
        let scale = Bytes::of(grey.each_ref().into_iter().zip(masks.each_ref().map(Option::as_ref)));
        let bytes = [scale.image(&grey[0], cpu), scale.image(&grey[1], cpu)];
        Ok(Self { grey, bytes, scale, compared: None, masks })
    }

    /// A pair with the images that a cost compares.
    pub(super) fn for_cost(pictures: &Pictures<'_>, cost: &dyn CostDefinition, cpu: &Cpu) -> Result<Self> {
        let mut pair = Self::new(pictures, cpu)?;
        pair.compared = cost.compared(pictures, &pair, cpu)?;
        Ok(pair)
    }

    pub(super) fn size(&self) -> Size {
        self.bytes[0].size()
    }

    /// Grey in the type of the picture.
    pub(super) fn grey(&self, view: View) -> &AnyImage {
        &self.grey[view.index()].image
    }

    /// Differences of grey up to this may come from rounding alone.
    pub(super) fn rounding(&self, view: View) -> u8 {
        self.grey[view.index()].rounding()
    }

    /// Grey in 8 bits.
    pub(super) fn bytes(&self, view: View) -> &Image<u8> {
        &self.bytes[view.index()]
    }

    /// Grey in 8 bits, each image on its own scale. `None` if both scales equal that of the pair.
    pub(super) fn on_own_scales(&self, cpu: &Cpu) -> Option<[Image<u8>; 2]> {
        let own = [0, 1].map(|i| Bytes::of([(&self.grey[i], self.masks[i].as_ref())]));
        (own != [self.scale; 2]).then(|| [0, 1].map(|i| own[i].image(&self.grey[i], cpu)))
    }

    /// The image that the cost compares, in 8 bits.
    pub(super) fn compared(&self, view: View) -> &Image<u8> {
        &self.compared.as_ref().unwrap_or(&self.bytes)[view.index()]
    }

    /// The view's colours in 8 bits, if the cost compares colours; otherwise its grey.
    pub(super) fn colours(&self, view: View) -> &Image<u8> {
        Some(self.compared(view)).filter(|image| image.channels() == 3).unwrap_or(self.bytes(view))
    }

    /// Replaces the image that the cost compares in one view.
    pub(super) fn compare_in(&mut self, view: View, image: Image<u8>) {
        self.compared.get_or_insert_with(|| self.bytes.clone())[view.index()] = image;
    }

    /// Which pixels have data (not 0). `None`: all have.
    pub(super) fn mask(&self, view: View) -> Option<&Image<u8>> {
        self.masks[view.index()].as_ref()
    }

    /// Whether a view has pixels without data.
    pub(super) fn is_masked(&self) -> bool {
        self.masks.iter().any(Option::is_some)
    }

    pub(super) fn half(&self, cpu: &Cpu) -> Result<Self> {
        let half = |images: &[Image<u8>; 2]| -> Result<_> {
            let half = |image: &Image<u8>| resample(image.view(), Scaling::HalveMean, cpu);
            Ok([half(&images[0])?, half(&images[1])?])
        };
        let bytes = half(&self.bytes)?;
        let compared = self.compared.as_ref().map(half).transpose()?;
        let masks = self.masks.each_ref().map(|mask| mask.as_ref().map(half_mask));
        let grey = bytes.each_ref().map(|image| Grey::from_image(image.clone().into()));
        Ok(Self { grey, bytes, scale: self.scale, compared, masks })
    }

    /// The pair with its images exchanged, and mirrored so that disparities keep their sign.
    pub(super) fn exchanged(&self) -> Self {
        let mask = |i: usize| self.masks[i].as_ref().map(mirrored);
        let exchange = |[left, right]: &[Image<u8>; 2]| [mirrored(right), mirrored(left)];
        Self {
            grey: [self.grey[1].mirrored(), self.grey[0].mirrored()],
            bytes: exchange(&self.bytes),
            scale: self.scale,
            compared: self.compared.as_ref().map(exchange),
            masks: [mask(1), mask(0)],
        }
    }
}

/// The mask of a picture at half the size: a pixel has data only if all four pixels that it combines have data.
pub(super) fn half_mask(mask: &Image<u8>) -> Image<u8> {
    let Size { width, height } = mask.size();
    Image::from_fn(Size::new(width.div_ceil(2), height.div_ceil(2)), |x, y| {
        let rows = [2 * y, (2 * y + 1).min(height - 1)].map(|y| mask.row(y));
        let columns = [2 * x, (2 * x + 1).min(width - 1)];
        rows.iter().flat_map(|row| columns.map(|x| row[x])).min().unwrap_or(0)
    })
}

/// The image mirrored left to right, with any number of channels.
pub(super) fn mirrored<T: Copy + Default>(image: &Image<T>) -> Image<T> {
    let mut out = image.clone();
    let (row, channels) = (image.row_len(), image.channels());
    for row in out.data_mut().chunks_mut(row.max(1)) {
        row.reverse();
        if channels > 1 {
            row.chunks_mut(channels).for_each(<[T]>::reverse);
        }
    }
    out
}
