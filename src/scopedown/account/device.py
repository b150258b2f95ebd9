"""The device account: what each device did, and what it waited for, over an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.account import intervals
from scopedown.account.calls import Calls, Streams
from scopedown.account.host import Host, long_calls
from scopedown.account.segments import Segments, check_partition, concat, many
from scopedown.terms import Category
from scopedown.trace.model import NONE, Ints, Names, OpKind, Trace
from scopedown.trace.names import ApiMeaning, kernel_family

#: What launch latency can be where the case has no undisturbed launches of its own to tell.
LAUNCH_DEFAULT_NS = 100_000
LAUNCH_AT_LEAST_NS = 20_000
LAUNCH_AT_MOST_NS = 1_000_000
LAUNCH_FACTOR = 5

_OF_KIND = {
    OpKind.KERNEL: Category.DEVICE_KERNEL,
    OpKind.COLLECTIVE: Category.DEVICE_COLLECTIVE,
    OpKind.COPY: Category.DEVICE_COPY,
    OpKind.MEMSET: Category.DEVICE_MEMSET,
    OpKind.GRAPH: Category.DEVICE_OPAQUE_GRAPH,
}


@dataclass(frozen=True, slots=True)
class OpLabels:
    """Category code and label of every device op: kernels by family, copies and others by name."""

    category: Ints
    label: Ints


@dataclass(frozen=True, slots=True)
class Gaps:
    """Idle intervals of one device inside the account's interval."""

    start: Ints
    end: Ints
    before: Ints
    """The op that ended last before the gap, or NONE."""
    release: Ints
    """The op that ends the gap, or NONE."""


@dataclass(frozen=True, slots=True)
class DeviceAccount:
    device: int
    segments: Segments
    gaps: Gaps
    busy_ns: int


def op_labels(trace: Trace, labels: Names) -> OpLabels:
    ops = trace.ops
    of_kind = np.array([_OF_KIND[k].code for k in OpKind], np.int64)
    code = np.full(len(trace.names) + 1, NONE, np.int64)
    kernel = np.isin(ops.kind, (OpKind.KERNEL, OpKind.COLLECTIVE))
    for n in np.unique(ops.name[kernel]).tolist():
        code[n] = labels.code(kernel_family(trace.names[n]))
    label = code[ops.name]
    for n in np.unique(ops.name[~kernel]).tolist():
        label[~kernel & (ops.name == n)] = labels.code(trace.names[n])
    return OpLabels(of_kind[ops.kind], label)


def plausible_launch(trace: Trace, calls: Calls, st: Streams) -> int:
    """How long after its call an op may start and still be called launched: from this trace's own launches onto an
    empty stream, whose waits are below a millisecond."""
    ops = trace.ops
    rows = np.flatnonzero(calls.of_op >= 0)
    if not len(rows):
        return LAUNCH_DEFAULT_NS
    before = st.previous[rows]
    returned = calls.end[calls.of_op[rows]]
    idle = (before < 0) | (ops.end[np.maximum(before, 0)] < calls.start[calls.of_op[rows]])
    wait = (ops.start[rows] - returned)[idle]
    wait = np.maximum(wait[wait < LAUNCH_AT_MOST_NS], 0)
    if len(wait) < 5:
        return LAUNCH_DEFAULT_NS
    return int(np.clip(LAUNCH_FACTOR * np.median(wait), LAUNCH_AT_LEAST_NS, LAUNCH_AT_MOST_NS))


