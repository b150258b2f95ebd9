"""Runs of the simulator as the XLA profiler would have recorded them, and the protobuf that they take.

The format knows one process and has no events, no synchronisation records and no OS calls. Times are picoseconds from
the line's own start.
"""

from __future__ import annotations

from pathlib import Path

from scopedown.simulate.as_trace import thread_ids
from scopedown.simulate.run import Run
from scopedown.trace.model import NONE, CopyKind, MemKind, OpKind

AFTER = 1_000_000
UTC = 1_771_595_650_217_823_548
LINE_START = 711_141
"""Lines of a real profile begin at their own time."""

_COPIES = {
    CopyKind.HTOD: "MemcpyH2D",
    CopyKind.DTOH: "MemcpyD2H",
    CopyKind.DTOD: "MemcpyD2D",
    CopyKind.PTOP: "MemcpyP2P",
}
_KINDS = {MemKind.PAGEABLE: "pageable", MemKind.PINNED: "pinned", MemKind.DEVICE: "device"}


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    """A number; zero is left out, as protobuf does."""
    return varint(tag << 3) + varint(value) if value else b""


def message(tag: int, content: bytes | str) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return varint(tag << 3 | 2) + varint(len(raw)) + raw


class PlaneMaker:
    """A plane under construction: names become metadata ids."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: dict[str, int] = {}
        self.stats: dict[str, int] = {}
        self.lines: list[bytes] = []
        self.own: list[bytes] = []

    def stat(self, name: str, value: int | str, ref: bool = False) -> bytes:
        place = number(1, self.stats.setdefault(name, len(self.stats) + 1))
        if isinstance(value, int):
            return place + varint(3 << 3) + varint(value)
        if ref:
            return place + number(7, self.stats.setdefault(value, len(self.stats) + 1))
        return place + message(5, value)

    def event(self, name: str, offset_ps: int, duration_ps: int, **stats: int | str) -> bytes:
        key = self.events.setdefault(name, len(self.events) + 1)
        own = b"".join(message(4, self.stat(k, v, ref=isinstance(v, str))) for k, v in stats.items())
        return message(4, number(1, key) + number(2, offset_ps) + number(3, duration_ps) + own)

    def line(self, name: str, events: list[bytes], timestamp_ns: int = LINE_START, id_: int = 0) -> None:
        self.lines.append(number(1, id_) + message(2, name) + number(3, timestamp_ns) + b"".join(events))

    def made(self) -> bytes:
        def entries(tag: int, names: dict[str, int]) -> bytes:
            return b"".join(
                message(tag, number(1, i) + message(2, number(1, i) + message(2, n))) for n, i in names.items()
            )

        own = b"".join(message(6, s) for s in self.own)
        lines = b"".join(message(3, line) for line in self.lines)
        return message(1, message(2, self.name) + lines + entries(4, self.events) + entries(5, self.stats) + own)


def environment(start: int, stop: int) -> bytes:
    plane = PlaneMaker("Task Environment")
    plane.own = [plane.stat("profile_start_time", start), plane.stat("profile_stop_time", stop)]
    return plane.made()


def xspace(run: Run) -> bytes:
    """One host line a thread, with its calls and its ranges; one device line a stream."""
    program, recorded = run.program, run.recorded
    planes = []
    for d, _name in enumerate(program.devices):
        plane = PlaneMaker(f"/device:GPU:{d}")
        streams: dict[int, list[bytes]] = {}
        for o in sorted(recorded.ops, key=lambda o: o.start):
            if o.device != d or o.work.kind == OpKind.GRAPH:
                continue
            w = o.work
            stats: dict[str, int | str] = {"correlation_id": o.correlation} if o.correlation > 0 else {}
            if w.kind == OpKind.COPY:
                name = _COPIES[CopyKind(w.copy)]
                ends = [_KINDS.get(MemKind(k), "unknown") if k != NONE else "unknown" for k in (w.source, w.target)]
                stats["memcpy_details"] = f"kind_src:{ends[0]} kind_dst:{ends[1]} size:{w.bytes} dest:0 async:1"
            elif w.kind == OpKind.MEMSET:
                name, stats["memset_details"] = "Memset", f"kind:device size:{w.bytes}"
            else:
                name = w.name
                grid, block = (",".join(map(str, shape)) for shape in (w.grid, w.block))
                stats["kernel_details"] = (
                    f"regs:{w.registers} static_shared:0 dynamic_shared:{w.shared} grid:{grid} block:{block}"
                )
            streams.setdefault(o.stream, []).append(
                plane.event(name, (o.start - LINE_START) * 1000, (o.end - o.start) * 1000, **stats)
            )
        for stream, events in streams.items():
            plane.line(f"Stream #{stream}", events, id_=stream)
        plane.own = [plane.stat("device_vendor", "Nvidia"), plane.stat("core_count", 132)]
        planes.append(plane.made())
    host = PlaneMaker("/host:CPU")
    for t, tid in enumerate(thread_ids(run)):
        events = [
            host.event(c.name, (c.start - LINE_START) * 1000, (c.end - c.start) * 1000, correlation_id=c.correlation)
            for c in recorded.calls
            if c.thread == t
        ]
        for r in (*recorded.ranges, *recorded.traced_marks):
            if r.thread == t:
                end = run.end_ns + AFTER if r.end == NONE else r.end
                events.append(host.event(r.name, (r.start - LINE_START) * 1000, (end - r.start) * 1000))
        if events:
            host.line(f"{program.threads[t].name or 'python'}/{tid}", events, id_=tid)
    planes.append(host.made())
    planes.append(environment(UTC, UTC + run.end_ns + AFTER))
    return b"".join(planes) + message(4, "box-of-somebody")


def write_xplane(run: Run, path: Path) -> Path:
    path.write_bytes(xspace(run))
    return path
