"""Repetition: segments and gaps with one signature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.account.device import DeviceAccount, OpLabels
from scopedown.account.segments import Segments, merge_equal
from scopedown.terms import CATEGORIES, Category
from scopedown.trace import tally
from scopedown.trace.model import NONE, Ints

#: Lengths that differ by more than this factor from the next shorter one do not belong to one cause.
LENGTH_FACTOR = 3.0
#: Shorter than this, all lengths are alike.
LENGTH_FLOOR_NS = 2_000


@dataclass(frozen=True, slots=True)
class Group:
    """Segments of one cause: rows of the table that they were found in."""

    category: Category
    label: int
    rows: Ints
    start: Ints
    ns: Ints

    @property
    def count(self) -> int:
        return len(self.ns)

    @property
    def total_ns(self) -> int:
        return int(self.ns.sum())

    @property
    def median_ns(self) -> int:
        return int(np.sort(self.ns)[(self.count - 1) // 2])

    @property
    def spread_ns(self) -> tuple[int, int]:
        """Tenth and ninetieth percentile, nearest rank."""
        return nearest(self.ns, 0.1), nearest(self.ns, 0.9)

    @property
    def period_ns(self) -> int | None:
        """Median distance of starts where distances agree: the middle half within a third of the median."""
        if self.count < 4:
            return None
        gaps = np.diff(np.sort(self.start))
        median = int(np.median(gaps))
        near = np.percentile(gaps, 75) - np.percentile(gaps, 25)
        return median if median and near <= median / 3 else None

    @property
    def trend(self) -> str | None:
        """grows, shrinks, first wave (the first tenth is twice as long as the rest), or None for steady."""
        if self.count < 8:
            return None
        ns = self.ns[np.argsort(self.start, kind="stable")].astype(np.float64)
        head = ns[: max(1, self.count // 10)]
        rest = ns[len(head) :]
        if np.median(head) > 2 * np.median(rest):
            return "first wave"
        third = self.count // 3
        early, late = float(np.median(ns[:third])), float(np.median(ns[-third:]))
        if late > 1.25 * early and late > np.percentile(ns[:third], 90):
            return "grows"
        if early > 1.25 * late and early > np.percentile(ns[-third:], 90):
            return "shrinks"
        return None


def nearest(values: Ints, p: float) -> int:
    """Percentile by nearest rank."""
    ordered = np.sort(values)
    return int(ordered[max(0, int(np.ceil(p * len(ordered))) - 1)])


def rows_of_keys(key: Ints) -> list[Ints]:
    """Row sets of equal keys, by key; rows in order. One sort, however many keys there are."""
    if not len(key):
        return []
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def of_segments(segs: Segments) -> list[Group]:
    """Groups of a path's segments, one cause each, largest total first."""
    whole = merge_equal(segs)
    key = np.int64(int(whole.label.max(initial=NONE)) + 2) * whole.category + whole.label + 1
    groups = []
    for rows in rows_of_keys(key):
        for part in by_length(whole.ns[rows]):
            mine = rows[part]
            category = CATEGORIES[int(whole.category[mine[0]])]
            groups.append(Group(category, int(whole.label[mine[0]]), mine, whole.start[mine], whole.ns[mine]))
    return sorted(groups, key=lambda g: (-g.total_ns, g.category, g.label, int(g.start[0])))


def by_length(ns: Ints) -> list[Ints]:
    """Row sets of clearly different length, each in the order of rows."""
    order = np.argsort(ns, kind="stable")
    size = np.maximum(ns[order], LENGTH_FLOOR_NS).astype(np.float64)
    cut = np.flatnonzero(size[1:] > LENGTH_FACTOR * size[:-1]) + 1
    return [np.sort(part) for part in np.split(order, cut)]


@dataclass(frozen=True, slots=True)
class GapGroup:
    """Idle gaps of one device between ops of the same names."""

    device: int
    before: int
    """Label of the op before, or NONE."""
    after: int
    category: Category
    """What most of their time is."""
    label: int
    start: Ints
    ns: Ints
    late_ns: int
    """Of the total: the part in which the host had not asked yet."""


def of_gaps(account: DeviceAccount, names: OpLabels) -> list[GapGroup]:
    """Gap groups of a device account, largest total first."""
    gaps, segs = account.gaps, account.segments
    if not len(gaps.start):
        return []
    idle = segs.take(~segs.on_device)
    gap_of = np.searchsorted(gaps.start, idle.start, side="right") - 1
    before = np.where(gaps.before >= 0, names.label[np.maximum(gaps.before, 0)], NONE)
    after = np.where(gaps.release >= 0, names.label[np.maximum(gaps.release, 0)], NONE)
    width = int(max(before.max(), after.max())) + 2
    key = (before + 1) * width + after + 1
    groups = []
    for rows in rows_of_keys(key[gap_of]):
        # Every gap has segments of its own: those of a key name all its gaps.
        mine = tally.distinct(gap_of[rows])
        inside = idle.take(rows)
        cause = np.int64(int(inside.label.max()) + 2) * inside.category + inside.label + 1
        kinds, where = tally.index(cause)
        sums = np.zeros(len(kinds), np.int64)
        np.add.at(sums, where, inside.ns)
        first = int(np.flatnonzero(where == int(sums.argmax()))[0])
        groups.append(
            GapGroup(
                account.device,
                int(before[mine[0]]),
                int(after[mine[0]]),
                CATEGORIES[int(inside.category[first])],
                int(inside.label[first]),
                gaps.start[mine],
                gaps.end[mine] - gaps.start[mine],
                int(inside.ns[inside.on_host].sum()),
            )
        )
    return sorted(groups, key=lambda g: (-int(g.ns.sum()), g.before, g.after))
