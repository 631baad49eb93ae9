//! A pair made ready: grey, grey in 8 bits, what mutual information compares, and where either image holds nothing.

mod grey;

use super::{
    Cost, Masks, MatchingCost, StereoOptions,
    aggregation::AggregationInput,
    cost::{CostSource, Costs, Table, mutual_information::is_colour},
    winner_takes_all::Choice,
};
pub(super) use grey::Grey;

use crate::{
    Error, Result,
    device::Cpu,
    filter::resample::halve_mean,
    image::{AnyImage, Image, Size},
};
use grey::{Bytes, holes};

/// The two images of a pair, the left one first.
pub(super) struct Pair {
    grey: [Grey; 2],
    bytes: [Image<u8>; 2],
    /// What mutual information compares, where it is not `bytes`.
    values: Option<[Image<u8>; 2]>,
    masks: [Option<Image<u8>>; 2],
}

impl Pair {
    pub(super) fn new(
        left: &AnyImage,
        right: &AnyImage,
        masks: Masks<'_>,
        cost: Cost,
        cpu: &Cpu,
    ) -> Result<Self> {
        let _stage = cpu.stage("grey");
        let size = left.size();
        if size.width == 0 || size.height == 0 {
            return Err(Error::Image(format!("the left image is empty ({size})")));
        }
        for (what, found) in [
            ("right image", Some(right.size())),
            ("left mask", masks.left.map(Image::size)),
            ("right mask", masks.right.map(Image::size)),
        ] {
            if found.is_some_and(|s| s != size) {
                let found = found.unwrap_or_default();
                return Err(Error::Mismatch(format!(
                    "the {what} is {found} and the left image {size}: expected one size, as rectification gives it"
                )));
            }
        }
        let grey = [Grey::new(left, cpu)?, Grey::new(right, cpu)?];
        let scale = Bytes::of([&grey[0], &grey[1]]);
        let bytes = [scale.image(&grey[0], cpu), scale.image(&grey[1], cpu)];
        let values = match cost {
            // Of a colour image and a grey one the grey of both, until it is known which grey (`projection`).
            Cost::MutualInformation if is_colour(left) && is_colour(right) => {
                Some([green(left, cpu)?, green(right, cpu)?])
            }
            Cost::MutualInformation => {
                let own = grey.each_ref().map(|grey| Bytes::of([grey, grey]));
                // Both on one scale are on that of the pair.
                (own != [scale; 2]).then(|| [0, 1].map(|i| own[i].image(&grey[i], cpu)))
            }
            _ => None,
        };
        let masks = [holes(left, masks.left), holes(right, masks.right)];
        Ok(Self { grey, bytes, values, masks })
    }

    pub(super) fn size(&self) -> Size {
        self.bytes[0].size()
    }

    /// What mutual information compares.
    pub(super) fn values(&self) -> [&Image<u8>; 2] {
        self.values.as_ref().unwrap_or(&self.bytes).each_ref()
    }

    /// Puts other values for those of one image in what mutual information compares.
    pub(super) fn set_values(&mut self, side: usize, values: Image<u8>) {
        self.values.get_or_insert_with(|| self.bytes.clone())[side] = values;
    }

    /// Which right pixels hold something.
    pub(super) fn right_mask(&self) -> Option<&Image<u8>> {
        self.masks[1].as_ref()
    }

