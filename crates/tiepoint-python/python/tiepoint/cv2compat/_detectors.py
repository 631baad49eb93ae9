"""`SIFT` and `SURF` with OpenCV's parameters, keypoints and descriptors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _arrays
from .._features import Sift, Surf
from .._warn import warn
from ..errors import ImageError, MismatchError, OptionError
from ._objects import keypoints, table
from ._own import Algorithm, accessors, host, like, masking, naming, needed, numbers, parameters, placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt
    from cv2 import KeyPoint  # type: ignore[import-not-found,import-untyped,unused-ignore]

    from .._core import Features

    _Found = tuple[tuple[KeyPoint, ...], npt.NDArray[Any] | None]

#: OpenCV's numbers of the types of descriptors.
CV_8U = 0
CV_32F = 5

#: Weights of blue, green and red, as ``cv2.cvtColor`` has them: of floats, and of integers in units of 2^-15.
_BGR_F32 = (0.114, 0.587, 0.299)
_BGR = (3735, 19235, 9798)

#: The greatest ratio of curvatures that `tiepoint.Sift` takes.
_NO_EDGES = 10_000.0
#: The least, at which hardly anything is kept.
_ALL_EDGES = 1.000001

#: OpenCV's names of our options, for errors.
_SIFT_NAMES = {"max_features": "nfeatures", "levels": "nOctaveLayers", "contrast": "contrastThreshold", "edge": "edgeThreshold"}
_SURF_NAMES = {"threshold": "hessianThreshold", "octaves": "nOctaves", "intervals": "nOctaveLayers + 2"}

#: The number of rows that are made grey together, small enough to stay in a cache.
_ROWS = 32


def grey(image: Any, what: str = "the image") -> Any:
    """An image as OpenCV understands it: three channels are blue, green and red; a fourth is ignored."""
    import numpy as np

    image = host(image)
    if _several(image) or np.ndim(image) == 0 and isinstance(image, (int, float)):
        raise ImageError(f"{what} is {image!r}: expected an array; a list stands for several images")
    if not isinstance(image, np.ndarray) or image.dtype.name not in ("uint8", "uint16", "float32"):
        image = _arrays.image(image, what)
    if image.ndim != 3 or image.shape[2] not in (3, 4):
        return image
    made = np.empty(image.shape[:2], image.dtype)
    floats = image.dtype.kind == "f"
    weights = [np.float32(w) for w in _BGR_F32] if floats else [np.uint32(w) for w in _BGR]
    wide = np.float32 if floats else np.uint32
    for first in range(0, len(image), _ROWS):
        rows = image[first : first + _ROWS]
        total = rows[..., 0] * weights[0] + rows[..., 1] * weights[1] + rows[..., 2] * weights[2]
        made[first : first + _ROWS] = total if floats else (total + wide(16384)) >> wide(15)
    return made


def _several(given: Any) -> bool:
    """Whether this is a list of images, not one."""
    return isinstance(given, (list, tuple))


class Feature2D(Algorithm):
    """`cv2.Feature2D` over a detector of this package."""

    _norm = 4

    def _detector(self) -> Sift | Surf:
        raise NotImplementedError

    def _points(self, found: Features) -> list[Any]:
        raise NotImplementedError

    def _descriptors(self, found: Features) -> npt.NDArray[Any]:
        raise NotImplementedError

    def _described(self, image: Any, points: Sequence[Any]) -> tuple[list[Any], npt.NDArray[Any]]:
        raise NotImplementedError

    def _changed(self) -> None:
        self._detector()

    def detect(self, image: Any = None, mask: Any = None, *, images: Any = None, masks: Any = None) -> tuple[KeyPoint, ...]:
        """Keypoints of an image, or of each of several."""
        image, mask = image if images is None else list(images), mask if masks is None else masks
        if _several(image):
            masks = [None] * len(image) if mask is None else mask
            if len(masks) != len(image):
                raise MismatchError(f"there are {len(masks)} masks for {len(image)} images: expected one each")
            return tuple(self.detect(*both) for both in zip(image, masks, strict=True))  # type: ignore[misc]
        return tuple(self._points(self._detector().replace(descriptors="none").detect(grey(image), masking(mask))))

    def compute(self, image: Any = None, keypoints: Any = None, descriptors: Any = None, *, images: Any = None) -> _Found:
        """Keypoints that could be described, and their descriptors; for several images a tuple of each."""
        image = image if images is None else list(images)
        if _several(image):
            both = [self.compute(*one) for one in zip(image, keypoints, strict=True)]
            return tuple(points for points, _ in both), tuple(found for _, found in both)  # type: ignore[misc,return-value]
        keypoints = [] if keypoints is None else list(keypoints)
        if strange := [one for one in keypoints if not hasattr(one, "pt")]:
            raise TypeError(f"keypoints hold {strange[0]!r}: expected objects of cv2.KeyPoint, such as KeyPoint.convert makes")
        kept, found = self._described(grey(image), keypoints)
        if len(kept) < len(keypoints):
            warn(
                f"{len(keypoints) - len(kept)} of {len(keypoints)} keypoints lie outside of the image or have no size and were left out: "
                "descriptors belong to the keypoints that compute returns, not to those that it was given",
            )
        return tuple(kept), like(image, found) if len(kept) else None

    def detectAndCompute(  # noqa: N802
        self, image: Any, mask: Any = None, descriptors: Any = None, useProvidedKeypoints: bool = False  # noqa: N803
    ) -> _Found:
        """Keypoints, and their descriptors (N, D); None where there are no keypoints."""
        if useProvidedKeypoints:
            raise OptionError("option useProvidedKeypoints is True: expected False; compute(image, keypoints) describes them")
        found = self._detector().detect(grey(image), masking(mask))
        return tuple(self._points(found)), like(image, self._descriptors(found)) if len(found) else None

    def empty(self) -> bool:
        """True, as OpenCV's own."""
        return True

    def descriptorSize(self) -> int:  # noqa: N802
        """Values of a descriptor."""
        raise NotImplementedError

    def descriptorType(self) -> int:  # noqa: N802
        """OpenCV's number of the type of descriptors."""
        return CV_32F

    def defaultNorm(self) -> int:  # noqa: N802
        """The norm by which descriptors are compared."""
        return self._norm


