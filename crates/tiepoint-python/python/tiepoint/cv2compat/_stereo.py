"""`StereoSGBM` with OpenCV's parameters and fixed-point disparities, and the matcher of the right view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _arrays
from .._progress import log
from .._stereo import Stereo
from .._warn import warn
from ..errors import OptionError
from ._own import Algorithm, accessors, host, like, naming, needed, parameters, placed, raising

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

STEREO_SGBM_MODE_SGBM = 0
STEREO_SGBM_MODE_HH = 1
STEREO_SGBM_MODE_SGBM_3WAY = 2
STEREO_SGBM_MODE_HH4 = 3

#: The number of directions along which costs are aggregated, by mode.
_PATHS = {STEREO_SGBM_MODE_SGBM: 5, STEREO_SGBM_MODE_HH: 8, STEREO_SGBM_MODE_SGBM_3WAY: 4, STEREO_SGBM_MODE_HH4: 4}

#: OpenCV's names of our options, for errors.
_NAMES = {
    "min_disparity": "minDisparity",
    "disparities": "numDisparities",
    "uniqueness": "uniquenessRatio",
    "max_difference": "disp12MaxDiff",
    "speckle_size": "speckleWindowSize",
    "speckle_difference": "speckleRange",
}

#: Parameters of OpenCV's matching cost, with their defaults.
_OF_THEIR_COST = {"blockSize": 3, "P1": 0, "P2": 0, "preFilterCap": 0}


class StereoMatcher(Algorithm):
    """`cv2.StereoMatcher`."""

    DISP_SHIFT = 4
    DISP_SCALE = 16


class StereoSGBM(StereoMatcher):
    """`cv2.StereoSGBM` by `tiepoint.Stereo`, whose `device` it takes, too.

    `blockSize`, `P1`, `P2` and `preFilterCap` belong to OpenCV's matching cost. They are stored and returned but have
    no effect: the cost here is census joined with colour, with penalties that suit it. As in OpenCV's program, both
    views are always checked against each other, to one pixel if `disp12MaxDiff` is not above 0, and a negative
    `uniquenessRatio` means 10. There are 5 paths for ``MODE_SGBM``, 4 for ``MODE_SGBM_3WAY`` and ``MODE_HH4``, 8 for
    ``MODE_HH``.
    """

    MODE_SGBM, MODE_HH, MODE_SGBM_3WAY, MODE_HH4 = range(4)

    _name = "my_object"
    _accessors = accessors(
        "minDisparity", "numDisparities", "blockSize", "P1", "P2", "disp12MaxDiff", "preFilterCap", "uniquenessRatio",
        "speckleWindowSize", "speckleRange", "mode",
    )  # fmt: skip

    def __init__(
        self,
        minDisparity: int = 0,  # noqa: N803
        numDisparities: int = 16,  # noqa: N803
        blockSize: int = 3,  # noqa: N803
        P1: int = 0,  # noqa: N803
        P2: int = 0,  # noqa: N803
        disp12MaxDiff: int = 0,  # noqa: N803
        preFilterCap: int = 0,  # noqa: N803
        uniquenessRatio: int = 0,  # noqa: N803
        speckleWindowSize: int = 0,  # noqa: N803
        speckleRange: int = 0,  # noqa: N803
        mode: int = STEREO_SGBM_MODE_SGBM,
        *,
        device: Any = None,
    ) -> None:
        super().__init__(parameters(locals()))
        self._device = device
        self._changed()

    def _changed(self) -> None:
        given = self._given
        if given["mode"] not in _PATHS:
            raise OptionError(f"option mode is {given['mode']}: expected one of STEREO_SGBM_MODE_…")
        if unused := [name for name, default in _OF_THEIR_COST.items() if given[name] != default]:
            log().info("StereoSGBM: %s of OpenCV's cost do not count", ", ".join(unused))
        uniqueness = given["uniquenessRatio"]
        with naming(_NAMES):
            self._stereo = Stereo(
                min_disparity=given["minDisparity"],
                disparities=given["numDisparities"],
                paths=_PATHS[given["mode"]],  # type: ignore[arg-type]
                uniqueness=uniqueness if uniqueness >= 0 else 10,
                right_view="diagonal",
                max_difference=float(given["disp12MaxDiff"] if given["disp12MaxDiff"] > 0 else 1),
                speckle_size=max(given["speckleWindowSize"], 0),
                # OpenCV compares 16ths of a pixel.
                speckle_difference=max(float(given["speckleRange"]), 1 / 16),
                device=placed(self._device),
            )

    def compute(self, left: Any, right: Any, disparity: Any = None) -> npt.NDArray[np.int16]:
        """16 times the disparities, (H, W) int16; (minDisparity − 1) · 16 where there is none. Beyond ±2047 they wrap."""
        import numpy as np

        # Three channels have equal weights except in the grey of edges, so blue, green, red becomes red, green, blue.
        given, left, right = left, _rgb(left), _rgb(right)
        least, width = self._given["minDisparity"], np.shape(left)[1]
        if (most := least + self._given["numDisparities"]) >= width or least <= -width:
            warn(
                f"disparities from {least} to {most - 1} are searched in images {width} pixels wide, which hardly have pairs so far "
                "apart (OpenCV refuses this): expected smaller numDisparities or wider images",
            )
        if least < -2047 or most > 2048:
            warn(
                f"disparities from {least} to {most - 1} are searched, of which 16 bits hold 16 times -2047 to 2047; others wrap, as "
                "OpenCV's do: tiepoint.Stereo gives them as floats",
            )
        found = np.asarray(self._stereo.compute(left, right).disparity)
        none = (self._stereo.min_disparity - 1) * 16
        made = np.where(np.isnan(found), none, np.rint(np.nan_to_num(found) * 16)).astype(np.int16)
        if isinstance(disparity, np.ndarray) and disparity.shape == made.shape and disparity.dtype == np.int16:
            disparity[...] = made
            return disparity
        told: npt.NDArray[np.int16] = like(given, made)
        return told

    def opencv(self) -> Any:
        """`cv2.StereoSGBM` with the same parameters; its results are OpenCV's."""
        return needed("StereoSGBM.opencv").StereoSGBM_create(*self._given.values())


