"""Each warning, unknown and reason on evidence that earns it, and on evidence that does not."""

from dataclasses import replace
from pathlib import Path

import pytest

from request_logs import MS, T0, log_of, row, write
from rules.logs import of_case, report, served
from scopedown.account.account import account
from scopedown.account.phases import Phase
from scopedown.account.population import Place, statistic
from scopedown.answer import diagnose
from scopedown.case import case_from_files
from scopedown.decide.recapture import recapture_reasons
from scopedown.decide.situation import Situation
from scopedown.decide.warnings import warnings
from scopedown.read.base import RequestLog
from scopedown.simulate import NsysOptions, Program, run, write_case, write_nsys
from scopedown.symptom import Symptom, parse_symptom
from scopedown.terms import Category, Kind
from shared_data import SHARED, needs_shared

P95 = {"metric": "ttft", "statistic": "p95", "observed": "50 ms"}


def said(texts: list[str], *parts: str) -> bool:
    return any(all(p in t for p in parts) for t in texts)


def situation(log: RequestLog, symptom: Symptom, total: int = 50 * MS, **more: object) -> Situation:
    s = Situation(
        account([Phase(0, total, Category.UNACCOUNTED, "service")], None),
        symptom=symptom,
        log=log,
        chosen=statistic(log, symptom),
    )
    return replace(s, **more)  # type: ignore[arg-type]


def asked(**keys: str) -> Symptom:
    found = parse_symptom({**P95, **keys})
    assert found is not None
    return found


def test_a_sound_log_has_no_warning(tmp_path: Path):
    rows = served(200, 100)
    for r in rows:
        r["output_tokens"] = 1
    assert report(tmp_path, rows, observed="50.6 ms", target="40 ms").warnings == []


def test_a_request_that_is_not_in_the_log(tmp_path: Path):
    log = log_of(tmp_path, served(20, 100))
    y = parse_symptom({"metric": "ttft", "request": "nobody", "observed": "50 ms"})
    assert y is not None
    assert said(warnings(situation(log, y)), "'nobody' of the symptom is not in the log (20 requests)")


def test_observed_and_recorded_disagree(tmp_path: Path):
    rows = served(200, 100)
    assert said(report(tmp_path, rows, observed="80 ms").warnings, "80.00 ms observed", "50.64 ms recorded", "-37 %")
    assert not said(report(tmp_path, rows, observed="51 ms").warnings, "recorded")


def test_a_percentile_of_few_values(tmp_path: Path):
    assert said(report(tmp_path, served(40, 100), statistic="p99").warnings, "p99 of 40 values", "takes 368 of them")
    assert not said(report(tmp_path, served(400, 100), statistic="p99").warnings, "95 % interval")


def test_time_outs_and_errors_are_counted(tmp_path: Path):
    rows = [row(n, 100 * n, 50) for n in range(100)]
    for r in rows[:8]:
        del r["first_token_ns"]
        r |= {"status": "timeout", "end_ns": r["arrival_ns"] + 2000 * MS}
    for r in rows[90:]:
        r |= {"status": "error"}
    found = report(tmp_path, rows, observed="2 s").warnings
    assert said(found, "8 time-outs of 100 requests", "is at least 2.000 s")
    assert said(found, "10 of 100 requests failed")
    found = report(tmp_path, rows, statistic="p50", observed="50 ms").warnings
    assert said(found, "8 time-outs", "none reaches it")


def test_requests_without_the_metric_are_counted(tmp_path: Path):
    rows = [row(n, 100 * n, 50) for n in range(100)]
    for r in rows[:5]:
        del r["first_token_ns"]
    assert said(report(tmp_path, rows).warnings, "5 requests have no ttft")


@needs_shared
def test_a_monitor_window_longer_than_the_request():
    r = of_case(SHARED / "cases" / "02")
    assert said(r.warnings, "the monitor's window is 1.000 s, longer than the interval of 124.2 ms", "says nothing of")
    assert not said(of_case(SHARED / "cases" / "01").warnings, "monitor's window")
    assert said(r.unknown, "there is no trace of it")


@needs_shared
@pytest.mark.parametrize("case", ["01", "03", "05", "08", "09"])
def test_sound_cases_have_no_reason_to_record_again(case: str):
    assert of_case(SHARED / "cases" / case).decision.kind is not Kind.RECAPTURE


