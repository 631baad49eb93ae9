"""Models, maps and warps of `cv2compat`, compared with OpenCV's where that is installed."""

import sys
import types

import numpy as np
import pytest
import tiepoint as tp
import tiepoint.cv2compat as compat

RNG = np.random.default_rng(7)


def homography_of(places, matrix):
    wide = np.c_[places, np.ones(len(places))] @ np.array(matrix).T
    return wide[:, :2] / wide[:, 2:]


@pytest.fixture(scope="module")
def points():
    """200 points, a third of them wrong, by a homography."""
    matrix = np.array([[1.1, 0.05, 5], [-0.04, 0.95, 5], [1e-4, -5e-5, 1]])
    a = RNG.uniform(0, 300, (200, 2))
    b = homography_of(a, matrix) + RNG.normal(0, 0.3, a.shape)
    b[::3] = RNG.uniform(0, 300, (67, 2))
    return a, b, matrix


def test_homographies_of_every_shape_of_points(points, opencv):
    a, b, matrix = points
    forms = {
        "(N, 2)": lambda p: p,
        "(N, 1, 2)": lambda p: p[:, None],
        "(1, N, 2)": lambda p: p[None],
        "(N, 3)": lambda p: np.c_[p * 2, np.full(len(p), 2)],
        "float32": lambda p: p.astype(np.float32),
        "a list": lambda p: [tuple(v) for v in p],
    }
    for name, form in forms.items():
        found, mask = compat.findHomography(form(a), form(b), compat.RANSAC, 2.0)
        assert np.abs(found / found[2, 2] - matrix).max() < 0.7, name
        assert mask.shape == (200, 1) and mask.dtype == np.uint8 and mask.sum() > 120, name
    corners = np.array([[0, 0], [300, 0], [300, 300], [0, 300]], float)
    away = np.abs(homography_of(corners, found) - homography_of(corners, matrix)).max()
    theirs, _ = opencv.findHomography(a, b, opencv.RANSAC, 2.0)
    assert away <= max(1.0, 1.5 * np.abs(homography_of(corners, theirs) - homography_of(corners, matrix)).max())
    with pytest.raises(tp.ImageError, match=r"srcPoints has the shape \(2, 200\): expected \(N, 2\)"):
        compat.findHomography(a.T, b.T)
    with pytest.raises(tp.ModelError, match="at least 4"):
        compat.findHomography(a[:3], b[:3])
    with pytest.raises(tp.MismatchError, match="expected pairs"):
        compat.findHomography(a, b[:-1])


def test_models_that_are_not_found(points):
    a, _, _ = points
    same = np.zeros_like(a)
    own = np.full(200, 7, np.uint8)
    found, mask = compat.findHomography(a, same, compat.RANSAC, mask=own)
    assert found is None and mask.shape == (200, 1) and not mask.any() and not own.any()
    found, mask = compat.findHomography(a, a + 3, compat.USAC_MAGSAC, 0)
    assert np.allclose(found, [[1, 0, 3], [0, 1, 3], [0, 0, 1]], atol=1e-6) and mask.all(), "0 means the default"
    settings = types.SimpleNamespace(threshold=2.0, maxIterations=10, confidence=0.9)
    assert compat.findHomography(a, a + 3, settings)[1].all()
    assert compat.estimateAffine2D(a[:2], a[:2])[0] is None and compat.estimateAffine2D(a[:2], a[:2])[1].shape == (2, 1)
    assert compat.findFundamentalMat(a[:5], a[:5]) == (None, None)
    assert compat.findEssentialMat(a[:4], a[:4], np.eye(3)) == (None, None)
    for wrong in (lambda: compat.findHomography(a, a, 123), lambda: compat.estimateAffine2D(a, a, method="ransac")):
        with pytest.raises(tp.OptionError, match="method is"):
            wrong()


def test_few_inliers_are_found_whatever_max_iters_is(points):
    """One match in ten is right; OpenCV's default of 2000 samples misses the model."""
    a, _, matrix = points
    b = homography_of(a, matrix)
    wrong = np.arange(len(a)) % 10 != 0
    b[wrong] = np.random.default_rng(1).uniform(0, 300, (wrong.sum(), 2))
    found, mask = compat.findHomography(a, b, compat.RANSAC, 1.0, maxIters=2000)
    assert np.abs(homography_of(a, found) - homography_of(a, matrix)).max() < 1 and mask.ravel()[~wrong].all()


def test_a_threshold_means_what_it_means_in_opencv(cameras):
    """The error of a map is measured in the second image, also where that is larger or smaller; that of an essential matrix,
    and by USAC_… of a fundamental matrix, is Sampson's distance."""
    random = np.random.default_rng(3)
    a = random.uniform(0, 300, (400, 2))
    for zoom in (0.3, 1.0, 4.0):
        b = a * zoom + 20 + random.normal(0, 1.0, a.shape)
        for found, mask in (
            compat.findHomography(a, b, compat.RANSAC, 2.0),
            compat.estimateAffine2D(a, b, ransacReprojThreshold=2.0),
            compat.estimateAffinePartial2D(a, b, ransacReprojThreshold=2.0),
        ):
            away = np.linalg.norm(homography_of(a, np.vstack([found, [0, 0, 1]])[:3]) - b, axis=1)
            # The model is fitted once more to its inliers, which changes a few.
            assert ((away <= 2.0) == (mask.ravel() == 1)).mean() > 0.97, zoom
            assert 0.82 < mask.mean() < 0.92, "0.865 for noise of 1 in two directions"
    k, _, _, a, b = cameras
    e, mask = compat.findEssentialMat(a, b, k, compat.RANSAC, 0.999, 0.3)
    f = np.linalg.inv(k).T @ e @ np.linalg.inv(k)
    u, v = (np.c_[side, np.ones(len(side))] for side in (a, b))
    sampson = np.abs((v * (u @ f.T)).sum(1)) / np.linalg.norm(np.hstack([(u @ f.T)[:, :2], (v @ f)[:, :2]]), axis=1)
    assert np.array_equal(sampson <= 0.3, mask.ravel() == 1) and 0.3 < mask.mean() < 0.79
    for method in (compat.USAC_DEFAULT, compat.USAC_ACCURATE, compat.USAC_MAGSAC):
        f, mask = compat.findFundamentalMat(a, b, method, 0.3, 0.999, 1000)
        sampson = np.abs((v * (u @ f.T)).sum(1)) / np.linalg.norm(np.hstack([(u @ f.T)[:, :2], (v @ f)[:, :2]]), axis=1)
        assert np.array_equal(sampson <= 0.3, mask.ravel() == 1), method


