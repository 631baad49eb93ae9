"""Objects that are accepted as images, and those that are not."""

import copy
import pathlib
import pickle
import re
import types

import numpy as np
import pytest
import tiepoint as tp

SIFT = tp.Sift(device=tp.Device("cpu", threads=1))


class Interface:
    """An array that offers `__array_interface__` alone."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class Capsule:
    """An array that offers DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnCard:
    """An array that claims to be in a GPU's memory."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **options):
        raise AssertionError("not asked for")


def test_every_layout_of_the_same_pixels_is_the_same_image(scene):
    image = scene.reference
    wanted = SIFT.detect(image)
    wide = np.zeros((240, 400), np.uint8)
    wide[:, 40:360] = image
    frozen = image.copy()
    frozen.setflags(write=False)
    layouts = {
        "rows apart": wide[:, 40:360],
        "columns first": np.asfortranarray(image),
        "every second": np.repeat(np.repeat(image, 2, 0), 2, 1)[::2, ::2],
        "backwards": np.ascontiguousarray(image[::-1, ::-1])[::-1, ::-1],
        "one channel": image[:, :, None],
        "read only": frozen,
        "a buffer": memoryview(image),
        "an interface": Interface(image),
        "DLPack": Capsule(image),
        "DLPack, read only": Capsule(frozen),
        "channels apart": np.stack([image] * 3)[0],
        "not aligned": np.frombuffer(b"x" + image.tobytes(), np.uint8, offset=1).reshape(image.shape),
    }
    for name, layout in layouts.items():
        assert SIFT.detect(layout) == wanted, name


def test_every_type_of_pixel_is_recognised(scene):
    sixteen = scene.reference.astype(np.uint16) * 257
    unaligned = np.frombuffer(b"x" + sixteen.tobytes(), np.uint8, offset=1).view(np.uint16).reshape(sixteen.shape)
    exact = tp.Sift(device="cpu", range=(0, 65535))
    assert exact.detect(unaligned) == exact.detect(sixteen)
    floats = tp.Sift(device="cpu", range=(0, 1)).detect(scene.reference.astype(np.float32) / 255)
    eight = SIFT.detect(scene.reference)
    assert abs(len(floats) - len(eight)) < 0.02 * len(eight)


def test_numbers_of_every_type_are_images(scene):
    image = scene.reference
    floats = SIFT.detect(image.astype(np.float32))
    for dtype in (np.float64, np.float16, np.int16, np.int32, np.uint32, np.int64, np.uint64, ">f4", ">f8", ">i2"):
        assert SIFT.detect(image.astype(dtype)) == floats, dtype
    assert SIFT.detect(image.astype(">u2")) == SIFT.detect(image.astype(np.uint16))
    assert SIFT.detect(image.tolist()) == floats
    truth = image > 128
    assert SIFT.detect(truth) == SIFT.detect(np.where(truth, np.uint8(255), np.uint8(0)))
    assert tp.warp(image.astype(np.float64), np.eye(3)).dtype == np.float32
    wide = image.astype(np.float64)
    wide[3, 3] = 1e300
    assert len(SIFT.detect(wide)) > 100, "values too large for float32 count as no data"


@pytest.mark.parametrize("detector", [tp.Sift, tp.Surf])
def test_equal_values_are_one_image_as_integers_and_floats(scene, detector):
    """By their automatic range, and by one that is given. The automatic range of 16 bits is at least 32 wide, that of
    floats is not; so an image of fewer values differs in contrast between the two types."""

    def both(image, **given):
        return [detector(device="cpu", **given).detect(image.astype(dtype)).xy for dtype in (np.uint16, np.float32)]

    few = scene.reference // 8
    for a, b in [both(scene.reference), both(scene.reference // 4), both(few, range=(0, 31))]:
        nearest = np.hypot(*(a[:, None] - b[None]).transpose(2, 0, 1)).min(1)
        assert len(a) > 100 and abs(len(a) - len(b)) <= 0.005 * len(b) and (nearest < 0.05).mean() > 0.99
    a, b = both(few)
    assert 0.85 * len(b) < len(a) < len(b)


def test_masks_of_every_type(scene):
    image = scene.reference
    half = np.zeros(image.shape, bool)
    half[:, 160:] = True
    wanted = SIFT.detect(image, half)
    assert 0 < len(wanted) < len(SIFT.detect(image))
    for mask in [half * np.uint8(7), half * 0.5, half.astype(np.int64), half[..., None] * np.uint16(9), half.tolist()]:
        assert SIFT.detect(image, mask) == wanted
    masked = np.ma.masked_array(image, ~half)
    wanted = SIFT.detect(np.dstack([image, half * np.uint8(255)]))
    assert 0 < len(wanted) < len(SIFT.detect(image))
    for same in (masked, np.ma.masked_array(np.where(half, image, 255 - image), ~half)):
        assert SIFT.detect(same) == wanted == SIFT.detect(same, half), "hidden values have no influence"
    floats = image / np.float32(255)
    assert SIFT.detect(np.ma.masked_array(floats, ~half)) == SIFT.detect(np.where(half, floats, np.nan))
    assert list(SIFT.detect_many([masked, image])) == [wanted, SIFT.detect(image)]
    assert SIFT.detect(np.ma.masked_array(image)) == SIFT.detect(image), "a masked array without masked pixels"
    colours = np.ma.masked_array(np.stack([image] * 3, -1), np.stack([~half] * 3, -1))
    assert SIFT.detect(colours) == wanted
    for call in (lambda: tp.warp(masked, np.eye(3)), lambda: tp.filter.gauss(masked)):
        with pytest.raises(tp.ImageError, match=r"a masked array with masked values, .* \.filled\(value\)"):
            call()


def test_masked_arrays_in_other_calls(scene, pair):
    half = np.zeros(pair.left.shape, bool)
    half[:, 120:] = True
    masked = [np.ma.masked_array(image, ~half) for image in (pair.left, pair.right)]
    stereo = tp.Stereo(disparities=32, device="cpu")
    wanted = stereo.compute(pair.left, pair.right, mask_left=half, mask_right=half)
    assert np.array_equal(stereo.compute(*masked).disparity, wanted.disparity, equal_nan=True)
    count = np.ones(scene.moving.shape, bool)
    count[:60] = False
    transparent = tp.register(scene.reference, np.dstack([scene.moving, count * np.uint8(255)]))
    by_mask = tp.register(scene.reference, np.ma.masked_array(scene.moving, ~count))
    assert by_mask.model == transparent.model
    shown, opaque = by_mask.covered != 0, transparent.warped[..., 1] == 255
    assert not (shown & ~opaque).any() and (shown & opaque).sum() > 0.9 * opaque.sum()
    away = np.abs(by_mask.warped[shown].astype(int) - transparent.warped[shown][:, 0])
    assert away.max() <= 1
    # Beside a mask that is given, whose NaN means no data as it does for other arrays.
    given = np.where(half, 1.0, np.nan)
    given[60:90, 130:] = 0
    wanted = stereo.compute(pair.left, pair.right, mask_left=half & (given > 0)).disparity
    none = np.ma.masked_array(pair.left, np.zeros(half.shape, bool))
    for image, mask in [(masked[0], given), (none, given), (none, given[..., None])]:
        assert np.array_equal(stereo.compute(image, pair.right, mask_left=mask).disparity, wanted, equal_nan=True)
    for image in (pair.left, masked[0]):
        with pytest.raises(tp.MismatchError, match="left mask is 3x3"):
            stereo.compute(image, pair.right, mask_left=np.ones((3, 3)))


class WithMask:
    """An image with a mask, as astropy's CCDData has it."""

    def __init__(self, data, mask):
        self.data, self.mask, self.shape = data, mask, data.shape

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.data, dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float32])
@pytest.mark.parametrize("colours", [None, 1, 3])
@pytest.mark.parametrize("made", [np.ma.masked_array, WithMask])
def test_what_is_masked_covers_nothing(scene, dtype, colours, made):
    hole = np.zeros(scene.moving.shape, bool)
    hole[90:150, 120:200] = True
    values = np.where(hole, 255, scene.moving // 2).astype(dtype)
    if colours:
        values, mask = np.dstack([values] * colours), np.dstack([hole] * colours)
    else:
        mask = hole
    found = tp.register(scene.reference, made(values, mask), device="cpu")
    x, y = np.round(found.model.apply((160, 120))).astype(int)
    assert found.covered[y, x] == 0
    junk = tp.warp(hole.astype(np.float32), found, shape=hole.shape, interpolation="bilinear") > 0.01
    assert (found.covered[junk] == 0).all() and 0.5 < (found.covered != 0).mean() < 1
    assert found.warped.shape == scene.reference.shape + values.shape[2:]
    shown = found.warped[found.covered != 0]
    assert np.isfinite(shown).all() and shown.max() < 200
    hidden = found.warped[y, x]
    assert (hidden == 0).all() if np.dtype(dtype).kind == "u" else np.isnan(hidden).all()


def test_images_without_data_are_called_so(scene):
    blank = np.zeros((240, 320), np.uint8)
    transparent = np.dstack([scene.moving, blank])
    for nothing, why in [
        (blank, "one value"),
        (transparent, "no data"),
        (np.full((240, 320), np.nan, np.float32), "no data"),
        (np.ma.masked_array(scene.moving, np.ones(blank.shape, bool)), "no data"),
    ]:
        with pytest.raises(tp.ModelError, match=f"The moving image shows nothing: .*{why}"):
            tp.register(scene.reference, nothing, device="cpu")
        with pytest.raises(tp.ModelError, match=f"The right image shows nothing: .*{why}"):
            tp.rectify(scene.reference, nothing, device="cpu")


def test_a_finer_image_is_registered_with_a_warning(scene):
    fine = tp.filter.resample(tp.filter.resample(scene.moving, "double"), "double")
    with pytest.warns(UserWarning, match=r"the moving image has 4\.\d times the resolution of the fixed one"):
        tp.register(scene.reference, fine, "affine", device="cpu")


def test_messages_name_arguments_and_no_flags(scene):
    unlike = [tp.synth.scene((200, 150), np.eye(3), seed=seed).reference for seed in (3, 4)]
    for options in ({"views": 1, "modality": "same"}, {"modality": "cross"}, {"views": 2, "model": "affine"}):
        with pytest.raises(tp.ModelError) as told:
            tp.register(*unlike, device="cpu", **options)
        assert "--" not in str(told.value), str(told.value)
    with pytest.raises(tp.ModelError, match=r"`model=\"affine\"` .*`register\(…, views=43\)`.*`tie_points\(…, \"fundamental\"\)`"):
        tp.register(*unlike, views=1, modality="same", device="cpu")
    with pytest.raises(tp.OptionError, match="Affine: expected homography, affine, similarity, rigid or translation$"):
        tp.register(scene.reference, scene.moving, "Affine")
    with pytest.raises(tp.OptionError, match="threshold is the text \"3\": expected a number"):
        tp.register(scene.reference, scene.moving, threshold="3")
    with pytest.raises(tp.ImageError, match="of a stack of 5 images give one at a time"):
        tp.Sift().detect(np.zeros((5, 48, 64), np.uint8))
    with pytest.raises(tp.ImageError, match="of a stack of images one"):
        tp.Sift().detect(np.zeros((48, 64, 5), np.uint8))
    with pytest.raises(tp.ImageError, match="Dataset of xarray: expected one of its arrays, which are 'red'"):
        tp.Sift().detect(types.SimpleNamespace(data_vars=["red"]))
    image = types.SimpleNamespace(GetNumberOfComponentsPerPixel=1)
    with pytest.raises(tp.ImageError, match="SimpleITK.GetArrayViewFromImage"):
        tp.Sift().detect(image)


def test_a_registration_is_its_model_and_says_how_it_was_found(scene):
    found = tp.register(scene.reference, scene.moving, device="cpu")
    assert np.array_equal(np.asarray(found), found.model.matrix)
    assert (found.tie_points.views, found.tie_points.modality) == (1, "same")
    assert np.allclose(found.model.apply((3, 4)), found.model.apply([(3, 4)])[0])
    assert found.model.apply([3, 4, 1]).shape == (2,)
    cross = tp.register(scene.reference, scene.moving, modality="cross", device="cpu")
    assert cross.tie_points.modality == "cross"
    views = tp.register(scene.reference, scene.moving, modality="same", views=4, device="cpu")
    assert views.tie_points.views == 4


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "LAB", "I;16", "I", "F", "LA"])
def test_images_of_pillow_in_every_mode(scene, mode):
    pillow = pytest.importorskip("PIL.Image")
    grey = pillow.fromarray(scene.reference)
    wanted = SIFT.detect(np.where(scene.reference > 127, np.uint8(255), np.uint8(0)) if mode == "1" else scene.reference)
    if mode == "1":
        image = grey.point(lambda v: 255 * (v > 127)).convert("1", dither=pillow.Dither.NONE)
    elif mode == "LAB":
        cms = pytest.importorskip("PIL.ImageCms")
        profiles = [cms.createProfile("sRGB"), cms.createProfile("LAB")]
        image = cms.profileToProfile(grey.convert("RGB"), *profiles, outputMode="LAB")
    elif mode == "I;16":
        image = pillow.fromarray(scene.reference.astype(np.uint16))
    else:
        image = grey.convert("RGB").convert(mode)
    found = SIFT.detect(image)
    # A palette of 216 colours has few greys, and floats and 16 bits are stretched to their own range.
    close = 0.02 if mode in ("L", "1", "RGB", "RGBA", "LA", "CMYK") else 0.3
    assert abs(len(found) - len(wanted)) < close * len(wanted)


