"""Detectors and features."""

import copy
import dataclasses
import pickle
import sys
import sysconfig
import threading
import typing

import numpy as np
import pytest
import tiepoint as tp

COLUMNS = {
    "xy": ("float32", 2),
    "scale": ("float32", None),
    "angle": ("float32", None),
    "response": ("float32", None),
    "sign": ("int8", None),
    "octave": ("int8", None),
    "layer": ("uint8", None),
}


@pytest.mark.parametrize(
    ("detector", "width", "dtype"),
    [
        (tp.Sift(device="cpu"), 128, "uint8"),
        (tp.Sift(device="cpu", descriptors="float", root=True), 128, "float32"),
        (tp.Sift(device="cpu", descriptors="none"), 0, "uint8"),
        (tp.Surf(device="cpu"), 64, "float32"),
        (tp.Surf(device="cpu", extended=True), 128, "float32"),
    ],
    ids=repr,
)
def test_columns_have_their_shape_and_type_and_cannot_be_written(scene, detector, width, dtype):
    found = detector.detect(scene.reference)
    n = len(found)
    assert n > 100
    for name, (kind, columns) in COLUMNS.items():
        array = getattr(found, name)
        assert array.shape == ((n,) if columns is None else (n, columns)), name
        assert array.dtype == kind and not array.flags.writeable, name
        assert getattr(found, name) is array, "made anew for each access"
    assert found.descriptors.shape == (n, width) and found.descriptors.dtype == dtype
    assert not found.descriptors.flags.writeable
    assert found.image_size == (320, 240)
    assert (found.xy >= -0.5).all() and (found.xy < [319.5, 239.5]).all()
    if width and dtype == "float32":
        assert np.abs(np.linalg.norm(found.descriptors, axis=1) - 1).max() < 1e-3


def test_descriptors_are_not_copied_and_outlive_their_features(scene):
    found = tp.Sift(device="cpu").detect(scene.reference)
    first, again = found.descriptors, found.descriptors
    assert np.shares_memory(first, again)
    kept = first.copy()
    del found, again
    assert np.array_equal(first, kept)


def test_angles_and_scales_follow_the_scene(scene, truth, features):
    a, b = features
    tie = tp.tie_points(a, b)
    i, j = tie.pairs[tie.inliers].T
    turn = np.remainder(b.angle[j] - a.angle[i] - np.radians(12) + np.pi, 2 * np.pi) - np.pi
    assert abs(np.median(turn)) < 0.05
    assert abs(np.median(b.scale[j] / a.scale[i]) - 1.1) < 0.05


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("kind", [tp.Sift, tp.Surf])
def test_any_number_of_threads_gives_the_same(scene, kind, threads):
    wanted = kind(device=tp.Device("cpu", threads=1)).detect(scene.moving)
    assert kind(device=tp.Device("cpu", threads=threads)).detect(scene.moving) == wanted


def test_a_mask_leaves_features_out(scene):
    sift = tp.Sift(device="cpu")
    mask = np.zeros((240, 320), bool)
    mask[:, 160:] = True
    whole, half = sift.detect(scene.reference), sift.detect(scene.reference, mask)
    assert 0 < len(half) < len(whole)
    assert (half.xy[:, 0] >= 159.5).all()
    assert sift.detect(scene.reference, mask.astype(np.uint8)) == half
    with pytest.raises(tp.MismatchError, match="mask"):
        sift.detect(scene.reference, mask[:, 1:])


def test_limits_keep_the_largest_or_the_strongest(scene):
    whole = tp.Sift(device="cpu").detect(scene.reference)
    largest = tp.Sift(device="cpu", max_features=50).detect(scene.reference)
    strongest = tp.Sift(device="cpu", max_features=50, keep="response").detect(scene.reference)
    assert np.array_equal(np.sort(largest.scale), np.sort(whole.scale)[-50:])
    assert np.array_equal(np.sort(strongest.response), np.sort(whole.response)[-50:])