def test_a_low_confidence_does_not_end_the_search_early():
    """On a bent surface many planes have nearly as many inliers, and the first that is found is not the best of them."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        a = random.uniform(0, 500, (500, 2))
        b = a + 5 + random.normal(0, 0.5, a.shape) + 5 * np.sin(a / 160)
        b[225:] = random.uniform(0, 500, (275, 2))
        low, high = (compat.findHomography(a, b, compat.RANSAC, 2.0, confidence=c)[0] for c in (0.2, 0.9999))
        assert np.array_equal(low, high), seed


def test_maps_of_points_fit_all_their_inliers(points, opencv):
    """A fit by OpenCV to all inliers gives the same homography."""
    a, b, _ = points
    found, mask = compat.findHomography(a, b, compat.RANSAC, 5.0)
    inliers = mask.ravel() == 1
    wanted, _ = opencv.findHomography(a[inliers], b[inliers], 0)
    corners = np.array([[0, 0], [300, 0], [300, 300], [0, 300]], float)
    assert np.abs(homography_of(corners, found) - homography_of(corners, wanted)).max() < 0.02
    for estimate, kind in [(compat.estimateAffine2D, "affine"), (compat.estimateAffinePartial2D, "similarity")]:
        found, mask = estimate(a, b, ransacReprojThreshold=20.0)
        inliers = mask.ravel() == 1
        assert np.array_equal(found, tp.fit(a[inliers], b[inliers], kind).matrix[:2])


def test_least_squares_over_all():
    rough = RNG.uniform(0, 200, (30, 2))
    matrix, mask = compat.findHomography(rough, rough + RNG.normal(0, 4, (30, 2)))
    assert mask.all() and np.abs(matrix - np.eye(3)).max() < 20


def test_affine_maps(points, opencv):
    a = points[0]
    for function, matrix in [
        ("estimateAffine2D", [[1.1, 0.2, 5], [-0.1, 0.9, -3]]),
        ("estimateAffinePartial2D", [[0.9, -0.2, 5], [0.2, 0.9, -3]]),
    ]:
        b = a @ np.array(matrix)[:, :2].T + np.array(matrix)[:, 2] + RNG.normal(0, 0.2, a.shape)
        b[::4] += 60
        found, inliers = getattr(compat, function)(a[:, None], b[:, None], ransacReprojThreshold=1.5)
        theirs, marked = getattr(opencv, function)(a, b, ransacReprojThreshold=1.5)
        assert found.shape == (2, 3) and inliers.shape == marked.shape == (200, 1)
        assert np.abs(found - matrix).max() < 0.2 and np.abs(found - theirs).max() < 0.3
        assert np.array_equal(np.flatnonzero(inliers), np.flatnonzero(np.arange(200) % 4))


@pytest.fixture(scope="module")
def cameras(opencv):
    """Points seen by two cameras, one pair in five wrong."""
    k = np.array([[500, 0, 160], [0, 520, 120], [0, 0, 1.0]])
    turn, step = opencv.Rodrigues(np.array([0.05, 0.1, -0.02]))[0], np.array([1, 0.1, 0.05])
    x = RNG.uniform(-2, 2, (150, 3)) + [0, 0, 6]
    a, b = ((p @ k.T)[:, :2] / p[:, 2:] for p in (x, x @ turn.T + step))
    b = b + RNG.normal(0, 0.2, b.shape)
    b[::5] += RNG.uniform(20, 40, (30, 2))
    return k, turn, step / np.linalg.norm(step), a, b


def test_epipolar_geometry(cameras, opencv):
    k, turn, step, a, b = cameras
    wide = [np.c_[p, np.ones(len(p))] for p in (a, b)]
    f, mask = compat.findFundamentalMat(a, b, compat.FM_RANSAC, 1.0, 0.99)
    good = mask.ravel() == 1
    assert f[2, 2] == 1 and good[np.arange(150) % 5 != 0].mean() > 0.95 and good[::5].mean() < 0.2
    lines = wide[0] @ f.T
    assert np.median(np.abs((wide[1] * lines).sum(1) / np.hypot(*lines.T[:2]))[good]) < 0.5
    assert compat.findFundamentalMat(a[good], b[good], compat.FM_8POINT)[1].all()
    assert compat.findFundamentalMat(a[1:5], b[1:5], compat.FM_8POINT) == (None, None)
    for few in (dict(method=compat.FM_7POINT), {}):
        matrices, mask = compat.findFundamentalMat(a[:7], b[:7], **few)
        assert matrices.shape[0] % 3 == 0 and matrices.shape[1] == 3 and mask.shape == (7, 1)
    assert compat.findFundamentalMat(a[1:5], b[1:5]) == (None, None)
    eight = np.flatnonzero(good)[:8]
    assert np.array_equal(*(compat.findFundamentalMat(a[eight], b[eight], way)[0] for way in (compat.FM_RANSAC, compat.FM_8POINT)))
    for form, named in [
        ((k,), {}),
        ((k, compat.RANSAC, 0.999, 1.0), {}),
        ((), {"cameraMatrix": k, "method": 8, "prob": 0.999, "threshold": 1.0}),
        ((k, None, k, None), {}),
        ((k, np.zeros(5), k, np.zeros(5)), {"threshold": 1.0}),
    ]:
        e, mask = compat.findEssentialMat(a, b, *form, **named)
        assert mask.shape == (150, 1) and np.linalg.norm(e) == pytest.approx(1)
        _, r, t, _ = opencv.recoverPose(e, a, b, k, mask=mask.copy())
        assert np.abs(r - turn).max() < 0.02 and np.abs(t.ravel() - step).max() < 0.05
    square = (np.c_[(a - k[:2, 2]) / (k[0, 0], k[1, 1])], np.c_[(b - k[:2, 2]) / (k[0, 0], k[1, 1])])
    e, _ = compat.findEssentialMat(*(p * 500 + (160, 120) for p in square), 500.0, (160, 120))
    assert np.abs(opencv.recoverPose(e, *square)[1] - turn).max() < 0.02
    e, mask = compat.findEssentialMat(*(p[good] for p in square), focal=1.0, pp=(0.0, 0.0), threshold=3.0)
    assert mask.all() and np.abs(opencv.recoverPose(e, *(p[good] for p in square))[1] - turn).max() < 0.02, "all agree"
    settings = opencv.UsacParams()
    e, mask = compat.findEssentialMat(a, b, k, k, None, None, settings)
    assert np.abs(opencv.recoverPose(e, a, b, k)[1] - turn).max() < 0.02
    lens = np.array([-0.2, 0.05, 0.001, -0.002, 0.0])
    bent = []
    for p in (a, b):
        rays = np.c_[(p - k[:2, 2]) / (k[0, 0], k[1, 1]), np.ones(len(p))]
        bent.append(opencv.projectPoints(rays, np.zeros(3), np.zeros(3), k, lens)[0].reshape(-1, 2))
    straight, mask = compat.findEssentialMat(*bent, k, lens, k, lens)
    assert np.abs(opencv.recoverPose(straight, a, b, k)[1] - turn).max() < 0.02
    with pytest.raises(tp.OptionError, match="no argument pp"):
        compat.findEssentialMat(a, b, k, pp=(1, 2))


def test_five_points_give_every_essential_matrix(opencv, monkeypatch):
    """A robust estimation of a script's own goes through all of them."""
    random = np.random.default_rng(4)
    k, other = np.array([[500, 0, 320], [0, 510, 240], [0, 0, 1.0]]), np.diag([400, 390, 1.0])
    lens = np.array([-0.1, 0.02, 0.001, 0.0, 0.0])
    for _ in range(10):
        turn, step = opencv.Rodrigues(random.normal(0, 0.1, 3))[0], random.normal(0, 1, 3)
        x = random.uniform(-1, 1, (5, 3)) + (0, 0, 4)
        a, b = ((p @ k.T)[:, :2] / p[:, 2:] for p in (x, x @ turn.T + step))
        c = opencv.projectPoints(x, turn, step, other, lens)[0]
        truth = np.cross(step, turn, axisb=0).T / np.linalg.norm(step)
        mask = np.zeros((5, 1), np.uint8)
        calls = [
            (compat.findEssentialMat(a, b, k, mask=mask), opencv.findEssentialMat(a, b, k)),
            (compat.findEssentialMat(a, b, k, compat.LMEDS), opencv.findEssentialMat(a, b, k, compat.LMEDS)),
            (compat.findEssentialMat(a, c, k, None, other, lens), opencv.findEssentialMat(a, c, k, None, other, lens)),
        ]
        for (ours, inliers), (theirs, _) in calls:
            assert ours.shape == theirs.shape and inliers.all() and inliers.shape == (5, 1)
            all_of_them = ours.reshape(-1, 9) * np.sqrt(2)
            assert np.min([np.abs(all_of_them - sign * truth.ravel()).max(1).min() for sign in (1, -1)]) < 1e-4
        assert mask.all()
    with pytest.raises(tp.ImageError, match="the matrix is no camera's"):
        compat.findEssentialMat(a, b, k + [[0, 2, 0], [0, 0, 0], [0, 0, 0]])
    monkeypatch.setitem(sys.modules, "cv2", None)
    assert compat.findEssentialMat(a, b, k)[0].shape == (3, 3)


