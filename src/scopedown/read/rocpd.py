"""Reader of rocpd databases: what rocprofv3 writes with ``--output-format rocpd`` (schema 3).

The tables carry the session's GUID in their name (``rocpd_region_0000406d_08bf_...``); a merged database has one set a
session. The file's own views join them under plain names, but a view is code that the file brings: the tables are read
and joined here. Ids are those of a session; ``stack_id`` of an event is rocprofiler's internal correlation id, which an
API call and the device work that it launched share.

The table of processes also holds the environment, the command line and the host: of these only the program's name is
read.

``python -m scopedown.read.rocpd FILE`` prints what was read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np

from scopedown.read.base import Artifact, Source
from scopedown.read.nsys_tables import MAGIC, MISSING
from scopedown.read.rocm import NO_UTC, RocmDatabase, blocks, copy_device, copy_kind, host_kind, in_order, tables
from scopedown.read.rows import Rows, artifact, distinct_map, hidden_home, program_name, show
from scopedown.terms import Scope
from scopedown.trace.model import NONE, Device, HostKind, Ints, Meta, OpKind
from scopedown.trace.names import clean_api

_TOOL = "rocprofv3"
_EVENT = "rocpd_event"
_HEADS = ("rocpd_kernel_dispatch", "rocpd_region", "rocpd_memory_copy")
_GUID_TABLE = re.compile(rb"rocpd_[a-z_]+_[0-9a-f]{8}_[0-9a-f]{4}_")
_SUFFIX = re.compile(r"(?:_[0-9a-f]+)*")
_AXES = "xyz"


class Rocpd:
    kind: ClassVar[str] = "rocpd"
    scope: ClassVar[Scope] = Scope.TIMELINE
    about: ClassVar[str] = "ROCm rocpd database (rocprofv3 --output-format rocpd)"

    def sniff(self, source: Source) -> bool:
        found = tables(source)
        if found is None:
            # Damaged: ours if the schema at its head is, so that the damage is what gets reported.
            return source.head.startswith(MAGIC) and _GUID_TABLE.search(source.head) is not None
        return bool(_sessions(found))

    def read(self, source: Source) -> Artifact:
        rows = Rows()
        with source.file() as path, RocmDatabase(path, source.path) as db:
            sessions = [_Session(db, suffix, rows) for suffix in _sessions(db.columns)]
            nodes = sorted({a.node for s in sessions for a in s.agents.values()})
            width = 1 + max((a.index for s in sessions for a in s.agents.values()), default=0)
            for session in sessions:
                session.device_of = {
                    i: nodes.index(a.node) * width + a.index for i, a in session.agents.items() if a.gpu
                }
                session.read_rows()
        windows = [w for s in sessions for w in s.windows]
        devices = {s.device_of[i]: a for s in sessions for i, a in s.agents.items() if a.gpu}
        window = (min(w[0] for w in windows), max(w[1] for w in windows)) if windows else None
        known = [Device(n, a.name, a.properties) for n, a in devices.items()]
        schemas = sorted({str(v) for s in sessions for t, v in s.metadata if t == "schema_version"})
        return artifact(
            self,
            source,
            rows,
            Meta(tool=_TOOL, window=window, devices=tuple(known)),
            cannot=[NO_UTC],
            extra={"schema": ", ".join(schemas)} if schemas else None,
        )


def _sessions(columns: Mapping[str, frozenset[str]]) -> list[str]:
    """The suffixes of the sets of tables that a database holds; [""] for one without GUIDs in the names."""
    found: dict[str, None] = {}
    for table, names in columns.items():
        for head in _HEADS:
            suffix = table.removeprefix(head)
            if suffix != table and _SUFFIX.fullmatch(suffix) and {"start", "end"} <= names:
                found[suffix] = None
    return sorted(found)


@dataclass(frozen=True, slots=True)
class _Agent:
    node: int
    gpu: bool
    index: int
    name: str | None
    properties: dict[str, int | str]


class _AgentInfo(msgspec.Struct):
    cu_count: int = 0
    max_engine_clk_fcompute: int = 0


class _Session:
    """One set of tables."""

    def __init__(self, db: RocmDatabase, suffix: str, rows: Rows) -> None:
        self.db, self.suffix, self.rows = db, suffix, rows
        self.device_of: dict[int, int] = {}
        self.metadata = db.rows(self._("rocpd_metadata"), "tag", "value")
        self.strings = {i: str(t) for i, t in db.rows(self._("rocpd_string"), "id", "string") if t is not None}
        columns = ("id", "nid", "type", "type_index", "logical_index", "name", "product_name", "extdata")
        self.agents = {r[0]: _agent(*r[1:]) for r in db.rows(self._("rocpd_info_agent"), *columns)}
        self.windows: list[tuple[int, int]] = []
        self.process_of: dict[int, int] = {}
        for i, pid, init, fini, command in db.rows(
            self._("rocpd_info_process"), "id", "pid", "init", "fini", "command"
        ):
            self.process_of[i] = rows.process(
                (suffix, i), pid if isinstance(pid, int) else i, program_name(command or "")
            )
            if isinstance(init, int) and isinstance(fini, int) and 0 < init < fini:
                self.windows.append((init, fini))
        self.thread_of: dict[int, tuple[int, str]] = {
            i: (tid, str(name or "")) for i, tid, name in db.rows(self._("rocpd_info_thread"), "id", "tid", "name")
        }

    def _(self, table: str) -> str:
        return table + self.suffix

    def read_rows(self) -> None:
        self._kernels()
        self._copies()
        self._regions()
        self._samples()

    def _timed(self, table: str, defaults: Mapping[str, int]) -> dict[str, Ints]:
        """Rows with both times, and with the events' columns beside them."""
        found = self.db.ints(self._(table), {"start": MISSING, "end": MISSING, "event_id": NONE} | dict(defaults))
        whole = (found["start"] > 0) & (found["end"] > 0)
        self.rows.note(f"rows of {table} without start or end were left out", int((~whole).sum()))
        return {c: v[whole] for c, v in found.items()}

    def _events(self, event: Ints) -> tuple[Ints, Ints]:
        """(correlation, category) of events by id."""
        ids, columns = self._event_table
        if not len(ids):
            return np.full(len(event), NONE, np.int64), np.full(len(event), NONE, np.int64)
        at = np.minimum(np.searchsorted(ids, event), len(ids) - 1)
        hit = ids[at] == event
        stack = np.where(columns["stack_id"] > 0, columns["stack_id"], columns["parent_stack_id"])
        stack = np.where(stack > 0, stack, NONE)
        return np.where(hit, stack[at], NONE), np.where(hit, columns["category_id"][at], NONE)

    @property
    def _event_table(self) -> tuple[Ints, dict[str, Ints]]:
        if not hasattr(self, "_event_cache"):
            defaults = {"id": NONE, "stack_id": NONE, "parent_stack_id": NONE, "category_id": NONE}
            found = self.db.ints(self._(_EVENT), defaults)
            order = np.argsort(found["id"], kind="stable")
            self._event_cache = (found["id"][order], {c: v[order] for c, v in found.items()})
        return self._event_cache

    def _processes(self, pid: Ints) -> Ints:
        def of(i: int) -> int:
            found = self.process_of.get(i)
            return self.rows.process((self.suffix, i), max(i, 0)) if found is None else found

        return distinct_map(pid, of)

    def _text_codes(self, ids: Ints, unknown: str) -> Ints:
        code = self.rows.names.code
        return distinct_map(ids, lambda i: code(hidden_home(clean_api(self.strings.get(i) or unknown))))

    def _threads(self, process: Ints, thread: Ints) -> Ints:
        pairs, inverse = np.unique(np.stack([process, thread], axis=1), axis=0, return_inverse=True)
        found = []
        for p, t in pairs.tolist():
            tid, name = self.thread_of.get(t, (t, ""))
            found.append(NONE if t == NONE else self.rows.thread((self.suffix, t), p, tid, name))
        return np.array(found, np.int64)[inverse.reshape(-1)] if found else np.empty(0, np.int64)

    def _kernels(self) -> None:
        shape = {f"{what}_size_{a}": 0 for what in ("workgroup", "grid") for a in _AXES}
        ids = {"pid": NONE, "agent_id": NONE, "kernel_id": NONE, "queue_id": NONE, "stream_id": NONE}
        found = self._timed("rocpd_kernel_dispatch", ids | shape | {"group_segment_size": 0})
        symbols = {
            r[0]: r[1:]
            for r in self.db.rows(
                self._("rocpd_info_kernel_symbol"), "id", "display_name", "kernel_name", "arch_vgpr_count"
            )
        }
        distinct, inverse = np.unique(found["kernel_id"], return_inverse=True)
        of = [symbols.get(k, (None, None, None)) for k in distinct.tolist()]
        names, kinds = self.rows.kernel_codes([str(d or k or "") for d, k, _ in of])
        registers = np.array([r if isinstance(r, int) else 0 for *_, r in of], np.int64)
        block = np.stack([found[f"workgroup_size_{a}"] for a in _AXES], axis=1)
        correlation, _ = self._events(found["event_id"])
        self.rows.add_ops(
            "kernels",
            found["start"],
            found["end"],
            kind=kinds[inverse],
            name=names[inverse],
            device=self._devices(found["agent_id"]),
            stream=in_order(found["stream_id"], found["queue_id"]),
            process=self._processes(found["pid"]),
            correlation=correlation,
            grid=blocks(np.stack([found[f"grid_size_{a}"] for a in _AXES], axis=1), block),
            block=block,
            registers=registers[inverse],
            shared_memory=found["group_segment_size"],
        )

    def _devices(self, agent: Ints) -> Ints:
        return distinct_map(agent, lambda i: self.device_of.get(i, 0))

    def _copies(self) -> None:
        ids = {"pid": NONE, "dst_agent_id": NONE, "src_agent_id": NONE, "queue_id": NONE, "stream_id": NONE}
        found = self._timed("rocpd_memory_copy", ids | {"name_id": NONE, "size": NONE})
        kind = distinct_map(found["name_id"], lambda i: int(copy_kind(self.strings.get(i, ""))))
        target = distinct_map(found["dst_agent_id"], lambda i: self.device_of.get(i, NONE))
        origin = distinct_map(found["src_agent_id"], lambda i: self.device_of.get(i, NONE))
        kind, device = copy_device(kind, target, origin)
        correlation, _ = self._events(found["event_id"])
        self.rows.add_ops(
            "copies",
            found["start"],
            found["end"],
            kind=int(OpKind.COPY),
            name=self.rows.copy_codes(kind),
            device=device,
            stream=in_order(found["stream_id"], found["queue_id"]),
            process=self._processes(found["pid"]),
            correlation=correlation,
            bytes=found["size"],
            copy_kind=kind,
        )

    def _regions(self) -> None:
        found = self._timed("rocpd_region", {"pid": NONE, "tid": NONE, "name_id": NONE})
        correlation, category = self._events(found["event_id"])
        process = self._processes(found["pid"])
        name = self._text_codes(found["name_id"], "unnamed call")
        kind = self._kinds(category, name)
        self._messages(found["event_id"], kind, name)
        self.rows.add_host(
            "regions",
            found["start"],
            found["end"],
            kind=kind,
            name=name,
            thread=self._threads(process, found["tid"]),
            process=process,
            correlation=np.where(kind == HostKind.API, correlation, NONE),
        )

    def _kinds(self, category: Ints, name: Ints, instant: bool = False) -> Ints:
        pairs, inverse = np.unique(np.stack([category, name], axis=1), axis=0, return_inverse=True)
        values = self.rows.names.values
        kinds = [int(host_kind(self.strings.get(c, ""), values[n], instant)) for c, n in pairs.tolist()]
        return np.array(kinds, np.int64)[inverse.reshape(-1)] if kinds else np.empty(0, np.int64)

    def _messages(self, event: Ints, kind: Ints, name: Ints) -> None:
        """Ranges and marks are named by their message, which the event has, not by the call that made them."""
        said = np.isin(kind, (HostKind.ANNOTATION, HostKind.RANGE, HostKind.MARK))
        if not said.any() or not self.db.has(self._(_EVENT), "extdata"):
            return
        wanted = set(event[said].tolist())
        texts: dict[int, str] = {}
        for i, extra in self.db.rows(self._(_EVENT), "id", "extdata", where="WHERE extdata LIKE '%message%'"):
            if i in wanted and (message := _message(extra)):
                texts[i] = message
        code = self.rows.names.code
        for row in np.flatnonzero(said).tolist():
            text = texts.get(int(event[row]))
            if text is not None:
                name[row] = code(hidden_home(text))

    def _samples(self) -> None:
        """Marks: rows of ``rocpd_sample``, whose track says the process and the thread."""
        found = self.db.ints(self._("rocpd_sample"), {"track_id": NONE, "timestamp": MISSING, "event_id": NONE})
        if not len(found["timestamp"]):
            return
        tracks = {i: (p, t, n) for i, p, t, n in self.db.rows(self._("rocpd_track"), "id", "pid", "tid", "name_id")}
        of = [tracks.get(i, (None, None, None)) for i in found["track_id"].tolist()]
        process = self._processes(np.array([NONE if p is None else p for p, _, _ in of], np.int64))
        thread = self._threads(process, np.array([NONE if t is None else t for _, t, _ in of], np.int64))
        _, category = self._events(found["event_id"])
        track_name = np.array([NONE if n is None else n for _, _, n in of], np.int64)
        name = self._text_codes(track_name, "mark")
        kind = self._kinds(np.where(category == NONE, track_name, category), name, instant=True)
        kind = np.where(kind == HostKind.MARK, kind, HostKind.MARK)
        self._messages(found["event_id"], kind, name)
        self.rows.add_host(
            "marks", found["timestamp"], found["timestamp"], kind=kind, name=name, thread=thread, process=process
        )


def _agent(node: Any, kind: Any, type_index: Any, logical: Any, name: Any, product: Any, extra: Any) -> _Agent:
    try:
        info = msgspec.json.decode(extra or "{}", type=_AgentInfo, strict=False)
    except (msgspec.MsgspecError, TypeError):
        info = _AgentInfo()
    properties: dict[str, int | str] = {}
    if kind == "GPU":
        if info.cu_count > 0:
            properties["sm_count"] = info.cu_count
        if info.max_engine_clk_fcompute > 0:
            properties["clock_hz"] = info.max_engine_clk_fcompute * 1_000_000
        if name:
            properties["arch"] = str(name)
    index = next((i for i in (type_index, logical) if isinstance(i, int) and i >= 0), 0)
    return _Agent(
        node if isinstance(node, int) else 0, kind == "GPU", index, str(product or name) if product or name else None,
        properties,
    )  # fmt: skip


class _Message(msgspec.Struct):
    message: str = ""


def _message(extra: Any) -> str:
    try:
        return msgspec.json.decode(extra or "{}", type=_Message).message
    except (msgspec.MsgspecError, TypeError):
        return ""


if __name__ == "__main__":
    sys.exit(show(Rocpd(), sys.argv[1:]))
