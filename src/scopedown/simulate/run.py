"""The truth about a run: what bound what, and two partitions of any interval that follow from it.

Categories follow the rules of the account, but nothing here is found by analysis: the path follows the constraint that
the machine wrote down for each start, and a gap is split at the launch call that the machine joined to its op.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from scopedown.simulate.machine import Machine, Op, Piece, Recorded
from scopedown.simulate.program import Program
from scopedown.terms import Category
from scopedown.trace.model import OpKind

OP_CATEGORY = {
    OpKind.KERNEL: Category.DEVICE_KERNEL,
    OpKind.COLLECTIVE: Category.DEVICE_COLLECTIVE,
    OpKind.COPY: Category.DEVICE_COPY,
    OpKind.MEMSET: Category.DEVICE_MEMSET,
    OpKind.GRAPH: Category.DEVICE_OPAQUE_GRAPH,
}


@dataclass(frozen=True, slots=True)
class Segment:
    start: int
    end: int
    category: Category
    label: str
    tag: str
    """The cause that the program gave this time to; empty: none (a plain call, a latency)."""

    @property
    def ns(self) -> int:
        return self.end - self.start


def by_category(segments: Iterable[Segment]) -> dict[Category, int]:
    total: Counter[Category] = Counter()
    for s in segments:
        total[s.category] += s.ns
    return {c: n for c, n in total.items() if n}


def by_tag(segments: Iterable[Segment]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for s in segments:
        total[s.tag] += s.ns if s.tag else 0
    return {t: n for t, n in total.items() if n}


@dataclass(frozen=True, repr=False)
class Run:
    program: Program
    recorded: Recorded

    def mark(self, name: str) -> int:
        return self.recorded.marks[name][0]

    @property
    def end_ns(self) -> int:
        hosts = [pieces[-1].end for pieces in self.recorded.pieces if pieces]
        return max([self.program.start_ns, *hosts, *(op.end for op in self.recorded.ops)])

    def path(self, start: int, end: int, thread: int, owner: str = "") -> list[Segment]:
        """The critical path of what ``thread`` had done at ``end``, back to ``start``: a partition, in order of time.

        ``owner``: device time of ops that belong to somebody else is the scheduler's.
        """
        found: list[Segment] = []

        def take(begin: int, until: int, category: Category, label: str, tag: str = "") -> None:
            if max(begin, start) < until:
                found.append(Segment(max(begin, start), until, category, label, tag))

        at: Op | tuple[int, int] = (thread, bisect_left(self._starts[thread], end) - 1)
        now = end
        while now > start:
            if isinstance(at, tuple):
                t, i = at
                if i < 0:
                    take(start, now, Category.UNACCOUNTED, "before the program")
                    break
                piece = self.recorded.pieces[t][i]
                take(piece.start, now, piece.category, piece.label, piece.tag)
                now, at = piece.start, self._before(piece, t, i)
                continue
            op = at
            foreign = bool(owner and op.work.owner and op.work.owner != owner)
            category = Category.SCHEDULER if foreign else OP_CATEGORY[op.work.kind]
            if op.last_peer is not None:
                # The wait for the last peer is the last peer's story: the path goes over to it.
                op = op.last_peer
            take(op.start, now, category, op_label(op), op.work.tag)
            if op.bound_by is not None:
                take(op.bound_by.end, op.start, Category.LAUNCH, "between queued ops")
                now, at = op.bound_by.end, op.bound_by
            else:
                t, i = op.call
                piece = self.recorded.pieces[t][i]
                take(piece.start, op.start, Category.LAUNCH, piece.label, piece.tag)
                now, at = piece.start, self._before(piece, t, i)
        return found[::-1]

    def _before(self, piece: Piece, t: int, i: int) -> Op | tuple[int, int]:
        return piece.after_op or piece.after_piece or (t, i - 1)

    @cached_property
    def _starts(self) -> list[list[int]]:
        return [[p.start for p in pieces] for pieces in self.recorded.pieces]

    def device_account(self, start: int, end: int, device: int) -> list[Segment]:
        """What the device did or waited for: a partition, in order of time."""
        ops = sorted((o for o in self.recorded.ops if o.device == device), key=lambda o: (o.start, o.end))
        found: list[Segment] = []
        cuts = sorted({start, end, *(t for o in ops for t in (o.start, o.end) if start < t < end)})
        starts = [o.start for o in ops]
        active: list[Op] = [o for o in ops if o.start <= start < o.end]
        following = bisect_right(starts, start)
        busy_until = max((o.end for o in ops if o.start <= start), default=start)
        for begin, until in pairwise(cuts):
            while following < len(ops) and ops[following].start <= begin:
                active.append(ops[following])
                busy_until = max(busy_until, ops[following].end)
                following += 1
            active = [o for o in active if o.end > begin]
            if active:
                op = min(active, key=lambda o: (o.work.kind, o.start))
                found.append(Segment(begin, until, OP_CATEGORY[op.work.kind], op_label(op), op.work.tag))
            elif following < len(ops):
                found += self._gap(begin, until, ops[following])
            else:
                found.append(Segment(begin, until, Category.NO_LAUNCH_RECORD, "nothing follows", ""))
        return found

    def _gap(self, g0: int, g1: int, op: Op) -> list[Segment]:
        """Splits idle time before the op that ends it: host late, in the call, after the call."""
        t, i = op.call
        call = self.recorded.pieces[t][i]
        found: list[Segment] = []

        def take(begin: int, until: int, category: Category, label: str, tag: str = "") -> None:
            begin, until = max(begin, g0), min(until, g1)
            if begin < until:
                found.append(Segment(begin, until, category, label, tag))

        first = max(0, bisect_right(self._starts[t], g0) - 1)
        for piece in self.recorded.pieces[t][first:i]:
            take(piece.start, piece.end, piece.category, piece.label, piece.tag)
        other_device = op.bound_by if op.bound_by is not None and op.bound_by.device != op.device else None
        waited = max(call.start, min(other_device.end, g1)) if other_device is not None else call.start
        take(call.start, min(call.end, g1), Category.LAUNCH, call.label, call.tag)
        if other_device is not None:
            take(max(call.end, g0), waited, Category.DEPENDENCY, op_label(other_device))
        take(max(call.end, waited if other_device is not None else g0), g1, Category.LAUNCH, call.label)
        return found

    def busy(self, start: int, end: int, device: int = 0) -> int:
        """Time with at least one op running."""
        return sum(s.ns for s in self.device_account(start, end, device) if s.category.is_device)

    def tag_totals(self) -> dict[str, int]:
        """All time that the program spent under each tag, on the path or beside it."""
        total: Counter[str] = Counter()
        for pieces in self.recorded.pieces:
            for p in pieces:
                total[p.tag] += p.end - p.start
        for op in self.recorded.ops:
            total[op.work.tag] += op.work.ns
        del total[""]
        return dict(total)


def op_label(op: Op) -> str:
    if op.work.kind == OpKind.COPY:
        return {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}.get(op.work.copy, "copy")
    return op.work.name or op.work.kind.name.lower()


def run(program: Program) -> Run:
    """Runs a program. Raises Deadlock where its threads wait for each other for ever."""
    return Run(program, Machine(program).run())
