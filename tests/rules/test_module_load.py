"""Module load with and without a record, and calls that are long for another reason."""

import pytest

from rules.made import built, found, of_trace, silent, simulated, told
from scopedown.decide.rules.module_load import ModuleLoad
from scopedown.simulate import SITUATIONS, NsysOptions
from scopedown.terms import Category, Scope
from shared_data import SHARED, needs_shared

RULE = ModuleLoad()


def test_a_record_names_the_load():
    # The table of overhead records exists from schema 3.24 on.
    f, t = told(RULE, built(SITUATIONS["module_load"](1), NsysOptions(product="2026.2.1.210")))
    assert (f.count, f.category, f.opens) == (1, Category.HOST_MODULE, Scope.TIMELINE)
    assert f.path_ns == pytest.approx(58e6, rel=0.07)
    assert "not recorded" not in t.text
    assert "first launch of fused_moe_kernel" in t.text


def test_without_a_record_the_cause_is_said_to_be_unknown():
    f, t = told(RULE, simulated("module_load_unrecorded"))
    assert (f.count, f.category, f.opens) == (1, Category.HOST_API, Scope.FRAMEWORK)
    assert "long launch call, cause not recorded" in t.text
    assert "tell them apart" in t.text
    assert t.predicts[0].direction == "falls"


@pytest.mark.parametrize("name", ["launch_bound", "allocation_in_loop", "pageable_copies", "sync_is_device_work"])
def test_ordinary_launches_and_other_long_calls(name: str):
    assert silent(RULE, simulated(name))


@needs_shared
def test_first_launches_of_a_short_capture_are_no_launch_latency():
    s = of_trace(SHARED / "data/nsys/fuser_h200_run_a_2024.6.sqlite")
    f, t = told(RULE, s)
    assert f.count == 9
    assert "cudaLaunchKernel: long launch call, cause not recorded" in t.text


@needs_shared
def test_a_first_launch_of_48_ms():
    s = of_trace(SHARED / "data/nsys/t4_nvtx_sparse_solve_2023.3.sqlite")
    f = next(f for f in found(RULE, s) if "cudaLaunchKernel" in f.label)
    assert f.path_ns == pytest.approx(47.76e6, rel=0.01)
    assert f.state is not None
    assert "first launch of dag_lts_kernel" in f.state(f.path_ns).text


@needs_shared
def test_the_call_that_creates_the_context_is_one_call():
    f, t = told(RULE, of_trace(SHARED / "data/nsys/t4_nvtx_sparse_solve_2023.3.sqlite"))
    assert f.count == 1
    assert f.path_ns == pytest.approx(240.3e6, rel=0.01)
    assert "cudaEventCreate: first call, creates the context" in t.text
