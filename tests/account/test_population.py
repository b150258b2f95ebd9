from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from request_logs import MS, log_of, row
from scopedown.account.laws import estimate_queue, laws, load_of, spearman
from scopedown.account.population import (
    count,
    nearest_rank,
    place,
    place_value,
    quantile_interval,
    statistic,
    values,
)
from scopedown.account.repeats import Repeats, confirm, first_wave
from scopedown.read import load
from scopedown.read.base import RequestLog
from scopedown.symptom import Symptom, parse_symptom
from scopedown.terms import Metric
from shared_data import SHARED, needs_shared


def symptom(**given: Any) -> Symptom:
    found = parse_symptom({"metric": "ttft", "observed": "10 ms", **given})
    assert found is not None
    return found


def case_log(number: str) -> RequestLog:
    content = load(SHARED / "cases" / number / "evidence" / "requests.jsonl").content
    assert isinstance(content, RequestLog)
    return content


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200), st.sampled_from([0.05, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_nearest_rank_is_the_definition(sample: list[int], p: float) -> None:
    at = max(1, math.ceil(round(p * len(sample), 9)))
    assert nearest_rank(np.array(sample), p) == sorted(sample)[at - 1]


def test_definitions(tmp_path: Path) -> None:
    a = row(0, 0, 10, output_tokens=4)
    first = a["first_token_ns"]
    a |= {"token_ns": [first, first + 2 * MS, first + 6 * MS], "end_ns": first + 7 * MS}
    a |= {"queued_ns": first - 9 * MS, "scheduled_ns": first - 4 * MS}
    log = log_of(tmp_path, [a, row(1, 5, 8, end_ns=None)])
    found = {m: values(log, m) for m in Metric}
    assert found[Metric.TTFT][0].tolist() == [10 * MS, 8 * MS]
    assert found[Metric.TPOT][0][0] == 2 * MS
    assert found[Metric.ITL][0][0] == 3 * MS
    assert found[Metric.E2E][0][0] == 17 * MS
    assert found[Metric.QUEUE_TIME][0][0] == 6 * MS
    assert found[Metric.E2E][1].tolist() == [True, False]
    assert not found[Metric.TPOT][1][1]
    for metric in (Metric.STEP_TIME, Metric.COST, Metric.TOKEN_THROUGHPUT):
        assert not found[metric][1].any()
    chosen = statistic(log, symptom(metric="itl", statistic="max"))
    assert chosen is not None
    assert (chosen.row, chosen.value_ns) == (0, 4 * MS)


def test_who_counts(tmp_path: Path) -> None:
    rows = [row(n, n, n + 1) for n in range(10)]
    rows += [row(10, 0, 500, warmup=True), row(11, 0, 500, status="error"), row(12, 0, 500, status="cancelled")]
    rows += [{"id": "none", "status": "ok"}]
    log = log_of(tmp_path, rows)
    chosen = statistic(log, symptom(statistic="max"))
    assert chosen is not None
    assert chosen.value_ns == 10 * MS
    assert chosen.population == {
        "requests": 14,
        "ok": 11,
        "errors": 1,
        "timeouts": 0,
        "cancelled": 1,
        "warmup": 1,
        "excluded": 1,
        "values": 10,
    }
    assert count(log, Metric.TTFT) == chosen.population
    mean = statistic(log, symptom(statistic="mean"))
    assert mean is not None
    assert (mean.value_ns, mean.row_value_ns) == (5_500_000, 5 * MS)
    assert mean.interval95_ns is not None
    assert statistic(log, symptom(request="nobody")) is None


def test_time_outs_count_as_at_least_their_time(tmp_path: Path) -> None:
    late = {**row(19, 19, 1), "status": "timeout", "first_token_ns": None}
    late["end_ns"] = late["arrival_ns"] + 1000 * MS
    log = log_of(tmp_path, [*(row(n, n, n + 1) for n in range(19)), late])
    top, p95 = statistic(log, symptom(statistic="max")), statistic(log, symptom(statistic="p95"))
    assert top is not None
    assert p95 is not None
    assert (top.value_ns, top.at_least, top.population["timeouts"]) == (1000 * MS, True, 1)
    assert (p95.value_ns, p95.at_least) == (19 * MS, False)
    short = {**late, "end_ns": late["arrival_ns"] + 5 * MS}
    cut = statistic(log_of(tmp_path, [*(row(n, n, n + 1) for n in range(19)), short]), symptom(statistic="p95"))
    assert cut is not None
    assert cut.at_least


@pytest.mark.parametrize(("n", "p"), [(20, 0.5), (100, 0.9), (240, 0.95), (1000, 0.99)])
def test_interval_covers_as_often_as_it_says(n: int, p: float) -> None:
    rng = np.random.default_rng(3)
    truth = -math.log(1 - p) * 1e6
    hits = 0
    for _ in range(400):
        bounds = quantile_interval((rng.exponential(1e6, n)).astype(np.int64), p)
        assert bounds is not None
        hits += bounds[0] <= truth <= bounds[1]
    assert hits / 400 > 0.93


def test_interval_needs_enough_requests() -> None:
    assert quantile_interval(np.arange(20), 0.95) is None
    assert quantile_interval(np.arange(5), 0.5) is None
    assert quantile_interval(np.arange(100_000), 0.999) is not None


def test_place_among_its_class(tmp_path: Path) -> None:
    rows = [row(n, n, n + 1) for n in range(20)] + [row(20 + n, n, 900, input_tokens=2000) for n in range(20)]
    log = log_of(tmp_path, rows)
    found = place(log, Metric.TTFT, 9, (9,))
    assert found is not None
    assert (found.count, found.percentile, found.by_shape) == (19, 9 / 19, True)
    assert (found.p5_ns, found.p95_ns) == (1 * MS, 20 * MS)
    elsewhere = place_value(log, Metric.TTFT, 50 * MS, 105)
    assert elsewhere is not None
    assert (elsewhere.percentile, elsewhere.inside(50 * MS)) == (1.0, False)
    assert place_value(log, Metric.TTFT, 50 * MS, 500) is None
    anything = place_value(log, Metric.TTFT, 50 * MS, None)
    assert anything is not None
    assert (anything.count, anything.by_shape) == (40, False)


def test_does_it_repeat(tmp_path: Path) -> None:
    normal = [row(n, n, 10 + n % 3) for n in range(20)]
    cases = [
        ([*normal, row(20, 30, 60)], Repeats.ODD_ONE),
        ([*normal, row(20, 30, 12)], Repeats.YES),
        ([*normal, *(row(20 + n, 30, 60) for n in range(5))], Repeats.YES),
        ([row(20, 30, 60), row(1, 0, 5)], Repeats.UNKNOWN),
    ]
    for rows, expected in cases:
        log, one = log_of(tmp_path, rows), symptom(request="r20")
        answer = confirm(log, one, statistic(log, one))
        assert answer is not None
        assert answer.repeats is expected
        assert answer.confirmed is {Repeats.YES: True, Repeats.ODD_ONE: False}.get(expected)
    log = log_of(tmp_path, [row(n, n, 10 + n % 30) for n in range(200)])
    for observed, expected in (("37 ms", Repeats.YES), ("300 ms", Repeats.NO), ("20 ms", Repeats.YES)):
        p95 = symptom(statistic="p95", observed=observed)
        answer = confirm(log, p95, statistic(log, p95))
        assert answer is not None
        assert answer.repeats is expected


def test_first_wave(tmp_path: Path) -> None:
    rows = [row(n, 0, 50_000) for n in range(10)] + [row(10 + n, 60_000 + n, 700 + n) for n in range(90)]
    p95 = symptom(statistic="p95")
    wave = first_wave(log_of(tmp_path, rows), p95)
    assert wave is not None
    assert wave.rows == tuple(range(10))
    assert (wave.statistic_ns, wave.without_ns) == (50_000 * MS, 785 * MS)
    assert first_wave(log_of(tmp_path, rows[10:]), p95) is None
    growing = [row(n, n, 10 + 10 * n) for n in range(50)]
    assert first_wave(log_of(tmp_path, growing), p95) is None
    marked = [{**r, "warmup": True} for r in rows[:10]]
    assert first_wave(log_of(tmp_path, marked + rows[10:]), p95) is None


def test_laws_notice_missing_requests(tmp_path: Path) -> None:
    rows = [row(n, 100 * n, 80) for n in range(50)]
    served = log_of(tmp_path, [{**r, "scheduled_ns": r["sent_ns"] + MS} for r in rows])
    found = load_of(served)
    assert found is not None
    assert found.service_ns == 79 * MS
    assert found.utilisation == pytest.approx(0.79 * 50 / 49)
    assert found.output_tps == pytest.approx(100 / 4.981)
    assert [law.holds for law in laws(served)] == [True, True]
    assert load_of(log_of(tmp_path, rows[:1])) is None
    assert laws(log_of(tmp_path, rows[:1])) == []


def test_queue_is_estimated_from_requests_in_flight(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    free, rows = 0.0, []
    for n, at in enumerate(np.cumsum(rng.exponential(110, 300))):
        begin = max(at, free)
        free = begin + 100
        rows.append(row(n, float(at), free - float(at)))
    log = log_of(tmp_path, rows)
    found = estimate_queue(log)
    assert found is not None
    assert found.correlation > 0.9
    assert found.slope_ns == pytest.approx(100 * MS, rel=0.15)
    assert found.alone_ns == pytest.approx(100 * MS, rel=0.05)
    alone = estimate_queue(log_of(tmp_path, [row(n, 1000 * n, 10) for n in range(20)]))
    assert alone is None


def test_rank_correlation() -> None:
    assert spearman(np.array([1, 2, 3, 4]), np.array([10, 20, 30, 99])) == pytest.approx(1)
    assert spearman(np.array([1, 2, 2, 3]), np.array([4, 3, 3, 1])) == pytest.approx(-1)
    assert spearman(np.array([1, 1]), np.array([1, 2])) == 0


@needs_shared
def test_near_saturation() -> None:
    log, p95 = case_log("03"), symptom(statistic="p95", observed="1379.270 ms")
    chosen, load_found = statistic(log, p95), load_of(log)
    assert chosen is not None
    assert load_found is not None
    assert load_found.utilisation is not None
    assert load_found.service_ns is not None
    assert round(chosen.value_ns / MS, 3) == 1379.270
    assert round(load_found.utilisation, 3) == 0.977
    assert round(load_found.service_ns / MS, 1) == 100.3
    assert [law.holds for law in laws(log)] == [True, True]
    answer = confirm(log, p95, chosen)
    assert answer is not None
    assert answer.repeats is Repeats.YES


@needs_shared
def test_one_recompilation_is_an_odd_request() -> None:
    log, one = case_log("07"), symptom(request="cmpl-dfefddf0", observed="161.057 ms")
    answer = confirm(log, one, statistic(log, one))
    assert answer is not None
    assert answer.repeats is Repeats.ODD_ONE
    assert answer.others_median_ns == pytest.approx(39 * MS, rel=0.02)
