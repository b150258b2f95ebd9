from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from scopedown.account import intervals
from scopedown.account.groups import LENGTH_FACTOR, Group
from scopedown.account.host import UNNAMED
from scopedown.account.segments import merge_equal
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding, of_group
from scopedown.decide.rules.launch_bound import trains
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import EXPLAINED_BY, Category, Scope
from scopedown.trace.model import Ints
from scopedown.units import show_ns

#: Fewer are no repetition.
AT_LEAST = 4
#: Host categories that a rule of their own speaks about.
_ELSEWHERE = (
    Category.HOST_SYNC,
    Category.HOST_ALLOC,
    Category.HOST_COPY,
    Category.HOST_MODULE,
    Category.HOST_OS_WAIT,
)


class HostGap:
    """The same gap before every step: the device idles while the host does one and the same thing.

    What it sees
    Segments of one host cause on the critical path, at least four and of clearly the same length, during which no
    kernel runs for at least half of the time. Their count is set against the number of steps, and the launches that
    they hold back give the device ops before and after.

    Why it matters
    Serving engines prepare a batch, schedule, read shapes and build inputs in host code before each step or layer. A
    gap of two milliseconds is invisible in a list of the longest events and is half of the symptom when it comes
    back sixty-four times.

    What it opens next
    The framework scope: the timeline says where the host is and for how long, not what the code does there.

    What refutes it
    A capture in which the gaps stay as they are while the named host time is gone, or one without the tool in which
    the steps are shorter by about the gap: then the tool made it.

    What it must not be confused with
    Launch-bound code (many short pieces between launches, see launch_bound); a wait for the device's own result
    (sync_pattern names the wait that exposes the gap); host time beside a busy device, which costs nothing.

    References
    vllm-project/vllm#6854 and #1375, gty111/gLLM#148, sgl-project/sglang#5593.
    """

    id: ClassVar[str] = "host_gap"

    def find(self, s: Situation) -> list[Finding]:
        return list(self._find(s))

    def _find(self, s: Situation) -> Iterator[Finding]:
        a = s.account
        if a.timeline is None:
            return
        short = trains(s)
        path = merge_equal(a.path)
        for whole in a.groups:
            g = _alike(whole)
            own = g.category.is_host and g.category not in _ELSEWHERE and g.label not in a.tool_labels
            named = own and not places.label(s, g.label).endswith(UNNAMED)
            if not named or g.count < AT_LEAST or not places.speaks(s, g.total_ns):
                continue
            thread = places.thread_of(s, g)
            where = places.between(s, thread, g.start, g.ns)
            if where is None or 2 * where.idle_ns < g.total_ns:
                continue
            mine = [t for t in short if t.thread == thread]
            if any(2 * _inside(path.start[g.rows], g.ns, t.start, t.end) > g.total_ns for t in mine):
                continue
            yield self._finding(s, g, where, thread)

    def _finding(self, s: Situation, g: Group, where: places.Between, thread: int) -> Finding:
        opens = EXPLAINED_BY.get(g.category, Scope.FRAMEWORK)
        f = of_group(s, self.id, g, opens, places.steps(s, g.count))
        before, after = places.label(s, where.before), places.label(s, where.after)
        on = places.thread_name(s, thread)

        def state(saved: int) -> Statement:
            text = (
                f"The host is late {places.lasting(f.ns, of=f.of)}, in {f.label!r} on {on}, with no kernel running: "
                f"a gap after {before} and before {after}. {places.share(s, f.path_ns)}; without it the replay saves "
                f"{show_ns(saved)}."
            )
            return places.told(
                s,
                f,
                saved,
                text,
                f"{on}, in {f.label}, between {before} and {after}",
                f"a later trace without this host time in which the gap before {after} is still there",
                f"a later trace in which the device is busy during {f.label!r}",
            )

        return replace(f, state=state)


def _alike(g: Group) -> Group:
    """The members whose length is near the median's: lengths of a group may run on from one to the next."""
    near = (g.ns <= LENGTH_FACTOR * g.median_ns) & (LENGTH_FACTOR * g.ns >= g.median_ns)
    return g if near.all() else Group(g.category, g.label, g.rows[near], g.start[near], g.ns[near])


def _inside(start: Ints, ns: Ints, lo: Ints, hi: Ints) -> int:
    order = np.argsort(start, kind="stable")
    a, b, _, _ = intervals.intersect(start[order], (start + ns)[order], lo, hi)
    return int((b - a).sum())