    /// The pair at half the size.
    pub(super) fn half(&self, cpu: &Cpu) -> Result<Self> {
        let half = |images: &[Image<u8>; 2]| -> Result<_> {
            Ok([halve_mean(images[0].view(), cpu)?, halve_mean(images[1].view(), cpu)?])
        };
        let bytes = half(&self.bytes)?;
        let values = self.values.as_ref().map(half).transpose()?;
        let size = bytes[0].size();
        // A pixel holds something only if all four that it was made of do.
        let mask = |i: usize| {
            self.masks[i].as_ref().map(|m| {
                let all = |x: usize, y: usize| {
                    let rows = [2 * y, (2 * y + 1).min(m.size().height - 1)].map(|y| m.row(y));
                    let columns = [2 * x, (2 * x + 1).min(m.size().width - 1)];
                    rows.iter().flat_map(|r| columns.map(|x| r[x])).min().unwrap_or(0)
                };
                Image::from_fn(size, all)
            })
        };
        let masks = [mask(0), mask(1)];
        let grey = [Grey::of_bytes(&bytes[0]), Grey::of_bytes(&bytes[1])];
        Ok(Self { grey, bytes, values, masks })
    }

    /// The pair with the roles exchanged: mirrored, so that disparities keep their sign.
    pub(super) fn exchanged(&self) -> Self {
        let mask = |i: usize| self.masks[i].as_ref().map(mirrored);
        Self {
            grey: [self.grey[1].mirrored(), self.grey[0].mirrored()],
            bytes: [mirrored(&self.bytes[1]), mirrored(&self.bytes[0])],
            values: self.values.as_ref().map(|[left, right]| [mirrored(right), mirrored(left)]),
            masks: [mask(1), mask(0)],
        }
    }

    /// What is to be aggregated.
    pub(super) fn input<'a>(
        &'a self,
        options: &StereoOptions,
        own: Option<&'a dyn MatchingCost>,
        table: Option<&'a Table>,
    ) -> AggregationInput<'a> {
        let [left, right] = &self.bytes;
        let source = match (own, options.cost, table) {
            (Some(own), ..) => CostSource::Custom(own),
            (None, Cost::Census(window), _) => {
                CostSource::Census { window, left: &self.grey[0], right: &self.grey[1] }
            }
            (None, _, Some(table)) => {
                let [left, right] = self.values();
                CostSource::Information { left, right, table }
            }
            (None, _, None) => CostSource::Absolute { left, right },
        };
        let cost = Costs {
            source,
            size: self.size(),
            min_disparity: options.min_disparity,
            disparities: options.disparities,
            greatest: own.map_or(options.cost.greatest(), MatchingCost::greatest),
            left_mask: self.masks[0].as_ref(),
            right_mask: self.masks[1].as_ref(),
        };
        AggregationInput {
            size: self.size(),
            cost,
            grey: left,
            penalties: options.penalties(),
            paths: options.paths,
            choice: Choice { subpixel: options.subpixel, uniqueness: options.uniqueness },
            memory: options.memory,
        }
    }
}

/// The green channel in 8 bits, from the least to the greatest value of this image alone: what mutual information
/// compares of colour. Were it grey, another gamma of the colours would not be a function of the values, and could not
/// be learnt.
fn green(image: &AnyImage, cpu: &Cpu) -> Result<Image<u8>> {
    let green = match image {
        AnyImage::U8(i) => AnyImage::U8(second(i)),
        AnyImage::U16(i) => AnyImage::U16(second(i)),
        AnyImage::F32(i) => AnyImage::F32(second(i)),
    };
    own_bytes(&green, cpu)
}

/// Grey in 8 bits, on the scale of this image alone.
pub(super) fn own_bytes(image: &AnyImage, cpu: &Cpu) -> Result<Image<u8>> {
    let grey = Grey::new(image, cpu)?;
    Ok(Bytes::of([&grey, &grey]).image(&grey, cpu))
}

/// The second channel.
fn second<T: Copy + Default>(image: &Image<T>) -> Image<T> {
    let n = image.channels();
    Image::from_fn(image.size(), |x, y| image.row(y)[x * n + 1])
}

/// Left and right exchanged.
pub(super) fn mirrored<T: Copy + Default>(image: &Image<T>) -> Image<T> {
    let mut out = image.clone();
    let width = image.row_len();
    out.data_mut().chunks_mut(width.max(1)).for_each(<[T]>::reverse);
    out
}
