"""The words of a report: sentences made from its data, for text and Markdown alike.

Float milliseconds exist from here on only. Strings of the report may come from files: these functions return them
cleaned (one line, nothing that acts), not yet escaped for the page they go to.
"""

from __future__ import annotations

from scopedown.report import (
    Command,
    DecisionReport,
    LedgerReport,
    Line,
    PatternReport,
    Prediction,
    Rejected,
    Report,
    SymptomReport,
)
from scopedown.tell.clean import clean
from scopedown.terms import EXPLAINED_BY, RESOLVABLE_BY, Kind, Metric, Objective, Statistic

NAMES = {
    Metric.TTFT: "TTFT",
    Metric.TPOT: "TPOT",
    Metric.ITL: "ITL",
    Metric.E2E: "E2E latency",
    Metric.QUEUE_TIME: "queue time",
    Metric.STEP_TIME: "step time",
    Metric.REQUEST_THROUGHPUT: "request throughput",
    Metric.TOKEN_THROUGHPUT: "token throughput",
    Metric.COST: "cost",
}

#: Names of this length still fit a line of a page; longer ones are cut where they are shown, never in the JSON.
NAME = 60


def ms(ns: int | float) -> str:
    """An amount in milliseconds: to the microsecond below a second, to a tenth above ten seconds.

    >>> ms(121_000_000), ms(2_345_678_900), ms(75_000_000_000)
    ('121.000 ms', '2345.68 ms', '75000.0 ms')
    """
    size = abs(ns)
    digits = 3 if size < 10**9 else 2 if size < 10**10 else 1
    return f"{ns / 1e6:.{digits}f} ms"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def unit(ledger: LedgerReport) -> str:
    """What the ledger's amounts are called in milliseconds ("ms", "request-ms")."""
    return clean(ledger.unit.removesuffix("ns"), NAME) + "ms"


def amount(ns: int, ledger: LedgerReport) -> str:
    return f"{ms(ns).removesuffix('ms')}{unit(ledger)}"


def symptom(report: Report) -> str:
    """What the account is about, in one sentence."""
    s = report.symptom
    if s is None:
        if report.ledger.unit != "ns":
            whole = amount(report.ledger.total_ns, report.ledger)
            return f"no symptom stated: the phases of all requests together, {whole}"
        return f"no symptom stated: the captured window of {ms(report.ledger.total_ns)}"
    name = NAMES[s.metric] if s.statistic is Statistic.REQUEST else f"{s.statistic} {NAMES[s.metric]}"
    whose = f" of {clean(s.request, NAME)}" if s.request and s.statistic is Statistic.REQUEST else ""
    values = [v for v in (_observed(s), _recorded(s), _target(s)) if v]
    return f"{name}{whose}: {', '.join(values) or 'no value known'}"


def _observed(s: SymptomReport) -> str:
    value = ms(s.observed_ns) if s.observed_ns is not None else clean(s.observed or "", NAME)
    return f"{value} observed" if value else ""


def _recorded(s: SymptomReport) -> str:
    if s.recorded_ns is None:
        return ""
    if s.recorded_interval_ns is None:
        return f"{ms(s.recorded_ns)} recorded"
    low, high = s.recorded_interval_ns
    return f"{ms(s.recorded_ns)} recorded (95 %: {ms(low).removesuffix(' ms')} to {ms(high)})"


def _target(s: SymptomReport) -> str:
    value = ms(s.target_ns) if s.target_ns is not None else clean(s.target or "", NAME)
    return f"target {value}" if value else "no target"


