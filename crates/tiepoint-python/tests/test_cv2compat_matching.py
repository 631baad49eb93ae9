"""`cv2compat`: matchers, compared with OpenCV's where that is installed."""

import itertools
import sys

import numpy as np
import pytest
import tiepoint as tp
import tiepoint.cv2compat as compat
from test_cv2compat import distances

RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def tables(features):
    return [f.descriptors[:300].astype(np.float32) for f in features]


@pytest.mark.parametrize("fraction", [False, True], ids=["bytes", "floats"])
@pytest.mark.parametrize("cross", [False, True])
def test_matching_equals_opencv_s(tables, opencv, cross, fraction):
    a, b = (t * (0.37 if fraction else 1) for t in tables)
    theirs, ours = opencv.BFMatcher(crossCheck=cross), compat.BFMatcher(crossCheck=cross)

    def same(wanted, found):
        flat = [[m for row in rows for m in (row if isinstance(row, tuple) else [row])] for rows in (wanted, found)]
        assert [(m.queryIdx, m.imgIdx) for m in flat[0]] == [(m.queryIdx, m.imgIdx) for m in flat[1]]
        assert np.allclose([m.distance for m in flat[0]], [m.distance for m in flat[1]], rtol=1e-4, atol=0.05)

    same(theirs.match(a, b), ours.match(a, b))
    for k in [1] if cross else [1, 2, 5, 400]:
        wanted, found = theirs.knnMatch(a, b, k=k), ours.knnMatch(a, b, k=k)
        assert [len(row) for row in wanted] == [len(row) for row in found]
        same(wanted, found)
    if cross:
        with pytest.raises(tp.OptionError, match="expected 1 with crossCheck"):
            ours.knnMatch(a, b, k=2)
        return
    mask = (RNG.uniform(size=(len(a), len(b))) < 0.02).astype(np.uint8)
    for compact in (False, True):
        wanted, found = (m.knnMatch(a, b, k=2, mask=mask, compactResult=compact) for m in (theirs, ours))
        assert [len(row) for row in wanted] == [len(row) for row in found]
        same(wanted, found)
    same(theirs.match(a, b, mask), ours.match(a, b, mask))
    near = float(np.percentile(distances(a[:50], b), 2))
    same(theirs.radiusMatch(a, b, near), ours.radiusMatch(a, b, near))
    for matcher in (theirs, ours):
        matcher.add([b[:100], b[100:]])
        matcher.train()
    same(theirs.match(a), ours.match(a))
    same(theirs.knnMatch(a, 3), ours.knnMatch(a, 3))
    assert len(ours.getTrainDescriptors()) == 2 and not ours.empty() and ours.isMaskSupported()
    assert ours.clone(True).empty() and not ours.clone().empty()
    for matcher in (theirs, ours):
        matcher.clear()
        # Without a list each row is an image.
        matcher.add(b[:20])
        matcher.add(None)
    same(theirs.match(a), ours.match(a))
    assert {m.trainIdx for m in ours.match(a)} == {0} and len(ours.getTrainDescriptors()) == 20
    ours.clear()
    assert ours.match(a) == ()


def test_matchers_of_every_kind(tables, opencv, alone, monkeypatch):
    a, b = tables
    with pytest.raises(tp.OptionError, match="normType is 6: .* other norms need OpenCV"):
        compat.BFMatcher_create(6)
    wanted = [m.trainIdx for m in compat.BFMatcher().match(a, b)]
    parameters = {"algorithm": 1, "trees": 5}
    for matcher in [
        compat.FlannBasedMatcher(parameters, {"checks": 50}),
        compat.FlannBasedMatcher_create(),
        compat.DescriptorMatcher_create("FlannBased"),
        compat.DescriptorMatcher.create("BruteForce"),
        compat.BFMatcher.create(),
    ]:
        assert isinstance(matcher, compat.DescriptorMatcher)
        assert [m.trainIdx for m in matcher.match(a, b)] == wanted
    squared = compat.BFMatcher(compat.NORM_L2SQR).match(a, b)
    assert np.allclose([m.distance for m in squared], [m.distance**2 for m in compat.BFMatcher().match(a, b)])
    monkeypatch.setitem(sys.modules, "cv2", opencv)
    assert type(compat.BFMatcher(opencv.NORM_HAMMING)) is opencv.BFMatcher
    assert type(compat.DescriptorMatcher_create("BruteForce-Hamming")) is not compat.BFMatcher
    assert type(compat.FlannBasedMatcher({"algorithm": 6}, {})) is opencv.FlannBasedMatcher
    with pytest.raises(tp.OptionError, match="with a device"):
        compat.BFMatcher(6, device="cpu")


