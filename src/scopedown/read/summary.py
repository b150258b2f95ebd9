"""What the readers of summaries share: a tool's own statistics of requests that it did not keep."""

from __future__ import annotations

from typing import Any

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Reader, Source, Summary
from scopedown.read.bench import Notes, ns
from scopedown.terms import Metric, Statistic

STATISTICS = {
    "avg": Statistic.MEAN,
    "mean": Statistic.MEAN,
    "median": Statistic.P50,
    "p50": Statistic.P50,
    "p90": Statistic.P90,
    "p95": Statistic.P95,
    "p99": Statistic.P99,
    "max": Statistic.MAX,
}
_NAMES = {
    Metric.TTFT: "time to first token",
    Metric.TPOT: "time per output token",
    Metric.ITL: "gaps between chunks",
    Metric.E2E: "end-to-end latency",
}
_COST = (
    "one request: a summary keeps none of them, so there are no phases, no interval of a percentile, no first wave",
    "how many requests a percentile stands on, and its 95 % interval",
    "whether the client sent late, or how long a request queued",
    "why a phase takes its time",
)


def distribution(cells: dict[str, Any], scale: int) -> dict[Statistic, int]:
    """``{"avg": 12.5, "p99": 20, "std": …}`` -> ns by statistic; others, and what is no number, are left out."""
    found = {STATISTICS[k]: ns(v, scale) for k, v in cells.items() if k in STATISTICS}
    return {k: v for k, v in found.items() if v is not None and v >= 0}


def summary_artifact(
    source: Source, reader: Reader, summary: Summary, notes: Notes, producer: str, version: Any = None
) -> Artifact:
    """Raises InputError where the file states no latency and no rate."""
    if not any(summary.values.values()) and summary.request_rate is None and summary.output_rate is None:
        raise InputError(source.path, "", "holds no latency and no rate", "check that the benchmark ended normally")
    can = [f"{_NAMES[m]}: {', '.join(v)}, as the tool states them" for m, v in summary.values.items() if v]
    if summary.request_rate is not None or summary.output_rate is not None:
        can.append("throughput of the whole run")
    counts = {"requests": summary.completed, "failed": summary.failed}
    notes.say("statistics only, no requests: percentiles are the tool's (most interpolate), not nearest rank")
    return Artifact(
        path=source.path,
        sha256=source.sha256,
        kind=reader.kind,
        scope=reader.scope,
        producer=producer,
        version=None if version is None else str(version),
        interval_ns=None,
        utc_start_ns=None,
        counts={k: n for k, n in counts.items() if n is not None},
        content=summary,
        can_establish=tuple(can),
        cannot_establish=_COST,
        warnings=tuple(notes.all(summary.completed or 0)),
    )


def number(value: Any) -> float | None:
    """A finite number, of a number or a text."""
    found = ns(value, 10**6)
    return None if found is None else found / 10**6
