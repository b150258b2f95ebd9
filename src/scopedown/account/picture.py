"""An account as something to draw: the path, lanes of threads, streams and idle time, and what repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from scopedown.account import lanes
from scopedown.account.account import Account
from scopedown.account.groups import GapGroup, Group
from scopedown.account.lanes import Drawn, Keys
from scopedown.account.occurrences import occurrences
from scopedown.account.segments import merge_equal
from scopedown.account.thin import shares, thin
from scopedown.picture import Beats, Lane, Links, Picture, Repeat, Span
from scopedown.trace.model import NONE, Ints
from scopedown.trace.tally import AnyInts

#: Ledger lines, patterns and gap groups that can be looked at one by one.
LINES = 60
PATTERNS = 100
GAP_GROUPS = 40
#: More step marks than this would be a grey band.
STEPS = 400
CLEARLY_LESS = 0.9
HALVINGS = 8


@dataclass(frozen=True, slots=True)
class Budget:
    """How many pieces a picture may hold; about twenty bytes each on a page."""

    path: int = 20_000
    rows: int = 60_000
    members: int = 40_000
    links: int = 6_000
    names: int = 3_000

    def halved(self) -> Budget:
        return replace(self, **{f: max(50, getattr(self, f) // 2) for f in self.__slots__})


def pictures(a: Account, patterns: Mapping[str, Group]) -> Iterator[Picture]:
    """The picture, then again and again with half the detail."""
    budget = Budget()
    for _ in range(HALVINGS):
        yield picture(a, patterns, budget)
        budget = budget.halved()


def picture(a: Account, patterns: Mapping[str, Group], budget: Budget | None = None) -> Picture:
    """``patterns``: the groups that the report's pattern ids name."""
    budget = budget or Budget()
    keys = Keys(a.labels)
    drawn = lanes.of(a) if a.timeline is not None else []
    caps = iter(shares([len(r.start) for lane in drawn for r in lane.rows], budget.rows))
    rows = [[thin(r.start, r.end, r.key, next(caps)) for r in lane.rows] for lane in drawn]
    path = merge_equal(a.path)
    thinned = thin(path.start, path.end, keys.of(path.category, path.label), budget.path)
    repeats = _repeats(a, patterns, budget)
    used = np.concatenate([thinned.key, *(t.key for lane in rows for t in lane)])
    keys.keep(used, budget.names)
    return Picture(
        total_ns=a.total_ns,
        names=keys.names(),
        phases=[Span(start=p.start - a.lo, ns=p.ns, category=p.category, label=p.label) for p in a.phases],
        path=keys.pieces(thinned, a.lo, len(path)),
        path_lane=_path_lane(a, drawn, path.op[thinned.first], path.thread[thinned.first]).tolist(),
        lanes=[
            Lane(
                kind=lane.kind,
                title=lane.title,
                rows=[keys.pieces(t, a.lo, len(r.start)) for t, r in zip(made, lane.rows, strict=True)],
                main=lane.main,
            )
            for lane, made in zip(drawn, rows, strict=True)
        ],
        links=list(_links(a, drawn, repeats, budget)),
        repeats=[r for r, _ in repeats],
        work=_work(a),
        steps=_steps(a),
        threads_left_out=lanes.threads_left_out(a),
        streams_left_out=lanes.streams_left_out(a, drawn),
        other_names=keys.dropped,
    )


def _path_lane(a: Account, drawn: list[Drawn], op: AnyInts, thread: AnyInts) -> Ints:
    """The lane that each path segment runs through: its thread's, else its op's stream."""
    out = np.full(len(op), NONE, np.int64)
    if a.timeline is None:
        return out
    lane_of_thread = lanes.table(drawn, lanes.THREAD, len(a.timeline.trace.threads))
    lane_of_stream = lanes.table(drawn, lanes.STREAM, len(a.timeline.streams.bound))
    on_thread, on_op = thread >= 0, (thread < 0) & (op >= 0)
    out[on_thread] = lane_of_thread[thread[on_thread]]
    out[on_op] = lane_of_stream[a.timeline.streams.key[op[on_op]]]
    return out


