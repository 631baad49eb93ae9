"""`cv2compat`: OpenCV's names, arguments, shapes and conventions, compared with OpenCV where that is installed.

Matchers are in test_cv2compat_matching.py, models and maps in test_cv2compat_geometry.py.
"""

import multiprocessing
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import tiepoint as tp
import tiepoint.cv2compat as compat


def distances(a, b):
    return np.sqrt(((a[:, None].astype(np.float64) - b[None]) ** 2).sum(-1))


def test_origin_says_whether_a_name_is_opencv_s_or_ours(alone, monkeypatch, opencv):
    names = ["SIFT_create", "BFMatcher", "xfeatures2d.SURF_create", "xfeatures2d_SURF", "ximgproc.createRightMatcher", "KeyPoint"]
    for name in [*names, "KeyPoint_convert", "KeyPoint_overlap"]:
        assert compat.origin(name) == "tiepoint"
    assert compat.KeyPoint_convert([compat.KeyPoint(1, 2, 3)]).tolist() == [[1, 2]]
    assert compat.__version__.split(".")[0] == "5"
    with pytest.raises(AttributeError, match="ORB_create is OpenCV's own, which is not installed"):
        compat.origin("ORB_create")
    with pytest.raises(AttributeError, match=r"xfeatures2d.DAISY_create is OpenCV's own"):
        compat.xfeatures2d.DAISY_create  # noqa: B018
    with pytest.raises(AttributeError):
        compat.__wrapped__  # noqa: B018
    monkeypatch.setitem(sys.modules, "cv2", opencv)
    for name in ["ORB_create", "KeyPoint", "drawMatches", "ximgproc.createFastLineDetector"]:
        assert compat.origin(name) == "opencv"
    assert compat.origin("SIFT") == compat.origin("ximgproc.createRightMatcher") == "tiepoint"
    with pytest.raises(AttributeError):
        compat.origin("no_such_name")
    assert compat.__version__ == opencv.__version__
    assert {"ORB_create", "SIFT_create", "KeyPoint"} <= set(dir(compat)) and "Any" not in dir(compat)


def test_a_colour_is_blue_green_red(colour, opencv):
    bgr = np.ascontiguousarray(colour[..., ::-1])
    grey = opencv.cvtColor(bgr, opencv.COLOR_BGR2GRAY)
    from tiepoint.cv2compat._detectors import grey as made

    assert np.array_equal(made(bgr), grey)
    assert np.array_equal(made(np.dstack([bgr, np.zeros(bgr.shape[:2], np.uint8)])), grey), "alpha does not count"
    assert np.array_equal(made(opencv.UMat(bgr)), grey)
    for kind, scale in [(np.uint16, 257), (np.float32, 1 / 255)]:
        image = (bgr * kind(scale)).astype(kind)
        assert np.allclose(made(image), opencv.cvtColor(image, opencv.COLOR_BGR2GRAY), atol=1 if kind == np.uint16 else 1e-5)
    for detector in [compat.SIFT_create(), compat.xfeatures2d.SURF_create()]:
        points, found = detector.detectAndCompute(bgr, None)
        again, same = detector.detectAndCompute(grey, None)
        assert [p.pt for p in points] == [p.pt for p in again] and np.array_equal(found, same)


def test_sift_is_opencv_s_sift(scene, opencv):
    """97 % of OpenCV's keypoints are found at the same place, with its size, angle and descriptor."""
    for precise in (False, True):
        options = {"nfeatures": 0, "contrastThreshold": 0.03, "enable_precise_upscale": precise}
        theirs, wanted = opencv.SIFT_create(**options).detectAndCompute(scene.reference, None)
        ours, found = compat.SIFT_create(**options).detectAndCompute(scene.reference, None)
        away = distances(np.array([p.pt for p in theirs]), np.array([p.pt for p in ours]))
        near = away.argmin(1)
        same = away.min(1) < 0.1
        assert same.mean() > 0.97 and abs(len(ours) - len(theirs)) < (0.1 if precise else 0.02) * len(theirs)
        offset = np.array([np.subtract(ours[j].pt, theirs[i].pt) for i, j in enumerate(near) if same[i]])
        assert np.abs(np.median(offset, 0)).max() < 0.02
        assert np.median([ours[j].size / theirs[i].size for i, j in enumerate(near) if same[i]]) == pytest.approx(1, abs=0.01)
        cosine = (wanted * found[near]).sum(1) / np.linalg.norm(wanted, axis=1) / np.linalg.norm(found[near], axis=1)
        assert np.median(cosine[same]) > 0.99


