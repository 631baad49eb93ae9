"""Scripts for OpenCV in which only the import changes.

OpenCV's own samples and tests, and those of other projects, are not part of this repository. Each test here is our own code
and makes the calls of the sample that its name says, in the same order and with the same arguments. Each runs once with
OpenCV and once with `tiepoint.cv2compat`.
"""

import importlib
import os

import numpy as np
import pytest
import tiepoint as tp

if not os.environ.get("TIEPOINT_REQUIRE_COMMAND"):
    pytest.importorskip("cv2")


@pytest.fixture(params=["cv2", "tiepoint.cv2compat"])
def cv(request):
    return importlib.import_module(request.param)


@pytest.fixture(scope="module")
def views(truth):
    """Two synthetic colour images in place of photographs."""
    scene = tp.synth.scene((480, 360), truth, seed=11)
    return [np.stack([g, 255 - g, np.roll(g, 25, 1)], -1) for g in (scene.reference, scene.moving)]


def error_of(matrix, truth):
    """Mean distance of corners in pixels."""
    return np.inf if matrix is None else tp.evaluate.corner_error(matrix, truth, (480, 360))


def init_feature(cv, name):
    """A detector and a matcher by a name such as "sift-flann", as samples choose them."""
    parts = name.split("-")
    if parts[0] == "sift":
        detector, norm = cv.SIFT_create(), cv.NORM_L2
    elif parts[0] == "surf":
        detector, norm = cv.xfeatures2d.SURF_create(800), cv.NORM_L2
    else:
        detector, norm = cv.ORB_create(1500), cv.NORM_HAMMING
    if "flann" not in parts:
        return detector, cv.BFMatcher(norm)
    if norm == cv.NORM_L2:
        return detector, cv.FlannBasedMatcher({"algorithm": 1, "trees": 5}, {})
    lsh = {"algorithm": 6, "table_number": 6, "key_size": 12, "multi_probe_level": 1}
    return detector, cv.FlannBasedMatcher(lsh, {})


def filtered(kp1, kp2, matches, ratio=0.75):
    chosen = [m[0] for m in matches if len(m) == 2 and m[0].distance < m[1].distance * ratio]
    kept = [(kp1[m.queryIdx], kp2[m.trainIdx]) for m in chosen]
    p1, p2 = (np.float32([pair[side].pt for pair in kept]) for side in (0, 1))
    return p1, p2, kept


@pytest.mark.parametrize("name", ["sift", "sift-flann", "surf", "surf-flann", "orb", "orb-flann"])
def test_find_obj(cv, views, truth, name):
    """find_obj.py: features of two grey pictures, knnMatch with the sample's arguments, findHomography, a drawing."""
    if name.startswith("surf") and cv.__name__ == "cv2":
        with pytest.raises(cv.error, match="patented"):
            init_feature(cv, name)
        return
    img1, img2 = (cv.cvtColor(view, cv.COLOR_BGR2GRAY) for view in views)
    detector, matcher = init_feature(cv, name)
    kp1, desc1 = detector.detectAndCompute(img1, None)
    kp2, desc2 = detector.detectAndCompute(img2, None)
    raw_matches = matcher.knnMatch(desc1, trainDescriptors=desc2, k=2)
    p1, p2, kept = filtered(kp1, kp2, raw_matches)
    assert len(p1) >= 4
    matrix, status = cv.findHomography(p1, p2, cv.RANSAC, 5.0)
    assert error_of(matrix, truth) < 4 and np.sum(status) > 15
    shown = cv.drawMatches(img1, kp1, img2, kp2, [row[0] for row in raw_matches], None)
    assert shown.shape == (360, 960, 3)
    assert all(isinstance(a, cv.KeyPoint) for a, _ in kept)


def test_asift(cv, views, truth):
    """asift.py: simulated views with masks, their keypoints mapped back to the image, one matching of all."""
    detector, matcher = init_feature(cv, "sift-flann")

    def affine_skew(tilt, phi, img):
        h, w = img.shape[:2]
        mask, pose = np.full((h, w), 255, np.uint8), np.float32([[1, 0, 0], [0, 1, 0]])
        if phi != 0.0:
            s, c = np.sin(np.deg2rad(phi)), np.cos(np.deg2rad(phi))
            a = np.float32([[c, -s], [s, c]])
            corners = np.int32(np.dot([[0, 0], [w, 0], [w, h], [0, h]], a.T)).reshape(1, -1, 2)
            x, y, w, h = cv.boundingRect(corners)
            pose = np.hstack([a, [[-x], [-y]]])
            img = cv.warpAffine(img, pose, (w, h), flags=cv.INTER_LINEAR, borderMode=cv.BORDER_REPLICATE)
        if tilt != 1.0:
            img = cv.GaussianBlur(img, (0, 0), sigmaX=0.8 * np.sqrt(tilt * tilt - 1), sigmaY=0.01)
            img = cv.resize(img, (0, 0), fx=1.0 / tilt, fy=1.0, interpolation=cv.INTER_NEAREST)
            pose[0] /= tilt
        if phi != 0.0 or tilt != 1.0:
            h, w = img.shape[:2]
            mask = cv.warpAffine(mask, pose, (w, h), flags=cv.INTER_NEAREST)
        return img, mask, cv.invertAffineTransform(pose)

    def affine_detect(img):
        keypoints, descriptors = [], []
        for tilt, phi in [(1.0, 0.0), (2.0, 0.0), (2.0, 72.0)]:
            skewed, mask, back = affine_skew(tilt, phi, img)
            found, described = detector.detectAndCompute(skewed, mask)
            for point in found:
                point.pt = tuple(np.dot(back, (*point.pt, 1)))
            keypoints.extend(found)
            descriptors.extend([] if described is None else described)
        return keypoints, np.array(descriptors)

    img1, img2 = (cv.cvtColor(view, cv.COLOR_BGR2GRAY) for view in views)
    kp1, desc1 = affine_detect(img1)
    kp2, desc2 = affine_detect(img2)
    p1, p2, _ = filtered(kp1, kp2, matcher.knnMatch(desc1, trainDescriptors=desc2, k=2))
    matrix, status = cv.findHomography(p1, p2, cv.RANSAC, 5.0)
    assert error_of(matrix, truth) < 3 and np.sum(status) > 30


