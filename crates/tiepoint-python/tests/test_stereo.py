"""Dense stereo."""

import pickle

import numpy as np
import pytest
import tiepoint as tp

CAMERAS = tp.Calibration(focal=300.0, principal=(119.5, 79.5), baseline=0.25, size=(240, 160))


@pytest.fixture(scope="module")
def found(pair):
    return tp.Stereo(disparities=40, right=True, confidence=True, reasons=True, device="cpu").compute(pair.left, pair.right)


def test_disparities_are_right_where_both_images_see(pair, found):
    assert found.disparity.shape == (160, 240) and found.disparity.dtype == np.float32
    score = tp.evaluate.disparity(found, pair.truth_left, mask=pair.visible)
    assert score.bad[0] < 0.08 and score.density > 0.9
    right = tp.evaluate.disparity(found.right, pair.truth_right)
    assert right.bad[0] < 0.25
    missing = np.isnan(found.disparity)
    assert missing.any() and not np.isinf(found.disparity).any()
    assert (found.reasons[missing] > 0).all() and (found.reasons[~missing] == 0).all()
    assert (found.confidence[missing] == 0).all() and found.confidence.max() <= 1


def test_threads_memory_and_layout_change_nothing(pair, found):
    other = tp.Stereo(disparities=40, memory="8MiB", device=tp.Device("cpu", threads=1))
    assert np.array_equal(other.compute(pair.left, pair.right).disparity, found.disparity, equal_nan=True)
    fortran = other.compute(np.asfortranarray(pair.left), pair.right[:, :, None])
    assert np.array_equal(fortran.disparity, found.disparity, equal_nan=True)
    assert other.options["memory"] == 8 << 20
    assert tp.Stereo(device=tp.Device("cpu", memory="300M")).options["memory"] == 300 << 20
    assert tp.Stereo(memory="unlimited").options["memory"] is None


def test_depth_and_points_follow_the_formula(pair, found):
    depth = found.depth(CAMERAS)
    valid = found.disparity > 0
    assert np.allclose(depth[valid], 300 * 0.25 / found.disparity[valid])
    assert np.isnan(depth[~valid]).all()
    xyz, rgb = found.points(CAMERAS)
    assert xyz.shape == rgb.shape == (valid.sum(), 3) and (xyz.dtype, rgb.dtype) == (np.float32, np.uint8)
    rows, columns = np.nonzero(valid)
    assert np.allclose(xyz[:, 2], depth[valid])
    assert np.allclose(xyz[:, 0], (columns - 119.5) * depth[valid] / 300, atol=1e-5)
    assert np.array_equal(rgb[:, 0], pair.left[rows, columns])
    h = np.array([columns[5], rows[5], found.disparity[valid][5], 1.0]) @ CAMERAS.Q.T
    assert np.allclose(h[:3] / h[3], xyz[5], atol=1e-4)
    near, _ = found.points(CAMERAS, max_depth=5.0)
    assert 0 < len(near) < len(xyz)
    with pytest.raises(tp.OptionError, match="calibration is needed"):
        found.depth()
    with pytest.raises(tp.MismatchError, match="affine"):
        found.depth(tp.Calibration(focal=1, principal=(0, 0), baseline=1, affine=True))
    with pytest.raises(tp.MismatchError, match="99x99"):
        found.depth(tp.Calibration(focal=1, principal=(0, 0), baseline=1, size=(99, 99)))


def test_masks_transparency_and_no_data_leave_pixels_out(pair):
    stereo = tp.Stereo(disparities=40, device="cpu")
    mask = np.ones(pair.left.shape, bool)
    mask[40:80, 100:160] = False
    masked = stereo.compute(pair.left, pair.right, mask_left=mask).disparity
    assert np.isnan(masked[~mask]).all() and np.isfinite(masked[mask]).mean() > 0.7
    clear = np.stack([pair.left] * 3 + [255 * mask.astype(np.uint8)], axis=-1)
    assert np.isnan(stereo.compute(clear, np.stack([pair.right] * 3, -1)).disparity[~mask]).all()
    marked = np.where(mask, np.maximum(pair.left, 1), 0).astype(np.uint8)
    assert np.isnan(stereo.compute(marked, pair.right, no_data=0).disparity[~mask]).all()
    floats = np.where(mask, pair.left / np.float32(255), np.nan).astype(np.float32)
    assert np.isnan(stereo.compute(floats, pair.right / np.float32(255)).disparity[~mask]).all()


