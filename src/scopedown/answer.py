"""From a case to its report: the data's way, one call a station."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from scopedown.account import scenarios, summarised
from scopedown.account.account import Account, LedgerLine, ledger_lines
from scopedown.account.choose import Interval, Where, choose, median_step, step_account
from scopedown.account.groups import Group, nearest
from scopedown.account.laws import estimate_queue, laws, load_of
from scopedown.account.owners import with_owners
from scopedown.account.phases import against_median
from scopedown.account.population import place
from scopedown.account.repeats import confirm, first_wave
from scopedown.account.resources import resources
from scopedown.account.scenarios import Cut
from scopedown.account.timeline import Timeline
from scopedown.case import Case, load_evidence
from scopedown.decide import words
from scopedown.decide.findings import conclude, find_all
from scopedown.decide.kernels import Family, families
from scopedown.decide.select import Selection, select
from scopedown.decide.situation import Situation
from scopedown.errors import UsageError
from scopedown.picture import Picture
from scopedown.read.base import Artifact, MonitorLog, RequestLog, Summary
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
from scopedown.terms import EXPLAINED_BY, RESOLVABLE_BY, Category, Kind, Scope
from scopedown.trace.coverage import Coverage, coverage
from scopedown.trace.model import Trace
from scopedown.units import parse_time, show_ns


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of ``diagnose`` and ``whatif`` beside the symptom."""

    begin: str | None = None
    end: str | None = None
    range: str | None = None
    step: str | None = None
    offset: str | None = None
    device: int | None = None
    """Whose samples of a device monitor count."""
    tz: str | None = None
    columns: str | None = None
    nsys: str | None = None
    server: str = "auto"
    cache: bool = True
    scope: str | None = None
    save: bool = False


class Matched(msgspec.Struct, kw_only=True):
    events: int
    time_ns: int


class WhatIf(msgspec.Struct, kw_only=True):
    """All of the interval, also for tpot and itl."""

    baseline_ns: int
    predicted_ns: int
    saved_ns: int
    matched: Matched
    assumptions: list[str]


ASSUMPTIONS = (
    "the order of calls on a thread and of ops on a stream is kept",
    "a wait ends when what it waits for ends; one that is taken out does not wait",
    "resources are as recorded: no op runs faster because another is gone",
    "phases outside the trace keep their length",
)


@dataclass(slots=True)
class _Inquiry:
    """What ``diagnose`` and ``whatif`` have in common."""

    case: Case
    artifacts: list[Artifact]
    timeline: Timeline | None
    interval: Interval
    situation: Situation
    coverage: Coverage | None

    @property
    def account(self) -> Account:
        return self.interval.account


@dataclass(frozen=True, slots=True)
class Answer:
    """A report and the account that it was made from."""

    report: Report
    account: Account
    groups: dict[str, Group]
    """The segments that the report's pattern ids name."""

    def pictures(self) -> Iterator[Picture]:
        """What a page draws of it, with less detail each time."""
        from scopedown.account.picture import pictures

        return pictures(self.account, self.groups)


def diagnose(case: Case, options: Options | None = None, progress: Callable[[str], None] = lambda _: None) -> Report:
    """The report on a case. Raises InputError for a file that breaks its format, UsageError for a question that names
    nothing; evidence that does not suffice is an answer (``recapture``)."""
    return answer(case, options, progress).report


def answer(case: Case, options: Options | None = None, progress: Callable[[str], None] = lambda _: None) -> Answer:
    """The same, with what a picture needs."""
    options = options or Options()
    q = _inquire(case, options, progress)
    progress("asking the rules")
    s = q.situation
    focus = _focused(q)
    found = families(focus.account)
    selection = select(focus, found, Scope(options.scope) if options.scope else None)
    findings = find_all(s)
    c = conclude(s, findings)
    report = _report(q, focus, selection, found, c.patterns, c.statements, options)
    if options.save:
        from scopedown.save import save

        save(case, report)
    return Answer(report, q.account, c.groups)


def _focused(q: _Inquiry) -> Situation:
    """The situation that the decision is about: for a captured window the part in which the device has work."""
    focus = q.interval.focus
    if focus is None:
        return q.situation
    part = f"{show_ns(focus.total_ns)} from first to last device op"
    return replace(q.situation, account=focus, part=part)


