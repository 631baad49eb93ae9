"""Images, masks, points and matrices of many libraries, converted to the form that the compiled half takes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ._core import DeviceArray
from ._warn import warn
from .errors import ImageError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt


@runtime_checkable
class SupportsDlpack(Protocol):
    """An object that lends its memory by DLPack: tensors of PyTorch, CuPy, JAX."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


@runtime_checkable
class SupportsCuda(Protocol):
    """An object with the CUDA array interface."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


@runtime_checkable
class SupportsInterface(Protocol):
    """An object with NumPy's array interface, as Pillow's images have it."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


@runtime_checkable
class SupportsArray(Protocol):
    """An object that NumPy makes an array of: a column of xarray, a task of dask."""

    def __array__(self) -> Any: ...


if TYPE_CHECKING:
    from typing_extensions import Buffer

    #: What is taken as an image: an array of any library, a buffer, an image of Pillow, rows of numbers.
    _Image = (
        npt.NDArray[Any]
        | SupportsDlpack
        | SupportsCuda
        | SupportsInterface
        | SupportsArray
        | Buffer
        | Sequence[Sequence[float]]
        | Sequence[Sequence[Sequence[float]]]
    )

#: All whole numbers up to this one are numbers of `float32`.
_WHOLE = 1 << 24

#: Modes of Pillow that are converted to others before they become arrays: indices, inks, and premultiplied colours.
_MODES = {
    "1": "L",
    "PA": "RGBA",
    "La": "LA",
    "RGBa": "RGBA",
    "RGBX": "RGB",
    "CMYK": "RGB",
    "YCbCr": "RGB",
    "LAB": "RGB",
    "HSV": "RGB",
}


def array(given: Any, what: str) -> npt.NDArray[Any]:
    """An object as an array of numbers, without a copy where NumPy can; `what` names it in errors."""
    import numpy as np

    if given is None:
        raise ImageError(f"{what} is None: expected an array")
    if isinstance(given, (str, os.PathLike)):
        raise ImageError(f"{what} is a path, {os.fspath(given)!r}: expected an array; tiepoint.read reads the file")
    if isinstance(given, bytes):
        raise ImageError(f"{what} is bytes: expected an array; tiepoint.io.decode reads the bytes of a file")
    if (holed := masked(given)) is not None:
        if np.ma.getmaskarray(holed).any():
            raise ImageError(
                f"{what} is a masked array with masked values, which this function does not take: replace them with "
                ".filled(value)"
            )
        given = holed.data
    if hasattr(given, "data_vars"):
        names = ", ".join(map(repr, given.data_vars))
        raise ImageError(f"{what} is a Dataset of xarray: expected one of its arrays, which are {names or 'none'}")
    if hasattr(type(given), "_features"):
        # Matches, whose pairs numpy.asarray would give.
        raise ImageError(f"{what} is {type(given).__name__}: expected one of its arrays, such as pairs")
    if hasattr(given, "GetNumberOfComponentsPerPixel"):
        raise ImageError(f"{what} is an image of SimpleITK: expected an array; SimpleITK.GetArrayViewFromImage(image) gives it")
    lent = hasattr(given, "__dlpack_device__") and not isinstance(given, np.ndarray)
    try:
        if hasattr(given, "getbands") and hasattr(given, "convert"):
            mode = _MODES.get(given.mode)
            if given.mode == "P":
                mode = "RGBA" if "transparency" in given.info else "RGB"
            given = given if mode is None else given.convert(mode)
        found: npt.NDArray[Any] = np.from_dlpack(given) if lent else np.asarray(given)
    except (ValueError, BufferError, RuntimeError) as error:
        if isinstance(given, (list, tuple)):
            raise ImageError(f"{what} is a {type(given).__name__} of unlike parts: expected one array") from error
        # A tensor may require a gradient, lie on a card, or have a type that NumPy lacks.
        told, advice = f"of the type {type(given).__name__}", ""
        if hasattr(given, "requires_grad"):
            told, advice = f"of {given.dtype}", "; .detach().float() of a tensor can"
        raise ImageError(f"{what}, {told}, cannot be read: {error}{advice}") from error
    if found.dtype.kind not in "buif":
        raise ImageError(f"{what} holds {found.dtype}: expected numbers")
    return found


