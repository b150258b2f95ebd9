"""Requests that left the load client after their intended arrival."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from scopedown.account import scenarios
from scopedown.account.groups import nearest
from scopedown.account.population import members, statistic
from scopedown.decide.rules.base import Finding, falls, times
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.read.base import UNKNOWN, RequestLog
from scopedown.symptom import Symptom
from scopedown.terms import Category, Metric, Scope, Statistic
from scopedown.trace.model import Ints
from scopedown.units import show_ns, show_share

#: A send is late from here on, or from this share of the metric's median on, whichever is more.
LATE_NS = 1_000_000
LATE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Lateness:
    """How far sends lay behind the schedule, over requests that count and have both stamps."""

    rows: Ints
    """Late requests, in order of arrival."""
    ns: Ints
    of: int
    median_ns: int
    """Of all of them, as p95."""
    p95_ns: int
    stretch_ns: tuple[int, int]
    """Around the latest request: from the arrival of the first late one to the send of the last one in an unbroken
    run, both since the first arrival of the log."""
    stretches: int


class LateClient:
    """Requests that the load client sent after the schedule wanted them sent.

    What it sees
        Requests whose send lies behind their arrival by more than 1 ms and 5 % of the metric's median, where that
        holds a material part of the symptom; the statistic from the arrival beside the one from the send.
    Why it matters
        The time is real for whoever waits, but the server never had the request: nothing on the server can mend it.
        Timed from the send the stall disappears from the statistic (coordinated omission), and so do the requests
        that a client on schedule would have sent meanwhile.
    What it opens next
        The application scope again: repair the load client (its own CPU time, connection pool, event loop), then
        repeat the measurement before anything of the server is profiled.
    What refutes it
        The same schedule from an idle client, or from two clients with half the load each, shows the same statistic;
        or the client's own record of its sends (packet times) shows them on schedule.
    What it must not be confused with
        A queue in the server: those requests left on time and waited after ``queued``. A closed loop, where the next
        request is not due before the last one ended: there the arrival is the send, and lateness cannot be seen.
    References
        Tene, "How not to measure latency" (coordinated omission); thelastpickle/tlp-stress#131;
        vllm-project/vllm#39963.
    """

    id: ClassVar[str] = "late_client"

    def find(self, s: Situation) -> list[Finding]:
        if s.log is None or s.symptom is None or not s.is_latency:
            return []
        path_ns = s.path_ns(Category.CLIENT)
        found = lateness(s.log, s.symptom.metric)
        if found is None or path_ns < max(s.material_ns, 1):
            return []
        return [
            Finding(
                self.id,
                Category.CLIENT,
                "arrival to sent: the load client is late",
                found.ns,
                path_ns,
                Scope.APPLICATION,
                found.of,
                cut=lambda: scenarios.category(s.account, Category.CLIENT),
                state=lambda saved: _statement(s, found, path_ns, saved),
            )
        ]


def lateness(log: RequestLog, metric: Metric) -> Lateness | None:
    """None where nothing was late, or nothing can be seen: the log has no arrival beside the send."""
    known = (log.arrival != UNKNOWN) & (log.sent != UNKNOWN) & ~log.warmup
    rows = np.flatnonzero(known)
    rows = rows[np.argsort(log.arrival[rows], kind="stable")]
    late = log.sent[rows] - log.arrival[rows]
    _, values, _ = members(log, metric if metric.is_latency and metric is not Metric.STEP_TIME else Metric.TTFT)
    than = max(LATE_NS, int(LATE_SHARE * nearest(values, 0.5))) if len(values) else LATE_NS
    mine = late > than
    if not mine.any():
        return None
    # What holds up one request holds up its neighbours in the schedule: an unbroken run of late ones.
    first = np.flatnonzero(mine & ~np.append(False, mine[:-1]))
    last = np.flatnonzero(mine & ~np.append(mine[1:], False))
    run = int(np.searchsorted(first, int(np.argmax(late)), side="right")) - 1
    zero = int(log.arrival[rows[0]])
    return Lateness(
        rows=rows[mine],
        ns=late[mine],
        of=len(rows),
        median_ns=nearest(late, 0.5),
        p95_ns=nearest(late, 0.95),
        stretch_ns=(int(log.arrival[rows[first[run]]]) - zero, int(log.sent[rows[last[run]]]) - zero),
        stretches=len(first),
    )


def from_send(log: RequestLog, symptom: Symptom) -> int | None:
    """The symptom's statistic had the client stamped the send as the arrival."""
    found = statistic(replace(log, arrival=np.where(log.sent != UNKNOWN, log.sent, log.arrival)), symptom)
    return None if found is None else found.value_ns


def name_of(symptom: Symptom) -> str:
    """``p95 TTFT``, ``TTFT of 'r7'``."""
    metric = str(symptom.metric).upper().replace("_", " ")
    if symptom.statistic is Statistic.REQUEST:
        return f"{metric} of {symptom.request!r}"
    return f"{symptom.statistic} {metric}"


def in_words(found: Lateness) -> str:
    """Who was late, by how much, and when."""
    many = f"in {found.stretches} stretches, the worst" if found.stretches > 1 else "in one stretch"
    return (
        f"the load client sent {times(len(found.ns), found.of, 'requests')} late "
        f"(median {show_ns(nearest(found.ns, 0.5))}, at most {show_ns(int(found.ns.max()))}; p95 over all "
        f"{show_ns(found.p95_ns)}), {many} from {show_ns(found.stretch_ns[0])} to {show_ns(found.stretch_ns[1])} after "
        "the first arrival"
    )


def _statement(s: Situation, found: Lateness, path_ns: int, saved_ns: int) -> Statement:
    assert s.log is not None
    assert s.symptom is not None
    sent = from_send(s.log, s.symptom)
    value = s.chosen.value_ns if s.chosen is not None else s.total_ns
    text = (
        f"{in_words(found)}; the client holds {show_ns(path_ns)} ({show_share(path_ns, s.total_ns)}) of the "
        f"{show_ns(s.total_ns)}"
    )
    if sent is not None:
        text += (
            f"; {name_of(s.symptom)} is {show_ns(value)} from the arrival and {show_ns(sent)} from the send, which "
            "would have hidden it (coordinated omission)"
        )
    # A percentile without the stall is another request's: the statistic from the send is what is left of it.
    amount = saved_ns if sent is None or s.symptom.statistic is Statistic.REQUEST else value - sent
    return Statement(
        text=text,
        category=Category.CLIENT,
        subject="load client",
        value=float(path_ns),
        unit="ns",
        count=len(found.ns),
        location="the load client, between the schedule and the send",
        evidence=(s.evidence.get("log", "request log"),),
        predicts=(falls(s, amount),),
        refuted_by=(
            "a client on schedule (an idle machine, or two clients with half the load each) shows the same statistic",
            "packet times of the sends agree with the schedule",
        ),
    )
