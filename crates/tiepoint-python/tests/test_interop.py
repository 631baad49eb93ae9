"""Conventions of other libraries."""

import numpy as np
import pytest
import tiepoint as tp
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


def test_converted_features_come_back(features):
    found = features[0]
    frames = interop.from_lafs(interop.to_lafs(found), found.unit(), image_size=found.image_size)
    stored = interop.from_hloc(interop.to_hloc(found))
    for again in (frames, stored):
        assert np.array_equal(again.xy, found.xy) and np.allclose(again.scale, found.scale, rtol=1e-5)
        assert np.abs(np.remainder(again.angle - found.angle + 1, 2 * np.pi) - 1).max() < 1e-5
        assert np.array_equal(again.descriptors, found.unit()) and again.image_size == found.image_size
    assert len(interop.from_hloc({"keypoints": found.xy})) == len(found)
    for wrong in [lambda: interop.from_hloc({}), lambda: interop.from_lafs(np.zeros((3, 2)))]:
        with pytest.raises(tp.ImageError, match="expected"):
            wrong()


def test_matches_of_hloc_and_opencv(features):
    a, b = features
    tie = tp.tie_points(a, b)
    stored = interop.matches_to_hloc(tie, len(a))
    assert stored["matches0"].shape == (len(a),) and stored["matching_scores0"].dtype == np.float32
    again = interop.matches_from_hloc(stored)
    confirmed = tie[tie.inliers]
    assert np.array_equal(again.pairs, confirmed.pairs) and np.allclose(again.distance, confirmed.distance, atol=1e-6)
    made = interop.to_dmatch(confirmed)
    assert [(m.queryIdx, m.trainIdx) for m in made] == [tuple(pair) for pair in confirmed.pairs.tolist()]
    assert interop.to_dmatch(confirmed[:0]) == []


def test_unit_descriptors_do_not_wrap(features):
    found = features[0]
    unit = found.unit()
    assert unit.dtype == np.float32 and np.abs((unit * unit).sum(1) - 1).max() < 0.03
    assert int(found.descriptors[0] @ found.descriptors[0]) < 256, "the product of bytes wraps"
    floats = tp.Sift(descriptors="float", device="cpu").detect(tp.synth.texture((90, 70)))
    assert np.array_equal(floats.unit(), floats.descriptors)
