"""Which threads, streams and devices are drawn beside a path, and their events."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scopedown.account.account import Account
from scopedown.account.thin import Thinned
from scopedown.account.timeline import Timeline
from scopedown.picture import Pieces
from scopedown.terms import CATEGORIES, Category
from scopedown.trace.model import NONE, HostKind, Ints, Names
from scopedown.trace.tally import AnyInts

THREAD, STREAM, IDLE = "thread", "stream", "idle"
#: Lanes of a kind; those before MAIN are drawn at once.
MOST = 24
MAIN = 4
MAIN_STREAMS = 8
#: Rows of a thread; the last holds the innermost of what lies deeper.
ROWS = 4


@dataclass(frozen=True, slots=True)
class Events:
    """Sorted by start, cut to the interval. ``key``: category and label as one number (see Keys)."""

    start: Ints
    end: Ints
    key: Ints


@dataclass(frozen=True, slots=True)
class Drawn:
    kind: str
    of: int
    """Thread, stream key or device."""
    title: str
    rows: list[Events]
    main: bool


@dataclass(slots=True)
class Keys:
    """Names of pieces: pairs of category and label."""

    labels: Names
    kept: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    dropped: int = 0

    @property
    def _width(self) -> int:
        return len(self.labels.values) + 1

    def of(self, category: AnyInts, label: AnyInts) -> Ints:
        return np.asarray(category, np.int64) * self._width + label + 1

    def keep(self, used: Ints, most: int) -> None:
        """The commonest pairs keep their names; the others are drawn as "other"."""
        keys, counts = np.unique(used, return_counts=True)
        best = np.sort(np.argsort(-counts, kind="stable")[:most])
        self.kept, self.dropped = keys[best], len(keys) - len(best)

    def names(self) -> list[tuple[Category, str]]:
        values = self.labels.values
        found = [(CATEGORIES[k // self._width], k % self._width - 1) for k in self.kept.tolist()]
        out = [(c, values[label] if label >= 0 else "") for c, label in found]
        return [*out, (Category.UNACCOUNTED, "other")] if self.dropped else out

    def pieces(self, t: Thinned, lo: int, events: int) -> Pieces:
        place = np.minimum(np.searchsorted(self.kept, t.key), max(len(self.kept) - 1, 0))
        hit = self.kept[place] == t.key if len(self.kept) else np.zeros(len(t.key), bool)
        merged = t.below_ns is not None
        return Pieces(
            start=(t.start - lo).tolist(),
            ns=(t.end - t.start).tolist(),
            name=np.where(hit, place, len(self.kept)).tolist(),
            count=t.count.tolist() if merged else [],
            busy=t.busy.tolist() if merged else [],
            events=events,
            below_ns=t.below_ns,
        )


def of(a: Account) -> list[Drawn]:
    """Threads, then each device: its idle time, then its streams. Most important first within each."""
    t = a.timeline
    if t is None:
        return []
    keys = Keys(a.labels)
    out = [*_threads(a, t, keys)]
    streams = _streams(a, t, keys)
    for d in a.devices:
        idle = d.segments.take(~d.segments.on_device)
        events = Events(idle.start, idle.end, keys.of(idle.category, idle.label))
        out.append(Drawn(IDLE, d.device, f"device {d.device}", [events], len(a.devices) <= MAIN))
        out += [s for device, s in streams if device == d.device]
    return out


def table(drawn: list[Drawn], kind: str, n: int) -> Ints:
    """Thread or stream key -> index of its lane, or NONE."""
    out = np.full(max(n, 1), NONE, np.int64)
    for i, lane in enumerate(drawn):
        if lane.kind == kind:
            out[lane.of] = i
    return out


def _inside(a: Account, start: Ints, end: Ints) -> Ints:
    return np.flatnonzero((start < a.hi) & (end > a.lo))


def _thread_order(a: Account, t: Timeline) -> list[int]:
    """Threads with events in the interval: by time on the path, then launches, then events that a program names."""
    host, n = t.trace.host, len(t.trace.threads)
    rows = _inside(a, host.start, host.end)
    rows = rows[(host.thread[rows] >= 0) & (host.kind[rows] != HostKind.RANGE) & (host.kind[rows] != HostKind.MARK)]
    named = rows[(host.kind[rows] != HostKind.OS) & (host.kind[rows] != HostKind.OVERHEAD)]
    launching = t.calls.of_op[t.calls.of_op >= 0]
    launching = launching[_inside(a, t.calls.start[launching], t.calls.end[launching])]
    on_path = np.zeros(n, np.int64)
    mine = a.path.thread >= 0
    np.add.at(on_path, a.path.thread[mine], a.path.ns[mine])
    launches = np.bincount(t.calls.thread[launching], minlength=n)
    events, any_event = np.bincount(host.thread[named], minlength=n), np.bincount(host.thread[rows], minlength=n)
    order = np.lexsort((-any_event, -events, -launches, -on_path))
    return [int(i) for i in order if any_event[i] or on_path[i]]


def _threads(a: Account, t: Timeline, keys: Keys) -> list[Drawn]:
    found = []
    for i, thread in enumerate(_thread_order(a, t)[:MOST]):
        info = t.trace.threads[thread]
        process = t.trace.processes[info.process].name if len(t.trace.processes) > 1 else ""
        title = " ".join(filter(None, [process, "thread", info.name, str(info.tid)]))
        on_path = bool((a.path.thread == thread).any())
        found.append(Drawn(THREAD, thread, title, _rows(a, t, thread, keys), on_path or i < MAIN))
    return found


def _rows(a: Account, t: Timeline, thread: int, keys: Keys) -> list[Events]:
    """The nested events of a thread, a row a depth; the last row by the innermost event at any time."""
    flat, rows = t.host.flat(thread)
    host = t.trace.host
    depth = np.zeros(len(rows), np.int64)
    above = flat.parent
    for _ in range(ROWS):
        depth += above >= 0
        above = np.where(above >= 0, flat.parent[np.maximum(above, 0)], NONE) if len(rows) else above

    def cut(start: Ints, end: Ints, event: Ints) -> Events:
        keep = _inside(a, start, end)
        e = event[keep]
        return Events(
            np.maximum(start[keep], a.lo), np.minimum(end[keep], a.hi), keys.of(t.host.category[e], t.host.label[e])
        )

    out = []
    for d in range(ROWS - 1):
        mine = rows[(depth == d)]
        mine = mine[host.end[mine] > host.start[mine]]
        out.append(cut(host.start[mine], host.end[mine], mine))
    if len(flat.owner):
        start, end, owner = flat.edge[:-1], flat.edge[1:], flat.owner[:-1]
        deep = (owner >= 0) & (depth[np.maximum(owner, 0)] >= ROWS - 1)
        out.append(cut(start[deep], end[deep], rows[owner[deep]]))
    while len(out) > 1 and not len(out[-1].start):
        out.pop()
    return out


def _streams(a: Account, t: Timeline, keys: Keys) -> list[tuple[int, Drawn]]:
    """Device and lane of the streams that the path runs through longest, then of those that were busy longest."""
    ops, st = t.trace.ops, t.streams
    rows = _inside(a, ops.start, ops.end)
    if not len(rows):
        return []
    s, e = np.maximum(ops.start[rows], a.lo), np.minimum(ops.end[rows], a.hi)
    busy = np.zeros(len(st.bound) - 1, np.int64)
    np.add.at(busy, st.key[rows], e - s)
    on_path = np.zeros(len(busy), np.int64)
    own = (a.path.thread < 0) & (a.path.op >= 0)
    np.add.at(on_path, st.key[a.path.op[own]], a.path.ns[own])
    found = []
    for i, key in enumerate(np.lexsort((-busy, -on_path))[:MOST].tolist()):
        mine = np.flatnonzero(st.key[rows] == key)
        if not len(mine):
            continue
        op = rows[mine]
        device = int(ops.device[op[0]])
        title = f"device {device} stream {int(ops.stream[op[0]])}"
        if len(t.trace.processes) > 1:
            title = f"{title} of {t.trace.processes[int(ops.process[op[0]])].name}"
        events = Events(s[mine], e[mine], keys.of(t.devices.ops.category[op], t.devices.ops.label[op]))
        found.append((device, Drawn(STREAM, key, title, [events], i < MAIN_STREAMS)))
    return found


def threads_left_out(a: Account) -> int:
    return max(0, len(_thread_order(a, a.timeline)) - MOST) if a.timeline is not None else 0


def streams_left_out(a: Account, drawn: list[Drawn]) -> int:
    if a.timeline is None:
        return 0
    rows = _inside(a, a.timeline.trace.ops.start, a.timeline.trace.ops.end)
    used = len(np.unique(a.timeline.streams.key[rows]))
    return used - sum(lane.kind == STREAM for lane in drawn)
