"""One family with most of the path, and families that only look large."""

import pytest

from rules.made import of_case, silent, simulated, told, truth
from scopedown.decide.rules.dominant_kernel import DominantKernel
from scopedown.terms import Category, Scope
from shared_data import SHARED, needs_shared

RULE = DominantKernel()


@pytest.mark.parametrize("seed", [1, 2])
def test_the_family_is_named_with_its_launches(seed: int):
    s = simulated("dominating_kernel", seed)
    f, t = told(RULE, s)
    assert (f.label, f.category, f.opens) == ("flash::flash_fwd_kernel", Category.DEVICE_KERNEL, Scope.KERNEL)
    assert f.count == 64
    assert "most of it in 32 of 2." in t.text
    assert t.predicts[0].amount_ns > truth("dominating_kernel", seed).tags["attention"]


def test_launches_are_counted_one_by_one():
    f, _ = told(RULE, simulated("graph_by_node"))
    assert f.count == pytest.approx(1920, abs=4)
    assert f.total_ns == f.path_ns


@pytest.mark.parametrize("name", ["worked_example", "launch_bound", "pageable_copies", "opaque_graph", "side_stream"])
def test_no_family_holds_the_path(name: str):
    assert silent(RULE, simulated(name))


@needs_shared
def test_the_case_with_one_kernel():
    f, t = told(RULE, of_case(SHARED / "cases/05"))
    assert (f.label, f.count) == ("fmha_cutlassF_bf16_aligned", 32)
    assert t.predicts[0].amount_ns == pytest.approx(67.644e6, rel=0.01)