def test_unusual_descriptors(tables):
    a, b = tables
    matcher = compat.BFMatcher()
    for empty in (None, a[:0]):
        assert matcher.match(empty, b) == () and matcher.knnMatch(empty, b, k=2) == ()
    assert matcher.match(a, None) == ()
    mixed = matcher.match(a, b + np.float32(0.25))
    assert [m.queryIdx for m in mixed] == list(range(len(a))), "uint8 descriptors against float32"
    broken = a.copy()
    broken[2, 0] = np.nan
    assert [m.queryIdx for m in matcher.match(broken[:4], b)] == [0, 1, 3]
    assert [len(row) for row in matcher.knnMatch(broken[:4], b, k=2)] == [2, 2, 0, 2]
    with pytest.raises(tp.MismatchError, match="128 and 64 values"):
        matcher.match(a, b[:, :64])
    with pytest.raises(tp.MismatchError, match="mask 0 has the shape"):
        matcher.match(a, b, np.ones((3, 3), np.uint8))
    with pytest.raises(tp.OptionError, match="option k is 0"):
        matcher.knnMatch(a, b, k=0)


def neighbours(found):
    """Query, image, index and distance of each match, in the order in which they are."""
    flat = itertools.chain.from_iterable(row if isinstance(row, tuple) else (row,) for row in found)
    return np.array([(m.queryIdx, m.imgIdx, m.trainIdx, m.distance) for m in flat]).T


def far_away(shift):
    """Points at this distance from the origin, and others beside them."""
    a = (np.random.default_rng(2).uniform(0, 50, (200, 2)) + shift).astype(np.float32)
    return a, a[::-1] + np.float32(0.8)


unit = np.random.default_rng(3).normal(size=(200, 128)).astype(np.float32)
unit /= np.linalg.norm(unit, axis=1, keepdims=True)
TABLES = {
    "at 4000": far_away(4000),
    "at 100 000": far_away(1e5),
    "here and there": [np.concatenate(both) for both in zip(far_away(1e5), far_away(-1e5), strict=True)],
    "themselves": (unit, unit),
    "equals": (unit, np.repeat(unit[:20], 5, 0)),
    "many bytes": np.random.default_rng(4).integers(0, 256, (2, 200, 600)).astype(np.float32),
}


@pytest.mark.parametrize("name", TABLES)
def test_neighbours_are_those_of_opencv_and_equal_ones_in_their_order(name, opencv, monkeypatch):
    a, b = TABLES[name]
    # Two blocks at least.
    monkeypatch.setattr("tiepoint.cv2compat._matchers._TOGETHER", 1 << 20)
    mask = (np.random.default_rng(5).uniform(size=(len(a), len(b))) < 0.3).astype(np.uint8)
    radius = neighbours(opencv.BFMatcher().knnMatch(a, b, k=7))[3].max()
    images = [b[:30], b[30:40], b[40:]]
    for call in (
        lambda cv: cv.BFMatcher().match(a, b),
        lambda cv: cv.BFMatcher(crossCheck=True).match(a, b),
        *(lambda cv, k=k: cv.BFMatcher().knnMatch(a, b, k=k) for k in (1, 2, 3, 8)),
        lambda cv: cv.BFMatcher().match(a, b, mask),
        lambda cv: cv.BFMatcher().knnMatch(a, b, 3, mask),
        lambda cv: (m := cv.BFMatcher(), m.add(images)) and m.knnMatch(a, 3),
        lambda cv: (m := cv.BFMatcher(), m.add(images)) and m.match(a),
    ):
        theirs, ours = (neighbours(call(cv)) for cv in (opencv, compat))
        assert np.array_equal(theirs[:3], ours[:3]) and np.allclose(theirs[3], ours[3], rtol=1e-5, atol=0)
    for norm, given in [(compat.NORM_L2, (radius,)), (compat.NORM_L2SQR, (radius**2, mask))]:
        theirs, ours = (neighbours(cv.BFMatcher(norm).radiusMatch(a, b, *given)) for cv in (opencv, compat))
        assert np.array_equal(ours, ours[:, np.lexsort((ours[2], ours[3], ours[0]))]), "OpenCV's equals have no order"
        theirs, ours = (found[:, np.lexsort((found[2], found[0]))] for found in (theirs, ours))
        assert np.array_equal(theirs[:3], ours[:3]) and np.allclose(theirs[3], ours[3], rtol=1e-5, atol=0)


