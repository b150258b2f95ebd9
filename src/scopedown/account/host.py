"""What each host thread was doing at any time, innermost first."""

from __future__ import annotations

import numpy as np

from scopedown.account import intervals
from scopedown.account.calls import Calls
from scopedown.account.nest import Flat, flatten
from scopedown.account.segments import Segments, concat, many
from scopedown.terms import Category
from scopedown.trace import named
from scopedown.trace.model import NONE, HostKind, Ints, Mask, Names, Trace
from scopedown.trace.names import ApiMeaning, Counterless, OverheadMeaning, overhead_meaning

#: A launch call longer than this, and than LONG_CALL_FACTOR times the median of its name, hides something.
LONG_CALL_NS = 100_000
LONG_CALL_FACTOR = 10
#: No launch call takes this long for itself, even where most calls of a short capture are first calls.
LONG_ALWAYS_NS = 1_000_000
#: Ends the label of such a call where no record inside it says what it did.
UNNAMED = ": long call, cause not recorded"

#: Creating a context takes tens to hundreds of milliseconds; the call that does it is among the first of a process.
FIRST_CALL = ": first call, creates the context"
FIRST_CALL_NS = 10_000_000
FIRST_CALLS = 64

_OF_MEANING = {
    ApiMeaning.SYNC: Category.HOST_SYNC,
    ApiMeaning.ALLOC: Category.HOST_ALLOC,
    ApiMeaning.COPY: Category.HOST_COPY,
    ApiMeaning.MODULE: Category.HOST_MODULE,
}
_OF_KIND = {
    HostKind.API: Category.HOST_API,
    HostKind.OP: Category.HOST_FRAMEWORK,
    HostKind.PYTHON: Category.HOST_PYTHON,
    HostKind.OS: Category.HOST_OS_WAIT,
    HostKind.ANNOTATION: Category.HOST_ANNOTATION,
    HostKind.OVERHEAD: Category.HOST_API,
}


