"""Warm-up inside the sample, and one odd request; not: a queue that fills, or load that is slow throughout."""

from pathlib import Path

from request_logs import row
from rules.logs import pattern, report, served, statement
from scopedown.terms import Scope

RULE = "cold_wave"
ONE = {"statistic": "request", "request": "r30", "observed": "300 ms", "target": "60 ms"}


def test_an_opening_wave_makes_the_percentile(tmp_path: Path):
    rows = [row(n, 100 * n, 900 if n < 10 else 50 + n % 5) for n in range(100)]
    r = report(tmp_path, rows, target="60 ms")
    told = statement(r, RULE)
    assert "the first 10 of 100 requests took 900.0 ms" in told.text
    assert "900.0 ms with them and 54.00 ms without" in told.text
    assert told.predicts[0].amount_ns == 846_000_000
    found = pattern(r, RULE)
    assert found is not None
    assert (found.count, found.of, found.opens) == (10, 100, Scope.APPLICATION)
    assert any(w.startswith("warm-up in the sample: the first 10") for w in r.warnings)


def test_a_wave_that_is_marked_as_warm_up_is_not_in_the_sample(tmp_path: Path):
    rows = [row(n, 100 * n, 900 if n < 10 else 50 + n % 5, warmup=n < 10) for n in range(100)]
    r = report(tmp_path, rows, target="40 ms")
    assert pattern(r, RULE) is None
    assert not any("warm-up" in w for w in r.warnings)


def test_a_wave_beside_the_median_is_a_warning_only(tmp_path: Path):
    rows = [row(n, 100 * n, 900 if n < 10 else 50 + n % 5) for n in range(100)]
    r = report(tmp_path, rows, statistic="p50", observed="52 ms", target="40 ms")
    assert pattern(r, RULE) is None
    assert any(w.startswith("warm-up in the sample") for w in r.warnings)


def test_load_that_is_slow_throughout_is_no_wave(tmp_path: Path):
    rows = served(100, 100, service=lambda i: 50 + 400 * (i % 10 == 0))
    assert pattern(report(tmp_path, rows, target="60 ms"), RULE) is None


def test_one_odd_request(tmp_path: Path):
    rows = [row(n, 100 * n, 300 if n == 30 else 50 + n % 5) for n in range(60)]
    told = statement(report(tmp_path, rows, **ONE), RULE)
    assert "the median of 59 others of its class 52.00 ms, and 0 of them are as slow" in told.text
    assert told.predicts[0].amount_ns == 248_000_000


def test_a_request_as_slow_as_others_is_not_odd(tmp_path: Path):
    rows = [row(n, 100 * n, 300 if n % 6 == 0 else 50 + n % 5) for n in range(60)]
    assert pattern(report(tmp_path, rows, **ONE), RULE) is None


def test_a_long_prompt_is_compared_with_long_prompts(tmp_path: Path):
    rows = [row(n, 100 * n, 300 if n % 10 == 0 else 50, input_tokens=9000 if n % 10 == 0 else 100) for n in range(60)]
    assert pattern(report(tmp_path, rows, **ONE), RULE) is None