def test_warps(colour, opencv):
    matrix = np.array([[1.1, 0.05, 5], [-0.04, 0.95, 5], [1e-4, -5e-5, 1]])
    for image in [colour, colour[..., 0].astype(np.float32)]:
        for flags in [compat.INTER_LINEAR, compat.INTER_CUBIC, compat.INTER_LINEAR | compat.WARP_INVERSE_MAP]:
            found = compat.warpPerspective(image, matrix, (350, 250), flags=flags, borderValue=(9, 9, 9))
            theirs = opencv.warpPerspective(image, matrix, (350, 250), flags=flags, borderValue=(9, 9, 9))
            assert found.shape == theirs.shape and found.dtype == theirs.dtype
            off = np.abs(found.astype(float) - theirs.astype(float))
            assert np.median(off) < 1 and (off < 3).mean() > 0.93, flags
    own = np.zeros((250, 350, 3), np.uint8)
    assert compat.warpPerspective(colour, matrix, (350, 250), own) is own and own.any()
    assert np.array_equal(
        compat.warpPerspective(colour, matrix, (350, 250), borderValue=9),
        opencv.warpPerspective(colour, matrix, (350, 250), borderValue=9),
    ), "a single border value sets the first channel alone"
    for size in ((0, 0), None):
        assert compat.warpPerspective(colour, matrix, size).shape == opencv.warpPerspective(colour, matrix, size).shape
    nearest = compat.warpPerspective(colour, matrix, (350, 250), flags=compat.INTER_NEAREST)
    assert np.array_equal(nearest, opencv.warpPerspective(colour, matrix, (350, 250), flags=0)), "not OpenCV's result"
    with pytest.raises(tp.ModelError, match="no inverse"):
        compat.warpPerspective(colour, np.zeros((3, 3)), (9, 9), flags=17)


