"""Matching, models, warping, registration, rectification."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
import tiepoint as tp


def away(model, truth, size=(320, 240)):
    return tp.evaluate.corner_error(model, truth, size)


def test_nearest_is_what_numpy_finds(features):
    a, b = features
    index, distance, second = tp.nearest(a, b, device="cpu")
    assert (index.dtype, distance.dtype, second.dtype) == (np.int64, np.float32, np.float32)
    u, v = (f.descriptors.astype(np.int64) for f in features)
    squared = (u**2).sum(1)[:, None] + (v**2).sum(1)[None] - 2 * u @ v.T
    order = np.sort(squared, axis=1)
    assert np.array_equal(index, squared.argmin(1))
    assert np.allclose(distance, np.sqrt(order[:, 0]) / 512) and np.allclose(second, np.sqrt(order[:, 1]) / 512)
    none = tp.nearest(a, b[:0], device="cpu")
    assert (none[0] == -1).all() and np.isinf(none[1]).all()


def test_filters_of_matches(features):
    a, b = features
    index, distance, second = tp.nearest(a, b, device="cpu")
    found = tp.match(a, b, ratio=0.7, mutual=False, same_sign=False, device="cpu")
    wanted = np.flatnonzero(distance < np.float32(0.7) * second)
    assert found.pairs.dtype == np.int64
    assert np.array_equal(found.pairs, np.stack([wanted, index[wanted]], axis=1))
    assert np.array_equal(found.distance, distance[wanted])
    mutual = tp.match(a, b, ratio=None, device="cpu")
    assert len(np.unique(mutual.pairs[:, 1])) == len(mutual)
    near = tp.match(a, b, max_distance=0.2, device="cpu")
    assert 0 < len(near) and near.distance.max() <= 0.2
    with pytest.raises(tp.OptionError, match="option ratio is 1.5"):
        tp.match(a, b, ratio=1.5)
    with pytest.raises(tp.MismatchError):
        tp.match(a, tp.Features.from_arrays(xy=[[1, 2]]))


def test_a_guide_keeps_matches_near_it(features, truth):
    a, b = features
    found = tp.match(a, b, guide=truth, radius=2.0, device="cpu")
    off = tp.Model("homography", truth).apply(a.xy[found.pairs[:, 0]]) - b.xy[found.pairs[:, 1]]
    assert len(found) > 100 and np.hypot(*off.T).max() <= 2.0 + 1e-6


@pytest.mark.parametrize("kind", ["homography", "affine", "similarity", "rigid", "translation"])
def test_models_are_estimated_from_exact_points(kind):
    matrix = np.array([[0.9, -0.3, 20.0], [0.3, 0.9, -8.0], [0, 0, 1]])
    if kind in ("homography", "affine"):
        matrix[0, 1] = -0.2
    if kind == "rigid":
        matrix[:2, :2] = [[0.8, -0.6], [0.6, 0.8]]
    if kind == "translation":
        matrix[:2, :2] = np.eye(2)
    if kind == "homography":
        matrix[2, 0] = 1e-4
    rng = np.random.default_rng(1)
    a = rng.uniform(0, 400, (80, 2))
    model = tp.Model(kind, matrix)
    b = model.apply(a)
    b[::4] += rng.uniform(20, 60, (20, 2))
    found = tp.estimate(a, b, kind, seed=4, device="cpu")
    assert np.abs(found.matrix - matrix).max() < 1e-6
    assert np.array_equal(found.inliers, np.arange(80) % 4 != 0) and found.rms < 1e-6
    assert np.allclose(found.apply(a), model.apply(a)) and np.allclose(model.inverse().apply(model.apply(a)), a)
    assert np.allclose(found.model.residuals(a, b)[found.inliers], 0, atol=1e-6)
    assert found == pickle.loads(pickle.dumps(found))
    assert found == tp.estimate(a, b, kind, seed=4, device=tp.Device("cpu", threads=2))


def test_fundamental_matrices_give_lines():
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.uniform(-2, 2, (60, 2)), rng.uniform(4, 8, 60)])
    a = 300 * x[:, :2] / x[:, 2:] + 160
    y = x @ np.array([[0.98, 0, -0.199], [0, 1, 0], [0.199, 0, 0.98]]).T + [0.5, 0.1, 0.0]
    b = 300 * y[:, :2] / y[:, 2:] + 160
    found = tp.estimate(a, b, "fundamental", device="cpu")
    lines = found.apply(a)
    off = np.abs((lines[:, :2] * b).sum(1) + lines[:, 2]) / np.hypot(lines[:, 0], lines[:, 1])
    assert found.inliers.all() and off.max() < 1e-3
    assert np.allclose(found.model.inverse().matrix, found.matrix.T)


def test_essential_matrices_need_cameras():
    rng = np.random.default_rng(3)
    k = np.array([[300, 0, 160], [0, 310, 120], [0, 0, 1.0]])
    x = np.column_stack([rng.uniform(-2, 2, (60, 2)), rng.uniform(4, 8, 60)])
    turn, step = np.array([[0.96, 0, -0.28], [0, 1, 0], [0.28, 0, 0.96]]), np.array([0.5, 0.1, 0.0])
    a, b = ((p / p[:, 2:]) @ k.T for p in (x, x @ turn.T + step))
    with pytest.raises(tp.OptionError, match="cameras"):
        tp.estimate(a[:, :2], b[:, :2], "essential")
    for found in (
        tp.estimate(a[:, :2], b[:, :2], "essential", cameras=(k, k)),
        tp.fit(a[:, :2], b[:, :2], "essential", cameras=(k, k)),
    ):
        rays = ((p @ np.linalg.inv(k).T) for p in (a, b))
        u, v = rays
        assert np.abs(np.einsum("ni,ij,nj->n", v, found.matrix, u)).max() < 1e-6 and found.inliers.all()
        assert found.model.residuals(a[:, :2], b[:, :2]).max() < 1e-4 and found.apply(a[:, :2]).shape == (60, 3)
        assert found == pickle.loads(pickle.dumps(found))
        assert np.allclose(found.model.inverse().residuals(b[:, :2], a[:, :2]), 0, atol=1e-4)
    with pytest.raises(tp.ImageError, match="camera"):
        tp.estimate(a[:, :2], b[:, :2], "essential", cameras=(k, np.ones((3, 3))))
    # Normalised coordinates, with a threshold in pixels.
    u, v = ((p @ np.linalg.inv(k).T)[:, :2] for p in (a, b))
    with pytest.raises(tp.ModelError, match="the threshold 3 is 3 focal lengths"):
        tp.estimate(u, v, "essential", K=np.eye(3))
    assert tp.estimate(u, v, "essential", K=np.eye(3), threshold=3 / 300).inliers.all()


def test_a_pose_of_an_essential_matrix():
    rng = np.random.default_rng(5)
    k = np.array([[300, 0, 160], [0, 310, 120], [0, 0, 1.0]])
    for turn, step in [((0.1, -0.2, 0.05), (0.5, 0.1, 0.0)), ((-0.05, 0.3, 0.0), (0.0, 0.0, 1.0)), ((0, 0, 1.5), (-1, 0.4, 0.2))]:
        angle = np.linalg.norm(turn)
        x, y, z = np.array(turn) / angle
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        r = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
        t = np.array(step) / np.linalg.norm(step)
        points = np.column_stack([rng.uniform(-2, 2, (80, 2)), rng.uniform(4, 8, 80)])
        a, b = ((p @ k.T)[:, :2] / p[:, 2:] for p in (points, points @ r.T + t))
        a, b = a[(points @ r.T + t)[:, 2] > 0], b[(points @ r.T + t)[:, 2] > 0]
        found = tp.estimate(a, b, "essential", K=k)
        for rotation, baseline in (found.pose(), found.model.pose(a, b)):
            assert np.abs(rotation - r).max() < 1e-6 and np.abs(baseline - t).max() < 1e-6
        assert found == tp.estimate(a, b, "essential", cameras=(k, k)) == pickle.loads(pickle.dumps(found))
        assert np.allclose(pickle.loads(pickle.dumps(found)).pose()[0], r)
    with pytest.raises(tp.ModelError, match="expected an essential matrix"):
        tp.Model("homography", np.eye(3)).pose(a, b)
    with pytest.raises(tp.ModelError, match="K=K"):
        tp.estimate(a, a).pose()
    with pytest.raises(tp.OptionError, match="option K"):
        tp.estimate(a, b, "essential", K=k, cameras=(k, k))


def test_a_matrix_that_is_nearly_essential_becomes_the_nearest():
    k = np.diag([800, 800, 1.0])
    exact = np.cross(np.eye(3), [0.6, 0.0, 0.8]) @ np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])
    kept = tp.Model("essential", exact, (k, k))
    assert np.array_equal(kept.matrix, exact) and np.array_equal(tp.Model("essential", exact, (k, k)).inverse().matrix, exact.T)
    near = tp.Model("essential", exact + 0.004 * np.eye(3), (k, k))
    values = np.linalg.svd(near.matrix)[1]
    assert values[0] - values[1] < 1e-12 and values[2] < 1e-12 and abs(near.matrix - exact).max() < 0.01
    rays = np.random.default_rng(1).uniform(-0.4, 0.4, (20, 2)) * 800
    rotation, _ = near.pose(rays, rays + [9, 3])
    assert abs(rotation.T @ rotation - np.eye(3)).max() < 1e-9
    for wrong in (np.eye(3), np.diag([1, 0, 0]), np.diag([1, 0.3, 0])):
        with pytest.raises(tp.ModelError, match="singular values"):
            tp.Model("essential", wrong, (k, k))


def test_what_gives_no_pose_is_refused():
    k, skewed = np.diag([800, 800, 1.0]), np.array([[800, 5, 0], [0, 800, 0], [0, 0, 1.0]])
    exact = np.cross(np.eye(3), [1.0, 0.0, 0.0])
    model = tp.Model("essential", exact, (k, k))
    a = np.random.default_rng(1).uniform(-300, 300, (6, 2))
    for points in (np.zeros((0, 2)), np.full((6, 2), np.nan)):
        with pytest.raises(tp.ModelError, match="none of 0 pairs lies in front"):
            model.pose(points, points)
    for count in (1, 2, 5):
        with pytest.raises(tp.ImageError, match=f"6 places in A and {count} in B"):
            model.pose(a, a[:count])
    for cameras, told in [
        (None, "option cameras is None"), (k, "option cameras holds 3 parts"), ((k,), "option cameras holds 1 parts"), (5, "cameras is 5"),
    ]:
        with pytest.raises(tp.OptionError, match=told):
            tp.Model("essential", exact, cameras)
    with pytest.raises(tp.OptionError, match="holds 1 parts"):
        tp.estimate(a, a, "essential", cameras=(k,))
    for camera in (skewed, np.zeros((3, 3)), np.diag([0, 0, 1.0])):
        with pytest.raises((tp.ImageError, tp.MismatchError), match="camera"):
            tp.Model("essential", exact, (k, camera))
    with pytest.raises(tp.OptionError, match="option model is None: expected homography"):
        tp.estimate(a, a, None)


def test_a_camera_that_only_turned_has_no_baseline():
    k, rng = np.array([[900, 0, 640], [0, 900, 480], [0, 0, 1.0]]), np.random.default_rng(4)
    a = rng.uniform((0, 0), (1280, 960), (300, 2))
    turned = np.c_[a, np.ones(300)] @ (k @ np.array([[0.96, 0, -0.28], [0, 1, 0], [0.28, 0, 0.96]]) @ np.linalg.inv(k)).T
    for b in (a, turned[:, :2] / turned[:, 2:]):
        b = b + rng.normal(0, 0.3, b.shape)
        with pytest.raises(tp.ModelError, match="the camera only turned, or did not move"):
            tp.estimate(a, b, "essential", K=k)
        assert tp.estimate(a, b, "essential", K=k, false_alarms=np.inf).inliers.mean() > 0.9


@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (40, 0), (1, 20_000), (1, 500_000)])
def test_fundamental_matrices_of_large_pictures_keep_their_lines(scale, shift):
    k, rng = np.array([[900, 0, 400], [0, 900, 400], [0, 0, 1.0]]), np.random.default_rng(1)
    x = np.column_stack([rng.uniform(-2, 2, (200, 2)), rng.uniform(4, 10, 200)])
    turn, step = np.array([[0.96, 0, -0.28], [0, 1, 0], [0.28, 0, 0.96]]), np.array([1, 0.1, 0.2])
    a, b = ((p @ k.T)[:, :2] / p[:, 2:] for p in (x, x @ turn.T + step))
    a, b = ((p + rng.normal(0, 0.3 / scale, p.shape)) * scale + shift for p in (a, b))
    found = tp.estimate(a, b, "fundamental")
    for model in (found.model, tp.Model("fundamental", found.matrix), found.model.inverse().inverse()):
        off = model.residuals(a, b)
        assert found.inliers.all() and abs(np.sqrt((off * off).mean()) / found.rms - 1) < 1e-3 and found.rms < 1


@pytest.mark.parametrize("kind", ["affine", "similarity", "homography"])
@pytest.mark.parametrize("unit", [1e-6, 1e-8])
def test_units_may_differ_by_any_factor(kind, unit):
    rng = np.random.default_rng(27)
    px = rng.uniform(0, 4000, (50, 2))
    small = px * [unit, unit if kind == "similarity" else -unit]
    assert abs(tp.fit(small, px, kind).apply(small) - px).max() < 1e-4
    assert abs(tp.fit(px, small, kind).apply(px) - small).max() < 1e-4 * unit
    found = tp.estimate(px, small, kind, threshold=3 * unit)
    assert found.inliers.all() and abs(found.apply(px) - small).max() < unit


def test_points_and_models_in_the_forms_of_other_libraries():
    rng = np.random.default_rng(6)
    matrix = np.array([[1.1, 0.1, 5], [-0.1, 0.9, -3], [0, 0, 1]])
    a = rng.uniform(0, 300, (60, 2))
    b = a @ matrix[:2, :2].T + matrix[:2, 2]
    wanted = tp.estimate(a, b)
    forms = [lambda p: p[:, None], lambda p: p[None], lambda p: np.c_[p, np.ones(60)], lambda p: p.tolist()]
    for form in forms:
        assert tp.estimate(form(a), form(b)) == wanted and tp.fit(form(a), form(b)).inliers.all()
        assert np.array_equal(wanted.apply(form(a)), wanted.apply(a))
        assert np.array_equal(wanted.model.residuals(form(a), form(b)), wanted.model.residuals(a, b))
        for score in (tp.evaluate.matching_accuracy, tp.evaluate.position_error):
            assert score(form(a), form(b), wanted) == score(a, b, wanted)
        turns = np.zeros(60)
        assert tp.evaluate.angle_error(form(a), turns, turns, wanted) == tp.evaluate.angle_error(a, turns, turns, wanted)
    assert tp.evaluate.matching_accuracy([], [], wanted) == tp.evaluate.matching_accuracy(a[:0], b[:0], wanted)
    assert tp.evaluate.position_error([], [], wanted).pairs == tp.evaluate.angle_error([], [], [], wanted).pairs == 0
    found, inliers = wanted
    assert found is wanted.matrix and inliers is wanted.inliers and np.allclose(np.linalg.inv(wanted) @ found, np.eye(3))
    affine = tp.Model("affine", matrix[:2])
    assert np.array_equal(affine.matrix, matrix) and np.allclose(affine.apply(a), b)
    image = tp.synth.texture((60, 40))
    assert np.array_equal(tp.warp(image, matrix[:2]), tp.warp(image, affine))
    for wrong, message in [(a.T, r"\(2, 60\): expected \(N, 2\)"), (None, "None"), (a[:, :1], "expected"), (["x"], "numbers")]:
        with pytest.raises(tp.ImageError, match=message):
            tp.estimate(wrong, b)
    for wrong in (None, np.eye(2), np.zeros((3, 4))):
        with pytest.raises(tp.ImageError, match="the model"):
            tp.warp(image, wrong)
    with pytest.raises(tp.OptionError, match=r"option shape is \(-5, 5\)"):
        tp.warp(image, matrix, shape=(-5, 5))
    with pytest.raises(tp.OptionError, match="option detector is 'sift': expected a Sift or a Surf"):
        tp.register(image, image, detector="sift")


def test_a_fit_to_all_is_least_squares():
    rng = np.random.default_rng(4)
    a = rng.uniform(0, 400, (80, 2))
    b = a + [5, 6] + rng.normal(0, 2, (80, 2))
    b[0] += 300
    found = tp.fit(a, b, "translation")
    assert found.inliers.all() and np.allclose(found.matrix[:2, 2], (b - a).mean(0), atol=1e-6)
    with pytest.raises(tp.ModelError):
        tp.fit(a[:3], b[:3], "homography")
    # An affine map is the best fit in B.
    b = a @ np.array([[1.2, -0.3], [0.4, 0.7]]) + [5, 6] + rng.normal(0, 2, (80, 2))
    least = np.linalg.lstsq(np.c_[a, np.ones(80)], b, rcond=None)[0].T
    assert np.allclose(tp.fit(a, b, "affine").matrix[:2], least, atol=1e-6)


def test_a_homography_is_fitted_in_both_images(opencv):
    rng = np.random.default_rng(4)
    truth = tp.Model("homography", [[0.9, 0.1, 20], [-0.08, 1.1, 5], [2e-3, -5e-4, 1]])
    a = rng.uniform(0, 640, (40, 2))
    b = truth.apply(a) + rng.normal(0, 2, a.shape)
    ours, theirs = tp.fit(a, b).model, tp.Model("homography", opencv.findHomography(a, b, 0)[0])
    (in_b, in_a), (their_b, their_a) = (
        (((m.apply(a) - b) ** 2).sum(), ((m.inverse().apply(b) - a) ** 2).sum()) for m in (ours, theirs)
    )
    assert their_b < in_b < 1.03 * their_b and in_a < their_a and in_a + in_b < their_a + their_b


def test_models_are_joined():
    shift = tp.Model("translation", [[1, 0, 5], [0, 1, -3], [0, 0, 1]])
    turn = tp.Model("similarity", [[0.8, 0.6, 2], [-0.6, 0.8, 7], [0, 0, 1]])
    tilt = tp.Model("homography", [[1, 0.1, 3], [0, 1.2, 4], [1e-4, 2e-4, 1]])
    xy = [[3, 4], [50, 20], [7, 90.5]]
    for last, first, kind in [(turn, shift, "similarity"), (shift, shift, "translation"), (tilt, turn, "homography")]:
        joined = last @ first
        assert joined.kind == kind
        assert np.allclose(joined.apply(xy), last.apply(first.apply(xy)), atol=1e-9)
    assert np.allclose(turn @ np.eye(3), turn.matrix) and np.allclose(np.eye(3) @ turn, turn.matrix)
    with pytest.raises(tp.ModelError, match="expected two maps from points to points"):
        turn @ tp.Model("fundamental", [[0, 0, 0], [0, 0, -1], [0, 1, 0]])


def test_impossible_models_are_errors():
    for singular in (lambda: tp.Model("homography", np.zeros((3, 3))), lambda: tp.warp(np.zeros((9, 9), np.uint8), np.zeros((3, 3)))):
        with pytest.raises(tp.ModelError, match="^the matrix is not that of a homography: it is singular"):
            singular()
    with pytest.raises(tp.ImageError, match="last row"):
        tp.Model("affine", np.diag([1, 1, 2]))
    with pytest.raises(tp.ImageError, match="similarity"):
        tp.Model("similarity", [[1, 2, 0], [0, 1, 0], [0, 0, 1]])
    with pytest.raises(tp.OptionError, match="expected homography"):
        tp.Model("projective", np.eye(3))
    with pytest.raises(tp.ModelError, match="3 matches, but a homography needs at least 4"):
        tp.estimate(np.zeros((3, 2)), np.zeros((3, 2)))
    with pytest.raises(tp.ImageError, match="3 places in A and 2 in B"):
        tp.estimate(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(tp.ModelError, match="all matches but one lie on a line"):
        tp.fit([[0, 0], [1, 1], [2, 2], [0, 3]], [[0, 0], [2, 2], [4, 4], [0, 6]])
    plane = np.random.default_rng(2).uniform(0, 400, (40, 2))
    for kind, cameras in [("fundamental", None), ("essential", (np.diag([300, 300, 1]),) * 2)]:
        with pytest.raises(tp.ModelError, match="the camera only turned"):
            tp.fit(plane, plane, kind, cameras=cameras)
    for kind, cameras in [("fundamental", None), ("essential", (np.eye(3), np.eye(3)))]:
        with pytest.raises(tp.MismatchError, match="maps points to lines"):
            tp.warp(np.zeros((9, 9), np.uint8), tp.Model(kind, np.cross(np.eye(3), [1.0, 0.0, 0.0]), cameras))
    line = np.column_stack([np.arange(20), np.arange(20)])
    with pytest.raises(tp.ModelError):
        tp.estimate(line, line)


def test_tie_points_find_the_scene(features, truth):
    found = tp.tie_points(*features, device="cpu")
    assert away(found.model, truth) < 0.2
    assert found.inliers.sum() > 200 and found.xy_a.shape == found.xy_b.shape == (len(found), 2)
    assert np.abs(found.model.residuals(found.xy_a, found.xy_b)[found.inliers]).max() <= 3.0
    plain = tp.tie_points(*features, None, device="cpu")
    assert plain.model is None and plain.inliers.all()
    assert np.array_equal(plain.pairs, tp.match(*features, device="cpu").pairs)
    assert pickle.loads(pickle.dumps(found)) == found
    for odd in (False, True, {"radius": 3.0}):
        with pytest.raises(tp.OptionError, match=r"option rematch is .*: expected a Rematch, such as tiepoint\.Rematch\(\), or None"):
            tp.tie_points(*features, rematch=odd)
    with pytest.raises(tp.OptionError, match="option model is essential, .*: expected fundamental"):
        tp.tie_points(*features, "essential")
    once = tp.tie_points(*features, rematch=None, device="cpu")
    assert np.array_equal(once.pairs, plain.pairs)


def test_registration_lays_one_image_on_the_other(scene, truth):
    found = tp.register(scene.reference, scene.moving, device="cpu")
    assert found.warped.shape == scene.reference.shape and found.covered.dtype == np.uint8
    assert away(found.model, np.linalg.inv(truth)) < 0.2
    inside = found.covered != 0
    off = np.abs(found.warped.astype(int) - scene.reference)[inside]
    assert inside.mean() > 0.7 and np.median(off) < 4
    assert np.array_equal(tp.warp(scene.moving, found.model, shape=scene.reference.shape), found.warped)
    assert pickle.loads(pickle.dumps(found)) == found
    assert found._repr_html_().startswith("<table>") and found._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(tp.OptionError, match="model"):
        tp.register(scene.reference, scene.moving, "fundamental")
    with pytest.raises(tp.ModelError):
        tp.register(scene.reference, np.zeros_like(scene.moving), device="cpu")


def test_warping_shifts_pixels_to_the_right_place():
    image = tp.synth.texture((60, 40))
    shift = np.array([[1, 0, 5], [0, 1, -3], [0, 0, 1.0]])
    for name in ("nearest", "bilinear", "bicubic", "cubic", "lanczos"):
        moved = tp.warp(image, shift, interpolation=name, fill=7, device="cpu")
        assert np.array_equal(moved[:37, 5:], image[3:, :55]) and (moved[37:] == 7).all() and (moved[:, :5] == 7).all()
    labels = np.where(image > 128, 3, 200).astype(np.uint8)
    turn = tp.Model("similarity", [[0.8, 0.3, 4.2], [-0.3, 0.8, 9.1]])
    turned = tp.warp(labels, turn, interpolation="nearest", fill=3, device="cpu")
    assert set(np.unique(turned)) == {3, 200}, "no class is made of two others"
    xy = np.argwhere(labels > 0)[::37, ::-1].astype(float)
    x, y = turn.inverse().apply(xy).round().astype(int).T
    inside = (x >= 0) & (y >= 0) & (x < 60) & (y < 40)
    there = turned[xy[inside, 1].astype(int), xy[inside, 0].astype(int)]
    assert inside.sum() > 20 and np.array_equal(there, labels[y[inside], x[inside]])
    assert tp.warp(image, shift, shape=(10, 20)).shape == (10, 20)
    colour = np.stack([image] * 3, axis=-1)
    assert tp.warp(colour, shift, shape=(10, 20, 3)).shape == (10, 20, 3)
    with pytest.raises(tp.OptionError, match="option fill is 0.5"):
        tp.warp(image, shift, fill=0.5)
    with pytest.raises(tp.OutOfMemoryError):
        tp.warp(image, shift, shape=(1 << 40, 1 << 20))


def test_rectification_from_tie_points_gives_rows(pair):
    found = tp.rectify(pair.left, pair.right, device="cpu")
    assert found.rms_vertical < 0.6 and not found.exchanged and found.points > 50
    least, most = found.calibration.disparities
    assert least <= 2 and most >= 20
    assert found.left.shape == found.right.shape == found.valid_left.shape
    assert found.Q.shape == (4, 4)
    again = pickle.loads(pickle.dumps(found))
    assert again == found


RIG = {"K1": np.diag([300, 300, 1]), "K2": np.diag([300, 300, 1]), "R": np.eye(3), "T": [-0.5, 0, 0]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"D1": [0.1, 0, 0, 0]}, "one of D1 and D2 is missing: expected both or neither; give zeros"),
        ({"D1": [0.1, 0, 0, 0], "D2": ()}, "one of D1 and D2 is missing"),
        ({"D1": np.full(8, 0.1), "D2": np.zeros(8)}, "option D1 has 8 values, of which the sixth and later are not all 0: expected k1"),
        ({"D1": "k1", "D2": np.zeros(5)}, "option D1 is 'k1': expected numbers, k1, k2, p1, p2, k3"),
        ({"R": np.zeros((3, 1))}, r"option R has the shape \(3, 1\): expected \(3, 3\)"),
        ({"R": np.eye(3).ravel()}, r"option R has the shape \(9,\): expected \(3, 3\)"),
        ({"K1": None}, r"option K1 is None: expected \(3, 3\)"),
        ({"T": "abc"}, r"option T is 'abc': expected numbers, \(3,\)"),
        ({"T": [-0.5, 0]}, r"option T has the shape \(2,\): expected \(3,\)"),
        ({name: np.eye(3) for name in ("R1", "R2", "P1", "P2")}, r"option P1 has the shape \(3, 3\): expected \(3, 4\)"),
        ({"size": "640x480"}, "option size is '640x480': expected the width and the height, two whole numbers above 0"),
        ({"size": (640.0, 480.0)}, r"option size is \(640.0, 480.0\): expected the width"),
        ({"size2": (640, 0)}, r"option size2 is \(640, 0\): expected the width"),
    ],
)
def test_impossible_cameras_are_errors(given, message):
    with pytest.raises(tp.OptionError, match=message):
        tp.StereoCalibration(**{**RIG, **given})


@pytest.mark.parametrize("n", [2, 4, 5, 8, 12, 14])
def test_lenses_of_opencv_s_lengths_are_taken(n):
    lens = np.zeros((1, n))
    lens[0, :2] = 0.1, 0.02
    rig = tp.StereoCalibration(**RIG, D1=lens, D2=lens.T, size=np.array([240, 160]))
    assert rig.D1.shape == rig.D2.shape == (min(n, 5),) and rig.D2[1] == 0.02 and rig.size == (240, 160)
    assert tp.StereoCalibration(**{**RIG, "T": [[-0.5], [0], [0]]}).T.shape == (3,)
    image = tp.synth.texture((240, 160), seed=1)
    assert tp.rectify(image, image, rig, device="cpu").left.shape == image.shape


def bent(image, kappa):
    """The image through a lens: a place at r larger sides from the middle shows what was at r (1 + kappa r²)."""
    (h, w), middle = image.shape, np.array(image.shape)[:, None, None] / 2 - 0.5
    places = np.mgrid[0:h, 0:w] - middle
    places = middle + places * (1 + kappa * (places**2).sum(axis=0) / max(image.shape) ** 2)
    rows, columns = np.clip(np.rint(places).astype(int), 0, np.array([[[h - 1]], [[w - 1]]]))
    return image[rows, columns]


@pytest.mark.parametrize("kappa", [0.0, 0.1, 0.28])
def test_a_lens_that_is_not_known_does_not_change_depth(kappa):
    made = tp.synth.stereo((640, 480), disparities=(10, 70), seed=1)
    found = tp.rectify(bent(made.left, kappa), bent(made.right, kappa), focal=640.0)
    depth = tp.Stereo.for_calibration(found).compute(found.left, found.right, found).depth()
    x, y = np.rint((found.matrix_left @ [319.5, 239.5, 1.0])[:2]).astype(int)
    middle = depth[y - 80 : y + 80, x - 107 : x + 107]
    assert np.nanmedian(middle) == pytest.approx(np.nanmedian(640.0 / made.truth_left[160:320, 213:427]), rel=0.1)


def test_rectification_of_known_cameras(pair):
    k = np.array([[300, 0, 119.5], [0, 300, 79.5], [0, 0, 1]])
    rig = tp.StereoCalibration(K1=k, K2=k, R=np.eye(3), T=[-0.5, 0, 0], size=(240, 160))
    half = dataclasses.replace(rig, size2=(120, 80))
    with pytest.raises(tp.MismatchError, match="240x160 and 120x80"):
        tp.rectify(pair.left, pair.right, half)
    found = tp.rectify(pair.left, pair.right, rig, device="cpu")
    assert np.array_equal(found.left, pair.left) and np.array_equal(found.right, pair.right)
    assert found.calibration.baseline == 0.5 and found.calibration.focal == 300
    with pytest.raises(tp.MismatchError, match="calibration is for pictures of 240x160"):
        tp.rectify(pair.left[1:], pair.right[1:], rig)
    with pytest.raises(tp.OptionError, match="R1, R2, P1 and P2"):
        tp.StereoCalibration(K1=k, K2=k, R=np.eye(3), T=[-0.5, 0, 0], R1=np.eye(3))
    with pytest.raises(tp.MismatchError, match="no rectification"):
        tp.rectify(pair.left, pair.right, rig, stored=True)
    with pytest.raises(tp.MismatchError, match="not a rotation"):
        tp.rectify(pair.left, pair.right, tp.StereoCalibration(K1=k, K2=k, R=np.ones((3, 3)), T=[1, 0, 0]))
    assert tp.rectify(pair.left, pair.right, rig).doubts == []
    weak = ["the focal length is weakly determined" in " ".join(tp.rectify(pair.left, pair.right, focal=f).doubts) for f in (None, 300.0)]
    assert weak == [True, False]
    (doubt,) = tp.rectify(pair.right, pair.left, rig).doubts
    assert "the scene is behind the cameras" in doubt and "are left and right exchanged?" in doubt
    with pytest.raises(tp.OptionError, match="option focal is 5.0: expected none beside a calibration"):
        tp.rectify(pair.left, pair.right, rig, focal=5.0)


@pytest.mark.parametrize(
    "given",
    [
        {"frame": "all"},
        {"focal": 5.0},
        {"detector": 5},
        {"mask_left": np.ones((3, 3))},
        {"mask_right": np.ones((160, 240))},
        {"ratio": None},
        {"threshold": -1},
        {"seed": 1},
        {"modality": "foo"},
    ],
    ids=lambda given: next(iter(given)),
)
def test_a_stored_rectification_takes_no_options_of_a_search(pair, given):
    k = np.array([[300, 0, 119.5], [0, 300, 79.5], [0, 0, 1]])
    p1 = np.c_[k, [0, 0, 0]]
    p2 = np.c_[k, [-150, 0, 0]]
    rig = tp.StereoCalibration(K1=k, K2=k, R=np.eye(3), T=[-0.5, 0, 0], size=(240, 160), R1=np.eye(3), R2=np.eye(3), P1=p1, P2=p2)
    found = tp.rectify(pair.left, pair.right, rig, stored=True, interpolation="lanczos", threshold=1.0, device="cpu")
    assert np.array_equal(found.left, pair.left) and found.calibration.baseline == 0.5
    with pytest.raises(tp.OptionError, match=f"option {next(iter(given))} has no effect on a stored rectification: leave it out"):
        tp.rectify(pair.left, pair.right, rig, stored=True, **given)


def test_points_at_infinity_are_not_at_1():
    homography = tp.Model("homography", [[1, 0.02, 5], [-0.02, 1, 3], [2**-10, 2**-12, 1]])
    far = [[1, 2, 0], [1, -4, 0], [0, 0, 0]]
    found = homography.apply([*far, [4, 6, 2]])
    assert np.allclose(found[0], homography.apply([1e12, 2e12])) and np.isnan(found[1:3]).all()
    assert np.array_equal(found[3], homography.apply([2, 3])) and np.array_equal(homography.apply([1, 2, 0]), found[0])
    assert np.isnan(tp.Model("affine", [[1, 0.02, 5], [-0.02, 1, 3]]).apply(far)).all()
    epipolar = tp.Model("fundamental", [[0, -1e-6, 1e-3], [2e-6, 0, -0.1], [-1e-3, 0.1, 0]])
    assert np.allclose(epipolar.apply([1, 2, 0]), epipolar.apply([1e12, 2e12]) / 1e12)

    a = np.random.default_rng(1).uniform(0, 400, (40, 2))
    b = np.pad(homography.apply(a), ((0, 0), (0, 1)), constant_values=1)
    b[:5, 2] = 0
    for estimate in (tp.fit(a, b), tp.estimate(a, b)):
        assert np.allclose(estimate.apply(a[5:]), b[5:, :2]) and np.array_equal(estimate.inliers, b[:, 2] != 0)
    assert np.isinf(homography.residuals(a, b)[:5]).all()


def test_four_exact_pairs_are_fitted_and_estimated_on_demand():
    homography = tp.Model("homography", [[1, 0.02, 5], [-0.02, 1, 3], [1e-4, 2e-4, 1]])
    a = np.array([[0, 0], [300, 10], [290, 200], [5, 210.0]])
    b = homography.apply(a)
    with pytest.raises(tp.ModelError):
        tp.estimate(a, b)
    for found in (tp.fit(a, b), tp.estimate(a, b, false_alarms=math.inf)):
        assert np.allclose(found.apply(a), b)