def _repeats(a: Account, patterns: Mapping[str, Group], budget: Budget) -> list[tuple[Repeat, GapGroup | None]]:
    """Lines, patterns and gap groups, in that order."""
    path = merge_equal(a.path)
    found: list[tuple[str, str, Group, GapGroup | None]] = []
    for i, line in enumerate(a.lines()[:LINES], 1):
        rows = np.flatnonzero((path.category == line.category.code) & (path.label == line.code))
        group = Group(line.category, line.code, rows, path.start[rows], path.ns[rows])
        found.append(("line", f"L{i}", group, None))
    found += [("pattern", name, group, None) for name, group in [*patterns.items()][:PATTERNS] if name != "top"]
    for i, g in enumerate(a.gap_groups[:GAP_GROUPS], 1):
        found.append(("gaps", f"g{i}", Group(g.category, g.label, np.arange(len(g.ns)), g.start, g.ns), g))
    caps = shares([g.count for _, _, g, _ in found], budget.members)
    return [
        (occurrences(a, kind, name, group, gaps, cap), gaps)
        for (kind, name, group, gaps), cap in zip(found, caps, strict=True)
    ]


def _links(
    a: Account, drawn: list[Drawn], repeats: list[tuple[Repeat, GapGroup | None]], budget: Budget
) -> Iterable[Links]:
    t = a.timeline
    if t is None:
        return
    lane_of_thread = lanes.table(drawn, lanes.THREAD, len(t.trace.threads))
    lane_of_stream = lanes.table(drawn, lanes.STREAM, len(t.streams.bound))
    sizes = shares([len(d.gaps.start) for d in a.devices], budget.links)
    for d, size in zip(a.devices, sizes, strict=True):
        lane = next((i for i, x in enumerate(drawn) if x.kind == lanes.IDLE and x.of == d.device), NONE)
        if lane == NONE:
            continue
        ns = d.gaps.end - d.gaps.start
        rows = np.sort(np.argsort(-ns, kind="stable")[:size])
        start, release = d.gaps.start[rows], d.gaps.release[rows]
        of = np.full(len(rows), NONE, np.int64)
        for i, (_, g) in enumerate(repeats):
            if g is not None and g.device == d.device:
                of[np.isin(start, g.start)] = i
        call = np.where(release >= 0, t.calls.of_op[np.maximum(release, 0)], NONE) if len(t.calls.of_op) else release
        known = call >= 0
        at = np.where(known, t.calls.start[np.maximum(call, 0)] - a.lo if len(t.calls) else NONE, NONE)
        thread = np.where(known, t.calls.thread[np.maximum(call, 0)] if len(t.calls) else NONE, NONE)
        yield Links(
            lane=lane,
            start=(start - a.lo).tolist(),
            ns=ns[rows].tolist(),
            repeat=of.tolist(),
            call=np.maximum(at, NONE).tolist(),
            call_lane=np.where(thread >= 0, lane_of_thread[np.maximum(thread, 0)], NONE).tolist(),
            op_lane=np.where(release >= 0, lane_of_stream[t.streams.key[np.maximum(release, 0)]], NONE).tolist(),
            gaps=len(ns),
        )


def _work(a: Account) -> tuple[int, int] | None:
    if a.timeline is None:
        return None
    ops = a.timeline.trace.ops
    inside = (ops.start < a.hi) & (ops.end > a.lo)
    if not inside.any():
        return None
    first, last = max(int(ops.start[inside].min()), a.lo), min(int(ops.end[inside].max()), a.hi)
    return (first - a.lo, last - a.lo) if last - first < CLEARLY_LESS * a.total_ns else None


def _steps(a: Account) -> Beats | None:
    if a.steps is None:
        return None
    start = a.steps.start[(a.steps.start >= a.lo) & (a.steps.start < a.hi)] - a.lo
    few = start.tolist() if len(start) <= STEPS else []
    return Beats(how=str(a.steps.how), name=a.steps.name, start=few, count=len(start))
