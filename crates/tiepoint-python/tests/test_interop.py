"""Conventions of other libraries."""

import types

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


def test_directions_below_0_are_directions(features):
    """Of programs whose angles lie from −180° to 180°. OpenCV's −1 alone says that there is none."""
    found = features[0]
    points, _ = interop.to_opencv(found)
    for point in points:
        point.angle -= 360 * (point.angle > 180)
    again = interop.from_opencv(points)
    assert np.abs(np.exp(1j * again.angle) - np.exp(1j * found.angle)).max() < 1e-5 and again.angle.min() >= 0
    made = [types.SimpleNamespace(pt=(5, 5), size=4, angle=angle, response=1, octave=0) for angle in (-90, -1, 270, 359)]
    assert np.allclose(np.degrees(interop.from_opencv(made, no_angle=7).angle), [270, 7, 270, 359])
    half_turns = tp.Features.from_arrays(xy=found.xy, angle=np.where(found.angle > np.pi, found.angle - 2 * np.pi, found.angle))
    assert half_turns.angle.min() < -3
    angles = np.array([point.angle for point in interop.to_opencv(half_turns)[0]])
    assert 0 <= angles.min() and angles.max() < 360
    assert np.abs(np.exp(1j * np.radians(angles)) - np.exp(1j * found.angle)).max() < 1e-5


def test_arrays_for_lightglue_kornia_and_hloc(features):
    found = features[0]
    n = len(found)
    batch = interop.to_lightglue(found)
    assert batch["keypoints"].shape == (1, n, 2) and batch["descriptors"].shape == (1, n, 128)
    assert np.array_equal(batch["keypoints"][0], found.xy + np.float32(0.5))
    assert np.abs(np.linalg.norm(batch["descriptors"][0], axis=1) - 1).max() < 0.02
    assert batch["oris"].min() < -1 and batch["oris"].max() <= np.pi, "from −π to π, as COLMAP has them"
    assert np.allclose(np.exp(1j * batch["oris"][0]), np.exp(1j * found.angle), atol=1e-5)
    frames = interop.to_lafs(found, magnification=2.0)
    assert frames.shape == (1, n, 2, 3) and np.array_equal(frames[0, :, :, 2], found.xy)
    along = frames[0, :, :, 0]
    assert np.allclose(np.hypot(*along.T), 2 * found.scale, rtol=1e-5)
    assert np.allclose(np.exp(1j * np.arctan2(along[:, 1], along[:, 0])), np.exp(1j * found.angle), atol=1e-5)
    stored = interop.to_hloc(found)
    assert stored["descriptors"].shape == (128, n) and stored["scores"].shape == (n,)
    with pytest.raises(tp.ImageError, match="128"):
        interop.to_lightglue(tp.Features.from_arrays(xy=[[1, 2]], descriptors=np.zeros((1, 64), np.float32)))


def test_distinct_keeps_one_feature_for_each_pixel():
    xy = [[1.2, 2.0], [0.9, 2.4], [5.0, 5.0], [1.0, 2.1], [1.0, 3.0]]
    given = {"scale": [2.0, 3.0, 1.0, 3.0, 1.0], "angle": [0.0, 1.0, 6.0, 6.0, 2.0]}
    kept = interop.distinct(tp.Features.from_arrays(xy=xy, descriptors=np.eye(5, dtype=np.float32), **given))
    assert np.array_equal(kept.descriptors, np.eye(5)[[2, 3, 4]]), "the largest, and of its two that nearest to 0"
    assert len(interop.distinct(tp.Features.from_arrays(xy=np.zeros((0, 2))))) == 0


@pytest.mark.filterwarnings("ignore:pycolmap.Sift is deprecated")
def test_lightglue_gets_colmap_s_features():
    """Place, scale, direction and descriptors of pycolmap's own SIFT, with the options of LightGlue's extractor."""
    pycolmap = pytest.importorskip("pycolmap")
    image = tp.synth.texture((480, 360), seed=5)
    options = pycolmap.FeatureExtractionOptions()
    options.use_gpu, options.num_threads = False, 1
    options.sift.peak_threshold, options.sift.max_num_features = 0.0066667, 2048
    options.sift.normalization = pycolmap.Normalization.L2
    theirs, descriptors = pycolmap.Sift(options).extract(image.astype(np.float32) / 255)
    sums = np.abs(descriptors).sum(1, keepdims=True)
    descriptors = np.sqrt(descriptors / sums)
    sift = tp.Sift(preset="vlfeat", root=True, contrast=0.02, keep="levels", max_features=2048, device="cpu")
    ours = {name: batch[0] for name, batch in interop.to_lightglue(sift.detect(image)).items()}
    apart = np.linalg.norm(theirs[:, None, :2] - ours["keypoints"][None], axis=2)
    octaves = np.abs(np.log2(theirs[:, None, -2] / ours["scales"][None]))
    turn = np.abs(theirs[:, None, -1] - ours["oris"][None])
    there = (apart < 0.5) & (octaves < 0.1)
    assert there.any(1).mean() > 0.97, "their places and scales are here"
    same = there & (turn < np.radians(5))
    assert same.any(1).mean() > 0.9, "with their directions, as the same numbers"
    a, b = np.nonzero(same)
    assert np.median(apart[a, b]) < 0.01 and np.median((descriptors[a] * ours["descriptors"][b]).sum(1)) > 0.999


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


