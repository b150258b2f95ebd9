"""Every simulated situation, written as a case and answered: decision, amounts and predictions against the truth."""

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from scopedown import InputError, Options, Report, UsageError, diagnose, load, whatif
from scopedown.simulate import SITUATIONS, NsysOptions, Situation, Truth, truth_of, write_case
from scopedown.simulate.server import ATTENTION
from scopedown.simulate.write_logs import write_case_file, write_requests
from scopedown.terms import Category, Kind, Metric, Scope, Statistic

SEEDS = (1, 2, 3)
LOGS_ONLY = ("near_saturation", "late_client", "slow_monitor")
TRACED = [n for n in SITUATIONS if n not in LOGS_ONLY]
NO_CACHE = Options(cache=False)


@cache
def situation(name: str, seed: int) -> Situation:
    return SITUATIONS[name](seed)


@cache
def truth(name: str, seed: int) -> Truth:
    return truth_of(situation(name, seed))


def answered(s: Situation, spoil: Callable[[Path], None] | None = None, options: NsysOptions | None = None) -> Report:
    """The report on a situation's case, after ``spoil`` changed its folder."""
    with TemporaryDirectory() as folder:
        case = Path(folder)
        write_case(s, s.seed, case, options)
        if spoil is not None:
            spoil(case)
        r = diagnose(load([case]), NO_CACHE)
    exact(r)
    return r


@cache
def plain(name: str, seed: int) -> Report:
    return answered(situation(name, seed))


def exact(r: Report) -> None:
    begin, end = r.ledger.interval_ns
    assert sum(x.ns for x in r.ledger.lines) == r.ledger.total_ns == end - begin
    assert all(x.ns > 0 for x in r.ledger.lines)
    for d in r.devices:
        assert sum(x.ns for x in d.lines) == d.total_ns


def sums(r: Report) -> Counter[Category]:
    found: Counter[Category] = Counter()
    for x in r.ledger.lines:
        found[x.category] += x.ns
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SITUATIONS)
def test_right_answer(name: str, seed: int):
    r, t = plain(name, seed), truth(name, seed)
    d, expect = r.decision, t.expect
    assert r.ledger.total_ns == pytest.approx(t.total_ns, rel=1e-6)
    assert d.kind in expect.kinds
    assert d.kind is Kind.ENOUGH or d.scope in expect.scopes
    assert d.scope not in expect.not_scopes
    if expect.categories:
        assert sum(sums(r)[c] for c in expect.categories) == pytest.approx(t.answer_ns, rel=0.03)
    for k in r.kernels:
        assert not k.selected or d.scope is Scope.KERNEL
    narrower = {b.scope for b in d.rejected}
    assert narrower == {s for s in Scope if s.width > d.scope.width} or d.kind in (Kind.ENOUGH, Kind.RECAPTURE)
    assert all(0 <= b.bound_ns <= r.ledger.total_ns for b in d.rejected)


def in_attention(tag: str) -> bool:
    return tag in ("attention", ATTENTION)


#: Situation -> the cause of the truth that the largest pattern's statement is about.
CAUSES = {
    "worked_example": "shape logic",
    "sync_then_launch": "prepare step",
    "long_copy_then_idle": "adapter upload",
    "side_stream": "shape logic",
    "os_wait": "lock",
    "two_processes": "shape logic",
    # A family is what launches one kernel, whatever the program's tag for it.
    "dominating_kernel": in_attention,
    "two_devices": in_attention,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CAUSES)
def test_prediction_is_what_a_run_without_the_cause_shows(name: str, seed: int):
    """The statement with the largest predicted gain, against the program run again without its cause."""
    r, t = plain(name, seed), truth(name, seed)
    best = max((p for s in r.statements for p in s.predicts if p.direction == "falls"), key=lambda p: p.amount_ns)
    parts = {Metric.TPOT: len(t.situation.subject.tokens) - 1, Metric.ITL: len(t.situation.subject.tokens) - 1}
    saved = best.amount_ns * parts.get(t.situation.symptom.metric, 1)
    assert best.metric == t.situation.symptom.metric
    assert saved == pytest.approx(t.saving(CAUSES[name]), rel=0.03)


@pytest.mark.parametrize("name", ["worked_example", "sync_then_launch", "side_stream", "rare_pauses"])
def test_what_if_agrees_with_the_program(name: str):
    s = situation(name, 2)
    with TemporaryDirectory() as folder:
        write_case(s, s.seed, Path(folder))
        found = whatif(load([folder]), NO_CACHE, remove=["pattern:top"])
    assert found.predicted_ns == found.baseline_ns - found.saved_ns
    assert found.saved_ns <= found.matched.time_ns
    assert found.saved_ns > 0.3 * found.baseline_ns


def rows_of(case: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (case / "evidence/requests.jsonl").read_text().splitlines()]


