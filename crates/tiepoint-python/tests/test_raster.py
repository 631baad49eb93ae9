"""Rasters: transform, CRS and nodata go in, the reference's grid comes out; also with rasterio and xarray, if installed."""

import dataclasses
import doctest
import json
import os
import pickle
import subprocess
import sys
import types
import warnings
import zipfile

import numpy as np
import pytest
import tiepoint as tp
from tiepoint import raster

#: Half a metre a pixel, north up.
PLACE = (0.5, 0.0, 300_000.0, 0.0, -0.5, 5_000_000.0)
CRS = "EPSG:32633"
#: From reference to moving: turned by 5°, shifted.
TURN = [[0.99619, -0.08716, 14.0], [0.08716, 0.99619, -9.0], [0, 0, 1]]


@pytest.fixture(scope="module")
def scene():
    return tp.synth.scene((320, 240), TURN, seed=3)


@pytest.fixture(scope="module")
def found(scene):
    return raster.register((scene.reference, PLACE, CRS), (scene.moving,), "affine", device="cpu")


def map_of(xy):
    a, b, c, d, e, f = PLACE
    x, y = np.asarray(xy, float).T + 0.5
    return np.stack([a * x + b * y + c, d * x + e * y + f], 1)


def test_the_warped_raster_lies_on_the_references_grid(scene, found):
    warped = found.warped
    assert warped.values.dtype == np.uint8 and warped.values.shape == (240, 320)
    assert (warped.transform, warped.crs, warped.nodata) == (PLACE, CRS, None)
    inside = warped.mask != 0
    assert 0.8 < inside.mean() < 1
    difference = np.abs(warped.values[inside].astype(int) - scene.reference[inside])
    assert difference.mean() < 3
    assert (warped.values[~inside] == 0).all()


def test_control_points_are_places_on_the_map(scene, found):
    assert 50 < len(set(found.gcps)) == len(found.gcps) < found.registration.tie_points.inliers.sum(), "each place once"
    xy = np.array([(p.col - 0.5, p.row - 0.5) for p in found.gcps])
    true = map_of(scene.moving_from_reference.inverse().apply(xy))
    away = np.linalg.norm(true - [(p.x, p.y) for p in found.gcps], axis=1)
    assert np.median(away) < 0.15  # metres: 0.3 pixels
    assert away.max() < 2
    assert {p.z for p in found.gcps} == {0.0}


def test_the_moving_rasters_own_transform(scene, found):
    a, b, c, d, e, f = found.moving_transform
    corners = np.array([[0, 0], [319, 0], [0, 239], [319, 239]], float)
    x, y = corners.T + 0.5
    placed = np.stack([a * x + b * y + c, d * x + e * y + f], 1)
    true = map_of(scene.moving_from_reference.inverse().apply(corners))
    assert np.abs(placed - true).max() < 0.15
    homography = raster.register((scene.reference, PLACE), (scene.moving,), device="cpu")
    with pytest.raises(tp.OptionError, match="homography"):
        _ = homography.moving_transform


def test_qgis_points(found, tmp_path):
    found.to_qgis_points(tmp_path / "moving.points")
    head, names, *rows = (tmp_path / "moving.points").read_text().splitlines()
    assert head == f"#CRS: {CRS}"
    assert names == "mapX,mapY,sourceX,sourceY,enable,dX,dY,residual"
    table = np.array([[float(v) for v in row.split(",")] for row in rows])
    gcps = np.array(found.gcps)
    assert np.array_equal(table[:, :2], gcps[:, 2:4])
    assert np.array_equal(table[:, 2], gcps[:, 1]) and np.array_equal(table[:, 3], -gcps[:, 0])
    assert (table[:, 4] == 1).all() and (table[:, 7] <= 3).all()
    assert [path.name for path in tmp_path.iterdir()] == ["moving.points"]


