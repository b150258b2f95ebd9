"""Reader of JAX and XLA profiles: ``*.xplane.pb``, which ``jax.profiler.trace`` writes.

Planes ``/device:GPU:n`` hold one line a stream (``Stream #16(Kernel)``), planes ``/device:TPU:n`` the lines ``XLA Ops``
and ``Async XLA Ops`` (work) and ``XLA Modules`` (the programs that the ops belong to: ranges, not work). ``/host:CPU``
holds one line a thread: frames of the Python tracer (``$file.py:12 name``), ranges of XLA and of the user, and on lines
of their own the runtime calls, which share ``correlation_id`` with the device's events. Times are in nanoseconds
from the profile's start, whose UTC the plane ``Task Environment`` has.

``python -m scopedown.read.xplane FILE`` prints what was read.
"""

from __future__ import annotations

import re
import sys
from typing import ClassVar

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Source
from scopedown.read.limits import is_time
from scopedown.read.rows import Rows, artifact, hidden_home, show
from scopedown.read.wire import WireError
from scopedown.read.xplane_device import Gpu, Tpu, device_of
from scopedown.read.xspace import Line, Plane, Stat, event_stats, is_space, read_space
from scopedown.terms import Scope
from scopedown.trace.model import NONE, Device, HostKind, Ints, Meta
from scopedown.trace.names import clean_api

_TOOL = "XLA profiler"
_API = re.compile(r"(?:__)?(?:cuda|hip|cu)[A-Z]\w*")
#: Ranges that XLA, PJRT and JAX write about themselves; a user's range has a name of the user's.
_FRAMEWORK = re.compile(r"::|^(?:Pjit|PJRT|PjRt|Pjrt|Tfrt|TFRT|Xla|XLA|Thunk)")
#: Timestamps beyond this are of the Unix epoch: profiles of before 2020 were not made relative.
_EPOCH_NS = 10**17


class Xplane:
    kind: ClassVar[str] = "xplane"
    scope: ClassVar[Scope] = Scope.TIMELINE
    about: ClassVar[str] = "JAX or XLA profile (*.xplane.pb of jax.profiler)"

    def sniff(self, source: Source) -> bool:
        return is_space(source.head)

    def read(self, source: Source) -> Artifact:
        try:
            planes, said = read_space(source.read())
            rows = Rows()
            rows.process("host", 0)
            devices = _devices(planes, rows)
            host = [line for p in planes if p.name.startswith("/host:CPU") for line in _host_lines(p, rows)]
            warnings = [hidden_home(" ".join(s.split()))[:200] for s in said]
            warnings += _host(host, rows)
            utc, window = _clock(planes, rows)
        except (WireError, OverflowError) as error:
            raise InputError(
                source.path, "protobuf", f"is damaged or cut short ({error})", "copy it again, or profile again"
            ) from None
        meta = Meta(tool=_TOOL, utc_start_ns=utc, window=window, devices=tuple(devices))
        return artifact(self, source, rows, meta, warnings=warnings)


def _clock(planes: list[Plane], rows: Rows) -> tuple[int | None, tuple[int, int] | None]:
    """(UTC at t = 0, window) by the profile's own start and stop."""
    stats: dict[str, Stat] = {}
    for plane in planes:
        if plane.name == "Task Environment":
            stats |= plane.plane_stats
    start, stop = stats.get("profile_start_time"), stats.get("profile_stop_time")
    last = rows.last()
    if last is not None and last > _EPOCH_NS:
        return 0, (start, stop) if is_time(start) and is_time(stop) and start < stop else None
    if not is_time(start):
        return None, None
    return start, (0, stop - start) if is_time(stop) and stop > start else None


def _devices(planes: list[Plane], rows: Rows) -> list[Device]:
    found = []
    for plane in planes:
        what = device_of(plane)
        if what is None:
            continue
        kind, number = what
        stats = plane.plane_stats
        reader = Gpu if kind == "GPU" else Tpu
        reader(plane, number, rows).read()
        properties = {
            ours: value
            for ours, theirs, scale in (
                ("sm_count", "core_count", 1),
                ("clock_hz", "clock_rate", 1000),
                ("memory_bandwidth_bytes_per_s", "memory_bandwidth", 1),
                ("memory_bytes", "memory_size", 1),
            )
            if isinstance(raw := stats.get(theirs), int) and (value := raw * scale) > 0
        }
        name = stats.get("device_type_string") or (
            f"{stats['device_vendor']} GPU" if "device_vendor" in stats else None
        )
        found.append(Device(number, str(name) if name else None, dict(properties)))
    return found


