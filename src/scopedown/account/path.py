"""The critical path: the backward walk from the end of an interval to its start.

At each point the walk goes to the predecessor that finished last: a host thread back to the wait that let it go, a
wait back to the device op whose end it waited for, a device op back to what it had to wait for: the op before it on
its stream, an op of another stream that it was told to wait for, or its launch call. The walk's pieces tile the
interval; what they are called is decided afterwards, for all pieces of a kind at once.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from scopedown.account import intervals
from scopedown.account.calls import Calls, Streams
from scopedown.account.depends import collective_peers
from scopedown.account.device import Devices
from scopedown.account.handover import find_handovers, find_parents
from scopedown.account.host import Host
from scopedown.account.segments import Segments, check_partition, concat, many
from scopedown.terms import Category
from scopedown.trace.model import NONE, Ints, Names, Trace

#: An op that starts this soon after the one before it on its stream had been waiting for it.
STREAM_SLACK_NS = 2_000
#: The same for an op of another stream, where nothing else explains the start.
CROSS_SLACK_NS = 3_000
#: When an op ended that there is none of: before everything, also on an axis that begins below zero.
NEVER = -(2**62)


class Step(IntEnum):
    """Kinds of pieces of a walk."""

    HOST = 0
    """A thread's own time; ref is the thread."""
    RETURN = 1
    """From the end of the awaited op to the return of the wait; ref is the call."""
    DEVICE = 2
    """An op executes; ref is the op."""
    CALL = 3
    """From the start of the launch call to the op's start or the call's return; ref is the op."""
    LATENCY = 4
    """The call has returned, the op has not started; ref is the op."""
    BETWEEN = 5
    """From the op before to the op, both queued; ref is the op."""
    UNKNOWN = 6
    """The walk cannot say what the op waited for: the device account's word is taken; ref is the op."""
    PEER = 7
    """A collective waits for its last arrival; ref is the op."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Pieces in order of time."""

    start: Ints
    end: Ints
    step: Ints
    ref: Ints