class Devices:
    """Accounts of the devices of one trace."""

    def __init__(
        self, trace: Trace, calls: Calls, st: Streams, host: Host, waited: dict[int, int], labels: Names
    ) -> None:
        """``waited``: for an op that was told to wait for an event, the op that the event stands for."""
        self.trace, self.calls, self.host = trace, calls, host
        self.ops = op_labels(trace, labels)
        self.plausible_ns = plausible_launch(trace, calls, st)
        self._waited = np.full(len(trace.ops), NONE, np.int64)
        self._waited[list(waited)] = list(waited.values())
        self._launch = labels.code("launch latency")
        self._late_start = labels.code("launched, not started: nothing that it waits for was recorded")
        self._no_record = labels.code("op without a launch record")
        self._accounts: dict[tuple[int, int, int], DeviceAccount] = {}
        self._no_release = labels.code("nothing starts on the device before the interval ends")
        self._long = labels.code("inside a launch call: cause not recorded")

    @property
    def ids(self) -> list[int]:
        return [int(d) for d in np.unique(self.trace.ops.device)]

    def account(self, device: int, lo: int, hi: int) -> DeviceAccount:
        """Kept: the ledger, the path and the rules ask for the same intervals."""
        key = device, lo, hi
        if key not in self._accounts:
            self._accounts[key] = self._account(device, lo, hi)
        return self._accounts[key]

    def _account(self, device: int, lo: int, hi: int) -> DeviceAccount:
        rows = np.flatnonzero(self.trace.ops.device == device)
        busy, union_s, union_e = self._busy(rows, lo, hi)
        gap_s, gap_e = intervals.complement(union_s, union_e, lo, hi)
        gaps = self._gaps(rows, gap_s, gap_e)
        segs = concat([busy, self.split_wait(gaps.start, gaps.end, gaps.release)])
        check_partition(segs, lo, hi)
        return DeviceAccount(device, segs, gaps, intervals.total(union_s, union_e))

    def _busy(self, rows: Ints, lo: int, hi: int) -> tuple[Segments, Ints, Ints]:
        ops = self.trace.ops
        inside = rows[(ops.end[rows] > lo) & (ops.start[rows] < hi)]
        union_s, union_e = intervals.union(*intervals.clip(ops.start[inside], ops.end[inside], lo, hi))
        parts: list[Segments] = []
        used_s = used_e = np.empty(0, np.int64)
        for kind in OpKind:
            mine = inside[ops.kind[inside] == kind]
            if not len(mine):
                continue
            s, e = intervals.clip(ops.start[mine], ops.end[mine], lo, hi)
            own_s, own_e = intervals.first_come(s, e)
            cut_s, cut_e, row = intervals.subtract(own_s, own_e, used_s, used_e)
            op = mine[row]
            parts.append(many(cut_s, cut_e, self.ops.category[op], self.ops.label[op], op))
            both_s, both_e = np.append(used_s, s), np.append(used_e, e)
            order = np.argsort(both_s, kind="stable")
            used_s, used_e = intervals.union(both_s[order], both_e[order])
        return concat(parts), union_s, union_e

    def _gaps(self, rows: Ints, gap_s: Ints, gap_e: Ints) -> Gaps:
        ops = self.trace.ops
        if not len(rows):
            none = np.full(len(gap_s), NONE, np.int64)
            return Gaps(gap_s, gap_e, none, none)
        # An op released by the end of the interval may start after it: it still tells whom the device waited for.
        nxt = np.searchsorted(ops.start[rows], gap_e, side="left")
        release = np.where(nxt < len(rows), rows[np.minimum(nxt, len(rows) - 1)], NONE)
        by_end = rows[np.argsort(ops.end[rows], kind="stable")]
        prev = np.searchsorted(ops.end[by_end], gap_s, side="right") - 1
        before = np.where(prev >= 0, by_end[np.maximum(prev, 0)], NONE)
        return Gaps(gap_s, gap_e, before, release)

    def split_wait(self, start: Ints, end: Ints, op: Ints) -> Segments:
        """Intervals in which the device waits for ``op`` to start, split exactly: host late, inside the launch call,
        launch latency, and what none of them explains."""
        c = self.calls
        call = np.where(op >= 0, c.of_op[op] if len(c.of_op) else NONE, NONE)
        known = call >= 0
        no_op = op < 0
        unknown = np.flatnonzero(~known)
        parts = [
            many(
                start[unknown],
                end[unknown],
                Category.NO_LAUNCH_RECORD.code,
                np.where(no_op[unknown], self._no_release, self._no_record),
                op[unknown],
            )
        ]
        rows = np.flatnonzero(known)
        if len(rows):
            a, b, o, k = start[rows], end[rows], op[rows], call[rows]
            called = np.clip(c.start[k], a, b)
            returned = np.clip(c.end[k], called, b)
            parts.append(self._host_late(a, called, o, k))
            parts.append(self._in_call(called, returned, o, k))
            free = self._depends(parts, returned, b, o)
            likely = np.minimum(b, free + self.plausible_ns)
            parts.append(many(free, likely, Category.LAUNCH.code, self._launch, o))
            parts.append(many(likely, b, Category.UNACCOUNTED.code, self._late_start, o))
        return concat(parts)

    def _depends(self, parts: list[Segments], start: Ints, end: Ints, op: Ints) -> Ints:
        """The part of each interval in which the op that ``op`` was told to wait for had not ended; returns when that
        is over. The awaited op is of another device: else this one would not be idle."""
        other = self._waited[op]
        mine = np.flatnonzero(other >= 0)
        free = start.copy()
        free[mine] = np.clip(self.trace.ops.end[other[mine]], start[mine], end[mine])
        label = self.ops.label[other[mine]]
        parts.append(many(start[mine], free[mine], Category.DEPENDENCY.code, label, op[mine]))
        return free

    def _host_late(self, start: Ints, end: Ints, op: Ints, call: Ints) -> Segments:
        parts = []
        thread = self.calls.thread[call]
        for t in np.unique(thread).tolist():
            mine = thread == t
            parts.append(self.host.segments(t, start[mine], end[mine], op[mine]))
        return concat(parts)

    def _in_call(self, start: Ints, end: Ints, op: Ints, call: Ints) -> Segments:
        """An ordinary launch call is launch; any other call is what it is (a blocking copy, an allocation); a long one
        is what is recorded inside it, else said to be unknown."""
        segs = self._host_late(start, end, op, call)
        if not len(segs):
            return segs
        launches = np.isin(
            self.calls.meaning, (ApiMeaning.LAUNCH, ApiMeaning.GRAPH_LAUNCH, ApiMeaning.MEMSET, ApiMeaning.COPY)
        )
        ordinary = launches & ~long_calls(self.calls)
        mine = self.calls.of_op[segs.op]
        quick_copy = (segs.category == Category.HOST_COPY.code) & (segs.ns <= LAUNCH_AT_LEAST_NS)
        plain = ordinary[mine] & ((segs.category == Category.HOST_API.code) | quick_copy)
        return many(
            segs.start,
            segs.end,
            np.where(plain, Category.LAUNCH.code, segs.category),
            segs.label,
            segs.op,
            segs.thread,
        )
