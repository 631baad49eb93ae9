"""OpenCV's names over this package, so that a script changes one import.

``import tiepoint.cv2compat as cv2`` gives `SIFT_create`, `BFMatcher`, `findHomography` and `StereoSGBM_create` with
OpenCV's shapes and units: angles in degrees, diameters, (N, 1, 2) points, disparities as int16 times 16. Results are this
package's: features by the preset ``opencv``, models by its own estimation, disparities by its own Semi-Global Matching.

OpenCV is never needed. Where it is installed, keypoints and matches are its own classes, and every other name, such as
`imread` or `drawMatches`, is OpenCV's own.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from . import _core, interop
from ._features import Sift
from ._geometry import estimate, fit
from ._matching import match, nearest
from ._stereo import Stereo
from .errors import ModelError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from ._core import Features

__all__ = [
    "BFMatcher",
    "BFMatcher_create",
    "DMatch",
    "KeyPoint",
    "LMEDS",
    "NORM_L2",
    "NORM_L2SQR",
    "RANSAC",
    "RHO",
    "SIFT_create",
    "STEREO_SGBM_MODE_HH",
    "STEREO_SGBM_MODE_HH4",
    "STEREO_SGBM_MODE_SGBM",
    "STEREO_SGBM_MODE_SGBM_3WAY",
    "StereoSGBM_create",
    "USAC_DEFAULT",
    "USAC_MAGSAC",
    "findHomography",
]

NORM_L2 = 4
NORM_L2SQR = 5
LMEDS = 4
RANSAC = 8
RHO = 16
USAC_DEFAULT = 32
USAC_MAGSAC = 38
STEREO_SGBM_MODE_SGBM = 0
STEREO_SGBM_MODE_HH = 1
STEREO_SGBM_MODE_SGBM_3WAY = 2
STEREO_SGBM_MODE_HH4 = 3


class _KeyPoint:
    """A keypoint with the fields of ``cv2.KeyPoint``."""

    def __init__(
        self, x: float, y: float, size: float, angle: float, response: float, octave: int, class_id: int
    ) -> None:
        self.pt = (x, y)
        self.size = size
        self.angle = angle
        self.response = response
        self.octave = octave
        self.class_id = class_id


@dataclasses.dataclass(slots=True)
class _DMatch:
    """A match with the fields of ``cv2.DMatch``."""

    queryIdx: int  # noqa: N815
    trainIdx: int  # noqa: N815
    distance: float
    imgIdx: int = 0  # noqa: N815


def _opencv() -> Any:
    """OpenCV's module where it is installed."""
    try:
        import cv2  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return None
    return cv2


