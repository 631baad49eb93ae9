//! The range of an image in a device's memory: the device counts values, the host chooses, and the device stretches.

use super::spread::{Counted, End, Upper, of_counted};
use super::{Range, ends};
use crate::device::gpu::{Buffer, Commands};
use crate::image::gpu::{AnyGpuImage, GpuImage, GpuPixel, Plane, groups_of_rows, optional};
use crate::image::grey_on_device;
use crate::{Error, Result};
use tiepoint_gpu::KernelSource;

/// Lanes of a work group.
const LANES: u32 = 256;
/// The number of values that half of a key's bits can have.
const BINS: usize = 1 << 16;

tiepoint_gpu::kernel! {
    /// Counts the upper halves of keys.
    unsafe kernel count_upper(groups) = CountUpper<T: GpuPixel> {
        write upper: u32 [BINS as i128],
        write holes: u32 [1],
        read pixels (plane: Plane): T [plane.reach()],
        /// Rows of length 0 mean that all pixels count.
        read mask (mask_plane: Plane): u8 [mask_plane.reach()],
    } {}

    /// Counts the lower halves of keys, for four upper halves.
    unsafe kernel count_lower(groups) = CountLower<T: GpuPixel> {
        write lower: u32 [4 * BINS as i128],
        read pixels (plane: Plane): T [plane.reach()],
        read mask (mask_plane: Plane): u8 [mask_plane.reach()],
    } {
        upper: [u32; 4],
    }

    /// Stretches values from black to white.
    unsafe kernel stretch(groups) = Stretch<T: GpuPixel, O: GpuPixel> {
        write to (to_plane: Plane): O [to_plane.numbers(1)],
        read pixels (plane: Plane): T [plane.reach()],
    } {
        low: f32,
        scale: f32,
    }
}

fn counts<T: GpuPixel>() -> KernelSource {
    KernelSource::new("range counts")
        .define("PIXEL", T::NAME)
        .define("LANES", LANES)
        .define("COUNTS", 1)
        .kernel::<CountUpper<'_, T>>([LANES, 1])
        .kernel::<CountLower<'_, T>>([LANES, 1])
        .text(concat!(include_str!("key.h"), include_str!("range.cl")))
}

fn stretch<T: GpuPixel, O: GpuPixel>() -> KernelSource {
    KernelSource::new("range stretch")
        .define("PIXEL", T::NAME)
        .define("LANES", LANES)
        .define("COUNTS", 0)
        .define("TO", O::NAME)
        .define("INTEGER", u8::from(O::WHITE > 1.0))
        .define_f32("WHITE", O::WHITE)
        .kernel::<Stretch<'_, T, O>>([LANES, 1])
        .text(include_str!("range.cl"))
}

/// [`prepare`](super::prepare) of an image in a device's memory: the same bits. `None` for an image with an alpha
/// channel or holes (NaN, infinities), which only the host can mask and fill; for all other images the mask that
/// counts is the given one.
///
/// # Errors
/// As [`prepare`](super::prepare), and [`Error::Device`] when the device fails.
pub fn prepare_on_device(
    image: &AnyGpuImage,
    mask: Option<&GpuImage<u8>>,
    range: Range,
) -> Result<Option<AnyGpuImage>> {
    range.check()?;
    if matches!(image.channels(), 2 | 4) {
        return Ok(None);
    }
    let image = &grey_on_device(image)?;
    if let Some(mask) = mask.filter(|mask| mask.size() != image.size() || mask.channels() != 1) {
        return Err(Error::Mismatch(format!("the mask is {} and the image {}", mask.size(), image.size())));
    }
    let floats = if let AnyGpuImage::F32(image) = image { Some(Counts::new(image, mask)?) } else { None };
    if floats.as_ref().is_some_and(|floats| floats.holes > 0) {
        return Ok(None);
    }
    let ends = ends(image.pixel(), range, || match (image, &floats) {
        (AnyGpuImage::U16(image), _) => of_counted(&Counts::new(image, mask)?),
        (_, Some(floats)) => of_counted(floats),
        (_, None) => Ok(None),
    })?;
    let Some(ends) = ends else { return Ok(Some(image.clone())) };
    Ok(Some(match image {
        AnyGpuImage::U8(image) => stretched::<u8, f32>(image, ends)?.into(),
        AnyGpuImage::U16(image) => stretched::<u16, u16>(image, ends)?.into(),
        AnyGpuImage::F32(image) => stretched::<f32, f32>(image, ends)?.into(),
    }))
}

