"""Copies on the path with nothing beside them, and copies that nothing waits for."""

import pytest

from rules.made import of_trace, silent, simulated, told
from scopedown.decide.rules.exposed_copy import ExposedCopy
from scopedown.terms import Category, Scope
from shared_data import SHARED, needs_shared

RULE = ExposedCopy()


def test_bytes_and_rate_of_a_long_copy():
    f, t = told(RULE, simulated("long_copy_then_idle"))
    assert (f.label, f.count, f.category, f.opens) == ("copy HtoD pinned", 1, Category.DEVICE_COPY, Scope.TIMELINE)
    assert "2.3 GB at 5" in t.text
    assert "beside 100.0 % of it" in t.text
    assert t.predicts[0].amount_ns == pytest.approx(f.path_ns, rel=0.01)


@pytest.mark.parametrize("name", ["side_stream", "pageable_copies", "sync_is_device_work", "worked_example"])
def test_copies_beside_the_path_blocking_and_tiny_ones(name: str):
    assert silent(RULE, simulated(name))


@needs_shared
def test_training_on_two_devices_waits_for_copies_not_for_the_host():
    s = of_trace(SHARED / "data/nsys/h100x2_train_nvtx_2026.2.sqlite")
    f, t = told(RULE, s)
    assert f.label == "copy HtoD pinned"
    assert f.path_ns > 0.94 * s.total_ns
    assert s.host_ns() < 0.01 * s.total_ns
    assert "25.5 GB" in t.text
