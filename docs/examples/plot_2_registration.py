"""
Registration
============

A cup of coffee, and the same turned, nearer and darker. The homography is found to a fraction of a pixel.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tiepoint as tp

PHOTOGRAPHS = Path("tiepoint-demo")           # the command `tiepoint demo` makes it
fixed = tp.read(PHOTOGRAPHS / "coffee.jpg")
height, width = fixed.shape[:2]

# %%
# The moving image is made by a known homography, so that the result can be judged.

angle, zoom = np.radians(24), 1.25
turn = zoom * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
middle = np.array([width - 1, height - 1]) / 2
truth = np.eye(3)
truth[:2, :2], truth[:2, 2] = turn, middle - turn @ middle
truth[2, :2] = 2e-4, -1e-4
moving = (tp.warp(fixed, truth) * 0.7).astype(np.uint8)

# %%
# From the moving image to the fixed one:

found = tp.register(fixed, moving)
error = tp.evaluate.corner_error(found.model.inverse(), truth, (width, height))
print(found)
print(f"mean error of the corners: {error:.3f} pixels")

# %%

figure, axes = plt.subplots(1, 3, figsize=(11, 2.9), layout="constrained")
squares = (np.indices((height, width)) // 50).sum(0)[..., None] % 2
views = {"fixed": fixed, "moving": moving, "in squares, one and the other": np.where(squares, fixed, found.warped)}
for axis, (title, image) in zip(axes, views.items(), strict=True):
    axis.imshow(image)
    axis.set_title(title)
    axis.set_axis_off()
plt.show()
