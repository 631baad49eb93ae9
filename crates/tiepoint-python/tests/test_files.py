"""Files of every format, filters, and reports."""

import contextlib
import dataclasses
import io
import json
import re

import numpy as np
import pytest
import tiepoint as tp


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("extension", ["png", "tif", "pfm", "pgm", "ppm", "pam"])
@pytest.mark.parametrize("channels", [1, 3, 4, 6])
def test_images_come_back(tmp_path, dtype, extension, channels):
    image = tp.synth.texture((21, 13), dtype=dtype)
    if channels > 1:
        image = np.stack([image] * channels, axis=-1)
    path = tmp_path / f"image.{extension}"
    holds = {"tif": (1, 3, 4, 6), "pfm": (1, 3), "pgm": (1,), "ppm": (3,)}.get(extension, (1, 3, 4))
    if channels not in holds:
        with pytest.raises(tp.FormatError, match="channels"):
            tp.write(path, image)
        assert not path.exists()
        return
    tp.write(path, image)
    again = tp.read(path)
    assert again.shape == image.shape == tp.warp(image, np.eye(3)).shape
    if extension == "tif" or (dtype != "float32") == (extension != "pfm"):
        assert again.dtype == dtype and np.array_equal(again, image)
    assert np.array_equal(tp.io.decode(path.read_bytes()), again)
    with pytest.raises(TypeError, match=r"expected a str or a Path; tiepoint\.io\.decode"):
        tp.read(path.read_bytes())


def test_missing_and_broken_files_are_errors(tmp_path):
    with pytest.raises(FileNotFoundError) as told:
        tp.read(tmp_path / "none.png")
    assert told.value.filename == str(tmp_path / "none.png")
    wrong = tmp_path / "wrong.png"
    wrong.write_bytes(b"no picture")
    with pytest.raises(tp.FormatError, match="not an image of a known format"):
        tp.read(wrong)
    with pytest.raises(tp.FormatError, match="extension"):
        tp.write(tmp_path / "image.xyz", np.zeros((2, 2), np.uint8))
    tp.write(tmp_path / "large.png", np.zeros((50, 50), np.uint8))
    with pytest.raises(tp.FormatError):
        tp.read(tmp_path / "large.png", max_pixels=100)


@pytest.mark.parametrize("extension", ["csv", "json", "npz", "sift", "txt"])
def test_features_come_back(tmp_path, features, extension):
    path = tmp_path / f"features.{extension}"
    tp.io.write_features(path, features[0])
    again = tp.io.read_features(path)
    assert len(again) == len(features[0])
    assert np.allclose(again.xy, features[0].xy, atol=1e-4)
    assert np.array_equal(again.descriptors, features[0].descriptors)
    if extension in ("json", "npz"):
        assert again == features[0]