def test_images_of_two_types_have_a_verdict(pair):
    found = tp.Stereo(disparities=32, cost="census").compute(pair.left, pair.right.astype(np.uint16))
    assert np.isfinite(found.disparity).mean() > 0.7 and found.verdict == "good"


def test_the_range_of_a_calibration(pair):
    known = tp.Calibration(focal=1, principal=(0, 0), baseline=1, disparities=(1.5, 31.2))
    stereo = tp.Stereo.for_calibration(known, paths=4)
    assert (stereo.min_disparity, stereo.disparities, stereo.paths) == (1, 32, 4) and stereo.options["paths"] == 4
    assert tp.Stereo.for_calibration(CAMERAS).disparities == 128


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"disparities": 0}, "option disparities is 0: expected 1 to 4096"),
        ({"paths": 7}, "option paths is 7"),
        ({"cost": "ssd"}, "option cost is ssd"),
        ({"cost": "ad", "census_window": "5x5"}, "census_window"),
        ({"iterations": 2}, "option iterations is 2: expected none unless the cost is mi"),
        ({"paths": 3}, "option paths is 3: expected 4, 5, 8, 16$"),
        ({"median": 4}, "option median is 4"),
        ({"p1": -5}, "option p1 is -5"),
        ({"p2": 5000}, "option p2"),
        ({"memory": "much"}, "option memory is much"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(tp.OptionError, match=message):
        tp.Stereo(**options)


def test_pairs_that_do_not_fit_are_errors(pair):
    stereo = tp.Stereo(disparities=16)
    with pytest.raises(tp.MismatchError):
        stereo.compute(pair.left, pair.right[1:])
    with pytest.raises(tp.OutOfMemoryError, match="bytes are needed"):
        tp.Stereo(disparities=4096, memory=1000, device="cpu").compute(pair.left, pair.right)


def test_masked_arrays_in_a_sequence(pair):
    stereo = tp.Stereo(disparities=16, device="cpu")
    none = np.ma.masked_array(pair.left, np.zeros(pair.left.shape, bool))
    wanted = stereo.compute(pair.left, pair.right).disparity
    assert np.array_equal(next(stereo.compute_many([(none, pair.right)])).disparity, wanted, equal_nan=True)
    some = np.ma.masked_array(pair.left, np.eye(*pair.left.shape, dtype=bool))
    pairs = [(pair.left, pair.right), (some, pair.right), (pair.left, pair.right)]
    assert list(stereo.compute_many(pairs)) == [stereo.compute(*both) for both in pairs]
    filled = some.filled(255)
    wanted = stereo.compute(filled, pair.right, no_data=255).disparity
    assert np.array_equal(next(stereo.compute_many([(filled, pair.right)], no_data=255)).disparity, wanted, equal_nan=True)


def test_results_can_be_pickled_and_shown(found):
    again = pickle.loads(pickle.dumps(found))
    assert again == found and repr(again) == repr(found)
    assert pickle.loads(pickle.dumps(tp.Stereo(p1=3, cost="census"))) == tp.Stereo(p1=3, cost="census")
    assert "valid" in found._repr_html_() and found._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("cost", ["ad-census", "census", "ad", "mi"])
def test_every_cost(pair, cost):
    stereo = tp.Stereo(disparities=40, cost=cost, device="cpu")
    assert tp.evaluate.disparity(stereo.compute(pair.left, pair.right), pair.truth_left, mask=pair.visible).bad[0] < 0.15
    assert stereo.options["p1"] > 0


def test_images_may_be_overwritten_after_their_disparities_are_found(pair):
    stereo = tp.Stereo(disparities=40, device="cpu")
    left, right, mask = np.array(pair.left), np.array(pair.right), np.ones(pair.left.shape, bool)
    found = [stereo.compute(left, right, mask_left=mask), *stereo.compute_many([(left, right)])]
    wanted = found[0].assess()
    left[:], right[:], mask[:] = 0, 0, False
    assert found[0].assess() == found[1].assess() == wanted


def test_disparities_are_not_lost_when_the_source_of_pairs_fails(pair):
    def pairs():
        yield from [(pair.left, pair.right)] * 2
        raise OSError("the camera is gone")

    found = []
    with pytest.raises(OSError, match="camera"):
        for each in tp.Stereo(disparities=40).compute_many(pairs(), batch=4):
            found.append(each)
    assert len(found) == 2 and found[0] == found[1]


def test_a_sequence_gives_each_pair_s_own_result(pair):
    stereo = tp.Stereo(disparities=40, right=True, device="cpu")
    pairs = [(pair.left, pair.right), (pair.left[:100], pair.right[:100]), (pair.left, pair.right)]
    wanted = [stereo.compute(*both) for both in pairs]
    for options in ({}, {"in_flight": 2, "batch": 2}):
        found = list(stereo.compute_many(iter(pairs), CAMERAS.__class__(focal=1, principal=(0, 0), baseline=1), **options))
        assert [f.disparity.shape for f in found] == [w.disparity.shape for w in wanted]
        for f, w in zip(found, wanted, strict=True):
            assert np.array_equal(f.disparity, w.disparity, equal_nan=True) and np.array_equal(f.right, w.right, equal_nan=True)
            assert f.calibration.focal == 1
    three, stacked = [pair.left] * 3, np.stack([pair.left, pair.right])
    for wrong, told in [
        (pair.left, r"is an array of the shape \(160, 240\)"),
        (np.stack(three), r"is an array of the shape \(3, 160, 240\)"),
        (three, "has 3 parts"),
        ([1, 2], "holds 1"),
        (7, "is of the type int"),
        ("ab", "is of the type str"),
        (None, "is of the type NoneType"),
    ]:
        several = stereo.compute_many([(pair.left, pair.right), stacked, wrong])
        assert next(several) == next(several)
        with pytest.raises(tp.ImageError, match=rf"item 2 of the pairs {told}: expected a pair, \(left, right\)"):
            next(several)
    assert list(stereo.compute_many([])) == []
    with pytest.raises(tp.OptionError, match="in_flight"):
        next(stereo.compute_many(pairs, in_flight=0))
    with pytest.raises(tp.ImageError, match="None"):
        list(stereo.compute_many([(pair.left, None)]))
    gpus = [device for device in tp.devices() if device.name != "cpu"]
    for device in gpus[:1]:
        there = list(stereo.replace(device=device).compute_many(pairs, batch=2))
        assert all(np.array_equal(f.disparity, w.disparity, equal_nan=True) for f, w in zip(there, wanted, strict=True))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"focal": "a"}, "option focal is 'a': expected a number"),
        ({"focal": -500}, "option focal is -500: expected a finite number above 0$"),
        ({"focal": np.float64("nan")}, "option focal is nan: expected a finite number above 0$"),
        ({"baseline": 0}, "option baseline is 0: expected a finite number above 0$"),
        ({"baseline": np.float64(-0.12)}, r"option baseline is -0.12: .* above 0; OpenCV's T\[0\] is negative, and its absolute value"),
        ({"baseline": float("inf")}, "option baseline is inf: expected a finite number above 0$"),
        ({"doffs": float("nan")}, "option doffs is nan: expected a finite number"),
        ({"size": "640x480"}, "option size is '640x480': expected the width and the height, two whole numbers above 0"),
        ({"baseline": np.array([[-0.1], [0], [0]])}, r"(?s)option baseline is array.*: expected a number; of OpenCV's T .*numpy.linalg.norm"),
        ({"disparities": 5}, "option disparities is 5: expected two finite numbers, the lesser first"),
        ({"disparities": (30, 5)}, r"option disparities is \(30, 5\): expected two finite numbers, the lesser first"),
        ({"principal": 5}, "option principal is 5: expected two numbers, cx and cy"),
        ({"principal": (0, float("inf"))}, r"option principal is \(0, inf\): expected a finite number"),
    ],
)
def test_impossible_calibrations_are_errors(given, message):
    with pytest.raises(tp.OptionError, match=message):
        tp.Calibration(**{"focal": 500, "principal": (0, 0), "baseline": 1, **given})


