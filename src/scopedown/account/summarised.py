"""A summary instead of requests: its statistic is the symptom's amount, and nothing more is known of it."""

from __future__ import annotations

from collections.abc import Sequence

from scopedown.account.account import account
from scopedown.account.choose import Interval
from scopedown.account.phases import Phase
from scopedown.account.population import Chosen
from scopedown.account.repeats import AGREES, Confirmation, Repeats
from scopedown.read.base import Summary
from scopedown.symptom import Symptom
from scopedown.terms import Category, Metric, Statistic

#: Stands for the row that a summary does not have.
NO_ROW = -1


def best(summaries: Sequence[Summary], symptom: Symptom | None) -> Summary | None:
    """The first of those that state the symptom's statistic, else of those that state most."""

    def order(s: Summary) -> tuple[bool, int]:
        states = symptom is not None and s.value(symptom.metric, symptom.statistic) is not None
        return states, sum(map(len, s.values.values()))

    return max(summaries, key=order, default=None)


def chosen(summary: Summary, symptom: Symptom | None) -> Chosen | None:
    """The symptom's statistic as the tool states it; None where it does not."""
    value = None if symptom is None else summary.value(symptom.metric, symptom.statistic)
    if value is None:
        return None
    counts = {}
    if (done := summary.completed) is not None:
        failed = summary.failed or 0
        counts = {"requests": done + failed, "ok": done, "errors": failed, "values": done}
    return Chosen(NO_ROW, value, value, None, False, counts)


def interval(summary: Summary, symptom: Symptom | None) -> Interval:
    """One line that nobody has looked into: the statistic, for rates and questions the run."""
    found = chosen(summary, symptom)
    if found is not None:
        length, label = found.value_ns, "a statistic of a summary (no requests, no phases)"
    elif symptom is not None and symptom.metric.is_latency:
        length, label = symptom.observed_ns or 1, "not in the summary"
    else:
        mean = summary.value(Metric.E2E, Statistic.MEAN)
        length, label = summary.duration_ns or mean or 1, "the run of a summary (no requests, no phases)"
    out = Interval(account([Phase(0, max(length, 1), Category.UNACCOUNTED, label)], None), chosen=found)
    if found is None and symptom is not None and symptom.metric.is_latency:
        out.recapture.append(_lacks(summary, symptom))
    return out


def _lacks(summary: Summary, symptom: Symptom) -> str:
    if symptom.statistic is Statistic.REQUEST:
        return f"the summary keeps no requests: nothing says anything of request {symptom.request!r}"
    stated = ", ".join(summary.values.get(symptom.metric, ())) or "nothing"
    return f"the summary has no {symptom.statistic} of {symptom.metric} (it states {stated})"


def confirm(symptom: Symptom, found: Chosen | None) -> Confirmation | None:
    """Whether the summary shows the symptom again. How sure its percentile is cannot be said: never a plain no."""
    if found is None or symptom.observed_ns is None:
        return None
    repeats = Repeats.YES if found.value_ns >= (1 - AGREES) * symptom.observed_ns else Repeats.UNKNOWN
    return Confirmation(repeats, found.value_ns, symptom.observed_ns, found.population.get("values", 0), None, 0)
