//! Preparation of pairs on a device, several at a time; the same bits as in mod.rs.
//!
//! The values on which scales and the comparison of colours depend are measured on the device, too, and never copied to
//! the host. If one of two pictures with three channels is grey, grey is compared in every channel, which gives the
//! cost of comparing grey.

pub(crate) mod mirror;
mod views;

pub(in crate::stereo) use mirror::mirrored;
pub(in crate::stereo) use views::{ViewShape, ViewStacks, images_of};

use super::pictures::{Pictures, require_pair};
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::gpu::{self, AnyGpuImage, AnyGpuStack, GpuPixel, GpuStack, Plane};
use crate::image::{AnyView, PixelKind, Size, check_grey_channels, luma_for_kernels};
use crate::stereo::gpu::lanes::{GROUP, covering, launch, optional, pixel_a_lane};
use crate::{Result, by_pixel};
use tiepoint_gpu::KernelSource;

/// The number of additional bits of the grey of 8-bit colour.
const WIDENED: u32 = 8;

/// The type of one of the caller's pictures, which all pairs of a stack share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stereo) struct PictureShape {
    pub(in crate::stereo) pixel: PixelKind,
    pub(in crate::stereo) channels: usize,
    /// Whether the caller gave a mask.
    pub(in crate::stereo) masked: bool,
}

impl PictureShape {
    pub(in crate::stereo) fn of_pictures(pictures: &Pictures<'_>) -> Result<[Self; 2]> {
        let views = pictures.views.map(|view| (view.size(), view.channels(), view.pixel()));
        Self::of(views, pictures.masks.map(|mask| mask.map(|m| (m.size(), m.channels()))))
    }

    /// Fails for an empty picture, for more than four channels, and where the pictures and masks differ in size.
    pub(in crate::stereo) fn of(
        pictures: [(Size, usize, PixelKind); 2],
        masks: [Option<(Size, usize)>; 2],
    ) -> Result<[Self; 2]> {
        require_pair(pictures.map(|(size, ..)| size), masks)?;
        pictures.iter().try_for_each(|(_, channels, _)| check_grey_channels(*channels))?;
        Ok([0, 1].map(|i| {
            let (_, channels, pixel) = pictures[i];
            Self { pixel, channels, masked: masks[i].is_some() }
        }))
    }

    /// Whether there is nothing to prepare: the picture is 8-bit grey.
    fn is_ready(self) -> bool {
        (self.pixel, self.channels) == (PixelKind::U8, 1)
    }

    pub(in crate::stereo) fn may_be_colour(self) -> bool {
        self.channels > 2
    }

    pub(in crate::stereo) fn may_have_holes(self) -> bool {
        self.masked || self.pixel == PixelKind::F32
    }

    /// Whether its grey has more bits than its pixels.
    fn is_widened(self) -> bool {
        self.pixel == PixelKind::U8 && self.may_be_colour()
    }

    /// The type of the pixels of its grey.
    pub(in crate::stereo) fn grey(self) -> PixelKind {
        if self.is_widened() { PixelKind::U16 } else { self.pixel }
    }

    /// Bytes of a pixel, those of a mask included.
    pub(in crate::stereo) fn bytes(self) -> usize {
        by_pixel!(type self.pixel, T => size_of::<T>()) * self.channels + usize::from(self.masked)
    }
}

/// Records the copying of an image to index `i` of a stack of its shape.
pub(in crate::stereo) fn take(
    to: &AnyGpuStack,
    i: usize,
    image: &AnyGpuImage,
    commands: &mut Commands,
) -> Result<()> {
    by_pixel!((to, image), (to, image) => {
        image.copy_rows(commands, 0, (to.buffer(), i * to.step(), to.pitch()), to.size().height)
    })
}

/// The caller's pictures of one view, and masks if the caller gave any.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuPictures {
    shape: PictureShape,
    pixels: AnyGpuStack,
    given: Option<GpuStack<u8>>,
}

