"""Models between points, and warping, with OpenCV's arguments and shapes."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from .. import _arrays, _core
from .._geometry import Estimate, fit, fit_any, warp
from ..errors import MismatchError, ModelError, OptionError
from ._own import host, like, opencv, placed, raising
from ._robust import LMEDS, RANSAC, RHO, USAC_DEFAULT, USAC_MAGSAC, estimated

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .._geometry import _Interpolation, _ModelKind

    _Matrix = npt.NDArray[np.float64] | None
    _Inliers = npt.NDArray[np.uint8] | None

FM_7POINT = 1
FM_8POINT = 2
FM_LMEDS = 4
FM_RANSAC = 8
INTER_NEAREST = 0
INTER_LINEAR = 1
INTER_CUBIC = 2
INTER_AREA = 3
INTER_LANCZOS4 = 4
WARP_FILL_OUTLIERS = 8
WARP_INVERSE_MAP = 16
BORDER_CONSTANT = 0

#: OpenCV's robust methods; it has one more, RHO, for homographies.
_METHODS = (LMEDS, RANSAC, *range(USAC_DEFAULT, USAC_MAGSAC + 1))

#: Our interpolations by OpenCV's numbers. OpenCV replaces AREA by LINEAR here.
_INTERPOLATIONS: dict[int, _Interpolation] = {INTER_LINEAR: "bilinear", INTER_CUBIC: "bicubic", INTER_AREA: "bilinear", INTER_LANCZOS4: "lanczos"}


def _pairs(a: Any, b: Any, least: int, names: tuple[str, str]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Both sets of points; fails if there are too few."""
    a, b = (_arrays.points(host(side), name) for side, name in zip((a, b), names, strict=True))
    if len(a) != len(b):
        raise MismatchError(f"there are {len(a)} {names[0]} and {len(b)} {names[1]}: expected pairs")
    if len(a) < least:
        raise ModelError(f"there are {len(a)} points: expected at least {least}")
    return a, b


def _settings(
    method: Any, methods: tuple[int, ...], threshold: float, iterations: int, confidence: float, *, otherwise: int | None = None
) -> tuple[Any, tuple[float, int, float]]:
    """The method, or the one `otherwise` for a number that is none; and threshold, iterations and confidence: those of
    OpenCV's ``UsacParams`` where they stand in place of a method."""
    import numpy as np

    if hasattr(method, "maxIterations"):
        return method, (method.threshold, method.maxIterations, method.confidence)
    is_number = hasattr(method, "__index__") and np.ndim(method) == 0
    known = operator.index(method) if is_number else None
    if is_number and known not in methods:
        known = otherwise
    if known is None:
        shown = f"an array of the shape {method.shape}" if hasattr(method, "shape") else repr(method)
        raise OptionError(f"option method is {shown}: expected one of OpenCV's numbers {', '.join(map(str, methods))}")
    for name, value in (("the threshold", threshold), ("option maxIters", iterations), ("the confidence", confidence)):
        if not hasattr(value, "__float__") or math.isnan(value):
            raise OptionError(f"{name} is {value!r}: expected a number")
    return known, (threshold, iterations, confidence)


