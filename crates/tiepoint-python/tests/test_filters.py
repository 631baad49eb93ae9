"""Filters: integral images and resampling by definition, and options as in the command."""

import numpy as np
import pytest
import tiepoint as tp
from test_command import run  # noqa: F401


def test_integrals_are_sums():
    for dtype in (np.uint8, np.uint16):
        image = np.random.default_rng(1).integers(0, np.iinfo(dtype).max, (70, 53), dtype)
        sums = tp.filter.integral(image, device="cpu")
        wanted = np.zeros((71, 54), np.uint64)
        wanted[1:, 1:] = image.astype(np.uint64).cumsum(0).cumsum(1)
        assert sums.dtype == np.uint64 and np.array_equal(sums, wanted)
    for wrong in (np.zeros((4, 4), np.float32), np.zeros((4, 4, 3), np.uint8)):
        with pytest.raises(tp.ImageError):
            tp.filter.integral(wrong)


def test_sizes_are_doubled_and_halved():
    for dtype in (np.uint8, np.uint16, np.float32):
        image = np.random.default_rng(2).integers(0, 200, (40, 30)).astype(dtype)
        double = tp.filter.resample(image, "double", device="cpu")
        assert double.shape == (80, 60) and double.dtype == dtype and np.array_equal(double[::2, ::2], image)
        assert np.array_equal(tp.filter.resample(double, "halve"), image)
        mean = image.reshape(20, 2, 15, 2).astype(float).mean((1, 3))
        assert np.abs(tp.filter.resample(image, "mean") - mean).max() <= (0.5 if dtype != np.float32 else 1e-4)
    with pytest.raises(tp.OptionError, match="option how is twice: expected double, halve, mean"):
        tp.filter.resample(image, "twice")


def test_taps_and_kernels_of_the_command(tmp_path, run):  # noqa: F811
    image = tp.synth.texture((90, 70), seed=4)
    tp.write(tmp_path / "a.png", image)
    run("filter", "gauss", tmp_path / "a.png", tmp_path / "g.png", "--size", 9, "--power-of-two")
    assert np.array_equal(tp.filter.gauss(image, size=9, power_of_two=True), tp.read(tmp_path / "g.png"))
    run("filter", "convolve", tmp_path / "a.png", tmp_path / "k.png", "--kernel", "1,2,1;2,5,2;1,2,1", "--normalise")
    weights = [[1, 2, 1], [2, 5, 2], [1, 2, 1]]
    assert np.array_equal(tp.filter.convolve(image, weights, normalise=True), tp.read(tmp_path / "k.png"))
    for wrong in (lambda: tp.filter.gauss(image, 1.0, size=9, power_of_two=True), lambda: tp.filter.gauss(image, power_of_two=True)):
        with pytest.raises(tp.OptionError, match="power_of_two"):
            wrong()
    with pytest.raises(tp.OptionError, match="sum is not 0"):
        tp.filter.convolve(image, [[1, -1]], normalise=True)


def test_the_axis_of_one_channel_stays(scene):
    image = scene.reference[..., None]
    calls = [
        lambda image: tp.filter.gauss(image, 2.0),
        tp.filter.sobel,
        lambda image: tp.filter.convolve(image, [[1, 2, 1]]),
        lambda image: tp.filter.resample(image, "halve"),
        lambda image: tp.warp(image, np.eye(3)),
        lambda image: tp.register(scene.moving, image, device="cpu").warped,
    ]
    for call in calls:
        assert np.array_equal(call(image), call(scene.reference)[..., None])