def test_empty_images_among_the_added_keep_their_numbers():
    matcher = compat.BFMatcher()
    matcher.add([unit[:3], unit[:0], unit[3:9]])
    assert [(m.imgIdx, m.trainIdx) for m in matcher.match(unit[:9])] == [(0, 0), (0, 1), (0, 2), *((2, i) for i in range(6))]


def test_memory_does_not_grow_with_what_is_searched_in():
    import tracemalloc

    many = np.random.default_rng(6).uniform(size=(100_000, 4)).astype(np.float32)
    tracemalloc.start()
    compat.BFMatcher().knnMatch(many[:1000], many, k=3)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 150 << 20


def test_masks_of_added_descriptors(scene, opencv):
    """In OpenCV's forms without descriptors to search in, with the masks by name and by place."""
    described = opencv.SIFT_create(200).detectAndCompute(scene.reference, None)[1]
    mask = np.zeros((len(described),) * 2, np.uint8)
    mask[:5, :10] = 1
    for matcher in (compat.BFMatcher(), opencv.BFMatcher()):
        matcher.add([described])
        by_name = matcher.knnMatch(described, k=2, masks=[mask])
        told = [
            [[(m.queryIdx, m.trainIdx) for m in row] for row in rows]
            for rows in (by_name, matcher.knnMatch(described, 2, [mask], True), matcher.radiusMatch(described, 300.0, [mask], True))
        ]
        told.append([(m.queryIdx, m.trainIdx) for m in matcher.match(described, masks=[mask])])
        told.append([(m.queryIdx, m.trainIdx) for m in matcher.match(described, [mask])])
        assert len(by_name) == len(described) and [len(row) for row in by_name[:6]] == [2] * 5 + [0]
        assert len(told[1]) == len(told[3]) == 5
        if isinstance(matcher, opencv.BFMatcher):
            assert told == ours
        ours = told


def test_thresholds_below_0_drop_nothing(scene, opencv):
    """As the benchmark of image matching sets them: every extremum, on edges and in faint places too."""
    without = {"contrastThreshold": -10000, "edgeThreshold": -10000}
    counts = [len(cv.SIFT_create(**without).detect(scene.reference)) for cv in (opencv, compat)]
    assert abs(counts[1] / counts[0] - 1) < 0.05 and counts[1] > 1.2 * len(compat.SIFT_create().detect(scene.reference))


def test_what_a_matcher_was_trained_with_is_prepared_once():
    random = np.random.default_rng(1)
    tables = [random.integers(0, 200, (50, 8)).astype(np.float32) for _ in range(3)]
    matcher = compat.BFMatcher()
    matcher.add(tables[:2])
    matcher.train()
    first = matcher.knnMatch(tables[1][:4], k=1)
    joined = matcher._joined
    assert [row[0].imgIdx for row in first] == [1] * 4 and matcher.knnMatch(tables[1][:4], k=1)[0][0].trainIdx == 0
    assert matcher._joined is joined and matcher.match(tables[0][:1], tables[2])[0].imgIdx == 0
    matcher.add(tables[2:])
    assert [match.imgIdx for match in matcher.match(tables[2])] == [2] * 50
    matcher.clear()
    assert matcher.knnMatch(tables[0], k=1) == ()


@pytest.mark.parametrize("parameters", [{}, {"algorithm": 0}, {"algorithm": 1, "trees": 5}, {"algorithm": 255}])
def test_flann_refuses_bytes_unless_its_index_is_one_of_hashes(parameters, tables, opencv):
    a, b = tables
    bits = [np.uint8(side) for side in (a, b)]
    for given in ((bits[0], bits[1]), (a, bits[1]), (bits[0], b)):
        with pytest.raises(opencv.error):
            opencv.FlannBasedMatcher(parameters, {}).knnMatch(*given, k=2) if parameters else opencv.FlannBasedMatcher().knnMatch(*given, k=2)
        with pytest.raises(tp.OptionError, match="descriptors are uint8.*NORM_HAMMING"):
            compat.FlannBasedMatcher(parameters, {}).knnMatch(*given, k=2)
    assert len(compat.FlannBasedMatcher(parameters, {}).knnMatch(a, b, k=2)) == len(a)


@pytest.mark.parametrize("parameters", [{"algorithm": 7}, {"algorithm": "1"}, {"trees": 5}])
def test_flann_refuses_an_algorithm_that_it_does_not_have(parameters, tables, opencv):
    with pytest.raises(opencv.error):
        opencv.FlannBasedMatcher(parameters, {}).match(*tables)
    with pytest.raises(tp.OptionError, match="FLANN's algorithm is .* expected one of 0, 1"):
        compat.FlannBasedMatcher(parameters, {})
