"""Runs of the simulator as ROCm's tools would have recorded them: rocpd, rpd, rocprofv3 JSON, rocprof v1.

What a format has no rows for is not written: rocpd and the JSON know no memory kind, no events, no synchronisation
records, no OS calls, and memsets are kernels of the runtime; rpd has memsets, and ends there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from scopedown.simulate.as_trace import thread_ids
from scopedown.simulate.machine import Op
from scopedown.simulate.run import Run
from scopedown.trace.model import NONE, CopyKind, OpKind

BOOT = 1_071_420_000_000_000
"""Time since boot at the program's start."""
GUID = "0000406d-08bf-78bf-9160-047813fc7bfc"
SECRET = "SECRET_TOKEN=hunter2"
AFTER = 1_000_000
"""The tool stops this long after the run, as the writer of Nsight Systems has it."""

FILL = "__amd_rocclr_fillBufferAligned"
DIRECTION = {
    CopyKind.HTOD: "HOST_TO_DEVICE",
    CopyKind.DTOH: "DEVICE_TO_HOST",
    CopyKind.DTOD: "DEVICE_TO_DEVICE",
    CopyKind.PTOP: "DEVICE_TO_DEVICE",
}
FIRST_GPU = 2
"""Agents 0 and 1 are the host's sockets."""

Rows = list[dict[str, object]]


def hip(name: str) -> str:
    """The HIP call of a CUDA call's name."""
    return "hip" + name.removeprefix("cuda") if name.startswith("cuda") else name


def make(path: Path, tables: dict[str, Rows], columns: dict[str, str] | None = None) -> Path:
    """A database with these tables, their columns being the keys of the rows, or words of ``columns``."""
    with closing(sqlite3.connect(path)) as db, db:
        for table, rows in tables.items():
            names = list(dict.fromkeys(c for row in rows for c in row)) or (columns or {})[table].split()
            db.execute(f'CREATE TABLE "{table}" ({", ".join(f"{c!r}" for c in names)})')
            marks = ", ".join("?" * len(names))
            db.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [[row.get(c) for c in names] for row in rows])
    return path


def whole_ops(run: Run) -> list[Op]:
    return [o for o in run.recorded.ops if o.work.kind != OpKind.GRAPH]


class _Strings:
    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.ids.setdefault(text, len(self.ids) + 1)


