"""The account of one interval: phases first, the critical path inside the service phase, the devices beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from scopedown.account import steps
from scopedown.account.align import Mark
from scopedown.account.device import DeviceAccount
from scopedown.account.groups import GapGroup, Group, of_gaps, of_segments
from scopedown.account.phases import Phase
from scopedown.account.replay import Replay
from scopedown.account.segments import Segments, check_partition, concat, many, merge_equal, one
from scopedown.account.timeline import Ending, Timeline
from scopedown.terms import CATEGORIES, Category
from scopedown.trace import tally
from scopedown.trace.model import NONE, HostKind, Ints, Names

_IMMEDIATE = re.compile("immediate", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """Segments of one category and label."""

    category: Category
    label: str
    code: int
    """Label code."""
    ns: int
    count: int
    tool: bool
    """The profiler's own overhead."""


@dataclass(frozen=True, slots=True)
class Account:
    lo: int
    hi: int
    """The interval; on the trace's axis where there is a trace, else on the log's."""
    path: Segments
    """Tiles [lo, hi)."""
    labels: Names
    phases: tuple[Phase, ...]
    timeline: Timeline | None
    service: tuple[int, int] | None
    """What of the interval the trace accounts for: from here to where the walk begins."""
    ending: Ending | None
    replay: Replay | None
    devices: tuple[DeviceAccount, ...]
    """Over the interval clipped to the capture."""
    groups: tuple[Group, ...]
    gap_groups: tuple[GapGroup, ...]
    steps: steps.Steps | None
    _lines: list[LedgerLine] = field(init=False, default_factory=list, repr=False, compare=False)

    @property
    def total_ns(self) -> int:
        return self.hi - self.lo

    def ns_of(self, *categories: Category) -> int:
        codes = [c.code for c in categories]
        return int(self.path.ns[np.isin(self.path.category, codes)].sum())

    @property
    def tool_labels(self) -> Ints:
        return self.timeline.host.tool if self.timeline is not None else np.empty(0, np.int64)

    def lines(self) -> list[LedgerLine]:
        """The ledger; worked out once, since counting what a line consists of takes long."""
        if not self._lines:
            self._lines.extend(ledger_lines(self.path, self))
        return list(self._lines)


