"""Algebra on sorted half-open intervals of int64 nanoseconds.

An interval list is a pair of arrays ``(start, end)``, sorted and disjoint unless a function says otherwise.
"""

from __future__ import annotations

import numpy as np

from scopedown.trace.model import Ints

_FAR = np.iinfo(np.int64).max


def union(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The union of intervals sorted by start; touching ones are merged, empty ones dropped."""
    keep = end > start
    start, end = start[keep], end[keep]
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    first = np.flatnonzero(np.append(True, start[1:] > reach[:-1]))
    return start[first], reach[np.append(first[1:], len(start)) - 1]


def total(start: Ints, end: Ints) -> int:
    return int((end - start).sum())


def clip(start: Ints, end: Ints, lo: int, hi: int) -> tuple[Ints, Ints]:
    """Each interval cut to [lo, hi); one that lies outside becomes empty (end == start)."""
    s = np.clip(start, lo, hi)
    return s, np.maximum(np.clip(end, lo, hi), s)


def complement(start: Ints, end: Ints, lo: int, hi: int) -> tuple[Ints, Ints]:
    """[lo, hi) without a disjoint interval list that lies in it."""
    s = np.append(lo, end)
    e = np.append(start, hi)
    keep = e > s
    return s[keep], e[keep]


def first_come(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Of overlapping intervals sorted by start, each keeps what no earlier one covers: disjoint, may be empty."""
    if not len(start):
        return start, end
    reach = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(end)[:-1])
    s = np.maximum(start, reach)
    return s, np.maximum(end, s)


def subtract(start: Ints, end: Ints, cut_start: Ints, cut_end: Ints) -> tuple[Ints, Ints, Ints]:
    """Disjoint intervals minus a disjoint list: ``(start, end, row)`` with the row that each piece is of."""
    row = np.arange(len(start))
    if not len(cut_start):
        keep = end > start
        return start[keep], end[keep], row[keep]
    outside_s, outside_e = np.append(-_FAR, cut_end), np.append(cut_start, _FAR)
    return intersect(start, end, outside_s, outside_e)[:3]


def intersect(a_start: Ints, a_end: Ints, b_start: Ints, b_end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Pieces common to both: ``(start, end, row of a, row of b)``, in order. ``b`` is disjoint and sorted."""
    first = np.searchsorted(b_end, a_start, side="right")
    last = np.searchsorted(b_start, a_end, side="left")
    n = np.maximum(last - first, 0)
    n[a_end <= a_start] = 0
    row_a = np.repeat(np.arange(len(a_start)), n)
    offset = np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n)
    row_b = np.repeat(first, n) + offset
    s = np.maximum(a_start[row_a], b_start[row_b])
    e = np.minimum(a_end[row_a], b_end[row_b])
    keep = e > s
    return s[keep], e[keep], row_a[keep], row_b[keep]


def split_at(start: Ints, end: Ints, edge: Ints, owner: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Intervals over a partition of the whole axis: piece i of it is ``[edge[i], edge[i+1])`` owned by ``owner[i]``,
    before the first edge nobody (-1). Returns ``(start, end, row, owner)``; the pieces of a row sum to it exactly."""
    edges = np.concatenate([[-_FAR], edge])
    owners = np.concatenate([[-1], owner])
    s, e, row, piece = intersect(start, end, edges, np.append(edges[1:], _FAR))
    return s, e, row, owners[piece]
