"""Devices, threads, signals, forks."""

import concurrent.futures
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import tiepoint as tp
from card import gpu_required
from tiepoint import _core


def test_devices_are_listed_and_named():
    found = tp.devices()
    assert found[0].name == found[0].resolved == "cpu"
    device = tp.Device("cpu", threads=3, memory="2GiB")
    assert (device.name, device.threads, device.memory) == ("cpu", 3, 2 << 30)
    assert pickle.loads(pickle.dumps(device)) == device and hash(device) == hash(pickle.loads(pickle.dumps(device)))
    assert repr(device) == 'Device("cpu", threads=3, memory=2147483648)'
    assert device != tp.Device("cpu", threads=2) and device != "cpu"
    assert tp.Device().threads == len(os.sched_getaffinity(0))
    for text, bytes_ in [("1K", 1024), ("1.5 MiB", 3 << 19), ("7", 7), ("2gb", 2 << 30)]:
        assert tp.Device("cpu", memory=text).memory == bytes_
    for threads in (0, -1, 1025):
        with pytest.raises(tp.OptionError, match=f"option threads is {threads}: expected 1 to 1024"):
            tp.Device(threads=threads)
    with pytest.raises(tp.DeviceError, match="cuda:77"):
        tp.Device("cuda:77")


def run(script, **options):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, **options)


def test_import_is_fast_and_loads_nothing_that_takes_long():
    told = run(
        """
        import sys, time
        before = set(sys.modules)
        began = time.perf_counter()
        import tiepoint
        print(time.perf_counter() - began)
        print([name for name in ("numpy", "cv2", "torch", "cupy", "dataclasses", "inspect", "typing", "logging") if name in sys.modules.keys() - before])
        # getrusage would count the process that started this one.
        print(*[line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")])
        """
    )
    seconds, modules, kilobytes = told.stdout.split("\n")[:3]
    assert modules == "[]", told
    assert int(kilobytes) < 50_000, told
    # A tenth of a second on an idle machine.
    assert float(seconds) < 1.0, told


def test_calls_of_other_threads_outlive_ctrl_c():
    told = run(
        """
        import os, signal, threading
        import numpy as np
        import tiepoint as tp
        device = tp.Device("cpu", threads=2)
        pair = tp.synth.stereo((900, 700), disparities=(0, 60))
        stereo = tp.Stereo(disparities=256, paths=16, device=device)
        wanted = stereo.compute(pair.left, pair.right).disparity
        found = []
        other = threading.Thread(target=lambda: found.append(stereo.compute(pair.left, pair.right).disparity))
        other.start()
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            stereo.compute(pair.left, pair.right)
        except KeyboardInterrupt:
            print("ended")
        other.join()
        print(np.array_equal(found[0], wanted, equal_nan=True))
        """
    )
    assert told.stdout.split() == ["ended", "True"] and told.stderr == "", told


def count(image):
    return len(SIFT.detect(image))


SIFT = tp.Sift(device=tp.Device("cpu", threads=2))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_other_processes_find_the_same(scene, way):
    wanted = len(SIFT.detect(scene.reference))
    with multiprocessing.get_context(way).Pool(2) as pool:
        assert pool.map(count, [scene.reference] * 3) == [wanted] * 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_listing_devices_harms_no_fork():
    """`devices` opens the devices; a forked child has the CPU alone, and may use ``auto``, unless that is a GPU."""
    told = run(
        """
        import os, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import tiepoint as tp
        tp.devices()
        image = tp.synth.texture((200, 150))
        child = os.fork()
        if child == 0:
            if len(tp.devices()) != 1:
                os._exit(3)
            try:
                found = len(tp.Sift().detect(image))
                os._exit(0 if found else 1)
            except tp.DeviceError:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), tp.Device().resolved, len(tp.Sift().detect(image)) > 0)
        """
    )
    code, auto, found = told.stdout.split()
    assert (code == "0") == (auto == "cpu") and found == "True", told


@pytest.mark.parametrize("pause", [0, 0.002, 0.004, 0.008, 0.015])
def test_a_process_may_fork_while_another_thread_imports(pause):
    """A thread's first calls import parts of the package and open a device; the child would wait for ever for what was half
    done."""
    told = run(
        f"""
        import multiprocessing, threading, time, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import numpy as np
        import tiepoint as tp
        image = np.kron(np.random.default_rng(0).integers(0, 255, (60, 80)), np.ones((8, 8))).astype("uint8")
        def job():
            return len(tp.Sift(device="cpu").detect(image)), tp.register, tp.Stereo, tp.raster
        threading.Thread(target=job).start()
        time.sleep({pause})
        child = multiprocessing.get_context("fork").Process(target=job)
        child.start()
        child.join(20)
        print(child.exitcode)
        child.kill()
        """
    )
    assert told.stdout == "0\n", told


