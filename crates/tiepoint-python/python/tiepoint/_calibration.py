"""Cameras: a rectified pair, and two cameras before rectification."""

from __future__ import annotations

import dataclasses
import math
import operator
import os
import pathlib
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from . import _core
from ._arrays import two
from ._base import Result
from .errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Floats = npt.NDArray[np.float64]
    _Path = str | os.PathLike[str]

    class _HasCalibration(Protocol):
        """The result of a rectification."""

        @property
        def calibration(self) -> Calibration | None: ...

    #: A rectified pair: its calibration, the file of one, or the result of a rectification.
    _CalibrationLike: TypeAlias = "Calibration | _HasCalibration | str | os.PathLike[str]"

__all__ = ["Calibration", "StereoCalibration"]


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Calibration(Result):
    """A rectified pair: cameras side by side with parallel axes and one focal length.

    A point at depth Z appears in the left image at x and in the right one at x − d, with
    Z = baseline · focal / (d + doffs).

    Parameters
    ----------
    focal : float
        Focal length in pixels, above 0.
    principal : tuple of float
        Principal point of the left camera in pixels.
    baseline : float
        Distance between the cameras, above 0; of OpenCV's T its length, which is abs(T[0]) for cameras side by side.
        Depth has its unit.
    doffs : float
        cx of the right camera less that of the left, pixels.
    size : tuple of int, optional
        Width and height of the images.
    disparities : tuple of float, optional
        The least and greatest disparity to be expected.
    affine : bool
        The cameras see along parallel rays: there is no depth, and only `size` and `disparities` have a meaning.
    """

    focal: float
    principal: tuple[float, float]
    baseline: float
    doffs: float = 0.0
    size: tuple[int, int] | None = None
    disparities: tuple[float, float] | None = None
    affine: bool = False

    def __post_init__(self) -> None:
        given = self._fields()
        for name in ("focal", "baseline", "doffs"):
            if not hasattr(given[name], "__float__") or getattr(given[name], "ndim", None):
                advice = "; of OpenCV's T its length is meant, numpy.linalg.norm(T)" if name == "baseline" else ""
                raise OptionError(f"option {name} is {given[name]!r}: expected a number{advice}")
            object.__setattr__(self, name, float(given[name]))
        object.__setattr__(self, "principal", two("principal", self.principal, "two numbers, cx and cy"))
        object.__setattr__(self, "size", _size("size", self.size))
        if self.disparities is not None:
            low, high = two("disparities", self.disparities, expected := "two finite numbers, the lesser first")
            if not -math.inf < low <= high < math.inf:
                raise OptionError(f"option disparities is {self.disparities!r}: expected {expected}")
            object.__setattr__(self, "disparities", (low, high))
        if self.affine:
            return
        for name in ("focal", "baseline"):
            if not 0 < getattr(self, name) < math.inf:
                negative = name == "baseline" and self.baseline < 0
                advice = "; OpenCV's T[0] is negative, and its absolute value is meant" if negative else ""
                raise OptionError(f"option {name} is {given[name]}: expected a finite number above 0{advice}")
        for name, value in [("doffs", self.doffs), ("principal", self.principal[0]), ("principal", self.principal[1])]:
            if not math.isfinite(value):
                raise OptionError(f"option {name} is {given[name]}: expected a finite number of pixels")

    @property
    def Q(self) -> _Floats:  # noqa: N802
        """OpenCV's Q, (4, 4): Q (x, y, d, 1)ᵀ ~ (X, Y, Z, 1)ᵀ."""
        import numpy as np

        if self.affine:
            raise OptionError("Q needs cameras that see along rays which meet: the calibration is of affine cameras")
        cx, cy = self.principal
        rows = [[1, 0, 0, -cx], [0, 1, 0, -cy], [0, 0, 0, self.focal], [0, 0, 1 / self.baseline, self.doffs / self.baseline]]
        return np.array(rows, dtype=np.float64)

    @classmethod
    def read(cls, path: _Path) -> Calibration:
        """Read Middlebury's or KITTI's ``calib.txt``, OpenCV's YAML, XML or JSON with P1 and P2, or Q, or the right
        camera's ``camera_info`` of ROS."""
        return cls(**_core.read_rectified(path))

    def write(self, path: _Path) -> None:
        """Write a file that `read` and the command read. The name decides the format: ``.txt`` (Middlebury, the only one
        for affine cameras, and the only one that stores `disparities`), ``.yml``, ``.xml`` or ``.json`` (OpenCV: P1, P2 and
        Q), or a name such as ``camera_info.yaml`` (ROS, the right camera; needs `size`)."""
        name = pathlib.Path(path)
        if self.size is None and "camera_info" in name.name and name.suffix.lower() in (".yml", ".yaml"):
            raise OptionError("a camera_info of ROS holds the size of the images: give the calibration its size, (width, height)")
        _core.write_rectified(path, self._fields())


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StereoCalibration(Result):
    """Two cameras and their relative pose, in OpenCV's conventions.

    Parameters
    ----------
    K1, K2 : array_like, (3, 3)
        Camera matrices, left and right.
    R : array_like, (3, 3)
        Rotation: a point X of the left camera is R X + T in the right one.
    T : array_like, (3,)
        Translation; its unit is that of the depth.
    D1, D2 : array_like, (up to 5,)
        Lenses: k1, k2, p1, p2, k3; none if neither is given. Of OpenCV's longer vectors the others must be 0.
    size : tuple of int, optional
        Width and height of the images.
    size2 : tuple of int, optional
        Those of the right images, where they differ.
    R1, R2, P1, P2 : array_like, optional
        The rectification that the calibration stores: (3, 3), (3, 3), (3, 4) and (3, 4).

    Raises
    ------
    OptionError
        When an array has another shape or is none, or a lens is given for one camera alone.
    """

    K1: _Floats
    K2: _Floats
    R: _Floats
    T: _Floats
    D1: _Floats | None = None
    D2: _Floats | None = None
    size: tuple[int, int] | None = None
    size2: tuple[int, int] | None = None
    R1: _Floats | None = None
    R2: _Floats | None = None
    P1: _Floats | None = None
    P2: _Floats | None = None

    def __post_init__(self) -> None:
        for name in ("K1", "K2", "R", "T"):
            object.__setattr__(self, name, _floats(name, getattr(self, name)))
        for name in ("R1", "R2", "P1", "P2"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _floats(name, value))
        d1, d2 = _lens("D1", self.D1), _lens("D2", self.D2)
        if (len(d1) == 0) != (len(d2) == 0):
            raise OptionError("one of D1 and D2 is missing: expected both or neither; give zeros where there is no distortion")
        sizes = {name: _size(name, getattr(self, name)) for name in ("size", "size2")}
        for name, value in {"D1": d1, "D2": d2, **sizes}.items():
            object.__setattr__(self, name, value)
        stored = [getattr(self, name) is not None for name in ("R1", "R2", "P1", "P2")]
        if any(stored) and not all(stored):
            raise OptionError("a stored rectification has all of R1, R2, P1 and P2")

    @classmethod
    def read(cls, *paths: _Path) -> StereoCalibration:
        """Read one file, or several that complete each other: OpenCV's YAML, XML or JSON, ROS's ``camera_info`` (the
        left camera's file first), Kalibr's ``camchain.yaml`` of two cameras, or Middlebury's ``calib.txt``."""
        return cls(**_core.read_calibration(list(paths)))


