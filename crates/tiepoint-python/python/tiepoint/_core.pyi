"""The compiled half of tiepoint."""

import os
from collections.abc import Sequence
from typing import Any, SupportsIndex, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Device",
    "Features",
    "Finder",
    "Stereo",
    "angle_error",
    "apply",
    "blobs",
    "convolve",
    "corner_error",
    "decode",
    "defaults",
    "depth",
    "devices",
    "disparity_score",
    "estimate",
    "gauss",
    "hessian",
    "invert",
    "match_features",
    "matching_accuracy",
    "nearest",
    "points",
    "read",
    "read_calibration",
    "read_disparity",
    "read_features",
    "read_homography",
    "read_points",
    "read_rectified",
    "rectify",
    "rectify_stored",
    "register",
    "repeatability",
    "report",
    "residuals",
    "scene",
    "sobel",
    "stereo_scene",
    "texture",
    "tie_points",
    "warp",
    "write",
    "write_disparity",
    "write_features",
    "write_matches",
    "write_points",
    "write_rectified",
]

_Path = str | os.PathLike[str]
_Device = Device | str | None
_Model = tuple[str, Any]
_Size = tuple[int, int]
_Masks = tuple[Any, Any]
_Options = dict[str, Any]
_Floats = npt.NDArray[np.float32]
_Doubles = npt.NDArray[np.float64]
_Index = SupportsIndex | slice | Sequence[int] | npt.NDArray[Any]

@final
class Device:
    def __new__(cls, name: str = "auto", *, threads: int | None = None, memory: int | str | None = None) -> Device: ...
    @property
    def name(self) -> str: ...
    @property
    def resolved(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def memory(self) -> int | None: ...
    def take_notes(self) -> list[str]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str], _Options]: ...

@final
class Features:
    @staticmethod
    def from_arrays(
        *,
        xy: npt.ArrayLike,
        scale: npt.ArrayLike | None = None,
        angle: npt.ArrayLike | None = None,
        response: npt.ArrayLike | None = None,
        sign: npt.ArrayLike | None = None,
        octave: npt.ArrayLike | None = None,
        layer: npt.ArrayLike | None = None,
        descriptors: npt.ArrayLike | None = None,
        image_size: _Size = ...,
    ) -> Features: ...
    @property
    def xy(self) -> _Floats: ...
    @property
    def scale(self) -> _Floats: ...
    @property
    def angle(self) -> _Floats: ...
    @property
    def response(self) -> _Floats: ...
    @property
    def sign(self) -> npt.NDArray[np.int8]: ...
    @property
    def octave(self) -> npt.NDArray[np.int8]: ...
    @property
    def layer(self) -> npt.NDArray[np.uint8]: ...
    @property
    def descriptors(self) -> npt.NDArray[np.uint8] | _Floats: ...
    @property
    def image_size(self) -> _Size: ...
    def to(self, device: str) -> Features: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: _Index, /) -> Features: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Finder:
    def __new__(
        cls, kind: str, options: _Options, range: tuple[float, float] | None, device: _Device
    ) -> Finder: ...
    @property
    def options(self) -> _Options: ...
    def detect(self, image: Any, mask: Any = None) -> Features: ...
    def detect_together(self, images: Sequence[Any]) -> list[Features]: ...

@final
class Stereo:
    def __new__(
        cls,
        options: _Options,
        window: str | None,
        penalties: tuple[int | None, ...],
        memory: int | str | None,
        device: _Device,
    ) -> Stereo: ...
    @property
    def options(self) -> _Options: ...
    def compute(
        self, left: Any, right: Any, mask_left: Any = None, mask_right: Any = None, no_data: float | None = None
    ) -> dict[str, Any]: ...

