from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from scopedown.account import intervals, scenarios
from scopedown.account.groups import by_length, nearest
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding, each, times
from scopedown.decide.rules.waits import IdleAfter, idle_after
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category, Scope
from scopedown.trace.model import Ints
from scopedown.units import show_ns

AT_LEAST = 4
#: Causes with a rule of their own: a gap that they fill is theirs.
_NAMED = [c.code for c in (Category.HOST_ALLOC, Category.HOST_MODULE, Category.HOST_OS_WAIT, Category.HOST_COPY)]


class SyncPattern:
    """Synchronise, then decide, then launch: the device idles because the host asks for the result first.

    What it sees
    Idle gaps of a device that begin with the end of the work that a wait waited for, and end with an op that the
    waiting thread launches after the wait returned. Gaps between ops of the same names form one pattern.

    Why it matters
    It is the most common pattern of decode loops: the token has to be on the host before the next step is launched.
    All that the host does between is exposed, however fast it is.

    What it opens next
    The framework scope: which code asks for the value, and whether the decision could be made on the device, one step
    later, or for the whole batch at once.

    What refutes it
    A run in which the host does not wait before it launches, and the device idles as before.

    What it must not be confused with
    A wait under which the device is busy and after which nothing is late: removing that call saves its return latency
    only (sync_is_work). A wait that merely returns inside a gap which something else causes.

    References
    NVIDIA/TensorRT-LLM#16680, InternLM/lmdeploy#4605: the launch lead turns from -50 us to +19 ms when it is
    repaired.
    """

    id: ClassVar[str] = "sync_pattern"

    def find(self, s: Situation) -> list[Finding]:
        return sorted(
            (f for idle in idle_after(s) for f in self._of_device(s, idle)), key=lambda f: (-f.path_ns, f.label)
        )

    def _of_device(self, s: Situation, idle: IdleAfter) -> Iterator[Finding]:
        if not len(idle.start):
            return
        key = (idle.before + 1) * (int(idle.after.max()) + 2) + idle.after
        for value in np.unique(key).tolist():
            same = np.flatnonzero(key == value)
            ns = (idle.end - idle.start)[same]
            parts = by_length(ns)
            # A few of another length are named with the rest, unless they hold the time: then they are other events.
            if 2 * int(ns[max(parts, key=len)].sum()) >= int(ns.sum()):
                parts = [np.arange(len(same))]
            for part in parts:
                rows = same[part]
                if len(rows) < AT_LEAST:
                    continue
                on_path = places.path_idle_ns(s, idle.start[rows], idle.end[rows])
                if places.speaks(s, on_path) and 2 * _named_ns(s, idle, rows) < on_path:
                    yield self._finding(s, idle, rows, on_path)

    def _finding(self, s: Situation, idle: IdleAfter, rows: Ints, on_path: int) -> Finding:
        a = s.account
        t = a.timeline
        assert t is not None
        c = t.calls
        ns, wait, launch = (idle.end - idle.start)[rows], idle.call[rows], idle.launch[rows]
        before, after = places.label(s, int(idle.before[rows[0]])), places.label(s, int(idle.after[rows[0]]))
        api = t.trace.names[int(np.bincount(c.name[wait]).argmax())]
        returns = np.maximum(c.end[wait] - idle.start[rows], 0)
        decides = np.maximum(c.start[launch] - c.end[wait], 0)
        on = places.thread_name(s, int(np.bincount(c.thread[wait]).argmax()))
        of = places.steps(s, len(rows))
        mask = np.zeros(len(c), bool)
        mask[wait] = True

        def state(saved: int) -> Statement:
            return Statement(
                f"{times(len(rows), of)} the device idles {each(ns)} after {before}: the host waits for it in {api}, "
                f"returns {show_ns(nearest(returns, 0.5))} after it ended, needs {show_ns(nearest(decides, 0.5))} "
                f"until it asks, and only then launches {after}; {places.share(s, on_path)}. Launching without the "
                f"wait would save {show_ns(saved)} by replay.",
                Category.HOST_SYNC,
                api,
                float(nearest(ns, 0.5)),
                "ns",
                len(rows),
                f"{api} on {on}, before {after}",
                places.evidence(s),
                (places.gain(s, saved),),
                (f"a run in which {after} is launched before the wait, with the same idle time before it",),
            )

        return Finding(
            self.id,
            Category.HOST_SYNC,
            f"{api}, then {after}",
            ns,
            on_path,
            Scope.FRAMEWORK,
            of,
            cut=lambda: scenarios.waits(a, mask),
            state=state,
        )


def _named_ns(s: Situation, idle: IdleAfter, rows: Ints) -> int:
    """Path time in the gaps that another rule's cause explains."""
    path = s.account.path
    named = path.take(np.isin(path.category, _NAMED))
    a, b, _, _ = intervals.intersect(named.start, named.end, idle.start[rows], idle.end[rows])
    return int((b - a).sum())
