"""Device time on a request's path that belongs to other requests."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scopedown.account import scenarios
from scopedown.account.clock import server_clock
from scopedown.account.groups import Group, nearest
from scopedown.account.owners import Owners, owners
from scopedown.account.population import interval
from scopedown.decide.rules.base import Finding, each, falls, lengths
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.read.base import UNKNOWN, Clock
from scopedown.terms import CATEGORIES, Category, Metric, Scope
from scopedown.trace.model import NONE, Ints
from scopedown.units import show_ns, show_share

_ON_DEVICE = np.array([c.is_device or c is Category.SCHEDULER for c in CATEGORIES])
#: Gaps beside others' prefills count as stretched from this ratio of medians on.
STRETCHED = 1.5


class NeighbourWork:
    """The device is busy on my path, and the work is another request's.

    What it sees
        Device ops on the path whose launch lies in a range that names another request; without a trace, gaps between
        my tokens that coincide with the prefill (scheduled to first token) of other requests. Where nothing names an
        owner and others were in flight it says so: device busy, owner unknown.
    Why it matters
        It looks like kernel time of this request and is not: faster kernels help it only as they help everybody.
        What decides is the scheduler: chunked prefill, priorities, prefill and decode apart.
    What it opens next
        The application scope: change how prefills are scheduled, and compare. Owner unknown: the timeline again, with
        ranges that name the requests of each step.
    What refutes it
        The same request alone keeps its time; or the ranges around the work name this request.
    What it must not be confused with
        A batch that serves several requests at once, this one among them: that is its own work. A queue: there the
        request had not been scheduled at all.
    References
        vllm-project/vllm-tt-plugin#109, tracel-ai/burn-lm#59 (decode stalls behind prefills); Agrawal et al.,
        "Taming throughput-latency tradeoff in LLM inference with Sarathi-Serve" (2024).
    """

    id: ClassVar[str] = "neighbour_work"

    def find(self, s: Situation) -> list[Finding]:
        if not s.is_latency or (s.log is not None and s.row is None):
            return []
        found = self._owned(s)
        if found is not None:
            return found
        seen = self._beside_prefills(s)
        return seen or self._unknown(s)

    def _owned(self, s: Situation) -> list[Finding] | None:
        """None where the trace does not tell owners."""
        known = owners_on_path(s)
        if known is None or s.account.timeline is None:
            return None
        path = s.account.path
        device = _ON_DEVICE[path.category] & (path.op >= 0)
        op = path.op[device]
        other = known.owner[op] >= 0
        ns = int(path.ns[device][other].sum())
        if ns < max(s.material_ns, 1):
            return []
        # One occurrence a range: the neighbour's step.
        which, where = np.unique(known.range[op[other]], return_inverse=True)
        each_ns = np.zeros(len(which), np.int64)
        np.add.at(each_ns, where, path.ns[device][other])
        names = sorted({known.names[k] for k in np.unique(known.owner[op[other]]).tolist()})
        who = f"request {names[0]}" if len(names) == 1 else f"{len(names)} other requests"
        start = s.account.timeline.trace.host.start[which]
        rhythm = Group(Category.SCHEDULER, NONE, which, start, each_ns)
        return [
            Finding(
                self.id,
                Category.SCHEDULER,
                f"device work of {who}",
                each_ns,
                ns,
                Scope.APPLICATION,
                period_ns=rhythm.period_ns,
                trend=rhythm.trend,
                cut=lambda: scenarios.kernels(s.account, known.other),
                state=lambda saved: _statement(s, known, names, each_ns, ns, saved),
            )
        ]

    def _beside_prefills(self, s: Situation) -> list[Finding]:
        """From the log: my gaps beside other requests' prefills against my other gaps."""
        found = _gaps(s)
        if found is None:
            return []
        hit, rest, others = found
        if len(hit) < 3 or len(rest) < 3 or nearest(hit, 0.5) < STRETCHED * nearest(rest, 0.5):
            return []
        extra = np.maximum(hit - nearest(rest, 0.5), 0)
        ns = int(extra.sum())
        if ns < max(s.material_ns, 1):
            return []
        return [
            Finding(
                self.id,
                Category.SCHEDULER,
                "gaps between tokens stretched beside other requests' prefills",
                extra,
                ns,
                Scope.APPLICATION,
                len(hit) + len(rest),
                state=lambda _: _coincidence(s, hit, rest, others, ns),
            )
        ]

    def _unknown(self, s: Situation) -> list[Finding]:
        beside = in_flight(s)
        path = s.account.path
        ns = int(path.ns[_ON_DEVICE[path.category]].sum())
        if s.account.timeline is None or not beside or ns < max(s.material_ns, 1):
            return []
        label = f"device busy, owner unknown ({beside} other requests in flight, no range names whose work it is)"
        return [Finding(self.id, Category.DEVICE_KERNEL, label, lengths(ns), ns, Scope.TIMELINE)]