def ledger_lines(segs: Segments, of: Account) -> list[LedgerLine]:
    """One line a category and label, largest first; the lines sum to the segments' total, exactly."""
    if not len(segs):
        return []
    merged = merge_equal(segs)
    width = int(merged.label.max()) + 2
    keys, where = tally.index(np.int64(width) * merged.category + merged.label + 1)
    sums = np.zeros(len(keys), np.int64)
    np.add.at(sums, where, merged.ns)
    counts = _occurrences(merged, where, len(keys), of.timeline)
    out, tool = [], set(of.tool_labels.tolist())
    for key, ns, count in zip(keys.tolist(), sums.tolist(), counts.tolist(), strict=True):
        code = key % width - 1
        text = of.labels.values[code] if code >= 0 else ""
        out.append(LedgerLine(CATEGORIES[key // width], text, code, ns, count, code in tool))
    return sorted(out, key=lambda x: (-x.ns, x.category, x.label))


def _occurrences(merged: Segments, line: Ints, lines: int, timeline: Timeline | None) -> Ints:
    """How many ops, calls or ranges each line consists of: a range that others cut into pieces is one. Time without an
    event counts by the piece."""
    piece = np.arange(len(merged))
    # What each segment is an occurrence of: a device op, a host event, or itself.
    pieces = line.copy()
    of_line, of_what = [pieces], [-2 - piece]
    if timeline is not None:
        device = merged.on_device | (merged.category == Category.LAUNCH.code)
        ops = device & (merged.op >= 0)
        of_what[0] = np.where(ops, merged.op, of_what[0])
        hosts = ~device & (merged.thread >= 0) & (merged.label != timeline.host.not_running)
        for thread in np.unique(merged.thread[hosts]).tolist():
            rows = np.flatnonzero(hosts & (merged.thread == thread))
            _, _, row, event = timeline.host.owners(thread, merged.start[rows], merged.end[rows])
            known = event >= 0
            of_line.append(line[rows[row[known]]])
            of_what.append(event[known] + len(timeline.trace.ops))
            pieces[rows[row[known]]] = NONE
    # One integer a (line, occurrence), so that they are told apart by sorting integers.
    lines_of, what = np.concatenate(of_line), np.concatenate(of_what)
    what, lines_of = what[lines_of >= 0], lines_of[lines_of >= 0]
    low = int(what.min(initial=0))
    width = int(what.max(initial=0)) - low + 1
    key = np.sort(lines_of * width + (what - low))
    fresh = np.append(True, key[1:] != key[:-1])[: len(key)]
    return np.bincount(key[fresh] // width, minlength=lines)


def account(
    phases: Sequence[Phase],
    timeline: Timeline | None,
    *,
    marks: Sequence[Mark] = (),
    token: int | None = None,
    ending: Ending | None = None,
    thread: int = NONE,
) -> Account:
    """Accounts for the interval that the phases tile. A phase of category UNACCOUNTED is opened with the trace.

    ``marks``: ranges of the trace that carry the request's id. ``token``: the interval ends with the k-th token of the
    request. ``ending``: where the walk begins, if that is known. ``thread``: the thread whose range the interval is.
    """
    lo, hi = phases[0].start, phases[-1].end
    labels = timeline.labels if timeline is not None else Names()
    parts: list[Segments] = []
    service: tuple[int, int] | None = None
    replay: Replay | None = None
    for p in phases:
        if p.category is not Category.UNACCOUNTED or timeline is None or service is not None:
            parts.append(one(p.start, p.end, p.category, labels.code(p.label)))
            continue
        a, b = _captured(timeline, p.start, p.end)
        outside = labels.code("outside the capture")
        if a >= b:
            parts.append(one(p.start, p.end, Category.OUTSIDE_CAPTURE, outside))
            continue
        # The walk begins inside the capture, however far the interval reaches beyond it.
        if ending is None or ending.at <= a:
            ending = _ending(timeline, a, b, token, thread)
        elif ending.at > b:
            ending = replace(ending, at=b)
        parts.append(one(p.start, a, Category.OUTSIDE_CAPTURE, outside))
        parts.append(one(b, p.end, Category.OUTSIDE_CAPTURE, outside))
        if ending is None:
            parts.append(one(a, b, Category.UNACCOUNTED, labels.code("no event of the trace lies in it")))
            continue
        parts.append(timeline.path(a, ending))
        parts.append(_return(timeline, ending, b, marks, whole_thread=thread != NONE or (not marks and token is None)))
        service, replay = (a, ending.at), timeline.replay(a, ending)
    path = concat(parts)
    check_partition(path, lo, hi)
    devices: tuple[DeviceAccount, ...] = ()
    gap_groups: list[GapGroup] = []
    found: steps.Steps | None = None
    if timeline is not None:
        a, b = _captured(timeline, lo, hi)
        if a < b:
            devices = tuple(timeline.device_accounts(a, b))
            gap_groups = [g for d in devices for g in of_gaps(d, timeline.devices.ops)]
            found = steps.find(timeline.trace, timeline.annotated, timeline.calls, timeline.streams, a, b)
    return Account(
        lo,
        hi,
        path,
        labels,
        tuple(phases),
        timeline,
        service,
        ending,
        replay,
        devices,
        tuple(of_segments(path)),
        tuple(gap_groups),
        found,
    )


def window(timeline: Timeline, lo: int, hi: int, thread: int = NONE) -> Account:
    """The account of a stretch of the trace that no log cuts into phases."""
    phases = [Phase(lo, hi, Category.UNACCOUNTED, "captured window")]
    ending = timeline.last_row(lo, hi) if thread == NONE else Ending(hi, thread, NONE)
    if ending is not None and ending.at < hi and ending.thread != NONE:
        ending = Ending(hi, ending.thread, NONE)
    if ending is not None:
        ending = timeline.settled(ending)
    return account(phases, timeline, ending=ending, thread=thread)


def _captured(timeline: Timeline, lo: int, hi: int) -> tuple[int, int]:
    """The part of [lo, hi) that the capture covers. A capture that a trigger began covers its first row onwards."""
    meta, span = timeline.trace.meta, timeline.rows_span
    if span is None:
        return lo, lo
    trigger = next((v for k, v in meta.options.items() if "START_TRIGGER" in k), "immediate")
    begin, end = meta.window if meta.window is not None else span
    if meta.window is None or not _IMMEDIATE.search(trigger):
        begin = max(begin, span[0])
    begin, end = (
        min(begin, span[0]) if meta.window is not None and _IMMEDIATE.search(trigger) else begin,
        max(end, span[1]),
    )
    return min(max(lo, begin), hi), min(hi, max(end, lo))


def _ending(timeline: Timeline, lo: int, hi: int, token: int | None, thread: int) -> Ending | None:
    """Where the walk begins: with token k, at the return of the wait that ended the k-th step after ``lo``."""
    if thread != NONE:
        return Ending(hi, thread, NONE)
    last = timeline.ending(lo, hi)
    if token is None or last is None or last.op != NONE:
        return last
    ranges = [s for s in timeline.annotated.repeated(lo, timeline.trace_end) if steps.is_step(s.name)]
    for found in ranges[:1]:
        begun = np.flatnonzero(found.start >= lo)
        if len(begun) < token or found.start[begun[token - 1]] >= hi:
            continue
        k = begun[token - 1]
        wait = timeline.wait_of(int(found.start[k]), int(found.end[k]), hi)
        # A tail longer than the step itself is no return: more than this step made the token.
        if wait is not None and hi - int(timeline.calls.end[wait]) <= (hi - lo) // 2:
            return Ending(int(timeline.calls.end[wait]), int(timeline.calls.thread[wait]), NONE)
    return last


def _return(timeline: Timeline, ending: Ending, hi: int, marks: Sequence[Mark], *, whole_thread: bool) -> Segments:
    """From the end of the engine's work to the end of the interval: named by ranges of the trace where there are any,
    else the way back of the token."""
    a = ending.at
    if a >= hi:
        return one(a, a, Category.FRONTEND, NONE)
    labels = timeline.labels
    if whole_thread:
        # No request, no token that could be on its way back: the thread that asked for the last work goes on.
        thread = ending.thread if ending.thread != NONE else timeline.asker(ending.op, a, hi)
        if thread == NONE:
            return one(a, hi, Category.UNACCOUNTED, labels.code("no event of the trace lies in it"))
        return timeline.host.segments(thread, np.array([a]), np.array([hi]))
    back = labels.code("return: the engine has the token, the client does not")
    covers: list[tuple[int, Segments]] = []
    threads = {m.thread for m in marks if m.thread != NONE and m.end > a}
    if ending.thread != NONE:
        threads.add(ending.thread)
    host = timeline.trace.host
    near = (host.kind != HostKind.OVERHEAD) & (host.start >= a) & (host.end <= hi) & (host.thread >= 0)
    threads |= set(np.unique(host.thread[near & (host.kind == HostKind.ANNOTATION)]).tolist())
    soft = [Category.HOST_UNTRACED.code, Category.HOST_OS_WAIT.code]
    for t in sorted(threads):
        segs = timeline.host.segments(t, np.array([a]), np.array([hi]))
        named = ~np.isin(segs.category, soft)
        covers.append((int(segs.ns[named].sum()), segs))
    best = max(covers, key=lambda c: c[0], default=(0, None))
    if best[1] is None or best[0] == 0:
        return one(a, hi, Category.FRONTEND, back)
    segs = best[1]
    unnamed = np.isin(segs.category, soft)
    return many(
        segs.start,
        segs.end,
        np.where(unnamed, Category.FRONTEND.code, segs.category),
        np.where(unnamed, back, segs.label),
        segs.op,
        np.where(unnamed, NONE, segs.thread),
    )
