"""Times from Python beside other packages, in interleaved rounds of one run, as Markdown tables.

    python crates/tiepoint-python/benchmarks/beside.py [--image PHOTO] [--rounds 7] [--device cpu]

OpenCV, pycolmap and kornia-rs are measured where they are installed, PyTorch and kornia too where there is a card. Every package gets the threads that it takes by itself;
`--threads 1` limits those that can be limited. With `TIEPOINT` naming the command, the last table compares a call from
Python with the same call in Rust (`tiepoint bench`).
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import time

import numpy as np
import tiepoint as tp


def imported(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def times(calls, rounds):
    """Medians in milliseconds: each round runs every call once, after one round that does not count."""
    taken = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            if number:
                taken[name].append(1000 * (time.perf_counter() - began))
    return {name: statistics.median(runs) for name, runs in taken.items()}


def table(title, calls, rounds, notes):
    """Prints the medians, and how many times the first one's they are."""
    found = times(calls, rounds)
    ours = next(iter(found.values()))
    print(f"\n{title}\n\n| | ms | times ours | |\n|---|---:|---:|---|")
    for name, ms in found.items():
        print(f"| {name} | {ms:.1f} | {ms / ours:.2f} | {notes.get(name, '')} |")


def features(image, device, rounds, threads):
    """SIFT by every package: keypoints and descriptors of one image."""
    sift = tp.Sift(device=device)
    calls, notes = {"tiepoint.Sift.detect": lambda: sift.detect(image)}, {}
    notes["tiepoint.Sift.detect"] = f"{len(sift.detect(image))} features"
    if cv2 := imported("cv2"):
        theirs = cv2.SIFT_create()
        calls["cv2.SIFT.detectAndCompute"] = lambda: theirs.detectAndCompute(image, None)
        notes["cv2.SIFT.detectAndCompute"] = f"{len(theirs.detectAndCompute(image, None)[0])} features"
    if kornia := imported("kornia_rs"):
        floats = image.astype(np.float32)[..., None]
        other = kornia.imgproc.Sift()
        calls["kornia_rs.imgproc.Sift"] = lambda: other.detect_and_compute(floats)
        notes["kornia_rs.imgproc.Sift"] = f"{len(other.detect_and_compute(floats)[0])} features"
    if pycolmap := imported("pycolmap"):
        options = pycolmap.FeatureExtractionOptions()
        options.num_threads = threads or -1
        options.sift.max_num_features = 100_000
        extractor = pycolmap.Sift(options, pycolmap.Device.cpu)
        calls["pycolmap.Sift.extract"] = lambda: extractor.extract(image)
        notes["pycolmap.Sift.extract"] = f"{len(extractor.extract(image)[0])} features, one thread"
    table(f"SIFT of {image.shape[1]}×{image.shape[0]} pixels", calls, rounds, notes)


def matching(image, device, rounds):
    """The two nearest neighbours of every descriptor, 8000 with 8000."""
    found = [tp.Sift(device=device, max_features=8000).detect(view) for view in (image, np.roll(image, 9, axis=1))]
    a, b = found
    calls = {"tiepoint.nearest": lambda: tp.nearest(a, b, device=device)}
    if cv2 := imported("cv2"):
        floats = [np.float32(features.descriptors) for features in found]
        matcher = cv2.BFMatcher(cv2.NORM_L2)
        calls["cv2.BFMatcher.knnMatch"] = lambda: matcher.knnMatch(*floats, k=2)
    table(f"Two nearest neighbours, {len(a)} with {len(b)}", calls, rounds, {})


def stereo(size, device, rounds):
    """Disparities of a synthetic pair, 128 of them."""
    pair = tp.synth.stereo(size, disparities=(2, 100), seed=5)
    ours = tp.Stereo(disparities=128, device=device)
    census = ours.replace(cost="census")
    calls = {
        "tiepoint.Stereo.compute": lambda: ours.compute(pair.left, pair.right),
        "tiepoint.Stereo.compute, census": lambda: census.compute(pair.left, pair.right),
    }
    if cv2 := imported("cv2"):
        for name, mode in [("MODE_HH", cv2.STEREO_SGBM_MODE_HH), ("MODE_SGBM_3WAY", cv2.STEREO_SGBM_MODE_SGBM_3WAY)]:
            theirs = cv2.StereoSGBM_create(0, 128, 5, 200, 800, 1, 63, 10, 50, 2, mode)
            calls[f"cv2.StereoSGBM, {name}"] = lambda theirs=theirs: theirs.compute(pair.left, pair.right)
    table(f"Disparities of {size[0]}×{size[1]}×128", calls, rounds, {})


