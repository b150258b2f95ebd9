"""Which interval a question is about."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from account.small import Small, ns
from request_logs import MS, T0, log_of, row
from scopedown.account.choose import Interval, Where, choose
from scopedown.account.segments import check_partition
from scopedown.account.timeline import Timeline
from scopedown.errors import UsageError
from scopedown.symptom import Symptom, parse_symptom
from scopedown.terms import Category
from scopedown.trace.model import Meta

C = Category


def steps(meta: Meta | None = None) -> Timeline:
    """Four steps of 100, 140, 120 and 160 us; in each a launch, its kernel, and the wait for it."""
    s, at = Small(), 0
    for n, length in enumerate((100, 140, 120, 160)):
        s.range(f"step {n}", at, at + length).launch(at + 20, at + 25, n).op(at + 30, at + length - 20, n)
        s.call("cudaStreamSynchronize", at + 26, at + length - 15)
        at += length
    return Timeline(s.trace(meta))


def symptom(**keys: str) -> Symptom:
    found = parse_symptom(keys)
    assert found is not None
    return found


def spans(found: Interval) -> tuple[float, float]:
    a = found.account
    check_partition(a.path, a.lo, a.hi)
    return a.lo / 1000, a.hi / 1000


def test_no_complaint_is_answered_for_the_captured_window() -> None:
    assert spans(choose(None, None, steps(), None, Where())) == (0, 520)


def test_the_users_interval() -> None:
    assert spans(choose(None, None, steps(), None, Where(begin=ns(100), end=ns(240)))) == (100, 240)
    assert spans(choose(None, None, steps(), None, Where(begin=ns(100)))) == (100, 520)


def test_an_interval_beyond_the_last_row_is_outside_the_capture_there() -> None:
    found = choose(None, None, steps(), None, Where(begin=ns(400), end=ns(900)))
    assert spans(found) == (400, 900)
    assert found.account.ns_of(C.OUTSIDE_CAPTURE) == ns(380)


def test_after_the_last_op_of_a_window_the_thread_that_asked_for_it_goes_on() -> None:
    s = Small((0, 0)).launch(0, 5, 1).op(10, 50, 1).range("tidy up", 60, 400, 0).range("longer", 0, 500, 1)
    found = choose(None, None, s.timeline(), None, Where(begin=ns(20), end=ns(300)))
    assert spans(found) == (20, 300)
    assert found.account.ns_of(C.FRONTEND) == 0
    assert found.account.ns_of(C.HOST_ANNOTATION) == ns(240)


@pytest.mark.parametrize("where", [Where(begin=9, end=9), Where(begin=ns(600)), Where(end=-5), Where(range="nothing")])
def test_words_that_name_nothing_are_refused(where: Where) -> None:
    with pytest.raises(UsageError):
        choose(None, None, steps(), None, where)


@pytest.mark.parametrize(
    ("text", "interval"), [("step 2", (240, 360)), ("step", (0, 100)), ("step#3", (240, 360)), ("step 1#1", (100, 240))]
)
def test_a_range_by_name_and_number(text: str, interval: tuple[float, float]) -> None:
    assert spans(choose(None, None, steps(), None, Where(range=text))) == interval


def test_a_step_by_number_and_the_median_step() -> None:
    assert spans(choose(None, None, steps(), None, Where(step="3"))) == (360, 520)
    assert spans(choose(None, None, steps(), None, Where(step="median"))) == (240, 360)
    with pytest.raises(UsageError, match="4 steps"):
        choose(None, None, steps(), None, Where(step="4"))


@pytest.mark.parametrize(("statistic", "interval"), [("p50", (240, 360)), ("max", (360, 520)), ("mean", (100, 240))])
def test_step_time_is_that_of_the_step_at_the_nearest_rank(statistic: str, interval: tuple[float, float]) -> None:
    found = choose(symptom(metric="step_time", statistic=statistic, observed="1 ms"), None, steps(), None, Where())
    if statistic == "mean":
        # 130 us: the steps of 120 and 140 us are as near.
        assert spans(found) in (interval, (240, 360))
    else:
        assert spans(found) == interval


def test_step_time_without_steps_is_captured_again() -> None:
    t = Small().launch(0, 5, 1).op(10, 50, 1).timeline()
    assert choose(symptom(metric="step_time", statistic="p50", observed="1 ms"), None, t, None, Where()).recapture
    with pytest.raises(UsageError):
        choose(symptom(metric="step_time", statistic="p50", observed="1 ms"), None, None, None, Where())


def ttft(n: int) -> Symptom:
    return symptom(metric="ttft", statistic="request", request=f"r{n}", observed="1 ms")


def served(tmp_path: Path, **stamps: int) -> Interval:
    """A request of 1 ms whose service holds the four steps; the session starts with it."""
    rows = [row(0, 0, 1) | {"scheduled_ns": T0 + MS // 4, "queued_ns": T0 + MS // 10} | stamps, row(1, 50, 1)]
    t = steps(Meta("by hand", utc_start_ns=T0 + MS // 4))
    return choose(ttft(0), log_of(tmp_path, rows), t, None, Where())


def test_a_request_is_its_phases_and_the_path_inside_the_service(tmp_path: Path) -> None:
    found = served(tmp_path)
    assert found.account.total_ns == MS
    check_partition(found.account.path, found.account.lo, found.account.hi)
    assert found.account.ns_of(C.NETWORK) + found.account.ns_of(C.QUEUE) >= MS // 4
    assert found.account.ns_of(C.DEVICE_KERNEL) == ns(50 + 90 + 70 + 110)
    assert (found.row, found.traced_rows, found.trace_is_other) == (0, (0,), False)


def test_a_trace_of_another_request_stands_for_it_and_says_so(tmp_path: Path) -> None:
    rows = [row(0, 0, 1), row(1, 50, 1.1)]
    t = steps(Meta("by hand", utc_start_ns=T0))
    found = choose(ttft(1), log_of(tmp_path, rows), t, None, Where())
    assert (found.row, found.trace_is_other) == (0, True)


def test_a_trace_that_covers_no_request_is_outside_the_capture(tmp_path: Path) -> None:
    t = steps(Meta("by hand", utc_start_ns=T0 + 10**12))
    found = choose(ttft(0), log_of(tmp_path, [row(0, 0, 1)]), t, None, Where())
    assert found.account.ns_of(C.OUTSIDE_CAPTURE) == found.account.total_ns
    assert "does not cover" in found.recapture[0]


def test_a_request_that_the_log_does_not_hold_is_said(tmp_path: Path) -> None:
    found = choose(ttft(9), log_of(tmp_path, [row(0, 0, 1)]), None, None, Where())
    assert "no ttft for request 'r9'" in found.recapture[0]


@pytest.mark.parametrize("slack", [0.05, 0.2])
def test_a_stretch_beside_the_edges_is_uncertain_as_long_as_the_alignment(tmp_path: Path, slack: float) -> None:
    """Without a session start a range with the request's id aligns, give or take the room that it has."""
    s = Small().range("r0 whole", 1000 * slack, 1000 - 1000 * slack)
    s.launch(400, 405, 1).op(410, 500, 1).call("cudaStreamSynchronize", 406, 503)
    log = log_of(tmp_path, [row(0, 0, 1) | {"id": "r0-x", "end_ns": T0 + MS}])
    t = Timeline(dataclasses.replace(s.trace(), names=[n.replace("r0 ", "r0-x ") for n in s.names.values]))
    found = choose(dataclasses.replace(ttft(0), request="r0-x"), log, t, None, Where())
    check_partition(found.account.path, found.account.lo, found.account.hi)
    assert found.account.ns_of(C.ALIGNMENT_UNCERTAIN) == 2 * found.alignment.uncertainty_ns
    assert found.alignment.uncertainty_ns == ns(1000 * slack)


def test_uncertain_edges_never_meet(tmp_path: Path) -> None:
    """The work of a service phase may have been asked for before it, and the alignment leave more open than it is
    long."""
    s = Small().range("warm-up", 0, 1000).range("r0-x", 550, 650)
    s.launch(10, 15, 1).op(20, 290, 1).call("cudaStreamSynchronize", 16, 300)
    stamps = {"id": "r0-x", "end_ns": T0 + ns(1200), "queued_ns": T0 + ns(40), "scheduled_ns": T0 + ns(50)}
    found = choose(dataclasses.replace(ttft(0), request="r0-x"), log_of(tmp_path, [row(0, 0, 0.8) | stamps]),
                   s.timeline(), None, Where())  # fmt: skip
    assert found.alignment.uncertainty_ns > ns(375)
    check_partition(found.account.path, found.account.lo, found.account.hi)


def test_a_window_without_any_log_or_trace_is_refused() -> None:
    with pytest.raises(UsageError):
        choose(None, None, None, None, Where())
