"""Many short gaps of one kind, and gaps that other rules speak of."""

import pytest

from rules.made import found, of_trace, silent, simulated, told
from scopedown.decide.rules.short_gaps import ShortGaps
from shared_data import SHARED, needs_shared

RULE = ShortGaps()


@needs_shared
def test_every_gap_of_a_solver():
    """A copy of some bytes before each kernel: 1,221 gaps, of which one holds the first launch."""
    s = of_trace(SHARED / "data/nsys/t4_nvtx_sparse_solve_2023.3.sqlite")
    f, t = told(RULE, s)
    both = sorted(x.count for x in found(RULE, s))
    assert both == [1220, 1221]
    assert f.median_ns < 3_000
    assert f.path_ns <= f.count * 50_000
    assert "on the path" in t.text
    assert t.predicts[0].direction == "unchanged"


@pytest.mark.parametrize("name", ["worked_example", "sync_then_launch", "launch_bound", "graph_by_node", "os_wait"])
def test_gaps_that_are_long_few_or_of_launches_one_by_one(name: str):
    assert silent(RULE, simulated(name))


@needs_shared
@pytest.mark.parametrize("name", ["gh200_jacobi_2023.4", "old_2419kernels_noGPUinfo", "a100_uvm_2022.2"])
def test_gaps_that_do_not_matter_or_are_not_short(name: str):
    assert silent(RULE, of_trace(SHARED / f"data/nsys/{name}.sqlite"))
