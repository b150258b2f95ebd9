"""Does the symptom repeat, is it one odd request, and is warm-up inside the sample?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from scopedown.account.population import Chosen, classmates, members, nearest_rank, statistic, values
from scopedown.read.base import UNKNOWN, RequestLog
from scopedown.symptom import Symptom
from scopedown.terms import Metric, Statistic

#: A request at most this much above the median of its class is a normal one.
NORMAL_RATIO = 1.25
#: An opening wave is told from the rest by this ratio of medians.
WAVE_RATIO = 2.0
#: A recorded statistic within this share of the observed one confirms it.
AGREES = 0.10


class Repeats(StrEnum):
    YES = "repeats"
    ODD_ONE = "one odd request among normal ones"
    NO = "not in this log"
    UNKNOWN = "cannot say"


@dataclass(frozen=True, slots=True)
class Confirmation:
    repeats: Repeats
    value_ns: int
    """Of the request, or the recorded statistic."""
    observed_ns: int | None
    others: int
    """Other requests of the class (of the population, for a percentile)."""
    others_median_ns: int | None
    alike: int
    """Others that are as slow: at least half-way from their median to the request's value."""

    @property
    def confirmed(self) -> bool | None:
        return None if self.repeats is Repeats.UNKNOWN else self.repeats is Repeats.YES


@dataclass(frozen=True, slots=True)
class FirstWave:
    """The opening requests are of another population: warm-up inside the sample."""

    rows: tuple[int, ...]
    median_ns: int
    rest_median_ns: int
    statistic_ns: int | None
    """The symptom's statistic with the wave."""
    without_ns: int | None


def confirm(log: RequestLog, symptom: Symptom, chosen: Chosen | None) -> Confirmation | None:
    """Whether the log shows the symptom again. None where the log has no value for it.

    One request: how many of its class (input length within 10 %) are as slow. A statistic: whether the recorded one
    agrees with the observed one, or its 95 % interval covers it.
    """
    if chosen is None:
        return None
    if symptom.statistic is not Statistic.REQUEST:
        return _confirm_statistic(log, symptom, chosen)
    ns, valid = values(log, symptom.metric)
    tokens = int(log.input_tokens[chosen.row])
    mask, _ = classmates(log, None if tokens == UNKNOWN else tokens, (chosen.row,))
    others = ns[mask & valid]
    value = chosen.value_ns
    if len(others) < 2:
        median = int(others[0]) if len(others) else None
        return Confirmation(Repeats.UNKNOWN, value, symptom.observed_ns, len(others), median, 0)
    median = nearest_rank(others, 0.5)
    alike = int((2 * others >= median + value).sum())
    odd = value > NORMAL_RATIO * median and alike < max(2, 0.05 * len(others))
    return Confirmation(Repeats.ODD_ONE if odd else Repeats.YES, value, symptom.observed_ns, len(others), median, alike)


def _confirm_statistic(log: RequestLog, symptom: Symptom, chosen: Chosen) -> Confirmation:
    _, ns, _ = members(log, symptom.metric)
    value, observed = chosen.value_ns, symptom.observed_ns
    alike = int((ns >= value).sum())
    answer = Repeats.UNKNOWN
    if observed is not None:
        low, high = chosen.interval95_ns or (value, value)
        # "At least as bad" is the symptom as well.
        if low <= observed <= high or value >= (1 - AGREES) * observed:
            answer = Repeats.YES
        elif chosen.interval95_ns is not None:
            answer = Repeats.NO
    return Confirmation(answer, value, observed, len(ns), nearest_rank(ns, 0.5), alike)


def first_wave(log: RequestLog, symptom: Symptom) -> FirstWave | None:
    """The longest opening run (in order of sending) of requests that all took twice the median of the later half.

    At most half of the sample, and only where there are enough later requests to say what is normal.
    """
    if symptom.metric is Metric.ITL or not symptom.metric.is_latency:
        return None
    rows, ns, _ = members(log, symptom.metric)
    if len(rows) < 8:
        return None
    order = np.lexsort((log.arrival[rows], log.sent[rows]))
    rows, ns = rows[order], ns[order]
    half = len(rows) // 2
    normal = nearest_rank(ns[half:], 0.5)
    slow = ns[:half] > WAVE_RATIO * normal
    length = half if slow.all() else int(np.argmin(slow))
    if length == 0 or length == half:
        return None
    wave = rows[:length]
    warm = log.warmup.copy()
    warm[wave] = True
    with_wave, without = statistic(log, symptom), statistic(replace(log, warmup=warm), symptom)
    return FirstWave(
        tuple(int(r) for r in wave),
        nearest_rank(ns[:length], 0.5),
        nearest_rank(ns[length:], 0.5),
        None if with_wave is None else with_wave.value_ns,
        None if without is None else without.value_ns,
    )
