"""A run in the event model, without a file between: what a perfect tool would have recorded."""

from __future__ import annotations

import numpy as np

from scopedown.simulate.run import Run, op_label
from scopedown.trace.model import (
    NONE,
    Codes,
    Device,
    DeviceOps,
    EventRecords,
    HostEvents,
    HostKind,
    Ints,
    Meta,
    Names,
    Process,
    Small,
    SyncRecords,
    Thread,
    Trace,
)

FIRST_TID = 100
"""Threads of a process are numbered from its pid plus this."""


def thread_ids(run: Run) -> list[int]:
    """The tid of each thread of the program."""
    return [run.program.processes[s.process][0] + FIRST_TID + 7 * i for i, s in enumerate(run.program.threads)]


def ints(values: list[int]) -> Ints:
    return np.array(values, np.int64)


def codes(values: list[int]) -> Codes:
    return np.array(values, np.int32)


def smalls(values: list[int]) -> Small:
    return np.array(values, np.int8)


def as_trace(run: Run) -> Trace:
    """All rows of a run; open ranges end with the run. The trace's axis is the program's."""
    names = Names()
    recorded, program = run.recorded, run.program
    ops = sorted(recorded.ops, key=lambda o: (o.start, o.end, o.device, o.stream, o.correlation))
    device_ops = DeviceOps(
        start=ints([o.start for o in ops]),
        end=ints([o.end for o in ops]),
        kind=smalls([o.work.kind for o in ops]),
        name=codes([names.code(op_label(o)) for o in ops]),
        device=codes([o.device for o in ops]),
        stream=ints([o.stream for o in ops]),
        process=codes([o.process for o in ops]),
        correlation=ints([o.correlation for o in ops]),
        context=ints([o.device + 1 for o in ops]),
        graph_node=ints([o.work.graph_node for o in ops]),
        bytes=ints([o.work.bytes for o in ops]),
        copy_kind=smalls([o.work.copy for o in ops]),
        src_kind=smalls([o.work.source for o in ops]),
        dst_kind=smalls([o.work.target for o in ops]),
        grid=ints([n for o in ops for n in o.work.grid]).reshape(-1, 3),
        block=ints([n for o in ops for n in o.work.block]).reshape(-1, 3),
        registers=ints([o.work.registers for o in ops]),
        shared_memory=ints([o.work.shared for o in ops]),
    )
    rows = [(c.start, c.end, HostKind.API, c.name, c.thread, c.correlation) for c in recorded.calls]
    for kind, spans in (
        (HostKind.ANNOTATION, recorded.ranges),
        (HostKind.OS, recorded.os_calls),
        (HostKind.OVERHEAD, recorded.overheads),
        (HostKind.MARK, recorded.traced_marks),
    ):
        end = run.end_ns
        rows += [(s.start, end if s.end == NONE else s.end, kind, s.name, s.thread, s.correlation) for s in spans]
    rows.sort(key=lambda r: (r[0], -r[1]))
    host = HostEvents(
        start=ints([r[0] for r in rows]),
        end=ints([r[1] for r in rows]),
        kind=smalls([r[2] for r in rows]),
        name=codes([names.code(r[3]) for r in rows]),
        thread=codes([r[4] for r in rows]),
        process=codes([program.threads[r[4]].process for r in rows]),
        correlation=ints([r[5] for r in rows]),
    )
    syncs, events = recorded.syncs, recorded.events
    return Trace(
        ops=device_ops,
        host=host,
        names=names.values,
        processes=tuple(Process(pid, name) for pid, name in program.processes),
        threads=tuple(Thread(s.process, tid, s.name) for s, tid in zip(program.threads, thread_ids(run), strict=True)),
        meta=Meta(
            tool="simulation",
            window=(0, run.end_ns + 1_000_000),
            devices=tuple(Device(i, name) for i, name in enumerate(program.devices)),
        ),
        syncs=SyncRecords(
            ints([s.start for s in syncs]),
            ints([s.end for s in syncs]),
            codes([s.process for s in syncs]),
            ints([s.correlation for s in syncs]),
            codes([s.device for s in syncs]),
            ints([s.device + 1 for s in syncs]),
            ints([s.stream for s in syncs]),
            ints([s.event for s in syncs]),
        ),
        events=EventRecords(
            codes([e.process for e in events]),
            ints([e.correlation for e in events]),
            codes([e.device for e in events]),
            ints([e.device + 1 for e in events]),
            ints([e.stream for e in events]),
            ints([e.event for e in events]),
        ),
    )