def test_matches_are_written(tmp_path, features):
    tie = tp.tie_points(*features)
    tp.io.write_matches(tmp_path / "ties.csv", tie)
    rows = (tmp_path / "ties.csv").read_text().splitlines()
    assert rows[0] == "ax,ay,bx,by,distance,ratio,inlier,a,b" and len(rows) == len(tie) + 1
    first = [float(v) for v in rows[1].split(",")]
    assert np.allclose(first[:4], [*tie.xy_a[0], *tie.xy_b[0]]) and first[7:] == list(tie.pairs[0])
    matches = tp.match(*features)
    with pytest.raises(tp.OptionError, match="give a and b"):
        tp.io.write_matches(tmp_path / "matches.json", matches)
    tp.io.write_matches(tmp_path / "matches.txt", matches, a=features[0], b=features[1], names=("x.png", "y.png"))
    assert (tmp_path / "matches.txt").read_text().startswith("x.png y.png\n")
    # Each pair of places once, whatever directions its features have.
    places = np.array(list(dict.fromkeys(map(tuple, np.hstack([tie.xy_a, tie.xy_b])[tie.inliers].tolist()))), np.float32)
    for name, columns in [("asp", 6), ("s2p", 4)]:
        tp.io.write_matches(tmp_path / "m.txt", tie, format=name)
        lines = np.loadtxt(tmp_path / "m.txt")
        assert lines.shape == (len(places), columns)
        assert np.array_equal(lines[:, :2].astype(np.float32), places[:, :2])
        found = tp.io.read_matches(tmp_path / "m.txt")
        assert np.array_equal(np.hstack([found.xy_a, found.xy_b]), places)
        assert tp.estimate(found.xy_a, found.xy_b).inliers.sum() == len(found)
    tp.io.write_matches(tmp_path / "ties.npz", tie)
    found = tp.io.read_matches(tmp_path / "ties.npz")
    with np.load(tmp_path / "ties.npz") as arrays:
        for name in ["xy_a", "xy_b", "pairs", "distance", "ratio", "inliers"]:
            assert np.array_equal(arrays[name], getattr(tie, name)) and arrays[name].dtype == getattr(tie, name).dtype, name
            assert name in ("distance", "ratio") or np.array_equal(getattr(found, name), getattr(tie, name)), name
    tp.io.write_matches(tmp_path / "ties.json", tie, names=("x.png", "y.png"))
    found = tp.io.read_matches(tmp_path / "ties.json")
    assert found.names == ("x.png", "y.png") and np.array_equal(found.pairs, tie.pairs)
    assert np.array_equal(found.inliers, tie.inliers) and "matches" in repr(found)
    stored = json.loads((tmp_path / "ties.json").read_text())
    with np.load(tmp_path / "ties.npz") as arrays:
        assert stored["sizes"] == arrays["sizes"].tolist() == [list(f.image_size) for f in features]
        assert stored["matrix"] == arrays["matrix"].tolist() == tie.model.matrix.tolist() and stored["model"] == "homography"
    with pytest.raises(tp.FormatError, match=r"`collect\(…, options=CollectionOptions\(matches=FILE\)\)`"):
        tp.io.read_matches(tmp_path / "matches.txt")
    with pytest.raises(TypeError, match="matches is of the type ndarray: expected Matches, TiePoints or StoredMatches"):
        tp.io.write_matches(tmp_path / "m.csv", tie.pairs)  # type: ignore[arg-type]
    with pytest.raises(tp.OptionError, match="format is pastis"):
        tp.io.write_matches(tmp_path / "m.txt", tie, format="pastis")


@pytest.mark.parametrize("extension", ["csv", "json", "npz"])
def test_matches_of_a_file_are_written_drawn_and_chosen_from(tmp_path, scene, features, extension):
    tie = tp.tie_points(*features)
    tp.io.write_matches(tmp_path / f"m.{extension}", tie, names=[tmp_path / "x.png", "y.png"])
    stored = tp.io.read_matches(tmp_path / f"m.{extension}")
    assert np.array_equal(tp.draw(stored, scene.reference, scene.moving), tp.draw(tie, scene.reference, scene.moving))
    some = stored[stored.inliers]
    assert type(some) is tp.io.StoredMatches and len(some) == tie.inliers.sum() and np.array_equal(some.xy_b, tie.xy_b[tie.inliers])
    assert some.names == stored.names == ((str(tmp_path / "x.png"), "y.png") if extension == "json" else None)
    for other in ("csv", "json", "npz"):
        tp.io.write_matches(tmp_path / f"again.{other}", stored)
        again = tp.io.read_matches(tmp_path / f"again.{other}")
        for name in ("xy_a", "xy_b", "pairs", "inliers"):
            assert np.array_equal(getattr(again, name), getattr(tie, name)), name
    with np.load(tmp_path / "again.npz") as arrays:
        assert np.isnan(arrays["distance"]).all() and np.isnan(arrays["ratio"]).all(), "they are not known"
    tp.io.write_matches(tmp_path / "again.txt", stored, format="colmap")
    lines = (tmp_path / "again.txt").read_text().splitlines()
    assert lines[0].endswith("x.png y.png" if extension == "json" else "a b") and lines[1] == " ".join(map(str, tie.pairs[tie.inliers][0]))
    twice = dataclasses.replace(stored, pairs=np.zeros_like(stored.pairs))
    with pytest.raises(tp.MismatchError, match="two rows give the feature 0 two places"):
        tp.io.write_matches(tmp_path / "m.csv", twice)
    assert len(stored[:0]) == 0 and tp.draw(stored[:0], scene.reference, scene.moving).ndim == 3


