"""Image correspondence: features, matches, verified models, registration and dense stereo.

Arrays in, arrays out. The centre of the top-left pixel is (0, 0), x to the right, y down; angles are radians from +x
towards +y; a scale is the σ of a Gaussian in pixels; a disparity d says that the left (x, y) shows what the right
(x − d, y) shows. The same input and options give the same bits on any number of threads and any device.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os

from . import errors, evaluate, filter, interop, io, raster, synth
from ._calibration import Calibration, StereoCalibration
from ._collection import Collection, CollectionOptions, VerifiedPair, collect
from ._core import Device, DeviceArray, Features
from ._core import devices as _devices
from ._core import finish_background as _finish_background
from ._core import pause_opening as _pause_opening
from ._core import resume_opening as _resume_opening
from ._draw import draw
from ._features import Sift, Surf, concatenate
from ._geometry import Estimate, Model, estimate, fit, warp
from ._matching import Matches, Rematch, TiePoints, match, nearest, tie_points
from ._register import Rectified, Registration, rectify, register
from ._report import report
from ._stereo import Disparities, Stereo
from .errors import (
    DeviceError,
    Error,
    FormatError,
    ImageError,
    MismatchError,
    ModelError,
    OptionError,
    OutOfMemoryError,
)
from .io import read, write

__version__ = "0.1.0"

__all__ = [
    "Calibration",
    "Collection",
    "CollectionOptions",
    "Device",
    "DeviceArray",
    "DeviceError",
    "Disparities",
    "Error",
    "Estimate",
    "Features",
    "FormatError",
    "ImageError",
    "Matches",
    "MismatchError",
    "Model",
    "ModelError",
    "OptionError",
    "OutOfMemoryError",
    "Rectified",
    "Registration",
    "Rematch",
    "Sift",
    "Stereo",
    "StereoCalibration",
    "Surf",
    "TiePoints",
    "VerifiedPair",
    "collect",
    "concatenate",
    "devices",
    "draw",
    "errors",
    "estimate",
    "fit",
    "evaluate",
    "filter",
    "interop",
    "io",
    "match",
    "nearest",
    "raster",
    "read",
    "rectify",
    "register",
    "report",
    "synth",
    "tie_points",
    "warp",
    "write",
]

_atexit.register(_finish_background)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(
        before=_pause_opening,
        after_in_parent=lambda: _resume_opening(False),
        after_in_child=lambda: _resume_opening(True),
    )


def devices() -> list[Device]:
    """The devices of this machine, the CPU first. Each has been opened, so all of them work.

    A process that is forked afterwards can use ``device="auto"`` only if that is the CPU.

    Returns
    -------
    list of Device
        ``Device("cpu")``, ``Device("cuda:0")``, …
    """
    return [Device(entry["device"]) for entry in _devices() if "device" in entry]