def test_calibrations_take_arrays_and_lists(tmp_path, pair):
    k = np.array([[300, 0, 119.5], [0, 300, 79.5], [0, 0, 1]], np.float32)
    given = tp.Calibration(focal=k[0, 0], principal=k[:2, 2], baseline=np.array(0.25), size=[240, 160], disparities=[0, 32])
    plain = tp.Calibration(focal=300, principal=(119.5, 79.5), baseline=0.25, size=(240, 160), disparities=(0, 32))
    assert given == plain and hash(given) == hash(plain) and repr(given) == repr(plain)
    found = tp.Stereo(disparities=32, device="cpu").compute(pair.left, pair.right)
    assert np.array_equal(found.depth(given), found.depth(plain), equal_nan=True) and len(found.points(given)[0])
    given.write(tmp_path / "calib.txt")
    assert tp.Calibration.read(tmp_path / "calib.txt") == plain


def test_affine_cameras_have_no_depth():
    affine = tp.Calibration(focal=0, principal=(0, 0), baseline=0, affine=True)
    with pytest.raises(tp.OptionError, match="Q needs cameras that see along rays which meet"):
        affine.Q  # noqa: B018


def census(image):
    """The census of 5x5 pixels, (H, W, 24)."""
    padded = np.pad(image, 2, mode="edge")
    height, width = image.shape
    windows = [padded[y : y + height, x : x + width] for y in range(5) for x in range(5) if (x, y) != (2, 2)]
    return np.stack(windows, -1) < image[..., None]


