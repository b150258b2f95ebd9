"""The report on a case, composed of what the account and the decision hold."""

from __future__ import annotations

import msgspec
import numpy as np

from scopedown.account.account import Account, LedgerLine, ledger_lines
from scopedown.account.choose import median_step, step_account
from scopedown.account.contract import contract
from scopedown.account.groups import nearest
from scopedown.account.laws import laws
from scopedown.account.resources import resources
from scopedown.decide import words
from scopedown.decide.context import context
from scopedown.decide.kernels import Family
from scopedown.decide.select import Selection
from scopedown.decide.situation import Situation
from scopedown.decide.unknowns import unknowns
from scopedown.decide.warnings import warnings
from scopedown.inquiry import Inquiry
from scopedown.options import Options
from scopedown.read.base import Artifact
from scopedown.report import (
    Contract,
    DecisionReport,
    DeviceReport,
    Evidence,
    KernelReport,
    Lead,
    LedgerReport,
    Line,
    PatternReport,
    Report,
    Resource,
    StatementReport,
    SymptomReport,
)
from scopedown.terms import EXPLAINED_BY, RESOLVABLE_BY, Category, Scope


def compose(
    q: Inquiry,
    focus: Situation,
    x: Selection,
    found: list[Family],
    patterns: list[PatternReport],
    statements: list[StatementReport],
    options: Options,
) -> Report:
    s, a = q.situation, q.account
    trace = q.timeline.trace if q.timeline is not None else None
    fields, contradictions = contract(q.case.contract, q.case.symptom, s.log, trace, s.monitor)
    decision = DecisionReport(
        kind=x.kind,
        scope=x.scope,
        reachable_ns=x.reachable_ns,
        question=words.question(focus, x, found),
        why=words.why(focus, x),
        command=words.command(x, words.question_of(focus, x), context(q.case, focus, x, found, trace, options.server)),
        metrics=words.metrics(x),
        rejected=words.rejected(focus, x),
    )
    texts = [*q.case.warnings, *q.interval.warnings, *warnings(s), *contradictions]
    return Report(
        symptom=_symptom(q),
        contract=Contract(fields=fields),
        evidence=[_evidence(e) for e in q.artifacts],
        ledger=LedgerReport(
            interval_ns=(a.lo, a.hi),
            total_ns=a.total_ns,
            unit="request-ns" if a.timeline is None and s.row is None and s.log is not None else "ns",
            lines=_lines(a.lines(), a.total_ns, a.timeline is not None, statements),
        ),
        decision=decision,
        statements=statements,
        devices=_devices(a, s),
        ranks=[],
        patterns=patterns,
        resources=_resources(q),
        laws=laws(s.log) if s.log is not None else [],
        kernels=[
            KernelReport(
                family=f.name,
                name=f.kernel,
                name_launches=f.kernel_launches,
                name_ns=f.kernel_ns,
                names=f.names,
                launches=f.launches,
                total_ns=f.total_ns,
                critical_ns=f.critical_ns,
                bound_ns=None,
                selected=x.scope is Scope.KERNEL and x.winner is not None and x.winner.family is f,
                representative_launch=f.representative,
            )
            for f in found[:20]
        ],
        launch_lead=_lead(a),
        steps=_steps(q),
        coverage=msgspec.to_builtins(q.coverage) if q.coverage is not None else {},
        unknown=unknowns(s),
        warnings=list(dict.fromkeys(texts)),
    )


def _lines(lines: list[LedgerLine], total: int, traced: bool, statements: list[StatementReport]) -> list[Line]:
    out = []
    for i, line in enumerate(lines, 1):
        c: Category = line.category
        seen = EXPLAINED_BY.get(c, Scope.TIMELINE if traced else Scope.APPLICATION)
        if c in (Category.DEVICE_ACTIVE, Category.DEVICE_INACTIVE):
            seen = Scope.APPLICATION
        told = next(
            (t.id for t in statements if t.category == c and (t.subject == line.label or line.label in t.text)), None
        )
        out.append(
            Line(
                id=f"L{i}",
                category=c,
                label=line.label,
                ns=line.ns,
                share=line.ns / total if total else 0.0,
                count=line.count,
                scope=seen,
                explained=c in EXPLAINED_BY or line.tool,
                resolvable_by=[] if c in EXPLAINED_BY or line.tool else list(RESOLVABLE_BY[c]),
                statement=told,
            )
        )
    return out


