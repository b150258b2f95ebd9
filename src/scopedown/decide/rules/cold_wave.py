"""Symptoms that do not repeat: an opening wave, or one odd request among normal ones."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scopedown.account.groups import nearest
from scopedown.account.population import values
from scopedown.account.repeats import Confirmation, FirstWave, Repeats
from scopedown.decide.rules.base import Finding, falls, lengths
from scopedown.decide.rules.late_client import name_of
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category, Scope
from scopedown.trace.model import Ints
from scopedown.units import show_ns


class ColdWave:
    """Slow requests that open the run, or one slow request that none of its class repeats.

    What it sees
        An unbroken opening run of requests that took twice the median of the later ones, and the symptom's statistic
        with and without them; or a request that is slow beside others of its input length.
    Why it matters
        First calls load, compile, tune and allocate. A percentile that holds them describes the start of the server,
        not the load; work on the steady state cannot move it.
    What it opens next
        The application scope: mark the wave as warm-up and repeat. Where the start itself is the complaint, the
        timeline of a first request.
    What refutes it
        The statistic of a run that was warmed up is as high; requests of this shape are as slow again.
    What it must not be confused with
        A queue that fills at the start because all requests arrive at once: there the wait is in the queue phase.
        Load that grows over the run.
    References
        aws-samples/aws-do-eks#88 (p95 57 s made by ten requests of a hundred); vllm-project/vllm#39790.
    """

    id: ClassVar[str] = "cold_wave"

    def find(self, s: Situation) -> list[Finding]:
        if s.log is None or s.symptom is None or not s.is_latency:
            return []
        return self._wave(s, s.wave) + self._odd(s, s.confirmation)

    def _wave(self, s: Situation, wave: FirstWave | None) -> list[Finding]:
        """Only where it makes the statistic."""
        if wave is None or wave.statistic_ns is None or wave.without_ns is None or s.log is None or s.symptom is None:
            return []
        moved = wave.statistic_ns - wave.without_ns
        if moved * s.parts < max(s.material_ns, 1):
            return []
        rows = np.array(wave.rows, np.int64)
        ns = values(s.log, s.symptom.metric)[0][rows]
        inside = s.row in wave.rows
        return [
            Finding(
                self.id,
                Category.UNACCOUNTED,
                "opening wave of slow requests",
                ns,
                max(s.total_ns - wave.rest_median_ns * s.parts, 0) if inside else 0,
                Scope.APPLICATION,
                s.chosen.population["values"] if s.chosen is not None else None,
                trend="first wave",
                state=lambda _: _wave_statement(s, wave, ns, moved),
            )
        ]

    def _odd(self, s: Situation, c: Confirmation | None) -> list[Finding]:
        if c is None or c.repeats is not Repeats.ODD_ONE or c.others_median_ns is None:
            return []
        extra = (c.value_ns - c.others_median_ns) * s.parts
        if extra < max(s.material_ns, 1):
            return []
        return [
            Finding(
                self.id,
                Category.UNACCOUNTED,
                "one odd request among normal ones",
                lengths(extra),
                extra,
                Scope.APPLICATION,
                c.others + 1,
                state=lambda _: _odd_statement(s, c, extra),
            )
        ]


def _wave_statement(s: Situation, wave: FirstWave, ns: Ints, moved: int) -> Statement:
    assert s.symptom is not None
    of = s.chosen.population["values"] if s.chosen is not None else len(ns)
    return Statement(
        text=(
            f"warm-up is inside the sample: the first {len(ns)} of {of} requests took {show_ns(nearest(ns, 0.5))} "
            f"(median), the others {show_ns(wave.rest_median_ns)}; {name_of(s.symptom)} is "
            f"{show_ns(wave.statistic_ns or 0)} with them and {show_ns(wave.without_ns or 0)} without"
        ),
        category=Category.UNACCOUNTED,
        subject="opening wave",
        value=float(nearest(ns, 0.5)),
        unit="ns",
        count=len(ns),
        location=f"the first {len(ns)} requests by time of sending",
        evidence=(s.evidence.get("log", "request log"),),
        predicts=(falls(s, moved * s.parts),),
        refuted_by=(
            "the same load on a server that was warmed up gives the same statistic",
            "requests of this shape are as slow again later in a run",
        ),
    )


def _odd_statement(s: Situation, c: Confirmation, extra: int) -> Statement:
    assert s.symptom is not None
    return Statement(
        text=(
            f"one odd request: {name_of(s.symptom)} is {show_ns(c.value_ns)}, the median of {c.others} others of its "
            f"class {show_ns(c.others_median_ns or 0)}, and {c.alike} of them are as slow"
        ),
        category=Category.UNACCOUNTED,
        subject="one request",
        value=float(c.value_ns),
        unit="ns",
        count=1,
        location=f"request {s.symptom.request}",
        evidence=(s.evidence.get("log", "request log"),),
        predicts=(falls(s, extra),),
        refuted_by=(f"of the next {max(c.others, 20)} requests of this shape one in twenty is as slow",),
    )
