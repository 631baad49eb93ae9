"""Matching: nearest neighbours, matches, and tie points that a model verifies."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from . import _core
from ._base import Result
from ._features import check_places, check_unit
from ._geometry import Model, kind, named, robust
from ._options import RematchOptions
from .errors import MismatchError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt
    from pandas import DataFrame as _DataFrame  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from typing_extensions import Self

    from ._assess import Reason, _Verdict
    from ._core import Device, Features
    from ._geometry import _ModelLike

    #: A choice of rows: an index, a slice, indices, or a mask.
    _Rows = int | slice | Sequence[int] | Sequence[bool] | npt.NDArray[Any]

    #: The models that tie points are verified by.
    _VerifiedBy = Literal["homography", "affine", "similarity", "rigid", "translation", "fundamental"]

__all__ = ["Matches", "Rematch", "TiePoints", "match", "nearest", "tie_points"]


class Rows(Result):
    """Matches, one a row. As an array they are their pairs, (M, 2)."""

    #: The arrays with a row for each match.
    _columns: ClassVar[tuple[str, ...]]
    pairs: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, rows: _Rows) -> Self:
        """Some of the matches: by an index, a slice, indices, or a mask; on the host."""
        import numpy as np

        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            if rows.dtype == bool and rows.shape != (len(self),):
                raise MismatchError(f"the mask has the shape {rows.shape}: expected ({len(self)},), as there are matches")
            if rows.ndim > 1 or rows.dtype == np.uint8 and 0 < rows.size == len(self) and rows.max() <= 1:
                raise MismatchError(
                    f"the index has the shape {rows.shape} and the type {rows.dtype}: expected one dimension of indices or of bool; "
                    "a mask of numbers, as OpenCV has them, becomes one by .ravel().astype(bool)"
                )
            if rows.size == 0 and rows.dtype != bool:
                rows = rows.astype(np.int64)
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        columns = {name: np.asarray(getattr(self, name))[chosen] for name in self._columns}
        return dataclasses.replace(self, **columns)  # type: ignore[type-var]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.array(self.pairs, dtype=dtype)

    def _features(self) -> tuple[Features, Features] | None:
        """The features of both images, if they are known."""
        return None

    def _summary(self) -> list[tuple[str, str]]:
        return [("matches", str(len(self)))]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Matches(Rows):
    """Pairs of features of A and B that show the same thing, in the order of A.

    If the features of both images are on a GPU, their matches stay there: each array is a `DeviceArray`.

    Attributes
    ----------
    pairs : ndarray or DeviceArray
        (M, 2) int64: indices of the features in A and in B.
    distance : ndarray or DeviceArray
        (M,) float32: Euclidean distances of descriptors as `Features.unit` gives them; 0 to 2, if their length is 1.
    ratio : ndarray or DeviceArray
        (M,) float32: distance divided by that of the second nearest; the smaller, the more distinct.
    """

    _columns = ("pairs", "distance", "ratio")
    # To type checkers they are arrays of NumPy.
    pairs: npt.NDArray[np.int64]
    distance: npt.NDArray[np.float32]
    ratio: npt.NDArray[np.float32]

    def to_pandas(self) -> _DataFrame:
        """A ``pandas.DataFrame`` with a row for each match: a, b, distance, ratio."""
        return _frame(self, {})


class Rematch(RematchOptions):
    """The second search, near the places that the model predicts."""


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TiePoints(Rows):
    """All matches of two images, and which of them are tie points: those that a model confirms, `inliers`. Some of them,
    as ``tie[tie.inliers]``, have the same model.

    Attributes
    ----------
    a, b : Features
        The features of both images.
    pairs : ndarray
        (M, 2) int64: indices of the features in A and in B, of all matches.
    distance, ratio : ndarray
        (M,) float32, as in `Matches`.
    inliers : ndarray
        (M,) bool: which matches agree with the model; all of them if there is no model.
    model : Model or None
        From A to B.
    rms : float
        Root mean square residual of the inliers in pixels.
    iterations : int
        Samples that the estimation drew.
    verdict : str or None
        ``"good"``, ``"doubtful"`` or ``"poor"``, of the model with all of its tie points; None without a model.
    reasons : list of dict
        What was measured, the worst first: ``measure``, ``value``, ``expected``, ``verdict``, ``text``, and ``next``, what
        to do about it, or None.
    views : int
        Simulated views of each image that were matched; 1: the images themselves.
    modality : str
        ``"same"`` by features, ``"cross"`` by structure, as images of different sensors.
    """

    _columns = ("pairs", "distance", "ratio", "inliers")
    a: Features
    b: Features
    pairs: npt.NDArray[np.int64]
    distance: npt.NDArray[np.float32]
    ratio: npt.NDArray[np.float32]
    inliers: npt.NDArray[np.bool_]
    model: Model | None
    rms: float
    iterations: int
    verdict: _Verdict | None = None
    reasons: list[Reason] = dataclasses.field(default_factory=list)
    views: int = 1
    modality: Literal["same", "cross"] = "same"

    @property
    def xy_a(self) -> npt.NDArray[np.float32]:
        """Places of all matches in A, (M, 2); ``tie.xy_a[tie.inliers]`` are those of the tie points."""
        return self.a.to("cpu").xy[self.pairs[:, 0]]

    @property
    def xy_b(self) -> npt.NDArray[np.float32]:
        """Places of all matches in B, (M, 2)."""
        return self.b.to("cpu").xy[self.pairs[:, 1]]

    def _features(self) -> tuple[Features, Features]:
        return self.a, self.b

    def to_pandas(self) -> _DataFrame:
        """A ``pandas.DataFrame`` with a row for each match: a, b, distance, ratio, inlier, and the places in both images."""
        (xa, ya), (xb, yb) = self.xy_a.T, self.xy_b.T
        return _frame(self, {"inlier": self.inliers, "x_a": xa, "y_a": ya, "x_b": xb, "y_b": yb})

    def _summary(self) -> list[tuple[str, str]]:
        told = [("features", f"{len(self.a)} and {len(self.b)}"), ("matches", str(len(self)))]
        if self.model is None:
            return told
        return [*told, ("inliers", str(int(self.inliers.sum()))), ("model", self.model.kind), ("rms", f"{self.rms:.3f} px"), ("verdict", str(self.verdict))]

    def _picture(self) -> Any:
        from ._draw import small

        return small(self) if len(self) else None


def _frame(matches: Any, further: dict[str, Any]) -> _DataFrame:
    """A table of pandas, which must be installed."""
    import numpy as np
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]

    a, b = np.asarray(matches.pairs).T
    columns = {"a": a, "b": b, "distance": np.asarray(matches.distance), "ratio": np.asarray(matches.ratio)}
    return pandas.DataFrame({**columns, **further})


def tied(a: Features, b: Features, found: dict[str, Any]) -> TiePoints:
    """Tie points from the result of the compiled half."""
    model = found["model"]
    return TiePoints(a, b, **{**found, "model": None if model is None else Model(*model)})


def matching(ratio: float | None, mutual: bool, same_sign: bool, max_distance: float | None) -> dict[str, Any]:
    """The options of matching."""
    return {"ratio": ratio, "mutual": mutual, "same_sign": same_sign, "max_distance": max_distance}


def second(rematch: Any) -> dict[str, Any] | None:
    """The options of the second search."""
    if not isinstance(rematch, (RematchOptions, type(None))):
        raise OptionError(f"option rematch is {rematch!r}: expected a Rematch, such as tiepoint.Rematch(), or None")
    return None if rematch is None else rematch._given()


def _checked(a: Any, b: Any, max_distance: float | None = None) -> tuple[Features, Features]:
    """Both sides of a matching: places inside of their images and, for a largest distance, unit vectors."""
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, _core.Features):
            raise TypeError(
                f"{name} is of the type {type(given).__name__}: expected Features, as Sift().detect(image) gives them; "
                "Features.from_arrays makes them from another program's keypoints and descriptors"
            )
        check_places(given)
        if max_distance is not None:
            check_unit(given, "max_distance needs (without it they may have any length)")
    return a, b


def nearest(
    a: Features, b: Features, *, device: Device | str | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Find the two nearest neighbours in B of every feature of A; exact.

    Parameters
    ----------
    a, b : Features
        Features with descriptors of one kind. Those on a GPU are read there; if both are, the result stays there.
    device : Device or str, optional
        Where to compute; where `a` or `b` lies if not given.

    Returns
    -------
    index : ndarray or DeviceArray
        (N,) int64: the nearest; −1 where there is none.
    distance : ndarray or DeviceArray
        (N,) float32: its Euclidean distance, between descriptors as `Features.unit` gives them: 0 to 2, if their length
        is 1; infinite where there is none.
    second : ndarray or DeviceArray
        (N,) float32: that of the second nearest; infinite where there is none.

    Raises
    ------
    ImageError
        When features lie outside of their image.
    """
    index, distance, second = _core.nearest(device, *_checked(a, b))
    return index, distance, second