def test_the_origin_may_lie_beyond_the_horizon(opencv):
    """A road seen by a camera with the sky at the top left."""
    seen = np.float32([[585, 460], [203, 720], [1127, 720], [695, 460]])
    above = np.float32([[320, 0], [320, 720], [960, 720], [960, 0]])
    lane = np.full((720, 1280, 3), 255, np.uint8)
    lane[:, :320] = lane[:, 960:] = 0
    matrix = opencv.getPerspectiveTransform(above, seen)
    theirs, ours = (m.warpPerspective(lane, matrix, (1280, 720)) for m in (opencv, compat))
    assert (theirs > 128).sum() > 100_000 and (np.abs(theirs.astype(int) - ours) > 40).mean() < 0.002
    rng = np.random.default_rng(5)
    road = np.c_[rng.uniform(300, 1000, 60), rng.uniform(470, 715, 60)]
    ground = homography_of(road, opencv.getPerspectiveTransform(seen, above))
    ground[:10] += rng.uniform(50, 200, (10, 2))
    for method in (0, opencv.RANSAC, opencv.LMEDS):
        found, inliers = compat.findHomography(road[10:] if method == 0 else road, ground[10:] if method == 0 else ground, method)
        assert inliers.sum() == 50 and np.abs(homography_of(road[10:], found) - ground[10:]).max() < 0.1
    estimate = tp.estimate(road, ground)
    assert np.abs(estimate.apply(road[estimate.inliers]) - ground[estimate.inliers]).max() < 0.1


def test_least_median_has_no_threshold(opencv):
    """Landmarks of a face with errors of 5 pixels, and points in the unit square."""
    landmarks = np.float32([[310.2, 215.7], [392.1, 204.5], [361, 262.3], [325.4, 310.9], [396, 300.2]])
    template = np.array([[192.98138, 239.94708], [318.90277, 240.1936], [256.63416, 314.01935], [201.26117, 371.41043], [313.08905, 371.15118]])
    (theirs, _), (ours, inliers) = (m.estimateAffinePartial2D(landmarks, template, method=opencv.LMEDS) for m in (opencv, compat))
    assert np.allclose(theirs, ours, atol=1e-2) and inliers.all()
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 1, (60, 2))
    truth = np.array([[1, 0.1, 0.2], [-0.1, 0.9, 0.1], [0.05, 0.02, 1]])
    b = homography_of(a, truth) + rng.normal(0, 0.002, a.shape)
    b[:18] = rng.uniform(0, 1.5, (18, 2))
    found, inliers = compat.findHomography(a, b, opencv.LMEDS)
    assert np.linalg.norm(homography_of(a[18:], found) - homography_of(a[18:], truth), axis=1).mean() < 0.002 and 36 <= inliers.sum() <= 44
    assert compat.estimateAffine2D(a, b, method=opencv.LMEDS)[0] is not None
    b[0] = np.nan
    again, inliers = compat.findHomography(a, b, opencv.LMEDS)
    assert np.abs(homography_of(a[18:], again) - homography_of(a[18:], found)).max() < 0.01 and not inliers[0]
    assert compat.findHomography(a, b + np.nan, opencv.LMEDS)[0] is None


def corners_of_markers(random):
    corner = np.array([[0, 0], [40, 0], [40, 40], [0, 40]])
    return (random.uniform(0, 300, (2, 1, 2)) + corner).reshape(-1, 2)


FEW = {
    "two markers": ("findHomography", corners_of_markers, [[1.1, 0.05, 5], [-0.04, 0.95, 5], [1e-4, -5e-5, 1]], 0, 2.0),
    "six points": ("estimateAffine2D", lambda random: random.uniform(0, 300, (6, 2)), [[0.9, -0.2, 5], [0.2, 1.1, -3]], 0, 2.0),
    "four points": ("estimateAffinePartial2D", lambda random: random.uniform(0, 300, (4, 2)), [[0.9, -0.2, 5], [0.2, 0.9, -3]], 0, 1.5),
    "three of four": ("estimateAffinePartial2D", lambda random: random.uniform(0, 300, (4, 2)), [[0.9, -0.2, 5], [0.2, 0.9, -3]], 1, 2.0),
    "six of ten": ("estimateAffine2D", lambda random: random.uniform(0, 300, (10, 2)), [[0.9, -0.2, 5], [0.2, 1.1, -3]], 4, 2.0),
}


@pytest.mark.parametrize("name", FEW)
def test_the_least_median_of_few_points_is_no_exact_fit_to_some(name, opencv):
    """Noise of 0.3 pixels: the largest error of a right point over the seeds is near it, and no larger than OpenCV's."""
    function, places, matrix, wrong, largest = FEW[name]
    errors = []
    for seed in range(30):
        random = np.random.default_rng(seed)
        a = places(random)
        truth = homography_of(a, np.vstack([matrix, [0, 0, 1]])[:3])
        b = truth + random.normal(0, 0.3, a.shape)
        b[:wrong] = random.uniform(0, 300, (wrong, 2))
        found = [getattr(cv, function)(a, b, method=cv.LMEDS)[0] for cv in (opencv, compat)]
        errors.append([np.linalg.norm(homography_of(a, np.vstack([m, [0, 0, 1]])[:3]) - truth, axis=1)[wrong:].max() for m in found])
    theirs, ours = np.transpose(errors)
    assert ours.max() < largest and np.median(ours) < 1.05 * np.median(theirs)


def test_the_least_median_of_few_points_in_space(opencv):
    """Nine and twelve points, whose fundamental matrix any seven determine."""
    k, turn = np.diag([500, 500, 1.0]), opencv.Rodrigues(np.array([0.05, 0.1, -0.02]))[0]
    for n in (9, 12):
        errors = []
        for seed in range(30):
            random = np.random.default_rng(seed)
            space = random.uniform(-2, 2, (n, 3)) + (0, 0, 6)
            a, b = ((p @ k.T)[:, :2] / p[:, 2:] for p in (space, space @ turn.T + (1, 0.1, 0.05)))
            b += random.normal(0, 0.3, b.shape)
            found = [cv.findFundamentalMat(a, b, cv.FM_LMEDS)[0] for cv in (opencv, compat)]
            errors.append([np.inf if f is None else tp.Model("fundamental", f).residuals(a, b).max() for f in found])
        theirs, ours = np.median(errors, 0)
        assert ours < 0.6 and ours < theirs, n


