"""Detectors: `Sift` and `Surf`, whose options are the library's and the command's."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

from . import _core
from ._base import Options
from ._core import Features

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._core import Device

__all__ = ["Features", "Sift", "Surf"]

#: Images that `detect_many` takes at once: a GPU searches them together.
_TOGETHER = 8


class _Detector(Options):
    """What both detectors do."""

    _kind = ""
    range: tuple[float, float] | None
    device: Device | str | None
    _finder: _core.Finder

    def __post_init__(self) -> None:
        given = self._given()
        value_range, device = given.pop("range"), given.pop("device")
        object.__setattr__(self, "_finder", _core.Finder(self._kind, given, value_range, device))

    @property
    def options(self) -> dict[str, Any]:
        """All options of the detector, with those that follow from the preset."""
        return self._finder.options

    def detect(self, image: Any, mask: Any = None) -> Features:
        """Find the features of an image.

        Parameters
        ----------
        image : array_like, (H, W) or (H, W, 1 to 4)
            ``uint8``, ``uint16`` or ``float32``: an array, a buffer, or anything with ``__dlpack__``. Colours become
            grey (Rec. 709). An array on the CUDA device that computes is not copied; the pixels of its rows must follow
            each other.
        mask : array_like, (H, W), optional
            ``uint8`` or ``bool``; features are kept where it is not 0.

        Returns
        -------
        Features
            One row for each feature. The same for any number of threads and any device. Those of an image on a GPU stay
            there: their arrays are each a `DeviceArray`.
        """
        return self._finder.detect(image, mask)

    def detect_many(self, images: Iterable[Any]) -> Iterator[Features]:
        """Find the features of images, in their order; the images are taken as they are needed.

        Parameters
        ----------
        images : iterable of array_like
            Images as `detect` takes them. Sizes may differ; a GPU searches those together that are alike.

        Yields
        ------
        Features
            Those of each image.
        """
        rest = iter(images)
        while some := list(itertools.islice(rest, _TOGETHER)):
            yield from self._finder.detect_together(some)

    def __call__(self, image: Any, mask: Any = None) -> Features:
        """The same as `detect`."""
        return self.detect(image, mask)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sift(_Detector):
    """SIFT after Lowe (IJCV 2004), with every orientation and no positional bias.

    Parameters
    ----------
    max_features : int, optional
        Keep so many at most; of whole levels, those with so many positions, each in all its directions. All if not
        given.
    keep : {"scale", "response", "levels"}
        Which to keep where there are more: the largest scales; the strongest; or whole levels, the coarsest first, as
        COLMAP does.
    even : bool
        Spread the features that are kept over the image.
    root : bool
        RootSIFT (Arandjelović and Zisserman, CVPR 2012). The command calls it ``--rootsift``.
    upright : bool
        No orientation: every angle is 0. For images that are not turned against each other.
    domain_size_pooling : bool
        Descriptors averaged over three sizes of their window (DSP-SIFT; Dong and Soatto, CVPR 2015): more matches, more
        time. On the CPU, also where there is a GPU.
    descriptors : {"u8", "float", "none"}
        Unit vectors times 512 as bytes, unit vectors, or keypoints alone.
    preset : {"default", "opencv", "vlfeat"}
        Whose conventions are followed where the paper leaves them open. ``"lowe"`` is another name of the default.
    first_octave : {-1, 0}
        −1 doubles the image first.
    octaves : int, optional
        Octaves at most.
    levels : int
        Levels searched in an octave, 1 to 8.
    contrast : float
        Least contrast, for an image from 0 to 1.
    edge : float
        Greatest ratio of the principal curvatures.
    sigma : float
        σ of the first level in pixels.
    input_sigma : float
        The blur that the image is assumed to have.
    range : tuple of float, optional
        The values that are black and white. If not given, 8 bits are taken as they are, and 16 bits and floats from their
        1st to their 99th percentile, widened by a quarter.
    device : Device or str, optional
        Where to compute; ``"auto"`` if not given.
    """

    _kind = "sift"

    max_features: int | None = None
    keep: str = "scale"
    even: bool = False
    root: bool = False
    upright: bool = False
    domain_size_pooling: bool = False
    descriptors: str = "u8"
    preset: str = "default"
    first_octave: int = -1
    octaves: int | None = None
    levels: int = 3
    contrast: float = 0.04
    edge: float = 10.0
    sigma: float = 1.6
    input_sigma: float = 0.5
    range: tuple[float, float] | None = None
    device: Device | str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Surf(_Detector):
    """SURF after Bay et al. (CVIU 2008), and as OpenSURF and OpenCV have it.

    Parameters
    ----------
    max_features : int, optional
        Keep so many at most; of whole levels, those with so many positions. All if not given.
    keep : {"scale", "response", "levels"}
        Which to keep where there are more: the largest scales; the strongest, which come again more often; or whole
        levels, the coarsest first.
    even : bool
        Spread the features that are kept over the image.
    upright : bool
        Leave the orientation out.
    extended : bool
        Descriptors of 128 values instead of 64.
    descriptors : {"float", "none"}
        Unit vectors, or keypoints alone.
    preset : {"paper", "opensurf", "opencv"}
        Whose conventions are followed.
    threshold : float, optional
        Least determinant of the Hessian; the preset's if not given (paper: 0.0004).
    octaves : int, optional
        Octaves; the preset's if not given.
    intervals : int, optional
        Filter sizes in an octave; the preset's if not given (paper: 4).
    step : int, optional
        Pixels between samples of the first octave, 1, 2 or 4; the preset's if not given (paper: 1).
    range : tuple of float, optional
        The values that are black and white; as in `Sift`.
    device : Device or str, optional
        Where to compute; ``"auto"`` if not given.
    """

    _kind = "surf"

    max_features: int | None = None
    keep: str = "response"
    even: bool = False
    upright: bool = False
    extended: bool = False
    descriptors: str = "float"
    preset: str = "paper"
    threshold: float | None = None
    octaves: int | None = None
    intervals: int | None = None
    step: int | None = None
    range: tuple[float, float] | None = None
    device: Device | str | None = None
