"""
Repeatability
=============

A plane is turned and brought nearer; how many features of SIFT and SURF are found again at the same place, and how many matches
are correct.
"""

import matplotlib.pyplot as plt
import numpy as np
import tiepoint as tp

SIZE = (480, 360)
DETECTORS = {"SIFT": tp.Sift(max_features=800), "SURF": tp.Surf(max_features=800)}


def turned(degrees, zoom):
    """A turn about the middle of the image."""
    c, s = zoom * np.cos(np.radians(degrees)), zoom * np.sin(np.radians(degrees))
    x, y = (SIZE[0] - 1) / 2, (SIZE[1] - 1) / 2
    return np.array([[c, -s, x - c * x + s * y], [s, c, y - s * x - c * y], [0, 0, 1]])


# %%

angles = np.arange(0, 91, 15)
again, right = ({name: [] for name in DETECTORS} for _ in range(2))
for degrees in angles:
    scene = tp.synth.scene(SIZE, turned(degrees, 1.2), seed=1, noise=0.01)
    for name, detector in DETECTORS.items():
        a, b = detector.detect(scene.reference), detector.detect(scene.moving)
        again[name].append(tp.evaluate.repeatability(a, b, scene.moving_from_reference).share)
        i, j = tp.match(a, b).pairs.T
        right[name].append(tp.evaluate.matching_accuracy(a.xy[i], b.xy[j], scene.moving_from_reference)[2])

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
for axis, title, values in [(axes[0], "features found again", again), (axes[1], "matches correct within 3 pixels", right)]:
    for (name, shares), marker in zip(values.items(), "os", strict=True):
        axis.plot(angles, 100 * np.array(shares), marker=marker, label=name)
    axis.set(title=title, xlabel="turned by (degrees)", ylim=(0, 103), xticks=angles)
    axis.grid(alpha=0.3)
axes[0].set_ylabel("%")
axes[0].legend()
plt.show()
