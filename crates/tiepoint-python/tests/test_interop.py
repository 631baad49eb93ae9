"""Conventions of other libraries."""

import sys
import types

import numpy as np
import pytest
import tiepoint as tp
import tiepoint.cv2compat as cv2
from tiepoint import interop


def test_features_come_back_from_opencv_s_keypoints(features):
    found = features[0]
    points, descriptors = interop.to_opencv(found)
    assert descriptors.dtype == np.float32 and descriptors.shape == (len(found), 128)
    point = points[3]
    assert np.allclose(point.pt, found.xy[3]) and np.isclose(point.size, 2 * found.scale[3])
    assert np.isclose(point.angle, np.degrees(found.angle[3]), atol=1e-3)
    again = interop.from_opencv(points, descriptors, found.image_size)
    assert np.allclose(again.xy, found.xy) and np.allclose(again.scale, found.scale)
    assert np.abs(np.remainder(again.angle - found.angle + 1, 2 * np.pi) - 1).max() < 1e-5
    assert np.array_equal(again.octave, found.octave) and np.array_equal(again.layer, found.layer)
    assert again.descriptors.dtype == np.uint8 and np.array_equal(again.descriptors, found.descriptors)
    assert len(interop.from_opencv([])) == 0


def test_arrays_for_lightglue_kornia_and_hloc(features):
    found = features[0]
    n = len(found)
    batch = interop.to_lightglue(found)
    assert batch["keypoints"].shape == (1, n, 2) and batch["descriptors"].shape == (1, n, 128)
    assert np.array_equal(batch["keypoints"][0], found.xy + np.float32(0.5))
    assert np.abs(np.linalg.norm(batch["descriptors"][0], axis=1) - 1).max() < 0.02
    frames = interop.to_lafs(found, magnification=2.0)
    assert frames.shape == (1, n, 2, 3) and np.array_equal(frames[0, :, :, 2], found.xy)
    along = frames[0, :, :, 0]
    assert np.allclose(np.hypot(*along.T), 2 * found.scale, rtol=1e-5)
    assert np.allclose(np.exp(1j * np.arctan2(along[:, 1], along[:, 0])), np.exp(1j * found.angle), atol=1e-5)
    stored = interop.to_hloc(found)
    assert stored["descriptors"].shape == (128, n) and stored["scores"].shape == (n,)
    with pytest.raises(tp.ImageError, match="128"):
        interop.to_lightglue(tp.Features.from_arrays(xy=[[1, 2]], descriptors=np.zeros((1, 64), np.float32)))


def test_the_tutorial_of_matching_and_homography(scene, truth):
    """OpenCV's tutorial "Feature Matching + Homography to find Objects", with BFMatcher for FLANN."""
    sift = cv2.SIFT_create()
    kp1, des1 = sift.detectAndCompute(scene.reference, None)
    kp2, des2 = sift.detectAndCompute(scene.moving, None)
    matches = cv2.BFMatcher().knnMatch(des1, des2, k=2)
    good = [m for m, n in matches if m.distance < 0.7 * n.distance]
    assert len(good) > 10
    src_pts = np.float32([kp1[m.queryIdx].pt for m in good]).reshape(-1, 1, 2)
    dst_pts = np.float32([kp2[m.trainIdx].pt for m in good]).reshape(-1, 1, 2)
    M, mask = cv2.findHomography(src_pts, dst_pts, cv2.RANSAC, 5.0)
    assert mask.shape == (len(good), 1) and mask.dtype == np.uint8 and set(mask.ravel().tolist()) <= {0, 1}
    assert M.shape == (3, 3) and tp.evaluate.corner_error(M, truth, (320, 240)) < 1.0