def test_parameters_of_detectors_are_read_and_set(scene):
    sift = compat.SIFT.create(50, 3, 0.04, 10, 1.6, 0)
    assert (sift.getNFeatures(), sift.getContrastThreshold(), sift.descriptorType()) == (50, 0.04, 0)
    assert len(sift.detect(scene.reference)) <= 60
    _, found = sift.detectAndCompute(scene.reference, None)
    assert found.dtype == np.uint8 and (sift.descriptorSize(), sift.defaultNorm()) == (128, compat.NORM_L2)
    sift.setNFeatures(0)
    sift.setContrastThreshold(0.02)
    assert sift.getNFeatures() == 0 and len(sift.detect(scene.reference)) > 100
    with pytest.raises(tp.OptionError, match="sigma"):
        sift.setSigma(77)
    assert sift.getSigma() == 1.6, "a refused value was kept"
    surf = compat.xfeatures2d.SURF_create(400)
    few = len(surf.detect(scene.reference))
    surf.setHessianThreshold(50)
    surf.setExtended(True)
    points, found = surf.detectAndCompute(scene.reference, None)
    assert 0 < few < len(points) and found.shape[1] == surf.descriptorSize() == 128
    assert {p.class_id for p in points} == {-1, 1} and all(p.size >= 9 for p in points)
    for wrong in [{"descriptorType": 6}, {"nOctaveLayers": 99}]:
        with pytest.raises(tp.OptionError):
            compat.SIFT_create(**wrong)


def test_given_keypoints_are_described(scene, opencv):
    for detector in [compat.SIFT_create(), compat.SIFT_create(enable_precise_upscale=True), compat.xfeatures2d.SURF_create()]:
        points, wanted = detector.detectAndCompute(scene.reference, None)
        some = [points[i] for i in (7, 3, 12)]
        kept, found = detector.compute(scene.reference, some)
        assert [p.pt for p in kept] == [p.pt for p in some] and np.array_equal(found, wanted[[7, 3, 12]])
    corners = opencv.FastFeatureDetector_create(40).detect(scene.reference)
    _, ours = compat.SIFT_create().compute(scene.reference, corners)
    _, theirs = opencv.SIFT_create().compute(scene.reference, corners)
    assert ours.shape == theirs.shape and len(corners) > 20
    outside = [compat.KeyPoint(-5, 5, 8), compat.KeyPoint(60.0, 60.0, 8, 0)]
    with pytest.warns(UserWarning, match="1 of 2 keypoints"):
        kept, found = compat.SIFT_create().compute(scene.reference, outside)
    assert [p.pt for p in kept] == [(60.0, 60.0)] and found.shape == (1, 128)
    assert compat.SIFT_create().compute(scene.reference, []) == ((), None)
    with pytest.raises(tp.MismatchError, match="SIFT.compute describes any"):
        compat.xfeatures2d.SURF_create().compute(scene.reference, corners[:3])
    with pytest.raises(tp.OptionError, match=r"compute\(image, keypoints\)"):
        compat.SIFT_create().detectAndCompute(scene.reference, None, useProvidedKeypoints=True)


def test_keypoints_of_grids_and_other_detectors_are_described_as_opencv_does(scene, opencv):
    """In the octave and layer that they name; keypoints that were not found by SIFT name the first."""
    image = scene.reference
    grid = [(float(x), float(y)) for y in range(20, 220, 20) for x in range(20, 300, 20)]
    for size, angle in [(6, 0), (16, 30), (64, 200), (16, -1), (300, 90)]:
        points = [opencv.KeyPoint(x, y, size, angle) for x, y in grid]
        (kept, ours), (_, theirs) = (cv.SIFT_create().compute(image, points) for cv in (compat, opencv))
        assert len(kept) == len(grid) and [p.angle for p in kept] == [angle] * len(grid)
        cosine = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
        # At −1, OpenCV adds some gradients to the cell beside the right one.
        assert np.median(cosine) > 0.9999 and (cosine.min() > 0.999 or angle == -1), (size, angle, cosine.min())
    found = [p for p in opencv.ORB_create(300).detect(image) if p.octave < 4]
    (_, ours), (_, theirs) = (cv.SIFT_create().compute(image, found) for cv in (compat, opencv))
    assert np.median(np.abs(ours - theirs)) <= 1 and len(ours) > 100


def test_parameters_are_saved_and_read(opencv, tmp_path):
    path = str(tmp_path / "parameters.yml")
    held = opencv.FileStorage(path, opencv.FILE_STORAGE_WRITE)
    compat.SIFT_create(123, 4, 0.03, 12, 1.4).write(held, "sift")
    compat.BFMatcher(crossCheck=True).write(held, "matcher")
    compat.StereoSGBM_create(1, 64, 5, mode=compat.STEREO_SGBM_MODE_HH).write(held, "stereo")
    held.release()
    held, sift, stereo = opencv.FileStorage(path, opencv.FILE_STORAGE_READ), compat.SIFT_create(), compat.StereoSGBM_create()
    sift.read(held.getNode("sift"))
    stereo.read(held.getNode("stereo"))
    assert (sift.getNFeatures(), sift.getNOctaveLayers(), sift.getEdgeThreshold(), sift.getSigma()) == (123, 4, 12, 1.4)
    assert (stereo.getMinDisparity(), stereo.getNumDisparities(), stereo.getMode()) == (1, 64, compat.STEREO_SGBM_MODE_HH)
    stereo.save(path)
    assert "numDisparities: 64" in (tmp_path / "parameters.yml").read_text()
    with pytest.raises(compat.error, match="OpenCV has no BOWKMeansTrainer"):
        compat.BOWKMeansTrainer(3).save(path)


