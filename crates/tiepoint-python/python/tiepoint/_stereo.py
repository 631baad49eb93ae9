"""Dense stereo: Semi-Global Matching (Hirschmüller, PAMI 2008)."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import math
from typing import TYPE_CHECKING, Any

from . import _core
from ._base import Result
from ._arrays import array, disparities, host, kept, unmasked, whole_costs
from ._assess import Assessment
from ._calibration import Calibration, rectified
from ._core import Device
from ._options import StereoOptions
from ._progress import counting
from .errors import ImageError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from collections.abc import Iterable, Iterator

    from ._arrays import _Image
    from ._calibration import _CalibrationLike
    from ._progress import _Progress

    _Floats = npt.NDArray[np.float32]

__all__ = ["Disparities", "Stereo", "StereoOptions"]

#: The meanings of the numbers of `Disparities.reasons`.
REASONS = ("valid", "no data", "ambiguous", "occluded", "inconsistent", "speckle")


def _given(images: tuple[Any, Any], masks: tuple[Any, Any]) -> list[Any]:
    """Both images, then their masks, in the host's memory."""
    given = [host(image, "the image") for image in (*images, *masks)]
    (given[0], given[2]), (given[1], given[3]) = unmasked(given[0], given[2]), unmasked(given[1], given[3])
    return given


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Disparities(Result):
    """The result of dense stereo.

    The maps of images on a GPU stay there, each as a `DeviceArray`; `depth` and `points` copy them to the host.

    Attributes
    ----------
    disparity : ndarray or DeviceArray
        (H, W) float32, of the left image: left (x, y) shows what right (x − d, y) shows. NaN where there is none.
    right : ndarray, DeviceArray or None
        (H, W) float32, of the right image, if asked for: right (x, y) shows what left (x + d, y) shows.
    confidence : ndarray, DeviceArray or None
        (H, W) float32, 0 to 1, if asked for.
    reasons : ndarray, DeviceArray or None
        (H, W) uint8, if asked for: why there is no disparity; indices of `REASONS`.
    calibration : Calibration or None
        The calibration of the pair, if it was given.
    images : tuple
        Copies of the left and the right image that were given, for `verdict`, `points` and pages.
    searched : tuple of int or None
        The least disparity and the number of disparities that were searched.
    masks : tuple
        The masks of the left and the right image, or None.
    no_data : float or None
        The value of pixels without data, if it was given.
    """

    # To type checkers they are arrays of NumPy.
    disparity: _Floats
    right: _Floats | None
    confidence: _Floats | None
    reasons: npt.NDArray[np.uint8] | None
    calibration: Calibration | None
    images: tuple[Any, Any]
    searched: tuple[int, int] | None = None
    masks: tuple[Any, Any] = (None, None)
    no_data: float | None = None

    def __post_init__(self) -> None:
        disparities(self.disparity, "the disparity map")
        super().__post_init__()

    @property
    def verdict(self) -> str:
        """``"good"``, ``"doubtful"`` or ``"poor"``; `assess` has its reasons."""
        return self.assess().verdict

    def assess(self, truth: Any = None, *, device: Device | str | None = None) -> Assessment:
        """Judge the disparities of the left image, as the command does: by the share of valid pixels, the disparities
        at the end of the range, how well they fit the pictures, texture, and whether rows agree. Tie points are
        searched only if the disparities do not show that rows agree.

        Parameters
        ----------
        truth : array_like, (H, W), optional
            The true disparities, NaN where they are not known; errors are then judged, too.
        device : Device or str, optional
            The device whose threads compute.
        """
        if self.searched is None:
            raise OptionError("the disparities that were searched are not known: results of Stereo have them")
        given = _given(self.images, self.masks)
        map = host(self.disparity, "the disparity map")
        truth = None if truth is None else disparities(truth, "the truth")
        return Assessment(*_core.assess_disparities(device, map, given, self.no_data, self.searched, truth))

    def depth(self, calibration: _CalibrationLike | None = None, *, device: Device | str | None = None) -> _Floats:
        """Depth along the optical axis, (H, W) float32, in the unit of the baseline; NaN where there is none.

        Parameters
        ----------
        calibration : Calibration, Rectified or path, optional
            The calibration of the pair; if not given, that given to `Stereo.compute`.
        device : Device or str, optional
            The device whose threads compute.
        """
        return _core.depth(device, self.disparity, self._calibration(calibration)._fields())

    def points(
        self, calibration: _CalibrationLike | None = None, *, colours: _Image | None = None, max_depth: float = math.inf
    ) -> tuple[_Floats, npt.NDArray[np.uint8]]:
        """Points of all pixels that have a depth.

        Parameters
        ----------
        calibration : Calibration, Rectified or path, optional
            The calibration of the pair; if not given, that given to `Stereo.compute`.
        colours : array_like, optional
            The image that colours them; the left one if not given.
        max_depth : float
            Leave out points that are farther.

        Returns
        -------
        xyz : ndarray
            (N, 3) float32: x right, y down, z forward from the left camera, in the unit of the baseline.
        rgb : ndarray
            (N, 3) uint8.
        """
        colours = unmasked(self.images[0] if colours is None else colours, None)[0]
        xyz, rgb = _core.points(self.disparity, colours, self._calibration(calibration)._fields(), max_depth)
        return xyz, rgb

    def _calibration(self, given: Any) -> Calibration:
        if given is None and self.calibration is None:
            raise OptionError("a calibration is needed: give it here, or to Stereo.compute")
        return rectified(self.calibration if given is None else given)

    def _summary(self) -> list[tuple[str, str]]:
        import numpy as np

        disparity = np.asarray(self.disparity)
        height, width = disparity.shape
        valid = disparity == disparity
        told = [("size", f"{width}x{height}"), ("valid", f"{100 * float(valid.mean()):.1f} %")]
        if valid.any():
            found = disparity[valid]
            told.append(("disparities", f"{found.min():.2f} to {found.max():.2f}"))
        return told

    def _picture(self) -> Any:
        return self.disparity


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stereo(StereoOptions):
    """Semi-Global Matching of rectified pairs.

    Parameters
    ----------
    device : Device or str, optional
        Where to compute; ``"auto"`` if not given.
    """

    device: Device | str | None = None

    def __post_init__(self) -> None:
        given = self._given()
        device = given.pop("device")
        object.__setattr__(self, "_stereo", _core.Stereo(given, device))

    @classmethod
    def for_calibration(cls, calibration: _CalibrationLike, **options: Any) -> Stereo:
        """Options for a search of the range of disparities that a calibration gives, as the command does.

        Parameters
        ----------
        calibration : Calibration, Rectified or path
            The calibration of the pair.
        **options
            Other options; `min_disparity` or `disparities` alone replaces one of the calibration's.
        """
        expected = rectified(calibration).disparities
        if expected is None:
            return cls(**options)
        least = options.get("min_disparity", math.floor(expected[0]))
        return cls(**{"min_disparity": least, "disparities": math.ceil(expected[1]) - least + 1, **options})

    @classmethod
    def for_pair(
        cls,
        left: _Image,
        right: _Image,
        /,
        *,
        mask_left: _Image | None = None,
        mask_right: _Image | None = None,
        no_data: float | None = None,
        **options: Any,
    ) -> Stereo:
        """Options for a search of the range of disparities that a few hundred tie points of the pair show, as in the
        command; the default range if there are too few tie points, or their rows differ.

        Parameters
        ----------
        left, right, mask_left, mask_right, no_data
            The pair, as in `compute`.
        **options
            Other options, of which ``right=True`` gives the disparities of the right view.
        """
        given = _given((left, right), (mask_left, mask_right))
        found = _core.range_of_pair(options.get("device"), given, no_data, options.get("min_disparity"))
        return cls(**options) if found is None else cls(**{"min_disparity": found[0], "disparities": found[1], **options})

    @property
    def options(self) -> dict[str, Any]:
        """All options, including those that follow from others."""
        core: _core.Stereo = self._stereo  # type: ignore[attr-defined]
        return core.options

    @property
    def _searched(self) -> tuple[int, int]:
        return self.min_disparity, self.disparities

    def compute(
        self,
        left: _Image,
        right: _Image,
        calibration: _CalibrationLike | None = None,
        *,
        mask_left: _Image | None = None,
        mask_right: _Image | None = None,
        no_data: float | None = None,
    ) -> Disparities:
        """Find the disparities of a rectified pair.

        Parameters
        ----------
        left, right : array_like, (H, W) or (H, W, 1 to 4)
            The pair: ``uint8``, ``uint16`` or ``float32``. NaN and transparent pixels hold no data. If one image is on
            a CUDA device, the pair is computed there, and the maps stay there.
        calibration : Calibration, Rectified or path, optional
            The calibration of the pair, for `Disparities.depth` and `Disparities.points`. With a `Rectified` of the size of
            the images, nothing is searched where it shows nothing (`Rectified.valid_left`).
        mask_left, mask_right : array_like, (H, W), optional
            Not 0 where the images hold data. A masked array also holds none where it is masked.
        no_data : float, optional
            Pixels of this value hold no data.

        Returns
        -------
        Disparities
            The same for any number of threads, limit of memory and device.
        """
        core: _core.Stereo = self._stereo  # type: ignore[attr-defined]
        mask_left, mask_right = _shown(calibration, (left, right), (mask_left, mask_right))
        (a, mask_a), (b, mask_b) = unmasked(left, mask_left), unmasked(right, mask_right)
        found = core.compute(a, b, mask_a, mask_b, no_data)
        known = None if calibration is None else rectified(calibration)
        return Disparities(
            **found, calibration=known, images=kept(left, right), searched=self._searched, masks=kept(mask_left, mask_right), no_data=no_data
        )

    def optimize(
        self,
        cost: Any,
        left: _Image,
        right: _Image,
        calibration: _CalibrationLike | None = None,
        *,
        scale: float | None = None,
        mask_left: _Image | None = None,
        mask_right: _Image | None = None,
    ) -> Disparities:
        """Find the disparities of a rectified pair by a cost volume of your own: of a network, of another census.

        Everything after the cost is as in `compute`: paths, sub-pixel disparities, the check of both views. A tensor on a
        CUDA device is aggregated there without a copy, and the maps stay there.

        Parameters
        ----------
        cost : array_like, (H, W, disparities)
            Integers or floats: how unlike left (x, y) and right (x − (min_disparity + i), y) are, the least being the best.
            What is not finite is unknown, and never chosen. On a card ``uint8``, ``uint16`` or ``float32``.
        left, right : array_like
            The pair: P2 falls at edges of the left image, and pixels without data in either are not matched.
        calibration : Calibration, Rectified or path, optional
            The calibration of the pair; a `Rectified` also says where nothing is searched, as in `compute`.
        scale : float, optional
            The factor that makes costs whole numbers of at most 4000. A negative minimum is subtracted first, then costs
            are multiplied and rounded. If not given, integers of every type are not multiplied, and floats are scaled so
            that the greatest becomes 1023. Sums are fastest if the greatest is at most 96.
        mask_left, mask_right : array_like, (H, W), optional
            Where the images hold data: not 0.

        Returns
        -------
        Disparities
            Penalties are in units of the scaled cost; by default they have the same proportion to its greatest value as
            for census.
        """
        mask_left, mask_right = _shown(calibration, (left, right), (mask_left, mask_right))
        found = self._by_volume(cost, left, right, scale, mask_left, mask_right, sums=False)
        known = None if calibration is None else rectified(calibration)
        return Disparities(
            **found, calibration=known, images=kept(left, right), searched=self._searched, masks=kept(mask_left, mask_right)
        )

    def aggregate(
        self,
        cost: Any,
        left: _Image,
        right: _Image,
        *,
        scale: float | None = None,
        mask_left: _Image | None = None,
        mask_right: _Image | None = None,
    ) -> npt.NDArray[np.uint16]:
        """Sum a cost volume over all paths, for a program that chooses disparities by itself.

        Parameters
        ----------
        cost : array_like, (H, W, disparities)
            As in `optimize`.
        left, right : array_like
            The pair.
        scale : float, optional
            The factor that makes costs whole numbers, as in `optimize`.
        mask_left, mask_right : array_like, (H, W), optional
            Where the images hold data: not 0.

        Returns
        -------
        ndarray
            (H, W, disparities) uint16: the sums, the least being the best.
        """
        sums: npt.NDArray[np.uint16] = self._by_volume(cost, left, right, scale, mask_left, mask_right, sums=True)
        return sums

    def _by_volume(
        self, cost: Any, left: Any, right: Any, scale: float | None, mask_left: Any, mask_right: Any, *, sums: bool
    ) -> Any:
        core: _core.Stereo = self._stereo  # type: ignore[attr-defined]
        (a, mask_a), (b, mask_b) = unmasked(left, mask_left), unmasked(right, mask_right)
        if scale is None:
            cost = whole_costs(cost, "the cost volume")
        return core.optimize(cost, scale, [a, b, mask_a, mask_b], sums)

    def compute_many(
        self,
        pairs: Iterable[tuple[_Image, _Image]],
        calibration: _CalibrationLike | None = None,
        *,
        no_data: float | None = None,
        in_flight: int | None = None,
        batch: int = 1,
        progress: _Progress = None,
    ) -> Iterator[Disparities]:
        """Find the disparities of a sequence of rectified pairs, in their order; the pairs are taken as they are needed.

        A GPU has several pairs at a time: one is copied to it and one back while a third is computed.

        Parameters
        ----------
        pairs : iterable of tuple of array_like
            The left and the right image of each pair, as `compute` takes them. Images on a card are first copied to the
            host. Pairs with masked pixels are computed one at a time. If the iterator fails, the disparities of all pairs
            before come first.
        calibration : Calibration, Rectified or path, optional
            The calibration of the pairs; what a `Rectified` does not show is masked, as in `compute`.
        no_data : float, optional
            Pixels of this value hold no data.
        in_flight : int, optional
            The number of sets of pairs that a GPU has at a time, 1 to 1024; 3 if not given.
        batch : int
            The number of pairs that a GPU computes together, 1 to 1024; more than 1 is faster for small images.
        progress : callable or True, optional
            Reports the number of pairs that are done: see `collect`.

        Yields
        ------
        Disparities
            Those of each pair: the same as `compute` finds.
        """
        core: _core.Stereo = self._stereo  # type: ignore[attr-defined]
        if isinstance(calibration, (list, tuple)):
            raise OptionError(
                f"option calibration is a {type(calibration).__name__}: expected a calibration, and pairs of a left and a right "
                "image in one sequence, as zip(lefts, rights) gives them"
            )
        known = None if calibration is None else rectified(calibration)
        stream = _core.StereoStream(core, in_flight, batch)
        images: collections.deque[tuple[_Image, _Image]] = collections.deque()
        total = len(pairs) if isinstance(pairs, collections.abc.Sized) else None

        with counting("stereo", total, progress) as count:

            def oldest() -> Iterator[Disparities]:
                if (found := stream.pop()) is not None:
                    count(1)
                    yield Disparities(**found, calibration=known, images=images.popleft(), searched=self._searched, no_data=no_data)
                else:
                    images.clear()

            failed: list[Exception] = []
            for each in _until_it_fails(pairs, failed):
                left, right = host(each[0], "the left image"), host(each[1], "the right image")
                masks = _shown(calibration, (left, right), (None, None))
                (a, mask_a), (b, mask_b) = unmasked(left, masks[0]), unmasked(right, masks[1])
                if not all(mask is None or mask.all() for mask in (mask_a, mask_b)):
                    # The stream takes no masks.
                    while images:
                        yield from oldest()
                    found = self.compute(left, right, calibration, no_data=no_data)
                    count(1)
                    yield found
                    continue
                full = stream.push(a, b, no_data)
                images.append(kept(left, right))
                if full:
                    yield from oldest()
            while images:
                yield from oldest()
            if failed:
                raise failed[0]