def test_a_cost_volume_is_aggregated_as_the_cost_itself(pair):
    a, b = census(pair.left), census(pair.right)
    columns = np.arange(pair.left.shape[1])
    cost = np.stack([(a != b[:, np.maximum(columns - d, 0)]).sum(-1) for d in range(40)], -1)
    options = {"disparities": 40, "device": "cpu", "confidence": True, **dict(p1=10, p2=39, p2_least=14, gradient=4)}
    expected = tp.Stereo(cost="census", **options).compute(pair.left, pair.right)
    stereo = tp.Stereo(**options)
    for dtype, scale in [(np.uint8, None), (np.uint16, None), (np.float32, 1), (np.float64, 1)]:
        given = stereo.optimize(cost.astype(dtype), pair.left, pair.right, scale=scale)
        assert np.array_equal(given.disparity, expected.disparity, equal_nan=True), dtype
        assert np.array_equal(given.confidence, expected.confidence), dtype
    # Networks have the axis of disparities first; the transposed view is packed.
    network = np.ascontiguousarray(cost.transpose(2, 0, 1)).astype(np.float32) / 24
    found = stereo.optimize(network.transpose(1, 2, 0), pair.left, pair.right, scale=24)
    assert np.array_equal(found.disparity, expected.disparity, equal_nan=True)
    sums = stereo.aggregate(cost.astype(np.uint8), pair.left, pair.right)
    assert sums.shape == (*pair.left.shape, 40) and sums.dtype == np.uint16
    near = np.abs(sums.argmin(-1) - expected.disparity)[~np.isnan(expected.disparity)]
    assert (near <= 0.5).mean() > 0.9
    unknown = network.transpose(1, 2, 0).copy()
    unknown[:, 100:120] = np.nan
    assert np.isnan(stereo.optimize(unknown, pair.left, pair.right).disparity[:, 100:120]).all()
    with pytest.raises(tp.ImageError, match="height, width, disparities"):
        stereo.optimize(cost[..., 0], pair.left, pair.right)
    with pytest.raises(tp.MismatchError, match="39 disparities"):
        stereo.optimize(cost[..., 1:].astype(np.uint8), pair.left, pair.right)


