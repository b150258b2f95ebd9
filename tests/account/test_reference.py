"""The account against a second one, written slowly and plainly: any trace, and what the simulator makes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from account.reference import Reference, categories, of_segments
from account.simulated import random_run
from account.strategies import asked, examples
from scopedown.account.timeline import Ending, Timeline
from scopedown.trace.model import NONE, Trace

Asked = tuple[Trace, int, int]
SEEDS = range(300, 312)


@given(asked())
@examples(300)
def test_host_time_of_any_trace(given_: Asked) -> None:
    trace, lo, hi = given_
    t = Timeline(trace)
    slow = Reference(t)
    for thread in range(len(trace.threads)):
        fast = of_segments(t.host.segments(thread, np.array([lo]), np.array([hi])))
        assert fast == categories(slow.host_time(thread, lo, hi))


@given(asked())
@examples(300)
def test_devices_of_any_trace(given_: Asked) -> None:
    trace, lo, hi = given_
    t = Timeline(trace)
    slow = Reference(t)
    for d in t.devices.ids:
        assert of_segments(t.devices.account(d, lo, hi).segments) == categories(slow.device(d, lo, hi))


@pytest.mark.parametrize("seed", SEEDS)
def test_devices_of_simulated_runs(seed: int) -> None:
    ran = random_run(seed, 4)
    slow = Reference(ran.timeline)
    for d in ran.timeline.devices.ids:
        fast = ran.timeline.devices.account(d, ran.lo, ran.hi)
        assert of_segments(fast.segments) == categories(slow.device(d, ran.lo, ran.hi))


@given(asked())
@examples(400)
def test_path_of_any_trace(given_: Asked) -> None:
    trace, lo, hi = given_
    t = Timeline(trace)
    slow = Reference(t)
    last = t.last_row(lo, hi)
    endings = [Ending(hi, thread, NONE) for thread in range(len(trace.threads))] + ([last] if last else [])
    for e in endings:
        assert of_segments(t.path(lo, e)) == categories(slow.path(lo, e.at, e.thread, e.op))


@pytest.mark.parametrize("seed", SEEDS)
def test_path_of_simulated_runs(seed: int) -> None:
    ran = random_run(seed, 3)
    slow = Reference(ran.timeline).path(ran.lo, ran.hi, ran.thread)
    assert of_segments(ran.account.path) == categories(slow)
