//! Arguments of a kernel, declared once: [`kernel!`](crate::kernel) writes the Rust side and the C side.

use crate::buffer::Memory;
use crate::{Buffer, Element, Error, Result};
use std::sync::Arc;

/// Definitions that a parameter list needs before it: the name of a C type, and its `typedef`.
#[doc(hidden)]
pub type Definitions = Vec<(&'static str, String)>;

/// A value that a kernel gets by copy: `i32`, `u32`, `i64`, `u64`, `f32`, `f64`, an array of them, or a struct made by
/// [`kernel_struct!`](crate::kernel_struct).
///
/// # Safety
/// [`write`](Self::write) must lay the value out as the C type that [`declared`](Self::declared) names does, by the
/// natural alignment of its members.
#[expect(unsafe_code, reason = "kernels read what it writes")]
pub unsafe trait Value: Copy {
    /// The numbers that extents of buffers are computed with: integers as `i128`, so that no product of three 32-bit
    /// numbers overflows.
    type Extent;

    /// The value for extents.
    fn extent(self) -> Self::Extent;

    /// A variable or member of this name in C.
    fn declared(name: &str) -> String;

    /// Adds the C types that it needs.
    fn define(definitions: &mut Definitions);

    /// Writes the bytes of the value; padding between members stays 0.
    fn write(&self, bytes: &mut [u8]);
}

macro_rules! values {
    ($($t:ty: $extent:ty = $into:expr),* $(,)?) => { $(
        #[expect(unsafe_code, reason = "the kernel's type of the same name has the same bytes")]
        // SAFETY: a primitive number has one layout, which the dialect's type of this name shares.
        unsafe impl Value for $t {
            type Extent = $extent;

            fn extent(self) -> $extent {
                $into(self)
            }

            fn declared(name: &str) -> String {
                format!("{} {name}", stringify!($t))
            }

            fn define(_: &mut Definitions) {}

            fn write(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
        }
    )* };
}

values!(i32: i128 = i128::from, u32: i128 = i128::from, i64: i128 = i128::from, u64: i128 = i128::from);
values!(f32: f32 = std::convert::identity, f64: f64 = std::convert::identity);

#[expect(unsafe_code, reason = "an array has the layout of C's")]
// SAFETY: elements lie side by side in both languages.
unsafe impl<T: Value, const N: usize> Value for [T; N] {
    type Extent = Self;

    fn extent(self) -> Self {
        self
    }

    fn declared(name: &str) -> String {
        T::declared(&format!("{name}[{N}]"))
    }

    fn define(definitions: &mut Definitions) {
        T::define(definitions);
    }

    fn write(&self, bytes: &mut [u8]) {
        for (value, bytes) in self.iter().zip(bytes.chunks_exact_mut(size_of::<T>())) {
            value.write(bytes);
        }
    }
}

/// The arguments of one kernel. Implemented by [`kernel!`](crate::kernel).
///
/// # Safety
/// In every program that declares the kernel [`NAME`](Self::NAME) with these arguments, the kernel must access only
/// elements within the extents that the arguments declare. This must hold for the values and numbers of groups of every
/// launch, and for all indices that earlier kernels and uploads have written to buffers that it reads.
#[expect(unsafe_code, reason = "nothing but the promise keeps a kernel inside its buffers")]
pub unsafe trait KernelArguments {
    /// The same arguments with the lifetime `'static`: the type parameter of [`crate::Kernel`].
    type Static: 'static;

    /// The kernel's name.
    const NAME: &'static str;

    /// The parameter list in C, and the types that it needs.
    fn parameters(definitions: &mut Definitions) -> String;

    /// The arguments as a driver takes them.
    ///
    /// # Errors
    /// [`Error::Usage`] when a buffer is shorter than its extent.
    fn bind(&self, groups: [i128; 3]) -> Result<Bound>;
}

/// A buffer with a value that describes the layout of its elements: one argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Laid<'b, T, L> {
    /// The elements.
    pub buffer: &'b Buffer<T>,
    /// Their layout.
    pub layout: L,
}

/// How a buffer is given: as a [`Laid`] where a value is declared with it, otherwise alone.
#[doc(hidden)]
pub trait Layout {
    type Given<'b, T: 'b>;
}

impl Layout for () {
    type Given<'b, T: 'b> = &'b Buffer<T>;
}

impl<L: Value> Layout for L {
    type Given<'b, T: 'b> = Laid<'b, T, L>;
}

#[doc(hidden)]
pub type Given<'b, T, L = ()> = <L as Layout>::Given<'b, T>;

impl<'b, T, L: Copy> From<&'b (Buffer<T>, L)> for Laid<'b, T, L> {
    fn from((buffer, layout): &'b (Buffer<T>, L)) -> Self {
        Self { buffer, layout: *layout }
    }
}

