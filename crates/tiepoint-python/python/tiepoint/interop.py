"""Features and matches in the conventions of other libraries, which need not be installed to import this.

In this package the scale of a keypoint is the standard deviation of its Gaussian, its angle is in radians, and (0, 0)
is the centre of the first pixel. Other conventions are converted only here and in files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arrays
from ._core import Features
from ._features import check_places, check_unit
from .errors import ImageError, MismatchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    from cv2 import DMatch, KeyPoint  # type: ignore[import-not-found,import-untyped,unused-ignore]

    from ._matching import Matches, TiePoints

__all__ = [
    "distinct",
    "from_hloc",
    "from_lafs",
    "from_opencv",
    "matches_from_hloc",
    "matches_to_hloc",
    "to_dmatch",
    "to_hloc",
    "to_lafs",
    "to_lightglue",
    "to_opencv",
]


#: The greatest distance of unit vectors, with some room for those rounded to bytes.
_FARTHEST = 2.1


def to_opencv(features: Features) -> tuple[list[KeyPoint], npt.NDArray[np.float32]]:
    """Keypoints and descriptors as OpenCV's detectors give them.

    Parameters
    ----------
    features : Features
        Of `Sift` or `Surf`.

    Returns
    -------
    keypoints : list of cv2.KeyPoint
        ``size`` is 2σ, ``angle`` is in degrees from 0 to 360, ``octave`` packs octave and layer as OpenCV's SIFT does. If OpenCV is
        not installed, objects with the same fields.
    descriptors : ndarray
        (N, D) float32; SIFT's from 0 to 255, on the scale of OpenCV's.
    """
    import numpy as np

    from .cv2compat._objects import keypoints

    features = features.to("cpu")
    packed = (features.octave.astype(np.int64) & 255) | (features.layer.astype(np.int64) << 8)
    return keypoints(features, packed), features.descriptors.astype(np.float32)


def to_dmatch(matches: Matches | TiePoints) -> list[DMatch]:
    """Matches as OpenCV has them, for ``cv2.drawMatches``.

    Parameters
    ----------
    matches : Matches or TiePoints
        The matches to convert. ``tie[tie.inliers]`` are those that the model confirms.

    Returns
    -------
    list of cv2.DMatch
        If OpenCV is not installed, objects with the same fields. Distances are those of `Matches`.
    """
    import numpy as np

    from .cv2compat._objects import classes

    made = classes()[1]
    a, b = np.asarray(matches.pairs).T.tolist() if len(matches) else ([], [])
    return [made(i, j, distance) for i, j, distance in zip(a, b, np.asarray(matches.distance).tolist(), strict=True)]


def from_opencv(
    keypoints: Sequence[KeyPoint], descriptors: Any = None, image_size: tuple[int, int] = (0, 0), *, no_angle: float = 0.0
) -> Features:
    """Features from OpenCV's keypoints and descriptors.

    Parameters
    ----------
    keypoints : sequence of cv2.KeyPoint
        σ becomes half the ``size``; an ``angle`` of −1 (none) becomes `no_angle`, any other is taken modulo 360.
    descriptors : array_like, (N, D), optional
        Those of SIFT, whole numbers from 0 to 255, become bytes; other floats become unit vectors. Bytes of any width
        but 128 are packed bits, as ORB, BRISK and AKAZE have them, and become one byte of 0 or 1 for each bit: a
        squared distance then is the Hamming distance, divided by 512², and nearest neighbours are OpenCV's.
        `Features.from_arrays` takes bits unpacked: ``np.unpackbits(descriptors, axis=1)``.
    image_size : tuple of int
        Width and height of the image: ``image.shape[1::-1]``.
    no_angle : float
        What an angle of −1 becomes, in degrees.

    Raises
    ------
    ImageError
        When keypoints lie more than 3 pixels outside of the image.
    """
    import numpy as np

    from .cv2compat._objects import table as columns

    table = columns(keypoints)
    packed = table[:, 5].astype(np.int64)
    octave = packed & 255
    if descriptors is not None:
        descriptors = _arrays.array(descriptors, "descriptors")
        if descriptors.dtype == np.uint8 and descriptors.ndim == 2 and descriptors.shape[1] != 128:
            descriptors = np.unpackbits(descriptors, axis=1)
        whole = descriptors.size == 0 or (
            descriptors.min() >= 0 and descriptors.max() <= 255 and bool((descriptors == np.round(descriptors)).all())
        )
        if whole:
            descriptors = descriptors.astype(np.uint8)
        else:
            length = np.linalg.norm(descriptors, axis=1, keepdims=True)
            descriptors = (descriptors / np.where(length > 0, length, 1)).astype(np.float32)
    return _within(
        xy=table[:, :2],
        scale=table[:, 2] / 2,
        angle=np.radians(np.where(table[:, 3] == -1, no_angle, table[:, 3] % 360)),
        response=table[:, 4],
        octave=np.where(octave > 127, octave - 256, octave),
        layer=(packed >> 8) & 255,
        descriptors=descriptors,
        image_size=image_size,
    )


def _within(**columns: Any) -> Features:
    """Features of these columns, if they lie in their image."""
    features = Features.from_arrays(**columns)
    check_places(features)
    return features


def to_lightglue(features: Features, *, device: Any = None) -> dict[str, Any]:
    """The ``image0`` or ``image1`` that LightGlue takes with ``features="sift"``, as a batch of one.

    Parameters
    ----------
    features : Features
        Those of ``Sift(preset="vlfeat", root=True, contrast=0.02, keep="levels", max_features=2048)``, reduced by
        `distinct`: LightGlue was trained on COLMAP's SIFT as RootSIFT, in pictures whose longest side is 1024.
    device : torch.device, optional
        The device of the tensors; needs PyTorch. If not given, arrays of NumPy are returned.

    Returns
    -------
    dict
        ``keypoints`` (1, N, 2), ``scales`` and ``oris`` (1, N), ``keypoint_scores`` (1, N), ``descriptors`` (1, N, 128)
        of length 1, ``image_size`` (1, 2). Places are (x, y) with (0, 0) the centre of the first pixel plus ½, scales are σ
        and angles lie from −π to π: COLMAP's and LightGlue's conventions.

    Raises
    ------
    ImageError
        When descriptors do not have 128 values, or are not unit vectors.
    """
    import numpy as np

    features = features.to("cpu")
    if features.descriptors.shape[1] != 128:
        raise ImageError(f"LightGlue takes descriptors of 128 values, not {features.descriptors.shape[1]}")
    check_unit(features, "LightGlue takes")
    arrays = {
        "keypoints": features.xy + np.float32(0.5),
        "scales": np.array(features.scale),
        "oris": _half_turns(features.angle),
        "keypoint_scores": np.array(features.response),
        "descriptors": features.unit(),
        "image_size": np.array(features.image_size, np.float32),
    }
    batch = {name: array[None] for name, array in arrays.items()}
    if device is None:
        return batch
    import torch  # type: ignore[import-not-found,unused-ignore]

    return {name: torch.from_numpy(array).to(device) for name, array in batch.items()}


def _half_turns(angle: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Angles of 0 to 2π as those of −π to π, which LightGlue takes as plain numbers."""
    import numpy as np

    return np.where(angle > np.float32(np.pi), angle - np.float32(2 * np.pi), angle).astype(np.float32)