def _floats(name: str, given: Any) -> _Floats:
    """An array of a `StereoCalibration`: a matrix, or the translation, of which a row or a column is taken, too."""
    shape = {"T": (3,), "P1": (3, 4), "P2": (3, 4)}.get(name, (3, 3))
    found = _numbers(name, given, shape)
    if name == "T" and found.size == 3:
        found = found.reshape(3)
    if found.shape != shape:
        told = f"has the shape {found.shape}" if found.shape else f"is {given!r}"
        raise OptionError(f"option {name} {told}: expected {shape}")
    return found


def _lens(name: str, given: Any) -> _Floats:
    """The coefficients of a lens, at most five; of None, none."""
    found = _numbers(name, () if given is None else given, "k1, k2, p1, p2, k3").ravel()
    if found[5:].any():
        raise OptionError(
            f"option {name} has {len(found)} values, of which the sixth and later are not all 0: expected k1, k2, p1, p2, k3; the "
            "rational, thin prism and tilted models are not supported"
        )
    return found[:5]


def _numbers(name: str, given: Any, expected: Any) -> _Floats:
    """A copy of an argument as floats."""
    import numpy as np

    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"option {name} is {given!r}: expected numbers, {expected}") from None


def _size(name: str, given: Any) -> tuple[int, int] | None:
    """The width and height of images."""
    if given is None:
        return None
    try:
        width, height = map(operator.index, given)
    except (TypeError, ValueError):
        width = height = 0
    if min(width, height) < 1:
        raise OptionError(f"option {name} is {given!r}: expected the width and the height, two whole numbers above 0")
    return width, height


def rectified(calibration: Any) -> Calibration:
    """The calibration that an argument names: itself, a file, or the result of a rectification."""
    calibration = getattr(calibration, "calibration", calibration)
    if isinstance(calibration, Calibration):
        return calibration
    if isinstance(calibration, (str, os.PathLike)):
        return Calibration.read(calibration)
    raise OptionError(f"option calibration is {calibration!r}: expected a Calibration or the path of one")
