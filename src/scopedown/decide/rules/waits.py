"""Waits of the host for the device, and the idle time that follows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.account import intervals
from scopedown.account.calls import CLOCK_TOLERANCE_NS
from scopedown.decide.situation import Situation
from scopedown.trace.model import Columns, CopyKind, Ints, Mask
from scopedown.trace.names import ApiMeaning


@dataclass(frozen=True, slots=True)
class Waits(Columns):
    """Blocking calls inside the interval on the threads of the path, in the order of ``Calls``."""

    call: Ints
    start: Ints
    end: Ints
    busy: Ints
    """Time under the wait in which the device of the awaited op executes anything."""
    back: Ints
    """From the end of the awaited op to the return of the call."""


def reads_result(s: Situation, calls: Ints) -> Mask:
    """Whether blocking calls hand the device's result to the host: a synchronisation, or a copy from the device."""
    t = s.account.timeline
    assert t is not None
    c, ops = t.calls, t.trace.ops
    mine: Mask = c.meaning[calls] == ApiMeaning.SYNC
    if ops.copy_kind is not None:
        copies = (c.meaning[calls] == ApiMeaning.COPY) & (c.awaited[calls] >= 0)
        mine = mine | copies & (ops.copy_kind[c.awaited[calls]] == CopyKind.DTOH)
    return mine


def waits(s: Situation) -> Waits | None:
    a = s.account
    t = a.timeline
    if t is None or a.service is None or not len(t.trace.ops):
        return None
    lo, hi = a.service
    c, ops = t.calls, t.trace.ops
    threads = np.unique(a.path.thread[a.path.thread >= 0])
    rows = np.flatnonzero(c.blocking & (c.end > lo) & (c.end <= hi) & np.isin(c.thread, threads))
    if not len(rows):
        return None
    start = np.maximum(c.start[rows], lo)
    done = np.clip(ops.end[c.awaited[rows]], start, c.end[rows])
    busy = np.zeros(len(rows), np.int64)
    device = ops.device[c.awaited[rows]]
    for d in np.unique(device).tolist():
        mine = np.flatnonzero(device == d)
        on = np.flatnonzero((ops.device == d) & (ops.end > lo) & (ops.start < hi))
        x, y, row, _ = intervals.intersect(start[mine], done[mine], *intervals.union(ops.start[on], ops.end[on]))
        np.add.at(busy, mine[row], y - x)
    return Waits(rows, start, c.end[rows], busy, c.end[rows] - done)


@dataclass(frozen=True, slots=True)
class IdleAfter:
    """Gaps of a device that begin with the end of awaited work and end with a launch that the waiting thread makes
    after the wait returned. Sorted by start."""

    start: Ints
    end: Ints
    call: Ints
    """The wait."""
    launch: Ints
    """The call that ends the gap."""
    before: Ints
    """Label of the op before, and of the op that ends the gap."""
    after: Ints


def idle_after(s: Situation) -> list[IdleAfter]:
    """One a device."""
    a = s.account
    t = a.timeline
    if t is None:
        return []
    c, ops, labels = t.calls, t.trace.ops, t.devices.ops.label
    blocking = np.flatnonzero(c.blocking)
    out = []
    for d in a.devices:
        g = d.gaps
        known = np.flatnonzero((g.before >= 0) & (g.release >= 0))
        launch = c.of_op[g.release[known]] if len(known) else known
        known, launch = known[launch >= 0], launch[launch >= 0]
        if not len(blocking) or not len(known):
            continue
        # Rows of one thread lie together, in order: the blocking call before the launch on its thread.
        at = np.searchsorted(blocking, launch) - 1
        call = blocking[np.maximum(at, 0)]
        done = ops.end[c.awaited[call]]
        fits = (at >= 0) & (c.thread[call] == c.thread[launch]) & reads_result(s, call)
        fits &= (np.abs(done - g.start[known]) <= CLOCK_TOLERANCE_NS) & (c.end[call] > g.start[known])
        fits &= c.end[call] < g.end[known]
        rows = known[fits]
        out.append(
            IdleAfter(
                g.start[rows],
                g.end[rows],
                call[fits],
                launch[fits],
                labels[g.before[rows]],
                labels[g.release[rows]],
            )
        )
    return out