def distinct(features: Features) -> Features:
    """Keep one feature for each pixel, as LightGlue's own extractor does: the one of the largest scale, and if that has
    several directions, the one nearest to 0.

    Parameters
    ----------
    features : Features
        Any; the result is in the host's memory.

    Returns
    -------
    Features
        In their order, without the others; matches of LightGlue are indices into these.
    """
    import numpy as np

    features = features.to("cpu")
    x, y = np.round(features.xy).T
    order = np.lexsort((np.abs(_half_turns(features.angle)), -features.scale, x, y))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(x[order]) != 0) | (np.diff(y[order]) != 0)
    return features[np.sort(order[new])]


def to_lafs(features: Features, *, magnification: float = 6.0) -> npt.NDArray[np.float32]:
    """Local affine frames as kornia has them.

    Parameters
    ----------
    features : Features
        Any.
    magnification : float
        The half axes of a frame, in multiples of σ; 6 is the region of a SIFT descriptor.

    Returns
    -------
    ndarray
        (1, N, 2, 3) float32: ``[[a, b, x], [c, d, y]]``; ``torch.from_numpy`` converts it to a tensor.
    """
    import numpy as np

    features = features.to("cpu")
    radius = features.scale * np.float32(magnification)
    # kornia's angles turn the other way: its rotation matrices are [[cos, sin], [-sin, cos]] of angles from +x towards -y.
    cosine, sine = radius * np.cos(features.angle), radius * np.sin(features.angle)
    rows = [np.stack([cosine, -sine, features.xy[:, 0]], -1), np.stack([sine, cosine, features.xy[:, 1]], -1)]
    return np.stack(rows, axis=-2).astype(np.float32)[None]


