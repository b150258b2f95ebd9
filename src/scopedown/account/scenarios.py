"""What can be taken out of an account, as scenarios for the replay, with how much of the record each one matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from scopedown.account import intervals
from scopedown.account.account import Account
from scopedown.account.groups import Group
from scopedown.account.matching import compiled, matching
from scopedown.account.replay import Scenario, without_waits
from scopedown.account.segments import Segments, many, merge_equal
from scopedown.account.timeline import Timeline
from scopedown.errors import UsageError
from scopedown.terms import Category
from scopedown.trace.model import NONE, CopyKind, HostKind, Ints, Mask, OpKind
from scopedown.trace.names import ApiMeaning

T = TypeVar("T")

_COPIES = {
    "HtoD": (CopyKind.HTOD, CopyKind.UVM_HTOD),
    "DtoH": (CopyKind.DTOH, CopyKind.UVM_DTOH),
    "DtoD": (CopyKind.DTOD, CopyKind.UVM_DTOD),
    "PtoP": (CopyKind.PTOP,),
}


@dataclass(slots=True)
class Cut:
    """A scenario and what it matched inside the interval."""

    scenario: Scenario
    fixed: Mask
    """Of the path's segments: those outside the replayed part that are taken out too (phases, the return)."""
    events: int
    time_ns: int
    assumptions: tuple[str, ...] = ()


def predict(account: Account, cuts: list[Cut]) -> list[int]:
    """Length of the whole interval under each cut."""
    path = account.path
    replayed = np.zeros(len(path), bool)
    base, now = 0, [0] * len(cuts)
    if account.replay is not None and account.service is not None and cuts:
        a, b = account.service
        replayed = (path.start >= a) & (path.end <= b)
        base = b - a
        now = [int(x) for x in account.replay.run([c.scenario for c in cuts])]
    out = []
    for cut, length in zip(cuts, now, strict=True):
        gone = int(np.rint(path.ns[cut.fixed & ~replayed].sum() * (1.0 - cut.scenario.keep)))
        out.append(max(account.total_ns - gone - (base - length), 0))
    return out


def saved(account: Account, cuts: list[Cut]) -> list[int]:
    """What each cut saves; never more than the interval, never less than nothing."""
    return [max(account.total_ns - p, 0) for p in predict(account, cuts)]


def _ops(account: Account) -> Mask:
    assert account.timeline is not None
    ops = account.timeline.trace.ops
    lo, hi = account.service or (account.lo, account.hi)
    return np.asarray((ops.start < hi) & (ops.end > lo))


def _time(account: Account, mask: Mask) -> int:
    assert account.timeline is not None
    ops = account.timeline.trace.ops
    s, e = intervals.clip(ops.start[mask], ops.end[mask], *(account.service or (account.lo, account.hi)))
    return int((e - s).sum())


def kernels(account: Account, chosen: Mask | None = None, keep: float = 0.0) -> Cut:
    """Kernels at ``keep`` of their time: all of them, or those of a mask over the device ops."""
    t = account.timeline
    if t is None:
        return _nothing(account, keep)
    mask = _ops(account) & (t.trace.ops.kind == OpKind.KERNEL if chosen is None else chosen)
    path = account.path
    fixed = path.on_device & (path.op >= 0) & mask[np.maximum(path.op, 0)] if len(mask) else np.zeros(len(path), bool)
    return Cut(Scenario(keep, ops=mask), fixed, int(mask.sum()), _time(account, mask))


def _nothing(account: Account, keep: float) -> Cut:
    return Cut(Scenario(keep), np.zeros(len(account.path), bool), 0, 0)


