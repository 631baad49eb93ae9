"""Collections: a folder of photographs becomes verified matches of all pairs that show the same thing."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, TypedDict

from . import _core, _options, _pickle
from ._assess import Assessment
from ._base import Result
from ._progress import log, watched
from ._warn import warn
from .errors import FormatError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from ._core import Device, Features
    from ._progress import _Progress

    _Path = str | os.PathLike[str]
    _Devices = Device | str | Sequence[Device | str] | None

__all__ = ["Collection", "CollectionOptions", "VerifiedPair", "collect"]

#: How pairs are chosen; anything else is a file of pairs.
CHOICES = ("auto", "exhaustive", "sequence", "gps", "top-scale", "matches")


#: Names of photographs, and why each is named.
_Told = list[tuple[str, str]]


class Scanned(TypedDict, total=False):
    """What a scan found."""

    photographs: int
    added: int
    removed: int
    masked: int
    positions: int
    refused: _Told
    hidden: list[str]


class Extracted(TypedDict):
    """What the search for features did."""

    searched: int
    present: int
    unreadable: _Told
    failed: _Told
    without_mask: list[str]


class Matched(TypedDict):
    """What matching did."""

    pairs: int
    structure: int
    tiles: int
    left_out: int
    present: int
    complete: bool


class Status(TypedDict):
    """What of a collection is done, and what is left."""

    photographs: int
    searched: int
    features: int
    unreadable: _Told
    refused: _Told
    unfit: list[str]
    missing_features: list[int]
    changed: _Told
    pairs: int | None
    tried: int
    left_out: int
    verified: int
    inliers: int
    tiles: int
    tiles_done: int
    missing_pairs: list[int]
    missing_match: list[int]
    complete: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class CollectionOptions(_options.CollectionOptions):
    """How a collection is processed, as its work folder records it.

    Parameters
    ----------
    pairs : {"auto", "exhaustive", "sequence", "gps", "top-scale", "matches"} or path
        Which pairs to match, or a file of them: two names a line. ``"matches"``: those of `Collection.import_matches`, which
        are verified instead of a search.
    matches : path, optional
        A file of matches to verify instead of a search: COLMAP's text, or hloc's ``matches.h5``.
    """

    _left_out = ("list",)

    pairs: str | os.PathLike[str] = "auto"  # type: ignore[assignment]
    matches: str | os.PathLike[str] | None = None

    def _core(self) -> dict[str, Any]:
        """The options as the work folder records them, with absolute paths."""
        given = self._given()
        del given["matches"]
        if self.matches is not None:
            if self.pairs not in ("auto", "matches"):
                raise OptionError(f"option pairs is {self.pairs}: expected none beside matches, which name their pairs")
            given.update(pairs="matches", list=_there("matches", self.matches))
        elif given["pairs"] not in CHOICES:
            given.update(pairs="list", list=_there("pairs", self.pairs))
        for name in ("masks", "features"):
            if given[name] is not None:
                given[name] = _there(name, given[name])
        return given


def _there(option: str, path: _Path) -> str:
    if not os.path.exists(path):
        expected = f"{', '.join(CHOICES)}, or a file that is there" if option == "pairs" else "a file or folder that is there"
        raise OptionError(f"option {option} is {os.fspath(path)}: expected {expected}")
    return os.path.realpath(path)


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class VerifiedPair(Result):
    """Two photographs that show the same thing.

    Attributes
    ----------
    a, b : str
        Their names.
    pairs : ndarray
        (M, 2) int64: indices of matching features in a and in b.
    inliers : ndarray
        (M,) bool: which of them the geometry confirms.
    configuration : str
        The configuration of the two views, by COLMAP's rules: ``"calibrated"``, ``"uncalibrated"``, ``"planar"``,
        ``"panoramic"`` or ``"planar or panoramic"``.
    fundamental, essential, homography : ndarray or None
        (3, 3) float64: F with ``x_bᵀ F x_a = 0`` in pixels, E likewise for normalised points, and H from a to b.
    """

    a: str
    b: str
    pairs: npt.NDArray[np.int64]
    inliers: npt.NDArray[np.bool_]
    configuration: str
    fundamental: npt.NDArray[np.float64] | None
    essential: npt.NDArray[np.float64] | None
    homography: npt.NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.pairs)

    def _summary(self) -> list[tuple[str, str]]:
        told = [("a", self.a), ("b", self.b), ("configuration", self.configuration)]
        return [*told, ("matches", str(len(self))), ("inliers", str(int(self.inliers.sum())))]


class Collection:
    """Photographs, and everything that was found in them, in a work folder.

    Every stage continues where it stopped, on any number of threads, devices and machines, and ends with the same
    bytes. `collect` runs all stages.

    Parameters
    ----------
    work : path
        A work folder that `scan`, `collect` or the command has made.
    max_pixels : int or str, optional
        The most pixels a photograph or mask may have; 2³² if not given. `extract` leaves a larger photograph out and says
        why. The folder does not record limits, so that a later `extract` with a higher limit searches the photograph.
    max_bytes : int or str, optional
        The most bytes a photograph or mask may take in memory, such as ``"8GiB"``; 4 GiB if not given.
    sync : bool
        Flush the files of a stage to disk before the stage ends. Without it, a power failure may lose some of them.
    """

    def __init__(
        self,
        work: _Path,
        *,
        max_pixels: int | str | None = None,
        max_bytes: int | str | None = None,
        sync: bool = True,
    ) -> None:
        self._core = _core.Collection(os.path.abspath(work), (max_pixels, max_bytes), sync)
        self._scanned: Scanned = {}

    @classmethod
    def scan(
        cls,
        images: _Path | Sequence[_Path],
        work: _Path,
        options: CollectionOptions | None = None,
        *,
        device: Device | str | None = None,
        max_pixels: int | str | None = None,
        max_bytes: int | str | None = None,
        sync: bool = True,
    ) -> Collection:
        """List photographs in a work folder, which is created if it does not exist.

        In an existing folder it finds photographs that were added, removed or changed, and takes over options of pairs
        and matching. Results of all other photographs are kept.

        Parameters
        ----------
        images : path or sequence of paths
            Photographs, and folders of them.
        work : path
            The work folder.
        options : CollectionOptions, optional
            How to process the collection. A folder that was made with other options of features refuses them.
        device : Device or str, optional
            The device whose threads read.
        max_pixels, max_bytes : optional
            Limits for the photographs that later stages read, as for `Collection`.
        sync : bool
            As for `Collection`.

        Raises
        ------
        MismatchError
            When an option of features is not what the folder records, or there is no photograph.
        """
        made = cls.__new__(cls)
        given = (CollectionOptions() if options is None else options)._core()
        if images is None:
            raise OptionError("images is None: expected a folder, or a list of photographs and folders")
        paths = [images] if isinstance(images, (str, os.PathLike)) else list(images)
        made._core, found = _core.Collection.scan(device, os.path.abspath(work), paths, given, (max_pixels, max_bytes), sync)
        warn(*found.pop("warnings"))
        found["refused"] = [(os.fspath(path), reason) for path, reason in found["refused"]]
        found["hidden"] = [os.fspath(path) for path in found["hidden"]]
        made._scanned = found
        return made

    @property
    def work(self) -> str:
        """The work folder."""
        return os.fspath(self._core.work)

    @property
    def root(self) -> str:
        """The folder below which the photographs lie."""
        return os.fspath(self._core.root)

    @property
    def names(self) -> list[str]:
        """The photographs: their paths below `root`, in the order of their numbers in a database."""
        return self._core.names

    @property
    def refused(self) -> list[tuple[str, str]]:
        """Files that this object's scan left out, and why; empty for a folder that was only opened."""
        return list(self._scanned.get("refused", []))

    @property
    def scanned(self) -> Scanned:
        """What this object's scan found: numbers of ``photographs``, of those ``added`` and ``removed`` since the last one,
        of those ``masked`` and with ``positions``; files that were ``refused``, with reasons, and ``hidden`` ones, which are
        left out. Empty for a folder that was only opened."""
        return self._scanned.copy()

    @property
    def options(self) -> CollectionOptions:
        """The options of the collection."""
        given = dict(self._core.options)
        listed = given.pop("list")
        if listed is not None:
            given["matches" if given["pairs"] == "matches" else "pairs"] = os.fspath(listed)
        return CollectionOptions(**given)

    @property
    def max_pixels(self) -> int:
        """The most pixels that a photograph or mask may have."""
        return self._core.limits[0]

    @property
    def max_bytes(self) -> int:
        """The most bytes that a photograph or mask may take in memory."""
        return self._core.limits[1]

    @property
    def sync(self) -> bool:
        """Whether the files of a stage are flushed to disk before the stage ends."""
        return self._core.sync

    def extract(self, *, device: _Devices = None, shard: tuple[int, int] = (0, 1)) -> Extracted:
        """Find the features of photographs that have none yet.

        Parameters
        ----------
        device : Device, str or sequence of them, optional
            Where to compute; several GPUs share the work.
        shard : tuple of int
            Part i of n, of several processes or machines that share the folder.

        Returns
        -------
        dict
            The numbers ``searched`` and ``present``; names with reasons: ``unreadable`` photographs cannot be read as
            pictures and are left out; ``failed`` ones are to be tried again, because the system could not read them or
            they have changed since the scan; and ``without_mask``, the names of photographs without a mask in the
            folder of masks. A warning says how many have no mask, and another that most photographs were left out.
        """
        found = self._core.extract(_devices(device), shard)
        warn(*found.pop("warnings"))
        done: Extracted = found
        return done

    def choose_pairs(
        self, *, device: Device | str | None = None, shard: tuple[int, int] = (0, 1)
    ) -> int | None:
        """Choose the pairs to match. Returns how many there are, or None while other parts are missing.

        Parameters
        ----------
        device : Device or str, optional
            The device whose threads compute.
        shard : tuple of int
            Part i of n.
        """
        chosen = self._core.choose_pairs(device, shard)
        if chosen is None:
            return None
        count, warning = chosen
        if warning is not None:
            warn(warning)
        return count

    def match_pairs(self, *, device: _Devices = None, shard: tuple[int, int] = (0, 1)) -> Matched:
        """Match and verify the pairs that are not done yet.

        Parameters
        ----------
        device : Device, str or sequence of them, optional
            Where to compute; several GPUs share the work.
        shard : tuple of int
            Part i of n.

        Returns
        -------
        dict
            ``pairs``: pairs that were tried; ``structure``: how many of them also by structure; ``tiles``: tiles
            written by this call; ``present``: tiles that were there already; ``left_out``: pairs left out because one
            of their photographs cannot be read; ``complete``: whether everything is done. If not, call it again when
            the other parts are done.
        """
        return self._core.match_pairs(_devices(device), shard)

    def export(
        self,
        path: _Path,
        *,
        replace: bool = False,
        descriptors: bool = True,
        colmap: str = "4.1",
        format: str | None = None,
        progress: _Progress = None,
    ) -> dict[str, int]:
        """Write COLMAP's database of the finished collection, or the tie points of its pairs for another program.

        Parameters
        ----------
        path : path
            The database; with `format` the folder of the pairs, for ``"asp"`` the start of the files' names.
        replace : bool
            Replace an existing file that was not written by tiepoint.
        descriptors : bool
            Write descriptors. COLMAP's mapper does not read them; without them the file has a sixth of the size.
        colmap : str
            The version of COLMAP whose layout the database has: ``"4.1"`` or ``"3.8"``. 3.8 cannot open newer layouts; later
            versions upgrade older ones.
        format : str, optional
            Write the inliers of each verified pair instead of a database: ``"asp"``, ``"micmac"``, ``"s2p"``, ``"qgis"`` or
            ``"vrt"``, as the command's ``collect export --format``.
        progress : callable or True, optional
            Reports progress: see `collect`.

        Returns
        -------
        dict
            Numbers of ``images``, ``cameras``, ``keypoints``, verified ``pairs``, ``inliers``, and ``positions``; with `format`
            of ``pairs`` and ``inliers``.
        """
        if format is not None and (replace or not descriptors or colmap != "4.1"):
            raise OptionError("option format: replace, descriptors and colmap are those of a database")
        if colmap not in ("3.8", "4.1"):
            raise OptionError(f"option colmap is {colmap}: expected 3.8 or 4.1")
        with watched(progress):
            written = self._core.export(path, replace, descriptors, colmap == "3.8", format)
        warn(*written.pop("warnings", []))
        return written

    def status(self, *, device: Device | str | None = None) -> Status:
        """What is done and what is left, as the command's `collect status` shows it.

        ``missing_features``, ``missing_pairs`` and ``missing_match`` are the numbers of photographs and tiles that are left:
        part ``i`` of ``n`` does those whose number modulo ``n`` is ``i``. ``changed`` are those of the missing photographs
        that need another scan, with reasons.

        Parameters
        ----------
        device : Device or str, optional
            The device whose threads read.
        """
        return self._core.status(device)

    def assess(self, *, device: Device | str | None = None) -> Assessment:
        """Judge the finished collection, as the command does: whether its verified pairs connect the photographs.

        Parameters
        ----------
        device : Device or str, optional
            The device whose threads read.
        """
        return Assessment(*self._core.assess(device))

    @property
    def verdict(self) -> str:
        """``"good"``, ``"doubtful"`` or ``"poor"``; `assess` has its reasons."""
        return self.assess().verdict

    def features(self, name: str) -> Features:
        """The features of a photograph, in its pixels.

        Parameters
        ----------
        name : str
            One of `names`.

        Raises
        ------
        FormatError
            When the photograph cannot be read, or has not been searched yet.
        """
        found, reason = self._core.features(self._number(name))
        if found is None:
            raise FormatError(f"{name} has no features: {reason}")
        return found

    def import_features(self, name: str, features: Features) -> None:
        """Store features that another program found for a photograph, instead of those that `extract` would find.

        They are checked and taken as those of ``CollectionOptions(features=…)``. Import features of all photographs:
        `extract` refuses to search others beside them. Import matches after the features.

        Parameters
        ----------
        name : str
            One of `names`.
        features : Features
            Of ``Features.from_arrays`` or `tiepoint.interop`, in pixels of the photograph as it is stored
            (``tiepoint.read(…, orient=False)``), with descriptors of any kind and width. All photographs need descriptors of
            one kind. With ``CollectionOptions(pairs="matches")`` they are not compared.

        Raises
        ------
        MismatchError
            When the features are of a picture of another size, or lie outside of the photograph.
        """
        warn(*self._core.import_features(self._number(name), features))

    def _number(self, name: str) -> int:
        names = self.names
        if name not in names:
            raise OptionError(f"the collection has no photograph {name}")
        return names.index(name)

    def import_matches(self, matches: Mapping[tuple[str, str], Any]) -> None:
        """Store matches that another program found; `match_pairs` verifies them instead of a search.

        They replace all that were stored before. The features must be there, and the options have ``pairs="matches"``; if
        features are imported later, import the matches again, because they name features by number.

        Parameters
        ----------
        matches : mapping
            For each pair of names `Matches`, or an array (M, 2): the index of a feature of the first, and one of the second.
        """
        import numpy as np

        numbers = {name: number for number, name in enumerate(self.names)}
        given = []
        for pair, found in matches.items():
            unknown = [name for name in pair if name not in numbers]
            if unknown:
                raise OptionError(f"the collection has no photograph {unknown[0]}")
            rows = np.asarray(getattr(found, "pairs", found))
            if rows.size == 0:
                rows = np.zeros((0, 2), np.uint32)
            if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
                expected = "(M, 2) integers, in each row the index of a feature of the first and one of the second"
                raise OptionError(f"matches of {pair[0]} and {pair[1]} are {rows.shape} {rows.dtype}: expected {expected}")
            if rows.size and not (0 <= rows.min() and rows.max() < 2**32):
                raise OptionError(f"matches of {pair[0]} and {pair[1]} have indices from {rows.min()} to {rows.max()}: expected those of features")
            given.append(([numbers[name] for name in pair], np.ascontiguousarray(rows, np.uint32)))
        self._core.import_matches(given)

    def pairs(self) -> Iterator[VerifiedPair]:
        """The verified pairs of the finished collection, block by block.

        Yields
        ------
        VerifiedPair
            In the order of the photographs.
        """
        names = self.names
        results = self._core.results()
        for block in range(results.blocks):
            for pair in results.pairs_of(block):
                yield VerifiedPair(**{**pair, "a": names[pair["a"]], "b": names[pair["b"]]})

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Collection({self.work!r}: {len(self)} photographs below {self.root!r})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[type, dict[str, Any]]]:
        given = {"max_pixels": self.max_pixels, "max_bytes": self.max_bytes, "sync": self.sync}
        return _pickle.options, (Collection, {"work": self.work, **given})