impl GpuPictures {
    pub(in crate::stereo) fn new(
        gpu: &Gpu,
        shape: PictureShape,
        (size, count): (Size, usize),
    ) -> Result<Self> {
        Ok(Self {
            shape,
            pixels: by_pixel!(make shape.pixel, GpuStack::new(gpu, size, shape.channels, count)?),
            given: shape.masked.then(|| GpuStack::new(gpu, size, 1, count)).transpose()?,
        })
    }

    /// The stacks that pictures and masks are copied to, in the order of [`pictures_of`].
    pub(in crate::stereo) fn stacks(&self) -> impl Iterator<Item = AnyGpuStack> {
        std::iter::once(self.pixels.clone()).chain(self.given.clone().map(AnyGpuStack::U8))
    }
}

/// The pictures of a pair with their masks, in the order in which their plan takes them.
pub(in crate::stereo) fn pictures_of<'a>(pictures: &Pictures<'a>) -> Vec<AnyView<'a>> {
    let view = |(view, mask): (AnyView<'a>, Option<_>)| [Some(view), mask.map(AnyView::U8)];
    pictures.views.into_iter().zip(pictures.masks).flat_map(view).flatten().collect()
}

/// The part of a picture that a cost compares, in 8 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::stereo) enum Compares {
    /// Its grey, on the scale of the pair.
    #[default]
    Grey,
    /// Its colours on the scale of the pair's colours, if both pictures have colour; otherwise their grey.
    Colour,
    /// Its grey on a scale of its own.
    OwnGrey,
    /// Its green on a scale of its own.
    OwnGreen,
    /// Its colours on a scale of their own.
    OwnColours,
    /// A grey that is learnt; preparation only reserves memory for it.
    LearntGrey,
}

impl Compares {
    /// The number of compared channels; `None` if the grey is compared that is prepared for every cost.
    fn channels(self, shape: PictureShape) -> Option<usize> {
        match self {
            Self::Grey => None,
            Self::Colour => Some(3),
            Self::OwnGrey | Self::OwnGreen | Self::OwnColours => {
                Some(self.own_channels(shape)).filter(|&n| n > 0)
            }
            Self::LearntGrey => Some(1),
        }
    }

    /// The channels that are prepared on the picture's own scale.
    fn own_channels(self, shape: PictureShape) -> usize {
        match self {
            Self::Grey | Self::Colour | Self::LearntGrey => 0,
            // 8-bit grey is not scaled.
            Self::OwnGrey => usize::from(shape.pixel != PixelKind::U8),
            Self::OwnGreen => 1,
            Self::OwnColours => 3,
        }
    }
}

/// The values measured for a pair: how many a scale depends on, the index of the first flag of colour, and all.
const ENDS: usize = 4;
const COLOURED: usize = 2 * ENDS;
const FACTS: usize = COLOURED + 2 + 2 * ENDS;

tiepoint_gpu::kernel! {
    /// Measures the values of a view on which scales and the comparison of colours depend.
    unsafe kernel measure(groups) = Measure<T: GpuPixel> {
        write found: u32 [FACTS as i128 * groups[2]],
        read pixels (plane: Plane): T [plane.numbers(groups[2])],
        /// Rows of length 0 mean that there is no mask.
        read given (given_plane: Plane): u8 [given_plane.numbers(groups[2])],
    } {
        /// 0 for the left view, 1 for the right one.
        view: i32,
    }

    unsafe kernel make_ready(groups) = MakeReady<T: GpuPixel, G: GpuPixel> {
        write bytes (bytes_plane: Plane): u8 [bytes_plane.numbers(groups[2])],
        /// Rows of length 0, here and below, mean that the image is not wanted or missing.
        write grey (grey_plane: Plane): G [grey_plane.numbers(groups[2])],
        write compared (compared_plane: Plane): u8 [compared_plane.numbers(groups[2])],
        write mask (mask_plane: Plane): u8 [mask_plane.numbers(groups[2])],
        read pixels (plane: Plane): T [plane.numbers(groups[2])],
        read given (given_plane: Plane): u8 [given_plane.numbers(groups[2])],
        read found: u32 [FACTS as i128 * groups[2]],
    } {
        view: i32,
        across: i32,
    }
}