def test_a_folder_of_matches_names_its_files(tmp_path, features):
    homol = tmp_path / "Homol"
    tp.io.write_matches(homol, tp.tie_points(*features), names=("x.png", "y.png"), format="micmac")
    with pytest.raises(IsADirectoryError, match=r"expected the file of a pair, such as .*Pastisx.png/y.png.txt"):
        tp.io.read_matches(homol)
    assert len(tp.io.read_matches(homol / "Pastisx.png/y.png.txt")) > 100
    with pytest.raises(IsADirectoryError, match="expected a file"):
        tp.io.read_matches(tmp_path)


@pytest.mark.parametrize("extension", ["pfm", "tif", "png"])
def test_disparities_come_back(tmp_path, pair, extension):
    disparity = pair.truth_left.copy()
    disparity[:20] = np.nan
    tp.io.write_disparity(tmp_path / f"d.{extension}", disparity)
    again = tp.io.read_disparity(tmp_path / f"d.{extension}")
    assert np.array_equal(np.isnan(again), np.isnan(disparity))
    assert np.nanmax(np.abs(again - disparity)) <= (1 / 512 if extension == "png" else 0)


@pytest.mark.parametrize("extension", ["pfm", "tif", "exr", "npy"])
def test_disparities_of_0_and_below_come_back_whole(tmp_path, pair, extension):
    path = tmp_path / f"d.{extension}"
    found = tp.Stereo(disparities=48, min_disparity=-40, device="cpu").compute(pair.right, pair.left).disparity
    whole = pair.truth_left - np.float32(20)
    zero = np.where(pair.truth_left > 25, pair.truth_left, np.float32(0))
    zero[:9] = np.nan
    assert (found < 0).mean() > 0.5 and (whole < 0).any() and (zero == 0).any()
    for disparity in (found, whole, zero):
        tp.io.write_disparity(path, disparity)
        assert np.array_equal(tp.io.read_disparity(path), disparity, equal_nan=True)
    assert np.nanmin(tp.io.read_disparity(path, signed=False)) > 0


def test_what_other_programs_write_for_no_disparity_is_unknown(tmp_path):
    path, known = tmp_path / "d.npy", np.linspace(1, 9, 600, dtype=np.float32).reshape(20, 30)
    many = ([-9999], 1, "30 of 600"), ([0], 11, "330 of 600")
    for marks, rows, warned in (([0], 9, ""), ([-1], 9, ""), ([-1, 0], 9, ""), *many):
        stored = known.copy()
        stored[:rows] = np.resize(marks, (rows, 30))
        np.save(path, stored)
        if warned:
            with pytest.warns(UserWarning, match=rf"d.npy: {warned} values are {marks[0]}, .*signed=True"):
                read = tp.io.read_disparity(path)
        else:
            read = tp.io.read_disparity(path)
        assert np.array_equal(np.isnan(read), stored <= 0), marks
        assert np.array_equal(tp.io.read_disparity(path, signed=True), stored)


def test_points_and_calibrations_come_back(tmp_path, pair):
    known = tp.Calibration(focal=310.5, principal=(119.25, 80.0), baseline=0.3, doffs=1.5, size=(240, 160), disparities=(0, 40))
    known.write(tmp_path / "calib.txt")
    assert tp.Calibration.read(tmp_path / "calib.txt") == known
    ros = dataclasses.replace(known, doffs=0)
    ros.write(tmp_path / "camera_info.yaml")
    assert tp.Calibration.read(tmp_path / "camera_info.yaml") == dataclasses.replace(ros, disparities=None)
    with pytest.raises(tp.OptionError, match="a camera_info of ROS holds the size of the images: give the calibration its size"):
        dataclasses.replace(ros, size=None).write(tmp_path / "other_camera_info.yml")
    assert not (tmp_path / "other_camera_info.yml").exists()
    found = tp.Stereo(disparities=40).compute(pair.left, pair.right, tmp_path / "calib.txt")
    assert found.calibration == known
    n = tp.io.write_points(tmp_path / "points.ply", found)
    xyz, rgb = tp.io.read_points(tmp_path / "points.ply")
    wanted = found.points()
    for wrong in (xyz, found.disparity):
        with pytest.raises(TypeError, match="found is of the type ndarray: expected a Disparities, the result of Stereo.compute"):
            tp.io.write_points(tmp_path / "other.ply", wrong, rgb)
    assert n == len(xyz) and np.array_equal(xyz, wanted[0]) and np.array_equal(rgb, wanted[1])


