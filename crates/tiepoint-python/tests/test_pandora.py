"""The plug-in for Pandora from the documentation, in Pandora's pipeline."""

import pathlib
import runpy

import numpy as np
import pytest

pandora = pytest.importorskip("pandora")
PLUGIN = pathlib.Path(__file__).parents[3] / "docs/pandora/tiepoint_pandora.py"


@pytest.fixture(scope="module")
def plugin():
    return runpy.run_path(str(PLUGIN))["TiepointOptimization"]


def images(pair, band):
    from pandora.img_tools import add_disparity
    import xarray as xr

    def image(pixels, disparities):
        rows, columns = pixels.shape
        data = xr.Dataset(
            {"im": (["row", "col"], pixels.astype(np.float32))},
            coords={"row": np.arange(rows), "col": np.arange(columns)},
        )
        if band:
            # As in CARS; what is not matched is of no use.
            data = xr.concat([data, 0 * data], dim="band_im").assign_coords(band_im=[band, "other"])
        data.attrs = {"no_data_img": 0, "valid_pixels": 0, "no_data_mask": 1, "crs": None, "transform": None}
        return add_disparity(data, disparities, window=None)

    return image(pair.left, [-39, 0]), image(pair.right, [0, 39])


@pytest.mark.parametrize(
    ("cost", "options"),
    [
        ({"matching_cost_method": "census", "window_size": 5}, {"scale": 1, "P1": 10, "P2": 39}),
        ({"matching_cost_method": "census", "window_size": 5, "band": "b0"}, {"scale": 1}),
        ({"matching_cost_method": "zncc", "window_size": 5}, {}),
    ],
)
def test_pandora_finds_the_truth_with_it(plugin, pair, cost, options):
    def bad(steps):
        machine = pandora.state_machine.PandoraMachine()
        pipeline = {
            "matching_cost": {**cost, "subpix": 1},
            **steps,
            "disparity": {"disparity_method": "wta", "invalid_disparity": "NaN"},
            "filter": {"filter_method": "median", "filter_size": 3},
        }
        left, right = images(pair, cost.get("band"))
        found, _ = pandora.run(machine, left, right, {"pipeline": pipeline})
        wrong = np.abs(-found["disparity_map"].data - pair.truth_left) > 1
        return wrong[pair.visible != 0].mean()

    ours = bad({"optimization": {"optimization_method": "tiepoint", **options}})
    assert ours < 0.12 and ours < 0.5 * bad({})
    with pytest.raises(KeyError, match="paths, P1, P2"):
        plugin(None, optimization_method="tiepoint", P3=1)
    with pytest.raises(ValueError, match="scale"):
        plugin(None, optimization_method="tiepoint", P1=1)
