//! Values of any pixel type, and code that depends on the type.

use super::gpu::{AnyGpuImage, AnyGpuStack, GpuImage, GpuStack};
use super::{Image, ImageView, Pixel};

/// The type of a pixel as a run-time value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelKind {
    /// 8 bits a channel.
    U8,
    /// 16 bits a channel.
    U16,
    /// 32-bit float a channel.
    F32,
}

/// One of three values, told apart by the type of pixel; an [`AnyImage`], for example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ByPixel<A, B, C> {
    /// 8 bits a channel.
    U8(A),
    /// 16 bits a channel.
    U16(B),
    /// 32-bit float a channel.
    F32(C),
}

impl<A, B, C> ByPixel<A, B, C> {
    /// The type of pixel.
    pub fn pixel(&self) -> PixelKind {
        match self {
            Self::U8(_) => PixelKind::U8,
            Self::U16(_) => PixelKind::U16,
            Self::F32(_) => PixelKind::F32,
        }
    }
}

/// An image of any pixel type; made by `into()` from an [`Image`].
pub type AnyImage = ByPixel<Image<u8>, Image<u16>, Image<f32>>;

/// A borrowed image of any pixel type; made by `into()` from an [`AnyImage`], [`Image`] or [`ImageView`].
pub type AnyView<'a> = ByPixel<ImageView<'a, u8>, ImageView<'a, u16>, ImageView<'a, f32>>;

/// Evaluates an expression for a type of pixel that is known only at run time:
///
/// - `by_pixel!(view, v => v.size())`: for the value in a [`ByPixel`](crate::image::ByPixel);
/// - `by_pixel!(map view, v => v.to_image())`: the same, with the result wrapped in a `ByPixel`;
/// - `by_pixel!((to, from), (to, from) => to.copy(from))`: for the values in two `ByPixel`; the expression gives a
///   `Result`, which is an error if the types differ;
/// - `by_pixel!(type kind, T => T::WHITE)`: with `T` as the type that a [`PixelKind`](crate::image::PixelKind) names;
/// - `by_pixel!(make kind, GpuImage::new(gpu, size)?)`: a `ByPixel` of the type that a `PixelKind` names.
#[macro_export]
macro_rules! by_pixel {
    (type $kind:expr, $T:ident => $body:expr) => {
        match $kind {
            $crate::image::PixelKind::U8 => {
                type $T = u8;
                $body
            }
            $crate::image::PixelKind::U16 => {
                type $T = u16;
                $body
            }
            $crate::image::PixelKind::F32 => {
                type $T = f32;
                $body
            }
        }
    };
    (make $kind:expr, $made:expr) => {
        match $kind {
            $crate::image::PixelKind::U8 => $crate::image::ByPixel::U8($made),
            $crate::image::PixelKind::U16 => $crate::image::ByPixel::U16($made),
            $crate::image::PixelKind::F32 => $crate::image::ByPixel::F32($made),
        }
    };
    (map $value:expr, $v:ident => $body:expr) => {
        match $value {
            $crate::image::ByPixel::U8($v) => $crate::image::ByPixel::U8($body),
            $crate::image::ByPixel::U16($v) => $crate::image::ByPixel::U16($body),
            $crate::image::ByPixel::F32($v) => $crate::image::ByPixel::F32($body),
        }
    };
    (($a:expr, $b:expr), ($x:ident, $y:ident) => $body:expr) => {
        match ($a, $b) {
            ($crate::image::ByPixel::U8($x), $crate::image::ByPixel::U8($y)) => $body,
            ($crate::image::ByPixel::U16($x), $crate::image::ByPixel::U16($y)) => $body,
            ($crate::image::ByPixel::F32($x), $crate::image::ByPixel::F32($y)) => $body,
            (needed, found) => Err($crate::Error::Mismatch(format!(
                "an image of {:?} pixels: {:?} is needed",
                found.pixel(),
                needed.pixel()
            ))),
        }
    };
    ($value:expr, $v:ident => $body:expr) => {
        match $value {
            $crate::image::ByPixel::U8($v) => $body,
            $crate::image::ByPixel::U16($v) => $body,
            $crate::image::ByPixel::F32($v) => $body,
        }
    };
}

/// Wraps an image, view or stack of one pixel type in the enum for any type.
pub trait OfKind: Sized {
    /// The type.
    const KIND: PixelKind;
    fn image(image: Image<Self>) -> AnyImage;
    fn view(view: ImageView<'_, Self>) -> AnyView<'_>;
    fn on_device(image: GpuImage<Self>) -> AnyGpuImage;
    fn stack(stack: GpuStack<Self>) -> AnyGpuStack;
}

macro_rules! of_kind {
    ($($pixel:ty => $kind:ident),*) => {$(
        impl OfKind for $pixel {
            const KIND: PixelKind = PixelKind::$kind;
            fn image(image: Image<Self>) -> AnyImage {
                AnyImage::$kind(image)
            }
            fn view(view: ImageView<'_, Self>) -> AnyView<'_> {
                AnyView::$kind(view)
            }
            fn on_device(image: GpuImage<Self>) -> AnyGpuImage {
                AnyGpuImage::$kind(image)
            }
            fn stack(stack: GpuStack<Self>) -> AnyGpuStack {
                AnyGpuStack::$kind(stack)
            }
        }
    )*};
}
of_kind!(u8 => U8, u16 => U16, f32 => F32);

impl<T: Pixel> From<Image<T>> for AnyImage {
    fn from(image: Image<T>) -> Self {
        T::image(image)
    }
}

impl<'a, T: Pixel> From<ImageView<'a, T>> for AnyView<'a> {
    fn from(view: ImageView<'a, T>) -> Self {
        T::view(view)
    }
}

impl<'a, T: Pixel> From<&ImageView<'a, T>> for AnyView<'a> {
    fn from(view: &ImageView<'a, T>) -> Self {
        T::view(*view)
    }
}

impl<'a> From<&AnyView<'a>> for AnyView<'a> {
    fn from(view: &AnyView<'a>) -> Self {
        *view
    }
}

impl<'a, T: Pixel> From<&'a Image<T>> for AnyView<'a> {
    fn from(image: &'a Image<T>) -> Self {
        T::view(image.view())
    }
}

impl<'a> From<&'a AnyImage> for AnyView<'a> {
    fn from(image: &'a AnyImage) -> Self {
        by_pixel!(map image, image => image.view())
    }
}

impl<T: Pixel> From<GpuImage<T>> for AnyGpuImage {
    fn from(image: GpuImage<T>) -> Self {
        T::on_device(image)
    }
}

impl<T: Pixel> From<&GpuImage<T>> for AnyGpuImage {
    fn from(image: &GpuImage<T>) -> Self {
        T::on_device(image.clone())
    }
}

impl<T: Pixel> From<GpuStack<T>> for AnyGpuStack {
    fn from(stack: GpuStack<T>) -> Self {
        T::stack(stack)
    }
}
