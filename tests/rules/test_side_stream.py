"""A stream beside the path, and a stream that the path waits for."""

import pytest

from rules.made import of_trace, silent, simulated, told, truth
from scopedown.decide.rules.side_stream import SideStream
from scopedown.terms import Category
from shared_data import SHARED, needs_shared

RULE = SideStream()


@pytest.mark.parametrize("seed", [1, 2])
def test_its_removal_saves_nothing(seed: int):
    s = simulated("side_stream", seed)
    f, t = told(RULE, s)
    assert (f.count, f.category, f.path_ns, f.opens) == (9, Category.DEVICE_COPY, 0, None)
    assert f.total_ns > 0.9 * s.total_ns
    (p,) = t.predicts
    assert (p.direction, p.amount_ns) == ("unchanged", 0)
    assert truth("side_stream", seed).saving("prefetch") <= p.tolerance_ns
    assert "Taking all of it out saves 0 ns" in t.text


@pytest.mark.parametrize("name", ["long_copy_then_idle", "dominating_kernel", "pageable_copies", "two_devices"])
def test_a_stream_that_the_path_runs_through(name: str):
    assert silent(RULE, simulated(name))


def test_another_rank_is_not_beside_this_one():
    assert silent(RULE, simulated("two_processes"))


@needs_shared
def test_the_second_device_of_a_training_run():
    assert silent(RULE, of_trace(SHARED / "data/nsys/h100x2_train_nvtx_2026.2.sqlite"))
