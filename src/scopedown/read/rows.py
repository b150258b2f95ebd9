"""Rows of any timeline on their way into columns, and the artifact that they become.

Readers add rows in any order, table by table; ``Rows.trace`` puts them in the order that the event model promises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scopedown.read import limits
from scopedown.read.base import Artifact, Reader, Source
from scopedown.read.claims import claims, counts, oddities
from scopedown.trace.coverage import coverage
from scopedown.trace.model import (
    NONE,
    CopyKind,
    Device,
    DeviceOps,
    HostEvents,
    Ints,
    Meta,
    Names,
    OpKind,
    Process,
    Thread,
    Trace,
    empty_host,
    empty_ops,
)
from scopedown.trace.names import is_collective, short_kernel_name

AnyColumn = npt.NDArray[Any]
_Part = dict[str, AnyColumn]

_TYPES: dict[str, type[np.signedinteger[Any]]] = dict.fromkeys(("name", "device", "process", "thread"), np.int32)
_TYPES |= dict.fromkeys(("kind", "copy_kind", "src_kind", "dst_kind"), np.int8)

_HOME = re.compile(r"(?:/home|/Users|/root)\b(?:/[^/\s]+)?")

DIRECTIONS: dict[int, str] = {
    CopyKind.UNKNOWN: "copy unknown",
    CopyKind.HTOD: "copy HtoD",
    CopyKind.DTOH: "copy DtoH",
    CopyKind.DTOD: "copy DtoD",
    CopyKind.HTOH: "copy HtoH",
    CopyKind.PTOP: "copy PtoP",
}


@dataclass
class Rows:
    """``odd`` counts what was strange, by what is said of the count."""

    names: Names = field(default_factory=Names)
    odd: dict[str, int] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)
    _process_of: dict[Hashable, int] = field(default_factory=dict)
    _thread_of: dict[Hashable, int] = field(default_factory=dict)
    _ops: list[_Part] = field(default_factory=list)
    _host: list[_Part] = field(default_factory=list)

    def note(self, what: str, count: int) -> None:
        if count:
            self.odd[what] = self.odd.get(what, 0) + count

    def process(self, key: Hashable, pid: int, name: str = "") -> int:
        """The index of a process, made where ``key`` is new."""
        found = self._process_of.get(key)
        if found is None:
            found = self._process_of[key] = len(self.processes)
            self.processes.append(Process(pid, name))
        return found

    def thread(self, key: Hashable, process: int, tid: int, name: str = "") -> int:
        found = self._thread_of.get((process, key))
        if found is None:
            found = self._thread_of[process, key] = len(self.threads)
            self.threads.append(Thread(process, tid, name))
        return found

    def threads_of(self, process: AnyColumn, tid: Ints) -> Ints:
        """Thread indices of (process index, thread id) pairs; NONE for the id NONE."""
        pairs, inverse = np.unique(np.stack([process.astype(np.int64), tid], axis=1), axis=0, return_inverse=True)
        known = [NONE if t == NONE else self.thread(t, p, t) for p, t in pairs.tolist()]
        return np.array(known, np.int64)[inverse.reshape(-1)] if len(known) else np.empty(0, np.int64)

    def kernel_codes(self, texts: Sequence[str]) -> tuple[Ints, Ints]:
        """Name codes and kinds (KERNEL or COLLECTIVE) of kernel names, one by one."""
        known: dict[str, tuple[int, int]] = {}
        for text in dict.fromkeys(texts):
            name = short_kernel_name(plain_kernel(text)) or "unnamed kernel"
            kind = OpKind.COLLECTIVE if is_collective(name) else OpKind.KERNEL
            known[text] = self.names.code(name), int(kind)
        pairs = np.array([known[t] for t in texts], np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def copy_codes(self, kind: Ints) -> Ints:
        """Name codes of copies by their CopyKind; NONE for NONE."""
        code = self.names.code
        return distinct_map(kind, lambda k: NONE if k == NONE else code(DIRECTIONS.get(k, "copy unknown")))

    def add_ops(self, what: str, start: Ints, end: Ints, **columns: AnyColumn | int | None) -> None:
        """Device ops. ``what`` names the rows in warnings; columns as in DeviceOps, scalars for all rows, shapes (n, 3)
        for grid and block; ``kind``, ``name``, ``device``, ``stream``, ``process`` are required."""
        self._ops.append(self._timed(what, start, end, columns))

    def add_host(self, what: str, start: Ints, end: Ints, **columns: AnyColumn | int | None) -> None:
        """Host events; ``kind``, ``name``, ``process`` are required."""
        self._host.append(self._timed(what, start, end, columns))

    def _timed(self, what: str, start: Ints, end: Ints, columns: dict[str, AnyColumn | int | None]) -> _Part:
        n = len(start)
        made = {k: np.full(n, v) if isinstance(v, int) else v for k, v in columns.items() if v is not None}
        real = limits.lasting(start, end)
        self.note(limits.NO_TIME.format(what), int((~real).sum()))
        if "device" in made:
            known = limits.known_device(made["device"])
            self.note(limits.NO_DEVICE.format(what), int((real & ~known).sum()))
            real &= known
        start, end, made = start[real], end[real], {k: v[real] for k, v in made.items()}
        backward = end < start
        self.note(f"{what} end before they start: taken as instants", int(backward.sum()))
        return {"start": start, "end": np.maximum(start, end), **made}

    def last(self) -> int | None:
        """The end of the last row so far."""
        return max((int(p["end"].max()) for p in (*self._ops, *self._host) if len(p["end"])), default=None)

    def trace(self, meta: Meta) -> Trace:
        """The trace; devices that only ops know join those of ``meta``."""
        ops = self._device_ops()
        known = {d: Device(d) for d in np.unique(ops.device).tolist()} | {d.id: d for d in meta.devices}
        meta = replace(meta, devices=tuple(known[d] for d in sorted(known)))
        return Trace(
            ops=ops,
            host=self._host_events(),
            names=self.names.values,
            processes=tuple(self.processes),
            threads=tuple(self.threads),
            meta=meta,
        )

    def _device_ops(self) -> DeviceOps:
        parts = [p for p in self._ops if len(p["start"])]
        if not parts:
            return empty_ops()
        zero = dict.fromkeys(("grid", "block", "registers", "shared_memory"), 0)
        col = {f.name: _joined(parts, f.name, zero.get(f.name, NONE)) for f in fields(DeviceOps)}
        keys = [_or_none(col[c], parts) for c in ("correlation", "stream", "device", "end", "start")]
        col["correlation"] = keys[0]
        order = np.lexsort(keys)
        return DeviceOps(**{c: v[order].astype(_TYPES.get(c, np.int64)) for c, v in col.items() if v is not None})

    def _host_events(self) -> HostEvents:
        parts = [p for p in self._host if len(p["start"])]
        if not parts:
            return empty_host()
        col = {f.name: _or_none(_joined(parts, f.name, NONE), parts) for f in fields(HostEvents)}
        order = np.lexsort([-col["end"], col["start"]])
        return HostEvents(**{c: v[order].astype(_TYPES.get(c, np.int64)) for c, v in col.items()})


def _joined(parts: list[_Part], column: str, missing: int) -> AnyColumn | None:
    """A column over all parts, with ``missing`` for those without; None where no part has it."""
    shape = next((p[column].shape[1:] for p in parts if column in p), None)
    if shape is None:
        return None
    return np.concatenate([p.get(column, np.full((len(p["start"]), *shape), missing, np.int64)) for p in parts])


def _or_none(column: AnyColumn | None, parts: list[_Part]) -> AnyColumn:
    return np.full(sum(len(p["start"]) for p in parts), NONE, np.int64) if column is None else column


def looked_up(keys: Ints, values: Ints, wanted: Ints, missing: int) -> Ints:
    """The value beside each wanted key; the first one where a key comes twice."""
    if not len(keys):
        return np.full(len(wanted), missing, np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order][at] == wanted, values[order][at], missing)


def distinct_map(values: Ints, of: Callable[[int], int]) -> Ints:
    """``of`` each value; it is called once a distinct one."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([of(v) for v in distinct.tolist()], np.int64)[inverse] if len(distinct) else np.empty(0, np.int64)


