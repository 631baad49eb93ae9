"""Registration and rectification of two images."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import TYPE_CHECKING, Any, Literal

from . import _core
from ._base import Result
from ._arrays import image, kept, like, masked, unmasked, without_data
from ._calibration import Calibration, StereoCalibration
from ._features import Sift, Surf
from ._geometry import Model, kind, robust, warp
from ._matching import Rematch, TiePoints, matching, second, tied
from ._progress import watched
from ._warn import warn
from .errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._arrays import _Image
    from ._assess import _Verdict
    from ._core import Device
    from ._geometry import _Interpolation

    from ._progress import _Progress

    _Modality = Literal["auto", "same", "cross"]
    #: The models that an image is warped by.
    _WarpedBy = Literal["homography", "affine", "similarity", "rigid", "translation"]

__all__ = ["Rectified", "Registration", "rectify", "register"]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Registration(Result):
    """An image warped onto another.

    Attributes
    ----------
    fixed, moving : array_like
        Copies of the images that were given.
    warped : ndarray or DeviceArray
        `moving` on the pixels of `fixed`, with its channels; on the device where `moving` lies. Its type is that of `moving`
        if that is ``uint8``, ``uint16`` or ``float32``; truth values become ``uint8``, other numbers ``float32``.
    covered : ndarray or DeviceArray
        (H, W) uint8: 255 inside of `moving`, else 0. If `moving` is a masked array, it is also 0 where a pixel would be
        interpolated from masked ones; there `warped` is `fill`, or NaN in floats. Transparent pixels and NaN of other
        images do not count as missing: there it is 255.
    model : Model
        From `moving` to `fixed`.
    tie_points : TiePoints
        A is `moving`, B is `fixed`.
    """

    fixed: _Image
    moving: _Image
    warped: npt.NDArray[Any]
    covered: npt.NDArray[np.uint8]
    model: Model
    tie_points: TiePoints

    @property
    def verdict(self) -> _Verdict | None:
        """That of the tie points: ``"good"``, ``"doubtful"`` or ``"poor"``; its reasons are ``tie_points.reasons``."""
        return self.tie_points.verdict

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.model.__array__(dtype, copy)

    def _summary(self) -> list[tuple[str, str]]:
        import numpy as np

        share = float((np.asarray(self.covered) != 0).mean())
        return [*self.tie_points._summary(), ("covered", f"{100 * share:.1f} %")]

    def _picture(self) -> Any:
        return self.warped


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Rectified(Result):
    """Two images warped so that corresponding points lie in the same row.

    Attributes
    ----------
    left, right : ndarray or DeviceArray
        The rectified images, on the device of the given ones; NaN (floats) or 0 where they show nothing.
    valid_left, valid_right : ndarray or DeviceArray
        (H, W) uint8: 255 inside of the given images, else 0. Transparent pixels and NaN of these are 255, too.
    matrix_left, matrix_right : ndarray
        (3, 3): from each undistorted image to the rectified one.
    calibration : Calibration
        The calibration for `Stereo`; its `disparities` are the range to search: that of the tie points with a margin
        for nearer things, from 0 unless that doubles the work. None for a stored rectification: `Stereo.for_pair` measures it.
    exchanged : bool
        Whether the second of the given images is the left one.
    tie_points : TiePoints or None
        Between the images as they were given; None for a stored rectification.
    points : int
        The number of tie points that were compared.
    rms_vertical : float or None
        Root mean square of the difference of their rows in pixels.
    doubts : list of str
        Why the result is probably wrong: rows of tie points differ, the scene lies behind the cameras, or a reason of
        `tie_points` is poor; and why depth is uncertain, as from a focal length that was found from two pictures.
    """

    left: npt.NDArray[Any]
    right: npt.NDArray[Any]
    valid_left: npt.NDArray[np.uint8]
    valid_right: npt.NDArray[np.uint8]
    matrix_left: npt.NDArray[np.float64]
    matrix_right: npt.NDArray[np.float64]
    calibration: Calibration
    exchanged: bool
    tie_points: TiePoints | None
    points: int
    rms_vertical: float | None
    doubts: list[str]

    @property
    def Q(self) -> npt.NDArray[np.float64]:  # noqa: N802
        """OpenCV's Q, (4, 4)."""
        return self.calibration.Q

    def _summary(self) -> list[tuple[str, str]]:
        height, width = self.left.shape[:2]
        told = [("size", f"{width}x{height}"), ("tie points", str(self.points))]
        if self.rms_vertical is not None:
            told.append(("rows", f"{self.rms_vertical:.2f} px"))
        if self.calibration.disparities is not None:
            told.append(("disparities", "{:g} to {:g}".format(*self.calibration.disparities)))
        told += [("doubt", doubt) for doubt in self.doubts]
        return told

    def _picture(self) -> Any:
        return self.left