def test_epipolar_geometry_by_other_numbers_is_least_median(cameras, opencv):
    k, *_, a, b = cameras
    wanted = compat.findFundamentalMat(a, b, compat.FM_LMEDS)[0], compat.findEssentialMat(a, b, k, compat.LMEDS)[0]
    for method in (0, 1, 16):
        assert np.array_equal(compat.findFundamentalMat(a, b, method)[0], wanted[0]), method
        assert np.array_equal(compat.findEssentialMat(a, b, k, method)[0], wanted[1]), method
        assert opencv.findFundamentalMat(a, b, method)[0].shape == opencv.findEssentialMat(a, b, k, method)[0].shape == (3, 3)
    with pytest.raises(opencv.error, match="method is 'ransac'"):
        compat.findFundamentalMat(a, b, "ransac")


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_a_border_s_value_becomes_one_of_the_pixels(kind, opencv):
    image, shift = np.full((20, 30), 7, kind), np.array([[1, 0, 9], [0, 1, 9], [0, 0, 1.0]])
    for value in (300, 70_000, -5, 1.5, 2.5, 0.4):
        theirs, ours = (cv.warpPerspective(image, shift, (30, 20), borderValue=value) for cv in (opencv, compat))
        assert theirs[0, 0] == ours[0, 0], value
    for flags in (1, 17):
        with pytest.raises(opencv.error, match="M is singular"):
            compat.warpPerspective(image, np.ones((3, 3)), (30, 20), flags=flags)


@pytest.mark.parametrize("threshold", [100, 1000, np.inf])
def test_a_threshold_wider_than_the_points_takes_all(opencv, threshold):
    landmarks = np.float32([[310.2, 215.7], [392.1, 204.5], [361, 262.3], [325.4, 310.9], [396, 300.2]])
    template = np.float32([[38.3, 51.7], [73.5, 51.5], [56, 71.7], [41.5, 92.4], [70.7, 92.2]])
    (theirs, _), (ours, inliers) = (
        m.estimateAffinePartial2D(landmarks, template, method=opencv.RANSAC, ransacReprojThreshold=threshold) for m in (opencv, compat)
    )
    assert np.allclose(theirs, ours, atol=1e-2) and inliers.all()
    metres = np.float32([[0, 0], [1, 0], [0, 1], [1, 1]])
    exact, _ = compat.findHomography(metres * 200 + 100, metres, opencv.RANSAC)
    assert np.allclose(homography_of(metres * 200 + 100, exact), metres, atol=1e-6)


def test_what_has_no_effect_is_refused_and_forms_of_arguments_are_known(opencv):
    for made in (compat.StereoSGBM_create(0, 64, 5), compat.BFMatcher(), compat.SIFT_create()):
        with pytest.raises(AttributeError, match="set by methods"):
            made.numDisparities = 96
    rng = np.random.default_rng(2)
    space = rng.uniform(-1, 1, (80, 3)) + (0, 0, 5)
    p, q = (600 * (space + shift)[:, :2] / space[:, 2:] + 300 for shift in ((0, 0, 0), (0.4, 0.05, 0)))
    mask = np.zeros((80, 1), np.uint8)
    found, _ = compat.findFundamentalMat(p, q, opencv.FM_RANSAC, 3.0, 0.99, mask)
    assert found is not None and mask.sum() == 80
    with pytest.raises(opencv.error):
        compat.warpPerspective(np.zeros((9, 9, 3), np.uint8), np.eye(3), (9, 9, 3))
    image = np.full((40, 60), 9, np.uint8)
    image[8:30, 12:50] = rng.integers(0, 255, (22, 38))
    holes = np.where(np.arange(60) > 30, 1.0, np.nan) * np.ones((40, 1))
    assert tp.Sift().detect(image, holes) == tp.Sift().detect(image, np.nan_to_num(holes) > 0)


@pytest.mark.parametrize("method", [compat.RANSAC, compat.LMEDS])
def test_units_of_the_first_points_do_not_matter(method):
    """Points of a plane in metres, or on a unit square, beside pixels; a fifth of the pairs are wrong."""
    rng = np.random.default_rng(0)
    a = rng.random((60, 2))
    turn = 500 * np.array([[np.cos(0.2), -np.sin(0.2)], [np.sin(0.2), np.cos(0.2)]])
    b = a @ turn.T + [30, 40] + rng.normal(0, 0.3, a.shape)
    b[:12] += [150, 90]
    for unit in [1, 1e-3, 700]:
        for estimate in [compat.findHomography, compat.estimateAffine2D, compat.estimateAffinePartial2D]:
            found, inliers = estimate(a * unit, b, method=method)
            assert inliers.ravel().tolist() == [0] * 12 + [1] * 48, (unit, estimate)
            assert np.allclose(found[:2, :2] * unit, turn, rtol=0, atol=2), (unit, estimate)


def test_the_least_median_keeps_the_right_matches_of_a_plane(opencv):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        points = np.c_[rng.uniform(-3, 3, 300), rng.uniform(-2, 2, 300), np.full(300, 8.0)]
        points[:, 2] += 0.1 * points[:, 0]
        turn = opencv.Rodrigues(np.array([0.01, 0.05, 0.02]))[0]
        camera = np.array([[700.0, 0, 320], [0, 700, 240], [0, 0, 1]])
        seen = [places @ camera.T for places in (points, points @ turn.T + [0.5, 0.05, 0.1])]
        a, b = (places[:, :2] / places[:, 2:] + rng.normal(0, 0.3, (300, 2)) for places in seen)
        b[:90] = np.c_[rng.uniform(0, 640, 90), rng.uniform(0, 480, 90)]
        _, inliers = compat.findFundamentalMat(a, b, compat.FM_LMEDS)
        assert inliers[90:].sum() >= 190, (seed, inliers[90:].sum())