def plain_kernel(name: str) -> str:
    """The name without what AMD's tools append to a kernel's symbol: ``foo.kd``, ``foo(int) [clone .kd]``."""
    return name.strip().removesuffix(" [clone .kd]").removesuffix(".kd")


def hidden_home(text: str) -> str:
    return _HOME.sub("~", text)


def program_name(command: str) -> str:
    """The base name of a command line's program."""
    words = command.split()
    return words[0].rsplit("/", 1)[-1].rsplit("\\", 1)[-1] if words else ""


def artifact(
    reader: Reader,
    source: Source,
    rows: Rows,
    meta: Meta,
    *,
    warnings: Iterable[str] = (),
    can: Iterable[str] = (),
    cannot: Iterable[str] = (),
    extra: dict[str, Any] | None = None,
) -> Artifact:
    """What was read, with its claims worked out from the content; ``can`` and ``cannot`` are what the
    format adds."""
    trace = rows.trace(meta)
    cover = coverage(trace)
    said = (*warnings, *(f"{n} {what}" for what, n in rows.odd.items()), *oddities(trace, cover))
    trace = replace(trace, meta=replace(trace.meta, warnings=said))
    known, open_ = claims(trace, cover)
    return Artifact(
        path=source.path,
        sha256=source.sha256,
        kind=reader.kind,
        scope=reader.scope,
        producer=trace.meta.tool,
        version=trace.meta.version,
        interval_ns=trace.meta.window or _span(trace),
        utc_start_ns=trace.meta.utc_start_ns,
        counts=counts(trace),
        content=trace,
        can_establish=(*known, *can),
        cannot_establish=(*open_, *cannot),
        warnings=said,
        extra=extra or {},
    )


def _span(trace: Trace) -> tuple[int, int] | None:
    parts = [t for t in (trace.ops, trace.host) if len(t)]
    return (min(int(t.start.min()) for t in parts), max(int(t.end.max()) for t in parts)) if parts else None


def show(reader: Reader, argv: Sequence[str]) -> int:
    """Prints what was read from files: ``python -m scopedown.read.rocpd FILE``."""
    for name in argv:
        found = reader.read(Source(Path(name)))
        print(f"{name}: {found.producer} {found.version or 'of unknown version'}, interval {found.interval_ns}")
        print("  " + ", ".join(f"{k} {n}" for k, n in found.counts.items() if n))
        trace = found.content
        if isinstance(trace, Trace):
            for device in trace.meta.devices:
                print(f"  device {device.id}: {device.name}, {int((trace.ops.device == device.id).sum())} ops")
        for title, lines in (
            ("can establish", found.can_establish),
            ("cannot establish", found.cannot_establish),
            ("warning", found.warnings),
        ):
            for line in lines:
                print(f"  {title}: {line}")
    return 0