def test_batches(scene):
    a, b = scene.reference, scene.moving
    wanted = [SIFT.detect(a), SIFT.detect(b)]
    colours = [np.stack([image] * 3, -1) for image in (a, b)]
    for batch in [np.stack([a, b]), np.stack([a, b])[:, None], np.stack(colours), np.stack(colours).transpose(0, 3, 1, 2)]:
        assert list(SIFT.detect_many(batch)) == wanted, batch.shape
    for finder in (SIFT, tp.Surf(device="cpu")):
        for one in (colours[0], np.dstack([colours[0], a])):
            with pytest.raises(tp.ImageError, match=r"the shape \(240, 320, [34]\), .* one image"):
                list(finder.detect_many(one))
    told = []
    assert list(SIFT.detect_many([a, b], progress=told.append)) == wanted
    assert [(s.task, s.done, s.total) for s in told] == [("SIFT", 1, 2), ("SIFT", 2, 2)]


def test_colours_become_grey(scene):
    grey = scene.reference
    colour = np.stack([grey] * 3, axis=-1)
    wanted = SIFT.detect(grey)
    assert SIFT.detect(colour) == wanted
    opaque = np.concatenate([colour, np.full((*grey.shape, 1), 255, np.uint8)], axis=-1)
    assert SIFT.detect(opaque) == wanted


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 5), complex), "complex128: expected numbers"),
        (np.array([[None]]), "object: expected numbers"),
        (None, "None: expected an array; cv2.imread"),
        (b"GIF", "bytes: .* tiepoint.io.decode"),
        (pathlib.Path("picture.png"), "a path, 'picture.png': .* tiepoint.read"),
        (np.ma.masked_equal(np.zeros((4, 5, 6)), 0), "channels come last"),
        (np.zeros(5, np.uint8), r"shape \[5\]"),
        (np.zeros((3, 40, 50), np.uint8), r"channels come last here, .* \(40, 50, 3\)"),
        (np.zeros((4, 5, 6), np.uint8), r"shape \[4, 5, 6\]: channels come last here"),
        (np.zeros((2, 4, 5, 3), np.uint8), "a batch goes to detect_many"),
        (np.zeros((0, 5), np.uint8), "empty"),
        (OnCard(), "lies in the memory of cuda:0, and this computes on cpu"),
        ("picture.png", "a path, 'picture.png': .* tiepoint.read"),
    ],
    ids=repr,
)
def test_objects_that_are_no_image_are_errors(image, message):
    with pytest.raises(tp.ImageError, match=message):
        SIFT.detect(image)


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 1), (7, 5)])
def test_small_images(size):
    for dtype in (np.uint8, np.uint16, np.float32):
        image = np.arange(size[0] * size[1]).reshape(size).astype(dtype)
        assert len(SIFT.detect(image)) < 10
        assert tp.warp(image, np.eye(3)).tolist() == image.tolist()