def test_many_are_found_as_each_alone_and_lazily(scene):
    sift = tp.Sift(device="cpu")
    images = [scene.reference, scene.moving, scene.reference[:100], scene.moving.astype(np.float32) / 255] * 5
    taken = []

    def lazily():
        for i, image in enumerate(images):
            taken.append(i)
            yield image

    found = sift.detect_many(lazily())
    assert not taken
    first = next(found)
    assert len(taken) == 1
    rest = [first, *found]
    assert rest == [sift.detect(image) for image in images]


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_many_may_share_their_memory_and_are_not_lost_when_their_source_fails(scene, device):
    sift = tp.Sift(device=device)
    shared = np.empty_like(scene.reference)

    def frames():
        for image in (scene.reference, scene.moving, scene.reference):
            shared[:] = image
            yield shared
        raise OSError("the camera is gone")

    found = []
    with pytest.raises(OSError, match="camera"):
        for features in sift.detect_many(frames()):
            found.append(features)
    reference, moving = sift.detect(scene.reference), sift.detect(scene.moving)
    assert found == [reference, moving, reference]
    found = []
    with pytest.raises(tp.ImageError):
        for features in sift.detect_many([scene.reference, scene.moving, scene.moving[:0]]):
            found.append(features)
    assert found == [reference, moving], "those before an image that is none"


@pytest.mark.parametrize(
    "index",
    [3, -1, slice(2, 9, 3), [5, 1, 1], np.array([0, 4]), slice(0, 0)],
    ids=repr,
)
def test_indexing_is_that_of_columns(features, index):
    found = features[0]
    some = found[index]
    for name in [*COLUMNS, "descriptors"]:
        column = getattr(found, name)[index]
        assert np.array_equal(getattr(some, name), column if isinstance(index, (slice, list, np.ndarray)) else column[None])
    assert some.image_size == found.image_size


def test_indexing_by_a_mask_and_out_of_range(features):
    found = features[0]
    strong = found[found.response > np.median(found.response)]
    assert 0 < len(strong) < len(found)
    with pytest.raises(IndexError):
        found[len(found)]


def test_features_of_other_programs(features):
    found = features[0]
    made = tp.Features.from_arrays(**{name: getattr(found, name) for name in [*COLUMNS, "descriptors", "image_size"]})
    assert made == found
    plain = tp.Features.from_arrays(xy=[[1, 2], [3, 4]])
    assert plain.descriptors.shape == (2, 0) and np.array_equal(plain.scale, [1, 1]) and plain.sign.tolist() == [0, 0]
    unsigned = tp.Features.from_arrays(xy=found.xy, descriptors=found.descriptors)
    assert tp.match(unsigned, features[1]) == tp.match(found, features[1], same_sign=False), "a sign is not known"
    with pytest.raises(tp.ImageError, match=r"xy has the shape \[2\]: expected \(N, 2\)"):
        tp.Features.from_arrays(xy=[1, 2])
    with pytest.raises(tp.ImageError, match="scale"):
        tp.Features.from_arrays(xy=[[1, 2]], scale=[1, 2])
    with pytest.raises(tp.ImageError, match="1 places, but 2 descriptors"):
        tp.Features.from_arrays(xy=[[1, 2]], descriptors=np.zeros((2, 128), np.uint8))
    with pytest.raises(tp.ImageError, match="uint8"):
        tp.Features.from_arrays(xy=[[1, 2]], descriptors=np.zeros((1, 128), np.int32))
    for name, value in [("octave", 200), ("layer", -1), ("sign", 0.5)]:
        with pytest.raises(tp.ImageError, match=f"{name} holds numbers that are no u?int8"):
            tp.Features.from_arrays(xy=[[1, 2]], **{name: np.array([value])})


