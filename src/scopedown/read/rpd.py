"""Reader of rpd databases (RocmProfileData, ``rpd_tracer``; schema 2): calls in ``rocpd_api``, device ops in
``rocpd_op``, joined by ``rocpd_api_ops``; texts in ``rocpd_string``; what a call asked for in ``rocpd_kernelapi`` and
``rocpd_copyapi``.

Ranges of roctx are calls named ``UserMarker`` whose argument is the label. The tracer's own work is recorded as calls
too (``OpTable::writeRows``). Times are ns since boot.

``python -m scopedown.read.rpd FILE`` prints what was read.
"""

from __future__ import annotations

import re
import sys
from typing import ClassVar

import numpy as np

from scopedown.read.base import Artifact, Source
from scopedown.read.nsys_tables import MAGIC, MISSING, Database
from scopedown.read.rocm import HIP_COPY_KINDS, NO_UTC, RocmDatabase, blocks, copy_kind, op_kind, tables
from scopedown.read.rows import Rows, artifact, distinct_map, hidden_home, looked_up, show
from scopedown.terms import Scope
from scopedown.trace.model import NONE, CopyKind, HostKind, Ints, MemKind, Meta, OpKind
from scopedown.trace.names import clean_api

_TOOL = "rpd_tracer"
_MARKER = "UserMarker"
_OWN = re.compile(r"::writeRows$|_activity_callback$|^rpd")
#: Packets that order work and do none.
_NO_WORK = re.compile(r"barrier|marker", re.IGNORECASE)
_AXES = "XYZ"
#: This launch states the grid in work-items, all others in blocks (hip_runtime_api.h).
_WORK_ITEMS = "hipExtModuleLaunchKernel"


class Rpd:
    kind: ClassVar[str] = "rpd"
    scope: ClassVar[Scope] = Scope.TIMELINE
    about: ClassVar[str] = "ROCm rpd database (rpd_tracer, runTracer.sh)"

    def sniff(self, source: Source) -> bool:
        found = tables(source)
        if found is None:
            return source.head.startswith(MAGIC) and b"rocpd_" in source.head
        return {"start", "end"} <= found.get("rocpd_op", frozenset()) and "rocpd_api" in found

    def read(self, source: Source) -> Artifact:
        rows = Rows()
        with source.file() as path, RocmDatabase(path, source.path) as db:
            texts = {i: str(t) for i, t in db.rows("rocpd_string", "id", "string") if t is not None}
            calls = _calls(db, rows, texts)
            _ops(db, rows, texts, calls)
            metadata = {str(k): str(v) for k, v in db.rows("rocpd_metadata", "tag", "value")}
            clocks = [
                int(v)
                for kind, v in db.rows("rocpd_monitor", "monitorType", "value")
                if kind == "sclk" and str(v).isdecimal()
            ]
        extra: dict[str, object] = {"schema": metadata["schema_version"]} if "schema_version" in metadata else {}
        can = []
        if clocks:
            extra["device_clock_mhz"] = {"spans": len(clocks), "min": min(clocks), "max": max(clocks)}
            can = [f"the device's clock over time: {min(clocks)} to {max(clocks)} MHz in {len(clocks)} spans"]
        return artifact(self, source, rows, Meta(tool=_TOOL), can=can, cannot=[NO_UTC], extra=extra)


class _Calls:
    """Rows of ``rocpd_api`` by id, in the order of the ids."""

    def __init__(self, ids: Ints, process: Ints, name: Ints) -> None:
        order = np.argsort(ids, kind="stable")
        self.id, self.process, self.name = ids[order], process[order], name[order]

    def of(self, ids: Ints, column: Ints, missing: int) -> Ints:
        if not len(self.id):
            return np.full(len(ids), missing, np.int64)
        at = np.minimum(np.searchsorted(self.id, ids), len(self.id) - 1)
        return np.where(self.id[at] == ids, column[at], missing)


def _calls(db: Database, rows: Rows, texts: dict[int, str]) -> _Calls:
    defaults = {
        "id": NONE,
        "pid": 0,
        "tid": NONE,
        "start": MISSING,
        "end": MISSING,
        "apiName_id": NONE,
        "args_id": NONE,
    }
    found = db.ints("rocpd_api", defaults)
    whole = (found["start"] > 0) & (found["end"] > 0)
    rows.note("calls without start or end were left out", int((~whole).sum()))
    found = {c: v[whole] for c, v in found.items()}
    process = distinct_map(found["pid"], lambda pid: rows.process(pid, pid))
    api = found["apiName_id"]
    marker = distinct_map(api, lambda i: int(texts.get(i) == _MARKER)) == 1
    code = rows.names.code
    name = distinct_map(api, lambda i: code(clean_api(texts.get(i) or "unnamed call")))
    name[marker] = distinct_map(found["args_id"][marker], lambda i: code(hidden_home(texts.get(i) or "unnamed range")))
    own = distinct_map(api, lambda i: int(_OWN.search(texts.get(i, "")) is not None)) == 1
    kind = np.where(own, int(HostKind.OVERHEAD), int(HostKind.API))
    kind[marker] = np.where((found["start"] == found["end"])[marker], int(HostKind.MARK), int(HostKind.ANNOTATION))
    rows.add_host(
        "calls",
        found["start"],
        found["end"],
        kind=kind,
        name=name,
        thread=rows.threads_of(process, found["tid"]),
        process=process,
        correlation=np.where(kind == HostKind.API, found["id"], NONE),
    )
    return _Calls(found["id"], process, name)


