"""Device tables of a Nsight Systems export: kernels, copies, memsets, whole graphs, synchronisations, event records.

Values of enumerations are those of CUPTI (cupti_activity.h) and of the ENUM_ tables that some exports carry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scopedown.read import limits
from scopedown.read.nsys_rows import Export, ids, ids_or_none
from scopedown.read.nsys_tables import MISSING
from scopedown.trace import tally
from scopedown.trace.model import (
    NONE,
    CopyKind,
    DeviceOps,
    EventRecords,
    Ints,
    MemKind,
    OpKind,
    SyncRecords,
    empty_ops,
)
from scopedown.trace.names import is_collective, short_kernel_name

_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
_MEMSETS = "CUPTI_ACTIVITY_KIND_MEMSET"
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
_EVENTS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"

_SHAPE = tuple(f"{what}{axis}" for what in ("grid", "block") for axis in "XYZ")
_RESOURCES = ("registersPerThread", "staticSharedMemory", "dynamicSharedMemory")
_WHERE = ("correlationId", "deviceId", "contextId", "streamId", "eventId")

_DIRECTION = {
    CopyKind.HTOD: "HtoD",
    CopyKind.DTOH: "DtoH",
    CopyKind.HTOA: "HtoA",
    CopyKind.ATOH: "AtoH",
    CopyKind.ATOA: "AtoA",
    CopyKind.ATOD: "AtoD",
    CopyKind.DTOA: "DtoA",
    CopyKind.DTOD: "DtoD",
    CopyKind.HTOH: "HtoH",
    CopyKind.PTOP: "PtoP",
    CopyKind.UVM_HTOD: "HtoD unified memory",
    CopyKind.UVM_DTOH: "DtoH unified memory",
    CopyKind.UVM_DTOD: "DtoD unified memory",
}
_MEMORY = {MemKind.PAGEABLE: " pageable", MemKind.PINNED: " pinned", MemKind.MANAGED: " managed"}
_FROM_HOST = (CopyKind.HTOD, CopyKind.HTOA, CopyKind.HTOH)
_TO_HOST = (CopyKind.DTOH, CopyKind.ATOH)


def read_ops(export: Export, device_of: Mapping[tuple[int, int], int]) -> DeviceOps:
    """Kernels, copies, memsets and whole graphs. ``device_of`` maps (process id, CUDA ordinal) to the device, for
    processes that see the devices under other numbers."""
    parts = [p for p in (_kernels(export), _copies(export), _memsets(export), _graphs(export)) if len(p["start"])]
    if not parts:
        return empty_ops()
    # A column of all parts at a time, which then let go of it: a million ops have twenty columns.
    col = {c: np.concatenate([p.pop(c) for p in parts]) for c in list(parts[0])}
    process = export.processes(col["globalPid"])
    ordinals = col["deviceId"]
    device = ordinals.copy()
    if device_of:
        pids = np.array([p.pid for p in export.actors.processes] or [0], np.int64)[process]
        for (pid, ordinal), real in device_of.items():
            if ordinal != real:
                device[(pids == pid) & (ordinals == ordinal)] = real
    stream, correlation = col["streamId"], ids(col["correlationId"])
    order = tally.order(col["start"], col["end"], device, stream, correlation)
    nodes = ids(col.pop("graphNodeId"))
    return DeviceOps(
        start=col.pop("start")[order],
        end=col.pop("end")[order],
        kind=col.pop("kind")[order].astype(np.int8),
        name=col.pop("name")[order].astype(np.int32),
        device=device[order].astype(np.int32),
        stream=stream[order],
        process=process[order],
        correlation=correlation[order],
        context=col.pop("contextId")[order],
        graph_node=nodes[order] if (nodes != NONE).any() else None,
        bytes=col.pop("bytes")[order],
        copy_kind=col.pop("copyKind")[order].astype(np.int8),
        src_kind=col.pop("srcKind")[order].astype(np.int8),
        dst_kind=col.pop("dstKind")[order].astype(np.int8),
        grid=_axes(col, "grid", order),
        block=_axes(col, "block", order),
        registers=col.pop("registersPerThread")[order],
        shared_memory=(col.pop("staticSharedMemory") + col.pop("dynamicSharedMemory"))[order],
    )


def _axes(col: dict[str, Ints], what: str, order: Ints) -> Ints:
    """Three columns as one of shape (n, 3)."""
    out = np.empty((len(order), 3), np.int64)
    for i, axis in enumerate("XYZ"):
        out[:, i] = col.pop(f"{what}{axis}")[order]
    return out


def _op_rows(export: Export, table: str, more: Mapping[str, int]) -> dict[str, Ints]:
    """Rows of one table with all columns that ops have; what the table lacks is NONE or zero."""
    common = {
        "deviceId": 0,
        "contextId": NONE,
        "streamId": NONE,
        "correlationId": NONE,
        "globalPid": MISSING,
        "graphNodeId": NONE,
    }
    rows = export.timed(table, common | dict(more))
    rows = export.where(rows, limits.known_device(rows["deviceId"]), limits.NO_DEVICE.format(table))
    n = len(rows["start"])
    for c in ("bytes", "copyKind", "srcKind", "dstKind"):
        rows.setdefault(c, np.full(n, NONE, np.int64))
    for c in (*_SHAPE, *_RESOURCES):
        rows.setdefault(c, np.zeros(n, np.int64))
    return rows


def _finish(rows: dict[str, Ints], kind: Ints, name: Ints, drop: Sequence[str] = ()) -> dict[str, Ints]:
    """The same columns for every kind of op."""
    rows = {c: v for c, v in rows.items() if c not in drop}
    return rows | {"kind": kind, "name": name}


def _kernels(export: Export) -> dict[str, Ints]:
    more = dict.fromkeys((*_SHAPE, *_RESOURCES), 0) | {"demangledName": NONE, "shortName": NONE}
    rows = _op_rows(export, _KERNELS, more)
    text = np.where(rows["demangledName"] != NONE, rows["demangledName"], rows["shortName"])
    name = export.texts.codes(text, "unnamed kernel", short_kernel_name)
    codes, inverse = tally.index(name)
    kinds = [OpKind.COLLECTIVE if is_collective(export.names.values[c]) else OpKind.KERNEL for c in codes.tolist()]
    kind = np.array(kinds, np.int64)[inverse]
    return _finish(rows, kind, name.astype(np.int64), ("demangledName", "shortName"))


def _copies(export: Export) -> dict[str, Ints]:
    rows = _op_rows(export, _COPIES, {"bytes": NONE, "copyKind": 0, "srcKind": NONE, "dstKind": NONE})
    kind = rows["copyKind"] = np.where(np.isin(rows["copyKind"], list(CopyKind)), rows["copyKind"], 0)
    for c in ("srcKind", "dstKind"):
        rows[c] = np.where(np.isin(rows[c], list(MemKind)), rows[c], NONE)
    host = np.where(
        np.isin(kind, _FROM_HOST), rows["srcKind"], np.where(np.isin(kind, _TO_HOST), rows["dstKind"], NONE)
    )
    pairs, inverse = tally.index(kind * 256 + host + 1)
    codes = [
        export.names.code(f"copy {_DIRECTION.get(CopyKind(k), 'unknown')}{_MEMORY.get(m, '')}")
        for k, m in ((p // 256, p % 256 - 1) for p in pairs.tolist())
    ]
    return _finish(rows, np.full(len(kind), OpKind.COPY, np.int64), np.array(codes, np.int64)[inverse])


def _memsets(export: Export) -> dict[str, Ints]:
    rows = _op_rows(export, _MEMSETS, {"bytes": NONE, "memKind": NONE})
    rows["dstKind"] = np.where(np.isin(rows["memKind"], list(MemKind)), rows["memKind"], NONE)
    n = len(rows["start"])
    name = np.full(n, export.names.code("memset") if n else NONE, np.int64)
    return _finish(rows, np.full(n, OpKind.MEMSET, np.int64), name, ("memKind",))


def _graphs(export: Export) -> dict[str, Ints]:
    rows = _op_rows(export, _GRAPHS, {"graphId": NONE, "graphExecId": NONE})
    graphs, inverse = np.unique(rows["graphId"], return_inverse=True)
    codes = [export.names.code("CUDA graph" if i == NONE else f"CUDA graph {i}") for i in graphs.tolist()]
    kind = np.full(len(rows["start"]), OpKind.GRAPH, np.int64)
    return _finish(rows, kind, np.array(codes, np.int64)[inverse], ("graphId", "graphExecId"))


def read_syncs(export: Export) -> SyncRecords | None:
    """None where the table is absent or empty: 2026.2 writes empty tables for what was not recorded."""
    defaults = dict.fromkeys(_WHERE, NONE)
    rows = export.timed(_SYNCS, defaults | {"globalPid": MISSING})
    rows["deviceId"] = ids_or_none(rows["deviceId"])
    rows = export.where(rows, limits.known_device(rows["deviceId"]), limits.NO_DEVICE.format(_SYNCS))
    if not len(rows["start"]):
        return None
    order = np.lexsort((rows["end"], rows["start"]))
    rows = {c: v[order] for c, v in rows.items()}
    return SyncRecords(
        start=rows["start"],
        end=rows["end"],
        process=export.processes(rows["globalPid"]),
        correlation=ids(rows["correlationId"]),
        device=rows["deviceId"].astype(np.int32),
        context=ids_or_none(rows["contextId"]),
        stream=ids_or_none(rows["streamId"]),
        event=ids_or_none(rows["eventId"]),
    )


def read_events(export: Export) -> EventRecords | None:
    """None where the table is absent or empty."""
    defaults = dict.fromkeys(_WHERE, NONE)
    rows = export.db.ints(_EVENTS, defaults | {"globalPid": MISSING})
    rows["deviceId"] = ids_or_none(rows["deviceId"])
    rows = export.where(rows, limits.known_device(rows["deviceId"]), limits.NO_DEVICE.format(_EVENTS))
    if not len(rows["globalPid"]):
        return None
    return EventRecords(
        process=export.processes(rows["globalPid"]),
        correlation=ids(rows["correlationId"]),
        device=rows["deviceId"].astype(np.int32),
        context=ids_or_none(rows["contextId"]),
        stream=ids_or_none(rows["streamId"]),
        event=ids_or_none(rows["eventId"]),
    )