def test_bags_of_words(scene, opencv):
    images = [scene.reference, scene.moving, scene.reference[:120]]
    sift = compat.SIFT_create()
    trainer = compat.BOWKMeansTrainer(12)
    for image in images:
        trainer.add(sift.detectAndCompute(image, None)[1])
    words = trainer.cluster()
    assert words.shape == (12, 128) and trainer.descriptorsCount() == sum(map(len, trainer.getDescriptors())) > 300
    made = []
    for extractor, matcher in [(sift, compat.FlannBasedMatcher({"algorithm": 1}, {})), (opencv.SIFT_create(), opencv.BFMatcher())]:
        bag = compat.BOWImgDescriptorExtractor(extractor, matcher)
        with pytest.raises(compat.error, match="setVocabulary before compute"):
            bag.compute(images[0], sift.detect(images[0]))
        bag.setVocabulary(words)
        made.append([bag.compute(image, sift.detect(image)) for image in images])
        assert bag.compute(images[0], []) is None
        assert (bag.descriptorSize(), bag.descriptorType()) == (12, opencv.CV_32F) and bag.getVocabulary() is words
    for image, ours, theirs in zip(images, *made, strict=True):
        descriptors = sift.detectAndCompute(image, None)[1]
        share = np.bincount(distances(descriptors, words).argmin(1), minlength=12) / len(descriptors)
        assert ours.dtype == np.float32 and np.allclose(ours, share[None]) and np.abs(ours - theirs).max() < 0.02
    for wrong, message in [(lambda: compat.BOWKMeansTrainer(0), "at least 1"), (compat.BOWKMeansTrainer(2).cluster, "there are 0 descriptors")]:
        with pytest.raises(compat.error, match=message):
            wrong()


def test_lists_of_images(scene):
    sift, both = compat.SIFT_create(), [scene.reference, scene.moving]
    found = sift.detect(both)
    assert [len(f) for f in found] == [len(sift.detect(image)) for image in both]
    half = np.zeros(scene.reference.shape, np.uint8)
    half[:, :160] = 255
    masked = sift.detect(both, [half, half])
    assert all(p.pt[0] < 160.5 for f in masked for p in f)
    points, described = sift.compute(both, found)
    assert [len(p) for p in points] == [len(f) for f in found] and [len(d) for d in described] == [len(f) for f in found]


def test_wrong_images_are_errors():
    sift = compat.SIFT_create()
    for image, message in [(None, "cv2.imread gives None"), ("a.png", "tiepoint.read reads the file"), (b"", "decode")]:
        with pytest.raises(tp.ImageError, match=message):
            sift.detectAndCompute(image, None)


def test_keypoints_and_matches_are_classes(alone, opencv):
    """Our classes for machines without OpenCV behave as OpenCV's."""
    own = (compat.KeyPoint, compat.DMatch)
    results = []
    for kind, match in [own, (opencv.KeyPoint, opencv.DMatch)]:
        a, b = kind(1.0, 2.0, 10.0), kind(5.0, 2.0, 6.0, 30.0, 0.5, 2, 7)
        assert isinstance(a, kind) and kind().size == 0 and match().trainIdx == -1
        places = kind.convert([a, b])
        assert places.dtype == np.float32 and kind.convert([a, b], [1]).tolist() == [[5, 2]]
        made = kind.convert(places, 9.0)
        far = match(1, 2, 0, 9.5)
        results.append(
            [
                [(p.pt, p.size, p.angle, p.response, p.octave, p.class_id) for p in (a, b, *made)],
                [kind.overlap(a, q) for q in (b, a, kind(90, 2, 6), kind(1, 2, 2))],
                [(m.queryIdx, m.trainIdx, m.imgIdx, m.distance) for m in (match(1, 2, 3.5), far, match())],
            ]
        )
    assert results[0][0] == results[1][0] and results[0][2] == results[1][2]
    assert np.allclose(results[0][1], results[1][1], atol=1e-5)
    with pytest.raises(TypeError):
        own[1](1, 2)


def test_functions_of_opencv_can_be_sent_to_other_processes(opencv, tmp_path):
    for call in (compat.imread, compat.ximgproc.createFastLineDetector):
        assert pickle.loads(pickle.dumps(call)) is call
    assert compat.imread is compat.imread
    opencv.imwrite(str(tmp_path / "a.png"), np.zeros((5, 6, 3), np.uint8))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(compat.imread, [str(tmp_path / "a.png")])[0].shape == (5, 6, 3)


