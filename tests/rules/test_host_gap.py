"""The same gap before every step, and host time that is no gap."""

import pytest

from rules.made import ms, of_case, of_trace, silent, simulated, told, truth
from scopedown.decide.findings import conclude
from scopedown.decide.rules.host_gap import HostGap
from scopedown.terms import Category, Scope
from shared_data import SHARED, needs_shared

RULE = HostGap()


@pytest.mark.parametrize("seed", [1, 4])
def test_the_gap_before_every_layer(seed: int):
    s = simulated("worked_example", seed)
    f, t = told(RULE, s)
    assert (f.count, f.of, f.category, f.opens) == (32, 32, Category.HOST_ANNOTATION, Scope.FRAMEWORK)
    shape_logic = truth("worked_example", seed).tags["shape logic"]
    assert f.total_ns == pytest.approx(shape_logic, rel=0.02)
    assert "late 32 of 32 steps" in t.text
    assert "gap after nvjet_tst and before at::native::vectorized_elementwise_kernel" in t.text
    assert "thread EngineCore" in t.location
    assert t.predicts[0].amount_ns == pytest.approx(truth("worked_example", seed).saving("shape logic"), rel=0.02)


def test_count_total_and_median_are_of_one_set():
    f, _ = told(RULE, simulated("sync_then_launch"))
    assert (f.count, f.of) == (64, 64)
    assert f.total_ns == int(f.ns.sum()) == f.path_ns
    assert ms(f.median_ns) == pytest.approx(1.8, rel=0.05)
    assert f.group is not None
    assert f.group.total_ns == f.total_ns


def test_a_busy_side_stream_does_not_hide_the_gap():
    s = simulated("side_stream")
    f, t = told(RULE, s)
    assert f.count == 32
    assert "no kernel running" in t.text


def test_another_thread_may_hold_the_step_back():
    s = simulated("hand_over")
    f, t = told(RULE, s)
    predicted = t.predicts[0].amount_ns * s.parts
    assert predicted == pytest.approx(truth("hand_over").saving("schedule"), rel=0.02)
    assert "'schedule #' on thread Scheduler" in t.text
    assert (f.count, f.of) == (40, 40)


@pytest.mark.parametrize(
    "name", ["launch_bound", "dominating_kernel", "allocation_in_loop", "os_wait", "module_load_unrecorded"]
)
def test_host_time_with_a_rule_of_its_own_is_left_to_it(name: str):
    assert silent(RULE, simulated(name))


@pytest.mark.parametrize("name", ["sync_is_device_work", "pageable_copies", "nothing_wrong"])
def test_gaps_below_a_quarter_of_what_is_material_are_not_mentioned(name: str):
    assert silent(RULE, simulated(name))


@needs_shared
def test_the_worked_example_of_the_case_files():
    s = of_case(SHARED / "cases/01")
    f, _ = told(RULE, s)
    assert (f.count, f.of) == (32, 32)
    assert conclude(s, [f]).groups["top"] is f.group


@needs_shared
def test_start_up_before_a_long_loop_of_kernels_is_no_gap():
    assert silent(RULE, of_trace(SHARED / "data/nsys/gh200_jacobi_2023.4.sqlite"))


@needs_shared
def test_all_short_gaps_of_one_signature_are_one_group():
    s = of_trace(SHARED / "data/nsys/t4_nvtx_sparse_solve_2023.3.sqlite")
    names = s.account.labels.values
    pairs = [
        (names[g.before][:8], names[g.after][:8], len(g.ns)) for g in s.account.gap_groups if g.before >= 0 <= g.after
    ]
    assert sum(p[:2] == ("copy Hto", "dag_lts_") for p in pairs) == 1
    assert max(pairs, key=lambda p: p[2]) == ("copy Hto", "dag_lts_", 1221)
