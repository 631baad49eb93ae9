"""Verdicts on results, with the numbers behind them."""

from __future__ import annotations

import dataclasses
from typing import Any

from ._base import Result

__all__ = ["Assessment"]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Assessment(Result):
    """How far a result can be believed, and why.

    Attributes
    ----------
    verdict : str
        ``"good"``, ``"doubtful"`` or ``"poor"``: that of the worst reason.
    reasons : list of dict
        What was measured, the worst first: ``measure``, ``value``, ``expected``, ``verdict``, ``text``, and ``next``, what
        to do about it, or None.
    """

    verdict: str
    reasons: list[dict[str, Any]]

    def _summary(self) -> list[tuple[str, str]]:
        return [("verdict", self.verdict), *((reason["measure"], reason["text"]) for reason in self.reasons)]
