"""Which of a case's artifacts the account is made from: one of a role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from scopedown.read.base import Artifact, MonitorLog, RequestLog, Summary
from scopedown.trace.model import Trace

T = TypeVar("T", Trace, RequestLog, MonitorLog)


_LEFT_OUT = {
    "trace": "traces: {} is accounted for",
    "log": "request logs: {} is used",
    "monitor": "monitor logs: {} is used",
}


@dataclass(frozen=True, slots=True)
class Used:
    trace: Trace | None
    log: RequestLog | None
    monitor: MonitorLog | None
    summaries: tuple[Summary, ...]
    paths: dict[str, str]
    """Role (log, trace, monitor) to the file."""
    log_offset_ns: int | None
    """As the case declares it: added to the log's times."""
    warnings: tuple[str, ...]
    """The others of a role, which are left out."""


def used(artifacts: Sequence[Artifact]) -> Used:
    """The trace with most device ops, the first request log, the monitor log that says most."""
    by_role = {
        "log": _ranked(artifacts, RequestLog),
        "trace": _ranked(artifacts, Trace),
        "monitor": _ranked(artifacts, MonitorLog),
    }
    logs = by_role["log"]
    return Used(
        trace=_first(by_role["trace"], Trace),
        log=_first(logs, RequestLog),
        monitor=_first(by_role["monitor"], MonitorLog),
        summaries=tuple(a.content for a in artifacts if isinstance(a.content, Summary)),
        paths={role: str(found[0].path) for role, found in by_role.items() if found},
        log_offset_ns=logs[0].extra.get("offset_ns") if logs else None,
        warnings=tuple(
            f"{len(found)} {text.format(found[0].path)}, the others are not"
            for role, text in _LEFT_OUT.items()
            if len(found := by_role[role]) > 1
        ),
    )


def _ranked(artifacts: Sequence[Artifact], kind: type[T]) -> list[Artifact]:
    """Those of a kind, the one of most worth first; equals in the order of the case."""
    return sorted((a for a in artifacts if isinstance(a.content, kind)), key=_worth, reverse=True)


def _worth(a: Artifact) -> tuple[int, ...]:
    match a.content:
        case Trace() as t:
            return len(t.ops), a.counts.get("api_calls", 0)
        case MonitorLog() as m:
            # Stamps with a date, utilisation, a rate, many samples.
            return m.placed, m.utilisation is not None, m.period_ns is not None, len(m.time)
        case _:
            return ()


def _first(ranked: list[Artifact], kind: type[T]) -> T | None:
    content = ranked[0].content if ranked else None
    return content if isinstance(content, kind) else None
