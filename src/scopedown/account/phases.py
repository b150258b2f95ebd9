"""What the application knows partitions the interval before any trace is read.

``arrival | client | sent | network, front end | queued | queue | scheduled | service | end of the interval``
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.account.clock import ServerClock, server_clock
from scopedown.account.population import interval, last_token, members, nearest_rank
from scopedown.read.base import UNKNOWN, RequestLog
from scopedown.terms import Category, Metric
from scopedown.units import show_ns


@dataclass(frozen=True, slots=True)
class Phase:
    start: int
    end: int
    category: Category
    label: str

    @property
    def ns(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Phases:
    phases: tuple[Phase, ...]
    """Exact partition of the interval, in order, none of them empty."""
    clock: ServerClock
    warnings: tuple[str, ...]

    @property
    def interval(self) -> tuple[int, int]:
        return self.phases[0].start, self.phases[-1].end


@dataclass(frozen=True, slots=True)
class PhaseDifference:
    category: Category
    label: str
    ns: int
    median_ns: int
    """The same phase of the median request."""


@dataclass(frozen=True, slots=True)
class PhaseSum:
    category: Category
    label: str
    ns: int
    count: int
    """Requests that have this phase."""


def phases(log: RequestLog, row: int, metric: Metric, clock: ServerClock | None = None) -> Phases | None:
    """The phases of a request's interval; None where the log does not have the interval.

    A stamp that is absent merges the phases on both sides of it; one that lies outside its neighbours (a clock) is
    moved to them, with a warning.
    """
    begins, ends = interval(log, metric)
    clock = server_clock(log) if clock is None else clock
    return _of_row(log, row, metric, (int(begins[row]), int(ends[row]), int(last_token(log)[row])), clock)


def summed(log: RequestLog, metric: Metric = Metric.E2E) -> list[PhaseSum]:
    """The phases of all requests that count, added up: what a window of load consists of, in request-nanoseconds."""
    begins, ends, last = *interval(log, metric), last_token(log)
    clock = server_clock(log)
    rows, _, _ = members(log, metric)
    sums: dict[tuple[Category, str], list[int]] = {}
    for row in np.unique(rows).tolist():
        found = _of_row(log, row, metric, (int(begins[row]), int(ends[row]), int(last[row])), clock)
        for phase in found.phases if found else ():
            sums.setdefault((phase.category, phase.label), []).append(phase.ns)
    return [PhaseSum(category, label, sum(ns), len(ns)) for (category, label), ns in sums.items()]


def against_median(log: RequestLog, row: int, metric: Metric) -> list[PhaseDifference]:
    """The phases of a request beside those of the median request: how the class of a percentile differs."""
    rows, ns, _ = members(log, metric)
    mine = phases(log, row, metric)
    if mine is None or not len(rows):
        return []
    middle = int(rows[np.argmax(ns == nearest_rank(ns, 0.5))])
    theirs = phases(log, middle, metric, mine.clock)
    labels = dict.fromkeys((p.category, p.label) for found in (mine, theirs) if found for p in found.phases)
    return [PhaseDifference(c, t, _total(mine, c, t), _total(theirs, c, t)) for c, t in labels]


def _of_row(
    log: RequestLog, row: int, metric: Metric, times: tuple[int, int, int], clock: ServerClock
) -> Phases | None:
    """``times``: start and end of the interval, and the last token."""
    begin, end, last = times
    if begin == UNKNOWN or end == UNKNOWN or end <= begin:
        return None
    warnings = [clock.warning] if clock.warning else []
    if metric in (Metric.TPOT, Metric.ITL):
        return Phases((Phase(begin, end, Category.UNACCOUNTED, "service"),), clock, tuple(warnings))
    cuts, moved = _cuts(log, row, begin, end, clock)
    if moved:
        names = " and ".join(f"{name} by {show_ns(by)}" for name, by in moved)
        warnings.append(f"request {log.id[row]!r}: stamps outside their neighbours, moved: {names}")
    found = _label(cuts, begin, end, _END[metric])
    if metric is Metric.E2E and found[-1].start < last < end:
        found[-1:] = [
            Phase(found[-1].start, last, found[-1].category, found[-1].label),
            Phase(last, end, Category.NETWORK, "return: last token to end of the reply"),
        ]
    return Phases(tuple(p for p in found if p.end > p.start), clock, tuple(warnings))


def _total(found: Phases | None, category: Category, label: str) -> int:
    return 0 if found is None else sum(p.ns for p in found.phases if (p.category, p.label) == (category, label))


def _cuts(
    log: RequestLog, row: int, begin: int, end: int, clock: ServerClock
) -> tuple[dict[str, int], list[tuple[str, int]]]:
    """The stamps that the log has, in order and inside [begin, end], and how far each had to be moved."""
    raw = {"sent": int(log.sent[row]), "queued": int(log.queued[row]), "scheduled": int(log.scheduled[row])}
    cuts, moved, low = {}, [], begin
    for name, time in raw.items():
        if time == UNKNOWN:
            continue
        at = time if name == "sent" else time - clock.offset_ns
        kept = min(max(at, low), end)
        # An interval that ends before a stamp (queue time, a time-out) cuts it off: nothing was wrong with it.
        if kept != at and not (at > end and name == "sent"):
            moved.append((name, abs(kept - at)))
        cuts[name] = low = kept
    return cuts, moved


def _label(cuts: dict[str, int], begin: int, end: int, last: str) -> list[Phase]:
    """Phases between the stamps that there are; what lies between two of them is named by both."""
    found, at, since = [], begin, "arrival"
    for name in ("sent", "queued", "scheduled"):
        if name not in cuts:
            continue
        category, label = _BETWEEN[since, name]
        found.append(Phase(at, cuts[name], category, label))
        at, since = cuts[name], name
    category, label = _TO_END[since]
    found.append(Phase(at, end, category, label.format(end=last)))
    return found


_BETWEEN = {
    ("arrival", "sent"): (Category.CLIENT, "arrival to sent: the client is late"),
    ("arrival", "queued"): (Category.NETWORK, "arrival to queued: client, network and front end (no sent_ns)"),
    ("arrival", "scheduled"): (
        Category.QUEUE,
        "arrival to scheduled: client, network and queue (no sent_ns, queued_ns)",
    ),
    ("sent", "queued"): (Category.NETWORK, "sent to queued: network and front end"),
    ("sent", "scheduled"): (Category.QUEUE, "sent to scheduled: network, front end and queue (no queued_ns)"),
    ("queued", "scheduled"): (Category.QUEUE, "queued to scheduled"),
}
_TO_END = {
    "arrival": (Category.UNACCOUNTED, "arrival to {end} (no stamps between)"),
    "sent": (Category.UNACCOUNTED, "sent to {end} (no server stamps)"),
    "queued": (Category.UNACCOUNTED, "queued to {end}: queue and service (no scheduled_ns)"),
    "scheduled": (Category.UNACCOUNTED, "service"),
}
_END = {Metric.TTFT: "first token", Metric.E2E: "end", Metric.QUEUE_TIME: "scheduled"}
