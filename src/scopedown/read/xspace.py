"""An XSpace in memory: planes, their lines, and events as columns (tsl/profiler/protobuf/xplane.proto).

Field numbers: XSpace: planes 1, errors 2, warnings 3 · XPlane: name 2, lines 3, event_metadata 4, stat_metadata 5,
stats 6 · XLine: id 1, name 2, timestamp_ns 3, events 4 · XEvent: metadata_id 1, offset_ps 2, duration_ps 3, stats 4,
num_occurrences 5 · XStat: metadata_id 1, then one of double 2, uint64 3, int64 4, str 5, bytes 6, ref 7. The host's
name (XSpace 4) is not read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from scopedown.read.wire import WireError, fields, signed, text, varint
from scopedown.trace.model import Ints

Stat = int | float | str
_PICO = 1000


@dataclass(slots=True)
class Metadata:
    name: str = ""
    display_name: str = ""


@dataclass(slots=True)
class Line:
    id: int
    name: str
    start: Ints
    """ns; the line's own timestamp is in it."""
    end: Ints
    metadata: Ints
    stats: list[tuple[int, ...]]
    """For each event the places of its stats in the file, pairwise begin and stop."""
    aggregated: int
    """Events that stand for many and have no time of their own: left out."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(slots=True)
class Plane:
    data: bytes
    name: str = ""
    lines: list[Line] = field(default_factory=list)
    events: dict[int, Metadata] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    own_stats: list[tuple[int, int]] = field(default_factory=list)

    def stats(self, places: tuple[int, ...]) -> dict[str, Stat]:
        """Stats by name."""
        found: dict[str, Stat] = {}
        for at, stop in zip(places[::2], places[1::2], strict=True):
            name, value = self._stat(at, stop)
            found[name] = value
        return found

    @property
    def plane_stats(self) -> dict[str, Stat]:
        return dict(self._stat(at, stop) for at, stop in self.own_stats)

    def _stat(self, at: int, stop: int) -> tuple[str, Stat]:
        name, value = "", 0  # type: tuple[str, Stat]
        for number, v, end in fields(self.data, at, stop):
            if number == 1:
                name = self.stat_names.get(v, str(v))
            elif number == 2:
                (value,) = struct.unpack("<d", v.to_bytes(8, "little"))
            elif number == 4:
                value = signed(v)
            elif number == 3:
                value = v
            elif number in (5, 6) and end >= 0:
                value = text(self.data, v, end)
            elif number == 7:
                value = self.stat_names.get(v, "")
        return name, value


def read_space(data: bytes) -> tuple[list[Plane], list[str]]:
    """(planes, errors and warnings of the tool). Raises WireError where the bytes are no such message."""
    planes: list[Plane] = []
    said: list[str] = []
    for number, at, stop in fields(data, 0, len(data)):
        if number == 1:
            planes.append(_plane(data, at, _content(at, stop)))
        elif number in (2, 3) and stop >= 0:
            said.append(text(data, at, stop))
    return planes, said


def is_space(head: bytes) -> bool:
    """Whether bytes begin like an XSpace: its first plane, whose first members are an id and a name."""
    try:
        if head[:1] != b"\x0a":
            return False
        _, at = varint(head, 1, len(head))
        if head[at : at + 1] == b"\x08":
            _, at = varint(head, at + 1, len(head))
        if head[at : at + 1] != b"\x12":
            return False
        size, at = varint(head, at + 1, len(head))
    except WireError:
        return False
    name = head[at : at + size]
    return len(name) == size and name.startswith((b"/device:", b"/host:", b"Task Environment", b"#Chip"))


def _content(at: int, stop: int) -> int:
    if stop < 0:
        raise WireError(f"a number where a message was expected ({at})")
    return stop


def _plane(data: bytes, at: int, stop: int) -> Plane:
    plane = Plane(data)
    for number, v, end in fields(data, at, stop):
        if number == 2:
            plane.name = text(data, v, _content(v, end))
        elif number == 3:
            plane.lines.append(_line(data, v, _content(v, end)))
        elif number == 4:
            key, place = _entry(data, v, _content(v, end))
            plane.events[key] = _metadata(data, *place)
        elif number == 5:
            key, place = _entry(data, v, _content(v, end))
            plane.stat_names[key] = _metadata(data, *place).name
        elif number == 6:
            plane.own_stats.append((v, _content(v, end)))
    return plane


def _entry(data: bytes, at: int, stop: int) -> tuple[int, tuple[int, int]]:
    """An entry of a map: (key, place of the value)."""
    key, place = 0, (at, at)
    for number, v, end in fields(data, at, stop):
        if number == 1:
            key = signed(v)
        elif number == 2:
            place = (v, _content(v, end))
    return key, place


def _metadata(data: bytes, at: int, stop: int) -> Metadata:
    found = Metadata()
    for number, v, end in fields(data, at, stop):
        if number == 2:
            found.name = text(data, v, _content(v, end))
        elif number == 4 and end >= 0:
            found.display_name = text(data, v, end)
    return found


def _line(data: bytes, at: int, stop: int) -> Line:
    id_, name, timestamp = 0, "", 0
    places: list[tuple[int, int]] = []
    for number, v, end in fields(data, at, stop):
        if number == 4:
            places.append((v, _content(v, end)))
        elif number == 1:
            id_ = signed(v)
        elif number == 2:
            name = text(data, v, _content(v, end))
        elif number == 3:
            timestamp = signed(v)
    metadata, offset, duration, stats = [], [], [], []
    aggregated = 0
    for place in places:
        kind = begin = length = 0
        own: tuple[int, ...] = ()
        many = False
        for number, v, end in fields(data, *place):
            if number == 1:
                kind = signed(v)
            elif number == 2:
                begin = signed(v)
            elif number == 3:
                length = signed(v)
            elif number == 4:
                own += (v, _content(v, end))
            elif number == 5:
                many = True
        if many:
            aggregated += 1
            continue
        metadata.append(kind)
        offset.append(begin)
        duration.append(length)
        stats.append(own)
    first = np.array(offset, np.int64)
    return Line(
        id=id_,
        name=name,
        start=timestamp + rounded(first),
        end=timestamp + rounded(first + np.array(duration, np.int64)),
        metadata=np.array(metadata, np.int64),
        stats=stats,
        aggregated=aggregated,
    )


def rounded(ps: Ints) -> Ints:
    """Picoseconds to the nearest nanosecond, halves to even. Both ends of an event are rounded from the line's start,
    so that neighbours that touch go on touching and nothing drifts."""
    whole, rest = np.divmod(ps, _PICO)
    up = (rest > _PICO // 2) | ((rest == _PICO // 2) & (whole % 2 == 1))
    out: Ints = whole + up
    return out


def event_stats(plane: Plane, line: Line) -> Iterator[dict[str, Stat]]:
    """Stats of a line's events, one dictionary an event."""
    return map(plane.stats, line.stats)