def _told(points: Any, mask: Any, inliers: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Inliers (N, 1), of the kind of the points, also written to the caller's mask if it has that size."""
    import numpy as np

    found = inliers.astype(np.uint8)[:, None]
    if isinstance(mask, np.ndarray) and mask.size == found.size and mask.dtype.itemsize == 1:
        mask[...] = found.reshape(mask.shape)
        if mask.shape == found.shape and mask.dtype == found.dtype:
            return mask
    told: npt.NDArray[np.uint8] = like(points, found, mask)
    return told


@raising
def findHomography(  # noqa: N802
    srcPoints: Any,  # noqa: N803
    dstPoints: Any,  # noqa: N803
    method: Any = 0,
    ransacReprojThreshold: float = 3.0,  # noqa: N803
    mask: Any = None,
    maxIters: int = 2000,  # noqa: N803
    confidence: float = 0.995,
    *,
    params: Any = None,
) -> tuple[_Matrix, npt.NDArray[np.uint8]]:
    """`cv2.findHomography`: the matrix (3, 3) from source to destination, and inliers (N, 1) uint8.

    Without a model the matrix is None and no point is an inlier. Every robust `method`, and OpenCV's ``UsacParams`` as
    `params` or in its place, is this package's own estimation, which is deterministic. It draws at most 50 000 samples,
    or `maxIters` if that is more, to find models of few inliers. The matrix is the least-squares fit to all inliers,
    whose error counts in both images as in `tiepoint.fit`; OpenCV's counts in the second alone. With ``USAC_MAGSAC`` it
    hardly depends on the threshold, and with the other ``USAC_…`` it is the fit to all points within 1.5 thresholds.
    `method` 0 is the same fit to all points.
    """
    import numpy as np

    a, b = _pairs(srcPoints, dstPoints, 4, ("srcPoints", "dstPoints"))
    method = method if params is None else params
    method, options = _settings(method, (0, RHO, *_METHODS), ransacReprojThreshold, maxIters, confidence)
    found: Estimate | None
    if method == 0:
        try:
            found = fit(a, b)
        except ModelError:
            found = None
    else:
        found = estimated(a, b, "homography", 4, 3.0, method, options)
    if found is None:
        return None, _told((srcPoints, dstPoints), mask, np.zeros(len(a), bool))
    return np.array(found.matrix), _told((srcPoints, dstPoints), mask, found.inliers)


@raising
def findFundamentalMat(  # noqa: N802
    points1: Any,
    points2: Any,
    method: Any = FM_RANSAC,
    ransacReprojThreshold: float = 3.0,  # noqa: N803
    confidence: float = 0.99,
    maxIters: int = 1000,  # noqa: N803
    mask: Any = None,
    *,
    params: Any = None,
) -> tuple[_Matrix, _Inliers]:
    """`cv2.findFundamentalMat`: F (3, 3) with x₂ᵀ F x₁ = 0 and F₃₃ = 1, and inliers (N, 1) uint8.

    Without a model the matrix is None and no point is an inlier; with fewer than 7 points the inliers are None, too.
    ``FM_8POINT`` is least squares over all points, and so is every method with 8 points; every other method is this
    package's own robust estimation; a number that is no method counts as ``FM_LMEDS``, as in OpenCV. Every method
    with 7 points gives up to three matrices (9, 3), and is OpenCV's own, if that is installed. Points on a plane,
    beside which there may be wrong pairs, agree with many matrices, of which one is given.
    """
    import numpy as np

    a, b = _pairs(points1, points2, 0, ("points1", "points2"))
    if np.ndim(maxIters):
        # OpenCV's other form has the mask there.
        mask, maxIters = maxIters, 1000  # noqa: N806
    method, limits = method if params is None else params, (ransacReprojThreshold, maxIters, confidence)
    method, options = _settings(method, (FM_8POINT, *_METHODS), *limits, otherwise=LMEDS)
    if len(a) == 7:
        theirs = opencv()
        if theirs is None:
            raise OptionError("seven points, for FM_7POINT, need OpenCV, which is not installed: expected more points")
        found: tuple[_Matrix, _Inliers] = theirs.findFundamentalMat(a, b, FM_7POINT)
        return found
    made: Estimate | None
    if method == FM_8POINT or len(a) == 8:
        try:
            made = fit_any(a, b, "fundamental")
        except ModelError:
            made = None
    else:
        made = estimated(a, b, "fundamental", 7, 3.0, method, options) if len(a) > 8 else None
    if made is None:
        return None, _told((points1, points2), mask, np.zeros(len(a), bool)) if len(a) >= 8 else None
    matrix = np.array(made.matrix)
    if abs(matrix[2, 2]) > np.finfo(np.float32).eps:
        matrix /= matrix[2, 2]
    return matrix, _told((points1, points2), mask, made.inliers)


@raising
def findEssentialMat(points1: Any, points2: Any, *arguments: Any, **named: Any) -> tuple[_Matrix, _Inliers]:  # noqa: N802
    """`cv2.findEssentialMat` in its forms: E (3, 3) of length 1, and inliers (N, 1) uint8.

    Without a model the matrix is None and no point is an inlier; with fewer than 5 points the inliers are None, too.
    (points1, points2, cameraMatrix, method, prob, threshold, maxIters, mask); with focal and pp in place of the matrix;
    with cameraMatrix1, distCoeffs1, cameraMatrix2, distCoeffs2 there; and cameraMatrix1, cameraMatrix2, distCoeffs1,
    distCoeffs2, params, which are OpenCV's ``UsacParams``. Distortion by more than k1, k2, p1, p2, k3 needs OpenCV. Every
    method is this package's own robust estimation; where the threshold is so wide that every pair agrees, as with 1 for
    points in units of the focal length, it is least squares over all pairs. Every method with 5 points gives up to ten
    matrices (30, 3), and is OpenCV's own, if that is installed; otherwise it gives one.
    """
    import numpy as np

    forms = (
        ["cameraMatrix1", "distCoeffs1", "cameraMatrix2", "distCoeffs2", "method", "prob", "threshold", "mask"],
        ["cameraMatrix", "method", "prob", "threshold", "maxIters", "mask"],
        ["focal", "pp", "method", "prob", "threshold", "maxIters", "mask"],
        ["cameraMatrix1", "cameraMatrix2", "dist_coeff1", "dist_coeff2", "params", "mask"],
    )
    last = arguments[-1:]
    arguments = tuple(map(host, arguments))
    named = {name: value if name == "mask" else host(value) for name, value in named.items()}
    if "params" in named or len(arguments) > 4 and hasattr(arguments[4], "maxIterations"):
        form = forms[3]
    elif "cameraMatrix1" in named or len(arguments) > 2 and np.ndim(arguments[2]) == 2:
        form = forms[0]
    elif "cameraMatrix" in named or arguments and np.ndim(arguments[0]) == 2:
        form = forms[1]
    else:
        form = forms[2]
    given = {**dict(zip(form, arguments, strict=False)), **named}
    given = {name: value for name, value in given.items() if value is not None}
    if "mask" not in named and "mask" in given:
        # As it was given: a UMat is written to.
        given["mask"] = last[0]
    if strange := sorted(set(given) - set(form)):
        raise OptionError(f"there is no argument {strange[0]}: expected {', '.join(form)}")
    a, b = _pairs(points1, points2, 0, ("points1", "points2"))
    if form in (forms[0], forms[3]):
        cameras = (_camera(given["cameraMatrix1"]), _camera(given["cameraMatrix2"]))
        first, second = (given.get(f"distCoeffs{i}", given.get(f"dist_coeff{i}")) for i in (1, 2))
        a, b = _undistorted(a, cameras[0], first), _undistorted(b, cameras[1], second)
    elif form is forms[1]:
        cameras = (_camera(given["cameraMatrix"]),) * 2
    else:
        (x, y), focal = given.get("pp", (0.0, 0.0)), given.get("focal", 1.0)
        cameras = (np.array([[focal, 0, x], [0, focal, y], [0, 0, 1.0]]),) * 2
    method, limits = given.get("params", given.get("method", RANSAC)), (given.get("maxIters", 1000), given.get("prob", 0.999))
    method, options = _settings(method, _METHODS, given.get("threshold", 1.0), *limits, otherwise=LMEDS)
    if len(a) == 5 and np.isfinite([a, b]).all() and (theirs := opencv()) is not None:
        # Refuses cameras with skew.
        _core.essential(np.diag([1.0, 1.0, 0.0]), cameras)
        a, b = (_seen(side, camera) for side, camera in zip((a, b), cameras, strict=True))
        several: _Matrix = theirs.findEssentialMat(a, b, np.eye(3))[0]
        return several, _told((points1, points2), given.get("mask"), np.full(5, several is not None))
    found = estimated(a, b, "essential", 5, 1.0, method, options, cameras) if len(a) >= 5 else None
    if found is None and len(a) >= 8 and method != LMEDS:
        found = _all_agree(a, b, options[0] if options[0] > 0 else 1.0, cameras)
    if found is None:
        return None, _told((points1, points2), given.get("mask"), np.zeros(len(a), bool)) if len(a) >= 5 else None
    matrix = np.array(found.matrix)
    return matrix / math.sqrt(float((matrix * matrix).sum())), _told((points1, points2), given.get("mask"), found.inliers)


def _all_agree(a: Any, b: Any, threshold: float, cameras: tuple[Any, Any]) -> Estimate | None:
    """The essential matrix of least squares over all pairs, if Sampson's distance of each is within the threshold."""
    import numpy as np

    try:
        found = fit_any(a, b, "essential", cameras)
    except ModelError:
        return None
    first, second = (np.linalg.inv(camera) for camera in cameras)
    matrix = second.T @ found.matrix @ first
    u, v = (np.c_[side, np.ones(len(side))] for side in (a, b))
    lines = np.hstack([(u @ matrix.T)[:, :2], (v @ matrix)[:, :2]])
    product = (v * (u @ matrix.T)).sum(1)
    return found if bool((product**2 <= threshold**2 * (lines**2).sum(1)).all()) else None


def _camera(matrix: Any) -> npt.NDArray[np.float64]:
    return _arrays.matrix(matrix, "the camera matrix", affine=False)


def _seen(xy: npt.NDArray[Any], camera: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Points in units of the focal length, from the principal point."""
    seen: npt.NDArray[np.float64] = (xy - camera[:2, 2]) / camera.diagonal()[:2]
    return seen


def _undistorted(xy: npt.NDArray[Any], camera: npt.NDArray[Any], coefficients: Any) -> npt.NDArray[Any]:
    """Points without lens distortion: OpenCV's model with k1, k2, p1, p2, k3, inverted by iteration; with more by OpenCV."""
    import numpy as np

    given = np.zeros(0) if coefficients is None else np.asarray(coefficients, np.float64).ravel()
    if not given.any():
        return xy
    if len(given) > 5 and given[5:].any():
        if (theirs := opencv()) is None:
            raise OptionError(
                f"distCoeffs has {len(given)} values: expected k1, k2, p1, p2, k3; more need OpenCV, which is not installed"
            )
        straight: npt.NDArray[Any] = theirs.undistortPoints(xy[:, None].astype(np.float64), camera, given, P=camera)
        return straight[:, 0]
    k1, k2, p1, p2, k3 = np.pad(given, (0, 5))[:5]
    seen = _seen(xy, camera)
    x, y = seen.T
    for _ in range(50):
        r = x * x + y * y
        radial = 1 + r * (k1 + r * (k2 + r * k3))
        x, y = (
            (seen[:, 0] - (2 * p1 * x * y + p2 * (r + 2 * x * x))) / radial,
            (seen[:, 1] - (p1 * (r + 2 * y * y) + 2 * p2 * x * y)) / radial,
        )
    found: npt.NDArray[Any] = np.stack([x, y], 1) * camera.diagonal()[:2] + camera[:2, 2]
    return found


def _affine(
    model: _ModelKind, least: int, a: Any, b: Any, inliers: Any, method: Any, threshold: float, iterations: int, confidence: float
) -> tuple[_Matrix, npt.NDArray[np.uint8]]:
    import numpy as np

    points, (a, b) = (a, b), _pairs(a, b, 0, ("from_", "to"))
    method, options = _settings(method, _METHODS, threshold, iterations, confidence)
    found = estimated(a, b, model, least, 3.0, method, options) if len(a) >= least else None
    if found is None:
        return None, _told(points, inliers, np.zeros(len(a), bool))
    return np.array(found.matrix[:2]), _told(points, inliers, found.inliers)


@raising
def estimateAffine2D(  # noqa: N802
    from_: Any,
    to: Any,
    inliers: Any = None,
    method: int = RANSAC,
    ransacReprojThreshold: float = 3.0,  # noqa: N803
    maxIters: int = 2000,  # noqa: N803
    confidence: float = 0.99,
    refineIters: int = 10,  # noqa: N803
    *,
    params: Any = None,
) -> tuple[_Matrix, npt.NDArray[np.uint8]]:
    """`cv2.estimateAffine2D`: the affine map (2, 3), and inliers (N, 1) uint8; the map is None if there is none.

    Every `method`, and OpenCV's ``UsacParams`` as `params` or in the place of `inliers`, is this package's own robust
    estimation, whose result is the least-squares fit to its inliers in the second image; `refineIters` has no effect.
    """
    if hasattr(inliers, "maxIterations"):
        params, inliers = inliers, None
    method = method if params is None else params
    return _affine("affine", 3, from_, to, inliers, method, ransacReprojThreshold, maxIters, confidence)


@raising
def estimateAffinePartial2D(  # noqa: N802
    from_: Any,
    to: Any,
    inliers: Any = None,
    method: int = RANSAC,
    ransacReprojThreshold: float = 3.0,  # noqa: N803
    maxIters: int = 2000,  # noqa: N803
    confidence: float = 0.99,
    refineIters: int = 10,  # noqa: N803
) -> tuple[_Matrix, npt.NDArray[np.uint8]]:
    """`cv2.estimateAffinePartial2D`: rotation, scale and shift (2, 3), and inliers; otherwise as `estimateAffine2D`."""
    return _affine("similarity", 2, from_, to, inliers, method, ransacReprojThreshold, maxIters, confidence)


@raising
def warpPerspective(  # noqa: N802
    src: Any,
    M: Any,  # noqa: N803
    dsize: tuple[int, int] | None,
    dst: Any = None,
    flags: int = INTER_LINEAR,
    borderMode: int = BORDER_CONSTANT,  # noqa: N803
    borderValue: Any = 0,  # noqa: N803
) -> npt.NDArray[Any]:
    """`cv2.warpPerspective` by `tiepoint.warp`: the image on `dsize`, which is (width, height), or (0, 0) for the image's.

    Pixels with a neighbour outside the image become `borderValue`. Nearest neighbours, other borders, a border of
    several values, and types of pixel other than uint8, uint16 and float32 are left to OpenCV, if that is installed.
    """
    import numpy as np

    image = host(src)
    image = image if isinstance(image, np.ndarray) else _arrays.array(image, "src")
    value = np.atleast_1d(np.asarray(borderValue, np.float64)).ravel()
    channels = image.shape[2] if image.ndim == 3 else 1
    # OpenCV's scalars have four values; those that are not given are 0.
    used = np.pad(value, (0, 4))[:channels]
    here = (
        flags & 7 in _INTERPOLATIONS
        and channels <= 4
        and borderMode == BORDER_CONSTANT
        and image.dtype.name in ("uint8", "uint16", "float32")
        and bool((used == used[0]).all())
    )
    if not here:
        if (theirs := opencv()) is None:
            raise OptionError(
                f"flags {flags}, borderMode {borderMode}, borderValue {borderValue} of {image.dtype}: expected INTER_LINEAR, "
                "INTER_CUBIC or INTER_LANCZOS4, BORDER_CONSTANT, one value, and uint8, uint16 or float32; others need OpenCV"
            )
        told: npt.NDArray[Any] = theirs.warpPerspective(src, M, dsize, dst, flags, borderMode, borderValue)
        return told
    matrix = _arrays.matrix(host(M), "M")
    size = (0, 0) if dsize is None else dsize
    if np.shape(size) != (2,) or not all(hasattr(v, "__index__") for v in size):
        raise TypeError(f"dsize is {dsize!r}: expected (width, height), two whole numbers")
    width, height = map(operator.index, size)
    if min(width, height) <= 0:
        height, width = image.shape[:2]
    fill = float(used[0])
    if image.dtype.kind == "u":
        fill = float(np.clip(np.rint(np.nan_to_num(fill)), 0, np.iinfo(image.dtype).max))
    try:
        if flags & WARP_INVERSE_MAP:
            matrix = np.linalg.inv(matrix).astype(np.float64)
        # As OpenCV, without an axis for one channel.
        given = image[..., 0] if image.ndim == 3 and channels == 1 else image
        made = warp(given, matrix, shape=(height, width), interpolation=_INTERPOLATIONS[flags & 7], fill=fill, device=placed(None))
    except (np.linalg.LinAlgError, ModelError):
        raise ModelError("M is singular: it has no inverse") from None
    if isinstance(dst, np.ndarray) and dst.shape == made.shape and dst.dtype == made.dtype:
        dst[...] = made
        return dst
    told = like((src, M), made, dst)
    return told
