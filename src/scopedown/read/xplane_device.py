"""Device planes of an XLA profile: streams of a GPU, cores of a TPU."""

from __future__ import annotations

import re

import numpy as np

from scopedown.read.rows import Rows
from scopedown.read.xspace import Line, Plane, Stat, event_stats
from scopedown.trace.model import NONE, CopyKind, HostKind, MemKind, OpKind

_DEVICE = re.compile(r"/device:(GPU|TPU):(\d{1,9})")
_STREAM = re.compile(r"Stream #(\d{1,15})")
_OPS, _ASYNC_OPS, _MODULES = "XLA Ops", "Async XLA Ops", "XLA Modules"

_COPY = re.compile(r"Memcpy(H2D|D2H|D2D|P2P|H2H|\w*)")
_COPIES = {
    "H2D": CopyKind.HTOD,
    "D2H": CopyKind.DTOH,
    "D2D": CopyKind.DTOD,
    "P2P": CopyKind.PTOP,
    "H2H": CopyKind.HTOH,
}
_MEMORY = {"pageable": MemKind.PAGEABLE, "pinned": MemKind.PINNED, "device": MemKind.DEVICE}
_DETAIL = re.compile(r"(\w+):([\w,]+)")

#: ``%fusion.2 = f32[8]{0} fusion(...)``: the operation's name.
_HLO = re.compile(r"%?([\w.-]+)")
_TPU_COLLECTIVE = re.compile(
    r"(?:ragged-)?all-(?:reduce|gather|to-all)|reduce-scatter|collective-(?:permute|broadcast)|send|recv"
)
_TPU_COPY = re.compile(r"copy(?:-start|-done)?(?:\.\d+)?$|(?:infeed|outfeed|async-copy)")
_STARTED = re.compile(r"%(copy-start[\w.-]*)")
#: Of the result of copy-start: destination and source; memory space 5 is the host's.
_ENDS = re.compile(r"= \((\w+\[[^\]]*\](?:\{[^}]*\})?), (\w+\[[^\]]*\](?:\{[^}]*\})?)")
_HOST_SPACE = "S(5)"
_FINGERPRINT = re.compile(r"\(\d+\)$")


def device_of(plane: Plane) -> tuple[str, int] | None:
    """("GPU" or "TPU", number) of a device's plane."""
    found = _DEVICE.fullmatch(plane.name)
    return None if found is None else (found[1], int(found[2]))


class _Plane:
    def __init__(self, plane: Plane, number: int, rows: Rows) -> None:
        self.plane, self.number, self.rows = plane, number, rows

    def texts(self, line: Line) -> list[str]:
        known = self.plane.events
        of = {m: known[m].name if m in known else "" for m in np.unique(line.metadata).tolist()}
        return [of[m] for m in line.metadata.tolist()]

    def note(self, line: Line) -> None:
        self.rows.note("events that stand for many have no time of their own: left out", line.aggregated)


class Gpu(_Plane):
    """Lines that are streams; what else a plane has was derived from them."""

    def read(self) -> None:
        for line in self.plane.lines:
            if found := _STREAM.match(line.name):
                self.note(line)
                if len(line):
                    self._stream(line, int(found[1]))

    def _stream(self, line: Line, stream: int) -> None:
        names = self.texts(line)
        stats = list(event_stats(self.plane, line))
        copies = [_COPY.match(n) for n in names]
        memset = np.array([n.startswith("Memset") for n in names], np.bool_)
        copy = np.array([c is not None for c in copies], np.bool_)
        codes, kinds = self.rows.kernel_codes([self._demangled(n) for n in names])
        way = np.array([_COPIES.get(c[1], CopyKind.UNKNOWN) if c else NONE for c in copies], np.int64)
        details = [_details(s) for s in stats]
        kernel = ~copy & ~memset
        source = np.array([_MEMORY.get(d.get("kind_src", ""), NONE) for d in details], np.int64)
        target = np.array([_MEMORY.get(d.get("kind_dst", ""), NONE) for d in details], np.int64)
        shape = {k: np.array([_shape(d.get(k)) for d in details], np.int64) for k in ("grid", "block")}
        shared = [sum(_int(d.get(k)) for k in ("group_mem", "static_shared", "dynamic_shared")) for d in details]
        self.rows.add_ops(
            "device events",
            line.start,
            line.end,
            kind=np.where(copy, int(OpKind.COPY), np.where(memset, int(OpKind.MEMSET), kinds)),
            name=np.where(
                copy,
                self.rows.copy_codes(way),
                np.where(memset, self.rows.names.code("memset") if memset.any() else NONE, codes),
            ),
            device=self.number,
            stream=stream,
            process=0,
            correlation=np.array([_positive(s.get("correlation_id")) for s in stats], np.int64),
            bytes=np.where(kernel, NONE, np.array([_int(d.get("size"), NONE) for d in details], np.int64)),
            copy_kind=way,
            src_kind=np.where(copy, source, NONE),
            dst_kind=np.where(copy, target, NONE),
            grid=shape["grid"],
            block=shape["block"],
            registers=np.array([_int(d.get("regs")) for d in details], np.int64),
            shared_memory=np.array(shared, np.int64),
        )

    def _demangled(self, name: str) -> str:
        if not name.startswith("_Z"):
            return name
        return next((m.display_name for m in self.plane.events.values() if m.name == name and m.display_name), name)


