"""Segments: pieces of an interval, each with a category, a label and what they hang on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.terms import CATEGORIES, Category
from scopedown.trace.model import NONE, Codes, Columns, Ints, Mask
from scopedown.trace.tally import AnyInts

_HOST = np.array([c.is_host for c in CATEGORIES])
_DEVICE = np.array([c.is_device for c in CATEGORIES])


@dataclass(frozen=True, slots=True)
class Segments(Columns):
    """Sorted by start; a partition of an interval unless said otherwise."""

    start: Ints
    end: Ints
    category: Codes
    """Code of the category."""
    label: Codes
    """Index into the account's labels."""
    op: Codes
    """The device op that the segment is, or that it waits to start; NONE."""
    thread: Codes
    """The host thread whose time it is, or NONE."""

    @property
    def ns(self) -> Ints:
        return self.end - self.start

    @property
    def on_host(self) -> Mask:
        mask: Mask = _HOST[self.category]
        return mask

    @property
    def on_device(self) -> Mask:
        mask: Mask = _DEVICE[self.category]
        return mask


def empty_segments() -> Segments:
    z, c = np.empty(0, np.int64), np.empty(0, np.int32)
    return Segments(z, z, c, c, c, c)


def concat(parts: list[Segments]) -> Segments:
    """All segments of all parts, sorted by start; those of no length are dropped."""
    parts = [p for p in parts if len(p)]
    if not parts:
        return empty_segments()
    names = [n for n, _ in parts[0].columns()]
    start = np.concatenate([p.start for p in parts])
    rows = np.flatnonzero(np.concatenate([p.end for p in parts]) > start)
    start = start[rows]
    if not (start[1:] >= start[:-1]).all():
        rows = rows[np.argsort(start, kind="stable")]
    # A column at a time: all six of a million segments, twice, would be most of the memory that is used.
    return Segments(**{n: np.concatenate([getattr(p, n) for p in parts])[rows] for n in names})


def one(start: int, end: int, category: Category, label: int, op: int = NONE, thread: int = NONE) -> Segments:
    codes = (np.array([v], np.int32) for v in (category.code, label, op, thread))
    return Segments(np.array([start], np.int64), np.array([end], np.int64), *codes)


def many(
    start: Ints,
    end: Ints,
    category: AnyInts | int,
    label: AnyInts | int,
    op: AnyInts | int = NONE,
    thread: AnyInts | int = NONE,
) -> Segments:
    """Broadcasts scalar columns."""
    n = len(start)

    def column(v: AnyInts | int) -> Codes:
        return np.full(n, v, np.int32) if isinstance(v, int) else np.asarray(v, np.int32)

    return Segments(start, end, column(category), column(label), column(op), column(thread))


def merge_equal(segs: Segments) -> Segments:
    """Neighbours that touch and agree in category, label and thread become one; it keeps the first one's op."""
    if len(segs) < 2:
        return segs
    same = (
        (segs.start[1:] == segs.end[:-1])
        & (segs.category[1:] == segs.category[:-1])
        & (segs.label[1:] == segs.label[:-1])
        & (segs.thread[1:] == segs.thread[:-1])
        & ((segs.op[1:] == segs.op[:-1]) | (segs.op[1:] == NONE) | (segs.thread[1:] != NONE))
    )
    first = np.flatnonzero(np.append(True, ~same))
    last = np.append(first[1:], len(segs)) - 1
    merged = segs.take(first)
    return Segments(merged.start, segs.end[last], merged.category, merged.label, merged.op, merged.thread)


def check_partition(segs: Segments, lo: int, hi: int) -> None:
    """Raises where the segments do not tile [lo, hi) exactly: a ledger with a remainder must not exist."""
    if hi == lo and not len(segs):
        return
    tiled = len(segs) and segs.start[0] == lo and segs.end[-1] == hi and (segs.start[1:] == segs.end[:-1]).all()
    if not tiled:
        raise AssertionError(
            f"account does not tile [{lo}, {hi}): {int(segs.ns.sum()) if len(segs) else 0} ns in {len(segs)} segments"
        )


def by_category(segs: Segments) -> dict[Category, int]:
    """Total ns a category."""
    sums = np.zeros(len(CATEGORIES), np.int64)
    np.add.at(sums, segs.category, segs.ns)
    return {CATEGORIES[i]: int(sums[i]) for i in np.unique(segs.category).tolist()}
