"""`BFMatcher` and `FlannBasedMatcher`: exact neighbours behind OpenCV's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _arrays, _core
from .._matching import match, nearest
from ..errors import ImageError, MismatchError, OptionError
from ._objects import classes
from ._own import Algorithm, host, needed, opencv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt
    from cv2 import DMatch  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from typing_extensions import Self

    from .._core import Features

    _Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]

NORM_L2 = 4
NORM_L2SQR = 5

#: FLANN's index of hashes, for bits.
_LSH = 6

#: The number of rows whose distances are computed together.
_TOGETHER = 1024


def table(descriptors: Any, what: str) -> npt.NDArray[Any]:
    """Descriptors (N, D), or one (D,); an empty table for None."""
    import numpy as np

    if descriptors is None:
        return np.zeros((0, 1), np.float32)
    found = _arrays.array(host(descriptors), what)
    if found.ndim == 1 and len(found):
        found = found[None]
    if found.ndim != 2:
        raise ImageError(f"{what} have the shape {found.shape}: expected (N, D)")
    return found


def _is_number(given: Any) -> bool:
    """Whether an argument is a number, which stands where OpenCV's other form has descriptors."""
    import numpy as np

    return isinstance(given, (int, float, np.integer, np.floating))


def _are_masks(given: Any) -> bool:
    """Whether an argument is a list of masks, which stands where OpenCV's other form has descriptors."""
    import numpy as np

    return isinstance(given, (list, tuple)) and all(one is None or np.ndim(one) == 2 for one in given)


def _bytes(table: npt.NDArray[Any]) -> bool:
    """Whether descriptors are whole numbers from 0 to 255."""
    import numpy as np

    if table.dtype == np.uint8:
        return True
    return bool((0 <= table).all() and (table <= 255).all() and (table == np.rint(table)).all())


