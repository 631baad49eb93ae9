"""Files: images, features, matches, disparities, points, calibrations. Each is written whole or not at all."""

from __future__ import annotations

import dataclasses
import errno
import math
import os
import pathlib
from typing import TYPE_CHECKING, Any, Literal

from . import _arrays, _core
from ._calibration import rectified
from ._geometry import Model, named
from ._core import Features
from ._matching import Matches, Rows, TiePoints
from ._stereo import Disparities
from ._warn import warn
from .errors import FormatError, MismatchError, ModelError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from typing_extensions import Buffer

    from ._arrays import _Image

    _Path = str | os.PathLike[str]
    _Compression = Literal["none", "deflate", "zstd"]

__all__ = [
    "StoredMatches",
    "decode",
    "read",
    "read_disparity",
    "read_features",
    "read_homography",
    "read_matches",
    "read_points",
    "write",
    "write_disparity",
    "write_features",
    "write_matches",
    "write_points",
]


def read(
    path: _Path,
    *,
    max_pixels: int | str | None = None,
    max_bytes: int | str | None = None,
    orient: bool = True,
) -> npt.NDArray[Any]:
    """Read an image, recognised by its content: PNG, JPEG, TIFF, JPEG 2000, JPEG XL, WebP, BMP, GIF, OpenEXR, PNM, PFM
    or ``.npy``.

    Parameters
    ----------
    path : path
        The file.
    max_pixels : int or str, optional
        The most pixels the image may have; 2³² if not given.
    max_bytes : int or str, optional
        The most bytes it may take in memory, such as ``"8GiB"``; 4 GiB if not given.
    orient : bool
        Turn the picture upright by the orientation in its file, as ``cv2.imread`` does.

    Returns
    -------
    ndarray
        (H, W) or (H, W, C) of ``uint8``, ``uint16`` or ``float32``, as in the file; colours as RGB. All bands are kept,
        and so are values that mark no data. The array is writable. It does not keep the meaning of the file's bands:
        detectors take the last of two and of four channels for alpha, so choose others, such as ``image[..., 0]``, where
        the file has two or four bands without alpha; the command and `tiepoint.raster` read it. Of a file with several
        images (pages of a TIFF, frames of an animation) this is the first.

    Raises
    ------
    FormatError
        When the file is not an image, is damaged, or holds a larger image.
    """
    if isinstance(path, (bytes, bytearray)):
        raise TypeError("the path is bytes: expected a str or a Path; tiepoint.io.decode reads the bytes of a file")
    found: npt.NDArray[Any] = _core.read(path, (max_pixels, max_bytes), orient)
    return found


def decode(
    data: Buffer,
    *,
    max_pixels: int | str | None = None,
    max_bytes: int | str | None = None,
    orient: bool = True,
) -> npt.NDArray[Any]:
    """The image in the bytes of a file, as `read` reads it: ``bytes``, or any buffer of them, such as a ``memoryview`` or
    what ``cv2.imencode`` makes."""
    if hasattr(data, "getvalue"):
        raise TypeError(f"the data is a {type(data).__name__}: expected bytes, which its .getvalue() gives")
    held = data if isinstance(data, (bytes, bytearray)) else memoryview(data).tobytes()
    return _core.decode(held, (max_pixels, max_bytes), orient)


def write(
    path: _Path, image: _Image, *, range: tuple[float, float] | None = None, compress: _Compression = "none"
) -> None:
    """Write an image in the format of the name's extension.

    Parameters
    ----------
    path : path
        ``.png``, ``.tif``, ``.tiff``, ``.pfm``, ``.pgm``, ``.ppm``, ``.pnm``, ``.pam``, ``.exr``, ``.npy`` or
        ``.jpg`` (8 bits).
    image : array_like, (H, W) or (H, W, C)
        ``uint8``, ``uint16`` or ``float32``; other numbers are written as ``float32``: a warning says if that rounds
        whole numbers beyond 2²⁴. The last of two and of four channels is alpha, as `read` has it; of other bands
        `tiepoint.raster.Raster(image).save(path)` writes a TIFF without alpha, by rasterio.
    range : tuple of float, optional
        The values that become black and white; values beyond are clipped. If not given, a format of integers takes
        floats from 0 to 1 and clips those beyond, and formats of floats (``.pfm``, ``.tif``, ``.exr``, ``.npy``) keep
        all values.
    compress : str
        How a TIFF is compressed, without loss: ``"none"``, ``"deflate"`` or ``"zstd"``.
    """
    if range is not None:
        import numpy as np

        low, high = _arrays.two("range", range, expected := "two values, the lesser first")
        if not low < high:
            raise OptionError(f"option range is {range!r}: expected {expected}")
        given = _arrays.array(image, "the image")
        wide = given.astype(np.promote_types(given.dtype, np.float32), copy=False)
        image = np.clip((wide - low) / (high - low), 0, 1)
    _core.write(os.fsdecode(path), image, compress)


