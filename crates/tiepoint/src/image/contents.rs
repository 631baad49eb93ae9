//! What an image file says beside its pixels: colour and alpha channels, pixels without data, and the way it is turned.

use super::{
    AnyCow, AnyImage, AnyView, Image, ImageView, Known, Mask, Pixel, Prepared, Range, Size,
    alpha::spread_values, check_mask, no_data, orientation, range::prepare_shown, with_alpha,
};
use crate::{Result, by_pixel, device::Cpu};

/// The meaning of an image's channels. Those that are neither colour nor alpha (near infrared, say) are kept, but
/// detectors do not see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of channels.
    pub channels: usize,
    /// The index of the first colour channel.
    pub first: usize,
    /// The number of colour channels: 1 is grey, 3 are red, green and blue.
    pub colours: usize,
    /// The index of the alpha channel.
    pub alpha: Option<usize>,
}

impl Layout {
    /// The layout of an image of which only the number of channels is known. One to four are grey, grey and alpha,
    /// colour, colour and alpha; of more, the first is grey.
    pub const fn usual(channels: usize) -> Self {
        let colours = if matches!(channels, 3 | 4) { 3 } else { 1 };
        let alpha = if matches!(channels, 2 | 4) { Some(channels - 1) } else { None };
        Self { channels, first: 0, colours, alpha }
    }

    /// The same with channel `band`, counted from 1, as grey.
    #[must_use]
    pub(super) fn with_band(self, band: Option<usize>) -> Self {
        band.map_or(self, |band| Self { first: band - 1, colours: 1, ..self })
    }

    /// Whether this is the [usual](Self::usual) layout of at most four channels, which all code that works on pixels
    /// expects.
    pub fn is_usual(self) -> bool {
        self == Self::usual(self.channels) && self.channels <= 4
    }

    /// Fails where a colour channel does not exist.
    pub(super) fn check(self) -> std::result::Result<(), String> {
        if self.first + self.colours <= self.channels {
            return Ok(());
        }
        Err(format!("band {} was asked for, and the image has {}", self.first + 1, self.channels))
    }

    /// The index of the last colour or alpha channel.
    pub(super) fn last(self) -> usize {
        self.first.saturating_add(self.colours).saturating_sub(1).max(self.alpha.unwrap_or(0))
    }

    /// The number of colour and alpha channels.
    pub(super) fn seen(self) -> usize {
        self.colours + usize::from(self.alpha.is_some())
    }

    /// Appends the colour channels of a row to `out`, with alpha last.
    pub(super) fn extract<T: Pixel>(self, row: &[T], out: &mut Vec<T>) {
        for pixel in row.chunks_exact(self.channels) {
            out.extend_from_slice(&pixel[self.first..self.first + self.colours]);
            out.extend(self.alpha.map(|alpha| pixel[alpha]));
        }
    }

    /// Whether the colours of a pixel have this value, which marks no data; NaN equals nothing.
    pub(super) fn marked<T: Pixel>(self, pixel: &[T], value: f64) -> bool {
        self.lacks(pixel, |v| no_data::is(v, value as f32))
    }

    /// Whether a pixel lacks data where such values are none: one of its colours in floats, as their grey needs all three, or
    /// all of 8 and 16 bits, where the value may be a colour like others, as 0 is that of red in pure green.
    pub(super) fn lacks<T: Pixel>(self, pixel: &[T], is_none: impl Fn(f32) -> bool) -> bool {
        let mut colours = pixel[self.first..self.first + self.colours].iter().map(|v| is_none(v.to_f32()));
        if T::WHITE == 1.0 { colours.any(|none| none) } else { colours.all(|none| none) }
    }
}