def rocpd_tables(run: Run, suffix: str = "_" + GUID.replace("-", "_")) -> dict[str, Rows]:
    program, recorded = run.program, run.recorded
    strings, events = _Strings(), []
    tids = thread_ids(run)
    pids = [pid for pid, _ in program.processes]

    def event(category: str, stack: int, message: str | None = None) -> int:
        extra = json.dumps({"message": message}) if message is not None else "{}"
        events.append(
            {
                "id": len(events) + 1,
                "category_id": strings(category),
                "stack_id": stack,
                "parent_stack_id": stack,
                "correlation_id": 0,
                "extdata": extra,
            }
        )
        return len(events)

    regions: Rows = []
    samples: Rows = []
    tracks: Rows = []

    def region(thread: int, start: int, end: int, name: str, event_id: int) -> None:
        regions.append(
            {
                "id": len(regions) + 1,
                "nid": 7,
                "pid": pids[program.threads[thread].process],
                "tid": tids[thread],
                "start": BOOT + start,
                "end": BOOT + end,
                "name_id": strings(name),
                "event_id": event_id,
            }
        )

    for c in recorded.calls:
        region(c.thread, c.start, c.end, hip(c.name), event("HIP_RUNTIME_API_EXT", c.correlation))
    for r in recorded.ranges:
        end = run.end_ns + AFTER if r.end == NONE else r.end
        region(r.thread, r.start, end, "roctxThreadRangeA", event("MARKER_CORE_RANGE_API", 0, r.name))
    for m in recorded.traced_marks:
        tracks.append(
            {
                "id": len(tracks) + 1,
                "pid": pids[program.threads[m.thread].process],
                "tid": tids[m.thread],
                "name_id": strings("MARKER_CORE_RANGE_API"),
            }
        )
        samples.append(
            {
                "id": len(samples) + 1,
                "track_id": len(tracks),
                "timestamp": BOOT + m.start,
                "event_id": event("MARKER_CORE_RANGE_API", 0, m.name),
            }
        )
    kernels: Rows = []
    copies: Rows = []
    symbols = _Strings()
    for o in whole_ops(run):
        place: dict[str, object] = {
            "nid": 7,
            "pid": pids[o.process],
            "tid": tids[0],
            "start": BOOT + o.start,
            "end": BOOT + o.end,
            "queue_id": 16,
            "stream_id": o.stream,
        }
        if o.work.kind == OpKind.COPY:
            device, host = FIRST_GPU + o.device, 0
            to_host, from_host = o.work.copy == CopyKind.DTOH, o.work.copy == CopyKind.HTOD
            peer = FIRST_GPU + 1 - o.device if o.work.copy == CopyKind.PTOP else device
            copies.append(
                place
                | {
                    "id": len(copies) + 1,
                    "name_id": strings(f"MEMORY_COPY_{DIRECTION[CopyKind(o.work.copy)]}"),
                    "dst_agent_id": host if to_host else peer,
                    "src_agent_id": host if from_host else device,
                    "size": o.work.bytes,
                    "event_id": event("MEMORY_COPY", o.correlation),
                }
            )
            continue
        name = FILL if o.work.kind == OpKind.MEMSET else o.work.name
        grid, block = o.work.grid, o.work.block
        kernels.append(
            place
            | {
                "id": len(kernels) + 1,
                "agent_id": FIRST_GPU + o.device,
                "kernel_id": symbols(name),
                "dispatch_id": len(kernels) + 1,
                "private_segment_size": 0,
                "group_segment_size": o.work.shared,
                "event_id": event("KERNEL_DISPATCH", o.correlation),
                **{f"workgroup_size_{a}": n for a, n in zip("xyz", block, strict=True)},
                **{f"grid_size_{a}": n * max(b, 1) for a, n, b in zip("xyz", grid, block, strict=True)},
            }
        )
    gpus = [
        {
            "id": FIRST_GPU + i,
            "nid": 7,
            "type": "GPU",
            "type_index": i,
            "name": "gfx942",
            "product_name": name,
            "extdata": json.dumps({"cu_count": 304, "max_engine_clk_fcompute": 2100}),
        }
        for i, name in enumerate(program.devices)
    ]
    tables: dict[str, Rows] = {
        "rocpd_metadata": [{"tag": "schema_version", "value": "3"}, {"tag": "guid", "value": GUID}],
        "rocpd_info_process": [
            {
                "id": pid,
                "pid": pid,
                "init": BOOT,
                "fini": BOOT + run.end_ns + AFTER,
                "command": f"/home/someone/{name} --key {SECRET}",
                "environment": json.dumps({"A": SECRET}),
            }
            for pid, name in program.processes
        ],
        "rocpd_info_thread": [
            {"id": tid, "tid": tid, "name": spec.name} for tid, spec in zip(tids, program.threads, strict=True)
        ],
        "rocpd_info_agent": [{"id": 0, "nid": 7, "type": "CPU", "type_index": 0, "name": "host"}, *gpus],
        "rocpd_info_kernel_symbol": [
            {"id": i, "kernel_name": f"{n}.kd", "display_name": n, "arch_vgpr_count": 32}
            for n, i in symbols.ids.items()
        ],
        "rocpd_event": events,
        "rocpd_region": regions,
        "rocpd_sample": samples,
        "rocpd_track": tracks,
        "rocpd_kernel_dispatch": kernels,
        "rocpd_memory_copy": copies,
        "rocpd_string": [{"id": i, "string": t} for t, i in strings.ids.items()],
    }
    return {table + suffix: rows for table, rows in tables.items() if rows}


def write_rocpd(run: Run, path: Path) -> Path:
    return make(path, rocpd_tables(run))