def read_features(path: _Path) -> Features:
    """Read features: ``.csv``, ``.json``, ``.npz``, ``.sift`` (VLFeat) or ``.txt`` (COLMAP)."""
    return _core.read_features(path)


def write_features(path: _Path, features: Features) -> None:
    """Write features in the format of the name's extension, as `read_features` reads them."""
    _core.write_features(path, features)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class StoredMatches(Rows):
    """Tie points of a file. Where the file lacks them, indices are row numbers, scales are 1, and all are inliers.

    Attributes
    ----------
    xy_a, xy_b : ndarray
        (M, 2) float32: places in both images, as `tiepoint.estimate` takes them.
    scales : ndarray
        (M, 2) float32: scales of the keypoints, which are the uncertainties of the Ames Stereo Pipeline.
    pairs : ndarray
        (M, 2) int64: indices of the features.
    inliers : ndarray
        (M,) bool: which matches a model confirmed.
    names : tuple of str or None
        The names of both images.
    """

    _columns = ("xy_a", "xy_b", "scales", "pairs", "inliers")
    xy_a: npt.NDArray[np.float32]
    xy_b: npt.NDArray[np.float32]
    scales: npt.NDArray[np.float32]
    pairs: npt.NDArray[np.int64]
    inliers: npt.NDArray[np.bool_]
    names: tuple[str, str] | None

    def _features(self) -> tuple[Features, Features]:
        """Features of these indices, places and scales."""
        import numpy as np

        made = []
        for xy, scales, index in zip((self.xy_a, self.xy_b), self.scales.T, self.pairs.T, strict=True):
            columns = np.full((int(index.max(initial=-1)) + 1, 3), (0, 0, 1), np.float32)
            columns[index] = given = np.column_stack([xy, scales])
            if (differs := (columns[index] != given).any(1)).any():
                raise MismatchError(f"two rows give the feature {index[differs][0]} two places or scales: expected one")
            made.append(Features.from_arrays(xy=columns[:, :2], scale=columns[:, 2]))
        return made[0], made[1]

    def _summary(self) -> list[tuple[str, str]]:
        return [*super()._summary(), ("inliers", str(int(self.inliers.sum())))]


def read_matches(path: _Path) -> StoredMatches:
    """Read tie points, recognised by their content, such as those of other programs for `tiepoint.estimate`.

    All that `write_matches` writes is read, except COLMAP's format, which has no places: CSV, JSON, NPZ, text with
    uncertainties of the Ames Stereo Pipeline, a file of MicMac's folder ``Homol`` (``PastisA/B.txt``),
    ``sift_matches.txt`` of s2p, and points of QGIS that lie on pixels of a picture.
    """
    if os.path.isdir(path):
        files = sorted(pathlib.Path(path).glob("Pastis*/*.txt"))
        told = f"expected the file of a pair, such as {files[0]}" if files else "expected a file"
        raise IsADirectoryError(errno.EISDIR, f"a folder: {told}", os.fspath(path))
    return StoredMatches(**_core.read_matches(path))


def write_matches(
    path: _Path,
    matches: Matches | TiePoints | StoredMatches,
    *,
    a: Features | None = None,
    b: Features | None = None,
    names: tuple[_Path, _Path] | None = None,
    format: str | None = None,
) -> None:
    """Write matches as other programs read them.

    Parameters
    ----------
    path : path
        ``.csv``, ``.json``, ``.npz`` (arrays with the names that `TiePoints` has), ``.txt`` (COLMAP's
        ``matches_importer``) or ``.points`` (QGIS, in pixels of b). On a map: `RasterRegistration`.
    matches : Matches, TiePoints or StoredMatches
        The matches to write. Of those that were read from a file, distances and ratios are unknown (NaN, in JSON null).
    a, b : Features, optional
        The features that were matched; needed for `Matches` alone.
    names : tuple of str, optional
        Names of the images, for ``.json``, ``.txt`` and MicMac. If not given, those in the file that was read, or a and b.
    format : str, optional
        The format, if the extension does not say it: ``"asp"`` (text with uncertainties for the Ames Stereo Pipeline),
        ``"micmac"`` (`path` is the folder ``Homol``), ``"s2p"`` (``sift_matches.txt``); ``"csv"``, ``"json"``, ``"npz"``,
        ``"colmap"``, ``"qgis"``.
    """
    import numpy as np

    if not isinstance(matches, Rows):
        raise TypeError(f"matches is of the type {type(matches).__name__}: expected Matches, TiePoints or StoredMatches")
    known = matches._features()
    a, b = (given or found for given, found in zip((a, b), known or (None, None), strict=True))
    if a is None or b is None:
        raise OptionError("the features that were matched are needed: give a and b")
    first, second = map(os.fspath, names or getattr(matches, "names", None) or ("a", "b"))
    unknown = np.full(len(matches), math.nan, np.float32)
    distance, ratio = (getattr(matches, name, unknown) for name in ("distance", "ratio"))
    inliers, model = getattr(matches, "inliers", None), getattr(matches, "model", None)
    told = None if model is None else named(model)
    _core.write_matches(path, format, (first, second), a, b, matches.pairs, distance, ratio, inliers, told)