def test_homographies_are_read(tmp_path):
    (tmp_path / "H.txt").write_text("1 0 3\n0 1 4\n0 0 1\n")
    wanted = [[1, 0, 3], [0, 1, 4], [0, 0, 1]]
    assert tp.io.read_homography(tmp_path / "H.txt").tolist() == wanted
    np.save(tmp_path / "H.npy", wanted)
    assert tp.io.read_homography(tmp_path / "H.npy").tolist() == wanted
    with pytest.raises(FileNotFoundError):
        tp.io.read_homography(tmp_path / "none.npy")
    for wrong in (np.zeros((3, 3)), np.eye(3) * np.nan, np.eye(2), np.eye(3)[:2], np.array([{}])):
        np.save(tmp_path / "H.npy", wrong)
        with pytest.raises(tp.FormatError, match=r"H\.npy: .*expected the \(3, 3\) of a homography"):
            tp.io.read_homography(tmp_path / "H.npy")
    for text in ("", "1 0 3\n0 1 4\n0 0 1\n"):
        (tmp_path / "H.npy").write_text(text)
        with pytest.raises(tp.FormatError, match=r"H\.npy: .*expected the \(3, 3\)"):
            tp.io.read_homography(tmp_path / "H.npy")


def test_bytes_are_taken_from_any_buffer(tmp_path):
    image = tp.synth.texture((21, 13))
    tp.write(tmp_path / "image.png", image)
    held = (tmp_path / "image.png").read_bytes()
    apart = np.repeat(np.frombuffer(held, np.uint8), 2)[::2]
    for data in (held, bytearray(held), memoryview(held), np.frombuffer(held, np.uint8), apart, apart[:, None]):
        assert np.array_equal(tp.io.decode(data), image)
    with pytest.raises(TypeError, match="bytes-like"):
        tp.io.decode("image.png")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"the data is a BytesIO: expected bytes, which its \.getvalue\(\) gives"):
        tp.io.decode(io.BytesIO(held))  # type: ignore[arg-type]
    tp.write(bytes(tmp_path / "bytes.png"), image)  # type: ignore[arg-type]
    assert np.array_equal(tp.read(tmp_path / "bytes.png"), image)


def test_scenes_refuse_what_is_out_of_range():
    for made in (tp.synth.texture, tp.synth.scene, tp.synth.stereo):
        for size, told in [((0, 0), "0x0"), ((0, 5), "0x5"), ((-1, 64), "-1x64")]:
            with pytest.raises(tp.OptionError, match=f"option size is {told}: expected 1 to 2.32 pixels"):
                made(size)
        for seed in (-1, 2**64):
            with pytest.raises(tp.OptionError, match=f"option seed is {seed}: expected a whole number: 0 to"):
                made((64, 48), seed=seed)
        with pytest.raises(tp.OptionError, match="option dtype is int8"):
            made((64, 48), dtype=np.int8)
        with pytest.raises(tp.OptionError, match="option dtype is grey"):
            made((64, 48), dtype="grey")
    assert tp.synth.stereo([64, 48], disparities=[2, 9]) == tp.synth.stereo((64, 48), disparities=(2, 9))
    with pytest.raises(tp.OptionError, match="option disparities is 9: expected the least and the greatest"):
        tp.synth.stereo((64, 48), disparities=9)
    for dtype in (np.uint16, np.dtype(np.uint16), "u2", "uint16"):
        assert tp.synth.texture((64, 48), dtype=dtype).dtype == np.uint16
        assert tp.synth.scene((64, 48), dtype=dtype).moving.dtype == np.uint16
        assert tp.synth.stereo((64, 48), dtype=dtype).right.dtype == np.uint16


