"""Who is innermost on a thread at any time: nested host events flattened to a partition of the axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.trace.model import NONE, Ints


@dataclass(frozen=True, slots=True)
class Flat:
    """Piece i is ``[edge[i], edge[i+1])``; ``owner[i]`` is the innermost event's row or NONE."""

    edge: Ints
    owner: Ints
    parent: Ints
    """Of each event: the row of the event that encloses it directly, or NONE."""
    clipped: int
    """Events that reached beyond the one that encloses them and were cut to it."""


def flatten(start: Ints, end: Ints) -> Flat:
    """Events of one thread, rows sorted by (start, -end). Events of no length own no time."""
    alive = np.flatnonzero(end > start)
    s, e = start[alive], end[alive]
    edge, owner, parent = _flatten_nested(s, e)
    clipped = 0
    inner = parent >= 0
    if (e[inner] > e[parent[inner]]).any():
        e, clipped = _clip_to_parent(s, e)
        keep = e > s
        alive, s, e = alive[keep], s[keep], e[keep]
        edge, owner, parent = _flatten_nested(s, e)
    whole = np.full(len(start), NONE, np.int64)
    whole[alive] = np.where(parent >= 0, alive[parent], NONE)
    rows = np.where(owner >= 0, alive[owner], NONE) if len(alive) else owner
    return Flat(edge, rows, whole, clipped)


def _flatten_nested(s: Ints, e: Ints) -> tuple[Ints, Ints, Ints]:
    """The start edges are in order already and the end edges are one argsort; a start edge's place among all edges is
    its row plus the ends at or before it, and that number also gives its depth. Assumes proper nesting."""
    n = len(s)
    if n == 0:
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    by_end = n - 1 - np.argsort(e[::-1], kind="stable")
    ends = e[by_end]
    closed = np.searchsorted(ends, s, side="right")
    depth = np.maximum(np.arange(n) - closed, 0)
    parent = np.full(n, NONE, np.int64)
    by_depth = np.argsort(depth, kind="stable")
    bound = np.searchsorted(depth[by_depth], np.arange(int(depth.max()) + 2))
    for d in range(1, int(depth.max()) + 1):
        rows, above = by_depth[bound[d] : bound[d + 1]], by_depth[bound[d - 1] : bound[d]]
        parent[rows] = above[np.searchsorted(above, rows) - 1]
    edge = np.empty(2 * n, np.int64)
    owner = np.empty(2 * n, np.int64)
    place = np.arange(n) + closed
    is_end = np.ones(2 * n, bool)
    is_end[place] = False
    edge[place], owner[place] = s, np.arange(n)
    edge[is_end], owner[is_end] = ends, parent[by_end]
    last = np.append(edge[1:] != edge[:-1], True)
    return edge[last], owner[last], parent


def _clip_to_parent(s: Ints, e: Ints) -> tuple[Ints, int]:
    """Ends cut to the enclosing event's end. Sequential; only threads whose events cross pay for it."""
    out = e.tolist()
    open_ends: list[int] = []
    clipped = 0
    for i, start in enumerate(s.tolist()):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and out[i] > open_ends[-1]:
            out[i] = open_ends[-1]
            clipped += 1
        open_ends.append(out[i])
    return np.array(out, np.int64), clipped