def test_results_own_their_memory():
    image = tp.synth.texture((50, 40), dtype="float32")
    assert image.shape == (40, 50) and image.dtype == np.float32
    out = tp.filter.gauss(image, 1.0)
    assert out.flags.c_contiguous and not np.shares_memory(out, image)


def test_arrays_that_are_lent_by_dlpack_alone_are_taken_everywhere(features):
    found = features[0]
    floats = Capsule(found.unit().astype(np.float64))
    stored = {"keypoints": Capsule(found.xy.copy()), "descriptors": Capsule(found.unit().T.copy()), "name": np.array("a.jpg")}
    assert np.array_equal(tp.interop.from_hloc(stored).xy, found.xy)
    keypoints = tp.interop.to_opencv(found)[0]
    assert tp.interop.from_opencv(keypoints, floats, [320, 240]).image_size == (320, 240)
    lafs = tp.interop.to_lafs(found)
    assert np.array_equal(tp.interop.from_lafs(lafs, floats).descriptors, found.unit())
    kernel = np.ones((3, 3), np.float32)
    image = tp.synth.texture((60, 50))
    for normalise in (False, True):
        wanted = tp.filter.convolve(image, kernel, normalise=normalise)
        assert np.array_equal(tp.filter.convolve(image, Capsule(kernel), normalise=normalise), wanted)
    assert np.array_equal(tp.raster.read((Capsule(image.copy()),)).values, image)
    assert np.array_equal(tp.raster.read(Capsule(image.copy())).values, image)