def test_arrays_of_other_programs_are_checked():
    class Lent:
        """An array that is lent by DLPack alone."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **given):
            return self.array.__dlpack__(**given)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    xy = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    plain = tp.Features.from_arrays(xy=xy, descriptors=np.eye(2, dtype=np.float32), image_size=(9, 8))
    for size in ([9, 8], np.array([9, 8]), (9.0, 8.0)):
        lent = tp.Features.from_arrays(xy=Lent(xy), descriptors=Lent(np.eye(2, dtype=np.float32)), image_size=size)
        assert lent == plain and lent.image_size == (9, 8)
    for wrong, told in [
        ({"xy": xy * np.nan}, "feature 0 holds a number that is infinite or not a number"),
        ({"xy": xy, "scale": [1, np.inf]}, "feature 1 holds a number that is infinite"),
        ({"xy": np.ma.array(xy, mask=xy > 2)}, "xy is a masked array with masked values"),
        ({"xy": xy, "descriptors": np.ma.array(xy, mask=xy > 2)}, "descriptors is a masked array"),
        ({"xy": xy.astype(str)}, "xy holds <U32: expected numbers"),
        ({"xy": xy, "descriptors": xy.astype(str)}, "descriptors holds <U32: expected numbers"),
    ]:
        with pytest.raises(tp.ImageError, match=told):
            tp.Features.from_arrays(**wrong)


@pytest.mark.parametrize("dtype", [">f4", "f8", "f2"])
def test_descriptors_of_any_floats_are_taken(dtype):
    values = np.random.default_rng(1).integers(0, 9, (4, 8)) / 16
    found = tp.Features.from_arrays(xy=np.zeros((4, 2)), descriptors=values.astype(dtype), image_size=(9, 9)).descriptors
    assert found.dtype == np.float32 and np.array_equal(found, values.astype(np.float32))
    with pytest.raises(tp.ImageError, match="descriptors hold int64: expected uint8 .* or floats"):
        tp.Features.from_arrays(xy=np.zeros((4, 2)), descriptors=np.zeros((4, 8), int), image_size=(9, 9))


def test_options_and_results_can_be_pickled_and_copied(features):
    found = features[0]
    detectors = [
        tp.Sift(max_features=7, root=True, device=tp.Device("cpu", threads=2, memory="1MiB")),
        tp.Surf(preset="opencv"),
    ]
    for thing in [found, found[:0], tp.Features.from_arrays(xy=[[1, 2]]), *detectors]:
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(thing, protocol)) == thing
        assert copy.deepcopy(thing) == thing


def test_options_do_not_change_and_are_replaced():
    sift = tp.Sift(contrast=0.02)
    with pytest.raises(AttributeError):
        sift.contrast = 1  # type: ignore[misc]
    other = sift.replace(levels=4)
    assert (other.contrast, other.levels, sift.levels) == (0.02, 4, 3)
    assert tp.Sift(upright=np.True_).options == tp.Sift(upright=True).options, "NumPy's truth values"
    ranges = [tp.Sift(range=given) for given in ((0, 255), [0, 255], np.array([0, 255]))]
    assert len(set(ranges)) == 1 and {each.range for each in ranges} == {(0, 255)}


@pytest.mark.parametrize("options", [tp.Sift, tp.Surf, tp.Stereo, tp.Rematch, tp.CollectionOptions])
def test_types_of_options_are_known_at_run_time(options):
    """Programs that make command lines or forms of classes ask for them."""
    assert set(typing.get_type_hints(options)) >= {field.name for field in dataclasses.fields(options)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": 33}, "option levels is 33: expected 1 to 32"),
        ({"levels": -1}, "option levels is -1"),
        ({"levels": "three"}, "option levels is three"),
        ({"preset": "surf"}, "option preset is surf: expected default, opencv, vlfeat"),
        ({"keep": "best"}, "option keep is best: expected scale, response, levels"),
        ({"device": "gpu"}, "option device is gpu: expected auto, cpu, cuda"),
        ({"device": 3}, "option device is 3"),
        ({"range": (2.0, 1.0)}, r"option range is \(2.0, 1.0\): expected two finite values, black and white, the lesser first"),
        ({"max_features": -1}, "option max_features is -1"),
    ],
)
def test_wrong_options_are_errors_at_once(options, message):
    with pytest.raises(tp.OptionError, match=message):
        tp.Sift(**options)
    with pytest.raises(TypeError):
        tp.Sift(level=3)  # type: ignore[call-arg]


def test_synonyms_of_other_programs():
    assert tp.Sift(preset="lowe").options == tp.Sift().options


def test_surf_takes_what_is_not_given_from_its_preset():
    assert tp.Surf(preset="opencv").options["threshold"] == 100
    assert tp.Surf(preset="opencv", threshold=300).options["threshold"] == 300
    assert tp.Surf(preset="opensurf").options["step"] == 2


def test_one_object_serves_many_threads(scene):
    sift = tp.Sift(device=tp.Device("cpu", threads=2))
    wanted = [sift.detect(scene.reference), sift.detect(scene.moving)]
    found = [None] * 8

    def work(i):
        for _ in range(3):
            found[i] = sift.detect([scene.reference, scene.moving][i % 2])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted * 4
    # A free-threaded interpreter turns its lock on again if a module does not declare that it needs none.
    assert not sysconfig.get_config_var("Py_GIL_DISABLED") or not sys._is_gil_enabled()


def test_repr_says_what_it_is(features):
    assert repr(features[0]) == f"Features({len(features[0])} of 320x240, descriptors: 128 uint8)"


def test_where_an_image_is_masked_nothing_is_described(scene):
    sift = tp.Sift(device="cpu")
    hidden = np.indices(scene.reference.shape)[1] >= 160
    found = sift.detect(scene.reference)
    again, rows = sift.describe(np.ma.masked_array(scene.reference, hidden), found)
    inside = found.xy[:, 0].round() < 160
    assert 0 < inside.sum() < len(found) and np.array_equal(rows, np.flatnonzero(inside))
    far = found.xy[rows, 0] + 12 * found.scale[rows] < 160
    assert 0 < far.sum() < len(rows) and again[far] == found[rows[far]], "where nothing hidden is near"
    other = np.ma.masked_array(np.where(hidden, 255 - scene.reference, scene.reference), hidden)
    assert sift.describe(other, found)[0] == again, "hidden values have no influence"


def test_results_of_unlike_parts_are_unequal_and_leave_the_callers_arrays_writable():
    plain = tp.raster.Raster(np.ones((3, 4)))
    assert plain != tp.raster.Raster(np.ones((3, 4)), mask=np.zeros((3, 4))) and plain == tp.raster.Raster(np.ones((3, 4)))
    pairs, ones = np.zeros((2, 2), np.int64), np.ones(2, np.float32)
    matches = tp.Matches(pairs, ones, ones)
    pairs += 1
    with pytest.raises(ValueError, match="read-only"):
        matches.pairs[0] = 5


def test_given_features_are_described(scene, features):
    found = features[0]
    sift = tp.Sift(device="cpu")
    again, rows = sift.describe(scene.reference, found[[5, 2, 9]])
    assert again == found[[5, 2, 9]] and rows.tolist() == [0, 1, 2]
    own = tp.Features.from_arrays(xy=[[-3, 5], [60, 50]], scale=[2, 2], angle=[0, 1])
    again, rows = sift.replace(descriptors="float").describe(scene.reference, own)
    assert rows.tolist() == [1] and again.descriptors.shape == (1, 128) and again.descriptors.dtype == np.float32
    with pytest.raises(tp.OptionError, match="option range"):
        tp.Sift(range=[1, 2, 3])
    assert tp.Sift(range=[0, 255], device="cpu").detect(scene.reference) == found