/// (v − low) / (high − low), clamped to 0…1, on the scale of the type, as the CPU computes it.
fn stretched<T: GpuPixel, O: GpuPixel>(image: &GpuImage<T>, ends: [f32; 2]) -> Result<GpuImage<O>> {
    let (gpu, size) = (image.gpu(), image.size());
    let out = GpuImage::new(gpu, size)?;
    let kernel = gpu.program(&stretch::<T, O>())?.kernel::<Stretch<'_, T, O>>()?;
    let super::Stretch { low, scale } = super::Stretch::new(ends);
    let mut commands = Commands::new();
    commands.stage("range");
    let arguments = Stretch { to: out.laid(), pixels: image.laid(), low, scale };
    commands.launch(&kernel, groups_of_rows(gpu, size), arguments)?;
    gpu.run(&commands)?;
    Ok(out)
}

/// An image, and its values as a device has counted them.
struct Counts<'i, T: GpuPixel> {
    image: &'i GpuImage<T>,
    mask: (Buffer<u8>, Plane),
    of_bin: Vec<u32>,
    /// Pixels that are not finite.
    holes: u32,
}

impl<'i, T: GpuPixel> Counts<'i, T> {
    fn new(image: &'i GpuImage<T>, mask: Option<&'i GpuImage<u8>>) -> Result<Self> {
        let (gpu, size) = (image.gpu(), image.size());
        if u32::try_from(size.area()).is_err() {
            let feature = format!("the range of {size}: 2³² pixels or more; give a range");
            return Err(Error::Unsupported { device: "a GPU".into(), feature });
        }
        let mask = optional(gpu, mask)?;
        let (upper, holes) = (gpu.buffer::<u32>(BINS)?, gpu.buffer::<u32>(1)?);
        let kernel = gpu.program(&counts::<T>())?.kernel::<CountUpper<'_, T>>()?;
        let mut commands = Commands::new();
        commands.stage("range");
        commands.zero(&upper)?;
        commands.zero(&holes)?;
        let arguments =
            CountUpper { upper: &upper, holes: &holes, pixels: image.laid(), mask: (&mask).into() };
        commands.launch(&kernel, groups_of_rows(gpu, size), arguments)?;
        gpu.run(&commands)?;
        Ok(Self { image, mask, of_bin: upper.to_vec()?, holes: holes.to_vec()?[0] })
    }

    /// The least value, or the greatest if `last`, from the counts of the lower halves under its upper half.
    fn end(lower: &[u64], upper: usize, last: bool) -> End {
        let mut found = lower.iter().enumerate().filter(|(_, n)| **n > 0);
        let (low, count) = if last { found.next_back() } else { found.next() }.unwrap_or((0, &0));
        End { key: (upper << 16 | low) as u32, count: *count }
    }
}

