"""Registration of rasters: images with a place on the map.

A raster is a dataset of rasterio, a ``DataArray`` of xarray (with or without rioxarray), a `Raster`, or a tuple
(values, transform, crs, nodata) in which everything but the values may be missing or None. None of those packages is
needed.

A transform is affine, with the coefficients a, b, c, d, e, f of ``affine.Affine``: map x = a · column + b · row + c,
map y = d · column + e · row + f, where (0, 0) is the outer corner of the first pixel, as everywhere in GDAL. Elsewhere in
this package (0, 0) is the centre of that pixel; the half pixel between the two is added here and nowhere else.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
from typing import TYPE_CHECKING, Any

from . import _arrays, _core, _datasets, _georeference, _register, _virtual
from ._base import Result
from ._geometry import Model, warp
from ._georeference import Gcp
from ._register import Registration
from ._warn import warn
from .errors import ImageError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt
    import xarray  # type: ignore[import-not-found,import-untyped,unused-ignore]

    from ._geometry import _Interpolation
    from ._assess import _Verdict
    from ._georeference import _Coefficients
    from ._register import _WarpedBy

    _Path = str | os.PathLike[str]
    #: The type of warped values, their nodata, and the value where there is no data.
    _Filled = tuple[np.dtype[Any], float | None, float]

__all__ = ["Gcp", "Raster", "RasterRegistration", "read", "register"]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Raster(Result):
    """Bands of values with a place on the map.

    Attributes
    ----------
    values : ndarray
        (bands, H, W), or (H, W) for one band. Colours as `tiepoint.read` gives them, (H, W, 1 to 4), become bands. More
        than four bands of at most four columns look like these; they are taken as bands if `mask` is given. Masked
        values of a masked array hold no data. In floats they become NaN. In integers whose bands differ in what is
        masked they become `nodata`: the given value, else the array's fill value, else a value that no data has.
        Exception: in 8- and 16-bit unsigned colours a pixel that is masked in one band holds no data in any, unless all
        masked values, and no others, are `nodata` already.
    transform : Affine or tuple, optional
        From (column, row) to the map; None for a raster that has no place.
    crs : Any, optional
        The coordinate reference system, as it was given.
    nodata : float, optional
        The value of pixels that hold no data.
    mask : ndarray, optional
        (H, W) uint8: 255 where there is data, else 0; None where that follows from `nodata`.
    searched : tuple of int, optional
        The bands that `register` searches if no others are asked for, counted from 1. Of a dataset: red, green and blue if
        its first three are these, otherwise the first. If not given: the first three of three or four, otherwise the first.
    about : dict
        What a dataset says of its bands, by names of rasterio: ``colorinterp``, ``descriptions``, ``scales``, ``offsets``,
        ``units``, each for all bands. And ``gcps``, if it lies on the map by control points alone.
    """

    values: Any
    transform: Any = None
    crs: Any = None
    nodata: float | None = None
    mask: npt.NDArray[np.uint8] | None = None
    searched: tuple[int, ...] | None = None
    about: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        import numpy as np

        lent = hasattr(self.values, "__dlpack__") and not hasattr(self.values, "__array__")
        values, mask = np.from_dlpack(self.values) if lent else np.asarray(self.values), self.mask
        given: Any = self.values if isinstance(self.values, np.ma.MaskedArray) else None
        holes: Any = None if given is None else np.ma.getmaskarray(given)
        is_picture = values.ndim == 3 and values.shape[2] <= 4 < values.shape[0]
        if is_picture and (mask is None or np.shape(mask) != values.shape[1:]):
            values = np.moveaxis(values, -1, 0)
            holes = None if holes is None else np.moveaxis(holes, -1, 0)
        if values.ndim not in (2, 3) or 0 in values.shape:
            raise ImageError(f"a raster has the shape {values.shape}: expected (H, W) or (bands, H, W), not empty")
        if values.dtype.kind not in "buif":
            raise ImageError(f"a raster holds {values.dtype}: expected integers or floats")
        if self.nodata is not None:
            try:
                nodata = np.asarray(self.nodata).item()
                float(nodata)
            except (TypeError, ValueError):
                raise ImageError(f"the nodata of a raster is {self.nodata!r}: expected one number, or None") from None
            object.__setattr__(self, "nodata", float(nodata) if isinstance(nodata, str) else nodata)
        object.__setattr__(self, "values", values)
        if holes is not None and holes.any():
            hidden = holes if holes.ndim == 2 else self._hide(holes, given.fill_value.item())
            mask = np.where(hidden, 0, 255 if mask is None else np.asarray(mask))
        if self.transform is not None:
            _georeference.coefficients(self.transform)
        if mask is not None:
            mask = np.where(np.asarray(mask) != 0, np.uint8(255), np.uint8(0))
            if mask.shape != values.shape[-2:]:
                raise ImageError(f"the mask of a raster has the shape {mask.shape}: expected {values.shape[-2:]}")
            object.__setattr__(self, "mask", mask)

    def _hide(self, holes: Any, fill: Any) -> npt.NDArray[np.bool_]:
        """Give masked values, (bands, H, W), no data: NaN in floats, and `nodata` in integers if bands differ in what
        is masked. Returns the pixels that hold no data, (H, W). `fill` is the fill value of the masked array."""
        import numpy as np

        values: Any = self.values
        everywhere: npt.NDArray[np.bool_] = holes.all(0)
        if values.dtype.kind == "f":
            object.__setattr__(self, "values", np.where(holes, math.nan, values))
            return everywhere
        if (holes == everywhere).all():
            return everywhere
        used = np.unique(values[~holes])
        nodata = fill if self.nodata is None else self.nodata
        if not self._has_bands_apart():
            # A single colour may equal nodata; if any other value is masked, the whole pixel holds no data.
            if nodata in used or not (values[holes] == nodata).all():
                everywhere = holes.any(0)
                return everywhere
        elif self.nodata is None or not _georeference.fits(nodata, values.dtype):
            values = values.astype(np.uint8) if values.dtype.kind == "b" else values
            ends, between = np.iinfo(values.dtype), used[:-1][used[1:] != used[:-1] + 1] + 1
            candidates = [fill] * _georeference.fits(fill, values.dtype) + [ends.min, ends.max, *between[:1].tolist()]
            nodata = next((v for v in candidates if v not in used), None)
            if nodata is None:
                raise ImageError(
                    f"the bands of a masked array differ in what is masked, and all values of {values.dtype} are data, "
                    "so that none can be nodata: expected floats (.astype(\"float32\")), or a mask that all bands share"
                )
        object.__setattr__(self, "nodata", nodata)
        object.__setattr__(self, "values", np.where(holes, values.dtype.type(nodata), values))
        return everywhere

    @property
    def bands(self) -> npt.NDArray[Any]:
        """The values as (bands, H, W)."""
        found: npt.NDArray[Any] = self.values if self.values.ndim == 3 else self.values[None]
        return found

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        height, width = self.values.shape[-2:]
        return int(height), int(width)

    @property
    def profile(self) -> dict[str, Any]:
        """The profile for ``rasterio.open(path, "w", **profile)``, to ``write(bands)`` and ``write_mask(valid())`` as a GeoTIFF,
        none of whose bands is alpha. `save` does that, and writes `about`."""
        told = {"count": len(self.bands), "dtype": self.values.dtype.name, "crs": self.crs, "nodata": self.nodata, "alpha": "no"}
        if self.searched is not None:
            told["photometric"] = "rgb" if self.searched == (1, 2, 3) else "minisblack"
        return {"driver": "GTiff", "height": self.shape[0], "width": self.shape[1], "transform": self.transform, **told}

    def save(self, path: _Path, **options: Any) -> None:
        """Write a GeoTIFF by rasterio: the bands, their place, what `about` says, and a mask where `nodata` is not enough.

        Parameters
        ----------
        path : path
            The file to write.
        **options
            Beside those of `profile`, or in their place: ``compress="deflate"``.
        """
        import rasterio  # type: ignore[import-not-found,import-untyped,unused-ignore]

        with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "w", **{**self.profile, **options}) as file:
            for name, value in self.about.items():
                setattr(file, name, value)
            file.write(self.bands)
            if self._is_masked():
                file.write_mask(self.valid())

    def valid(self) -> npt.NDArray[np.uint8]:
        """Where the raster holds data: (H, W) uint8, 255 or 0.

        A pixel holds no data if `mask` is 0 there, or if no band has a finite value other than `nodata`.
        """
        import numpy as np

        holds = self._known(self.bands).any(0)
        if self.mask is not None:
            holds &= self.mask != 0
        return np.where(holds, np.uint8(255), np.uint8(0))

    def _is_masked(self) -> bool:
        """Whether `mask` leaves out pixels that hold data by their values."""
        return self.mask is not None and bool((self._known(self.bands).any(0) & (self.mask == 0)).any())

    def _known(self, bands: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which values are data."""
        import numpy as np

        floats = bands.dtype.kind == "f"
        known = np.isfinite(bands) if floats else np.ones(bands.shape, bool)
        if self.nodata is not None and not math.isnan(self.nodata):
            # A value that the type cannot hold equals no pixel.
            known &= bands != (bands.dtype.type(self.nodata) if floats else self.nodata)
        return known

    def _floats(self, bands: npt.NDArray[Any], valid: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Bands as floats, NaN where there is no data."""
        import numpy as np

        holds = np.broadcast_to(valid != 0, bands.shape)
        empty = ~(holds & self._known(bands) if self._has_bands_apart() else holds)
        if bands.dtype.kind == "f":
            # Before the conversion, which may refuse what is masked.
            bands = bands.copy()
            bands[empty] = math.nan
            return _arrays.floats(bands, "the raster")
        found = bands.astype(np.float32)
        found[empty] = math.nan
        return found

    def _has_bands_apart(self) -> bool:
        """Whether a band may hold data where another has `nodata`. In unsigned colours of 8 and 16 bits, as in the
        command, a pixel lacks data only if all bands have `nodata`: pure green has 0 in red, which may be `nodata`."""
        colours = (1, 2, 3) if self.searched is None and len(self.bands) in (3, 4) else self.searched
        return not _is_whole(self.values.dtype) or colours is None or len(colours) == 1

    def to_map(self, xy: Any) -> npt.NDArray[np.float64]:
        """Map coordinates, (N, 2), of pixels (x, y), where (0, 0) is the centre of the first pixel."""
        import numpy as np

        if self.transform is None:
            raise OptionError(
                "the raster has no transform: give it one to have map coordinates; rasterio.transform.from_gcps makes one "
                "of control points"
            )
        a, b, c, d, e, f = _georeference.coefficients(self.transform)
        col, row = (np.asarray(xy, np.float64) + 0.5).reshape(-1, 2).T
        return np.stack([a * col + b * row + c, d * col + e * row + f], 1)

    def to_xarray(self) -> xarray.DataArray:
        """The raster as a ``DataArray`` with the dimensions (band,) y, x; xarray must be installed.

        Coordinates x and y are the centres of pixels; those of a turned grid are xc and yc, (H, W), as rioxarray's. Transform
        and CRS are stored as GDAL's attributes of the coordinate ``spatial_ref``, where rioxarray and this module look for
        them. A part of the array keeps its place: `read` goes by the coordinates. If `mask` leaves out more than `nodata` does,
        the coordinate ``valid`` shows it: ``array.where(array.valid)`` is NaN where there is no data.
        """
        import numpy as np
        import xarray  # type: ignore[import-not-found,import-untyped,unused-ignore]

        dims = ("band", "y", "x")[3 - self.values.ndim :]
        coordinates: dict[str, Any] = {}
        reference: dict[str, Any] = {} if self.crs is None else {"crs_wkt": _georeference.wkt(self.crs)}
        if self.transform is not None:
            a, b, c, d, e, f = _georeference.coefficients(self.transform)
            reference["GeoTransform"] = " ".join(repr(v) for v in (c, a, b, f, d, e))
            col, row = np.arange(self.shape[1]) + 0.5, np.arange(self.shape[0]) + 0.5
            if b == 0 and d == 0:
                coordinates = {"x": a * col + c, "y": e * row + f}
            else:
                x, y = (p * col + q * row[:, None] + r for p, q, r in ((a, b, c), (d, e, f)))
                coordinates = {"xc": (dims[-2:], x), "yc": (dims[-2:], y)}
        if reference:
            coordinates["spatial_ref"] = ((), 0, reference)
        if self._is_masked():
            coordinates["valid"] = (dims[-2:], self.valid() != 0)
        attributes = {} if self.nodata is None else {"_FillValue": self.nodata}
        return xarray.DataArray(self.values, dims=dims, coords=coordinates, attrs=attributes)

    def _picture(self) -> Any:
        return _searched(self, None)

    def _summary(self) -> list[tuple[str, str]]:
        height, width = self.shape
        told = [("size", f"{width}x{height}"), ("bands", str(len(self.bands))), ("type", self.values.dtype.name)]
        if self.crs is not None:
            told.append(("crs", _georeference.name(self.crs)))
        return told if self.nodata is None else [*told, ("nodata", f"{self.nodata:g}")]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class RasterRegistration(Result):
    """A raster warped onto the grid of another.

    Attributes
    ----------
    reference, moving : Raster
        The rasters as `read` gives them.
    warped : Raster
        All bands of `moving` on the pixels of `reference`, with the reference's transform and CRS. Its `mask` is 255
        where it holds data; elsewhere its values are its `nodata`, or 0 if it has none.
    registration : Registration
        The registration in pixels: model, tie points, and the searched image warped.
    """

    reference: Raster
    moving: Raster
    warped: Raster
    registration: Registration

    @property
    def model(self) -> Model:
        """From pixels of `moving` to pixels of `reference`."""
        return self.registration.model

    @property
    def verdict(self) -> _Verdict | None:
        """How far the registration can be trusted: that of `registration`."""
        return self.registration.verdict

    @functools.cached_property
    def _places(self) -> npt.NDArray[np.float32]:
        import numpy as np

        tie = self.registration.tie_points
        places = np.hstack([tie.xy_a, tie.xy_b])[tie.inliers]
        _, first = np.unique(places, axis=0, return_index=True)
        return places[np.sort(first)]

    @property
    def xy_moving(self) -> npt.NDArray[np.float32]:
        """Verified tie points in pixels of `moving`, (N, 2). Features with several directions give a pair of places once."""
        return self._places[:, :2]

    @property
    def xy_reference(self) -> npt.NDArray[np.float32]:
        """The same tie points in pixels of `reference`, (N, 2)."""
        return self._places[:, 2:]

    @property
    def xy_map(self) -> npt.NDArray[np.float64]:
        """The same tie points in map coordinates of `reference`, (N, 2)."""
        return self.reference.to_map(self.xy_reference)

    @property
    def gcps(self) -> list[Gcp]:
        """The verified tie points as ground control points of `moving`.

        For rasterio: ``[GroundControlPoint(*p) for p in gcps]``; for GDAL: ``gdal.GCP(p.x, p.y, p.z, p.col, p.row)``.
        """
        corners = self.xy_moving.astype("float64") + 0.5
        rows = zip(corners.tolist(), self.xy_map.tolist(), strict=True)
        return [Gcp(row, col, x, y, 0.0) for (col, row), (x, y) in rows]

    @property
    def moving_transform(self) -> _Coefficients:
        """The transform that places `moving` itself on the map, without resampling it: a, b, c, d, e, f.

        Raises
        ------
        OptionError
            When the model is a homography, which no transform can express, or `reference` has none.
        """
        import numpy as np

        if self.model.kind == "homography":
            raise OptionError("the model is a homography: expected an affine map or a similarity; give model=\"affine\"")
        # Three corners of a pixel, which an affine map determines.
        pixels = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) - 0.5
        (c, f), (ax, dx), (bx, ex) = self.reference.to_map(self.model.apply(pixels)).tolist()
        return ax - c, bx - c, c, dx - f, ex - f, f

    def to_qgis_points(self, path: _Path) -> None:
        """Write the verified tie points for QGIS's georeferencer (``.points``, QGIS 3.26 and newer).

        Places in a raster with a transform are its map coordinates, otherwise columns and negative rows from its outer
        corner. All are the latter if `reference` has no CRS, because the file would not say that they lie on a map. dX, dY
        and residual are the model's, in pixels of `reference`.
        """
        on_map = self.reference.crs is not None and self.reference.transform is not None

        def places(raster: Raster, xy: npt.NDArray[np.float32]) -> Any:
            is_placed = on_map and raster.transform is not None
            return (raster.to_map(xy) if is_placed else (xy.astype("float64") + 0.5) * (1, -1)).tolist()

        away = self.model.apply(self.xy_moving) - self.xy_reference
        lines = [f"#CRS: {_georeference.wkt(self.reference.crs)}"] if on_map else []
        lines.append("mapX,mapY,sourceX,sourceY,enable,dX,dY,residual")
        to, source = places(self.reference, self.xy_reference), places(self.moving, self.xy_moving)
        for at, of, (dx, dy) in zip(to, source, away.tolist(), strict=True):
            numbers = [*map(repr, (*at, *of)), "1", *map(repr, (dx, dy, math.hypot(dx, dy)))]
            lines.append(",".join(numbers))
        _core.write_text(path, "\n".join(lines) + "\n")

    def to_vrt(self, path: _Path, source: _Path) -> None:
        """Write a virtual raster of GDAL (``.vrt``): the file of `moving` as it is, with `gcps`. ``gdalwarp`` and QGIS place it by
        them; nothing is resampled before. Where the file has a mask or alpha, the virtual raster has it as its mask. If rasterio
        can open the file, names, units, scales, offsets and colours of bands are its own, and a window is found by its transform.

        Parameters
        ----------
        path : path
            The file to write.
        source : path
            The file of `moving`, which the virtual raster refers to, or another name that GDAL or rasterio opens.

        Raises
        ------
        OptionError
            When rasterio finds in the file neither `moving` nor a window with its transform.
        """
        _core.write_text(path, _virtual.text(self.moving, source, self.gcps, self.reference.crs))

    def to_geojson(self, path: _Path) -> None:
        """Write the verified tie points as GeoJSON: points on the map with their pixels and residuals.

        Coordinates are those of `reference`. If its CRS is not longitude and latitude by WGS 84, which RFC 7946
        requires, the member ``crs`` of GeoJSON 2008 names it; GDAL and QGIS read that.
        """
        away = self.model.residuals(self.xy_moving, self.xy_reference).tolist()
        rows = zip(self.xy_map.tolist(), self.xy_moving.tolist(), self.xy_reference.tolist(), away, strict=True)
        features = [
            {
                "type": "Feature",
                "geometry": {"type": "Point", "coordinates": at},
                "properties": {"moving": moving, "reference": reference, "residual": residual},
            }
            for at, moving, reference, residual in rows
        ]
        page: dict[str, Any] = {"type": "FeatureCollection", "features": features}
        if self.reference.crs is not None and (code := _georeference.epsg(self.reference.crs)) != 4326:
            name = _georeference.wkt(self.reference.crs) if code is None else f"urn:ogc:def:crs:EPSG::{code}"
            page["crs"] = {"type": "name", "properties": {"name": name}}
        _core.write_text(path, json.dumps(page, allow_nan=False) + "\n")

    def _summary(self) -> list[tuple[str, str]]:
        return [*self.registration._summary(), *self.warped._summary()]

    def _picture(self) -> Any:
        return self.registration.warped


def read(raster: Any) -> Raster:
    """Read a raster in any form that this module takes.

    Parameters
    ----------
    raster : rasterio dataset, path, DataArray, Raster or tuple
        A path is opened by rasterio. All bands of a dataset except alpha are read. If each has a nodata value of its own,
        they get one that no band has as data, or NaN in floats. A ``DataArray`` has the dimensions y
        and x (or latitude and longitude, or lat and lon), and may have a third one of bands. In a tuple (values,
        transform, crs, nodata) values are (H, W) or (bands, H, W), or a picture (H, W, 1 to 4), as of
        `Raster`. The mask of a masked array is used.

    Returns
    -------
    Raster
        Its values, transform, CRS, nodata and mask.

    Raises
    ------
    ImageError
        When it is none of these, or its coordinates are not evenly spaced; when the bands of a masked array of integers
        differ in what is masked, and all values of their type are data.
    """
    if isinstance(raster, Raster):
        return raster
    if isinstance(raster, tuple):
        if not 1 <= len(raster) <= 4:
            raise ImageError(f"a raster has {len(raster)} parts: expected (values, transform, crs, nodata)")
        return Raster(*raster)
    if isinstance(raster, (str, os.PathLike)):
        return Raster(*_datasets.of_file(raster))
    if hasattr(raster, "data_vars"):
        names = ", ".join(map(repr, raster.data_vars))
        raise ImageError(f"the raster is a Dataset of xarray: expected one of its arrays, which are {names or 'none'}")
    if hasattr(raster, "read_masks"):
        return Raster(*_datasets.of_dataset(raster))
    if hasattr(raster, "dims") and hasattr(raster, "coords"):
        return Raster(*_datasets.of_data_array(raster))
    if hasattr(raster, "__array__") or hasattr(raster, "__dlpack__"):
        return Raster(raster)
    raise ImageError(
        f"{type(raster).__name__} is no raster: expected a dataset of rasterio, a path, a DataArray, a Raster or a tuple "
        "(values, transform, crs, nodata)"
    )


def register(
    reference: Any,
    moving: Any,
    model: _WarpedBy = "homography",
    *,
    bands: Sequence[int] | None = None,
    interpolation: _Interpolation = "bicubic",
    nodata: float | None = None,
    **options: Any,
) -> RasterRegistration:
    """Find by their contents where a raster lies on another, and warp it onto the other's grid.

    The moving raster may have a place on the map, a wrong one, or none: only pixels are compared. Pixels without data are
    not searched, and no value is interpolated from them.

    Parameters
    ----------
    reference, moving : rasterio dataset, path, DataArray, Raster or tuple
        The raster that stays, and the one that is warped, as `read` takes them.
    model : {"homography", "affine", "similarity", "rigid", "translation"}
        What relates their pixels.
    bands : sequence of int, optional
        Which bands of both are searched, counted from 1 in `Raster.values`, so without alpha, which ``--band`` of the command
        counts: one, or three as red, green and blue. If not given, those of `Raster.searched`.
    interpolation : {"nearest", "bilinear", "bicubic", "lanczos"}
        How values between pixels are interpolated; nearest for classes. A warning says so if `moving` holds indices of a
        palette and others would mix them.
    nodata : float, optional
        The value of `warped` where it holds no data. If not given, that of `moving`; if that has none, NaN for floats
        and none for integers, which are 0 there.
    **options
        Other options of `tiepoint.register`: `detector`, `ratio`, `threshold`, `views`, `device`, ….

    Returns
    -------
    RasterRegistration
        All bands of `moving` on the grid of `reference`, and the tie points on the map. 8-bit, 16-bit and 32-bit float
        values keep their type; wider ones are computed and returned as float32.

    Raises
    ------
    ModelError
        When too few matches agree.

    Examples
    --------
    >>> import tiepoint as tp
    >>> scene = tp.synth.scene((320, 240), [[1, 0.02, 5], [-0.02, 1, -3], [0, 0, 1]], seed=3)
    >>> place = (0.5, 0.0, 300_000.0, 0.0, -0.5, 5_000_000.0)          # half a metre a pixel
    >>> found = tp.raster.register((scene.reference, place, "EPSG:32633"), (scene.moving,), "affine", device="cpu")
    >>> found.warped.shape, found.warped.crs
    ((240, 320), 'EPSG:32633')
    >>> found.gcps[0]._fields
    ('row', 'col', 'x', 'y', 'z')
    """
    if "fill" in options:
        raise OptionError(f"option fill is {options['fill']}: expected none; nodata is the value of pixels without input")
    fixed, laid = read(reference), read(moving)
    if interpolation != "nearest" and _datasets.has_palette(moving):
        warn(
            f"the moving raster holds indices of a palette, which {interpolation} interpolation mixes: expected "
            'interpolation="nearest" for classes',
        )
    filled = _filled(laid, nodata)
    found = _register.register(
        _searched(fixed, bands),
        _searched(laid, bands),
        model,
        interpolation=interpolation,
        **options,
    )
    if (marked := _unnamed(laid, (laid.searched or (1,) if bands is None else bands)[0])) is not None:
        value, count = marked
        warn(
            f"{count} pixels of the moving raster hold {value!r}, far from all others, and are mixed with those beside them: "
            f"expected dataclasses.replace(tiepoint.raster.read(moving), nodata={value!r}) if it marks missing data",
        )
    warped = _warped(laid, fixed, found, interpolation, filled, options.get("device"))
    return RasterRegistration(fixed, laid, warped, found)


def _unnamed(raster: Raster, band: int) -> tuple[float, int] | None:
    """A value that seems to mark pixels without data although the raster has no nodata, and how many hold it, by the rules of
    the command."""
    values = raster.bands[band - 1]
    if raster.nodata is not None or values.dtype.itemsize == 1:
        return None
    values = values[raster._known(values) if raster.mask is None else raster._known(values) & (raster.mask != 0)]
    for mark in (float(values.min()), float(values.max())) if len(values) else ():
        count = int((values == mark).sum())
        if 1000 * count >= len(values) > count:
            others = values[values != mark]
            low, high = float(others.min()), float(others.max())
            if 0 < 2 * (high - low) < max(low - mark, mark - high):
                return mark, count
    return None


def _searched(raster: Raster, bands: Sequence[int] | None) -> Any:
    """The bands that are searched, as an image; pixels without data are transparent, or NaN in floats."""
    import numpy as np

    there = raster.bands
    if bands is None:
        bands = raster.searched or ((1, 2, 3) if len(there) in (3, 4) else (1,))
    if not hasattr(bands, "__len__") or len(bands) not in (1, 3) or not all(1 <= band <= len(there) for band in bands):
        raise OptionError(f"option bands is {bands}: expected a list of one or three from 1 to {len(there)}")
    chosen = there[[band - 1 for band in bands]]
    valid = dataclasses.replace(raster, values=chosen).valid()
    if not _is_whole(chosen.dtype):
        chosen = raster._floats(chosen, valid)
    elif not valid.all():
        alpha = np.where(valid != 0, np.iinfo(chosen.dtype).max, 0).astype(chosen.dtype)
        return np.dstack([*chosen, alpha])
    return np.ascontiguousarray(chosen[0] if len(bands) == 1 else np.moveaxis(chosen, 0, -1))


def _warped(
    moving: Raster, fixed: Raster, found: Registration, interpolation: _Interpolation, filled: _Filled, device: Any
) -> Raster:
    """All bands on the grid of the reference, and where they hold data."""
    import numpy as np

    kept, given, fill = filled
    # Where an interpolated value happens to equal nodata, it is replaced by a neighbouring value.
    beside: Any = None
    if given is not None and not math.isnan(given):
        beside = np.nextafter(np.float32(given), np.float32(np.inf)) if kept.kind == "f" else given + 1
        if kept.kind != "f" and beside > np.iinfo(kept).max:
            beside = given - 1
    valid, apart = moving.valid(), moving._has_bands_apart()
    is_whole = _is_whole(kept) and bool((moving._known(moving.bands) if apart else valid).all()) and bool(valid.all())
    values = np.empty((len(moving.bands), *fixed.shape), kept)
    mask = np.zeros(fixed.shape, np.uint8)
    for band, out in zip(moving.bands, values, strict=True):
        source = band.astype(kept) if is_whole else moving._floats(band, valid)
        empty = 0.0 if is_whole else math.nan
        placed = warp(source, found.model, shape=fixed.shape, interpolation=interpolation, fill=empty, device=device)
        there = found.covered != 0 if is_whole else ~np.isnan(placed)
        placed = np.where(there, placed, fill)
        if kept.kind != "f" and not is_whole:
            placed = np.clip(np.rint(placed), np.iinfo(kept).min, np.iinfo(kept).max)
        if apart and beside is not None:
            placed = np.where(there & (placed == given), beside, placed)
        out[...] = placed
        mask[there] = 255
    if not apart and beside is not None:
        values[0, (mask != 0) & (values == given).all(0)] = beside
    one = values[0] if moving.values.ndim == 2 else values
    about = {name: value for name, value in moving.about.items() if name != "gcps"}
    about |= {name: value for name, value in fixed.about.items() if name == "gcps"}
    return Raster(one, fixed.transform, fixed.crs, given, mask, moving.searched, about)


def _filled(moving: Raster, nodata: float | None) -> _Filled:
    """How the warped raster is filled; `nodata` is the option."""
    import numpy as np

    kept = _kept(moving.values.dtype)
    given = (moving if nodata is None else dataclasses.replace(moving, nodata=nodata)).nodata
    if kept.kind == "f":
        fill = math.nan if given is None or (nodata is None and kept != moving.values.dtype.newbyteorder("=")) else float(given)
        return kept, fill, fill
    if given is None or _georeference.fits(given, kept):
        return kept, given, given or 0
    if nodata is not None:
        raise OptionError(f"option nodata is {nodata:g}: expected a value of {kept.name}, which the raster holds")
    return kept, None, 0


def _kept(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of warped values: integers of 8 and 16 bits keep theirs, truth values become bytes, all others 32-bit floats."""
    import numpy as np

    if dtype.kind == "b":
        return np.dtype(np.uint8)
    return dtype.newbyteorder("=") if dtype.itemsize <= 2 and dtype.kind in "ui" else np.dtype(np.float32)


def _is_whole(dtype: np.dtype[Any]) -> bool:
    """Whether the library computes with values of this type as they are, not as floats."""
    return dtype.kind == "u" and dtype.itemsize <= 2