def test_neighbours_are_brute_force(features):
    a, b = (f.descriptors[:300].astype(np.float32) for f in features)
    squared = (a**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2 * a @ b.T
    order = np.argsort(squared, axis=1, kind="stable")
    for (first, second), row, far in zip(cv2.BFMatcher().knnMatch(a, b, k=2), order, squared):
        assert np.isclose(first.distance, np.sqrt(far[row[0]]), rtol=1e-5)
        assert np.isclose(second.distance, np.sqrt(far[row[1]]), rtol=1e-5)
        assert far[first.trainIdx] == far[row[0]] and far[second.trainIdx] == far[row[1]]
    crossed = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(a, b)
    assert {(m.queryIdx, m.trainIdx) for m in crossed} == {
        (i, j) for i, j in enumerate(squared.argmin(1)) if squared[:, j].argmin() == i
    }
    assert cv2.BFMatcher().match(a[:0], b) == () and cv2.BFMatcher().knnMatch(a, b[:0]) == ()
    with pytest.raises(tp.OptionError, match="option k is 3"):
        cv2.BFMatcher().knnMatch(a, b, k=3)


def test_other_names_are_opencv_s_own(monkeypatch, features):
    """A stand-in for OpenCV, which the package does not need."""
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(AttributeError, match="drawMatches is OpenCV's own, which is not installed: .* has BFMatcher"):
        cv2.drawMatches  # noqa: B018
    with pytest.raises(tp.OptionError, match="normType is 6: .* need OpenCV"):
        cv2.BFMatcher_create(6)
    opencv = types.SimpleNamespace(
        drawMatches=object(), BFMatcher=lambda norm, cross: ("theirs", norm, cross), SIFT_create=None
    )
    monkeypatch.setitem(sys.modules, "cv2", opencv)
    assert cv2.drawMatches is opencv.drawMatches
    assert cv2.BFMatcher(6, crossCheck=True) == ("theirs", 6, True)
    assert isinstance(cv2.BFMatcher(), cv2.BFMatcher) and cv2.SIFT_create is not None, "what is ours stays ours"
    with pytest.raises(tp.OptionError, match="with a device"):
        cv2.BFMatcher(6, device="cpu")
    with pytest.raises(AttributeError):
        cv2.imread  # noqa: B018
    # Of a module without classes of its own for them.
    descriptors = features[0].descriptors[:5]
    assert [m.trainIdx for m in cv2.BFMatcher().match(descriptors, descriptors)] == [0, 1, 2, 3, 4]


def test_without_a_model_there_is_none():
    assert cv2.findHomography(np.zeros((2, 2)), np.zeros((2, 2))) == (None, None)
    points = np.array([[0, 0], [9, 0], [9, 9], [0, 9]], np.float32)
    matrix, mask = cv2.findHomography(points, points + 3)
    assert np.allclose(matrix, [[1, 0, 3], [0, 1, 3], [0, 0, 1]], atol=1e-6) and mask.sum() == 4
    rough = np.random.default_rng(0).uniform(0, 200, (30, 2))
    matrix, mask = cv2.findHomography(rough, rough + np.random.default_rng(1).normal(0, 4, (30, 2)))
    assert mask.all() and np.abs(matrix - np.eye(3)).max() < 20


def test_the_tutorial_of_depth_maps(pair):
    """OpenCV's tutorial "Depth Map from Stereo Images", with SGBM for BM."""
    stereo = cv2.StereoSGBM_create(numDisparities=32, blockSize=5, speckleWindowSize=50, speckleRange=2)
    disparity = stereo.compute(pair.left, pair.right)
    assert disparity.dtype == np.int16 and disparity.shape == pair.left.shape
    valid = (disparity >= 0) & (pair.visible != 0)
    off = np.abs(disparity[valid] / 16 - pair.truth_left[valid])
    assert valid.mean() > 0.7 and np.median(off) < 0.3
    assert disparity[disparity < 0].tolist() == [-16] * int((disparity < 0).sum())
    assert (stereo.getMinDisparity(), stereo.getNumDisparities()) == (0, 32)
    with pytest.raises(tp.OptionError, match="mode"):
        cv2.StereoSGBM_create(mode=9)
