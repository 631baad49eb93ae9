"""Progress of long work: reported to a function, drawn as a bar, and logged by ``logging.getLogger("tiepoint")``."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from .errors import OptionError

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Iterator

__all__ = ["State"]

#: Seconds from one line of the log to the next.
_EVERY = 60.0

#: The level of those lines, ``logging.INFO``.
_INFO = 20


def log() -> logging.Logger:
    """The package's log, silent until a handler is set."""
    import logging

    logger = logging.getLogger("tiepoint")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger


class State(NamedTuple):
    """The progress of a task.

    Parameters
    ----------
    task : str
        The name of the task: ``"SIFT"``, ``"match"``, …
    done, total : int
        Steps done, and steps in all. A step may be some rows, an image, or another unit of work.
    left_out : int
        For a collection, the number of photographs that the task has left out so far.
    """

    task: str
    done: int
    total: int
    left_out: int = 0


if TYPE_CHECKING:
    #: The values that an argument `progress` takes.
    _Progress = Callable[[State], object] | bool | None


class _Bar:
    """A bar on the terminal or in a notebook: tqdm's if that is installed, otherwise a line that looks like it."""

    def __init__(self) -> None:
        self._task = ""
        self._started = self._told = 0.0
        self._open: Any = None
        self._shown = False

    def __call__(self, state: State) -> None:
        # Without a console there is no bar, and the work goes on.
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr is not None:
                self._show(state)

    def _show(self, state: State) -> None:
        if state.task != self._task:
            self._end()
            self._task, self._started, self._told = state.task, time.monotonic(), 0.0
        try:
            from tqdm.auto import tqdm  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            self._line(state)
            return
        if self._open is None:
            self._open = tqdm(total=state.total, desc=state.task)
        self._open.total = state.total
        self._open.update(state.done - self._open.n)

    def _line(self, state: State) -> None:
        now = time.monotonic()
        if now - self._told < 0.1 and state.done < state.total:
            return
        self._told, self._shown = now, True
        share = state.done / state.total
        past = now - self._started
        left = f"{_clock(past / share - past)}" if share > 0 else "?"
        bar = ("█" * round(20 * share)).ljust(20)
        line = f"\r{state.task}: {100 * share:3.0f}%|{bar}| {state.done}/{state.total} [{_clock(past)}<{left}]"
        sys.stderr.write(line)
        sys.stderr.flush()

    def close(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._end()

    def _end(self) -> None:
        bar, self._open, shown, self._shown = self._open, None, self._shown, False
        if bar is not None:
            bar.close()
        if shown and sys.stderr is not None:
            sys.stderr.write("\n")


def _clock(seconds: float) -> str:
    whole = int(seconds)
    hours = f"{whole // 3600}:" if whole >= 3600 else ""
    return f"{hours}{whole // 60 % 60:02}:{whole % 60:02}"


class _Log:
    """A line each minute, and one at the end of a task that took longer than a second."""

    def __init__(self) -> None:
        self._task = ""
        self._told = self._started = time.monotonic()

    def __call__(self, state: State) -> None:
        now = time.monotonic()
        if state.task != self._task:
            self._task, self._told, self._started = state.task, now, now
        elif now - self._told >= _EVERY or (state.done == state.total and now - self._started >= 1.0):
            self._told = now
            log().info("%s: %d of %d", *state[:3])


@contextlib.contextmanager
def _told(progress: _Progress) -> Iterator[Callable[[State], None] | None]:
    """A function that passes states on to the caller's function, the bar and the log; None if there are none of these."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise OptionError(f"option progress is {progress!r}: expected a function of one argument, True or None")
    bar = _Bar() if progress is True else None
    hears: list[Callable[[State], object]] = [_Log()] if log().isEnabledFor(_INFO) else []
    if bar is not None:
        hears.append(bar)
    elif callable(progress):
        hears.append(progress)

    def tell(state: State) -> None:
        # What the function itself calls is not reported to it.
        before = _core.watch(None)
        try:
            for hear in hears:
                hear(state)
        finally:
            _core.watch(before)

    try:
        yield tell if hears else None
    finally:
        if bar is not None:
            bar.close()


@contextlib.contextmanager
def watched(progress: _Progress) -> Iterator[None]:
    """Within this context, calls of this thread report to `progress`, at most about fifty times a second."""
    with _told(progress) as tell:
        if tell is None:
            yield
            return
        before = _core.watch(lambda *state: tell(State(*state)))
        try:
            yield
        finally:
            _core.watch(before)


@contextlib.contextmanager
def counting(task: str, total: int | None, progress: _Progress) -> Iterator[Callable[[int], None]]:
    """A function that counts the steps of a loop in Python; without a total it reports only how many are done."""
    with _told(progress) as tell:
        done = 0

        def count(steps: int) -> None:
            nonlocal done
            done += steps
            if tell is not None:
                tell(State(task, done, done if total is None else total))

        yield count
