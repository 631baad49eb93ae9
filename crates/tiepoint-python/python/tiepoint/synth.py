"""Pictures computed by formulas, with exact truth: the same seed gives the same picture on every machine."""

from __future__ import annotations

import dataclasses
import operator
from typing import TYPE_CHECKING, Any

from . import _arrays, _core
from ._base import Result
from ._geometry import Model
from .errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Scene", "StereoPair", "scene", "stereo", "texture"]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Scene(Result):
    """Two images of a plane.

    Attributes
    ----------
    reference, moving : ndarray
        (H, W): the plane seen straight on, and through the homography.
    moving_from_reference : Model
        The homography from `reference` to `moving`.
    """

    reference: npt.NDArray[Any]
    moving: npt.NDArray[Any]
    moving_from_reference: Model

    def _picture(self) -> Any:
        return self.moving


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class StereoPair(Result):
    """A rectified pair with its truth.

    Attributes
    ----------
    left, right : ndarray
        (H, W), or (H, W, 3).
    truth_left, truth_right : ndarray
        (H, W) float32: disparities of either image.
    visible : ndarray
        (H, W) uint8: 255 where the right image shows the same point as the left one.
    """

    left: npt.NDArray[Any]
    right: npt.NDArray[Any]
    truth_left: npt.NDArray[np.float32]
    truth_right: npt.NDArray[np.float32]
    visible: npt.NDArray[np.uint8]

    def _picture(self) -> Any:
        return self.left


def _checked(size: tuple[int, int], seed: int) -> tuple[int, int]:
    """The size, if it and the seed are in their ranges."""
    width, height = map(operator.index, size)
    if min(width, height) < 1:
        raise OptionError(f"option size is {width}x{height}: expected 1 to 2^32 pixels")
    if not 0 <= operator.index(seed) < 1 << 64:
        raise OptionError(f"option seed is {seed}: expected a whole number: 0 to 2^64 - 1")
    return width, height


def _pixel(dtype: npt.DTypeLike) -> str:
    """The name of a type of pixels, however NumPy may be given it."""
    import numpy as np

    try:
        return np.dtype(dtype).name
    except TypeError:
        return str(dtype)


def texture(
    size: tuple[int, int] = (640, 480), *, kind: str = "mixed", seed: int = 0, dtype: npt.DTypeLike = "uint8"
) -> npt.NDArray[Any]:
    """A grey texture.

    Parameters
    ----------
    size : tuple of int
        Width and height.
    kind : {"mixed", "noise", "blobs", "shapes"}
        The kind of texture.
    seed : int
        Seed of the texture.
    dtype : {"uint8", "uint16", "float32"} or dtype
        The type of pixels.
    """
    made: npt.NDArray[Any] = _core.texture(_checked(size, seed), kind, seed, _pixel(dtype))
    return made


def scene(
    size: tuple[int, int] = (640, 480),
    moving_from_reference: Any = None,
    *,
    texture: str = "mixed",
    seed: int = 0,
    blur: float = 0.0,
    noise: float = 0.0,
    gamma: float = 1.0,
    gain: float = 1.0,
    bias: float = 0.0,
    dtype: npt.DTypeLike = "uint8",
) -> Scene:
    """Two images of a plane and the homography between them.

    Parameters
    ----------
    size : tuple of int
        Width and height of both.
    moving_from_reference : Model or array_like, (3, 3), optional
        The homography; the identity if not given.
    texture : {"mixed", "noise", "blobs", "shapes"}
        The texture of the plane.
    seed : int
        Seed of texture and noise.
    blur : float
        σ of a Gaussian blur of the moving image in pixels.
    noise : float
        Standard deviation of the noise in either image, from 0 (black) to 1 (white).
    gamma, gain, bias : float
        The light of the moving image: v becomes gain · v^gamma + bias.
    dtype : {"uint8", "uint16", "float32"} or dtype
        The type of pixels.
    """
    matrix = getattr(moving_from_reference, "matrix", moving_from_reference)
    light = (gamma, gain, bias)
    reference, moving, truth = _core.scene(
        _checked(size, seed), matrix, texture, seed, (blur, noise), light, _pixel(dtype)
    )
    return Scene(reference, moving, Model("homography", truth))


def stereo(
    size: tuple[int, int] = (640, 480),
    *,
    disparities: tuple[float, float] = (4.0, 60.0),
    surfaces: int = 9,
    scenery: str = "shapes",
    texture: str = "mixed",
    seed: int = 0,
    noise: float = 0.0,
    gamma: float = 1.0,
    gain: float = 1.0,
    bias: float = 0.0,
    colour: bool = False,
    dtype: npt.DTypeLike = "uint8",
) -> StereoPair:
    """A rectified stereo pair with its disparities.

    Parameters
    ----------
    size : tuple of int
        Width and height of both images.
    disparities : tuple of float
        The least and the greatest disparity.
    surfaces : int
        The number of surfaces in front of the background.
    scenery : {"shapes", "panels"}
        The kind of surfaces.
    texture : {"mixed", "noise", "blobs", "shapes"}
        The texture of the surfaces.
    seed : int
        Seed of shapes, textures and noise.
    noise : float
        Standard deviation of the noise, from 0 (black) to 1 (white).
    gamma, gain, bias : float
        The light of the right image: v becomes gain · v^gamma + bias.
    colour : bool
        Red, green and blue instead of grey.
    dtype : {"uint8", "uint16", "float32"} or dtype
        The type of pixels.
    """
    light = (gamma, gain, bias)
    expected = _arrays.two("disparities", disparities, "the least and the greatest disparity")
    found = _core.stereo_scene(
        _checked(size, seed), expected, surfaces, scenery, texture, seed, noise, light, colour, _pixel(dtype)
    )
    return StereoPair(**found)
