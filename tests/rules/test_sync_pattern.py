"""Synchronise, then decide, then launch; and waits that nothing follows."""

import pytest

from rules.made import ms, of_trace, ran, silent, simulated, told
from scopedown.decide.rules.sync_pattern import SyncPattern
from scopedown.simulate import Program
from scopedown.terms import Category, Scope
from shared_data import SHARED, needs_shared

RULE = SyncPattern()


def test_every_decode_step_waits_first():
    s = simulated("sync_then_launch")
    f, t = told(RULE, s)
    # The first step of the interval begins with it: its wait lies before.
    assert (f.count, f.of, f.category, f.opens) == (63, 64, Category.HOST_SYNC, Scope.FRAMEWORK)
    assert ms(f.median_ns) == pytest.approx(1.81, rel=0.03)
    assert "waits for it in cudaStreamSynchronize" in t.text
    assert "before vllm::rms_norm_kernel" in t.location
    # Without the wait host and device overlap: at most the shorter of the two is saved.
    assert 0 < t.predicts[0].amount_ns * s.parts < f.path_ns


def test_pauses_are_not_counted_with_the_regular_gaps():
    f, _ = told(RULE, simulated("rare_pauses"))
    assert f.count == 56
    assert ms(int(f.ns.max())) < 0.1


@pytest.mark.parametrize("name", ["allocation_in_loop", "os_wait"])
def test_a_gap_with_a_named_cause_is_left_to_it(name: str):
    assert silent(RULE, simulated(name))


@pytest.mark.parametrize("name", ["sync_is_device_work", "launch_bound", "pageable_copies", "dominating_kernel"])
def test_waits_after_which_nothing_is_late(name: str):
    assert silent(RULE, simulated(name))


def test_a_wait_that_returns_before_the_gap_is_not_its_cause():
    """The host waits for the first kernel, then launches; the gap comes later, before another launch."""
    p = Program(1)
    t = p.thread("worker")
    for _ in range(12):
        t.kernel("first", 300_000)
        t.sync()
        t.kernel("second", 200_000)
        t.host(1_500_000)
        t.kernel("third", 300_000)
    t.sync()
    s = ran(p)
    assert all("third" not in f.label for f in RULE.find(s))


@needs_shared
def test_two_thousand_kernels_launched_one_by_one():
    s = of_trace(SHARED / "data/nsys/old_2419kernels_noGPUinfo.sqlite")
    f, t = told(RULE, s)
    assert f.count == 2389
    assert "cuStreamSynchronize" in t.text
    assert t.value == pytest.approx(69_880, rel=0.01)
