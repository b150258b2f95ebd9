from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from scopedown.account.groups import Group
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding, of_group
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category, Scope
from scopedown.trace.model import HostKind
from scopedown.units import show_ns, show_share


class OsWait:
    """The launching thread waits for something that is not the device: a lock, a poll, a sleep, or a core.

    What it sees
    Time on the critical path in calls of the operating system, or off the core where the capture has scheduling rows.
    It names the ranges of other threads of the process that run during most of it.

    Why it matters
    The work that holds the step may be on another thread (a scheduler, a tokeniser, a transfer thread), or nowhere: a
    thread without a core waits as well, and no code change repairs a CPU quota.

    What it opens next
    The thread that is waited for: its own host code, at the framework scope where its range says no cause.

    What refutes it
    A run in which the named call is as long while the other thread has nothing to do.

    What it must not be confused with
    An OS call inside a synchronising API call: that is how the call waits, and the call names the time. Idle threads
    that wait beside the path.

    References
    NVIDIA/nvidia-docker#757 (twice as slow with half the CPU quota); meta-pytorch/torchcomms#2906.
    """

    id: ClassVar[str] = "os_wait"

    def find(self, s: Situation) -> list[Finding]:
        if s.account.timeline is None:
            return []
        groups = places.joined(s, Category.HOST_OS_WAIT)
        return [self._finding(s, g) for g in groups if places.speaks(s, g.total_ns)]

    def _finding(self, s: Situation, g: Group) -> Finding:
        t = s.account.timeline
        thread = places.thread_of(s, g)
        on = places.thread_name(s, thread)
        meanwhile, covered = _meanwhile(s, g, thread)
        beside = f"; during {show_share(covered, g.total_ns)} of it {meanwhile} runs" if meanwhile else ""
        opens = Scope.FRAMEWORK if 2 * covered > g.total_ns else Scope.TIMELINE
        f = of_group(s, self.id, g, opens, places.steps(s, g.count))
        off_core = t is not None and g.label == t.host.not_running
        what = "is off the core" if off_core else f"waits in {f.label}"

        def state(saved: int) -> Statement:
            return places.told(
                s,
                f,
                saved,
                f"{on} {what} {places.lasting(f.ns, of=f.of)}{places.mostly(s, g)}: "
                f"{places.share(s, f.path_ns)}{beside}. Without these waits the replay saves {show_ns(saved)}.",
                f"{f.label} on {on}",
                f"a run in which {f.label} waits as long while {meanwhile or 'what it waits for'} is gone",
            )

        return replace(f, state=state)


def _meanwhile(s: Situation, g: Group, thread: int) -> tuple[str, int]:
    """The annotation, operator or function of another thread of the process that fills most of the waits."""
    t = s.account.timeline
    if t is None or thread < 0:
        return "", 0
    order = np.argsort(g.start, kind="stable")
    start, end = g.start[order], (g.start + g.ns)[order]
    named = (HostKind.ANNOTATION, HostKind.OP, HostKind.PYTHON)
    best, most = "", 0
    for other, info in enumerate(t.trace.threads):
        if other == thread or info.process != t.trace.threads[thread].process:
            continue
        a, b, _, event = t.host.owners(other, start, end)
        known = event >= 0
        known[known] = np.isin(t.trace.host.kind[event[known]], named)
        if not known.any():
            continue
        sums = np.bincount(t.host.label[event[known]], weights=(b - a)[known])
        if sums.max() > most:
            best = f"{places.label(s, int(sums.argmax()))!r} on {places.thread_name(s, other)}"
            most = int(sums.max())
    return (best, most) if 2 * most > g.total_ns else ("", 0)
