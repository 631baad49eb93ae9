"""Reports: an HTML file that shows why images match, how well one lies on the other, or the depth of a scene."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _core
from ._arrays import disparities, unmasked
from ._collection import Collection
from ._draw import check_size
from ._matching import TiePoints
from ._register import Rectified, Registration
from ._stereo import Disparities
from ._warn import warn
from .errors import FormatError, OptionError

if TYPE_CHECKING:
    from ._assess import Reason

    _Section = tuple[str, list[tuple[str, str]], list[dict[str, Any]], list[Reason]]

__all__ = ["Page", "report"]

#: The kinds of models with their articles.
_MODELS = {
    "homography": "a homography",
    "affine": "an affine map",
    "similarity": "a similarity",
    "rigid": "a rigid motion",
    "translation": "a translation",
    "fundamental": "a fundamental matrix",
    "essential": "an essential matrix",
}


class Page(str):
    """A page of HTML. A console shows only its size, a notebook the page."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Page({len(self)} characters of HTML)"

    def _repr_html_(self) -> str:
        import html

        # A frame keeps the page's script and style apart from the notebook's.
        return f'<iframe srcdoc="{html.escape(self)}" style="width: 100%; height: 720px; border: 0"></iframe>'


def report(
    result: TiePoints | Registration | Rectified | Disparities | Collection,
    path: str | os.PathLike[str] | None = None,
    *,
    images: tuple[Any, Any] | None = None,
    names: tuple[str | os.PathLike[str], str | os.PathLike[str]] = ("A", "B"),
    title: str | None = None,
    limit: int | None = None,
    truth: Any = None,
    made: str | None = None,
) -> Page:
    """Show a result on one self-contained page, which needs neither network nor server.

    Parameters
    ----------
    result : TiePoints, Registration, Rectified, Disparities or Collection
        The result to show. A collection must be finished; its photographs are read again.
    path : path, optional
        Where to write the page: ``.html``.
    images : tuple of array_like, optional
        The images A and B in which the features were found; needed for tie points, which do not contain them.
    names : tuple of str
        Their names.
    title : str, optional
        The title of the page.
    limit : int, optional
        The most bytes of the page; 20 000 000 if not given. Pictures and matches are reduced to fit.
    truth : array_like, (H, W), optional
        The true disparities, float32, not finite where they are unknown; the page shows the error of the result.
    made : str, optional
        How the result was made, such as the call with its options: the page says it below its date. If not given, it
        names the script.

    Returns
    -------
    Page
        The page, a string.

    Raises
    ------
    MismatchError
        When `images` have another size than those in which the features were found.
    FormatError
        When `path` has the extension of another format.
    """
    if path is not None and os.path.splitext(path)[1].lower() not in ("", ".html", ".htm"):
        raise FormatError(f"{os.fspath(path)}: the page is HTML: expected the extension .html")
    if truth is not None and not isinstance(result, Disparities):
        raise OptionError("truth is for disparities")
    if isinstance(result, Collection):
        if images is not None or title is not None:
            raise OptionError("a collection has its images and its folder's name: give neither images nor title")
        return _written(_collection(result, limit, _made(result, made)), path)
    a, b = names = os.fspath(names[0]), os.fspath(names[1])
    if isinstance(result, Registration):
        heading, sections = f"{a} on {b}", _registration(result, names)
    elif isinstance(result, TiePoints):
        if images is None:
            raise OptionError("tie points do not have their images: give images=(a, b)")
        if not isinstance(images, (tuple, list)) or len(images) != 2:
            raise OptionError("option images is no pair: expected (a, b)")
        heading, sections = f"{a} and {b}", [_matches(result, images, names)]
    elif isinstance(result, Rectified):
        heading, sections = f"{a} and {b}, rectified", [_rectified(result, images, names)]
    elif isinstance(result, Disparities):
        heading, sections = f"Disparities of {a}", [_disparity(result, names, truth)]
    else:
        expected = "its .registration" if hasattr(result, "registration") else "a result of tiepoint"
        raise OptionError(f"there is no page for {type(result).__name__}: expected {expected}")
    return _written(_core.report((title or heading, _told(result), _made(result, made)), sections, limit), path)


