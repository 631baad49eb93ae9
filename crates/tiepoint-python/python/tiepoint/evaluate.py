"""Scores against the truth, as the command ``evaluate`` gives them."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import TYPE_CHECKING, Any

from . import _arrays, _core
from ._base import Result
from ._geometry import _places, named
from ._warn import warn
from .errors import MismatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._core import Features

__all__ = [
    "AngleError",
    "DisparityScore",
    "PositionError",
    "Repeatability",
    "angle_error",
    "corner_error",
    "disparity",
    "matching_accuracy",
    "position_error",
    "repeatability",
]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class PositionError(Result):
    """How far right matches are from the truth.

    Attributes
    ----------
    pairs : int
        The matches that are right.
    bias : tuple of float
        Their mean differences in x and y: the systematic error of a detector's places. NaN, like the next two, without pairs.
    rms, median : float
        Root mean square and median of their distances in pixels.
    """

    pairs: int
    bias: tuple[float, float]
    rms: float
    median: float


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class AngleError(Result):
    """How far the directions of matched features are from the truth.

    Attributes
    ----------
    pairs : int
        The pairs that were compared.
    bias : float
        The mean difference in radians, −π to π. NaN, like the median, without pairs.
    median : float
        Median of the absolute difference.
    """

    pairs: int
    bias: float
    median: float


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class DisparityScore(Result):
    """The accuracy of a disparity map.

    Attributes
    ----------
    pixels : int
        Pixels that were scored.
    density : float
        The share of them that had a disparity.
    bad : list of float
        For every threshold the share of pixels whose error is greater, or that have no disparity.
    bad_of_valid : list of float
        The same, only of pixels with a disparity; NaN if none has one.
    epe : float
        Mean distance from the truth in pixels, only of pixels with a disparity; NaN if none has one.
    """

    pixels: int
    density: float
    bad: list[float]
    bad_of_valid: list[float]
    epe: float


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Repeatability(Result):
    """How many features are found again.

    Attributes
    ----------
    a, b : int
        The numbers of features of A that lie in B, and of B that lie in A.
    pairs : int
        The number of pairs that correspond.
    share : float
        `pairs` divided by the lesser of `a` and `b`.
    """

    a: int
    b: int
    pairs: int
    share: float


def disparity(
    found: Any,
    truth: Any,
    *,
    truth_right: Any = None,
    mask: Any = None,
    thresholds: Sequence[float] = (1.0,),
    fill: bool = False,
) -> DisparityScore:
    """Score a disparity map.

    Parameters
    ----------
    found, truth : array_like, (H, W)
        Disparities in pixels, not finite where there is none. Integers of 8 and 16 bits are refused, because they may be
        multiples: 256 times in PNG files of 16 bits, with 0 where there is none, and 16 times in OpenCV's maps.
        `tiepoint.io.read_disparity` reads such files.
    truth_right : array_like, (H, W), optional
        The true disparities of the right image: only pixels that are visible in both images are scored.
    mask : array_like, (H, W), optional
        Only pixels where it is not 0 are scored. Middlebury's ``mask0nocc.png`` is 128 where pixels are occluded: give
        ``mask == 255`` to leave them out.
    thresholds : sequence of float
        A pixel is bad if its error is greater than this.
    fill : bool
        Fill invalid pixels from the background first.

    Warns
    -----
    UserWarning
        When a hundredth of the truth and more is 0, and nothing in it is negative or unknown; when a number in `found` seems to
        stand for none; when nearly all pixels are wrong and one of the maps seems to be a multiple or to have the opposite sign.
    """
    found = _arrays.disparities(getattr(found, "disparity", found), "the disparity map")
    truth = _arrays.disparities(truth, "the truth")
    if _arrays.lies_on_host(truth):
        zeros = int((truth == 0).sum())
        if 100 * zeros >= truth.size > 0 and bool(((truth >= 0) & (truth < math.inf)).all()):
            warn(f"{zeros} of {truth.size} values of the truth are 0, which counts as a disparity: make them NaN if they mean unknown")
    if truth_right is not None:
        seen = _core.non_occluded(truth, _arrays.disparities(truth_right, "the truth of the right image"))
        mask = seen if mask is None else seen * (_arrays.mask(mask, "the mask") != 0)
    score, notes = _core.disparity_score(found, truth, mask, list(thresholds), fill)
    warn(*notes)
    return DisparityScore(**score)


def corner_error(found: Any, truth: Any, size: tuple[int, int]) -> float:
    """Mean distance in pixels of the corners of an image of `size` (width, height) under two homographies."""
    width, height = map(operator.index, size)
    return _core.corner_error(named(found)[1], named(truth)[1], (width, height))


def matching_accuracy(xy_a: Any, xy_b: Any, truth: Any) -> list[float]:
    """Shares of matches within 1, 2, … 10 pixels of the true homography from A to B; points as `tiepoint.estimate` takes
    them."""
    return _core.matching_accuracy(_places(xy_a, "xy_a"), _places(xy_b, "xy_b"), named(truth)[1], 3.0)[0]


def position_error(xy_a: Any, xy_b: Any, truth: Any, *, within: float = 3.0) -> PositionError:
    """The error of places of the matches `within` pixels of the true homography from A to B; others count as wrong."""
    found = _core.matching_accuracy(_places(xy_a, "xy_a"), _places(xy_b, "xy_b"), named(truth)[1], within)
    return PositionError(*found[1])


def angle_error(xy_a: Any, angle_a: Any, angle_b: Any, truth: Any) -> AngleError:
    """The error of the directions of matched features, (N,) in radians, by the true homography from A to B; those of A lie
    at `xy_a`."""
    return AngleError(*_core.angle_error(_places(xy_a, "xy_a"), angle_a, angle_b, named(truth)[1]))


def repeatability(
    a: Features, b: Features, truth: Any, *, distance: float = 3.0, scale_ratio: float = float("inf")
) -> Repeatability:
    """How many features are found again, by the true homography from A to B.

    Parameters
    ----------
    a, b : Features
        Features of both images, with their `image_size`.
    truth : Model or array_like, (3, 3)
        From A to B.
    distance : float
        Largest distance in pixels of B.
    scale_ratio : float
        Largest ratio of the scales.
    """
    for name, features in (("a", a), ("b", b)):
        if 0 in getattr(features, "image_size", ()):
            raise MismatchError(f"{name} does not know the size of its image: expected image_size=(width, height) where it was made")
    options = {"distance": distance, "scale_ratio": scale_ratio}
    return Repeatability(*_core.repeatability(a, b, named(truth)[1], options))
