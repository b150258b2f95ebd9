"""The account again, slow and obvious: plain Python over objects and elementary intervals, from the design's sentences.

Nothing here is shared with the code under test but the tables of calls (which call launched an op, which op a call
waited for) and the hand-overs, which have tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from scopedown.account.calls import CLOCK_TOLERANCE_NS
from scopedown.account.device import LAUNCH_AT_LEAST_NS
from scopedown.account.host import long_calls
from scopedown.account.path import CROSS_SLACK_NS, STREAM_SLACK_NS
from scopedown.account.segments import Segments
from scopedown.account.timeline import Timeline
from scopedown.terms import CATEGORIES, Category
from scopedown.trace.model import NONE, HostKind, OpKind
from scopedown.trace.names import ApiMeaning

OF_OP = {
    OpKind.KERNEL: Category.DEVICE_KERNEL,
    OpKind.COLLECTIVE: Category.DEVICE_COLLECTIVE,
    OpKind.COPY: Category.DEVICE_COPY,
    OpKind.MEMSET: Category.DEVICE_MEMSET,
    OpKind.GRAPH: Category.DEVICE_OPAQUE_GRAPH,
}
#: Names a stretch of time.
Namer = Callable[[int, int], list["Piece"]]
AT_THE_BEGINNING = -(2**62)

SOFT = (Category.HOST_UNTRACED, Category.HOST_ANNOTATION, Category.HOST_FRAMEWORK, Category.HOST_PYTHON)
PLAIN = (ApiMeaning.LAUNCH, ApiMeaning.GRAPH_LAUNCH, ApiMeaning.MEMSET, ApiMeaning.COPY)


@dataclass(frozen=True)
class Piece:
    start: int
    end: int
    category: Category
    ref: int = NONE
    """The op that executes or is waited for, or the host event; where there is one."""


@dataclass(frozen=True)
class Event:
    row: int
    start: int
    end: int
    kind: HostKind
    thread: int


@dataclass(frozen=True)
class Op:
    row: int
    start: int
    end: int
    kind: OpKind
    device: int


def elementary(times: Iterator[int], lo: int, hi: int) -> Iterator[tuple[int, int]]:
    """[lo, hi) cut at every one of the instants: nothing changes inside a piece."""
    yield from pairwise(sorted({lo, hi, *(t for t in times if lo < t < hi)}))


def merged(pieces: list[Piece]) -> list[Piece]:
    out: list[Piece] = []
    for p in sorted(pieces, key=lambda p: p.start):
        if p.end <= p.start:
            continue
        if out and out[-1].end == p.start and (out[-1].category, out[-1].ref) == (p.category, p.ref):
            out[-1] = Piece(out[-1].start, p.end, p.category, p.ref)
        else:
            out.append(p)
    return out


def of_segments(segs: Segments) -> list[Piece]:
    """What the code under test says, for comparison: categories only."""
    rows = zip(segs.start.tolist(), segs.end.tolist(), segs.category.tolist(), strict=True)
    return merged([Piece(a, b, CATEGORIES[c]) for a, b, c in rows])


def categories(pieces: list[Piece]) -> list[Piece]:
    return merged([Piece(p.start, p.end, p.category) for p in pieces])


class Reference:
    def __init__(self, t: Timeline) -> None:
        self.t = t
        ops, host, calls = t.trace.ops, t.trace.host, t.calls
        columns = zip(ops.start.tolist(), ops.end.tolist(), ops.kind.tolist(), ops.device.tolist(), strict=True)
        self.ops = [Op(i, a, b, OpKind(k), d) for i, (a, b, k, d) in enumerate(columns)]
        rows = zip(host.start.tolist(), host.end.tolist(), host.kind.tolist(), host.thread.tolist(), strict=True)
        self.events = [Event(i, a, b, HostKind(k), d) for i, (a, b, k, d) in enumerate(rows)]
        self.call_of = calls.of_op.tolist()
        self.calls = list(zip(calls.start.tolist(), calls.end.tolist(), calls.thread.tolist(), strict=True))
        self.long = long_calls(calls).tolist()
        self.meaning = [ApiMeaning(m) for m in calls.meaning.tolist()]

    # Who is innermost on a thread

    def innermost(self, thread: int) -> Callable[[int], int]:
        """For an instant the innermost event's row, or NONE. An event that outlives the one around it ends with it; an
        OS call that begins inside an API call is how that call waits."""
        calls = [(start, end) for start, end, of in self.calls if of == thread]
        spans: list[tuple[int, int, int]] = []
        for e in self.events:
            if e.thread != thread or e.kind in (HostKind.RANGE, HostKind.MARK) or e.end <= e.start:
                continue
            if e.kind == HostKind.OS and any(start <= e.start < end for start, end in calls):
                continue
            around = [end for start, end, _ in spans if start <= e.start < end]
            spans.append((e.start, min([e.end, *around]), e.row))

        def at(t: int) -> int:
            return max((row for start, end, row in spans if start <= t < end), default=NONE)

        return at

    def off_core(self, thread: int, t: int) -> bool:
        s = self.t.trace.scheduling
        if s is None:
            return False
        moves = [
            (a, r) for a, th, r in zip(s.time.tolist(), s.thread.tolist(), s.runs.tolist(), strict=True) if th == thread
        ]
        return any(not r0 and r1 and a <= t < b for (a, r0), (b, r1) in pairwise(moves))

    def host_time(self, thread: int, lo: int, hi: int) -> list[Piece]:
        if hi <= lo:
            return []
        owner = self.innermost(thread)
        times = [t for e in self.events for t in (e.start, e.end)]
        if self.t.trace.scheduling is not None:
            times += self.t.trace.scheduling.time.tolist()
        out = []
        for a, b in elementary(iter(times), lo, hi):
            row = owner(a)
            category = Category.HOST_UNTRACED if row == NONE else CATEGORIES[self.t.host.category[row]]
            if category in SOFT and self.off_core(thread, a):
                category = Category.HOST_OS_WAIT
            out.append(Piece(a, b, category, row))
        return merged(out)

    # What a device did, and what it waited for

    def device(self, device: int, lo: int, hi: int) -> list[Piece]:
        mine = [o for o in self.ops if o.device == device]
        out: list[Piece] = []
        gap: int | None = None
        for a, b in elementary((t for o in mine for t in (o.start, o.end)), lo, hi):
            running = [o for o in mine if o.start <= a < o.end]
            if running:
                if gap is not None:
                    out += self.gap(gap, a, mine)
                    gap = None
                first = min(running, key=lambda o: (o.kind, o.row))
                out.append(Piece(a, b, OF_OP[first.kind], first.row))
            elif gap is None:
                gap = a
        if gap is not None:
            out += self.gap(gap, hi, mine)
        return merged(out)

    def gap(self, g0: int, g1: int, mine: list[Op]) -> list[Piece]:
        """An idle gap and the op that ends it."""
        release = next((o for o in mine if o.start >= g1), None)
        return [Piece(g0, g1, Category.NO_LAUNCH_RECORD)] if release is None else self.wait(g0, g1, release)

    def wait(self, g0: int, g1: int, op: Op) -> list[Piece]:
        """Host late until the call began; in the call; held by another op; launch latency; and what is left."""
        call = self.call_of[op.row]
        if call == NONE:
            return [Piece(g0, g1, Category.NO_LAUNCH_RECORD, op.row)]
        start, end, thread = self.calls[call]
        called = min(max(start, g0), g1)
        returned = min(max(end, called), g1)
        out = self.host_time(thread, g0, called) + self.in_call(called, returned, call, thread)
        held = self.t.graph.waited_event.get(op.row, NONE)
        free = returned if held == NONE else min(max(returned, self.ops[held].end), g1)
        out.append(Piece(returned, free, Category.DEPENDENCY, op.row))
        likely = min(g1, free + self.t.devices.plausible_ns)
        out.append(Piece(free, likely, Category.LAUNCH, op.row))
        out.append(Piece(likely, g1, Category.UNACCOUNTED, op.row))
        return [p for p in out if p.end > p.start]

    def in_call(self, lo: int, hi: int, call: int, thread: int) -> list[Piece]:
        """An ordinary launch call is launch, and so is a copy's call as long as no more than a launch takes."""
        out = []
        for p in self.host_time(thread, lo, hi):
            quick = p.category is Category.HOST_COPY and p.end - p.start <= LAUNCH_AT_LEAST_NS
            plain = self.meaning[call] in PLAIN and not self.long[call]
            launch = plain and (p.category is Category.HOST_API or quick)
            out.append(Piece(p.start, p.end, Category.LAUNCH if launch else p.category, p.ref))
        return out

    # The backward walk

    def path(self, lo: int, hi: int, thread: int, op: int = NONE) -> list[Piece]:
        """Back from ``hi`` to ``lo``, always to the predecessor that finished last."""
        out: list[Piece] = []
        now = hi
        for _ in range(4 * (len(self.ops) + len(self.calls) + len(self.events)) + 8):
            if now <= lo:
                return merged(out)
            if op == NONE:
                stretches, then, thread, op = self.on_thread(now, thread)
            else:
                stretches, then, thread, op = self.on_device(now, op, lo, hi)
            for start, end, name in stretches:
                if end > max(start, lo):
                    out += name(max(start, lo), end)
            now = then
        raise AssertionError("the walk does not end")

    def on_thread(self, now: int, thread: int) -> tuple[list[tuple[int, int, Namer]], int, int, int]:
        """A thread's own time, back to the wait that let it go; then from the wait to what it waited for."""
        c, given = self.t.calls, self.t.graph.handovers
        waits = [(a, i) for i, (a, _, th) in enumerate(self.calls) if th == thread and c.blocking[i] and a < now]
        waits += [(h.start, ~k) for k, h in enumerate(given) if h.bound and h.thread == thread and h.start < now]

        def own(a: int, b: int) -> list[Piece]:
            return self.host_time(thread, a, b)

        if not waits:
            return [(AT_THE_BEGINNING, now, own)], AT_THE_BEGINNING, thread, NONE
        start, which = max(waits)
        end = given[~which].end if which < 0 else self.calls[which][1]
        before = [(end, now, own)] if end < now else []
        now = min(now, end)
        if which < 0:
            signal = min(given[~which].signal, now)
            return [*before, (signal, now, own)], signal, given[~which].giver, NONE
        waited = self.ops[int(c.awaited[which])]
        done = min(waited.end, now)
        if done <= start or waited.start >= now:
            # It ended before the wait began: the wait is a call like any other.
            return [*before, (start, now, own)], start, thread, NONE
        category = CATEGORIES[self.t.host.category[c.event[which]]]
        return [*before, (done, now, called(category, waited.row))], done, thread, waited.row

    def on_device(self, now: int, row: int, lo: int, hi: int) -> tuple[list[tuple[int, int, Namer]], int, int, int]:
        """An op, back to its start and on to what it had to wait for; a collective, back to its last arrival."""
        op = self.ops[row]
        peer = self.t.graph.peer.get(row, NONE)
        if peer != NONE and op.start < self.ops[peer].start < now:
            arrival = self.ops[peer].start
            return [(arrival, now, called(OF_OP[op.kind], row))], arrival, NONE, peer
        if op.start < now:
            return [(op.start, now, called(OF_OP[op.kind], row))], op.start, NONE, row
        before = self.t.streams.previous.tolist()[row]
        before_end = min(self.ops[before].end, now) if before != NONE else AT_THE_BEGINNING
        call = self.call_of[row]
        if call == NONE or self.calls[call][0] >= now:
            return self.without_call(now, op, before, before_end, lo, hi)
        begun, returned, thread = self.calls[call]
        blocks = bool(self.t.calls.blocking[call])
        handed_over = min(returned, begun + CLOCK_TOLERANCE_NS) if blocks else returned

        def queued(a: int, b: int) -> list[Piece]:
            soon = min(b, a + self.t.devices.plausible_ns)
            return [Piece(a, soon, Category.LAUNCH, row), Piece(soon, b, Category.UNACCOUNTED, row)]

        def waited(a: int, b: int) -> list[Piece]:
            return self.wait(a, b, op)

        event = self.t.graph.waited_event.get(row, NONE)
        if event != NONE:
            ended = self.ops[event].end
            if handed_over <= ended <= now + CROSS_SLACK_NS and ended >= before_end:
                return [(min(ended, now), now, queued)], min(ended, now), NONE, event
        if before != NONE and (before_end >= handed_over or now - before_end <= STREAM_SLACK_NS):
            return [(before_end, now, queued)], before_end, NONE, before
        if before != NONE and before_end > begun and self.t.calls.awaited[call] == row:
            return [(before_end, now, waited)], before_end, NONE, before
        if now - returned > self.t.devices.plausible_ns:
            other = self.ended_last(now, [o for o in self.ops if o.row != row])
            if other is not None and now - other.end <= CROSS_SLACK_NS:
                return [(other.end, now, queued)], other.end, NONE, other.row
        inside = min(returned, now)
        return [(inside, now, waited), (begun, inside, waited)], begun, thread, NONE

    def without_call(
        self, now: int, op: Op, before: int, before_end: int, lo: int, hi: int
    ) -> tuple[list[tuple[int, int, Namer]], int, int, int]:
        """Its stream, or the device, is all that is left to go by: the device's account names the time."""
        if before == NONE or now - before_end > STREAM_SLACK_NS:
            other = self.ended_last(now, [o for o in self.ops if o.row != op.row and o.device == op.device])
            if other is not None and other.end > before_end:
                before, before_end = other.row, other.end

        def device(a: int, b: int) -> list[Piece]:
            pieces = self.device(op.device, lo, hi)
            cut = [Piece(max(p.start, a), min(p.end, b), p.category, p.ref) for p in pieces]
            return [p for p in cut if p.end > p.start]

        return [(before_end, now, device)], before_end, NONE, before

    @staticmethod
    def ended_last(now: int, among: list[Op]) -> Op | None:
        ended = [o for o in among if o.end <= now and o.start < now]
        return max(ended, key=lambda o: (o.end, o.row), default=None)


def called(category: Category, ref: int) -> Namer:
    return lambda a, b: [Piece(a, b, category, ref)]