class SIFT(Feature2D):
    """`cv2.SIFT` by `tiepoint.Sift`, whose `preset` and `device` it takes, too. Images of three channels are BGR.

    `descriptorType` is 5 for float32 or 0 for uint8; a bool there is `enable_precise_upscale`, as in OpenCV's other
    form. Without precise upscaling the preset is ``"opencv"``, whose places lie a quarter of a pixel too far right and
    down, as OpenCV's do; with it the preset is ``"default"``.
    """

    _name = "Feature2D.SIFT"
    _accessors = {"NFeatures": "nfeatures", **accessors("nOctaveLayers", "contrastThreshold", "edgeThreshold", "sigma")}

    def __init__(
        self,
        nfeatures: int = 0,
        nOctaveLayers: int = 3,  # noqa: N803
        contrastThreshold: float = 0.04,  # noqa: N803
        edgeThreshold: float = 10.0,  # noqa: N803
        sigma: float = 1.6,
        descriptorType: int = CV_32F,  # noqa: N803
        enable_precise_upscale: bool = False,
        *,
        preset: str | None = None,
        device: Any = None,
    ) -> None:
        if isinstance(descriptorType, bool):
            enable_precise_upscale, descriptorType = bool(descriptorType), CV_32F  # noqa: N806
        if descriptorType not in (CV_8U, CV_32F):
            raise OptionError(f"option descriptorType is {descriptorType}: expected {CV_32F}, CV_32F, or {CV_8U}, CV_8U")
        super().__init__(parameters(locals()))
        self._preset, self._device = preset, device
        self._made: tuple[dict[str, Any], Sift] | None = None
        self._changed()

    def _detector(self) -> Sift:
        given = self._given
        if self._made is None or self._made[0] is not given:
            numbers(**{name: given[name] for name in self._accessors.values()})
            preset = self._preset or ("default" if given["enable_precise_upscale"] else "opencv")
            # OpenCV's criterion of edges is the same for r and 1 / r, and drops nothing for r of 0 or less.
            edge = given["edgeThreshold"]
            edge = _NO_EDGES if edge <= 0 else min(max(edge, 1 / edge, _ALL_EDGES), _NO_EDGES)
            with naming(_SIFT_NAMES):
                sift = Sift(
                    max_features=max(given["nfeatures"], 0) or None,
                    keep="response",
                    levels=given["nOctaveLayers"],
                    contrast=min(max(given["contrastThreshold"], 0), 1),
                    edge=edge,
                    sigma=given["sigma"],
                    preset=preset,  # type: ignore[arg-type]
                    device=placed(self._device),
                )
            self._made = given, sift
        return self._made[1]

    def _points(self, found: Features) -> list[Any]:
        import numpy as np

        packed = (found.octave.astype(np.int64) & 255) | (found.layer.astype(np.int64) << 8)
        return keypoints(found, packed)

    def _descriptors(self, found: Features) -> npt.NDArray[Any]:
        import numpy as np

        return found.descriptors.astype(np.uint8 if self._given["descriptorType"] == CV_8U else np.float32)

    def _described(self, image: Any, points: Sequence[Any]) -> tuple[list[Any], npt.NDArray[Any]]:
        from ..interop import from_opencv

        # Degrees as they are: OpenCV describes a keypoint without direction, −1, as if it were turned by −1.
        found, kept = self._detector().describe(image, from_opencv(points, no_angle=-1.0))
        return [points[i] for i in kept.tolist()], self._descriptors(found)

    def descriptorSize(self) -> int:  # noqa: N802
        """Values of a descriptor."""
        return 128

    def descriptorType(self) -> int:  # noqa: N802
        """5 for float32, 0 for uint8."""
        kind: int = self._given["descriptorType"]
        return kind

    def opencv(self) -> Any:
        """`cv2.SIFT` with the same parameters; its results are OpenCV's."""
        return needed("SIFT.opencv").SIFT_create(*self._given.values())