def match(
    a: Features,
    b: Features,
    *,
    ratio: float | None = 0.8,
    mutual: bool = True,
    same_sign: bool = True,
    max_distance: float | None = None,
    guide: _ModelLike | None = None,
    radius: float = 6.0,
    device: Device | str | None = None,
) -> Matches:
    """Match the features of two images.

    Parameters
    ----------
    a, b : Features
        Features with descriptors of one kind.
    ratio : float, optional
        Keep a match when its distance is below this share of the second nearest's (Lowe 2004); None keeps all.
    mutual : bool
        Keep a match only when each is the other's nearest. The command's ``--one-way`` is ``mutual=False``.
    same_sign : bool
        Compare bright on dark with bright on dark only, unless a feature of either image has no known sign. The command's
        ``--any-sign`` is ``same_sign=False``.
    max_distance : float, optional
        Largest distance of descriptors, which then must be unit vectors (at most 2 apart).
    guide : Model, Estimate or array_like, optional
        A model from A to B: only features near what it predicts are compared.
    radius : float
        How near, in pixels of B; only with `guide`.
    device : Device or str, optional
        Where to compute; where `a` or `b` lies if not given.

    Returns
    -------
    Matches
        In the order of A; on the GPU if both `a` and `b` are on it.

    Raises
    ------
    ImageError
        When features lie outside of their image, or when descriptors are not unit vectors and `max_distance` is given.
    """
    near = None if guide is None else (named(guide), radius)
    options = matching(ratio, mutual, same_sign, max_distance)
    return Matches(*_core.match_features(device, *_checked(a, b, max_distance), options, near))


