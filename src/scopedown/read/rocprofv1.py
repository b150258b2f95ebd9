"""Reader of the ``results.db`` of rocprof (v1 and v2) and of Hygon's hipprof: tables HIP, OPS and COPY.

Columns are ``dev-id``, ``queue-id``, ``Index`` with AMD and ``dev_id``, ``queue_id``, ``_Index`` with Hygon, which also
keeps names of calls as ids of STR_TABLE. ``Index`` of a call is that of the device work that it launched. Times are ns
since boot.

``python -m scopedown.read.rocprofv1 FILE`` prints what was read.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import numpy as np

from scopedown.read.base import Artifact, Source
from scopedown.read.nsys_tables import MAGIC, MISSING, Database
from scopedown.read.rocm import HIP_COPY_KINDS, NO_UTC, RocmDatabase, copy_kind, tables
from scopedown.read.rows import Rows, artifact, distinct_map, hidden_home, show
from scopedown.terms import Scope
from scopedown.trace.model import NONE, CopyKind, HostKind, Meta, OpKind
from scopedown.trace.names import clean_api

_TIMES = frozenset({"BeginNs", "EndNs"})
#: Tables of host rows: their kind, and whether their index is that of device work.
_HOST = {
    "HIP": (HostKind.API, True),
    "HSA": (HostKind.API, False),
    "KFD": (HostKind.OS, False),
    "rocTX": (HostKind.ANNOTATION, False),
}
#: Tables whose layout no file with rows has shown.
_UNREAD = {"HIPTX": "roctx records", "MPI": "MPI records"}


class RocprofV1:
    kind: ClassVar[str] = "rocprofv1"
    scope: ClassVar[Scope] = Scope.TIMELINE
    about: ClassVar[str] = "rocprof v1 or hipprof database (results.db with HIP, OPS, COPY)"

    def sniff(self, source: Source) -> bool:
        found = tables(source)
        if found is None:
            return source.head.startswith(MAGIC) and b"BeginNs" in source.head and b"TABLE OPS" in source.head
        return any(found.get(t, frozenset()) >= _TIMES for t in ("HIP", "OPS", "COPY", "HSA"))

    def read(self, source: Source) -> Artifact:
        rows = Rows()
        with source.file() as path, RocmDatabase(path, source.path) as db:
            tool = "hipprof" if "STR_TABLE" in db.columns or db.has("OPS", "_Index") else "rocprof"
            for table, (kind, linked) in _HOST.items():
                _calls(db, rows, table, kind, linked)
            _kernels(db, rows)
            _copies(db, rows)
            for table, what in _UNREAD.items():
                rows.note(f"{what} are not read", len(db.rows(table, "TIME")))
        return artifact(self, source, rows, Meta(tool=tool), cannot=[NO_UTC])


class _Table:
    """Rows with both times and the columns that all tables have, whatever they are called."""

    def __init__(self, db: Database, table: str, rows: Rows) -> None:
        columns = db.columns.get(table, frozenset())

        def named(*names: str) -> str:
            return next((n for n in names if n in columns), names[0])

        index, device = named("Index", "_Index"), named("dev-id", "dev_id")
        queue, stream = named("queue-id", "queue_id"), named("stream-id", "stream_id")
        found = db.ints(table, {"BeginNs": MISSING, "EndNs": MISSING, "pid": 0, "tid": NONE, index: NONE, device: 0})
        self.text: list[Any] = []
        places: list[tuple[Any, Any]] = []
        if len(found["BeginNs"]):
            name = "Name" if "Name" in columns else "Kind"
            self.text = [r[0] for r in db.rows(table, name)]
            places = db.rows(table, stream, queue)
        whole = (found["BeginNs"] > 0) & (found["EndNs"] > 0)
        rows.note(f"rows of {table} without start or end were left out", int((~whole).sum()))
        self.text = [t for t, keep in zip(self.text, whole.tolist(), strict=True) if keep]
        places = [p for p, keep in zip(places, whole.tolist(), strict=True) if keep]
        self.start, self.end = found["BeginNs"][whole], found["EndNs"][whole]
        self.tid, self.device = found["tid"][whole], found[device][whole]
        self.index = found[index][whole]
        self.pid = found["pid"][whole]
        self.process = distinct_map(self.pid, lambda pid: rows.process(pid, pid))
        numbers: dict[Any, int] = {}
        self.stream = np.array([_number(s if s is not None else q, numbers) for s, q in places], np.int64)

    def __len__(self) -> int:
        return len(self.start)


def _number(value: Any, known: dict[Any, int]) -> int:
    """Queues are numbers with AMD and texts with Hygon."""
    return value if isinstance(value, int) else known.setdefault(value, len(known))


def _calls(db: Database, rows: Rows, table: str, kind: HostKind, linked: bool) -> None:
    found = _Table(db, table, rows)
    if not len(found):
        return
    strings = {(p, i): str(t) for p, i, t in db.rows("STR_TABLE", "PID", "STR_ID", "STR_NAME") if t}
    code = rows.names.code
    names = [
        code(hidden_home(clean_api(strings.get((pid, t), "unnamed call") if isinstance(t, int) else str(t or ""))))
        for pid, t in zip(found.pid.tolist(), found.text, strict=True)
    ]
    rows.add_host(
        f"rows of {table}",
        found.start,
        found.end,
        kind=int(kind),
        name=np.array(names, np.int64),
        thread=rows.threads_of(found.process, found.tid),
        process=found.process,
        correlation=found.index if linked else NONE,
    )


def _kernels(db: Database, rows: Rows) -> None:
    found = _Table(db, "OPS", rows)
    if not len(found):
        return
    codes, kinds = rows.kernel_codes([str(t or "") for t in found.text])
    rows.add_ops(
        "kernels",
        found.start,
        found.end,
        kind=kinds,
        name=codes,
        device=found.device,
        stream=found.stream,
        process=found.process,
        correlation=found.index,
    )


def _copies(db: Database, rows: Rows) -> None:
    found = _Table(db, "COPY", rows)
    if not len(found):
        return
    ways = [HIP_COPY_KINDS.get(t, CopyKind.UNKNOWN) if isinstance(t, int) else copy_kind(str(t)) for t in found.text]
    way = np.array(ways, np.int64)
    rows.add_ops(
        "copies",
        found.start,
        found.end,
        kind=int(OpKind.COPY),
        name=rows.copy_codes(way),
        device=found.device,
        stream=found.stream,
        process=found.process,
        correlation=found.index,
        copy_kind=way,
    )


if __name__ == "__main__":
    sys.exit(show(RocprofV1(), sys.argv[1:]))
