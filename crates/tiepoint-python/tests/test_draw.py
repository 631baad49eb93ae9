"""Pictures and tables of results, and subsets of results."""

import numpy as np
import pytest
import tiepoint as tp


@pytest.fixture(scope="module")
def tie(features):
    return tp.tie_points(*features, device="cpu")


def test_features_are_circles_on_their_image(scene, features):
    found = features[0]
    shown = tp.draw(found, scene.reference)
    assert shown.shape == (240, 320, 3) and shown.dtype == np.uint8
    changed = (shown != scene.reference[..., None]).any(-1)
    assert 0.02 < changed.mean() < 0.9
    one = tp.Features.from_arrays(xy=[[50, 40]], scale=[5], angle=[0], image_size=(100, 80))
    ys, xs = np.nonzero(tp.draw(one).any(-1))
    assert (xs.min(), xs.max(), ys.min(), ys.max()) == (20, 80, 10, 70), "6σ about (50, 40)"
    assert tp.draw(one)[40, 65].any() and not tp.draw(one)[40, 35].any(), "the radius points to +x"
    assert not tp.draw(found, scene.reference, limit=0)[..., 0].astype(int).sum() - scene.reference.astype(int).sum()


def test_channels_that_come_first_are_an_error(scene, features):
    with pytest.raises(tp.ImageError, match=r"shape \(3, 240, 320\): expected .*transpose"):
        tp.draw(features[0], np.stack([scene.reference] * 3))


def test_what_cannot_be_drawn_is_refused(scene, features, tie):
    for limit in (-1, -2000):
        with pytest.raises(tp.OptionError, match=f"option limit is {limit}: expected 0 or more"):
            tp.draw(features[0], scene.reference, limit=limit)
    half = scene.reference[::2, ::2]
    for refused in (
        lambda: tp.draw(features[0], half),
        lambda: tp.draw(tie, scene.reference, half),
        lambda: tp.draw(tie, half, scene.moving),
    ):
        with pytest.raises(tp.MismatchError, match="the image is 160x120 and the features are of one of 320x240"):
            refused()
    unknown = tp.Features.from_arrays(xy=[[5, 6]])
    assert tp.draw(unknown, half).shape == (120, 160, 3), "of an unknown size"


def test_matches_are_lines_from_image_to_image(scene, features, tie):
    shown = tp.draw(tie, scene.reference, scene.moving)
    assert shown.shape == (240, 640, 3)
    one = tie[np.flatnonzero(tie.inliers)[:1]]
    shown = tp.draw(one)
    (x0, y0), (x1, y1) = np.rint(one.xy_a[0]).astype(int), np.rint(one.xy_b[0]).astype(int)
    assert shown[y0, x0, 1] == 220 and shown[y1, x1 + 320, 1] == 220
    assert not tp.draw(tie[~tie.inliers]).any() and tp.draw(tie[~tie.inliers], outliers=True).any()
    matches = tp.match(*features, device="cpu")
    assert tp.draw(matches, scene.reference, scene.moving, features=features).shape == (240, 640, 3)
    with pytest.raises(tp.OptionError, match="features="):
        tp.draw(matches)
    with pytest.raises(tp.OptionError, match="there is 1 image: expected 2"):
        tp.draw(tie, scene.reference)
    with pytest.raises(tp.OptionError, match="no picture of int"):
        tp.draw(3)


def test_registrations_and_disparities_are_pictures(scene, pair):
    found = tp.register(scene.reference, scene.moving, device="cpu")
    shown = tp.draw(found)
    inside = found.covered != 0
    blend = (scene.reference[inside].astype(int) + found.warped[inside]) // 2
    assert np.array_equal(shown[inside][:, 0], blend)
    disparities = tp.Stereo(disparities=32, device="cpu").compute(pair.left, pair.right)
    shown = tp.draw(disparities)
    valid = ~np.isnan(disparities.disparity)
    near = disparities.disparity >= np.nanmax(disparities.disparity) - 1
    assert not shown[~valid].any() and (shown[near][:, 0] > shown[near][:, 2]).all()


def test_axes_of_matplotlib(scene, features, tie):
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    assert tp.draw(tie, scene.reference, scene.moving, axes=axes) is axes
    [lines] = axes.collections
    assert len(lines.get_segments()) == tie.inliers.sum() and len(axes.images) == 1
    figure.canvas.draw()
    pyplot.close(figure)


