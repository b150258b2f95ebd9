"""Event tables of a Nsight Systems export -> the columns of the event model.

Times are ns on the session's axis. The rows of an export are in no particular order (release notes of 2025.6): all
tables are sorted here. Values of enumerations are those of CUPTI (cupti_activity.h) and of the ENUM_ tables that some
exports carry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scopedown.read.nsys_tables import MISSING, Actors, Database, Texts
from scopedown.trace.model import (
    NONE,
    Codes,
    CopyKind,
    DeviceOps,
    EventRecords,
    HostEvents,
    HostKind,
    Ints,
    MemKind,
    Names,
    OpKind,
    Scheduling,
    StackSamples,
    SyncRecords,
    empty_host,
    empty_ops,
)
from scopedown.trace.names import OVERHEAD_TYPES, clean_api, is_collective, short_kernel_name

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSETS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
API = "CUPTI_ACTIVITY_KIND_RUNTIME"
SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
EVENTS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
OVERHEAD = "CUPTI_ACTIVITY_KIND_OVERHEAD"
#: Calls into libraries and MPI, where they were traced: host work with a name.
LIBRARIES = (
    "CUBLAS_EVENTS",
    "CUDNN_EVENTS",
    "MPI_P2P_EVENTS",
    "MPI_COLLECTIVES_EVENTS",
    "MPI_START_WAIT_EVENTS",
    "MPI_OTHER_EVENTS",
    "UCP_EVENTS",
)

# ENUM_NSYS_EVENT_TYPE: NVTX through the library, and imported from text files.
_PUSH_POP, _START_END, _MARK = (59, 70), (60, 71), (34, 65)
_DOMAIN_CREATE = 75
#: Domain in which nsys 2023.4 stores its Python samples as marks without text.
_PYTHON_SAMPLES = "Python Backtrace"

#: CUPTI_SYNCHRONIZATION_INVALID_VALUE
_NO_ID = 0xFFFFFFFF

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


@dataclass
class Events:
    """Reads all event tables of one export; ``odd`` counts what was strange, by a phrase that ends in the count's
    noun."""

    db: Database
    names: Names = field(default_factory=Names)
    odd: dict[str, int] = field(default_factory=dict)
    domains: int = 0
    """NVTX domains that were created."""

    def __post_init__(self) -> None:
        self.actors = Actors(self.db)
        self.texts = Texts(self.db, self.names)

    def _note(self, what: str, count: int) -> None:
        if count:
            self.odd[what] = self.odd.get(what, 0) + count

    def _timed(self, table: str, defaults: Mapping[str, int]) -> dict[str, Ints]:
        """Rows with a start and an end; rows without are left out, ends before the start are set to it."""
        rows = self.db.ints(table, {"start": MISSING, "end": MISSING} | dict(defaults))
        return self._valid(table, rows)

    def _valid(self, table: str, rows: dict[str, Ints]) -> dict[str, Ints]:
        whole = (rows["start"] != MISSING) & (rows["end"] != MISSING)
        if not whole.all():
            self._note(f"rows of {table} without start or end were left out", int((~whole).sum()))
            rows = {c: v[whole] for c, v in rows.items()}
        backward = rows["end"] < rows["start"]
        if backward.any():
            self._note(f"rows of {table} end before they start: taken as instants", int(backward.sum()))
            rows["end"] = np.maximum(rows["end"], rows["start"])
        return rows

    # Device

    def ops(self, device_of: Mapping[tuple[int, int], int]) -> DeviceOps:
        """Kernels, copies, memsets and whole graphs. ``device_of`` maps (process id, CUDA ordinal) to the device, for
        processes that see the devices under other numbers."""
        parts = [p for p in (self._kernels(), self._copies(), self._memsets(), self._graphs()) if len(p["start"])]
        if not parts:
            return empty_ops()
        col = {c: np.concatenate([p[c] for p in parts]) for c in parts[0]}
        process = self._processes(col["globalPid"])
        ordinals = col["deviceId"]
        device = ordinals.copy()
        if device_of:
            pids = np.array([p.pid for p in self.actors.processes] or [0], np.int64)[process]
            for (pid, ordinal), real in device_of.items():
                if ordinal != real:
                    device[(pids == pid) & (ordinals == ordinal)] = real
        stream, correlation = col["streamId"], _ids(col["correlationId"])
        order = np.lexsort((correlation, stream, device, col["end"], col["start"]))
        nodes = _ids(col["graphNodeId"])
        return DeviceOps(
            start=col["start"][order],
            end=col["end"][order],
            kind=col["kind"][order].astype(np.int8),
            name=col["name"][order].astype(np.int32),
            device=device[order].astype(np.int32),
            stream=stream[order],
            process=process[order],
            correlation=correlation[order],
            context=col["contextId"][order],
            graph_node=nodes[order] if (nodes != NONE).any() else None,
            bytes=col["bytes"][order],
            copy_kind=col["copyKind"][order].astype(np.int8),
            src_kind=col["srcKind"][order].astype(np.int8),
            dst_kind=col["dstKind"][order].astype(np.int8),
            grid=np.stack([col[f"grid{a}"] for a in "XYZ"], axis=1)[order],
            block=np.stack([col[f"block{a}"] for a in "XYZ"], axis=1)[order],
            registers=col["registersPerThread"][order],
            shared_memory=(col["staticSharedMemory"] + col["dynamicSharedMemory"])[order],
        )

    def _processes(self, global_pids: Ints) -> Codes:
        process = self.actors.of_pids(global_pids)
        unknown = process == NONE
        if unknown.any():
            process[unknown] = self.actors.only_process()
        return process

    def _op_rows(self, table: str, more: Mapping[str, int]) -> dict[str, Ints]:
        common = {
            "deviceId": 0,
            "contextId": NONE,
            "streamId": NONE,
            "correlationId": NONE,
            "globalPid": MISSING,
            "graphNodeId": NONE,
        }
        rows = self._timed(table, common | dict(more))
        n = len(rows["start"])
        for c in ("bytes", "copyKind", "srcKind", "dstKind"):
            rows.setdefault(c, np.full(n, NONE, np.int64))
        shape = [f"{s}{a}" for s in ("grid", "block") for a in "XYZ"]
        for c in (*shape, "registersPerThread", "staticSharedMemory", "dynamicSharedMemory"):
            rows.setdefault(c, np.zeros(n, np.int64))
        return rows

    def _finish(self, rows: dict[str, Ints], kind: Ints, name: Ints, drop: Sequence[str] = ()) -> dict[str, Ints]:
        rows = {c: v for c, v in rows.items() if c not in drop}
        return rows | {"kind": kind, "name": name}

    def _kernels(self) -> dict[str, Ints]:
        shape = {f"{s}{a}": 0 for s in ("grid", "block") for a in "XYZ"}
        more = shape | {"registersPerThread": 0, "staticSharedMemory": 0, "dynamicSharedMemory": 0}
        rows = self._op_rows(KERNELS, more | {"demangledName": NONE, "shortName": NONE})
        known = rows["demangledName"] != NONE
        ids = np.where(known, rows["demangledName"], rows["shortName"])
        name = self.texts.codes(ids, "unnamed kernel", short_kernel_name)
        codes, inverse = np.unique(name, return_inverse=True)
        kinds = [OpKind.COLLECTIVE if is_collective(self.names.values[c]) else OpKind.KERNEL for c in codes.tolist()]
        kind = np.array(kinds, np.int64)[inverse]
        return self._finish(rows, kind, name.astype(np.int64), ("demangledName", "shortName"))

    def _copies(self) -> dict[str, Ints]:
        rows = self._op_rows(COPIES, {"bytes": NONE, "copyKind": 0, "srcKind": NONE, "dstKind": NONE})
        kind = rows["copyKind"] = np.where(np.isin(rows["copyKind"], list(CopyKind)), rows["copyKind"], 0)
        for c in ("srcKind", "dstKind"):
            rows[c] = np.where(np.isin(rows[c], list(MemKind)), rows[c], NONE)
        host = np.where(
            np.isin(kind, _FROM_HOST), rows["srcKind"], np.where(np.isin(kind, _TO_HOST), rows["dstKind"], NONE)
        )
        pairs, inverse = np.unique(kind * 256 + host + 1, return_inverse=True)
        codes = [
            self.names.code(f"copy {_DIRECTION.get(CopyKind(k), 'unknown')}{_MEMORY.get(m, '')}")
            for k, m in ((p // 256, p % 256 - 1) for p in pairs.tolist())
        ]
        return self._finish(rows, np.full(len(kind), OpKind.COPY, np.int64), np.array(codes, np.int64)[inverse])

    def _memsets(self) -> dict[str, Ints]:
        rows = self._op_rows(MEMSETS, {"bytes": NONE, "memKind": NONE})
        rows["dstKind"] = np.where(np.isin(rows["memKind"], list(MemKind)), rows["memKind"], NONE)
        n = len(rows["start"])
        name = np.full(n, self.names.code("memset") if n else NONE, np.int64)
        return self._finish(rows, np.full(n, OpKind.MEMSET, np.int64), name, ("memKind",))

    def _graphs(self) -> dict[str, Ints]:
        rows = self._op_rows(GRAPHS, {"graphId": NONE, "graphExecId": NONE})
        ids, inverse = np.unique(rows["graphId"], return_inverse=True)
        codes = [self.names.code("CUDA graph" if i == NONE else f"CUDA graph {i}") for i in ids.tolist()]
        kind = np.full(len(rows["start"]), OpKind.GRAPH, np.int64)
        return self._finish(rows, kind, np.array(codes, np.int64)[inverse], ("graphId", "graphExecId"))

    # Host

    def host(self) -> HostEvents:
        """API calls, NVTX, OS calls, library calls and overhead. The end of a range that was still open is MISSING:
        see ``close_open``."""
        parts = [self._api(), self._nvtx(), self._os(), *self._overheads(), *(self._library(t) for t in LIBRARIES)]
        parts = [p for p in parts if len(p)]
        if not parts:
            return empty_host()
        columns = [[getattr(p, n) for p in parts] for n, _ in parts[0].columns()]
        return HostEvents(*(np.concatenate(c) for c in columns))

    def _host_rows(self, rows: Mapping[str, Ints], kind: HostKind | Ints, name: Codes) -> HostEvents:
        n = len(rows["start"])
        thread, process = self.actors.of_tids(rows["globalTid"])
        unknown = process == NONE
        if unknown.any():
            process[unknown] = self.actors.only_process()
        kinds = np.full(n, kind, np.int8) if isinstance(kind, HostKind) else kind.astype(np.int8)
        correlation = _ids(rows["correlationId"]) if "correlationId" in rows else np.full(n, NONE, np.int64)
        return HostEvents(rows["start"], rows["end"], kinds, name, thread, process, correlation)

    def _api(self) -> HostEvents:
        rows = self._timed(API, {"globalTid": MISSING, "correlationId": NONE, "nameId": NONE})
        return self._host_rows(rows, HostKind.API, self.texts.codes(rows["nameId"], "unnamed call", clean_api))

    def _os(self) -> HostEvents:
        rows = self._timed("OSRT_API", {"globalTid": MISSING, "nameId": NONE, "nestingLevel": NONE})
        if self.db.has("OSRT_API", "nestingLevel"):
            # Markers of a thread's start, with start equal to end.
            real = rows["nestingLevel"] != NONE
            rows = {c: v[real] for c, v in rows.items()}
        return self._host_rows(rows, HostKind.OS, self.texts.codes(rows["nameId"], "unnamed call"))

    def _library(self, table: str) -> HostEvents:
        key = "nameId" if self.db.has(table, "nameId") else "textId"
        rows = self._timed(table, {"globalTid": MISSING, key: NONE})
        return self._host_rows(rows, HostKind.OP, self.texts.codes(rows[key], "unnamed call"))

    def _overheads(self) -> list[HostEvents]:
        found = []
        for table, correlated in ((OVERHEAD, True), ("PROFILER_OVERHEAD", False)):
            rows = self._timed(
                table, {"globalTid": MISSING, "nameId": NONE, "overheadType": NONE, "correlationId": NONE}
            )
            name = self.texts.codes(rows["nameId"], "profiler overhead")
            if correlated:
                for value in np.unique(rows["overheadType"]).tolist():
                    if value in OVERHEAD_TYPES:
                        name[rows["overheadType"] == value] = self.names.code(OVERHEAD_TYPES[value])
            else:
                del rows["correlationId"]
            found.append(self._host_rows(rows, HostKind.OVERHEAD, name))
        return found

    def _nvtx(self) -> HostEvents:
        table = "NVTX_EVENTS"
        defaults = {"start": MISSING, "end": MISSING, "eventType": _PUSH_POP[0], "globalTid": MISSING}
        rows, inline = self.db.ints_and_text(table, defaults | {"textId": NONE, "domainId": 0}, "text", self.names.code)
        kind = np.full(len(inline), NONE, np.int64)
        for types, meaning in (
            (_PUSH_POP, HostKind.ANNOTATION),
            (_START_END, HostKind.RANGE),
            (_MARK, HostKind.MARK),
        ):
            kind[np.isin(rows["eventType"], types)] = meaning
        texts = self.texts.codes(rows["textId"], "unnamed range")
        named = (inline != NONE) | (rows["textId"] != NONE)
        name = np.where(inline != NONE, inline, texts).astype(np.int32)
        keep = (kind != NONE) & (rows["start"] != MISSING)
        self._note(
            f"rows of {table} without start were left out", int(((kind != NONE) & (rows["start"] == MISSING)).sum())
        )
        # Domain ids are the process's own.
        created = rows["eventType"] == _DOMAIN_CREATE
        self.domains = int(created.sum())
        process = rows["globalTid"] & ~Actors.THREAD_MASK
        for i in np.flatnonzero(created).tolist():
            if self.names.values[name[i]] == _PYTHON_SAMPLES:
                same = (process == process[i]) & (rows["domainId"] == rows["domainId"][i])
                samples = keep & same & (kind == HostKind.MARK) & ~named
                self._note("Python samples arrived as marks without stacks: left out", int(samples.sum()))
                keep &= ~samples
        rows = {c: v[keep] for c, v in rows.items()}
        kind, name = kind[keep], name[keep]
        rows["end"] = np.where(kind == HostKind.MARK, rows["start"], rows["end"])
        backward = (rows["end"] != MISSING) & (rows["end"] < rows["start"])
        self._note(f"rows of {table} end before they start: taken as instants", int(backward.sum()))
        rows["end"] = np.where(backward, rows["start"], rows["end"])
        return self._host_rows(rows, kind, name)

    def close_open(self, host: HostEvents, end: int) -> HostEvents:
        """Ranges that were open when the capture ended get its end; then the rows are sorted."""
        still = host.end == MISSING
        self._note("ranges were still open at the end of the capture", int(still.sum()))
        ends = np.where(still, np.maximum(end, host.start), host.end)
        order = np.lexsort((-ends, host.start))
        columns = {n: v for n, v in host.columns() if n != "end"}
        return HostEvents(end=ends[order], **{n: v[order] for n, v in columns.items()})

    # Dependencies and samples: None where the table is absent or empty, since 2026.2 writes empty tables for what it
    # did not record.

    def syncs(self) -> SyncRecords | None:
        defaults = dict.fromkeys(("correlationId", "deviceId", "contextId", "streamId", "eventId"), NONE)
        rows = self._timed(SYNCS, defaults | {"globalPid": MISSING})
        if not len(rows["start"]):
            return None
        order = np.lexsort((rows["end"], rows["start"]))
        rows = {c: v[order] for c, v in rows.items()}
        return SyncRecords(
            start=rows["start"],
            end=rows["end"],
            process=self._processes(rows["globalPid"]),
            correlation=_ids(rows["correlationId"]),
            device=_without(rows["deviceId"]).astype(np.int32),
            context=_without(rows["contextId"]),
            stream=_without(rows["streamId"]),
            event=_without(rows["eventId"]),
        )

    def events(self) -> EventRecords | None:
        defaults = dict.fromkeys(("correlationId", "deviceId", "contextId", "streamId", "eventId"), NONE)
        rows = self.db.ints(EVENTS, defaults | {"globalPid": MISSING})
        if not len(rows["globalPid"]):
            return None
        return EventRecords(
            process=self._processes(rows["globalPid"]),
            correlation=_ids(rows["correlationId"]),
            device=_without(rows["deviceId"]).astype(np.int32),
            context=_without(rows["contextId"]),
            stream=_without(rows["streamId"]),
            event=_without(rows["eventId"]),
        )

    def scheduling(self) -> Scheduling | None:
        if not self.db.has("SCHED_EVENTS", "start", "isSchedIn", "globalTid"):
            return None
        rows = self.db.ints("SCHED_EVENTS", {"start": MISSING, "isSchedIn": 0, "globalTid": MISSING})
        order = np.argsort(rows["start"], kind="stable")
        order = order[(rows["start"] != MISSING)[order]]
        if not len(order):
            return None
        thread, _ = self.actors.of_tids(rows["globalTid"][order])
        return Scheduling(rows["start"][order], thread, rows["isSchedIn"][order] != 0)

    def samples(self) -> StackSamples | None:
        if not self.db.has("COMPOSITE_EVENTS", "id", "start", "globalTid"):
            return None
        rows = self.db.ints("COMPOSITE_EVENTS", {"id": NONE, "start": MISSING, "globalTid": MISSING})
        order = np.argsort(rows["start"], kind="stable")
        order = order[(rows["start"] != MISSING)[order]]
        if not len(order):
            return None
        thread, _ = self.actors.of_tids(rows["globalTid"][order])
        return StackSamples(rows["start"][order], thread, self._symbols(rows["id"][order]))

    def _symbols(self, ids: Ints) -> Codes:
        """The innermost resolved symbol of each call chain; NONE where no frame was resolved."""
        table = "SAMPLING_CALLCHAINS"
        unresolved = np.full(len(ids), NONE, np.int32)
        if not self.db.has(table, "id", "symbol", "stackDepth"):
            return unresolved
        frames = self.db.ints(table, {"id": NONE, "symbol": NONE, "stackDepth": 0, "unresolved": 0})
        keep = (frames["unresolved"] == 0) & (frames["symbol"] != NONE)
        frames = {c: v[keep] for c, v in frames.items()}
        order = np.lexsort((frames["stackDepth"], frames["id"]))
        chains, first = np.unique(frames["id"][order], return_index=True)
        if not len(chains):
            return unresolved
        symbol = self.texts.codes(frames["symbol"][order][first], "unnamed function")
        at = np.minimum(np.searchsorted(chains, ids), len(chains) - 1)
        return np.where(chains[at] == ids, symbol[at], NONE).astype(np.int32)


def _ids(values: Ints) -> Ints:
    """Ids of which 0 means none (correlation ids, graph nodes)."""
    return np.where(values == 0, NONE, values)


def _without(values: Ints) -> Ints:
    return np.where(values == _NO_ID, NONE, values)
