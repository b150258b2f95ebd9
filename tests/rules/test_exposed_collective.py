"""Collectives on the path, with one rank and with two; and collectives under compute."""

import pytest

from rules.made import ran, silent, simulated, told
from scopedown.decide.rules.exposed_collective import ExposedCollective
from scopedown.simulate import Program
from scopedown.terms import Category, Scope

RULE = ExposedCollective()


def test_every_layer_ends_in_one():
    f, t = told(RULE, simulated("exposed_collective"))
    assert (f.count, f.of, f.category, f.opens) == (32, 32, Category.DEVICE_COLLECTIVE, Scope.TIMELINE)
    assert "2 ranks are in the capture" in t.text


def one_rank(beside: bool) -> Program:
    p = Program(1)
    t = p.thread("rank")
    for n in range(16):
        t.kernel("gemm", 300_000)
        if beside:
            t.collective(f"layer {n}", 250_000, stream=9)
        else:
            t.collective(f"layer {n}", 900_000)
    t.sync(stream=7)
    return p


def test_one_rank_cannot_tell_a_slow_peer_from_a_slow_link():
    _, t = told(RULE, ran(one_rank(beside=False)))
    assert "a slow peer and a slow link look the same" in t.text


def test_a_collective_under_compute_costs_nothing():
    s = ran(one_rank(beside=True))
    assert silent(RULE, s)


@pytest.mark.parametrize("name", ["dominating_kernel", "two_devices"])
def test_no_collective(name: str):
    assert silent(RULE, simulated(name))
