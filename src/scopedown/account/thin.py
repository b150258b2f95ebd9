"""Levels of detail: so many events as can be drawn, whatever there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.trace.model import Ints


@dataclass(frozen=True, slots=True)
class Thinned:
    """Pieces in order of start: events, or runs of short events that lie close together."""

    start: Ints
    end: Ints
    key: Ints
    """Of the event that holds most of the piece."""
    count: Ints
    busy: Ints
    """ns covered by events that no earlier event covers."""
    first: Ints
    """Row of the piece's first event."""
    below_ns: int | None
    """Events and pauses shorter than this may share a piece; None: every piece is one event."""


def thin(start: Ints, end: Ints, key: Ints, cap: int) -> Thinned:
    """At most ``cap`` pieces of events that are sorted by start and may overlap.

    Two neighbours share a piece where both are shorter than a width, the pause between them is too, and their starts
    lie in the same bin of that width. No event and no pause as long as the width disappears, and a piece never spans
    more than two widths; the width is the smallest of a doubling sequence that suffices.
    """
    n = len(start)
    if n <= cap:
        rows = np.arange(n)
        return Thinned(start, end, key, np.ones(n, np.int64), end - start, rows, None)
    reach = np.maximum.accumulate(end)
    before = np.append(start[0], reach[:-1])
    own = np.maximum(end - np.maximum(start, before), 0)
    pause = np.maximum(start - before, 0)
    width = max(1, int(reach[-1] - start[0]) // (64 * max(cap, 1)))
    while True:
        short = end - start < width
        starts = np.ones(n, bool)
        same = (start[1:] - start[0]) // width == (start[:-1] - start[0]) // width
        starts[1:] = ~(short[1:] & short[:-1] & same & (pause[1:] < width))
        if int(starts.sum()) <= cap:
            break
        width *= 2
    first = np.flatnonzero(starts)
    piece = np.cumsum(starts) - 1
    return Thinned(
        start[first],
        np.maximum.reduceat(end, first),
        _largest(piece, key, own, len(first)),
        np.diff(np.append(first, n)),
        np.add.reduceat(own, first),
        first,
        width,
    )


def _largest(piece: Ints, key: Ints, ns: Ints, n: int) -> Ints:
    """For each of ``n`` pieces the key with the largest sum; of equals the smallest key."""
    order = np.lexsort((key, piece))
    p, k = piece[order], key[order]
    at = np.flatnonzero(np.append(True, (p[1:] != p[:-1]) | (k[1:] != k[:-1])))
    sums = np.add.reduceat(ns[order], at)
    best = np.lexsort((-sums, p[at]))
    which = best[np.searchsorted(p[at][best], np.arange(n))]
    return k[at][which]


def shares(sizes: list[int], budget: int) -> list[int]:
    """How much of a budget each may have: the small ones all they need, the large ones equal parts of the rest."""
    left, out = budget, [0] * len(sizes)
    for waiting, i in enumerate(sorted(range(len(sizes)), key=lambda i: sizes[i])):
        out[i] = min(sizes[i], left // (len(sizes) - waiting))
        left -= out[i]
    return out
