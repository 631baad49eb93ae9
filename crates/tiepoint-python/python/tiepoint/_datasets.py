"""Reads the arguments of `tiepoint.raster.Raster` from datasets of rasterio and from arrays of xarray."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from . import _georeference
from .errors import ImageError

if TYPE_CHECKING:
    #: Values, transform, CRS, nodata, mask, and of datasets the bands that are searched, and what is said of all.
    _Parts = tuple[Any, ...]


def of_file(path: str | os.PathLike[str]) -> _Parts:
    """Of the raster in a file, which rasterio opens."""
    try:
        import rasterio  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise ImageError(
            f"the raster is a path, {os.fspath(path)!r}, which rasterio would open, but it is not installed: expected a "
            "DataArray, a Raster or a tuple (values, transform, crs, nodata)"
        ) from error
    with rasterio.open(path) as dataset:
        return of_dataset(dataset)


def of_dataset(dataset: Any) -> _Parts:
    """Of a dataset of rasterio, whose transform is the identity if it has no place on the map."""
    import numpy as np

    colours = [getattr(c, "name", "") for c in getattr(dataset, "colorinterp", ())]
    indices = [i for i in dataset.indexes if not (i <= len(colours) and colours[i - 1] == "alpha")]
    if not indices:
        names = getattr(dataset, "subdatasets", ())
        raise ImageError(
            f"the dataset is a container of {len(names)} others: expected one of them, such as {names[0]!r}"
            if names
            else "the dataset has no band but alpha"
        )
    transform = dataset.transform
    if transform is not None and _georeference.coefficients(transform) == (1, 0, 0, 0, 1, 0):
        transform = None
    first = [colours[i - 1] for i in indices[:3] if i <= len(colours)]
    searched = ((1, 2, 3) if first == ["red", "green", "blue"] else (1,)) if colours else None
    # Not GDAL's mask of the dataset, which is that of the fourth band where the first is red.
    values, mask = dataset.read(indices), functools.reduce(np.logical_or, map(dataset.read_masks, indices))
    if alpha := [i for i in dataset.indexes if i not in indices]:
        # GDAL's masks have alpha only of two bands and of four.
        mask = mask & (dataset.read(alpha) != 0).all(0)
    nodata, *others = nodatas = [dataset.nodatavals[i - 1] for i in indices]
    if any(repr(other) != repr(nodata) for other in others):
        # Each band has its own, as of `gdalbuildvrt -separate`; a raster has one.
        fill = next((v for v in nodatas if v is not None and (values.dtype.kind == "f" or _georeference.fits(v, values.dtype))), None)
        values, nodata = np.ma.masked_array(values, dataset.read_masks(indices) == 0, fill_value=fill), None
    names = ("colorinterp", "descriptions", "scales", "offsets", "units")
    about: dict[str, Any] = {name: tuple(told[i - 1] for i in indices) for name in names if (told := getattr(dataset, name, ()))}
    if "palette" in colours:
        # Its colours are not read.
        about.pop("colorinterp")
    points, crs = getattr(dataset, "gcps", ((), None))
    if transform is None and points:
        about["gcps"] = [_georeference.Gcp(p.row, p.col, p.x, p.y, p.z or 0) for p in points], crs
    return values, transform, dataset.crs, nodata, mask, searched, about


def has_palette(raster: Any) -> bool:
    """Whether a file or dataset of rasterio holds indices of a palette."""
    if isinstance(raster, (str, os.PathLike)):
        import rasterio  # type: ignore[import-not-found,import-untyped,unused-ignore]

        with rasterio.open(raster) as dataset:
            return has_palette(dataset)
    return any(getattr(colour, "name", "") == "palette" for colour in getattr(raster, "colorinterp", ()))


#: The names of the dimensions of rows and columns.
_ROWS, _COLUMNS = ("y", "lat", "latitude"), ("x", "lon", "longitude")


def of_data_array(array: Any) -> _Parts:
    """Of a DataArray: dimensions by name; transform, CRS and nodata from ``spatial_ref``, the coordinates and the attributes,
    and from rioxarray if that is imported and has more of them."""
    import numpy as np

    dims = [str(d) for d in array.dims]
    rows, columns = (next((d for d in dims if d in names), None) for names in (_ROWS, _COLUMNS))
    if rows is None or columns is None or len(dims) not in (2, 3):
        raise ImageError(f"the array has the dimensions {tuple(dims)}: expected y and x, and at most one of bands")
    order = [i for i, d in enumerate(dims) if d not in (rows, columns)] + [dims.index(rows), dims.index(columns)]
    values = array.values.transpose(order)
    told = {**getattr(array, "encoding", {}), **array.attrs}
    # The name of the grid mapping, by CF; otherwise those that GDAL's programs give it.
    names = (str(told.get("grid_mapping", "")).partition(":")[0], "spatial_ref", "crs")
    mapping = next((name for name in names if name in array.coords), None)
    known: dict[str, Any] = {} if mapping is None else dict(array.coords[mapping].attrs)
    transform: Any = None
    if "GeoTransform" in known:
        c, a, b, f, d, e = (float(v) for v in str(known["GeoTransform"]).split())
        transform = (a, b, c, d, e, f)
    if rows in array.coords and columns in array.coords:
        x, y = (array.coords[name].values for name in (columns, rows))
        transform = _georeference.placed(x[None, :], y[:, None], transform)
    elif "xc" in array.coords and "yc" in array.coords:
        x, y = (array.coords[name].transpose(rows, columns).values for name in ("xc", "yc"))
        transform = _georeference.placed(x, y, transform)
    elif transform is None and hasattr(array, "rio"):
        transform = array.rio.transform()
        if transform is not None and _georeference.coefficients(transform) == (1, 0, 0, 0, 1, 0):
            transform = None
    # What xarray decoded has NaN for the nodata in `encoding`, which is that of the packed numbers.
    marked = array.attrs if values.dtype.kind == "f" else told
    nodata = next((marked[k] for k in ("_FillValue", "missing_value", "nodata") if marked.get(k) is not None), None)
    crs = known.get("crs_wkt") or known.get("spatial_ref")
    if hasattr(array, "rio"):
        crs = crs if array.rio.crs is None else array.rio.crs
        nodata = array.rio.nodata if nodata is None else nodata
    valid = array.coords.get("valid")
    # A mask says that the bands come first, however narrow they are.
    mask = np.ones(values.shape[1:], bool) if values.ndim == 3 else None
    if valid is not None and {rows, columns} == set(valid.dims):
        mask = valid.transpose(rows, columns).values
    return values, transform, crs, nodata, mask