@pytest.mark.parametrize("batched", [True, False])
def test_lightglue_s_arrays_come_back(tmp_path, features, batched):
    found = features[0]
    batch = interop.to_lightglue(found)
    stored = batch if batched else {name: array[0] for name, array in batch.items()}
    np.savez(tmp_path / "a.npz", **stored)
    for again in (interop.from_hloc(stored), tp.io.read_features(tmp_path / "a.npz")):
        assert np.abs(again.xy - found.xy).max() < 1e-4 and np.array_equal(again.scale, found.scale)
        assert np.abs(np.remainder(again.angle - found.angle + 1, 2 * np.pi) - 1).max() < 1e-5 and again.angle.min() >= 0
        assert np.array_equal(again.response, found.response) and np.array_equal(again.descriptors, found.unit())
        assert again.image_size == found.image_size
    # SuperPoint has no directions, and pixels' centres at whole numbers.
    stored = {name: stored[name] for name in ("keypoints", "keypoint_scores", "descriptors", "image_size")}
    assert np.array_equal(interop.from_hloc(stored).xy, np.reshape(stored["keypoints"], (-1, 2)))
    with pytest.raises(tp.ImageError, match="expected those of one image"):
        interop.from_hloc({name: np.concatenate([array, array]) for name, array in batch.items()})


def test_matches_of_hloc_are_whole_numbers():
    assert interop.matches_from_hloc({"matches0": np.array([[2.0, -1.0]])}).pairs.tolist() == [[0, 2]]
    assert interop.matches_from_hloc({"matches0": np.array([2, -1]).astype(np.uint32)}).pairs.tolist() == [[0, 2]]
    for wrong, reason in [
        ([0.5, 1], "holds 0.5"),
        ([0, np.nan], "holds nan"),
        ([0, np.inf], "holds inf"),
        (np.zeros((4, 2), int), r"the shape \(4, 2\): expected one number for each feature"),
    ]:
        with pytest.raises(tp.ImageError, match=f"matches0 (has )?{reason}"):
            interop.matches_from_hloc({"matches0": np.asarray(wrong)})
    with pytest.raises(tp.ImageError, match="matching_scores0 holds <U1: expected numbers"):
        interop.matches_from_hloc({"matches0": [0], "matching_scores0": np.array(["a"])})


def test_unit_descriptors_do_not_wrap(features):
    found = features[0]
    unit = found.unit()
    assert unit.dtype == np.float32 and np.abs((unit * unit).sum(1) - 1).max() < 0.03
    assert int(found.descriptors[0] @ found.descriptors[0]) < 256, "the product of bytes wraps"
    floats = tp.Sift(descriptors="float", device="cpu").detect(tp.synth.texture((90, 70)))
    assert np.array_equal(floats.unit(), floats.descriptors)


@pytest.mark.parametrize("width", [32, 61, 64, 128])
def test_bytes_of_opencv_are_packed_bits_unless_they_are_sift_s(width):
    bits = np.random.default_rng(width).integers(0, 2, (120, 8 * width), np.uint8)
    packed = np.packbits(bits, axis=1)
    point = types.SimpleNamespace(pt=(1.0, 2.0), size=3.0, angle=0.0, response=1.0, octave=0, class_id=-1)
    a, b = (interop.from_opencv([point] * 60, some) for some in (packed[:60], packed[60:]))
    if width == 128:
        assert np.array_equal(a.descriptors, packed[:60]), "SIFT's with descriptorType=CV_8U"
        return
    hamming = (bits[:60, None] != bits[None, 60:]).sum(2)
    index, distance, _ = tp.nearest(a, b, device="cpu")
    assert np.array_equal(hamming[range(60), index], hamming.min(1))
    assert np.allclose((512 * distance) ** 2, hamming.min(1), rtol=1e-5)
    again = interop.from_opencv([point] * 60, interop.to_opencv(a)[1])
    assert np.array_equal(again.descriptors, bits[:60])


def test_bytes_of_hloc_stay_bytes(features):
    a = features[0]
    stored = {**interop.to_hloc(a), "descriptors": a.descriptors.T.copy()}
    again = interop.from_hloc(stored).descriptors
    assert again.dtype == np.uint8 and np.array_equal(again, a.descriptors)


