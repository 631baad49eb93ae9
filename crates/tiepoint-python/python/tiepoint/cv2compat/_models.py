"""Models between points, and warping, with OpenCV's arguments and shapes."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import TYPE_CHECKING, Any

from .. import _arrays
from .._geometry import Estimate, Model, estimate, fit, warp
from ..errors import MismatchError, ModelError, OptionError
from ._own import host, like, opencv, raising

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .._geometry import _Interpolation, _ModelKind

    _Matrix = npt.NDArray[np.float64] | None
    _Inliers = npt.NDArray[np.uint8] | None

LMEDS = 4
RANSAC = 8
RHO = 16
USAC_DEFAULT = 32
USAC_PARALLEL = 33
USAC_FM_8PTS = 34
USAC_FAST = 35
USAC_ACCURATE = 36
USAC_PROSAC = 37
USAC_MAGSAC = 38
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

#: OpenCV draws fewer samples by default. It therefore misses models of few inliers, and of two models with nearly as
#: many inliers it may return the worse one. A lower confidence has the same effect.
_ITERATIONS, _CONFIDENCE = 50_000, 0.9999


def _pairs(a: Any, b: Any, least: int, names: tuple[str, str]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Both sets of points; fails if there are too few."""
    a, b = (_arrays.points(host(side), name) for side, name in zip((a, b), names, strict=True))
    if len(a) != len(b):
        raise MismatchError(f"there are {len(a)} {names[0]} and {len(b)} {names[1]}: expected pairs")
    if len(a) < least:
        raise ModelError(f"there are {len(a)} points: expected at least {least}")
    return a, b


def _settings(
    method: Any, methods: tuple[int, ...], threshold: float, iterations: int, confidence: float
) -> tuple[float, int, float]:
    """Threshold, iterations and confidence: those of OpenCV's ``UsacParams`` where they stand in place of a method."""
    import numpy as np

    if hasattr(method, "maxIterations"):
        return method.threshold, method.maxIterations, method.confidence
    if not hasattr(method, "__index__") or np.ndim(method) or method not in methods:
        shown = f"an array of the shape {method.shape}" if hasattr(method, "shape") else repr(method)
        raise OptionError(f"option method is {shown}: expected one of OpenCV's numbers {', '.join(map(str, methods))}")
    for name, value in (("the threshold", threshold), ("option maxIters", iterations), ("the confidence", confidence)):
        if not hasattr(value, "__float__") or math.isnan(value):
            raise OptionError(f"{name} is {value!r}: expected a number")
    return threshold, iterations, confidence


def _numbered(method: Any, methods: tuple[int, ...]) -> Any:
    """The method; epipolar geometry by any other number is LMEDS, as in OpenCV."""
    return LMEDS if isinstance(method, int) and method not in methods else method


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


def _robust(
    a: Any, b: Any, model: _ModelKind, default: float, threshold: float, iterations: int, confidence: float, cameras: Any = None
) -> Estimate | None:
    """The estimate, or None if there is no model. For a map of points the matrix and the inliers are those of `_forward`; where
    the threshold is so wide that every pair agrees, the map is least squares over all pairs."""
    threshold = threshold if threshold > 0 else default
    is_map = model not in ("fundamental", "essential")
    if is_map and (found := _fit_to_all(a, b, model, threshold)):
        return found
    threshold = min(threshold, 1e30)
    # `estimate` measures in both images, and OpenCV in the second alone, whose unit the threshold has.
    scale = _scale(a, b) if is_map else 1.0
    try:
        found = estimate(
            a * scale,
            b,
            model,
            # OpenCV's error is Sampson's distance there, and `estimate` has √2 times that.
            threshold=threshold * math.sqrt(2) if model == "essential" else threshold,
            confidence=min(max(confidence, _CONFIDENCE), 0.999999),
            max_iterations=max(int(iterations), _ITERATIONS),
            false_alarms=math.inf,
            cameras=cameras,
        )
        if not is_map:
            return found
        made = _forward(found, a * scale, b, threshold)
        return made if scale == 1 else dataclasses.replace(made, model=fit(a[made.inliers], b[made.inliers], model).model)
    except ModelError:
        return None