def whatif(
    case: Case,
    options: Options | None = None,
    remove: Sequence[str] = (),
    scale: Sequence[tuple[str, float]] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> WhatIf:
    """The interval with time taken out or scaled. Raises UsageError for a selector that selects nothing known."""
    q = _inquire(case, options or Options(), progress)
    a = q.account
    lines = {f"L{i}": (line.category, line.code) for i, line in enumerate(a.lines(), 1)}
    patterns: dict[str, Callable[[], Cut]] = {}
    if any("pattern:" in t for t in (*remove, *(t for t, _ in scale))):
        patterns = conclude(q.situation, find_all(q.situation)).cuts
    asked = [(text, 0.0) for text in remove] + list(scale)
    chosen = [scenarios.select(a, text, factor, lines, patterns) for text, factor in asked]
    cut = scenarios.without_selected(chosen)
    empty = [text for (text, _), c in zip(asked, chosen, strict=True) if not c.events]
    if empty:
        cut.assumptions += (f"nothing in the interval matches {', '.join(empty)}",)
    predicted = scenarios.predict(a, [cut])[0]
    return WhatIf(
        baseline_ns=a.total_ns,
        predicted_ns=predicted,
        saved_ns=a.total_ns - predicted,
        matched=Matched(events=cut.events, time_ns=cut.time_ns),
        assumptions=[*ASSUMPTIONS, *cut.assumptions],
    )


def _inquire(case: Case, options: Options, progress: Callable[[str], None]) -> _Inquiry:
    artifacts = load_evidence(
        case, tz=options.tz, nsys=options.nsys, cache=options.cache, columns=options.columns, progress=progress
    )
    progress("accounting for the interval")
    traces = [a for a in artifacts if isinstance(a.content, Trace)]
    logs = [a for a in artifacts if isinstance(a.content, RequestLog)]
    monitors = [a for a in artifacts if isinstance(a.content, MonitorLog)]
    trace = max(traces, key=lambda a: (len(_trace(a).ops), a.counts.get("api_calls", 0)), default=None)
    log = _requests(logs[0]) if logs else None
    monitors.sort(key=_worth, reverse=True)
    monitor = monitors[0].content if monitors else None
    timeline = Timeline(_trace(trace)) if trace is not None else None
    where = Where(
        None if options.begin is None else parse_time(options.begin),
        None if options.end is None else parse_time(options.end),
        options.range,
        options.step,
        _offset(options, logs[0] if logs else None),
        options.device,
    )
    assert monitor is None or isinstance(monitor, MonitorLog)
    summaries = [a.content for a in artifacts if isinstance(a.content, Summary)]
    summary = summarised.best(summaries, case.symptom) if log is None else None
    if summary is not None and timeline is None:
        interval = summarised.interval(summary, case.symptom)
    else:
        interval = choose(case.symptom, log, timeline, monitor, where)
    if summary is not None and interval.chosen is None:
        interval.chosen = summarised.chosen(summary, case.symptom)
    if log is not None and interval.row is not None and timeline is not None:
        own = log.id[interval.row]
        interval.account = with_owners(interval.account, {own}, set(log.id) - {own})
    covered = coverage(timeline.trace) if timeline is not None else None
    if len(traces) > 1:
        interval.warnings.append(
            f"{len(traces)} traces: {trace.path if trace else ''} is accounted for, the others are not"
        )
    if len(logs) > 1:
        interval.warnings.append(f"{len(logs)} request logs: {logs[0].path} is used, the others are not")
    if len(monitors) > 1:
        interval.warnings.append(f"{len(monitors)} monitor logs: {monitors[0].path} is used, the others are not")
    evidence = {}
    for role, artifact in (
        ("log", logs[0] if logs else None),
        ("trace", trace),
        ("monitor", monitors[0] if monitors else None),
    ):
        if artifact is not None:
            evidence[role] = str(artifact.path)
    situation = _situation(case, interval, log, monitor, covered, evidence)
    if summary is not None and case.symptom is not None:
        situation = replace(situation, confirmation=summarised.confirm(case.symptom, interval.chosen))
    situation = replace(situation, summary=summary)
    return _Inquiry(case, artifacts, timeline, interval, situation, covered)


def _worth(a: Artifact) -> tuple[bool, bool, bool, int]:
    """How much a monitor log can say of an interval: stamps with a date, utilisation, a rate, many samples."""
    m = a.content
    assert isinstance(m, MonitorLog)
    return m.placed, m.utilisation is not None, m.period_ns is not None, len(m.time)


def _trace(a: Artifact) -> Trace:
    assert isinstance(a.content, Trace)
    return a.content


def _requests(a: Artifact) -> RequestLog:
    assert isinstance(a.content, RequestLog)
    return a.content


def _offset(options: Options, log: Artifact | None) -> int | None:
    """Added to the log's times; the alignment counts the other way round."""
    given = (
        parse_time(options.offset)
        if options.offset is not None
        else (log.extra.get("offset_ns") if log is not None else None)
    )
    return None if given is None else -int(given)


def _situation(
    case: Case,
    interval: Interval,
    log: RequestLog | None,
    monitor: MonitorLog | None,
    covered: Coverage | None,
    evidence: dict[str, str],
) -> Situation:
    from scopedown.decide.warnings import recapture_reasons

    symptom, row = case.symptom, interval.row
    latency = symptom is not None and log is not None and symptom.metric.is_latency and row is not None
    s = Situation(
        account=interval.account,
        symptom=symptom,
        log=log,
        row=row,
        chosen=interval.chosen,
        place=place(log, symptom.metric, row, interval.traced_rows)
        if latency and log and symptom and row is not None
        else None,
        confirmation=confirm(log, symptom, interval.chosen) if latency and log and symptom else None,
        wave=first_wave(log, symptom) if latency and log and symptom else None,
        load=load_of(log) if log is not None else None,
        queue=estimate_queue(log) if log is not None and latency and _no_stamps(log) else None,
        differences=tuple(against_median(log, row, symptom.metric))
        if latency and log and symptom and row is not None
        else (),
        monitor=monitor,
        coverage=covered,
        parts=interval.parts,
        recapture=tuple(interval.recapture),
        trace_is_other=interval.trace_is_other,
        requests_in_trace=tuple(log.id[r] for r in interval.traced_rows) if log is not None else (),
        evidence=evidence,
    )
    reasons = tuple(dict.fromkeys((*interval.recapture, *recapture_reasons(s))))
    return replace(s, recapture=reasons)


def _no_stamps(log: RequestLog) -> bool:
    from scopedown.read.base import UNKNOWN

    return bool((log.scheduled == UNKNOWN).all() and (log.queued == UNKNOWN).all())


def _report(
    q: _Inquiry,
    focus: Situation,
    x: Selection,
    found: list[Family],
    patterns: list[PatternReport],
    statements: list[StatementReport],
    options: Options,
) -> Report:
    from scopedown.account.contract import contract
    from scopedown.decide.context import context
    from scopedown.decide.warnings import unknowns, warnings

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
        metrics=_metrics(x),
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
    holes = s.coverage is not None and bool(
        s.coverage.dropped or s.coverage.launches_without_op or s.coverage.graph_launches > s.coverage.graph_records
    )
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


def _steps(q: _Inquiry) -> dict[str, object] | None:
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


def _resources(q: _Inquiry) -> list[Resource]:
    if q.case.symptom is None or q.case.symptom.metric.is_latency:
        return []
    return [
        Resource(name=r.name, capacity=r.capacity, busy_ns=r.busy_ns, share=r.share, saturated=r.saturated)
        for r in resources(q.account, q.situation.log)
    ]


def _metrics(x: Selection) -> list[str]:
    if x.scope is Scope.KERNEL:
        return [
            "gpu__time_duration.sum",
            "sm__throughput.avg.pct_of_peak_sustained_elapsed",
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "launch__waves_per_multiprocessor",
        ]
    if x.scope is Scope.TIMELINE:
        return ["API call start and end", "device op start and end", "correlation"]
    if x.scope is Scope.FRAMEWORK:
        return ["operator start and end", "launch call", "device op"]
    return ["arrival", "sent", "queued", "scheduled", "first token"] if x.kind is not Kind.ENOUGH else []


def _symptom(q: _Inquiry) -> SymptomReport | None:
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


def check(report: Report) -> None:
    """The one promise that nothing may break."""
    if sum(line.ns for line in report.ledger.lines) != report.ledger.total_ns:
        raise UsageError("ledger does not sum")


def open_case(path: str | Path) -> Case:
    from scopedown.case import load

    return load([path])
