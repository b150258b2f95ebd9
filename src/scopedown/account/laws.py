"""Operational laws over a request log (Denning and Buzen, 1978): cross-checks that must hold.

Utilisation law: throughput x service time = busy share. Little's law: throughput x response time = mean in flight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.account.clock import server_clock
from scopedown.account.population import starts
from scopedown.read.base import STATUSES, UNKNOWN, RequestLog
from scopedown.report import Law
from scopedown.terms import Status
from scopedown.trace.model import Ints

_OK = STATUSES.index(Status.OK)
_S = 1e9

#: Relative error within which a law holds; Little's law has the requests that cross the window's edge on top.
TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class Load:
    """Offered load against what the server can serve, from the stamps of one log."""

    offered_rps: float
    """Requests over the time from first to last arrival."""
    achieved_rps: float
    """Completed requests over the time from first arrival to last end."""
    output_tps: float | None
    """Output tokens over the same time; None where the log has no output lengths."""
    mean_in_flight: float
    mean_e2e_ns: int
    service_ns: int | None
    """Time in which at least one request was in service, a request; None without server stamps."""
    in_service: float | None
    """Mean number in service while any was: 1 is one at a time."""
    utilisation: float | None
    """Offered rate x service time: at 1 or above the queue grows without bound."""


@dataclass(frozen=True, slots=True)
class QueueEstimate:
    """The queue without server stamps, guessed from how TTFT grows with the requests in flight."""

    requests: int
    correlation: float
    """Spearman's rank correlation of TTFT with the requests in flight at arrival."""
    slope_ns: int
    """TTFT that each request in flight adds (least squares)."""
    alone_ns: int
    """Smallest typical TTFT: the median of the tenth with the fewest in flight."""
    in_flight: Ints
    """Others in flight at the arrival, a row of the log; -1 where unknown."""
    queued_ns: Ints
    """Estimated queue a row: TTFT beyond ``alone_ns``, at least 0; -1 where unknown."""


def load_of(log: RequestLog) -> Load | None:
    """None where fewer than two requests have both a start and an end."""
    begin, end, rows = _spans(log)
    if len(rows) < 2 or begin.max() == begin.min():
        return None
    span = float(begin.max() - begin.min()) / _S
    window = float(end.max() - begin.min())
    tokens = log.output_tokens[rows]
    has_tokens = tokens != UNKNOWN
    busy, in_service = _service(log, rows)
    service = None if busy is None else busy / len(rows)
    return Load(
        offered_rps=(len(rows) - 1) / span,
        achieved_rps=len(rows) / (window / _S),
        output_tps=None if not has_tokens.any() else float(tokens[has_tokens].sum()) / (window / _S),
        mean_in_flight=float((end - begin).sum()) / window,
        mean_e2e_ns=int((end - begin).mean()),
        service_ns=None if service is None else int(service),
        in_service=in_service,
        utilisation=None if service is None else len(rows) / span * service / _S,
    )


def laws(log: RequestLog) -> list[Law]:
    """The laws that this log can check. A broken one: stamps or requests are missing, or the load is not steady.

    Little's law is checked between first and last arrival, where it is no identity: what crosses the edge is its error.
    """
    begin, end, rows = _spans(log)
    if len(rows) < 2 or begin.max() == begin.min():
        return []
    a, b = int(begin.min()), int(begin.max())
    window = (b - a) / _S
    inside = end <= b
    found = []
    if inside.sum() >= 10:
        in_flight = float((np.minimum(end, b) - begin).sum()) / (b - a)
        rate = float(inside.sum()) / window
        response = float((end - begin)[inside].mean()) / _S
        edge = float((~inside).sum()) / len(rows)
        found.append(
            _law(
                "Little's law: mean in flight = completions/s x mean E2E", in_flight, rate * response, TOLERANCE + edge
            )
        )
    busy, in_service = _service(log, rows)
    if busy is not None and in_service is not None and in_service < 1 + TOLERANCE:
        first, last = _prefills(log, rows)
        span = float(end.max() - begin.min()) / _S
        rate, mean = len(first) / span, float((last - first).mean()) / _S
        text = "utilisation law: busy share = throughput x mean service time (scheduled to first token)"
        found.append(_law(text, busy / _S / span, rate * mean, TOLERANCE))
    return found


def estimate_queue(log: RequestLog) -> QueueEstimate | None:
    """None with fewer than ten requests, or where nothing was ever in flight beside another."""
    begin, end, rows = _spans(log)
    first = log.first_token[rows]
    rows, begin, end, first = (x[first != UNKNOWN] for x in (rows, begin, end, first))
    if len(rows) < 10:
        return None
    at = np.searchsorted(np.sort(begin), begin, "left") - np.searchsorted(np.sort(end), begin, "right")
    if at.max() == at.min():
        return None
    ttft = first - begin
    alone = int(np.median(ttft[np.argsort(at, kind="stable")[: max(1, len(at) // 10)]]))
    slope = float(np.polyfit(at, ttft, 1)[0])
    in_flight, queued = np.full(len(log), -1, np.int64), np.full(len(log), -1, np.int64)
    in_flight[rows], queued[rows] = at, np.maximum(ttft - alone, 0)
    return QueueEstimate(len(rows), spearman(at, ttft), int(slope), alone, in_flight, queued)


def spearman(x: Ints, y: Ints) -> float:
    """Rank correlation; ties share their mean rank. 0 where one side is constant."""
    a, b = _ranks(x), _ranks(y)
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(x: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def _spans(log: RequestLog) -> tuple[Ints, Ints, Ints]:
    """``(start, end, row)`` of ok requests; warm-up is load as well, so it counts here."""
    begin = starts(log)
    rows = np.flatnonzero((log.status == _OK) & (begin != UNKNOWN) & (log.end != UNKNOWN) & (log.end >= begin))
    return begin[rows], log.end[rows], rows


def _service(log: RequestLog, rows: Ints) -> tuple[int | None, float | None]:
    """``(ns with at least one request in service, mean number in service then)`` from scheduled to first token.

    Only the prefill is meant: decoding shares the server with others by design.
    """
    begin, end = _prefills(log, rows)
    if not len(begin):
        return None, None
    reached = np.maximum.accumulate(end)
    begin_new = np.maximum(begin[1:], reached[:-1])
    busy = int(end[0] - begin[0]) + int(np.maximum(end[1:] - begin_new, 0).sum())
    return busy, float((end - begin).sum()) / busy


def _prefills(log: RequestLog, rows: Ints) -> tuple[Ints, Ints]:
    """``(scheduled, first token)`` on the client's clock, in order, of the rows that have both."""
    begin, end = log.scheduled[rows], log.first_token[rows]
    known = (begin != UNKNOWN) & (end != UNKNOWN)
    begin, end = begin[known] - server_clock(log).offset_ns, end[known]
    begin, end = begin[end > begin], end[end > begin]
    order = np.argsort(begin, kind="stable")
    return begin[order], end[order]


def _law(name: str, left: float, right: float, tolerance: float) -> Law:
    residual = (left - right) / right if right else float(left != right)
    return Law(
        law=f"{name} (within {100 * tolerance:.0f} %)",
        left=left,
        right=right,
        residual=residual,
        holds=abs(residual) <= tolerance,
    )