def __getattr__(name: str) -> Any:
    """What this package has no form of its own of."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    opencv = _opencv()
    if opencv is None:
        raise AttributeError(f"{name} is OpenCV's own, which is not installed: tiepoint.cv2compat has {', '.join(__all__)}")
    return getattr(opencv, name)


def KeyPoint(  # noqa: N802
    x: float, y: float, size: float, angle: float = -1.0, response: float = 0.0, octave: int = 0, class_id: int = -1
) -> Any:
    """A ``cv2.KeyPoint``, or an object with its fields where OpenCV is not installed."""
    return getattr(_opencv(), "KeyPoint", _KeyPoint)(x, y, size, angle, response, octave, class_id)


def DMatch(queryIdx: int, trainIdx: int, distance: float) -> Any:  # noqa: N802, N803
    """A ``cv2.DMatch``, or an object with its fields where OpenCV is not installed."""
    made: Any = getattr(_opencv(), "DMatch", _DMatch)
    return made(queryIdx, trainIdx, distance)


class _SIFT:
    """`cv2.SIFT`."""

    def __init__(self, sift: Sift) -> None:
        self._sift = sift

    def detectAndCompute(  # noqa: N802
        self, image: Any, mask: Any = None, descriptors: Any = None, useProvidedKeypoints: bool = False  # noqa: N803
    ) -> tuple[tuple[Any, ...], npt.NDArray[np.float32] | None]:
        """Keypoints, and their descriptors (N, 128) float32 from 0 to 255; None where there are no keypoints."""
        if useProvidedKeypoints:
            raise OptionError("option useProvidedKeypoints is True: descriptors of given keypoints are not computed")
        points, found = interop.to_opencv(self._sift.detect(image, mask))
        return tuple(points), found if len(found) else None

    def detect(self, image: Any, mask: Any = None) -> tuple[Any, ...]:
        """Keypoints."""
        points, _ = interop.to_opencv(self._sift.replace(descriptors="none").detect(image, mask))
        return tuple(points)

    def getDefaultName(self) -> str:  # noqa: N802
        """The name."""
        return "Feature2D.SIFT"

    def descriptorSize(self) -> int:  # noqa: N802
        """Values of a descriptor."""
        return 128

    def defaultNorm(self) -> int:  # noqa: N802
        """The norm that descriptors are compared by."""
        return NORM_L2


def SIFT_create(  # noqa: N802
    nfeatures: int = 0,
    nOctaveLayers: int = 3,  # noqa: N803
    contrastThreshold: float = 0.04,  # noqa: N803
    edgeThreshold: float = 10.0,  # noqa: N803
    sigma: float = 1.6,
    *,
    preset: str = "opencv",
    device: Any = None,
) -> _SIFT:
    """`cv2.SIFT_create`; `preset` and `device` are those of `tiepoint.Sift`."""
    sift = Sift(
        max_features=nfeatures or None,
        keep="response",
        levels=nOctaveLayers,
        contrast=contrastThreshold,
        edge=edgeThreshold,
        sigma=sigma,
        preset=preset,  # type: ignore[arg-type]
        device=device,
    )
    return _SIFT(sift)


def _features(descriptors: Any) -> tuple[Features, float]:
    """Features with these descriptors, and the length that a unit vector has among them."""
    import numpy as np

    found = np.asarray(descriptors)
    places = np.zeros((len(found), 2), np.float32)
    whole = found.dtype == np.uint8 or bool((found == np.round(found)).all() and (0 <= found).all() and (found <= 255).all())
    if whole:
        return _core.Features.from_arrays(xy=places, descriptors=found.astype(np.uint8)), 512.0
    return _core.Features.from_arrays(xy=places, descriptors=found.astype(np.float32)), 1.0


class BFMatcher:
    """`cv2.BFMatcher` of Euclidean distances. Of any other norm it is OpenCV's own, where that is installed.

    Parameters
    ----------
    normType : int
        `NORM_L2`.
    crossCheck : bool
        Keep a match only when each is the other's nearest.
    device : Device or str, optional
        Where to compute.
    """

    def __new__(cls, normType: int = NORM_L2, crossCheck: bool = False, *, device: Any = None) -> Any:  # noqa: N803
        if normType == NORM_L2:
            return super().__new__(cls)
        opencv = _opencv()
        if opencv is None:
            raise OptionError(f"option normType is {normType}: expected NORM_L2, {NORM_L2}; other norms need OpenCV")
        if device is not None:
            raise OptionError(f"option normType is {normType}: with a device expected NORM_L2, {NORM_L2}")
        return opencv.BFMatcher(normType, crossCheck)

    def __init__(self, normType: int = NORM_L2, crossCheck: bool = False, *, device: Any = None) -> None:  # noqa: N803
        self._cross = crossCheck
        self._device = device

    def match(self, queryDescriptors: Any, trainDescriptors: Any) -> tuple[Any, ...]:  # noqa: N803
        """The nearest of each, as ``cv2.DMatch``."""
        (a, unit), (b, _) = _features(queryDescriptors), _features(trainDescriptors)
        if len(a) == 0 or len(b) == 0:
            return ()
        found = match(a, b, ratio=None, mutual=self._cross, same_sign=False, device=self._device)
        rows = zip(found.pairs.tolist(), (found.distance * unit).tolist(), strict=True)
        return tuple(DMatch(i, j, distance) for (i, j), distance in rows)

    def knnMatch(  # noqa: N802
        self, queryDescriptors: Any, trainDescriptors: Any, k: int = 2  # noqa: N803
    ) -> tuple[tuple[Any, ...], ...]:
        """The nearest one or two of each, as ``cv2.DMatch``."""
        if k not in (1, 2):
            raise OptionError(f"option k is {k}: expected 1 or 2")
        (a, unit), (b, _) = _features(queryDescriptors), _features(trainDescriptors)
        if len(a) == 0 or len(b) == 0:
            return ()
        first, distance, _ = nearest(a, b, device=self._device)
        if k == 1 or len(b) < 2:
            rows = zip(first.tolist(), (distance * unit).tolist(), strict=True)
            return tuple((DMatch(i, j, d),) for i, (j, d) in enumerate(rows))
        second, far = _second(a, b, first, self._device)
        columns = zip(first.tolist(), (distance * unit).tolist(), second.tolist(), (far * unit).tolist(), strict=True)
        return tuple((DMatch(i, j, d), DMatch(i, k2, d2)) for i, (j, d, k2, d2) in enumerate(columns))


def _second(a: Features, b: Features, first: Any, device: Any) -> tuple[Any, Any]:
    """The second nearest neighbours and their distances: the nearest among all but the nearest."""
    import numpy as np

    index = np.empty(len(a), np.int64)
    distance = np.empty(len(a), np.float32)
    u, v = (np.asarray(f.descriptors, np.float32) for f in (a, b))
    scale = 1.0 if a.descriptors.dtype == np.float32 else 512.0
    squared = (v * v).sum(1)
    for start in range(0, len(a), 1024):
        rows = slice(start, start + 1024)
        far = (u[rows] * u[rows]).sum(1)[:, None] + squared[None] - 2 * (u[rows] @ v.T)
        far[np.arange(len(far)), first[rows]] = np.inf
        index[rows] = far.argmin(1)
        distance[rows] = np.sqrt(np.maximum(far.min(1), 0)) / scale
    return index, distance


def BFMatcher_create(normType: int = NORM_L2, crossCheck: bool = False) -> Any:  # noqa: N802, N803
    """`cv2.BFMatcher_create`."""
    return BFMatcher(normType, crossCheck)


def findHomography(  # noqa: N802
    srcPoints: Any,  # noqa: N803
    dstPoints: Any,  # noqa: N803
    method: int = 0,
    ransacReprojThreshold: float = 3.0,  # noqa: N803
    mask: Any = None,
    maxIters: int = 2000,  # noqa: N803
    confidence: float = 0.995,
) -> tuple[npt.NDArray[np.float64] | None, npt.NDArray[np.uint8] | None]:
    """`cv2.findHomography`: the matrix (3, 3) from source to destination, and inliers (N, 1) uint8; None and None without.

    Every robust `method` is this package's own estimation, which is deterministic and draws 50 000 samples at most, or
    `maxIters` where that is more: few inliers are found so. `method` 0 is least squares over all points.
    """
    import numpy as np

    a, b = (np.asarray(points, np.float64).reshape(-1, 2) for points in (srcPoints, dstPoints))
    try:
        if method == 0:
            found = fit(a, b)
        else:
            found = estimate(
                a,
                b,
                threshold=ransacReprojThreshold,
                confidence=min(confidence, 0.999999),
                max_iterations=max(maxIters, 50_000),
                false_alarms=math.inf,
            )
    except ModelError:
        return None, None
    return np.array(found.matrix), found.inliers.astype(np.uint8)[:, None]


class _StereoSGBM:
    """`cv2.StereoSGBM`."""

    def __init__(self, stereo: Stereo) -> None:
        self._stereo = stereo

    def compute(self, left: Any, right: Any, disparity: Any = None) -> npt.NDArray[np.int16]:
        """Disparities (H, W) int16, 16 times; (minDisparity − 1) · 16 where there is none."""
        import numpy as np

        found = self._stereo.compute(left, right).disparity
        none = (self._stereo.min_disparity - 1) * 16
        return np.where(np.isnan(found), none, np.round(np.nan_to_num(found) * 16)).astype(np.int16)

    def getMinDisparity(self) -> int:  # noqa: N802
        """The least disparity searched."""
        return self._stereo.min_disparity

    def getNumDisparities(self) -> int:  # noqa: N802
        """How many are searched."""
        return self._stereo.disparities


def StereoSGBM_create(  # noqa: N802
    minDisparity: int = 0,  # noqa: N803
    numDisparities: int = 16,  # noqa: N803
    blockSize: int = 3,  # noqa: N803
    P1: int = 0,  # noqa: N803
    P2: int = 0,  # noqa: N803
    disp12MaxDiff: int = 0,  # noqa: N803
    preFilterCap: int = 0,  # noqa: N803
    uniquenessRatio: int = 0,  # noqa: N803
    speckleWindowSize: int = 0,  # noqa: N803
    speckleRange: int = 0,  # noqa: N803
    mode: int = STEREO_SGBM_MODE_SGBM,
    *,
    device: Any = None,
) -> _StereoSGBM:
    """`cv2.StereoSGBM_create`.

    `blockSize`, `P1`, `P2` and `preFilterCap` belong to OpenCV's matching cost and are passed over: the cost here is
    census joined with colour, with penalties that suit it. `disp12MaxDiff` below 0 leaves the check out. 5 paths for
    ``MODE_SGBM``, 4 for ``MODE_SGBM_3WAY`` and ``MODE_HH4``, 8 for ``MODE_HH``.
    """
    paths = {STEREO_SGBM_MODE_SGBM: 5, STEREO_SGBM_MODE_HH: 8, STEREO_SGBM_MODE_SGBM_3WAY: 4, STEREO_SGBM_MODE_HH4: 4}
    if mode not in paths:
        raise OptionError(f"option mode is {mode}: expected one of STEREO_SGBM_MODE_…")
    stereo = Stereo(
        min_disparity=minDisparity,
        disparities=numDisparities,
        paths=paths[mode],  # type: ignore[arg-type]
        uniqueness=uniquenessRatio,
        right_view="off" if disp12MaxDiff < 0 else "diagonal",
        max_difference=float(max(disp12MaxDiff, 1)),
        speckle_size=speckleWindowSize,
        speckle_difference=float(max(speckleRange, 1)),
        device=device,
    )
    return _StereoSGBM(stereo)