/// How a kernel uses a buffer.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads numbers that no group of the launch writes.
    Read,
    /// It writes, and no other argument is the same memory.
    Write,
    /// It writes numbers that other groups of the launch read.
    Shared,
}

impl Access {
    /// A parameter in C.
    #[doc(hidden)]
    pub fn parameter(self, kind: &str, name: &str) -> String {
        match self {
            Self::Read => format!("const GLOBAL {kind} *RESTRICT {name}"),
            Self::Write => format!("GLOBAL {kind} *RESTRICT {name}"),
            Self::Shared => format!("volatile GLOBAL {kind} *{name}"),
        }
    }
}

/// Arguments as a driver takes them.
#[doc(hidden)]
#[derive(Debug)]
pub struct Bound {
    kernel: &'static str,
    pub(crate) buffers: Vec<(Arc<Memory>, Access)>,
    pub(crate) values: Block,
}

/// The values of a launch side by side.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// Words of 64 bits, for their alignment.
    words: Box<[u64]>,
    bytes: usize,
}

impl Block {
    pub(crate) fn of<V: Value>(value: &V) -> Self {
        let bytes = size_of::<V>();
        let mut words: Box<[u64]> = vec![0; bytes.div_ceil(8)].into();
        value.write(&mut crate::element::bytes_mut(&mut words)[..bytes]);
        Self { words, bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &crate::element::bytes(&self.words)[..self.bytes]
    }
}

impl Bound {
    #[doc(hidden)]
    pub fn new<V: Value>(kernel: &'static str, buffers: usize, values: &V) -> Self {
        Self { kernel, buffers: Vec::with_capacity(buffers), values: Block::of(values) }
    }

