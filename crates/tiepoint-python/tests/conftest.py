"""Fixtures: scenes with exact truth, the card, and packages with arrays on it."""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tiepoint as tp
from card import REQUIRED, Cupy, Jax, Torch


@pytest.fixture(autouse=True)
def random_numbers_of_opencv():
    """Seeds OpenCV's random numbers anew for each test. Its LSH draws from one generator of the thread; in a fifth of its
    states (30 of 150) it finds too few neighbours for `plane_tracker.py`, so a test could fail by what ran before."""
    opencv = importlib.import_module("cv2") if importlib.util.find_spec("cv2") else None
    if opencv is not None:
        opencv.setRNGSeed(1)


@pytest.fixture(scope="session")
def truth():
    """A rotation by 12°, a zoom and a shift about the centre of 320 × 240 pixels, from reference to moving."""
    c, s = 1.1 * np.cos(np.radians(12)), 1.1 * np.sin(np.radians(12))
    cx, cy = 159.5, 119.5
    return np.array([[c, -s, cx - c * cx + s * cy + 4], [s, c, cy - s * cx - c * cy - 3], [1e-4, -5e-5, 1]])


@pytest.fixture(scope="session")
def scene(truth):
    return tp.synth.scene((320, 240), truth, seed=3)


@pytest.fixture(scope="session")
def pair():
    return tp.synth.stereo((240, 160), disparities=(2, 30), seed=5)


@pytest.fixture(scope="session")
def features(scene):
    sift = tp.Sift(device="cpu")
    return sift.detect(scene.reference), sift.detect(scene.moving)


@pytest.fixture(scope="module")
def opencv():
    """OpenCV, which `cargo xtask python` installs for the tests."""
    if os.environ.get("TIEPOINT_REQUIRE_COMMAND"):
        import cv2

        return cv2
    return pytest.importorskip("cv2")


@pytest.fixture(scope="module")
def command():
    """Runs the command of these words on the CPU."""
    named = os.environ.get("TIEPOINT") or shutil.which("tiepoint")
    if named is None:
        if os.environ.get("TIEPOINT_REQUIRE_COMMAND"):
            raise AssertionError("TIEPOINT names no command")
        pytest.skip("no command: TIEPOINT names it")

    def run(*words, **how):
        return subprocess.run([named, *map(str, words), "--device", "cpu"], capture_output=True, **how)

    return run


@pytest.fixture
def alone(monkeypatch):
    """Makes OpenCV seem not installed."""
    monkeypatch.setitem(sys.modules, "cv2", None)


@pytest.fixture(scope="module")
def colour(scene):
    """A colour image whose channels differ."""
    grey = scene.reference.astype(np.float32)
    return np.stack([grey, np.roll(grey, 40, 1), 255 - np.roll(grey, 90, 0)], -1).astype(np.uint8)


@pytest.fixture(scope="module", params=[Torch, Cupy, Jax], ids=lambda library: library.__name__)
def library(request):
    try:
        return request.param()
    except ImportError:
        if REQUIRED:
            raise
        pytest.skip(f"{request.param.__name__} is not installed")


@pytest.fixture(scope="module")
def torch():
    if not REQUIRED:
        pytest.importorskip("torch")
    return importlib.import_module("torch")


@pytest.fixture(scope="module")
def cupy():
    if not REQUIRED:
        pytest.importorskip("cupy")
    return importlib.import_module("cupy")


@pytest.fixture(scope="module")
def card():
    return tp.Device("cuda:0")