def _until_it_fails(pairs: Iterable[Any], failed: list[Exception]) -> Iterator[Any]:
    """The pairs; an exception of their source is put into `failed`, so that the pairs before it are finished first."""
    try:
        for number, pair in enumerate(pairs):
            yield _both(pair, number)
    except Exception as error:
        failed.append(error)


def _both(pair: Any, number: int) -> list[Any]:
    """The left and the right image of an item of a sequence of pairs."""
    expected = "expected a pair, (left, right)"
    if isinstance(pair, (str, bytes)) or not hasattr(pair, "__iter__"):
        raise ImageError(f"item {number} of the pairs is of the type {type(pair).__name__}: {expected}")
    if len(shape := getattr(pair, "shape", (2, 0, 0))) < 3 or shape[0] != 2:
        raise ImageError(f"item {number} of the pairs is an array of the shape {tuple(shape)}: {expected}")
    both = list(pair)
    if len(both) != 2:
        raise ImageError(f"item {number} of the pairs has {len(both)} parts: {expected}")
    for part in both:
        if isinstance(part, (int, float)):
            raise ImageError(f"item {number} of the pairs holds {part!r}: {expected} of images")
    return both


def _shown(calibration: Any, images: tuple[Any, Any], masks: tuple[Any, Any]) -> tuple[Any, Any]:
    """The masks of two images; where a `Rectified` of their size shows nothing, they hold no data."""
    valid = (getattr(calibration, "valid_left", None), getattr(calibration, "valid_right", None))
    if any(v is None or _size(v) != _size(image) for v, image in zip(valid, images, strict=True)):
        return masks
    import numpy as np

    shown = (np.ma.masked_equal(host(v, "the mask"), 0) for v in valid)
    both = [unmasked(v, host(m, "the mask"))[1] for v, m in zip(shown, masks, strict=True)]
    return both[0], both[1]


def _size(image: Any) -> tuple[int, ...]:
    """Rows and columns."""
    return tuple((image if hasattr(image, "shape") else array(image, "the image")).shape[:2])
