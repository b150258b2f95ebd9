"""How far a trace can be trusted, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.trace import named
from scopedown.trace.model import NONE, Codes, HostKind, Ints, OpKind, Trace
from scopedown.trace.names import ApiMeaning, api_meaning


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts, but for the ``_ns`` fields."""

    launches: int
    """Kernel and graph launch calls."""
    launches_without_op: int
    ops_without_launch: int
    """Device ops for which no API call of their process has their correlation."""
    graph_launches: int
    graph_records: int
    """Graphs traced as a whole, and launches whose nodes were traced one by one."""
    overlapping_on_stream: int
    """Ops that start before the op before them on the same stream ended."""
    processes_without_device_rows: int
    """Processes with API rows of which no op was recorded."""
    window_ns: tuple[int, int] | None
    """The captured window where the file states it, else from the first to the last row."""
    dropped: int
    overhead_ns: int
    """Time in the tool's own overhead records (union)."""

    @property
    def ops_are_missing(self) -> bool:
        """Busy time is a lower bound."""
        return bool(self.dropped or self.launches_without_op or self.graph_launches > self.graph_records)


def coverage(trace: Trace) -> Coverage:
    ops, host = trace.ops, trace.host
    api = host.kind == HostKind.API
    meaning = named.values(trace.names, host.name[api], api_meaning)[host.name]
    graph = api & (meaning == ApiMeaning.GRAPH_LAUNCH)
    launch = api & (meaning == ApiMeaning.LAUNCH) | graph
    op_keys = _keys(ops.process, ops.correlation)
    launch_keys = _keys(host.process[launch], host.correlation[launch])
    known = ops.correlation != NONE
    joined = known & np.isin(op_keys, _keys(host.process[api], host.correlation[api]))
    graph_keys = _keys(host.process[graph], host.correlation[graph])
    recorded = np.isin(graph_keys, op_keys[known])
    overhead = host.kind == HostKind.OVERHEAD
    return Coverage(
        launches=int(launch.sum()),
        launches_without_op=int((~np.isin(launch_keys, op_keys[known])).sum()),
        ops_without_launch=int((~joined).sum()),
        graph_launches=int(graph.sum()),
        graph_records=max(int((ops.kind == OpKind.GRAPH).sum()), int(recorded.sum())),
        overlapping_on_stream=_overlapping(trace),
        processes_without_device_rows=len(np.setdiff1d(host.process[api], ops.process)),
        window_ns=trace.meta.window or _window(trace),
        dropped=trace.meta.dropped,
        overhead_ns=union_ns(host.start[overhead], host.end[overhead]),
    )


def union_ns(start: Ints, end: Ints) -> int:
    """Time covered by at least one of the intervals."""
    starts, ends = merged(start, end)
    return int((ends - starts).sum())


def merged(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The union as disjoint intervals in order; intervals that touch become one, empty ones vanish."""
    real = end > start
    order = np.argsort(start[real], kind="stable")
    start, end = start[real][order], end[real][order]
    if not len(start):
        return start, end
    reached = np.maximum.accumulate(end)
    fresh = np.concatenate([[True], start[1:] > reached[:-1]])
    last = np.concatenate([np.flatnonzero(fresh)[1:] - 1, [len(start) - 1]])
    return start[fresh], reached[last]


def _keys(process: Codes, correlation: Ints) -> Ints:
    """One integer a (process, correlation): correlation ids restart in every process and stay below 2**40."""
    return (process.astype(np.int64) << 40) ^ correlation


def _overlapping(trace: Trace) -> int:
    ops = trace.ops
    order = np.lexsort((ops.start, ops.stream, ops.device, ops.process))
    same = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in (ops.process, ops.device, ops.stream):
        same &= column[order][1:] == column[order][:-1]
    return int((same & (ops.start[order][1:] < ops.end[order][:-1])).sum())


def _window(trace: Trace) -> tuple[int, int] | None:
    starts = [t.start for t in (trace.ops, trace.host) if len(t)]
    ends = [t.end for t in (trace.ops, trace.host) if len(t)]
    if not starts:
        return None
    return min(int(s.min()) for s in starts), max(int(e.max()) for e in ends)