def _finder(detector: Sift | Surf | None, device: Device | str | None) -> Sift | Surf:
    if detector is None:
        return Sift(device=device)
    if not isinstance(detector, (Sift, Surf)):
        raise OptionError(f"option detector is {detector!r}: expected a Sift or a Surf, such as tiepoint.Sift()")
    return detector if device is None else detector.replace(device=device)


def register(
    fixed: _Image,
    moving: _Image,
    model: _WarpedBy = "homography",
    *,
    detector: Sift | Surf | None = None,
    mask_fixed: _Image | None = None,
    mask_moving: _Image | None = None,
    ratio: float | None = 0.8,
    mutual: bool = True,
    same_sign: bool = True,
    max_distance: float | None = None,
    threshold: float = 3.0,
    confidence: float = 0.9999,
    max_iterations: int = 50_000,
    false_alarms: float = 1e-6,
    seed: int = 0,
    rematch: Rematch | None = Rematch(),  # noqa: B008
    views: int | None = None,
    modality: _Modality = "auto",
    scale_range: float = 2.0,
    interpolation: _Interpolation = "bicubic",
    fill: float = 0.0,
    device: Device | str | None = None,
    progress: _Progress = None,
) -> Registration:
    """Find where an image lies on another, and warp it there.

    Parameters
    ----------
    fixed, moving : array_like, (H, W) or (H, W, 1 to 4)
        The image that stays, and the one that is warped. The command calls the first REFERENCE. Of two and four channels the
        last is alpha, as in `Sift.detect`. Two images on a CUDA
        device are searched and warped there, and the results stay there. They are copied to the host only if pixels are
        transparent or NaN, for simulated views, or if the other image is there.
    model : {"homography", "affine", "similarity", "rigid", "translation"}
        The kind of model.
    detector : Sift or Surf, optional
        The detector of features; ``Sift()`` if not given.
    mask_fixed, mask_moving : array_like, (H, W), optional
        Not 0 where features are searched. What `mask_moving` leaves out is still warped, and `covered`; for pixels that
        hold no data give a masked array (``numpy.ma``), which is searched, warped and covers only where it is not
        masked.
    ratio, mutual, same_sign, max_distance
        Matching, as in `match`.
    threshold, confidence, max_iterations, false_alarms, seed
        Estimation, as in `estimate`.
    rematch : Rematch or None
        The second search; None leaves it out.
    views : int, optional
        Simulated views of each image, 1 to 43; if not given, 10 if the images themselves do not suffice.
    modality : {"auto", "same", "cross"}
        Whether both images are from one kind of sensor. ``"cross"``: they are matched by structure, which does not
        depend on brightness (radar, infrared, maps, depth, day and night). ``"auto"``: by
        structure only if too few features agree.
    scale_range : float
        The largest ratio of the scales of images from different sensors, 1 to 16. A wider range is searched where their
        sizes differ by more.
    interpolation, fill
        The warp, as in `warp`.
    device : Device or str, optional
        Where to compute; the detector's if not given.
    progress : callable or True, optional
        Reports progress: see `collect`.

    Returns
    -------
    Registration
        The same as the command ``register`` writes.

    Raises
    ------
    ModelError
        When too few matches agree.
    """
    work = _core.Register(
        kind(model),
        matching(ratio, mutual, same_sign, max_distance),
        robust(threshold, confidence, max_iterations, false_alarms, seed),
        second(rematch),
        views,
        (modality, scale_range),
        {"interpolation": interpolation, "fill": fill},
    )
    finder = _finder(detector, device)
    (a, _), (b, holes) = without_data(fixed, "the fixed image"), without_data(moving, "the moving image")
    with watched(progress):
        found = work.run(finder._finder, a, b, (mask_fixed, mask_moving))
    of_moving, of_fixed = found["features"]
    tie = tied(of_moving, of_fixed, found["tie_points"])
    assert tie.model is not None
    warped, covered = found["warped"], found["covered"]
    if finer := found["finer"]:
        warn(
            f"the moving image has {finer:.1f} times the resolution of the fixed one: it is sampled without averaging, "
            "so fine detail aliases; downsample it first, for instance with filter.resample",
        )
    if holes is not None:
        placed = {"interpolation": interpolation, "device": device}
        warped, covered = _holed(found, image(masked(moving).data, "the moving image"), holes, tie.model, fill, placed)
    return Registration(*kept(fixed, moving), like(warped, moving), covered, tie.model, tie)


def _holed(
    found: dict[str, Any], moving: Any, holes: Any, model: Model, fill: float, placed: dict[str, Any]
) -> tuple[Any, Any]:
    """A masked image warped, and where it has pixels that are not interpolated from masked ones."""
    import numpy as np

    warped, covered = np.asarray(found["warped"]), np.asarray(found["covered"]) != 0
    whole = moving.dtype.kind == "u"
    if whole:
        source = moving.astype(np.float32)
        source[holes] = math.nan
        source = source[..., 0] if source.shape[2:] == (1,) else source
        warped = np.asarray(warp(source, model, shape=covered.shape, fill=math.nan, **placed))
    there = ~np.isnan(warped)
    covered = covered & (there if there.ndim == 2 else there.all(-1))
    if whole:
        warped = np.where(covered if warped.ndim == 2 else covered[..., None], warped, fill)
        warped = np.rint(warped).clip(0, np.iinfo(moving.dtype).max).astype(moving.dtype)
    return warped, np.where(covered, np.uint8(255), np.uint8(0))


