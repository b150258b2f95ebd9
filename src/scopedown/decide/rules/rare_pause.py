from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from scopedown.account import intervals, scenarios
from scopedown.account.device import DeviceAccount
from scopedown.account.groups import GapGroup, Group, nearest, of_gaps
from scopedown.account.segments import merge_equal
from scopedown.decide.rules import alloc_churn, places
from scopedown.decide.rules.base import Finding, each, times
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import CATEGORIES, EXPLAINED_BY, HOST_WITHOUT_CAUSE, RESOLVABLE_BY, Category, Scope
from scopedown.trace.model import Ints
from scopedown.units import show_ns, show_share

#: A gap is a pause if it is this many times the median of its like, and this long at least.
FACTOR = 10
LEAST_NS = 1_000_000
#: Of at least so many gaps with one signature, at most this share are pauses.
REGULAR = 12
#: Shorter pauses in all are not worth a word.
OF_CAPTURE = 0.01
SHARE = 0.1


class RarePause:
    """A rare and long pause beside many regular gaps of the same place.

    What it sees
    Over the whole capture, not only the chosen interval: gaps between device ops of the same names of which a few are
    ten times as long as the usual one, and longer than a millisecond. Count, and share of the capture.

    Why it matters
    Tails are made of them. The chosen step or request may hold none, and an average hides them.

    What it opens next
    A measurement that names the cause. Garbage collection is one candidate among others: a cache flush of the
    allocator, a compilation, a log write, another process on the core.

    What refutes it
    A run with the named cause off in which the pauses come as often.

    What it must not be confused with
    A first call (module_load), which comes once at the start; a gap that is always long (host_gap).

    References
    vllm-project/vllm issues on garbage collection pauses; pytorch/pytorch#82073 (allocator flush).
    """

    id: ClassVar[str] = "rare_pause"

    def find(self, s: Situation) -> list[Finding]:
        a = s.account
        t = a.timeline
        if t is None or t.rows_span is None:
            return []
        found: list[Finding] = []
        for d in a.devices:
            whole = t.devices.account(d.device, *t.rows_span)
            pauses = _pauses(of_gaps(whole, t.devices.ops))
            found += [f for g, rare in pauses if (f := self._finding(s, whole, g, rare)) is not None]
        return found

    def _finding(self, s: Situation, d: DeviceAccount, g: GapGroup, rare: Ints) -> Finding | None:
        t = s.account.timeline
        assert t is not None
        assert t.rows_span is not None
        begin, end = t.rows_span
        order = rare[np.argsort(g.start[rare], kind="stable")]
        start, ns = g.start[order], g.ns[order]
        category, code = _cause(d, start, start + ns)
        if not category.is_host or int(ns.sum()) < OF_CAPTURE * (end - begin):
            return None
        if category is Category.HOST_ALLOC and len(ns) >= alloc_churn.AT_LEAST:
            return None
        label = places.label(s, code)
        unknown = category in HOST_WITHOUT_CAUSE
        cause = "garbage collection is one candidate among others, nothing here names it" if unknown else "it is named"
        usual = nearest(np.delete(g.ns, rare), 0.5)
        on_path = places.path_idle_ns(s, start, start + ns)
        group = _on_path(s, category, code, start, start + ns)
        total, after = int(ns.sum()), places.label(s, g.after)
        opens = EXPLAINED_BY.get(category) or (RESOLVABLE_BY.get(category) or (Scope.FRAMEWORK,))[0]
        here = "the accounted interval holds none" if on_path == 0 else f"{show_ns(on_path)} lie on the path"

        def state(saved: int) -> Statement:
            return Statement(
                f"{times(len(ns), len(g.ns), 'gaps')} before {after} are pauses of {each(ns)}, where the usual one is "
                f"{show_ns(usual)}: {show_ns(total)}, {show_share(total, end - begin)} of the capture; {here}. Most of "
                f"it is {category} in {label!r}: {cause}. Without the pauses the replay of this interval saves "
                f"{show_ns(saved)}.",
                category,
                label,
                float(nearest(ns, 0.5)),
                "ns",
                len(ns),
                f"before {after}, first at {show_ns(int(start[0]) - begin)} after the first row",
                places.evidence(s),
                (places.gain(s, saved),),
                ("a run with the suspected cause switched off in which the pauses come as often",),
            )

        return Finding(
            self.id,
            category,
            label,
            ns,
            on_path,
            opens,
            len(g.ns),
            group=group,
            cut=(lambda: scenarios.group(s.account, group)) if group is not None else None,
            state=state,
        )


def _pauses(groups: list[GapGroup]) -> Iterator[tuple[GapGroup, Ints]]:
    for g in groups:
        if len(g.ns) < REGULAR or g.before < 0 or g.after < 0:
            continue
        rare = np.flatnonzero((g.ns > FACTOR * nearest(g.ns, 0.5)) & (g.ns >= LEAST_NS))
        first_only = len(rare) == 1 and g.start[rare[0]] == g.start.min()
        if len(rare) and len(rare) <= SHARE * len(g.ns) and not first_only:
            yield g, rare


def _cause(d: DeviceAccount, start: Ints, end: Ints) -> tuple[Category, int]:
    """What most of the time of some gaps is."""
    segs = d.segments
    a, b, row, _ = intervals.intersect(segs.start, segs.end, start, end)
    key = np.int64(int(segs.label.max()) + 2) * segs.category[row] + segs.label[row] + 1
    sums = np.zeros(int(key.max()) + 1, np.int64)
    np.add.at(sums, key, b - a)
    best = int(sums.argmax())
    return CATEGORIES[best // (int(segs.label.max()) + 2)], best % (int(segs.label.max()) + 2) - 1


def _on_path(s: Situation, category: Category, label: int, start: Ints, end: Ints) -> Group | None:
    """The path's segments of that cause that begin in one of the pauses and fill half of it."""
    segs = merge_equal(s.account.path)
    at = np.searchsorted(start, segs.end, side="left") - 1
    inside = (at >= 0) & (segs.start < end[np.maximum(at, 0)])
    long = 2 * segs.ns > (end - start)[np.maximum(at, 0)]
    rows = np.flatnonzero(inside & long & (segs.category == category.code) & (segs.label == label))
    return Group(category, label, rows, segs.start[rows], segs.ns[rows]) if len(rows) else None
