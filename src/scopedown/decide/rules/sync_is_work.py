from __future__ import annotations

from typing import ClassVar

import numpy as np

from scopedown.account import scenarios
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding, unchanged
from scopedown.decide.rules.waits import Waits, waits
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category
from scopedown.trace.model import Mask, MemKind
from scopedown.trace.names import ApiMeaning
from scopedown.units import show_ns, show_share

#: Share of the interval that makes a reader suspect the calls, and of the waits under which the device is busy.
SUSPECT = 0.25
BUSY = 0.9
#: Host time on the path, as a share of the waits, from which leaving them out would let it overlap.
OVERLAPS = 0.1


class SyncIsWork:
    """A wait that is only the device's own work: the call is where the host observes it.

    What it sees
    Calls of one thread that wait for the device (synchronisations, copies behind other work) and hold at least a
    quarter of the interval, with the device busy under at least nine tenths of that and little host time on the path
    that could overlap if they were gone.

    Why it matters
    A list of API calls by their sum puts this call first, and it is the most common misreading of a timeline: half of
    the time "is" cudaStreamSynchronize. Removing the call saves its return latency only.

    What it opens next
    Nothing by itself: what the device does under the wait decides (dominant_kernel, exposed_copy).

    What refutes it
    A run without the calls whose interval falls by more than their return latency and what the host then does ahead.

    What it must not be confused with
    A wait after which the device idles because the host decides first: see sync_pattern, where leaving the wait out
    lets host and device overlap. A blocking copy of pageable memory, whose wait is its own transfer (blocking_copy).

    References
    vllm-project/vllm#3384, #9788 and #43450, NVIDIA/TensorRT#1493: samplers and calls that were blamed for the work
    of the device; sgl-project/sglang-omni#564: sums of two parallel resources are not a gap.
    """

    id: ClassVar[str] = "sync_is_work"

    def find(self, s: Situation) -> list[Finding]:
        w = waits(s)
        t = s.account.timeline
        if w is None or t is None:
            return []
        threads = t.calls.thread[w.call]
        thread = int(np.bincount(threads, weights=w.end - w.start).argmax())
        w = w.take((threads == thread) & ~_own_transfer(s, w))
        total, busy = int((w.end - w.start).sum()), int(w.busy.sum())
        if total < max(s.material_ns, SUSPECT * s.total_ns) or busy < BUSY * total:
            return []
        path = s.account.path
        host = path.on_host & (path.start >= w.start[0])
        if int(path.ns[host].sum()) > OVERLAPS * total:
            return []
        return [self._finding(s, w, thread, busy)]

    def _finding(self, s: Situation, w: Waits, thread: int, busy: int) -> Finding:
        a = s.account
        t = a.timeline
        assert t is not None
        ns = w.end - w.start
        total, back = int(ns.sum()), int(w.back.sum())
        names = t.calls.name[w.call]
        api = t.trace.names[int(np.bincount(names, weights=ns).argmax())]
        # The interval ends with a wait: that one stays, or it would end before the work.
        mask = np.zeros(len(t.calls), bool)
        mask[w.call[w.end < w.end.max()]] = True

        def state(saved: int) -> Statement:
            kept = " but the last" if len(ns) > 1 else ""
            cost = max(saved, back)
            # A wait may also keep two streams apart; without it their work would overlap.
            apart = cost > OVERLAPS * total
            effect = (
                f"Leaving the calls{kept} out would let work of other streams overlap and save {show_ns(cost)} by "
                f"replay, if nothing depends on that order; the return latency of the calls is {show_ns(back)}."
                if apart
                else f"Removing the calls{kept} saves {show_ns(cost)} at most, their return latency and what the host "
                "could then do ahead; it does not save the wait."
            )
            return Statement(
                f"The host waits {places.share(s, total)}, for the device in {len(ns)} "
                f"call{'s' if len(ns) > 1 else ''}, mostly {api}, and the device works under "
                f"{show_share(busy, total)} of that: the wait is the device's own work. {effect}",
                Category.HOST_SYNC,
                api,
                float(busy),
                "ns",
                len(ns),
                f"{api} on {places.thread_name(s, thread)}",
                places.evidence(s),
                (places.gain(s, cost) if apart else unchanged(s, cost),),
                (f"a run without these waits that is shorter by much more than {show_ns(cost)}",),
            )

        return Finding(
            self.id,
            Category.HOST_SYNC,
            f"{api}: the device works under it",
            ns,
            min(back, total),
            None,
            places.steps(s, len(ns)),
            cut=lambda: scenarios.waits(a, mask),
            state=state,
        )


def _own_transfer(s: Situation, w: Waits) -> Mask:
    """Copies that wait for their own transfer rather than for work before them."""
    t = s.account.timeline
    assert t is not None
    c, ops = t.calls, t.trace.ops
    op = c.awaited[w.call]
    copy = c.meaning[w.call] == ApiMeaning.COPY
    own: Mask = 2 * (ops.end - ops.start)[op] > w.end - w.start
    if ops.src_kind is not None and ops.dst_kind is not None:
        own |= (ops.src_kind[op] == MemKind.PAGEABLE) | (ops.dst_kind[op] == MemKind.PAGEABLE)
    both: Mask = copy & own
    return both