@pytest.mark.parametrize("name", ["orb-flann", "sift-flann"])
def test_plane_tracker(cv, views, truth, name):
    """plane_tracker.py: targets added to a matcher, frames matched with all of them, k = 2."""
    detector, matcher = init_feature(cv, name)
    grey = [cv.cvtColor(view, cv.COLOR_BGR2GRAY) for view in views]
    targets = []
    for x0, y0, x1, y1 in [(0, 0, 240, 360), (240, 0, 480, 360)]:
        found, described = detector.detectAndCompute(grey[0], None)
        inside = [i for i, p in enumerate(found) if x0 <= p.pt[0] <= x1 and y0 <= p.pt[1] <= y1]
        matcher.add([np.uint8(described[inside]) if name.startswith("orb") else described[inside]])
        targets.append([found[i] for i in inside])
    points, described = detector.detectAndCompute(grey[1], None)
    matches = matcher.knnMatch(described, k=2)
    matches = [m[0] for m in matches if len(m) == 2 and m[0].distance < m[1].distance * 0.75]
    by_image = [[m for m in matches if m.imgIdx == i] for i in range(2)]
    for target, found in zip(targets, by_image, strict=True):
        assert len(found) > 8
        p0, p1 = (np.float32(p) for p in ([target[m.trainIdx].pt for m in found], [points[m.queryIdx].pt for m in found]))
        matrix, status = cv.findHomography(p0, p1, cv.RANSAC, 3.0)
        assert status.ravel().astype(bool).sum() > 8 and error_of(matrix, truth) < 12
    matcher.clear()


def test_stereo_match(cv, pair):
    """stereo_match.py: SGBM with the sample's arguments, fixed point converted to floats."""
    window_size, min_disp, num_disp = 3, 0, 32
    stereo = cv.StereoSGBM_create(
        minDisparity=min_disp,
        numDisparities=num_disp,
        blockSize=5,
        P1=8 * 3 * window_size**2,
        P2=32 * 3 * window_size**2,
        disp12MaxDiff=1,
        uniquenessRatio=10,
        speckleWindowSize=100,
        speckleRange=32,
    )
    left, right = (cv.cvtColor(i, cv.COLOR_GRAY2BGR) for i in (pair.left, pair.right))
    disp = stereo.compute(left, right).astype(np.float32) / 16.0
    valid = (disp > min_disp) & (pair.visible != 0)
    assert valid.mean() > 0.5 and (np.abs(disp - pair.truth_left)[valid] > 1).mean() < 0.1
    q = np.float32([[1, 0, 0, -120], [0, -1, 0, 80], [0, 0, 0, -100], [0, 0, 1, 0]])
    assert cv.reprojectImageTo3D(disp, q).shape == (*disp.shape, 3)


def test_stitching_detailed(cv, views):
    """stitching_detailed.py --features sift: features, pairwise matches and cameras by OpenCV's own stitching."""
    # With more inliers OpenCV takes the pictures for two copies of one and drops the pair.
    finder = cv.SIFT_create(120)
    features = [cv.detail.computeImageFeatures2(finder, np.repeat(view[..., :1], 3, -1)) for view in views]
    matcher = cv.detail_BestOf2NearestMatcher(False, 0.65)
    pairs = matcher.apply2(features)
    matcher.collectGarbage()
    assert max(p.num_inliers for p in pairs) > 30
    assert len(cv.detail.leaveBiggestComponent(features, pairs, 0.3)) == 2
    estimator = cv.detail_HomographyBasedEstimator()
    fine, cameras = estimator.apply(features, pairs, None)
    assert fine and len(cameras) == 2


