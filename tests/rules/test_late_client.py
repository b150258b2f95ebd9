"""Late sends are the client's; what looks like them is not."""

from pathlib import Path

import pytest

from request_logs import log_of
from rules.logs import of_case, pattern, report, served, statement
from scopedown.decide.rules.late_client import lateness
from scopedown.simulate import write_case
from scopedown.terms import Category, Kind, Metric, Scope
from shared_data import SHARED, needs_shared

RULE = "late_client"


def stalled(i: int) -> float:
    """A stall of 1 s that begins with request 40 (one every 50 ms): it sends what it owes at once."""
    return max(1000 - 50 * (i - 40), 0.04) if i >= 40 else 0.04


def test_a_stall_is_the_clients(tmp_path: Path):
    r = report(tmp_path, served(200, 50, stalled), target="100 ms")
    found = pattern(r, RULE)
    assert found is not None
    assert (found.category, found.opens, found.count, found.of) == (Category.CLIENT, Scope.APPLICATION, 20, 200)
    told = statement(r, RULE)
    assert "20 of 200 requests late" in told.text
    assert "from 2.000 s to 3.000 s" in told.text
    assert "coordinated omission" in told.text
    assert told.predicts[0].direction == "falls"
    # p95 by nearest rank is the 11th largest: ten of the twenty were held up longer.
    assert told.predicts[0].amount_ns == pytest.approx(500e6, rel=0.01)
    assert r.decision.kind in (Kind.CHANGE, Kind.MEASURE)
    assert r.decision.scope is Scope.APPLICATION
    assert any("20 of 200 requests late" in w and "50.60 ms from the send" in w for w in r.warnings)


def test_a_queue_in_the_server_is_not_the_clients(tmp_path: Path):
    r = report(tmp_path, served(200, 50, wait=stalled), target="100 ms")
    assert pattern(r, RULE) is None
    assert pattern(r, "queue_wait") is not None
    assert not any("late" in w for w in r.warnings)


def test_microseconds_are_not_late(tmp_path: Path):
    rows = served(60, 50, lambda i: 0.03 + 0.001 * i)
    assert lateness(log_of(tmp_path, rows), Metric.TTFT) is None
    assert pattern(report(tmp_path, rows), RULE) is None


def test_a_stall_that_the_statistic_does_not_see_is_a_warning_only(tmp_path: Path):
    r = report(tmp_path, served(200, 50, stalled), statistic="p50", observed="51 ms", target="40 ms")
    assert pattern(r, RULE) is None
    assert any("20 of 200 requests late" in w for w in r.warnings)


def test_without_arrivals_nothing_can_be_seen(tmp_path: Path):
    rows = [{k: v for k, v in row.items() if k != "arrival_ns"} for row in served(60, 50, stalled)]
    r = report(tmp_path, rows)
    assert pattern(r, RULE) is None
    assert any("no intended arrivals" in u for u in r.unknown)


@pytest.mark.parametrize("seed", range(1, 6))
def test_simulated(tmp_path: Path, seed: int):
    truth = write_case("late_client", seed, tmp_path)
    found = pattern(of_case(tmp_path), RULE)
    assert found is not None
    assert found.path_ns == truth.lines[Category.CLIENT]


@needs_shared
def test_the_example_case():
    r = of_case(SHARED / "cases" / "04")
    told = statement(r, RULE)
    assert "client" in told.text
    assert "889.0 ms from the arrival and 64.96 ms from the send" in told.text
    assert told.value == pytest.approx(825.6e6, rel=1e-3)
    assert any("late" in w for w in r.warnings)
