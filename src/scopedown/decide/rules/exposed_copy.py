from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from scopedown.account import scenarios
from scopedown.decide.rules import copies, places
from scopedown.decide.rules.base import Finding
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category, Scope
from scopedown.trace.model import Ints
from scopedown.units import show_ns, show_share

#: Shorter copies are latency, not transfer.
LONG_NS = 20_000


class ExposedCopy:
    """A long copy on the path while the compute engine has nothing to do.

    What it sees
    Copies with time on the critical path, by direction and memory kind, whose call did not block the host; their
    bytes, the rate that they reached, and how much of their time no kernel runs beside them.

    Why it matters
    A copy engine works beside the compute engine only if something else is ready to run. Where the next kernel needs
    the data, the transfer is the time, and the device looks busy in tools that count kernels and copies together, or
    idle in tools that count kernels only.

    What it opens next
    Nothing narrower: the timeline has explained it. Overlap it, make it smaller, pin its memory, or keep the data.

    What refutes it
    A run in which the copy overlaps with kernels, or moves fewer bytes, and the interval stays.

    What it must not be confused with
    A copy on a side stream that nothing waits for (side_stream); a copy from pageable memory, where the host itself is
    held (blocking_copy); host time: the device is not idle here.

    References
    microsoft/onnxruntime#20947; the two-device training capture among the public examples, 99 % busy and nearly all of
    it copies.
    """

    id: ClassVar[str] = "exposed_copy"

    def find(self, s: Situation) -> list[Finding]:
        return list(self._find(s))

    def _find(self, s: Situation) -> Iterator[Finding]:
        c = copies.on_path(s)
        if c is None:
            return
        free = ~c.blocking
        for code in np.unique(c.label[free]).tolist():
            mine = np.flatnonzero(free & (c.label == code))
            long = mine[c.ns[mine] >= LONG_NS]
            if len(long) and places.speaks(s, int(c.path_ns[long].sum())):
                yield self._finding(s, c, code, long)

    def _finding(self, s: Situation, c: copies.Copies, code: int, rows: Ints) -> Finding:
        a = s.account
        op, ns, name = c.op[rows], c.path_ns[rows], places.label(s, code)
        total = int(ns.sum())
        segments = c.segments.take(np.isin(c.segments.op, op))
        beside = copies.beside_ns(s, segments)
        amount = copies.moved(s, op)
        groups = places.joined(s, Category.DEVICE_COPY, code)
        mask = np.zeros(len(a.timeline.trace.ops) if a.timeline is not None else 0, bool)
        mask[op] = True

        def state(saved: int) -> Statement:
            return Statement(
                f"{name} holds {places.share(s, total)}: {places.lasting(ns)}"
                f"{', ' + amount if amount else ''}; no kernel runs beside {show_share(total - beside, total)} of it. "
                f"Hidden entirely it would save {show_ns(saved)}.",
                Category.DEVICE_COPY,
                name,
                float(total),
                "ns",
                len(rows),
                name,
                places.evidence(s),
                (places.gain(s, saved),),
                ("the copy overlapped with kernels, or with fewer bytes, and an interval that stays",),
            )

        return Finding(
            self.id,
            Category.DEVICE_COPY,
            name,
            ns,
            total,
            Scope.TIMELINE,
            places.steps(s, len(rows)),
            group=groups[0] if groups else None,
            cut=lambda: scenarios.kernels(a, mask),
            state=state,
        )
