"""Filters of images, as in the command ``filter``. Images on a CUDA device are filtered there, and results stay there,
except that `integral` and `resample` take only images in the host's memory, and that `blobs` returns NumPy's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import _core
from ._arrays import array, like
from .errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._arrays import _Image
    from ._core import Device

    #: What lies beyond the edge.
    _Border = Literal["clamp", "reflect", "zero", "skip"]

__all__ = ["blobs", "convolve", "gauss", "hessian", "integral", "resample", "sobel"]


def gauss(
    image: _Image,
    sigma: float | None = None,
    *,
    size: int | None = None,
    power_of_two: bool = False,
    border: _Border = "clamp",
    device: Device | str | None = None,
) -> npt.NDArray[Any]:
    """Smooth an image, each channel separately.

    Parameters
    ----------
    image : array_like, (H, W) or (H, W, C) of up to four channels
        ``uint8``, ``uint16`` or ``float32``.
    sigma : float, optional
        Standard deviation in pixels, 0.1 to 500; 1.6 where neither this nor `size` is given.
    size : int, optional
        An odd number of taps; if `sigma` is not given, it follows from the size by OpenCV's rule.
    power_of_two : bool
        Taps 1, 2, 4, … towards the centre and back, of a `size` from 1 to 31.
    border : {"clamp", "reflect", "zero", "skip"}
        What lies beyond the edge.
    device : Device or str, optional
        Where to compute; where `image` lies if not given.

    Returns
    -------
    ndarray or DeviceArray
        Of the shape and type of the image.
    """
    if power_of_two and (size is None or sigma is not None):
        raise OptionError("option power_of_two is True: expected a size with it, and no sigma")
    found: npt.NDArray[Any] = like(_core.gauss(device, image, sigma, size, power_of_two, border), image)
    return found


def sobel(
    image: _Image, part: Literal["magnitude", "gx", "gy"] = "magnitude", *, border: _Border = "clamp", device: Device | str | None = None
) -> npt.NDArray[Any]:
    """Gradients of an image by Sobel's 3×3 kernels.

    Parameters
    ----------
    image : array_like, (H, W) or (H, W, C) of up to four channels
        ``uint8``, ``uint16`` or ``float32``.
    part : {"magnitude", "gx", "gy"}
        √(gx² + gy²) in the image's type, or a derivative as ``float32``.
    border : {"clamp", "reflect", "zero", "skip"}
        What lies beyond the edge.
    device : Device or str, optional
        Where to compute; where `image` lies if not given.

    Returns
    -------
    ndarray or DeviceArray
        Of the shape of the image.
    """
    found: npt.NDArray[Any] = like(_core.sobel(device, image, part, border), image)
    return found


def hessian(
    image: _Image, *, weight: float = 1.0, border: _Border = "clamp", device: Device | str | None = None
) -> npt.NDArray[np.float32]:
    """The determinant of the Hessian by 9×9 boxes (σ = 1.2) of an image's grey.

    Parameters
    ----------
    image : array_like, (H, W) or (H, W, 1 to 4)
        ``uint8`` and ``uint16``, divided by 255 and 65535, or ``float32``, as it is.
    weight : float
        Weight of dxy².
    border : {"clamp", "reflect", "zero", "skip"}
        What lies beyond the edge.
    device : Device or str, optional
        Where to compute; where `image` lies if not given.

    Returns
    -------
    ndarray or DeviceArray
        (H, W) float32.
    """
    return _core.hessian(device, image, weight, border)


def blobs(
    image: _Image,
    *,
    weight: float = 1.0,
    threshold: float = 0.0004,
    border: _Border = "clamp",
    device: Device | str | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.int8]]:
    """Local maxima of the magnitude of `hessian`, the greatest first.

    Parameters
    ----------
    image : array_like, (H, W) or (H, W, 1 to 4)
        ``uint8`` and ``uint16``, divided by 255 and 65535, or ``float32``, as it is.
    weight : float
        Weight of dxy².
    threshold : float
        Least magnitude, for an image from 0 to 1.
    border : {"clamp", "reflect", "zero", "skip"}
        What lies beyond the edge.
    device : Device or str, optional
        Where to compute; where `image` lies if not given.

    Returns
    -------
    xy : ndarray
        (N, 2) int64: columns and rows.
    response : ndarray
        (N,) float32: determinants, negative at saddles.
    laplacian : ndarray
        (N,) int8: −1 for bright on dark, 1 for dark on bright.
    """
    xy, response, laplacian = _core.blobs(device, image, weight, threshold, border)
    return xy, response, laplacian


def convolve(
    image: _Image,
    kernel: npt.ArrayLike,
    *,
    normalise: bool = False,
    float: bool = False,
    border: _Border = "clamp",
    device: Device | str | None = None,
) -> npt.NDArray[Any]:
    """Filter an image with a small kernel, which is not mirrored (correlation).

    Parameters
    ----------
    image : array_like, (H, W) or (H, W, C) of up to four channels
        ``uint8``, ``uint16`` or ``float32``.
    kernel : array_like, (rows, columns)
        The weights.
    normalise : bool
        Divide the weights by their sum, which must not be 0.
    float : bool
        Return floats, which keep signs and fractions, instead of the image's type.
    border : {"clamp", "reflect", "zero", "skip"}
        What lies beyond the edge.
    device : Device or str, optional
        Where to compute; where `image` lies if not given.

    Returns
    -------
    ndarray or DeviceArray
        Of the shape of the image.
    """
    kernel = array(kernel, "the kernel")
    if normalise:
        import numpy as np

        weights = kernel.astype(np.float32)
        # The same order as in the command, for the same bits.
        total = sum(weights.ravel().astype(np.float64).tolist())
        if abs(total) < 1e-9:
            raise OptionError("option normalise is True: expected weights whose sum is not 0")
        kernel = (weights.astype(np.float64) / total).astype(np.float32)
    found: npt.NDArray[Any] = like(_core.convolve(device, image, kernel, float, border), image)
    return found


def integral(image: _Image, *, device: Device | str | None = None) -> npt.NDArray[np.uint64]:
    """The exact sum of all pixels above and to the left of each pixel.

    Parameters
    ----------
    image : array_like, (H, W)
        ``uint8`` or ``uint16``.
    device : Device or str, optional
        The device whose threads compute.

    Returns
    -------
    ndarray
        (H + 1, W + 1) uint64; the first row and column are 0. The sum of the pixels of rows ``a:b`` and columns ``c:d``
        is ``s[b, d] - s[a, d] - s[b, c] + s[a, c]``.
    """
    return _core.integral(device, image)


def resample(
    image: _Image, how: Literal["double", "halve", "mean"], *, device: Device | str | None = None
) -> npt.NDArray[Any]:
    """An image at twice or half its size, as the detectors make their octaves.

    Parameters
    ----------
    image : array_like, (H, W) or (H, W, C) of up to four channels
        ``uint8``, ``uint16`` or ``float32``.
    how : {"double", "halve", "mean"}
        ``"double"`` maps pixel x to 2x and puts means between; ``"halve"`` takes every second pixel; ``"mean"`` takes
        the mean of four.
    device : Device or str, optional
        The device whose threads compute.

    Returns
    -------
    ndarray
        Of the type and channels of the image.
    """
    found: npt.NDArray[Any] = like(_core.resample(device, image, how), image)
    return found
