"""Host tables of a Nsight Systems export: API, NVTX, OS and library calls, overheads, scheduling, call stacks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scopedown.read import limits
from scopedown.read.nsys_rows import Actors, Export, ids
from scopedown.read.nsys_tables import MISSING
from scopedown.trace import tally
from scopedown.trace.model import (
    NONE,
    Codes,
    HostEvents,
    HostKind,
    Ints,
    Scheduling,
    StackSamples,
    empty_host,
)
from scopedown.trace.names import OVERHEAD_TYPES, clean_api

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


def read_host(export: Export) -> HostEvents:
    """API calls, NVTX, OS calls, library calls and overhead. The end of a range that was still open is MISSING:
    see ``close_open``."""
    parts = [_api(export), _nvtx(export), _os(export), *_overheads(export), *(_library(export, t) for t in LIBRARIES)]
    parts = [p for p in parts if len(p)]
    if not parts:
        return empty_host()
    columns = [[getattr(p, n) for p in parts] for n, _ in parts[0].columns()]
    return HostEvents(*(np.concatenate(c) for c in columns))


def _host_rows(export: Export, rows: Mapping[str, Ints], kind: HostKind | Ints, name: Codes) -> HostEvents:
    n = len(rows["start"])
    thread, process = export.actors.of_tids(rows["globalTid"])
    unknown = process == NONE
    if unknown.any():
        process[unknown] = export.actors.only_process()
    kinds = np.full(n, kind, np.int8) if isinstance(kind, HostKind) else kind.astype(np.int8)
    correlation = ids(rows["correlationId"]) if "correlationId" in rows else np.full(n, NONE, np.int64)
    return HostEvents(rows["start"], rows["end"], kinds, name, thread, process, correlation)


def _api(export: Export) -> HostEvents:
    rows = export.timed("CUPTI_ACTIVITY_KIND_RUNTIME", {"globalTid": MISSING, "correlationId": NONE, "nameId": NONE})
    return _host_rows(export, rows, HostKind.API, export.texts.codes(rows["nameId"], "unnamed call", clean_api))


def _os(export: Export) -> HostEvents:
    rows = export.timed("OSRT_API", {"globalTid": MISSING, "nameId": NONE, "nestingLevel": NONE})
    if export.db.has("OSRT_API", "nestingLevel"):
        # Markers of a thread's start, with start equal to end.
        real = rows["nestingLevel"] != NONE
        rows = {c: v[real] for c, v in rows.items()}
    return _host_rows(export, rows, HostKind.OS, export.texts.codes(rows["nameId"], "unnamed call"))


def _library(export: Export, table: str) -> HostEvents:
    key = "nameId" if export.db.has(table, "nameId") else "textId"
    rows = export.timed(table, {"globalTid": MISSING, key: NONE})
    return _host_rows(export, rows, HostKind.OP, export.texts.codes(rows[key], "unnamed call"))


def _overheads(export: Export) -> list[HostEvents]:
    found = []
    for table, correlated in (("CUPTI_ACTIVITY_KIND_OVERHEAD", True), ("PROFILER_OVERHEAD", False)):
        rows = export.timed(table, {"globalTid": MISSING, "nameId": NONE, "overheadType": NONE, "correlationId": NONE})
        name = export.texts.codes(rows["nameId"], "profiler overhead")
        if correlated:
            for value in np.unique(rows["overheadType"]).tolist():
                if value in OVERHEAD_TYPES:
                    name[rows["overheadType"] == value] = export.names.code(OVERHEAD_TYPES[value])
        else:
            del rows["correlationId"]
        found.append(_host_rows(export, rows, HostKind.OVERHEAD, name))
    return found


def _nvtx(export: Export) -> HostEvents:
    table = "NVTX_EVENTS"
    defaults = {"start": MISSING, "end": MISSING, "eventType": _PUSH_POP[0], "globalTid": MISSING}
    rows, inline = export.db.ints_and_text(table, defaults | {"textId": NONE, "domainId": 0}, "text", export.names.code)
    kind = np.full(len(inline), NONE, np.int64)
    for types, meaning in (
        (_PUSH_POP, HostKind.ANNOTATION),
        (_START_END, HostKind.RANGE),
        (_MARK, HostKind.MARK),
    ):
        kind[np.isin(rows["eventType"], types)] = meaning
    texts = export.texts.codes(rows["textId"], "unnamed range")
    named = (inline != NONE) | (rows["textId"] != NONE)
    name = np.where(inline != NONE, inline, texts).astype(np.int32)
    keep = (kind != NONE) & (rows["start"] != MISSING)
    export.note(
        f"rows of {table} without start were left out", int(((kind != NONE) & (rows["start"] == MISSING)).sum())
    )
    open_ = rows["end"] == MISSING
    real = limits.lasting(rows["start"], np.where(open_, rows["start"], rows["end"]))
    export.note(limits.NO_TIME.format(table), int((keep & ~real).sum()))
    keep &= real
    # Domain ids are the process's own.
    created = rows["eventType"] == _DOMAIN_CREATE
    export.domains = int(created.sum())
    process = rows["globalTid"] & ~Actors.THREAD_MASK
    for i in np.flatnonzero(created).tolist():
        if export.names.values[name[i]] == _PYTHON_SAMPLES:
            same = (process == process[i]) & (rows["domainId"] == rows["domainId"][i])
            samples = keep & same & (kind == HostKind.MARK) & ~named
            export.note("Python samples arrived as marks without stacks: left out", int(samples.sum()))
            keep &= ~samples
    rows = {c: v[keep] for c, v in rows.items()}
    kind, name = kind[keep], name[keep]
    rows["end"] = np.where(kind == HostKind.MARK, rows["start"], rows["end"])
    backward = (rows["end"] != MISSING) & (rows["end"] < rows["start"])
    export.note(f"rows of {table} end before they start: taken as instants", int(backward.sum()))
    rows["end"] = np.where(backward, rows["start"], rows["end"])
    return _host_rows(export, rows, kind, name)


def close_open(export: Export, host: HostEvents, end: int) -> HostEvents:
    """Ranges that were open when the capture ended get its end; then the rows are sorted."""
    still = host.end == MISSING
    export.note("ranges were still open at the end of the capture", int(still.sum()))
    ends = np.where(still, np.maximum(end, host.start), host.end)
    order = tally.order(host.start, -ends)
    columns = {n: v for n, v in host.columns() if n != "end"}
    return HostEvents(end=ends[order], **{n: v[order] for n, v in columns.items()})


def _instants(export: Export, table: str, rows: dict[str, Ints]) -> dict[str, Ints]:
    """Rows with a time, which is one that a clock shows."""
    given = rows["start"] != MISSING
    rows = {c: v[given] for c, v in rows.items()}
    return export.where(rows, limits.shown(rows["start"]), limits.NO_TIME.format(table))


def read_scheduling(export: Export) -> Scheduling | None:
    if not export.db.has("SCHED_EVENTS", "start", "isSchedIn", "globalTid"):
        return None
    rows = export.db.ints("SCHED_EVENTS", {"start": MISSING, "isSchedIn": 0, "globalTid": MISSING})
    rows = _instants(export, "SCHED_EVENTS", rows)
    order = np.argsort(rows["start"], kind="stable")
    if not len(order):
        return None
    thread, _ = export.actors.of_tids(rows["globalTid"][order])
    return Scheduling(rows["start"][order], thread, rows["isSchedIn"][order] != 0)


def read_samples(export: Export) -> StackSamples | None:
    if not export.db.has("COMPOSITE_EVENTS", "id", "start", "globalTid"):
        return None
    rows = export.db.ints("COMPOSITE_EVENTS", {"id": NONE, "start": MISSING, "globalTid": MISSING})
    rows = _instants(export, "COMPOSITE_EVENTS", rows)
    order = np.argsort(rows["start"], kind="stable")
    if not len(order):
        return None
    thread, _ = export.actors.of_tids(rows["globalTid"][order])
    return StackSamples(rows["start"][order], thread, _symbols(export, rows["id"][order]))


def _symbols(export: Export, chain_ids: Ints) -> Codes:
    """The innermost resolved symbol of each call chain; NONE where no frame was resolved."""
    table = "SAMPLING_CALLCHAINS"
    unresolved = np.full(len(chain_ids), NONE, np.int32)
    if not export.db.has(table, "id", "symbol", "stackDepth"):
        return unresolved
    frames = export.db.ints(table, {"id": NONE, "symbol": NONE, "stackDepth": 0, "unresolved": 0})
    keep = (frames["unresolved"] == 0) & (frames["symbol"] != NONE)
    frames = {c: v[keep] for c, v in frames.items()}
    order = np.lexsort((frames["stackDepth"], frames["id"]))
    chains, first = np.unique(frames["id"][order], return_index=True)
    if not len(chains):
        return unresolved
    symbol = export.texts.codes(frames["symbol"][order][first], "unnamed function")
    at = np.minimum(np.searchsorted(chains, chain_ids), len(chains) - 1)
    return np.where(chains[at] == chain_ids, symbol[at], NONE).astype(np.int32)