def test_integer_costs_of_every_type_are_not_multiplied(pair):
    stereo = tp.Stereo(disparities=40, p1=5, p2=30, p2_least=30, device="cpu")
    wide = np.random.default_rng(1).integers(0, 25, (*pair.left.shape, 40))
    wanted = stereo.aggregate(wide.astype(np.uint8), pair.left, pair.right)
    for dtype in ("i1", "i2", "i4", "i8", "u4", "u8", ">i4", ">u2"):
        assert np.array_equal(stereo.aggregate(wide.astype(dtype), pair.left, pair.right), wanted), dtype
    few = tp.Stereo(disparities=2, p1=5, p2=30, p2_least=30, device="cpu")
    assert np.array_equal(
        few.aggregate(wide[:8, :9, :2].tolist(), pair.left[:8, :9], pair.right[:8, :9]),
        few.aggregate(wide[:8, :9, :2].astype(np.uint8), pair.left[:8, :9], pair.right[:8, :9]),
    )
    # The least cost of -100 becomes 0; in 8 bits the difference to the greatest does not fit.
    wide[0, 0, 0], wide[0, 0, 1] = 0, 200
    wanted = stereo.aggregate(wide.astype(np.uint8), pair.left, pair.right)
    for dtype, by in [("i1", 100), ("i2", 100), ("i8", 100), ("i8", 1 << 40)]:
        assert np.array_equal(stereo.aggregate((wide - by).astype(dtype), pair.left, pair.right), wanted), (dtype, by)
    wide[0, 0, 0] = 100_000
    with pytest.raises(tp.OptionError, match="the cost volume holds 0 to 100000: expected .* at most 4000; give a scale of at most 4000 / 100000"):
        stereo.aggregate(wide, pair.left, pair.right)
    assert stereo.aggregate(wide, pair.left, pair.right, scale=4000 / 100_000).any()


def test_where_rectified_images_show_nothing_nothing_is_searched(pair):
    rectified = tp.Rectified(
        left=pair.left,
        right=pair.right,
        valid_left=np.where(np.arange(240) < 200, 255, 0).astype(np.uint8) + np.zeros((160, 1), np.uint8),
        valid_right=np.full((160, 240), 255, np.uint8),
        matrix_left=np.eye(3),
        matrix_right=np.eye(3),
        calibration=CAMERAS,
        exchanged=False,
        tie_points=None,
        points=0,
        rms_vertical=None,
        doubts=[],
    )
    stereo = tp.Stereo(disparities=40, device="cpu")
    found = stereo.compute(pair.left, pair.right, rectified)
    assert np.isnan(found.disparity[:, 200:]).all() and np.isfinite(found.disparity[:, :200]).mean() > 0.8
    both = stereo.compute(pair.left, pair.right, rectified, mask_left=np.arange(160)[:, None] + np.zeros(240) > 80)
    assert np.isnan(both.disparity[:80]).all() and np.isnan(both.disparity[:, 200:]).all()
    other = stereo.compute(pair.left[:100], pair.right[:100], rectified)
    assert np.isfinite(other.disparity[:, 200:]).any(), "images of another size"
    # Copies, and images in a sequence, too.
    copies = [(pair.left.copy(), pair.right.tolist()), (pair.left, pair.right), (pair.left[:100], pair.right[:100])]
    for many in (stereo.compute_many(copies, rectified), stereo.replace(device="auto").compute_many(copies, rectified, batch=2)):
        for f, w in zip(many, (found, found, other), strict=True):
            assert np.array_equal(f.disparity, w.disparity, equal_nan=True)
    assert np.array_equal(stereo.compute(*copies[0], rectified).disparity, found.disparity, equal_nan=True)
    with pytest.raises(tp.MismatchError, match="mask"):
        stereo.compute(pair.left, pair.right, rectified, mask_left=np.ones((3, 3)))
