"""Features and matches in the conventions of other libraries, which need not be installed to import this.

Here a keypoint has the standard deviation of its Gaussian as its scale, radians as its angle, and (0, 0) is the centre of
the first pixel. Other conventions are met here and at files, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import Features
from .errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

__all__ = ["from_opencv", "to_hloc", "to_lafs", "to_lightglue", "to_opencv"]


def _floats(features: Features) -> npt.NDArray[np.float32]:
    """Descriptors as unit vectors."""
    import numpy as np

    found = features.descriptors.astype(np.float32)
    return found / np.float32(512) if features.descriptors.dtype == np.uint8 else found


def to_opencv(features: Features) -> tuple[list[Any], npt.NDArray[Any]]:
    """Keypoints and descriptors as OpenCV's detectors give them.

    Parameters
    ----------
    features : Features
        Of `Sift` or `Surf`.

    Returns
    -------
    keypoints : list of cv2.KeyPoint
        ``size`` is 2σ, ``angle`` is in degrees, ``octave`` packs octave and layer as OpenCV's SIFT does. Where OpenCV is
        not installed, objects with the same fields.
    descriptors : ndarray
        (N, D) float32; SIFT's from 0 to 255, in the scale of OpenCV's.
    """
    import numpy as np

    from .cv2compat import KeyPoint

    features = features.to("cpu")
    packed = (features.octave.astype(np.int64) & 255) | (features.layer.astype(np.int64) << 8)
    angle = np.degrees(features.angle.astype(np.float64))
    columns = zip(
        features.xy.tolist(), features.scale.tolist(), angle.tolist(), features.response.tolist(), packed.tolist(), strict=True
    )
    points = [KeyPoint(x, y, 2 * scale, degrees, response, octave) for (x, y), scale, degrees, response, octave in columns]
    return points, features.descriptors.astype(np.float32)


def from_opencv(
    keypoints: Sequence[Any], descriptors: Any = None, image_size: tuple[int, int] = (0, 0)
) -> Features:
    """Features from OpenCV's keypoints and descriptors.

    Parameters
    ----------
    keypoints : sequence of cv2.KeyPoint
        σ becomes half the ``size``; an ``angle`` of −1 (none) becomes 0.
    descriptors : array_like, (N, D), optional
        Those of SIFT, whole numbers from 0 to 255, become bytes; others become unit vectors.
    image_size : tuple of int
        Width and height of the image.
    """
    import numpy as np

    rows = [(*point.pt, point.size / 2, point.angle, point.response, point.octave) for point in keypoints]
    table = np.array(rows, np.float64).reshape(len(rows), 6)
    packed = table[:, 5].astype(np.int64)
    octave = packed & 255
    if descriptors is not None:
        descriptors = np.asarray(descriptors)
        whole = descriptors.size == 0 or (
            descriptors.min() >= 0 and descriptors.max() <= 255 and bool((descriptors == np.round(descriptors)).all())
        )
        if whole:
            descriptors = descriptors.astype(np.uint8)
        else:
            length = np.linalg.norm(descriptors, axis=1, keepdims=True)
            descriptors = (descriptors / np.where(length > 0, length, 1)).astype(np.float32)
    return Features.from_arrays(
        xy=table[:, :2],
        scale=table[:, 2],
        angle=np.radians(np.where(table[:, 3] < 0, 0, table[:, 3])),
        response=table[:, 4],
        octave=np.where(octave > 127, octave - 256, octave),
        layer=(packed >> 8) & 255,
        descriptors=descriptors,
        image_size=image_size,
    )


def to_lightglue(features: Features, *, device: Any = None) -> dict[str, Any]:
    """What LightGlue takes as ``image0`` or ``image1`` of its ``features="sift"``, with a batch of one.

    Parameters
    ----------
    features : Features
        Of `Sift` with ``root=True``; LightGlue was trained on RootSIFT.
    device : torch.device, optional
        Where the tensors go; needs PyTorch. Without it they are arrays of NumPy.

    Returns
    -------
    dict
        ``keypoints`` (1, N, 2), ``scales`` and ``oris`` (1, N), ``keypoint_scores`` (1, N), ``descriptors`` (1, N, 128)
        of length 1, ``image_size`` (1, 2). Places are (x, y) with (0, 0) the centre of the first pixel plus ½, COLMAP's
        and LightGlue's convention.
    """
    import numpy as np

    features = features.to("cpu")
    if features.descriptors.shape[1] != 128:
        raise ImageError(f"LightGlue takes descriptors of 128 values, not {features.descriptors.shape[1]}")
    arrays = {
        "keypoints": features.xy + np.float32(0.5),
        "scales": np.array(features.scale),
        "oris": np.array(features.angle),
        "keypoint_scores": np.array(features.response),
        "descriptors": _floats(features),
        "image_size": np.array(features.image_size, np.float32),
    }
    batch = {name: array[None] for name, array in arrays.items()}
    if device is None:
        return batch
    import torch  # type: ignore[import-not-found,unused-ignore]

    return {name: torch.from_numpy(array).to(device) for name, array in batch.items()}


def to_lafs(features: Features, *, magnification: float = 6.0) -> npt.NDArray[np.float32]:
    """Local affine frames as kornia has them.

    Parameters
    ----------
    features : Features
        Any.
    magnification : float
        The frame's half axes are so many times σ; 6 is what a descriptor of SIFT sees.

    Returns
    -------
    ndarray
        (1, N, 2, 3) float32: ``[[a, b, x], [c, d, y]]``; ``torch.from_numpy`` makes a tensor of it.
    """
    import numpy as np

    features = features.to("cpu")
    radius = features.scale * np.float32(magnification)
    # kornia's angles turn the other way: its rotation matrices are [[cos, sin], [-sin, cos]] of angles from +x towards -y.
    cosine, sine = radius * np.cos(features.angle), radius * np.sin(features.angle)
    rows = [np.stack([cosine, -sine, features.xy[:, 0]], -1), np.stack([sine, cosine, features.xy[:, 1]], -1)]
    return np.stack(rows, axis=-2).astype(np.float32)[None]


def to_hloc(features: Features) -> dict[str, npt.NDArray[Any]]:
    """The arrays that hloc keeps of an image in its HDF5 file.

    Parameters
    ----------
    features : Features
        Any, with descriptors.

    Returns
    -------
    dict
        ``keypoints`` (N, 2), ``scores`` (N,), ``descriptors`` (D, N) of length 1, ``image_size`` (2,). hloc adds COLMAP's
        half pixel itself.
    """
    import numpy as np

    features = features.to("cpu")
    return {
        "keypoints": np.array(features.xy),
        "scores": np.array(features.response),
        "scales": np.array(features.scale),
        "oris": np.array(features.angle),
        "descriptors": np.ascontiguousarray(_floats(features).T),
        "image_size": np.array(features.image_size, np.int64),
    }