def test_filters_are_what_they_say():
    image = tp.synth.texture((60, 50), dtype="float32")
    kernel = np.array([[0, 1, 0], [2, -5, 1], [0, 3, 0]], np.float32)
    padded = np.pad(image, 1, mode="edge")
    wanted = sum(kernel[i, j] * padded[i : i + 50, j : j + 60] for i in range(3) for j in range(3))
    assert np.allclose(tp.filter.convolve(image, kernel), wanted, atol=1e-5)
    x = tp.filter.sobel(image, "gx")
    y = tp.filter.sobel(image, "gy")
    assert np.allclose(tp.filter.sobel(image), np.hypot(x, y), atol=1e-5)
    wanted = padded[:, 2:] - padded[:, :-2]
    assert np.allclose(np.abs(x), np.abs(wanted[:-2] + 2 * wanted[1:-1] + wanted[2:]), atol=1e-5)
    smooth = tp.filter.gauss(image, 2.0)
    assert smooth.std() < image.std() and abs(smooth.mean() - image.mean()) < 0.02
    xy, response, laplacian = tp.filter.blobs(image)
    det = tp.filter.hessian(image)
    assert np.array_equal(det[xy[:, 1], xy[:, 0]], response)
    assert (np.diff(np.abs(response)) <= 0).all() and set(laplacian.tolist()) <= {-1, 0, 1}
    whole = tp.filter.convolve((255 * image).astype(np.uint8), -kernel, float=True)
    assert whole.dtype == np.float32 and (whole < 0).any()
    with pytest.raises(tp.OptionError, match="option border is wrap"):
        tp.filter.gauss(image, border="wrap")


def test_scenes_follow_from_their_seed():
    a, b = tp.synth.stereo((60, 40), seed=1), tp.synth.stereo((60, 40), seed=1)
    assert a == b and a != tp.synth.stereo((60, 40), seed=2)
    assert tp.synth.stereo((60, 40), colour=True).left.shape == (40, 60, 3)
    for dtype in ("uint8", "uint16", "float32"):
        assert tp.synth.scene((30, 20), dtype=dtype).moving.dtype == dtype
    with pytest.raises(tp.OptionError, match="dtype"):
        tp.synth.texture(dtype="float64")
    with pytest.raises(tp.OutOfMemoryError):
        tp.synth.texture((1 << 40, 1 << 20))


def test_scores(features, truth, pair):
    score = tp.evaluate.repeatability(*features, truth)
    sizeless = tp.Features.from_arrays(xy=features[0].xy)
    with pytest.raises(tp.MismatchError, match="a does not know the size of its image"):
        tp.evaluate.repeatability(sizeless, features[1], truth)
    assert 0.5 < score.share <= 1 and score.pairs <= min(score.a, score.b)
    tie = tp.tie_points(*features)
    shares = tp.evaluate.matching_accuracy(tie.xy_a, tie.xy_b, truth)
    assert len(shares) == 10 and shares[2] > 0.9 and shares == sorted(shares)
    right = tp.evaluate.position_error(tie.xy_a, tie.xy_b, truth)
    none = tp.evaluate.position_error(tie.xy_a + 50, tie.xy_b, truth)
    assert none.pairs == 0 and np.isnan([*none.bias, none.rms, none.median]).all(), "no match is right"
    none = tp.evaluate.angle_error(np.empty((0, 2)), [], [], truth)
    assert none.pairs == 0 and np.isnan([none.bias, none.median]).all()
    for wrong in (-1, np.nan):
        with pytest.raises(tp.OptionError, match="within"):
            tp.evaluate.position_error(tie.xy_a, tie.xy_b, truth, within=wrong)
    assert tp.evaluate.corner_error(truth, np.eye(3), [320, 240]) == tp.evaluate.corner_error(truth, np.eye(3), np.array([320, 240]))
    for wrong in ((0, 50), (-1, 5)):
        with pytest.raises(tp.OptionError, match="width and a height"):
            tp.evaluate.corner_error(truth, truth, wrong)
    assert right.pairs == round(shares[2] * len(tie)) and right.median <= right.rms < 1 and isinstance(right.bias, tuple) and max(map(abs, right.bias)) < 0.1
    assert tp.evaluate.position_error(tie.xy_a, tie.xy_b, truth, within=0.1).pairs < right.pairs
    i, j = tie[tie.inliers].pairs.T
    turned = tp.evaluate.angle_error(tie.a.xy[i], tie.a.angle[i], tie.b.angle[j], truth)
    assert turned.pairs == len(i) and turned.median < 0.05 and abs(turned.bias) < 0.1
    assert tp.evaluate.corner_error(truth, truth, (320, 240)) == 0
    perfect = tp.evaluate.disparity(pair.truth_left, pair.truth_left, thresholds=[0.5, 1])
    assert perfect.bad == [0, 0] and perfect.density == 1 and perfect.epe == 0
    seen = tp.evaluate.disparity(pair.truth_left, pair.truth_left, truth_right=pair.truth_right)
    assert 0.7 * perfect.pixels < seen.pixels < perfect.pixels
    half = np.ones(pair.truth_left.shape, bool)
    half[:, ::2] = False
    assert tp.evaluate.disparity(pair.truth_left, pair.truth_left, truth_right=pair.truth_right, mask=half).pixels < 0.6 * seen.pixels