def test_features2d(cv, views):
    """test_features2d.py and test_features.py: every method of detectors and matchers once, with OpenCV's types."""
    image = views[0]
    major = int(cv.__version__.split(".")[0])
    assert major >= 4
    sift = cv.SIFT.create(nfeatures=100)
    points = sift.detect(image)
    assert 0 < len(points) <= 110 and not isinstance(points[0].pt[0], np.generic)
    again, descriptors = sift.compute(image, points)
    assert len(again) == len(points) and descriptors.shape == (len(points), 128) and descriptors.dtype == np.float32
    assert (sift.descriptorSize(), sift.descriptorType(), sift.defaultNorm()) == (128, 5, cv.NORM_L2)
    assert sift.getDefaultName() == "Feature2D.SIFT"
    both = sift.detect([image, views[1]])
    assert isinstance(both, tuple) and len(both) == 2
    assert cv.KeyPoint.convert(points).shape == (len(points), 2)
    assert sift.detect(np.zeros((40, 40), np.uint8)) == ()
    assert sift.detectAndCompute(np.zeros((40, 40), np.uint8), None)[1] is None
    matcher = cv.BFMatcher.create(cv.NORM_L2, True)
    crossed = sorted(matcher.match(descriptors, descriptors), key=lambda m: m.distance)
    assert len(crossed) == len(points) and crossed[0].distance == 0
    general = cv.DescriptorMatcher_create("BruteForce")
    general.add([descriptors])
    general.train()
    assert [m.imgIdx for m in general.match(descriptors)] == [0] * len(points)
    umat = cv.UMat(image)
    assert len(cv.SIFT_create(100).detect(umat, None)) > 0


def test_opensfm(cv, views):
    """OpenSfM's extraction: the threshold falls until there are enough points, which are then described."""
    image = cv.cvtColor(views[0], cv.COLOR_BGR2GRAY)
    threshold, wanted = 0.2, 300
    while True:
        if int(cv.__version__.split(".")[0]) >= 4:
            detector = cv.SIFT_create(edgeThreshold=10, contrastThreshold=float(threshold))
        points = detector.detect(image)
        if len(points) >= wanted or threshold < 0.0001:
            break
        threshold = threshold * 2 / 3
    points, descriptors = detector.compute(image, points)
    assert len(points) >= wanted and descriptors.shape == (len(points), 128)
    table = np.array([(p.pt[0], p.pt[1], p.size, p.angle) for p in points])
    assert np.isfinite(table).all()


def test_two_views(cv):
    """essential_mat_reconstr.py and visual odometry: essential matrix, pose, triangulation."""
    k = np.array([[500, 0, 240], [0, 500, 180], [0, 0, 1.0]])
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, (200, 3)) + [0, 0, 6]
    turn, _ = cv.Rodrigues(np.array([0.0, 0.08, 0.01]))
    step = np.array([1.0, 0.05, 0.1])
    p0, p1 = ((p @ k.T)[:, :2] / p[:, 2:] + rng.normal(0, 0.2, (200, 2)) for p in (x, x @ turn.T + step))
    p1[::6] += 30
    e, mask = cv.findEssentialMat(p0, p1, k, cv.RANSAC, 0.999, 1.0)
    count, r, t, mask = cv.recoverPose(e, p0, p1, k, mask=mask)
    assert count > 150 and np.abs(r - turn).max() < 0.01
    good = mask.ravel() > 0
    projections = [k @ np.hstack([np.eye(3), np.zeros((3, 1))]), k @ np.hstack([r, t])]
    points = cv.triangulatePoints(*projections, p0[good].T, p1[good].T)
    depth = points[2] / points[3] * np.linalg.norm(step)
    assert np.median(np.abs(depth - x[good, 2])) < 0.3
    f, mask = cv.findFundamentalMat(p0, p1, cv.FM_RANSAC, 1.0, 0.99)
    lines = cv.computeCorrespondEpilines(p0.reshape(-1, 1, 2), 1, f).reshape(-1, 3)
    away = np.abs((np.c_[p1, np.ones(200)] * lines).sum(1))[mask.ravel() == 1]
    assert np.median(away) < 1


def test_registration_recipe(cv, views, truth):
    """What tutorials on image alignment do: ratio test, homography, warpPerspective; and affine maps beside it."""
    sift = cv.SIFT_create()
    (kp1, des1), (kp2, des2) = (sift.detectAndCompute(view, None) for view in views)
    good = [m for m, n in cv.BFMatcher().knnMatch(des1, des2, k=2) if m.distance < 0.7 * n.distance]
    src = np.float32([kp1[m.queryIdx].pt for m in good]).reshape(-1, 1, 2)
    dst = np.float32([kp2[m.trainIdx].pt for m in good]).reshape(-1, 1, 2)
    matrix, mask = cv.findHomography(src, dst, cv.RANSAC, 5.0)
    assert error_of(matrix, truth) < 1 and len(mask.ravel().tolist()) == len(good)
    aligned = cv.warpPerspective(views[0], matrix, (480, 360))
    inside = cv.warpPerspective(np.full((360, 480), 255, np.uint8), matrix, (480, 360)) == 255
    assert np.median(np.abs(aligned.astype(int) - views[1])[inside]) < 6
    for estimate in (cv.estimateAffine2D, cv.estimateAffinePartial2D):
        found, inliers = estimate(src, dst, method=cv.RANSAC, ransacReprojThreshold=5)
        assert found.shape == (2, 3) and inliers.sum() > 20
