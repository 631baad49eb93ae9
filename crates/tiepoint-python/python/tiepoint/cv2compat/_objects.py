"""`KeyPoint` and `DMatch` for use without OpenCV; if OpenCV is installed, its own classes are used."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..errors import ImageError
from ._own import opencv

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from .._core import Features

#: The distance of an empty match: the greatest 32-bit float.
FARTHEST = float(0xFFFFFF << 104)


class KeyPoint:
    """A keypoint with the fields of ``cv2.KeyPoint``."""

    def __init__(
        self,
        x: float = 0.0,
        y: float = 0.0,
        size: float = 0.0,
        angle: float = -1.0,
        response: float = 0.0,
        octave: int = 0,
        class_id: int = -1,
    ) -> None:
        self.pt = (x, y)
        self.size = size
        self.angle = angle
        self.response = response
        self.octave = octave
        self.class_id = class_id

    @staticmethod
    def convert(
        keypoints: Any,
        keypointIndexes: Sequence[int] = (),  # noqa: N803
        size: float = 1.0,
        response: float = 1.0,
        octave: int = 0,
        class_id: int = -1,
    ) -> Any:
        """Places (N, 2) float32 of keypoints, or keypoints of places."""
        import numpy as np

        given = list(keypoints)
        if given and not hasattr(given[0], "pt"):
            # In OpenCV's other form the size follows the places.
            size = keypointIndexes if isinstance(keypointIndexes, (int, float)) else size
            places = np.asarray(given, np.float32).reshape(-1, 2).tolist()
            return tuple(KeyPoint(x, y, size, -1.0, response, octave, class_id) for x, y in places)
        chosen = [given[i] for i in keypointIndexes] if len(keypointIndexes) else given
        return np.array([point.pt for point in chosen], np.float32).reshape(-1, 2)

    @staticmethod
    def overlap(kp1: Any, kp2: Any) -> float:
        """The area of the intersection of both discs, divided by that of their union."""
        a, b = float(kp1.size) / 2, float(kp2.size) / 2
        away = math.dist(kp1.pt, kp2.pt)
        if away >= a + b:
            return 0.0
        if away <= abs(a - b):
            return (min(a, b) / max(a, b)) ** 2
        at_a = math.acos((away * away + a * a - b * b) / (2 * away * a))
        at_b = math.acos((away * away + b * b - a * a) / (2 * away * b))
        kite = (a + b - away) * (away + a - b) * (away - a + b) * (away + a + b)
        shared = a * a * at_a + b * b * at_b - math.sqrt(kite) / 2
        return shared / (math.pi * (a * a + b * b) - shared)

    def __repr__(self) -> str:
        return f"KeyPoint(pt={self.pt}, size={self.size}, angle={self.angle}, octave={self.octave})"


class DMatch:
    """A match with the fields of ``cv2.DMatch``."""

    __slots__ = ("distance", "imgIdx", "queryIdx", "trainIdx")

    def __init__(self, *given: float) -> None:
        if len(given) not in (0, 3, 4):
            raise TypeError("DMatch takes nothing, queryIdx, trainIdx and distance, or these with imgIdx before distance")
        query, train, *image, distance = given or (-1, -1, FARTHEST)
        self.queryIdx, self.trainIdx = int(query), int(train)
        self.imgIdx = int(image[0]) if image else -1
        self.distance = distance

    def __lt__(self, other: DMatch) -> bool:
        return self.distance < other.distance

    def __repr__(self) -> str:
        return f"DMatch({self.queryIdx}, {self.trainIdx}, {self.imgIdx}, {self.distance:g})"


def classes() -> tuple[Any, Any]:
    """`KeyPoint` and `DMatch`: OpenCV's own if it is installed."""
    theirs = opencv()
    return getattr(theirs, "KeyPoint", KeyPoint), getattr(theirs, "DMatch", DMatch)


def keypoints(features: Features, octave: Any, *, diameter: float = 2.0, class_id: Any = None) -> list[Any]:
    """Features as keypoints of `diameter` times σ."""
    import numpy as np

    made = classes()[0]
    angle = (np.degrees(features.angle.astype(np.float64)) % 360).tolist()
    number = [-1] * len(features) if class_id is None else class_id.tolist()
    columns = (features.scale * np.float32(diameter), features.response, octave)
    x, y = features.xy.T.tolist() if len(features) else ([], [])
    size, response, packed = (column.tolist() for column in columns)
    return list(map(made, x, y, size, angle, response, packed, number))


def table(points: Sequence[Any]) -> npt.NDArray[np.float64]:
    """x, y, size, angle, response, octave of keypoints: (N, 6)."""
    import numpy as np

    try:
        rows = [(*p.pt, p.size, p.angle, p.response, p.octave) for p in points]
    except AttributeError as error:
        raise ImageError(f"keypoints: {error}: expected objects of cv2.KeyPoint; Features.from_arrays takes places") from None
    return np.array(rows, np.float64).reshape(len(rows), 6)