def test_what_needs_unit_vectors_refuses_others(features):
    a, b = features
    columns = [{"xy": f.xy, "image_size": f.image_size} for f in features]
    long = [tp.Features.from_arrays(**c, descriptors=f.unit() * 300) for c, f in zip(columns, features, strict=True)]
    assert np.array_equal(tp.match(*long).pairs, tp.match(a, b, same_sign=False).pairs), "the ratio has no unit"
    for refused in (
        lambda: tp.match(*long, max_distance=0.7),
        lambda: tp.match(a, long[1], max_distance=0.7),
        lambda: tp.tie_points(*long, max_distance=0.7),
        lambda: interop.to_hloc(long[0]),
        lambda: interop.to_lightglue(long[0]),
    ):
        with pytest.raises(tp.ImageError, match=r"a length of (29\d|30\d) on average: expected 1 .*divide each"):
            refused()
    with pytest.raises(tp.ImageError, match="apart: expected unit vectors, .*divide each"):
        interop.matches_to_hloc(tp.match(*long), len(long[0]))
    assert len(interop.to_hloc(tp.Features.from_arrays(**columns[0]))["keypoints"]) == len(a), "none have no length"
    zero = tp.Features.from_arrays(xy=[[1, 2]], descriptors=np.zeros((1, 8), np.float32))
    assert len(tp.match(zero, zero, ratio=None, max_distance=0.7)) == 1


def test_places_outside_of_the_image_are_refused(features):
    xy = [[100.0, 50.0], [-3.0, 63.0], [20.0, 90.0]]
    point = types.SimpleNamespace(pt=(20.0, 90.0), size=3.0, angle=0.0, response=1.0, octave=0, class_id=-1)
    found = tp.Features.from_arrays(xy=xy, descriptors=np.eye(3, dtype=np.float32), image_size=(100, 60))
    for refused, how_many in (
        (lambda: tp.match(found, found), "1 of 3"),
        (lambda: tp.nearest(found[:2], found), "1 of 3"),
        (lambda: tp.tie_points(found, found), "1 of 3"),
        (lambda: interop.from_opencv([point], image_size=(100, 60)), "1 of 1"),
        (lambda: interop.from_hloc({"keypoints": xy, "image_size": [100, 60]}), "1 of 3"),
        (lambda: interop.from_lafs(interop.to_lafs(found), image_size=(100, 60)), "1 of 3"),
    ):
        told = rf"{how_many} features lie .* 100x60, the first at \(20, 90\): .*xy\[:, ::-1\]"
        with pytest.raises(tp.ImageError, match=told):
            refused()
    assert len(tp.nearest(found[:2], found[:2])[0]) == 2, "3 pixels outside are none too many, as in OpenCV's simulated views"
    assert len(interop.from_hloc({"keypoints": xy})) == 3, "of an unknown size"


def test_what_does_not_fit_is_an_error_of_this_package():
    point = types.SimpleNamespace(pt=(300.0, 200.0), size=3.0, angle=0.0, response=1.0, octave=0, class_id=-1)
    shape = (240, 320, 3)
    frames = np.array([[[1, 0, 300], [0, 1, 200]]])
    for refused in (
        lambda: interop.from_opencv([point], None, shape),
        lambda: interop.from_lafs(frames, image_size=shape),
        lambda: interop.from_hloc({"keypoints": [[300, 200]], "image_size": np.array(shape)}),
        lambda: tp.Features.from_arrays(xy=[[300, 200]], image_size=shape),
    ):
        with pytest.raises(tp.OptionError, match=r"image_size is \(240, 320, 3\): expected \(width, height\), .*1::-1"):
            refused()
    assert interop.from_opencv([point], None, shape[1::-1]).image_size == (320, 240)
    with pytest.raises(tp.ImageError, match="keypoints: 'tuple' .*pt'.*expected objects of cv2.KeyPoint"):
        interop.from_opencv([(1, 2)], None)
    matches = tp.Matches(np.array([[5, 0]]), np.array([0.1], np.float32), np.array([1.0], np.float32))
    with pytest.raises(tp.MismatchError, match="of feature 5 .* features is 3: expected 6 or more"):
        interop.matches_to_hloc(matches, 3)
    assert interop.matches_to_hloc(matches, 6)["matches0"].tolist() == [-1] * 5 + [0]
    assert len(interop.matches_to_hloc(matches[:0], 0)["matches0"]) == 0
    with pytest.raises(tp.ImageError, match="there are no arrays: expected matches0"):
        interop.matches_from_hloc({})
    with pytest.raises(tp.MismatchError, match="2 of matching_scores0 and 3 of matches0"):
        interop.matches_from_hloc({"matches0": np.array([0, -1, 1]), "matching_scores0": np.ones(2)})
    batch = {"matches0": np.array([[-1, 3]]), "matching_scores0": np.array([[0.0, 0.75]], np.float32)}
    assert interop.matches_from_hloc(batch).distance.tolist() == [0.5]
