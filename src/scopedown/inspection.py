"""What files hold and what they can establish, without a question: ``scopedown inspect``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from scopedown.account.population import members, nearest_rank
from scopedown.read import detect, expand, load, open_source
from scopedown.read.base import STATUSES, Artifact, RequestLog, Summary
from scopedown.read.unknown import looks_like
from scopedown.terms import Metric, Scope, Status
from scopedown.trace.coverage import coverage, merged
from scopedown.trace.model import Trace

_LONG_GAP_NS = 100_000
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}


class InspectedDevice(msgspec.Struct, kw_only=True):
    id: int
    name: str | None
    ops: int
    span_ns: int
    """From the first op's start to the last op's end."""
    busy_ns: int
    """Union of the ops."""
    idle_ns: int
    gaps_over_100us: int


class InspectedRequests(msgspec.Struct, kw_only=True):
    """Percentiles are nearest rank over ok requests without warm-up (of a summary the tool's own); null without
    values."""

    count: int
    ok: int
    ttft_ns: dict[str, int] | None
    tpot_ns: dict[str, int] | None
    e2e_ns: dict[str, int] | None


class Inspected(msgspec.Struct, kw_only=True):
    path: str
    sha256: str
    kind: str | None
    """Null: unknown, ``why`` says what it looks like."""
    why: str | None
    scope: Scope | None
    producer: str | None
    version: str | None
    interval_ns: tuple[int, int] | None
    utc_start_ns: int | None
    counts: dict[str, int]
    devices: list[InspectedDevice]
    coverage: dict[str, Any] | None
    launches: list[dict[str, Any]]
    requests: InspectedRequests | None
    can_establish: list[str]
    cannot_establish: list[str]
    warnings: list[str]


def inspect(paths: Iterable[str | Path], columns: str | None = None) -> list[Inspected]:
    """One result a file, folders and globs expanded; ``columns``: as for ``read.load``. Raises InputError for a file
    that is missing or broken."""
    return [_inspect(path, columns) for path in expand(paths)]


def _inspect(path: Path, columns: str | None) -> Inspected:
    source = open_source(path)
    if detect(source, columns) is None:
        what, do = looks_like(source.head)
        return Inspected(
            path=str(path),
            sha256=source.sha256,
            kind=None,
            why=f"{what}; {do}",
            scope=None,
            producer=None,
            version=None,
            interval_ns=None,
            utc_start_ns=None,
            counts={},
            devices=[],
            coverage=None,
            launches=[],
            requests=None,
            can_establish=[],
            cannot_establish=[],
            warnings=[],
        )
    return of_artifact(load(path, columns=columns))


def of_artifact(artifact: Artifact) -> Inspected:
    """The same for an artifact that was read already."""
    content = artifact.content
    trace = content if isinstance(content, Trace) else None
    log = content if isinstance(content, RequestLog) else None
    return Inspected(
        path=str(artifact.path),
        sha256=artifact.sha256,
        kind=artifact.kind,
        why=None,
        scope=artifact.scope,
        producer=artifact.producer,
        version=artifact.version,
        interval_ns=artifact.interval_ns,
        utc_start_ns=artifact.utc_start_ns,
        counts=artifact.counts,
        devices=[] if trace is None else _devices(trace),
        coverage=None if trace is None else asdict(coverage(trace)),
        launches=list(artifact.extra.get("launches", ())),
        requests=_summary(content) if isinstance(content, Summary) else None if log is None else _requests(log),
        can_establish=list(artifact.can_establish),
        cannot_establish=list(artifact.cannot_establish),
        warnings=list(artifact.warnings),
    )


def _devices(trace: Trace) -> list[InspectedDevice]:
    names = {d.id: d.name for d in trace.meta.devices}
    found = []
    for device in np.unique(trace.ops.device):
        mine = trace.ops.device == device
        first, last = trace.ops.start[mine], trace.ops.end[mine]
        starts, ends = merged(first, last)
        busy, span = int((ends - starts).sum()), int(last.max() - first.min())
        found.append(
            InspectedDevice(
                id=int(device),
                name=names.get(int(device)),
                ops=int(mine.sum()),
                span_ns=span,
                busy_ns=busy,
                idle_ns=span - busy,
                gaps_over_100us=int((starts[1:] - ends[:-1] > _LONG_GAP_NS).sum()),
            )
        )
    return found


def _requests(log: RequestLog) -> InspectedRequests:
    return InspectedRequests(
        count=len(log),
        ok=int((log.status == STATUSES.index(Status.OK)).sum()),
        ttft_ns=_percentiles(log, Metric.TTFT),
        tpot_ns=_percentiles(log, Metric.TPOT),
        e2e_ns=_percentiles(log, Metric.E2E),
    )


def _summary(s: Summary) -> InspectedRequests | None:
    """The tool's own statistics, those that it states."""
    if s.completed is None:
        return None
    ttft, tpot, e2e = (
        {str(k): v for k, v in s.values.get(m, {}).items()} for m in (Metric.TTFT, Metric.TPOT, Metric.E2E)
    )
    return InspectedRequests(
        count=s.completed + (s.failed or 0),
        ok=s.completed,
        ttft_ns=ttft or None,
        tpot_ns=tpot or None,
        e2e_ns=e2e or None,
    )


def _percentiles(log: RequestLog, metric: Metric) -> dict[str, int] | None:
    _, ns, _ = members(log, metric)
    return {name: nearest_rank(ns, p) for name, p in _SHARES.items()} if len(ns) else None
