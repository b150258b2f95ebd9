"""The occurrences of one thing as something to draw: where they lie, how long they are, how that changes."""

from __future__ import annotations

import numpy as np

from scopedown.account.account import Account
from scopedown.account.groups import GapGroup, Group
from scopedown.account.thin import thin
from scopedown.picture import Pieces, Repeat
from scopedown.trace.model import Ints

DOTS = 400
BINS = 24
#: Longest over shortest; beyond it the lengths are binned by ratio.
LOG_FROM = 30
#: Longest minus shortest, as a part of the longest; below it the range does not begin at nothing.
ALIKE = 0.2
#: Fewer occurrences have no course.
COURSE_FROM = 8
COURSE = 16


def occurrences(a: Account, kind: str, name: str, group: Group, gaps: GapGroup | None, cap: int) -> Repeat:
    """``gaps``: what the group was made from, where it is idle time between two ops."""
    order = np.argsort(group.start, kind="stable")
    at, ns = group.start[order] - a.lo, group.ns[order]
    t = thin(at, at + ns, np.zeros(len(at), np.int64), cap)
    chosen = _chosen(ns)
    log, low, high, bins = _bins(ns)
    course_at, course_ns = _course(at, ns)
    label = a.labels.values
    return Repeat(
        kind=kind,
        id=name,
        category=group.category,
        label=label[group.label] if group.label >= 0 else "",
        device=gaps.device if gaps else None,
        before=label[gaps.before] if gaps and gaps.before >= 0 else None,
        after=label[gaps.after] if gaps and gaps.after >= 0 else None,
        count=group.count,
        total_ns=group.total_ns,
        median_ns=group.median_ns,
        spread_ns=group.spread_ns,
        late_ns=gaps.late_ns if gaps else None,
        trend=group.trend,
        members=Pieces(
            start=t.start.tolist(),
            ns=(t.end - t.start).tolist(),
            name=[],
            count=t.count.tolist() if t.below_ns is not None else [],
            busy=[],
            events=group.count,
            below_ns=t.below_ns,
        ),
        dot_at=at[chosen].tolist(),
        dot_ns=ns[chosen].tolist(),
        log=log,
        range_ns=(low, high),
        bins=bins,
        course_at=course_at,
        course_ns=course_ns,
    )


def _chosen(ns: Ints) -> Ints:
    if len(ns) <= DOTS:
        return np.arange(len(ns))
    even = np.linspace(0, len(ns) - 1, DOTS - 2).round().astype(np.int64)
    return np.unique(np.concatenate([even, [int(ns.argmin()), int(ns.argmax())]]))


def _bins(ns: Ints) -> tuple[bool, int, int, list[int]]:
    shortest, longest = max(1, int(ns.min())), max(1, int(ns.max()))
    log = longest > LOG_FROM * shortest
    # Lengths that differ little fill half of the range; else it begins at nothing.
    near = longest - shortest < ALIKE * longest
    low, high = (shortest if log else max(0, 2 * shortest - longest - 1) if near else 0), longest + 1
    edges = np.geomspace(low, high, BINS + 1) if log else np.linspace(low, high, BINS + 1)
    return log, low, high, np.histogram(np.maximum(ns, low), edges)[0].tolist()


def _course(at: Ints, ns: Ints) -> tuple[list[int], list[int]]:
    if len(ns) < COURSE_FROM:
        return [], []
    parts = np.array_split(np.arange(len(ns)), min(COURSE, len(ns) // 4))
    return [int(np.median(at[p])) for p in parts], [int(np.median(ns[p])) for p in parts]