def devices() -> list[dict[str, Any]]: ...
def defaults(what: str) -> _Options: ...
def nearest(device: _Device, a: Features, b: Features) -> Sequence[Any]: ...
def match_features(
    device: _Device, a: Features, b: Features, options: _Options, guide: tuple[_Model, float] | None
) -> Sequence[Any]: ...
def tie_points(
    device: _Device,
    a: Features,
    b: Features,
    model: str | None,
    matching: _Options,
    robust: _Options,
    rematch: _Options | None,
) -> dict[str, Any]: ...
def estimate(
    device: _Device, kind: str, a: Any, b: Any, quality: Any, options: _Options
) -> tuple[_Model, npt.NDArray[np.bool_], float, int]: ...
def residuals(model: _Model, a: Any, b: Any) -> _Doubles: ...
def apply(model: _Model, xy: Any) -> _Doubles: ...
def invert(model: _Model) -> _Model | None: ...
def warp(device: _Device, image: Any, model: _Model, size: _Size, options: _Options) -> Sequence[Any]: ...
def register(
    finder: Finder,
    fixed: Any,
    moving: Any,
    masks: _Masks,
    model: str,
    matching: _Options,
    robust: _Options,
    rematch: _Options | None,
    views: int | None,
    warp: _Options,
) -> dict[str, Any]: ...
def rectify(
    finder: Finder,
    left: Any,
    right: Any,
    masks: _Masks,
    rig: _Options | None,
    frame: str | None,
    matching: _Options,
    robust: _Options,
    focal: float | None,
    warp: _Options,
) -> dict[str, Any]: ...
def rectify_stored(device: _Device, left: Any, right: Any, rig: _Options, warp: _Options) -> dict[str, Any]: ...
def depth(device: _Device, disparity: Any, calibration: _Options) -> _Floats: ...
def points(
    disparity: Any, colours: Any, calibration: _Options, max_depth: float = ...
) -> Sequence[Any]: ...
def gauss(device: _Device, image: Any, sigma: float | None, size: int | None, border: str) -> Any: ...
def sobel(device: _Device, image: Any, part: str, border: str) -> Any: ...
def hessian(device: _Device, image: Any, weight: float, border: str) -> _Floats: ...
def blobs(device: _Device, image: Any, weight: float, threshold: float, border: str) -> Sequence[Any]: ...
def convolve(device: _Device, image: Any, kernel: Any, float: bool, border: str) -> Any: ...
def read(path: _Path, max_pixels: int | None = None, max_bytes: int | None = None) -> Any: ...
def decode(data: bytes, max_pixels: int | None = None, max_bytes: int | None = None) -> Any: ...
def write(path: _Path, image: Any) -> None: ...
def read_features(path: _Path) -> Features: ...
def write_features(path: _Path, features: Features) -> None: ...
def write_matches(
    path: _Path,
    names: tuple[str, str],
    a: Features,
    b: Features,
    pairs: Any,
    distance: Any,
    ratio: Any,
    inliers: Any,
) -> None: ...
def read_disparity(path: _Path, scale: float | None, signed: bool) -> _Floats: ...
def write_disparity(path: _Path, disparity: Any) -> None: ...
def read_points(path: _Path) -> Sequence[Any]: ...
def write_points(
    path: _Path, disparity: Any, colours: Any, calibration: _Options, max_depth: float, ascii: bool
) -> int: ...
def read_homography(path: _Path) -> _Doubles: ...
def read_rectified(path: _Path) -> _Options: ...
def write_rectified(path: _Path, calibration: _Options) -> None: ...
def read_calibration(paths: list[_Path]) -> _Options: ...
def corner_error(found: Any, truth: Any, size: _Size) -> float: ...
def matching_accuracy(a: Any, b: Any, truth: Any) -> list[float]: ...
def angle_error(a: Any, angle_a: Any, angle_b: Any, truth: Any) -> tuple[int, float, float]: ...
def repeatability(
    a: Features, b: Features, truth: Any, options: _Options
) -> tuple[int, int, int, float]: ...
def disparity_score(found: Any, truth: Any, mask_: Any, thresholds: list[float], fill: bool) -> dict[str, Any]: ...
def texture(size: _Size, kind: str, seed: int, dtype: str) -> Any: ...
def scene(
    size: _Size,
    moving_from_reference: Any,
    texture: str,
    seed: int,
    photometry: tuple[float, float, float, float],
    dtype: str,
) -> Sequence[Any]: ...
def stereo_scene(
    size: _Size,
    disparities: tuple[float, float],
    surfaces: int,
    scenery: str,
    texture: str,
    seed: int,
    noise: float,
    colour: bool,
    dtype: str,
) -> dict[str, Any]: ...
def report(
    title: str,
    lead: str,
    sections: list[tuple[str, list[tuple[str, str]], list[dict[str, Any]]]],
    limit: int | None,
) -> str: ...
