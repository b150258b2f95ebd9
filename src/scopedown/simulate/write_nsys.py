"""Writes a run as an Nsight Systems SQLite export: the schema that the tool writes, with the run's own events."""

from __future__ import annotations

import datetime as dt
import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from scopedown.simulate.as_trace import thread_ids
from scopedown.simulate.machine import Op
from scopedown.simulate.nsys_schema import ENUMS, Version, tables
from scopedown.simulate.run import Run
from scopedown.trace.model import NONE, OpKind

#: Products and the schema versions of their exports.
SCHEMAS: dict[str, Version] = {
    "2022.4.2.1": (3, 0),
    "2023.4.1.97": (3, 6),
    "2024.6.2.225": (3, 16),
    "2025.1.1.110": (3, 17),
    "2026.2.1.210": (3, 25),
}
VM = 281474976710656
NO_EVENT = 4294967295
#: What the tool appends to a runtime call's name: the version that brought the call.
API_SUFFIX = {"cudaLaunchKernel": "_v7000", "cudaLaunchKernelExC": "_v11060", "cudaGraphLaunch": "_v10000"}
OVERHEADS = {"Module Loading": 6, "Lazy Function Loading": 7, "Driver Compiler": 2}

OP_TABLES = {
    OpKind.KERNEL: "CUPTI_ACTIVITY_KIND_KERNEL",
    OpKind.COLLECTIVE: "CUPTI_ACTIVITY_KIND_KERNEL",
    OpKind.COPY: "CUPTI_ACTIVITY_KIND_MEMCPY",
    OpKind.MEMSET: "CUPTI_ACTIVITY_KIND_MEMSET",
    OpKind.GRAPH: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
}

Row = dict[str, object]


@dataclass(frozen=True)
class NsysOptions:
    product: str = "2025.1.1.110"
    session_utc_ns: int = 1_781_081_995_783_000_000
    leave_out: frozenset[str] = frozenset()
    """Tables ("OSRT_API") or columns ("NVTX_EVENTS.textId") that the file lacks."""
    window: tuple[int, int] | None = None
    """Keep device rows, calls and ranges that start inside, as a capture that was cut."""
    drop: dict[str, float] = field(default_factory=dict)
    """Table -> share of its rows that is lost, drawn by the program's seed."""
    texts: str = "inline"
    """NVTX names: "inline", "ids" (textId into StringIds) or "mixed"."""
    sched: bool = False
    """Write SCHED_EVENTS: threads leave their core where they sit in an OS wait."""
    empty_tables: bool = False
    """Create tables that have no rows (2026.2 does)."""
    diagnostics: tuple[tuple[int, str], ...] = ((1, "Profiling has started."),)
    """(severity: 1 info, 2 warning, 3 error; text)."""


class _Strings:
    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.ids.setdefault(text, len(self.ids) + 1)