def segments_where(account: Account, test: Callable[[Segments], Mask], keep: float = 0.0) -> Cut:
    """All host time, launches and device ops whose segments pass the test, on every thread and stream: not only what
    lies on the path, since what is beside it may become the path."""
    t = account.timeline
    fixed = test(account.path)
    if t is None or account.service is None:
        return Cut(Scenario(keep), fixed, int(fixed.sum()), int(account.path.ns[fixed].sum()))
    lo, hi = account.service
    scenario = Scenario(keep)
    outside = fixed & ((account.path.start < lo) | (account.path.end > hi))
    events, time = int(outside.sum()), int(account.path.ns[outside].sum())
    whole = np.array([lo]), np.array([hi])
    for thread in range(len(t.trace.threads)):
        if t.trace.threads[thread].process not in t.processes or t.host.first_event(thread) is None:
            continue
        segs = merge_equal(t.host.segments(thread, *whole))
        mine = segs.take(test(segs))
        if not len(mine):
            continue
        # A free that drains the device costs what it takes after that; waiting for the device stays.
        frees = (t.calls.meaning == ApiMeaning.ALLOC) & t.calls.blocking
        s, e = without_waits(t.graph, thread, *intervals.union(mine.start, mine.end), frees)
        if len(s):
            scenario.host[thread] = s, e
            events, time = events + len(mine), time + int((e - s).sum())
    ops = t.devices.ops
    n = len(ops.category)
    none = np.full(n, NONE, np.int64)
    kinds, names = ops.category.copy(), ops.label.copy()
    # Ops on the path that were found to be somebody else's are called what the path calls them.
    foreign = account.path.take((account.path.category == Category.SCHEDULER.code) & (account.path.op >= 0))
    kinds[foreign.op], names[foreign.op] = foreign.category, foreign.label
    device = many(t.trace.ops.start, t.trace.ops.end, kinds, names, np.arange(n), none)
    mask = test(device) & _ops(account)
    if mask.any():
        scenario.ops = mask
        events, time = events + int(mask.sum()), time + _time(account, mask)
    waits = np.zeros(len(t.calls), bool)
    blocking = np.flatnonzero(t.calls.blocking & (t.calls.start < hi) & (t.calls.end > lo))
    if len(blocking):
        event = t.calls.event[blocking]
        pieces = many(
            t.calls.start[blocking],
            t.calls.end[blocking],
            t.host.category[event],
            t.host.label[event],
            np.full(len(blocking), NONE, np.int64),
            t.calls.thread[blocking],
        )
        # A wait whose own cost goes: a blocking copy's wait is the copy, it stays with the device op.
        sync = t.calls.meaning[blocking] == ApiMeaning.SYNC
        waits[blocking[test(pieces) & sync]] = True
    if waits.any():
        scenario.calls = waits
        events, time = events + int(waits.sum()), time + int((t.calls.end - t.calls.start)[waits].sum())
    return Cut(scenario, fixed, events, time)


def category(account: Account, *categories: Category, keep: float = 0.0) -> Cut:
    """All time of the categories; the profiler's own overhead is not among what can be taken out."""
    codes, tool = [c.code for c in categories], account.tool_labels
    cut = segments_where(account, lambda s: np.isin(s.category, codes) & ~np.isin(s.label, tool), keep)
    if Category.LAUNCH in categories and account.timeline is not None and account.service is not None:
        cut.scenario.launches = _ops(account)
        launch = account.path.category == Category.LAUNCH.code
        cut.events += int(launch.sum())
        cut.time_ns += int(account.path.ns[launch].sum())
    return cut


def line(account: Account, cat: Category, label: int, keep: float = 0.0) -> Cut:
    """One line of the ledger."""
    if cat is Category.LAUNCH:
        return _launches(account, (account.path.category == cat.code) & (account.path.label == label), keep)
    return segments_where(account, lambda s: (s.category == cat.code) & (s.label == label), keep)