IN_PLACE = """
import sys
import tiepoint.cv2compat as compat
sys.modules["cv2"] = compat
import cv2
from cv2 import ORB_create
assert cv2 is compat and cv2.origin("imread") == "opencv" and cv2.imread("no such file") is None
assert isinstance(ORB_create(), cv2.Feature2D) and type(cv2.KeyPoint()).__module__ == "cv2"
assert type(cv2.BFMatcher(cv2.NORM_HAMMING)) is not compat.BFMatcher and cv2.imread is compat.imread
"""

MODULES_IN_PLACE = """
import sys
import tiepoint.cv2compat as compat
sys.modules["cv2"] = compat
from cv2.xfeatures2d import SIFT_create, SURF_create
from cv2.ximgproc import createFastLineDetector, createRightMatcher
from cv2.aruco import ArucoDetector
import cv2.typing, cv2.ximgproc.segmentation, cv2.ximgproc as ximgproc
assert SIFT_create is compat.SIFT and ximgproc is compat.ximgproc and createRightMatcher is ximgproc.createRightMatcher
assert compat.origin("ximgproc.createFastLineDetector") == compat.origin("typing") == "opencv"
assert cv2.typing.__spec__.name == "cv2.typing"
from tiepoint.cv2compat.xfeatures2d import SURF_create as surf
from tiepoint.cv2compat.aruco import ArucoDetector as detector
assert surf is SURF_create and detector is ArucoDetector
try:
    import cv2.no_such_module
    raise AssertionError
except ModuleNotFoundError:
    pass
"""


@pytest.mark.parametrize("script", [IN_PLACE, MODULES_IN_PLACE])
@pytest.mark.parametrize("before", ["", "import cv2", "import tiepoint.cv2compat, cv2", "import tiepoint.cv2compat; tiepoint.cv2compat.imread"])
def test_other_programs_can_be_given_this_module_as_cv2(before, script, opencv):
    subprocess.run([sys.executable, "-c", before + script], check=True)


def test_modules_of_opencv_stay_its_own_where_it_is_cv2(opencv):
    script = "import tiepoint.cv2compat; from cv2.ximgproc import createRightMatcher; import cv2; assert cv2.__spec__.origin; "
    script += "assert createRightMatcher is cv2.ximgproc.createRightMatcher is not tiepoint.cv2compat.ximgproc.createRightMatcher"
    for before in ("", "import cv2; ", "import tiepoint.cv2compat; tiepoint.cv2compat.imread; "):
        subprocess.run([sys.executable, "-c", before + script], check=True)


def test_programs_that_ask_for_modules_of_opencv_find_them(opencv):
    script = "import cv2, tiepoint.cv2compat; from importlib.util import find_spec; "
    script += "assert all(find_spec(f'cv2.{name}').name == f'cv2.{name}' for name in ('ximgproc', 'xfeatures2d', 'detail', 'dnn')); "
    script += "assert all(find_spec(f'tiepoint.cv2compat.{name}') for name in ('ximgproc', 'xfeatures2d', 'detail'))"
    subprocess.run([sys.executable, "-c", script], check=True)
    subprocess.run([sys.executable, "-c", "import tiepoint.cv2compat; " + script], check=True)


def test_the_number_of_threads_is_ours_and_opencv_s(opencv, scene, monkeypatch):
    before = opencv.getNumThreads()
    try:
        for given, threads in [(1, 1), (0, 1), (3, 3)]:
            compat.setNumThreads(given)
            sift, stereo = compat.SIFT_create(), compat.StereoSGBM_create()
            assert opencv.getNumThreads() == compat.getNumThreads() == threads
            assert {sift._detector().device.threads, stereo._stereo.device.threads} == {threads}
            assert len(sift.detect(scene.reference)) > 100
        assert compat.SIFT_create(device="cpu")._detector().device == "cpu", "a device of its own"
        monkeypatch.setitem(sys.modules, "cv2", None)
        compat.setNumThreads(2)
        assert compat.SIFT_create()._detector().device.threads == 2
        compat.setNumThreads(-1)
        assert compat.SIFT_create()._detector().device is None
    finally:
        compat.setNumThreads(-1)
        opencv.setNumThreads(before)


def test_methods_that_need_opencv_are_errors_without_it(alone, colour):
    with pytest.raises(tp.OptionError, match="others need OpenCV"):
        compat.warpPerspective(colour, np.eye(3), (9, 9), flags=compat.INTER_NEAREST)
    with pytest.raises(tp.OptionError, match="FM_7POINT"):
        compat.findFundamentalMat(np.zeros((7, 2)), np.zeros((7, 2)), compat.FM_7POINT)


