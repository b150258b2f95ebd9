from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from scopedown.account.groups import Group
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding, of_group, times
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category, Scope
from scopedown.units import show_ns

AT_LEAST = 4


class AllocChurn:
    """Device memory is allocated and freed inside the loop.

    What it sees
    Allocation and free calls on the critical path, at least four of a name, with their count and length; which other
    allocator calls come with them.

    Why it matters
    Calls of the driver's allocator take from microseconds to milliseconds, and a free waits for the device before it
    works. A caching allocator that has to flush does both at once, in the middle of a step. No byte counts are in the
    record: how much memory moves is not known from it.

    What it opens next
    The timeline has named the calls; who makes them is a question to the framework scope.

    What refutes it
    A run with memory that is kept (a pool, a larger cache), and steps of the same length.

    What it must not be confused with
    Allocation at start-up, which happens once; the wait inside a free for earlier device work, which is the device's
    and is not counted here.

    References
    pytorch/pytorch#82073 (cudaFree and cudaMalloc in series at batch 64), tracel-ai/burn#5751.
    """

    id: ClassVar[str] = "alloc_churn"

    def find(self, s: Situation) -> list[Finding]:
        return list(self._find(s))

    def _find(self, s: Situation) -> Iterator[Finding]:
        if s.account.timeline is None:
            return
        groups = [g for g in places.joined(s, Category.HOST_ALLOC) if _in_loop(s, g)]
        total = sum(g.total_ns for g in groups)
        for g in groups:
            # Its share of the churn counts, not of the interval: malloc and free are one cause.
            if places.speaks(s, total) and 10 * g.total_ns >= total:
                yield self._finding(s, g, [o for o in groups if o is not g])

    def _finding(self, s: Situation, g: Group, others: list[Group]) -> Finding:
        f = of_group(s, self.id, g, Scope.TIMELINE, places.steps(s, g.count))
        on = places.thread_name(s, places.thread_of(s, g))
        beside = ", ".join(f"{places.label(s, o.label)} {times(o.count, None)}" for o in others[:3])

        def state(saved: int) -> Statement:
            return places.told(
                s,
                f,
                saved,
                f"{f.label} is called in the loop, {places.lasting(f.ns, of=f.of)}{places.mostly(s, g)} on {on}: "
                f"{places.share(s, f.path_ns)}{'; beside it ' + beside if beside else ''}. Without its own time the "
                f"replay saves {show_ns(saved)}.",
                f"{f.label} on {on}",
                "a run in which the memory is kept from step to step, with steps of the same length",
            )

        return replace(f, state=state)


def _in_loop(s: Situation, g: Group) -> bool:
    """Whether work is launched between the calls: at start-up they follow one another."""
    t = s.account.timeline
    if t is None or g.count < AT_LEAST:
        return False
    launched = np.sort(t.calls.start[t.calls.of_op[t.calls.of_op >= 0]])
    return len(np.unique(np.searchsorted(launched, g.start))) >= AT_LEAST