class Graph:
    """Predecessors of everything that the walk meets."""

    def __init__(
        self, trace: Trace, st: Streams, calls: Calls, waited_event: dict[int, int], plausible_ns: int
    ) -> None:
        ops = trace.ops
        self.trace, self.streams, self.calls, self.plausible_ns = trace, st, calls, plausible_ns
        # The walk takes one element at a time: of a view that is a Python integer, in half of a list's time.
        self.op_start, self.op_end = _view(ops.start), _view(ops.end)
        self.op_prev, self.op_call = _view(st.previous), _view(calls.of_op)
        self.call_start, self.call_end = _view(calls.start), _view(calls.end)
        self.call_thread, self.awaited = _view(calls.thread), _view(calls.awaited)
        self.handed_over = _view(calls.handed_over)
        self.waited_event = waited_event
        self.peer = collective_peers(trace)
        order = np.argsort(ops.end, kind="stable")
        self.ends, self.by_end = _view(ops.end[order]), _view(order)
        self.handovers = find_handovers(trace)
        self.parents = find_parents(trace)
        self.waits: dict[int, tuple[list[int], list[int]]] = {}
        """Per thread, sorted by start: starts of its waits, and what they are: a call, or ``~k`` for hand-over k."""
        given: dict[int, list[tuple[int, int]]] = {}
        for k, h in enumerate(self.handovers):
            if not h.bound:
                continue
            given.setdefault(h.thread, []).append((h.start, ~k))
        for t in range(len(trace.threads)):
            lo, hi = int(calls.thread_bound[t]), int(calls.thread_bound[t + 1])
            rows = lo + np.flatnonzero(calls.blocking[lo:hi])
            both = sorted([*zip(calls.start[rows].tolist(), rows.tolist(), strict=True), *given.get(t, [])])
            self.waits[t] = [s for s, _ in both], [w for _, w in both]

    def ended_before(self, t: int, device: int | None = None, other_than: int = NONE) -> int:
        """The op that ended last at or before t, on a device where one is named."""
        i = bisect_left(self.ends, t + 1) - 1
        while i >= 0:
            op = int(self.by_end[i])
            if op != other_than and (device is None or self.trace.ops.device[op] == device) and self.op_start[op] < t:
                return op
            i -= 1
        return NONE

    def running_at(self, t: int) -> int:
        """An op that executes just before t (the latest started), or NONE."""
        ops = self.trace.ops
        hit = np.flatnonzero((ops.start < t) & (ops.end >= t))
        return int(hit[np.argmax(ops.start[hit])]) if len(hit) else NONE

    def walk(self, lo: int, hi: int, thread: int = NONE, op: int = NONE) -> Walk:
        """Back from ``hi`` to ``lo``, beginning on a host thread or at a device op."""
        pieces: list[tuple[int, int, int, int]] = []
        t = hi
        still = 0
        while t > lo:
            before = t
            if op == NONE:
                t, op, thread = self._host(pieces, lo, t, thread)
            else:
                t, op, thread = self._device(pieces, lo, t, op)
            still = still + 1 if t == before else 0
            if still > len(self.op_start) + 2:
                raise AssertionError(f"the walk does not advance at {t} ns (op {op}, thread {thread})")
        pieces.reverse()
        table = np.array(pieces, np.int64).reshape(-1, 4)
        return Walk(table[:, 0], table[:, 1], table[:, 2], table[:, 3])

    def _host(self, pieces: list[tuple[int, int, int, int]], lo: int, t: int, thread: int) -> tuple[int, int, int]:
        starts, rows = self.waits[thread]
        i = bisect_left(starts, t) - 1
        parent = self.parents.get(thread)
        born = parent[0] if parent is not None else lo
        if i < 0 or (parent is not None and starts[i] < born):
            a = max(min(born, t), lo)
            if a < t:
                pieces.append((a, t, Step.HOST, thread))
            if parent is None or a == lo:
                return lo, NONE, thread
            # Before its first event the thread was not there: what created it had the path.
            made = max(parent[2], lo)
            pieces.append((made, a, Step.HOST, parent[1]))
            return made, NONE, parent[1]
        wait = rows[i]
        handover = self.handovers[~wait] if wait < 0 else None
        s0, s1 = (handover.start, handover.end) if handover else (self.call_start[wait], self.call_end[wait])
        if s1 < t:
            a = max(s1, lo)
            pieces.append((a, t, Step.HOST, thread))
            if a == lo:
                return lo, NONE, thread
            t = s1
        if handover is not None:
            a = max(min(handover.signal, t), lo)
            if a < t:
                pieces.append((a, t, Step.HOST, thread))
            return a, NONE, handover.giver
        call, op = wait, self.awaited[wait]
        done = min(self.op_end[op], t)
        if done > s0 and self.op_start[op] < t:
            if done < t:
                pieces.append((max(done, lo), t, Step.RETURN, call))
            return max(done, lo), op, thread
        a = max(min(s0, t), lo)
        if a < t:
            pieces.append((a, t, Step.HOST, thread))
        # A wait for work that had ended before it began is host time like any other.
        return a, NONE, thread

    def _device(self, pieces: list[tuple[int, int, int, int]], lo: int, t: int, op: int) -> tuple[int, int, int]:
        start = self.op_start[op]
        peer = self.peer.get(op, NONE)
        if peer != NONE and start < self.op_start[peer] < t:
            arrival = self.op_start[peer]
            pieces.append((max(arrival, lo), t, Step.DEVICE, op))
            if arrival <= lo:
                return lo, op, NONE
            t, op, start = arrival, peer, arrival
        elif start < t:
            pieces.append((max(start, lo), t, Step.DEVICE, op))
            t = max(start, lo)
            if t == lo:
                return lo, op, NONE
        call = self.op_call[op]
        prev = self.op_prev[op]
        prev_end = min(self.op_end[prev], t) if prev != NONE else NEVER
        if call == NONE:
            return self._unknown(pieces, lo, t, op, prev, prev_end)
        called, returned = self.call_start[call], self.handed_over[call]
        if called >= t:
            # The op starts before its call: the clocks disagree, or the join is wrong. Its stream is all that is left.
            return self._unknown(pieces, lo, t, op, prev, prev_end)
        event = self.waited_event.get(op, NONE)
        event_end = self.op_end[event] if event != NONE else NEVER
        if event != NONE and returned <= event_end <= t + CROSS_SLACK_NS and event_end >= prev_end:
            return self._jump(pieces, lo, t, op, event, min(event_end, t))
        if prev != NONE and (prev_end >= returned or t - prev_end <= STREAM_SLACK_NS):
            return self._jump(pieces, lo, t, op, prev, prev_end)
        if prev != NONE and prev_end > called and self.awaited[call] == op:
            # A blocking copy was queued behind the op before it: its call returns after the copy, so the return says
            # nothing. The host's own part is what lies between the two ops.
            if max(prev_end, lo) < t:
                pieces.append((max(prev_end, lo), t, Step.CALL, op))
            return max(prev_end, lo), prev, NONE
        # A call that is still open explains the start: it stages, loads or waits inside.
        if t - self.call_end[call] > self.plausible_ns:
            other = self.ended_before(t, other_than=op)
            if other != NONE and t - self.op_end[other] <= CROSS_SLACK_NS:
                return self._jump(pieces, lo, t, op, other, self.op_end[other])
        inside = min(self.call_end[call], t)
        if inside < t:
            pieces.append((max(inside, lo), t, Step.LATENCY, op))
        if called < inside and inside > lo:
            pieces.append((max(called, lo), inside, Step.CALL, op))
        return max(called, lo), NONE, self.call_thread[call]

    def _jump(
        self, pieces: list[tuple[int, int, int, int]], lo: int, t: int, op: int, before: int, ended: int
    ) -> tuple[int, int, int]:
        a = max(ended, lo)
        if a < t:
            pieces.append((a, t, Step.BETWEEN, op))
        return a, before, NONE

    def _unknown(
        self, pieces: list[tuple[int, int, int, int]], lo: int, t: int, op: int, prev: int, prev_end: int
    ) -> tuple[int, int, int]:
        if prev == NONE or t - prev_end > STREAM_SLACK_NS:
            other = self.ended_before(t, int(self.trace.ops.device[op]), op)
            if other != NONE and self.op_end[other] > prev_end:
                prev, prev_end = other, self.op_end[other]
        a = max(prev_end, lo) if prev != NONE else lo
        if a < t:
            pieces.append((a, t, Step.UNKNOWN, op))
        return a, prev, NONE