impl<T: GpuPixel> Counted for Counts<'_, T> {
    fn upper(&self) -> Result<Upper> {
        let of_bin: Vec<u64> = self.of_bin.iter().map(|&n| n.into()).collect();
        let first = of_bin.iter().position(|&n| n > 0);
        let last = of_bin.iter().rposition(|&n| n > 0);
        let ends = match first.zip(last) {
            None => [u32::MAX, 0].map(|key| End { key, count: 0 }),
            Some((first, last)) => {
                let lower = self.lower([first, last, first, last])?;
                [Self::end(&lower[..BINS], first, false), Self::end(&lower[BINS..2 * BINS], last, true)]
            }
        };
        Ok(Upper { of_bin, ends })
    }

    fn lower(&self, upper: [usize; 4]) -> Result<Vec<u64>> {
        let gpu = self.image.gpu();
        let kernel = gpu.program(&counts::<T>())?.kernel::<CountLower<'_, T>>()?;
        let lower = gpu.buffer::<u32>(4 * BINS)?;
        let (pixels, mask) = (self.image.laid(), (&self.mask).into());
        let mut commands = Commands::new();
        commands.stage("range");
        commands.zero(&lower)?;
        let arguments = CountLower { lower: &lower, pixels, mask, upper: upper.map(|bin| bin as u32) };
        commands.launch(&kernel, groups_of_rows(gpu, self.image.size()), arguments)?;
        gpu.run(&commands)?;
        Ok(lower.to_vec()?.into_iter().map(u64::from).collect())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::device::gpu::all;
    use crate::image::testing::assert_same_any;
    use crate::image::{AnyImage, Image, Size, prepare};

    /// Images of many kinds of values.
    fn images(size: Size) -> Vec<AnyImage> {
        let noise = |x: usize, y: usize| (x * 7919 + y * 104_729 + x * y * 31) % 4001;
        let float =
            |value: &dyn Fn(usize) -> f32| AnyImage::from(Image::from_fn(size, |x, y| value(noise(x, y))));
        vec![
            Image::from_fn(size, |x, y| noise(x, y) as u8).into(),
            Image::from_fn(size, |x, y| (noise(x, y) * 16) as u16).into(),
            Image::from_fn(size, |x, y| 700 + (noise(x, y) % 9) as u16).into(),
            Image::from_fn(size, |_, _| 65535_u16).into(),
            float(&|n| n as f32 / 4000.0),
            float(&|n| n as f32 - 2000.0),
            float(&|n| if n < 400 { -32768.0 } else { (n as f32).sqrt() }),
            float(&|n| if n % 2 == 0 { -0.0 } else { 0.0 }),
            float(&|n| f32::from_bits(n as u32 * 1_000_003 % 0x7f00_0000)),
            float(&|n| if n == 7 { f32::NAN } else { n as f32 }),
        ]
    }

    #[test]
    fn the_range_is_that_of_the_cpu() {
        let cpu = Cpu::sequential();
        for gpu in all() {
            for size in [Size::new(1, 1), Size::new(67, 41), Size::new(300, 2)] {
                let mask = Image::from_fn(size, |x, y| if (x / 3 + y) % 4 == 0 { 0_u8 } else { 9 });
                for (i, image) in images(size).iter().enumerate() {
                    let there = AnyGpuImage::upload(gpu, image.view()).unwrap();
                    for range in [Range::Auto, Range::Between(0.0, 1.0), Range::Between(-3.0, 2500.0)] {
                        for mask in [None, Some(&mask)] {
                            let mask_there = mask.map(|mask| GpuImage::upload(gpu, mask.view()).unwrap());
                            let expected = prepare(image, mask.map(Image::view), range, &cpu).unwrap();
                            let found = prepare_on_device(&there, mask_there.as_ref(), range).unwrap();
                            let case =
                                format!("{gpu:?}: image {i}, {size}, {range:?}, mask {}", mask.is_some());
                            let holes = expected.mask.into_image().as_ref() != mask;
                            assert_eq!(found.is_none(), holes, "{case}");
                            if let Some(found) = found {
                                assert_same_any(
                                    &found.download().unwrap(),
                                    &expected.image.into_image(),
                                    &case,
                                );
                            }
                        }
                    }
                }
            }
            let there = AnyGpuImage::from(GpuImage::<u8>::new(gpu, Size::new(3, 2)).unwrap());
            let wrong = GpuImage::<u8>::new(gpu, Size::new(2, 3)).unwrap();
            assert!(prepare_on_device(&there, Some(&wrong), Range::Auto).is_err(), "a mask of another size");
            assert!(prepare_on_device(&there, None, Range::Between(1.0, 1.0)).is_err(), "no width");
            for (channels, found) in [(2, None), (3, Some(1)), (4, None)] {
                let image = GpuImage::<u8>::with_channels(gpu, Size::new(3, 2), channels).unwrap().into();
                let ready = prepare_on_device(&image, None, Range::Auto).unwrap();
                assert_eq!(ready.map(|ready| ready.channels()), found, "{channels} channels");
            }
        }
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        vec![
            counts::<u16>(),
            counts::<f32>(),
            stretch::<u8, f32>(),
            stretch::<u16, u16>(),
            stretch::<f32, f32>(),
        ]
    }
}