def test_arrays_of_results_are_read_only(features, scene, pair):
    a, b = features
    tie = tp.tie_points(a, b)
    registered = tp.register(scene.reference, scene.moving)
    found = tp.Stereo(disparities=16, device="cpu").compute(pair.left, pair.right)
    matches = tp.match(a, b)
    arrays = [a.xy, a.descriptors, matches.pairs, matches.distance, tie.pairs, tie.inliers, tie.model.matrix]
    arrays += [registered.warped, registered.covered, found.disparity, tie[:5].ratio]
    arrays += [tp.estimate(tie.xy_a, tie.xy_b).inliers]
    for i, array in enumerate(arrays):
        assert not array.flags.writeable, i
    for copied in (copy.deepcopy, copy.copy, lambda result: pickle.loads(pickle.dumps(result))):
        again = copied(registered)
        assert again == registered and copied(found) == found and copied(matches) == matches
        of_tie = again.tie_points
        arrays = [again.warped, again.covered, of_tie.pairs, of_tie.a.xy, of_tie.model.matrix, copied(found).disparity]
        assert not any(array.flags.writeable for array in [*arrays, copied(tie.model).matrix, copied(matches).pairs])
    assert not np.shares_memory(registered.fixed, scene.reference)
    for own in (tp.filter.gauss(scene.reference), tp.warp(scene.reference, np.eye(3)), tp.synth.texture((20, 20))):
        own[0, 0] = 1