def _ops(db: Database, rows: Rows, texts: dict[int, str], calls: _Calls) -> None:
    defaults = {"id": NONE, "gpuId": 0, "queueId": 0, "start": MISSING, "end": MISSING}
    found = db.ints("rocpd_op", defaults | {"description_id": NONE, "opType_id": NONE})
    whole = (found["start"] > 0) & (found["end"] > 0)
    rows.note("device ops without start or end were left out", int((~whole).sum()))
    idle = distinct_map(found["opType_id"], lambda i: int(_NO_WORK.search(texts.get(i, "")) is not None)) == 1
    rows.note("barrier packets do no work: left out", int((idle & whole).sum()))
    found = {c: v[whole & ~idle] for c, v in found.items()}
    n = len(found["id"])
    call = _joined_calls(db, found["id"])
    asked = _Asked(db, call)
    kind = distinct_map(found["opType_id"], lambda i: int(op_kind(texts.get(i, ""))))
    text = np.where(
        distinct_map(found["description_id"], lambda i: int(bool(texts.get(i)))) == 1,
        found["description_id"],
        asked.kernel_name,
    )
    distinct, inverse = np.unique(text, return_inverse=True)
    codes, kernel_kinds = rows.kernel_codes([texts.get(i, "") for i in distinct.tolist()])
    kernel, copy = kind == OpKind.KERNEL, kind == OpKind.COPY
    if n:
        kind = np.where(kernel, kernel_kinds[inverse], kind)
    way = distinct_map(found["opType_id"], lambda i: int(copy_kind(texts.get(i, ""))))
    way = np.where(way == CopyKind.UNKNOWN, asked.copy_kind, way)
    name = codes[inverse] if n else np.empty(0, np.int64)
    name = np.where(
        copy,
        rows.copy_codes(np.where(copy, way, NONE)),
        np.where(kernel, name, rows.names.code("memset") if (~kernel & ~copy).any() else NONE),
    )
    # The flag is set where the tracer knew that the host's side is pinned; where it is not, nothing is known.
    pinned = np.where(copy & asked.pinned, int(MemKind.PINNED), NONE)
    in_items = calls.of(call, calls.name, NONE) == rows.names.code(_WORK_ITEMS)
    grid = np.where(in_items[:, None], blocks(asked.grid, asked.block), asked.grid)
    rows.add_ops(
        "device ops",
        found["start"],
        found["end"],
        kind=kind,
        name=name,
        device=found["gpuId"],
        stream=asked.streams(found["queueId"]),
        process=calls.of(call, calls.process, rows.process(0, 0) if not rows.processes and n else 0),
        correlation=call,
        bytes=np.where(copy, asked.size, NONE),
        copy_kind=np.where(copy, way, NONE),
        src_kind=np.where(way == CopyKind.HTOD, pinned, NONE) if pinned.max(initial=NONE) >= 0 else None,
        dst_kind=np.where(way == CopyKind.DTOH, pinned, NONE) if pinned.max(initial=NONE) >= 0 else None,
        grid=grid * kernel[:, None],
        block=asked.block * kernel[:, None],
        shared_memory=asked.shared * kernel,
    )


def _joined_calls(db: Database, op: Ints) -> Ints:
    """The call that launched each op, or NONE."""
    found = db.ints("rocpd_api_ops", {"api_id": NONE, "op_id": NONE})
    return looked_up(found["op_id"], found["api_id"], op, NONE)


class _Asked:
    """What the calls of ops asked for, one row an op."""

    def __init__(self, db: Database, call: Ints) -> None:
        shape = {f"{what}{a}": 0 for what in ("grid", "workgroup") for a in _AXES}
        kernels = db.ints("rocpd_kernelapi", {"api_ptr_id": NONE, "kernelName_id": NONE, "groupSegmentSize": 0} | shape)
        copies = db.ints("rocpd_copyapi", {"api_ptr_id": NONE, "size": NONE, "kind": NONE, "pinned": 0})

        def of(table: dict[str, Ints], column: str, missing: int) -> Ints:
            return looked_up(table["api_ptr_id"], table[column], call, missing)

        self.kernel_name = of(kernels, "kernelName_id", NONE)
        self.shared = of(kernels, "groupSegmentSize", 0)
        self.grid = np.stack([of(kernels, f"grid{a}", 0) for a in _AXES], axis=1)
        self.block = np.stack([of(kernels, f"workgroup{a}", 0) for a in _AXES], axis=1)
        self.size = of(copies, "size", NONE)
        self.copy_kind = distinct_map(of(copies, "kind", NONE), lambda k: int(HIP_COPY_KINDS.get(k, CopyKind.UNKNOWN)))
        self.pinned = of(copies, "pinned", 0) == 1
        handle = {
            i: int(s, 16)
            for t in ("rocpd_kernelapi", "rocpd_copyapi")
            for i, s in db.rows(t, "api_ptr_id", "stream")
            if isinstance(s, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,15}", s)
        }
        self.stream = distinct_map(call, lambda i: handle.get(i, NONE))

    def streams(self, queue: Ints) -> Ints:
        """The HIP stream; where no call states one, the hardware queue. Memsets state none."""
        known = np.unique(self.stream[self.stream != NONE])
        if not len(known):
            return queue
        return np.where(self.stream == NONE, known[0] if len(known) == 1 else NONE, self.stream)


if __name__ == "__main__":
    sys.exit(show(Rpd(), sys.argv[1:]))
