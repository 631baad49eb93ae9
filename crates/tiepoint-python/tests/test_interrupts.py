"""Ctrl-C at random moments of every long call: KeyboardInterrupt comes promptly, and the same call then succeeds."""

import contextlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tiepoint as tp
from card import gpu_required
from interrupted import ABANDONED, CALLS

# 50 take minutes for each call.
TRIALS = os.environ.get("TIEPOINT_INTERRUPTS", "2")
# Calls without GPU code of their own, or slow on PoCL.
LEFT_ALONE = {call.__name__ for call in ABANDONED}
PROMPT = LEFT_ALONE | {"write"}
CPU_ALONE = {"estimate", "surf", "learning", "rectify", "detect_many", "raster", "write"} | LEFT_ALONE
OPENCL = [device.name for device in tp.devices() if device.resolved.startswith("opencl")][:1]


# LLVM within PoCL handles SIGINT first: it removes the file that clang is writing and passes the signal on. Clang then
# prints an error to standard error, which only LLVM could prevent.
BY_POCL = "1 error generated.\n"


def run(arguments, seconds=300):
    """What a process prints; its standard error must be empty, except for the line of PoCL's interrupted compiler."""
    told = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=seconds)
    assert told.returncode == 0 and told.stderr.replace(BY_POCL, "") == "", told
    return told.stdout


NAMES = [call.__name__ for call in CALLS]
CASES = [(name, "cpu") for name in NAMES] + [(name, "opencl") for name in NAMES if name not in CPU_ALONE]