def test_the_parameters_of_sgbm(pair, opencv):
    given = dict(zip("minDisparity numDisparities blockSize P1 P2 disp12MaxDiff".split(), (0, 32, 5, 600, 2400, 1)))
    given |= {"preFilterCap": 63, "uniquenessRatio": 10, "speckleWindowSize": 50, "speckleRange": 2, "mode": 1}
    ours, theirs = compat.StereoSGBM_create(**given), opencv.StereoSGBM_create(**given)
    getters = [name for name in dir(theirs) if name.startswith("get")]
    assert {name: getattr(ours, name)() for name in getters} == {name: getattr(theirs, name)() for name in getters}
    for name in getters:
        if name != "getDefaultName":
            getattr(ours, name.replace("get", "set"))(getattr(theirs, name)())
    assert isinstance(ours, compat.StereoSGBM) and compat.StereoSGBM_MODE_HH == compat.StereoSGBM.MODE_HH == 1
    disparity = ours.compute(pair.left, pair.right)
    assert disparity.dtype == np.int16 and disparity.shape == pair.left.shape
    valid = (disparity >= 0) & (pair.visible != 0)
    assert valid.mean() > 0.7 and np.median(np.abs(disparity[valid] / 16 - pair.truth_left[valid])) < 0.3
    assert set(disparity[disparity < 0].tolist()) == {-16}
    own = np.zeros(pair.left.shape, np.int16)
    assert ours.compute(pair.left, pair.right, own) is own and np.array_equal(own, disparity)
    ours.setNumDisparities(16)
    assert ours.compute(pair.left, pair.right).max() <= 16 * 16
    ours.setDisp12MaxDiff(-1)
    ours.setUniquenessRatio(-1)
    with pytest.raises(tp.OptionError, match="mode"):
        ours.setMode(9)
    with pytest.raises(tp.OptionError, match="mode"):
        compat.StereoSGBM_create(mode=9)


def test_a_colour_pair_is_blue_green_red(pair):
    left, right = (np.stack([i, np.roll(i, 1, 0), 255 - i], -1) for i in (pair.left, pair.right))
    found = compat.StereoSGBM_create(numDisparities=32).compute(left[..., ::-1], right[..., ::-1])
    stereo = tp.Stereo(disparities=32, paths=5, speckle_size=0, speckle_difference=0.0)
    wanted = stereo.compute(left, right).disparity
    assert np.array_equal(found == -16, np.isnan(wanted)) and np.abs(found / 16 - wanted)[found != -16].max() < 0.04


def test_the_right_matcher_and_the_wls_recipe(pair, opencv):
    left = compat.StereoSGBM_create(numDisparities=32, blockSize=5)
    right = compat.ximgproc.createRightMatcher(left)
    assert isinstance(right, compat.StereoSGBM)
    theirs = opencv.ximgproc.createRightMatcher(left.opencv())
    for name in ("MinDisparity", "NumDisparities", "BlockSize", "SpeckleWindowSize", "Disp12MaxDiff"):
        assert getattr(right, f"get{name}")() == getattr(theirs, f"get{name}")(), name
    a, b = left.compute(pair.left, pair.right), right.compute(pair.right, pair.left)
    valid = b > (right.getMinDisparity() - 1) * 16
    assert valid.mean() > 0.6 and (b[valid] <= 0).all()
    smooth = compat.ximgproc.createDisparityWLSFilter(matcher_left=left)
    smooth.setLambda(8000)
    filtered = smooth.filter(a, pair.left, disparity_map_right=b)
    inside = pair.visible[:, 32:] != 0
    assert filtered.shape == a.shape and np.median(np.abs(filtered[:, 32:] / 16 - pair.truth_left[:, 32:])[inside]) < 1


def test_opencv_functions_that_refuse_our_objects_name_the_way_out(scene, opencv):
    sift = compat.SIFT_create(contrastThreshold=0.03)
    with pytest.raises(TypeError, match=r"AffineFeature_create is OpenCV's own, and takes no SIFT of tiepoint: .*\.opencv\(\)"):
        compat.AffineFeature_create(sift)
    assert compat.AffineFeature_create(sift.opencv()).detect(scene.reference)
    assert sift.opencv().getContrastThreshold() == 0.03
    with pytest.raises(opencv.error):
        compat.cvtColor(scene.reference, 77777)
    for ours in (compat.BFMatcher(), compat.FlannBasedMatcher(), compat.StereoSGBM_create()):
        assert type(ours.opencv()).__module__.startswith("cv2")


def test_features_for_stitching(scene, opencv):
    """OpenCV's stitching takes its own structure with our features in it."""
    finder = compat.SIFT_create()
    found = [compat.detail.computeImageFeatures2(finder, image) for image in (scene.reference, scene.moving)]
    assert len(found[0].keypoints) == len(finder.detect(scene.reference)) and found[0].img_size == (320, 240)
    assert [f.img_idx for f in compat.detail.computeImageFeatures(finder, [scene.reference, scene.moving])] == [0, 1]
    matcher = compat.detail_BestOf2NearestMatcher(False, 0.65)
    pairs = matcher.apply2(found)
    matcher.collectGarbage()
    assert max(p.num_inliers for p in pairs) > 30
    theirs = compat.detail.computeImageFeatures2(opencv.ORB_create(), scene.reference)
    assert len(theirs.keypoints) > 0


