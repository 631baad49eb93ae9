"""`BFMatcher` and `FlannBasedMatcher`: exact neighbours behind OpenCV's interface."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

from .. import _arrays, _core
from .._matching import match
from ..errors import ImageError, MismatchError, OptionError
from ._objects import classes
from ._own import Algorithm, host, masking, needed, opencv, placed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from cv2 import DMatch  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from typing_extensions import Self

    from .._core import Features

    #: Indices in A and in B, and squared distances.
    _Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]

NORM_L2 = 4
NORM_L2SQR = 5

#: FLANN's index of hashes, for bits, and those of floats.
_LSH = 6
_OF_FLOATS = (*range(6), 255)

#: The most bytes of a block of distances with its temporaries.
_TOGETHER = 64 << 20

#: The longest descriptors of bytes whose squared distances, and terms of these, are whole numbers that float32 holds.
_EXACT = 128


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

    return isinstance(given, (list, tuple)) and all(one is None or np.ndim(host(one)) == 2 for one in given)


class _Side:
    """Descriptors (N, D), and what the search needs of them, which is computed once."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array
        self._rows: dict[bool, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {}

    @functools.cached_property
    def is_whole(self) -> bool:
        """Whether they are whole numbers from 0 to 255."""
        import numpy as np

        array = self.array
        if array.dtype == np.uint8:
            return True
        return bool((0 <= array).all() and (array <= 255).all() and (array == np.rint(array)).all())

    @functools.cached_property
    def finite(self) -> npt.NDArray[np.bool_]:
        """Which rows are finite."""
        import numpy as np

        found: npt.NDArray[np.bool_] = np.isfinite(self.array).all(1)
        return found

    @functools.cached_property
    def mean(self) -> npt.NDArray[np.float64]:
        """The mean of the rows that are finite."""
        import numpy as np

        return self.array[self.finite].mean(0, np.float64) if self.finite.any() else np.zeros(self.array.shape[1])

    def rows(self, mean: npt.NDArray[np.float64] | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The rows, less `mean`, which is always the same for one side, and the squares of their lengths. About a mean, squares
        and products lose the fewest digits; whole numbers lose none. A row that is not finite is 0."""
        import numpy as np

        if (mean is None) not in self._rows:
            made: npt.NDArray[np.floating[Any]]
            if mean is None:
                made = self.array.astype(np.float32 if self.array.shape[1] <= _EXACT else np.float64)
            else:
                made = np.where(self.finite[:, None], self.array, 0).astype(np.float64) - mean
            self._rows[mean is None] = made, np.einsum("nd,nd->n", made, made)
        return self._rows[mean is None]

    def features(self, mean: npt.NDArray[np.float64] | None) -> Features:
        """The same for `match`."""
        import numpy as np

        rows = np.ascontiguousarray(self.rows(mean)[0], np.uint8 if mean is None else np.float32)
        return _core.Features.from_arrays(xy=np.zeros((len(rows), 2), np.float32), descriptors=rows)


class DescriptorMatcher(Algorithm):
    """`cv2.DescriptorMatcher` of Euclidean distances; exact, and the same every time."""

    _name = "my_object"
    FLANNBASED, BRUTEFORCE, BRUTEFORCE_L1, BRUTEFORCE_HAMMING, BRUTEFORCE_HAMMINGLUT, BRUTEFORCE_SL2 = range(1, 7)

    def __init__(self, given: dict[str, Any], *, squared: bool = False, cross: bool = False, device: Any = None) -> None:
        super().__init__(given)
        self._squared, self._cross, self._device = squared, cross, device
        self._trained: list[npt.NDArray[Any]] = []
        self._joined: _Side | None = None

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
        """Adds descriptors to search in: a list of arrays (N, D), one for each image. Of one array each row is an image, as in
        OpenCV."""
        self._trained += [table(one, "descriptors") for one in (() if descriptors is None else host(descriptors))]
        self._joined = None

    def train(self) -> None:
        """Does nothing: the search needs no index."""

    def clear(self) -> None:
        """Forgets the descriptors that were added."""
        self._trained, self._joined = [], None

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
        made.__dict__.update(self.__dict__, _trained=[] if emptyTrainData else list(self._trained), _joined=None)
        return made

    def match(
        self, queryDescriptors: Any, trainDescriptors: Any = None, mask: Any = None, *, masks: Any = None  # noqa: N803
    ) -> tuple[DMatch, ...]:
        """The nearest neighbour of each descriptor; without `trainDescriptors` among those added by `add`, with `masks`."""
        if _are_masks(trainDescriptors):
            trainDescriptors, masks = None, trainDescriptors  # noqa: N806
        mask = masks if mask is None else mask
        return tuple(row[0] for row in self._search(queryDescriptors, trainDescriptors, 1, mask) if row)

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
        if not hasattr(k, "__index__"):
            raise TypeError(f"option k is {k!r}: expected a whole number")
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
        `crossCheck` and `compactResult` have no effect, as in OpenCV: there is a tuple, maybe empty, for each descriptor."""
        if _is_number(trainDescriptors):
            masks = maxDistance if isinstance(maxDistance, (list, tuple)) else masks
            trainDescriptors, maxDistance, mask = None, trainDescriptors, None  # noqa: N806
        mask = masks if mask is None else mask
        return tuple(self._search(queryDescriptors, trainDescriptors, None, mask, maxDistance))

    def _sides(self, query: Any, train: Any) -> tuple[npt.NDArray[Any], list[npt.NDArray[Any]]]:
        a = table(query, "queryDescriptors")
        several = self._trained if train is None else [table(train, "trainDescriptors")]
        for b in several:
            if len(a) and len(b) and a.shape[1] != b.shape[1]:
                raise MismatchError(f"descriptors have {a.shape[1]} and {b.shape[1]} values: expected as many of both")
        return a, several

    def _search(self, query: Any, train: Any, k: int | None, mask: Any, radius: float = 0.0) -> list[tuple[Any, ...]]:
        """The neighbours of each query descriptor, in one image or in all that were added."""
        import numpy as np

        a, several = self._sides(query, train)
        if not several:
            return []
        masks = list(map(masking, mask if isinstance(mask, (list, tuple)) else [mask] * len(several)))
        if len(masks) != len(several):
            raise MismatchError(f"there are {len(masks)} masks for {len(several)} images: expected one each")
        for image, (b, one) in enumerate(zip(several, masks, strict=True)):
            if one is not None and np.shape(one) != (len(a), len(b)):
                raise MismatchError(f"mask {image} has the shape {np.shape(one)}: expected {(len(a), len(b))}")
        filled = [b for b in several if len(b)]
        if len(a) == 0 or not filled:
            return [()] * len(a)
        # All images are searched as one.
        allowed = None
        if any(one is not None for one in masks):
            sized = zip(several, masks, strict=True)
            allowed = np.hstack([np.ones((len(a), len(b)), bool) if one is None else np.asarray(one) != 0 for b, one in sized])
        side = self._joined if train is None else None
        if side is None:
            side = _Side(filled[0] if len(filled) == 1 else np.concatenate(filled))
            self._joined = side if train is None else self._joined
        i, j, distance = self._neighbours(_Side(a), side, k, allowed, radius)
        first = np.cumsum([0, *map(len, several)])[:-1]
        held = np.searchsorted(first, j, side="right") - 1
        made = list(map(classes()[1], i.tolist(), (j - first[held]).tolist(), held.tolist(), distance.tolist()))
        ends = np.searchsorted(i, np.arange(len(a) + 1)).tolist()
        return [tuple(made[start:end]) for start, end in itertools.pairwise(ends)]

    def _neighbours(
        self, a: _Side, b: _Side, k: int | None, allowed: npt.NDArray[Any] | None, radius: float
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Pairs and their distances, in the order of A, the nearest first; equally near ones by their index in B."""
        import numpy as np

        whole = a.is_whole and b.is_whole
        mean = None if whole else b.mean
        if k == 1 and allowed is None and (whole or self._device is not None) and a.finite.all() and b.finite.all():
            sides = a.features(mean), b.features(mean)
            i, j = match(*sides, ratio=None, mutual=self._cross, same_sign=False, device=placed(self._device)).pairs.T
            squared = _squared(a.array, b.array, i, j)
        else:
            i, j, squared = _ranked(a, b, k, allowed, mean, radius if self._squared else radius * abs(radius))
            if self._cross and k is not None:
                back = np.full(len(b.array), -1)
                there, nearest, _ = _ranked(b, a, 1, None if allowed is None else allowed.T, mean)
                back[there] = nearest
                keep = back[j] == i
                i, j, squared = i[keep], j[keep], squared[keep]
        distance = (squared if self._squared else np.sqrt(squared)).astype(np.float32)
        keep = slice(None) if k is not None else distance <= np.float32(radius)
        return i[keep], j[keep], distance[keep]


def _squared(
    a: npt.NDArray[Any], b: npt.NDArray[Any], i: npt.NDArray[np.int64], j: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The squared distances of pairs, without cancellation."""
    import numpy as np

    told = np.empty(len(i))
    step = max(1, _TOGETHER // (24 * a.shape[1]))
    for start in range(0, len(i), step):
        some = slice(start, start + step)
        apart = a[i[some]].astype(np.float64) - b[j[some]]
        told[some] = np.einsum("nd,nd->n", apart, apart)
    return told


def _ranked(
    a: _Side, b: _Side, k: int | None, allowed: npt.NDArray[Any] | None, mean: npt.NDArray[np.float64] | None, limit: float = 0.0
) -> _Pairs:
    """Pairs with their squared distances: the nearest `k` in B of each row of A, or all within `limit` and hardly beyond."""
    import numpy as np

    (u, length), (v, lengths) = a.rows(mean), b.rows(mean)
    # What rounding may change.
    margin = 0.0 if mean is None else 1e-12 * float(length.max() + lengths.max())
    length, lengths = (np.where(side.finite, of, np.inf) for side, of in ((a, length), (b, lengths)))
    found = []
    step = max(1, _TOGETHER // (3 * 8 * len(v)))
    for start in range(0, len(u), step):
        rows = slice(start, start + step)
        far = u[rows] @ v.T
        far *= -2
        far += lengths
        far += length[rows, None]
        if allowed is not None:
            far[~allowed[rows]] = np.inf
        most: Any = limit * (1 + 1e-6)
        if k is not None:
            last = min(k, len(v)) - 1
            most = np.partition(far, last, axis=1)[:, last : last + 1]
        i, j = np.nonzero(far <= np.minimum(most + margin, np.finfo(far.dtype).max))
        squared = far[i, j].astype(np.float64) if mean is None else _squared(a.array, b.array, i + start, j)
        order = np.lexsort((squared, i))
        if k is not None:
            order = order[np.arange(len(i)) - np.searchsorted(i, i) < k]
        found.append((i[order] + start, j[order], squared[order]))
    i, j, squared = (np.concatenate(column) for column in zip(*found, strict=True))
    return i, j, squared


class BFMatcher(DescriptorMatcher):
    """`cv2.BFMatcher` of Euclidean distances. For any other norm it is OpenCV's own, if that is installed.

    Parameters
    ----------
    normType : int
        `NORM_L2`, or `NORM_L2SQR` for squared distances.
    crossCheck : bool
        Keep a match only when each is the other's nearest.
    device : Device or str, optional
        Where to find single neighbours without a mask. There descriptors that are no bytes are compared in float32;
        without a device they are compared in float64.
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
    """The interface of `cv2.FlannBasedMatcher` on the exact search, which misses no neighbour, and takes up to thirty times as long
    as OpenCV's approximate trees for tens of thousands of features.

    Parameters of the index and of its search have no effect. An index of hashes (``algorithm=6``), for binary
    descriptors, is OpenCV's own; by any other index bytes are refused, as by OpenCV, since they may be bits.
    """

    def __new__(cls, indexParams: Any = None, searchParams: Any = None, *, device: Any = None) -> Self:  # noqa: N803
        if not isinstance(indexParams or {}, dict):
            raise TypeError(f"indexParams is {indexParams!r}: expected a dict, such as dict(algorithm=1, trees=5)")
        if not indexParams or indexParams.get("algorithm") != _LSH:
            return super().__new__(cls)
        made: Self = needed("FLANN's index of hashes").FlannBasedMatcher(indexParams, searchParams or {})
        return made

    def __init__(self, indexParams: Any = None, searchParams: Any = None, *, device: Any = None) -> None:  # noqa: N803
        algorithm = indexParams.get("algorithm", "missing") if indexParams else None
        if algorithm is not None and (not _is_number(algorithm) or algorithm not in _OF_FLOATS):
            raise OptionError(f"FLANN's algorithm is {algorithm!r}: expected one of {', '.join(map(str, _OF_FLOATS))}, or {_LSH} for bits")
        super().__init__({"indexParams": indexParams or {}, "searchParams": searchParams or {}}, device=device)

    def _sides(self, query: Any, train: Any) -> tuple[npt.NDArray[Any], list[npt.NDArray[Any]]]:
        a, several = super()._sides(query, train)
        if any(side.dtype.name == "uint8" for side in (a, *several) if len(side)):
            raise OptionError(
                "descriptors are uint8, and FLANN's index is one of floats: expected descriptors.astype(np.float32), or for bits, "
                "such as ORB's, BFMatcher(cv2.NORM_HAMMING) or FLANN's algorithm 6"
            )
        return a, several

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
