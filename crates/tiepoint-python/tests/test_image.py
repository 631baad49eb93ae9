"""What is an image, and what is not."""

import numpy as np
import pytest
import tiepoint as tp

SIFT = tp.Sift(device=tp.Device("cpu", threads=1))


class Interface:
    """An object that is an array by `__array_interface__` alone."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class Capsule:
    """An object that is an array by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnCard:
    """What claims to lie in a GPU's memory."""

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


def test_every_type_of_pixel_is_told_apart(scene):
    sixteen = scene.reference.astype(np.uint16) * 257
    unaligned = np.frombuffer(b"x" + sixteen.tobytes(), np.uint8, offset=1).view(np.uint16).reshape(sixteen.shape)
    exact = tp.Sift(device="cpu", range=(0, 65535))
    assert exact.detect(unaligned) == exact.detect(sixteen)
    floats = tp.Sift(device="cpu", range=(0, 1)).detect(scene.reference.astype(np.float32) / 255)
    eight = SIFT.detect(scene.reference)
    assert abs(len(floats) - len(eight)) < 0.02 * len(eight)


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
        (np.zeros((4, 5)), "float64: expected uint8, uint16 or float32"),
        (np.zeros((4, 5), np.int32), "int32"),
        (np.zeros((4, 5), ">u2"), "byte order"),
        (np.zeros(5, np.uint8), r"shape \[5\]"),
        (np.zeros((3, 40, 50), np.uint8), r"channels come last here, .* \(40, 50, 3\)"),
        (np.zeros((4, 5, 6), np.uint8), r"shape \[4, 5, 6\]"),
        (np.zeros((2, 4, 5, 3), np.uint8), "expected"),
        (np.zeros((0, 5), np.uint8), "empty"),
        (OnCard(), "lies in the memory of cuda:0, and this computes on cpu"),
        ([[1, 2], [3, 4]], "int64"),
        ("picture.png", "expected uint8"),
    ],
    ids=repr,
)
def test_what_is_no_image_is_an_error_that_says_so(image, message):
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


def test_an_image_that_is_written_meanwhile_does_no_harm():
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