#: Calls that OpenCV refuses, and the class of our own that our error has, too.
REFUSED = {
    "of another width": (lambda: compat.BFMatcher().match(np.ones((4, 8), np.float32), np.ones((4, 4), np.float32)), tp.MismatchError),
    "neighbours of a cross check": (lambda: compat.BFMatcher(crossCheck=True).knnMatch(*np.ones((2, 4, 8), np.float32), k=2), tp.OptionError),
    "too few points": (lambda: compat.findHomography(*np.ones((2, 3, 2)), compat.RANSAC, 3.0), tp.ModelError),
    "points without a partner": (lambda: compat.findHomography(np.ones((9, 2)), np.ones((8, 2)), compat.RANSAC), tp.MismatchError),
    "no scene.reference": (lambda: compat.warpPerspective(None, np.eye(3), (5, 5)), tp.ImageError),
    "half a pixel": (lambda: compat.warpPerspective(np.ones((5, 5), np.uint8), np.eye(3), (5.5, 5)), TypeError),
    "pictures of two sizes": (
        lambda: compat.StereoSGBM_create(0, 16, 3).compute(np.zeros((50, 60), np.uint8), np.zeros((50, 61), np.uint8)),
        tp.MismatchError,
    ),
    "an unknown argument": (lambda: compat.SIFT_create(foo=1), TypeError),
    "a parameter out of range": (lambda: compat.SIFT_create().setSigma(-1.0), tp.OptionError),
}


@pytest.mark.parametrize("call", REFUSED)
def test_errors_are_opencv_s_too(call, opencv):
    refused, ours = REFUSED[call]
    with pytest.raises(compat.error) as caught:
        refused()
    error = caught.value
    assert isinstance(error, opencv.error) and isinstance(error, ours)
    assert error.code == -5 and error.err == str(error) and isinstance(error.func, str)
    sent = pickle.loads(pickle.dumps(error))
    assert type(sent) is type(error) and str(sent) == str(error)
    assert (sent.code, sent.err, sent.func, sent.msg) == (error.code, error.err, error.func, error.msg)


def form(found):
    """Shapes and types of arrays, and every other value itself."""
    if isinstance(found, np.ndarray):
        return found.shape, found.dtype
    return tuple(map(form, found)) if isinstance(found, tuple) else found


#: Calls that scripts make, of a grey image, points in it and descriptors: results of one shape, type and truth in both modules.
AGREE = {
    "a mask that is given is returned": lambda cv, g, p, d: cv.findHomography(p, p, cv.RANSAC, 3.0, m := np.zeros((len(p), 1), np.uint8))[1] is m,
    "a mask in every second row": lambda cv, g, p, d: cv.findHomography(p, p, cv.RANSAC, 3.0, np.zeros((2 * len(p), 1), np.uint8)[::2])[1],
    "parameters of USAC by name": lambda cv, g, p, d: cv.findHomography(p, p, params=cv.UsacParams()),
    "the same of affine maps": lambda cv, g, p, d: cv.estimateAffine2D(p, p + 1, params=cv.UsacParams()),
    "the same by place": lambda cv, g, p, d: cv.estimateAffine2D(p, p + 1, cv.UsacParams()),
    "a size in an array": lambda cv, g, p, d: cv.warpPerspective(g, np.eye(3), np.array([80, 60])),
    "six channels": lambda cv, g, p, d: cv.warpPerspective(np.dstack([g] * 6), np.eye(3), (80, 60)),
    "a matrix that is a UMat": lambda cv, g, p, d: cv.warpPerspective(cv.UMat(g), cv.UMat(np.eye(3)), (80, 60)).get(),
    "a camera that is a UMat": lambda cv, g, p, d: cv.findEssentialMat(p, p + 5, cv.UMat(np.diag([500, 500, 1.0])))[0],
    "no keypoints": lambda cv, g, p, d: cv.SIFT_create().compute(g, None),
    "nothing was added": lambda cv, g, p, d: cv.BFMatcher().knnMatch(d, k=2),
    "one descriptor": lambda cv, g, p, d: [m.trainIdx for m in cv.BFMatcher().match(d[7], d)],
    "masks that are UMats": lambda cv, g, p, d: (
        len(cv.SIFT_create().detectAndCompute(g, cv.UMat(np.zeros_like(g)))[0]),
        len(cv.BFMatcher().match(d, d, cv.UMat(np.eye(len(d), dtype=np.uint8)))),
        len(cv.BFMatcher().knnMatch(cv.UMat(d), cv.UMat(d), 2, cv.UMat(np.ones((len(d), len(d)), np.uint8)))),
    ),
    "empty masks": lambda cv, g, p, d: (
        len(cv.SIFT_create(9).detect(g, e := np.zeros((0, 0), np.uint8))) > 0,
        len(cv.BFMatcher().match(d, d, e)),
    ),
    "images by name": lambda cv, g, p, d: (
        len(k := cv.SIFT_create(9).detect(images=[g, g])),
        len(cv.SIFT_create(9).detect(images=[g], masks=[np.ones_like(g)])),
        len(cv.SIFT_create().compute(images=[g, g], keypoints=k)[1]),
    ),
    "a radius with crossCheck, which does not count": lambda cv, g, p, d: [
        [m.trainIdx for m in row] for row in cv.BFMatcher(cv.NORM_L2, True).radiusMatch(d, d[::2], 300.0)
    ],
    "the name of a matcher": lambda cv, g, p, d: cv.BFMatcher().getDefaultName(),
    "OpenCV's own detector": lambda cv, g, p, d: isinstance(cv.ORB_create(), cv.Feature2D) and isinstance(cv.ORB_create(), cv.Algorithm),
    "our own": lambda cv, g, p, d: isinstance(cv.SIFT_create(), cv.Feature2D) and isinstance(cv.SIFT_create(), cv.Algorithm),
    "OpenCV's own matcher": lambda cv, g, p, d: isinstance(cv.BFMatcher(cv.NORM_HAMMING), cv.BFMatcher),
    "a detector of another kind": lambda cv, g, p, d: isinstance(cv.ORB_create(), (cv.SIFT, cv.DescriptorMatcher)),
}


