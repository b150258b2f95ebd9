"""Hand-over between threads: a thread that waits in the operating system until another one signals."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from scopedown.trace import named
from scopedown.trace.model import HostKind, Trace

_WAITS = re.compile(r"cond_(timed|clock)?wait|sem_(timed|clock)?wait|futex_wait|eventfd_read")
_SIGNALS = re.compile(r"cond_(signal|broadcast)|sem_post|futex_wake|eventfd_write")

#: A wake-up takes some microseconds; what returns later was woken by something else.
WAKE_UP_NS = 100_000
#: A thread begins this soon after the call that creates it.
CREATED_NS = 1_000_000
#: A wait this short found its signal there.
AT_ONCE_NS = 20_000


@dataclass(frozen=True, slots=True)
class HandOver:
    thread: int
    """The thread that waits, in [start, end)."""
    start: int
    end: int
    giver: int
    """The thread that signals."""
    signal: int
    """When its signal call returned."""

    @property
    def bound(self) -> bool:
        """The thread had to wait; else the signal was there before it."""
        return self.signal > self.start


def find_parents(trace: Trace) -> dict[int, tuple[int, int, int]]:
    """For a thread that another one created inside the capture: ``(its first event's start, the creating thread, the
    start of the creating call)``."""
    host = trace.host
    rows = np.flatnonzero((host.kind == HostKind.OS) & (host.thread >= 0))
    rows = rows[named.where(trace.names, host.name[rows], lambda n: n == "pthread_create")]
    found: dict[int, tuple[int, int, int]] = {}
    if not len(rows):
        return found
    owned = np.flatnonzero(host.thread >= 0)
    first = np.full(len(trace.threads), np.iinfo(np.int64).max)
    np.minimum.at(first, host.thread[owned], host.start[owned])
    for thread in np.flatnonzero(first < np.iinfo(np.int64).max).tolist():
        begun = int(first[thread])
        mine = rows[(host.process[rows] == trace.threads[thread].process) & (host.thread[rows] != thread)]
        mine = mine[(host.start[mine] < begun) & (begun - host.end[mine] <= CREATED_NS)]
        if len(mine):
            found[thread] = begun, int(host.thread[mine[-1]]), int(host.start[mine[-1]])
    return found


def find_handovers(trace: Trace) -> list[HandOver]:
    """Waits that ended soon after a signal of another thread of the process (the latest is taken), and waits that
    returned at once, with the first signal before them that nothing else took."""
    host = trace.host
    os = (host.kind == HostKind.OS) & (host.thread >= 0)
    waits, signals = os.copy(), os.copy()
    waits[os] = named.where(trace.names, host.name[os], _WAITS.search)
    signals[os] = named.where(trace.names, host.name[os], _SIGNALS.search)
    found: list[HandOver] = []
    for p in np.unique(host.process[waits]).tolist():
        given = np.flatnonzero(signals & (host.process == p))
        given = given[np.argsort(host.end[given], kind="stable")]
        ends = host.end[given]
        taken: set[int] = set()
        early: list[tuple[int, int]] = []
        for w in np.flatnonzero(waits & (host.process == p)).tolist():
            start, end, thread = int(host.start[w]), int(host.end[w]), int(host.thread[w])
            i = int(np.searchsorted(ends, end, side="right")) - 1
            while i >= 0 and host.thread[given[i]] == thread:
                i -= 1
            if i >= 0 and start < ends[i] and end - ends[i] <= WAKE_UP_NS:
                found.append(HandOver(thread, start, end, int(host.thread[given[i]]), int(ends[i])))
                taken.add(i)
            elif i >= 0 and end - start <= AT_ONCE_NS:
                early.append((w, i))
        for w, last in early:
            thread = int(host.thread[w])
            i = next((j for j in range(last + 1) if j not in taken and host.thread[given[j]] != thread), -1)
            if i >= 0:
                taken.add(i)
                start, end = int(host.start[w]), int(host.end[w])
                found.append(HandOver(thread, start, end, int(host.thread[given[i]]), int(ends[i])))
    return found