def put_rows(case: Path, rows: list[dict[str, object]]) -> None:
    (case / "evidence/requests.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def shifted(ns: int) -> Callable[[Path], None]:
    """The log's clock is ahead by ``ns``."""

    def spoil(case: Path) -> None:
        rows = rows_of(case)
        for row in rows:
            for key, value in row.items():
                if key.endswith("_ns"):
                    row[key] = [v + ns for v in value] if isinstance(value, list) else value + ns
        put_rows(case, rows)

    return spoil


@pytest.mark.parametrize("minutes", [3, 60, -330], ids=["three minutes", "an hour", "a time zone"])
def test_a_clock_that_is_off_is_set_by_marks(minutes: int):
    """The range with the request's id says where the request lies; the answer is the same, with a warning."""
    r = answered(situation("worked_example", 1), shifted(minutes * 60 * 10**9))
    right = plain("worked_example", 1)
    assert (r.decision.kind, r.decision.scope) == (right.decision.kind, right.decision.scope)
    assert r.ledger.total_ns == right.ledger.total_ns
    assert sum(sums(r)[c] for c in truth("worked_example", 1).expect.categories) == pytest.approx(
        truth("worked_example", 1).answer_ns, rel=0.03
    )
    warning = next(w for w in r.warnings if "disagree by" in w)
    assert "corrected by marks" in warning
    assert ("time zone" in warning) == (minutes % 15 == 0)


def without(*keys: str) -> Callable[[Path], None]:
    def spoil(case: Path) -> None:
        put_rows(case, [{k: v for k, v in row.items() if k not in keys} for row in rows_of(case)])

    return spoil


@pytest.mark.parametrize("name", ["worked_example", "dominating_kernel", "pageable_copies"])
def test_without_server_stamps(name: str):
    """The phases are one: the trace still accounts for its part, and nothing is called queue."""
    r = answered(situation(name, 1), without("queued_ns", "scheduled_ns"))
    assert sums(r)[Category.QUEUE] == 0
    t = truth(name, 1)
    assert r.decision.kind in (*t.expect.kinds, Kind.MEASURE)
    assert r.decision.scope in (*t.expect.scopes, Scope.APPLICATION)
    assert r.decision.scope not in t.expect.not_scopes
    assert sum(sums(r)[c] for c in t.expect.categories) == pytest.approx(t.answer_ns, rel=0.05)


def test_queue_without_stamps_is_estimated_first():
    r = answered(situation("near_saturation", 1), without("queued_ns", "scheduled_ns"))
    assert (r.decision.kind, r.decision.scope) == (Kind.MEASURE, Scope.APPLICATION)


def another(name: str, factor: float, seed: int = 1) -> Report:
    """The complaint is about an untraced request; the traced one takes ``factor`` of what it took."""
    s = situation(name, seed)

    def spoil(case: Path) -> None:
        rows = rows_of(case)
        own = next(row for row in rows if row["id"] == s.subject.id)
        others = []
        for i in range(24):
            copy = dict(own)
            shift = (i + 2) * 10**9
            length = own["first_token_ns"] - own["arrival_ns"]
            slower = int(length * (factor + 0.0005 * (i - 12)) - length)
            for key in ("arrival_ns", "sent_ns", "queued_ns", "scheduled_ns"):
                copy[key] = own[key] + shift
            copy["first_token_ns"] = own["first_token_ns"] + shift + slower
            copy["token_ns"] = [copy["first_token_ns"]]
            copy["end_ns"] = own["end_ns"] + shift + slower
            copy["id"] = f"untraced-{i}"
            others.append(copy)
        put_rows(case, [own, *others])
        complaint = s.symptom
        value = others[12]["first_token_ns"] - others[12]["arrival_ns"]
        lines = (case / "case.toml").read_text().splitlines()
        keep = [x for x in lines if not x.startswith(("request ", "observed", "statistic"))]
        keep.insert(1, f'statistic = "request"\nrequest = "untraced-12"\nobserved = "{value / 1e6:.3f} ms"')
        (case / "case.toml").write_text("\n".join(keep))
        assert complaint.metric is Metric.TTFT

    return answered(s, spoil)


def test_a_trace_of_another_ordinary_request_stands_for_it():
    r = another("worked_example", 1.0)
    assert (r.decision.kind, r.decision.scope) == (Kind.MEASURE, Scope.FRAMEWORK)
    assert r.symptom.request == situation("worked_example", 1).subject.id
    assert r.symptom.percentile is not None


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_trace_of_an_odd_request_does_not(factor: float):
    r = another("worked_example", factor)
    assert r.decision.kind is Kind.RECAPTURE
    assert "p5 to p95" in r.decision.why


def test_a_capture_that_covers_a_part():
    """The capture ends after two fifths of the request: what lies outside is outside, not idle."""
    s = situation("worked_example", 1)
    begin, end = (t - s.nsys.session_utc_ns for t in s.interval)
    cut = dataclasses.replace(s.nsys, window=(0, begin + (end - begin) * 2 // 5))
    r = answered(s, options=cut)
    assert r.decision.kind is Kind.RECAPTURE
    assert sums(r)[Category.OUTSIDE_CAPTURE] > 0.5 * r.ledger.total_ns
    assert r.decision.scope is Scope.TIMELINE


def test_a_capture_of_something_else():
    s = situation("worked_example", 1)
    late = dataclasses.replace(s.nsys, session_utc_ns=s.nsys.session_utc_ns + 3600 * 10**9)
    without_marks = dataclasses.replace(late, leave_out=frozenset({"NVTX_EVENTS"}))
    r = answered(s, options=without_marks)
    assert r.decision.kind is Kind.RECAPTURE


def test_a_monitor_that_is_longer_than_the_request_says_nothing():
    r = plain("slow_monitor", 1)
    assert any("longer than the interval" in w for w in r.warnings)
    assert not sums(r)[Category.DEVICE_ACTIVE]
    assert not sums(r)[Category.DEVICE_INACTIVE]


def test_warm_up_in_the_sample_is_said():
    """The first wave paid 1.5 s, and nobody marked it: the statistic is said with and without it."""
    s = situation("near_saturation", 2)

    def spoil(case: Path) -> None:
        rows = rows_of(case)[:120]
        for row in rows[:8]:
            for key in ("first_token_ns", "end_ns"):
                row[key] += 9_000_000_000
            row["token_ns"] = [row["first_token_ns"]]
        put_rows(case, rows)

    assert any("warm" in w or "first wave" in w or "opening" in w for w in answered(s, spoil).warnings)


def case_lines(case: Path, drop: tuple[str, ...], *add: str) -> None:
    lines = [x for x in (case / "case.toml").read_text().splitlines() if not x.startswith(drop)]
    lines[1:1] = add
    (case / "case.toml").write_text("\n".join(lines))


def test_without_a_target():
    r = answered(situation("nothing_wrong", 1), lambda case: case_lines(case, ("target",)))
    assert r.decision.kind is not Kind.ENOUGH
    assert r.symptom.target_ns is None
    assert all(b.bound_of_distance is None for b in r.decision.rejected)


@pytest.mark.parametrize(("observed", "words"), [("slow", "no amount"), ("121", "no unit"), ("very high", "no amount")])
def test_a_vague_complaint_is_refused(observed: str, words: str):
    with pytest.raises(InputError, match=words):
        answered(
            situation("nothing_wrong", 1),
            lambda case: case_lines(case, ("observed",), f'observed = "{observed}"'),
        )


@pytest.mark.parametrize("name", ["worked_example", "dominating_kernel", "sync_then_launch", "nothing_wrong"])
def test_a_question_without_a_complaint(name: str):
    """The captured window is the interval, and nothing can be enough."""

    def spoil(case: Path) -> None:
        (case / "case.toml").write_text("")
        (case / "evidence/requests.jsonl").unlink()

    r = answered(situation(name, 1), spoil)
    assert r.symptom is None
    assert r.decision.kind in (Kind.MEASURE, Kind.CHANGE)
    if name != "nothing_wrong":
        assert r.decision.scope in truth(name, 1).expect.scopes


#: Other metrics of the same runs: they get an answer that sums.
OTHER = [
    (Metric.TPOT, Statistic.MEAN, "40 ms"),
    (Metric.ITL, Statistic.P95, "40 ms"),
    (Metric.E2E, Statistic.P50, "900 ms"),
    (Metric.QUEUE_TIME, Statistic.P90, "1 ms"),
    (Metric.STEP_TIME, Statistic.P50, "5 ms"),
    (Metric.REQUEST_THROUGHPUT, None, "1.2 req/s"),
    (Metric.TOKEN_THROUGHPUT, None, "90 tok/s"),
]


@pytest.mark.parametrize(("metric", "statistic", "observed"), OTHER, ids=[str(o[0]) for o in OTHER])
@pytest.mark.parametrize("name", ["sync_then_launch", "rare_pauses", "near_saturation", "worked_example"])
def test_any_metric_gets_an_answer(name: str, metric: Metric, statistic: Statistic | None, observed: str):
    def spoil(case: Path) -> None:
        add = [f'metric = "{metric}"', f'observed = "{observed}"']
        add += [f'statistic = "{statistic}"'] if statistic else []
        case_lines(case, ("metric", "statistic", "request", "observed", "target", "objective"), *add)

    if metric is Metric.STEP_TIME and name == "near_saturation":
        with pytest.raises(UsageError, match="steps"):
            answered(situation(name, 1), spoil)
        return
    r = answered(situation(name, 1), spoil)
    assert r.symptom.metric is metric
    assert r.decision.question
    assert r.decision.why


def test_numbers_do_not_depend_on_the_cache():
    s = situation("os_wait", 1)
    with TemporaryDirectory() as folder:
        write_case(s, s.seed, Path(folder))
        first, second = (diagnose(load([folder]), Options(cache=c)) for c in (False, True))
    assert first.ledger == second.ledger
    assert first.decision == second.decision


def test_the_writers_stand_for_the_run():
    """What the case's files hold is what the truth is about (a check of this module's own spoiling)."""
    s = situation("worked_example", 1)
    with TemporaryDirectory() as folder:
        assert write_requests(s, Path(folder) / "requests.jsonl") == len(s.requests)
        write_case_file(truth("worked_example", 1), Path(folder) / "case.toml")
        assert s.subject.id in (Path(folder) / "case.toml").read_text()
    assert np.diff(s.subject.tokens).min(initial=1) > 0