def _told(result: Any) -> str:
    """A result in a sentence, as the command has it."""
    tie = result.tie_points if isinstance(result, Registration) else result
    if not isinstance(tie, TiePoints):
        return repr(result)
    views = f" of {tie.views} views" if tie.views > 1 else ""
    told = f"{len(tie.a):,} and {len(tie.b):,} features{views}, {len(tie):,} matches"
    if tie.modality == "cross":
        told = f"{len(tie):,} places compared by structure"
    if tie.model is None:
        return told
    inliers, model = int(tie.inliers.sum()), _MODELS[tie.model.kind]
    return f"{told}, {inliers:,} ({100 * inliers / max(len(tie), 1):.0f} %) agree on {model} to {tie.rms:.2f} px"


def _written(page: str, path: str | os.PathLike[str] | None) -> Page:
    """The page, also written to a file if a path is given, whole or not at all."""
    if path is not None:
        _core.write_text(path, page)
    return Page(page)


def _made(result: Any, made: str | None) -> str:
    """How a page was made: the text that the caller gives, or the name of the script, without its folder."""
    if made is not None:
        return made
    import sys

    script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c") else ""
    return f"tiepoint.report of {type(result).__name__}" + (f", from {script}" if script else "")


def _collection(collection: Collection, limit: int | None, made: str) -> str:
    page, without = collection._core.page(None, limit, made)
    for name, reason in without:
        warn(f"the page has no picture of {name}: {reason}")
    return page


def _named(name: str, image: Any) -> tuple[str, Any]:
    """An image as the page takes it; what is masked is shown, too."""
    return name, unmasked(image, None)[0]


def _matches(tie: TiePoints, images: tuple[Any, Any], names: tuple[str, str]) -> _Section:
    for image, features in zip(images, tie._features(), strict=True):
        check_size(image, features)
    view = {
        "kind": "matches",
        "a": _named(names[0], images[0]),
        "b": _named(names[1], images[1]),
        "features_a": tie.a,
        "features_b": tie.b,
        "pairs": tie.pairs,
        "distance": tie.distance,
        "ratio": tie.ratio,
        "inliers": tie.inliers,
        "xy_a": tie.xy_a,
        "xy_b": tie.xy_b,
        "model": None if tie.model is None else (tie.model.kind, tie.model.matrix),
    }
    return "Matches", tie._summary(), [view], tie.reasons


def _registration(result: Registration, names: tuple[str, str]) -> list[_Section]:
    import numpy as np

    tie = result.tie_points
    view = {
        "kind": "registration",
        "reference": _named(names[1], result.fixed),
        "warped": (names[0], result.warped),
        "covered": result.covered,
        "predicted": result.model.apply(tie.xy_a[tie.inliers]),
        "found": tie.xy_b[tie.inliers],
    }
    covered = float((np.asarray(result.covered) != 0).mean())
    laid: _Section = ("One on the other", [("covered", f"{100 * covered:.1f} %")], [view], tie.reasons)
    # The verdict is above the first picture, and only there.
    return [laid, (*_matches(tie, (result.moving, result.fixed), names)[:3], [])]


def _rectified(result: Rectified, images: tuple[Any, Any] | None, names: tuple[str, str]) -> _Section:
    if result.tie_points is None or images is None:
        raise OptionError("the images as they were before are needed to show the tie points: give images=(left, right)")
    heading, _, views, reasons = _matches(result.tie_points, images, names)
    return heading, result._summary(), views, reasons


def _disparity(result: Disparities, names: tuple[str, str], truth: Any) -> _Section:
    truth = None if truth is None else disparities(truth, "the truth")
    known = result.calibration
    view = {
        "kind": "disparity",
        "left": _named(names[0], result.images[0]),
        "right": _named(names[1], result.images[1]),
        "disparity": result.disparity,
        "confidence": result.confidence,
        "reasons": result.reasons,
        "truth": truth,
        "calibration": None if known is None or known.affine else known._fields(),
    }
    # A verdict needs the range that was searched, which only results of `Stereo` record.
    reasons = [] if result.searched is None else result.assess(truth).reasons
    return "Disparities", result._summary(), [view], reasons