def _view(column: Ints) -> memoryview[int]:
    return np.ascontiguousarray(column, np.int64).data


def name_pieces(walk: Walk, graph: Graph, host: Host, devices: Devices, labels: Names, lo: int, hi: int) -> Segments:
    """The walk's pieces as segments with category and label; they tile [lo, hi)."""
    trace, calls = graph.trace, graph.calls
    parts: list[Segments] = []

    def of(step: Step) -> tuple[Ints, Ints, Ints]:
        rows = walk.step == step
        return walk.start[rows], walk.end[rows], walk.ref[rows]

    s, e, thread = of(Step.HOST)
    for t in np.unique(thread).tolist():
        mine = thread == t
        parts.append(host.segments(t, s[mine], e[mine]))
    s, e, call = of(Step.RETURN)
    parts.append(
        many(
            s,
            e,
            host.category[calls.event[call]],
            host.label[calls.event[call]],
            calls.awaited[call],
            calls.thread[call],
        )
        if len(s)
        else many(s, e, s, s)
    )
    s, e, op = of(Step.DEVICE)
    if len(s):
        parts.append(many(s, e, devices.ops.category[op], devices.ops.label[op], op))
    between = labels.code("start of an op that was queued behind another")
    s, e, op = of(Step.BETWEEN)
    soon = np.minimum(e, s + devices.plausible_ns)
    parts.append(many(s, soon, Category.LAUNCH.code, between, op))
    parts.append(
        many(
            soon,
            e,
            Category.UNACCOUNTED.code,
            labels.code("queued, not started: what it waits for was not recorded"),
            op,
        )
    )
    for step in (Step.CALL, Step.LATENCY):
        s, e, op = of(step)
        parts.append(devices.split_wait(s, e, op))
    s, e, op = of(Step.UNKNOWN)
    for d in np.unique(trace.ops.device[op]).tolist() if len(op) else []:
        account = devices.account(d, lo, hi).segments
        mine = np.flatnonzero(trace.ops.device[op] == d)
        cs, ce, _, row = intervals.intersect(s[mine], e[mine], account.start, account.end)
        parts.append(many(cs, ce, account.category[row], account.label[row], account.op[row], account.thread[row]))
    segs = concat(parts)
    check_partition(segs, lo, hi)
    return segs
