"""One offset between a request log and a trace, and how far it can be trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from account.small import Small, ns
from request_logs import MS, T0, log_of, row
from scopedown.account.align import Alignment, align
from scopedown.read.base import RequestLog
from scopedown.trace.model import Meta, Trace

#: A session that starts 50 ms before the first request; its requests last 100 ms.
SESSION = T0 - 50 * MS
MINUTE, HOUR = 60 * 1000 * MS, 3600 * 1000 * MS


@pytest.fixture
def log(tmp_path: Path) -> RequestLog:
    return log_of(tmp_path, [row(0, 0, 100) | {"id": "cmpl-aa01"}, row(1, 200, 100) | {"id": "cmpl-bb02"}])


def marked(utc: int | None, *, slack_ms: float = 10, other: float = 0) -> Trace:
    """Ranges of both requests inside their intervals (50 to 151 ms, 250 to 351 ms), ``slack_ms`` from each end."""
    s = Small()
    for at, name in ((50, "cmpl-aa01"), (250 + other, "cmpl-bb02")):
        s.range(f"execute {name}", 1000 * (at + slack_ms), 1000 * (at + 101 - slack_ms))
    return s.trace(Meta("by hand", utc_start_ns=utc))


def on(trace: Trace, log: RequestLog) -> Alignment:
    found = align(trace, log)
    assert found is not None
    return found


def test_the_session_start_is_the_offset(log: RequestLog) -> None:
    found = on(Small().range("step", 0, 10).trace(Meta("by hand", utc_start_ns=SESSION)), log)
    assert (found.offset_ns, found.uncertainty_ns, found.warnings, found.marks) == (SESSION, 0, (), ())
    assert found.on_trace(T0) == 50 * MS


def test_marks_that_agree_confirm_it(log: RequestLog) -> None:
    found = on(marked(SESSION), log)
    assert (found.offset_ns, found.uncertainty_ns, len(found.marks)) == (SESSION, 0, 2)
    assert "agrees with marks" in found.how


@pytest.mark.parametrize("skew", [-7 * MINUTE, 3 * MINUTE, 2 * HOUR, -5 * HOUR - HOUR // 2])
def test_where_marks_contradict_it_the_middle_of_the_allowed_offsets_is_taken(log: RequestLog, skew: int) -> None:
    found = on(marked(SESSION + skew), log)
    assert abs(found.offset_ns - SESSION) <= found.uncertainty_ns
    assert found.uncertainty_ns == 10 * MS
    (warning,) = found.warnings
    assert ("a time zone" in warning) == (skew % HOUR in (0, HOUR // 2))
    assert "uncertain by 10" in warning


def test_without_a_session_start_marks_alone_align(log: RequestLog) -> None:
    found = on(marked(None, slack_ms=20), log)
    assert (found.offset_ns, found.uncertainty_ns, found.warnings) == (SESSION, 20 * MS, ())


def test_marks_that_contradict_each_other_align_nothing(log: RequestLog) -> None:
    assert align(marked(None, other=900), log) is None
    found = on(marked(SESSION, other=900), log)
    assert found.offset_ns == SESSION
    assert "contradict each other" in found.warnings[0]


def test_the_users_word_counts_from_the_session_start(log: RequestLog) -> None:
    found = align(marked(SESSION + HOUR), log, -HOUR)
    assert found is not None
    assert (found.offset_ns, found.how) == (SESSION, "as given")


def test_nothing_ties_a_log_to_a_trace_without_clock_and_marks(log: RequestLog) -> None:
    assert align(Small().range("step", 0, 10).trace(), log) is None


def test_an_id_is_a_whole_word_and_never_a_short_number(tmp_path: Path) -> None:
    log = log_of(tmp_path, [row(0, 0, 100) | {"id": "7"}, row(1, 200, 100) | {"id": "cmpl-bb"}])
    s = Small().range("layer 7", 0, 10).range("cmpl-bbc", 20, 30).range("run cmpl-bb", 40, 50)
    found = on(s.trace(Meta("by hand", utc_start_ns=SESSION)), log)
    assert [(m.row, m.start) for m in found.marks] == [(1, ns(40))]


def test_an_id_that_the_log_repeats_marks_nothing(tmp_path: Path) -> None:
    log = log_of(tmp_path, [row(0, 0, 100) | {"id": "cmpl-aa"}, row(1, 200, 100) | {"id": "cmpl-aa"}])
    found = align(Small().range("run cmpl-aa", 40, 50).trace(Meta("by hand", utc_start_ns=SESSION)), log)
    assert found is None or found.marks == ()
