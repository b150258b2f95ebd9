"""Which scope to measure next: candidates, materiality, and the bound of every narrower scope.

Every line of the ledger that is not needed work competes: an unexplained one for the widest scope that could resolve
it, an explained one for the scope that explained it. ``reachable`` is what one next step can reach, by replay: one
category for the application and for explained lines, all host time without a cause for the framework, one family for
the kernel. The largest material candidate wins, a wider one where it is within one materiality of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scopedown.account import scenarios
from scopedown.account.calls import PAGED
from scopedown.account.scenarios import Cut
from scopedown.decide.kernels import Family
from scopedown.decide.situation import Situation
from scopedown.read.base import UNKNOWN
from scopedown.terms import EXPLAINED_BY, HOST_WITHOUT_CAUSE, Category, Kind, Metric, Scope

#: Below this utilisation a server could take more requests than it gets.
NOT_SATURATED = 0.8
#: How many kernel families and explained categories are replayed; the rest cannot win.
REPLAYED = 4
_HOST_CAUSES = tuple(c for c, scope in EXPLAINED_BY.items() if scope is Scope.FRAMEWORK)
_PHASES = tuple(c for c, scope in EXPLAINED_BY.items() if scope is Scope.APPLICATION)
_TIMELINE_CAUSES = tuple(c for c, scope in EXPLAINED_BY.items() if scope is Scope.TIMELINE)
#: Not seen by a trace: measured, or captured again, at the timeline.
_UNSEEN = (
    Category.UNACCOUNTED,
    Category.NO_LAUNCH_RECORD,
    Category.DEVICE_OPAQUE_GRAPH,
    Category.DEVICE_ACTIVE,
    Category.DEVICE_INACTIVE,
    Category.DEVICE_COLLECTIVE,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    kind: Kind
    scope: Scope
    path_ns: int
    """On the path, as the ledger has it."""
    reachable_ns: int
    """What taking it out saves, by replay; at most its time on the path."""
    categories: tuple[Category, ...]
    family: Family | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    scope: Scope
    ns: int
    path_ns: int


@dataclass(frozen=True, slots=True)
class Selection:
    kind: Kind
    scope: Scope
    reachable_ns: int
    winner: Candidate | None
    candidates: tuple[Candidate, ...]
    """All, largest first, material or not."""
    bounds: tuple[Bound, ...]
    """Of every scope narrower than the chosen one."""
    met: bool
    """The target is met."""
    material_ns: int


def select(s: Situation, families: list[Family], wanted: Scope | None = None) -> Selection:
    """``wanted``: the user asks for this scope anyway."""
    candidates = sorted(_candidates(s, families), key=lambda c: (-c.reachable_ns, c.scope.width, c.categories))
    material = s.material_ns
    met = _met(s)
    winner = _winner(candidates, material)
    if met:
        kind, scope = Kind.ENOUGH, Scope.APPLICATION
    elif s.recapture:
        kind, scope, winner = Kind.RECAPTURE, _captured_at(s), None
    elif winner is None:
        kind, scope = Kind.RECAPTURE, _captured_at(s)
    else:
        kind, scope = winner.kind, winner.scope
    if wanted is not None and not met:
        kind, scope = Kind.MEASURE, wanted
        winner = next((c for c in candidates if c.scope is wanted), None)
    every = list(_bounds(s, families))
    bounds = tuple(b for b in every if b.scope.width > scope.width)
    if kind is Kind.ENOUGH:
        winner = None
    reachable = winner.reachable_ns if winner is not None else _unreachable(s, kind)
    if wanted is not None and winner is None and not met:
        reachable = next((b.ns for b in every if b.scope is wanted), 0)
    return Selection(kind, scope, reachable, winner, tuple(candidates), bounds, met, material)


def _met(s: Situation) -> bool:
    """The recorded statistic is within the target; without a record the observed value decides."""
    if s.symptom is not None and not s.symptom.metric.is_latency:
        return _rate_met(s)
    if s.symptom is None or s.symptom.target_ns is None or s.recapture:
        return False
    value = s.chosen.value_ns if s.chosen is not None else s.total_ns // s.parts
    return value <= s.symptom.target_ns and not (s.chosen is not None and s.chosen.at_least)


def _rate_met(s: Situation) -> bool:
    """The achieved rate of the log, without a log the observed one, reaches the target."""
    y = s.symptom
    if y is None or y.target_rate is None or s.recapture:
        return False
    rate = y.observed_rate
    if s.summary is not None and y.metric in (Metric.REQUEST_THROUGHPUT, Metric.TOKEN_THROUGHPUT):
        stated = s.summary.request_rate if y.metric is Metric.REQUEST_THROUGHPUT else s.summary.output_rate
        rate = rate if stated is None else stated
    if s.load is not None and y.metric is Metric.REQUEST_THROUGHPUT:
        rate = s.load.achieved_rps
    if s.load is not None and y.metric is Metric.TOKEN_THROUGHPUT and s.load.output_tps is not None:
        rate = s.load.output_tps
    if rate is None:
        return False
    return rate <= y.target_rate if y.metric is Metric.COST else rate >= y.target_rate


def _winner(candidates: list[Candidate], material: int) -> Candidate | None:
    able = [c for c in candidates if c.reachable_ns >= max(material, 1)]
    if not able:
        # Host and device in balance: each hides the other, and neither alone saves what it holds. The larger one on
        # the path is the question all the same.
        held = [c for c in candidates if c.path_ns >= max(material, 1)]
        return min(held, key=lambda c: (-c.path_ns, c.scope.width), default=None)
    best = able[0]
    near = [c for c in able if c.scope.width < best.scope.width and c.reachable_ns >= best.reachable_ns - material]
    return min(near, key=lambda c: (c.scope.width, -c.reachable_ns)) if near else best


def _captured_at(s: Situation) -> Scope:
    """What has to be recorded again: the trace where there is one or should be, else the log."""
    unseen = s.account.ns_of(Category.UNACCOUNTED, Category.OUTSIDE_CAPTURE)
    if s.account.timeline is None and (s.summary is not None or (s.log is not None and (not unseen or s.row is None))):
        return Scope.APPLICATION
    return Scope.TIMELINE


def _unreachable(s: Situation, kind: Kind) -> int:
    if kind is not Kind.RECAPTURE:
        return 0
    return s.account.ns_of(Category.OUTSIDE_CAPTURE, Category.UNACCOUNTED, Category.NO_LAUNCH_RECORD)


def _candidates(s: Situation, families: list[Family]) -> Iterator[Candidate]:
    a = s.account
    if s.summary is not None and a.timeline is None:
        if ns := s.path_ns(Category.UNACCOUNTED):
            yield Candidate(Kind.MEASURE, Scope.APPLICATION, ns, ns, (Category.UNACCOUNTED,))
        return
    if not s.is_latency and s.log is not None and a.timeline is None:
        yield from _of_load(s)
        return
    if s.symptom is None and a.timeline is None and _crowded(s):
        # Without server stamps and with others in flight the queue comes first.
        ns = s.path_ns(Category.UNACCOUNTED)
        yield Candidate(Kind.MEASURE, Scope.APPLICATION, ns, ns, (Category.QUEUE,))
    for c in _PHASES:
        # Device work of others is replayed: what is left of its time may be one's own wait.
        if (ns := s.path_ns(c)) and not (c is Category.SCHEDULER and a.replay is not None):
            yield Candidate(Kind.CHANGE, Scope.APPLICATION, ns, ns, (c,))
    if ns := s.path_ns(Category.ALIGNMENT_UNCERTAIN):
        yield Candidate(Kind.RECAPTURE, Scope.APPLICATION, ns, ns, (Category.ALIGNMENT_UNCERTAIN,))
    queued = 0
    if s.queue is not None and a.timeline is None and s.row is not None:
        queued = min(max(int(s.queue.queued_ns[s.row]), 0), s.path_ns(Category.UNACCOUNTED))
        if queued:
            yield Candidate(Kind.MEASURE, Scope.APPLICATION, queued, queued, (Category.QUEUE,))
    if ns := s.path_ns(Category.OUTSIDE_CAPTURE):
        yield Candidate(Kind.RECAPTURE, Scope.TIMELINE, ns, ns, (Category.OUTSIDE_CAPTURE,))
    t = a.timeline
    if t is not None and not t.has_device_rows and not len(t.calls) and t.trace.meta.tool.startswith("NVIDIA"):
        # The host is seen, the device is not: any of the host's time may be a wait for it.
        yield Candidate(Kind.MEASURE, Scope.TIMELINE, s.total_ns, s.total_ns, (Category.UNACCOUNTED,))
    for c in _UNSEEN:
        # Without stamps what is estimated to be queue comes first, and does not count twice.
        if (ns := s.path_ns(c) - (queued if c is Category.UNACCOUNTED else 0)) > 0:
            holes = a.timeline is not None and c in (Category.UNACCOUNTED, Category.NO_LAUNCH_RECORD)
            # A migration has no launch call by nature: to record it again brings none.
            # Where no call was traced at all, the host is the next measurement, not a repair of this one.
            holes = holes and not (c is Category.NO_LAUNCH_RECORD and (_paged(s) or not _calls(s)))
            yield Candidate(Kind.RECAPTURE if holes else Kind.MEASURE, Scope.TIMELINE, ns, ns, (c,))
    yield from _replayed(s, families)


#: From so many requests in flight on average a wait may be a queue.
CROWDED = 1.5


def _crowded(s: Situation) -> bool:
    """No stamp says when a request was scheduled, and requests were in flight together."""
    if s.log is None or s.load is None or not (s.log.scheduled == UNKNOWN).all():
        return False
    return s.load.mean_in_flight >= CROWDED


def _calls(s: Situation) -> bool:
    return s.account.timeline is not None and len(s.account.timeline.calls) > 0


def _paged(s: Situation) -> bool:
    """Most of the path that has no launch record waits for pages of unified memory."""
    t, path = s.account.timeline, s.account.path
    if t is None or t.trace.ops.copy_kind is None:
        return False
    mine = path.take((path.category == Category.NO_LAUNCH_RECORD.code) & (path.op >= 0))
    moved = np.isin(t.trace.ops.copy_kind[mine.op], PAGED)
    return bool(2 * mine.ns[moved].sum() > mine.ns.sum())


def _of_load(s: Situation) -> Iterator[Candidate]:
    """Throughput from a log alone: waiting makes no rate. A busy server is limited by its service time, one that is
    not by the load that is offered."""
    total, load = s.total_ns, s.load
    if load is not None and load.utilisation is not None and load.utilisation < NOT_SATURATED:
        yield Candidate(Kind.MEASURE, Scope.APPLICATION, total, total, (Category.CLIENT,))
    elif ns := s.path_ns(Category.UNACCOUNTED):
        yield Candidate(Kind.MEASURE, Scope.TIMELINE, ns, ns, (Category.UNACCOUNTED,))


def _replayed(s: Situation, families: list[Family]) -> Iterator[Candidate]:
    a = s.account
    rows: list[tuple[Kind, Scope, int, tuple[Category, ...], Family | None, Cut]] = []
    host = tuple(c for c in HOST_WITHOUT_CAUSE if s.path_ns(c))
    if host and (ns := s.host_without_cause_ns()):
        rows.append((Kind.MEASURE, Scope.FRAMEWORK, ns, tuple(sorted(host)), None, scenarios.category(a, *host)))
    causes = sorted(((s.path_ns(c), c) for c in (*_TIMELINE_CAUSES, *_HOST_CAUSES, Category.SCHEDULER)), reverse=True)
    for ns, c in causes[:REPLAYED]:
        if ns:
            rows.append((Kind.CHANGE, EXPLAINED_BY[c], ns, (c,), None, scenarios.category(a, c)))
    rows += [
        (Kind.MEASURE, Scope.KERNEL, f.critical_ns, (Category.DEVICE_KERNEL,), f, f.cut(a))
        for f in families[:REPLAYED]
        if f.critical_ns
    ]
    for (kind, scope, ns, categories, family, _), gain in zip(
        rows, scenarios.saved(a, [r[-1] for r in rows]), strict=True
    ):
        yield Candidate(kind, scope, ns, min(gain, ns), categories, family)


def _bounds(s: Situation, families: list[Family]) -> Iterator[Bound]:
    """The most that a whole scope could explain; without a trace all of what no log explains, and always what lies
    outside the capture."""
    a = s.account
    if a.timeline is not None and not a.timeline.has_device_rows:
        # What the device did is unknown: any of it may be behind any wait of the host.
        yield from (Bound(scope, s.total_ns, 0) for scope in list(Scope)[1:])
        return
    if a.timeline is None or a.service is None:
        ns = a.ns_of(Category.UNACCOUNTED, Category.OUTSIDE_CAPTURE, Category.DEVICE_ACTIVE, Category.DEVICE_INACTIVE)
        if not s.is_latency and a.timeline is not None:
            ns = s.total_ns
        yield from (Bound(scope, ns, ns) for scope in list(Scope)[1:])
        return
    outside = a.ns_of(Category.OUTSIDE_CAPTURE)
    inside = int(a.path.ns[(a.path.start >= a.service[0]) & (a.path.end <= a.service[1])].sum())
    yield Bound(Scope.TIMELINE, inside + outside, inside)
    framework = (*HOST_WITHOUT_CAUSE, *_HOST_CAUSES)
    kernel_ns = s.path_ns(Category.DEVICE_KERNEL)
    top = families[0] if families else None
    cuts = [scenarios.category(a, *framework), scenarios.kernels(a)] + ([top.cut(a)] if top else [])
    gains = scenarios.saved(a, cuts)
    host_ns = s.host_without_cause_ns() + a.ns_of(*_HOST_CAUSES)
    opaque = a.ns_of(Category.DEVICE_OPAQUE_GRAPH)
    yield Bound(Scope.FRAMEWORK, min(gains[0], host_ns) + outside, host_ns)
    yield Bound(Scope.KERNEL, min(gains[1], kernel_ns) + opaque + outside, kernel_ns)
    one = (min(gains[2], top.critical_ns), top.critical_ns) if top else (0, 0)
    yield from (Bound(scope, one[0] + opaque + outside, one[1]) for scope in (Scope.SOURCE, Scope.INSTRUCTIONS))
