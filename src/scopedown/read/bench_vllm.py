"""``bench serve`` / ``bench_serving`` of vLLM, SGLang and TensorRT-LLM with detailed lists: one JSON object a run.

``ttfts``, ``itls`` (seconds), ``input_lens``, ``output_lens``, ``errors``, newer also ``start_times``, ``latencies``,
``queue_times`` (``perf_counter`` seconds: an axis of its own). SGLang appends one line a run. Files without the lists
hold aggregates only (``bench_vllm_summary``).

vLLM takes the first chunk for the first token; on chat endpoints that is the role, without a token: one gap too many,
next to nothing long. It is dropped. ``start_times`` are the sends; the wait for ``--max-concurrency`` before them is in
``queue_times`` where the file has it, else it is lost. Aggregated TPOT is (latency - TTFT)/(n - 1), as ours.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import HEAD, Artifact, Clock, Source
from scopedown.read.bench import (
    Notes,
    Row,
    S,
    after,
    artifact,
    clock_of,
    document_or_lines,
    head_of,
    ns,
    of_error,
    steps,
    whole,
)
from scopedown.read.bench_runs import chosen_run
from scopedown.read.request_checks import ROLE_GAP
from scopedown.read.summary import number
from scopedown.terms import Scope, Status

_LISTS = re.compile(rb'"(ttfts|itls)"\s*:\s*\[')
_RUN = re.compile(rb'"(request_throughput|total_input_tokens|completed)"\s*:')


class BenchServing:
    kind: ClassVar[str] = "bench-serving-json"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "vLLM, SGLang or TensorRT-LLM bench serving result with detailed lists (ttfts, itls)"

    def __init__(self, run: int | None = None) -> None:
        self.run = run

    def sniff(self, source: Source) -> bool:
        head = head_of(source)
        if not head.startswith(b"{") or not _RUN.search(head):
            return False
        return bool(_LISTS.search(head)) or (len(source.head) == HEAD and bool(_LISTS.search(source.read())))

    def read(self, source: Source) -> Artifact:
        notes = Notes()
        runs = runs_of(source, notes)
        rows: list[Row] = []
        for n, run in chosen_run(source, runs, [load_of(r) for r in runs], self.run, notes):
            rows += _requests(source, run, f"{n}/" if len(runs) > 1 and self.run is None else "", notes)
        clock = clock_of(rows) if all(r.sent != 0 for r in rows) else Clock.NONE
        if clock is Clock.NONE:
            notes.say("no start times: each request has durations only, nothing says which ones ran side by side")
        return artifact(source, self, rows, clock, notes, producer_of(runs[0]))


def runs_of(source: Source, notes: Notes) -> list[dict[str, Any]]:
    """The runs of a file: one object, or one a line."""
    value, _ = document_or_lines(source, notes)
    runs = [r for r in (value if isinstance(value, list) else [value]) if isinstance(r, dict)]
    if not runs:
        raise InputError(source.path, "", "expected the object of a run", "check what wrote it")
    return runs


def producer_of(run: dict[str, Any]) -> str:
    """By keys that only one of the relatives writes."""
    backend = str(run.get("backend") or run.get("framework") or "")
    if "server_info" in run or "total_output_tokens_retokenized" in run:
        return f"SGLang bench_serving ({backend})"
    if "user_throughput" in run or "avg_decoded_tokens_per_iter" in run:
        return f"TensorRT-LLM benchmark_serving ({backend})"
    return f"vLLM bench serve ({backend})"


def load_of(run: dict[str, Any]) -> str:
    """``8 requests/s``, ``16 in flight``."""
    rate, most = run.get("request_rate"), run.get("max_concurrency") or run.get("conc")
    parts = []
    if (asked := number(rate)) is not None:
        parts.append(f"{asked:g} requests/s")
    elif rate is not None:
        parts.append("all at once" if most is None else "closed loop")
    if most is not None:
        parts.append(f"{most} in flight")
    return ", ".join(parts) or "unknown load"


def _requests(source: Source, run: dict[str, Any], prefix: str, notes: Notes) -> list[Row]:
    lists = {k: run[k] for k in _KEYS if isinstance(run.get(k), list) and run[k]}
    if "ttfts" not in lists:
        return []
    count = len(lists["ttfts"])
    for name, values in lists.items():
        if len(values) != count:
            where, expected = name, f"expected {count} entries as in ttfts, found {len(values)}"
            raise InputError(source.path, where, expected, "check what wrote it")
    chat = "chat" in f"{run.get('endpoint_type')} {run.get('backend')} {run.get('endpoint')}"
    if "queue_times" not in lists and run.get("max_concurrency"):
        notes.say("the wait for --max-concurrency before each send is not in the file (no queue_times)")
    if run.get("total_output_tokens_retokenized") not in (None, run.get("total_output_tokens")):
        counts = f"{run.get('total_output_tokens')} tokens asked for, {run['total_output_tokens_retokenized']} counted"
        notes.say(f"{counts} again from the text: output tokens are those of the request")
    return [_row({k: v[i] for k, v in lists.items()}, f"{prefix}{i}", chat, notes) for i in range(count)]


_KEYS = ("ttfts", "itls", "input_lens", "output_lens", "start_times", "latencies", "queue_times", "errors")


def _row(r: dict[str, Any], name: str, chat: bool, notes: Notes) -> Row:
    # Without a start time a request begins at 0 of its own.
    sent = ns(r.get("start_times"), S) if "start_times" in r else 0
    waited = ns(r.get("queue_times"), S)
    output, error = whole(r.get("output_lens")), str(r.get("errors") or "")
    first = after(sent, r.get("ttfts"), S)
    chunks = steps(first, r.get("itls"), S)
    if chat and len(chunks) > 2 and _role_chunk(chunks):
        chunks, first = chunks[1:], chunks[1]
        notes.count("{n} requests: the first chunk held the role and no token (chat endpoint): dropped", name)
    failed = bool(error) or (not r.get("ttfts") and not output)
    end = after(sent, r["latencies"], S) if "latencies" in r else (chunks[-1] if chunks else None)
    if "latencies" not in r and chunks:
        notes.say("the end of a request is its last chunk (no latencies in the file)")
    return Row(
        id=name,
        arrival=None if sent is None or waited is None else sent - waited,
        sent=sent,
        first=None if failed else first,
        end=end,
        chunks=[] if failed else chunks or ([] if first is None else [first]),
        input_tokens=whole(r.get("input_lens")),
        output_tokens=output,
        status=of_error(error) if failed else Status.OK,
        error=error.strip().splitlines()[-1][:200] if error.strip() else None,
    )


def _role_chunk(chunks: list[int]) -> bool:
    gaps = np.diff(np.array(chunks, np.int64))
    return bool(gaps[0] < ROLE_GAP * np.median(gaps))
