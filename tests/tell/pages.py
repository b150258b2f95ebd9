"""Pages to test on: the worked example, hostile names, and a trace of a million events."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from scopedown.account.account import Account, window
from scopedown.account.picture import pictures
from scopedown.account.timeline import Timeline
from scopedown.answer import answer
from scopedown.case import load_case
from scopedown.picture import Picture
from scopedown.report import LedgerReport, Line, Report
from scopedown.simulate import SITUATIONS, write_case
from scopedown.simulate.as_trace import as_trace
from scopedown.tell.html import render
from scopedown.terms import RESOLVABLE_BY, Scope
from scopedown.trace.model import (
    NONE,
    Device,
    DeviceOps,
    HostEvents,
    HostKind,
    Meta,
    OpKind,
    Process,
    Thread,
    Trace,
)
from tell.reports import hostile, worked_example

EVENTS = 1_000_000


def of_situation(name: str, folder: Path) -> bytes:
    write_case(name, 1, folder)
    answered = answer(load_case(folder))
    return render(answered.report, answered.pictures())


def report_of(a: Account) -> Report:
    """The worked example with the ledger of an account."""
    lines = [
        Line(id=f"L{i}", category=x.category, label=x.label, ns=x.ns, share=x.ns / a.total_ns, count=x.count,
             scope=Scope.TIMELINE, explained=False, resolvable_by=list(RESOLVABLE_BY.get(x.category, ())))
        for i, x in enumerate(a.lines(), 1)
    ]  # fmt: skip
    book = LedgerReport(interval_ns=(a.lo, a.hi), total_ns=a.total_ns, lines=lines)
    return msgspec.structs.replace(worked_example(), ledger=book)


def hostile_page(text: str) -> bytes:
    """Every name of the trace and every string of the report is ``text``."""
    situation = SITUATIONS["sync_then_launch"](1)
    assert situation.run is not None
    trace = as_trace(situation.run)
    t = Timeline(trace)
    assert t.rows_span is not None
    (first, *_) = pictures(window(t, *t.rows_span), {})
    picture = msgspec.structs.replace(
        first,
        names=[(c, f"{text}{i}") for i, (c, _) in enumerate(first.names)],
        lanes=[msgspec.structs.replace(x, title=text) for x in first.lanes],
        repeats=[msgspec.structs.replace(x, label=text, before=text, after=text) for x in first.repeats],
        steps=msgspec.structs.replace(first.steps, name=text) if first.steps else None,
    )
    report = hostile(text)
    lines = [msgspec.structs.replace(x, id=f"L{i}") for i, x in enumerate(report.ledger.lines, 1)]
    ledger = msgspec.structs.replace(report.ledger, lines=lines, unit="ns")
    return render(msgspec.structs.replace(report, ledger=ledger), [picture])


def large_trace(events: int = EVENTS, names: int = 20_000) -> Trace:
    """Launches on six threads of kernels on six streams, in ranges; thousands of names of 200 characters."""
    rng = np.random.default_rng(7)
    n, k = events * 9 // 20, 6
    thread = np.arange(n) % k
    begin = np.cumsum(rng.integers(1_000, 9_000, n)) + rng.integers(0, 800, n)
    took = rng.integers(400, 900, n)
    ops_start = begin + took + rng.integers(1_000, 4_000, n)
    ops_end = ops_start + rng.integers(500, 5_000, n)
    for stream in range(k):  # one op at a time on a stream
        mine = np.flatnonzero(thread == stream)
        s, e = ops_start[mine], ops_end[mine]
        ops_end[mine[:-1]] = np.minimum(e[:-1], np.maximum(s[1:], s[:-1] + 1))
    order = np.lexsort((thread, ops_end, ops_start))
    kernels = rng.integers(0, names, n)
    ranges = events - 2 * n
    per = n // ranges * 2
    at = np.minimum(np.arange(ranges) * (n // ranges), n - per - 1)
    range_thread = np.arange(ranges) % k
    host_start = np.concatenate([begin, begin[at] - 100])
    host_end = np.concatenate([begin + took, begin[at] + 300 + took[at]])
    kind = np.concatenate([np.full(n, HostKind.API), np.full(ranges, HostKind.ANNOTATION)])
    name = np.concatenate([np.full(n, names), names + 1 + np.arange(ranges) % 5_000])
    of = np.concatenate([thread, range_thread])
    correlation = np.concatenate([np.arange(n), np.full(ranges, NONE)])
    by = np.lexsort((-host_end, host_start))
    c32 = np.int32
    return Trace(
        ops=DeviceOps(ops_start[order], ops_end[order], np.full(n, OpKind.KERNEL, np.int8), kernels[order].astype(c32),
                      np.zeros(n, c32), thread[order], np.zeros(n, c32), np.arange(n)[order]),
        host=HostEvents(host_start[by], host_end[by], kind[by].astype(np.int8), name[by].astype(c32),
                        of[by].astype(c32), np.zeros(events - n, c32), correlation[by]),
        names=[f"kernel_{i % 8}<{i}, {'x' * 180}>()" for i in range(names)] + ["cudaLaunchKernel"]
        + [f"range {chr(97 + i % 26)}{'abcdefghij'[i // 26 % 10]}{'abcdefghij'[i // 260 % 10]}{'y' * 150}"
           for i in range(5_000)],
        processes=(Process(1, "server"),),
        threads=tuple(Thread(0, 10 + i, f"worker {i}") for i in range(k)),
        meta=Meta(tool="made", devices=(Device(0, "GPU"),)),
    )  # fmt: skip


@cache
def large() -> tuple[Report, list[Picture]]:
    t = Timeline(large_trace())
    assert t.rows_span is not None
    a = window(t, *t.rows_span)
    largest = {f"p{i}": g for i, g in enumerate(a.groups[:20])}
    return report_of(a), [next(pictures(a, largest))]