def test_points_of_a_board_in_space_are_points_of_its_plane():
    board = np.zeros((54, 3), np.float32)
    board[:, :2] = np.mgrid[0:9, 0:6].T.reshape(-1, 2)
    for method in [0, compat.RANSAC]:
        found, _ = compat.findHomography(board, board[:, :2] * 30 + [50, 60], method)
        assert np.allclose(found, [[30, 0, 50], [0, 30, 60], [0, 0, 1]], atol=1e-6)


@pytest.mark.parametrize("method", [compat.FM_RANSAC, compat.USAC_MAGSAC])
@pytest.mark.parametrize("unit", [1, 1 / 700])
def test_points_of_a_plane_and_a_threshold_beyond_all_errors_give_an_epipolar_geometry(opencv, method, unit):
    rng = np.random.default_rng(0)
    for depth in (np.full(300, 8.0), rng.uniform(5, 9, 300)):
        points = np.c_[rng.uniform(-3, 3, 300), rng.uniform(-2, 2, 300), depth]
        turn = opencv.Rodrigues(np.array([0.01, 0.05, 0.02]))[0]
        seen = points[:, :2] / points[:, 2:], (points @ turn.T + [0.5, 0.05, 0.1])
        a, b = (700 * unit * side for side in (seen[0], seen[1][:, :2] / seen[1][:, 2:]))
        a, b = (side + rng.normal(0, 0.3 * unit, side.shape) for side in (a, b))
        b[:90] = 300 * unit * rng.uniform(-1, 1, (90, 2))
        matrix, inliers = compat.findFundamentalMat(a, b, method, 3, 0.99)
        assert matrix.shape == (3, 3)
        assert inliers[90:].sum() >= 205, inliers[90:].sum()


def corners_off(opencv, found, true, corners):
    """The greatest error of a map at a corner."""
    seen = [opencv.perspectiveTransform(np.float64(corners)[None], np.vstack([m, [0, 0, 1]])[:3])[0] for m in (found, true)]
    return np.linalg.norm(seen[0] - seen[1], axis=1).max()


def test_a_threshold_as_wide_as_the_points_along_an_axis_gives_a_model(opencv):
    """A court of 15 by 9 metres seen by a camera, with a threshold of 5 metres, and a strip 6 pixels high, with 10."""
    court = np.float32([[0, 0], [15, 0], [15, 9], [0, 9]])
    seen = np.float32([[102, 340], [545, 322], [630, 455], [40, 470]])
    pixels = opencv.getPerspectiveTransform(court, seen)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        b = rng.uniform([0, 0], [15, 9], (20, 2)).astype(np.float32)
        a = opencv.perspectiveTransform(b[None], pixels)[0] + rng.normal(0, 1, (20, 2)).astype(np.float32)
        b[:2] = rng.uniform([0, 0], [15, 9], (2, 2))
        found, _ = compat.findHomography(a, b, compat.RANSAC, 5.0)
        assert found is not None, seed
        affine = np.array([[1.02, 0.03, 10], [-0.02, 0.99, 5]])
        a = rng.uniform([0, 0], [400, 6], (60, 2))
        b = a @ affine[:, :2].T + affine[:, 2] + rng.normal(0, 0.3, a.shape)
        b[:18] = rng.uniform([0, 0], [400, 300], (18, 2))
        found, _ = compat.estimateAffine2D(a, b, ransacReprojThreshold=10)
        assert corners_off(opencv, found, affine, [[0, 0], [400, 0], [400, 6], [0, 6]]) < 2, seed


def test_of_few_inliers_the_model_with_the_least_errors_is_found_as_often_as_by_opencv(opencv):
    true = np.array([[1.1, 0.05, 20], [-0.03, 1.05, 30], [1e-4, 2e-5, 1]])
    wrong = [0, 0]
    for seed in range(100):
        rng = np.random.default_rng(seed)
        a = rng.uniform([0, 0], [640, 480], (20, 2)).astype(np.float32)
        b = rng.uniform([0, 0], [640, 480], (20, 2))
        b[:6] = opencv.perspectiveTransform(a[None, :6].astype(float), true)[0] + rng.normal(0, 0.5, (6, 2))
        for i, cv in enumerate((opencv, compat)):
            found, _ = cv.findHomography(a, b.astype(np.float32), cv.RANSAC, 5.0)
            wrong[i] += found is None or corners_off(opencv, found, true, [[0, 0], [640, 0], [640, 480], [0, 480]]) > 50
    assert wrong[1] <= wrong[0] + 2, wrong


def few_of_a_homography(opencv, seed, n, right, noise):
    """Pairs of which the first `right` are right, and their random homography."""
    rng = np.random.default_rng(seed)
    true = np.eye(3) + np.vstack([rng.normal(0, (0.1, 0.1, 50), (2, 3)), [*rng.normal(0, 1e-4, 2), 0]])
    a = rng.uniform(0, (640, 480), (n, 2))
    b = opencv.perspectiveTransform(a[None], true)[0] + rng.normal(0, noise, a.shape)
    b[right:] = rng.uniform(0, 480, (n - right, 2))
    return np.float32(a), np.float32(b), true


