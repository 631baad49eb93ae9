//! The types of numbers that a buffer can hold.

/// A number that has the same bytes in a buffer as in memory, and the kernel's type of the same name.
pub trait Element: Copy + Default + Send + Sync + 'static + sealed::Sealed {
    /// The kernel's type.
    const NAME: &'static str;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ty),*) => { $(impl sealed::Sealed for $t {} impl Element for $t {
        const NAME: &'static str = stringify!($t);
    })* };
}

elements!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

#[expect(unsafe_code, reason = "numbers without padding are bytes")]
pub(crate) fn bytes<T: Element>(data: &[T]) -> &[u8] {
    // SAFETY: every `Element` is a primitive number: no padding, no invalid byte, alignment 1 suffices for u8.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

#[expect(unsafe_code, reason = "bytes are numbers of any kind")]
pub(crate) fn bytes_mut<T: Element>(data: &mut [T]) -> &mut [u8] {
    // SAFETY: as `bytes`, and every pattern of bytes is a valid number.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), size_of_val(data)) }
}