/// An image as its file holds it, turned upright if that was asked for, with what the file says of it.
#[derive(Clone, Debug)]
pub struct FileImage {
    /// The pixels.
    pub image: AnyImage,
    /// The meaning of the channels.
    pub layout: Layout,
    /// 0 where the file's mask or its no-data value hides a pixel; `None` where no pixel is hidden. Alpha plays no
    /// part.
    pub shown: Option<Image<u8>>,
    /// The value of pixels that hold no data.
    pub no_data: Option<f64>,
    /// What a TIFF says of its bands: scale, offset, unit and name of each, as GDAL's tag `GDAL_METADATA` holds them.
    pub bands: Option<String>,
    /// The EXIF orientation of the picture in its file, 1 to 8; 1 is upright.
    pub orientation: u8,
    /// Whether `image` was turned upright.
    pub turned: bool,
    /// The file's value of white (PNM's maximum), if `image` has another: its integers are the file's, stretched.
    pub white: Option<u16>,
}

impl From<AnyImage> for FileImage {
    /// An image about which nothing else is known.
    fn from(image: AnyImage) -> Self {
        let layout = Layout::usual(image.channels());
        Self {
            image,
            layout,
            shown: None,
            no_data: None,
            bands: None,
            orientation: 1,
            turned: false,
            white: None,
        }
    }
}

impl FileImage {
    /// The size of the image as stored in the file.
    pub(super) fn stored_size(&self) -> Size {
        let Size { width, height } = self.image.size();
        if self.turned && matches!(self.orientation, 5..=8) {
            Size::new(height, width)
        } else {
            Size::new(width, height)
        }
    }

    /// Hides the pixels where `mask` is 0. The mask is oriented like the image in the file.
    pub(super) fn hide_by(&mut self, mask: Option<Image<u8>>) -> Result<()> {
        let Some(mask) = mask else { return Ok(()) };
        let mask = if self.turned { orientation::turned(mask.view(), self.orientation)? } else { mask };
        self.shown = Mask::from(self.shown.take()).and(mask)?.into_image();
        Ok(())
    }