@pytest.mark.parametrize("pause", [0, 0.045, 0.05, 0.055, 0.08, 0.2, 1])
def test_a_process_may_fork_and_end_while_a_gpu_is_opened(pause):
    """Opening begins a twentieth of a second after the first call. Neither process may hang or crash."""
    told = run(
        f"""
        import os, sys, time, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import tiepoint as tp
        image = tp.synth.texture((200, 150))
        wanted = tp.Sift(device="cpu").detect(image)
        try:
            sift = tp.Sift(device="cpu+opencl")
        except tp.DeviceError:
            sift = tp.Sift()
        found = sift.detect(image)
        time.sleep({pause})
        child = os.fork()
        if child == 0:
            try:
                sys.exit(0 if sift.detect(image) == wanted else 1)
            except tp.DeviceError as error:
                sys.exit(0 if "forked" in str(error) else 2)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), found == wanted, sift.detect(image) == wanted)
        """
    )
    assert told.returncode == 0 and told.stdout.split() == ["0", "True", "True"] and told.stderr == "", told


@pytest.mark.parametrize("pause", [0, 0.045, 0.05, 0.055, 0.08])
def test_a_process_may_end_while_a_gpu_is_opened(pause):
    told = run(
        f"""
        import time
        import tiepoint as tp
        image = tp.synth.texture((200, 150))
        try:
            sift = tp.Sift(device="cpu+opencl")
        except tp.DeviceError:
            sift = tp.Sift()
        print(len(sift.detect(image)) > 0)
        time.sleep({pause})
        """
    )
    assert told.returncode == 0 and told.stdout.split() == ["True"] and told.stderr == "", told


def test_small_images_take_no_other_thread():
    told = run(
        """
        import threading, time
        import numpy as np
        import tiepoint as tp
        image = tp.synth.texture((64, 64))
        times = {}
        for threads in 1, 2:
            device = tp.Device("cpu", threads=threads)
            sift, eye = tp.Sift(device=device), np.eye(3)
            for name, call in {"detect": lambda: sift.detect(image), "warp": lambda: tp.warp(image, eye, device=device)}.items():
                call()
                best = []
                for _ in range(60):
                    began = time.perf_counter()
                    call()
                    best.append(time.perf_counter() - began)
                times[name, threads] = min(best)
        print(*[times[name, 2] / times[name, 1] for name in ("detect", "warp")])
        """
    )
    # As fast as one thread; the margin is for a busy machine.
    assert all(float(ratio) < 1.5 for ratio in told.stdout.split()), told


def test_every_call_releases_the_lock():
    told = run(
        """
        import threading, time
        import tiepoint as tp
        pair = tp.synth.stereo((1000, 800), disparities=(0, 60))
        stereo = tp.Stereo(disparities=128, device=tp.Device("cpu", threads=1))
        ticks = []
        done = threading.Event()
        def tick():
            while not done.is_set():
                ticks.append(1)
                time.sleep(0.002)
        thread = threading.Thread(target=tick)
        thread.start()
        before = len(ticks)
        stereo.compute(pair.left, pair.right)
        print(len(ticks) - before)
        done.set()
        """
    )
    assert int(told.stdout) > 10, told


def test_a_gpu_finds_the_same(scene, features, pair):
    gpus = [device for device in tp.devices() if device.name != "cpu"]
    if not gpus:
        assert not gpu_required(), "there is neither a CUDA nor an OpenCL device, and one is required"
        pytest.skip("neither a CUDA nor an OpenCL device")
    device = gpus[0]
    assert tp.Sift(device=device).detect(scene.reference) == features[0]
    assert tp.match(*features, device=device) == tp.match(*features, device="cpu")
    stereo = tp.Stereo(disparities=40, device="cpu")
    wanted = stereo.compute(pair.left, pair.right)
    assert stereo.replace(device=device).compute(pair.left, pair.right) == wanted
    assert np.array_equal(tp.filter.gauss(pair.left, 2.0, device=device), tp.filter.gauss(pair.left, 2.0, device="cpu"))
    # Results for arrays on the device stay there: matches, filtered images and disparities.
    there = [side.to(device) for side in features]
    matches = tp.match(*there)
    assert isinstance(matches.pairs, tp.DeviceArray) and matches == tp.match(*features, device="cpu")
    assert all(map(np.array_equal, tp.nearest(*there), tp.nearest(*features, device="cpu")))
    rows, wanted = there[0].descriptors, features[0].descriptors
    for call in [
        lambda image, **given: tp.filter.gauss(image, 2.0, **given),
        lambda image, **given: tp.filter.sobel(image, "gx", **given),
        lambda image, **given: tp.filter.convolve(image, [[1, -1]], float=True, **given),
        lambda image, **given: tp.warp(image, [[0.9, 0.1, 3], [0, 1.1, -2], [0, 0, 1]], **given),
    ]:
        found = call(rows)
        assert isinstance(found, tp.DeviceArray) and found.device == rows.device
        assert np.array_equal(found.numpy(), call(wanted, device="cpu"))
        assert np.array_equal(tp.filter.hessian(found).numpy(), tp.filter.hessian(found.numpy(), device="cpu"))
    options = {"disparities": 24, "right": True, "confidence": True, "reasons": True}
    onto = tp.Stereo(device=device, **options).compute(rows, call(rows))
    assert isinstance(onto.disparity, tp.DeviceArray)
    assert onto == tp.Stereo(device="cpu", **options).compute(wanted, call(wanted, device="cpu"))
    with pytest.raises(tp.ImageError, match="and this computes on cpu"):
        tp.filter.gauss(rows, device="cpu")
    with pytest.raises(tp.ImageError, match="int64"):
        tp.filter.gauss(matches.pairs)


