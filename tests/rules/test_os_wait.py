"""The launching thread waits for something that is not the device, and threads that may wait."""

import pytest

from rules.made import ran, silent, simulated, told, truth
from scopedown.decide.rules.os_wait import OsWait
from scopedown.simulate import Program
from scopedown.terms import Category, Scope

RULE = OsWait()


def test_a_lock_before_every_step():
    s = simulated("os_wait")
    f, t = told(RULE, s)
    assert (f.label, f.count, f.of, f.category) == ("pthread_mutex_lock", 40, 40, Category.HOST_OS_WAIT)
    assert f.opens is Scope.TIMELINE
    assert t.predicts[0].amount_ns * s.parts == pytest.approx(truth("os_wait").saving("lock"), rel=0.02)


def test_the_thread_that_works_meanwhile_is_named():
    p = Program(1)
    engine, helper = p.thread("engine"), p.thread("helper")
    for _ in range(20):
        engine.signal("work")
        helper.wait_for("work")
        with helper.range("tokenise"):
            helper.host(1_500_000)
        engine.os_wait(1_600_000, call="pthread_mutex_lock")
        engine.kernel("gemm", 400_000)
        engine.sync()
    f, t = told(RULE, ran(p))
    assert f.label == "pthread_mutex_lock"
    assert "'tokenise' on thread helper runs" in t.text
    assert f.opens is Scope.FRAMEWORK


def test_a_thread_that_sleeps_beside_the_path():
    p = Program(1)
    engine, idle = p.thread("engine"), p.thread("idle")
    for _ in range(20):
        engine.host(1_600_000)
        engine.kernel("gemm", 400_000)
        engine.sync()
        idle.os_wait(1_900_000, call="poll")
    assert silent(RULE, ran(p))


@pytest.mark.parametrize("name", ["worked_example", "sync_then_launch", "launch_bound", "dominating_kernel"])
def test_waiting_inside_a_synchronising_call_is_the_call(name: str):
    assert silent(RULE, simulated(name))