def write_rpd(run: Run, path: Path) -> Path:
    program, recorded = run.program, run.recorded
    strings = _Strings()
    tids = thread_ids(run)
    pids = [pid for pid, _ in program.processes]
    calls: Rows = []
    by_call: dict[tuple[int, int], int] = {}

    def call(thread: int, start: int, end: int, name: str, args: str = "") -> int:
        calls.append(
            {
                "id": len(calls) + 1,
                "pid": pids[program.threads[thread].process],
                "tid": tids[thread],
                "start": BOOT + start,
                "end": BOOT + end,
                "apiName_id": strings(name),
                "args_id": strings(args),
            }
        )
        return len(calls)

    for c in recorded.calls:
        by_call[program.threads[c.thread].process, c.correlation] = call(c.thread, c.start, c.end, hip(c.name))
    for r in recorded.ranges:
        call(r.thread, r.start, run.end_ns + AFTER if r.end == NONE else r.end, "UserMarker", r.name)
    for m in recorded.traced_marks:
        call(m.thread, m.start, m.start, "UserMarker", m.name)
    ops: Rows = []
    links: Rows = []
    kernels: Rows = []
    copies: Rows = []
    types = {OpKind.KERNEL: "KernelExecution", OpKind.COLLECTIVE: "KernelExecution", OpKind.MEMSET: "FillBuffer"}
    ways = {CopyKind.HTOD: "CopyHostToDevice", CopyKind.DTOH: "CopyDeviceToHost"}
    hip_kind = {CopyKind.HTOD: 1, CopyKind.DTOH: 2}
    for o in whole_ops(run):
        copy = CopyKind(o.work.copy) if o.work.kind == OpKind.COPY else None
        kernel = o.work.kind in (OpKind.KERNEL, OpKind.COLLECTIVE)
        number = len(ops) + 1
        ops.append(
            {
                "id": number,
                "gpuId": o.device,
                "queueId": o.stream,
                "start": BOOT + o.start,
                "end": BOOT + o.end,
                "description_id": strings(o.work.name if kernel else ""),
                "opType_id": strings(types[o.work.kind] if copy is None else ways.get(copy, "CopyDeviceToDevice")),
            }
        )
        api = by_call.get((o.process, o.correlation))
        if api is None:
            continue
        links.append({"id": number, "api_id": api, "op_id": number})
        asked: dict[str, object] = {"api_ptr_id": api}
        if copy is not None:
            copies.append(asked | {"size": o.work.bytes, "kind": hip_kind.get(copy, 3), "pinned": 0, "stream": ""})
        elif kernel:
            kernels.append(
                asked
                | {"kernelName_id": strings(o.work.name), "groupSegmentSize": o.work.shared, "stream": ""}
                | {f"grid{a}": n for a, n in zip("XYZ", o.work.grid, strict=True)}
                | {f"workgroup{a}": n for a, n in zip("XYZ", o.work.block, strict=True)}
            )
    tables: dict[str, Rows] = {
        "rocpd_metadata": [{"tag": "schema_version", "value": "2"}],
        "rocpd_api": calls,
        "rocpd_op": ops,
        "rocpd_api_ops": links,
        "rocpd_kernelapi": kernels,
        "rocpd_copyapi": copies,
        "rocpd_monitor": [{"deviceId": 0, "monitorType": "sclk", "start": BOOT, "end": BOOT + 1, "value": "1700"}],
        "rocpd_string": [{"id": i, "string": t} for t, i in strings.ids.items()],
    }
    empty = {"rocpd_op": "id start end", "rocpd_api": "id start end", "rocpd_api_ops": "api_id op_id"}
    kept = {t: rows for t, rows in tables.items() if rows or t in empty}
    return make(path, kept, empty)


def rocprofv3_object(run: Run) -> dict[str, object]:
    """The JSON of a run, one element a process."""
    program, recorded = run.program, run.recorded
    tids = thread_ids(run)
    api, copy_names = _Strings(), list(dict.fromkeys(DIRECTION.values()))
    symbols = _Strings()
    made = []
    for p, (pid, name) in enumerate(program.processes):
        messages: Rows = []

        def record(kind: int, operation: int, thread: int, start: int, end: int, correlation: int) -> dict[str, object]:
            return {
                "kind": kind,
                "operation": operation,
                "thread_id": tids[thread],
                "correlation_id": {"internal": correlation, "external": 0},
                "start_timestamp": BOOT + start,
                "end_timestamp": BOOT + end,
            }

        threads = {i for i, s in enumerate(program.threads) if s.process == p}
        calls = [
            record(1, api(hip(c.name)) - 1, c.thread, c.start, c.end, c.correlation)
            for c in recorded.calls
            if c.thread in threads
        ]
        marks = []
        for i, r in enumerate(r for r in recorded.ranges if r.thread in threads):
            end = run.end_ns + AFTER if r.end == NONE else r.end
            marks.append(record(2, 0, r.thread, r.start, end, 10**6 + i))
            messages.append({"key": 10**6 + i, "value": r.name})
        kernels: Rows = []
        copies: Rows = []
        for o in whole_ops(run):
            if o.process != p:
                continue
            base = record(3, 0, 0, o.start, o.end, o.correlation) | {"stream_id": {"handle": o.stream}}
            agent = {"handle": 100 + o.device}
            if o.work.kind == OpKind.COPY:
                way = CopyKind(o.work.copy)
                base["kind"], base["operation"] = 4, copy_names.index(DIRECTION[way])
                host = {"handle": 1}
                peer = {"handle": 101 - o.device} if way == CopyKind.PTOP else agent
                copies.append(
                    base
                    | {
                        "dst_agent_id": host if way == CopyKind.DTOH else peer,
                        "src_agent_id": host if way == CopyKind.HTOD else agent,
                        "bytes": o.work.bytes,
                    }
                )
                continue
            kernel = FILL if o.work.kind == OpKind.MEMSET else o.work.name
            shapes = {
                "workgroup_size": dict(zip("xyz", o.work.block, strict=True)),
                "grid_size": {a: n * max(b, 1) for a, n, b in zip("xyz", o.work.grid, o.work.block, strict=True)},
            }
            kernels.append(
                base
                | {
                    "dispatch_info": {
                        "agent_id": agent,
                        "queue_id": {"handle": 16},
                        "kernel_id": symbols(kernel),
                        "group_segment_size": o.work.shared,
                        **shapes,
                    }
                }
            )
        made.append(
            {
                "metadata": {
                    "node": {"hostname": "box"},
                    "pid": pid,
                    "init_time": BOOT,
                    "fini_time": BOOT + run.end_ns + AFTER,
                    "command": [f"/home/someone/{name}", SECRET],
                },
                "agents": [
                    {"id": {"handle": 1}, "type": 1, "name": "host"},
                    *(
                        {
                            "id": {"handle": 100 + i},
                            "type": 2,
                            "logical_node_type_id": i,
                            "name": "gfx942",
                            "product_name": device,
                            "cu_count": 304,
                        }
                        for i, device in enumerate(program.devices)
                    ),
                ],
                "strings": {"marker_api": messages},
                "buffer_records": {
                    "kernel_dispatch": kernels,
                    "hip_api": calls,
                    "marker_api": marks,
                    "memory_copy": copies,
                },
            }
        )
    kinds = [
        {"kind": "NONE", "operations": []},
        {"kind": "HIP_RUNTIME_API_EXT", "operations": list(api.ids)},
        {"kind": "MARKER_CORE_RANGE_API", "operations": ["roctxThreadRangeA"]},
        {"kind": "KERNEL_DISPATCH", "operations": ["KERNEL_DISPATCH_COMPLETE"]},
        {"kind": "MEMORY_COPY", "operations": [f"MEMORY_COPY_{n}" for n in copy_names]},
    ]
    for one in made:
        one["strings"] |= {"buffer_records": kinds}  # type: ignore[operator]
        one["kernel_symbols"] = [
            {"kernel_id": i, "formatted_kernel_name": n, "arch_vgpr_count": 32} for n, i in symbols.ids.items()
        ]
    return {"rocprofiler-sdk-tool": made}


