"""AIPerf and GenAI-Perf summaries: ``profile_export_aiperf.json`` and ``.csv``, and the older ``records`` layout.

A metric is ``{"unit": "ms", "avg": …, "p50": …}``; in the older layout the counts stand in ``avg`` (``request_count``).
``inter_token_latency`` is the mean gap of one request, our TPOT; gaps between chunks are ``inter_chunk_latency``.
"""

from __future__ import annotations

import csv
import re
from datetime import datetime
from typing import Any, ClassVar

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Source, Summary
from scopedown.read.bench import Notes, S, document, get, head_of, ns, text_of, whole
from scopedown.read.bench_aiperf import UNITS
from scopedown.read.summary import distribution, number, summary_artifact
from scopedown.terms import Metric, Scope

_METRICS = {
    "time_to_first_token": Metric.TTFT,
    "ttft": Metric.TTFT,
    "inter_token_latency": Metric.TPOT,
    "inter_chunk_latency": Metric.ITL,
    "request_latency": Metric.E2E,
}
_JSON = re.compile(rb'"(time_to_first_token|ttft|request_latency)"\s*:\s*\{\s*("tag"|"unit"|"avg")')
_NAME = re.compile(r"(.*?)\s*(?:\(([^)]*)\))?")


class AiperfSummary:
    kind: ClassVar[str] = "aiperf-summary"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "AIPerf or GenAI-Perf summary (profile_export_aiperf.json or .csv): statistics only"

    def sniff(self, source: Source) -> bool:
        head = head_of(source)
        if head.startswith(b"Metric,avg,min,max"):
            return True
        # The record of one request holds "value", a slice of time "start_ns".
        return head.startswith(b"{") and bool(_JSON.search(head)) and b'"timeslices"' not in head[:200]

    def read(self, source: Source) -> Artifact:
        notes = Notes()
        if head_of(source).startswith(b"Metric"):
            metrics: Any = _of_csv(text_of(source))
            top: dict[str, Any] = {}
            notes.say("values of a CSV summary are rounded: the JSON beside it has them in full")
        else:
            value, warnings = document(source)
            notes.texts += warnings
            top = value if isinstance(value, dict) else {}
            metrics = top.get("records") if isinstance(top.get("records"), dict) else top
        if not isinstance(metrics, dict):
            raise InputError(source.path, "", "expected an object of metrics", "check what wrote it")
        values = {}
        for name, metric in _METRICS.items():
            cells = metrics.get(name)
            if isinstance(cells, dict) and (found := distribution(cells, UNITS.get(str(cells.get("unit")), 10**6))):
                values[metric] = found
        summary = Summary(
            values=values,
            completed=whole(get(metrics, "request_count", "avg")),
            failed=whole(get(metrics, "error_request_count", "avg")),
            duration_ns=_duration(metrics, top),
            request_rate=number(get(metrics, "request_throughput", "avg")),
            output_rate=number(get(metrics, "output_token_throughput", "avg")),
            load=_load(top),
        )
        if Metric.TPOT in values:
            notes.say("AIPerf's inter_token_latency is the mean gap of a request: read as TPOT")
        return summary_artifact(source, self, summary, notes, "AIPerf", top.get("aiperf_version"))


def _of_csv(text: str) -> dict[str, dict[str, Any]]:
    """Both tables of the file: statistics (``Metric,avg,…``), and one value each (``Metric,Value``)."""
    header: list[str] = []
    found: dict[str, dict[str, Any]] = {}
    for cells in csv.reader(text.splitlines()):
        if cells and cells[0] == "Metric":
            header = ["avg" if c == "Value" else c for c in cells]
        elif header and len(cells) == len(header) and (match := _NAME.fullmatch(cells[0])) is not None:
            values = {h: c for h, c in zip(header[1:], cells[1:], strict=True) if c}
            found[match[1].lower().replace(" ", "_")] = {"unit": match[2], **values}
    return found


def _duration(metrics: dict[str, Any], top: dict[str, Any]) -> int | None:
    stated = ns(get(metrics, "benchmark_duration", "avg"), S)
    if stated is not None:
        return stated
    try:
        begin, end = (datetime.fromisoformat(str(top[k])) for k in ("start_time", "end_time"))
    except (KeyError, ValueError):
        return None
    return int((end - begin).total_seconds() * S)


def _load(top: dict[str, Any]) -> str | None:
    wanted = get(top, "input_config", "loadgen") or {}
    rate, most = wanted.get("request_rate"), wanted.get("concurrency")
    parts = [f"{rate} requests/s"] if rate else []
    return ", ".join([*parts, *([f"{most} in flight"] if most else [])]) or None