def image(given: Any, what: str) -> npt.NDArray[Any]:
    """An image of `uint8`, `uint16` or `float32`: truth values become 0 and 255, other numbers floats."""
    import numpy as np

    if given is None:
        raise ImageError(f"{what} is None: expected an array; cv2.imread gives None for a file that it cannot read")
    found = array(given, what)
    native = found.dtype.newbyteorder("=")
    if native in (np.uint8, np.uint16, np.float32):
        return found.astype(native, copy=False)
    if native == np.bool_:
        return np.where(found, np.uint8(255), np.uint8(0))
    made = floats(found, what)
    if found.dtype.kind in "iu" and found.dtype.itemsize >= 4 and found.size:
        greatest = max(int(found.max()), -int(found.min()))
        if greatest > _WHOLE and (made != found).any():
            warn(
                f"{what} of {found.dtype} is taken as float32, which rounds some of its numbers: they go to {greatest}, and all "
                'up to 16777216 (2²⁴) are kept; .astype("float32") rounds them without this warning',
            )
    return made


def floats(found: npt.NDArray[Any], what: str) -> npt.NDArray[np.float32]:
    """Numbers as `float32`. If only one value is beyond the range of `float32`, it is taken for the no-data value and
    becomes infinite. Fails if several different values are, or if all are so small that they vanish or lose digits."""
    import numpy as np

    try:
        with np.errstate(over="raise", under="raise"):
            return found.astype(np.float32, copy=False)
    except FloatingPointError:
        with np.errstate(over="ignore", under="ignore"):
            made = found.astype(np.float32)
    limits, held = np.finfo(np.float32), np.isfinite(made)
    lost, rest = found[~held & np.isfinite(found)], np.abs(found[held])
    if lost.size and lost.min() != lost.max():
        greatest, told = np.abs(lost).max(), f"the greatest magnitude of float32, as which it is taken, is {limits.max:.2g}"
    elif 0 < (greatest := rest.max(initial=0)) < limits.tiny:
        told = f"float32, as which it is taken, keeps the digits of magnitudes from {limits.tiny:.2g} on"
    else:
        return made
    raise ImageError(
        f"{what} holds values up to a magnitude of {greatest:.3g}, and {told}: scale it, such as by dividing it by "
        f"1e{int(np.floor(np.log10(greatest)))}"
    )


def like(found: Any, given: Any) -> Any:
    """An image with an axis for its one channel, if the given one has it; on a card without it."""
    shape: Any = getattr(given, "shape", ())
    return found[..., None] if len(shape) == 3 and shape[2] == 1 and not isinstance(found, DeviceArray) else found


def mask(given: Any, what: str) -> npt.NDArray[np.uint8]:
    """A mask of `uint8`: 255 where the given one is neither 0 nor NaN."""
    import numpy as np

    found = array(given, what)
    return np.where((found != 0) & (found == found), np.uint8(255), np.uint8(0))


def masked(given: Any) -> Any:
    """The image as a masked array of NumPy, if it is one, or has a boolean ``mask`` of its shape, True where there is
    no data, as astropy's arrays have. None for other images."""
    import sys

    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    # Not imported here: before it is, there are no masked arrays.
    if isinstance(given, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())):
        return given
    holes = getattr(given, "mask", None)
    if not isinstance(holes, numpy.ndarray) or holes.dtype != bool or holes.shape != getattr(given, "shape", None):
        return None
    values = (getattr(given, name, None) for name in ("unmasked", "data"))
    found = next((each for each in values if isinstance(each, numpy.ndarray)), None)
    return None if found is None else numpy.ma.MaskedArray(numpy.asarray(found), holes)


