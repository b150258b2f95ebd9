"""Requests that waited in the server before they were scheduled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scopedown.account import scenarios
from scopedown.account.clock import server_clock
from scopedown.account.groups import nearest
from scopedown.account.laws import Load, load_of, spearman
from scopedown.account.population import SHARES, members, nearest_rank
from scopedown.decide.rules.base import Finding, falls, lengths
from scopedown.decide.rules.late_client import name_of
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.read.base import UNKNOWN, RequestLog
from scopedown.symptom import Symptom
from scopedown.terms import Category, Metric, Scope
from scopedown.trace.model import Ints
from scopedown.units import show_ns, show_share

#: Below this rank correlation service time does not follow the wait.
INDEPENDENT = 0.3
#: Without stamps: TTFT has to follow the requests in flight at least this closely to be called a queue.
FOLLOWS = 0.5


@dataclass(frozen=True, slots=True)
class Waits:
    """The wait and the service of requests that have the stamps, beside ``rows``."""

    rows: Ints
    wait: Ints
    """Queued to scheduled; sent to scheduled where the log has no ``queued``."""
    service: Ints
    """Scheduled to first token; -1 where unknown."""
    begin: Ints
    scheduled: Ints
    """Both on the client's clock."""


class QueueWait:
    """Time between queued and scheduled: the server had the request and did not work on it.

    What it sees
        A material queue phase: its length for each request, the offered rate, the service time, and their product,
        the utilisation. Without the server's stamps an estimate: the growth of TTFT with the requests in flight.
    Why it matters
        Near saturation the wait grows without bound while the service takes what it always takes: p95 is made by
        load, not by any kernel. A faster kernel helps through the utilisation only.
    What it opens next
        The application scope: less load, batching, another replica, another policy. Without stamps: the server's own
        stamps or its queue depth, before anything is profiled.
    What refutes it
        Server stamps or a queue depth that show no waiting; the same statistic when one request is sent at a time.
    What it must not be confused with
        A service that takes longer under load (batching, other requests' prefills): there scheduled to first token
        grows, and the queue phase does not. A late client: those requests had not left.
    References
        Denning and Buzen, "The operational analysis of queueing network models" (1978); vllm-project/vllm#3096;
        huggingface/text-generation-inference#3173; sgl-project/sglang#22831.
    """

    id: ClassVar[str] = "queue_wait"

    def find(self, s: Situation) -> list[Finding]:
        if s.log is None or s.symptom is None or s.row is None or not s.is_latency:
            return []
        path_ns = s.path_ns(Category.QUEUE)
        if path_ns >= max(s.material_ns, 1):
            found = waits(s.log, s.symptom.metric)
            return [self._stamped(s, found, path_ns)] if len(found.rows) else []
        return self._estimated(s)

    def _stamped(self, s: Situation, found: Waits, path_ns: int) -> Finding:
        return Finding(
            self.id,
            Category.QUEUE,
            "queued to scheduled",
            found.wait,
            path_ns,
            Scope.APPLICATION,
            len(found.rows),
            cut=lambda: scenarios.category(s.account, Category.QUEUE),
            state=lambda saved: _statement(s, found, path_ns, saved),
        )

    def _estimated(self, s: Situation) -> list[Finding]:
        """Only where the queue is not on the ledger for want of stamps, and TTFT follows the requests in flight."""
        q = s.queue
        if q is None or s.row is None or s.account.timeline is not None or q.correlation < FOLLOWS:
            return []
        ns = min(int(q.queued_ns[s.row]), s.path_ns(Category.UNACCOUNTED))
        if ns < max(s.material_ns, 1):
            return []
        return [
            Finding(
                self.id,
                Category.QUEUE,
                "queue, estimated from requests in flight (no server stamps)",
                lengths(ns),
                ns,
                Scope.APPLICATION,
                1,
                state=lambda _: _estimate(s, ns),
            )
        ]


def waits(log: RequestLog, metric: Metric) -> Waits:
    """The requests that count for the metric and have the stamps."""
    rows = np.unique(members(log, metric)[0])
    begin = np.where(log.queued[rows] != UNKNOWN, log.queued[rows], UNKNOWN)
    offset = server_clock(log).offset_ns
    begin = np.where(begin != UNKNOWN, begin - offset, log.sent[rows])
    known = (begin != UNKNOWN) & (log.scheduled[rows] != UNKNOWN)
    rows, begin = rows[known], begin[known]
    scheduled = log.scheduled[rows] - offset
    first = log.first_token[rows]
    service = np.where(first != UNKNOWN, first - scheduled, -1)
    return Waits(rows, np.maximum(scheduled - begin, 0), service, begin, scheduled)