@pytest.mark.parametrize("made", [np.asarray, memoryview, Capsule, np.ndarray.tolist])
def test_a_registration_keeps_the_images_that_were_given(scene, made):
    buffers = [scene.reference.copy(), scene.moving.copy()]
    given = [made(buffer) for buffer in buffers]
    found = tp.register(*given, device="cpu")
    for buffer, image in zip(buffers, given, strict=True):
        buffer[:] = 0
        if isinstance(image, list):
            image[0][:] = [0] * len(image[0])
    assert np.array_equal(found.fixed, scene.reference) and np.array_equal(found.moving, scene.moving)


def test_an_image_that_another_thread_writes_does_no_harm():
    import threading

    image = tp.synth.texture((600, 400))
    done = threading.Event()

    def write():
        rng = np.random.default_rng(0)
        while not done.is_set():
            image[:] = rng.integers(0, 256, image.shape, np.uint8)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            SIFT.detect(image)
            tp.Stereo(disparities=16, device="cpu").compute(image, image)
    finally:
        done.set()
        writer.join()


class Refusing:
    """An object that does not give access to its memory, like a tensor that requires a gradient."""

    dtype = "bfloat16"
    requires_grad = True
    shape = (40, 50)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        raise BufferError("Can't export: use detach()")


def test_what_lends_no_memory_is_an_error_of_this_package():
    for call in (tp.Sift(device="cpu").detect, lambda given: tp.warp(given, np.eye(3)), lambda given: tp.estimate(given, given)):
        with pytest.raises(tp.ImageError, match=r"of bfloat16, cannot be read: Can't export: use detach.*; \.detach\(\)\.float"):
            call(Refusing())


