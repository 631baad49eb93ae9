"""Type annotations: mypy reports wrong calls and accepts right ones."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tiepoint as tp

SNIPPET = '''
import numpy as np
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
tp.register(image, image, interpolation="nearest")  # wrong
tp.tie_points(a, a, "projective")  # wrong
tp.estimate(a.xy, a.xy, "planar")  # wrong
tp.filter.gauss(image, border="wrap")  # wrong
number: int = tp.read("a.png")  # wrong
text: str = tp.warp(image, H)  # wrong
'''


def test_mypy_finds_what_is_wrong_and_nothing_else(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", tmp_path / "cache", "snippet.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(tp.__file__).parents[1])},
    )
    lines = SNIPPET.splitlines()
    wanted = {i + 1 for i, line in enumerate(lines) if line.endswith("# wrong")}
    told = {int(line) for line in re.findall(r"^snippet\.py:(\d+): error", found.stdout, re.MULTILINE)}
    assert told == wanted, found.stdout + found.stderr
    assert "tiepoint/" not in found.stdout, found.stdout
