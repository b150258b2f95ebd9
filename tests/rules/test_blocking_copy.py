"""Copies that hold the host, and blocking copies that wait for other work."""

import pytest

from rules.made import of_case, of_trace, silent, simulated, told, truth
from scopedown.decide.rules.blocking_copy import BlockingCopy
from scopedown.terms import Category, Scope
from shared_data import SHARED, needs_shared

RULE = BlockingCopy()


@pytest.mark.parametrize("seed", [1, 2])
def test_pageable_uploads(seed: int):
    s = simulated("pageable_copies", seed)
    f, t = told(RULE, s)
    assert (f.count, f.category, f.opens) == (9, Category.DEVICE_COPY, Scope.TIMELINE)
    assert "pageable" in t.text
    assert "at 10.0 GB/s" in t.text
    assert f.path_ns == pytest.approx(truth("pageable_copies", seed).tags["upload"], rel=0.01)
    assert f.path_ns > s.path_ns(Category.DEVICE_COPY)


@pytest.mark.parametrize("name", ["long_copy_then_idle", "side_stream", "sync_then_launch", "dominating_kernel"])
def test_pinned_and_tiny_copies(name: str):
    assert silent(RULE, simulated(name))


@needs_shared
def test_a_synchronous_copy_behind_a_kernel_is_that_kernel():
    assert silent(RULE, of_trace(SHARED / "data/nsys/gh200_jacobi_2023.4.sqlite"))


@needs_shared
def test_the_case_with_uploads_before_the_first_kernel():
    f, t = told(RULE, of_case(SHARED / "cases/08"))
    assert f.count == 9
    assert "502 MB at 10.0 GB/s" in t.text
