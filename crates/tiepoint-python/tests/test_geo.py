"""Rasters, told by what they have and not by what they are."""

import json

import numpy as np
import pytest
import tiepoint as tp
from tiepoint import geo


class Dataset:
    """What rasterio's datasets have."""

    def __init__(self, bands, transform, crs="EPSG:32632", nodata=None):
        self._bands, self.transform, self.crs, self.nodata = bands, transform, crs, nodata
        self.count = len(bands)

    def read(self, indexes):
        return self._bands[[i - 1 for i in indexes]]


class Array:
    """What xarray's arrays have with rioxarray."""

    def __init__(self, dataset):
        self.values = dataset._bands
        self.rio = type("Rio", (), {"transform": lambda self: dataset.transform, "crs": dataset.crs, "nodata": dataset.nodata})()


TRANSFORM = (2.0, 0.0, 500_000.0, 0.0, -2.0, 4_600_000.0, 0.0, 0.0, 1.0)


def rasters(scene, dtype=np.uint16):
    scale = 200 if np.dtype(dtype).kind != "u" or np.dtype(dtype).itemsize > 1 else 1
    reference, moving = (image.astype(dtype) * dtype(scale) for image in (scene.reference, scene.moving))
    return Dataset(reference[None], TRANSFORM), Dataset(moving[None], (1, 0, 0, 0, 1, 0))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.float64])
def test_the_result_lies_on_the_reference_s_grid(scene, truth, dtype):
    fixed, moving = rasters(scene, dtype)
    found = geo.register(fixed, moving, device="cpu")
    assert found.warped.transform == TRANSFORM[:6] and found.warped.crs == "EPSG:32632"
    assert found.warped.image.shape == scene.reference.shape
    u, v, x, y = found.ground_control_points().T
    where = tp.Model("homography", np.linalg.inv(truth)).apply(np.column_stack([u, v]) - 0.5)
    assert np.abs(np.column_stack([x, y]) - found.fixed.to_map(where)).max() < 2 * 3.5
    again = geo.register(Array(fixed), Array(moving), device="cpu")
    assert again == found


def test_corners_and_centres(scene):
    raster = geo.read(rasters(scene)[0])
    assert raster.to_map([[-0.5, -0.5], [0, 0]]).tolist() == [[500_000, 4_600_000], [500_001, 4_599_999]]


def test_pixels_without_data_do_not_count(scene):
    fixed, moving = rasters(scene)
    fixed._bands = fixed._bands.copy()
    fixed._bands[:, :, :100] = 7
    fixed.nodata = 7
    assert not geo.read(fixed).mask[:, :100].any()
    tie = geo.register(fixed, moving, device="cpu").registration.tie_points
    assert len(tie) > 50 and tie.b.xy[:, 0].min() >= 99.5


def test_tie_points_are_written_for_qgis_and_as_geojson(tmp_path, scene):
    found = geo.register(*rasters(scene), device="cpu")
    n = int(found.registration.tie_points.inliers.sum())
    geo.write_points(tmp_path / "moving.tif.points", found)
    lines = (tmp_path / "moving.tif.points").read_text().splitlines()
    assert lines[:2] == ["#CRS: EPSG:32632", "mapX,mapY,sourceX,sourceY,enable,dX,dY,residual"] and len(lines) == n + 2
    x, y, u, v, *_ = (float(value) for value in lines[2].split(","))
    assert [u, -v, x, y] == found.ground_control_points()[0].tolist()
    geo.write_geojson(tmp_path / "ties.geojson", found)
    page = json.loads((tmp_path / "ties.geojson").read_text())
    assert len(page["features"]) == n and page["features"][0]["geometry"]["coordinates"] == [x, y]
    assert max(feature["properties"]["residual"] for feature in page["features"]) <= 3


def test_what_is_no_raster():
    with pytest.raises(tp.ImageError, match="ndarray is no raster"):
        geo.read(np.zeros((3, 4), np.uint8))
    with pytest.raises(tp.ImageError, match="one to four bands"):
        geo.read(Dataset(np.zeros((7, 3, 4), np.uint8), TRANSFORM))
    assert geo.read(Dataset(np.zeros((7, 3, 4), np.uint8), TRANSFORM), bands=[4, 3, 2]).image.shape == (3, 4, 3)
