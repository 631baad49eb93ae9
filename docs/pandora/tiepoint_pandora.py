"""Semi-Global Matching of tiepoint as the step "optimization" of Pandora, and so of CARS.

    "optimization": {"optimization_method": "tiepoint", "paths": 8}

Other keys: "P1" and "P2", the penalties in units of the matching cost, and "scale", by which costs become whole numbers
(`tiepoint.Stereo.optimize`): 1 for a census, nothing for costs that are fractions. Penalties need a scale.
"""

import numpy as np
import tiepoint as tp
from pandora.optimization.optimization import AbstractOptimization


@AbstractOptimization.register_subclass("tiepoint")
class TiepointOptimization(AbstractOptimization):
    """Sums of the cost volume over paths of 4, 5, 8 or 16 directions."""

    def __init__(self, _img, **cfg):
        self.cfg = {"paths": 8, "P1": None, "P2": None, "scale": None, **cfg}
        unknown = set(self.cfg) - {"optimization_method", "paths", "P1", "P2", "scale"}
        if unknown:
            raise KeyError(f"optimization: {', '.join(sorted(unknown))}: expected paths, P1, P2, scale")
        if self.cfg["scale"] is None and (self.cfg["P1"], self.cfg["P2"]) != (None, None):
            raise ValueError("optimization: P1 and P2 are in units of the cost: say its scale, 1 for a census")

    def desc(self):
        print("Semi-Global Matching of tiepoint")

    def optimize_cv(self, cv, img_left, img_right):
        """Replaces the costs by their sums; what is unknown stays unknown."""
        volume = cv["cost_volume"]
        # Pandora's disparity is what is added to x, that of tiepoint what is taken from it.
        offsets = volume.coords["disp"].data
        sign = -1 if cv.attrs["type_measure"] == "max" else 1
        costs = np.ascontiguousarray(sign * volume.data[:, :, ::-1], dtype=np.float32)
        scale = self.cfg["scale"]
        penalty = {
            ours: None if self.cfg[theirs] is None else round(self.cfg[theirs] * scale)
            for ours, theirs in (("p1", "P1"), ("p2", "P2"))
        }
        stereo = tp.Stereo(
            disparities=len(offsets), min_disparity=-int(offsets.max()), paths=self.cfg["paths"], **penalty
        )
        # CARS has a dimension of bands, of which one was matched.
        pictures = [image["im"] for image in (img_left, img_right)]
        pictures = [im.sel(band_im=cv.attrs["band_correl"]) if "band_im" in im.dims else im for im in pictures]
        left, right = (picture.data.astype(np.float32) for picture in pictures)
        sums = stereo.aggregate(costs, left, right, scale=scale)[:, :, ::-1].astype(np.float32)
        volume.data[...] = np.where(np.isfinite(volume.data), sign * sums, np.nan)
        cv.attrs["cmax"] = float(sums.max())
        return cv
