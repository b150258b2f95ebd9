"""Steps of a capture: from annotations, graph launches, or the period of the kernel sequence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from scopedown.account.calls import Calls, Streams
from scopedown.trace.model import HostKind, Ints, Trace
from scopedown.trace.names import ApiMeaning, without_counters

AT_LEAST = 3
_STEP_WORDS = re.compile(
    r"step|iter|forward|prefill|decode|execute_context|execute_model|batch|token|epoch", re.IGNORECASE
)
_REQUEST_WORDS = re.compile(r"request|req[-_ ]|cmpl-|^r-", re.IGNORECASE)


class How(StrEnum):
    ANNOTATION = "annotation"
    GRAPH_LAUNCH = "graph launch"
    PERIOD = "period of the kernel sequence"


@dataclass(frozen=True, slots=True)
class Steps:
    how: How
    name: str
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)


def annotated(trace: Trace, lo: int, hi: int) -> list[Steps]:
    """Repeated annotations of one name whose ranges do not overlap, longest total first."""
    host = trace.host
    rows = np.flatnonzero(
        ((host.kind == HostKind.ANNOTATION) | (host.kind == HostKind.RANGE)) & (host.start < hi) & (host.end > lo)
    )
    if not len(rows):
        return []
    keys: dict[str, list[int]] = {}
    for n in np.unique(host.name[rows]).tolist():
        text = without_counters(trace.names[n])
        if text and not _REQUEST_WORDS.search(text):
            keys.setdefault(text, []).append(n)
    found = []
    for text, names in keys.items():
        mine = rows[np.isin(host.name[rows], names)]
        s, e = host.start[mine], host.end[mine]
        if len(mine) >= AT_LEAST and len(np.unique(host.thread[mine])) == 1 and (s[1:] >= e[:-1]).all():
            found.append(Steps(How.ANNOTATION, text, s, e))
    return sorted(found, key=lambda f: (-int((f.end - f.start).sum()), f.name))


def is_step(name: str) -> bool:
    return bool(_STEP_WORDS.search(name))


def find(trace: Trace, calls: Calls, st: Streams, lo: int, hi: int) -> Steps | None:
    """The steps of [lo, hi), or None where nothing repeats."""
    ranges = annotated(trace, lo, hi)
    named = [r for r in ranges if is_step(r.name)]
    # A range that is not called a step is one where it fills its stretch, and a good part of the interval.
    covering = [
        r
        for r in named or ranges
        if 2 * int((r.end - r.start).sum()) >= int(r.end[-1] - r.start[0])
        and (named or 4 * int((r.end - r.start).sum()) >= hi - lo)
    ]
    if covering or named:
        return (covering or named)[0]
    return _graphs(calls, lo, hi) or _period(trace, st, lo, hi)


def _graphs(calls: Calls, lo: int, hi: int) -> Steps | None:
    rows = np.flatnonzero((calls.meaning == ApiMeaning.GRAPH_LAUNCH) & (calls.start >= lo) & (calls.end <= hi))
    rows = rows[np.argsort(calls.start[rows], kind="stable")]
    if len(rows) <= AT_LEAST:
        return None
    return Steps(How.GRAPH_LAUNCH, "graph launch", calls.start[rows[:-1]], calls.start[rows[1:]])


def _period(trace: Trace, st: Streams, lo: int, hi: int) -> Steps | None:
    """The shortest period of the op names of the busiest stream that at least four of five ops obey."""
    ops = trace.ops
    if not len(ops):
        return None
    busiest = int(np.bincount(st.key).argmax())
    rows = st.order[st.bound[busiest] : st.bound[busiest + 1]]
    rows = rows[(ops.start[rows] >= lo) & (ops.end[rows] <= hi)]
    names = ops.name[rows]
    values, counts = np.unique(names, return_counts=True)
    for count in sorted({int(c) for c in counts if c > AT_LEAST}):
        for value in values[counts == count][:4].tolist():
            at = np.flatnonzero(names == value)
            period = int(np.median(np.diff(at)))
            inside = names[at[0] : at[-1]]
            if period >= 2 and len(inside) > period and (inside[period:] == inside[:-period]).mean() >= 0.8:
                begin = ops.start[rows[at]]
                return Steps(How.PERIOD, trace.names[value], begin[:-1], begin[1:])
        if count > 4 * AT_LEAST and count > len(names) // 2:
            break
    return None
