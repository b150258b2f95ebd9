from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scopedown.account import intervals, scenarios
from scopedown.account.groups import Group, nearest
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding
from scopedown.decide.rules.waits import waits
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import HOST_WITHOUT_CAUSE, Category, Scope
from scopedown.trace.model import NONE, Ints
from scopedown.trace.names import ApiMeaning
from scopedown.units import show_ns

#: Launches further apart than this do not follow one another: something else is between them.
PITCH_NS = 100_000
AT_LEAST = 32


@dataclass(frozen=True, slots=True)
class Train:
    """Launches of one thread that follow one another on the path, each of an op shorter than the time to the next."""

    thread: int
    start: Ints
    """Disjoint, sorted: from the start of a first launch call to the start of a last one."""
    end: Ints
    launches: int
    pitch: Ints
    """Distance of each launch to the next."""
    call: Ints
    """Length of the launch call."""
    op: Ints
    """Length of the op."""


def trains(s: Situation) -> list[Train]:
    a = s.account
    t = a.timeline
    if t is None or a.service is None or not len(t.trace.ops):
        return []
    c, ops = t.calls, t.trace.ops
    host = a.path.take((a.path.thread >= 0) & np.isin(a.path.category, [x.code for x in HOST_WITHOUT_CAUSE]))
    op_of = np.full(len(c), NONE, np.int64)
    joined = np.flatnonzero(c.of_op >= 0)
    op_of[c.of_op[joined]] = joined
    found = []
    for thread in np.unique(host.thread).tolist():
        mine = host.take(host.thread == thread)
        lo, hi = intervals.union(mine.start, mine.end)
        rows = np.arange(c.thread_bound[thread], c.thread_bound[thread + 1])
        rows = rows[(c.meaning[rows] == ApiMeaning.LAUNCH) & (op_of[rows] >= 0)]
        at = np.searchsorted(lo, c.start[rows], side="right") - 1
        inside = (at >= 0) & (c.start[rows] < hi[np.maximum(at, 0)]) if len(lo) else np.zeros(len(rows), bool)
        rows, at = rows[inside], at[inside]
        if len(rows) < 2:
            continue
        pitch = np.diff(c.start[rows])
        length = (ops.end - ops.start)[op_of[rows[:-1]]]
        kept = (at[1:] == at[:-1]) & (pitch <= PITCH_NS) & (length < pitch)
        if kept.sum() < AT_LEAST:
            continue
        first = rows[:-1][kept]
        start, end = intervals.union(c.start[first], c.start[rows[1:][kept]])
        found.append(
            Train(thread, start, end, len(first) + len(start), pitch[kept], (c.end - c.start)[first], length[kept])
        )
    return found


class LaunchBound:
    """Many short kernels: the host needs longer to launch each one than the device to run it.

    What it sees
    Launch calls of one thread that follow one another on the critical path, less than 100 us apart, each of an op
    that is shorter than the time to the next launch. Amount: from launch to launch, which is the call and the host
    code between the calls.

    Why it matters
    The path then runs along the launching thread, also while a kernel runs beside it. The device may look busy, the
    launches never wait for it, and a faster kernel saves nothing.

    What it opens next
    The framework scope: who makes so many launches, and whether they can be merged, compiled or replayed as a graph.

    What refutes it
    Fewer or merged launches (a graph, a compiled region) with the interval unchanged.

    What it must not be confused with
    One long gap before a step (host_gap); one launch call of milliseconds (module_load); launches that queue up
    behind a busy device, whose cost is hidden.

    References
    pytorch/pytorch#191753 (18,012 kernels to 2,348, idle 303 ms to 141 ms); fangwei123456/spikingjelly#740 (graphs
    5.4 times at batch 8 and nothing at batch 96); NVIDIA, CUDA C++ Programming Guide, CUDA Graphs.
    """

    id: ClassVar[str] = "launch_bound"

    def find(self, s: Situation) -> list[Finding]:
        return list(self._find(s))

    def _find(self, s: Situation) -> Iterator[Finding]:
        for train in trains(s):
            total = int(train.pitch.sum())
            if places.speaks(s, total):
                yield self._finding(s, train, total)

    def _finding(self, s: Situation, train: Train, total: int) -> Finding:
        group = _between(s, train)
        category = group.category if group is not None else Category.HOST_API
        text_of_group = places.label(s, group.label) if group is not None else "launch calls"
        on = places.thread_name(s, train.thread)
        pitch, call, op = nearest(train.pitch, 0.5), nearest(train.call, 0.5), nearest(train.op, 0.5)
        waited = _waited_ns(s, train)
        never = (
            "the host never waits for the device in it"
            if waited == 0
            else f"the host waits {show_ns(waited)} for the device beside it"
        )

        def state(saved: int) -> Statement:
            return Statement(
                f"Launch-bound: {train.launches} launches follow one another on {on}, one every {show_ns(pitch)} "
                f"({show_ns(call)} in the call, {show_ns(max(pitch - call, 0))} of host code in {text_of_group!r}), of "
                f"kernels that run {show_ns(op)}; {places.share(s, total)}, and {never}. Without this host time the "
                f"replay saves {show_ns(saved)}.",
                category,
                text_of_group,
                float(pitch),
                "ns per launch",
                train.launches,
                f"{on}, in {text_of_group}",
                places.evidence(s),
                (places.gain(s, saved),),
                ("fewer launches for the same work, and an interval that does not fall with their number",),
            )

        return Finding(
            self.id,
            category,
            f"{train.launches} launches, one every {show_ns(pitch)}",
            train.pitch,
            total,
            Scope.FRAMEWORK,
            group=group,
            cut=lambda: scenarios.host_time(s.account, train.thread, train.start, train.end),
            state=state,
        )


def _between(s: Situation, train: Train) -> Group | None:
    """The largest group of the path that lies in the train."""
    best, most = None, 0
    for g in s.account.groups:
        if g.category not in HOST_WITHOUT_CAUSE or g.count < AT_LEAST // 2 or g.median_ns > PITCH_NS:
            continue
        order = np.argsort(g.start, kind="stable")
        a, b, _, _ = intervals.intersect(g.start[order], (g.start + g.ns)[order], train.start, train.end)
        inside = int((b - a).sum())
        if inside > most and 2 * inside > g.total_ns:
            best, most = g, inside
    return best


def _waited_ns(s: Situation, train: Train) -> int:
    """Waits of the thread for a busy device within its trains of launches."""
    w = waits(s)
    c = s.account.timeline.calls if s.account.timeline is not None else None
    if w is None or c is None:
        return 0
    mine = np.flatnonzero(c.thread[w.call] == train.thread)
    _, _, row, _ = intervals.intersect(w.start[mine], w.end[mine], train.start, train.end)
    return int(w.busy[mine[np.unique(row)]].sum())