    #[doc(hidden)]
    pub fn buffer<T: Element>(
        &mut self,
        name: &str,
        access: Access,
        buffer: &Buffer<T>,
        extent: i128,
        alignment: usize,
    ) -> Result<()> {
        let kernel = self.kernel;
        let refused = |why: String| Err(Error::Usage(format!("kernel {kernel}: `{name}` {why}")));
        if !(0..=buffer.len() as i128).contains(&extent) {
            return refused(format!("holds {} numbers, {extent} are needed", buffer.len()));
        }
        let memory = &buffer.memory;
        if !memory.is_aligned_to(alignment) {
            return refused(format!(
                "is memory of another program that does not begin at a multiple of {alignment} bytes: expected a copy \
                 that does"
            ));
        }
        if access != Access::Read && memory.is_foreign() {
            return refused("is written, and is memory of other programs, which is only read".into());
        }
        let clashes = |other: Access| access != Access::Read || other != Access::Read;
        if self.buffers.iter().any(|(m, other)| Arc::ptr_eq(m, memory) && clashes(*other)) {
            return refused("is written and is another argument, too".into());
        }
        self.buffers.push((memory.clone(), access));
        Ok(())
    }
}

/// Declares a struct that kernels get by value, in Rust and in C. Members are in their order and naturally aligned.
///
/// ```
/// tiepoint_gpu::kernel_struct! {
///     /// Rows of numbers.
///     struct Rows {
///         /// Numbers of a row.
///         width: i32,
///         height: i32,
///         /// Numbers from the start of an image to the next.
///         step: u64,
///     }
/// }
/// ```
#[macro_export]
macro_rules! kernel_struct {
    (
        $(#[$attribute:meta])*
        $vis:vis struct $name:ident { $($(#[$member_attribute:meta])* $member:ident: $type:ty),* $(,)? }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[repr(C)]
        $vis struct $name { $($(#[$member_attribute])* $vis $member: $type),* }

        $crate::kernel_struct!(@value $name { $($member: $type),* } stringify!($name));
    };
    (@value $name:ident { $($member:ident: $type:ty),* $(,)? } $c_name:expr) => {
        // SAFETY: members are written at their offsets in a `repr(C)` struct whose numbers are naturally aligned.
        unsafe impl $crate::Value for $name {
            type Extent = Self;

            fn extent(self) -> Self {
                self
            }

            fn declared(name: &str) -> String {
                format!("{} {name}", $c_name)
            }

            fn define(definitions: &mut $crate::Definitions) {
                $(<$type as $crate::Value>::define(definitions);)*
                let members: &[$crate::Member] = &[$((
                    <$type as $crate::Value>::declared(stringify!($member)),
                    ::core::mem::offset_of!($name, $member),
                    size_of::<$type>(),
                )),*];
                if !definitions.iter().any(|(name, _)| *name == $c_name) {
                    definitions.push(($c_name, $crate::structure($c_name, members, size_of::<$name>())));
                }
            }

            fn write(&self, bytes: &mut [u8]) {
                const {
                    assert!(align_of::<u64>() == 8 && align_of::<f64>() == 8, "as kernels align them");
                }
                let _ = &bytes;
                $($crate::Value::write(
                    &self.$member,
                    &mut bytes[::core::mem::offset_of!($name, $member)..][..size_of::<$type>()],
                );)*
            }
        }
    };
}

/// Declares the arguments of one or more kernels: first a kernel's buffers, then the values that it gets as one struct
/// `args`.
///
/// ```no_run
/// # use tiepoint_gpu::{Api, Commands, Gpu, KernelSource};
/// tiepoint_gpu::kernel! {
///     /// Multiplies `n` numbers of every group in the second dimension.
///     unsafe kernel scale(groups) = Scale {
///         /// In place.
///         write data: f32 [n * groups[1]],
///     } {
///         n: i32,
///         factor: f32,
///     }
/// }
/// let source = KernelSource::new("scale").kernel::<Scale>([64, 1]).text(
///     "KERNEL(scale) {
///          i32 i = GROUP_X * 64 + LANE_X;
///          if (i < args.n) data[GROUP_Y * args.n + i] *= args.factor;
///      }",
/// );
/// # let gpu = Gpu::open(Api::OpenCl, 0)?;
/// let kernel = gpu.program(&source)?.kernel::<Scale>()?;
/// let data = gpu.upload(&[1.0_f32; 200])?;
/// let mut commands = Commands::new();
/// commands.launch(&kernel, [2, 2, 1], Scale { data: &data, n: 100, factor: 0.5 })?;
/// # gpu.run(&commands)?;
/// # Ok::<(), tiepoint_gpu::Error>(())
/// ```
///
/// A buffer is `read`, `write` (also for atomic operations), or `shared` (volatile: words that the groups of a launch
/// exchange). Its type is the element's; `read table: f32 as f32x4 [n]` is a `const f32x4 *` in C. The
/// brackets hold the number of elements that the kernel may access: an `i128` of the values, which are in scope as
/// such, and of the numbers of groups; a launch with a shorter buffer is refused. Buffers may have generic types:
/// `Scale<T: Element>`.
///
/// A kernel that accesses a buffer in wider pieces than its type in C declares that after the brackets: `read bytes:
/// u8 [n] aligned 16`. Memory of other programs that begins elsewhere is refused; see [`Buffer::aligned_to`].
///
/// A value that describes the layout of a buffer is declared with the buffer, and given with it as a [`Laid`]:
/// `read image (rows: Rows): f32 [rows.extent()]` is the member `image: Laid<f32, Rows>`, and `args.rows` in C.
///
/// `unsafe` is the promise of [`KernelArguments`]: the kernel keeps to these extents and alignments.
#[macro_export]
macro_rules! kernel {
    (@one
        $(#[$attribute:meta])*
        $vis:vis unsafe kernel $kernel:ident($groups:ident) = $name:ident
        $(<$($generic:ident: $bound:path),+>)? {
            $(
                $(#[$buffer_attribute:meta])*
                $access:ident $buffer:ident $(($layout:ident: $laid:ty))?: $element:ty $(as $kind:ident)?
                    [$extent:expr] $(aligned $bytes:expr)?
            ),* $(,)?
        } {
            $($(#[$value_attribute:meta])* $value:ident: $type:ty),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $name<'b $($(, $generic: $bound)+)?> {
            $($(#[$buffer_attribute])* $vis $buffer: $crate::Given<'b, $element $(, $laid)?>,)*
            $($(#[$value_attribute])* $vis $value: $type,)*
        }

        const _: () = {
            #[derive(Clone, Copy)]
            #[repr(C)]
            struct Values { $($($layout: $laid,)?)* $($value: $type),* }

            $crate::kernel_struct!(
                @value Values { $($($layout: $laid,)?)* $($value: $type),* } concat!(stringify!($name), "Values")
            );

            // SAFETY: promised where this macro is used.
            unsafe impl<'b $($(, $generic: $bound)+)?> $crate::KernelArguments for $name<'b $($(, $generic)+)?> {
                type Static = $name<'static $($(, $generic)+)?>;

                const NAME: &'static str = stringify!($kernel);

                fn parameters(definitions: &mut $crate::Definitions) -> String {
                    let list: Vec<String> = vec![
                        $($crate::kernel!(@access $access)
                            .parameter($crate::kernel!(@kind $element $(as $kind)?), stringify!($buffer)),)*
                    ];
                    $crate::parameter_list::<Values>(list, definitions)
                }

                fn bind(&self, $groups: [i128; 3]) -> $crate::Result<$crate::Bound> {
                    let values = Values { $($($layout: self.$buffer.layout,)?)* $($value: self.$value),* };
                    let buffers = [$(stringify!($buffer)),*].len();
                    let mut bound = $crate::Bound::new(Self::NAME, buffers, &values);
                    $($(let $layout = $crate::Value::extent(self.$buffer.layout);)?)*
                    $(let $value = $crate::Value::extent(self.$value);)*
                    let _ = ($($(&$layout,)?)* $(&$value,)* $groups);
                    $(bound.buffer(
                        stringify!($buffer),
                        $crate::kernel!(@access $access),
                        $crate::kernel!(@buffer self.$buffer, $($layout)?),
                        $extent,
                        $crate::alignment::<$element>($crate::kernel!(@kind $element $(as $kind)?), &[$($bytes)?]),
                    )?;)*
                    Ok(bound)
                }
            }
        };
    };
    ($(
        $(#[$attribute:meta])*
        $vis:vis unsafe kernel $kernel:ident($groups:ident) = $name:ident
        $(<$($generic:ident: $bound:path),+>)? { $($buffers:tt)* } { $($values:tt)* }
    )+) => {
        $($crate::kernel! {@one
            $(#[$attribute])*
            $vis unsafe kernel $kernel($groups) = $name $(<$($generic: $bound),+>)? { $($buffers)* } { $($values)* }
        })+
    };
    (@buffer $given:expr,) => { $given };
    (@buffer $given:expr, $layout:ident) => { $given.buffer };
    (@access read) => { $crate::Access::Read };
    (@access write) => { $crate::Access::Write };
    (@access shared) => { $crate::Access::Shared };
    (@kind $element:ty) => { <$element as $crate::Element>::NAME };
    (@kind $element:ty as $kind:ident) => { stringify!($kind) };
}

/// The alignment of a buffer in bytes: the larger of the declared one and that of its type in C.
#[doc(hidden)]
pub fn alignment<T: Element>(kind: &str, declared: &[usize]) -> usize {
    let numbers = kind.rsplit_once('x').and_then(|(_, n)| n.parse::<usize>().ok()).unwrap_or(1);
    declared.iter().copied().fold(size_of::<T>() * numbers.next_power_of_two(), usize::max)
}

/// A member of a struct: its declaration in C, its offset and its size.
#[doc(hidden)]
pub type Member = (String, usize, usize);

/// The `typedef` of a struct of `size` bytes. Padding between and after its members is declared, because rusticl (Mesa
/// 22.3) does not count it in the size of an argument.
#[doc(hidden)]
pub fn structure(name: &str, members: &[Member], size: usize) -> String {
    let mut text = String::from("typedef struct { ");
    let mut end = 0;
    for (declared, offset, size) in members.iter().cloned().chain([(String::new(), size, 0)]) {
        if offset > end {
            text += &format!("u8 padding_{end}[{}]; ", offset - end);
        }
        if size > 0 {
            text += &format!("{declared}; ");
        }
        end = offset + size;
    }
    text + &format!("}} {name};")
}

/// Buffers, then the values, where there are any.
#[doc(hidden)]
pub fn parameter_list<V: Value>(mut list: Vec<String>, definitions: &mut Definitions) -> String {
    if size_of::<V>() > 0 {
        V::define(definitions);
        list.push(format!("const {}", V::declared("args")));
    }
    list.join(", ")
}
