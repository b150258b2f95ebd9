"""Traces of a few events, written by hand. Times are microseconds, the trace's are nanoseconds."""

from __future__ import annotations

import numpy as np

from scopedown.account.segments import Segments
from scopedown.account.timeline import Ending, Timeline
from scopedown.terms import CATEGORIES, Category
from scopedown.trace.model import (
    NONE,
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

US = 1_000
Named = list[tuple[Category, float]]


class Small:
    """Thread t belongs to process ``threads[t]``."""

    def __init__(self, threads: tuple[int, ...] = (0,)) -> None:
        self.threads = threads
        self.names = Names()
        self.host: list[tuple[int, ...]] = []
        self.ops: list[tuple[int, ...]] = []
        self.syncs: list[tuple[int, ...]] = []
        self.records: list[tuple[int, ...]] = []
        self.moves: list[tuple[int, int, bool]] = []

    def event(
        self, kind: HostKind, name: str, start: float, end: float, thread: int = 0, correlation: int = NONE
    ) -> Small:
        process = self.threads[thread] if thread >= 0 else 0
        self.host.append((ns(start), ns(end), kind, self.names.code(name), thread, process, correlation))
        return self

    def call(self, name: str, start: float, end: float, correlation: int = NONE, thread: int = 0) -> Small:
        return self.event(HostKind.API, name, start, end, thread, correlation)

    def launch(self, start: float, end: float, correlation: int, thread: int = 0) -> Small:
        return self.call("cudaLaunchKernel", start, end, correlation, thread)

    def range(self, name: str, start: float, end: float, thread: int = 0) -> Small:
        return self.event(HostKind.ANNOTATION, name, start, end, thread)

    def os(self, name: str, start: float, end: float, thread: int = 0) -> Small:
        return self.event(HostKind.OS, name, start, end, thread)

    def op(
        self,
        start: float,
        end: float,
        correlation: int = NONE,
        *,
        kind: OpKind = OpKind.KERNEL,
        name: str = "gemm",
        stream: int = 7,
        device: int = 0,
        process: int = 0,
        copy: int = NONE,
        host_memory: MemKind = MemKind.PINNED,
    ) -> Small:
        row = (ns(start), ns(end), kind, self.names.code(name), device, stream, process, correlation, copy, host_memory)
        self.ops.append(row)
        return self

    def sync_record(
        self, correlation: int, *, stream: int = NONE, event: int = NONE, device: int = 0, context: int | None = None
    ) -> Small:
        self.syncs.append((0, 0, 0, correlation, device, device + 1 if context is None else context, stream, event))
        return self

    def event_record(self, correlation: int, *, event: int, stream: int, device: int = 0) -> Small:
        self.records.append((0, correlation, device, device + 1, stream, event))
        return self

    def off_core(self, start: float, end: float, thread: int = 0) -> Small:
        self.moves += [(ns(start), thread, False), (ns(end), thread, True)]
        return self

    def trace(self, meta: Meta | None = None) -> Trace:
        host = sorted(self.host, key=lambda r: (r[0], -r[1]))
        ops = sorted(self.ops, key=lambda r: (r[0], r[1], r[4], r[5], r[7]))
        moves = sorted(self.moves)
        return Trace(
            ops=DeviceOps(
                *(col(ops, k, t) for k, t in enumerate("qqbiiqiq")),
                context=col(ops, 4) + 1,
                copy_kind=col(ops, 8, "b"),
                src_kind=col(ops, 9, "b"),
                dst_kind=col(ops, 9, "b"),
            ),
            host=HostEvents(*(col(host, k, t) for k, t in enumerate("qqbiiiq"))),
            names=self.names.values,
            processes=tuple(Process(10 + p, "python3") for p in sorted(set(self.threads))),
            threads=tuple(Thread(p, 100 + i, f"thread {i}") for i, p in enumerate(self.threads)),
            meta=meta or Meta("by hand"),
            syncs=SyncRecords(*(col(self.syncs, k, t) for k, t in enumerate("qqiqiqqq"))) if self.syncs else None,
            events=EventRecords(*(col(self.records, k, t) for k, t in enumerate("iqiqqq"))) if self.records else None,
            scheduling=Scheduling(col(moves, 0), col(moves, 1, "i"), col(moves, 2, "?")) if moves else None,
        )

    def timeline(self) -> Timeline:
        return Timeline(self.trace())

    def path(self, lo: float, hi: float, thread: int = 0) -> Named:
        return named(self.timeline().path(ns(lo), Ending(ns(hi), thread, NONE)))

    def device(self, lo: float, hi: float, device: int = 0) -> Named:
        return named(self.timeline().devices.account(device, ns(lo), ns(hi)).segments)


def ns(us: float) -> int:
    return round(us * US)


def col(rows: list[tuple[int, ...]], k: int, dtype: str = "q") -> np.ndarray:
    return np.array([r[k] for r in rows], dtype)


def named(segs: Segments) -> Named:
    """Categories in order with their length in us; neighbours of one category are one."""
    out: Named = []
    for category, length in zip(segs.category.tolist(), segs.ns.tolist(), strict=True):
        before = out.pop() if out and out[-1][0] is CATEGORIES[category] else None
        out.append((CATEGORIES[category], (before[1] if before else 0) + length / US))
    return out


def labels(timeline: Timeline, segs: Segments) -> list[str]:
    return [timeline.labels.values[i] for i in segs.label.tolist()]


def totals(pieces: Named) -> dict[Category, float]:
    out: dict[Category, float] = {}
    for category, length in pieces:
        out[category] = out.get(category, 0) + length
    return out