@pytest.mark.parametrize("call", AGREE)
def test_unusual_calls_agree_with_opencv(call, scene, opencv):
    points = np.random.default_rng(3).uniform(0, 200, (40, 2)).astype(np.float32)
    tables = opencv.SIFT_create(30).detectAndCompute(scene.reference, None)[1]
    theirs, ours = (AGREE[call](cv, scene.reference, points, tables) for cv in (opencv, compat))

    assert form(ours) == form(theirs)


@pytest.mark.parametrize(
    "given",
    [{"nOctaveLayers": 10}, {"nOctaveLayers": 20}, {"sigma": 0.5}, {"sigma": 5}, {"edgeThreshold": 1}, {"contrastThreshold": 2}],
)
def test_unusual_parameters_of_sift_find_about_as_many_as_opencv(scene, opencv, given):
    theirs, ours = (len(cv.SIFT_create(**given).detect(scene.reference)) for cv in (opencv, compat))
    assert theirs == ours == 0 or abs(ours / theirs - 1) < 0.15, (theirs, ours)


def test_errors_name_opencv_s_parameters():
    for call, name in [
        (lambda: compat.SIFT_create(nOctaveLayers=0), "nOctaveLayers"),
        (lambda: compat.SIFT_create(sigma=0.1), "sigma"),
        (lambda: compat.xfeatures2d.SURF_create(nOctaves=0), "nOctaves"),
        (lambda: compat.StereoSGBM_create(numDisparities=0), "numDisparities"),
        (lambda: compat.StereoSGBM_create().setUniquenessRatio(120), "uniquenessRatio"),
    ]:
        with pytest.raises(tp.OptionError, match=f"option {name} is"):
            call()


def test_arguments_of_another_type_are_told(opencv):
    grey, rows = np.zeros((60, 80), np.uint8), np.eye(4, dtype=np.float32)
    for call, told in [
        (lambda: compat.SIFT_create().compute(grey, [(1, 2)]), r"keypoints hold \(1, 2\): expected objects of cv2.KeyPoint"),
        (lambda: compat.SIFT_create().compute(grey, "abc"), "keypoints hold 'a': expected"),
        (lambda: compat.FlannBasedMatcher([1], {}), r"indexParams is \[1\]: expected a dict"),
        (lambda: compat.SIFT_create("10"), "option nfeatures is '10': expected a number"),
        (lambda: compat.SIFT_create().setNFeatures("10"), "option nfeatures is '10': expected a number"),
        (lambda: compat.BFMatcher().knnMatch(rows, rows, k=2.0), "option k is 2.0: expected a whole number"),
        (lambda: compat.warpPerspective(grey, np.eye(3), (80.0, 60.0)), "dsize is .*: expected .width, height., two whole"),
        (lambda: compat.warpPerspective(grey, np.eye(3), 800), "dsize is 800: expected"),
        (lambda: compat.SIFT_create().detect([grey, grey], [grey]), "there are 1 masks for 2 images"),
        (lambda: compat.SIFT_create().detect([[0, 1], [2, 3]]), r"the image is \[0, 1\]|the image is 0: expected an array"),
    ]:
        with pytest.raises((compat.error, TypeError), match=told):
            call()