/// Lanes of a group that measures.
const LANES: u32 = 256;

/// From pictures of pixels `T` to grey of pixels `G`.
fn source<T: GpuPixel, G: GpuPixel>(shape: PictureShape, compares: Compares) -> KernelSource {
    let source = gpu::for_kernels::<T>(KernelSource::new("pair"))
        .define("PIXEL_BYTES", size_of::<T>())
        .define("GREY", G::NAME)
        .define("CHANNELS", shape.channels)
        .define("WIDENED", if shape.is_widened() { WIDENED } else { 0 })
        .define("STORED", u8::from(shape.is_widened() || shape.pixel != PixelKind::U8))
        .define("MEASURED", u8::from(shape.pixel != PixelKind::U8))
        .define("COMPARES_COLOUR", u8::from(compares == Compares::Colour))
        .define("OWN_CHANNELS", compares.own_channels(shape))
        .define("OWN_IS_GREY", u8::from(compares == Compares::OwnGrey))
        .define("OWN_FIRST", u8::from(compares == Compares::OwnGreen))
        .define("MASKED", u8::from(shape.may_have_holes()))
        .define("FACTS", FACTS)
        .define("ENDS", ENDS)
        .define("COLOURED", COLOURED)
        .define("LANES", LANES)
        .structure::<Plane>();
    pixel_a_lane(luma_for_kernels(source))
        .kernel::<Measure<'_, T>>([LANES, 1])
        .kernel::<MakeReady<'_, T, G>>(GROUP)
        .text(concat!(include_str!("../../image/range/key.h"), include_str!("pair.cl")))
}

/// The program that prepares a picture of a shape, unless there is nothing to do.
pub(in crate::stereo) fn source_of(shape: PictureShape, compares: Compares) -> Option<KernelSource> {
    Some(match shape.pixel {
        PixelKind::U8 if shape.is_ready() => return None,
        PixelKind::U8 if shape.is_widened() => source::<u8, u16>(shape, compares),
        PixelKind::U8 => source::<u8, u8>(shape, compares),
        PixelKind::U16 => source::<u16, u16>(shape, compares),
        PixelKind::F32 => source::<f32, f32>(shape, compares),
    })
}

/// Records the preparation of both views of some pairs, for a cost that compares these parts of them.
pub(in crate::stereo) fn make_ready(
    commands: &mut Commands,
    gpu: &Gpu,
    pictures: &[GpuPictures; 2],
    compares: [Compares; 2],
) -> Result<[ViewStacks; 2]> {
    let all_may_be_colour = pictures.iter().all(|p| p.shape.may_be_colour());
    let compares = compares.map(|compares| match compares {
        Compares::Colour if !all_may_be_colour => Compares::Grey,
        compares => compares,
    });
    let count = by_pixel!(&pictures[0].pixels, stack => stack.count());
    let found = gpu.buffer::<u32>(FACTS * count)?;
    if !pictures.iter().all(|p| p.shape.is_ready()) {
        commands.stage("grey");
        commands.zero(&found)?;
    }
    let making = Making { gpu, found, compares };
    // Both views are measured first, because they share scales.
    for (i, view) in pictures.iter().enumerate() {
        making.measure(commands, view, i)?;
    }
    let [left, right] = pictures;
    Ok([making.make_any(commands, left, 0)?, making.make_any(commands, right, 1)?])
}