def standing(report: Report) -> str:
    """Under which load, out of how many, and where the accounted one stands. Empty where nothing is known."""
    s = report.symptom
    if s is None:
        return ""
    parts = []
    if s.objective is not Objective.LATENCY or not s.metric.is_latency:
        parts.append(f"objective {s.objective}")
    if s.load:
        parts.append(f"load {clean(s.load, NAME)}")
    if s.confirmed is not None:
        parts.append("the log shows it again" if s.confirmed else "the log does not show it again")
    if s.request and s.statistic is not Statistic.REQUEST:
        parts.append(f"accounted: {clean(s.request, NAME)}")
    if s.percentile is not None:
        parts.append(f"p{100 * s.percentile:.0f} of its class")
    if s.population:
        parts.append(", ".join(f"{n} {clean(what, 20)}" for what, n in s.population.items() if n))
    if s.note:
        parts.append(clean(s.note))
    return "; ".join(parts)


def verdict(report: Report) -> str:
    """The decision in one sentence; its question and its reasons are the report's own strings."""
    d = report.decision
    reach = amount(d.reachable_ns, report.ledger)
    if report.ledger.total_ns:
        reach += f" ({percent(d.reachable_ns / report.ledger.total_ns)})"
    if d.kind is Kind.MEASURE:
        return f"measure at the {d.scope} scope: {reach} within its reach"
    if d.kind is Kind.CHANGE:
        return f"change the cause that the {d.scope} scope explained: {reach} reducible; then compare"
    if d.kind is Kind.RECAPTURE:
        return f"recapture at the {d.scope} scope: this evidence cannot answer ({reach} behind it)"
    return "enough: the symptom is within its target"


def found(report: Report) -> str:
    """The largest statement that is about what the decision is about."""
    d = report.decision
    if d.kind is Kind.ENOUGH:
        return ""
    for statement in report.statements:
        c = statement.category
        if EXPLAINED_BY.get(c) is d.scope or d.scope in RESOLVABLE_BY.get(c, ()):
            return statement.text
    return ""


def rejected(r: Rejected, *, short: bool = False) -> str:
    """Why a narrower scope would be premature, as its bound."""
    whole = "of it" if short else "of the symptom"
    distance = "of the distance" if short else "of the distance to the target"
    parts = [f"{percent(r.bound_share)} {whole}"]
    if r.bound_of_distance is not None:
        parts.append(f"{percent(r.bound_of_distance)} {distance}")
    return f"{r.scope}: at most {ms(r.bound_ns)} ({', '.join(parts)})"


def resolved(line: Line) -> str:
    """Whether a line is explained, or who could explain it."""
    if line.explained:
        return "explained"
    return f"-> {', '.join(line.resolvable_by)}" if line.resolvable_by else ""


def label(line: Line, limit: int = NAME) -> str:
    times = f" ({line.count}x)" if line.count > 1 else ""
    return clean(line.label, max(8, limit - len(times))) + times


def pattern(p: PatternReport) -> str:
    """A repetition, with its population, its length and its rhythm."""
    of = "" if p.of is None else f" of {p.of}"
    parts = [
        f"{clean(p.label, NAME)} ({p.category}, rule {clean(p.rule, NAME)}): {p.count}{of} times",
        f"median {ms(p.median_ns)} (p10 {ms(p.spread_ns[0])}, p90 {ms(p.spread_ns[1])})",
        f"{ms(p.total_ns)} in all, {ms(p.path_ns)} on the path",
    ]
    if p.period_ns is not None:
        parts.append(f"every {ms(p.period_ns)}")
    if p.trend:
        parts.append(clean(p.trend))
    if p.opens is not None:
        parts.append(f"opens {p.opens}")
    return "; ".join(parts)


def prediction(p: Prediction) -> str:
    if p.direction == "unchanged":
        return f"{clean(p.metric, NAME)} stays as it is (within {ms(p.tolerance_ns)})"
    return f"{clean(p.metric, NAME)} {clean(p.direction, 20)} by {ms(p.amount_ns)} (within {ms(p.tolerance_ns)})"


def needs(command: Command) -> str:
    """What has to be there before the command runs, and what it costs."""
    parts = [clean(n) for n in command.needs]
    if command.overhead:
        parts.append(f"overhead: {clean(command.overhead)}")
    return "; ".join(parts)


def metrics(decision: DecisionReport) -> str:
    return ", ".join(clean(m, NAME) for m in decision.metrics)
