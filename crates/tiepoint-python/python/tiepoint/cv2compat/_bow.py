"""Bags of visual words over detectors and matchers of either package. OpenCV's own classes take only OpenCV's objects,
and OpenCV 5 has no such classes for Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import MismatchError, ModelError, OptionError
from ._matchers import table
from ._own import Algorithm, needed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Floats = npt.NDArray[np.float32]

_KMEANS_PP_CENTERS = 2

#: OpenCV's criterion to stop: 100 iterations, or centres that move by less than the smallest step of float32 above 1.
_UNTIL = 3, 100, 2.0**-23


class BOWKMeansTrainer(Algorithm):
    """`cv2.BOWKMeansTrainer`: words by OpenCV's `kmeans`, which needs OpenCV.

    Parameters
    ----------
    clusterCount : int
        The number of words.
    termcrit, attempts, flags
        Those of `cv2.kmeans`.
    """

    def __init__(
        self,
        clusterCount: int,  # noqa: N803
        termcrit: Any = None,
        attempts: int = 3,
        flags: int = _KMEANS_PP_CENTERS,
    ) -> None:
        super().__init__({"clusterCount": clusterCount, "termcrit": termcrit or _UNTIL, "attempts": attempts, "flags": flags})
        if clusterCount < 1:
            raise OptionError(f"option clusterCount is {clusterCount}: expected at least 1")
        self._added: list[npt.NDArray[Any]] = []

    def add(self, descriptors: Any) -> None:
        """Adds descriptors (N, D) of an image."""
        self._added.append(table(descriptors, "descriptors"))

    def getDescriptors(self) -> tuple[npt.NDArray[Any], ...]:  # noqa: N802
        """The descriptors that were added."""
        return tuple(self._added)

    def descriptorsCount(self) -> int:  # noqa: N802
        """The number of descriptors that were added."""
        return sum(map(len, self._added))

    def clear(self) -> None:
        """Forgets the descriptors that were added."""
        self._added = []

    def cluster(self, descriptors: Any = None) -> _Floats:
        """The words (clusterCount, D) of all descriptors that were added, or of the given ones."""
        import numpy as np

        some = [one for one in (self._added if descriptors is None else [table(descriptors, "descriptors")]) if len(one)]
        if len({one.shape[1] for one in some}) > 1:
            raise MismatchError(f"descriptors have {sorted({one.shape[1] for one in some})} values: expected as many of all")
        count = self._given["clusterCount"]
        if (given := sum(map(len, some))) < count:
            raise ModelError(f"there are {given} descriptors: expected at least clusterCount, {count}")
        rows, kmeans = np.concatenate(some).astype(np.float32), needed("BOWKMeansTrainer").kmeans
        _, _, words = kmeans(rows, count, None, *(self._given[key] for key in ("termcrit", "attempts", "flags")))
        found: _Floats = words
        return found


class BOWImgDescriptorExtractor(Algorithm):
    """`cv2.BOWImgDescriptorExtractor`: how many of an image's descriptors are nearest to each word.

    Parameters
    ----------
    dextractor : Feature2D
        Of this package or OpenCV's; without it, `compute` takes descriptors.
    dmatcher : DescriptorMatcher
        Of this package or OpenCV's.
    """

    def __init__(self, dextractor: Any, dmatcher: Any = None) -> None:
        super().__init__({})
        self._extractor: Any = None if dmatcher is None else dextractor
        self._matcher = dextractor if dmatcher is None else dmatcher
        self._words: npt.NDArray[Any] | None = None

    def setVocabulary(self, vocabulary: Any) -> None:  # noqa: N802
        """Sets the words (K, D)."""
        self._words = table(vocabulary, "vocabulary")
        self._matcher.clear()
        self._matcher.add([self._words])

    def getVocabulary(self) -> npt.NDArray[Any] | None:  # noqa: N802
        """The words."""
        return self._words

    def descriptorSize(self) -> int:  # noqa: N802
        """The number of words."""
        return 0 if self._words is None else len(self._words)

    def descriptorType(self) -> int:  # noqa: N802
        """5, for float32."""
        return 5

    def compute(self, image: Any, keypoints: Any = None, imgDescriptor: Any = None) -> _Floats | None:  # noqa: N803
        """The share (1, K) of the image's descriptors that is nearest to each word; None without descriptors."""
        import numpy as np

        if self._words is None:
            raise OptionError("there is no vocabulary: expected setVocabulary before compute")
        descriptors = image if self._extractor is None else self._extractor.compute(image, keypoints)[1]
        if descriptors is None or len(descriptors) == 0:
            return None
        nearest = [m.trainIdx for m in self._matcher.match(table(descriptors, "descriptors").astype(self._words.dtype))]
        return (np.bincount(nearest, minlength=len(self._words)) / len(descriptors)).astype(np.float32)[None]
