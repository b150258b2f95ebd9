"""AIPerf request records, ``profile_export.jsonl``: one object a line with ``metadata`` and ``metrics``.

Two layouts: 2025 (``metadata.timestamp_ns``, ``credit_phase``, metrics ``ttft``, ``ttst``) and 2026
(``credit_issued_ns``, ``request_start_ns``, ``request_end_ns``, ``benchmark_phase``, ``time_to_first_token``). Times
are Unix ns, metrics carry their unit. ``inter_chunk_latency`` holds the gaps between chunks; AIPerf's
``inter_token_latency`` is the TPOT of a request and is not taken over: TPOT is computed from the stamps.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from scopedown.read.base import Artifact, Clock, Source
from scopedown.read.bench import (
    MS,
    NS,
    US,
    Notes,
    Row,
    S,
    after,
    artifact,
    get,
    head_of,
    lines,
    ns,
    of_error,
    steps,
    whole,
)
from scopedown.terms import Scope, Status

_KEY = re.compile(rb'"(credit_phase|benchmark_phase|credit_issued_ns|record_processor_id)"\s*:')
UNITS = {"ms": MS, "us": US, "ns": NS, "s": S, "sec": S, "seconds": S}


class AiperfRecords:
    kind: ClassVar[str] = "aiperf-jsonl"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "AIPerf request records (profile_export.jsonl), of 2025 and 2026"

    def sniff(self, source: Source) -> bool:
        head = head_of(source)
        return head.startswith(b"{") and b'"metadata"' in head and b'"metrics"' in head and bool(_KEY.search(head))

    def read(self, source: Source) -> Artifact:
        rows, notes, server = [], Notes(), None
        for number, line in lines(source):
            if not line:
                notes.say(f"line {number} is cut off (no line end): dropped")
                continue
            rows.append(_row(line, number, notes))
            server = server or get(line, "trace_data", "response_headers", "Server")
        if any(r.arrival is not None for r in rows):
            notes.say("times run from the arrival (credit_issued_ns); AIPerf's own TTFT runs from request_start_ns")
        return artifact(source, self, rows, Clock.EPOCH, notes, "AIPerf")


def _row(line: dict[str, Any], number: int, notes: Notes) -> Row:
    meta, metrics = line.get("metadata") or {}, line.get("metrics") or {}
    name = str(meta.get("x_request_id") or f"line {number}")
    sent = ns(meta.get("request_start_ns", meta.get("timestamp_ns")), NS)
    first = _stamp(metrics, sent, "time_to_first_token", "ttft")
    # request_latency ends with the last chunk's reading, request_end_ns when the connection was given back.
    end = _stamp(metrics, sent, "request_latency") or ns(meta.get("request_end_ns"), NS)
    used, counted = _count(metrics, "usage_completion_tokens"), _count(metrics, "output_sequence_length")
    if used is not None and counted is not None and used != counted:
        notes.count(
            "{n} requests: the server's usage and AIPerf's own count of output tokens differ: usage is taken", name
        )
    if used is None and counted is not None:
        notes.say("output tokens are counted by AIPerf's tokenizer (no usage of the server in the file)")
    gaps = get(metrics, "inter_chunk_latency", "value")
    status, error = _status(line, meta)
    return Row(
        id=name,
        arrival=ns(meta.get("credit_issued_ns"), NS),
        sent=sent,
        first=first,
        end=end,
        chunks=steps(first, gaps, _unit(metrics, "inter_chunk_latency")) or ([] if first is None else [first]),
        input_tokens=_count(metrics, "usage_prompt_tokens", "input_sequence_length"),
        output_tokens=counted if used is None else used,
        status=status,
        error=error,
        warmup=(meta.get("benchmark_phase") or meta.get("credit_phase")) == "warmup",
    )


def _status(line: dict[str, Any], meta: dict[str, Any]) -> tuple[Status, str | None]:
    error = line.get("error")
    if isinstance(error, dict) and any(error.values()):
        text = ": ".join(str(error[k]) for k in ("type", "message") if error.get(k))
        return of_error(text), text
    if meta.get("was_cancelled"):
        return Status.CANCELLED, "cancelled"
    if meta.get("context_overflow_skip"):
        return Status.ERROR, "longer than the context"
    return Status.OK, None


def _unit(metrics: dict[str, Any], name: str) -> int:
    return UNITS.get(str(get(metrics, name, "unit")), MS)


def _stamp(metrics: dict[str, Any], start: int | None, *names: str) -> int | None:
    name = next((n for n in names if n in metrics), None)
    return None if name is None else after(start, get(metrics, name, "value"), _unit(metrics, name))


def _count(metrics: dict[str, Any], *names: str) -> int | None:
    return next((n for name in names if (n := whole(get(metrics, name, "value"))) is not None), None)