def test_qgis_points_without_a_coordinate_system_are_pixels(scene, command, tmp_path):
    """As those of the command, which reads them again."""
    a, b, c, d, e, f = PLACE
    tp.write(tmp_path / "map.png", scene.reference)
    (tmp_path / "map.pgw").write_text("\n".join(map(repr, (a, d, b, e, c + a / 2, f + e / 2))))
    tp.write(tmp_path / "moving.png", scene.moving)
    found = raster.register((scene.reference, PLACE), (scene.moving, PLACE), "affine", device="cpu")
    found.to_qgis_points(tmp_path / "ours.points")
    command("match", tmp_path / "moving.png", tmp_path / "map.png", "--model", "affine", "-o", tmp_path / "theirs.points", check=True)
    ours, theirs = (np.loadtxt(tmp_path / name, delimiter=",", skiprows=1) for name in ("ours.points", "theirs.points"))
    assert np.array_equal(ours[:, :5], theirs[:, :5])
    pair = (tmp_path / "map.png", tmp_path / "moving.png")
    command("register", *pair, "--matches", tmp_path / "ours.points", "--model", "affine", check=True)


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
def test_a_virtual_raster_places_the_file_by_its_points(found, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    bands = found.moving.bands
    profile = {"count": len(bands), "dtype": bands.dtype, "height": bands.shape[1], "width": bands.shape[2]}
    with rasterio.open(tmp_path / "a & b.tif", "w", driver="GTiff", **profile) as file:
        file.write(bands)
    found.to_vrt(tmp_path / "placed.vrt", tmp_path / "a & b.tif")
    with rasterio.open(tmp_path / "placed.vrt") as placed:
        points, crs = placed.gcps
        assert np.array_equal(placed.read(), bands) and placed.dtypes[0] == bands.dtype
    assert crs == rasterio.crs.CRS.from_user_input(found.reference.crs)
    told = [(p.row, p.col, p.x, p.y, p.z) for p in points]
    assert np.allclose(told, np.array(found.gcps), rtol=1e-12), "every point, where it was"


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
def test_a_virtual_raster_is_of_the_part_that_was_registered(scene, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    whole = raster.Raster(scene.moving, rasterio.Affine(*PLACE), CRS)
    with rasterio.open(tmp_path / "moving.tif", "w", **whole.profile) as file:
        file.write(whole.bands)
    part, place = scene.moving[20:220, 30:280], (0.5, 0, 300_015, 0, -0.5, 4_999_990)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "moving.tif", "moving.tif")
    found = raster.register((scene.reference, PLACE, CRS), (part, place), "affine", device="cpu")
    for name in (tmp_path / "moving.tif", f"/vsizip/{tmp_path}/a.zip/moving.tif", f"zip://{tmp_path}/a.zip!moving.tif"):
        found.to_vrt(tmp_path / "placed.vrt", name)
        with rasterio.open(tmp_path / "placed.vrt") as placed:
            assert np.array_equal(placed.read(1), part)
    pillow = pytest.importorskip("PIL.Image")
    exif = pillow.Exif()
    for orientation, values, transform in ((1, part, None), (1, scene.moving[::-1], (0.5, 0, 3e5, 0, 0.5, 5e6 - 120)), (4, None, None)):
        exif[274] = orientation
        pillow.fromarray(scene.moving).save(tmp_path / "turned.jpg", exif=exif, quality=95)
        moving = tp.read(tmp_path / "turned.jpg") if values is None else values
        found = dataclasses.replace(found, moving=raster.Raster(moving, transform))
        with pytest.raises(tp.OptionError, match="neither the file as GDAL reads it, 320x240, nor a part of it"):
            found.to_vrt(tmp_path / "placed.vrt", tmp_path / ("moving.tif" if orientation == 1 else "turned.jpg"))
    found = dataclasses.replace(found, moving=raster.Raster(tp.read(tmp_path / "turned.jpg", orient=False)))
    found.to_vrt(tmp_path / "placed.vrt", tmp_path / "turned.jpg")


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
@pytest.mark.parametrize(("bands", "how"), [(1, "mask"), (4, "alpha"), (2, "alpha"), (1, "nodata")])
def test_a_virtual_raster_leaves_out_what_its_file_leaves_out(scene, command, tmp_path, bands, how):
    rasterio = pytest.importorskip("rasterio")
    shown = np.full((240, 320), 255, np.uint8)
    shown[:30] = 0
    values = np.stack([np.where(shown, np.maximum(scene.moving, 1), 0).astype(np.uint8)] * bands)
    profile = {"alpha": "YES", "photometric": "RGB" if bands == 4 else "MINISBLACK"} if how == "alpha" else {}
    size = {"count": bands, "dtype": "uint8", "height": 240, "width": 320, "nodata": 0 if how == "nodata" else None}
    with rasterio.open(tmp_path / "moving.tif", "w", driver="GTiff", **size, **profile) as file:
        if how == "alpha":
            values[-1] = shown
        file.write(values)
        if how == "mask":
            file.write_mask(shown)
    found = raster.register((scene.reference, PLACE, CRS), tmp_path / "moving.tif", "affine", device="cpu")
    found.to_vrt(tmp_path / "placed.vrt", tmp_path / "moving.tif")
    with rasterio.open(tmp_path / "placed.vrt") as placed:
        assert np.array_equal(placed.dataset_mask(), shown)
        assert np.array_equal(placed.read(), values[: bands - (how == "alpha")])
    # So does the command's, which says that it cannot name a coordinate system without a number.
    profile = {"count": 1, "dtype": "uint8", "height": 240, "width": 320, "crs": "ESRI:54009"}
    profile["transform"] = rasterio.Affine(2, 0, 1e5, 0, -2, 2e5)
    with rasterio.open(tmp_path / "map.tif", "w", driver="GTiff", **profile) as file:
        file.write(scene.reference, 1)
    run = command("match", tmp_path / "moving.tif", tmp_path / "map.tif", "--model", "affine", "-o", tmp_path / "theirs.vrt")
    assert b"map.tif: its coordinate system has no EPSG number" in run.stderr
    with rasterio.open(tmp_path / "theirs.vrt") as placed:
        assert np.array_equal(placed.dataset_mask(), shown)
    run = command("match", tmp_path / "moving.tif", tmp_path / "map.tif", "--model", "affine", "-o", tmp_path / "theirs.points")
    assert b"mapX and mapY are pixels" in run.stderr and b"#CRS" not in (tmp_path / "theirs.points").read_bytes()
    # Nor does a map that lies there by control points alone.
    points = [rasterio.control.GroundControlPoint(y, x, 2 * x, -2 * y) for x, y in ((0, 0), (320, 0), (0, 240))]
    with rasterio.open(tmp_path / "map.tif", "w", **{**profile, "driver": "GTiff", "transform": None, "crs": None}) as file:
        file.write(scene.reference, 1)
        file.gcps = (points, rasterio.crs.CRS.from_epsg(32632))
    run = command("match", tmp_path / "moving.tif", tmp_path / "map.tif", "--model", "affine", "-o", tmp_path / "theirs.points")
    assert b"map.tif: it lies on the map by control points alone" in run.stderr and b"mapX and mapY are pixels" in run.stderr
    found = raster.register(tmp_path / "map.tif", tmp_path / "moving.tif", "affine", device="cpu")
    found.warped.save(tmp_path / "warped.tif")
    with rasterio.open(tmp_path / "warped.tif") as file:
        kept, crs = file.gcps
        assert np.array_equal(file.dataset_mask(), found.warped.mask)
    assert [(p.row, p.col, p.x, p.y) for p in kept] == [(p.row, p.col, p.x, p.y) for p in points] and crs.to_epsg() == 32632


@pytest.mark.parametrize(("names", "photometric"), [("blue green red", "MINISBLACK"), ("red green blue", "RGB")])
def test_colours_that_bands_show_are_kept(scene, command, tmp_path, names, photometric):
    rasterio = pytest.importorskip("rasterio")
    colours = [getattr(rasterio.enums.ColorInterp, name) for name in (*names.split(), "undefined")]
    profile = {"driver": "GTiff", "count": 4, "dtype": "uint8", "height": 240, "width": 320}
    profile["transform"] = rasterio.Affine(2, 0, 1e5, 0, -2, 2e5)
    with rasterio.open(tmp_path / "bgrn.tif", "w", photometric=photometric, alpha="no", **profile) as file:
        file.write(np.stack([scene.moving] * 4))
        file.colorinterp = colours
    with rasterio.open(tmp_path / "map.tif", "w", **{**profile, "count": 1}) as file:
        file.write(scene.reference, 1)
    pair = [tmp_path / "map.tif", tmp_path / "bgrn.tif"]
    command("register", *pair, "--model", "affine", "-o", tmp_path / "theirs.tif", check=True)
    warped = raster.register(*pair, "affine", device="cpu").warped
    warped.save(tmp_path / "ours.tif")
    for name in ("ours.tif", "theirs.tif"):
        with rasterio.open(tmp_path / name) as file:
            assert list(file.colorinterp) == colours
    assert raster.read(tmp_path / "ours.tif") == dataclasses.replace(warped, transform=profile["transform"])
    with rasterio.open(tmp_path / "plain.tif", "w", **warped.profile) as file:
        assert "alpha" not in [colour.name for colour in file.colorinterp]


@pytest.mark.parametrize("written", ["to_qgis_points", "to_geojson", "report"])
def test_written_files_are_whole_and_touch_no_other_file(found, tmp_path, written):
    real, link, others = tmp_path / "real", tmp_path / "link", tmp_path / "link.under-way"
    real.write_text("before")
    link.symlink_to(real)
    others.write_text("of another program")
    write = getattr(found, written, lambda path: tp.report(found.registration, path))
    write(link)
    assert link.is_symlink() and len(real.read_text()) > 100
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "link.under-way", "real"]
    assert others.read_text() == "of another program"
    with pytest.raises(OSError, match="no such"):
        write(tmp_path / "no such" / "file")