def _devices(a: Account, s: Situation) -> list[DeviceReport]:
    if a.timeline is None:
        return []
    names = {d.id: d.name for d in a.timeline.trace.meta.devices}
    holes = s.coverage is not None and s.coverage.ops_are_missing
    return [
        DeviceReport(
            id=str(d.device),
            name=names.get(d.device),
            total_ns=int(d.segments.ns.sum()),
            busy_ns=d.busy_ns,
            busy_is_lower_bound=holes,
            lines=_lines(ledger_lines(d.segments, a), int(d.segments.ns.sum()), True, []),
        )
        for d in a.devices
    ]


def _lead(a: Account) -> Lead | None:
    if a.timeline is None:
        return None
    lead = a.timeline.launch_lead(*(a.service or (a.lo, a.hi)))
    if not len(lead):
        return None
    return Lead(median_ns=nearest(lead, 0.5), p10_ns=nearest(lead, 0.1), p90_ns=nearest(lead, 0.9), ops=len(lead))


def _steps(q: Inquiry) -> dict[str, object] | None:
    """How steps were found; for a question without a complaint with the ledger of the median one."""
    a = q.account
    if a.steps is None or a.timeline is None:
        return None
    length = np.asarray(a.steps.end - a.steps.start)
    median: dict[str, object] = {}
    if q.case.symptom is None:
        one = step_account(a.timeline, a.steps, median_step(a.steps))
        lines = [{"category": x.category, "label": x.label, "ns": x.ns} for x in one.lines()[:10]]
        median = {"median_interval_ns": [one.lo, one.hi], "median_lines": lines}
    return median | {
        "how": str(a.steps.how),
        "name": a.steps.name,
        "count": len(a.steps),
        "median_ns": nearest(length, 0.5),
        "p90_ns": nearest(length, 0.9),
    }


def _resources(q: Inquiry) -> list[Resource]:
    if q.case.symptom is None or q.case.symptom.metric.is_latency:
        return []
    return [
        Resource(name=r.name, capacity=r.capacity, busy_ns=r.busy_ns, share=r.share, saturated=r.saturated)
        for r in resources(q.account, q.situation.log)
    ]


def _symptom(q: Inquiry) -> SymptomReport | None:
    y, s = q.case.symptom, q.situation
    if y is None:
        return None
    chosen = q.interval.chosen
    request = s.log.id[s.row] if s.log is not None and s.row is not None else y.request
    return SymptomReport(
        metric=y.metric,
        statistic=y.statistic,
        request=request,
        observed_ns=y.observed_ns,
        recorded_ns=chosen.value_ns if chosen is not None else None,
        recorded_interval_ns=chosen.interval95_ns if chosen is not None else None,
        target_ns=y.target_ns,
        observed=y.observed,
        target=y.target,
        objective=y.objective,
        load=y.load,
        population=chosen.population if chosen is not None else {},
        percentile=s.place.percentile if s.place is not None else None,
        confirmed=s.confirmation.confirmed if s.confirmation is not None else None,
        note=str(s.confirmation.repeats) if s.confirmation is not None else "no request log says whether it repeats",
    )


def _evidence(a: Artifact) -> Evidence:
    return Evidence(
        path=str(a.path),
        sha256=a.sha256,
        kind=a.kind,
        scope=a.scope,
        producer=a.producer,
        interval_ns=a.interval_ns,
        can_establish=list(a.can_establish),
        cannot_establish=list(a.cannot_establish),
        warnings=list(a.warnings),
    )