@pytest.mark.parametrize(("n", "right", "noise", "most"), [(8, 5, 0.0, 0), (12, 6, 0.05, 1), (20, 8, 0.05, 0)])
def test_usac_finds_few_inliers(n, right, noise, most, opencv):
    """Of 40 sets of pairs at most one is missed, in which a seventh pair agrees with a model of the six right ones."""
    wrong = dict.fromkeys((compat.USAC_DEFAULT, compat.USAC_MAGSAC), 0)
    for seed in range(40):
        a, b, true = few_of_a_homography(opencv, seed, n, right, noise)
        for method in wrong:
            found, _ = compat.findHomography(a, b, method, 3.0)
            wrong[method] += corners_off(opencv, found, true, [[0, 0], [640, 0], [640, 480], [0, 480]]) > 20
    assert max(wrong.values()) <= most, wrong


@pytest.mark.parametrize(("n", "right", "noise", "most"), [(8, 5, 0.0, 2), (7, 5, 0.1, 2), (5, 4, 0.0, 10)])
def test_the_least_median_finds_few_right_points(n, right, noise, most, opencv):
    wrong = 0
    for seed in range(20):
        a, b, true = few_of_a_homography(opencv, seed, n, right, noise)
        found, mask = compat.findHomography(a, b, compat.LMEDS)
        assert found is None or mask.any(), seed
        wrong += found is None or corners_off(opencv, found, true, [[0, 0], [640, 0], [640, 480], [0, 480]]) > 20
    assert wrong <= most


def test_the_least_median_of_unrelated_points_has_no_inlier():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a, b = (rng.uniform([0, 0], [640, 480], (100, 2)) for _ in "ab")
        assert compat.findHomography(a, b, compat.LMEDS)[1].sum() == 0, seed
        b[:70] = a[:70] + 5
        assert compat.findHomography(a, b, compat.LMEDS)[1].sum() >= 70, seed


@pytest.mark.parametrize("shape", [(-1, 1, 2), (1, -1, 2), (-1, 2, 1)])
def test_points_of_every_shape_of_opencv(shape):
    a = np.random.default_rng(0).uniform(0, 100, (20, 2)).astype(np.float32)
    found, _ = compat.findHomography(a.reshape(shape), (a + 3).reshape(shape), compat.RANSAC)
    assert np.allclose(found, [[1, 0, 3], [0, 1, 3], [0, 0, 1]], atol=1e-4)


def errors_of_usac(cv, method, threshold, n, wrong, noise, trials=20):
    """Mean errors of homographies at a grid of places, of random pairs of which a part is wrong."""
    matrix = np.array([[0.9, 0.1, 30], [-0.05, 1.02, -20], [1e-4, -5e-5, 1]])
    grid = np.array([[x, y] for x in (0, 400, 800) for y in (0, 300, 600)], float)
    found = []
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        a = rng.uniform(0, (800, 600), (n, 2))
        b = homography_of(a, matrix) + rng.normal(0, noise, a.shape)
        b[:wrong] = rng.uniform(0, (800, 600), (wrong, 2))
        made, mask = cv.findHomography(a, b, method, threshold)
        assert (np.linalg.norm(homography_of(a, made) - b, axis=1) < threshold).sum() == mask.sum()
        found.append(np.linalg.norm(homography_of(grid, made) - homography_of(grid, matrix), axis=1).mean())
    return np.percentile(found, [50, 90])


@pytest.mark.parametrize(
    ("method", "n", "wrong"),
    [("USAC_MAGSAC", 8, 2), ("USAC_MAGSAC", 40, 12), ("USAC_DEFAULT", 40, 12), ("USAC_ACCURATE", 40, 12)],
)
def test_the_errors_of_usac_are_those_of_opencv_at_narrow_thresholds(method, n, wrong, opencv):
    for threshold in (0.5, 1.0):
        ours, theirs = (errors_of_usac(cv, getattr(cv, method), threshold, n, wrong, 0.7) for cv in (compat, opencv))
        assert (ours <= 1.15 * theirs).all(), (threshold, ours, theirs)
    if method == "USAC_MAGSAC":
        params = compat.UsacParams()
        params.threshold, params.score = 0.5, compat.SCORE_METHOD_MAGSAC
        assert np.allclose(*(errors_of_usac(compat, how, 0.5, n, wrong, 0.7, 2) for how in (params, compat.USAC_MAGSAC)))


@pytest.mark.parametrize("unit", [1.0, 1 / 800, 100.0])
def test_magsac_hardly_depends_on_the_threshold(points, unit):
    a, b, matrix = points
    some = {t: compat.findHomography(a * unit, b * unit, compat.USAC_MAGSAC, t * unit)[0] for t in (0.25, 0.5, 1.0)}
    places = [homography_of(a * unit, found) / unit for found in some.values()]
    assert max(np.abs(place - homography_of(a, matrix)).max() for place in places) < 0.6
    if unit == 1:
        assert np.abs(places[0] - places[2]).max() < 0.02


def test_of_unrelated_points_magsac_gives_a_model_no_more_often():
    rng = np.random.default_rng(5)
    a, b = rng.uniform(0, 600, (2, 100, 2))
    for method in (compat.RANSAC, compat.USAC_MAGSAC, compat.USAC_DEFAULT):
        found, mask = compat.findFundamentalMat(a, b, method, 1.0)
        assert found is None and not mask.any()


@pytest.mark.parametrize("method", [compat.FM_LMEDS, compat.FM_RANSAC, compat.USAC_DEFAULT, compat.USAC_MAGSAC])
@pytest.mark.parametrize("wrong", [5, 10, 20])
def test_points_of_a_plane_and_wrong_pairs_agree_with_an_epipolar_geometry(method, wrong):
    matrix = [[1.05, 0.08, 12], [-0.04, 0.97, -7], [1e-4, -5e-5, 1]]
    rng = np.random.default_rng(wrong)
    a = rng.uniform(0, (640, 480), (80, 2))
    for noise in (0, 0.05, 0.2):
        b = homography_of(a, matrix) + rng.normal(0, noise, a.shape)
        b[:wrong] = rng.uniform(0, (640, 480), (wrong, 2))
        found, mask = compat.findFundamentalMat(a, b, method, 1.0)
        assert np.linalg.matrix_rank(found, 1e-6) == 2
        assert mask[wrong:].mean() > 0.95 and mask[:wrong].sum() <= 4, "some agree by chance"