def to_hloc(features: Features) -> dict[str, npt.NDArray[Any]]:
    """The arrays that hloc stores for an image in its HDF5 file.

    Parameters
    ----------
    features : Features
        Any, with descriptors.

    Returns
    -------
    dict
        ``keypoints`` (N, 2), ``scores``, ``scales`` and ``oris`` (N,), ``descriptors`` (D, N) of length 1,
        ``image_size`` (2,). hloc adds COLMAP's half pixel itself.

    Raises
    ------
    ImageError
        When descriptors are not unit vectors.
    """
    import numpy as np

    features = features.to("cpu")
    check_unit(features, "hloc stores")
    return {
        "keypoints": np.array(features.xy),
        "scores": np.array(features.response),
        "scales": np.array(features.scale),
        "oris": np.array(features.angle),
        "descriptors": np.ascontiguousarray(features.unit().T),
        "image_size": np.array(features.image_size, np.int64),
    }


def from_lafs(
    lafs: Any, descriptors: Any = None, *, magnification: float = 6.0, image_size: tuple[int, int] = (0, 0)
) -> Features:
    """Features from kornia's local affine frames; the inverse of `to_lafs`.

    Parameters
    ----------
    lafs : array_like, (1, N, 2, 3) or (N, 2, 3)
        Frames: a tensor in the host's memory, or an array. A stretched frame gets the scale of a circle of the same
        area, and the angle of its first axis.
    descriptors : array_like, (1, N, D) or (N, D), optional
        Unit vectors.
    magnification : float
        The half axes of a frame, in multiples of σ.
    image_size : tuple of int
        Width and height of the image.

    Raises
    ------
    ImageError
        When `lafs` have another shape, or lie more than 3 pixels outside of the image.
    """
    import numpy as np

    frames = _arrays.array(lafs, "lafs").astype(np.float32)
    if frames.shape[-2:] != (2, 3) or frames.ndim not in (3, 4) or (frames.ndim == 4 and len(frames) != 1):
        raise ImageError(f"lafs have the shape {frames.shape}: expected (1, N, 2, 3) or (N, 2, 3)")
    (a, b, x), (c, d, y) = np.moveaxis(frames.reshape(-1, 2, 3), 0, -1)
    if descriptors is not None:
        descriptors = _arrays.array(descriptors, "descriptors")
        descriptors = descriptors.reshape(-1, descriptors.shape[-1])
        if descriptors.dtype.kind == "f":
            descriptors = descriptors.astype(np.float32, copy=False)
    return _within(
        xy=np.stack([x, y], 1),
        scale=np.sqrt(np.abs(a * d - b * c)) / np.float32(magnification),
        angle=np.arctan2(c, a) % np.float32(2 * np.pi),
        descriptors=descriptors,
        image_size=image_size,
    )


def from_hloc(stored: Mapping[str, Any]) -> Features:
    """Features from the arrays that hloc stores for an image, or that LightGlue takes; the inverse of `to_hloc` and of
    `to_lightglue`.

    Parameters
    ----------
    stored : mapping
        A group of an HDF5 file, or a dictionary: ``keypoints`` (N, 2) and, if they exist, ``scores``, ``scales``,
        ``oris``, ``descriptors`` (D, N) and ``image_size``. Descriptors of bytes stay bytes: unit vectors times 512.
        With ``keypoint_scores`` they are LightGlue's, also as a batch of one: ``descriptors`` are (N, D), and with
        ``oris``, as SIFT has them, places have ½ more than here.

    Raises
    ------
    ImageError
        When there are no keypoints, or when they lie more than 3 pixels outside of the image.
    """
    import numpy as np

    names = ("keypoints", "scores", "keypoint_scores", "scales", "oris", "descriptors", "image_size")
    there = {name: _arrays.array(stored[name], name) for name in names if name in stored}
    if "keypoints" not in there:
        raise ImageError(f"there are {', '.join(sorted(stored)) or 'no arrays'}: expected keypoints at least")
    of_lightglue = "keypoint_scores" in there
    if of_lightglue and there["keypoints"].ndim == 3:
        if len(there["keypoints"]) != 1:
            raise ImageError(f"keypoints have the shape {there['keypoints'].shape}: expected those of one image, (1, N, 2)")
        there = {name: array[0] for name, array in there.items()}
    descriptors = there.get("descriptors")
    if descriptors is not None and not of_lightglue:
        descriptors = descriptors.T
    xy = there["keypoints"]
    return _within(
        xy=xy - np.float32(0.5) if of_lightglue and "oris" in there else xy,
        scale=there.get("scales"),
        angle=np.remainder(there["oris"], 2 * np.pi) if "oris" in there else None,
        response=there.get("scores", there.get("keypoint_scores")),
        descriptors=descriptors,
        image_size=there.get("image_size", (0, 0)),
    )


