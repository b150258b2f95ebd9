"""Reader of rocprofv3's JSON (``--output-format json``): one object a process under ``rocprofiler-sdk-tool``.

Records name kernels by an id into ``kernel_symbols``, agents by a handle, and calls by (kind, operation) into
``strings.buffer_records``. Only the members that become columns are decoded; the long lists are decoded one after the
other, so that memory stays below about five times the file. ``metadata`` also holds the host, the command line and
paths: of these only the program's name is read.

``python -m scopedown.read.rocprofv3_json FILE`` prints what was read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec
import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Source
from scopedown.read.rocm import NO_UTC, blocks, copy_device, copy_kind, host_kind, in_order
from scopedown.read.rows import Rows, artifact, hidden_home, program_name, show
from scopedown.terms import Scope
from scopedown.trace.model import NONE, Device, HostKind, Ints, Meta, OpKind
from scopedown.trace.names import clean_api

_TOOL = "rocprofv3"
_ROOT = "rocprofiler-sdk-tool"
_HEAD = re.compile(rb'\s*\{\s*"rocprofiler-sdk-tool"\s*:\s*\[')
#: Lists of host records below ``buffer_records``; the older ``callback_records`` had the same names.
_CALLS = ("hip_api", "hsa_api", "marker_api", "rccl_api", "rocdecode_api", "rocjpeg_api", "ompt")

T = TypeVar("T")


class _Handle(msgspec.Struct, frozen=True, gc=False):
    handle: int = 0


class _Correlation(msgspec.Struct, frozen=True, gc=False):
    internal: int = 0


class _Shape(msgspec.Struct, frozen=True, gc=False):
    x: int = 0
    y: int = 0
    z: int = 0


class _Info(msgspec.Struct, frozen=True, gc=False):
    agent_id: _Handle = _Handle()
    queue_id: _Handle = _Handle()
    kernel_id: int = 0
    group_segment_size: int = 0
    workgroup_size: _Shape = _Shape()
    grid_size: _Shape = _Shape()


class _Record(msgspec.Struct, gc=False):
    """Any record: the members that it lacks keep their defaults."""

    start_timestamp: int = 0
    end_timestamp: int = 0
    kind: int = 0
    operation: int = 0
    thread_id: int = 0
    correlation_id: _Correlation = _Correlation()
    stream_id: _Handle = _Handle()


class _Dispatch(_Record, gc=False):
    dispatch_info: _Info = _Info()


class _Copy(_Record, gc=False):
    dst_agent_id: _Handle = _Handle()
    src_agent_id: _Handle = _Handle()
    bytes: int = -1


class _Symbol(msgspec.Struct, gc=False):
    kernel_id: int = 0
    formatted_kernel_name: str = ""
    demangled_kernel_name: str = ""
    kernel_name: str = ""
    arch_vgpr_count: int = 0


class _Agent(msgspec.Struct):
    id: _Handle = _Handle()
    type: int = 0
    logical_node_type_id: int = -1
    gpu_index: int = -1
    name: str = ""
    product_name: str = ""
    cu_count: int = 0
    max_engine_clk_fcompute: int = 0


class _Kind(msgspec.Struct):
    kind: str = ""
    operations: list[str] = []


class _Message(msgspec.Struct):
    key: int = 0
    value: str = ""


class _Strings(msgspec.Struct):
    callback_records: list[_Kind] = []
    buffer_records: list[_Kind] = []
    marker_api: list[_Message] = []
    att_filenames: list[msgspec.Raw] = []


class _Metadata(msgspec.Struct):
    pid: int = 0
    init_time: int = 0
    fini_time: int = 0
    command: list[str] = []


class _Process(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    agents: list[_Agent] = []
    strings: _Strings = msgspec.field(default_factory=_Strings)
    kernel_symbols: msgspec.Raw = msgspec.Raw(b"[]")
    buffer_records: dict[str, msgspec.Raw] = {}
    callback_records: dict[str, msgspec.Raw] = {}


class _File(msgspec.Struct, rename={"processes": _ROOT}):
    processes: list[_Process]


class RocprofJson:
    kind: ClassVar[str] = "rocprofv3-json"
    scope: ClassVar[Scope] = Scope.TIMELINE
    about: ClassVar[str] = "rocprofv3 JSON (rocprofv3 --output-format json)"

    def sniff(self, source: Source) -> bool:
        return _HEAD.match(source.head) is not None

    def read(self, source: Source) -> Artifact:
        rows = Rows()
        warnings: list[str] = []
        devices: dict[int, Device] = {}
        windows: list[tuple[int, int]] = []
        try:
            found = msgspec.json.decode(source.read(), type=_File).processes
            while found:
                one = _OneProcess(found.pop(0), len(devices), rows)
                devices |= one.devices
                one.read()
                m = one.process.metadata
                if 0 < m.init_time < m.fini_time:
                    windows.append((m.init_time, m.fini_time))
                if traces := len(one.process.strings.att_filenames):
                    warnings.append(
                        f"the run also recorded instruction traces ({traces} files): kernels under it are slower"
                    )
        except (msgspec.MsgspecError, UnicodeDecodeError, OverflowError) as error:
            raise InputError(
                source.path, "JSON", f"is damaged or cut short ({error})", "copy it again, or capture again"
            ) from None
        return artifact(
            self,
            source,
            rows,
            Meta(
                tool=_TOOL,
                window=(min(w[0] for w in windows), max(w[1] for w in windows)) if windows else None,
                devices=tuple(devices.values()),
            ),
            warnings=warnings,
            cannot=[NO_UTC],
        )


class _OneProcess:
    def __init__(self, process: _Process, number: int, rows: Rows) -> None:
        self.process, self.rows = process, rows
        m = process.metadata
        self.index = rows.process((number, m.pid), m.pid, program_name(m.command[0]) if m.command else "")
        gpus = [a for a in process.agents if a.type == 2]
        self.device_of = {
            a.id.handle: next((i for i in (a.logical_node_type_id, a.gpu_index) if i >= 0), n)
            for n, a in enumerate(gpus)
        }
        self.devices = {
            self.device_of[a.id.handle]: Device(
                self.device_of[a.id.handle], a.product_name or a.name or None, _properties(a)
            )
            for a in gpus
        }

    def read(self) -> None:
        self._kernels()
        self._copies()
        for name in _CALLS:
            self._calls(name)

    def _list(self, name: str, kind: type[T]) -> list[T]:
        """A list of ``buffer_records``, which is let go."""
        raw = self.process.buffer_records.pop(name, None)
        return [] if raw is None else msgspec.json.decode(raw, type=list[kind])  # type: ignore[valid-type]

    def _kernels(self) -> None:
        found = self._whole("kernels", self._list("kernel_dispatch", _Dispatch))
        symbols = msgspec.json.decode(self.process.kernel_symbols, type=list[_Symbol])
        self.process.kernel_symbols = msgspec.Raw(b"[]")
        by_id = {s.kernel_id: s for s in symbols}
        kernel = _ints(found, lambda r: r.dispatch_info.kernel_id)
        distinct, inverse = np.unique(kernel, return_inverse=True)
        used = [by_id.get(k, _Symbol()) for k in distinct.tolist()]
        names, kinds = self.rows.kernel_codes(
            [s.formatted_kernel_name or s.demangled_kernel_name or s.kernel_name for s in used]
        )
        block = _shapes(found, lambda r: r.dispatch_info.workgroup_size)
        agents = _ints(found, lambda r: r.dispatch_info.agent_id.handle)
        self.rows.add_ops(
            "kernels",
            _ints(found, lambda r: r.start_timestamp),
            _ints(found, lambda r: r.end_timestamp),
            kind=kinds[inverse],
            name=names[inverse],
            device=np.array([self.device_of.get(a, 0) for a in agents.tolist()], np.int64),
            stream=in_order(
                _ints(found, lambda r: r.stream_id.handle), _ints(found, lambda r: r.dispatch_info.queue_id.handle)
            ),
            process=self.index,
            correlation=_ids(found),
            grid=blocks(_shapes(found, lambda r: r.dispatch_info.grid_size), block),
            block=block,
            registers=np.array([s.arch_vgpr_count for s in used], np.int64)[inverse],
            shared_memory=_ints(found, lambda r: r.dispatch_info.group_segment_size),
        )

    def _copies(self) -> None:
        found = self._whole("copies", self._list("memory_copy", _Copy))
        if not found:
            return
        kinds = self.process.strings.buffer_records
        target = np.array([self.device_of.get(r.dst_agent_id.handle, NONE) for r in found], np.int64)
        origin = np.array([self.device_of.get(r.src_agent_id.handle, NONE) for r in found], np.int64)
        named = np.array([copy_kind(_operation(kinds, r.kind, r.operation)) for r in found], np.int64)
        kind, device = copy_device(named, target, origin)
        self.rows.add_ops(
            "copies",
            _ints(found, lambda r: r.start_timestamp),
            _ints(found, lambda r: r.end_timestamp),
            kind=int(OpKind.COPY),
            name=self.rows.copy_codes(kind),
            device=device,
            stream=_ints(found, lambda r: r.stream_id.handle),
            process=self.index,
            correlation=_ids(found),
            bytes=_ints(found, lambda r: r.bytes),
            copy_kind=kind,
        )

    def _calls(self, name: str) -> None:
        kinds = self.process.strings.buffer_records
        found = self._whole("calls", self._list(name, _Record))
        if not found:
            raw = self.process.callback_records.pop(name, None)
            kinds = self.process.strings.callback_records
            found = self._whole("calls", msgspec.json.decode(raw, type=list[_Record])) if raw else []
        if not found:
            return
        messages = {m.key: m.value for m in self.process.strings.marker_api}
        what = [(r.kind, r.operation) for r in found]
        texts = {w: clean_api(_operation(kinds, *w) or "unnamed call") for w in set(what)}
        kind_of = {w: host_kind(kinds[w[0]].kind if 0 <= w[0] < len(kinds) else "", t) for w, t in texts.items()}
        kind = np.array([kind_of[w] for w in what], np.int64)
        code = self.rows.names.code
        names = [
            code(hidden_home(messages.get(r.correlation_id.internal, texts[w]) if name == "marker_api" else texts[w]))
            for r, w in zip(found, what, strict=True)
        ]
        process = np.full(len(found), self.index, np.int64)
        self.rows.add_host(
            "calls",
            _ints(found, lambda r: r.start_timestamp),
            _ints(found, lambda r: r.end_timestamp),
            kind=kind,
            name=np.array(names, np.int64),
            thread=self.rows.threads_of(process, _ints(found, lambda r: r.thread_id)),
            process=process,
            correlation=np.where(kind == HostKind.API, _ids(found), NONE),
        )

    def _whole(self, what: str, records: list[T]) -> list[T]:
        """Those with both times."""
        kept = [r for r in records if r.start_timestamp > 0 and r.end_timestamp > 0]  # type: ignore[attr-defined]
        self.rows.note(f"{what} without start or end were left out", len(records) - len(kept))
        return kept


def _operation(kinds: Sequence[_Kind], kind: int, operation: int) -> str:
    operations = kinds[kind].operations if 0 <= kind < len(kinds) else []
    return operations[operation] if 0 <= operation < len(operations) else ""


def _ints(records: Sequence[T], get: Callable[[T], int]) -> Ints:
    return np.fromiter(map(get, records), np.int64, len(records))


def _ids(records: Sequence[_Record]) -> Ints:
    found = _ints(records, lambda r: r.correlation_id.internal)
    return np.where(found > 0, found, NONE)


def _shapes(records: Sequence[T], get: Callable[[T], _Shape]) -> Ints:
    flat = [n for r in records for s in (get(r),) for n in (s.x, s.y, s.z)]
    return np.array(flat, np.int64).reshape(-1, 3)


def _properties(agent: _Agent) -> dict[str, int | str]:
    found: dict[str, Any] = {
        "sm_count": agent.cu_count,
        "clock_hz": agent.max_engine_clk_fcompute * 1_000_000,
        "arch": agent.name,
    }
    return {k: v for k, v in found.items() if v}


if __name__ == "__main__":
    sys.exit(show(RocprofJson(), sys.argv[1:]))
