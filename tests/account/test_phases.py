from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from request_logs import MS, T0, log_of, row
from scopedown.account.clock import server_clock
from scopedown.account.phases import Phases, against_median, phases, summed
from scopedown.account.population import nearest_rank, statistic, values
from scopedown.read import load
from scopedown.read.base import UNKNOWN, RequestLog
from scopedown.symptom import parse_symptom
from scopedown.terms import Category, Metric
from shared_data import SHARED, needs_shared

C, N, Q, U = Category.CLIENT, Category.NETWORK, Category.QUEUE, Category.UNACCOUNTED


def stamped(n: int, at: float, **shift: float) -> dict[str, Any]:
    """Client 1 ms late, network 2 ms, queue 30 ms, service 67 ms; ``server`` moves the server's clock (ms)."""
    server = int(shift.get("server", 0) * MS)
    r = row(n, at, 100)
    a = r["arrival_ns"]
    return r | {"sent_ns": a + MS, "queued_ns": a + 3 * MS + server, "scheduled_ns": a + 33 * MS + server}


def parts(found: Phases | None) -> list[tuple[Category, int]]:
    assert found is not None
    for before, after in zip(found.phases, found.phases[1:], strict=False):
        assert before.end == after.start
    return [(p.category, p.ns) for p in found.phases]


def test_all_stamps(tmp_path: Path) -> None:
    log = log_of(tmp_path, [stamped(0, 0)])
    assert parts(phases(log, 0, Metric.TTFT)) == [(C, MS), (N, 2 * MS), (Q, 30 * MS), (U, 67 * MS)]
    assert parts(phases(log, 0, Metric.QUEUE_TIME)) == [(C, MS), (N, 2 * MS), (Q, 30 * MS)]
    assert parts(phases(log, 0, Metric.E2E)) == [(C, MS), (N, 2 * MS), (Q, 30 * MS), (U, 68 * MS)]
    assert parts(phases(log, 0, Metric.TPOT)) == [(U, MS)]


def test_return_after_the_last_token(tmp_path: Path) -> None:
    r = stamped(0, 0)
    chunks = [r["first_token_ns"], r["first_token_ns"] + 3 * MS]
    log = log_of(tmp_path, [{**r, "token_ns": chunks, "end_ns": T0 + 108 * MS}])
    assert parts(phases(log, 0, Metric.E2E))[-2:] == [(U, 70 * MS), (N, 5 * MS)]


def test_sums_over_requests(tmp_path: Path) -> None:
    log = log_of(tmp_path, [stamped(n, 200 * n) for n in range(5)] + [{**stamped(5, 0), "status": "error"}])
    sums = {s.category: s.ns // MS for s in summed(log)}
    assert sums == {C: 5, N: 10, Q: 150, U: 340}
    assert all(s.count == 5 for s in summed(log))


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        (("sent_ns",), [(N, 3), (Q, 30), (U, 67)]),
        (("queued_ns",), [(C, 1), (Q, 32), (U, 67)]),
        (("scheduled_ns",), [(C, 1), (N, 2), (U, 97)]),
        (("queued_ns", "scheduled_ns"), [(C, 1), (U, 99)]),
        (("sent_ns", "queued_ns", "scheduled_ns"), [(U, 100)]),
        (("arrival_ns",), [(N, 2), (Q, 30), (U, 67)]),
    ],
)
def test_absent_stamps_merge_phases(
    tmp_path: Path, absent: tuple[str, ...], expected: list[tuple[Category, int]]
) -> None:
    log = log_of(tmp_path, [{k: v for k, v in stamped(0, 0).items() if k not in absent}])
    assert parts(phases(log, 0, Metric.TTFT)) == [(c, ns * MS) for c, ns in expected]


def test_no_interval(tmp_path: Path) -> None:
    log = log_of(tmp_path, [{k: v for k, v in row(0, 0, 10).items() if k != "first_token_ns"}])
    assert phases(log, 0, Metric.TTFT) is None


