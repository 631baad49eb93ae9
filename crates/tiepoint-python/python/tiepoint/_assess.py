"""Verdicts on results, with the numbers behind them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, TypedDict

from ._base import Result

__all__ = ["Assessment", "Reason"]

if TYPE_CHECKING:
    _Verdict = Literal["good", "doubtful", "poor"]


class Reason(TypedDict):
    """One measure of a result."""

    measure: str
    value: float
    expected: str
    verdict: _Verdict
    text: str
    next: str | None


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

    verdict: _Verdict
    reasons: list[Reason]

    def _summary(self) -> list[tuple[str, str]]:
        return [("verdict", self.verdict), *((reason["measure"], reason["text"]) for reason in self.reasons)]