@pytest.mark.parametrize("method", [compat.FM_8POINT, *compat._models._METHODS])
def test_without_an_epipolar_geometry_there_is_a_mask_without_inliers(method, opencv):
    rng = np.random.default_rng(3)
    line, camera = np.linspace((0, 0), (600, 400), 30), np.diag([500, 500, 1.0])
    for name, a, b in [
        ("equal", np.full((30, 2), 7.0), np.full((30, 2), 7.0)),
        ("a line", line, line + 3),
        ("not finite", line, line + np.nan),
        ("unrelated", *rng.uniform(0, 600, (2, 100, 2))),
    ]:
        own = np.full((len(a), 1), 7, np.uint8)
        given = [("F", lambda cv, a=a, b=b, own=own: cv.findFundamentalMat(a, b, method, 0.1, 0.99, 1000, own))]
        if method != compat.FM_8POINT:
            given.append(("E", lambda cv, a=a, b=b: cv.findEssentialMat(a, b, camera, method, 0.99, 0.1)))
        for kind, call in given:
            found, mask = call(compat)
            assert mask.shape == (len(a), 1) and mask.dtype == np.uint8, (name, kind)
            assert found is not None or not mask.any(), (name, kind)
            theirs = call(opencv)[1]
            assert mask.shape == theirs.shape and mask.dtype == theirs.dtype, (name, kind)
        if name == "equal":
            own[:] = 7
            assert compat.findFundamentalMat(a, b, method, mask=own)[0] is None and not own.any()


@pytest.mark.parametrize("matrix", [[[1, 0, 5], [0, 1, 0], [0, 0, 1]], [[0.9, 0.1, 30], [-0.05, 1.02, -20], [1e-4, -5e-5, 1]]])
def test_the_least_median_of_points_of_a_plane_is_one_of_the_matrices_that_they_agree_with(matrix):
    a = np.random.default_rng(0).uniform(0, 500, (50, 2))
    for noise in (0, 0.3):
        b = homography_of(a, matrix) + np.random.default_rng(1).normal(0, noise, a.shape)
        found, mask = compat.findFundamentalMat(a, b, compat.FM_LMEDS)
        assert np.linalg.matrix_rank(found, 1e-6) == 2 and mask.mean() >= (0.8 if noise else 1)


@pytest.mark.parametrize("count", [8, 12, 14])
def test_distortion_of_more_than_five_values_is_undone_by_opencv(count, opencv, monkeypatch):
    rng = np.random.default_rng(3)
    camera = np.array([[700, 0, 320], [0, 700, 240], [0, 0, 1.0]])
    distortion = np.array([0.1, 0.02, 0.001, -0.001, 0, 0.05, 0.01, 0.002, 0.003, 0.001, 0.002, -0.001, 0.01, -0.01])[:count]
    places = np.c_[rng.uniform(-2, 2, (80, 2)), rng.uniform(4, 8, 80)]
    turn, shift = np.array([0.02, 0.1, -0.03]), np.array([0.5, 0.05, 0.1])
    a = opencv.projectPoints(places, np.zeros(3), np.zeros(3), camera, distortion)[0]
    b = opencv.projectPoints(places, turn, shift, camera, distortion)[0]
    found, mask = compat.findEssentialMat(a, b, camera, distortion, camera, distortion, compat.RANSAC, 0.999, 0.1)
    straight = [opencv.undistortPoints(side, camera, distortion)[:, 0] for side in (a, b)]
    assert mask.all()
    rotation = opencv.recoverPose(found, *straight)[1]
    assert np.allclose(rotation, opencv.Rodrigues(turn)[0], atol=1e-3)
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(tp.OptionError, match=f"distCoeffs has {count} values: .* need OpenCV"):
        compat.findEssentialMat(a, b, camera, distortion, camera, distortion)


def test_arguments_that_are_no_numbers_are_told(points):
    a, b, _ = points
    for call, told in [
        (lambda: compat.findHomography(a, b, compat.RANSAC, "3"), "the threshold is '3': expected a number"),
        (lambda: compat.findHomography(a, b, compat.RANSAC, 3, maxIters="9"), "option maxIters is '9': expected a number"),
        (lambda: compat.findHomography(a, b, np.eye(3), compat.RANSAC), r"method is an array of the shape \(3, 3\): expected one of"),
        (lambda: compat.findFundamentalMat(a, b, np.eye(3), compat.RANSAC, 1.0), r"method is an array of the shape \(3, 3\)"),
        (lambda: compat.estimateAffine2D(a, b, method=[8]), r"method is \[8\]: expected one of"),
        (lambda: compat.findHomography(a, b, compat.RANSAC, float("nan")), "the threshold is nan: expected a number"),
        (lambda: compat.findEssentialMat(a, b, np.eye(3), compat.RANSAC, "0.9"), "the confidence is '0.9': expected a number"),
    ]:
        with pytest.raises(tp.OptionError, match=told):
            call()
    with pytest.raises(tp.ImageError, match=r"the shape \(3, 4\): expected \(3, 3\)$"):
        compat.findEssentialMat(a, b, np.ones((3, 4)))
    assert compat.findHomography(a, b, np.int64(8), np.float32(2))[1].sum() > 120


@pytest.mark.parametrize("method", [compat.LMEDS, compat.USAC_MAGSAC, compat.USAC_DEFAULT])
def test_methods_may_be_numbers_of_numpy(points, cameras, method):
    a, b, _ = points
    k, *_, u, v = cameras
    for call in (
        lambda method: compat.findHomography(a, b, method),
        lambda method: compat.estimateAffine2D(a, b, method=method),
        lambda method: compat.findFundamentalMat(u, v, method),
        lambda method: compat.findEssentialMat(u, v, k, method),
    ):
        for kind in (np.int64, np.array):
            assert all(map(np.array_equal, call(kind(method)), call(method)))