def tie_points(
    a: Features,
    b: Features,
    model: _VerifiedBy | None = "homography",
    *,
    ratio: float | None = 0.8,
    mutual: bool = True,
    same_sign: bool = True,
    max_distance: float | None = None,
    threshold: float = 3.0,
    confidence: float = 0.9999,
    max_iterations: int = 50_000,
    false_alarms: float = 1e-6,
    seed: int = 0,
    rematch: Rematch | None = Rematch(),  # noqa: B008
    device: Device | str | None = None,
) -> TiePoints:
    """Match features, estimate the model they agree on, and match again near what it predicts.

    Parameters
    ----------
    a, b : Features
        Features with descriptors of one kind. If one is on a GPU, both are searched there; places and matches are
        copied to the host, where the model is estimated.
    model : {"homography", "affine", "similarity", "rigid", "translation", "fundamental"} or None
        What relates the images; None leaves the matches unverified.
    ratio, mutual, same_sign, max_distance
        The first matching, as in `match`.
    threshold, confidence, max_iterations, false_alarms, seed
        The estimation, as in `estimate`.
    rematch : Rematch or None
        The second search; None leaves it out.
    device : Device or str, optional
        Where to compute; where `a` or `b` lies if not given.

    Returns
    -------
    TiePoints
        The same as the command ``match`` finds. The arrays are NumPy's, wherever the features are.

    Raises
    ------
    ModelError
        When too few matches agree.
    ImageError
        As `match`.
    """
    options = matching(ratio, mutual, same_sign, max_distance)
    estimation = robust(threshold, confidence, max_iterations, false_alarms, seed)
    again = second(rematch)
    if kind(model) == "essential":
        raise OptionError("option model is essential, which needs cameras: expected fundamental, and then estimate(…, \"essential\", K=K)")
    return tied(a, b, _core.tie_points(device, *_checked(a, b, max_distance), model, options, estimation, again))