class SURF(Feature2D):
    """`cv2.xfeatures2d.SURF` by `tiepoint.Surf`, whose `device` it takes, too; OpenCV's packages on PyPI leave SURF out.
    Images of three channels are BGR."""

    _name = "Feature2D.SURF"
    _accessors = accessors("hessianThreshold", "nOctaves", "nOctaveLayers", "extended", "upright")

    def __init__(
        self,
        hessianThreshold: float = 100.0,  # noqa: N803
        nOctaves: int = 4,  # noqa: N803
        nOctaveLayers: int = 3,  # noqa: N803
        extended: bool = False,
        upright: bool = False,
        *,
        device: Any = None,
    ) -> None:
        super().__init__(parameters(locals()))
        self._device = device
        self._made: tuple[dict[str, Any], Surf] | None = None
        self._changed()

    def _detector(self) -> Surf:
        given = self._given
        if self._made is None or self._made[0] is not given:
            with naming(_SURF_NAMES):
                surf = Surf(
                    preset="opencv",
                    threshold=given["hessianThreshold"],
                    octaves=given["nOctaves"],
                    intervals=given["nOctaveLayers"] + 2,
                    extended=bool(given["extended"]),
                    upright=bool(given["upright"]),
                    device=placed(self._device),
                )
            self._made = given, surf
        return self._made[1]

    def _points(self, found: Features) -> list[Any]:
        import numpy as np

        # OpenCV's size is that of the filter, and its class the sign of the Laplacian, which is the opposite of our sign.
        return keypoints(found, found.octave, diameter=9 / 1.2, class_id=-found.sign.astype(np.int64))

    def _descriptors(self, found: Features) -> npt.NDArray[Any]:
        import numpy as np

        return np.array(found.descriptors)

    def _described(self, image: Any, points: Sequence[Any]) -> tuple[list[Any], npt.NDArray[Any]]:
        import numpy as np

        found = self._detector().detect(image)
        of = {tuple(row): i for i, row in enumerate(table(self._points(found))[:, :4].tolist())}
        rows = [of.get(tuple(row)) for row in table(points)[:, :4].tolist()]
        if (strange := rows.count(None)) > 0:
            raise MismatchError(
                f"{strange} of {len(rows)} keypoints are none that this SURF finds in the image: expected those of its detect; "
                "SIFT.compute describes any"
            )
        return list(points), np.array(found.descriptors)[np.array(rows, np.int64)]

    def descriptorSize(self) -> int:  # noqa: N802
        """Values of a descriptor: 64, or 128 if extended."""
        return 128 if self._given["extended"] else 64

    def opencv(self) -> Any:
        """`cv2.xfeatures2d.SURF` with the same parameters, where the installed OpenCV was built with it."""
        return needed("SURF.opencv").xfeatures2d.SURF_create(*self._given.values())
