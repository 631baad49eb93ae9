"""OpenCV's robust methods by one estimator: RANSAC, the least median, and USAC with the scores of MSAC and MAGSAC++."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from .._geometry import Estimate, Model, estimate, fit, fit_any
from ..errors import ModelError
from ._own import placed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .._geometry import _ModelKind

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

#: OpenCV draws fewer samples by default. It therefore misses models of few inliers, and of two models with nearly as
#: many inliers it may return the worse one. A lower confidence has the same effect.
_ITERATIONS, _CONFIDENCE = 50_000, 0.9999


def _robust(
    a: Any,
    b: Any,
    model: _ModelKind,
    default: float,
    threshold: float,
    iterations: int,
    confidence: float,
    cameras: Any = None,
    false_alarms: float = math.inf,
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
            false_alarms=false_alarms,
            cameras=cameras,
            device=placed(None),
        )
        if not is_map:
            return found
        made = _forward(found, a * scale, b, threshold)
        return made if scale == 1 else dataclasses.replace(made, model=fit(a[made.inliers], b[made.inliers], model).model)
    except ModelError:
        return None


def _of_plane(
    a: npt.NDArray[Any], b: npt.NDArray[Any], plane: Estimate | None, threshold: float | None = None
) -> Estimate | None:
    """One of the many epipolar geometries with which points of a plane agree; `estimate` returns none of them. This one
    is the least-squares fit to the inliers of the plane's homography. Its inliers are the pairs within the threshold,
    or, if there is none, within the greatest error of the plane's inliers."""
    if plane is None:
        return None
    try:
        found = fit_any(a[plane.inliers], b[plane.inliers], "fundamental")
    except ModelError:
        return None
    errors = _errors(found, a, b)
    within = errors[plane.inliers].max() if threshold is None else threshold
    return dataclasses.replace(found, inliers=errors <= within)


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
        found = fit_any(a, b, model)
    except ModelError:
        return None
    return found if bool((_errors(found, a, b) <= threshold).all()) else None


#: The expected number of planes (homographies) found in unrelated pairs that is accepted.
_FALSE_ALARMS = 1e-6
#: A model with fewer inliers may not be the best one.
_FEW = 15
#: Two models count as the same if the inliers of one have errors of at most this many thresholds under the other.
_SAME = 2
#: The factor from the median of the absolute errors to their standard deviation, for normal errors.
_DEVIATION = 1.4826
#: Errors beyond this many deviations are those of outliers.
_WIDE = 2.5
#: The factor within which the median is found.
_NEAR = 1.2


def _least_median(
    a: Any, b: Any, model: _ModelKind, least: int, iterations: int, confidence: float, cameras: Any = None
) -> Estimate | None:
    """The estimate for OpenCV's LMEDS, which has no threshold. The median is the least error within which a model has
    enough of the pairs; the deviation of the inliers follows from it, and from that the threshold of the estimate. Enough
    are the pairs of a minimal sample, which always agree with its model, and half of the other pairs (Rousseeuw and Leroy
    1987, chapters 3 and 5). For a map, with which two wrong pairs rarely agree, fewer suffice: more than half of all
    pairs, and at least two more than a minimal sample. If no homography is found so, one or two fewer are tried, but
    always more than half of all pairs."""
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
    """The estimate of `_least_median` if `enough` pairs have to agree."""
    import numpy as np

    low, high, best = 1e-6 * extent, extent, None
    while high > _NEAR * low:
        threshold = math.sqrt(low * high)
        found = _robust(a, b, model, threshold, threshold, iterations, confidence, cameras)
        error = math.inf if found is None else float(np.sort(_errors(found, a, b))[enough - 1])
        # An error above the threshold also counts: this model reaches it.
        if error < high:
            high, best = error, found
        if not error <= threshold:
            low = threshold
    if best is None:
        return _least_median_of_plane(a, b, extent, iterations, confidence) if model == "fundamental" else None
    threshold = max(_WIDE * _DEVIATION * (1 + 5 / max(n - least, 1)) * high, 1e-6 * extent)
    # Points of a plane may give no epipolar geometry at this threshold.
    found = _robust(a, b, model, threshold, threshold, iterations, confidence, cameras)
    found = found or dataclasses.replace(best, inliers=_errors(best, a, b) <= threshold)
    # More than half of the pairs are wrong.
    return None if model == "homography" and threshold > 0.25 * extent else found


def _least_median_of_plane(a: Any, b: Any, extent: float, iterations: int, confidence: float) -> Estimate | None:
    """The epipolar geometry that all pairs agree with, or else those of a plane."""
    if found := _fit_to_all(a, b, "fundamental", _OF_EXTENT * extent):
        return found
    plane = _least_median(a, b, "homography", 4, iterations, confidence)
    near = plane is not None and _errors(plane, a, b)[plane.inliers].max() <= _OF_EXTENT * extent
    return _of_plane(a, b, plane) if near else None


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


def estimated(
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
    if found is None and model == "fundamental":
        return _of_plane(a, b, _robust(a, b, "homography", threshold, *options, false_alarms=_FALSE_ALARMS), threshold)
    # Pairs without a model at the given threshold are unrelated, and have none by any method.
    if found is None or made is None:
        return found
    # The wider threshold of the score may have found another model than that of the few inliers.
    wide = _widest(a, b, model, threshold) if score == _MAGSAC else _MSAC_WIDTH * threshold
    same = bool((_errors(made, a, b)[found.inliers] <= _SAME * wide).all())
    return made if same or _cost(made, a, b, wide) <= _cost(found, a, b, wide) else found


#: OpenCV's scores of models, by its methods. Squared errors are cut at the squared threshold by default, at a multiple of
#: it by MSAC; MAGSAC integrates over all deviations of the noise up to the greatest.
_MSAC, _MAGSAC = 1, 2
_SCORES = {USAC_MAGSAC: _MAGSAC} | dict.fromkeys((USAC_DEFAULT, USAC_PARALLEL, USAC_FM_8PTS, USAC_FAST, USAC_ACCURATE, USAC_PROSAC), _MSAC)
#: Up to this many thresholds an error counts by its square, as in OpenCV (9/4 of the squared threshold).
_MSAC_WIDTH = 1.5
#: The greatest error of an inlier for MAGSAC, in pixels, as in OpenCV; and its upper limit as a part of the extent of the
#: points, whose unit may not be pixels.
_WIDEST = {"homography": 8.0, "affine": 7.5, "similarity": 7.5, "fundamental": 2.5 * math.sqrt(2), "essential": 2.5}
_OF_EXTENT = 0.01
#: That error as a multiple of the deviation of the noise; 99 % of the errors in two directions are smaller.
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