def write_nsys(run: Run, path: Path, options: NsysOptions | None = None) -> dict[str, int]:
    """Writes the export and returns the number of rows of each table."""
    options = options or NsysOptions()
    shape = tables(SCHEMAS[options.product])
    strings = _Strings()
    content = _events(run, options, strings)
    _keep(content, run, options)
    content |= _about(run, options, strings)
    content["StringIds"] = [{"id": i, "value": text} for text, i in strings.ids.items()]
    counts: dict[str, int] = {}
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        for table, columns in sorted(shape.items()):
            rows = content.get(table, [])
            if table in options.leave_out or not (rows or options.empty_tables):
                continue
            kept = [c for c in columns if f"{table}.{c}" not in options.leave_out]
            db.execute(f"CREATE TABLE {table} ({', '.join(f'{c} {columns[c]}' for c in kept)})")
            marks = ", ".join("?" * len(kept))
            values = ([row.get(c) for c in kept] for row in rows)
            db.executemany(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608 - names of our own schema
            counts[table] = len(rows)
    return counts


def _events(run: Run, options: NsysOptions, strings: _Strings) -> dict[str, list[Row]]:
    recorded, program = run.recorded, run.program
    pids = [VM | pid << 24 for pid, _ in program.processes]
    tids = [pids[s.process] | tid for s, tid in zip(program.threads, thread_ids(run), strict=True)]
    # The meaning of the numbers moved: a stream synchronisation is 2 between 2024.6 and 2026.1 and 3 otherwise.
    stream_sync = 2 if (3, 16) <= SCHEMAS[options.product] < (3, 25) else 3
    sync_types = {
        "cudaStreamSynchronize": stream_sync,
        "cudaEventSynchronize": 1,
        "cudaDeviceSynchronize": 4,
        "cudaStreamWaitEvent": 2 if stream_sync == 3 else 3,
    }
    by_start = sorted(recorded.ops, key=lambda o: (o.start, o.end))
    content: dict[str, list[Row]] = {}
    for o in by_start:
        rows = content.setdefault(OP_TABLES[o.work.kind], [])
        rows.append(_op(o, pids, strings, len(rows) + 1))
    content["CUPTI_ACTIVITY_KIND_RUNTIME"] = [
        {
            "start": c.start,
            "end": c.end,
            "eventClass": 0,
            "globalTid": tids[c.thread],
            "correlationId": c.correlation,
            "nameId": strings(c.name + API_SUFFIX.get(c.name, "_v3020")),
            "returnValue": 0,
        }
        for c in sorted(recorded.calls, key=lambda c: c.start)
    ]
    content["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"] = [
        {
            "start": s.start,
            "end": s.end,
            "deviceId": s.device,
            "contextId": s.device + 1,
            "streamId": NO_EVENT if s.stream == NONE else s.stream,
            "correlationId": s.correlation,
            "globalPid": pids[s.process],
            "syncType": sync_types[s.api],
            "eventId": NO_EVENT if s.event == NONE else s.event,
            "eventSyncId": NO_EVENT if s.event == NONE else s.event + 40,
        }
        for s in recorded.syncs
    ]
    content["CUPTI_ACTIVITY_KIND_CUDA_EVENT"] = [
        {
            "timestamp": 0 if e.after is None else e.after.end,
            "deviceId": e.device,
            "contextId": e.device + 1,
            "streamId": e.stream,
            "correlationId": e.correlation,
            "globalPid": pids[e.process],
            "eventId": e.event,
            "eventSyncId": e.event + 40,
        }
        for e in recorded.events
    ]
    content["CUPTI_ACTIVITY_KIND_OVERHEAD"] = [
        {
            "start": o.start,
            "end": o.end,
            "eventClass": 103,
            "globalTid": tids[o.thread],
            "correlationId": o.correlation,
            "nameId": strings(o.name),
            "overheadType": OVERHEADS[o.name],
        }
        for o in recorded.overheads
    ]
    ranges = [(r, 59, None if r.end == NONE else r.end) for r in recorded.ranges]
    ranges += [(m, 34, None) for m in recorded.traced_marks]
    content["NVTX_EVENTS"] = []
    for n, (r, kind, end) in enumerate(sorted(ranges, key=lambda row: (row[0].start, -(row[2] or NO_EVENT)))):
        by_id = options.texts == "ids" or (options.texts == "mixed" and n % 2 == 0)
        text: Row = {"textId": strings(r.name)} if by_id else {"text": r.name}
        place: Row = {"start": r.start, "end": end, "eventType": kind, "globalTid": tids[r.thread], "domainId": 0}
        content["NVTX_EVENTS"].append(place | text)
    content["OSRT_API"] = [
        {
            "start": o.start,
            "end": o.end,
            "eventClass": 27,
            "globalTid": tids[o.thread],
            "nameId": strings(o.name),
            "returnValue": 0,
            "nestingLevel": 0,
            "callchainId": 0,
            "argumentsId": 0,
        }
        for o in sorted(recorded.os_calls, key=lambda o: o.start)
    ]
    if options.sched:
        waits = [o for o in recorded.os_calls if o.end - o.start > 5_000]
        moves = [(t, back, o.thread) for o in waits for t, back in ((o.start + 1_500, 0), (o.end - 1_000, 1))]
        content["SCHED_EVENTS"] = [
            {"start": t, "cpu": thread, "isSchedIn": back, "globalTid": tids[thread], "threadState": 0}
            for t, back, thread in sorted(moves)
        ]
    return content


def _op(o: Op, pids: list[int], strings: _Strings, n: int) -> Row:
    w = o.work
    row: Row = {
        "start": o.start,
        "end": o.end,
        "deviceId": o.device,
        "contextId": o.device + 1,
        "greenContextId": 0,
        "streamId": o.stream,
        "correlationId": o.correlation,
        "globalPid": pids[o.process],
        "graphNodeId": None if w.graph_node == NONE else w.graph_node,
    }
    if w.kind == OpKind.COPY:
        return row | {"bytes": w.bytes, "copyKind": w.copy, "srcKind": w.source, "dstKind": w.target, "copyCount": 1}
    if w.kind == OpKind.MEMSET:
        return row | {"value": 0, "bytes": w.bytes, "memKind": 2}
    if w.kind == OpKind.GRAPH:
        return row | {"graphId": 1, "graphExecId": 2}
    name = strings(w.name)
    short = w.name.partition("<")[0].partition("(")[0].rpartition("::")[2].rpartition(" ")[2]
    return row | {
        "demangledName": name,
        "shortName": strings(short),
        "mangledName": name,
        "launchType": 1,
        "cacheConfig": 1,
        "registersPerThread": w.registers,
        **dict(zip(("gridX", "gridY", "gridZ"), w.grid, strict=True)),
        **dict(zip(("blockX", "blockY", "blockZ"), w.block, strict=True)),
        "staticSharedMemory": 0,
        "dynamicSharedMemory": w.shared,
        "localMemoryPerThread": 0,
        "localMemoryTotal": 0,
        "gridId": n,
        "sharedMemoryExecuted": 32768,
        "sharedMemoryLimitConfig": 0,
        "tensorSizeMinusOneElements": "[]",
    }


def _keep(content: dict[str, list[Row]], run: Run, options: NsysOptions) -> None:
    """Cuts the window and loses rows, in place."""
    rng = random.Random(run.program.seed)  # noqa: S311 - a seeded simulation
    for table, rows in content.items():
        if options.window is not None:
            low, high = options.window
            rows[:] = [r for r in rows if low <= _time(r, low) < high]
        share = options.drop.get(table, 0.0)
        if share:
            rows[:] = [r for r in rows if rng.random() >= share]


def _time(row: Row, otherwise: int) -> int:
    value = row.get("start", otherwise)
    return value if isinstance(value, int) else otherwise


def _about(run: Run, options: NsysOptions, strings: _Strings) -> dict[str, list[Row]]:
    """Everything that is no event: versions, names, devices, the session."""
    program = run.program
    major, minor = SCHEMAS[options.product]
    duration = (options.window or (0, run.end_ns + 1_000_000))[1]
    boot = 4_247_000_000
    utc = dt.datetime.fromtimestamp(options.session_utc_ns // 10**9, dt.UTC)
    export = {
        "EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems",
        "EXPORT_PRODUCT_VERSION": options.product,
        "EXPORT_PRODUCT_DATE": ".".join(options.product.split(".")[:2]),
        "EXPORT_SCHEMA_VERSION": f"{major}.{minor}.0",
        "EXPORT_SCHEMA_VERSION_MAJOR": str(major),
        "EXPORT_SCHEMA_VERSION_MINOR": str(minor),
        "EXPORT_SCHEMA_VERSION_MICRO": "0",
        "EXPORT_PARAM_LAZY": "true",
        "EXPORT_PARAM_TIME_NORMALIZE": "false",
        "EXPORT_PARAM_TIME_SHIFT": "0",
    }
    whole = any(o.work.kind == OpKind.GRAPH for o in run.recorded.ops)
    capture = [
        ("CAPTURE_EVENT_TYPE", "Cuda"),
        ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
        ("CAPTURE_EVENT_TYPE", "OSRuntime"),
        ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph" if whole else "Node"),
        ("START_TRIGGER", "Immediate"),
        ("STOP_TRIGGER", "Delayed"),
    ]
    pairs: list[Row] = [{"name": k, "value": v} for k, v in export.items()]
    tids = zip(program.threads, thread_ids(run), strict=True)
    content: dict[str, list[Row]] = {
        "META_DATA_EXPORT": pairs,
        "EXPORT_META_DATA": pairs,
        "META_DATA_CAPTURE": [{"name": k, "value": v} for k, v in capture],
        "PROCESSES": [{"globalPid": VM | pid << 24, "pid": pid, "name": name} for pid, name in program.processes],
        "ThreadNames": [
            {
                "nameId": strings(s.name),
                "priority": 20,
                "globalTid": VM | program.processes[s.process][0] << 24 | tid,
            }
            for s, tid in tids
        ],
        "ANALYSIS_DETAILS": [
            {"globalVid": VM, "duration": duration, "startTime": boot, "stopTime": boot + duration},
        ],
        "TARGET_INFO_SESSION_START_TIME": [
            {
                "utcEpochNs": options.session_utc_ns,
                "utcTime": utc.strftime("%Y-%m-%dT%H:%M:%S"),
                "localTime": utc.strftime("%Y-%m-%dT%H:%M:%S"),
                "systemClockNs": boot,
            },
        ],
        "TARGET_INFO_CUDA_DEVICE": [
            {"gpuId": d, "cudaId": d, "pid": pid} for pid, _ in program.processes for d in range(len(program.devices))
        ],
        "TARGET_INFO_GPU": [_gpu(d, name) for d, name in enumerate(program.devices)],
        "DIAGNOSTIC_EVENT": [
            {"timestamp": n, "timestampType": 1, "source": 3, "severity": severity, "text": text}
            for n, (severity, text) in enumerate(options.diagnostics)
        ],
    }
    for table, values in ENUMS.items():
        content[table] = [{"id": i, "name": name, "label": label} for i, (name, label) in values.items()]
    return content


def _gpu(d: int, name: str) -> Row:
    """An 80 GiB H100 as the export describes it (bytes, bytes/s, Hz)."""
    return {
        "vmId": VM,
        "id": d,
        "name": name,
        "busLocation": f"0000:{0x18 + d:02x}:00.0",
        "isDiscrete": 1,
        "l2CacheSize": 52428800,
        "totalMemory": 85029158912,
        "memoryBandwidth": 3352320000000,
        "clockRate": 1980000000,
        "smCount": 132,
        "pwGpuId": d,
        "uuid": f"00000000-0000-0000-0000-{d:012d}",
        "luid": 0,
        "chipName": "GH100",
        "cuDevice": d,
        "threadsPerWarp": 32,
        "asyncEngines": 3,
        "maxWarpsPerSm": 64,
        "maxBlocksPerSm": 32,
        "maxThreadsPerBlock": 1024,
        "computeMajor": 9,
        "computeMinor": 0,
        "smMajor": 9,
        "smMinor": 0,
    }


def count_rows(path: Path, names: Iterable[str]) -> dict[str, int]:
    """Rows of the named tables of an export; 0 where a table is absent."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        present = {r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return {
            n: db.execute(f'SELECT count(*) FROM "{n}"').fetchone()[0] if n in present else 0  # noqa: S608
            for n in names
        }
