"""It speaks where the target is met or nothing is material, and nowhere else."""

from pathlib import Path

import pytest

from request_logs import row
from rules.logs import of_case, pattern, report, served, statement
from scopedown.account.account import account
from scopedown.account.phases import Phase
from scopedown.decide.rules.nothing_wrong import NothingWrong
from scopedown.decide.situation import Situation
from scopedown.simulate import SITUATIONS, write_case
from scopedown.terms import Category, Kind
from shared_data import SHARED, needs_shared

RULE = "nothing_wrong"


def test_within_the_target(tmp_path: Path):
    write_case("nothing_wrong", 1, tmp_path)
    r = of_case(tmp_path)
    assert r.decision.kind is Kind.ENOUGH
    told = statement(r, RULE)
    assert "within its target" in told.text
    assert "the largest of" in told.text
    assert told.predicts[0].direction == "unchanged"
    found = pattern(r, RULE)
    assert found is not None
    assert found.opens is None
    assert found.path_ns == r.ledger.lines[0].ns


def test_a_percentile_over_its_target_is_not_nothing(tmp_path: Path):
    """The median is within the target; the complaint is about p95."""
    rows = served(100, 100, service=lambda i: 50 if i % 10 else 150)
    assert pattern(report(tmp_path, rows, target="100 ms"), RULE) is None
    assert pattern(report(tmp_path, rows, statistic="p50", observed="50 ms", target="100 ms"), RULE) is not None


def test_a_hidden_time_out_is_not_within_the_target(tmp_path: Path):
    """p50 falls on a time-out of 10 ms: the true value may be anything above it."""
    rows = [row(n, 100 * n, 10) for n in range(2)]
    rows += [row(n, 100 * n, 9, status="timeout") for n in range(2, 8)]
    for late in rows[2:]:
        del late["first_token_ns"]
    r = report(tmp_path, rows, statistic="p50", observed="15 ms", target="50 ms")
    assert pattern(r, RULE) is None
    assert any("6 time-outs of 8 requests" in w and "at least" in w for w in r.warnings)


def test_no_line_is_material():
    """Thirty lines of equal size: each below five per cent."""
    phases = [Phase(n * 100_000, (n + 1) * 100_000, Category.NETWORK, f"hop {n}") for n in range(30)]
    s = Situation(account(phases, None))
    found = NothingWrong().find(s)
    assert len(found) == 1
    assert found[0].state is not None
    assert found[0].state(0).text.startswith("no line is material: the largest of 30 lines")
    one = Situation(account([Phase(0, 200_000, Category.NETWORK, "way"), *_later(phases)], None))
    assert NothingWrong().find(one) == []


def _later(phases: list[Phase]) -> list[Phase]:
    return [Phase(p.start + 200_000, p.end + 200_000, p.category, p.label) for p in phases]


@pytest.mark.parametrize("name", [n for n in SITUATIONS if n != "nothing_wrong"])
def test_silent_where_something_is_wrong(tmp_path: Path, name: str):
    write_case(name, 1, tmp_path)
    assert pattern(of_case(tmp_path), RULE) is None


@needs_shared
@pytest.mark.parametrize("case", ["02", "03", "04"])
def test_silent_on_the_example_cases(case: str):
    assert pattern(of_case(SHARED / "cases" / case), RULE) is None