def _refuse_idle(given: dict[str, Any]) -> None:
    """Fails if an argument of `rectify` is given that has no effect on a stored rectification."""
    for name, default in (rectify.__kwdefaults__ or {}).items():
        value = given[name]
        if name not in ("stored", "interpolation", "device") and (value is not None if default is None else value != default):
            raise OptionError(f"option {name} has no effect on a stored rectification: leave it out, or stored=True")


def rectify(
    left: _Image,
    right: _Image,
    calibration: StereoCalibration | str | os.PathLike[str] | None = None,
    *,
    stored: bool = False,
    frame: Literal["input", "fit", "valid", "all"] | None = None,
    focal: float | None = None,
    detector: Sift | Surf | None = None,
    mask_left: _Image | None = None,
    mask_right: _Image | None = None,
    ratio: float | None = 0.8,
    mutual: bool = True,
    same_sign: bool = True,
    max_distance: float | None = None,
    threshold: float = 1.0,
    confidence: float = 0.9999,
    max_iterations: int = 50_000,
    false_alarms: float = 1e-6,
    seed: int = 0,
    modality: _Modality = "auto",
    scale_range: float = 2.0,
    interpolation: _Interpolation = "bicubic",
    device: Device | str | None = None,
) -> Rectified:
    """Warp two images so that corresponding points lie in the same row.

    Parameters
    ----------
    left, right : array_like, (H, W) or (H, W, 1 to 4)
        The pair. Two images on a CUDA device are searched and turned there, and stay there, as in `register`.
    calibration : StereoCalibration or path, optional
        The cameras; if not given, they are found from tie points, with a baseline of 1.
    stored : bool
        Take the rectification that the calibration stores (R1, R2, P1, P2). No features are searched: only `interpolation`
        and `device` may be given with it, and no masked arrays.
    frame : {"input", "fit", "valid", "all"}, optional
        Which part of the images to show; if not given, ``"input"`` with a calibration and ``"fit"`` without. The
        command calls it ``--crop``.
    focal : float, optional
        Focal length of `left` in pixels, where no calibration is given.
    detector : Sift or Surf, optional
        The detector of features; ``Sift()`` if not given.
    mask_left, mask_right : array_like, (H, W), optional
        Not 0 where features may lie. A masked array is also searched only where it is not masked.
    ratio, mutual, same_sign, max_distance
        Matching, as in `match`.
    threshold : float
        Largest distance of a tie point from its epipolar line in pixels; with a calibration, the largest deviation of
        its difference of rows from the median of all.
    confidence, max_iterations, false_alarms, seed
        Estimation, as in `estimate`.
    modality, scale_range
        Images of different sensors, as in `register`.
    interpolation : {"nearest", "bilinear", "bicubic", "lanczos"}
        How values between pixels are interpolated.
    device : Device or str, optional
        Where to compute; the detector's if not given.

    Returns
    -------
    Rectified
        The same images and calibration as the command ``rectify`` writes. The command also prints a verdict; here it is
        `tie_points.verdict`, and `doubts` has what the rows show.
    """
    if isinstance(calibration, (str, os.PathLike)):
        calibration = StereoCalibration.read(calibration)
    if not isinstance(calibration, (StereoCalibration, type(None))):
        given = type(calibration).__name__
        raise OptionError(f"option calibration is of the type {given}: expected a StereoCalibration or the path of one; focal= takes a number")
    warp = {"interpolation": interpolation}
    rig = None if calibration is None else calibration._fields()
    if stored:
        if rig is None:
            raise OptionError("option stored is True: expected a calibration that stores a rectification")
        _refuse_idle(locals())
        found = _core.rectify_stored(device, left, right, rig, warp)
    else:
        if rig is not None and focal is not None:
            raise OptionError(f"option focal is {focal}: expected none beside a calibration, which says what the focal lengths are")
        work = _core.Rectify(
            rig,
            frame,
            matching(ratio, mutual, same_sign, max_distance),
            robust(threshold, confidence, max_iterations, false_alarms, seed),
            (modality, scale_range),
            focal,
            warp,
        )
        (a, mask_a), (b, mask_b) = unmasked(left, mask_left), unmasked(right, mask_right)
        found = work.run(_finder(detector, device)._finder, a, b, (mask_a, mask_b))
    found["calibration"] = Calibration(**found["calibration"])
    if stored:
        return Rectified(**found, tie_points=None)
    of_left, of_right = found.pop("features")
    ties = tied(of_left, of_right, found["tie_points"])
    doubts = found.pop("doubts") + [reason["text"] for reason in ties.reasons if reason["verdict"] == "poor"]
    return Rectified(**{**found, "tie_points": ties, "doubts": doubts})
