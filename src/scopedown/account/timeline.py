"""Everything that is worked out once for a trace, whatever the interval asked about."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scopedown.account.calls import PAGED, calls, streams
from scopedown.account.depends import engine_waits, event_waits
from scopedown.account.device import DeviceAccount, Devices
from scopedown.account.host import Host
from scopedown.account.path import Graph, name_pieces
from scopedown.account.replay import Replay
from scopedown.account.segments import Segments
from scopedown.account.steps import Annotated
from scopedown.trace.model import NONE, HostKind, Ints, Names, Trace


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a walk begins: at ``at``, on a host thread or at a device op."""

    at: int
    thread: int
    op: int


class Timeline:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.labels = Names()
        self.streams = streams(trace)
        self.calls = calls(trace, self.streams)
        self.host = Host(trace, self.calls, self.labels)
        waited = engine_waits(trace, self.streams, self.calls) | event_waits(trace, self.streams, self.calls)
        self.devices = Devices(trace, self.calls, self.streams, self.host, waited, self.labels)
        self.graph = Graph(trace, self.streams, self.calls, waited, self.devices.plausible_ns)

    @property
    def has_device_rows(self) -> bool:
        return len(self.trace.ops) > 0

    @cached_property
    def processes(self) -> Ints:
        """Processes with device rows; all of them where there is none."""
        with_rows = np.unique(self.trace.ops.process)
        return with_rows.astype(np.int64) if len(with_rows) else np.arange(len(self.trace.processes))

    @cached_property
    def rows_span(self) -> tuple[int, int] | None:
        """First to last row of the processes with device rows, inside the captured window where that is stated."""
        host, ops = self.trace.host, self.trace.ops
        mine = np.isin(host.process, self.processes) & (host.kind != HostKind.OVERHEAD)
        starts, ends = [host.start[mine], ops.start], [host.end[mine], ops.end]
        if not sum(map(len, starts)):
            return None
        lo = int(min(s.min() for s in starts if len(s)))
        hi = int(max(e.max() for e in ends if len(e)))
        window = self.trace.meta.window
        if window is not None and window[0] < hi and lo < window[1]:
            # The device may finish after the window; a host range may have begun before it.
            lo = max(lo, min(window[0], int(ops.start.min()) if len(ops) else lo))
            hi = min(hi, max(window[1], int(ops.end.max()) if len(ops) else hi))
        return (lo, hi) if hi > lo else None

    @cached_property
    def annotated(self) -> Annotated:
        return Annotated(self.trace)

    @cached_property
    def waits(self) -> tuple[list[int], list[int]]:
        """Ends of all waits for the device, sorted, and their calls."""
        rows = np.flatnonzero(self.calls.blocking & np.isin(self.calls.process, self.processes))
        rows = rows[np.argsort(self.calls.end[rows], kind="stable")]
        return self.calls.end[rows].tolist(), rows.tolist()

    @property
    def trace_end(self) -> int:
        return self.rows_span[1] if self.rows_span is not None else 0

    def wait_of(self, begin: int, end: int, hi: int) -> int | None:
        """The last wait that returned by ``hi`` for an op that was launched in [begin, end)."""
        ends, rows = self.waits
        for i in range(bisect_right(ends, hi) - 1, -1, -1):
            if ends[i] < begin:
                return None
            call = int(self.calls.of_op[self.calls.awaited[rows[i]]])
            if call != NONE and begin <= self.calls.start[call] < end:
                return rows[i]
        return None

    def last_wait(self, lo: int, hi: int) -> int | None:
        """The call whose wait returned last in (lo, hi]."""
        ends, rows = self.waits
        i = bisect_right(ends, hi) - 1
        return rows[i] if i >= 0 and ends[i] > lo else None

    def ending(self, lo: int, hi: int) -> Ending | None:
        """What the path ends with before ``hi``: the last wait for the device; without one the last op or call."""
        call = self.last_wait(lo, hi)
        if call is not None:
            return Ending(int(self.calls.end[call]), int(self.calls.thread[call]), NONE)
        return self.last_row(lo, hi)

    def last_row(self, lo: int, hi: int) -> Ending | None:
        """The op or call that ended last before ``hi``, or that is under way there."""
        c, ops = self.calls, self.trace.ops
        best: Ending | None = None
        mine = np.isin(c.process, self.processes) & (c.start < hi) & (c.end > lo)
        if mine.any():
            rows = np.flatnonzero(mine)
            row = int(rows[np.argmax(np.minimum(c.end[rows], hi))])
            best = Ending(min(int(c.end[row]), hi), int(c.thread[row]), NONE)
        inside = np.flatnonzero((ops.start < hi) & (ops.end > lo))
        if ops.copy_kind is not None:
            # Pages move where code faults on them: the path runs along that code.
            paged = np.isin(ops.copy_kind[inside], PAGED)
            inside = inside if best is None else inside[~paged]
        if len(inside):
            op = int(inside[np.argmax(np.minimum(ops.end[inside], hi))])
            at = min(int(ops.end[op]), hi)
            if best is None or at > best.at:
                best = Ending(at, NONE, op)
        return self.settled(best) if best is not None else self._host_only(lo, hi)

    def settled(self, ending: Ending) -> Ending:
        """An ending inside a wait is at the op that is waited for, where that still runs."""
        if ending.thread == NONE:
            return ending
        c, at = self.calls, ending.at
        lo, hi = int(c.thread_bound[ending.thread]), int(c.thread_bound[ending.thread + 1])
        row = lo + int(np.searchsorted(c.start[lo:hi], at, side="left")) - 1
        if row < lo or not c.blocking[row] or c.end[row] <= at:
            return ending
        op, ops = int(c.awaited[row]), self.trace.ops
        return Ending(at, NONE, op) if ops.start[op] < at <= ops.end[op] else ending

    def _host_only(self, lo: int, hi: int) -> Ending | None:
        """Without calls and ops: the thread with the most named host time is the one to follow."""
        host = self.trace.host
        mine = (host.thread >= 0) & (host.start < hi) & (host.end > lo) & (host.kind != HostKind.OVERHEAD)
        ranges = mine & (host.kind != HostKind.OS)
        rows = np.flatnonzero(ranges if ranges.any() else mine)
        if not len(rows):
            return None
        held = np.zeros(len(self.trace.threads), np.int64)
        np.add.at(held, host.thread[rows], np.minimum(host.end[rows], hi) - np.maximum(host.start[rows], lo))
        return Ending(hi, int(held.argmax()), NONE)

    def asker(self, op: int, lo: int, hi: int) -> int:
        """The thread that launched the op, else the one with the most host time in [lo, hi), or NONE."""
        call = int(self.calls.of_op[op]) if op != NONE else NONE
        if call != NONE:
            return int(self.calls.thread[call])
        other = self._host_only(lo, hi)
        return other.thread if other is not None else NONE

    def path(self, lo: int, ending: Ending) -> Segments:
        """The critical path of [lo, ending.at), exactly tiled."""
        walk = self.graph.walk(lo, ending.at, ending.thread, ending.op)
        return name_pieces(walk, self.graph, self.host, self.devices, self.labels, lo, ending.at)

    def replay(self, lo: int, ending: Ending) -> Replay:
        return Replay(self.graph, lo, ending.at, ending.thread, ending.op)

    def device_accounts(self, lo: int, hi: int) -> list[DeviceAccount]:
        return [self.devices.account(d, lo, hi) for d in self.devices.ids]

    def launch_lead(self, lo: int, hi: int) -> Ints:
        """Op start minus the return of its launch call, for ops that start in [lo, hi)."""
        ops, c = self.trace.ops, self.calls
        rows = np.flatnonzero((c.of_op >= 0) & (ops.start >= lo) & (ops.start < hi))
        return ops.start[rows] - c.end[c.of_op[rows]]