/// Which of two pictures on a device have colour; waits for the result.
pub(in crate::stereo) fn are_colour(gpu: &Gpu, images: [&AnyGpuImage; 2]) -> Result<[bool; 2]> {
    let making = Making { gpu, found: gpu.buffer::<u32>(FACTS)?, compares: [Compares::Colour; 2] };
    let mut commands = Commands::new();
    commands.zero(&making.found)?;
    for (i, image) in images.into_iter().enumerate() {
        let shape = PictureShape { pixel: image.pixel(), channels: image.channels(), masked: false };
        if shape.may_be_colour() {
            let pictures = GpuPictures::new(gpu, shape, (image.size(), 1))?;
            take(&pictures.pixels, 0, image, &mut commands)?;
            making.measure(&mut commands, &pictures, i)?;
        }
    }
    gpu.run(&commands)?;
    let found = making.found.to_vec()?;
    Ok([found[COLOURED] != 0, found[COLOURED + 1] != 0])
}

struct Making<'a> {
    gpu: &'a Gpu,
    found: Buffer<u32>,
    /// What is compared of the left and of the right picture.
    compares: [Compares; 2],
}

impl Making<'_> {
    fn measure(&self, commands: &mut Commands, view: &GpuPictures, i: usize) -> Result<()> {
        let compares = self.compares[i];
        // Only the presence of colour must be measured in pictures of 8 bits.
        let is_needed = view.shape.pixel != PixelKind::U8 || compares == Compares::Colour;
        let source = is_needed.then(|| source_of(view.shape, compares)).flatten();
        let Some(source) = source else { return Ok(()) };
        let program = self.gpu.program(&source)?;
        by_pixel!(&view.pixels, pixels => {
            let [groups, ..] = gpu::groups_of_rows(self.gpu, pixels.size());
            let given = &optional(self.gpu, view.given.as_ref())?;
            let arguments = Measure {
                found: &self.found,
                pixels: pixels.laid(),
                given: given.into(),
                view: i as i32,
            };
            launch(commands, &program, [groups, 1, pixels.count()], arguments)
        })
    }

    fn make_any(&self, commands: &mut Commands, view: &GpuPictures, i: usize) -> Result<ViewStacks> {
        match &view.pixels {
            AnyGpuStack::U8(pixels) if view.shape.is_ready() => {
                Ok(ViewStacks::of_bytes(pixels.clone(), None, view.given.clone()))
            }
            AnyGpuStack::U8(pixels) if view.shape.is_widened() => {
                self.make::<u8, u16>(commands, pixels, (view, i))
            }
            AnyGpuStack::U8(pixels) => self.make::<u8, u8>(commands, pixels, (view, i)),
            AnyGpuStack::U16(pixels) => self.make::<u16, u16>(commands, pixels, (view, i)),
            AnyGpuStack::F32(pixels) => self.make::<f32, f32>(commands, pixels, (view, i)),
        }
    }

    fn make<T: GpuPixel, G: GpuPixel>(
        &self,
        commands: &mut Commands,
        pixels: &GpuStack<T>,
        (view, i): (&GpuPictures, usize),
    ) -> Result<ViewStacks> {
        let (gpu, shape) = (self.gpu, view.shape);
        let program = gpu.program(&source::<T, G>(shape, self.compares[i]))?;
        let (size, count) = (pixels.size(), pixels.count());
        let stack = |channels| GpuStack::<u8>::new(gpu, size, channels, count);
        let bytes = stack(1)?;
        let compared = self.compares[i].channels(shape).map(stack).transpose()?;
        let mask = shape.may_have_holes().then(|| stack(1)).transpose()?;
        let fine = (shape.grey() != PixelKind::U8).then(|| GpuStack::<G>::new(gpu, size, 1, count));
        let fine = fine.transpose()?;
        let grey = &optional(gpu, fine.as_ref())?;
        let compared_to = &optional(gpu, compared.as_ref())?;
        let mask_to = &optional(gpu, mask.as_ref())?;
        let given = &optional(gpu, view.given.as_ref())?;
        let (across, groups) = covering(size, count);
        let arguments = MakeReady {
            bytes: bytes.laid(),
            grey: grey.into(),
            compared: compared_to.into(),
            mask: mask_to.into(),
            pixels: pixels.laid(),
            given: given.into(),
            found: &self.found,
            view: i as i32,
            across,
        };
        launch(commands, &program, groups, arguments)?;
        let rounding = if shape.is_widened() { 1 << (WIDENED - 1) } else { 0 };
        Ok(ViewStacks { bytes, grey: fine.map(AnyGpuStack::from), compared, mask, rounding })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::by_pixel;
    use crate::device::Cpu;
    use crate::device::gpu::all;
    use crate::image::{AnyImage, Image};
    use crate::numeric::Random;
    use crate::stereo::bisect::made_ready;
    use crate::stereo::pair::Pair;
    use crate::stereo::{Cost, Masks, View};

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let shape = |pixel, channels| PictureShape { pixel, channels, masked: channels % 2 == 0 };
        vec![
            source::<u8, u16>(shape(PixelKind::U8, 3), Compares::Colour),
            source::<u8, u16>(shape(PixelKind::U8, 3), Compares::OwnGreen),
            source::<u8, u16>(shape(PixelKind::U8, 4), Compares::Grey),
            source::<u8, u8>(shape(PixelKind::U8, 2), Compares::OwnGrey),
            source::<u16, u16>(shape(PixelKind::U16, 1), Compares::OwnGrey),
            source::<u16, u16>(shape(PixelKind::U16, 4), Compares::Colour),
            source::<f32, f32>(shape(PixelKind::F32, 2), Compares::Grey),
            source::<f32, f32>(shape(PixelKind::F32, 3), Compares::Colour),
            source::<f32, f32>(shape(PixelKind::F32, 3), Compares::OwnGreen),
            source::<f32, f32>(shape(PixelKind::F32, 3), Compares::OwnColours),
            source::<u8, u16>(shape(PixelKind::U8, 4), Compares::OwnColours),
            source::<u16, u16>(shape(PixelKind::U16, 3), Compares::LearntGrey),
        ]
    }

    /// Noise of any type, up to a random limit; sometimes with equal channels; some floats are not finite.
    fn picture(random: &mut Random, size: Size, pixel: PixelKind, channels: usize) -> AnyImage {
        let equal = random.bits().is_multiple_of(3);
        let most = [200, 900, 2000, 4095, 65535][(random.bits() % 5) as usize];
        let offset = [0.0, -3.0, 1e-3, 900.0][(random.bits() % 4) as usize];
        // Values in a narrow range, far from 0.
        let least = [0, 60_000][(random.bits() % 4 / 3) as usize];
        let scale = [1e-3, 1.0, 1e33][(random.bits() % 3) as usize];
        let mut numbers = Vec::new();
        for _ in 0..size.area() {
            let first = random.bits();
            let others = (1..channels).map(|_| if equal { first } else { random.bits() });
            numbers.extend(std::iter::once(first).chain(others));
        }
        let number = |&bits: &u64| (least + bits % (most + 1)).min(65535);
        match pixel {
            PixelKind::U8 => {
                let data = numbers.iter().map(|&bits| (bits % 256) as u8).collect();
                Image::from_vec(data, size, channels).unwrap().into()
            }
            PixelKind::U16 => {
                let data = numbers.iter().map(|bits| number(bits) as u16).collect();
                Image::from_vec(data, size, channels).unwrap().into()
            }
            PixelKind::F32 => {
                let float = |bits| match bits % 101 {
                    0 => [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][(bits / 101 % 3) as usize],
                    _ => number(&bits) as f32 * scale + offset,
                };
                Image::from_vec(numbers.into_iter().map(float).collect(), size, channels).unwrap().into()
            }
        }
    }

    /// Asserts that the device has prepared a view as the CPU has.
    fn assert_view(found: &ViewStacks, pair: &Pair, view: View, what: &str) {
        let all = Image::filled(pair.size(), 1, 255_u8);
        assert_eq!(&found.bytes.download(0).unwrap(), pair.bytes(view), "8 bits, {what}");
        match (&found.grey, pair.grey(view)) {
            (None, AnyImage::U8(_)) => {}
            (Some(found), expected) => {
                let found: AnyImage = by_pixel!(map found, found => found.download(0).unwrap());
                assert_eq!(&found, expected, "{what}");
            }
            (found, _) => panic!("grey {found:?}, {what}"),
        }
        assert_eq!(found.rounding, pair.rounding(view), "{what}");
        let holds = |mask: Image<u8>| mask.into_vec().into_iter().map(|m| m != 0).collect::<Vec<_>>();
        let mask = found.mask.as_ref().map_or_else(|| all.clone(), |mask| mask.download(0).unwrap());
        assert_eq!(holds(mask), holds(pair.mask(view).unwrap_or(&all).clone()), "mask, {what}");
        if let Some(compared) = &found.compared {
            let expected = pair.compared(view);
            let n = expected.channels();
            // Grey beside colour is compared as three equal channels.
            let times = if n == 1 { compared.channels() } else { 1 };
            let spread = |i: usize| expected.data()[i / times];
            let expected: Vec<u8> = (0..compared.channels() * pair.size().area()).map(spread).collect();
            assert_eq!(compared.download(0).unwrap().into_vec(), expected, "compared, {what}");
        } else {
            assert_eq!(pair.compared(view), pair.bytes(view), "no more than grey, {what}");
        }
    }

    #[test]
    fn pairs_are_those_of_the_host() {
        let (mut random, cpu) = (Random::new(31), Cpu::sequential());
        for round in 0..48 {
            let kinds = [PixelKind::U8, PixelKind::U16, PixelKind::F32];
            let size = [Size::new(1, 1), Size::new(67, 5), Size::new(3, 41)][round % 3];
            let mut image = |kind: usize, channels| picture(&mut random, size, kinds[kind % 3], channels);
            // Every type with every number of channels, beside the same and another type.
            let other = if round % 4 == 3 { round / 3 } else { round };
            let images = [image(round, 1 + round / 3 % 4), image(other, 1 + other / 3 % 4)];
            let mask = Image::from_fn(size, |x, y| ((x * 3 + y) % 4) as u8);
            let masks = Masks { left: Some(mask.view()).filter(|_| round % 2 == 0), right: None };
            let pictures = Pictures::new([(&images[0]).into(), (&images[1]).into()], masks).unwrap();
            let shapes = PictureShape::of_pictures(&pictures).unwrap();
            let are_colour_here = pictures.are_colour();
            let own = match are_colour_here {
                [true, true] => [Compares::OwnGreen; 2],
                some => some.map(|is| if is { Compares::OwnColours } else { Compares::OwnGrey }),
            };
            for ((cost, compares), gpu) in
                [(Cost::default(), [Compares::Colour; 2]), (Cost::MutualInformation, own)]
                    .into_iter()
                    .flat_map(|compared| all().iter().map(move |gpu| (compared, gpu)))
            {
                let mut pair = Pair::for_cost(&pictures, cost.definition(), &cpu).unwrap();
                for view in [View::Left, View::Right] {
                    if compares[view.index()] == Compares::OwnColours {
                        let [colours] = pictures.channels([view], &[0, 1, 2], &cpu).unwrap();
                        pair.compare_in(view, colours);
                    }
                }
                let what = format!("{gpu:?}, {shapes:?}, {compares:?}, round {round}");
                let there = images.each_ref().map(|image| AnyGpuImage::upload(gpu, image.view()).unwrap());
                let coloured = are_colour(gpu, there.each_ref()).unwrap();
                assert_eq!(coloured, are_colour_here, "colour, {what}");
                let views = made_ready(&pictures, compares, gpu);
                assert_view(&views[0], &pair, View::Left, &format!("left, {what}"));
                assert_view(&views[1], &pair, View::Right, &format!("right, {what}"));
            }
        }
    }
}
