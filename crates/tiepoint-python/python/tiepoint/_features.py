"""Detectors: `Sift` and `Surf`, with the options of the library and of the command."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sized
from typing import TYPE_CHECKING, Any

from . import _core
from ._base import Options
from ._arrays import batch, image, lies_on_host, two, unmasked, without_data
from ._core import Device, Features
from ._options import SiftOptions, SurfOptions
from ._progress import counting
from .errors import Error, ImageError, MismatchError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from ._arrays import _Image
    from ._progress import _Progress

__all__ = ["Features", "Sift", "SiftOptions", "Surf", "SurfOptions", "concatenate"]

#: Images that `detect_many` takes at once: a GPU searches them together.
_TOGETHER = 8

#: How far the mean length of unit vectors may be from 1: that of bytes is rounded, and they end at 255.
_NEARLY_UNIT = 0.1
#: Pixels by which a place may be outside of its image, as in `collect`.
_BEYOND = 3


class _Detector(Options):
    """The base of both detectors."""

    _kind = ""
    range: tuple[float, float] | None
    device: Device | str | None
    _finder: _core.Finder

    def __post_init__(self) -> None:
        given = self._given()
        value_range, device = given.pop("range"), given.pop("device")
        if value_range is not None:
            low, high = two("range", value_range, expected := "two finite values, black and white, the lesser first")
            if not -math.inf < low < high < math.inf:
                raise OptionError(f"option range is {value_range!r}: expected {expected}")
            value_range = low, high
            object.__setattr__(self, "range", value_range)
        object.__setattr__(self, "_finder", _core.Finder(self._kind, given, value_range, device))

    @property
    def options(self) -> dict[str, Any]:
        """All options of the detector, with those that follow from the preset."""
        return self._finder.options

    def detect(self, image: _Image, mask: _Image | None = None) -> Features:
        """Find the features of an image.

        Parameters
        ----------
        image : array_like, (H, W) or (H, W, 1 to 4)
            ``uint8``, ``uint16`` or ``float32``: an array, a buffer, or anything with ``__dlpack__``. Booleans become 0
            and 255, and numbers of other types ``float32``, whose `range` is automatic: a value beyond those of
            ``float32`` means no data, and several are an `ImageError`. Colours become grey (Rec. 709). Of
            two channels and of four the last is **alpha**: where it is 0, the image holds no data. Of other bands choose
            one or three, ``image[..., 0]`` or ``image[..., :3]``. An array on the CUDA device that computes is not copied;
            the pixels of its rows must be contiguous.
        mask : array_like, (H, W), optional
            Features are kept where it is not 0. Where the image itself is masked, transparent or not finite, it holds no data:
            no feature lies within 5 pixels, and what its values are there has no influence.

        Returns
        -------
        Features
            One row for each feature, the same for any number of threads and any device. The features of an image on a
            GPU stay there: each of their arrays is a `DeviceArray`.
        """
        return self._finder.detect(without_data(image, "the image")[0], mask)

    def detect_many(self, images: Iterable[_Image], *, progress: _Progress = None) -> Iterator[Features]:
        """Find the features of images, in their order; the images are taken as they are needed.

        Parameters
        ----------
        images : iterable of array_like
            Images as `detect` takes them, or a batch, (B, H, W), (B, H, W, C) or (B, C, H, W). Sizes may differ; a GPU
            searches images of the same size and type together, up to 8, and only ``device="cpu"`` takes them one by one. An
            iterator may reuse one buffer for all images. If it fails, the features of the images before that are
            yielded first.
        progress : callable or True, optional
            Reports the number of images that are done: see `collect`.

        Yields
        ------
        Features
            Those of each image.
        """
        several = batch(images)
        total = len(several) if isinstance(several, Sized) else None
        # The CPU searches one image after the other.
        most = 1 if getattr(self.device, "name", self.device) == "cpu" else _TOGETHER
        with counting(type(self).__name__.upper(), total, progress) as count:
            for some in _groups(several, most):
                try:
                    found = iter(self._finder.detect_together(some))
                except Error:
                    # The features of the images before the one that fails come first.
                    found = map(self._finder.detect, some)
                yield from found
                count(len(some))

    def __call__(self, image: _Image, mask: _Image | None = None) -> Features:
        """The same as `detect`."""
        return self.detect(image, mask)


def _groups(images: Iterable[Any], most: int) -> Iterator[list[Any]]:
    """Images in groups of up to `most`; one on a card is alone. If the source fails, the images before come first."""
    some: list[Any] = []
    try:
        for each in images:
            is_alone = not lies_on_host(each)
            if is_alone and some:
                yield some
                some = []
            given, _ = without_data(each, "an image")
            if not is_alone and most > 1:
                # The source may write the next image into the same memory.
                given = image(given, "an image").copy()
            some.append(given)
            if is_alone or len(some) == most:
                yield some
                some = []
    except Exception:
        if some:
            yield some
        raise
    if some:
        yield some


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sift(_Detector, SiftOptions):
    """SIFT after Lowe (IJCV 2004), with every orientation and no positional bias.

    Parameters
    ----------
    range : tuple of float, optional
        The values that are black and white. If not given, 8 bits are taken as they are, and 16 bits and floats from their
        1st to their 99th percentile, widened by a quarter, 16 bits to at least 32 values.
    device : Device or str, optional
        Where to compute; ``"auto"`` if not given.
    """

    _kind = "sift"

    def describe(self, image: _Image, given: Features) -> tuple[Features, npt.NDArray[np.int64]]:
        """Describe features that another detector has found, at their places, scales and angles; on the CPU.

        Each feature is described in the octave and layer that it names, if this detector could find its scale there,
        otherwise in those that suit its scale. With the preset ``"opencv"``, always in those that it names, as by
        OpenCV's ``compute``.

        Parameters
        ----------
        image : array_like, (H, W) or (H, W, 1 to 4)
            As `detect` takes it.
        given : Features
            The features to describe, from `Features.from_arrays` or `tiepoint.interop`.

        Returns
        -------
        features : Features
            The given features in their order with descriptors, without those outside the image or where it is masked, and
            those too large for it.
        rows : ndarray
            (M,) int64: which of `given` they are.
        """
        _, shown = unmasked(image, None)
        found, rows = self._finder.describe(without_data(image, "the image")[0], given)
        if shown is not None:
            # The pixels of the places, as `detect` finds them.
            column, row = found.xy.round().astype(int).T
            kept = shown[row.clip(0, len(shown) - 1), column.clip(0, shown.shape[1] - 1)]
            found, rows = found[kept], rows[kept]
        return found, rows

    range: tuple[float, float] | None = None
    device: Device | str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Surf(_Detector, SurfOptions):
    """SURF after Bay et al. (CVIU 2008), and as OpenSURF and OpenCV have it.

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


