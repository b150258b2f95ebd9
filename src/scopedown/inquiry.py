"""What is known of a case before anything is decided: its artifacts, the interval, the account, the situation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from scopedown.account import summarised
from scopedown.account.account import Account
from scopedown.account.choose import Interval, Where, choose
from scopedown.account.laws import estimate_queue, load_of
from scopedown.account.owners import with_owners
from scopedown.account.phases import against_median
from scopedown.account.population import place
from scopedown.account.repeats import confirm, first_wave
from scopedown.account.timeline import Timeline
from scopedown.case import Case, load_evidence
from scopedown.decide.recapture import recapture_reasons
from scopedown.decide.situation import Situation
from scopedown.options import Options
from scopedown.read.base import UNKNOWN, Artifact, RequestLog, Summary
from scopedown.trace.coverage import Coverage, coverage
from scopedown.units import parse_time
from scopedown.used import Used, used


@dataclass(frozen=True, slots=True)
class Inquiry:
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


def inquire(case: Case, options: Options, progress: Callable[[str], None]) -> Inquiry:
    """Raises InputError for a file that breaks its format, UsageError for an interval that names nothing."""
    artifacts = load_evidence(
        case, tz=options.tz, nsys=options.nsys, cache=options.cache, columns=options.columns, progress=progress
    )
    progress("accounting for the interval")
    use = used(artifacts)
    where = _where(options, use)
    timeline = Timeline(use.trace) if use.trace is not None else None
    summary = summarised.best(use.summaries, case.symptom) if use.log is None else None
    if summary is not None and timeline is None:
        interval = summarised.interval(summary, case.symptom)
    else:
        interval = choose(case.symptom, use.log, timeline, use.monitor, where)
    if summary is not None and interval.chosen is None:
        interval.chosen = summarised.chosen(summary, case.symptom)
    if use.log is not None and interval.row is not None and timeline is not None:
        own = use.log.id[interval.row]
        interval.account = with_owners(interval.account, {own}, set(use.log.id) - {own})
    interval.warnings += use.warnings
    covered = coverage(timeline.trace) if timeline is not None else None
    return Inquiry(case, artifacts, timeline, interval, _situation(case, interval, use, summary, covered), covered)


def _where(options: Options, use: Used) -> Where:
    offset = use.log_offset_ns if options.offset is None else parse_time(options.offset)
    return Where(
        None if options.begin is None else parse_time(options.begin),
        None if options.end is None else parse_time(options.end),
        options.range,
        options.step,
        # Added to the log's times; the alignment counts the other way round.
        None if offset is None else -offset,
        options.device,
    )


def _situation(
    case: Case, interval: Interval, use: Used, summary: Summary | None, covered: Coverage | None
) -> Situation:
    symptom, log, row = case.symptom, use.log, interval.row
    s = Situation(
        account=interval.account,
        symptom=symptom,
        log=log,
        row=row,
        summary=summary,
        chosen=interval.chosen,
        monitor=use.monitor,
        coverage=covered,
        parts=interval.parts,
        recapture=tuple(interval.recapture),
        trace_is_other=interval.trace_is_other,
        evidence=use.paths,
    )
    if log is not None:
        s = replace(s, load=load_of(log), requests_in_trace=tuple(log.id[r] for r in interval.traced_rows))
    if log is not None and row is not None and symptom is not None and symptom.metric.is_latency:
        s = replace(
            s,
            place=place(log, symptom.metric, row, interval.traced_rows),
            confirmation=confirm(log, symptom, interval.chosen),
            wave=first_wave(log, symptom),
            queue=estimate_queue(log) if _no_stamps(log) else None,
            differences=tuple(against_median(log, row, symptom.metric)),
        )
    if summary is not None and symptom is not None:
        s = replace(s, confirmation=summarised.confirm(symptom, interval.chosen))
    return replace(s, recapture=tuple(dict.fromkeys((*interval.recapture, *recapture_reasons(s)))))


def _no_stamps(log: RequestLog) -> bool:
    return bool((log.scheduled == UNKNOWN).all() and (log.queued == UNKNOWN).all())
