"""Device work on the path, by whose it is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from request_logs import MS, T0
from rules.logs import of_case, pattern, report, statement
from scopedown.account.owners import owners, rename_owned
from scopedown.account.timeline import Timeline
from scopedown.read import load
from scopedown.report import Report
from scopedown.simulate import Program, Situation, run, write_case, write_nsys
from scopedown.simulate.server import LAYERS, Server
from scopedown.simulate.situations import kernels
from scopedown.terms import Category, Metric, Scope
from scopedown.trace.model import Trace

RULE = "neighbour_work"


def decoding(seed: int, prefill: str, decode: str) -> Situation:
    """Decode steps with somebody's prefill after every fourth; names with {own}, {other} and {n}."""
    s = Server(seed)
    with s.step(f"prefill {s.request}"):
        s.layer(8_000_000)
        s.token()
    for n in range(24):
        if n % 4 == 2:
            with s.step(prefill.format(own=s.request, other=s.new_id(), n=n)):
                for _ in range(LAYERS):
                    s.layer(1_000_000)
                s.engine.sync()
        with s.step(decode.format(own=s.request, n=n)):
            for _ in range(8):
                s.layer(350_000)
            s.token()
    return s.situation("decoding", Metric.TPOT, kernels(""))


def told(folder: Path, situation: Situation) -> Report:
    write_case(situation, situation.seed, folder)
    return of_case(folder)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ranges_name_the_owner(tmp_path: Path, seed: int):
    truth = write_case("neighbour_prefill", seed, tmp_path)
    r = of_case(tmp_path)
    found = pattern(r, RULE)
    assert found is not None
    assert (found.category, found.count, found.opens) == (Category.SCHEDULER, 10, Scope.APPLICATION)
    assert found.path_ns == pytest.approx(truth.lines[Category.SCHEDULER], rel=1e-3)
    s = statement(r, RULE)
    assert "10 other requests" in s.text or "of 10 requests" in s.text
    assert s.predicts[0].amount_ns * 40 == pytest.approx(found.path_ns, rel=0.1)


def test_a_batch_that_names_this_request_too_is_its_own(tmp_path: Path):
    r = told(tmp_path, decoding(1, "prefill {other} with {own}", "decode {own} step {n}"))
    assert pattern(r, RULE) is None


def test_without_names_and_alone_nothing_is_said(tmp_path: Path):
    r = told(tmp_path, decoding(1, "prefill chunk {n}", "decode step {n}"))
    assert pattern(r, RULE) is None
    assert not any("whose work" in u for u in r.unknown)


def test_without_names_and_with_others_in_flight_the_owner_is_unknown(tmp_path: Path):
    s = decoding(1, "prefill chunk {n}", "decode step {n}")
    other = s.requests[2]
    other.arrival = other.sent = s.subject.tokens[3]
    other.queued = other.scheduled = None
    other.tokens, other.end = [s.subject.tokens[9]], s.subject.tokens[9]
    r = told(tmp_path, s)
    found = pattern(r, RULE)
    assert found is not None
    assert "owner unknown (1 other requests in flight" in found.label
    assert found.statement is None
    assert any("whose work the device did: 1 other requests" in u for u in r.unknown)


def chunks(stretch: bool) -> list[dict[str, Any]]:
    """One request of 60 tokens, 10 ms apart; six others are prefilled for 30 ms each beside it."""
    gaps = np.full(59, 10 * MS)
    if stretch:
        gaps[5:59:9] += 30 * MS
    tokens = (T0 + 50 * MS + np.append(0, np.cumsum(gaps))).tolist()
    rows = [
        {
            "id": "mine", "arrival_ns": T0, "sent_ns": T0, "queued_ns": T0, "scheduled_ns": T0 + MS, "status": "ok",
            "first_token_ns": tokens[0], "token_ns": tokens, "end_ns": tokens[-1] + MS, "input_tokens": 100,
            "output_tokens": 60,
        }
    ]  # fmt: skip
    for n, at in enumerate(range(5, 59, 9)):
        begin = tokens[at] + MS
        rows.append(
            {
                "id": f"other{n}", "arrival_ns": begin - MS, "sent_ns": begin - MS, "queued_ns": begin - MS,
                "scheduled_ns": begin, "first_token_ns": begin + (35 if stretch else 5) * MS, "input_tokens": 9000,
                "end_ns": begin + 36 * MS, "output_tokens": 1, "status": "ok",
            }
        )  # fmt: skip
    return rows


def test_the_log_alone_shows_gaps_beside_others_prefills(tmp_path: Path):
    y = {"metric": "tpot", "statistic": "request", "request": "mine", "observed": "13 ms", "target": "10 ms"}
    s = statement(report(tmp_path, chunks(stretch=True), **y), RULE)
    assert "6 of 59 gaps" in s.text
    assert s.value == pytest.approx(180e6, rel=0.01)
    assert pattern(report(tmp_path, chunks(stretch=False), **y), RULE) is None


def test_ids_that_no_log_knows(tmp_path: Path):
    """Other requests are named by the word request alone; the trace is all there is beside the own id."""
    p = Program(1)
    engine = p.thread("EngineCore")
    for n in range(8):
        with engine.range("step of request 17" if n % 2 else "step of request 4711"):
            engine.kernel("gemm", 2_000_000)
            engine.sync()
    write_nsys(run(p), tmp_path / "t.sqlite")
    trace = load(tmp_path / "t.sqlite").content
    assert isinstance(trace, Trace)
    t = Timeline(trace)
    assert owners(t, {"r1"}, set()) is None
    found = owners(t, {"17"}, set())
    assert found is not None
    assert found.names == ("4711",)
    assert found.own.sum() == found.other.sum() == 4


def test_a_path_is_renamed_exactly(tmp_path: Path):
    from scopedown.account.account import window

    s = decoding(2, "prefill {other}", "decode {own} step {n}")
    write_case(s, 2, tmp_path)
    trace = load(tmp_path / "evidence" / "report.sqlite").content
    assert isinstance(trace, Trace)
    t = Timeline(trace)
    assert t.rows_span is not None
    a = window(t, *t.rows_span)
    path = rename_owned(a, {s.subject.id}, set())
    assert (path.start == a.path.start).all()
    assert (path.end == a.path.end).all()
    moved = path.category == Category.SCHEDULER.code
    assert path.ns[moved].sum() == pytest.approx(6 * LAYERS * 1_000_000, rel=0.02)
    assert {a.labels.values[c] for c in np.unique(path.label[moved])} == {"device work of 6 other requests"}
    assert rename_owned(a, {"nobody"}, set()) is a.path
