"""Detectors: `Sift` and `Surf`, whose options are the library's and the command's."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

from . import _core
from ._base import Options
from ._core import Features
from ._options import SiftOptions, SurfOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._core import Device

__all__ = ["Features", "Sift", "SiftOptions", "Surf", "SurfOptions"]

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
class Sift(_Detector, SiftOptions):
    """SIFT after Lowe (IJCV 2004), with every orientation and no positional bias.

    Its options are those of `SiftOptions`, and:

    Parameters
    ----------
    range : tuple of float, optional
        The values that are black and white. If not given, 8 bits are taken as they are, and 16 bits and floats from their
        1st to their 99th percentile, widened by a quarter.
    device : Device or str, optional
        Where to compute; ``"auto"`` if not given.
    """

    _kind = "sift"

    range: tuple[float, float] | None = None
    device: Device | str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Surf(_Detector, SurfOptions):
    """SURF after Bay et al. (CVIU 2008), and as OpenSURF and OpenCV have it.

    Its options are those of `SurfOptions`, and:

    Parameters
    ----------
    range : tuple of float, optional
        The values that are black and white; as in `Sift`.
    device : Device or str, optional
        Where to compute; ``"auto"`` if not given.
    """

    _kind = "surf"

    range: tuple[float, float] | None = None
    device: Device | str | None = None