def read_disparity(path: _Path, *, scale: float | None = None, signed: bool | None = None) -> npt.NDArray[np.float32]:
    """Read a disparity map: (H, W) float32, NaN where there is none.

    Parameters
    ----------
    path : path
        ``.pfm``, ``.tif``, ``.exr``, ``.npy``, ``.png`` or another image.
    scale : float, optional
        Stored values are this many times the disparity; if not given, 256 for 16 bits without a sign and otherwise 1. Whole
        numbers of 16 bits with a sign need one: 16 for maps of OpenCV.
    signed : bool, optional
        Whether floats of 0 and below are disparities; otherwise they are unknown. If not given, they are disparities in
        a map that marks others as unknown by NaN, infinity or the no-data value of its file, as `write_disparity` does,
        or that has more of them than 0 and one other number, such as OpenCV's −1. Of whole numbers 0 is always unknown.

    Warns
    -----
    UserWarning
        When `signed` is not given, and values below −1 or most of the map are taken for unknown.
    """
    found, note = _core.read_disparity(path, scale, signed)
    if note is not None:
        warn(f"{note}: signed=True takes all values as disparities, signed=False is silent")
    return found


def write_disparity(path: _Path, disparity: Any, *, compress: _Compression = "none") -> None:
    """Write a disparity map: ``.pfm`` (none: +∞), ``.tif``, ``.exr`` or ``.npy`` (none: NaN), ``.png`` (16 bits, 256
    times; none: 0). `compress` is that of `write`."""
    disparity = _arrays.disparities(getattr(disparity, "disparity", disparity), "the disparity map")
    _core.write_disparity(path, disparity, compress)


def read_points(path: _Path) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    """Read a PLY file that `write_points` or the command wrote: places (N, 3) and colours (N, 3)."""
    xyz, rgb = _core.read_points(path)
    return xyz, rgb


def write_points(
    path: _Path,
    found: Disparities,
    calibration: Any = None,
    *,
    colours: Any = None,
    max_depth: float = math.inf,
    ascii: bool = False,
) -> int:
    """Write the points of all pixels that have a depth as PLY.

    Parameters
    ----------
    path : path
        ``.ply``.
    found : Disparities
        The result of `Stereo.compute`.
    calibration : Calibration, Rectified or path, optional
        The calibration of the pair, if `found` has none.
    colours : array_like, optional
        The image that colours them; the left one if not given.
    max_depth : float
        Leave out points that are farther.
    ascii : bool
        Write text.

    Returns
    -------
    int
        The number of points.

    Raises
    ------
    TypeError
        When `found` is an array: a map of disparities, or points of your own.
    """
    if not isinstance(found, Disparities):
        raise TypeError(f"found is of the type {type(found).__name__}: expected a Disparities, the result of Stereo.compute")
    fields = rectified(found._calibration(calibration))._fields()
    colours = _arrays.unmasked(found.images[0] if colours is None else colours, None)[0]
    return _core.write_points(path, found.disparity, colours, fields, max_depth, ascii)


def read_homography(path: _Path) -> npt.NDArray[np.float64]:
    """Read a homography, (3, 3), from a text of nine numbers, from OpenCV's XML or YAML, from ``"matrix"`` in the JSON of
    the command ``match``, or from ``.npy``. OpenCV's JSON is not read: write ``.yml``.

    Raises
    ------
    FormatError
        When the file holds no such matrix, or one without an inverse.
    """
    if not os.fspath(path).lower().endswith(".npy"):
        return _core.read_homography(path)
    import numpy as np

    try:
        with open(path, "rb") as file:
            found = np.lib.format.read_array(file, allow_pickle=False)
        # Refuses a matrix without an inverse.
        return np.array(Model("homography", _arrays.matrix(found, "the array", affine=False)))
    except (ValueError, ModelError) as error:
        raise FormatError(f"{os.fspath(path)}: {error}; expected the (3, 3) of a homography") from None
