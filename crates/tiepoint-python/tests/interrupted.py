"""A long call, ended by Ctrl-C at random moments: what test_interrupts.py runs in a process of its own.

    python interrupted.py CALL DEVICE TRIALS SEED

prints one JSON object: seconds from signal to exception of every trial, and how many calls had ended before.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import tiepoint as tp


def bytes_of(found):
    """What is equal where the results are, byte for byte."""
    if isinstance(found, tp.Features):
        return [found.xy.tobytes(), found.descriptors.tobytes()]
    if isinstance(found, tp.Matches):
        return [found.pairs.tobytes()]
    if isinstance(found, (tuple, list)):
        return [part for one in found for part in bytes_of(one)]
    if isinstance(found, bytes):
        return [found]
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
    return lambda: list(sift.detect_many([scene.reference, scene.moving] * 8))


def surf(device):
    image, surf = noise((1600, 1200)), tp.Surf(device=device)
    return lambda: surf.detect(image)


def match(device):
    random_ = np.random.default_rng(1)
    sides = [
        tp.Features.from_arrays(
            xy=random_.random((8_000, 2)).astype(np.float32) * 1000,
            descriptors=random_.integers(0, 256, (8_000, 128), dtype=np.uint8),
        )
        for _ in range(2)
    ]
    return lambda: tp.match(*sides, device=device)


def estimate(device):
    random_ = np.random.default_rng(1)
    xy_a, xy_b = random_.random((2, 30_000, 2)) * 1000
    xy_b[:1500] = xy_a[:1500] + 5
    return lambda: tp.estimate(xy_a, xy_b, max_iterations=400_000, device=device).inliers


def register(device):
    scene = views((600, 450))
    return lambda: np.asarray(tp.register(scene.reference, scene.moving, views=2, device=device).warped)


def rectify(device):
    pair = tp.synth.stereo((600, 450), disparities=(0, 30))
    return lambda: np.asarray(tp.rectify(pair.left, pair.right, device=device).left)


def stereo(device):
    pair = tp.synth.stereo((700, 500), disparities=(0, 60))
    stereo = tp.Stereo(disparities=96, device=device)
    return lambda: np.asarray(stereo.compute(pair.left, pair.right).disparity)


def learning(device):
    pair = tp.synth.stereo((600, 400), disparities=(0, 60))
    stereo = tp.Stereo(disparities=64, cost="mi", device=device)
    return lambda: np.asarray(stereo.compute(pair.left, pair.right).disparity)


def gauss(device):
    image = noise((4000, 3000))
    return lambda: np.asarray(tp.filter.gauss(image, 50.0, device=device))


def filters(device):
    image = noise((4000, 3000))
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
    image = noise((4000, 3000))
    turn = np.array([[0.9, -0.2, 300], [0.2, 0.9, -100], [0, 0, 1]])
    return lambda: np.asarray(tp.warp(image, turn, device=device))


def collect(device):
    folder = Path(tempfile.mkdtemp(prefix="tiepoint-interrupted-"))
    (folder / "photographs").mkdir()
    for i in range(4):
        tp.write(folder / f"photographs/{i}.png", views((320, 240), seed=i // 2).reference)
    options = tp.CollectionOptions(block=2)

    def run():
        """Interrupted work goes on where it was; after the end it begins anew."""
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
    """Half-written files of a call that was ended."""
    folder = getattr(call, "folder", None)
    return [] if folder is None else [str(path) for path in folder.rglob("*.part")]


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


CALLS = [detect, detect_many, surf, match, estimate, register, rectify, stereo, learning, gauss, filters, warp, collect]

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
