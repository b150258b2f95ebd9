"""Waits that are the device's own work, and waits that expose the host."""

import pytest

from rules.made import of_case, of_trace, silent, simulated, told
from scopedown.decide.rules.sync_is_work import SyncIsWork
from shared_data import SHARED, needs_shared

RULE = SyncIsWork()


def test_removing_the_calls_saves_their_return_only():
    s = simulated("sync_is_device_work")
    f, t = told(RULE, s)
    assert f.count == 24
    assert f.total_ns > 0.8 * s.total_ns
    assert "the wait is the device's own work" in t.text
    assert "it does not save the wait" in t.text
    (p,) = t.predicts
    assert p.direction == "unchanged"
    assert p.tolerance_ns * s.parts < 0.02 * s.total_ns


def test_one_wait_at_the_end():
    f, t = told(RULE, simulated("dominating_kernel"))
    assert f.count == 1
    assert t.predicts[0].direction == "unchanged"


@pytest.mark.parametrize("name", ["sync_then_launch", "worked_example", "hand_over", "rare_pauses", "side_stream"])
def test_waits_that_host_work_follows_do_cost_something(name: str):
    assert silent(RULE, simulated(name))


@pytest.mark.parametrize("name", ["launch_bound", "pageable_copies"])
def test_no_wait_for_other_work(name: str):
    assert silent(RULE, simulated(name))


@needs_shared
def test_a_blocking_copy_behind_each_kernel_waits_for_the_kernel():
    s = of_trace(SHARED / "data/nsys/gh200_jacobi_2023.4.sqlite")
    f, t = told(RULE, s)
    assert "mostly cudaMemcpy" in t.text
    assert f.total_ns > 2_000_000_000
    assert t.predicts[0].direction == "unchanged"


@needs_shared
def test_the_kernel_case():
    _, t = told(RULE, of_case(SHARED / "cases/05"))
    assert "under 99.7 %" in t.text
