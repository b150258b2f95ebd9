"""Reports on request logs that a test writes, through the real readers and the whole way of a diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from request_logs import MS, T0, write
from scopedown.answer import diagnose
from scopedown.case import case_from_files, load_case
from scopedown.report import PatternReport, Report, StatementReport

P95 = {"metric": "ttft", "statistic": "p95", "observed": "1 s"}


def report(folder: Path, rows: list[dict[str, Any]], **symptom: str) -> Report:
    return diagnose(case_from_files([write(folder, rows)], {**P95, **symptom}))


def of_case(folder: Path) -> Report:
    return diagnose(load_case(folder))


def pattern(r: Report, rule: str) -> PatternReport | None:
    return next((p for p in r.patterns if p.rule == rule), None)


def statement(r: Report, rule: str) -> StatementReport:
    found = pattern(r, rule)
    assert found is not None, [p.rule for p in r.patterns]
    return next(s for s in r.statements if s.id == found.statement)


def served(
    n: int, every: float, late: Callable[[int], float] = lambda _: 0.04, wait: Callable[[int], float] = lambda _: 0.1,
    service: Callable[[int], float] = lambda _: 50.0,
) -> list[dict[str, Any]]:  # fmt: skip
    """Requests on a schedule, in ms: how late each was sent, how long it waited in the server, how long it took."""
    rows = []
    for i in range(n):
        arrival = T0 + int(i * every * MS)
        sent = arrival + int(late(i) * MS)
        queued = sent + MS // 2
        scheduled = queued + int(wait(i) * MS)
        first = scheduled + int(service(i) * MS)
        rows.append(
            {
                "id": f"r{i}", "arrival_ns": arrival, "sent_ns": sent, "queued_ns": queued, "scheduled_ns": scheduled,
                "first_token_ns": first, "end_ns": first + MS, "input_tokens": 100, "output_tokens": 2, "status": "ok",
            }
        )  # fmt: skip
    return rows


def unstamped(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same log from a client that the server told nothing."""
    return [{k: v for k, v in r.items() if k not in ("queued_ns", "scheduled_ns")} for r in rows]