def unmasked(given: Any, counting: Any) -> tuple[Any, Any]:
    """An image and its mask. The mask of a masked array, which is True where there is no data, is taken into account."""
    holed = masked(given)
    if holed is None:
        return given, counting
    import numpy

    holes: Any = numpy.ma.getmaskarray(holed)
    if holes.ndim == 3:
        holes = holes.any(axis=-1)
    if counting is None:
        return holed.data, ~holes
    counts = mask(counting, "the mask")
    # The compiled half refuses a mask of another size.
    if counts.shape[:2] == holes.shape:
        counts[holes] = 0
    return holed.data, counts


def without_data(given: Any, what: str) -> tuple[Any, Any]:
    """A masked array as an image that features are searched in: its masked pixels are NaN in floats and transparent in
    integers. Also where it is masked, (H, W), or None. Other images are returned as they are."""
    holed = masked(given)
    if holed is None:
        return given, None
    import numpy

    holes: Any = numpy.ma.getmaskarray(holed)
    if holes.ndim == 3:
        holes = holes.any(axis=-1)
    if not holes.any():
        return image(holed.data, what), None
    given = holed.data
    if given.dtype.kind == "f":
        # Before the conversion, which may refuse what is masked.
        given = given.copy()
        given[holes] = numpy.nan
        return image(given, what), holes
    found = image(given, what)
    if found.dtype.kind == "f":
        found[holes] = numpy.nan
        return found, holes
    pixels = found if found.ndim == 3 else found[..., None]
    alpha = numpy.where(holes, 0, numpy.iinfo(found.dtype).max).astype(found.dtype)[..., None]
    if pixels.shape[-1] in (2, 4):
        return numpy.concatenate([pixels[..., :-1], numpy.minimum(pixels[..., -1:], alpha)], -1), holes
    return numpy.concatenate([pixels, alpha], -1), holes


def lies_on_host(given: Any) -> bool:
    """Whether NumPy can read an object's memory, according to the device that the object names."""
    if isinstance(given, DeviceArray):
        return False
    device = getattr(given, "__dlpack_device__", None)
    if device is None:
        return not hasattr(given, "__cuda_array_interface__")
    # DLPack's numbers of the host's memory, of pinned memory and of managed memory.
    return device()[0] in (1, 3, 13)


def whole_costs(given: Any, what: str) -> Any:
    """A cost volume whose integers stay integers: as `uint16`, less the least one where that is negative. Floats, and a
    volume on a card, are returned as they are."""
    import numpy as np

    if not lies_on_host(given):
        return given
    found = array(given, what)
    if found.dtype.kind not in "iu" or found.size == 0 or np.can_cast(found.dtype, np.uint16):
        return found
    least, most = min(int(found.min()), 0), int(found.max())
    if most - least > 65535:
        raise OptionError(
            f"{what} holds {least} to {most}: expected costs that differ by at most 4000; give a scale of at most 4000 / {most - least}"
        )
    costs = found.astype(np.uint16)
    # Both steps are modulo 65536, and the differences are less.
    costs -= np.uint16(least % 65536)
    return costs


def disparities(given: Any, what: str) -> Any:
    """A map of disparities; fails for integers of 8 and 16 bits, which may be multiples of disparities. A map on a card is
    returned as it is."""
    if not lies_on_host(given):
        return given
    found = array(given, what)
    if found.dtype.kind in "biu" and found.dtype.itemsize < 4:
        raise ImageError(
            f"{what} holds {found.dtype}, whose values may be multiples of disparities: expected pixels as float32; "
            "tiepoint.io.read_disparity(path) divides by the scale of a file, .astype(\"float32\") takes the values as they are"
        )
    return found


def homogeneous(given: Any, what: str) -> npt.NDArray[np.float64]:
    """Places as (N, 3), (x, y, w): from (N, 2), where w is 1, from OpenCV's (N, 1, 2), (1, N, 2) and (N, 2, 1), and
    from homogeneous (N, 3)."""
    import numpy as np

    found = array(given, what)
    shape = found.shape
    if found.ndim == 3 and 1 in shape[:2]:
        found = found.reshape(-1, shape[2])
    if found.ndim == 3 and shape[2] == 1:
        found = found[:, :, 0]
    if shape == (0,):
        found = found.reshape(0, 2)
    if found.ndim != 2 or found.shape[1] not in (2, 3):
        raise ImageError(
            f"{what} has the shape {shape}: expected (N, 2), (N, 1, 2) or (1, N, 2), or homogeneous coordinates (N, 3)"
        )
    found = found.astype(np.float64)
    return found if found.shape[1] == 3 else np.insert(found, 2, 1.0, axis=1)


