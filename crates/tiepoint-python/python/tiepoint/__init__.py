"""Image correspondence: features, matches, verified models, registration and dense stereo.

Arrays in, arrays out. The centre of the top-left pixel is (0, 0), x to the right, y down; angles are radians from +x
towards +y; a scale is the σ of a Gaussian in pixels; a disparity d says that the left (x, y) shows what the right
(x − d, y) shows. The same input and options give the same bits on any number of threads and any device.
"""

from __future__ import annotations

import _thread
import importlib as _importlib
import os as _os
import sys as _sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import errors, evaluate, filter, interop, io, raster, synth
    from ._assess import Assessment
    from ._calibration import Calibration, StereoCalibration
    from ._collection import Collection, CollectionOptions, VerifiedPair, collect
    from ._core import Device, DeviceArray, Features
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
    "Assessment",
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

#: What each module gives. A name is imported when it is first used, so that a program loads what it needs.
_GIVES = {
    "_assess": "Assessment",
    "_calibration": "Calibration StereoCalibration",
    "_collection": "Collection CollectionOptions VerifiedPair collect",
    "_core": "Device DeviceArray Features",
    "_draw": "draw",
    "_features": "Sift Surf concatenate",
    "_geometry": "Estimate Model estimate fit warp",
    "_matching": "Matches Rematch TiePoints match nearest tie_points",
    "_register": "Rectified Registration rectify register",
    "_report": "report",
    "_stereo": "Disparities Stereo",
    "errors": "DeviceError Error FormatError ImageError MismatchError ModelError OptionError OutOfMemoryError",
    "io": "read write",
}
_HOMES = {name: home for home, names in _GIVES.items() for name in names.split()}
#: Held while a module is imported, and while the process is forked: the child would wait for ever for an import that
#: another thread had begun, and for devices that were being opened.
_importing = _thread.RLock()


def _before_fork() -> None:
    _importing.acquire()
    if f"{__name__}._core" in _sys.modules:
        from ._core import pause_opening

        pause_opening()


def _after_fork(in_child: bool) -> None:
    if f"{__name__}._core" in _sys.modules:
        from ._core import resume_opening

        resume_opening(in_child)
    _importing.release()


if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(
        before=_before_fork, after_in_parent=lambda: _after_fork(False), after_in_child=lambda: _after_fork(True)
    )


if not TYPE_CHECKING:  # or checkers would believe every name

    def __getattr__(name: str) -> object:
        if name not in _HOMES and name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with _importing:
            module = _importlib.import_module(f"{__name__}.{_HOMES.get(name, name)}")
        found = getattr(module, name) if name in _HOMES else module
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def devices() -> list[Device]:
    """The devices of this machine, the CPU first. Each has been opened, so all of them work.

    In a process that is forked afterwards only the CPU works; so does ``device="auto"`` there, if it is the CPU here.

    Returns
    -------
    list of Device
        ``Device("cpu")``, ``Device("cuda:0")``, …
    """
    from ._core import Device
    from ._core import devices as listed

    return [Device(entry["device"]) for entry in listed() if "device" in entry]
