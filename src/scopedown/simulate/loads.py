"""Situations of logs alone: a queue near saturation, a load client that stalls, a monitor slower than the request."""

from __future__ import annotations

import random
from dataclasses import replace

from scopedown.simulate.server import service_intervals
from scopedown.simulate.situation import Expect, MonitorPlan, Request, Situation, Symptom, observed
from scopedown.terms import Category, Kind, Metric, Scope, Statistic

EPOCH = 1_781_082_000_000_000_000
MS = 1_000_000
NOT_APPLICATION = (Scope.FRAMEWORK, Scope.KERNEL, Scope.SOURCE, Scope.INSTRUCTIONS)


def _queue(rng: random.Random, arrivals: list[int], sent: list[int], service_ns: int, spread: float) -> list[Request]:
    """First come, first served, one server: an M/G/1 queue where the arrivals are Poisson."""
    requests = []
    free = 0
    for arrival, out in zip(arrivals, sent, strict=True):
        queued = out + rng.randrange(450_000, 700_000)
        scheduled = max(queued + 80_000, free)
        free = scheduled + int(service_ns * (1 + spread * max(-2.5, min(2.5, rng.gauss(0, 1)))))
        token = free + rng.randrange(200_000, 350_000)
        requests.append(
            Request(f"cmpl-{rng.getrandbits(32):08x}", arrival, out, queued, scheduled, [token], token + 300_000)
        )
    return requests


def _at_rank(name: str, seed: int, requests: list[Request], symptom: Symptom, expect: Expect) -> Situation:
    """The subject is the request at the nearest rank."""
    draft = Situation(name, seed, symptom, requests, requests[0], expect)
    value = observed(draft)
    return replace(draft, subject=next(r for r in requests if r.ttft == value))


def near_saturation(seed: int) -> Situation:
    """Poisson arrivals at 97 % of what the server can do: p95 of the time to first token is queueing."""
    rng = random.Random(seed)  # noqa: S311 - a seeded simulation
    service, load = 100 * MS, 0.97
    at, arrivals = EPOCH, []
    for _ in range(400):
        at += int(rng.expovariate(load / service))
        arrivals.append(at)
    requests = _queue(rng, arrivals, [a + rng.randrange(25_000, 70_000) for a in arrivals], service, 0.1)
    rate = len(arrivals) * 1e9 / (arrivals[-1] - arrivals[0])
    symptom = Symptom(Metric.TTFT, Statistic.P95, 300 * MS, f"{rate:.1f} requests/s, open loop, Poisson")
    expect = Expect((Kind.CHANGE, Kind.MEASURE), (Scope.APPLICATION,), (Category.QUEUE,), NOT_APPLICATION)
    return _at_rank("near_saturation", seed, requests, symptom, expect)


def late_client(seed: int) -> Situation:
    """14 requests a second on schedule; the client stalls for a second and sends what it owes afterwards."""
    rng = random.Random(seed)  # noqa: S311 - a seeded simulation
    arrivals = [EPOCH + i * 10**9 // 14 for i in range(160)]
    stall = EPOCH + rng.randrange(3, 7) * 10**9
    out = [a + rng.randrange(30_000, 80_000) for a in arrivals]
    freed = stall + 1_000 * MS
    for i, time in enumerate(out):
        if stall <= time < freed:
            out[i] = freed = max(freed, stall + 1_000 * MS) + 4 * MS
    requests = _queue(rng, arrivals, out, 3 * MS, 0.05)
    for r in requests:
        # Service is batched: it does not queue, and takes what it takes.
        shift = 55 * MS + rng.randrange(0, 6 * MS)
        r.tokens, r.end = [r.tokens[0] + shift], r.end + shift
    symptom = Symptom(Metric.TTFT, Statistic.P95, 100 * MS, "14 requests/s, open loop, constant")
    expect = Expect(
        (Kind.CHANGE, Kind.RECAPTURE, Kind.MEASURE),
        (Scope.APPLICATION,),
        (Category.CLIENT,),
        (*NOT_APPLICATION, Scope.TIMELINE),
    )
    return _at_rank("late_client", seed, requests, symptom, expect)


def slow_monitor(seed: int) -> Situation:
    """A log with stamps and a monitor of one second beside a request of 0.12 s: nothing has looked inside."""
    rng = random.Random(seed)  # noqa: S311 - a seeded simulation
    arrivals = [EPOCH + i * 2 * 10**9 for i in range(9)]
    requests = _queue(rng, arrivals, [a + 40_000 for a in arrivals], 119 * MS, 0.02)
    requests[0].warmup = True
    subject = requests[-1]
    plan = MonitorPlan(10**9, service_intervals(requests), arrivals[0] - 10**9, arrivals[-1] + 3 * 10**9)
    expect = Expect((Kind.MEASURE,), (Scope.TIMELINE,), (Category.UNACCOUNTED,), NOT_APPLICATION)
    symptom = Symptom(Metric.TTFT, Statistic.REQUEST, 60 * MS, "0.5 requests/s", subject.id)
    return Situation("slow_monitor", seed, symptom, requests, subject, expect, monitor=plan)