def test_disparities_are_taken_in_pixels(tmp_path, pair):
    truth, rounded = pair.truth_left, np.round(pair.truth_left)
    wanted = tp.evaluate.disparity(rounded, truth)
    for dtype in (np.int32, np.uint32, np.int64, np.float16, np.float64):
        assert tp.evaluate.disparity(rounded.astype(dtype), truth) == wanted, dtype
    assert tp.evaluate.disparity(rounded.astype(int).tolist(), truth) == wanted
    zeros = np.where(np.arange(truth.shape[1]) < 9, 0, truth)
    with pytest.warns(UserWarning, match="values of the truth are 0, which counts as a disparity"):
        tp.evaluate.disparity(rounded, zeros)
    for told, given in [("opposite sign", -truth), ("found stored as a multiple, at a scale of 16", 16 * truth), ("found are -1", np.where(zeros > 0, truth, -1))]:
        with pytest.warns(UserWarning, match=told):
            tp.evaluate.disparity(given, truth)
    with pytest.raises(tp.FormatError, match="16 for OpenCV's StereoSGBM"):
        np.save(tmp_path / "sixteen.npy", (16 * truth).astype(np.int16))
        tp.io.read_disparity(tmp_path / "sixteen.npy")
    assert np.allclose(tp.io.read_disparity(tmp_path / "sixteen.npy", scale=16), truth, atol=0.07)
    # These may be multiples of disparities: 256 times in a PNG of 16 bits, 16 times in OpenCV's map.
    for dtype in (np.uint8, np.uint16, np.int16, bool):
        stored = rounded.astype(dtype)
        for what, given in [("the disparity map", (stored, truth)), ("the truth", (truth, stored)), ("the truth of the right image", (truth, truth, stored))]:
            with pytest.raises(tp.ImageError, match=rf"{what} holds {stored.dtype}, .*: expected pixels as float32; .*read_disparity.*astype"):
                tp.evaluate.disparity(*given[:2], truth_right=given[2] if given[2:] else None)
    found, opencv = tp.Stereo(disparities=40, device="cpu").compute(pair.left, pair.right), (16 * truth).astype(np.int16)
    for call in (
        lambda: tp.io.write_disparity(tmp_path / "disparity.pfm", opencv),
        lambda: found.assess(opencv),
        lambda: tp.report(found, truth=opencv),
        lambda: dataclasses.replace(found, disparity=opencv).depth(),
    ):
        with pytest.raises(tp.ImageError, match="holds int16, whose values may be multiples of disparities"):
            call()


