"""Type annotations: mypy reports wrong calls and accepts right ones."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tiepoint as tp

SNIPPET = '''
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import tiepoint as tp

image = np.zeros((40, 50), np.uint8)
a = tp.Sift(preset="opencv").detect(image)
matches: tp.Matches = tp.match(a, a)[:5]
tie: tp.TiePoints = tp.tie_points(a, a)[[1, 2]]
H, inliers = tp.estimate(a.xy, a.xy, "essential", K=np.eye(3))
array: np.ndarray = tp.read("a.png")
moved = tp.warp(image.tolist(), H, interpolation="lanczos")[3:5]
tp.register(image, image, "affine", progress=lambda state: print(state.task, state.done))
tp.Stereo(paths=4, cost="mi").compute(image, memoryview(b""))

tp.Sift(preset="cv")  # wrong
tp.Stereo(paths=3)  # wrong
tp.Sift().detect(tp.Device())  # wrong
tp.Sift().detect(3)  # wrong
tp.Sift().detect("a.png")  # wrong
tp.register(image, image, "fundamental")  # wrong
tp.register(image, image, interpolation="area")  # wrong
tp.tie_points(a, a, "projective")  # wrong
tp.estimate(a.xy, a.xy, "planar")  # wrong
tp.filter.gauss(image, border="wrap")  # wrong
drawn: np.ndarray = tp.draw(a, tp.synth.texture((40, 50)))
words: str = tp.draw(a, image)  # wrong
count: int = tp.synth.texture()  # wrong
number: int = tp.read("a.png")  # wrong
text: str = tp.warp(image, H)  # wrong
a.xyz  # wrong
assert_type(a.xy[:, 0], npt.NDArray[np.float32])
assert_type(matches.pairs, npt.NDArray[np.int64])
assert_type(tie.reasons[0]["text"], str)
assert_type(tp.warp(image, H), npt.NDArray[Any])
assert_type(tp.filter.gauss(image), npt.NDArray[Any])
assert_type(tp.filter.hessian(image), npt.NDArray[np.float32])
assert_type(tp.register(image, image).warped, npt.NDArray[Any])
assert_type(tp.Stereo().compute(image, image).disparity, npt.NDArray[np.float32])
assert_type(tp.synth.scene().moving, npt.NDArray[Any])
assert_type(tp.Collection("work").status()["pairs"], int | None)
'''


#: A script with OpenCV's names, annotated as its authors would.
OPENCV = '''
import numpy as np
import numpy.typing as npt
import tiepoint.cv2compat as cv2

Grey = npt.NDArray[np.uint8]


class Aligner:
    def __init__(self) -> None:
        self.detector: cv2.Feature2D = cv2.SIFT_create(nfeatures=500)
        self.matcher: cv2.DescriptorMatcher = cv2.FlannBasedMatcher(dict(algorithm=1, trees=5), dict(checks=50))
        self.found: list[cv2.KeyPoint] = []

    def align(self, a: Grey, b: Grey) -> Grey | None:
        kp1, des1 = self.detector.detectAndCompute(a, None)
        kp1[0].point  # wrong
        kp2, des2 = self.detector.detectAndCompute(b, mask=None)
        if des1 is None or des2 is None:
            return None
        good: list[cv2.DMatch] = []
        for m, n in self.matcher.knnMatch(des1, des2, k=2):
            if m.distance < 0.7 * n.distance:
                good.append(m)
        src = np.array([kp1[m.queryIdx].pt for m in good], np.float32).reshape(-1, 1, 2)
        dst = np.array([kp2[m.trainIdx].pt for m in good], np.float32).reshape(-1, 1, 2)
        H, mask = cv2.findHomography(src, dst, cv2.RANSAC, 5.0)
        if H is None:
            return None
        print(int(mask.sum()), sorted(self.matcher.match(des1, des2), key=lambda m: m.distance)[0].distance)
        warped: Grey = cv2.warpPerspective(a, H, (a.shape[1], a.shape[0]))
        return warped


def disparity(left: Grey, right: Grey) -> npt.NDArray[np.float32]:
    stereo: cv2.StereoSGBM = cv2.StereoSGBM_create(numDisparities=64, blockSize=5, mode=cv2.STEREO_SGBM_MODE_HH)
    stereo.setUniquenessRatio(10)
    cv2.ximgproc.createDisparityWLSFilter(stereo).setLambda(8000.0)
    return stereo.compute(left, right).astype(np.float32) / 16.0


def pose(p: npt.NDArray[np.float64], q: npt.NDArray[np.float64], K: npt.NDArray[np.float64]) -> int:
    E, mask = cv2.findEssentialMat(p, q, K, method=cv2.RANSAC, prob=0.999, threshold=1.0)
    n, R, t, _ = cv2.recoverPose(E, p, q, K, mask=mask)
    M, inliers = cv2.estimateAffinePartial2D(p, q)
    words = cv2.BOWKMeansTrainer(40).cluster(np.zeros((50, 128), np.float32))
    print(None if M is None else M[0, 2], inliers.sum(), words.shape, cv2.xfeatures2d.SURF_create(400).descriptorSize())
    return int(n)


cv2.findHomography(3.5)  # wrong
cv2.SIFT_create(500).detectAndCompute()  # wrong
cv2.SIFT_create(features=500)  # wrong
cv2.BFMatcher(cv2.NORM_L2).knnMatch(np.zeros((5, 8)), np.zeros((5, 8)), k=2)[0][0].train  # wrong
cv2.StereoSGBM_create(numDisparities=64).compute(np.zeros((5, 5)))  # wrong
number: int = cv2.StereoSGBM_create().compute(np.zeros((5, 5)), np.zeros((5, 5)))  # wrong
'''


CHECKERS = {
    "mypy": ["--strict", "--no-error-summary", "--cache-dir", "../mypy", "snippet.py"],
    "pyright": ["--pythonpath", sys.executable, "snippet.py"],
}


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("snippet", [SNIPPET, OPENCV], ids=["tiepoint", "cv2compat"])
def test_checkers_find_what_is_wrong_and_nothing_else(snippet, checker, tmp_path):
    pytest.importorskip(checker)
    if checker == "pyright" and shutil.which("node") is None:
        pytest.skip("pyright needs Node")
    (tmp_path / "snippet.py").write_text(snippet)
    found = subprocess.run(
        [sys.executable, "-m", checker, *CHECKERS[checker]],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(tp.__file__).parents[1])},
    )
    lines = snippet.splitlines()
    wanted = {i + 1 for i, line in enumerate(lines) if line.endswith("# wrong")}
    told = {int(line) for line in re.findall(r"snippet\.py:(\d+):.*\berror: ", found.stdout.replace(" - error", ": error"))}
    assert told == wanted, found.stdout + found.stderr
    assert "tiepoint/" not in found.stdout, found.stdout