def _details(stats: dict[str, Stat]) -> dict[str, str]:
    """``regs:32 grid:4,1,1 block:256,1,1`` and ``kind_src:pinned kind_dst:device size:4096`` as a dictionary."""
    text = " ".join(str(stats[k]) for k in ("kernel_details", "memcpy_details", "memset_details") if k in stats)
    return dict(_DETAIL.findall(text))


def _int(text: str | None, missing: int = 0) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 19 else missing


def _positive(value: Stat | None) -> int:
    return value if isinstance(value, int) and 0 < value < 1 << 40 else NONE


def _shape(text: str | None) -> list[int]:
    parts = [_int(p) for p in (text or "").split(",")]
    return parts if len(parts) == 3 else [0, 0, 0]


class Tpu(_Plane):
    """``XLA Ops`` run on the core one after the other (loops lie around their bodies); ``Async XLA Ops`` are transfers
    beside them, from start to done. An op of the core that waits for a transfer (``copy-done``) counts as transfer."""

    def read(self) -> None:
        for line in self.plane.lines:
            self.note(line)
            if not len(line):
                continue
            if line.name in (_OPS, _ASYNC_OPS):
                self._ops(line, int(line.name == _ASYNC_OPS))
            elif line.name == _MODULES:
                self._modules(line)

    def _ops(self, line: Line, stream: int) -> None:
        ways = self._ways(line)
        names = [m[1] if (m := _HLO.match(t)) else "unnamed operation" for t in self.texts(line)]
        code = self.rows.names.code
        kinds = {n: _tpu_kind(n) for n in set(names)}
        kind = np.array([kinds[n] for n in names], np.int64)
        copy = kind == OpKind.COPY
        way = np.array([ways.get(n, CopyKind.UNKNOWN) for n in names], np.int64)
        self.rows.add_ops(
            "device events",
            line.start,
            line.end,
            kind=kind,
            name=np.array([code(n) for n in names], np.int64),
            device=self.number,
            stream=stream,
            process=0,
            copy_kind=np.where(copy, way, NONE),
        )

    def _ways(self, line: Line) -> dict[str, CopyKind]:
        """The direction of copies by operation, as far as the memory spaces in its text tell."""
        found: dict[str, CopyKind] = {}
        waits: dict[str, str] = {}
        for text in dict.fromkeys(self.texts(line)):
            name = m[1] if (m := _HLO.match(text)) else ""
            if name.startswith("copy-start") and (ends := _ENDS.search(text)):
                to_host, from_host = _HOST_SPACE in ends[1], _HOST_SPACE in ends[2]
                found[name] = {
                    (False, True): CopyKind.HTOD,
                    (True, False): CopyKind.DTOH,
                    (True, True): CopyKind.HTOH,
                }.get((to_host, from_host), CopyKind.DTOD)
            elif name.startswith("copy-done") and (started := _STARTED.search(text)):
                waits[name] = started[1]
        return found | {w: found[s] for w, s in waits.items() if s in found}

    def _modules(self, line: Line) -> None:
        names = [f"{_FINGERPRINT.sub('', t)} TPU{self.number}" for t in self.texts(line)]
        self.rows.add_host(
            "modules",
            line.start,
            line.end,
            kind=int(HostKind.RANGE),
            name=np.array([self.rows.names.code(n) for n in names], np.int64),
            process=0,
        )


def _tpu_kind(name: str) -> OpKind:
    if _TPU_COLLECTIVE.match(name):
        return OpKind.COLLECTIVE
    return OpKind.COPY if _TPU_COPY.match(name) else OpKind.KERNEL