def test_reports_are_written(tmp_path, scene, pair, features):
    registered = tp.register(scene.reference, scene.moving)
    page = tp.report(registered, tmp_path / "register.html", names=("moving <b>", "fixed"))
    assert (tmp_path / "register.html").read_text() == page
    assert repr(page).startswith("Page(") and len(repr(page)) < 40 and page._repr_html_().startswith("<iframe srcdoc=")
    assert "One on the other" in page and "moving <b>" not in page and "moving &lt;b&gt;" in page
    tie = tp.tie_points(*features)
    with pytest.raises(tp.OptionError, match="images"):
        tp.report(tie)
    assert "Matches" in tp.report(tie, images=(scene.reference, scene.moving), names=[tmp_path / "a.png", "b.png"])
    for images in [(scene.reference[:50], scene.moving), (scene.reference, scene.moving.T)]:
        with pytest.raises(tp.MismatchError, match="the features are of one of 320x240"):
            tp.report(tie, images=images)
    with pytest.raises(tp.FormatError, match="page.pdf: the page is HTML: expected the extension .html"):
        tp.report(registered, tmp_path / "page.pdf")
    for detector, support in [(tp.Sift(), 6), (tp.Surf(extended=True), 10)]:
        found = tp.tie_points(*(detector.detect(picture) for picture in (scene.reference, scene.moving)))
        shown = tp.report(found, images=(scene.reference, scene.moving))
        assert float(re.search(r'"support":([\d.]+)', shown)[1]) == support, "half a descriptor's window"
    found = tp.Stereo(disparities=40, confidence=True).compute(pair.left, pair.right)
    assert "Disparities" in tp.report(found)
    rectified = tp.rectify(pair.left, pair.right)
    assert "rectified" in tp.report(rectified, images=(pair.left, pair.right))
    assert len(tp.report(found, limit=200_000)) <= 200_000
    # A page says when and how it was made, and whether the result can be believed.
    told = re.search(r'<h2>How this was made</h2>\n<pre class="command">(.*?)</pre>', page, re.DOTALL)[1]
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC\ntiepoint.report of Registration", told), told
    assert "Stereo(disparities=40)" in tp.report(found, made="tp.Stereo(disparities=40)")
    for shown, verdict in [(page, registered.tie_points.verdict), (tp.report(found), found.verdict)]:
        assert f'<div class="verdict {verdict}"' in shown
    # The verdict of a registration is above its first picture, below a sentence.
    assert page.count('<div class="verdict') == 1 and page.index('<div class="verdict') < page.index("<h2>Matches</h2>")
    assert re.search(r"[\d,]+ and [\d,]+ features, \d+ matches, \d+ \(\d+ %\) agree on a homography to \d\.\d\d px", page)


def test_results_of_masked_arrays_are_shown_and_written(tmp_path, scene, pair):
    stereo, known = tp.Stereo(disparities=40, device="cpu"), tp.Calibration(focal=500, principal=(0, 0), baseline=1)
    found = stereo.compute(np.ma.masked_less(pair.left, 20), pair.right, known)
    xyz, rgb = found.points()
    there = np.isfinite(found.depth())
    assert len(xyz) and np.array_equal(rgb[:, 0], pair.left[there])
    assert tp.io.write_points(tmp_path / "points.ply", found) == len(xyz)
    assert "Disparities" in tp.report(found)
    masked = np.ma.masked_less(scene.reference, 20)
    registered = tp.register(masked, scene.moving, device="cpu")
    assert "One on the other" in tp.report(registered)
    assert np.array_equal(tp.draw(registered), tp.draw(dataclasses.replace(registered, fixed=scene.reference)))


def test_a_page_of_disparities_shows_reasons_and_the_truth(pair):
    def view(page):
        data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
        return json.loads(data[1])["views"][0]

    found = tp.Stereo(disparities=40, reasons=True).compute(pair.left, pair.right)
    told = view(tp.report(found, truth=pair.truth_left))
    assert told["truth"] is not None and told["reasons"] is not None
    plain = view(tp.report(dataclasses.replace(found, reasons=None)))
    assert plain["truth"] is None and plain["reasons"] is None
    with pytest.raises(tp.OptionError, match="numbers that name none"):
        tp.report(dataclasses.replace(found, reasons=np.full_like(found.reasons, 9)))
    with pytest.raises(tp.OptionError, match="truth is for disparities"):
        tp.report(tp.register(pair.left, pair.left), truth=pair.truth_left)


def test_floats_are_written_from_their_range_or_a_given_one(tmp_path):
    inside, beyond = np.array([[0, 0.5, 1]], np.float32), np.array([[0, 0.5, 1, 2]], np.float64)
    for image, range_, wanted in [
        (inside, None, [0, 32768, 65535]),
        (beyond, None, [0, 32768, 65535, 65535]),
        (beyond, (0, 2), [0, 16384, 32768, 65535]),
        (np.array([[-1, 0, 1]]), (-1, 1), [0, 32768, 65535]),
    ]:
        cut = image is beyond and range_ is None
        with pytest.warns(UserWarning, match="1 values lie outside") if cut else contextlib.nullcontext():
            tp.write(tmp_path / "a.png", image, range=range_)
        assert np.abs(tp.read(tmp_path / "a.png").astype(int) - wanted).max() <= 1
    for wrong in ((1, 0), 5):
        with pytest.raises(tp.OptionError, match="option range is .*: expected two values, the lesser first"):
            tp.write(tmp_path / "a.png", inside, range=wrong)