def _devices(device: _Devices) -> list[Any]:
    if device is None:
        return ["auto"]
    return [device] if isinstance(device, (str, _core.Device)) else list(device)


def collect(
    images: _Path | Sequence[_Path],
    output: _Path | None = None,
    *,
    work: _Path | None = None,
    options: CollectionOptions | None = None,
    device: _Devices = None,
    replace: bool = False,
    max_unreadable: int | None = None,
    max_pixels: int | str | None = None,
    max_bytes: int | str | None = None,
    sync: bool = True,
    progress: _Progress = None,
) -> Collection:
    """Make a verified collection of photographs, and write it as COLMAP's database.

    It may be interrupted at any time and called again: finished work is not repeated. ``logging.getLogger("tiepoint")``
    logs every stage at the level INFO, and the progress of a long one once a minute.

    Parameters
    ----------
    images : path or sequence of paths
        Photographs, and folders of them.
    output : path, optional
        The database to write.
    work : path, optional
        The work folder; the database's name with ``.work`` at its end if not given.
    options : CollectionOptions, optional
        How to process the collection.
    device : Device, str or sequence of them, optional
        Where to compute; several GPUs share the work.
    replace : bool
        Replace a database that was not written by tiepoint.
    max_unreadable : int, optional
        Raise a `FormatError` if more photographs than this cannot be read; if not given, they are left out.
    max_pixels : int or str, optional
        The most pixels a photograph or mask may have; 2³² if not given. A larger photograph is left out, and
        `Collection.status` says why; a later call with a higher limit includes it.
    max_bytes : int or str, optional
        The most bytes a photograph or mask may take in memory, such as ``"8GiB"``; 4 GiB if not given.
    sync : bool
        Flush files to disk before they count as done. Without it, a power failure may lose some of them.
    progress : callable or True, optional
        Reports progress, on this thread: a function of one argument with the fields ``task``, ``done``, ``total`` and
        ``left_out``; or True for a progress bar, tqdm's if that is installed. An exception that the function raises
        ends the work.

    Returns
    -------
    Collection
        Finished: its pairs, features, and page (`report`).
    """
    if work is None:
        if output is None:
            raise OptionError("give the work folder, the database to write, or both")
        work = f"{os.fspath(output)}.work"
    devices = _devices(device)
    if not devices:
        raise OptionError("option device is an empty list: expected at least one device")
    if options is not None and not isinstance(options, CollectionOptions):
        raise OptionError(f"option options is {options!r}: expected CollectionOptions(…)")
    with watched(progress):
        return _collected(
            images, output, work, options, devices, replace, max_unreadable, (max_pixels, max_bytes, sync)
        )