    /// The image as it is detected on and shown: grey or colour, with alpha if it has alpha. Pixels without data are
    /// NaN in floats and transparent in integers.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) when there is not enough memory.
    pub fn seen(&self) -> Result<AnyCow<'_>> {
        let seen = self.channels();
        let Some(shown) = &self.shown else { return Ok(seen) };
        match seen.view() {
            AnyView::F32(_) => {
                let mut image = seen.into_image();
                no_data::to_nan(&mut image, shown.view());
                Ok(AnyCow::Owned(image))
            }
            view => Ok(AnyCow::Owned(with_alpha(view, shown)?)),
        }
    }

    /// The colour and alpha channels.
    fn channels(&self) -> AnyCow<'_> {
        match self.layout.is_usual() {
            true => AnyCow::Borrowed(self.image.view()),
            false => AnyCow::Owned(by_pixel!(self.image.view(), view => extracted(view, self.layout).into())),
        }
    }

    /// 0 where a pixel is hidden, transparent or not finite; `None` where none is.
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) where `shown` has another size.
    pub fn valid(&self) -> Result<Option<Image<u8>>> {
        self.valid_of(self.shown.clone())
    }

    /// A value of the first colour channel that seems to mark pixels without data although the file names none, and how
    /// many hold it: a thousandth or more. It is farther from all others than twice their range. `None` for 8 bits.
    pub fn unnamed_no_data(&self) -> Option<(f32, usize)> {
        if self.no_data.is_some() || matches!(self.image, AnyImage::U8(_)) {
            return None;
        }
        let Layout { channels, first, .. } = self.layout;
        by_pixel!(self.image.view(), view => {
            let rows = (0..view.size().height).flat_map(|y| view.row(y).chunks_exact(channels));
            no_data::unnamed(rows.map(|pixel| pixel[first].to_f32()))
        })
    }

    /// As [`valid`](Self::valid), with this mask in place of the image's own `shown`.
    fn valid_of(&self, shown: Option<Image<u8>>) -> Result<Option<Image<u8>>> {
        let seen = self.channels();
        let valid = Mask::of_data(seen.view(), None).and(Mask::of_finite(seen.view()))?;
        Ok(valid.and(shown)?.into_image())
    }

    /// The colour and alpha channels, in which no-data values stay as they are, and a mask that is 0 where a pixel
    /// holds no data. The mask is `None` where the file hides no pixel other than by alpha.
    pub fn into_seen(self) -> (AnyImage, Option<Image<u8>>) {
        let Self { image, layout, shown, .. } = self;
        match layout.is_usual() {
            true => (image, shown),
            false => (by_pixel!(image.view(), view => extracted(view, layout).into()), shown),
        }
    }

    /// The image [made ready](super::prepare()) for a detector. Pixels where `mask` is 0, or without data, do not count.
    ///
    /// # Errors
    /// As [`prepare()`](super::prepare()).
    pub fn prepared<'a>(self, mask: impl Into<Mask<'a>>, range: Range, cpu: &Cpu) -> Result<Prepared<'a>> {
        let (image, shown) = self.into_seen();
        let shown = Mask::of_data(&image, None).and(shown)?;
        prepare_shown(AnyCow::Owned(image), &shown, mask.into(), range, cpu)
    }

    /// [`prepared`](Self::prepared) of an image that is kept. One that is ready already is not copied.
    ///
    /// # Errors
    /// As [`prepare()`](super::prepare()).
    pub fn prepare<'a>(&'a self, mask: impl Into<Mask<'a>>, range: Range, cpu: &Cpu) -> Result<Prepared<'a>> {
        let image = self.channels();
        let shown = Mask::of_data(image.view(), None).and(self.shown.as_ref().map(Image::view))?;
        prepare_shown(image, &shown, mask.into(), range, cpu)
    }

    /// The result `made` of a filter, with what is known of this image: its alpha channel, which no filter changes, and
    /// its pixels without data. A result with another number of channels gets the usual layout of that number.
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) for a result of another size.
    pub fn filtered(&self, mut made: AnyImage) -> Result<Self> {
        let shown = self.shown.clone().unwrap_or_else(|| Image::filled(self.image.size(), 1, 255));
        check_mask(Some(shown.view()), made.size())?;
        let layout = match made.channels() == self.layout.channels {
            true => self.layout,
            false => Layout::usual(made.channels()),
        };
        if let Some(alpha) = layout.alpha.filter(|_| self.layout.alpha == layout.alpha) {
            by_pixel!(&mut made, made => by_pixel!(self.image.view(), from => copy_alpha(made, from, alpha)));
        }
        // Values of another kind, such as derivatives, may equal the no-data value.
        let no_data = self.no_data.filter(|_| made.pixel() == self.image.pixel());
        let about = Self { bands: None, layout, no_data, ..self.about() };
        let found = Self { image: made, shown: self.shown.clone(), ..about };
        Ok(if self.shown.is_some() || no_data.is_some() { found.marked(&shown) } else { found })
    }

    /// [`no_data::marked`] by what is known of this image.
    fn marked(self, valid: &Image<u8>) -> Self {
        let channels = (self.layout, self.has_bands_apart());
        Self { image: no_data::marked(self.image, valid, self.no_data, channels), ..self }
    }

    /// The image with only the channels that detectors see: the colours or the chosen band, and alpha.
    pub fn seen_alone(self) -> Self {
        let (no_data, orientation, turned) = (self.no_data, self.orientation, self.turned);
        let (image, shown) = self.into_seen();
        Self { no_data, orientation, turned, shown, ..Self::from(image) }
    }

    /// The image resampled to `size` by `place`, which gets an image and the value of pixels without input, and also
    /// returns a mask that is 0 where the result has no input. The result's `shown` is its [`valid`](Self::valid) mask.
    ///
    /// A pixel without data never contributes to another: if there is one, `place` gets each channel by itself, as
    /// an image of floats in which it is NaN. Transparent pixels near valid ones first take on the values of these ([`spread_colours`](super::spread_colours)).
    ///
    /// # Errors
    /// As `place`.
    pub fn resampled(
        &self,
        size: Size,
        place: impl Fn(&AnyImage, f32) -> Result<(AnyImage, Image<u8>)>,
    ) -> Result<Self> {
        let mut found = self.placed(size, &place)?;
        let shown = found.shown.take();
        Ok(Self { shown: found.valid_of(shown)?, ..found })
    }

    /// As [`resampled`](Self::resampled), but pixels that are not finite still count as shown.
    fn placed(
        &self,
        size: Size,
        place: &impl Fn(&AnyImage, f32) -> Result<(AnyImage, Image<u8>)>,
    ) -> Result<Self> {
        let alpha = self.layout.alpha;
        if let Some(no_data) = self.no_data.filter(|_| self.has_bands_apart())
            && let Some(image) =
                by_pixel!(self.image.view(), view => no_data::with_holes(view, no_data, alpha))
        {
            // A channel may lack data where another has some.
            let shown = self.shown.as_ref().and_then(|shown| self.by_mask(shown, no_data));
            let holes = Self { image: image.into(), no_data: None, shown, ..self.about() };
            let found = holes.placed(size, place)?;
            let AnyImage::F32(floats) = &found.image else { unreachable!("floats stay floats") };
            let image = by_pixel!(type self.image.view().pixel(), T => {
                no_data::without_holes::<T>(floats, no_data, alpha).into()
            });
            let found = Self { image, no_data: self.no_data, ..found };
            return Ok(Self { shown: found.unmarked(no_data)?, ..found });
        }
        let mut spread = None;
        if let Some(alpha) = self.layout.alpha
            && let Some(valid) = self.valid()?
        {
            let mut image = self.image.clone();
            by_pixel!(&mut image, image => spread_values(image, alpha, valid));
            spread = Some(image);
        }
        let image = spread.as_ref().unwrap_or(&self.image);
        let resampled = |mut image: AnyImage, valid: Image<u8>| {
            if let (AnyImage::F32(to), AnyImage::F32(from), Some(alpha)) = (&mut image, &self.image, alpha) {
                limit_alpha(to, from, alpha);
            }
            let found = Self { image, ..self.about() }.marked(&valid);
            Self { shown: valid.data().contains(&0).then_some(valid), ..found }
        };
        let Some(shown) = &self.shown else {
            let outside = if matches!(image, AnyImage::F32(_)) { f32::NAN } else { 0.0 };
            let (image, covered) = place(image, outside)?;
            return Ok(resampled(image, covered));
        };
        let mut valid = Image::try_filled(size, 1, 0)?;
        let mut placed = |band: Image<f32>| -> Result<Image<f32>> {
            let (AnyImage::F32(image), covered) = place(&band.into(), f32::NAN)? else {
                unreachable!("floats stay floats")
            };
            let pixels = valid.data_mut().iter_mut().zip(image.data()).zip(covered.data());
            pixels.filter(|((_, v), c)| !v.is_nan() && **c != 0).for_each(|((valid, _), _)| *valid = 255);
            Ok(image)
        };
        let image = by_pixel!(image.view(), view => by_channel(view, shown, size, &mut placed)?.into());
        Ok(resampled(image, valid))
    }

    /// `shown`, but also 255 where the searched bands have the no-data value, because other bands may hold data there;
    /// `None` if no pixel is hidden then. What it hides, a mask of the file hides in all bands.
    fn by_mask(&self, shown: &Image<u8>, no_data: f64) -> Option<Image<u8>> {
        let Layout { channels, .. } = self.layout;
        let shown = by_pixel!(self.image.view(), view => Image::from_fn(view.size(), |x, y| {
            let pixel = &view.row(y)[x * channels..][..channels];
            let is_nan = no_data.is_nan() && self.layout.lacks(pixel, f32::is_nan);
            if is_nan || self.layout.marked(pixel, no_data) { 255 } else { shown.row(y)[x] }
        }));
        shown.data().contains(&0).then_some(shown)
    }

    /// Whether a mask hides pixels that the no-data value does not.
    pub(crate) fn has_mask(&self) -> bool {
        self.shown
            .as_ref()
            .is_some_and(|shown| self.no_data.is_none_or(|no_data| self.by_mask(shown, no_data).is_some()))
    }

    /// `shown`, but also 0 where the searched bands have the no-data value.
    fn unmarked(&self, no_data: f64) -> Result<Option<Image<u8>>> {
        let marks = by_pixel!(self.image.view(), view => {
            let marked = |x: usize, y: usize| {
                self.layout.marked(&view.row(y)[x * view.channels()..][..view.channels()], no_data)
            };
            Image::from_fn(view.size(), |x, y| 255 * u8::from(!marked(x, y)))
        });
        let hidden = Mask::from(self.shown.as_ref().map(Image::view)).and(marks)?.into_image();
        Ok(hidden.filter(|hidden| hidden.data().contains(&0)))
    }

    /// Whether a channel may hold data where another has the no-data value: for floats, and for bands that are not
    /// colours. In integer colours it is a value like any other, such as the red of pure green.
    fn has_bands_apart(&self) -> bool {
        let Layout { channels, colours, alpha, .. } = self.layout;
        let is_float = matches!(self.image, AnyImage::F32(_));
        channels - usize::from(alpha.is_some()) > 1 && (is_float || colours == 1)
    }

    /// What is known about the image, without its pixels, mask and orientation.
    fn about(&self) -> Self {
        let Self { layout, no_data, bands, .. } = self;
        Self {
            layout: *layout,
            no_data: *no_data,
            bands: bands.clone(),
            ..Self::from(AnyImage::from(Image::<u8>::default()))
        }
    }

    /// What is to be written beside the pixels.
    pub fn known(&self) -> Known<'_> {
        let (layout, valid) = (Some(self.layout), self.shown.as_ref());
        Known { layout, no_data: self.no_data, bands: self.bands.as_deref(), valid, ..Known::default() }
    }
}

