"""Virtual rasters of GDAL (``.vrt``) that refer to the file of a raster."""

from __future__ import annotations

import math
import os
import re
import warnings
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from . import _core, _georeference
from .errors import FormatError, OptionError

if TYPE_CHECKING:
    from .raster import Raster


def text(moving: Raster, source: str | os.PathLike[str], gcps: list[_georeference.Gcp], crs: Any) -> str:
    """The file `source`, of which `moving` is read, with control points on the map of `crs`."""
    dtype = moving.values.dtype
    kind = {"b": "Byte", "u": "UInt", "i": "Int", "f": "Float"}[dtype.kind] + str(8 * dtype.itemsize)
    kind = "Byte" if kind in ("Byte8", "UInt8") else kind
    name, part, bands = _stored(source, moving)
    projection = "" if crs is None else f" Projection={quoteattr(_georeference.wkt(crs))}"
    height, width = moving.shape
    lines = [f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}">', f"  <GCPList{projection}>"]
    for number, (row, col, x, y, z) in enumerate(gcps, 1):
        lines.append(f'    <GCP Id="{number}" Pixel="{col!r}" Line="{row!r}" X="{x!r}" Y="{y!r}" Z="{z!r}"/>')
    lines.append("  </GCPList>")
    sources = [(kind, f' band="{n}"', about, str(stored)) for n, (stored, about) in enumerate(bands, 1)]
    if moving._is_masked():
        # That of the file, or its alpha band, which is not among the bands that were read.
        sources.append(("Byte", "", "", "mask,1"))
    for kind, band, about, stored in sources:
        simple = f'<SourceFilename relativeToVRT="0">{escape(name)}</SourceFilename><SourceBand>{stored}</SourceBand>{part}'
        line = f'<VRTRasterBand dataType="{kind}"{band}>{about}<SimpleSource>{simple}</SimpleSource></VRTRasterBand>'
        lines.append(f"  {line}" if band else f"  <MaskBand>{line}</MaskBand>")
    return "\n".join([*lines, "</VRTDataset>", ""])


def _stored(source: str | os.PathLike[str], moving: Raster) -> tuple[str, str, list[tuple[int, str]]]:
    """What a virtual raster of GDAL says of the file of `moving`: its name, the part of it that `moving` is, and the number of
    each band but alpha with its elements. If rasterio cannot open it, all but the name is that of `moving`."""

    def empty(nodata: float | None) -> str:
        return "" if nodata is None else f"<NoDataValue>{float(nodata)!r}</NoDataValue>"

    name, plain = os.fspath(source), [(n, empty(moving.nodata)) for n in range(1, len(moving.bands) + 1)]
    if os.path.exists(name) or not re.match(r"/vsi|\w[\w+]+:", name):
        # Others are names of GDAL's: /vsizip/…, HDF5:"a.h5"://a.
        name = os.path.abspath(name)
    try:
        import rasterio  # type: ignore[import-not-found,import-untyped,unused-ignore]

        with warnings.catch_warnings():
            # A picture needs no place of its own on the map.
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            dataset = rasterio.open(source)
    except (ImportError, OSError):
        return name, "", plain
    told = []
    with dataset:
        if re.match(r"\w[\w+]+://", name):
            # A name of rasterio's, such as zip://…!…, which GDAL does not read.
            name = (dataset.files or [name])[0]
        part, nodatas = _part(moving, dataset, source), dataset.nodatavals
        if moving.nodata is not None and not math.isnan(moving.nodata) and len(set(nodatas)) == 1:
            nodatas = [moving.nodata] * dataset.count
        of_bands = zip(dataset.descriptions, dataset.units, dataset.scales, dataset.offsets, nodatas, dataset.colorinterp, strict=True)
        for band, (description, unit, scale, offset, nodata, colour) in enumerate(of_bands, 1):
            parts = [f"<Description>{escape(description)}</Description>"] if description else []
            parts += [f"<UnitType>{escape(unit)}</UnitType>"] if unit else []
            parts += [f"<Offset>{offset!r}</Offset>", f"<Scale>{scale!r}</Scale>"] if (scale, offset) != (1, 0) else []
            if colour.name in ("gray", "red", "green", "blue"):
                parts.append(f"<ColorInterp>{colour.name.capitalize()}</ColorInterp>")
            if colour.name != "alpha":
                told.append((band, "".join((empty(nodata), *parts))))
    return name, part, told if len(told) == len(plain) else plain


def _part(moving: Raster, dataset: Any, source: str | os.PathLike[str]) -> str:
    """The element of a virtual raster that names the part of a dataset that `moving` is; nothing if it is all of it."""
    import numpy as np

    (height, width), size = moving.shape, (dataset.width, dataset.height)
    start, end = np.zeros(2), np.array([width, height])
    if moving.transform is not None:
        a, b, c, d, e, f = _georeference.coefficients(dataset.transform)
        outer = moving.to_map([start - 0.5, end - 0.5]) - (c, f)
        start, end = np.linalg.solve([[a, b], [d, e]], outer.T).T
    near = np.round([start, end])
    is_upright = np.abs(near - (start, end)).max() < 0.01 and (near[1] - near[0] == (width, height)).all()
    if size == (width, height):
        # Xarray has rows of NetCDF from south to north, and tp.read turns pictures as EXIF says.
        is_mirrored = not is_upright and np.abs(np.sort((start, end), 0) - ((0, 0), size)).max() < 0.01
        is_stored = np.array_equal(dataset.read(1, window=((0, 1), (0, width)))[0], moving.bands[0, 0])
        if not is_mirrored and (is_stored or not _is_turned(moving, source)):
            return ""
    elif moving.transform is not None and is_upright and near.min() >= 0 and (near[1] <= size).all():
        x, y = near[0].astype(int).tolist()
        rect = f'xSize="{width}" ySize="{height}"/>'
        return f'<SrcRect xOff="{x}" yOff="{y}" {rect}<DstRect xOff="0" yOff="0" {rect}'
    raise OptionError(
        f"the moving raster, {width}x{height} pixels, is neither the file as GDAL reads it, {size[0]}x{size[1]}, nor a part "
        "of it by its transform: expected what rasterio reads, or tp.read(path, orient=False)"
    )


def _is_turned(moving: Raster, source: str | os.PathLike[str]) -> bool:
    """Whether `moving` is what `tiepoint.read` has turned as the file says."""
    import numpy as np

    try:
        upright, stored = (type(moving)(_core.read(source, (None, None), orient)).values for orient in (True, False))
    except (FormatError, OSError):
        return False
    return np.array_equal(upright, moving.values) and not np.array_equal(stored, moving.values)
