"""Symptoms within their target, and ledgers without a material line."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scopedown.account.account import LedgerLine
from scopedown.decide.rules.base import Finding, unchanged
from scopedown.decide.rules.late_client import name_of
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.trace.model import Ints
from scopedown.units import show_ns, show_share


class NothingWrong:
    """The target is met, or nothing in the interval is large enough to be worth a change.

    What it sees
        The recorded statistic against its target; every line of the ledger against what is material. It says which
        line is largest all the same.
    Why it matters
        A number can always be made smaller. Work on a line that is below the materiality cannot be told from noise
        afterwards, and work beyond the target buys nothing that was asked for.
    What it opens next
        Nothing. Another complaint, or a tighter target, is another question.
    What refutes it
        The same load, run again, misses its target.
    What it must not be confused with
        Evidence that does not cover the interval: there no line is material because nothing was seen. A target met by
        the median while the complaint is about a percentile. Percentiles that hide a time-out.
    References
        Gregg, "Systems Performance" (2020), chapter 2: anti-methods (changes without a goal).
    """

    id: ClassVar[str] = "nothing_wrong"

    def find(self, s: Situation) -> list[Finding]:
        if s.recapture or not s.is_latency:
            return []
        lines = s.account.lines()
        if not lines:
            return []
        value = met_by(s)
        largest = lines[0]
        if value is None and largest.ns >= s.material_ns:
            return []
        path = s.account.path
        ns = path.ns[(path.category == largest.category.code) & (path.label == largest.code)]
        return [
            Finding(
                self.id,
                largest.category,
                largest.label or str(largest.category),
                ns,
                largest.ns,
                None,
                state=lambda _: _statement(s, value, largest, len(lines), ns),
            )
        ]


def met_by(s: Situation) -> int | None:
    """The value that is within the target; None where there is no target or it is missed."""
    if s.symptom is None or s.symptom.target_ns is None:
        return None
    if s.chosen is not None and s.chosen.at_least:
        return None
    value = s.chosen.value_ns if s.chosen is not None else s.total_ns // s.parts
    return value if value <= s.symptom.target_ns else None


def _statement(s: Situation, value: int | None, largest: LedgerLine, lines: int, ns: Ints) -> Statement:
    share = show_share(largest.ns, s.total_ns)
    most = f"the largest of {lines} lines is {largest.category} ({largest.label}) with {show_ns(largest.ns)} ({share})"
    if value is not None and s.symptom is not None:
        target = s.symptom.target_ns or 0
        text = (
            f"{name_of(s.symptom)} is {show_ns(value)}, {show_ns(target - value)} within its target of "
            f"{show_ns(target)}: no line needs a change; {most}"
        )
        refuted = "the same load, run again, misses the target"
    else:
        text = f"no line is material: {most}, below the material {show_ns(s.material_ns)}"
        refuted = "a change of any one line moves the metric by more than the material amount"
    return Statement(
        text=text,
        category=largest.category,
        subject=largest.label or str(largest.category),
        value=float(s.total_ns if value is None else value),
        unit="ns",
        count=max(len(np.atleast_1d(ns)), 1),
        location="the whole interval",
        evidence=tuple(s.evidence.values()) or ("the evidence",),
        predicts=(unchanged(s, s.material_ns),),
        refuted_by=(refuted,),
    )