class DescriptorMatcher(Algorithm):
    """`cv2.DescriptorMatcher` of Euclidean distances; exact, and the same every time."""

    _name = "my_object"
    FLANNBASED, BRUTEFORCE, BRUTEFORCE_L1, BRUTEFORCE_HAMMING, BRUTEFORCE_HAMMINGLUT, BRUTEFORCE_SL2 = range(1, 7)

    def __init__(self, given: dict[str, Any], *, squared: bool = False, cross: bool = False, device: Any = None) -> None:
        super().__init__(given)
        self._squared, self._cross, self._device = squared, cross, device
        self._trained: list[npt.NDArray[Any]] = []

    @classmethod
    def create(cls, matcherType: str | int) -> DescriptorMatcher:  # noqa: N803
        """`cv2.DescriptorMatcher.create`: for Euclidean distances this package's, for any other OpenCV's."""
        kind = DescriptorMatcher
        if matcherType in ("BruteForce", kind.BRUTEFORCE):
            return BFMatcher()
        if matcherType in ("BruteForce-SL2", kind.BRUTEFORCE_SL2):
            return BFMatcher(NORM_L2SQR)
        if matcherType in ("FlannBased", kind.FLANNBASED):
            return FlannBasedMatcher()
        theirs: DescriptorMatcher = needed(f"the matcher {matcherType!r}").DescriptorMatcher_create(matcherType)
        return theirs

    def add(self, descriptors: Any) -> None:
        """Adds descriptors to search in: a list of arrays (N, D), one for each image."""
        some = descriptors if isinstance(descriptors, (list, tuple)) else [descriptors]
        self._trained += [table(one, "descriptors") for one in some]

    def train(self) -> None:
        """Does nothing: the search needs no index."""

    def clear(self) -> None:
        """Forgets the descriptors that were added."""
        self._trained = []

    def empty(self) -> bool:
        """Whether nothing was added."""
        return not self._trained

    def getTrainDescriptors(self) -> tuple[npt.NDArray[Any], ...]:  # noqa: N802
        """The descriptors that were added."""
        return tuple(self._trained)

    def isMaskSupported(self) -> bool:  # noqa: N802
        """Masks are supported."""
        return True

    def clone(self, emptyTrainData: bool = False) -> Self:  # noqa: N803
        """A copy with the same parameters and, unless `emptyTrainData`, the same descriptors."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__, _trained=[] if emptyTrainData else list(self._trained))
        return made

    def match(
        self, queryDescriptors: Any, trainDescriptors: Any = None, mask: Any = None, *, masks: Any = None  # noqa: N803
    ) -> tuple[DMatch, ...]:
        """The nearest neighbour of each descriptor; without `trainDescriptors` among those added by `add`, with `masks`."""
        if _are_masks(trainDescriptors):
            trainDescriptors, masks = None, trainDescriptors  # noqa: N806
        mask = masks if mask is None else mask
        if trainDescriptors is not None and mask is None and not isinstance(mask, (list, tuple)):
            if (found := self._paired(queryDescriptors, trainDescriptors)) is not None:
                return found
        rows = self._search(queryDescriptors, trainDescriptors, 1, mask)
        return tuple(row[0] for row in rows if row)

    def knnMatch(  # noqa: N802
        self,
        queryDescriptors: Any,  # noqa: N803
        trainDescriptors: Any = None,  # noqa: N803
        k: int = 2,
        mask: Any = None,
        compactResult: bool = False,  # noqa: N803
        *,
        masks: Any = None,
    ) -> tuple[tuple[DMatch, ...], ...]:
        """The nearest `k` of each, the nearest first; without `trainDescriptors` among the descriptors added by `add`, with
        `masks` and in the order k, masks, compactResult."""
        if _is_number(trainDescriptors):
            masks = k if isinstance(k, (list, tuple)) else masks
            trainDescriptors, k, mask, compactResult = None, trainDescriptors, None, mask is True or compactResult  # noqa: N806
        mask = masks if mask is None else mask
        if k < 1:
            raise OptionError(f"option k is {k}: expected at least 1")
        if self._cross and k != 1:
            raise OptionError(f"option k is {k}: expected 1 with crossCheck")
        rows = self._search(queryDescriptors, trainDescriptors, k, mask)
        return tuple(row for row in rows if row or not compactResult)

    def radiusMatch(  # noqa: N802
        self,
        queryDescriptors: Any,  # noqa: N803
        trainDescriptors: Any = None,  # noqa: N803
        maxDistance: float = 0.0,  # noqa: N803
        mask: Any = None,
        compactResult: bool = False,  # noqa: N803
        *,
        masks: Any = None,
    ) -> tuple[tuple[DMatch, ...], ...]:
        """All neighbours of each within a distance, the nearest first; without `trainDescriptors` as `knnMatch`.
        `compactResult` has no effect, as in OpenCV: there is a tuple, maybe empty, for each descriptor."""
        if _is_number(trainDescriptors):
            masks = maxDistance if isinstance(maxDistance, (list, tuple)) else masks
            trainDescriptors, maxDistance, mask = None, trainDescriptors, None  # noqa: N806
        mask = masks if mask is None else mask
        if self._cross:
            raise OptionError("option crossCheck is True: expected False for radiusMatch")
        return tuple(self._search(queryDescriptors, trainDescriptors, None, mask, maxDistance))

    def _sides(self, query: Any, train: Any) -> tuple[npt.NDArray[Any], list[npt.NDArray[Any]]]:
        a = table(query, "queryDescriptors")
        several = self._trained if train is None else [table(train, "trainDescriptors")]
        for b in several:
            if len(a) and len(b) and a.shape[1] != b.shape[1]:
                raise MismatchError(f"descriptors have {a.shape[1]} and {b.shape[1]} values: expected as many of both")
        return a, several

    def _paired(self, query: Any, train: Any) -> tuple[Any, ...] | None:
        """The matches of `match`, without a table of all distances; None if a value is not a number."""
        a, [b] = self._sides(query, train)
        if len(a) == 0 or len(b) == 0:
            return ()
        if (both := _features(a, b)) is None:
            return None
        u, v, unit = both
        found = match(u, v, ratio=None, mutual=self._cross, same_sign=False, device=self._device)
        distance = self._told(found.distance * unit)
        made = classes()[1]
        i, j = found.pairs.T.tolist()
        return tuple(map(made, i, j, [0] * len(i), distance.tolist()))

    def _told(self, distance: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return distance * distance if self._squared else distance

    def _search(self, query: Any, train: Any, k: int | None, mask: Any, radius: float = 0.0) -> list[tuple[Any, ...]]:
        """The neighbours of each query descriptor, in one image or in all that were added."""
        import numpy as np

        a, several = self._sides(query, train)
        if not several:
            return []
        masks = list(mask) if isinstance(mask, (list, tuple)) else [mask] * len(several)
        if len(masks) != len(several):
            raise MismatchError(f"there are {len(masks)} masks for {len(several)} images: expected one each")
        for image, (b, one) in enumerate(zip(several, masks, strict=False)):
            if one is not None and np.shape(one) != (len(a), len(b)):
                raise MismatchError(f"mask {image} has the shape {np.shape(one)}: expected {(len(a), len(b))}")
        made = classes()[1]
        found: list[list[tuple[float, int, int]]] = [[] for _ in range(len(a))]
        for image, (b, one) in enumerate(zip(several, masks, strict=False)):
            if len(a) == 0 or len(b) == 0:
                continue
            for i, (index, distance) in enumerate(self._neighbours(a, b, k, one, radius)):
                found[i] += zip(distance.tolist(), [image] * len(index), index.tolist(), strict=True)
        several_images = len(several) > 1
        rows = []
        for i, row in enumerate(found):
            if several_images:
                row = sorted(row)[:k]
            rows.append(tuple(made(i, j, image, distance) for distance, image, j in row))
        return rows

    def _neighbours(
        self, a: npt.NDArray[Any], b: npt.NDArray[Any], k: int | None, mask: Any, radius: float
    ) -> Iterator[_Rows]:
        """Indices and distances of each row's neighbours, the nearest first; equally near ones by their index."""
        import numpy as np

        back = None
        if self._cross:
            back = [int(index[0]) if len(index) else -1 for index, _ in _ranked(b, a, 1, None if mask is None else np.asarray(mask).T)]
        for i, (index, distance) in enumerate(_ranked(a, b, k, mask, self._device)):
            distance = self._told(distance)
            keep = slice(None) if k is not None else distance <= np.float32(radius)
            index, distance = index[keep], distance[keep]
            if back is not None and (len(index) == 0 or back[index[0]] != i):
                index, distance = index[:0], distance[:0]
            yield index, distance