def _collected(
    images: Any, output: Any, work: Any, options: Any, devices: Any, replace: Any, max_unreadable: Any, limited: Any
) -> Collection:
    max_pixels, max_bytes, sync = limited
    if output is not None:
        _core.Collection.check_place(os.fspath(output), replace)
    collection = Collection.scan(
        images, work, options, device=devices[0], max_pixels=max_pixels, max_bytes=max_bytes, sync=sync
    )
    log().info("%d photographs below %s", len(collection), collection.root)
    for path, reason in collection.refused:
        log().warning("left out: %s: %s", path, reason)
    found = collection.extract(device=devices)
    log().info("features of %d photographs, of %d before", found["searched"], found["present"])
    for name, reason in found["unreadable"]:
        log().warning("left out: %s: %s", name, reason)
    if found["failed"]:
        name, reason = found["failed"][0]
        count = len(found["failed"])
        raise FormatError(f"{count} photographs could not be read, call again to go on; {name}: {reason}")
    left_out = [*collection.refused, *found["unreadable"]]
    unreadable, there = len(left_out), found["searched"] + found["present"]
    if max_unreadable is not None and unreadable > max_unreadable:
        name, reason = left_out[0]
        by_scan = len(collection.refused)
        scanned = f" (of these, the scan left out {by_scan})" if by_scan else ""
        raise FormatError(
            f"{unreadable} of {unreadable + there} photographs cannot be read{scanned}, and max_unreadable is {max_unreadable}; "
            f"{name}: {reason}"
        )
    if unreadable and not there:
        name, reason = left_out[0]
        raise FormatError(f"none of the photographs can be read; {name}: {reason}")
    log().info("%s pairs to match", collection.choose_pairs(device=devices[0]))
    matched = collection.match_pairs(device=devices)
    log().info("%d pairs tried, %d left out", matched["pairs"], matched["left_out"])
    if output is not None:
        written = collection.export(output, replace=replace)
        log().info("%s: %d verified pairs, %d inliers", os.fspath(output), written["pairs"], written["inliers"])
    return collection
