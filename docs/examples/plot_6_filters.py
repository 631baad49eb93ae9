"""
Filters
=======

What the detectors are built from: smoothing, gradients, blobs.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import tiepoint as tp

PHOTOGRAPHS = Path("tiepoint-demo")           # the command `tiepoint demo` makes it
image = tp.read(PHOTOGRAPHS / "coffee.jpg")
green = image[..., 1].copy()

# %%

views = {
    "image": image,
    "gauss, σ 4": tp.filter.gauss(image, 4.0),
    "gradient": tp.filter.sobel(green),
    "gradient in x": tp.filter.sobel(green, "gx"),
}
figure, axes = plt.subplots(2, 2, figsize=(9, 6.2), layout="constrained")
for axis, (title, shown) in zip(axes.flat, views.items(), strict=True):
    axis.imshow(shown, cmap="gray")
    axis.set_title(title)
    axis.set_axis_off()
plt.show()
