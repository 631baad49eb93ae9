"""
Disparities, depth and what is hidden
=====================================

A synthetic pair with exact truth. Pixels that the right camera does not see have no disparity, and a reason.
"""

import matplotlib.pyplot as plt
import numpy as np
import tiepoint as tp

pair = tp.synth.stereo((480, 320), disparities=(4, 56), surfaces=12, noise=0.01, seed=7)
found = tp.Stereo(disparities=64, reasons=True).compute(pair.left, pair.right)
print(found)
score = tp.evaluate.disparity(found, pair.truth_left, mask=pair.visible)
print(f"{100 * score.bad[0]:.2f} % of the visible pixels are off by more than 1")

# %%

figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
axes[0, 0].imshow(pair.left, cmap="gray")
axes[0, 1].imshow(found.disparity, cmap="turbo", vmin=4, vmax=56)
axes[1, 0].imshow(pair.truth_left, cmap="turbo", vmin=4, vmax=56)
why = np.ma.masked_equal(found.reasons, 0)
axes[1, 1].imshow(why, cmap="tab10", vmin=0, vmax=9, interpolation="nearest")
titles = ["left image", "disparity", "truth", "why there is none"]
for axis, title in zip(axes.flat, titles, strict=True):
    axis.set_title(title)
    axis.set_axis_off()
handles = [plt.Rectangle((0, 0), 1, 1, color=plt.cm.tab10(i)) for i in range(1, 6)]
reasons = ["no data", "ambiguous", "occluded", "inconsistent", "speckle"]
axes[1, 1].legend(handles, reasons, loc="lower right", fontsize="small")
plt.show()

# %%
# With a calibration, disparities are depth, and points in space.

camera = tp.Calibration(focal=500, principal=(239.5, 159.5), baseline=0.1)
xyz, rgb = found.points(camera)
print(f"{len(xyz)} points, from {xyz[:, 2].min():.2f} to {xyz[:, 2].max():.2f} m")
