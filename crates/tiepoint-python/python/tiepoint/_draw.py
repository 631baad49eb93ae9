"""Pictures of features, tie points, registrations and disparities: arrays, or axes of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from . import _arrays
from ._core import DeviceArray, Features
from ._matching import Matches, TiePoints
from ._register import Registration
from ._stereo import Disparities
from .errors import ImageError, MismatchError, OptionError
from .io import StoredMatches

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._arrays import _Image

    _Bytes = npt.NDArray[np.uint8]
    _Lines = tuple[npt.NDArray[np.float64], _Bytes]
    _Drawn = Features | Matches | TiePoints | StoredMatches | Registration | Disparities

__all__ = ["draw"]

_Axes = TypeVar("_Axes")

#: Red, green, blue of inliers, of outliers, and of features.
_AGREES, _STRANGE, _FEATURE = (60, 220, 90), (235, 60, 50), (255, 190, 40)

#: Corners of a circle.
_CORNERS = 20


@overload
def draw(
    result: _Drawn,
    *images: _Image,
    features: tuple[Features, Features] | None = ...,
    outliers: bool = ...,
    limit: int = ...,
    axes: None = ...,
) -> _Bytes: ...


@overload
def draw(
    result: _Drawn,
    *images: _Image,
    features: tuple[Features, Features] | None = ...,
    outliers: bool = ...,
    limit: int = ...,
    axes: _Axes,
) -> _Axes: ...


def draw(
    result: _Drawn,
    *images: _Image,
    features: tuple[Features, Features] | None = None,
    outliers: bool = False,
    limit: int = 2000,
    axes: Any = None,
) -> Any:
    """Draw a result.

    Parameters
    ----------
    result : Features, Matches, TiePoints, StoredMatches, Registration or Disparities
        What to draw: circles of 6σ with their direction; lines from image to image; one image laid on the other; colours
        from far (blue) to near (red).
    *images : array_like
        The image of features, or both images of matches; black if not given. A registration and disparities have their
        own.
    features : tuple of Features, optional
        The features of both images; needed for `Matches`, which do not contain them.
    outliers : bool
        Of tie points also draw those that the model does not confirm, in red.
    limit : int
        Draw at most this many features or matches, the first ones.
    axes : matplotlib.axes.Axes, optional
        Draw there, lines as lines.

    Returns
    -------
    ndarray or Axes
        (H, W, 3) uint8; or `axes`, where they were given.
    """
    import numpy as np

    ground, (segments, colours) = _parts(result, images, features, outliers, limit)
    if axes is None:
        return _with_lines(ground, segments, colours)
    from matplotlib.collections import LineCollection  # type: ignore[import-not-found,import-untyped,unused-ignore]

    axes.imshow(ground)
    axes.add_collection(LineCollection(list(segments), colors=colours / np.float64(255), linewidths=1))
    axes.set_axis_off()
    return axes


def small(result: Any) -> _Bytes:
    """The picture for a notebook, without images: lines are drawn after it was made small, so that none is lost."""
    from ._show import LONGEST

    ground, (segments, colours) = _parts(result, (), None, False, 2000)
    step = max(1, -(-max(ground.shape[:2]) // LONGEST))
    return _with_lines(ground[::step, ::step], segments / step, colours)


def _parts(
    result: Any, images: tuple[Any, ...], features: Any, outliers: bool, limit: int
) -> tuple[_Bytes, _Lines]:
    """The picture, and the lines to draw on it."""
    import numpy as np

    if limit is not None and limit < 0:
        raise OptionError(f"option limit is {limit}: expected 0 or more")
    if isinstance(result, Features):
        found = result.to("cpu")[:limit]
        return _ground(_one(images, 1), found), _circles(found)
    if isinstance(result, (Matches, TiePoints, StoredMatches)):
        features = result._features() or features
        if not (outliers or isinstance(result, Matches)):
            result = result[np.asarray(result.inliers)]
        if features is None:
            raise OptionError("matches do not know their features: give features=(a, b)")
        return _side_by_side(result[:limit], _one(images, 2), [f.to("cpu") for f in features])
    if isinstance(result, Registration):
        covered = np.asarray(result.covered)[..., None] != 0
        fixed, warped = rgb(result.fixed).astype(np.uint16), rgb(result.warped)
        blend = np.where(covered, (fixed + warped) // 2, fixed // 2).astype(np.uint8)
        return blend, _nothing()
    if isinstance(result, Disparities):
        return _colours(np.asarray(result.disparity)), _nothing()
    expected = "its .registration" if hasattr(result, "registration") else "a result of tiepoint"
    raise OptionError(f"there is no picture of {type(result).__name__}: expected {expected}")


def _one(images: tuple[Any, ...], wanted: int) -> list[Any]:
    if len(images) not in (0, wanted):
        told = "is 1 image" if len(images) == 1 else f"are {len(images)} images"
        raise OptionError(f"there {told}: expected {wanted}, or none")
    return list(images) or [None] * wanted


def rgb(image: Any) -> _Bytes:
    """An image as (H, W, 3) uint8: 16 bits and floats from their 1st to their 99th percentile."""
    import numpy as np

    image = _arrays.unmasked(image, None)[0]
    found = _arrays.image(image.numpy() if isinstance(image, DeviceArray) else _arrays.host(image, "the image"), "the image")
    if found.ndim == 2:
        found = found[..., None]
    if found.ndim != 3 or not 1 <= found.shape[2] <= 4:
        raise ImageError(
            f"the image has the shape {found.shape}: expected (height, width) or (height, width, 1 to 4 channels); "
            "transpose(1, 2, 0) or permute(1, 2, 0) turns one whose channels come first"
        )
    found = found[..., :3] if found.shape[2] >= 3 else np.repeat(found[..., :1], 3, -1)
    if found.dtype == np.uint8:
        return np.ascontiguousarray(found)
    finite = found[np.isfinite(found)]
    low, high = np.percentile(finite, [1, 99]) if finite.size else (0, 1)
    shares: npt.NDArray[np.float32] = np.nan_to_num((found - np.float32(low)) / np.float32((high - low) or 1), nan=0.0)
    made: _Bytes = (255 * np.clip(shares, 0, 1)).astype(np.uint8)
    return made


def check_size(image: Any, features: Features) -> None:
    """Refuses an image of another size than the one in which features were found."""
    width, height = features.image_size
    there = (getattr(image, "shape", None) or _arrays.array(image, "the image").shape)[:2]
    if width and height and there != (height, width):
        raise MismatchError(
            f"the image is {there[1]}x{there[0]} and the features are of one of {width}x{height}: expected the image in which "
            "they were found"
        )


def _ground(images: list[Any], features: Features) -> _Bytes:
    """The image, or black of its size."""
    import numpy as np

    width, height = features.image_size
    if images[0] is not None:
        ground = rgb(images[0])
        check_size(ground, features)
        return ground
    if not width or not height:
        width, height = (int(v) + 1 for v in features.xy.max(0, initial=0))
    return np.zeros((height, width, 3), np.uint8)


def _nothing() -> _Lines:
    import numpy as np

    return np.zeros((0, 2, 2)), np.zeros((0, 3), np.uint8)


def _circles(found: Features) -> _Lines:
    """Circles of 6σ, and radii in the directions of features."""
    import numpy as np

    turns = np.linspace(0, 2 * np.pi, _CORNERS + 1)
    radius = 6 * found.scale.astype(np.float64)[:, None, None]
    middle = found.xy.astype(np.float64)[:, None]
    rim = middle + radius * np.stack([np.cos(turns), np.sin(turns)], 1)[None]
    sides = np.stack([rim[:, :-1], rim[:, 1:]], 2).reshape(-1, 2, 2)
    angle = found.angle.astype(np.float64)
    ends = middle[:, 0] + radius[:, 0] * np.stack([np.cos(angle), np.sin(angle)], 1)
    lines = np.concatenate([sides, np.stack([middle[:, 0], ends], 1)])
    return lines, np.full((len(lines), 3), _FEATURE, np.uint8)


def _side_by_side(matches: Any, images: list[Any], features: list[Features]) -> tuple[_Bytes, _Lines]:
    """Both images, and lines between matches."""
    import numpy as np

    grounds = [_ground([image], of) for image, of in zip(images, features, strict=True)]
    height = max(len(ground) for ground in grounds)
    wide = [np.pad(ground, ((0, height - len(ground)), (0, 0), (0, 0))) for ground in grounds]
    pairs = np.asarray(matches.pairs)
    starts, ends = (f.xy.astype(np.float64)[pairs[:, i]] for i, f in enumerate(features))
    lines = np.stack([starts, ends + (grounds[0].shape[1], 0)], 1)
    agrees = np.asarray(getattr(matches, "inliers", np.ones(len(pairs), bool)))
    colours = np.where(agrees[:, None], np.array(_AGREES, np.uint8), np.array(_STRANGE, np.uint8))
    return np.concatenate(wide, 1), (lines, colours)


def _with_lines(ground: _Bytes, segments: npt.NDArray[np.float64], colours: _Bytes) -> _Bytes:
    """Lines of one pixel's width on a copy of a picture."""
    import numpy as np

    made = ground.copy()
    if not len(segments):
        return made
    along = segments[:, 1] - segments[:, 0]
    steps = np.ceil(np.abs(along).max(1)).astype(np.int64) + 1
    line = np.repeat(np.arange(len(segments)), steps)
    first = np.repeat(np.cumsum(steps) - steps, steps)
    share = (np.arange(len(line)) - first) / np.maximum(steps[line] - 1, 1)
    x, y = np.rint(segments[line, 0] + share[:, None] * along[line]).astype(np.int64).T
    inside = (0 <= x) & (x < made.shape[1]) & (0 <= y) & (y < made.shape[0])
    made[y[inside], x[inside]] = colours[line[inside]]
    return made


def _colours(values: npt.NDArray[Any]) -> _Bytes:
    """Blue for the least, red for the greatest, black for none."""
    import numpy as np

    there = np.isfinite(values)
    low, high = (values[there].min(), values[there].max()) if there.any() else (0.0, 1.0)
    share = np.where(there, (values - low) / ((high - low) or 1), 0)
    # Three triangles: blue, green and red have their tops at 1/4, 1/2 and 3/4.
    tops = np.array([0.75, 0.5, 0.25])
    made = np.clip(1.5 - 4 * np.abs(share[..., None] - tops), 0, 1)
    return np.where(there[..., None], 255 * made, 0).astype(np.uint8)
