"""A long call, ended by Ctrl-C at random moments; test_interrupts.py runs this in a process of its own.

    python interrupted.py CALL DEVICE TRIALS SEED

prints one JSON object, with the seconds from signal to exception of every trial that was interrupted in time.
"""

import dataclasses
import hashlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import tiepoint as tp
from tiepoint import _core


def bytes_of(found):
    """The result as bytes, for comparison."""
    if isinstance(found, tp.Features):
        return [found.xy.tobytes(), found.descriptors.tobytes()]
    if isinstance(found, tp.Matches):
        return [found.pairs.tobytes()]
    if isinstance(found, (tuple, list)):
        return [part for one in found for part in bytes_of(one)]
    if isinstance(found, dict):
        return bytes_of(list(found.values()))
    if isinstance(found, (str, bytes)):
        return [found.encode() if isinstance(found, str) else found]
    return [np.ascontiguousarray(found).tobytes()]


def views(size, seed=3):
    """Two views of one scene."""
    c, s = 1.1 * np.cos(0.2), 1.1 * np.sin(0.2)
    cx, cy = size[0] / 2, size[1] / 2
    turn = np.array([[c, -s, cx - c * cx + s * cy + 4], [s, c, cy - s * cx - c * cy - 3], [0, 0, 1]])
    return tp.synth.scene(size, turn, seed=seed)


def noise(size):
    """A large image without content, which takes no time to make."""
    return np.random.default_rng(1).integers(0, 256, size[::-1], dtype=np.uint8)


def detect(device):
    image, sift = noise((1000, 750)), tp.Sift(device=device)
    return lambda: sift.detect(image)


def detect_many(device):
    scene, sift = views((500, 400)), tp.Sift(device=device)
    return lambda: list(sift.detect_many([scene.reference, scene.moving] * 3))


def surf(device):
    image, surf = noise((1600, 1200)), tp.Surf(device=device)
    return lambda: surf.detect(image)


def sides(count):
    """`count` features of each of two images, at random places on 1000 x 1000 pixels."""
    random_ = np.random.default_rng(1)
    return [
        tp.Features.from_arrays(
            xy=random_.random((count, 2)).astype(np.float32) * 1000,
            descriptors=random_.integers(0, 256, (count, 128), dtype=np.uint8),
            image_size=(1000, 1000),
        )
        for _ in range(2)
    ]


#: So many that a call takes long enough to be interrupted: a tenth of a second on a fast CPU.
MATCHED = {"cpu": 15_000}


def match(device):
    a, b = sides(MATCHED.get(device.name, 5_000))
    return lambda: tp.match(a, b, device=device)


def nearest(device):
    a, b = sides(MATCHED.get(device.name, 5_000))
    return lambda: tp.nearest(a, b, device=device)


def estimate(device):
    random_ = np.random.default_rng(1)
    xy_a, xy_b = random_.random((2, 30_000, 2)) * 1000
    xy_b[:1500] = xy_a[:1500] + 5
    return lambda: tp.estimate(xy_a, xy_b, max_iterations=100_000, device=device).inliers


def register(device):
    scene = views((400, 300))
    return lambda: np.asarray(tp.register(scene.reference, scene.moving, views=2, device=device).warped)


def rectify(device):
    pair = tp.synth.stereo((600, 450), disparities=(0, 30))
    return lambda: np.asarray(tp.rectify(pair.left, pair.right, device=device).left)


def stereo(device):
    pair = tp.synth.stereo((500, 360), disparities=(0, 60))
    stereo = tp.Stereo(disparities=96, device=device)
    return lambda: np.asarray(stereo.compute(pair.left, pair.right).disparity)


def learning(device):
    pair = tp.synth.stereo((600, 400), disparities=(0, 60))
    stereo = tp.Stereo(disparities=64, cost="mi", device=device)
    return lambda: np.asarray(stereo.compute(pair.left, pair.right).disparity)


def gauss(device):
    image = noise((2400, 1800))
    return lambda: np.asarray(tp.filter.gauss(image, 50.0, device=device))


def filters(device):
    image = noise((2400, 1800))
    kernel = np.ones((15, 15), np.float32)
    return lambda: [
        np.asarray(found)
        for found in (
            tp.filter.convolve(image, kernel, device=device),
            *tp.filter.sobel(image, device=device),
            tp.filter.hessian(image, device=device),
        )
    ]


def warp(device):
    image = noise((2400, 1800))
    turn = np.array([[0.9, -0.2, 300], [0.2, 0.9, -100], [0, 0, 1]])
    return lambda: np.asarray(tp.warp(image, turn, device=device))


