"""Features for OpenCV's stitching."""

from __future__ import annotations

from typing import Any

from ._detectors import Feature2D
from ._own import needed


def computeImageFeatures2(featuresFinder: Any, image: Any, mask: Any = None) -> Any:  # noqa: N802, N803
    """`cv2.detail.computeImageFeatures2`: OpenCV's ``ImageFeatures``, from a detector of this package or of OpenCV."""
    theirs = needed("stitching")
    if not issubclass(type(featuresFinder), Feature2D):
        return theirs.detail.computeImageFeatures2(featuresFinder, image, mask)
    found = theirs.detail.ImageFeatures()
    points, descriptors = featuresFinder.detectAndCompute(image, mask)
    pixels = image.get() if type(image).__name__ == "UMat" else image
    found.img_size = (pixels.shape[1], pixels.shape[0])
    found.keypoints = points
    if descriptors is not None:
        found.descriptors = theirs.UMat(descriptors)
    return found


def computeImageFeatures(featuresFinder: Any, images: Any, masks: Any = None) -> Any:  # noqa: N802, N803
    """`cv2.detail.computeImageFeatures`: the same for several images."""
    found = [
        computeImageFeatures2(featuresFinder, *both)
        for both in zip(images, masks or [None] * len(images), strict=True)
    ]
    for index, features in enumerate(found):
        features.img_idx = index
    return tuple(found)
