"""Traces that no program made: whatever columns can hold, for properties that must hold of any file.

Times are drawn on a coarse grid, so that equal starts, touching ends and crossing events are common.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from scopedown.trace.model import (
    NONE,
    Columns,
    CopyKind,
    DeviceOps,
    EventRecords,
    HostEvents,
    HostKind,
    MemKind,
    Meta,
    Names,
    OpKind,
    Process,
    Scheduling,
    SyncRecords,
    Thread,
    Trace,
)

#: ``SCOPEDOWN_EXAMPLES=20 pytest tests/account`` looks twenty times as long.
FACTOR = int(os.environ.get("SCOPEDOWN_EXAMPLES", "1"))


def examples(n: int) -> settings:
    return settings(max_examples=n * FACTOR, deadline=None)


API = (
    "cudaLaunchKernel",
    "cudaLaunchKernel",
    "cuLaunchKernel",
    "cudaGraphLaunch",
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "cudaMalloc",
    "cudaFree",
    "cudaMemcpyAsync",
    "cudaMemcpy",
    "cudaMemsetAsync",
    "cudaEventRecord",
    "cudaStreamWaitEvent",
    "cuModuleLoadData",
    "cudaGetDevice",
)
OF_KIND = {
    HostKind.API: API,
    HostKind.OP: ("aten::mm", "aten::add"),
    HostKind.PYTHON: ("model.py(12): forward",),
    HostKind.OS: ("pthread_cond_wait", "pthread_cond_signal", "poll", "sem_timedwait", "sem_post"),
    HostKind.ANNOTATION: ("step 1", "step 2", "prefill r-17", "layer"),
    HostKind.RANGE: ("request r-17", "batch 3"),
    HostKind.MARK: ("token",),
    HostKind.OVERHEAD: ("command buffer full", "module loading", "CUPTI buffer flush"),
}
KERNELS = ("gemm_kernel<float>(int)", "small_kernel(float*)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", "")
COPIES = ("HtoD", "DtoH", "DtoD")

#: (base, unit) of the grid: ordinary times, times before the trace's zero, single nanoseconds, and far ones.
GRIDS = ((0, 1_000), (-20_000, 7_000), (5, 1), (0, 300_000), (2**60, 2_000), (-(2**60), 40_000))


@dataclass(frozen=True)
class Shape:
    processes: int = 2
    threads: int = 3
    devices: int = 2
    streams: int = 2
    ops: int = 10
    events: int = 16
    span: int = 60
    """Of starts, in units of the grid."""


@st.composite
def traces(draw: st.DrawFn, shape: Shape = Shape()) -> Trace:
    """Any trace of at most that size; kinds of records may be absent, empty, or contradict each other."""
    base, unit = draw(st.sampled_from(GRIDS))
    names = Names()
    n_processes = draw(st.integers(1, shape.processes))
    threads = tuple(
        Thread(p, 100 + i, f"thread {i}")
        for i, p in enumerate(draw(st.lists(st.integers(0, n_processes - 1), min_size=1, max_size=shape.threads)))
    )
    start = st.integers(0, shape.span)
    length = st.sampled_from((0, 1, 1, 2, 3, 5, 8, 20, 60))
    correlation = st.sampled_from((NONE, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 2**62))
    ops = draw(
        st.lists(
            st.tuples(
                start,
                length,
                st.sampled_from((0, 0, 0, 1, 2, 3, 4)),
                st.integers(0, shape.devices - 1),
                st.integers(7, 6 + shape.streams),
                st.integers(0, n_processes - 1),
                correlation,
                st.integers(0, 2),
            ),
            max_size=shape.ops,
        )
    )
    host = draw(
        st.lists(
            st.tuples(
                start,
                length,
                st.sampled_from((0, 0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 7)),
                st.integers(0, 15),
                st.integers(NONE, len(threads) - 1),
                correlation,
            ),
            max_size=shape.events,
        )
    )
    return Trace(
        ops=_ops(names, [(base + unit * s, base + unit * (s + n), *rest) for s, n, *rest in ops], draw(st.booleans())),
        host=_host(names, threads, [(base + unit * s, base + unit * (s + n), *rest) for s, n, *rest in host]),
        names=names.values,
        processes=tuple(Process(10 + p, "python3") for p in range(n_processes)),
        threads=threads,
        meta=_meta(draw, base, unit, shape),
        syncs=draw(st.none() | _syncs(base, unit, n_processes, start, correlation)),
        events=draw(st.none() | _records(n_processes, correlation)),
        scheduling=draw(st.none() | _scheduling(base, unit, len(threads), start)),
    )


def _column(rows: list[tuple[int, ...]], k: int, dtype: type = np.int64) -> np.ndarray:
    return np.array([r[k] for r in rows], dtype)


def _ops(names: Names, rows: list[tuple[int, ...]], details: bool) -> DeviceOps:
    rows = sorted(rows, key=lambda r: (r[0], r[1], r[3], r[4], r[6]))
    kinds = _column(rows, 2, np.int8)
    named = []
    for r in rows:
        choices = COPIES if r[2] == OpKind.COPY else ("memset",) if r[2] == OpKind.MEMSET else KERNELS[:2]
        named.append(names.code(KERNELS[2] if r[2] == OpKind.COLLECTIVE else choices[r[7] % len(choices)]))
    kind_of_copy = (CopyKind.HTOD, CopyKind.DTOH, CopyKind.DTOD)
    copy = np.array([kind_of_copy[r[7]] if r[2] == OpKind.COPY else NONE for r in rows], np.int8)
    memory = np.array([MemKind.PINNED if r[7] % 2 else MemKind.PAGEABLE for r in rows], np.int8)
    return DeviceOps(
        start=_column(rows, 0),
        end=_column(rows, 1),
        kind=kinds,
        name=np.array(named, np.int32),
        device=_column(rows, 3, np.int32),
        stream=_column(rows, 4),
        process=_column(rows, 5, np.int32),
        correlation=_column(rows, 6),
        context=_column(rows, 3) + 1 if details else None,
        copy_kind=copy if details else None,
        src_kind=memory if details else None,
        dst_kind=memory if details else None,
    )


def _host(names: Names, threads: tuple[Thread, ...], rows: list[tuple[int, ...]]) -> HostEvents:
    rows = [(s, s if kind == HostKind.MARK else e, kind, *rest) for s, e, kind, *rest in rows]
    rows.sort(key=lambda r: (r[0], -r[1]))
    named = []
    for r in rows:
        choices = OF_KIND[HostKind(r[2])]
        named.append(names.code(choices[r[3] % len(choices)]))
    calls = [r[5] if r[2] in (HostKind.API, HostKind.OVERHEAD) else NONE for r in rows]
    return HostEvents(
        start=_column(rows, 0),
        end=_column(rows, 1),
        kind=_column(rows, 2, np.int8),
        name=np.array(named, np.int32),
        thread=_column(rows, 4, np.int32),
        process=np.array([threads[r[4]].process if r[4] >= 0 else 0 for r in rows], np.int32),
        correlation=np.array(calls, np.int64),
    )


def _meta(draw: st.DrawFn, base: int, unit: int, shape: Shape) -> Meta:
    window = draw(st.none() | st.tuples(st.integers(-5, shape.span), st.integers(1, 2 * shape.span)))
    trigger = draw(st.sampled_from(("Immediate", "NVTX")))
    return Meta(
        tool="none",
        window=None if window is None else (base + unit * window[0], base + unit * (window[0] + window[1])),
        options={} if trigger is None else {"START_TRIGGER": trigger},
    )


def _syncs(
    base: int, unit: int, processes: int, start: st.SearchStrategy[int], correlation: st.SearchStrategy[int]
) -> st.SearchStrategy[SyncRecords]:
    row = st.tuples(
        start,
        st.integers(0, 5),
        st.integers(0, processes - 1),
        correlation,
        st.integers(0, 1),
        st.sampled_from((NONE, 7, 8)),
        st.sampled_from((NONE, NONE, 1, 2)),
    )

    def table(rows: list[tuple[int, ...]]) -> SyncRecords:
        return SyncRecords(
            base + unit * _column(rows, 0),
            base + unit * (_column(rows, 0) + _column(rows, 1)),
            _column(rows, 2, np.int32),
            _column(rows, 3),
            _column(rows, 4, np.int32),
            _column(rows, 4) + 1,
            _column(rows, 5),
            _column(rows, 6),
        )

    return st.lists(row, max_size=5).map(table)


def _records(processes: int, correlation: st.SearchStrategy[int]) -> st.SearchStrategy[EventRecords]:
    row = st.tuples(
        st.integers(0, processes - 1), correlation, st.integers(0, 1), st.sampled_from((7, 8)), st.integers(1, 2)
    )
    return st.lists(row, max_size=4).map(
        lambda rows: EventRecords(
            _column(rows, 0, np.int32),
            _column(rows, 1),
            _column(rows, 2, np.int32),
            _column(rows, 2) + 1,
            _column(rows, 3),
            _column(rows, 4),
        )
    )


def _scheduling(base: int, unit: int, threads: int, start: st.SearchStrategy[int]) -> st.SearchStrategy[Scheduling]:
    row = st.tuples(start, st.integers(0, threads - 1), st.booleans())
    return st.lists(row, max_size=8).map(
        lambda rows: Scheduling(
            base + unit * _column(sorted(rows), 0),
            _column(sorted(rows), 1, np.int32),
            _column(sorted(rows), 2, bool),
        )
    )


@st.composite
def asked(draw: st.DrawFn, shape: Shape = Shape()) -> tuple[Trace, int, int]:
    """A trace and an interval: its rows, a part of them, or one that reaches beyond them."""
    trace = draw(traces(shape))
    edges = np.concatenate([trace.ops.start, trace.ops.end, trace.host.start, trace.host.end])
    low, high = (int(edges.min()), int(edges.max())) if len(edges) else (0, 1)
    unit = max((high - low) // 20, 1)
    lo = low + unit * draw(st.integers(-3, 19))
    return trace, lo, lo + unit * draw(st.integers(1, 25))


def sorted_ops(ops: DeviceOps) -> DeviceOps:
    return ops.take(np.lexsort((ops.correlation, ops.stream, ops.device, ops.end, ops.start)))


def sorted_host(host: HostEvents) -> HostEvents:
    return host.take(np.lexsort((-host.end, host.start)))


def stacked(a: Columns, b: Columns) -> Columns:
    """Rows of both; a column that only one has is dropped."""
    theirs = dict(b.columns())
    both = {n: np.concatenate([v, theirs[n].astype(v.dtype)]) for n, v in a.columns() if n in theirs}
    return replace(a, **{n: both.get(n) for n, _ in a.columns()})


def shifted(trace: Trace, by: int) -> Trace:
    """All times moved."""

    def moved(rows: Columns | None, *columns: str) -> Columns | None:
        return None if rows is None else replace(rows, **{c: getattr(rows, c) + by for c in columns})

    window = trace.meta.window
    return replace(
        trace,
        ops=moved(trace.ops, "start", "end"),
        host=moved(trace.host, "start", "end"),
        syncs=moved(trace.syncs, "start", "end"),
        scheduling=moved(trace.scheduling, "time"),
        meta=replace(trace.meta, window=None if window is None else (window[0] + by, window[1] + by)),
    )


def with_stranger(trace: Trace) -> Trace:
    """Beside everything a process of its own, with a thread, a device and as many rows, under the same numbers.

    It launches nothing: what a launch usually takes is one number for the whole trace, and every launch has its say.
    """
    n, p = len(trace.threads), len(trace.processes)
    ops = replace(trace.ops, process=trace.ops.process + p, device=trace.ops.device + 2)
    ops = replace(ops, correlation=ops.correlation * 0 + NONE)
    host = replace(
        trace.host,
        name=np.where(trace.host.kind == HostKind.API, len(trace.names), trace.host.name).astype(np.int32),
        process=trace.host.process + p,
        thread=np.where(trace.host.thread >= 0, trace.host.thread + n, NONE).astype(np.int32),
    )
    if ops.context is not None:
        ops = replace(ops, context=ops.context + 2)
    return replace(
        trace,
        ops=sorted_ops(stacked(trace.ops, ops)),
        host=sorted_host(stacked(trace.host, host)),
        names=[*trace.names, "cudaFuncGetAttributes"],
        processes=(*trace.processes, *(Process(50 + q.pid, q.name) for q in trace.processes)),
        threads=(*trace.threads, *(Thread(t.process + p, 50 + t.tid, t.name) for t in trace.threads)),
    )


def with_cut_ranges(trace: Trace, at: int) -> Trace:
    """The innermost annotations at an instant written as two that touch; none that crosses another event."""
    host = trace.host
    around = (host.start < at) & (at < host.end)
    last = {int(host.thread[row]): row for row in np.flatnonzero(around).tolist()}
    cut = np.zeros(len(host), bool)
    for row in last.values():
        near = (host.thread == host.thread[row]) & (host.start < host.end[row]) & (host.end > host.start[row])
        outside = (host.start <= host.start[row]) & (host.end >= host.end[row])
        inside = (host.start >= host.start[row]) & (host.end <= host.end[row])
        cut[row] = host.kind[row] == HostKind.ANNOTATION and bool((outside | inside)[near].all())
    first, second = host.end.copy(), host.take(cut)
    first[cut] = at
    return replace(
        trace, host=sorted_host(stacked(replace(host, end=first), replace(second, start=second.end * 0 + at)))
    )