def test_qgis_points_of_a_georeferenced_raster(scene, tmp_path):
    wrong = (0.5, 0.0, 300_007.0, 0.0, -0.5, 5_000_003.0)
    found = raster.register((scene.reference, PLACE, CRS), (scene.moving, wrong, CRS), "affine", device="cpu")
    found.to_qgis_points(tmp_path / "moving.points")
    table = np.loadtxt(tmp_path / "moving.points", delimiter=",", skiprows=2)
    assert np.allclose(table[:, 2:4], found.moving.to_map(found.xy_moving))
    assert (table[:, 3] > 4_999_000).all()


def test_the_number_of_a_coordinate_system_is_its_epsg_code(found, tmp_path):
    reference = dataclasses.replace(found.reference, crs=np.int64(32633))
    numbered = dataclasses.replace(found, reference=reference)
    for write in (lambda of, path: of.to_vrt(path, "moving.tif"), lambda of, path: of.to_qgis_points(path)):
        written = []
        for of in (found, numbered):
            write(of, tmp_path / "written")
            written.append((tmp_path / "written").read_text())
        assert written[0] == written[1]
    assert repr(reference) == repr(found.reference)


@pytest.mark.parametrize(
    ("crs", "member"),
    [
        (CRS, "urn:ogc:def:crs:EPSG::32633"),
        (32633, "urn:ogc:def:crs:EPSG::32633"),
        ("EPSG:4326", None),
        ('GEOGCS["WGS 84",AUTHORITY["EPSG","4326"]]', None),
        ('PROJCRS["UTM",BASEGEOGCRS["WGS 84",ID["EPSG",4326]],ID["EPSG",32633]]', "urn:ogc:def:crs:EPSG::32633"),
        (None, None),
        ('LOCAL_CS["a grid"]', 'LOCAL_CS["a grid"]'),
    ],
)
def test_geojson(scene, tmp_path, crs, member):
    found = raster.register((scene.reference, PLACE, crs), (scene.moving,), "affine", device="cpu")
    found.to_geojson(tmp_path / "ties.geojson")
    page = json.loads((tmp_path / "ties.geojson").read_text())
    assert page["type"] == "FeatureCollection"
    assert ("crs" in page) == (member is not None)
    if member is not None:
        assert page["crs"] == {"type": "name", "properties": {"name": member}}
    places = [feature["geometry"]["coordinates"] for feature in page["features"]]
    assert np.array_equal(places, found.xy_map)
    assert all(feature["properties"]["residual"] <= 3 for feature in page["features"])


def test_pixels_without_data_take_no_part_in_warping(scene):
    moving = scene.moving.astype(np.float32)
    moving[60:90, 100:140] = -9999
    found = raster.register((scene.reference, PLACE, CRS), (moving, None, None, -9999), "affine", device="cpu")
    warped = found.warped
    assert warped.nodata == -9999
    assert ((warped.values == -9999) == (warped.mask == 0)).all()
    inside = warped.mask != 0
    assert warped.values[inside].min() > -40  # bicubic weights overshoot a little; a share of -9999 would be far less
    middle = found.model.apply([[119.5, 74.5]])[0].round().astype(int)
    assert warped.mask[middle[1], middle[0]] == 0
    for lacking in (-9999, 9999):
        moving[60:90, 100:140] = lacking
        for values in (moving, np.stack([moving.astype(np.int16)] * 3), np.stack([scene.moving.astype(np.float32), moving])):
            bands = None if len(values) != 2 else [2]
            with pytest.warns(UserWarning, match=f"1200 pixels of .* hold {lacking}.0, far from all others.*nodata={lacking}.0"):
                raster.register((np.stack([scene.reference] * 3), PLACE), (values,), "affine", bands=bands, device="cpu")


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
def test_a_hole_invalidates_the_support_of_the_interpolation(interpolation):
    """The image is 1 everywhere but for a hole: any valid value other than 1 has taken part of the hole."""
    image = tp.synth.texture((200, 160), seed=4, dtype="float32")
    holed = image.copy()
    holed[70:80, 90:100] = np.nan
    found = raster.register((image, PLACE), (holed,), "similarity", interpolation=interpolation, device="cpu")
    flat = raster._warped(
        raster.Raster(np.where(np.isnan(holed), np.nan, 1).astype(np.float32)),
        found.reference, found.registration, interpolation, (np.dtype("f4"), np.nan, np.nan), "cpu",
    )
    inside = flat.mask != 0
    assert np.abs(flat.values[inside] - 1).max() < 1e-5
    assert np.isnan(flat.values[~inside]).all() and 100 <= (~inside).sum() < 1200


def test_a_collar_of_zeros_is_not_matched(scene):
    """Both rasters have a collar of zeros, whose corners would suggest the identity; the content does not."""
    pair = []
    for image in (scene.reference, scene.moving):
        collared = np.zeros_like(image)
        collared[20:-20, 20:-20] = np.maximum(image, 1)[20:-20, 20:-20]
        pair.append((collared, PLACE, CRS, 0))
    found = raster.register(*pair, "affine", device="cpu")
    corners = np.array([[40, 40], [280, 40], [40, 200], [280, 200]], float)
    true = scene.moving_from_reference.inverse().apply(corners)
    assert np.abs(found.model.apply(corners) - true).max() < 0.5


@pytest.mark.parametrize(
    ("dtype", "kept", "nodata"),
    [
        ("uint8", "uint8", None), ("uint16", "uint16", None), ("int16", "int16", None),
        ("float32", "float32", np.nan), ("float64", "float32", np.nan), ("int32", "float32", np.nan),
    ],
)
def test_types(scene, dtype, kept, nodata):
    bands = np.stack([scene.moving.astype(dtype)] * 5)
    found = raster.register((scene.reference, PLACE), (bands,), "affine", device="cpu")
    assert found.warped.values.shape == (5, 240, 320) and found.warped.values.dtype == kept
    np.testing.assert_equal(found.warped.nodata, nodata)
    inside = found.warped.mask != 0
    assert np.abs(found.warped.values[4][inside].astype(float) - scene.reference[inside]).mean() < 3


@pytest.mark.parametrize(("dtype", "nodata"), [("f4", 0.0), ("f8", 0.0), ("u2", 0.0), ("i2", -5.0)])
def test_the_order_of_bytes_changes_nothing(scene, dtype, nodata):
    moving = scene.moving.astype(dtype)
    moving[:40] = nodata
    found = [
        raster.register((scene.reference, PLACE), (moving.astype(order + dtype), None, None, nodata), "affine", device="cpu").warped
        for order in "<>"
    ]
    assert found[1].values.dtype.isnative and np.array_equal(*(one.values for one in found), equal_nan=True)
    assert np.array_equal(found[0].nodata, found[1].nodata, equal_nan=True)


def test_a_registration_has_the_verdict_of_its_pixels(found):
    assert found.verdict == found.registration.verdict == "good"