def _rgb(image: Any) -> Any:
    """An image of blue, green and red, with the order of its channels reversed."""
    import numpy as np

    image = host(image)
    if isinstance(image, np.ndarray) and image.ndim == 3 and image.shape[2] in (3, 4):
        return np.ascontiguousarray(image[..., 2::-1])
    return _arrays.image(image, "the image") if not isinstance(image, np.ndarray) else image


@raising
def createRightMatcher(matcher_left: Any) -> Any:  # noqa: N802
    """`cv2.ximgproc.createRightMatcher`: for this package's `StereoSGBM` another one, whose ``compute(right, left)`` gives
    the disparities of the right view, which are negative as OpenCV's are."""
    if not issubclass(type(matcher_left), StereoSGBM):
        return needed("a right matcher of OpenCV's matcher").ximgproc.createRightMatcher(matcher_left)
    given = matcher_left._given
    least = 1 - given["minDisparity"] - given["numDisparities"]
    changed = {"minDisparity": least, "uniquenessRatio": 0, "speckleWindowSize": 0, "disp12MaxDiff": 1_000_000}
    return StereoSGBM(**{**given, **changed}, device=matcher_left._device)


@raising
def createDisparityWLSFilter(matcher_left: Any) -> Any:  # noqa: N802
    """`cv2.ximgproc.createDisparityWLSFilter`: OpenCV's filter, set up with the parameters of this package's matcher."""
    theirs = needed("createDisparityWLSFilter")
    if not hasattr(theirs, "ximgproc"):
        raise OptionError("createDisparityWLSFilter needs OpenCV's contrib modules: pip install opencv-contrib-python-headless")
    own = matcher_left.opencv() if issubclass(type(matcher_left), StereoSGBM) else matcher_left
    return theirs.ximgproc.createDisparityWLSFilter(own)
