"""Busy shares of what could be saturated: each device, its copies, each host thread that feeds it, the queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.account import intervals
from scopedown.account.account import Account
from scopedown.account.segments import merge_equal
from scopedown.read.base import UNKNOWN, RequestLog
from scopedown.terms import Category
from scopedown.trace.model import OpKind

#: From this share on a resource has nothing left to give.
SATURATED = 0.95
_WAITS = (Category.HOST_OS_WAIT, Category.HOST_UNTRACED)


@dataclass(frozen=True, slots=True)
class Busy:
    name: str
    capacity: str
    busy_ns: int
    total_ns: int

    @property
    def share(self) -> float:
        return self.busy_ns / self.total_ns if self.total_ns else 0.0

    @property
    def saturated(self) -> bool:
        return self.share >= SATURATED


def resources(account: Account, log: RequestLog | None) -> list[Busy]:
    """Largest share first. A thread's time without any event counts as idle: its share is a lower bound."""
    found = [*_of_trace(account), *_of_log(log)]
    return sorted(found, key=lambda r: (-r.share, r.name))


def _of_trace(account: Account) -> list[Busy]:
    t = account.timeline
    if t is None:
        return []
    found, total = [], account.total_ns
    ops = t.trace.ops
    for d in account.devices:
        found.append(Busy(f"device {d.device}", "1 device", d.busy_ns, int(d.segments.ns.sum())))
        copies = (ops.device == d.device) & (ops.kind == OpKind.COPY)
        if copies.any():
            s, e = intervals.clip(ops.start[copies], ops.end[copies], account.lo, account.hi)
            busy = intervals.total(*intervals.union(s, e))
            found.append(Busy(f"copies of device {d.device}", "its copy engines", busy, total))
    idle = [c.code for c in _WAITS]
    whole = np.array([account.lo]), np.array([account.hi])
    for thread in np.unique(t.calls.thread[np.isin(t.calls.process, t.processes)]).tolist():
        segs = merge_equal(t.host.segments(thread, *whole))
        works = segs.take(~np.isin(segs.category, idle))
        lo, hi = int(t.calls.thread_bound[thread]), int(t.calls.thread_bound[thread + 1])
        rows = lo + np.flatnonzero(t.calls.blocking[lo:hi])
        s, e, _ = intervals.subtract(works.start, works.end, t.calls.start[rows], t.calls.end[rows])
        name = t.trace.threads[thread].name or f"thread {t.trace.threads[thread].tid}"
        found.append(Busy(f"host thread {name}", "1 thread", int((e - s).sum()), total))
    return found


def _of_log(log: RequestLog | None) -> list[Busy]:
    if log is None:
        return []
    known = (log.queued != UNKNOWN) & (log.scheduled != UNKNOWN) & (log.end != UNKNOWN)
    if not known.any():
        return []
    order = np.argsort(log.queued[known], kind="stable")
    s, e = log.queued[known][order], log.scheduled[known][order]
    total = int(log.end[known].max() - log.queued[known].min())
    waiting = intervals.total(*intervals.union(s, np.maximum(e, s)))
    return [Busy("scheduler queue (some request waits)", "unbounded", waiting, total)]
