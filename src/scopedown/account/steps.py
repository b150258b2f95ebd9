"""Steps of a capture: from annotations, graph launches, or the period of the kernel sequence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from scopedown.account.calls import Calls, Streams
from scopedown.account.groups import rows_of_keys
from scopedown.trace import named
from scopedown.trace.model import NONE, HostKind, Ints, Names, Trace
from scopedown.trace.names import ApiMeaning, Counterless

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


class Annotated:
    """The annotations and ranges of a trace, by name without counters; no requests among them."""

    def __init__(self, trace: Trace) -> None:
        host = trace.host
        rows = np.flatnonzero((host.kind == HostKind.ANNOTATION) | (host.kind == HostKind.RANGE))
        plain, self._texts = Counterless(), Names()
        code = np.full(len(trace.names) + 1, NONE, np.int64)
        for n in named.used(trace.names, host.name[rows]):
            text = plain(trace.names[n])
            if text:
                code[n] = self._texts.code(text)
        asked = np.array([not _REQUEST_WORDS.search(t) for t in self._texts.values] + [False])
        code = code[host.name[rows]]
        keep = asked[code]
        self._host, self._rows, self._code = host, rows[keep], code[keep]

    def repeated(self, lo: int, hi: int) -> list[Steps]:
        """Those of one name whose ranges do not overlap, in [lo, hi), longest total first."""
        host = self._host
        near = np.flatnonzero((host.start[self._rows] < hi) & (host.end[self._rows] > lo))
        found = []
        for same in rows_of_keys(self._code[near]):
            mine = self._rows[near[same]]
            s, e = host.start[mine], host.end[mine]
            if len(mine) >= AT_LEAST and (s[1:] >= e[:-1]).all() and (host.thread[mine] == host.thread[mine[0]]).all():
                text = self._texts.values[int(self._code[near[same[0]]])]
                found.append(Steps(How.ANNOTATION, text, s, e))
        return sorted(found, key=lambda f: (-int((f.end - f.start).sum()), f.name))


def is_step(name: str) -> bool:
    return bool(_STEP_WORDS.search(name))


def find(trace: Trace, annotated: Annotated, calls: Calls, st: Streams, lo: int, hi: int) -> Steps | None:
    """The steps of [lo, hi), or None where nothing repeats."""
    ranges = annotated.repeated(lo, hi)
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
