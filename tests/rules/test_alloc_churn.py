"""Allocation in the loop, and allocation once."""

import pytest

from rules.made import found, of_trace, ran, silent, simulated, told, truth
from scopedown.decide.findings import conclude
from scopedown.decide.rules.alloc_churn import AllocChurn
from scopedown.simulate import Program
from scopedown.terms import Category, Scope
from shared_data import SHARED, needs_shared

RULE = AllocChurn()


def test_malloc_and_free_of_every_step():
    s = simulated("allocation_in_loop")
    findings = found(RULE, s)
    assert {(f.label, f.count, f.of) for f in findings} == {("cudaMalloc", 40, 40), ("cudaFree", 40, 40)}
    assert {(f.category, f.opens) for f in findings} == {(Category.HOST_ALLOC, Scope.TIMELINE)}
    assert sum(f.path_ns for f in findings) == pytest.approx(truth("allocation_in_loop").tags["workspace"], rel=0.01)
    _, t = told(RULE, s)
    assert "beside it cudaFree 40 times" in t.text


def test_a_free_costs_what_it_takes_after_the_device_is_done():
    s = simulated("allocation_in_loop")
    statements = conclude(s, found(RULE, s)).statements
    predicted = sum(p.amount_ns for t in statements for p in t.predicts) * s.parts
    assert predicted == pytest.approx(truth("allocation_in_loop").saving("workspace"), rel=0.02)


def start_up(loops: int) -> Program:
    p = Program(1)
    t = p.thread("worker")
    for _ in range(8):
        t.alloc(900_000)
    for _ in range(loops):
        t.kernel("gemm", 400_000)
        t.sync()
    return p


def test_the_same_calls_at_start_up():
    s = ran(start_up(40))
    assert s.path_ns(Category.HOST_ALLOC) > s.material_ns
    assert silent(RULE, s)


@pytest.mark.parametrize("name", ["worked_example", "os_wait", "sync_then_launch"])
def test_no_allocation(name: str):
    assert silent(RULE, simulated(name))


@needs_shared
def test_managed_memory_allocated_before_the_first_kernel():
    assert silent(RULE, of_trace(SHARED / "data/nsys/rtx2080ti_uvm_2024.4.sqlite"))
