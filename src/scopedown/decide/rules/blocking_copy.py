from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from scopedown.account import intervals, scenarios
from scopedown.decide.rules import copies, places
from scopedown.decide.rules.base import Finding
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category, Scope
from scopedown.trace.model import Ints
from scopedown.units import show_ns


class BlockingCopy:
    """Copies that hold the host until they are done: pageable memory, or a synchronous call.

    What it sees
    Copies on the critical path whose call returned only after the copy had ended and that are synchronous by name or
    use pageable memory: how many, how many bytes, the host's time in the calls against the time of the copy engine.

    Why it matters
    An "async" copy from pageable memory is staged by the driver and blocks: nothing is launched meanwhile, and the
    link runs at a fraction of its rate.

    What it opens next
    Nothing narrower: the timeline has explained it. Pinned buffers, or a copy that is asked for ahead, are the change.

    What refutes it
    The same copies from pinned memory, asynchronous, and an interval that stays.

    What it must not be confused with
    A blocking copy that waits for kernels queued before it: that part of the call is the device's work
    (sync_is_work). A long pinned copy that only the device waits for (exposed_copy).

    References
    kekzl/imp#1409 (4.13 s of host time in calls, 0.80 s of transfer), microsoft/onnxruntime#20947; CUDA C++
    Programming Guide, "API synchronization behavior".
    """

    id: ClassVar[str] = "blocking_copy"

    def find(self, s: Situation) -> list[Finding]:
        return list(self._find(s))

    def _find(self, s: Situation) -> Iterator[Finding]:
        c = copies.on_path(s)
        if c is None:
            return
        for code in np.unique(c.label[c.blocking]).tolist():
            rows = np.flatnonzero(c.blocking & (c.label == code))
            ns = c.path_ns[rows] + _host_part(s, c.op[rows])
            if places.speaks(s, int(ns.sum())):
                yield self._finding(s, c, code, rows, ns)

    def _finding(self, s: Situation, c: copies.Copies, code: int, rows: Ints, ns: Ints) -> Finding:
        a = s.account
        t = a.timeline
        assert t is not None
        op, name = c.op[rows], places.label(s, code)
        call = t.calls.of_op[op]
        total, engine, on_engine = int(ns.sum()), int(c.ns[rows].sum()), int(c.path_ns[rows].sum())
        in_calls = int((t.calls.end - t.calls.start)[call].sum())
        api = t.trace.names[int(np.bincount(t.calls.name[call]).argmax())]
        on = places.thread_name(s, int(np.bincount(t.calls.thread[call]).argmax()))
        amount = copies.moved(s, op)
        groups = places.joined(s, Category.DEVICE_COPY, code)
        mask = np.zeros(len(t.trace.ops), bool)
        mask[op] = True

        def state(saved: int) -> Statement:
            return Statement(
                f"{name} holds {places.share(s, total)}: {places.lasting(ns)}, in {api} on {on}, "
                f"which returns only when the copy is done{': ' + amount if amount else ''}. The calls take "
                f"{show_ns(in_calls)}, the copy engine {show_ns(engine)}; on the path {show_ns(on_engine)} is the copy "
                f"and {show_ns(total - on_engine)} the host's part. Without the transfers the replay saves "
                f"{show_ns(saved)}.",
                Category.DEVICE_COPY,
                name,
                float(total),
                "ns",
                len(rows),
                f"{api} on {on}",
                places.evidence(s),
                (places.gain(s, saved),),
                ("the same copies from pinned memory and asynchronous, and an interval that stays",),
            )

        return Finding(
            self.id,
            Category.DEVICE_COPY,
            f"{name}, blocking",
            ns,
            total,
            Scope.TIMELINE,
            places.steps(s, len(rows)),
            group=groups[0] if groups else None,
            cut=lambda: scenarios.kernels(a, mask),
            state=state,
        )


def _host_part(s: Situation, op: Ints) -> Ints:
    """For each copy the path's host time inside its call."""
    t = s.account.timeline
    assert t is not None
    c, out = t.calls, np.zeros(len(op), np.int64)
    call = c.of_op[op]
    path = s.account.path
    for thread in np.unique(c.thread[call]).tolist():
        mine = np.flatnonzero(c.thread[call] == thread)
        mine = mine[np.argsort(c.start[call[mine]], kind="stable")]
        host = path.take((path.thread == thread) & (path.category != Category.DEVICE_COPY.code))
        x, y, _, row = intervals.intersect(host.start, host.end, c.start[call[mine]], c.end[call[mine]])
        np.add.at(out, mine[row], y - x)
    return out
