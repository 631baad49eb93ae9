"""The relative pose of two cameras from their essential matrix, computed without a library of linear algebra."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Floats = npt.NDArray[np.float64]

    _Vector = tuple[float, float, float]
    _Rows = tuple[_Vector, _Vector, _Vector]


def _cross(a: _Vector, b: _Vector) -> _Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _dot(a: _Vector, b: _Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def decompositions(essential: _Floats) -> list[tuple[_Rows, _Vector]]:
    """The four pairs of a rotation and a baseline with ±E = [t]× R (Horn 1990, equations 20 and 24)."""
    (ax, bx, cx), (ay, by, cy), (az, bz, cz) = essential.tolist()
    columns: list[_Vector] = [(ax, ay, az), (bx, by, bz), (cx, cy, cz)]
    # The baseline is perpendicular to all columns: the longest of their three cross products is the most accurate.
    products = [_cross(columns[i], columns[j]) for i, j in ((0, 1), (1, 2), (2, 0))]
    x, y, z = max(products, key=lambda v: _dot(v, v))
    length = math.sqrt(_dot((x, y, z), (x, y, z)))
    scale = math.sqrt((_dot(columns[0], columns[0]) + _dot(columns[1], columns[1]) + _dot(columns[2], columns[2])) / 2)
    found: list[tuple[_Rows, _Vector]] = []
    for sign in (1 / length, -1 / length):
        t = (sign * x, sign * y, sign * z)
        for turned in (1 / scale, -1 / scale):
            e = [(turned * u, turned * v, turned * w) for u, v, w in columns]
            # Columns of R: cofactors of E less [t]× E, for a baseline of length 1.
            cofactors = [_cross(e[1], e[2]), _cross(e[2], e[0]), _cross(e[0], e[1])]
            turns = [_cross(t, column) for column in e]
            a, b, c = ((p - u, q - v, r - w) for (p, q, r), (u, v, w) in zip(cofactors, turns, strict=True))
            found.append((((a[0], b[0], c[0]), (a[1], b[1], c[1]), (a[2], b[2], c[2])), t))
    return found


def _before_both(a: Any, b: Any, r: _Rows, t: _Vector) -> int:
    """How many pairs of rays meet in front of both cameras, by their nearest points."""
    import numpy as np

    x = [r[i][0] * a[0] + r[i][1] * a[1] + r[i][2] for i in range(3)]
    y = [b[0], b[1], np.ones_like(b[0])]
    xx, yy, xy = (sum(p * q for p, q in zip(u, v, strict=True)) for u, v in ((x, x), (y, y), (x, y)))
    xt, yt = (sum(p * q for p, q in zip(u, t, strict=True)) for u in (x, y))
    # The least squares of λ x + t − μ y.
    area = xx * yy - xy * xy
    return int(((xy * yt - yy * xt > 0) & (xx * yt - xy * xt > 0) & (area > 0)).sum())


def pose(essential: _Floats, cameras: tuple[Any, Any], xy_a: _Floats, xy_b: _Floats) -> tuple[_Floats, _Floats]:
    """The rotation and baseline that put most pairs in front of both cameras."""
    import numpy as np

    a, b = (
        ((xy[:, 0] - k[0, 2]) / k[0, 0], (xy[:, 1] - k[1, 2]) / k[1, 1])
        for k, xy in zip((np.asarray(k, np.float64) for k in cameras), (xy_a, xy_b), strict=True)
    )
    most, (r, t) = max(((_before_both(a, b, *both), both) for both in decompositions(essential)), key=lambda found: found[0])
    if most == 0:
        raise ModelError(f"none of {len(xy_a)} pairs lies in front of both cameras: expected the inliers of the model")
    return np.array(r), np.array(t)
