"""OpenCV's names for this package, so that a script need only change one import.

``import tiepoint.cv2compat as cv2`` gives OpenCV's features, matchers, models and Semi-Global Matching with its shapes and
units: images of three channels are blue, green, red, angles degrees, sizes diameters, points (N, 1, 2), disparities int16
times 16. Results are this package's: features by the preset ``opencv``, matches by exact search, models by its own
estimation, disparities by its own Semi-Global Matching.

OpenCV is never needed. Where it is installed, keypoints and matches are its own classes, and every other name, such as
`imread` or `drawMatches`, is OpenCV's own. `origin` says which package a name belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import Error as _Error
from . import _objects, _own
from ._bow import BOWImgDescriptorExtractor, BOWKMeansTrainer
from ._detectors import SIFT, SURF, Feature2D
from ._matchers import NORM_L2, NORM_L2SQR, BFMatcher, DescriptorMatcher, FlannBasedMatcher
from ._models import (
    BORDER_CONSTANT,
    FM_7POINT,
    FM_8POINT,
    FM_LMEDS,
    FM_RANSAC,
    INTER_AREA,
    INTER_CUBIC,
    INTER_LANCZOS4,
    INTER_LINEAR,
    INTER_NEAREST,
    WARP_FILL_OUTLIERS,
    WARP_INVERSE_MAP,
    estimateAffine2D,
    estimateAffinePartial2D,
    findEssentialMat,
    findFundamentalMat,
    findHomography,
    warpPerspective,
)
from ._own import setNumThreads
from ._robust import (
    LMEDS,
    RANSAC,
    RHO,
    USAC_ACCURATE,
    USAC_DEFAULT,
    USAC_FAST,
    USAC_FM_8PTS,
    USAC_MAGSAC,
    USAC_PARALLEL,
    USAC_PROSAC,
)
from ._stereo import (
    STEREO_SGBM_MODE_HH,
    STEREO_SGBM_MODE_HH4,
    STEREO_SGBM_MODE_SGBM,
    STEREO_SGBM_MODE_SGBM_3WAY,
    StereoMatcher,
    StereoSGBM,
    createDisparityWLSFilter,
    createRightMatcher,
)
from ._stitching import computeImageFeatures, computeImageFeatures2

if TYPE_CHECKING:
    from collections.abc import Callable

    from cv2 import DMatch as DMatch, KeyPoint as KeyPoint, error as error  # type: ignore[import-not-found,import-untyped,unused-ignore]

Algorithm = _own.Algorithm
SIFT_create: type[SIFT] = SIFT
BFMatcher_create: Callable[..., BFMatcher] = BFMatcher.create
FlannBasedMatcher_create: Callable[..., FlannBasedMatcher] = FlannBasedMatcher.create
DescriptorMatcher_create: Callable[..., DescriptorMatcher] = DescriptorMatcher.create
StereoSGBM_create: type[StereoSGBM] = StereoSGBM
StereoSGBM_MODE_SGBM = STEREO_SGBM_MODE_SGBM
StereoSGBM_MODE_HH = STEREO_SGBM_MODE_HH
StereoSGBM_MODE_SGBM_3WAY = STEREO_SGBM_MODE_SGBM_3WAY
StereoSGBM_MODE_HH4 = STEREO_SGBM_MODE_HH4
StereoMatcher_DISP_SHIFT = StereoMatcher.DISP_SHIFT
StereoMatcher_DISP_SCALE = StereoMatcher.DISP_SCALE

xfeatures2d_SURF = SURF
xfeatures2d: _own.Namespace = _own.Namespace(
    "xfeatures2d", {"SIFT": SIFT, "SIFT_create": SIFT, "SURF": SURF, "SURF_create": SURF}
)
ximgproc: _own.Namespace = _own.Namespace(
    "ximgproc", {"createRightMatcher": createRightMatcher, "createDisparityWLSFilter": createDisparityWLSFilter}
)
detail: _own.Namespace = _own.Namespace(
    "detail", {"computeImageFeatures": computeImageFeatures, "computeImageFeatures2": computeImageFeatures2}
)

__all__ = [
    "Algorithm",
    "BFMatcher",
    "BFMatcher_create",
    "BOWImgDescriptorExtractor",
    "BOWKMeansTrainer",
    "BORDER_CONSTANT",
    "DescriptorMatcher",
    "DescriptorMatcher_create",
    "FM_7POINT",
    "FM_8POINT",
    "FM_LMEDS",
    "FM_RANSAC",
    "Feature2D",
    "FlannBasedMatcher",
    "FlannBasedMatcher_create",
    "INTER_AREA",
    "INTER_CUBIC",
    "INTER_LANCZOS4",
    "INTER_LINEAR",
    "INTER_NEAREST",
    "LMEDS",
    "NORM_L2",
    "NORM_L2SQR",
    "RANSAC",
    "RHO",
    "SIFT",
    "SIFT_create",
    "STEREO_SGBM_MODE_HH",
    "STEREO_SGBM_MODE_HH4",
    "STEREO_SGBM_MODE_SGBM",
    "STEREO_SGBM_MODE_SGBM_3WAY",
    "StereoMatcher",
    "StereoMatcher_DISP_SCALE",
    "StereoMatcher_DISP_SHIFT",
    "StereoSGBM",
    "StereoSGBM_MODE_HH",
    "StereoSGBM_MODE_HH4",
    "StereoSGBM_MODE_SGBM",
    "StereoSGBM_MODE_SGBM_3WAY",
    "StereoSGBM_create",
    "USAC_ACCURATE",
    "USAC_DEFAULT",
    "USAC_FAST",
    "USAC_FM_8PTS",
    "USAC_MAGSAC",
    "USAC_PARALLEL",
    "USAC_PROSAC",
    "WARP_FILL_OUTLIERS",
    "WARP_INVERSE_MAP",
    "detail",
    "estimateAffine2D",
    "estimateAffinePartial2D",
    "findEssentialMat",
    "findFundamentalMat",
    "findHomography",
    "origin",
    "setNumThreads",
    "warpPerspective",
    "xfeatures2d",
    "xfeatures2d_SURF",
    "ximgproc",
]

#: The version of OpenCV whose conventions these are, if none is installed.
_VERSION = "5.0.0"

#: Names that are this package's only if OpenCV is not installed.
_STAND_INS: dict[str, Any] = {
    "KeyPoint": _objects.KeyPoint,
    "KeyPoint_convert": _objects.KeyPoint.convert,
    "KeyPoint_overlap": _objects.KeyPoint.overlap,
    "DMatch": _objects.DMatch,
    "error": _Error,
}


def origin(name: str) -> str:
    """The package that a name of this module belongs to: ``"tiepoint"`` or ``"opencv"``.

    Parameters
    ----------
    name : str
        Such as ``"ORB_create"`` or ``"xfeatures2d.SURF_create"``.

    Returns
    -------
    str
        For a class, the package of the class itself. ``BFMatcher`` with a norm other than the Euclidean one, and what
        `warpPerspective` leaves to OpenCV, are nevertheless OpenCV's, as their documentation says.

    Raises
    ------
    AttributeError
        When neither package has it.
    """
    first, _, rest = name.partition(".")
    here = globals()
    if first in _STAND_INS:
        return "tiepoint" if __getattr__(first) is _STAND_INS[first] else "opencv"
    if first not in __all__:
        __getattr__(first)
        return "opencv"
    if not rest:
        return "tiepoint"
    held = here[first]
    getattr(held, rest.partition(".")[0])
    ours = not isinstance(held, _own.Namespace) or rest.partition(".")[0] in held._ours
    return "tiepoint" if ours else "opencv"


def __getattr__(name: str) -> Any:
    """Names that this package does not have: OpenCV's own."""
    opencv = _own.opencv()
    if name in _STAND_INS:
        return getattr(opencv, name, _STAND_INS[name])
    if name == "__version__":
        return getattr(opencv, name, _VERSION)
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if opencv is None:
        raise AttributeError(f"{name} is OpenCV's own, which is not installed: tiepoint.cv2compat has {', '.join(__all__)}")
    return _own.checked(name, getattr(opencv, name))


def __dir__() -> list[str]:
    opencv = _own.opencv()
    theirs = [] if opencv is None else [name for name in dir(opencv) if not name.startswith("_")]
    return sorted({*__all__, *_STAND_INS, "__version__", *theirs})
