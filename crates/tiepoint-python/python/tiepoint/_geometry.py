"""Models between two images, their robust estimation, and warping."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from . import _core
from ._base import Result
from .errors import ModelError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._core import Device

    _Floats = npt.NDArray[np.float64]

__all__ = ["Estimate", "Model", "estimate", "fit", "warp"]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Model(Result):
    """A model that maps points of image A to image B, or to lines of it.

    Parameters
    ----------
    kind : {"homography", "affine", "similarity", "rigid", "translation", "fundamental", "essential"}
        What it is.
    matrix : array_like, (3, 3)
        Row-major; acts on columns (x, y, 1), with (0, 0) the centre of the first pixel. An essential matrix acts on rays
        ((u - cx) / fx, (v - cy) / fy, 1).
    cameras : tuple of array_like, (3, 3) each, optional
        The matrices K of A and B, which an essential matrix needs.
    """

    kind: str
    matrix: _Floats
    cameras: tuple[_Floats, _Floats] | None = None

    def __post_init__(self) -> None:
        import numpy as np

        matrix = np.array(self.matrix, dtype=np.float64)
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)
        # Refuses what is no such model.
        _core.invert(self._between_pixels())

    def _between_pixels(self) -> tuple[str, _Floats]:
        """Kind and matrix; of an essential matrix those of the fundamental matrix."""
        import numpy as np

        if self.kind != "essential":
            return self.kind, self.matrix
        if self.cameras is None:
            raise OptionError("option cameras is None: expected the matrices K of A and B, for an essential matrix")
        a, b = (np.linalg.inv(np.asarray(k, np.float64)) for k in self.cameras)
        return "fundamental", b.T @ self.matrix @ a

    def apply(self, xy: Any) -> _Floats:
        """Where points go.

        Parameters
        ----------
        xy : array_like, (N, 2)
            Points of A in pixels.

        Returns
        -------
        ndarray
            (N, 2) points of B, NaN beyond the horizon; of epipolar geometry (N, 3), the lines p x + q y + r = 0.
        """
        return _core.apply(self._between_pixels(), xy)

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
        return Model(*found)

    def residuals(self, xy_a: Any, xy_b: Any) -> _Floats:
        """How far pairs of points are from the model, (N,) in pixels: what `threshold` of `estimate` is compared with."""
        return _core.residuals(self._between_pixels(), xy_a, xy_b)

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

    @property
    def matrix(self) -> _Floats:
        """The matrix of the model, (3, 3)."""
        return self.model.matrix

    def apply(self, xy: Any) -> _Floats:
        """Where points go: `Model.apply`."""
        return self.model.apply(xy)

    def _summary(self) -> list[tuple[str, str]]:
        n = len(self.inliers)
        return [("model", self.model.kind), ("inliers", f"{int(self.inliers.sum())} of {n}"), ("rms", f"{self.rms:.3f} px")]


def named(model: Any) -> tuple[str, Any]:
    """Kind and matrix of a model, of an estimate, or of a matrix, which is a homography."""
    if isinstance(model, Estimate):
        model = model.model
    if not isinstance(model, Model):
        model = getattr(model, "model", model)
    return model._between_pixels() if isinstance(model, Model) else ("homography", model)


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
    xy_a: Any,
    xy_b: Any,
    model: str = "homography",
    *,
    threshold: float = 3.0,
    confidence: float = 0.9999,
    max_iterations: int = 50_000,
    false_alarms: float = 1e-6,
    seed: int = 0,
    quality: Any = None,
    cameras: tuple[Any, Any] | None = None,
    device: Device | str | None = None,
) -> Estimate:
    """Estimate the model that most pairs of points agree on (LO-RANSAC), as the least-squares fit to those that do.

    Parameters
    ----------
    xy_a, xy_b : array_like, (N, 2)
        Points that may show the same thing, in pixels.
    model : {"homography", "affine", "similarity", "rigid", "translation", "fundamental", "essential"}
        What relates them.
    threshold : float
        Largest residual of an inlier in pixels. The command calls it ``--inlier-distance``.
    confidence : float
        Stop when a better model would have been found with this probability.
    max_iterations : int
        Samples at most.
    false_alarms : float
        Refuse a model that chance explains more often than so many times in as many estimates.
    seed : int
        Seed of the sampler.
    quality : array_like, (N,), optional
        Better pairs are sampled earlier.
    cameras : tuple of array_like, (3, 3) each, optional
        The matrices K of A and B, which an essential matrix needs.
    device : Device or str, optional
        Whose threads compute.

    Returns
    -------
    Estimate
        The same for any number of threads.

    Raises
    ------
    ModelError
        When there are too few pairs, or they do not determine the model.
    """
    options = robust(threshold, confidence, max_iterations, false_alarms, seed)
    found, inliers, rms, iterations = _core.estimate(device, model, xy_a, xy_b, quality, cameras, options)
    return Estimate(Model(*found, _kept(model, cameras)), inliers, rms, iterations)


def fit(
    xy_a: Any,
    xy_b: Any,
    model: str = "homography",
    *,
    cameras: tuple[Any, Any] | None = None,
    device: Device | str | None = None,
) -> Estimate:
    """Fit a model to all pairs of points by least squares, with no regard to outliers.

    Parameters
    ----------
    xy_a, xy_b : array_like, (N, 2)
        Points that show the same thing, in pixels.
    model : {"homography", "affine", "similarity", "rigid", "translation", "fundamental", "essential"}
        What relates them.
    cameras : tuple of array_like, (3, 3) each, optional
        The matrices K of A and B, which an essential matrix needs.
    device : Device or str, optional
        Whose threads compute.

    Returns
    -------
    Estimate
        Every pair is an inlier, but for points that are not finite.

    Raises
    ------
    ModelError
        When there are too few pairs, or they do not determine the model.
    """
    found, inliers, rms, iterations = _core.estimate(device, model, xy_a, xy_b, None, cameras, None)
    return Estimate(Model(*found, _kept(model, cameras)), inliers, rms, iterations)


def _kept(kind: str, cameras: tuple[Any, Any] | None) -> tuple[_Floats, _Floats] | None:
    """The cameras that a model of this kind keeps."""
    import numpy as np

    if kind != "essential" or cameras is None:
        return None
    a, b = (np.array(k, np.float64) for k in cameras)
    return a, b


def warp(
    image: Any,
    model: Any,
    *,
    shape: tuple[int, ...] | None = None,
    interpolation: str = "bicubic",
    fill: float = 0.0,
    device: Device | str | None = None,
) -> Any:
    """Bring an image onto the pixels of another.

    Parameters
    ----------
    image : array_like, (H, W) or (H, W, C)
        ``uint8``, ``uint16`` or ``float32``. One on a CUDA device is warped there, and the result stays there.
    model : Model, Estimate or array_like
        From `image` to the output: a homography, affine map or similarity, or its (3, 3) matrix.
    shape : tuple of int, optional
        Rows and columns of the output; those of `image` if not given.
    interpolation : {"bilinear", "bicubic", "lanczos"}
        How values between pixels are made. ``"cubic"`` is another name of bicubic.
    fill : float
        What pixels without input get.
    device : Device or str, optional
        Where to compute; where `image` lies if not given.

    Returns
    -------
    ndarray or DeviceArray
        The image of that shape, of the input's type and channels.
    """
    if shape is None:
        shape = tuple(image.shape)
    if len(shape) < 2:
        raise OptionError(f"option shape is {shape}: expected rows and columns")
    size = (int(shape[1]), int(shape[0]))
    options = {"interpolation": interpolation, "fill": fill}
    return _core.warp(device, image, named(model), size, options)