#: A process that holds leases on files until its standard input ends.
HOLD = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
for path in sys.argv[1:]:
    fcntl.fcntl(os.open(path, os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"""


def opencl_is_there():
    """Whether there is an OpenCL device; fails without one where a GPU is required."""
    assert OPENCL or not gpu_required(), "there is no OpenCL device, and a GPU is required"
    return bool(OPENCL)


@pytest.mark.parametrize(
    ("variables", "required"),
    [
        ({}, False),
        ({"CI": "true"}, True),
        ({"CI": "true", "TIEPOINT_REQUIRE_GPU": "0"}, False),
        ({"TIEPOINT_REQUIRE_GPU": "1"}, True),
    ],
)
def test_no_device_is_a_failure_where_one_is_required(monkeypatch, variables, required):
    for name in ("CI", "TIEPOINT_REQUIRE_GPU"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(globals(), "OPENCL", [])
    with pytest.raises(AssertionError, match="is required") if required else contextlib.nullcontext():
        assert not opencl_is_there()


@pytest.mark.parametrize(("call", "device"), CASES)
def test_ctrl_c_ends_every_call(call, device):
    if device == "opencl" and not opencl_is_there():
        pytest.skip("no OpenCL device is there")
    told = json.loads(run([Path(__file__).parent / "interrupted.py", call, device, TRIALS, "1"]))
    assert len(told["ended"]) == int(TRIALS), told
    # 0.2 s between points at which a call checks for signals, 0.02 s for calls that end at once; the rest is for a busy
    # machine. Abandoned calls compute longer than this limit, so one that waited for its end would fail.
    assert max(told["ended"]) < (0.5 if call in PROMPT else 4 if device == "opencl" else 2), told


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("a.png", "tp.write(path, noise)"),
        ("a.tif", "tp.write(path, noise, compress='deflate')"),
        ("a.exr", "tp.write(path, noise.astype(np.float32))"),
        ("a.npz", "tp.io.write_features(path, features)"),
        ("a.csv", "tp.io.write_features(path, features)"),
        ("a.json", "tp.io.write_matches(path, matches, a=features, b=features)"),
        ("a.ply", "tp.io.write_points(path, disparities, known, ascii=True)"),
    ],
)
def test_ctrl_c_leaves_the_file_as_it_was(name, call, tmp_path):
    """The call ends while the file is written; what was there stays, also when all threads have come to their end."""
    told = run(["-c", textwrap.dedent(
        f"""
        import os, signal, threading, time
        from pathlib import Path
        import numpy as np
        import tiepoint as tp
        path = Path({str(tmp_path)!r}) / {name!r}
        path.write_text("before")
        random = np.random.default_rng(1)
        noise = random.integers(0, 256, (3500, 4000), dtype=np.uint8)
        features = tp.Features.from_arrays(
            xy=random.random((200_000, 2), np.float32), descriptors=random.integers(0, 256, (200_000, 128), dtype=np.uint8),
            image_size=(10, 10),
        )
        rows = np.repeat(np.arange(200_000)[:, None], 2, 1)
        matches = tp.Matches(np.tile(rows, (10, 1)), np.ones(2_000_000, np.float32), np.ones(2_000_000, np.float32))
        disparities = tp.Disparities(noise.astype(np.float32) + 1, None, None, None, None, (noise, noise))
        known = tp.Calibration(focal=1000.0, principal=(1500.0, 1000.0), baseline=1.0)
        sent = []
        def interrupt():
            while not list(path.parent.glob("*.part")):
                time.sleep(0.001)
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            {call}
        except KeyboardInterrupt:
            late = time.perf_counter() - sent[0]
        while list(path.parent.glob("*.part")):
            time.sleep(0.01)
        time.sleep(0.3)
        print(path.read_text(), late < 0.5, len(list(path.parent.iterdir())))
        """
    )], seconds=60)
    assert told == "before True 1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="files are leased on Linux alone")
@pytest.mark.parametrize(
    ("call", "leased"),
    [
        ("tp.read(folder / '0.png')", "0.png"),
        ("tp.io.read_features(folder / 'a.csv')", "a.csv"),
        ("tp.io.read_disparity(folder / 'a.pfm')", "a.pfm"),
        ("tp.io.read_points(folder / 'a.ply')", "a.ply"),
        ("tp.io.read_homography(folder / 'a.txt')", "a.txt"),
        ("tp.Calibration.read(folder / 'a.txt')", "a.txt"),
        ("tp.StereoCalibration.read(folder / 'a.xml')", "a.xml"),
        ("tp.Collection(folder / 'work')", "images.json"),
        ("collection.features('0.png')", "*.features"),
        ("list(collection.pairs())", "*.features"),
        ("results.pairs_of(0)", "*.tile"),
    ],
)
def test_ctrl_c_ends_calls_that_wait_for_a_disk(call, leased, tmp_path):
    """Another process has a lease on a file, so opening it takes long, as on a disk that does not answer."""
    told = run(["-c", textwrap.dedent(
        f"""
        import os, signal, subprocess, sys, threading
        from pathlib import Path
        import numpy as np
        import tiepoint as tp
        folder, leased = Path({str(tmp_path)!r}), {leased!r}
        for i in range(2):
            tp.write(folder / f"{{i}}.png", tp.synth.scene((320, 240), np.eye(3), seed=3).reference)
        for name in ["a.csv", "a.pfm", "a.ply", "a.txt", "a.xml"]:
            (folder / name).write_text("anything")
        if {"work" in call or "collection" in call or "results" in call}:
            collection = tp.collect(folder, work=folder / "work", device="cpu")
            results = collection._core.results()
        paths = list(folder.rglob(leased))
        holder = [sys.executable, "-c", {HOLD!r}, *paths]
        with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert paths and holder.stdout.readline() == b"held\\n", paths
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                {call}
            except KeyboardInterrupt:
                print("ended")
            holder.stdin.close()
        """
    )], seconds=60)
    assert told == "ended\n"


def test_ctrl_c_while_kernels_are_compiled():
    told = run(["-c", textwrap.dedent(
        f"""
        import os, signal, tempfile, threading, time
        os.environ["TIEPOINT_CACHE"] = tempfile.mkdtemp()
        import numpy as np
        import tiepoint as tp
        image = np.random.default_rng(1).integers(0, 256, (300, 400), dtype=np.uint8)
        wanted = tp.Sift(device="cpu").detect(image)
        device = tp.Device("{'opencl' if OPENCL else 'cpu'}", threads=2)
        for moment in 0.2, 0.7, 1.5:
            sent = []
            def interrupt():
                sent.append(time.perf_counter())
                os.kill(os.getpid(), signal.SIGINT)
            threading.Timer(moment, interrupt).start()
            try:
                tp.Sift(device=device).detect(image)
                time.sleep(10)
            except KeyboardInterrupt:
                assert time.perf_counter() - sent[0] < 6, "a driver that compiles may take long, but not so long"
        found = tp.Sift(device=device).detect(image)
        print(np.array_equal(found.xy, wanted.xy) and np.array_equal(found.descriptors, wanted.descriptors))
        """
    )])
    assert told == "True\n"


def test_threads_that_open_one_device_do_not_wait_for_each_other_s_locks():
    """Of two threads' first calls one compiles while it holds a lock that the other waits for."""
    told = run(["-c", textwrap.dedent(
        f"""
        import os, tempfile, threading, time
        os.environ["TIEPOINT_CACHE"] = tempfile.mkdtemp()
        import numpy as np
        import tiepoint as tp
        image = np.random.default_rng(1).integers(0, 256, (300, 400), dtype=np.uint8)
        sift = tp.Sift(device=tp.Device("{'opencl' if OPENCL else 'cpu'}", threads=1))
        found, late = [], []
        threads = [threading.Thread(target=lambda: found.append(sift.detect(image))) for _ in range(2)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            before = time.perf_counter()
            time.sleep(0.01)
            late.append(time.perf_counter() - before)
        print(np.array_equal(found[0].xy, found[1].xy), max(late) < 1)
        """
    )])
    assert told == "True True\n"


def test_an_exception_of_a_signal_handler_is_raised():
    told = run(["-c", textwrap.dedent(
        """
        import os, signal, threading
        import tiepoint as tp
        class Enough(Exception):
            pass
        def handler(*_):
            raise Enough
        signal.signal(signal.SIGTERM, handler)
        pair = tp.synth.stereo((900, 700), disparities=(0, 60))
        stereo = tp.Stereo(disparities=256, paths=16, device=tp.Device("cpu", threads=1))
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        try:
            stereo.compute(pair.left, pair.right)
        except Enough:
            print("raised")
        """
    )])
    assert told == "raised\n"
