"""Captures that do not hold all of what they are asked about."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scopedown.account.account import Account
from scopedown.decide.rules.base import Finding
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.report import Prediction
from scopedown.terms import Category, Scope
from scopedown.trace.model import Ints
from scopedown.trace.names import ApiMeaning
from scopedown.units import show_ns, show_share

#: Holes below this share of their kind are edges of the capture: every trace has some.
HOLES = 0.01
#: Where time goes that a missing record would have named.
UNSEEN = (Category.OUTSIDE_CAPTURE, Category.NO_LAUNCH_RECORD, Category.UNACCOUNTED)


class PartialCapture:
    """Parts of the interval, or of its records, are not in the trace.

    What it sees
        The part of the interval outside the captured window; launches and graph launches of the interval that have no
        device op; device ops that have no launch; and whether what they could hide is material.
    Why it matters
        A device looks idle where its records are missing. Busy time of such a trace is a lower bound, and an idle
        device found in it starts work on the host that no host can repay.
    What it opens next
        The timeline again: a window that holds the request, graphs traced by node, buffers that do not overflow.
    What refutes it
        A capture of the whole interval, with a device op for every launch, shows the same ledger.
    What it must not be confused with
        A few ops at the edge of a window that were launched before it. Host-only programs, which launch nothing.
        Graphs recorded as a whole: their time is there, only their inside is not.
    References
        AMD-AGI/TraceLens#728, AMD-AGI/Hyperloom#1047 (idle devices that were busy); pytorch/pytorch#192021 (first
        iterations without kernels).
    """

    id: ClassVar[str] = "partial_capture"

    def find(self, s: Situation) -> list[Finding]:
        found = []
        outside = s.path_ns(Category.OUTSIDE_CAPTURE)
        if outside and outside >= s.material_ns:
            path = s.account.path
            ns = path.ns[path.category == Category.OUTSIDE_CAPTURE.code]
            found.append(
                Finding(
                    self.id,
                    Category.OUTSIDE_CAPTURE,
                    "outside the capture",
                    ns,
                    outside,
                    Scope.TIMELINE,
                    state=lambda _: _statement(s, ns, outside),
                )
            )
        if s.account.timeline is None or s.account.service is None:
            return found
        hidden = material_words(s)
        for label, category, ns, of in holes(s.account):
            path_ns = s.path_ns(category)
            if len(ns) >= max(1, HOLES * of) or (path_ns and path_ns >= s.material_ns and len(ns)):
                text = f"{label}: {hidden}"
                found.append(Finding(self.id, category, text, ns, path_ns, Scope.TIMELINE, of))
        return found


def holes(account: Account) -> list[tuple[str, Category, Ints, int]]:
    """``(what, category, length of each, of how many)`` inside the interval: call lengths for launches without an op,
    op lengths for ops without a launch."""
    t = account.timeline
    if t is None:
        return []
    lo, hi = account.service or (account.lo, account.hi)
    calls, ops = t.calls, t.trace.ops
    with_op = np.zeros(len(calls), np.bool_)
    with_op[calls.of_op[calls.of_op >= 0]] = True
    inside = (calls.start >= lo) & (calls.end <= hi)
    found = []
    for what, meaning, category in (
        ("launches without a device op", ApiMeaning.LAUNCH, Category.UNACCOUNTED),
        ("graph launches without a record", ApiMeaning.GRAPH_LAUNCH, Category.UNACCOUNTED),
    ):
        mine = inside & (calls.meaning == meaning)
        lost = np.flatnonzero(mine & ~with_op)
        found.append((what, category, calls.end[lost] - calls.start[lost], int(mine.sum())))
    present = (ops.start < hi) & (ops.end > lo)
    lost = np.flatnonzero(present & (calls.of_op < 0))
    found.append(
        ("device ops without a launch", Category.NO_LAUNCH_RECORD, ops.end[lost] - ops.start[lost], int(present.sum()))
    )
    return found


def material_words(s: Situation) -> str:
    """Whether what is unseen on the path could change the decision."""
    unseen = s.account.ns_of(*UNSEEN)
    could = unseen >= s.material_ns and unseen > 0
    enough = "enough to change" if could else "too little to change"
    return f"{show_ns(unseen)} of the path are unseen, {enough} the decision (material is {show_ns(s.material_ns)})"


def _statement(s: Situation, ns: Ints, outside: int) -> Statement:
    window = s.coverage.window_ns if s.coverage is not None else None
    captured = f"; the capture lasts {show_ns(window[1] - window[0])}" if window is not None else ""
    return Statement(
        text=(
            f"{show_ns(outside)} ({show_share(outside, s.total_ns)}) of the {show_ns(s.total_ns)} lie outside the "
            f"capture{captured}: what happened there is unknown, not idle; {material_words(s)}"
        ),
        category=Category.OUTSIDE_CAPTURE,
        subject="outside the capture",
        value=float(outside),
        unit="ns",
        count=max(len(ns), 1),
        location="before the first or after the last row of the capture",
        evidence=(s.evidence.get("trace", "trace"),),
        predicts=(
            Prediction(
                metric=str(Category.OUTSIDE_CAPTURE), direction="falls", amount_ns=outside, tolerance_ns=s.material_ns
            ),
        ),
        refuted_by=("a capture of the whole interval leaves the ledger as it is",),
    )