def on_the_card(image, rounds):
    """The same on a CUDA device, of PyTorch's tensors there, with results there: beside kornia's forms for it and PyTorch's own."""
    torch, kornia = imported("torch"), imported("kornia")
    if torch is None or not torch.cuda.is_available():
        print("\nPyTorch finds no card: tensors are not measured")
        return

    def done(call):
        def timed():
            call()
            torch.cuda.synchronize()

        return timed

    def asked(name, call):
        """What a package can do of this; kornia's forms ask for packages of their own."""
        if kornia is None:
            return {}
        try:
            call()
        except (ImportError, RuntimeError, TypeError) as error:
            print(f"\n{name} is left out: {error}")
            return {}
        return {name: done(call)}

    there = torch.from_numpy(image).cuda()
    grey = there.float()[None, None] / 255
    sift = tp.Sift(device="cuda:0", max_features=8000)
    notes = {"tiepoint.Sift.detect": f"{len(sift.detect(there))} features", "kornia.feature.SIFTFeature": "8000 asked for"}
    calls = {"tiepoint.Sift.detect": done(lambda: torch.from_dlpack(sift.detect(there).descriptors))}
    if kornia is not None:
        theirs = kornia.feature.SIFTFeature(8000, device=torch.device("cuda"))
        calls |= asked("kornia.feature.SIFTFeature", lambda: theirs(grey))
    table(f"SIFT of a tensor on the card, {image.shape[1]}×{image.shape[0]} pixels, 8000 features", calls, rounds, notes)

    a = sift.detect(there)
    floats = torch.from_dlpack(a.descriptors).float() / 512
    calls = {"tiepoint.match": done(lambda: tp.match(a, a))}
    calls["torch.cdist, topk"] = done(lambda: torch.cdist(floats, floats).topk(2, largest=False))
    calls |= asked("kornia.feature.match_smnn", lambda: kornia.feature.match_smnn(floats, floats, 0.8))
    table(f"Matches of {len(a)} with {len(a)} features on the card", calls, rounds, {"torch.cdist, topk": "one way, no filter"})

    turn = [[0.98, -0.17, 40.0], [0.17, 0.98, -30.0], [1e-5, 0.0, 1.0]]
    matrix = torch.tensor(turn, device="cuda")[None]
    calls = {
        "tiepoint.warp": done(lambda: tp.warp(there, turn)),
        "tiepoint.filter.gauss, sigma 2": done(lambda: tp.filter.gauss(there, 2.0)),
    }
    size = grey.shape[2:]
    calls |= asked("kornia warp_perspective, bicubic", lambda: kornia.geometry.warp_perspective(grey, matrix, size, mode="bicubic"))
    calls |= asked("kornia gaussian_blur2d, 17×17", lambda: kornia.filters.gaussian_blur2d(grey, (17, 17), (2.0, 2.0)))
    table(f"A warped and a smoothed tensor on the card, {image.shape[1]}×{image.shape[0]}", calls, rounds, {})

    pair = tp.synth.stereo((1280, 720), disparities=(2, 100), seed=5)
    left, right = (torch.from_numpy(view).cuda() for view in (pair.left, pair.right))
    matcher = tp.Stereo(disparities=128, device="cuda:0")
    calls = {
        "tiepoint.Stereo.compute, of tensors": done(lambda: torch.from_dlpack(matcher.compute(left, right).disparity)),
        "tiepoint.Stereo.compute, of arrays": lambda: matcher.compute(pair.left, pair.right),
    }
    table("Disparities of 1280×720×128 on the card", calls, rounds, {})