def write_rocprofv3_json(run: Run, path: Path) -> Path:
    path.write_text(json.dumps(rocprofv3_object(run)), encoding="utf-8")
    return path


def write_rocprofv1(run: Run, path: Path, *, hygon: bool = False) -> Path:
    """``hygon``: as hipprof names its columns; names of calls are ids. One process: the index is that of the file."""
    program, recorded = run.program, run.recorded
    tids = thread_ids(run)
    pids = [pid for pid, _ in program.processes]
    dev, queue, index = ("dev_id", "queue_id", "_Index") if hygon else ("dev-id", "queue-id", "Index")
    strings = _Strings()
    calls: Rows = [
        {
            "BeginNs": BOOT + c.start,
            "EndNs": BOOT + c.end,
            "pid": pids[program.threads[c.thread].process],
            "tid": tids[c.thread],
            "Name": strings(hip(c.name)) if hygon else hip(c.name),
            "args": SECRET,
            index: c.correlation,
        }
        for c in recorded.calls
    ]

    def op(o: Op) -> dict[str, object]:
        return {
            "BeginNs": BOOT + o.start,
            "EndNs": BOOT + o.end,
            dev: o.device,
            queue: f"queue {o.stream}" if hygon else o.stream,
            "pid": pids[o.process],
            "tid": tids[0],
            index: o.correlation,
        }

    ops = whole_ops(run)
    kernels = [
        op(o) | {"Name": FILL if o.work.kind == OpKind.MEMSET else o.work.name}
        for o in ops
        if o.work.kind != OpKind.COPY
    ]
    copies = [op(o) | _copy_name(o, hygon) for o in ops if o.work.kind == OpKind.COPY]
    names = {p: [{"PID": p, "STR_ID": i, "STR_NAME": t} for t, i in strings.ids.items()] for p in pids}
    tables: dict[str, Rows] = {"HIP": calls, "OPS": kernels, "COPY": copies}
    if hygon:
        tables["STR_TABLE"] = [row for rows in names.values() for row in rows]
    empty = f"BeginNs EndNs {dev} {queue} Name pid tid {index}"
    return make(path, tables, dict.fromkeys(("HIP", "OPS", "COPY"), empty))


def _copy_name(o: Op, hygon: bool) -> dict[str, object]:
    if hygon:
        return {"Kind": {CopyKind.HTOD: 1, CopyKind.DTOH: 2}.get(CopyKind(o.work.copy), 3)}
    words = "".join(w.capitalize() for w in DIRECTION[CopyKind(o.work.copy)].split("_"))
    return {"Name": f"Copy{words}"}


def all_texts(value: object) -> Iterator[str]:
    """Every text in a tree of lists and dictionaries."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from all_texts(k)
            yield from all_texts(v)
    elif isinstance(value, list | tuple):
        for v in value:
            yield from all_texts(v)