class _HostLine:
    """A line of the host: its events with their kinds, and for calls what they were made for."""

    def __init__(self, plane: Plane, line: Line, rows: Rows) -> None:
        names = {m: plane.events[m].name if m in plane.events else "" for m in np.unique(line.metadata).tolist()}
        api = {m for m, n in names.items() if _API.fullmatch(n)}
        stats = list(event_stats(plane, line))
        self.id, self.name = line.id, line.name
        self.start, self.end = line.start, line.end
        self.text = [names[m] for m in line.metadata.tolist()]
        self.calls = bool(api) and all(m in api for m in names)
        self.correlation = np.array([_integer(s.get("correlation_id")) for s in stats], np.int64)
        self.operation = [str(s.get("hlo_op") or "") for s in stats]
        self.step = [s.get("step_num") for s in stats]
        self.is_api = np.array([m in api for m in line.metadata.tolist()], np.bool_)
        rows.note("events that stand for many have no time of their own: left out", line.aggregated)


def _integer(value: Stat | None) -> int:
    return value if isinstance(value, int) and 0 < value < 1 << 40 else NONE


def _host_lines(plane: Plane, rows: Rows) -> list[_HostLine]:
    return [_HostLine(plane, line, rows) for line in plane.lines if len(line) or line.aggregated]


def _host(lines: list[_HostLine], rows: Rows) -> list[str]:
    """Adds the host's rows; returns what is to be said about the threads."""
    said = []
    operations = {o for line in lines for o in line.operation if o}
    others = [line for line in lines if not line.calls]
    for line in lines:
        same = _same_thread(line, others) if line.calls else None
        own = same or line
        thread = rows.thread((own.id, own.name), 0, own.id, own.name.partition("/")[0])
        if same is not None:
            said.append(
                f"the calls of line {line.name} were made by thread {same.name.partition('/')[0]}: each lies in the "
                "operation that it names"
            )
        kind = _kinds(line, operations)
        plain = {t: rows.names.code(_text(t, None)) for t in dict.fromkeys(line.text)}
        names = [
            plain[t] if s is None else rows.names.code(_text(t, s)) for t, s in zip(line.text, line.step, strict=True)
        ]
        rows.add_host(
            "host events",
            line.start,
            line.end,
            kind=kind,
            name=np.array(names, np.int64),
            thread=thread,
            process=0,
            correlation=np.where(line.is_api, line.correlation, NONE),
        )
    return said


def _text(name: str, step: Stat | None) -> str:
    name = clean_api(name) if _API.fullmatch(name) else hidden_home(name.removeprefix("$"))
    return f"{name} {step}" if isinstance(step, int) else name or "unnamed event"


def _kinds(line: _HostLine, operations: set[str]) -> Ints:
    texts = list(dict.fromkeys(line.text))
    of = {t: _kind(t, operations) for t in texts}
    kind = np.array([of[t] for t in line.text], np.int64)
    kind[(line.start == line.end) & (kind != HostKind.API)] = HostKind.MARK
    steps = np.array([isinstance(s, int) for s in line.step], np.bool_)
    kind[steps] = HostKind.ANNOTATION
    return kind


def _kind(name: str, operations: set[str]) -> int:
    if name.startswith("$"):
        return HostKind.PYTHON
    if _API.fullmatch(name):
        return HostKind.API
    return HostKind.OP if name in operations or _FRAMEWORK.search(name) else HostKind.ANNOTATION


def _same_thread(calls: _HostLine, others: list[_HostLine]) -> _HostLine | None:
    """The thread that made a line's calls, which the file does not say: the one on which every call that names an
    operation (``hlo_op``) lies inside an event of that name."""
    named = [i for i, o in enumerate(calls.operation) if o]
    if not named:
        return None
    for line in others:
        spans: dict[str, tuple[Ints, Ints]] = {}
        texts = np.array(line.text, dtype=object)
        for operation in {calls.operation[i] for i in named}:
            rows = np.flatnonzero(texts == operation)
            rows = rows[np.argsort(line.start[rows], kind="stable")]
            spans[operation] = line.start[rows], line.end[rows]
        if all(_inside(spans[calls.operation[i]], int(calls.start[i]), int(calls.end[i])) for i in named):
            return line
    return None


def _inside(spans: tuple[Ints, Ints], start: int, end: int) -> bool:
    at = int(np.searchsorted(spans[0], start, side="right")) - 1
    return at >= 0 and end <= int(spans[1][at])


if __name__ == "__main__":
    sys.exit(show(Xplane(), sys.argv[1:]))