class Host:
    """Lazily flattens threads; answers whose time an interval of a thread is."""

    def __init__(self, trace: Trace, calls: Calls, labels: Names) -> None:
        self.trace, self.calls = trace, calls
        host = trace.host
        owns = (host.thread >= 0) & (host.kind != HostKind.RANGE) & (host.kind != HostKind.MARK)
        rows = np.flatnonzero(owns)
        self._rows = rows[np.argsort(host.thread[rows], kind="stable")]
        self._bound = np.searchsorted(host.thread[self._rows], np.arange(len(trace.threads) + 1))
        self._flat: dict[int, tuple[Flat, Ints]] = {}
        self._off_core: dict[int, tuple[Ints, Ints]] | None = None
        self.clipped = 0
        self.untraced = labels.code("host code with no event")
        self.before_first = labels.code("thread has no event before this")
        self.not_running = labels.code("thread not running (off the core)")
        self.category, self.label = _classify(trace, calls, labels)
        self.tool = _tool_labels(trace, labels)

    def flat(self, thread: int) -> tuple[Flat, Ints]:
        """The flattened thread and the rows of ``Trace.host`` that its owners index."""
        found = self._flat.get(thread)
        if found is None:
            host, c = self.trace.host, self.calls
            rows = self._rows[self._bound[thread] : self._bound[thread + 1]]
            # An OS call inside an API call is how the call waits: the call names the time.
            os = host.kind[rows] == HostKind.OS
            if os.any():
                lo, hi = c.thread_bound[thread], c.thread_bound[thread + 1]
                at = np.searchsorted(c.start[lo:hi], host.start[rows], side="right") - 1
                inside = (
                    (at >= 0) & (host.start[rows] < c.end[lo:hi][np.maximum(at, 0)])
                    if hi > lo
                    else np.zeros(len(rows), bool)
                )
                rows = rows[~(os & inside)]
            found = self._flat[thread] = flatten(host.start[rows], host.end[rows]), rows
            self.clipped += found[0].clipped
        return found

    def first_event(self, thread: int) -> int | None:
        """Start of the thread's first event."""
        rows = self._rows[self._bound[thread] : self._bound[thread + 1]]
        return int(self.trace.host.start[rows].min()) if len(rows) else None

    def owners(self, thread: int, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Disjoint intervals of a thread, cut by innermost event: ``(start, end, row of the interval, event)``; the
        event is a row of ``Trace.host`` or NONE."""
        flat, rows = self.flat(thread)
        s, e, row, owner = intervals.split_at(start, end, flat.edge, flat.owner)
        return s, e, row, np.where(owner >= 0, rows[np.maximum(owner, 0)], NONE) if len(rows) else owner

    def segments(self, thread: int, start: Ints, end: Ints, op: Ints | int = NONE) -> Segments:
        """The same intervals as segments with category and label."""
        s, e, row, event = self.owners(thread, start, end)
        known = event >= 0
        category = np.where(known, self.category[event] if len(self.category) else 0, Category.HOST_UNTRACED.code)
        label = np.where(known, self.label[event] if len(self.label) else 0, self.untraced)
        first = self.first_event(thread)
        if first is not None:
            label = np.where(~known & (e <= first), self.before_first, label)
        ops = op[row] if not isinstance(op, int) else op
        return self._scheduled(thread, many(s, e, category, label, ops, thread))

    def _scheduled(self, thread: int, segs: Segments) -> Segments:
        """Host code whose thread was off the core is a wait of the operating system, whatever range it lies in."""
        off = self._off(thread)
        if off is None or not len(off[0]):
            return segs
        soft = np.isin(
            segs.category,
            [
                c.code
                for c in (
                    Category.HOST_UNTRACED,
                    Category.HOST_ANNOTATION,
                    Category.HOST_FRAMEWORK,
                    Category.HOST_PYTHON,
                )
            ],
        )
        inside = segs.take(soft)
        s, e, row, _ = intervals.intersect(inside.start, inside.end, *off)
        waits = many(s, e, Category.HOST_OS_WAIT.code, self.not_running, inside.op[row], inside.thread[row])
        s, e, row = intervals.subtract(inside.start, inside.end, *off)
        runs = many(s, e, inside.category[row], inside.label[row], inside.op[row], inside.thread[row])
        return concat([segs.take(~soft), waits, runs])

    def _off(self, thread: int) -> tuple[Ints, Ints] | None:
        sched = self.trace.scheduling
        if sched is None:
            return None
        if self._off_core is None:
            self._off_core = {}
        if thread not in self._off_core:
            rows = np.flatnonzero(sched.thread == thread)
            t, runs = sched.time[rows], sched.runs[rows]
            out = np.flatnonzero(~runs[:-1] & runs[1:]) if len(rows) > 1 else np.empty(0, np.int64)
            self._off_core[thread] = intervals.union(t[out], t[out + 1])
        return self._off_core[thread]


def _classify(trace: Trace, calls: Calls, labels: Names) -> tuple[Ints, Ints]:
    """Category code and label of every host event."""
    host = trace.host
    of_kind = np.full(len(HostKind), Category.HOST_UNTRACED.code, np.int64)
    for kind, cat in _OF_KIND.items():
        of_kind[kind] = cat.code
    codes = of_kind[host.kind]
    api = np.flatnonzero(calls.of_event >= 0)
    of_meaning = np.full(len(ApiMeaning) + 1, Category.HOST_API.code, np.int64)
    for meaning, cat in _OF_MEANING.items():
        of_meaning[meaning] = cat.code
    # A driver call inside a runtime call takes the outer one's meaning: cudaMemcpy is a copy all through.
    codes[api] = of_meaning[calls.meaning[calls.of_event[api]]]
    label = _labels(trace, labels)
    label[api] = label[calls.event[calls.of_event[api]]]
    first = _first_calls(trace, calls)
    for i in first:
        rows = api[calls.of_event[api] == i]
        codes[rows] = Category.HOST_MODULE.code
        label[rows] = labels.code(f"{trace.names[int(calls.name[i])]}{FIRST_CALL}")
    long = long_calls(calls)
    if long.any():
        hidden = api[long[calls.of_event[api]]]
        hidden = hidden[codes[hidden] == Category.HOST_API.code]
        for name in np.unique(calls.name[calls.of_event[hidden]]).tolist():
            rows = hidden[calls.name[calls.of_event[hidden]] == name]
            label[rows] = labels.code(trace.names[name] + UNNAMED)
    overhead = np.flatnonzero(host.kind == HostKind.OVERHEAD)
    modules = named.where(trace.names, host.name[overhead], lambda n: overhead_meaning(n) is OverheadMeaning.MODULE)
    codes[overhead[modules]] = Category.HOST_MODULE.code
    return codes, label


def _first_calls(trace: Trace, calls: Calls) -> list[int]:
    """The call of each process in which the driver sets itself up: the first long one, made before any op runs. The
    driver creates its context inside whichever call comes first, be it an allocation or a release of nothing."""
    found = []
    begun = np.full(len(trace.processes), np.iinfo(np.int64).max)
    np.minimum.at(begun, trace.ops.process, trace.ops.start)
    took = calls.end - calls.start
    order = np.argsort(calls.start, kind="stable")
    for p in np.unique(calls.process).tolist():
        rows = order[(calls.process[order] == p) & (calls.start[order] < begun[p])]
        # Cheap calls (versions, devices, attributes) may come before it.
        rows = rows[:FIRST_CALLS]
        long = rows[took[rows] >= FIRST_CALL_NS]
        if len(long):
            found.append(int(long[0]))
    return found


def _tool_labels(trace: Trace, labels: Names) -> Ints:
    """Labels of the profiler's own overhead: time that the program does not have without it."""
    used = np.unique(trace.host.name[trace.host.kind == HostKind.OVERHEAD])
    tool = [n for n in used.tolist() if overhead_meaning(trace.names[n]) is OverheadMeaning.TOOL]
    return np.array(sorted({labels.code(trace.names[n]) for n in tool}), np.int64)


def _labels(trace: Trace, labels: Names) -> Ints:
    """Label of each event: its name without counters."""
    host = trace.host
    code = np.full(len(trace.names) + 1, NONE, np.int64)
    soft = np.zeros(len(trace.names) + 1, bool)
    soft[
        host.name[(host.kind == HostKind.ANNOTATION) | (host.kind == HostKind.OP) | (host.kind == HostKind.PYTHON)]
    ] = True
    plain = Counterless()
    for n in named.used(trace.names, host.name):
        text = trace.names[n]
        code[n] = labels.code(plain(text) if soft[n] else text)
    return code[host.name]


def long_calls(calls: Calls) -> Mask:
    """Launch calls that are too long to be launches."""
    launch = (calls.meaning == ApiMeaning.LAUNCH) | (calls.meaning == ApiMeaning.GRAPH_LAUNCH)
    long: Mask = launch & (calls.end - calls.start > LONG_CALL_NS)
    for name in np.unique(calls.name[long]).tolist():
        same = launch & (calls.name == name)
        median = np.median((calls.end - calls.start)[same])
        # With few calls the median is itself a first call: the absolute bound decides alone.
        if same.sum() >= 8:
            bound = min(LONG_CALL_FACTOR * median, LONG_ALWAYS_NS)
            long &= ~same | (calls.end - calls.start > bound)
    return long
