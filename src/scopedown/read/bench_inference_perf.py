"""inference-perf request records, ``per_request_lifecycle_metrics.json``: an array of objects with monotonic seconds.

``start_time``, ``end_time``, ``info.response_metrics.chunk_times`` (older: ``info.output_token_times``). A network read
is stamped once, so that chunks which arrive together have gaps of 0. ``output_token_times`` spreads a count by its own
tokenizer over the chunks; the chunks and the server's usage are taken. No schedule is kept: a late client is not seen.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from scopedown.read.base import HEAD, Artifact, Source, Summary
from scopedown.read.bench import (
    Notes,
    Row,
    S,
    artifact,
    clock_of,
    document,
    get,
    head_of,
    items,
    many,
    ns,
    of_error,
    whole,
)
from scopedown.read.summary import distribution, number, summary_artifact
from scopedown.terms import Metric, Scope, Status
from scopedown.units import show_ns


class InferencePerf:
    kind: ClassVar[str] = "inference-perf-json"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "inference-perf request records (per_request_lifecycle_metrics.json)"

    def sniff(self, source: Source) -> bool:
        head = head_of(source)
        # Prompts and replies come before the metrics, and may be long.
        return head.startswith(b"[") and (
            b'"output_token_times"' in head
            or (
                (b'"info"' in head or len(source.head) == HEAD)
                and all(k in head for k in (b'"start_time"', b'"end_time"', b'"request"', b'"response"'))
            )
        )

    def read(self, source: Source) -> Artifact:
        value, warnings = document(source)
        notes = Notes(warnings)
        rows = [_row(r, i, notes) for i, r in enumerate(items(value))]
        return artifact(source, self, rows, clock_of(rows), notes, "inference-perf")


def _row(r: dict[str, Any], number: int, notes: Notes) -> Row:
    info = r.get("info") or {}
    response = info.get("response_metrics") or info
    times = response.get("chunk_times") or response.get("output_token_times") or []
    stamps = many(times, S)
    chunks = [] if stamps is None else sorted(stamps.tolist())
    usage = response.get("server_usage") or {}
    own, used = whole(response.get("output_tokens")), whole(usage.get("completion_tokens"))
    if used is not None and own is not None and used != own:
        notes.count("{n} requests: tokens counted again from the text differ from the server's usage: usage is taken",
                    str(number))  # fmt: skip
    if len(chunks) > 1 and (np.diff(np.array(chunks)) == 0).any():
        notes.count("{n} requests have chunks that were read together: gaps of 0 between them", str(number))
    error = r.get("error")
    text = ": ".join(str(v) for v in error.values() if v) if isinstance(error, dict) else str(error or "")
    prompt = whole(usage.get("prompt_tokens"))
    return Row(
        id=str(number),
        sent=ns(r.get("start_time"), S),
        first=chunks[0] if chunks else None,
        end=ns(r.get("end_time"), S),
        chunks=chunks,
        input_tokens=whole(info.get("input_tokens")) or whole(get(info, "request_metrics", "text", "input_tokens"))
        if prompt is None
        else prompt,
        output_tokens=own if used is None else used,
        status=of_error(text) if error else Status.OK,
        error=text[:200] or None,
    )


class InferencePerfSummary:
    kind: ClassVar[str] = "inference-perf-summary"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "inference-perf summary (summary_ or stage_N_lifecycle_metrics.json): statistics only"

    def sniff(self, source: Source) -> bool:
        head = head_of(source)
        return head.startswith(b"{") and b'"load_summary"' in head and b'"successes"' in head

    def read(self, source: Source) -> Artifact:
        value, warnings = document(source)
        notes = Notes(warnings)
        latency = get(value, "successes", "latency") or {}
        values = {
            metric: found
            for name, metric in _LATENCIES.items()
            if isinstance(latency.get(name), dict) and (found := distribution(latency[name], S))
        }
        rate = number(get(value, "load_summary", "requested_rate"))
        summary = Summary(
            values=values,
            completed=whole(get(value, "successes", "count")),
            failed=whole(get(value, "failures", "count")),
            duration_ns=ns(get(value, "benchmark_time_seconds"), S),
            request_rate=number(get(value, "successes", "throughput", "requests_per_sec")),
            output_rate=number(get(value, "successes", "throughput", "output_tokens_per_sec")),
            load=None if rate is None else f"{rate:g} requests/s",
        )
        mismatches = whole(get(value, "successes", "token_count_mismatches"))
        if mismatches:
            notes.say(f"{mismatches} requests: tokens counted again differ from the server's usage, TPOT is by them")
        late = ns(get(value, "load_summary", "schedule_delay", "p99"), S)
        if late is not None:
            notes.say(f"the client sent {show_ns(late)} late at p99")
        return summary_artifact(source, self, summary, notes, "inference-perf")


#: Not ours: ``normalized_time_per_output_token`` is E2E over tokens, ``inter_token_latency`` has a gap of 0 for each
#: token that its tokenizer finds in one network read.
_LATENCIES = {
    "time_to_first_token": Metric.TTFT,
    "time_per_output_token": Metric.TPOT,
    "request_latency": Metric.E2E,
}