@pytest.mark.parametrize("error", [ValueError, RuntimeError, BufferError])
def test_an_object_that_cannot_be_read_says_why(error):
    class Tiles:
        def __array__(self, dtype=None, copy=None):
            raise error("tile 7 has a wrong checksum")

    with pytest.raises(tp.ImageError, match="the image, of the type Tiles, cannot be read: tile 7 has a wrong checksum$"):
        SIFT.detect(Tiles())
    for unlike in ([[1, 2], [3]], ([1, 2], [3])):
        with pytest.raises(tp.ImageError, match="of unlike parts: expected one array"):
            SIFT.detect(unlike)


def test_a_closed_file_of_pillow_says_so(tmp_path, scene):
    image = pytest.importorskip("PIL.Image")
    tp.write(tmp_path / "a.png", scene.reference)
    for mode in ("L", "1"):
        image.open(tmp_path / "a.png").convert(mode).save(tmp_path / f"{mode}.png")
        closed = image.open(tmp_path / f"{mode}.png")
        closed.close()
        with pytest.raises(tp.ImageError, match="closed"):
            SIFT.detect(closed)


@pytest.mark.parametrize("scale", [1e38, 1e40, 1e300, 1e-44, 1e-46])
def test_floats_that_32_bits_cannot_hold_are_refused_with_their_magnitude(scene, tmp_path, scale):
    wide = scene.reference * scale
    greatest = re.escape(f"{wide.max():.3g}")
    for refused in (
        lambda: SIFT.detect(wide),
        lambda: list(SIFT.detect_many([wide, -wide])),
        lambda: tp.register(wide, wide, device="cpu"),
        lambda: tp.warp(wide, np.eye(3)),
        lambda: tp.write(tmp_path / "wide.npy", wide),
        lambda: tp.raster.register(tp.raster.Raster(wide), tp.raster.Raster(wide), device="cpu"),
    ):
        with pytest.raises(tp.ImageError, match=f"up to a magnitude of {greatest}, and .*dividing it by 1e"):
            refused()
    assert not list(tmp_path.iterdir())
    # One value marks pixels without data, and so does a mask.
    marked = scene.reference.astype(np.float64)
    marked[:40] = -1.7e308
    holed = np.ma.masked_array(marked.copy(), marked < 0)
    holed.data[:20] = 1e300
    assert SIFT.detect(marked) == SIFT.detect(holed) and len(SIFT.detect(marked)) > 100
    tp.write(tmp_path / "range.npy", wide, range=(0, 255 * scale))
    assert np.abs(tp.read(tmp_path / "range.npy") - scene.reference / np.float32(255)).max() < 1e-6


def test_whole_numbers_that_are_rounded_are_warned_of(tmp_path):
    labels = np.array([[2**24 + 1, 0], [1, 2]])
    for warned in (
        lambda given: tp.write(tmp_path / "labels.npy", given),
        lambda given: tp.warp(given, np.eye(3)),
        lambda given: tp.warp(given.tolist(), np.eye(3)),
    ):
        with pytest.warns(UserWarning, match="float32, which rounds .* go to 16777217") as told:
            warned(labels)
        assert [each.filename for each in told] == [__file__], "it names the caller's line"
        # Warnings are errors in these tests.
        warned(labels - 1)
        warned(2 * labels - 2)
    with pytest.warns(UserWarning, match="go to 16777219"):
        tp.warp(-labels - 2, np.eye(3))
    tp.write(tmp_path / "labels.npy", labels, range=(0, 2**24 + 1))