def group(account: Account, g: Group, keep: float = 0.0) -> Cut:
    """Exactly the segments of a group of the path; launches and waits stay."""
    starts = np.sort(g.start)
    merged = merge_equal(account.path)
    rows = g.rows
    mine = merged.take(rows)
    fixed = np.isin(account.path.category, [g.category.code]) & (account.path.label == g.label)
    at = np.searchsorted(mine.start, account.path.start, side="right") - 1
    fixed &= (at >= 0) & (account.path.end <= mine.end[np.maximum(at, 0)]) if len(mine) else False
    if g.category is Category.LAUNCH:
        return _launches(account, fixed, keep)
    scenario = Scenario(keep)
    if account.timeline is not None:
        for thread in np.unique(mine.thread[mine.thread >= 0]).tolist():
            own = mine.take(mine.thread == thread)
            paid = _calls_around(account.timeline, thread, own.start)
            scenario.host[thread] = without_waits(account.timeline.graph, thread, own.start, own.end, paid)
        if g.category.is_device or g.category is Category.SCHEDULER:
            mask = np.zeros(len(account.timeline.trace.ops), bool)
            mask[account.path.op[fixed & (account.path.op >= 0)]] = True
            scenario.ops = mask
    return Cut(scenario, fixed, len(starts), g.total_ns)


def _calls_around(t: Timeline, thread: int, instants: Ints) -> Mask:
    """The calls of a thread in which the instants lie: where those are waits, what is meant is the cost beside
    waiting."""
    mask = np.zeros(len(t.calls), bool)
    if not len(mask):
        return mask
    lo, hi = int(t.calls.thread_bound[thread]), int(t.calls.thread_bound[thread + 1])
    at = lo + np.searchsorted(t.calls.start[lo:hi], instants, side="right") - 1
    mask[at[(at >= lo) & (instants < t.calls.end[np.maximum(at, 0)])]] = True
    return mask


def _launches(account: Account, fixed: Mask, keep: float) -> Cut:
    scenario = Scenario(keep)
    if account.timeline is not None:
        mask = np.zeros(len(account.timeline.trace.ops), bool)
        mask[account.path.op[fixed & (account.path.op >= 0)]] = True
        scenario.launches = mask
    return Cut(scenario, fixed, int(fixed.sum()), int(account.path.ns[fixed].sum()))


def host_time(account: Account, thread: int, start: Ints, end: Ints, keep: float = 0.0) -> Cut:
    """A thread's own time in disjoint sorted intervals, launch calls with it; waits in them stay."""
    none = np.zeros(len(account.path), bool)
    if account.timeline is None or account.service is None:
        return Cut(Scenario(keep), none, 0, 0)
    s, e = without_waits(account.timeline.graph, thread, *intervals.clip(start, end, *account.service))
    return Cut(Scenario(keep, {thread: (s, e)}), none, len(start), int((e - s).sum()))


def waits(account: Account, chosen: Mask) -> Cut:
    """Waits that are not made (a mask over the calls): their threads run on at once."""
    none = np.zeros(len(account.path), bool)
    if account.timeline is None or account.service is None:
        return Cut(Scenario(), none, 0, 0)
    c = account.timeline.calls
    made = chosen & c.blocking
    text = "the host goes on without the result that it waited for"
    return Cut(Scenario(calls=made), none, int(made.sum()), int((c.end - c.start)[made].sum()), (text,))


def host_named(account: Account, pattern: re.Pattern[str], keep: float = 0.0) -> Cut:
    """All host time inside events whose name matches, with all that they enclose; a matching wait is not made."""
    t = account.timeline
    if t is None or account.service is None:
        return _nothing(account, keep)
    lo, hi = account.service
    host = t.trace.host
    named = matching(pattern, t.trace.names)
    mine = np.isin(host.name, named) & (host.start < hi) & (host.end > lo) & (host.kind != HostKind.MARK)
    scenario = Scenario(keep)
    time = 0
    for thread in np.unique(host.thread[mine & (host.thread >= 0)]).tolist():
        rows = np.flatnonzero(mine & (host.thread == thread))
        s, e = intervals.union(*intervals.clip(host.start[rows], host.end[rows], lo, hi))
        s, e = without_waits(t.graph, thread, s, e)
        scenario.host[thread] = s, e
        time += int((e - s).sum())
    waits = np.zeros(len(t.calls), bool)
    called = t.calls.of_event[np.flatnonzero(mine)]
    rows = np.unique(called[called >= 0])
    waits[rows[t.calls.blocking[rows]]] = True
    if waits.any():
        scenario.calls = waits
        time += int((t.calls.end - t.calls.start)[waits].sum())
    return Cut(
        scenario,
        np.zeros(len(account.path), bool),
        int(mine.sum()),
        time,
        ("host time inside matching events goes with all that they enclose; waits stay unless they match",),
    )


