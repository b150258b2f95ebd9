"""Where a finding lies and how much it is of the whole: the words that the rules share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scopedown.account import intervals
from scopedown.account.groups import Group
from scopedown.account.segments import merge_equal
from scopedown.account.steps import How
from scopedown.decide.rules.base import Finding, each, times
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.report import Prediction
from scopedown.terms import Category
from scopedown.trace.model import NONE, Ints, OpKind
from scopedown.units import show_ns, show_share

#: A rule speaks from this part of what is material; several small causes may add up to a material one.
SPEAKS_FROM = 4


def speaks(s: Situation, ns: int) -> bool:
    return ns > 0 and SPEAKS_FROM * ns >= s.material_ns


def evidence(s: Situation) -> tuple[str, ...]:
    return (Path(s.evidence.get("trace", "trace")).name,)


def share(s: Situation, ns: int) -> str:
    """``57.8 ms, 47.8 % of the symptom``."""
    whole = "symptom" if s.symptom is not None else "captured window"
    return f"{show_ns(ns)}, {show_share(ns, s.total_ns)} of the {whole}"


def lasting(ns: Ints, count: int | None = None, of: int | None = None) -> str:
    """``once, 44.07 ms``, ``9 times, 5.787 ms each``, ``31 of 32 steps, 1.8 ms each``."""
    n = len(ns) if count is None else count
    return f"{times(n, of)}, {each(ns)}{' each' if n > 1 else ''}"


def label(s: Situation, code: int) -> str:
    return s.account.labels.values[code] if code >= 0 else "nothing"


def thread_name(s: Situation, thread: int) -> str:
    t = s.account.timeline
    if t is None or thread < 0:
        return "an unknown thread"
    name = t.trace.threads[thread].name
    return f"thread {name or t.trace.threads[thread].tid}"


def path_idle_ns(s: Situation, start: Ints, end: Ints) -> int:
    """How much of disjoint sorted intervals lies on the path as anything but device work."""
    path = s.account.path
    own = path.take(~path.on_device)
    a, b, _, _ = intervals.intersect(own.start, own.end, start, end)
    return int((b - a).sum())


def joined(s: Situation, category: Category, label: int | None = None) -> list[Group]:
    """The groups of a category as one group a label, whatever the length of their members; largest first."""
    found: dict[int, list[Group]] = {}
    for g in s.account.groups:
        if g.category is category and label in (None, g.label):
            found.setdefault(g.label, []).append(g)
    out = []
    for code, parts in found.items():
        rows = np.sort(np.concatenate([g.rows for g in parts]))
        segs = merge_equal(s.account.path).take(rows) if len(parts) > 1 else None
        out.append(parts[0] if segs is None else Group(category, code, rows, segs.start, segs.ns))
    return sorted(out, key=lambda g: (-g.total_ns, g.label))


def mostly(s: Situation, g: Group) -> str:
    """``, most of it in 32 of 2.095 ms`` where a group that was joined has members of clearly other length."""
    parts = [x for x in s.account.groups if x.category is g.category and x.label == g.label]
    largest = max(parts, key=lambda x: x.total_ns, default=g)
    if largest.count == g.count or 2 * largest.total_ns < g.total_ns:
        return ""
    return f", most of it in {largest.count} of {show_ns(largest.median_ns)}"


def thread_of(s: Situation, g: Group) -> int:
    """The thread that most of a group's segments lie on."""
    threads = merge_equal(s.account.path).thread[g.rows]
    threads = threads[threads >= 0]
    return int(np.bincount(threads).argmax()) if len(threads) else NONE


def steps(s: Situation, count: int) -> int | None:
    """The number of steps, where a count is one a step for at least half of them."""
    found = s.account.steps
    if found is None:
        return None
    # Steps without ranges of their own are the distances of their starts: one fewer than there are.
    n = len(found) + (found.how is not How.ANNOTATION)
    return n if n <= 2 * count and count <= n else None


@dataclass(frozen=True, slots=True)
class Between:
    """The ops around segments of a host thread: those whose launch they hold back."""

    before: int
    """Label of the op before on the stream of the op that follows, or NONE."""
    after: int
    """Label of the op that the thread launches next."""
    count: int
    """Of how many of the segments."""
    idle_ns: int
    """Of all segments: time in which no kernel runs on that device."""


def between(s: Situation, thread: int, start: Ints, ns: Ints) -> Between | None:
    """The commonest pair of ops around segments of a thread."""
    t = s.account.timeline
    if t is None or thread < 0 or not len(start):
        return None
    ops, c, names = t.trace.ops, t.calls, t.devices.ops.label
    order = np.argsort(start, kind="stable")
    a, b = start[order], (start + ns)[order]
    launched = np.flatnonzero(c.of_op >= 0)
    own = launched[c.thread[c.of_op[launched]] == thread]
    if not len(own):
        # A thread that launches nothing holds back what others of its process launch.
        own = launched[c.process[c.of_op[launched]] == t.trace.threads[thread].process]
    if not len(own):
        return None
    own = own[np.argsort(c.start[c.of_op[own]], kind="stable")]
    at = np.searchsorted(c.start[c.of_op[own]], b, side="left")
    follows = own[at[at < len(own)]]
    if not len(follows):
        return None
    previous = t.streams.previous[follows]
    before = np.where(previous >= 0, names[np.maximum(previous, 0)], NONE)
    width = int(names.max()) + 2
    pairs, counts = np.unique((before + 1) * width + names[follows] + 1, return_counts=True)
    pair = int(pairs[counts.argmax()])
    devices, launches = np.unique(ops.device[follows], return_counts=True)
    device = devices[launches.argmax()]
    on = np.flatnonzero(
        (ops.device == device) & (ops.kind <= OpKind.COLLECTIVE) & (ops.end > a[0]) & (ops.start < b[-1])
    )
    x, y, _, _ = intervals.intersect(a, b, *intervals.union(ops.start[on], ops.end[on]))
    idle = int((b - a).sum() - (y - x).sum())
    return Between(pair // width - 1, pair % width - 1, int(counts.max()), idle)


def gain(s: Situation, saved_ns: int, tolerance: float = 0.15) -> Prediction:
    """What the replay says: the metric falls by it, or is unchanged where that is nothing."""
    amount, kind = saved_ns // s.parts, "falls" if saved_ns > s.total_ns // 1000 else "unchanged"
    within = max(int(amount * tolerance), 50_000)
    if kind == "unchanged":
        amount, within = 0, max(within, amount)
    return Prediction(metric=s.metric, direction=kind, amount_ns=amount, tolerance_ns=within)


def told(s: Situation, f: Finding, saved_ns: int, text: str, location: str, *refuted_by: str) -> Statement:
    """The statement on a finding that is measured by its median occurrence and predicted by its replay."""
    return Statement(
        text=text,
        category=f.category,
        subject=f.label,
        value=float(f.median_ns),
        unit="ns",
        count=f.count,
        location=location,
        evidence=evidence(s),
        predicts=(gain(s, saved_ns),),
        refuted_by=refuted_by,
    )