def owners_on_path(s: Situation) -> Owners | None:
    """None where no range says whose the device work on the path is."""
    mine, others = _ids(s)
    if s.account.timeline is None or not mine:
        return None
    known = owners(s.account.timeline, mine, others)
    path = s.account.path
    op = path.op[_ON_DEVICE[path.category] & (path.op >= 0)]
    return None if known is None or (known.owner[op] == NONE).all() else known


def in_flight(s: Situation) -> int:
    """Other requests of the log that were in flight during the interval; 0 where no log tells."""
    if s.log is None or s.row is None or s.symptom is None or s.log.clock is Clock.NONE:
        return 0
    log = s.log
    begins, ends = interval(log, s.symptom.metric)
    begin, end = int(begins[s.row]), int(ends[s.row])
    if UNKNOWN in (begin, end):
        return 0
    start = np.where(log.sent != UNKNOWN, log.sent, log.arrival)
    beside = (start != UNKNOWN) & (log.end != UNKNOWN) & (start < end) & (log.end > begin)
    beside[s.row] = False
    return int(beside.sum())


def _ids(s: Situation) -> tuple[set[str], set[str]]:
    """Ids of the accounted request and of all others that the evidence knows."""
    if s.log is not None and s.row is not None:
        mine = {s.log.id[s.row]}
        return mine, set(s.log.id) - mine
    request = s.symptom.request if s.symptom is not None else None
    return ({request} if request else set()), set()


def _gaps(s: Situation) -> tuple[Ints, Ints, int] | None:
    """``(my gaps beside others' prefills, my other gaps, prefills)``; None where the log cannot tell."""
    log, row = s.log, s.row
    if log is None or row is None or s.symptom is None or s.symptom.metric not in (Metric.TPOT, Metric.ITL):
        return None
    times = log.token_times[log.token_offsets[row] : log.token_offsets[row + 1]]
    known = (log.scheduled != UNKNOWN) & (log.first_token != UNKNOWN)
    known[row] = False
    if len(times) < 8 or not known.any():
        return None
    begin, end = log.scheduled[known] - server_clock(log).offset_ns, log.first_token[known]
    inside = (begin < times[-1]) & (end > times[0])
    begin, end = np.sort(begin[inside]), np.sort(end[inside])
    # Prefills that had begun before a gap's end less those that were over by its start.
    hit = np.searchsorted(begin, times[1:], "left") > np.searchsorted(end, times[:-1], "right")
    gaps = np.diff(times)
    return gaps[hit], gaps[~hit], int(inside.sum())


def _statement(s: Situation, known: Owners, names: list[str], ns: Ints, path_ns: int, saved: int) -> Statement:
    t = s.account.timeline
    assert t is not None
    some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    share = show_share(path_ns, s.total_ns)
    threads = {t.trace.threads[int(t.trace.host.thread[r])].name for r in np.unique(known.range[known.other]).tolist()}
    return Statement(
        text=(
            f"the device works for other requests on this one's path: {show_ns(path_ns)} ({share}) in {len(ns)} "
            f"stretches of {each(ns)}, of {len(names)} requests ({some}); the ranges around the launches name them"
        ),
        category=Category.SCHEDULER,
        subject="device work of other requests",
        value=float(path_ns),
        unit="ns",
        count=len(ns),
        location=f"launched by {', '.join(sorted(threads)) or 'a thread without a name'}",
        evidence=tuple(s.evidence[r] for r in ("trace", "log") if r in s.evidence) or ("trace",),
        predicts=(falls(s, saved),),
        refuted_by=(
            f"the {s.metric} stays as it is when this request runs alone",
            "the work in these ranges serves this request as well (a batch that the range does not name)",
        ),
    )


def _coincidence(s: Situation, hit: Ints, rest: Ints, prefills: int, ns: int) -> Statement:
    return Statement(
        text=(
            f"{len(hit)} of {len(hit) + len(rest)} gaps between tokens lie beside the prefill of another request "
            f"({prefills} of them): {show_ns(nearest(hit, 0.5))} (median) against {show_ns(nearest(rest, 0.5))} for "
            f"the others, {show_ns(ns)} in all"
        ),
        category=Category.SCHEDULER,
        subject="prefills of other requests",
        value=float(ns),
        unit="ns",
        count=len(hit),
        location="the server, between this request's tokens",
        evidence=(s.evidence.get("log", "request log"),),
        predicts=(falls(s, ns),),
        refuted_by=(
            f"the {s.metric} stays as it is when this request runs alone",
            "ranges of a trace name this request around the device work of these gaps",
        ),
    )
