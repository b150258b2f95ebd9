"""Rare long pauses beside many regular gaps, and gaps that are always long."""

import pytest

from rules.made import ran, silent, simulated, told, truth
from scopedown.account.account import window
from scopedown.decide.rules.rare_pause import RarePause
from scopedown.decide.situation import Situation
from scopedown.simulate import Program
from scopedown.terms import Category, Scope

RULE = RarePause()


@pytest.mark.parametrize("seed", [1, 2])
def test_three_pauses_in_sixty_steps(seed: int):
    s = simulated("rare_pauses", seed)
    f, t = told(RULE, s)
    assert (f.count, f.of, f.category, f.opens) == (3, 60, Category.HOST_UNTRACED, Scope.FRAMEWORK)
    assert f.total_ns == pytest.approx(truth("rare_pauses", seed).tags["pause"], rel=0.01)
    assert "3 of 60 gaps" in t.text
    assert "% of the capture" in t.text
    assert "one candidate among others" in t.text
    assert f.group is not None
    assert f.group.count == 3


def loop(pauses: tuple[int, ...], usual: int = 60_000, pause: int = 20_000_000) -> Program:
    p = Program(1)
    t = p.thread("engine")
    for n in range(40):
        t.host(pause if n in pauses else usual)
        t.kernel("gemm", 400_000)
        t.sync()
    return p


def test_said_although_the_interval_holds_none():
    whole = ran(loop((7, 22)))
    t = whole.account.timeline
    assert t is not None
    end = t.rows_span[1] if t.rows_span else 0
    s = Situation(window(t, end - 3_000_000, end))
    f, told_ = told(RULE, s)
    assert (f.count, f.path_ns) == (2, 0)
    assert "the accounted interval holds none" in told_.text
    assert told_.predicts[0].direction == "unchanged"


def test_the_first_one_is_a_first_call():
    assert silent(RULE, ran(loop((1,))))


def test_gaps_that_are_always_long():
    assert silent(RULE, ran(loop((), usual=3_000_000)))


@pytest.mark.parametrize("name", ["sync_then_launch", "worked_example", "allocation_in_loop"])
def test_regular_gaps(name: str):
    assert silent(RULE, simulated(name))
