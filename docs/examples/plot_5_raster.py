"""
A scene on the map
==================

A scene without a place is laid on a reference that has one: tie points in map coordinates, and the scene on the reference's
grid. Tuples stand in for files here; datasets of rasterio and arrays of xarray are taken as they are.
"""

import matplotlib.pyplot as plt
import numpy as np
import tiepoint as tp

truth = [[0.94, -0.24, 60], [0.24, 0.94, -45], [0, 0, 1]]
plane = tp.synth.scene((480, 360), truth, seed=11, noise=0.01, dtype="uint16")
place = (0.5, 0.0, 500_000.0, 0.0, -0.5, 4_600_000.0)       # half a metre a pixel

scene = plane.moving.copy()
scene[:, :80] = 0                                           # the edge of the swath
found = tp.raster.register((plane.reference, place, "EPSG:32632"), (scene, None, None, 0), "affine")
print(found)
print(found.gcps[0])

# %%

left, bottom = place[2], place[5] + place[4] * 360
extent = (left, left + place[0] * 480, bottom, place[5])
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
axes[0].imshow(scene, cmap="gray")
axes[0].set_title("scene: columns and rows")
axes[0].plot(*found.xy_moving.T, ".", color="#f0a35e", markersize=3)
axes[1].imshow(plane.reference, cmap="gray", extent=extent, alpha=0.35)
warped = np.ma.masked_where(found.warped.mask == 0, found.warped.values)
axes[1].imshow(warped, cmap="gray", extent=extent)
axes[1].plot(*found.xy_map.T, ".", color="#f0a35e", markersize=3)
axes[1].set_title("on the reference's grid, EPSG:32632")
axes[1].ticklabel_format(useOffset=False, style="plain")
axes[1].locator_params(nbins=4)
plt.show()