def unit(features: Features) -> npt.NDArray[np.float32]:
    """Descriptors as unit vectors, (N, D) float32: `Features.unit`."""
    import numpy as np

    found = features.to("cpu").descriptors
    floats: npt.NDArray[np.float32] = found.astype(np.float32)
    return floats / np.float32(512) if found.dtype == np.uint8 else floats


def check_unit(features: Features, use: str) -> None:
    """Fails for descriptors whose mean length is not 1, as `use` demands; those that are 0 do not count. Bytes on a GPU
    are taken for a detector's own, and stay there."""
    import numpy as np

    if features.device != "cpu" and features.descriptors.dtype == np.uint8:
        return
    length = np.linalg.norm(unit(features), axis=1)
    mean = float(length[length > 0].mean()) if length.any() else 1.0
    if abs(mean - 1) > _NEARLY_UNIT:
        raise ImageError(
            f"descriptors have a length of {mean:.3g} on average: expected 1 (uint8: 512 as numbers), which {use}; "
            "divide each by its length, as in d / np.linalg.norm(d, axis=1, keepdims=True)"
        )


def check_places(features: Features) -> None:
    """Fails for features in the host's memory that lie more than 3 pixels outside of an image of known size."""
    import numpy as np

    size = features.image_size
    if features.device != "cpu" or 0 in size:
        return
    outside = ((features.xy < -_BEYOND) | (features.xy > np.add(size, _BEYOND))).any(1)
    if outside.any():
        (width, height), (x, y) = size, features.xy[outside][0]
        raise ImageError(
            f"{outside.sum()} of {len(features)} features lie more than {_BEYOND} pixels outside of the image "
            f"of {width}x{height}, the first at ({x:g}, {y:g}): expected places (x, y), and image_size as "
            "(width, height); if these are (row, column), as scikit-image gives them, use xy[:, ::-1]"
        )


def concatenate(several: Sequence[Features]) -> Features:
    """Features of one image from several, in their order.

    Parameters
    ----------
    several : sequence of Features
        At least one, with descriptors of one kind.

    Returns
    -------
    Features
        All of them; the image size is that of the first.
    """
    import numpy as np

    here = [features.to("cpu") for features in several]
    kinds = sorted({(f.descriptors.dtype.name, f.descriptors.shape[1]) for f in here})
    if len(kinds) != 1:
        told = " and ".join(f"{n} {kind} values" if n else "none" for kind, n in kinds)
        raise MismatchError(f"the features have descriptors of {told or 'no kind'}: expected one kind")
    names = ("xy", "scale", "angle", "response", "sign", "octave", "layer")
    columns: dict[str, Any] = {name: np.concatenate([getattr(f, name) for f in here]) for name in names}
    descriptors = np.concatenate([f.descriptors for f in here]) if kinds[0][1] else None
    return Features.from_arrays(**columns, descriptors=descriptors, image_size=here[0].image_size)