def test_none_stands_for_a_default(opencv):
    random = np.random.default_rng(1)
    a = random.random((40, 2)) * 100
    matrix = np.array([[1.1, 0.02, 5], [-0.03, 0.97, 2], [0, 0, 1]])
    b = opencv.perspectiveTransform(a[:, None], matrix)[:, 0]
    found, inliers = compat.findHomography(a, b, compat.RANSAC, None, None, None, confidence=None)
    assert np.allclose(found, matrix, atol=1e-6) and inliers.all()
    camera = np.array([[800, 0, 320], [0, 800, 240], [0, 0, 1.0]])
    assert compat.findEssentialMat(a, b, camera, compat.RANSAC, 0.999, 1.0, None)[0].shape == (3, 3)


def test_umats_give_umats(scene, opencv):
    held = opencv.UMat(scene.reference)
    points, described = compat.SIFT_create(50).detectAndCompute(held, None)
    assert np.array_equal(described.get(), compat.SIFT_create(50).detectAndCompute(scene.reference, None)[1])
    assert np.array_equal(compat.SIFT_create().compute(held, points)[1].get(), compat.SIFT_create().compute(scene.reference, points)[1])
    size = (scene.reference.shape[1], scene.reference.shape[0])
    assert np.array_equal(compat.warpPerspective(held, np.eye(3), size).get(), scene.reference)
    points = np.random.default_rng(1).random((40, 2)).astype(np.float32) * 100
    for cv in (compat, opencv):
        pair = cv.UMat(points), cv.UMat(points + 3)
        for found, mask in (cv.findHomography(*pair, cv.RANSAC, 3.0), cv.estimateAffine2D(*pair)):
            assert np.allclose(found[:2], [[1, 0, 3], [0, 1, 3]], atol=1e-3) and isinstance(mask, cv.UMat) and mask.get().all()
    for cv in (compat, opencv):
        mask, warped = cv.UMat(np.zeros((40, 1), np.uint8)), cv.UMat(np.zeros_like(scene.reference))
        assert isinstance(cv.findHomography(points, cv.UMat(points + 3), cv.RANSAC, 3.0)[1], cv.UMat)
        assert isinstance(cv.findHomography(points, points + 3, cv.RANSAC, 3.0, mask)[1], cv.UMat) and mask.get().all()
        mask = cv.UMat(np.zeros((40, 1), np.uint8))
        cv.findEssentialMat(points, points + 3, np.eye(3), cv.RANSAC, 0.999, 1.0, 1000, mask)
        assert mask.get().any()
        assert isinstance(cv.warpPerspective(scene.reference, cv.UMat(np.eye(3)), size), cv.UMat)
        assert isinstance(cv.warpPerspective(scene.reference, np.eye(3), size, warped), cv.UMat)
        assert np.array_equal(warped.get(), scene.reference)
    stereo = compat.StereoSGBM_create(0, 16, 3)
    assert np.array_equal(stereo.compute(held, held).get(), stereo.compute(scene.reference, scene.reference))


def test_a_range_wider_than_the_images_is_told(opencv):
    image = np.random.default_rng(0).integers(0, 256, (40, 80), np.uint8)
    for least, count, wide in [(0, 64, False), (0, 80, True), (40, 48, True), (-16, 96, True), (-16, 80, False)]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            compat.StereoSGBM_create(least, count, 3).compute(image, image)
        assert len(told) == wide and all("80 pixels wide" in str(one.message) for one in told)
        assert not told or told[0].filename == __file__
        if wide:
            with pytest.raises(opencv.error):
                opencv.StereoSGBM_create(least, count, 3).compute(image, image)


def test_disparities_that_16_bits_do_not_hold_are_told():
    left = tp.synth.texture((2200, 40), seed=1)
    right = np.roll(left, -2100, axis=1)
    for least, count, wraps in [(2090, 20, True), (2028, 20, False), (-2047, 20, False), (-2048, 20, True)]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = compat.StereoSGBM_create(least, count, 3).compute(left, right)
        assert len(told) == wraps and all("others wrap, as OpenCV's do" in str(one.message) for one in told), (least, count)
        assert not told or told[0].filename == __file__
        if least == 2090:
            assert abs(np.median(found[:, 2120:-10]) - (2100 * 16 - 65536)) <= 1


def test_objects_are_empty_where_opencv_s_are(opencv):
    for name in ("StereoSGBM_create", "SIFT_create", "BFMatcher", "FlannBasedMatcher"):
        assert getattr(compat, name)().empty() == getattr(opencv, name)().empty(), name


def test_keypoints_that_are_left_out_are_told(scene):
    sift = compat.SIFT_create()
    given = [compat.KeyPoint(x, 20.0, size) for x, size in [(30.0, 5.0), (-30.0, 5.0), (40.0, 0.0), (50.0, 5.0)]]
    with pytest.warns(UserWarning, match="2 of 4 keypoints .* left out") as told:
        kept, found = sift.compute(scene.reference, given)
    assert told[0].filename == __file__ and [p.pt[0] for p in kept] == [30, 50] and len(found) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sift.compute(scene.reference, kept)
