"""Where a raster lies: its transform, and its coordinate system in the forms of other libraries."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    #: a, b, c, d, e, f as ``affine.Affine`` has them.
    _Coefficients = tuple[float, float, float, float, float, float]


class Gcp(NamedTuple):
    """A ground control point, with the fields and order of ``rasterio.control.GroundControlPoint``.

    Parameters
    ----------
    row, col : float
        Place in the moving raster; (0, 0) is the outer corner of its first pixel, as in GDAL.
    x, y, z : float
        Place on the map, in the reference's coordinates; z is 0.
    """

    row: float
    col: float
    x: float
    y: float
    z: float


def coefficients(transform: Any) -> _Coefficients:
    """a, b, c, d, e, f of an ``Affine`` or a tuple of six or nine numbers."""
    try:
        a, b, c, d, e, f = (float(v) for v in tuple(transform)[:6])
    except (TypeError, ValueError):
        raise ImageError(f"the transform is {transform!r}: expected the six numbers a, b, c, d, e, f") from None
    if not all(map(math.isfinite, (a, b, c, d, e, f))) or a * e == b * d:
        raise ImageError(f"the transform is {transform!r}: expected finite numbers that can be inverted")
    # An Affine names its coefficients; plain numbers may be GDAL's GetGeoTransform, which rasterio refuses by the same rule.
    if not hasattr(transform, "a") and c == e == 0 and b > 0 > f:
        raise ImageError(
            f"the transform is {transform!r}, which looks like GDAL's order c, a, b, f, d, e: expected a, b, c, d, e, f; "
            "Affine.from_gdal(*transform) converts it"
        )
    return a, b, c, d, e, f


def placed(x: Any, y: Any, told: _Coefficients | None) -> _Coefficients:
    """The transform of pixels whose centres have the coordinates x and y, each (H, W) when broadcast: `told`, which is
    exact, if it agrees with these coordinates; otherwise one computed from them, as after the array was cut, thinned or
    turned."""
    import numpy as np

    x, y = (np.asarray(v, np.result_type(v, np.float32)) for v in (x, y))
    rounding = [float(np.spacing(np.abs(v).max())) for v in (x, y)]
    axes = np.broadcast_arrays(x, y)
    height, width = axes[0].shape

    def lies_at(transform: Sequence[float]) -> bool:
        # Along the edges: what was cut out of a grid is alike in all its rows.
        every = slice(None)
        for at in ((0, every), (-1, every), (every, 0), (every, -1)):
            row, col = np.arange(height)[at[0]] + 0.5, np.arange(width)[at[1]] + 0.5
            for places, off, (a, b, c) in zip(axes, rounding, (transform[:3], transform[3:]), strict=True):
                if not (np.abs(a * col + b * row + c - places[at]) <= 0.01 * (abs(a) + abs(b)) + off).all():
                    return False
        return True

    if told is not None and lies_at(told):
        return told
    if min(height, width) < 2:
        raise ImageError(f"the array has {height} rows and {width} columns: expected two or more, or their own GeoTransform")
    found: list[float] = []
    for places in axes:
        first, right, below = (float(places[at]) for at in ((0, 0), (0, -1), (-1, 0)))
        a, b = (right - first) / (width - 1), (below - first) / (height - 1)
        found += a, b, first - (a + b) / 2
    if not lies_at(found):
        raise ImageError("the coordinates of the array are not evenly spaced: expected a grid of equal pixels")
    return coefficients(found)


def wkt(crs: Any) -> str:
    """The CRS as WKT if it can be converted, otherwise as it was given, in one line; a number is an EPSG code."""
    told = " ".join((crs.to_wkt() if hasattr(crs, "to_wkt") else str(crs)).split())
    return f"EPSG:{told}" if told.isdecimal() else told


def epsg(crs: Any) -> int | None:
    """The EPSG code of the CRS, if it has one."""
    if hasattr(crs, "to_epsg"):
        code = crs.to_epsg()
        return None if code is None else int(code)
    # "EPSG:32633" or 32633, or WKT, whose last part is the number of the whole.
    told = re.fullmatch(r"\s*(?:EPSG:)?(\d+)\s*", str(crs), re.IGNORECASE)
    told = told or re.search(r'(?:ID|AUTHORITY)\["EPSG",\s*"?(\d+)"?\]\]\s*$', str(crs))
    return None if told is None else int(told[1])


def name(crs: Any) -> str:
    """A short name of the CRS."""
    code = epsg(crs)
    return wkt(crs).partition(",")[0] if code is None else f"EPSG:{code}"


def fits(value: float, dtype: np.dtype[Any]) -> bool:
    """Whether a type of integers has a value."""
    import numpy as np

    return float(value).is_integer() and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