/// Copies channel `alpha` of `from`, scaled so that opaque stays opaque.
fn copy_alpha<T: Pixel, F: Pixel>(to: &mut Image<T>, from: ImageView<'_, F>, alpha: usize) {
    let n = to.channels();
    for y in 0..from.size().height {
        let values = from.row(y).iter().skip(alpha).step_by(n);
        let pixels = to.row_mut(y).iter_mut().skip(alpha).step_by(n);
        pixels.zip(values).for_each(|(to, v)| *to = T::from_f32(v.to_f32() * (T::WHITE / F::WHITE)));
    }
}

/// Takes alpha that interpolation has made less than 0 or more than all of `from` back to these limits.
fn limit_alpha(to: &mut Image<f32>, from: &Image<f32>, alpha: usize) {
    let n = to.channels();
    let most = from.data().iter().skip(alpha).step_by(n).fold(0.0, |most: f32, v| most.max(*v));
    to.data_mut().iter_mut().skip(alpha).step_by(n).for_each(|v| *v = v.clamp(0.0, most));
}

/// Applies `place` to every channel of an image, as floats that are NaN where `shown` is 0.
fn by_channel<T: Pixel>(
    view: ImageView<'_, T>,
    shown: &Image<u8>,
    size: Size,
    place: &mut impl FnMut(Image<f32>) -> Result<Image<f32>>,
) -> Result<Image<T>> {
    let n = view.channels();
    let mut out = Image::try_filled(size, n, T::default())?;
    for channel in 0..n {
        let value = |x: usize, y: usize| match shown.row(y)[x] {
            0 => f32::NAN,
            _ => view.row(y)[n * x + channel].to_f32(),
        };
        let placed = place(Image::from_fn(view.size(), value))?;
        let to = out.data_mut().iter_mut().skip(channel).step_by(n);
        to.zip(placed.data()).for_each(|(to, v)| *to = T::from_f32(*v));
    }
    Ok(out)
}

/// The colour and alpha channels.
fn extracted<T: Pixel>(view: ImageView<'_, T>, layout: Layout) -> Image<T> {
    let mut data = Vec::with_capacity(view.size().area() * layout.seen());
    (0..view.size().height).for_each(|y| layout.extract(view.row(y), &mut data));
    Image { data, size: view.size(), channels: layout.seen() }
}
