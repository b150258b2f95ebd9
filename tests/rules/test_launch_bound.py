"""Many short kernels behind slower launches, and launches that cost nothing."""

import pytest

from rules.made import of_case, silent, simulated, told
from scopedown.decide.rules.launch_bound import LaunchBound
from scopedown.terms import HOST_WITHOUT_CAUSE, Category, Scope
from shared_data import SHARED, needs_shared

RULE = LaunchBound()


@pytest.mark.parametrize("seed", [1, 3])
def test_launches_are_counted_with_the_host_time_between_them(seed: int):
    s = simulated("launch_bound", seed)
    f, t = told(RULE, s)
    assert f.count == 2399
    assert f.opens is Scope.FRAMEWORK
    assert "2400 launches" in t.text
    assert "never waits" in t.text
    assert f.path_ns == pytest.approx(s.account.ns_of(*HOST_WITHOUT_CAUSE), rel=0.01)
    # Kernels that were beside the host become the path: less is saved than the host's time.
    assert 0.5 * f.path_ns < t.predicts[0].amount_ns < f.path_ns


def test_short_launches_between_long_gaps_are_counted_apart():
    s = simulated("worked_example")
    f, _ = told(RULE, s)
    assert 352 <= f.count <= 416
    assert int(f.ns.max()) <= 100_000
    assert f.category is Category.HOST_ANNOTATION


@pytest.mark.parametrize("name", ["dominating_kernel", "sync_is_device_work", "graph_by_node", "sync_then_launch"])
def test_launches_behind_a_busy_device_are_hidden(name: str):
    assert silent(RULE, simulated(name))


@needs_shared
def test_the_case_that_never_waits():
    s = of_case(SHARED / "cases/09")
    f, t = told(RULE, s)
    assert f.path_ns == pytest.approx(30.9e6, rel=0.02)
    assert "aunch-bound: 240" in t.text
    assert "never waits" in t.text
    assert f.group is not None
    assert f.group.count == 2400