def _features(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> tuple[Features, Features, float] | None:
    """Both sides as features of one kind, and the factor of their distances; None if there is a NaN."""
    import numpy as np

    whole = _bytes(a) and _bytes(b)
    kind = np.uint8 if whole else np.float32
    if not whole and not all(np.isfinite(side).all() for side in (a, b)):
        return None
    u, v = (
        _core.Features.from_arrays(xy=np.zeros((len(side), 2), np.float32), descriptors=np.ascontiguousarray(side, kind))
        for side in (a, b)
    )
    return u, v, 512.0 if whole else 1.0


def _ranked(
    a: npt.NDArray[Any], b: npt.NDArray[Any], k: int | None, mask: Any, device: Any = None
) -> Iterator[_Rows]:
    """The nearest `k` of each row of A in B, or all of them."""
    import numpy as np

    both = _features(a, b) if k in (1, 2) and mask is None else None
    first = distance = None
    if both is not None:
        index, near, _ = nearest(both[0], both[1], device=device)
        first, distance = index, near * np.float32(both[2])
        if k == 1 or len(b) == 1:
            yield from zip(first[:, None], distance[:, None], strict=True)
            return
    u, v = (np.ascontiguousarray(side, np.float32) for side in (a, b))
    squared = (v * v).sum(1)
    count = len(b) if k is None else min(k, len(b))
    allowed = None if mask is None else np.asarray(mask) != 0
    for start in range(0, len(a), _TOGETHER):
        rows = slice(start, start + _TOGETHER)
        far = (u[rows] * u[rows]).sum(1)[:, None] + squared[None] - 2 * (u[rows] @ v.T)
        np.maximum(far, 0, out=far)
        far[~np.isfinite(far)] = np.inf
        if allowed is not None:
            far[~allowed[rows]] = np.inf
        if first is not None and distance is not None:
            # The nearest is known; the second nearest is found by leaving it out.
            far[np.arange(len(far)), first[rows]] = np.inf
            second = far.argmin(1)
            away = np.sqrt(far.min(1))
            yield from zip(np.stack([first[rows], second], 1), np.stack([distance[rows], away], 1), strict=True)
            continue
        order = np.argsort(far, axis=1, kind="stable")[:, :count]
        near = np.sqrt(np.take_along_axis(far, order, 1))
        for index, away in zip(order, near, strict=True):
            there = np.isfinite(away)
            yield index[there], away[there]


class BFMatcher(DescriptorMatcher):
    """`cv2.BFMatcher` of Euclidean distances. For any other norm it is OpenCV's own, if that is installed.

    Parameters
    ----------
    normType : int
        `NORM_L2`, or `NORM_L2SQR` for squared distances.
    crossCheck : bool
        Keep a match only when each is the other's nearest.
    device : Device or str, optional
        Where to compute.
    """

    def __new__(cls, normType: int = NORM_L2, crossCheck: bool = False, *, device: Any = None) -> Self:  # noqa: N803
        if normType in (NORM_L2, NORM_L2SQR):
            return super().__new__(cls)
        expected = f"expected NORM_L2, {NORM_L2}, or NORM_L2SQR, {NORM_L2SQR}"
        if device is not None:
            raise OptionError(f"option normType is {normType}: with a device {expected}")
        if (theirs := opencv()) is None:
            raise OptionError(f"option normType is {normType}: {expected}; other norms need OpenCV")
        made: Self = theirs.BFMatcher(normType, crossCheck)
        return made

    def __init__(self, normType: int = NORM_L2, crossCheck: bool = False, *, device: Any = None) -> None:  # noqa: N803
        given = {"normType": normType, "crossCheck": crossCheck}
        super().__init__(given, squared=normType == NORM_L2SQR, cross=bool(crossCheck), device=device)

    @classmethod
    def create(cls, normType: Any = NORM_L2, crossCheck: bool = False) -> Self:  # noqa: N803
        """`cv2.BFMatcher_create`."""
        return cls(normType, crossCheck)

    def opencv(self) -> Any:
        """`cv2.BFMatcher` with the same parameters."""
        return needed("BFMatcher.opencv").BFMatcher(*self._given.values())


class FlannBasedMatcher(DescriptorMatcher):
    """The interface of `cv2.FlannBasedMatcher` on the exact search, which is faster for practical numbers of features.

    Parameters of the index and of its search have no effect. An index of hashes (``algorithm=6``), for binary
    descriptors, is OpenCV's own.
    """

    def __new__(cls, indexParams: Any = None, searchParams: Any = None, *, device: Any = None) -> Self:  # noqa: N803
        if not indexParams or indexParams.get("algorithm") != _LSH:
            return super().__new__(cls)
        made: Self = needed("FLANN's index of hashes").FlannBasedMatcher(indexParams, searchParams or {})
        return made

    def __init__(self, indexParams: Any = None, searchParams: Any = None, *, device: Any = None) -> None:  # noqa: N803
        super().__init__({"indexParams": indexParams or {}, "searchParams": searchParams or {}}, device=device)

    @classmethod
    def create(cls) -> Self:  # type: ignore[override]
        """`cv2.FlannBasedMatcher_create`."""
        return cls()

    def isMaskSupported(self) -> bool:  # noqa: N802
        """False, as OpenCV's own; masks are supported nevertheless."""
        return False

    def opencv(self) -> Any:
        """`cv2.FlannBasedMatcher` with the same parameters."""
        return needed("FlannBasedMatcher.opencv").FlannBasedMatcher(*self._given.values())
