"""Ctrl-C at random moments of every long call: KeyboardInterrupt, promptly, and the same call again is right."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tiepoint as tp
from interrupted import CALLS

# More by hand: 50 take minutes a call.
TRIALS = os.environ.get("TIEPOINT_INTERRUPTS", "2")
# Those that compute nothing of their own on a GPU, or take PoCL long.
CPU_ALONE = {"estimate", "surf", "learning", "rectify", "detect_many"}
OPENCL = [device.name for device in tp.devices() if device.resolved.startswith("opencl")][:1]


# LLVM, within PoCL, takes SIGINT first: it removes the file that clang is writing, and hands the signal on. Clang then
# counts an error on standard error, which nothing but LLVM can keep from there.
BY_POCL = "1 error generated.\n"


def run(arguments, seconds=300):
    """What a process prints; its standard error must be empty but for what PoCL's compiler says when interrupted."""
    told = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=seconds)
    assert told.returncode == 0 and told.stderr.replace(BY_POCL, "") == "", told
    return told.stdout


NAMES = [call.__name__ for call in CALLS]
CASES = [(name, "cpu") for name in NAMES] + [(name, "opencl") for name in NAMES if name not in CPU_ALONE]


@pytest.mark.parametrize(("call", "device"), CASES)
def test_ctrl_c_ends_every_call(call, device):
    if device == "opencl" and not OPENCL and not os.environ.get("TIEPOINT_REQUIRE_GPU"):
        pytest.skip("no OpenCL device is there")
    told = json.loads(run([Path(__file__).parent / "interrupted.py", call, device, TRIALS, "1"]))
    assert len(told["ended"]) == int(TRIALS), told
    # 0.2 s from one safe point to the next; the rest is for a machine that has other work.
    assert max(told["ended"]) < (4 if device == "opencl" else 2), told


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
    """Of the first calls of two threads one compiles, with a lock that the other waits for."""
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


def test_what_the_handler_raises_is_raised():
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