def _scale(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    """The power of two by which the spread of the first points comes nearest to that of the second. Half of the points lie
    within the spread, so a few that are far away do not count."""
    import numpy as np

    within = np.isfinite(np.hstack([a, b])).all(1)
    if not within.any():
        return 1.0
    near, far = (float(np.ptp(np.percentile(side[within], [25, 75], axis=0), axis=0).max()) for side in (a, b))
    ratio = far / near if near > 0 else 0.0
    return 2.0 ** round(math.log2(ratio)) if math.isfinite(ratio) and ratio > 0 else 1.0


def _fit_to_all(a: npt.NDArray[Any], b: npt.NDArray[Any], model: _ModelKind, threshold: float) -> Estimate | None:
    """The least-squares fit to all pairs, if the error of each is within the threshold."""
    try:
        found = fit(a, b, model)
    except ModelError:
        return None
    return found if bool((_errors(found, a, b) <= threshold).all()) else None


#: A model with fewer inliers may not be the best one.
_FEW = 15
#: Two models are taken for one if the inliers of one have errors of at most this many thresholds by the other.
_SAME = 2
#: The factor from the median of the absolute errors to their deviation, if these are normal.
_DEVIATION = 1.4826
#: Errors beyond this many deviations are those of outliers.
_WIDE = 2.5
#: The factor within which the median is found.
_NEAR = 1.2


def _least_median(
    a: Any, b: Any, model: _ModelKind, least: int, iterations: int, confidence: float, cameras: Any = None
) -> Estimate | None:
    """The estimate for OpenCV's LMEDS, which has no threshold: the least error within which a model has enough of the pairs
    is the median, from which the deviation of the inliers follows, and from that the threshold of the estimate. Enough
    are the pairs of a minimal sample, which agree with its model whatever the truth is, and half of the other pairs
    (Rousseeuw and Leroy 1987, chapters 3 and 5). For a map, with which two wrong pairs hardly agree, fewer are enough:
    more than half of all pairs, and at least two more than a minimal sample; for a homography that is not found so, one
    more or, if more than half of all pairs, none."""
    import numpy as np

    finite = b[np.isfinite(np.hstack([a, b])).all(1)]
    n = len(finite)
    if n < least:
        return None
    enough = (n + least + 1) // 2
    if model not in ("fundamental", "essential"):
        enough = min(enough, max(n // 2 + 1, least + 2))
    extent = max(float(np.ptp(finite, axis=0).max()), 1e-9)
    for fewer in range(enough, max(n // 2, least - 1) if model == "homography" else enough - 1, -1):
        if found := _within_median(a, b, model, least, n, fewer, extent, iterations, confidence, cameras):
            return found
    return None


def _within_median(
    a: Any,
    b: Any,
    model: _ModelKind,
    least: int,
    n: int,
    enough: int,
    extent: float,
    iterations: int,
    confidence: float,
    cameras: Any,
) -> Estimate | None:
    """The estimate of `_least_median` for one number of pairs that are enough."""
    import numpy as np

    low, high, best = 1e-6 * extent, extent, None
    while high > _NEAR * low:
        threshold = math.sqrt(low * high)
        found = _robust(a, b, model, threshold, threshold, iterations, confidence, cameras)
        error = math.inf if found is None else float(np.sort(_errors(found, a, b))[enough - 1])
        # Also an error beyond the threshold is one that a model reaches.
        if error < high:
            high, best = error, found
        if not error <= threshold:
            low = threshold
    if best is None:
        # Points of a plane agree with many epipolar geometries, of which `estimate` gives none.
        return _fit_to_all(a, b, model, _OF_EXTENT * extent) if model == "fundamental" else None
    threshold = max(_WIDE * _DEVIATION * (1 + 5 / max(n - least, 1)) * high, 1e-6 * extent)
    # Points of a plane may give no epipolar geometry at this threshold.
    found = _robust(a, b, model, threshold, threshold, iterations, confidence, cameras)
    found = found or dataclasses.replace(best, inliers=_errors(best, a, b) <= threshold)
    # More than half of the pairs are wrong.
    return None if model == "homography" and threshold > 0.25 * extent else found


def _errors(found: Estimate, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The errors that a threshold of `_robust` is compared with."""
    import numpy as np

    if found.model.kind in ("fundamental", "essential"):
        return found.model.residuals(a, b) / (math.sqrt(2) if found.model.kind == "essential" else 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        told: npt.NDArray[np.float64] = np.linalg.norm(found.apply(a) - b, axis=1)
    return told


def _forward(found: Estimate, a: npt.NDArray[Any], b: npt.NDArray[Any], threshold: float) -> Estimate:
    """The estimate with OpenCV's inliers, whose error is measured in the second image alone, and the least-squares fit to
    them; found anew while they become more. `estimate` itself measures in both images, and gives less weight to inliers
    far from most of the others."""
    made, more = found, True
    while more:
        inliers = _errors(made, a, b) <= threshold
        if more := made is found or inliers.sum() > made.inliers.sum():
            try:
                model = fit(a[inliers], b[inliers], found.model.kind).model
            except ModelError:
                return dataclasses.replace(made, inliers=inliers)
            made = dataclasses.replace(found, model=model, inliers=inliers)
    return made


def _estimated(
    a: Any,
    b: Any,
    model: _ModelKind,
    least: int,
    default: float,
    method: Any,
    options: tuple[float, int, float],
    cameras: Any = None,
) -> Estimate | None:
    """The estimate by one of OpenCV's methods, of a model that `least` pairs determine."""
    if isinstance(method, int) and method == LMEDS:
        return _least_median(a, b, model, least, *options[1:], cameras)
    score = getattr(method, "score", _SCORES.get(method) if isinstance(method, int) else None)
    threshold = options[0] if options[0] > 0 else default
    if model == "fundamental" and score is not None:
        # The error of OpenCV's USAC is Sampson's distance, and `residuals` are √2 times that.
        threshold *= math.sqrt(2)
    options = (threshold, *options[1:])
    made = None
    if score == _MAGSAC:
        made = _marginal(a, b, model, threshold, *options[1:], cameras)
    elif score == _MSAC:
        made = _robust(a, b, model, default, _MSAC_WIDTH * threshold, *options[1:], cameras)
    if made is not None:
        made = dataclasses.replace(made, inliers=_errors(made, a, b) <= threshold)
        if made.inliers.sum() >= _FEW:
            return made
    found = _robust(a, b, model, default, *options, cameras=cameras)
    if model != "essential" and (found is None or found.inliers.sum() < _FEW):
        found = _best_by_narrower(found, a, b, model, threshold, *options[1:])
    # Unrelated pairs have no model by any method if they have none at the threshold that is asked for.
    if found is None or made is None:
        return found
    # The wider threshold of the score may have found another model than that of the few inliers.
    wide = _widest(a, b, model, threshold) if score == _MAGSAC else _MSAC_WIDTH * threshold
    same = bool((_errors(made, a, b)[found.inliers] <= _SAME * wide).all())
    return made if same or _cost(made, a, b, wide) <= _cost(found, a, b, wide) else found


#: OpenCV's scores of models, by its methods: to the squared threshold, to its squared multiple, and over all deviations of
#: noise up to the greatest.
_MSAC, _MAGSAC = 1, 2
_SCORES = {USAC_MAGSAC: _MAGSAC} | dict.fromkeys((USAC_DEFAULT, USAC_PARALLEL, USAC_FM_8PTS, USAC_FAST, USAC_ACCURATE, USAC_PROSAC), _MSAC)
#: Up to this many thresholds an error counts by its square, as in OpenCV (9/4 of the squared threshold).
_MSAC_WIDTH = 1.5
#: The greatest error of an inlier for MAGSAC, in pixels, as in OpenCV; and the part of the extent of the points, which may have
#: another unit, that it is at most.
_WIDEST = {"homography": 8.0, "affine": 7.5, "similarity": 7.5, "fundamental": 2.5 * math.sqrt(2), "essential": 2.5}
_OF_EXTENT = 0.01
#: How many deviations of the noise that is; 99 % of the errors in two directions are nearer.
_QUANTILE = 3.04


def _marginal(
    a: Any, b: Any, model: _ModelKind, threshold: float, iterations: int, confidence: float, cameras: Any
) -> Estimate | None:
    """The estimate for MAGSAC, which hardly depends on the threshold: found at the greatest error of an inlier. A homography
    is then the fit with weights that are integrals over all deviations of the noise up to the greatest (sigma-consensus++;
    Barath et al. 2020), another model is estimated anew with the threshold that the median of the errors suggests."""
    import numpy as np

    top = _widest(a, b, model, threshold)
    found = _robust(a, b, model, top, top, iterations, confidence, cameras)
    if found is None or model == "homography":
        return found and _weighted(found, a, b, top)
    deviation = _DEVIATION if model in ("fundamental", "essential") else 1 / math.sqrt(2 * math.log(2))
    near = _QUANTILE * deviation * float(np.median(_errors(found, a, b)[found.inliers]))
    if near >= top:
        return found
    return _robust(a, b, model, top, max(near, threshold), iterations, confidence, cameras) or found


def _widest(a: npt.NDArray[Any], b: npt.NDArray[Any], model: _ModelKind, threshold: float) -> float:
    """The greatest error of an inlier for MAGSAC."""
    import numpy as np

    finite = b[np.isfinite(np.hstack([a, b])).all(1)]
    extent = float(np.ptp(finite, axis=0).max()) if len(finite) else 0.0
    return max(threshold, min(_WIDEST[model], _OF_EXTENT * extent))


def _weighted(found: Estimate, a: npt.NDArray[Any], b: npt.NDArray[Any], top: float) -> Estimate:
    """The homography of iteratively reweighted least squares; the weights are those of errors in two directions."""
    import numpy as np

    for _ in range(10):
        error = _errors(found, a, b)
        near = error < top
        if near.sum() <= 4:
            break
        weight = np.array(list(map(math.erfc, (error[near] * (_QUANTILE / math.sqrt(2) / top)).tolist())))
        to_a, x = _normalised(a[near], weight)
        to_b, y = _normalised(b[near], weight)
        zero, root = np.zeros_like(x), np.sqrt(weight)[:, None]
        rows = np.vstack([np.hstack([x, zero, -y[:, :1] * x]) * root, np.hstack([zero, x, -y[:, 1:2] * x]) * root])
        try:
            matrix = np.linalg.inv(to_b) @ np.linalg.svd(rows, full_matrices=False)[2][-1].reshape(3, 3) @ to_a
            found = dataclasses.replace(found, model=Model("homography", matrix / matrix[2, 2]))
        except (np.linalg.LinAlgError, ModelError):
            break
    return found


def _normalised(xy: npt.NDArray[Any], weight: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """A map that moves points about 0 and scales them to a mean square of 2, and the points so mapped, (N, 3)."""
    import numpy as np

    centre = np.average(xy, axis=0, weights=weight)
    scale = math.sqrt(2 / max(float(np.average(((xy - centre) ** 2).sum(1), weights=weight)), 1e-300))
    matrix = np.array([[scale, 0, -scale * centre[0]], [0, scale, -scale * centre[1]], [0, 0, 1]])
    return matrix, np.c_[(xy - centre) * scale, np.ones(len(xy))]


def _best_by_narrower(
    found: Estimate | None, a: Any, b: Any, model: _ModelKind, threshold: float, iterations: int, confidence: float
) -> Estimate | None:
    """Where few pairs agree: the best of the models found with this threshold and with narrower ones, all judged by
    this one. With a threshold as wide as the spread of the points along an axis, they cannot be told from points on a
    line.

    An epipolar geometry, which points of a plane do not determine, is the least-squares fit to all pairs if all agree with it."""
    if model == "fundamental" and (fitted := _fit_to_all(a, b, model, threshold)):
        return fitted
    best, least = found, math.inf if found is None else _cost(found, a, b, threshold)
    for narrower in (threshold / 3, threshold / 9):
        if other := _robust(a, b, model, narrower, narrower, iterations, confidence):
            if model == "fundamental":
                other = dataclasses.replace(other, inliers=_errors(other, a, b) <= threshold)
            else:
                other = _forward(other, a, b, threshold)
            if (cost := _cost(other, a, b, threshold)) < least:
                best, least = other, cost
    return best


def _cost(found: Estimate, a: Any, b: Any, threshold: float) -> float:
    """The sum of the squared errors, each at most that of the threshold (MSAC; Torr and Zisserman 2000)."""
    import numpy as np

    return float((np.fmin(_errors(found, a, b) / threshold, 1) ** 2).sum())


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
    or `maxIters` if that is more, to find models of few inliers. The matrix is the least-squares fit to all inliers, as
    OpenCV's is; of ``USAC_MAGSAC`` it hardly depends on the threshold, and of the other ``USAC_…`` it is the fit to all
    points within 1.5 thresholds.
    `method` 0 is least squares over all points.
    """
    import numpy as np

    a, b = _pairs(srcPoints, dstPoints, 4, ("srcPoints", "dstPoints"))
    method = method if params is None else params
    options = _settings(method, (0, RHO, *_METHODS), ransacReprojThreshold, maxIters, confidence)
    found: Estimate | None
    if method == 0:
        try:
            found = fit(a, b)
        except ModelError:
            found = None
    else:
        found = _estimated(a, b, "homography", 4, 3.0, method, options)
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
    """`cv2.findFundamentalMat`: F (3, 3) with x₂ᵀ F x₁ = 0 and F₃₃ = 1, and inliers (N, 1) uint8; both None without a model.

    ``FM_8POINT`` is least squares over all points, and so is every method with 8 points; every other method is this
    package's own robust estimation, by a number that is no method the one for ``FM_LMEDS``, as in OpenCV. Every method with
    7 points gives up to three matrices (9, 3), and is OpenCV's own, if that is installed. Points on a plane agree with many
    matrices, of which one is given.
    """
    import numpy as np

    a, b = _pairs(points1, points2, 0, ("points1", "points2"))
    if np.ndim(maxIters):
        # OpenCV's other form has the mask there.
        mask, maxIters = maxIters, 1000  # noqa: N806
    methods = (FM_8POINT, *_METHODS)
    method = _numbered(method if params is None else params, methods)
    options = _settings(method, methods, ransacReprojThreshold, maxIters, confidence)
    if len(a) == 7:
        theirs = opencv()
        if theirs is None:
            raise OptionError("seven points, for FM_7POINT, need OpenCV, which is not installed: expected more points")
        found: tuple[_Matrix, _Inliers] = theirs.findFundamentalMat(a, b, FM_7POINT)
        return found
    made: Estimate | None
    if method == FM_8POINT or len(a) == 8:
        try:
            made = fit(a, b, "fundamental")
        except ModelError:
            made = None
    else:
        made = _estimated(a, b, "fundamental", 7, 3.0, method, options) if len(a) > 8 else None
    if made is None:
        return None, None
    matrix = np.array(made.matrix)
    if abs(matrix[2, 2]) > np.finfo(np.float32).eps:
        matrix /= matrix[2, 2]
    return matrix, _told((points1, points2), mask, made.inliers)


@raising
def findEssentialMat(points1: Any, points2: Any, *arguments: Any, **named: Any) -> tuple[_Matrix, _Inliers]:  # noqa: N802
    """`cv2.findEssentialMat` in its forms: E (3, 3) of length 1, and inliers (N, 1) uint8; both None without a model.

    (points1, points2, cameraMatrix, method, prob, threshold, maxIters, mask); with focal and pp in place of the matrix;
    with cameraMatrix1, distCoeffs1, cameraMatrix2, distCoeffs2 there; and cameraMatrix1, cameraMatrix2, distCoeffs1,
    distCoeffs2, params, which are OpenCV's ``UsacParams``. Distortion by more than k1, k2, p1, p2, k3 needs OpenCV. Every method is this package's own robust estimation; where
    the threshold is so wide that every pair agrees, as with 1 for points in units of the focal length, it is least squares
    over all pairs.
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
    method = _numbered(given.get("params", given.get("method", RANSAC)), _METHODS)
    options = _settings(method, _METHODS, given.get("threshold", 1.0), given.get("maxIters", 1000), given.get("prob", 0.999))
    found = _estimated(a, b, "essential", 5, 1.0, method, options, cameras) if len(a) >= 5 else None
    if found is None and len(a) >= 8 and method != LMEDS:
        found = _all_agree(a, b, options[0] if options[0] > 0 else 1.0, cameras)
    if found is None:
        return None, None
    matrix = np.array(found.matrix)
    return matrix / math.sqrt(float((matrix * matrix).sum())), _told((points1, points2), given.get("mask"), found.inliers)


def _all_agree(a: Any, b: Any, threshold: float, cameras: tuple[Any, Any]) -> Estimate | None:
    """The essential matrix of least squares over all pairs, if Sampson's distance of each is within the threshold."""
    import numpy as np

    try:
        found = fit(a, b, "essential", cameras=cameras)
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
    fx, fy, cx, cy = camera[0, 0], camera[1, 1], camera[0, 2], camera[1, 2]
    seen = (xy - (cx, cy)) / (fx, fy)
    x, y = seen.T
    for _ in range(50):
        r = x * x + y * y
        radial = 1 + r * (k1 + r * (k2 + r * k3))
        x, y = (
            (seen[:, 0] - (2 * p1 * x * y + p2 * (r + 2 * x * x))) / radial,
            (seen[:, 1] - (p1 * (r + 2 * y * y) + 2 * p2 * x * y)) / radial,
        )
    return np.stack([x * fx + cx, y * fy + cy], 1)


def _affine(
    model: _ModelKind, least: int, a: Any, b: Any, inliers: Any, method: Any, threshold: float, iterations: int, confidence: float
) -> tuple[_Matrix, npt.NDArray[np.uint8]]:
    import numpy as np

    points, (a, b) = (a, b), _pairs(a, b, 0, ("from_", "to"))
    options = _settings(method, _METHODS, threshold, iterations, confidence)
    found = _estimated(a, b, model, least, 3.0, method, options) if len(a) >= least else None
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
    estimation, whose result is the least-squares fit to its inliers; `refineIters` has no effect.
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
        made = warp(given, matrix, shape=(height, width), interpolation=_INTERPOLATIONS[flags & 7], fill=fill)
    except (np.linalg.LinAlgError, ModelError):
        raise ModelError("M is singular: it has no inverse") from None
    if isinstance(dst, np.ndarray) and dst.shape == made.shape and dst.dtype == made.dtype:
        dst[...] = made
        return dst
    told = like((src, M), made, dst)
    return told
