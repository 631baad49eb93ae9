"""Rasters with a place on Earth: rasterio's datasets and xarray's arrays, neither of which need be installed.

A raster has a transform, six numbers (a, b, c, d, e, f): the corner of column u and row v lies at
(a u + b v + c, d u + e v + f). Here (0, 0) is the centre of the first pixel, so that u = x + ½ and v = y + ½.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

from ._base import Result
from ._register import Registration
from ._register import register as _register
from .errors import ImageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["GeoRegistration", "Raster", "read", "register", "write_geojson", "write_points"]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Raster(Result):
    """An image with its place.

    Attributes
    ----------
    image : ndarray
        (H, W) or (H, W, C) of ``uint8``, ``uint16`` or ``float32``.
    transform : tuple of float
        Six numbers (a, b, c, d, e, f) from columns and rows to the map.
    crs : str or None
        The coordinate reference system, as text.
    mask : ndarray or None
        (H, W) bool: where there is data; None where there is everywhere.
    """

    image: Any
    transform: tuple[float, float, float, float, float, float]
    crs: str | None
    mask: npt.NDArray[np.bool_] | None

    def to_map(self, xy: Any) -> npt.NDArray[np.float64]:
        """Map coordinates (N, 2) of places in pixels (N, 2)."""
        import numpy as np

        a, b, c, d, e, f = self.transform
        u, v = np.asarray(xy, np.float64).reshape(-1, 2).T + 0.5
        return np.stack([a * u + b * v + c, d * u + e * v + f], axis=-1)


def read(raster: Any, bands: Any = None) -> Raster:
    """Take an image and its place out of a dataset of rasterio or an array of xarray.

    Parameters
    ----------
    raster : Raster, rasterio dataset, or xarray.DataArray
        What has ``read``, ``transform``, ``crs`` and ``nodata``; or ``values`` with the accessor ``rio`` of rioxarray; or a
        `Raster`, which is given back.
    bands : sequence of int, optional
        Bands of a dataset, counted from 1: one, or the red, green and blue ones. All, up to four, if not given.

    Returns
    -------
    Raster
        Whole numbers of other types become ``float32``, which holds them exactly up to 2²⁴.
    """
    import numpy as np

    if isinstance(raster, Raster):
        return raster
    if hasattr(raster, "read") and hasattr(raster, "transform"):
        chosen = list(bands) if bands is not None else list(range(1, int(raster.count) + 1))
        image = np.asarray(raster.read(chosen))
        transform, crs, nodata = raster.transform, raster.crs, raster.nodata
    elif hasattr(raster, "values") and hasattr(raster, "rio"):
        image = np.asarray(raster.values)
        image = image[None] if image.ndim == 2 else image
        if bands is not None:
            image = image[[band - 1 for band in bands]]
        transform, crs, nodata = raster.rio.transform(), raster.rio.crs, raster.rio.nodata
    else:
        raise ImageError(
            f"{type(raster).__name__} is no raster: expected a dataset of rasterio, or an array of xarray with rioxarray imported"
        )
    if image.ndim != 3 or not 1 <= image.shape[0] <= 4:
        raise ImageError(f"the raster has the shape {image.shape}: choose one to four bands")
    missing = np.zeros(image.shape[1:], bool)
    if nodata is not None and not np.isnan(nodata):
        missing = (image == nodata).all(0)
    if image.dtype.kind == "f":
        missing |= np.isnan(image).any(0)
    if image.dtype not in (np.uint8, np.uint16, np.float32):
        image = image.astype(np.float32)
    pixels = image[0] if len(image) == 1 else np.ascontiguousarray(np.moveaxis(image, 0, -1))
    a, b, c, d, e, f = (float(v) for v in tuple(transform)[:6])
    text = None if crs is None else str(crs.to_string() if hasattr(crs, "to_string") else crs)
    return Raster(pixels, (a, b, c, d, e, f), text, ~missing if missing.any() else None)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class GeoRegistration(Result):
    """A raster warped onto another.

    Attributes
    ----------
    fixed, moving : Raster
        What was registered.
    registration : Registration
        The images' own: `warped` lies on the grid of `fixed`, with its transform and reference system.
    """

    fixed: Raster
    moving: Raster
    registration: Registration

    @property
    def warped(self) -> Raster:
        """`moving` on the grid of `fixed`."""
        covered = self.registration.covered != 0
        mask = None if bool(covered.all()) else covered
        return Raster(self.registration.warped, self.fixed.transform, self.fixed.crs, mask)

    def ground_control_points(self) -> npt.NDArray[np.float64]:
        """Columns and rows in `moving` and map coordinates of all inliers, (N, 4).

        Columns and rows are GDAL's: the corner of the first pixel is (0, 0). ``rasterio.control.GroundControlPoint(row=v,
        col=u, x=x, y=y)`` of each places `moving` without resampling it.
        """
        import numpy as np

        tie = self.registration.tie_points
        places = tie.xy_a[tie.inliers].astype(np.float64) + 0.5
        return np.column_stack([places, self.fixed.to_map(tie.xy_b[tie.inliers])])

    def _summary(self) -> list[tuple[str, str]]:
        return [*self.registration._summary(), ("reference system", str(self.fixed.crs))]

    def _picture(self) -> Any:
        return self.registration.warped


def register(fixed: Any, moving: Any, *, bands: Any = None, **options: Any) -> GeoRegistration:
    """Find where a raster lies on another, and warp it onto that one's grid.

    Parameters
    ----------
    fixed, moving : Raster, rasterio dataset, or xarray.DataArray
        The raster whose place is right, and the one that is brought there; its own place is not used. Pixels without data
        count neither way.
    bands : sequence of int, optional
        As in `read`, of both.
    **options
        Those of `tiepoint.register`.

    Returns
    -------
    GeoRegistration
        The result, with its place.
    """
    a, b = read(fixed, bands), read(moving, bands)
    return GeoRegistration(a, b, _register(a.image, b.image, mask_fixed=a.mask, mask_moving=b.mask, **options))


def _replace(path: str | os.PathLike[str], text: str) -> None:
    beside = f"{os.fspath(path)}.under-way"
    with open(beside, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(beside, path)


def write_points(path: str | os.PathLike[str], found: GeoRegistration) -> None:
    """Write the inliers as the ``.points`` of QGIS's georeferencer, for `moving`.

    Parameters
    ----------
    path : path
        ``.points``; QGIS finds it beside the raster if it is called ``RASTER.points``.
    found : GeoRegistration
        What to write.
    """
    lines = ["mapX,mapY,sourceX,sourceY,enable,dX,dY,residual"]
    if found.fixed.crs is not None:
        lines.insert(0, f"#CRS: {found.fixed.crs}")
    for u, v, x, y in found.ground_control_points().tolist():
        # QGIS counts rows downwards as negative numbers.
        lines.append(f"{x!r},{y!r},{u!r},{-v!r},1,0,0,0")
    _replace(path, "\n".join(lines) + "\n")


def write_geojson(path: str | os.PathLike[str], found: GeoRegistration) -> None:
    """Write the inliers as GeoJSON, in the reference system of `fixed`.

    Parameters
    ----------
    path : path
        ``.geojson``.
    found : GeoRegistration
        What to write: points on the map with the column and row in `moving`, the descriptors' distance, and the residual
        in pixels of `fixed`.
    """
    tie = found.registration.tie_points
    residuals = found.registration.model.residuals(tie.xy_a[tie.inliers], tie.xy_b[tie.inliers]).tolist()
    rows = zip(found.ground_control_points().tolist(), tie.distance[tie.inliers].tolist(), residuals, strict=True)
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [x, y]},
            "properties": {"column": u, "row": v, "distance": distance, "residual": residual},
        }
        for (u, v, x, y), distance, residual in rows
    ]
    page: dict[str, Any] = {"type": "FeatureCollection", "features": features}
    if found.fixed.crs is not None:
        page["crs"] = {"type": "name", "properties": {"name": found.fixed.crs}}
    _replace(path, json.dumps(page))