@pytest.mark.parametrize("hours", [2, -7, 5.75])
def test_a_server_in_another_zone(tmp_path: Path, hours: float) -> None:
    log = log_of(tmp_path, [stamped(n, 200 * n, server=hours * 3.6e6) for n in range(20)])
    clock = server_clock(log)
    assert clock.offset_ns == hours * 3600 * 10**9
    found = phases(log, 3, Metric.TTFT)
    assert parts(found) == [(C, MS), (N, 2 * MS), (Q, 30 * MS), (U, 67 * MS)]
    assert found is not None
    assert any("20 of 20" in w and "clock" in w for w in found.warnings)
    ns, valid = values(log, Metric.QUEUE_TIME)
    assert valid.all()
    assert (ns == 33 * MS).all()


@pytest.mark.parametrize("ahead", [-5000, -40, 250, 12345])
def test_a_server_whose_clock_is_off(tmp_path: Path, ahead: float) -> None:
    log = log_of(tmp_path, [stamped(n, 200 * n, server=ahead) for n in range(20)])
    clock = server_clock(log)
    assert abs(clock.offset_ns - ahead * MS) <= clock.uncertainty_ns
    found = parts(phases(log, 3, Metric.TTFT))
    assert (Q, 30 * MS) in found
    assert sum(ns for _, ns in found) == 100 * MS


def test_one_wild_stamp_moves_no_other(tmp_path: Path) -> None:
    log = log_of(tmp_path, [stamped(n, 200 * n, server=-9000 if n == 7 else 0) for n in range(20)])
    assert server_clock(log).offset_ns == 0
    assert parts(phases(log, 3, Metric.TTFT)) == [(C, MS), (N, 2 * MS), (Q, 30 * MS), (U, 67 * MS)]
    wild = phases(log, 7, Metric.TTFT)
    assert parts(wild) == [(C, MS), (U, 99 * MS)]
    assert wild is not None
    assert any("outside their neighbours" in w for w in wild.warnings)


def test_stamps_that_no_offset_mends(tmp_path: Path) -> None:
    log = log_of(tmp_path, [stamped(n, 200 * n, server=(-1) ** n * 5000 * (n + 1)) for n in range(20)])
    clock = server_clock(log)
    assert clock.offset_ns == 0
    assert clock.warning is not None
    assert "no constant offset" in clock.warning


_stamp = st.one_of(st.just(UNKNOWN), st.integers(T0, T0 + 300))


@given(st.lists(st.tuples(*[_stamp] * 7), min_size=1, max_size=5), st.sampled_from([*Metric][:5]))
def test_phases_always_partition(rows: list[tuple[int, ...]], metric: Metric) -> None:
    columns = np.array(rows, np.int64).T
    n = len(rows)
    log = RequestLog(
        [str(i) for i in range(n)], *columns[:6], columns[6], np.full(n, 2), np.zeros(n, np.int8), [None] * n,
        np.zeros(n, np.bool_), np.zeros(n + 1, np.int64), np.empty(0, np.int64),
    )  # fmt: skip
    ns, valid = values(log, metric)
    for i in range(n):
        found = phases(log, i, metric)
        if found is None:
            assert not valid[i] or ns[i] == 0
            continue
        assert sum(ns for _, ns in parts(found)) == found.interval[1] - found.interval[0]
        assert all(p.ns > 0 for p in found.phases)
        if metric is not Metric.TPOT:
            assert not valid[i] or metric is Metric.ITL or sum(p.ns for p in found.phases) == ns[i]


@needs_shared
@pytest.mark.parametrize(
    ("case", "category", "low", "high"), [("03", Q, 1061.52, 1494.998), ("04", C, 676.75, 974.427)]
)
def test_the_example_percentiles(case: str, category: Category, low: float, high: float) -> None:
    log = load(SHARED / "cases" / case / "evidence" / "requests.jsonl").content
    assert isinstance(log, RequestLog)
    p95 = parse_symptom({"metric": "ttft", "statistic": "p95", "observed": "1 s"})
    assert p95 is not None
    chosen = statistic(log, p95)
    assert chosen is not None
    found = parts(phases(log, chosen.row, Metric.TTFT))
    assert sum(ns for _, ns in found) == chosen.value_ns
    assert low <= sum(ns for c, ns in found if c is category) / MS <= high
    largest = max(against_median(log, chosen.row, Metric.TTFT), key=lambda d: d.ns - d.median_ns)
    assert largest.category is category
    if case == "04":
        assert round(chosen.value_ns / MS, 3) == 889.012
        assert round(nearest_rank(log.first_token - log.sent, 0.95) / MS, 2) == 64.96
