"""
Tie points of two photographs
=============================

A bookshelf from two places. Its matches are verified by the epipolar geometry: each point of one photograph must lie near
a line in the other.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tiepoint as tp

PHOTOGRAPHS = Path("tiepoint-demo")           # the command `tiepoint demo` makes it
left = tp.read(PHOTOGRAPHS / "bookshelf-left.jpg")
right = tp.read(PHOTOGRAPHS / "bookshelf-right.jpg")

# %%
# Features of both, and what they have in common.

sift = tp.Sift(root=True)
tie = tp.tie_points(sift.detect(left), sift.detect(right), "fundamental")
print(tie)

# %%
# Every eighth tie point, coloured by its distance from the epipolar line.

some = np.flatnonzero(tie.inliers)[::8]
away = tie.model.residuals(tie.xy_a[some], tie.xy_b[some])
colours = plt.cm.viridis(away / 3)

figure, axes = plt.subplots(figsize=(11, 4.2), layout="constrained")
axes.imshow(np.hstack([left, right]), cmap="gray")
for (x, y), (u, v), colour in zip(tie.xy_a[some], tie.xy_b[some], colours, strict=True):
    axes.plot([x, u + left.shape[1]], [y, v], "-", color=colour, linewidth=0.6)
axes.set_axis_off()
scale = plt.cm.ScalarMappable(plt.Normalize(0, 3), "viridis")
figure.colorbar(scale, ax=axes, label="pixels from the epipolar line", shrink=0.8)
plt.show()
