"""`cargo xtask parity`: compares `tiepoint detect` with OpenCV's SIFT. Arguments: the command, the data folder.

A feature of OpenCV's is in common when one of ours lies within 1 px and 10°, with a scale between 1/1.3 and 1.3
of its. MMA: the share of mutual nearest neighbours within 3 px of where the true homography puts them (mean
matching accuracy, Mikolajczyk & Schmid 2005).
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np

TIEPOINT, DATA = Path(sys.argv[1]), Path(sys.argv[2])
PHOTOS = ["objects/books/frame1.jpg", "homography/graf/img1.png", "photos/camera.png"]
SERIES = ["graf", "boat", "leuven"]
FEATURES = 2000

missed = []


def bar(ok, what):
    """The text of a table cell with a bar; records the bars that are missed."""
    if not ok:
        missed.append(what)
    return "" if ok else " ✗"


def ours(grey, folder, *options):
    """Places, scales, angles and unit descriptors of `tiepoint detect`."""
    image, features = folder / "image.png", folder / "features.npz"
    cv2.imwrite(str(image), grey)
    subprocess.run([TIEPOINT, "detect", "--quiet", image, "--output", features, *options], check=True)
    with np.load(features) as f:
        return f["xy"].astype(float), f["scale"], f["angle"], unit(f["descriptors"])


def opencv(grey, features=0):
    """The same of OpenCV; its size is 2 σ."""
    found, descriptors = cv2.SIFT_create(features, enable_precise_upscale=True).detectAndCompute(grey, None)
    xy = np.array([k.pt for k in found])
    scale = np.array([k.size / 2 for k in found])
    return xy, scale, np.deg2rad([k.angle for k in found]), unit(descriptors)


def unit(descriptors):
    descriptors = descriptors.astype(np.float32)
    return descriptors / np.maximum(np.linalg.norm(descriptors, axis=1, keepdims=True), 1e-12)


def in_common(a, b):
    """Pairs of indices: for each feature of `b` its nearest in `a`, by place and angle, where there is one."""
    pairs = []
    for j, (place, scale, angle) in enumerate(zip(*b[:3])):
        distance = np.hypot(*(a[0] - place).T)
        turn = np.abs((a[2] - angle + np.pi) % (2 * np.pi) - np.pi)
        far = (distance > 1) | (turn > np.deg2rad(10)) | (np.abs(np.log(a[1] / scale)) > np.log(1.3))
        cost = np.where(far, np.inf, distance + turn)
        i = int(np.argmin(cost))
        if np.isfinite(cost[i]):
            pairs.append((i, j))
    return np.array(pairs).reshape(-1, 2).T


def parity(photo, folder):
    grey = cv2.imread(str(DATA / photo), cv2.IMREAD_GRAYSCALE)
    a, b = ours(grey, folder), opencv(grey)
    i, j = in_common(a, b)
    offset = a[0][i] - b[0][j]
    distance = np.hypot(*offset.T)
    (x, y), median, share = offset.mean(0), np.median(distance), len(j) / len(b[0])
    apart = np.median(np.linalg.norm(a[3][i] - b[3][j], axis=1))
    print(
        f"| {photo} | {len(a[0])} | {len(b[0])}"
        f" | {share:.1%}{bar(share >= 0.85, f'{photo}: 85 % in common')}"
        f" | {median:.4f}{bar(median <= 0.01, f'{photo}: median distance 0.01 px')}"
        f" | {np.percentile(distance, 95):.3f}"
        f" | {x:+.4f}, {y:+.4f}{bar(max(abs(x), abs(y)) <= 0.01, f'{photo}: mean offset 0.01 px')}"
        f" | {apart:.3f}{bar(apart <= 0.15, f'{photo}: descriptors 0.15 apart')} |",
        flush=True,
    )


def homography(series, i):
    text = (DATA / "homography" / series / f"H1to{i}p.xml").read_text()
    return np.array(re.search(r"<data>(.*?)</data>", text, re.S)[1].split()[:9], float).reshape(3, 3)


def accuracy(a, b, h):
    """Share of the mutual nearest neighbours within 3 px, and how many these are."""
    product = a[3] @ b[3].T
    forth, back = product.argmax(1), product.argmax(0)
    mutual = np.flatnonzero(back[forth] == np.arange(len(forth)))
    places = np.c_[a[0][mutual], np.ones(len(mutual))] @ h.T
    right = np.hypot(*(places[:, :2] / places[:, 2:] - b[0][forth[mutual]]).T) <= 3
    return right.mean(), right.sum()


def series_accuracy(detect):
    """(share, count) of pairs 1–2 to 1–6 of every series, shape series × pairs × 2."""
    result = []
    for series in SERIES:
        folder = DATA / "homography" / series
        found = [detect(cv2.imread(str(folder / f"img{i}.png"), cv2.IMREAD_GRAYSCALE)) for i in range(1, 7)]
        result.append([accuracy(found[0], found[i - 1], homography(series, i)) for i in range(2, 7)])
    return np.array(result)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        print(f"OpenCV {cv2.__version__}, `SIFT_create(enable_precise_upscale=True)`\n")
        print(
            "| photo | ours | OpenCV | in common | median px | p95 px | mean offset x, y px | descriptors apart |\n"
            "|---|---:|---:|---:|---:|---:|---:|---:|"
        )
        for photo in PHOTOS:
            parity(photo, folder)
        print("| bar | | | ≥ 85 % | ≤ 0.01 | | ≤ 0.01 | ≤ 0.15 |\n")
        mine = series_accuracy(lambda grey: ours(grey, folder, "--max-features", str(FEATURES)))
        theirs = series_accuracy(lambda grey: opencv(grey, FEATURES))
        print(f"Within 3 px of the true homography, {FEATURES} features, pairs 1–2 to 1–6:\n")
        print("| series | ours | OpenCV | right matches, ours | OpenCV |\n|---|---:|---:|---:|---:|")
        for k, series in enumerate(SERIES):
            (m, mc), (t, tc) = mine[k].mean(0), theirs[k].mean(0)
            print(f"| {series} | {m:.1%} | {t:.1%} | {mc:.0f} | {tc:.0f} |")
        (m, mc), (t, tc) = mine.mean((0, 1)), theirs.mean((0, 1))
        mark = bar(m >= t, "matching accuracy of OpenCV")
        print(f"| all 15 pairs | {m:.2%}{mark} | {t:.2%} | {mc:.0f} | {tc:.0f} |")
    print("\nBars missed: " + "; ".join(missed) if missed else "\nEvery bar is met.")
    sys.exit(bool(missed))


main()
