"""Copies on the path: which of them block the host, what they move, and what runs beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.account import intervals
from scopedown.account.segments import Segments
from scopedown.decide.situation import Situation
from scopedown.terms import Category
from scopedown.trace.model import Ints, Mask, MemKind, OpKind
from scopedown.units import show_bytes


@dataclass(frozen=True, slots=True)
class Copies:
    """Copy ops with time on the path, and their segments there."""

    op: Ints
    label: Ints
    ns: Ints
    """Length of the op."""
    path_ns: Ints
    """The part of it on the path."""
    blocking: Mask
    """Where the call returns only when the copy has ended, by its name or for pageable memory."""
    segments: Segments


def on_path(s: Situation) -> Copies | None:
    t = s.account.timeline
    if t is None:
        return None
    path = s.account.path
    segs = path.take((path.category == Category.DEVICE_COPY.code) & (path.op >= 0))
    if not len(segs):
        return None
    op, where = np.unique(segs.op, return_inverse=True)
    ns = np.zeros(len(op), np.int64)
    np.add.at(ns, where, segs.ns)
    ops, c = t.trace.ops, t.calls
    call = c.of_op[op]
    blocking = (call >= 0) & (c.awaited[np.maximum(call, 0)] == op) if len(c) else np.zeros(len(op), bool)
    pageable = np.zeros(len(op), bool)
    if ops.src_kind is not None and ops.dst_kind is not None:
        pageable = (ops.src_kind[op] == MemKind.PAGEABLE) | (ops.dst_kind[op] == MemKind.PAGEABLE)
    asynchronous = np.array(["Async" in n for n in t.trace.names] or [False])
    named = asynchronous[c.name[np.maximum(call, 0)]] if len(c) else np.zeros(len(op), bool)
    blocks = blocking & (pageable | ~named)
    return Copies(op.astype(np.int64), t.devices.ops.label[op], (ops.end - ops.start)[op], ns, blocks, segs)


def moved(s: Situation, op: Ints) -> str:
    """Bytes of copies with the rate reached: ``502 MB at 10.0 GB/s``; "" where not recorded."""
    t = s.account.timeline
    if t is None or t.trace.ops.bytes is None or not len(op):
        return ""
    ops = t.trace.ops
    assert ops.bytes is not None
    known = op[ops.bytes[op] > 0]
    total, ns = int(ops.bytes[known].sum()), int((ops.end - ops.start)[known].sum())
    return f"{show_bytes(total)} at {total / ns:.1f} GB/s" if total and ns else ""


def beside_ns(s: Situation, segs: Segments) -> int:
    """Of path segments that are copies: the part in which a kernel runs on the same device."""
    t = s.account.timeline
    if t is None or not len(segs):
        return 0
    ops = t.trace.ops
    lo, hi = int(segs.start[0]), int(segs.end[-1])
    total = 0
    for d in np.unique(ops.device[segs.op]).tolist():
        mine = segs.take(ops.device[segs.op] == d)
        on = np.flatnonzero((ops.device == d) & (ops.kind <= OpKind.COLLECTIVE) & (ops.end > lo) & (ops.start < hi))
        x, y, _, _ = intervals.intersect(mine.start, mine.end, *intervals.union(ops.start[on], ops.end[on]))
        total += int((y - x).sum())
    return total
