"""Waiting in the server, with its stamps and without."""

from pathlib import Path
from typing import Any

import pytest

from rules.logs import of_case, pattern, report, served, statement, unstamped
from scopedown.simulate import write_case
from scopedown.terms import Category, Scope
from shared_data import SHARED, needs_shared

RULE = "queue_wait"


def overload(n: int = 120) -> list[dict[str, Any]]:
    """Requests every 40 ms for a server that takes 50 ms: each waits 10 ms longer than the one before it."""
    return served(n, 40, wait=lambda i: 10.0 * i)


def test_waits_are_counted_with_the_load(tmp_path: Path):
    r = report(tmp_path, overload(), target="200 ms")
    found = pattern(r, RULE)
    assert found is not None
    assert (found.category, found.count, found.of) == (Category.QUEUE, 120, 120)
    told = statement(r, RULE)
    assert "others were scheduled" in told.text
    assert "service takes 50.00 ms" in told.text
    assert "whatever the wait" in told.text
    assert "utilisation 1.2" in told.text
    assert "without waiting p95 TTFT would be 50.54 ms" in told.text
    # p95 of 120 is the 114th: it waited 113 times 10 ms.
    assert told.predicts[0].amount_ns == pytest.approx(1130e6, rel=1e-3)
    assert r.decision.scope is Scope.APPLICATION


def test_service_that_grows_with_load_is_no_queue(tmp_path: Path):
    r = report(tmp_path, served(120, 40, service=lambda i: 50 + 10.0 * i), target="200 ms")
    assert pattern(r, RULE) is None
    assert r.decision.scope is Scope.TIMELINE


def test_a_late_client_is_no_queue(tmp_path: Path):
    r = report(tmp_path, served(120, 40, late=lambda i: 10.0 * i), target="200 ms")
    assert pattern(r, RULE) is None


def test_without_stamps_the_queue_is_an_estimate_to_be_measured(tmp_path: Path):
    r = report(tmp_path, unstamped(overload()), target="200 ms")
    told = statement(r, RULE)
    assert "no server stamp says so yet" in told.text
    assert told.value == pytest.approx(1130e6, rel=0.1)
    assert any("no server stamps" in u for u in r.unknown)


def test_without_stamps_latency_that_ignores_the_load_is_no_queue(tmp_path: Path):
    """The same times shuffled: as long, but not longer with more in flight."""
    rows = served(120, 40, wait=lambda i: 10.0 * (i * 37 % 120))
    r = report(tmp_path, unstamped(rows), target="200 ms")
    assert pattern(r, RULE) is None


@pytest.mark.parametrize("seed", range(1, 5))
def test_simulated(tmp_path: Path, seed: int):
    truth = write_case("near_saturation", seed, tmp_path)
    found = pattern(of_case(tmp_path), RULE)
    assert found is not None
    assert found.path_ns == truth.lines[Category.QUEUE]


@needs_shared
def test_the_example_case():
    told = statement(of_case(SHARED / "cases" / "03"), RULE)
    assert "100.3 ms of service = utilisation 0.97" in told.text
    assert "whatever the wait" in told.text
    assert told.value == pytest.approx(1278.26e6, rel=1e-4)
