"""What if, a sentence each."""

from __future__ import annotations

import re

import pytest

from account.simulated import Ran, accounted, random_run
from account.small import Small, ns
from scopedown.account.account import Account, account
from scopedown.account.phases import Phase
from scopedown.account.scenarios import Cut, category, host_named, host_time, kernels, predict, saved, select, waits
from scopedown.errors import UsageError
from scopedown.simulate import SITUATIONS, random_program, run
from scopedown.terms import Category
from scopedown.trace.model import CopyKind, OpKind

C = Category


def of(s: Small, lo: float, hi: float) -> Account:
    return account([Phase(ns(lo), ns(hi), C.UNACCOUNTED, "")], s.timeline(), thread=0)


def saves(found: Account, cut: Cut) -> float:
    return saved(found, [cut])[0] / 1000


def decode_loop() -> Small:
    """Two steps: decide 200 us, launch a kernel of 100 us, wait for it."""
    s = Small()
    for n in range(2):
        at = 320 * n
        s.range("decide", at, at + 200).launch(at + 200, at + 205, n).op(at + 210, at + 310, n)
        s.call("cudaStreamSynchronize", at + 206, at + 313)
    return s


def test_time_on_the_path_is_saved() -> None:
    found = of(decode_loop(), 0, 640)
    assert saves(found, category(found, C.HOST_ANNOTATION)) == pytest.approx(400, abs=1)
    assert saves(found, kernels(found)) == pytest.approx(200, abs=1)
    assert saves(found, kernels(found, keep=0.5)) == pytest.approx(100, abs=1)


def test_work_that_runs_beside_other_work_saves_less_than_its_duration() -> None:
    s = Small().launch(0, 5, 1).launch(6, 9, 2).op(10, 500, 1, stream=7)
    s.op(12, 400, 2, kind=OpKind.COPY, name="HtoD", copy=CopyKind.HTOD, stream=8)
    found = of(s.call("cudaDeviceSynchronize", 20, 503), 0, 503)
    assert saves(found, select(found, "copy:HtoD", 0.0, {}, {})) == 0
    # What ran beside the kernel holds it up once the kernel is gone.
    assert saves(found, kernels(found)) == pytest.approx(100, abs=4)


def test_a_wait_under_a_busy_device_saves_its_return_only() -> None:
    """And what the host does next then runs beside the device: the result is still needed at the end."""
    s = Small().launch(0, 5, 1).op(10, 1000, 1).call("cudaStreamSynchronize", 6, 1003).range("next", 1003, 1100)
    s.launch(1100, 1105, 2).op(1108, 1200, 2).call("cudaStreamSynchronize", 1106, 1203)
    found = of(s, 0, 1203)
    assert saves(found, category(found, C.HOST_SYNC)) == pytest.approx(3 + 97 + 8 + 3, abs=3)


def test_a_wait_that_is_not_made_lets_its_thread_run_on() -> None:
    s = decode_loop()
    found = of(s, 0, 640)
    calls = found.timeline.calls
    cut = waits(found, calls.blocking & (calls.start < ns(300)))
    # The second step is decided beside the first kernel.
    assert saves(found, cut) == pytest.approx(107, abs=8)
    assert cut.assumptions


def test_host_events_go_with_all_that_they_enclose_but_their_waits() -> None:
    s = Small().range("step", 0, 400).launch(200, 205, 1).op(210, 310, 1).call("cudaStreamSynchronize", 206, 313)
    found = of(s, 0, 400)
    assert saves(found, host_named(found, re.compile("^step$"))) == pytest.approx(290, abs=15)


def test_a_threads_own_time_in_an_interval() -> None:
    found = of(decode_loop(), 0, 640)
    cut = host_time(found, 0, *(found.path.start[:1] * 0 + ns(t) for t in (50, 150)))
    assert saves(found, cut) == pytest.approx(100, abs=1)


def test_a_phase_that_no_trace_opens_is_saved_whole() -> None:
    parts = [Phase(0, ns(500), C.QUEUE, "queue"), Phase(ns(500), ns(640), C.UNACCOUNTED, "service")]
    found = account(parts, decode_loop().timeline(), thread=0)
    assert saves(found, category(found, C.QUEUE)) == 500


@pytest.mark.parametrize(
    "selector", ["host", "host:", "category:host.nothing", "copy:HtoX", "kernel:(", "line:9", "x:y"]
)
def test_a_selector_that_selects_nothing_is_refused(selector: str) -> None:
    with pytest.raises(UsageError):
        select(of(decode_loop(), 0, 640), selector, 0.0, {}, {})


@pytest.mark.parametrize("seed", range(500, 505))
def test_a_part_saves_no_more_than_the_whole(seed: int) -> None:
    found = random_run(seed).account
    some = kernels(found, found.timeline.trace.ops.name == found.timeline.trace.ops.name[0])
    whole = kernels(found)
    half = kernels(found, keep=0.5)
    a, b, c = saved(found, [some, whole, half])
    assert a <= max(a, b)
    assert c <= b


@pytest.mark.parametrize("seed", range(500, 510))
def test_a_full_launch_queue_is_part_of_the_record(seed: int) -> None:
    """Launch calls that wait for room: the replay still gives the record, and the path goes through the device."""
    r = run(random_program(seed, 8, queue_depth=8))
    ran: Ran = accounted(r, r.mark("begin"), r.mark("end"))
    assert predict(ran.account, [kernels(ran.account, keep=1.0)]) == [ran.total]


@pytest.mark.parametrize("name", ["worked_example", "side_stream", "launch_bound"])
def test_situations_have_a_graph(name: str) -> None:
    s = SITUATIONS[name](1)
    ran = accounted(s.run, s.run.mark("scheduled"), s.run.mark(s.token_marks[-1]), s.thread)
    assert predict(ran.account, [kernels(ran.account, keep=1.0)]) == [ran.total]
