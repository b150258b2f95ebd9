"""A complaint, checked: which metric, which statistic or request, how much it is and how much it should be."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from scopedown.errors import UsageError
from scopedown.terms import Metric, Objective, Statistic
from scopedown.units import parse_duration, parse_rate, split_amount

Word = TypeVar("Word", bound=StrEnum)

KEYS = (
    "metric",
    "statistic",
    "request",
    "observed",
    "target",
    "objective",
    "objective_text",
    "load",
    "material",
)

_OBJECTIVE = {
    Metric.REQUEST_THROUGHPUT: Objective.THROUGHPUT,
    Metric.TOKEN_THROUGHPUT: Objective.THROUGHPUT,
    Metric.COST: Objective.COST,
}
_EXAMPLE = {
    Metric.REQUEST_THROUGHPUT: "8.5 req/s",
    Metric.TOKEN_THROUGHPUT: "1200 tok/s",
    Metric.COST: "0.40 USD/Mtok",
}


@dataclass(frozen=True, slots=True)
class Symptom:
    """``observed_ns`` for latencies; ``observed_rate`` for throughput (1/s) and cost (in the unit of ``observed``)."""

    metric: Metric
    statistic: Statistic
    request: str | None
    observed_ns: int | None
    observed_rate: float | None
    target_ns: int | None
    target_rate: float | None
    observed: str
    """As the user wrote it."""
    target: str | None
    objective: Objective
    objective_text: str | None
    load: str | None
    material_ns: int | None = None
    """What the case itself calls material; None: the rule of the product."""


def parse_symptom(given: Mapping[str, Any]) -> Symptom | None:
    """The complaint of ``[symptom]`` or of the command line; None where there is none (a question, not a complaint).

    >>> parse_symptom({"metric": "ttft", "statistic": "p95", "observed": "1379 ms"}).observed_ns
    1379000000

    Raises UsageError that lists everything that is missing or cannot be measured.
    """
    texts = {k: v for k, v in given.items() if v is not None}
    for key, value in texts.items():
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(KEYS)}"
            raise UsageError(f"unknown key {key!r} in the symptom: {hint}")
        if isinstance(value, int | float) and key in ("observed", "target", "material"):
            raise UsageError(f'{key} = {value} has no unit: write for example {key} = "{value} ms"')
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{key} of the symptom has to be a text that is not empty")
    if "metric" not in texts:
        # The aim and the load may be known before anything is wrong; an amount without a metric is a complaint.
        if not texts.keys() & {"statistic", "request", "observed", "target"}:
            return None
        raise UsageError(f'the symptom has no metric: add for example metric = "ttft" (one of {", ".join(Metric)})')
    metric = _word(Metric, "metric", texts["metric"])
    example = _EXAMPLE.get(metric, "121 ms")
    statistic = _statistic(metric, texts)
    missing = []
    if "observed" not in texts:
        missing.append(f'how much it is (observed = "{example}")')
    if statistic is None:
        missing.append('of what (statistic = "p95", or request = "its id")')
    if missing or statistic is None:
        raise UsageError(f"the complaint about {metric} does not say {' and '.join(missing)}")
    observed_ns, observed_rate = _amount(metric, "observed", texts["observed"], example)
    target_ns, target_rate = _amount(metric, "target", texts["target"], example) if "target" in texts else (None, None)
    if metric is Metric.COST and "target" in texts and _unit(texts["observed"]) != _unit(texts["target"]):
        raise UsageError(f"observed ({texts['observed']}) and target ({texts['target']}) are in different units")
    objective = _OBJECTIVE.get(metric, Objective.LATENCY)
    if "objective" in texts:
        objective = _word(Objective, "objective", texts["objective"])
    if objective is Objective.OTHER and "objective_text" not in texts:
        raise UsageError('objective = "other" needs objective_text, which says what is to become better')
    return Symptom(
        metric=metric,
        statistic=statistic,
        request=texts.get("request"),
        observed_ns=observed_ns,
        observed_rate=observed_rate,
        target_ns=target_ns,
        target_rate=target_rate,
        observed=texts["observed"],
        target=texts.get("target"),
        objective=objective,
        objective_text=texts.get("objective_text"),
        load=texts.get("load"),
        material_ns=parse_duration(texts["material"]) if "material" in texts else None,
    )


def _word(kind: type[Word], key: str, text: str) -> Word:
    try:
        return kind(text.strip().lower().replace("-", "_"))
    except ValueError:
        raise UsageError(f"{text!r} is not a {key} that can be measured: use one of {', '.join(kind)}") from None


def _statistic(metric: Metric, texts: Mapping[str, str]) -> Statistic | None:
    """The statistic; implied by a request; throughput and cost are one number of the window."""
    request = texts.get("request")
    if request is not None and not metric.is_latency:
        raise UsageError(f"{metric} belongs to a window of load, not to one request: leave out request")
    if "statistic" not in texts:
        return Statistic.REQUEST if request is not None else None if metric.is_latency else Statistic.MEAN
    statistic = _word(Statistic, "statistic", texts["statistic"])
    if statistic is Statistic.REQUEST and request is None:
        raise UsageError('statistic = "request" does not say which one: add request = "its id"')
    if statistic is not Statistic.REQUEST and request is not None:
        raise UsageError(f'{statistic} finds its request by rank: leave out request, or write statistic = "request"')
    return statistic


def _amount(metric: Metric, key: str, text: str, example: str) -> tuple[int | None, float | None]:
    """``(ns, None)`` for a latency, ``(None, rate)`` else. Raises UsageError for words and missing units."""
    try:
        value, unit = split_amount(text)
    except UsageError:
        raise UsageError(f'{key} = {text!r} is no amount: say how much, for example {key} = "{example}"') from None
    if value <= 0:
        raise UsageError(f"{key} = {text!r}: expected an amount above zero")
    if metric.is_latency:
        ns = parse_duration(text)
        if ns < 1:
            raise UsageError(f"{key} = {text!r} is shorter than 1 ns, which is the least that is counted")
        return ns, None
    if metric is Metric.COST:
        if not unit:
            raise UsageError(f'{key} = {text!r} has no unit: write for example "{example}"')
        if not sys.float_info.min <= float(value) <= sys.float_info.max:
            raise UsageError(f"{key} = {text!r} is an amount that nothing has")
        return None, float(value)
    what = "tok" if metric is Metric.TOKEN_THROUGHPUT else "req"
    rate = parse_rate(text)
    if not unit.lower().startswith(what):
        raise UsageError(f'{key} = {text!r}: {metric} is counted in {what}/s, for example "{example}"')
    return None, rate


def _unit(text: str) -> str:
    return split_amount(text)[1]