def matches_to_hloc(matches: Matches | TiePoints, features: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays that hloc stores for a pair in its HDF5 file.

    Parameters
    ----------
    matches : Matches or TiePoints
        The matches to store; of tie points only those that the model confirms.
    features : int
        The number of features of the first image.

    Returns
    -------
    dict
        ``matches0`` (N,) int64: the feature of the second image, or −1; ``matching_scores0`` (N,) float32: 1 − distance / 2.

    Raises
    ------
    ImageError
        When distances are greater than 2: then they are not those of unit vectors.
    MismatchError
        When matches are of more than that many features.
    """
    import numpy as np

    kept = getattr(matches, "inliers", np.ones(len(matches), bool))
    pairs, distance = np.asarray(matches.pairs)[kept], np.asarray(matches.distance)[kept]
    if len(distance) and not distance.max() <= _FARTHEST:
        raise ImageError(
            f"descriptors are up to {distance.max():.3g} apart: expected unit vectors, at most 2 apart, for hloc's "
            "scores; divide each by its length before the matching"
        )
    if (least := int(pairs[:, 0].max(initial=-1)) + 1) > features:
        raise MismatchError(
            f"there are matches of feature {least - 1} of the first image, and features is {features}: expected {least} or more"
        )
    found = np.full(features, -1, np.int64)
    scores = np.zeros(features, np.float32)
    found[pairs[:, 0]], scores[pairs[:, 0]] = pairs[:, 1], 1 - distance / 2
    return {"matches0": found, "matching_scores0": scores}


def matches_from_hloc(stored: Mapping[str, Any]) -> Matches:
    """Matches from the arrays that hloc stores for a pair; their ratios are not known and set to 1.

    Parameters
    ----------
    stored : mapping
        ``matches0``, whole numbers, and, if it exists, ``matching_scores0``.

    Raises
    ------
    ImageError
        When ``matches0`` does not hold one whole number for each feature of the first image.
    MismatchError
        When there are more or fewer scores.
    """
    import numpy as np

    from ._matching import Matches

    if "matches0" not in stored:
        raise ImageError(f"there are {', '.join(sorted(stored)) or 'no arrays'}: expected matches0 at least")
    to = _arrays.array(stored["matches0"], "matches0")
    to = to[0] if to.ndim == 2 and len(to) == 1 else to
    if to.ndim != 1:
        raise ImageError(
            f"matches0 has the shape {to.shape}: expected one number for each feature of the first image: the feature of the "
            "second, or -1"
        )
    broken = to[~(np.isfinite(to) & (to == np.trunc(to)))]
    if len(broken):
        raise ImageError(f"matches0 holds {broken[0]}: expected whole numbers, -1 for none")
    # Without a sign, −1 is the greatest number.
    none = np.iinfo(to.dtype).max if to.dtype.kind == "u" else -1
    to = np.where(to == none, -1, to.astype(np.int64))
    [rows] = np.nonzero(to >= 0)
    scores = np.ravel(_arrays.array(stored.get("matching_scores0", np.ones(len(to))), "matching_scores0")).astype(np.float32)
    if len(scores) != len(to):
        raise MismatchError(f"there are {len(scores)} of matching_scores0 and {len(to)} of matches0: expected as many")
    pairs = np.stack([rows.astype(np.int64), to[rows]], 1)
    return Matches(pairs, (2 * (1 - scores[rows])).astype(np.float32), np.ones(len(rows), np.float32))