@pytest.mark.parametrize(
    "call",
    [
        lambda image, a, b, device: tp.Sift(levels=33, device=device),
        lambda image, a, b, device: tp.Sift(range=(5, 2), device=device),
        lambda image, a, b, device: tp.Surf(step=3, device=device),
        lambda image, a, b, device: tp.Stereo(disparities=0, device=device),
        lambda image, a, b, device: tp.Stereo(cost="nonsense", device=device),
        lambda image, a, b, device: tp.Stereo(memory="much", device=device),
        lambda image, a, b, device: tp.register(image, image, "nonsense", device=device),
        lambda image, a, b, device: tp.register(image, image, "fundamental", device=device),
        lambda image, a, b, device: tp.register(image, image, views=99, device=device),
        lambda image, a, b, device: tp.register(image, image, interpolation="nonsense", device=device),
        lambda image, a, b, device: tp.register(image, image, rematch=tp.Rematch(rounds=0), device=device),
        lambda image, a, b, device: tp.rectify(image, image, frame="nonsense", device=device),
        lambda image, a, b, device: tp.rectify(image, image, threshold=-1.0, device=device),
        lambda image, a, b, device: tp.rectify(image, image, focal=-1.0, device=device),
        lambda image, a, b, device: tp.rectify(image, image, stored=True, device=device),
        lambda image, a, b, device: tp.match(a, b, ratio=5.0, device=device),
        lambda image, a, b, device: tp.tie_points(a, b, "nonsense", device=device),
        lambda image, a, b, device: tp.tie_points(a, b, threshold=-1.0, device=device),
        lambda image, a, b, device: tp.estimate(a.xy, a.xy, "nonsense", device=device),
        lambda image, a, b, device: tp.estimate(a.xy, a.xy, "affine", confidence=2.0, device=device),
        lambda image, a, b, device: tp.estimate(a.xy, a.xy[1:], "affine", device=device),
        lambda image, a, b, device: tp.warp(image, np.eye(3), interpolation="nonsense", device=device),
        lambda image, a, b, device: tp.warp(image, np.eye(3), fill=300.0, device=device),
        lambda image, a, b, device: tp.warp(image, np.eye(2), device=device),
        lambda image, a, b, device: tp.filter.gauss(image, -1.0, device=device),
        lambda image, a, b, device: tp.filter.gauss(image, 1.0, border="nonsense", device=device),
        lambda image, a, b, device: tp.filter.gauss(image.astype(complex), 1.0, device=device),
        lambda image, a, b, device: tp.filter.sobel(image, "nonsense", device=device),
        lambda image, a, b, device: tp.filter.hessian(image, border="nonsense", device=device),
        lambda image, a, b, device: tp.filter.blobs(image, threshold=-1.0, device=device),
        lambda image, a, b, device: tp.filter.convolve(image, [1.0], device=device),
    ],
)
def test_wrong_arguments_are_refused_before_a_device_is_opened(call, features):
    """The card does not exist: opening it first would be a `DeviceError`."""
    with pytest.raises((tp.OptionError, tp.ImageError)):
        call(np.zeros((20, 30), np.uint8), *features, "cuda:77")