def points(given: Any, what: str, *, at_infinity: float = 1.0) -> npt.NDArray[np.float64]:
    """Places as (N, 2), from what `homogeneous` takes. Those at infinity are divided by `at_infinity`: as in OpenCV by
    1, because points of a plane in space have a last coordinate of 0; by NaN they are none."""
    import numpy as np

    found = homogeneous(given, what)
    last = found[:, 2:]
    places: npt.NDArray[np.float64] = found[:, :2] / np.where(last == 0, at_infinity, last)
    return places


def matrix(given: Any, what: str, *, affine: bool = True) -> npt.NDArray[np.float64]:
    """A matrix (3, 3); an affine map's (2, 3) is completed with its last row, if one can be meant."""
    import numpy as np

    found = array(given, what)
    if found.shape != (3, 3) and not (affine and found.shape == (2, 3)):
        raise ImageError(f"{what} has the shape {found.shape}: expected (3, 3)" + ", or (2, 3) of an affine map" * affine)
    whole = np.eye(3)
    whole[: len(found)] = found
    return whole


def two(name: str, given: Any, expected: str) -> tuple[float, float]:
    """The two numbers of an option, given as a tuple, a list or an array."""
    try:
        first, second = (float(value) for value in given)
    except (TypeError, ValueError):
        raise OptionError(f"option {name} is {given!r}: expected {expected}") from None
    return first, second


def size(given: Any) -> tuple[int, int]:
    """Width and height; fails for the shape of an array, whose first value is the height."""
    told = [int(value) for value in given]
    if len(told) != 2 or min(told) < 0:
        raise OptionError(
            f"option image_size is {tuple(told)}: expected (width, height), which are image.shape[1::-1] of an array"
        )
    width, height = told
    return width, height


def batch(images: Iterable[Any]) -> Iterable[Any]:
    """Images one by one; those of an array (B, C, H, W) with their channels moved to the end."""
    shape = getattr(images, "shape", None)
    if shape is not None and len(shape) == 3 and shape[2] in (3, 4):
        raise ImageError(f"the images have the shape {tuple(shape)}, which is that of one image: expected several; detect takes one")
    if shape is None or len(shape) != 4 or shape[1] not in (1, 2, 3, 4) or shape[3] in (1, 2, 3, 4):
        return images
    return _Batch(images)


class _Batch:
    """The images of an array (B, C, H, W)."""

    def __init__(self, images: Any) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Any:
        for image in self.images:
            if len(image) == 1:
                yield image[0]
            elif hasattr(image, "permute"):
                # A tensor of PyTorch. On a card the pixels of a row must be contiguous.
                yield image.permute(1, 2, 0).contiguous()
            else:
                yield image.transpose(1, 2, 0).copy()


def kept(*images: Any) -> tuple[Any, Any]:
    """Two images, or masks, for later verdicts and pages: copies, because the caller may write others into their memory."""
    a, b = map(_copy, images)
    return a, b


def _copy(given: Any) -> Any:
    """A copy, on the card if the image lies there."""
    copy = getattr(given, "copy", None) or getattr(given, "clone", None)
    if copy is not None and not isinstance(given, list):
        return copy()
    if given is None or not lies_on_host(given):
        return given
    holed = masked(given)
    return (array(given, "an image") if holed is None else holed).copy()


def host(given: Any, what: str) -> Any:
    """An image in the host's memory, to which it is copied if it lies on a card."""
    device = getattr(given, "__dlpack_device__", None)
    if device is None or device()[0] != 2:
        return given
    for bring in ("numpy", "get", "cpu"):
        if hasattr(given, bring) and not (bring == "numpy" and hasattr(given, "cpu")):
            return getattr(given, bring)()
    raise ImageError(f"{what} lies on a card: bring it to the host first")