def raster(device):
    scene = views((600, 450))
    reference = (scene.reference, (0.5, 0, 300_000, 0, -0.5, 5_000_000), "EPSG:32633")
    return lambda: tp.raster.register(reference, scene.moving, device=device).warped.values


def repeatability(_):
    a, b = sides(8_000)
    # The distance is so large that all pairs are compared.
    return lambda: dataclasses.astuple(tp.evaluate.repeatability(a, b, np.eye(3), distance=1000.0))


def score(_):
    random_ = np.random.default_rng(1)
    found, truth = random_.random((2, 4000, 6000), np.float32)
    return lambda: dataclasses.astuple(tp.evaluate.disparity(found, truth, thresholds=tuple(range(1, 17))))


def points(_):
    disparity, image = np.random.default_rng(1).random((2000, 3000), np.float32) + 1, noise((3000, 2000))
    known = tp.Calibration(focal=1000.0, principal=(1500.0, 1000.0), baseline=1.0)
    return lambda: _core.points(disparity, image, known._fields())


def decode(_):
    with tempfile.TemporaryDirectory() as folder:
        tp.write(f"{folder}/a.png", noise((8000, 6000)))
        data = Path(folder, "a.png").read_bytes()
    return lambda: tp.io.decode(data)


def write(_):
    folder = Path(tempfile.mkdtemp(prefix="tiepoint-interrupted-"))
    image = noise((4000, 3000))

    def run():
        tp.write(folder / "a.png", image)
        return (folder / "a.png").read_bytes()

    run.folder = folder
    return run


def report(_):
    image = noise((2400, 1800))
    found = tp.Disparities(image.astype(np.float32), None, None, None, None, (image, image))
    # The page says the minute in which it was made.
    return lambda: re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", tp.report(found))


def collect(device):
    folder = Path(tempfile.mkdtemp(prefix="tiepoint-interrupted-"))
    (folder / "photographs").mkdir()
    for i in range(4):
        tp.write(folder / f"photographs/{i}.png", views((320, 240), seed=i // 2).reference)
    options = tp.CollectionOptions(block=2)

    def run():
        """Continues interrupted work; removes it once finished, so that the next call begins from nothing."""
        tp.collect(folder / "photographs", folder / "out.db", work=folder / "work", options=options, device=device)
        files = sorted(path for path in (folder / "work").rglob("*") if path.is_file())
        assert not [path for path in files if path.suffix == ".part"], files
        found = [(folder / "out.db").read_bytes()]
        found += [path.read_bytes() for path in files if path.suffix in {".tile", ".features"}]
        shutil.rmtree(folder / "work")
        (folder / "out.db").unlink()
        return found

    run.folder = folder
    return run


def unfinished(call):
    """Unfinished files that an interrupted call left."""
    folder = getattr(call, "folder", None)
    if folder is None:
        return []
    # A call does not wait for a disk that is busy; what it has cancelled is removed a moment later.
    for _ in range(100):
        if not any(folder.rglob("*.part")):
            break
        time.sleep(0.02)
    return [str(path) for path in folder.rglob("*.part")]


def main(name, device, trials, seed):
    call = {each.__name__: each for each in CALLS}[name](tp.Device(device, threads=2))
    wanted = bytes_of(call())
    began = time.perf_counter()
    assert bytes_of(call()) == wanted, "the same call"
    long = time.perf_counter() - began
    random_, ended, late = random.Random(seed), [], 0
    for _ in range(trials):
        sent = []

        def interrupt(sent=sent):
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(random_.random() * long, interrupt)
        timer.start()
        try:
            call()
            late += 1
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt:
            ended.append(time.perf_counter() - sent[0])
        timer.join()
        assert not unfinished(call), unfinished(call)
        if len(ended) % 5 == 0:
            assert bytes_of(call()) == wanted, "the same call afterwards"
    assert bytes_of(call()) == wanted, "the same call at the end"
    if hasattr(call, "folder"):
        shutil.rmtree(call.folder)
    digest = hashlib.sha256(b"".join(wanted)).hexdigest()
    print(json.dumps({"call": name, "device": device, "seconds": long, "ended": ended, "late": late, "digest": digest}))


#: Calls that do not check for signals: Ctrl-C ends the call at once, and its thread runs on to its end.
ABANDONED = [repeatability, score, points, decode, report]
CALLS = [detect, detect_many, surf, match, nearest, estimate, register, raster, rectify, stereo, learning, gauss, filters]
CALLS += [warp, write, collect, *ABANDONED]

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