def test_notebooks_show_pictures(features, tie):
    for thing in (features[0], tie):
        assert thing._repr_png_().startswith(b"\x89PNG")
        page = thing._repr_html_()
        assert page.startswith("<table>") and "data:image/png" in page
    assert f"<td>{len(features[0])}</td>" in features[0]._repr_html_()
    matches = tp.match(*features, device="cpu")
    assert matches._repr_png_() is None and str(len(matches)) in matches._repr_html_()
    empty = features[0][:0]
    assert empty._repr_png_() is None and "<img" not in empty._repr_html_()
    large = tp.Features.from_arrays(xy=[[3000, 2000]], scale=[50], image_size=(4000, 3000))
    assert large._repr_png_().startswith(b"\x89PNG")


def test_rows_of_matches(features, tie):
    matches = tp.match(*features, device="cpu")
    some = matches[:50]
    assert len(some) == 50 and np.array_equal(some.pairs, matches.pairs[:50]) and type(some) is tp.Matches
    confirmed = tie[tie.inliers]
    assert len(confirmed) == tie.inliers.sum() and confirmed.inliers.all() and confirmed.model is tie.model
    assert np.array_equal(confirmed.xy_a, tie.xy_a[tie.inliers])
    assert np.array_equal(tie[[3, 1]].pairs, tie.pairs[[3, 1]]) and len(tie[5]) == len(tie[-1]) == 1
    assert len(tie[[]]) == 0 and np.array_equal(tie[-1].pairs[0], tie.pairs[-1])
    with pytest.raises(tp.MismatchError, match="mask has the shape"):
        tie[tie.inliers[:-1]]
    with pytest.raises(IndexError, match=f"out of bounds .* {len(tie)}"):
        tie[len(tie)]
    for one in (3, np.int64(3), np.array(3)):
        assert tie[one].pairs.tolist() == [tie.pairs[3].tolist()] and tie[one].distance.shape == (1,)
    mask = tie.inliers.astype(np.uint8)
    for wrong in (mask[:, None], mask, np.array([[0, 1], [2, 3]])):
        with pytest.raises(tp.MismatchError, match=r"the index has the shape .*: expected one dimension of .*\.ravel\(\)\.astype\(bool\)"):
            tie[wrong]
    assert tie[mask[:, None].ravel().astype(bool)] == confirmed
    for wrong in (True, tie.inliers[:, None]):
        with pytest.raises(tp.MismatchError, match="mask has the shape"):
            tie[wrong]


def test_matches_as_an_array_are_their_pairs(features, tie):
    for found in (tie, tp.match(*features, device="cpu")):
        assert np.array_equal(np.asarray(found), found.pairs) and np.array(found, np.float32).dtype == np.float32
        assert not np.array_equal(found, np.zeros(3))
        with pytest.raises(tp.ImageError, match=f"xy_a is {type(found).__name__}: expected one of its arrays"):
            tp.estimate(found, found.pairs)


def test_features_are_joined(features):
    a, b = features
    both = tp.concatenate([a, b])
    assert len(both) == len(a) + len(b) and both[: len(a)] == a and both.image_size == a.image_size
    assert np.array_equal(both.descriptors[len(a) :], b.descriptors)
    for wrong in ([a, tp.Features.from_arrays(xy=[[1, 2]])], []):
        with pytest.raises(tp.MismatchError, match="expected one kind"):
            tp.concatenate(wrong)


def test_tables_of_pandas(tie, features):
    pytest.importorskip("pandas")
    table = tie.to_pandas()
    assert list(table) == ["a", "b", "distance", "ratio", "inlier", "x_a", "y_a", "x_b", "y_b"]
    assert table["inlier"].sum() == tie.inliers.sum() and np.array_equal(table[["x_b", "y_b"]], tie.xy_b)
    assert list(tp.match(*features, device="cpu").to_pandas()) == ["a", "b", "distance", "ratio"]


def test_equal_results_have_one_hash(tie, features):
    again = tp.tie_points(*features, device="cpu")
    assert again == tie and hash(again) == hash(tie) and len({again, tie}) == 1
