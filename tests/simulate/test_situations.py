"""Every situation, over seeds: its truth is a partition, and what it is about holds the time."""

from functools import cache
from itertools import pairwise

import pytest

from scopedown.simulate import SITUATIONS, truth_of
from scopedown.simulate.program import WaitFor
from scopedown.simulate.situation import Truth
from scopedown.terms import Category, Kind, Metric

SEEDS = (1, 2, 3)
BETWEEN_TOKENS = (Metric.TPOT, Metric.ITL)


@cache
def made(name: str, seed: int) -> Truth:
    return truth_of(SITUATIONS[name](seed))


@pytest.mark.parametrize("name", SITUATIONS)
def test_truth_is_a_partition(name: str):
    for seed in SEEDS:
        truth = made(name, seed)
        begin, end = truth.interval_ns
        assert (truth.segments[0].start, truth.segments[-1].end) == (begin, end)
        assert all(a.end == b.start for a, b in pairwise(truth.segments))
        assert sum(truth.lines.values()) == truth.total_ns


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_answer_holds_the_largest_part(name: str):
    for seed in SEEDS:
        truth = made(name, seed)
        target = truth.situation.symptom.target_ns
        assert target is not None
        if truth.expect.kinds == (Kind.ENOUGH,):
            assert truth.observed_ns <= target
        else:
            assert truth.observed_ns > target
            assert truth.answer_ns > 0.4 * truth.total_ns


@pytest.mark.parametrize("name", [n for n in SITUATIONS if made(n, 1).situation.run])
def test_a_cause_beside_the_path_saves_nothing(name: str):
    truth = made(name, 2)
    s = truth.situation
    # An interval between tokens starts when the client has the first: the engine is then at work on the second already.
    ahead = s.subject.tokens[0] - s.epoch(s.run.mark(s.token_marks[0])) if s.symptom.metric in BETWEEN_TOKENS else 0
    wakes = 60_000 * sum(isinstance(i, WaitFor) for script in s.run.program.threads for i in script.instructions)
    for tag, ns in truth.tags.items():
        assert truth.saving(tag) <= ns + ahead + wakes
    for tag in truth.beside:
        if tag not in truth.tags:
            assert truth.saving(tag) == 0


@pytest.mark.parametrize("name", SITUATIONS)
def test_log_stamps_are_in_order(name: str):
    for r in made(name, 3).situation.requests:
        assert r.arrival <= r.sent <= r.queued <= r.scheduled < r.tokens[0]
        assert all(a < b for a, b in pairwise([*r.tokens, r.end]))


@pytest.mark.parametrize("seed", range(1, 13))
def test_worked_example(seed: int):
    """121 ms to the first token, 35 % busy, and the same 1.8 ms before every one of the 32 layers."""
    truth = made("worked_example", seed)
    assert truth.observed_ns == pytest.approx(121e6, rel=0.01)
    assert truth.busy_ns[0] / truth.total_ns == pytest.approx(0.35, abs=0.01)
    s = truth.situation
    gaps = [g for g in idle(truth) if 1.5e6 < g < 2.5e6]
    assert len(gaps) in (31, 32)
    assert all(g == pytest.approx(1.8e6, rel=0.06) for g in gaps)
    shape = [x.ns for x in truth.segments if x.tag == "shape logic"]
    assert len(shape) == 32
    assert truth.saving("shape logic") == pytest.approx(sum(shape), rel=0.01)
    assert truth.lines[Category.DEVICE_KERNEL] < 43e6
    assert s.symptom.target_ns == pytest.approx(60e6, rel=0.02)


def idle(truth: Truth) -> list[int]:
    """Lengths of the idle stretches of device 0 within the run."""
    r = truth.situation.run
    ops = sorted((o.start, o.end) for o in r.recorded.ops)
    gaps, until = [], ops[0][0]
    for start, end in ops:
        gaps.append(max(0, start - until))
        until = max(until, end)
    return gaps


def test_removing_the_copies_beside_the_path_saves_nothing():
    truth = made("side_stream", 1)
    assert truth.beside["prefetch"] > 60e6
    assert truth.saving("prefetch") == 0
    assert truth.saving("shape logic") > 40e6


def test_the_wait_for_device_work_saves_only_its_return():
    truth = made("sync_is_device_work", 1)
    assert truth.lines[Category.HOST_SYNC] < 0.01 * truth.total_ns


def test_neighbours_work_is_the_schedulers():
    truth = made("neighbour_prefill", 1)
    assert truth.lines[Category.SCHEDULER] > 0.5 * truth.total_ns


def test_module_load_is_named_only_where_it_is_recorded():
    assert Category.HOST_MODULE in made("module_load", 1).lines
    assert Category.HOST_MODULE not in made("module_load_unrecorded", 1).lines
