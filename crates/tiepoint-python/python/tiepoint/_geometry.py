"""Models between two images, their robust estimation, and warping."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from . import _arrays, _core
from ._base import Result
from .errors import ModelError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from collections.abc import Iterator

    from ._arrays import _Image
    from ._core import Device

    _Floats = npt.NDArray[np.float64]

    class _HasModel(Protocol):
        """A result with a model: a registration, tie points."""

        @property
        def model(self) -> Model | None: ...

    #: Anything that can stand for a model; a matrix of three rows is a homography, one of two rows an affine map.
    _ModelLike: TypeAlias = "Model | Estimate | _HasModel | npt.ArrayLike"

    #: The kinds of models.
    _ModelKind = Literal["homography", "affine", "similarity", "rigid", "translation", "fundamental", "essential"]

    #: How values between pixels are interpolated.
    _Interpolation = Literal["nearest", "bilinear", "bicubic", "cubic", "lanczos"]

__all__ = ["Estimate", "Model", "estimate", "fit", "warp"]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Model(Result):
    """A model that maps points of image A to image B, or to lines of it.

    Parameters
    ----------
    kind : {"homography", "affine", "similarity", "rigid", "translation", "fundamental", "essential"}
        The kind of model.
    matrix : array_like, (3, 3), or (2, 3) of an affine map
        Row-major; acts on columns (x, y, 1), with (0, 0) the centre of the first pixel. An essential matrix acts on rays
        ((u - cx) / fx, (v - cy) / fy, 1); of a matrix that is nearly one, such as K.T @ F @ K, the nearest is taken.
    cameras : tuple of array_like, (3, 3) each, optional
        The matrices K of A and B, which an essential matrix needs.
    """

    kind: _ModelKind
    matrix: _Floats
    cameras: tuple[_Floats, _Floats] | None = None

    def __post_init__(self) -> None:
        import numpy as np

        matrix = np.array(_arrays.matrix(self.matrix, "the matrix of the model"))
        if self.kind == "essential":
            object.__setattr__(self, "cameras", _pair(self.cameras))
            length = np.sqrt((matrix * matrix).sum())
            nearest = _core.essential(matrix, self.cameras)[0] * length  # type: ignore[arg-type]
            # One that is essential but for rounding keeps its bits.
            if not (abs(nearest - matrix) <= 1e-8 * length).all():
                matrix = nearest
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)
        # Refuses a matrix that is no such model.
        _core.invert(self._between_pixels())

    def _between_pixels(self) -> tuple[str, _Floats]:
        """Kind and matrix; for an essential matrix those of its fundamental matrix."""
        if self.kind != "essential":
            return self.kind, self.matrix
        return "fundamental", _core.essential(self.matrix, self.cameras)[1]  # type: ignore[arg-type]

    def apply(self, xy: npt.ArrayLike) -> _Floats:
        """Map points.

        Parameters
        ----------
        xy : array_like, (N, 2), (N, 1, 2) or (N, 3), or one point, (2,) or (3,)
            Points of A in pixels. Three values are homogeneous coordinates: a point at infinity has 0 as its last one,
            and a homography maps it to its vanishing point.

        Returns
        -------
        ndarray
            (N, 2) points of B, NaN at infinity and on the horizon; for epipolar geometry (N, 3), the lines p x + q y +
            r = 0. Of one point (2,) or (3,).
        """
        import numpy as np

        given = _arrays.array(xy, "xy")
        if given.shape in ((2,), (3,)):
            one: _Floats = self.apply(given[None])[0]
            return one
        model, of_a = self._between_pixels(), _arrays.homogeneous(given, "xy")
        found, far = _core.apply(model, _arrays.points(of_a, "xy")), of_a[:, 2] == 0
        if far.any() and found.shape[1] == 3:
            found[far] -= _core.apply(model, np.zeros((1, 2)))
        elif far.any():
            to = of_a[far] @ self.matrix.T
            found[far] = to[:, :2] / np.where(to[:, 2:] == 0, math.nan, to[:, 2:])
        return found

    def inverse(self) -> Model:
        """The model from B to A.

        Raises
        ------
        ModelError
            When it has none.
        """
        if self.kind == "essential" and self.cameras is not None:
            return Model(self.kind, self.matrix.T, self.cameras[::-1])
        found = _core.invert((self.kind, self.matrix))
        if found is None:
            raise ModelError("the model has no inverse")
        return Model(*found)  # type: ignore[arg-type]

    def __matmul__(self, first: Model) -> Model:
        """The model that maps points by `first`, then by this one: ``c_from_b @ b_from_a``. Its kind is the more general of
        the two."""
        if not isinstance(first, Model):
            return NotImplemented
        kinds = ("translation", "rigid", "similarity", "affine", "homography")
        for model in (self, first):
            if model.kind not in kinds:
                raise ModelError(f"the model is {model.kind}: expected two maps from points to points, to join them")
        kind: _ModelKind = max(self.kind, first.kind, key=kinds.index)
        return Model(kind, self.matrix @ first.matrix)

    def residuals(self, xy_a: npt.ArrayLike, xy_b: npt.ArrayLike) -> _Floats:
        """How far pairs of points are from the model, (N,) in pixels: what `threshold` of `estimate` is compared with.
        It is infinite where a point is at infinity or not finite."""
        return _core.residuals(self._between_pixels(), _places(xy_a, "xy_a"), _places(xy_b, "xy_b"))

    def pose(self, xy_a: npt.ArrayLike, xy_b: npt.ArrayLike) -> tuple[_Floats, _Floats]:
        """The pose of B's camera relative to A's, from an essential matrix.

        It is the one of the four decompositions (Horn, Recovering Baseline and Orientation from Essential Matrix, 1990)
        that puts most of these points in front of both cameras.

        Parameters
        ----------
        xy_a, xy_b : array_like, (N, 2)
            Pairs of points in pixels that agree with the model: its inliers.

        Returns
        -------
        R : ndarray
            (3, 3): a point X in A's camera is R X + t in B's.
        t : ndarray
            (3,), of length 1: the scale is not known.

        Raises
        ------
        ModelError
            When the model is no essential matrix, or no pair lies in front of both cameras.
        """
        from ._pose import pose

        if self.kind != "essential" or self.cameras is None:
            raise ModelError(f"the model is {self.kind}: expected an essential matrix, with its cameras, for a pose")
        # Fails for points that are not pairs; the residuals of points that are not finite are infinite.
        usable = self.residuals(xy_a, xy_b) < math.inf
        return pose(self.matrix, self.cameras, *(_places(xy, "the points")[usable] for xy in (xy_a, xy_b)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.array(self.matrix, dtype=dtype)

    def __repr__(self) -> str:
        rows = "; ".join(" ".join(f"{v:.6g}" for v in row) for row in self.matrix)
        return f"Model({self.kind}: {rows})"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Estimate(Result):
    """A model and the pairs that agree with it.

    Attributes
    ----------
    model : Model
        From A to B.
    inliers : ndarray
        (N,) bool: which pairs agree.
    rms : float
        Root mean square residual of the inliers in pixels.
    iterations : int
        Samples drawn.
    """

    model: Model
    inliers: npt.NDArray[np.bool_]
    rms: float
    iterations: int
    _pairs: Any = dataclasses.field(default=None, repr=False)

    def _fields(self) -> dict[str, Any]:
        return {name: value for name, value in super()._fields().items() if name != "_pairs"}

    def __iter__(self) -> Iterator[_Floats | npt.NDArray[np.bool_]]:
        """The matrix and the inliers: ``H, mask = estimate(…)``."""
        return iter((self.matrix, self.inliers))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.model.__array__(dtype, copy)

    def pose(self) -> tuple[_Floats, _Floats]:
        """The pose of B's camera relative to A's, from the inliers of an essential matrix: see `Model.pose`."""
        if self._pairs is None:
            raise ModelError("the estimate has no essential matrix: expected estimate(…, \"essential\", K=K)")
        a, b = self._pairs
        return self.model.pose(a[self.inliers], b[self.inliers])

    @property
    def matrix(self) -> _Floats:
        """The matrix of the model, (3, 3)."""
        return self.model.matrix

    def apply(self, xy: npt.ArrayLike) -> _Floats:
        """Map points: see `Model.apply`."""
        return self.model.apply(xy)

    def _summary(self) -> list[tuple[str, str]]:
        n = len(self.inliers)
        return [("model", self.model.kind), ("inliers", f"{int(self.inliers.sum())} of {n}"), ("rms", f"{self.rms:.3f} px")]


def _places(xy: Any, what: str) -> _Floats:
    """Points as (N, 2), NaN where homogeneous coordinates are those of a point at infinity."""
    return _arrays.points(xy, what, at_infinity=math.nan)


def _pair(cameras: Any) -> tuple[_Floats, _Floats]:
    """The matrices of two cameras."""
    given = tuple(cameras) if hasattr(cameras, "__iter__") else ()
    if len(given) != 2:
        told = f"holds {len(given)} parts" if given else f"is {cameras!r}"
        raise OptionError(f"option cameras {told}: expected the matrices of A and B, (K_a, K_b), for an essential matrix")
    a, b = (_arrays.matrix(k, "the matrix of a camera", affine=False) for k in given)
    return a, b


def named(model: Any) -> tuple[str, Any]:
    """Kind and matrix of a model, of an estimate, or of a matrix, which is a homography."""
    if isinstance(model, Estimate):
        model = model.model
    if not isinstance(model, Model):
        model = getattr(model, "model", model)
    if isinstance(model, Model):
        return model._between_pixels()
    matrix = _arrays.matrix(model, "the model")
    affine = _arrays.array(model, "the model").shape[0] == 2
    return "affine" if affine else "homography", matrix


def robust(
    threshold: float, confidence: float, max_iterations: int, false_alarms: float, seed: int
) -> dict[str, Any]:
    """The options of the robust estimation."""
    return {
        "threshold": threshold,
        "confidence": confidence,
        "max_iterations": max_iterations,
        "false_alarms": false_alarms,
        "seed": seed,
    }


def estimate(
    xy_a: npt.ArrayLike,
    xy_b: npt.ArrayLike,
    model: _ModelKind = "homography",
    *,
    threshold: float = 3.0,
    confidence: float = 0.9999,
    max_iterations: int = 50_000,
    false_alarms: float = 1e-6,
    seed: int = 0,
    quality: npt.ArrayLike | None = None,
    cameras: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    K: npt.ArrayLike | None = None,  # noqa: N803
    device: Device | str | None = None,
) -> Estimate:
    """Estimate the model that most pairs of points agree on (LO-RANSAC).

    It is the least-squares fit to its inliers or, where most of these lie much nearer than the threshold, a fit with
    weights that fall with the residual. The error of a homography counts in both images, as in `Model.residuals`; affine
    maps, similarities and simpler ones are the best fit in B, too. An essential matrix of points on one plane has two
    solutions, of which one is given.

    Parameters
    ----------
    xy_a, xy_b : array_like, (N, 2), (N, 1, 2) or (N, 3)
        Points that may show the same thing, in pixels; three values are homogeneous coordinates. Pairs with a point at
        infinity or with coordinates that are not finite are left out.
    model : {"homography", "affine", "similarity", "rigid", "translation", "fundamental", "essential"}
        The kind of model.
    threshold : float
        Largest residual of an inlier in the unit of the points: pixels, or, of an essential matrix of normalised
        coordinates with K = I, focal lengths (1 / 800 is one pixel at a focal length of 800). The residual is the harmonic
        mean of the errors in both images, near the smaller one: if A has another unit than B, as squares of a board, first
        multiply its points. The command calls it ``--inlier-distance``.
    confidence : float
        Stop when a better model would have been found with this probability.
    max_iterations : int
        The most samples, rounded up to a multiple of 64. An error says if they ran out: if few pairs are right, more may find them.
    false_alarms : float
        Refuse a model if wrong matches alone are expected to give more than this many models as good as it. Four exact
        pairs are refused for a homography, because any four pairs fit one: use `fit` for pairs that are known to be
        right. ``inf`` accepts every model, also the essential matrix of a camera that only turned.
    seed : int
        Seed of the sampler.
    quality : array_like, (N,), optional
        The quality of each pair: the higher, the earlier it is sampled.
    cameras : tuple of array_like, (3, 3) each, optional
        The matrices K of A and B, which an essential matrix needs. They know no lens distortion: undo it first, with
        OpenCV by ``cv2.undistortPoints(points, K, distortion, P=K)``.
    K : array_like, (3, 3), optional
        The matrix of one camera that took both, in place of `cameras`.
    device : Device or str, optional
        The device whose threads compute.

    Returns
    -------
    Estimate
        The same for any number of threads.

    Raises
    ------
    ModelError
        When there are too few pairs, or they do not determine the model, as those of a plane for a fundamental matrix, and
        of a camera that only turned for an essential matrix, too.
    """
    options = robust(threshold, confidence, max_iterations, false_alarms, seed)
    return _estimated(xy_a, xy_b, model, quality, cameras, K, options, device)


def fit(
    xy_a: npt.ArrayLike,
    xy_b: npt.ArrayLike,
    model: _ModelKind = "homography",
    *,
    cameras: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    K: npt.ArrayLike | None = None,  # noqa: N803
    device: Device | str | None = None,
) -> Estimate:
    """Fit a model to all pairs of points by least squares; outliers count like other pairs.

    The error of a homography counts in both images, so the fit differs a little from that of ``cv2.findHomography``, which
    is the best in B alone. Affine maps, similarities and simpler ones are the best fit in B, too.

    Parameters
    ----------
    xy_a, xy_b : array_like, (N, 2), (N, 1, 2) or (N, 3)
        Points that show the same thing, in pixels; three values are homogeneous coordinates.
    model : {"homography", "affine", "similarity", "rigid", "translation", "fundamental", "essential"}
        The kind of model.
    cameras : tuple of array_like, (3, 3) each, optional
        The matrices K of A and B, which an essential matrix needs. They know no lens distortion: undo it first, with
        OpenCV by ``cv2.undistortPoints(points, K, distortion, P=K)``.
    K : array_like, (3, 3), optional
        The matrix of one camera that took both, in place of `cameras`.
    device : Device or str, optional
        The device whose threads compute.

    Returns
    -------
    Estimate
        Every pair is an inlier, except those with a point at infinity or coordinates that are not finite, and those
        that the best homography puts on or beyond its horizon.

    Raises
    ------
    ModelError
        When there are too few pairs, or they do not determine the model: a plane determines no fundamental matrix, and a
        camera that only turned no essential matrix, to three times the root mean square of the residuals.
    """
    return _estimated(xy_a, xy_b, model, None, cameras, K, None, device)


def fit_any(
    xy_a: npt.ArrayLike,
    xy_b: npt.ArrayLike,
    model: _ModelKind,
    cameras: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> Estimate:
    """`fit`, but one of the many epipolar geometries with which points of a plane, or of a camera that only turned, agree."""
    return _estimated(xy_a, xy_b, model, None, cameras, None, {"false_alarms": math.inf}, None)


def kind(model: Any) -> Any:
    """The kind of model, the third argument of a function; fails for anything but a name."""
    if model is None or isinstance(model, str):
        return model
    raise OptionError(
        f"option model is of the type {type(model).__name__}: expected a name, such as 'homography'; cameras, masks and "
        "thresholds are given by name, such as threshold=3.0"
    )


def _estimated(
    xy_a: Any, xy_b: Any, model: Any, quality: Any, cameras: Any, camera: Any, options: Any, device: Any
) -> Estimate:
    """The estimate; without a threshold among the options the least-squares fit."""
    essential = kind(model) == "essential"
    if camera is not None:
        if cameras is not None:
            raise OptionError("option K is the camera of both images: give it or cameras")
        cameras = (camera, camera)
    if cameras is not None:
        cameras = _pair(cameras)
    elif essential:
        raise OptionError("an essential matrix needs the cameras: expected K, the matrix (3, 3) of both, or cameras=(K_a, K_b)")
    a, b = _places(xy_a, "xy_a"), _places(xy_b, "xy_b")
    try:
        found, inliers, rms, iterations = _core.estimate(device, model, a, b, quality, cameras, options)
    except ModelError as error:
        focal = min(min(k[0, 0], k[1, 1]) for k in cameras) if essential else math.inf
        if options is None or options.get("threshold", 0) < 0.1 * focal:
            raise
        raise ModelError(
            f"{error}; the threshold {options['threshold']:g} is {options['threshold'] / focal:.2g} focal lengths: points of "
            "normalised coordinates need one below 0.01"
        ) from None
    made = Model(*found, cameras if essential else None)  # type: ignore[arg-type]
    return Estimate(made, inliers, rms, iterations, (a, b) if essential else None)


def warp(
    image: _Image,
    model: _ModelLike,
    *,
    shape: tuple[int, ...] | None = None,
    interpolation: _Interpolation = "bicubic",
    fill: float = 0.0,
    device: Device | str | None = None,
) -> npt.NDArray[Any]:
    """Warp an image onto the pixels of another.

    Parameters
    ----------
    image : array_like, (H, W) or (H, W, C)
        ``uint8``, ``uint16`` or ``float32``; truth values become ``uint8``, other numbers ``float32``: a warning
        says if that rounds whole numbers beyond 2²⁴. One on a CUDA device is warped there, and the result stays there.
    model : Model, Estimate or array_like
        From `image` to the output: a homography, affine map or similarity, or the (3, 3) or (2, 3) matrix of one.
    shape : tuple of int, optional
        Rows and columns of the output; those of `image` if not given.
    interpolation : {"nearest", "bilinear", "bicubic", "lanczos"}
        How values between pixels are interpolated; nearest for classes and labels. ``"cubic"`` is another name of bicubic.
    fill : float
        The value of pixels without input.
    device : Device or str, optional
        Where to compute; where `image` lies if not given.

    Returns
    -------
    ndarray or DeviceArray
        An image of that shape, with the input's channels, and its type if that is one of those three.
    """
    pixels: Any = image if hasattr(image, "shape") else _arrays.image(image, "the image")
    if shape is None:
        shape = tuple(pixels.shape)
    try:
        height, width = (operator.index(side) for side in shape[:2])
    except (TypeError, ValueError):
        height = width = -1
    if min(height, width) < 0:
        raise OptionError(f"option shape is {shape}: expected rows and columns")
    size = (width, height)
    options = {"interpolation": interpolation, "fill": fill}
    found: npt.NDArray[Any] = _arrays.like(_core.warp(device, pixels, named(model), size, options), pixels)
    return found