def threads_of_python(image, rounds):
    """Images a second by eight threads of Python that share a detector of one thread, and by one thread of Python."""
    from concurrent.futures import ThreadPoolExecutor

    sift, work = tp.Sift(device=tp.Device("cpu", threads=1)), 24
    rates = {1: [], 8: []}
    for number in range(rounds + 1):
        for threads, found in rates.items():
            with ThreadPoolExecutor(threads) as pool:
                began = time.perf_counter()
                list(pool.map(sift.detect, [image] * (work if threads > 1 else work // 8)))
                taken = time.perf_counter() - began
            if number:
                found.append((work if threads > 1 else work // 8) / taken)
    ratios = [eight / one for one, eight in zip(*rates.values(), strict=True)]
    one, eight = (statistics.median(found) for found in rates.values())
    print(f"\nThreads of Python: one searches {one:.2f} images a second, eight {eight:.2f}; in each round")
    print(", ".join(f"{ratio:.2f}" for ratio in ratios), "times as many")


def calls_on_the_card(image, rounds):
    """What the parts of a call of `Sift.detect` of a tensor take, in microseconds; medians."""
    torch = imported("torch")
    if torch is None or not torch.cuda.is_available():
        return
    there, sift = torch.from_numpy(image).cuda(), tp.Sift(device="cuda:0")
    found = sift.detect(there)
    array = found.descriptors

    def one(keep):
        found = sift.detect(there)
        if keep == "tensor":
            torch.from_dlpack(found.descriptors)
        elif keep == "capsule":
            found.descriptors.__dlpack__(stream=1, max_version=(1, 1))

    calls = {
        "Sift.detect": lambda: one("nothing"),
        "and a capsule": lambda: one("capsule"),
        "and torch.from_dlpack": lambda: one("tensor"),
        "__dlpack__ alone": lambda: array.__dlpack__(stream=1, max_version=(1, 1)),
        "torch.from_dlpack alone": lambda: torch.from_dlpack(array),
    }
    found = times(calls, 100 * rounds)
    print("\n| part of a call, there | µs |\n|---|---:|")
    for name, ms in found.items():
        print(f"| {name} | {1000 * ms:.1f} |")


def overhead(device, rounds, threads):
    """`Sift.detect` of an array, and the same work in Rust: the best of several runs each, in turns."""
    command = os.environ.get("TIEPOINT")
    if command is None:
        print("\nTIEPOINT names no command: a call is not compared with one in Rust")
        return
    # The scene that the command draws for itself.
    image = tp.synth.texture((1920, 1080), seed=7)
    tp.write("beside.png", image)
    sift = tp.Sift(device=device)
    python, rust = [], []
    words = [command, "bench", "beside.png", "--repeat", "5", "--json", "--device", str(device.name)]
    words += ["--threads", str(threads)] if threads else []
    for _ in range(rounds):
        told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        rust.append(next(run["seconds"]["total"] for run in told["runs"] if run["name"] == "sift"))
        for _ in range(6):
            began = time.perf_counter()
            sift.detect(image)
            python.append(time.perf_counter() - began)
    os.remove("beside.png")
    print("\nA call from Python and in Rust, best of each\n\n| | ms |\n|---|---:|")
    print(f"| Python | {1000 * min(python):.2f} |\n| Rust | {1000 * min(rust):.2f} |")
    print(f"| more | {100 * (min(python) / min(rust) - 1):.1f} % |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--image")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    device = tp.Device(given.device, threads=given.threads)
    if given.threads and (cv2 := imported("cv2")):
        cv2.setNumThreads(given.threads)
    image = tp.synth.texture((1920, 1080), seed=7) if given.image is None else tp.read(given.image)
    if image.ndim == 3:
        image = np.uint8(np.round(image[..., :3].astype(np.float32) @ np.float32([0.2126, 0.7152, 0.0722])))
    features(image, device, given.rounds, given.threads)
    matching(image, device, given.rounds)
    stereo((1280, 720), device, given.rounds)
    overhead(device, given.rounds, given.threads)
    if os.cpu_count() >= 8:
        threads_of_python(image, given.rounds)
    on_the_card(image, given.rounds)
    calls_on_the_card(image, given.rounds)


if __name__ == "__main__":
    main()