def _without_waiting(log: RequestLog, symptom: Symptom, found: Waits) -> int | None:
    """The statistic had no request waited; None for statistics of one request."""
    p = SHARES.get(symptom.statistic)
    if p is None or symptom.metric not in (Metric.TTFT, Metric.E2E, Metric.QUEUE_TIME):
        return None
    rows, ns, _ = members(log, symptom.metric)
    wait = np.zeros(len(log), np.int64)
    wait[found.rows] = found.wait
    left = ns - wait[rows]
    return nearest_rank(left, p) if len(left) else None


def _service(found: Waits) -> str:
    """Service time, and whether it follows the wait."""
    known = found.service >= 0
    if known.sum() < 2:
        return ""
    ns, wait = found.service[known], found.wait[known]
    spread = (
        f"service takes {show_ns(nearest(ns, 0.5))} (p10 {show_ns(nearest(ns, 0.1))}, p90 {show_ns(nearest(ns, 0.9))})"
    )
    if len(ns) < 10:
        return spread
    r = spearman(wait, ns)
    whatever = "whatever the wait" if abs(r) < INDEPENDENT else "and follows the wait"
    return f"{spread} {whatever} (rank correlation {r:.2f})"


def _offered(load: Load | None) -> str:
    if load is None:
        return ""
    if load.utilisation is None or load.service_ns is None:
        return f"{load.offered_rps:.3g} requests/s are offered"
    return (
        f"{load.offered_rps:.3g} requests/s offered x {show_ns(load.service_ns)} of service = utilisation "
        f"{load.utilisation:.3f}"
    )


def _statement(s: Situation, found: Waits, path_ns: int, saved_ns: int) -> Statement:
    assert s.log is not None
    assert s.symptom is not None
    value = s.chosen.value_ns if s.chosen is not None else s.total_ns
    left = _without_waiting(s.log, s.symptom, found)
    ahead = 0
    mine = np.flatnonzero(found.rows == s.row)
    if len(mine):
        i = int(mine[0])
        ahead = int(((found.scheduled > found.begin[i]) & (found.scheduled < found.scheduled[i])).sum())
    parts = [
        f"of {show_ns(s.total_ns)} the request waited {show_ns(path_ns)} ({show_share(path_ns, s.total_ns)}) in the "
        f"queue" + (f", while {ahead} others were scheduled" if ahead else ""),
        f"median wait of {len(found.rows)} requests {show_ns(nearest(found.wait, 0.5))}",
        _service(found),
        _offered(s.load or load_of(s.log)),
    ]
    if left is not None:
        parts.append(f"without waiting {name_of(s.symptom)} would be {show_ns(left)}")
    return Statement(
        text="; ".join(p for p in parts if p),
        category=Category.QUEUE,
        subject="queue",
        value=float(path_ns),
        unit="ns",
        count=max(int((found.wait > 0).sum()), 1),
        location="the server, between queued and scheduled",
        evidence=(s.evidence.get("log", "request log"),),
        predicts=(falls(s, saved_ns if left is None else value - left),),
        refuted_by=(
            "the server's queue depth (its own metrics) is 0 while these requests wait",
            f"the {s.metric} stays as it is when one request is sent at a time",
        ),
    )


def _estimate(s: Situation, ns: int) -> Statement:
    q = s.queue
    assert q is not None
    assert s.row is not None
    return Statement(
        text=(
            f"TTFT follows the requests in flight (rank correlation {q.correlation:.2f} over {q.requests} requests, "
            f"{show_ns(q.slope_ns)} for each one; {show_ns(q.alone_ns)} with the fewest): about {show_ns(ns)} of the "
            f"{show_ns(s.total_ns)} look like queue, with {int(q.in_flight[s.row])} others in flight; no server stamp "
            "says so yet"
        ),
        category=Category.QUEUE,
        subject="queue (estimated)",
        value=float(ns),
        unit="ns",
        count=q.requests,
        location="the server, between sent and first token",
        evidence=(s.evidence.get("log", "request log"),),
        predicts=(falls(s, ns, 0.3),),
        refuted_by=(
            "queued_ns and scheduled_ns of the server lie close together for these requests",
            f"the {s.metric} stays as it is when one request is sent at a time",
        ),
    )