def select(
    account: Account,
    selector: str,
    keep: float,
    lines: dict[str, tuple[Category, int]],
    patterns: dict[str, Callable[[], Cut]],
) -> Cut:
    """A selector of the command line: host:REGEX, kernel:REGEX, copy:KIND, category:NAME, line:ID, pattern:ID."""
    kind, colon, rest = selector.partition(":")
    if not colon or not rest:
        raise UsageError(
            f"{selector!r} is not a selector: write host:REGEX, kernel:REGEX, copy:HtoD, category:NAME, line:ID "
            "or pattern:ID"
        )
    if kind == "category":
        if rest not in set(Category):
            raise UsageError(f"{rest!r} is not a category; there are: {', '.join(Category)}")
        return category(account, Category(rest), keep=keep)
    if kind == "line":
        return line(account, *_known(lines, rest, "line"), keep=keep)
    if kind == "pattern":
        cut = _known(patterns, rest, "pattern")()
        cut.scenario.keep = keep
        return cut
    if kind == "copy":
        return _copy(account, rest, keep)
    if kind in ("host", "kernel"):
        pattern = compiled(rest)
        if kind == "host":
            return host_named(account, pattern, keep)
        if account.timeline is None:
            return _nothing(account, keep)
        ops, names = account.timeline.trace.ops, account.timeline.trace.names
        named = matching(pattern, names)
        return kernels(account, np.isin(ops.name, named) & np.isin(ops.kind, (OpKind.KERNEL, OpKind.COLLECTIVE)), keep)
    raise UsageError(f"{kind!r} selects nothing: write host:, kernel:, copy:, category:, line: or pattern:")


def _copy(account: Account, rest: str, keep: float) -> Cut:
    if rest not in _COPIES:
        raise UsageError(f"{rest!r} is not a copy kind; there are: {', '.join(_COPIES)}")
    t = account.timeline
    if t is None or t.trace.ops.copy_kind is None:
        return _nothing(account, keep)
    return kernels(account, np.isin(t.trace.ops.copy_kind, _COPIES[rest]), keep)


def _known(table: dict[str, T], key: str, what: str) -> T:
    if key not in table:
        some = ", ".join(list(table)[:12]) or "none"
        raise UsageError(f"no {what} {key!r} in this report; there are: {some}")
    return table[key]


def without_selected(cuts: Iterable[Cut]) -> Cut:
    """Several cuts at once, all with the same factor."""
    merged: Cut | None = None
    for cut in cuts:
        merged = cut if merged is None else _both(merged, cut)
    if merged is None:
        raise UsageError("nothing to remove: name what to take out, such as --remove pattern:top")
    return merged


def _both(a: Cut, b: Cut) -> Cut:
    if a.scenario.keep != b.scenario.keep:
        raise UsageError(
            "--remove and --scale with different factors cannot be replayed together: ask for one at a time"
        )
    host: dict[int, tuple[Ints, Ints]] = dict(a.scenario.host)
    for thread, (s, e) in b.scenario.host.items():
        if thread in host:
            s, e = np.append(host[thread][0], s), np.append(host[thread][1], e)
            order = np.argsort(s, kind="stable")
            s, e = intervals.union(s[order], e[order])
        host[thread] = s, e
    scenario = Scenario(
        a.scenario.keep,
        host,
        _either(a.scenario.ops, b.scenario.ops),
        _either(a.scenario.launches, b.scenario.launches),
        _either(a.scenario.calls, b.scenario.calls),
    )
    texts = tuple(dict.fromkeys(a.assumptions + b.assumptions))
    return Cut(scenario, a.fixed | b.fixed, a.events + b.events, a.time_ns + b.time_ns, texts)


def _either(a: Mask | None, b: Mask | None) -> Mask | None:
    return b if a is None else a if b is None else a | b