def test_errors_say_the_range_of_whole_numbers_and_what_is_missing(scene):
    for option, number, message in [("p1", -5, "0 to 4000"), ("speckle_size", -5, "0 or more"), ("speckle_size", 10**30, "nearer to 0")]:
        with pytest.raises(tp.OptionError, match=f"option {option} is {number}: expected a whole number: {message}"):
            tp.Stereo(**{option: number})
    bare = tp.Sift(descriptors="none", device="cpu").detect(scene.reference)
    with pytest.raises(tp.MismatchError, match=f"{len(bare)} keypoints have no descriptors: detect with descriptors"):
        tp.match(bare, bare)


MISTAKEN = {
    "descriptors in place of features": (lambda g, f: tp.match(f.descriptors, f), "a is of the type ndarray: expected Features, .* Features.from_arrays"),
    "images in place of features": (lambda g, f: tp.tie_points(f, g), "b is of the type ndarray: expected Features"),
    "no cameras": (lambda g, f: tp.estimate(f.xy, f.xy, "essential"), "needs the cameras: expected K"),
    "a camera of two rows": (lambda g, f: tp.estimate(f.xy, f.xy, "essential", K=np.eye(3)[:2]), r"\(2, 3\): expected \(3, 3\)$"),
    "a threshold below 0": (lambda g, f: tp.estimate(f.xy, f.xy, threshold=-3), "option threshold is -3: expected above 0"),
    "a threshold without end": (lambda g, f: tp.estimate(f.xy, f.xy, threshold=np.inf), "is inf: expected finite and above 0 pixels"),
    "half a row": (lambda g, f: tp.warp(g, np.eye(3), shape=(10.5, 10)), r"option shape is \(10.5, 10\): expected rows and columns"),
    "one side": (lambda g, f: tp.warp(g, np.eye(3), shape=100), "option shape is 100: expected rows and columns"),
    "a camera in place of a calibration": (lambda g, f: tp.rectify(g, g, np.eye(3)), "type ndarray: expected a StereoCalibration"),
    "one image of two": (lambda g, f: tp.report(tp.tie_points(f, f), images=g), r"images is no pair: expected \(a, b\)"),
    "a device of another library": (lambda g, f: tp.Sift(device=Path("cpu")), r"option device is PosixPath\('cpu'\): expected a Device"),
    "a camera in place of a model": (lambda g, f: tp.estimate([[0, 0]], [[1, 1]], np.eye(3)), "option model is of the type ndarray: .* a name"),
    "a mask in place of a model": (lambda g, f: tp.register(g, g, g), "option model is of the type ndarray: .* a name"),
    "a ratio in place of a model": (lambda g, f: tp.tie_points(f, f, 0.75), "option model is of the type float: .* a name"),
    "two lists in place of pairs": (lambda g, f: tp.Stereo(device="cpu").compute_many([g], [g]).__next__(), r"as zip\(lefts, rights\)"),
    "no folder": (lambda g, f: tp.collect(None, "x.db"), "images is None: expected a folder"),
}


@pytest.mark.parametrize("call", MISTAKEN)
def test_errors_say_what_was_expected(call, scene, features):
    mistaken, message = MISTAKEN[call]
    with pytest.raises((tp.OptionError, tp.ImageError, TypeError), match=message):
        mistaken(scene.reference, features[0])


def test_calls_beside_each_other_repeat_themselves():
    """Kernels of several threads delay each other's warps, so that those which do not wait for each other show it."""
    wanted = os.environ.get("TIEPOINT_TEST_DEVICE", "")
    listed = {entry.get("device") for entry in _core.devices() if wanted in str(entry)}
    for device in tp.devices()[1:]:
        if device.name not in listed:
            continue
        is_card = device.name.startswith("cuda")
        made = tp.synth.scene((1600, 1200) if is_card else (120, 90), np.eye(3), seed=5)
        sift, surf = tp.Sift(device=device), tp.Surf(device=device)
        stereo = tp.Stereo(disparities=128 if is_card else 16, device=device)
        a, b = sift.detect(made.reference), sift.detect(made.moving)
        calls = {
            "sift": lambda: sift.detect(made.reference).descriptors,
            "surf": lambda: surf.detect(made.moving).descriptors,
            "match": lambda: tp.match(a, b, device=device).pairs,
            "stereo": lambda: stereo.compute(made.reference, made.moving).disparity,
            "structure": lambda: tp.register(made.reference, made.moving, modality="cross", device=device).warped,
        }
        first = {name: call() for name, call in calls.items()}
        over = time.monotonic() + (20 if is_card else 0)

        def repeated(name):
            while True:
                if not np.array_equal(calls[name](), first[name], equal_nan=True):
                    return f"{device}: {name} differs"
                if time.monotonic() >= over:
                    return None

        with concurrent.futures.ThreadPoolExecutor() as threads:
            assert [told for told in threads.map(repeated, calls) if told] == []