def test_replies_that_were_not_streamed(tmp_path: Path):
    rows = [row(n, 100 * n, 50, output_tokens=30) for n in range(30)]
    for r in rows:
        r["end_ns"] = r["first_token_ns"]
    r = report(tmp_path, rows, target="20 ms")
    assert r.decision.kind is Kind.RECAPTURE
    assert "TTFT equals E2E on all 30 requests" in r.decision.why
    # One token a reply: there the first token is the end.
    for x in rows:
        x["output_tokens"] = 1
    assert report(tmp_path, rows, target="20 ms").decision.kind is not Kind.RECAPTURE
    e2e = {"metric": "e2e", "observed": "50 ms", "target": "20 ms"}
    assert report(tmp_path, [{**x, "output_tokens": 30} for x in rows], **e2e).decision.kind is not Kind.RECAPTURE


def test_a_first_token_before_the_send(tmp_path: Path):
    log = log_of(tmp_path, [row(n, 100 * n, 50, sent_ns=T0 + (100 * n + 70) * MS) for n in range(30)])
    s = situation(log, asked())
    assert recapture_reasons(replace(s, row=s.chosen.row if s.chosen else 0))[0].startswith(
        "request 'r0' has its first"
    )


def test_another_requests_trace_stands_for_an_ordinary_one_only(tmp_path: Path):
    log = log_of(tmp_path, [row(n, 100 * n, 50 + n, input_tokens=100 if n else 9000) for n in range(30)])
    inside = Place(0.5, 40 * MS, 60 * MS, 50 * MS, 30, True)
    s = situation(log, asked(statistic="p50"), row=3, trace_is_other=True, place=inside)
    assert recapture_reasons(s) == ()
    outside = Place(1.0, 10 * MS, 20 * MS, 15 * MS, 30, True)
    assert "lie outside p5 to p95" in recapture_reasons(replace(s, place=outside))[0]
    assert recapture_reasons(replace(s, place=outside, trace_is_other=False)) == ()
    assert "it has 9000 input tokens, the symptom's 100" in recapture_reasons(replace(s, row=0))[0]


def test_a_window_with_start_up_and_no_repetition(tmp_path: Path):
    p = Program(1)
    engine = p.thread("main")
    with engine.range("load"):
        engine.host(400_000_000, tag="load")
    engine.kernel("gemm", 30_000_000)
    engine.kernel("softmax", 3_000_000)
    engine.sync()
    write_nsys(run(p), tmp_path / "t.sqlite")
    r = diagnose(case_from_files([tmp_path / "t.sqlite"]))
    assert said(r.warnings, "the window contains start-up: 400", "before the first device op")
    assert said(r.warnings, "nothing repeats in this capture")
    assert said(r.unknown, "how much the profiler slows")


def test_a_window_of_steps_has_neither(tmp_path: Path):
    p = Program(1)
    engine = p.thread("main")
    for n in range(20):
        with engine.range(f"step {n}"):
            engine.host(1_000_000, tag="prepare")
            engine.kernel("gemm", 3_000_000)
            engine.sync()
    write_nsys(run(p), tmp_path / "t.sqlite")
    r = diagnose(case_from_files([tmp_path / "t.sqlite"]))
    assert not said(r.warnings, "start-up")
    assert not said(r.warnings, "nothing repeats")


def test_what_a_trace_does_not_say(tmp_path: Path):
    write_case("opaque_graph", 1, tmp_path / "a")
    assert said(of_case(tmp_path / "a").unknown, "what runs inside the graphs")
    without = NsysOptions(leave_out=frozenset({"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"}))
    write_case("worked_example", 1, tmp_path / "b", without)
    found = of_case(tmp_path / "b").unknown
    assert said(found, "no synchronisation records")
    assert said(found, "no thread scheduling")
    write_case("worked_example", 1, tmp_path / "c", NsysOptions(sched=True))
    found = of_case(tmp_path / "c").unknown
    assert not said(found, "synchronisation records")
    assert not said(found, "no thread scheduling")
    # Seven requests of the same kind were measured without the profiler.
    assert not said(found, "how much the profiler slows")
    assert not said(found, "clocks")


def test_lost_events_are_said(tmp_path: Path):
    lost = ((2, "Not all CUDA events might have been collected."),)
    write_case("launch_bound", 1, tmp_path, NsysOptions(diagnostics=lost))
    assert said(of_case(tmp_path).warnings, "reports lost events 1 times")


def test_no_reason_from_a_file_that_only_has_a_log(tmp_path: Path):
    r = diagnose(case_from_files([write(tmp_path, served(60, 100))], {**P95, "target": "20 ms"}))
    assert r.decision.kind is Kind.MEASURE