def test_bands_that_are_searched(scene):
    noise = np.random.default_rng(0).integers(0, 255, scene.moving.shape, np.uint8)
    pair = [(np.stack([noise, image]), PLACE) for image in (scene.reference, scene.moving)]
    found = raster.register(*pair, "affine", bands=[2], device="cpu")
    assert len(found.gcps) > 50
    for bands in ([], [3], [0], [1, 2]):
        with pytest.raises(tp.OptionError, match="bands"):
            raster.register(*pair, bands=bands, device="cpu")


def test_results_are_printed_pickled_and_compared(found):
    assert "EPSG:32633" in repr(found) and "EPSG:32633" in repr(found.warped)
    assert pickle.loads(pickle.dumps(found.warped)) == found.warped
    assert found._repr_png_().startswith(b"\x89PNG") and "<table>" in found._repr_html_()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((np.array([["a"]]),), "holds"),
        ((np.zeros((2, 2, 2, 2)),), "shape"),
        ((np.zeros((0, 4)),), "shape"),
        ((np.zeros((4, 4), complex),), "holds"),
        ((np.zeros((4, 4)), (1, 2, 3)), "six numbers"),
        ((np.zeros((4, 4)), (0, 0, 0, 0, 0, 0)), "inverted"),
        ((np.zeros((4, 4)), (1, 0, float("nan"), 0, 1, 0)), "finite"),
        ((np.zeros((4, 4)), (300_000.0, 0.5, 0.0, 5_000_000.0, 0.0, -0.5)), "GDAL's order .*: expected a, b, c, d, e, f"),
        ((np.zeros((4, 4)), None, None, None, 5), "parts"),
        ((np.zeros((4, 4)), None, None, [0, 0]), r"nodata of a raster is \[0, 0\]: expected one number"),
        ((np.zeros((4, 4)), None, None, "none"), "expected one number"),
        (types.SimpleNamespace(data_vars={"red": 0, "nir": 0}, dims=(), coords={}), "Dataset of xarray: expected .*'red', 'nir'"),
        (3, "int is no raster"),
        (None, "no raster"),
    ],
)
def test_objects_that_are_no_raster_are_errors(given, message):
    with pytest.raises(tp.ImageError, match=message):
        raster.read(given)


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
def test_a_container_names_what_it_holds(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["red"], file["nir"] = np.ones((2, 9, 9), np.uint8)
    with pytest.raises(tp.ImageError, match=r"container of 2 others: expected one of them, such as 'HDF5:.*//(red|nir)'"):
        raster.read(tmp_path / "a.h5")
    with rasterio.open(tmp_path / "a.h5") as dataset:
        assert raster.read(dataset.subdatasets[0]).shape == (9, 9)


def test_a_path_needs_rasterio(monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(tp.ImageError, match=r"a path, 'scene\.tif', which rasterio would open"):
        raster.read("scene.tif")


def test_wrong_options_and_missing_places(scene, found):
    with pytest.raises(tp.OptionError, match="interpolation"):
        raster.register((scene.reference,), (scene.moving,), interpolation="area")
    with pytest.raises(tp.OptionError, match="nodata"):
        raster.register((scene.reference,), (scene.moving,), nodata=-1, device="cpu")
    with pytest.raises(tp.OptionError, match="option fill is 77: .* nodata"):
        raster.register((scene.reference,), (scene.moving,), fill=77)
    with pytest.raises(tp.OptionError, match="option bands is 1: expected a list of one or three from 1 to 1"):
        raster.register((scene.reference,), (scene.moving,), bands=1)
    for show in (tp.draw, tp.report):
        with pytest.raises(tp.OptionError, match=r"of RasterRegistration|for RasterRegistration: expected its \.registration"):
            show(found)
    for odd in (np.nan, np.inf, 0.5, -9999, [7], "7"):
        told = raster.register((scene.reference,), (scene.moving, None, None, odd), "affine", device="cpu").warped.nodata
        assert told == (7 if odd in ([7], "7") else None), "no value of a byte is no nodata"
    placeless = raster.register((scene.reference,), (scene.moving,), "affine", device="cpu")
    with pytest.raises(tp.OptionError, match="transform"):
        _ = placeless.gcps


def test_the_example_of_the_documentation():
    told = doctest.testmod(raster)
    assert told.attempted > 0 and told.failed == 0


class Dataset:
    """A stand-in for a rasterio dataset."""

    def __init__(self, bands, transform, colours):
        self._bands = bands
        self.indexes = tuple(range(1, len(bands) + 1))
        self.colorinterp = tuple(types.SimpleNamespace(name=colour) for colour in colours)
        self.transform, self.crs, self.nodatavals = transform, CRS, [None] * len(bands)

    def read(self, indexes):
        return self._bands[[i - 1 for i in indexes]]

    def read_masks(self, index):
        return self._bands[-1]


def test_a_stand_in_of_a_dataset(scene):
    alpha = np.full_like(scene.reference, 255)
    alpha[:, :30] = 0
    bands = np.stack([scene.reference] * 3 + [alpha])
    dataset = Dataset(bands, (1, 0, 0, 0, 1, 0), ["red", "green", "blue", "alpha"])
    understood = raster.read(dataset)
    assert understood.values.shape == (3, 240, 320) and understood.transform is None
    assert np.array_equal(understood.valid(), alpha)
    dataset.transform = PLACE
    found = raster.register(dataset, (scene.moving,), "affine", device="cpu")
    assert found.warped.crs == CRS and (found.xy_reference[:, 0] >= 29).all()


class Array:
    """A stand-in for a DataArray."""

    def __init__(self, values, dims, coords, attrs):
        self.values, self.dims, self.coords, self.attrs = values, dims, coords, attrs


def axis(values, **attrs):
    return types.SimpleNamespace(values=np.asarray(values), attrs=attrs)


def test_a_stand_in_of_a_data_array():
    values = np.arange(24, dtype=np.uint16).reshape(4, 3, 2)  # y, x, band
    coords = {"y": axis([7.0, 5.0, 3.0, 1.0]), "x": axis([10.0, 11.0, 12.0]), "spatial_ref": axis(0, crs_wkt="WKT")}
    understood = raster.read(Array(values, ("y", "x", "band"), coords, {"_FillValue": 0}))
    assert understood.transform == (1.0, 0.0, 9.5, 0.0, -2.0, 8.0)
    assert (understood.crs, understood.nodata) == ("WKT", 0.0)
    assert np.array_equal(understood.values, np.moveaxis(values, -1, 0))
    assert np.array_equal(understood.to_map([[0, 0]]), [[10.0, 7.0]])
    coords["x"] = axis([10.0, 11.0, 13.0])
    with pytest.raises(tp.ImageError, match="evenly"):
        raster.read(Array(values, ("y", "x", "band"), coords, {}))
    with pytest.raises(tp.ImageError, match="dimensions"):
        raster.read(Array(values, ("a", "b", "c"), {}, {}))


def test_a_stand_in_of_rioxarray_s_accessor():
    array = Array(np.zeros((4, 3), np.uint8), ("y", "x"), {}, {})
    array.rio = types.SimpleNamespace(transform=lambda: (*PLACE, 0, 0, 1), crs=CRS, nodata=7)
    understood = raster.read(array)
    assert (understood.transform[:6], understood.crs, understood.nodata) == (PLACE, CRS, 7)


def test_rasterio(scene, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    place = rasterio.Affine(*PLACE)
    moving = np.stack([scene.moving.astype(np.int16), scene.moving.astype(np.int16) + 1000])
    moving[:, :20] = -32768
    common = {"driver": "GTiff", "height": 240, "width": 320}
    with rasterio.open(
        tmp_path / "map.tif", "w", count=1, dtype="uint8", crs=CRS, transform=place, **common
    ) as file:
        file.write(scene.reference, 1)
    with rasterio.open(
        tmp_path / "scene.tif", "w", count=2, dtype="int16", nodata=-32768, crs=CRS,
        transform=rasterio.Affine(0.5, 0, 300_001.5, 0, -0.5, 4_999_998), **common
    ) as file:
        file.write(moving)
    with rasterio.open(tmp_path / "map.tif") as fixed, rasterio.open(tmp_path / "scene.tif") as laid:
        found = raster.register(fixed, laid, "affine", device="cpu")
    assert raster.register(tmp_path / "map.tif", str(tmp_path / "scene.tif"), "affine", device="cpu").warped == found.warped
    warped = found.warped
    for bare in (found.warped, raster.register((scene.reference, place, CRS), scene.moving, "affine", device="cpu").warped):
        with rasterio.open(tmp_path / "bare.tif", "w", **bare.profile) as file:
            file.write(bare.bands)
            file.write_mask(bare.mask)
        assert 0.7 < (bare.mask != 0).mean() < 1
        assert np.array_equal(raster.read(tmp_path / "bare.tif").valid(), bare.mask)
    warped.save(tmp_path / "out.tif", compress="deflate")
    with rasterio.open(tmp_path / "out.tif") as file:
        assert (file.crs.to_epsg(), file.transform, file.nodata) == (32633, place, -32768)
        assert np.array_equal(file.read(), warped.values)
        assert np.array_equal(file.dataset_mask(), warped.mask)
    inside = warped.mask != 0
    assert np.abs(warped.values[1][inside] - 1000 - scene.reference[inside].astype(float)).mean() < 3

    from rasterio.control import GroundControlPoint
    from rasterio.transform import from_gcps

    fitted = from_gcps([GroundControlPoint(*p) for p in found.gcps])
    assert np.allclose(tuple(fitted)[:6], found.moving_transform, rtol=1e-3, atol=0.05)

    found.to_geojson(tmp_path / "ties.geojson")
    page = json.loads((tmp_path / "ties.geojson").read_text())
    assert page["crs"]["properties"]["name"] == "urn:ogc:def:crs:EPSG::32633"
    found.to_qgis_points(tmp_path / "scene.points")
    assert (tmp_path / "scene.points").read_text().startswith('#CRS: PROJCS["WGS 84 / UTM zone 33N"')


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
@pytest.mark.parametrize(("dtype", "kind"), [("uint8", "Byte"), ("int16", "Int16"), ("float32", "Float32")])
def test_each_band_of_a_dataset_may_have_a_nodata_of_its_own(scene, tmp_path, dtype, kind):
    """As in what gdalbuildvrt -separate writes."""
    rasterio = pytest.importorskip("rasterio")
    values = np.stack([(scene.moving // 2 + 100).astype(dtype)] * 2)
    values[0, :20], values[1, 60:140, 80:220] = 1, 2
    with rasterio.open(tmp_path / "both.tif", "w", driver="GTiff", count=2, dtype=dtype, height=240, width=320) as file:
        file.write(values)
    bands = "".join(
        f'<VRTRasterBand dataType="{kind}" band="{i}"><NoDataValue>{i}</NoDataValue><SimpleSource><SourceFilename relativeToVRT="1">'
        f"both.tif</SourceFilename><SourceBand>{i}</SourceBand></SimpleSource></VRTRasterBand>"
        for i in (1, 2)
    )
    (tmp_path / "both.vrt").write_text(f'<VRTDataset rasterXSize="320" rasterYSize="240">{bands}</VRTDataset>')
    found = raster.register((scene.reference, PLACE), tmp_path / "both.vrt", "affine", device="cpu")
    for band, own in zip(found.moving.bands, (1, 2), strict=True):
        assert np.array_equal(found.moving._known(band[None])[0], values[own - 1] != own)
    there = found.warped._known(found.warped.bands)
    assert found.warped.bands[there].min() > 90, "neither is mixed with data"
    assert 10_000 < (there[0] & ~there[1]).sum() < 13_000
    found.to_vrt(tmp_path / "placed.vrt", tmp_path / "both.vrt")
    with rasterio.open(tmp_path / "placed.vrt") as placed:
        assert placed.nodatavals == (1, 2)


def test_the_command_keeps_the_place_of_the_reference(scene, tmp_path):
    """`tiepoint register`, whose warped image lies where `raster.register` puts it."""
    rasterio = pytest.importorskip("rasterio")
    if not (command := os.environ.get("TIEPOINT")):
        assert not os.environ.get("TIEPOINT_REQUIRE_COMMAND"), "TIEPOINT names no command"
        pytest.skip("no command to compare with: TIEPOINT names it")
    tilted = rasterio.Affine(0.5, 0.1, 300_000.0, 0.1, -0.5, 5_000_000.0)
    for i, (place, profile) in enumerate([(rasterio.Affine(*PLACE), {}), (tilted, {"BIGTIFF": "YES", "compress": "lzw"})]):
        with rasterio.open(
            tmp_path / "map.tif", "w", driver="GTiff", height=240, width=320, count=1, dtype="uint8", crs=CRS,
            transform=place, **profile
        ) as file:
            file.write(scene.reference, 1)
        tp.write(tmp_path / "moving.png", scene.moving)
        call = [command, "register", tmp_path / "map.tif", tmp_path / "moving.png", "--model", "affine", "--device", "cpu"]
        said = subprocess.run([*call, "-o", tmp_path / f"{i}.tif"], capture_output=True, text=True, check=True)
        assert "does not hold" not in said.stderr
        with rasterio.open(tmp_path / f"{i}.tif") as file, rasterio.open(tmp_path / "map.tif") as reference:
            ours = raster.register(reference, (scene.moving,), "affine", device="cpu").warped
            assert file.crs == reference.crs == ours.crs and file.crs.to_epsg() == 32633
            assert file.transform.almost_equals(place) and ours.transform.almost_equals(place)
            inside = ours.mask != 0
            assert np.array_equal(file.read(1)[inside], ours.values[inside]) and inside.mean() > 0.7
    said = subprocess.run([*call, "-o", tmp_path / "out.png"], capture_output=True, text=True, check=True)
    assert "out.png does not hold the place of" in said.stderr


@pytest.mark.parametrize(
    ("dtype", "bands", "nodata", "lacking", "profile"),
    [
        ("uint8", 1, 0, [0], {}),
        ("uint8", 3, None, "mask", {"photometric": "RGB"}),
        ("uint8", 4, 0, [0, 1, 2, 3], {"photometric": "RGB", "alpha": "NO"}),
        ("uint8", 4, 0, [3], {"photometric": "RGB", "alpha": "NO"}),
        ("uint16", 4, 65535, [0, 1, 2, 3], {}),
        ("uint16", 3, 0, [1], {"photometric": "MINISBLACK"}),
        ("float32", 3, -9999, [0, 1, 2], {}),
        ("float32", 3, -9999, [1], {}),
        ("float32", 2, None, [1], {}),
        ("int16", 2, -32768, [1], {}),
    ],
)
def test_the_command_has_the_same_pixels(scene, command, tmp_path, dtype, bands, nodata, lacking, profile):
    """Whichever bands are searched, and whichever lack data."""
    rasterio = pytest.importorskip("rasterio")
    tp.write(tmp_path / "map.tif", scene.reference)
    values = np.stack([np.roll(scene.moving, 40 * i) if i else scene.moving for i in range(bands)]).astype(dtype)
    hole = np.zeros(scene.moving.shape, bool)
    hole[40:90, 60:150] = True
    if lacking != "mask":
        for band in lacking:
            values[band, hole] = np.nan if nodata is None else nodata
    how = {"driver": "GTiff", "count": bands, "dtype": dtype, "height": 240, "width": 320, "crs": CRS}
    place = rasterio.Affine(*PLACE)
    with rasterio.open(tmp_path / "moving.tif", "w", transform=place, nodata=nodata, **how, **profile) as file:
        file.write(values)
        if lacking == "mask":
            file.write_mask(~hole)
    run = command("register", tmp_path / "map.tif", tmp_path / "moving.tif", "--model", "affine", "-o", tmp_path / "out.tif", "--json")
    found = raster.register(scene.reference, tmp_path / "moving.tif", "affine", device="cpu")
    assert np.array_equal(np.reshape(json.loads(run.stdout)["matrix"], (3, 3)), found.model.matrix)
    written, warped = tp.read(tmp_path / "out.tif"), found.warped
    written = written[None] if bands == 1 else np.moveaxis(written, -1, 0)[:bands]
    if dtype == "int16":
        written = np.rint(written)
    assert warped.values.dtype == dtype and np.array_equal(written, warped.bands, equal_nan=dtype == "float32")
    if nodata is not None:
        assert ((warped.bands == nodata).all(0) == (warped.mask == 0)).all()


@pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")  # of rioxarray itself
def test_rioxarray(scene, tmp_path):
    rioxarray = pytest.importorskip("rioxarray")
    rasterio = pytest.importorskip("rasterio")
    written = raster.Raster(scene.reference, rasterio.Affine(*PLACE), CRS, 0)
    with rasterio.open(tmp_path / "map.tif", "w", **written.profile) as file:
        file.write(written.bands)
    with rioxarray.open_rasterio(tmp_path / "map.tif") as array:
        understood = raster.read(array)
    assert (tuple(understood.transform)[:6], understood.nodata, understood.crs.to_epsg()) == (PLACE, 0, 32633)
    assert np.array_equal(understood.values, written.bands)


def test_xarray(scene):
    xarray = pytest.importorskip("xarray")
    fixed = raster.Raster(scene.reference, PLACE, CRS, 0).to_xarray()
    assert isinstance(fixed, xarray.DataArray) and fixed.dims == ("y", "x")
    understood = raster.read(fixed)
    assert (understood.transform, understood.crs, understood.nodata) == (PLACE, CRS, 0)
    bare = xarray.DataArray(fixed.values, dims=("y", "x"), coords={"x": fixed.x.values, "y": fixed.y.values})
    assert np.allclose(raster.read(bare).transform, PLACE)
    rounded = fixed.assign_coords(x=fixed.x.astype("f4"), y=fixed.y.astype("f4"))
    assert raster.read(rounded).transform == PLACE, "the exact one that the attribute tells"
    packed = xarray.Dataset({"a": (("y", "x"), scene.moving, {"_FillValue": np.uint8(0), "scale_factor": 0.5, "add_offset": -30.0})})
    decoded, lacking = xarray.decode_cf(packed)["a"], scene.moving == 0
    assert (decoded == 0).any() and np.array_equal(raster.read(decoded).valid() == 0, lacking), "0 is data once it is decoded"
    moving = xarray.DataArray(np.stack([scene.moving] * 2), dims=("band", "y", "x"))
    found = raster.register(fixed, moving, "affine", device="cpu")
    again = raster.read(found.warped.to_xarray())
    assert again.transform == PLACE and again.crs == CRS
    assert np.array_equal(again.valid(), found.warped.mask) and (again.valid() == 0).any()
    turned = raster.read(found.warped.to_xarray().transpose("x", "band", "y")[::-1])
    assert np.array_equal(turned.valid(), found.warped.mask[:, ::-1])
    assert "valid" not in fixed.coords, "nodata says it"
    assert np.array_equal(again.values, found.warped.values) and again.values.shape == (2, 240, 320)


@pytest.mark.parametrize("place", [PLACE, (1e-5, 0.0, 3.25, 0.0, -1e-5, 45.5), (0.5, 0.1, 300_000.0, 0.1, -0.5, 5_000_000.0)])
@pytest.mark.parametrize(
    "part", [(slice(50, 150), slice(100, 300)), (slice(None, None, 2), slice(1, None, 3)), (slice(None, None, -1), slice(None))]
)
def test_a_part_of_an_array_keeps_its_place(scene, place, part):
    """Cut, thinned or turned; the attribute GeoTransform that goes with it is that of the whole."""
    pytest.importorskip("xarray")
    whole = raster.Raster(scene.reference, place, CRS)
    array = whole.to_xarray()
    assert raster.read(array).transform == place
    rows, columns = part
    cut = raster.read(array.isel(y=rows, x=columns))
    corners = [(0, 0), (0, -1), (-1, 0), (-1, -1)]
    there = np.array([(np.arange(320)[columns][c], np.arange(240)[rows][r]) for r, c in corners])
    own = [(range(cut.shape[1])[c], range(cut.shape[0])[r]) for r, c in corners]
    assert np.allclose(cut.to_map(own), whole.to_map(there), rtol=0, atol=1e-3 * place[0])
    for wrong in ([0, 1, 3], [5]):
        with pytest.raises(tp.ImageError, match="evenly|expected two or more"):
            raster.read(array.isel(x=wrong))


def test_netcdf_of_gdal(scene):
    """Rows from south to north under a north-up GeoTransform, and a grid mapping of any name."""
    pytest.importorskip("xarray")
    north_up = raster.Raster(scene.reference, (1e-5, 0.0, 3.25, 0.0, -1e-5, 45.5), "EPSG:4326").to_xarray()
    named = north_up.rename(y="lat", x="lon", spatial_ref="transverse_mercator")[::-1]
    for told in (named.attrs, named.encoding):
        told["grid_mapping"] = "transverse_mercator"
        understood = raster.read(named)
        assert understood.crs == "EPSG:4326" and np.array_equal(understood.values, scene.reference[::-1])
        assert np.allclose(understood.transform, (1e-5, 0, 3.25, 0, 1e-5, 45.5 - 240e-5), rtol=1e-9, atol=1e-12)
        told.clear()


def test_a_colour_photograph_is_three_bands(scene):
    colour = np.stack([scene.reference, scene.reference, 255 - scene.reference], -1)
    read = raster.read((colour, PLACE, CRS))
    assert read.shape == (240, 320) and np.array_equal(read.bands, np.moveaxis(colour, -1, 0))
    other = np.stack([scene.moving, scene.moving, 255 - scene.moving], -1)
    found = raster.register((colour, PLACE, CRS), (other,), "affine", device="cpu")
    assert found.warped.values.shape == (3, 240, 320) and len(found.gcps) > 50


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
@pytest.mark.parametrize("colours", ["gray alpha", "gray undefined alpha", "red green blue undefined alpha"])
def test_what_alpha_hides_beside_any_number_of_bands_holds_no_data(scene, tmp_path, colours):
    rasterio = pytest.importorskip("rasterio")
    hole = np.zeros(scene.moving.shape, bool)
    hole[40:120, 60:200] = True
    colours = [rasterio.enums.ColorInterp[name] for name in colours.split()]
    values = np.where(hole, 255, scene.moving // 2).astype(np.uint8)
    size = {"count": len(colours), "dtype": "uint8", "height": 240, "width": 320}
    photometric = "RGB" if len(colours) > 3 else "MINISBLACK"
    with rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", photometric=photometric, **size) as file:
        file.colorinterp = colours
        file.write(np.stack([values] * (len(colours) - 1) + [np.where(hole, 0, 255).astype(np.uint8)]))
    moving = raster.read(tmp_path / "a.tif")
    assert np.array_equal(moving.valid() == 0, hole) and len(moving.bands) == len(colours) - 1
    warped = raster.register((scene.reference, PLACE), moving, "affine", device="cpu").warped
    assert warped.bands[:, warped.valid() != 0].max() < 160, "nothing of what is hidden"


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float32])
def test_bands_lack_data_one_by_one_and_colours_together(scene, dtype):
    hole = np.zeros(scene.moving.shape, bool)
    hole[60:140, 80:220] = True
    values = (scene.moving // 2 + 100).astype(dtype)
    bands = np.stack([values, values, np.where(hole, 0, values).astype(dtype)])
    place = (scene.reference, PLACE)
    apart = raster.Raster(bands, nodata=0, searched=(1,))
    third = raster.register(place, apart, "affine", device="cpu").warped.bands[2]
    assert not ((third > 0) & (third < 90)).any() and (third == 0).sum() > 10_000
    if np.dtype(dtype).kind == "u":
        colours = raster.Raster(bands, nodata=0, searched=(1, 2, 3))
        third = raster.register(place, colours, "affine", device="cpu").warped.bands[2]
        assert ((third > 0) & (third < 90)).any(), "0 is a value of blue where pure yellow is"


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
def test_a_virtual_raster_says_of_bands_what_the_file_says(scene, command, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    size = {"count": 2, "dtype": "int32", "height": 240, "width": 320, "nodata": -7}
    with rasterio.open(tmp_path / "moving.tif", "w", driver="GTiff", **size) as file:
        file.write(np.stack([scene.moving.astype(np.int32)] * 2))
        file.scales, file.offsets, file.units = (0.5, 2), (1, 0), ("m", "K")
        file.set_band_description(1, "red & edge")
    profile = {"count": 1, "dtype": "uint8", "height": 240, "width": 320, "crs": CRS, "transform": rasterio.Affine(*PLACE)}
    with rasterio.open(tmp_path / "map.tif", "w", driver="GTiff", **profile) as file:
        file.write(scene.reference, 1)
    found = raster.register(tmp_path / "map.tif", tmp_path / "moving.tif", "affine", device="cpu")
    found.to_vrt(tmp_path / "ours.vrt", tmp_path / "moving.tif")
    command("match", tmp_path / "moving.tif", tmp_path / "map.tif", "--model", "affine", "-o", tmp_path / "theirs.vrt", check=True)

    def told(name):
        with rasterio.open(tmp_path / name) as file:
            return file.dtypes, file.nodatavals, file.scales, file.offsets, file.units, file.descriptions, file.colorinterp

    assert told("ours.vrt") == told("moving.tif")
    assert told("theirs.vrt") == told("moving.tif")
    found.warped.save(tmp_path / "ours.tif")
    assert told("ours.tif")[2:] == told("moving.tif")[2:]


@pytest.mark.filterwarnings("ignore:Dataset has no geotransform")
def test_a_camera_by_polynomials_stays_with_its_pixels(scene, command, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    ones = [1.0] + [0.0] * 19
    camera = rasterio.rpc.RPC(100, 500, 40, 1, ones, ones, 120, 120, 10, 1, ones, ones, 160, 160)
    with rasterio.open(tmp_path / "map.tif", "w", driver="GTiff", count=1, dtype="uint8", height=240, width=320) as file:
        file.rpcs = camera
        file.write(scene.reference, 1)
    tp.write(tmp_path / "moving.png", scene.moving)
    for canvas in ("reference", "union"):
        words = ("register", tmp_path / "map.tif", tmp_path / "moving.png", "-o", tmp_path / "o.tif", "--canvas", canvas)
        at = json.loads(command(*words, "--json", check=True).stdout)["reference_at"]
        with rasterio.open(tmp_path / "o.tif") as file:
            found = file.rpcs
        assert (found.samp_off, found.line_off) == (160 + at[0], 120 + at[1])
        assert (found.lat_off, found.height_off, found.samp_scale) == (40, 100, 160)


def test_the_mask_of_a_masked_array_counts(scene):
    hole = np.zeros(scene.moving.shape, bool)
    hole[40:120, 60:200] = True
    bands = np.stack([scene.moving] * 3)
    for masked in (np.ma.masked_array(scene.moving, hole), np.ma.masked_array(bands, np.stack([hole] * 3))):
        assert np.array_equal(raster.read((masked, PLACE)).valid() == 0, hole)
        found = raster.register((scene.reference, PLACE), (masked,), "affine", device="cpu")
        whole = raster.register((scene.reference, PLACE), (masked.data,), "affine", device="cpu")
        assert 0 < (found.warped.mask != 0).sum() < (whole.warped.mask != 0).sum()
    one_band = np.ma.masked_array(bands.astype(np.float32), np.stack([hole, ~hole & False, ~hole & False]))
    placed = raster.register((scene.reference, PLACE), one_band, "affine", device="cpu").warped
    lacking = np.isnan(placed.values)
    assert not (lacking[1:] & (placed.mask != 0)).any(), "the other bands have data there"
    assert (lacking[0] & ~lacking[1]).sum() > 10_000
    both = raster.Raster(np.ma.masked_array(scene.moving, hole), mask=~hole.T.T)
    assert np.array_equal(both.valid() == 0, hole)


def test_bands_of_a_masked_array_may_lack_data_each_for_itself(scene):
    hole = np.zeros(scene.moving.shape, bool)
    hole[40:120, 60:200] = True
    apart, heights = np.stack([hole, hole & False]), scene.moving.astype(np.int16) + 100
    ends = np.where(heights % 2, -32768, 32767).astype(np.int16)
    for values, fill, given, nodata in (
        (heights, -9999, None, -9999),  # as rasterio reads a file
        (heights, 150, None, -32768),  # the fill value is data
        (heights, -9999, -5, -5),
        (heights, -9999, -99999, -9999),  # beyond the type
        (ends, 32767, None, -32767),
        (scene.moving.clip(1, 255), None, None, 0),
        (scene.moving > 99, None, None, 255),
    ):
        masked = np.ma.masked_array(np.stack([values, values]), apart, fill_value=fill)
        last = np.ma.masked_array(np.moveaxis(masked.data, 0, -1), np.moveaxis(apart, 0, -1), fill_value=fill)
        for form in (masked, last):
            found = raster.Raster(form, nodata=given)
            assert found.nodata == nodata and np.array_equal(found.values == nodata, apart), (fill, given)
            assert np.array_equal(found.values[1], values) and found.valid().all()
    whole = np.ma.masked_array(np.stack([np.arange(256, dtype=np.uint8).reshape(16, 16)] * 2), apart[:, 35:51, 50:66])
    with pytest.raises(tp.ImageError, match=r"all values of uint8 are data.*astype"):
        raster.Raster(whole)
    assert np.isnan(raster.Raster(whole.astype(np.float32)).values).any()

    masked = np.ma.masked_array(np.stack([heights, heights]), apart, fill_value=-9999)
    placed = raster.register((scene.reference, PLACE), masked, "affine", device="cpu")
    assert placed.warped.nodata == -9999 and placed.warped.values[placed.warped.values != -9999].min() > 50
    x, y = placed.registration.tie_points.xy_a.astype(int).T
    assert len(x) > 100 and not hole[y, x].any()


def test_a_colour_of_a_masked_array_lacks_data_as_the_pixel_does(scene):
    hole = np.zeros(scene.moving.shape, bool)
    hole[40:120, 60:200] = True
    red = np.stack([hole, hole & False, hole & False])
    colours = np.stack([scene.moving.clip(1, 255)] * 3)
    for form, mask in ((colours, red), (np.moveaxis(colours, 0, -1), np.moveaxis(red, 0, -1))):
        found = raster.register((scene.reference, PLACE), np.ma.masked_array(form, mask), "affine", device="cpu")
        assert np.array_equal(found.moving.valid() == 0, hole), "as Sift.detect has it"
        assert not hole[tuple(found.registration.tie_points.xy_a.astype(int).T[::-1])].any()
    features = tp.Sift(device="cpu").detect(np.ma.masked_array(form, mask))
    assert not hole[tuple(features.xy.astype(int).T[::-1])].any()
    # Rasterio masks what is nodata of each colour, but a green pixel may lack red.
    of_file = np.ma.masked_array(np.where(red, 0, colours), red, fill_value=0)
    assert raster.Raster(of_file).nodata == 0 and raster.Raster(of_file).valid().all()


def test_a_last_axis_of_one_is_a_channel_unless_a_mask_says_otherwise(scene):
    picture = raster.read((scene.moving[..., None], PLACE))
    assert np.array_equal(picture.bands[0], scene.moving) and picture.shape == scene.moving.shape
    for columns in (1, 4):
        narrow = np.zeros((9, 6, columns), np.uint8)
        assert raster.Raster(narrow, mask=np.ones((6, columns))).shape == (6, columns), "bands of a dataset"
        assert raster.Raster(narrow).shape == (9, 6)
    xarray = pytest.importorskip("xarray")
    assert raster.read(xarray.DataArray(narrow, dims=("band", "y", "x"))).shape == (6, 4)


def test_points_of_a_georeferenced_picture_are_on_its_own_map(scene, command, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    degrees = rasterio.Affine(1e-5, 0, 9, 0, -1e-5, 44)
    places = {"ref": ("EPSG:32633", rasterio.Affine(*PLACE)), "moving": ("EPSG:4326", degrees)}
    for (name, (crs, transform)), image in zip(places.items(), (scene.reference, scene.moving)):
        profile = raster.Raster(image, transform, crs).profile
        with rasterio.open(tmp_path / f"{name}.tif", "w", **profile) as file:
            file.write(image, 1)
    words = (tmp_path / "moving.tif", tmp_path / "ref.tif", "--model", "affine", "-o", tmp_path / "command.points")
    assert command("match", *words).returncode == 0
    raster.register(tmp_path / "ref.tif", tmp_path / "moving.tif", "affine").to_qgis_points(tmp_path / "python.points")
    for of in ("command", "python"):
        rows = np.loadtxt(tmp_path / f"{of}.points", delimiter=",", skiprows=2)
        reference, moving = (
            (xy - (t.c, t.f)) / (t.a, t.e) - 0.5 for (_, t), xy in zip(places.values(), (rows[:, :2], rows[:, 2:4]))
        )
        off = np.linalg.norm(scene.moving_from_reference.apply(reference) - moving, axis=1)
        assert len(off) > 50 and np.median(off) < 0.3, of


def test_indices_of_a_palette_are_not_mixed_without_a_word(tmp_path, scene):
    rasterio = pytest.importorskip("rasterio")
    classes = [(image // 32).astype(np.uint8) for image in (scene.reference, scene.moving)]
    profile = {"driver": "GTiff", "height": 240, "width": 320, "count": 1, "dtype": "uint8", "crs": CRS}
    for name, values in zip("ab", classes, strict=True):
        with rasterio.open(tmp_path / f"{name}.tif", "w", transform=rasterio.Affine(*PLACE), **profile) as file:
            file.write_colormap(1, {i: (i, 0, 0, 255) for i in range(8)})
            file.write(values, 1)
    files, given = [tmp_path / "a.tif", tmp_path / "b.tif"], {"detector": tp.Sift(contrast=1e-3), "device": "cpu"}
    with pytest.warns(UserWarning, match="indices of a palette, which bicubic interpolation mixes") as told:
        raster.register(*files, **given)
    assert {warning.filename for warning in told} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = raster.register(*files, interpolation="nearest", **given)
    inside = found.warped.mask != 0
    assert set(np.unique(found.warped.values[..., inside])) <= set(np.unique(classes[1]))
