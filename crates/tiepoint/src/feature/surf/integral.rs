//! The integral image, of which only the latest rows are kept.
//!
//! Entry (j, x) is the sum of all pixels in rows above j and columns left of x (Crow 1984), so the box of
//! rows a..b and columns c..d is (b,d) − (a,d) − (b,c) + (a,c). Sums wrap around; a difference is right
//! whenever its true value fits.

use super::stream::BAND;
use crate::device::Cpu;
use crate::filter::integral::{GpuIntegral, GpuSum, Sum};
use crate::image::{ImageView, Pixel, Size};
use tiepoint_gpu::KernelSource;

/// The unsigned integer of an integral image, read as two's complement where a difference may be negative.
pub(super) trait Total: Sum {
    /// Three times the value, wrapping.
    fn thrice(self) -> Self;
    /// The value read as two's complement.
    fn signed(self) -> i64;
    /// The value read as two's complement and rounded to the nearest f32, ties to even.
    fn signed_f32(self) -> f32;
}

macro_rules! total {
    ($unsigned:ty, $signed:ty) => {
        impl Total for $unsigned {
            #[inline(always)]
            fn thrice(self) -> Self {
                self.wrapping_mul(3)
            }
            #[inline(always)]
            fn signed(self) -> i64 {
                i64::from(self as $signed)
            }
            #[inline(always)]
            fn signed_f32(self) -> f32 {
                self as $signed as f32
            }
        }
    };
}

total!(u32, i32);
total!(u64, i64);

/// A ring of the latest rows of an integral image.
#[derive(Debug, Default)]
pub(super) struct Integral<A> {
    data: Vec<A>,
    /// Entries from row to row.
    stride: usize,
    /// Slots − 1; the number of slots is a power of two.
    mask: usize,
    size: Size,
    rows: usize,
    /// The last row, for the next band to build on.
    last: Vec<A>,
}

impl<A: Total> Integral<A> {
    /// Starts an image and keeps its latest `height` rows.
    pub(super) fn start(&mut self, size: Size, height: usize) {
        let slots = height.min(size.height + 1 + BAND).next_power_of_two().max(2 * BAND);
        // With an odd number of cache lines, rows one above the other do not compete for the same cache set.
        let stride = ((size.width + 1).div_ceil(16) | 1) * 16;
        if (self.stride, self.mask + 1, self.size) != (stride, slots, size) {
            *self = Self {
                data: vec![A::default(); stride * slots],
                stride,
                mask: slots - 1,
                size,
                ..Self::default()
            };
        }
        self.rows = 0;
        self.last.clear();
        self.last.resize(stride, A::default());
        let first = self.slot(0) * stride;
        self.data[first..first + stride].fill(A::default());
    }

    /// The slot of a row. A band's rows, which begin at a multiple of its height plus 1, are neighbours in the ring.
    #[inline(always)]
    fn slot(&self, row: usize) -> usize {
        (row + BAND - 1) & self.mask
    }

    /// Image rows summed so far; rows 0 to this one exist.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// Entries of row `row`; at least one more than the image has columns.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &[A] {
        &self.data[self.slot(row) * self.stride..][..self.stride]
    }

    /// Sums the next band of the image: along rows in parallel, then from row to row.
    pub(super) fn advance<T: Pixel>(&mut self, view: ImageView<'_, T>, cpu: &Cpu) {
        let (first, stride) = (self.rows, self.stride);
        let count = BAND.min(self.size.height - first);
        let start = self.slot(first + 1) * stride;
        let band = &mut self.data[start..start + count * stride];
        cpu.for_chunks(band, 8 * stride, |chunk, rows| {
            for (i, row) in rows.chunks_mut(stride).enumerate() {
                let mut sum = A::default();
                for (entry, pixel) in row[1..].iter_mut().zip(view.row(first + chunk * 8 + i)) {
                    sum = sum.plus(A::new(pixel.level()));
                    *entry = sum;
                }
            }
        });
        let mut above: &[A] = &self.last;
        for row in band.chunks_exact_mut(stride) {
            for (entry, above) in row.iter_mut().zip(above) {
                *entry = entry.plus(*above);
            }
            above = row;
        }
        self.last = above.to_vec();
        self.rows = first + count;
    }

    /// The Haar wavelets of half side `half` about corners of four pixels: right minus left half, lower minus
    /// upper half. Zero when they leave the image.
    #[inline(always)]
    pub(super) fn haar(&self, x: &[i32], y: &[i32], half: i32, dx: &mut [A], dy: &mut [A]) {
        let last = |n: usize| n as i32 - half;
        let (right, bottom) = (last(self.size.width), last(self.size.height));
        let outside = |x: i32, y: i32| (x < half) | (x > right) | (y < half) | (y > bottom);
        let corners = x.iter().zip(y);
        let any_outside = corners.clone().fold(false, |any, (x, y)| any | outside(*x, *y));
        for ((x, y), (dx, dy)) in corners.zip(dx.iter_mut().zip(dy)) {
            (*dx, *dy) = match any_outside && outside(*x, *y) {
                true => (A::default(), A::default()),
                false => self.haar_inside(*x as usize, *y as usize, half as usize),
            };
        }
    }

    #[inline(always)]
    fn haar_inside(&self, x: usize, y: usize, half: usize) -> (A, A) {
        // Three rows from the left to the right side; the slices make one bounds check of each row.
        let row = |y: usize| &self.data[self.slot(y) * self.stride + x - half..][..2 * half + 1];
        let (top, middle, bottom) = (row(y - half), row(y), row(y + half));
        let twice = |v: A| v.plus(v);
        let height = |x: usize| bottom[x].minus(top[x]);
        let width = |row: &[A]| row[2 * half].minus(row[0]);
        (
            height(2 * half).plus(height(0)).minus(twice(height(half))),
            width(bottom).plus(width(top)).minus(twice(width(middle))),
        )
    }
}

tiepoint_gpu::kernel_struct! {
    /// Where the sums of some images lie, for kernels.
    pub(super) struct SumsPlane {
        /// I(0, 0) of the first image.
        origin: u64,
        /// Sums from an image to the next.
        step: u64,
        /// Sums from a row to the next.
        pitch: i32,
        /// The size of an image in pixels; the sums have one row and one column more.
        width: i32,
        height: i32,
    }
}

impl SumsPlane {
    pub(super) fn of<A: GpuSum>(sums: &GpuIntegral<A>) -> Self {
        let (pitch, Size { width, height }) = (sums.pitch(), sums.size());
        Self {
            origin: sums.origin() as u64,
            step: ((height + 1) * pitch) as u64,
            pitch: pitch as i32,
            width: width as i32,
            height: height as i32,
        }
    }

    /// Sums of this many images, up to the last column of the last row.
    pub(super) fn numbers(self, images: i128) -> i128 {
        let [pitch, width, height] = [self.pitch, self.width, self.height].map(i128::from);
        i128::from(self.origin) + (images - 1) * i128::from(self.step) + height * pitch + width + 1
    }
}

/// For kernels: the type of sums, and the wavelets.
pub(super) fn for_kernels<A: GpuSum>(source: KernelSource) -> KernelSource {
    source
        .define("SUM", A::NAME)
        .define("SIGNED", if size_of::<A>() == 8 { "i64" } else { "i32" })
        .structure::<SumsPlane>()
        .text(include_str!("integral.h"))
}
