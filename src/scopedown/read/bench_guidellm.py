"""GuideLLM reports, ``benchmarks.json``: benchmarks with their requests in successful, errored and incomplete.

Stamps are Unix seconds (floats of ``time.time``). Their places moved: beside the request (2025: ``first_token_time``,
``scheduler_info``), under ``scheduler_info.request_timings``, and under ``info.timings`` (0.8: ``targeted_start``,
``request_start``, ``first_token_iteration``). GuideLLM's ``time_per_output_token_ms`` contains the TTFT and its
``inter_token_latency_ms`` is our TPOT; neither is taken over. The first iteration may be a role chunk without a token:
``first_token_iteration`` is the first with one. Chunks are not stamped, so there are no gaps.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Clock, Source
from scopedown.read.bench import Notes, Row, S, artifact, document, get, head_of, items, ns, of_error, whole
from scopedown.read.bench_runs import chosen_run
from scopedown.read.summary import number
from scopedown.terms import Scope, Status

_KEY = re.compile(rb'"generative_benchmark"|"guidellm_version"|"generative_text_response"|"generative_request_stats"')
_WHOSE = {"successful": Status.OK, "errored": Status.ERROR, "incomplete": Status.CANCELLED}
_PLACES = (("info", "timings"), ("scheduler_info", "request_timings"), ("scheduler_info",), ())


class GuideLlm:
    kind: ClassVar[str] = "guidellm-json"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "GuideLLM report with its requests (benchmarks.json), from 0.2 to 0.8"

    def __init__(self, run: int | None = None) -> None:
        self.run = run

    def sniff(self, source: Source) -> bool:
        head = head_of(source)
        return head.startswith(b"{") and bool(_KEY.search(head))

    def read(self, source: Source) -> Artifact:
        value, warnings = document(source)
        notes = Notes(warnings)
        benchmarks = items(get(value, "benchmarks"))
        if not benchmarks:
            raise InputError(source.path, "benchmarks", "expected a list of benchmarks", "let guidellm end")
        rows: list[Row] = []
        for n, benchmark in chosen_run(source, benchmarks, [_strategy(b) for b in benchmarks], self.run, notes):
            prefix = f"{n}/" if len(benchmarks) > 1 and self.run is None else ""
            rows += _requests(benchmark, prefix, notes)
        return artifact(source, self, rows, Clock.EPOCH, notes, "GuideLLM", get(value, "metadata", "guidellm_version"))


def _strategy(benchmark: dict[str, Any]) -> str:
    strategy = get(benchmark, "config", "strategy") or get(benchmark, "args", "strategy")
    if not isinstance(strategy, dict):
        return "load"
    rate = number(strategy.get("rate") or strategy.get("streams") or strategy.get("max_concurrency"))
    return f"{strategy.get('type_', 'load')}{f' {rate:g}' if rate is not None else ''}"


def _requests(benchmark: dict[str, Any], prefix: str, notes: Notes) -> list[Row]:
    groups = benchmark.get("requests")
    rows: list[Row] = []
    for group, status in _WHOSE.items():
        kept = items(get(groups, group))
        rows += [_row(r, status, f"{prefix}{r.get('request_id') or len(rows) + i}", notes) for i, r in enumerate(kept)]
    of = get(benchmark, "metrics", "request_totals", "total") or get(benchmark, "run_stats", "requests_made", "total")
    of = of or get(benchmark, "request_totals", "total")
    if isinstance(of, int) and of > len(rows):
        notes.say(f"the report keeps {len(rows)} of {of} requests (sampled when it was written)")
    begin, end = (ns(get(benchmark, k), S) for k in ("start_time", "end_time"))
    before, behind = (ns(get(benchmark, k), S) or 0 for k in ("warmup_duration", "cooldown_duration"))
    for row in rows:
        at = row.sent if row.sent is not None else row.arrival
        if at is not None and begin is not None and end is not None and before + behind:
            row.warmup = at < begin + before or (row.end or at) > end - behind
    return rows


def _row(r: dict[str, Any], status: Status, name: str, notes: Notes) -> Row:
    def stamp(*names: str) -> int | None:
        for place in _PLACES:
            for key in names:
                if (found := ns(get(r, *place, key), S)) is not None:
                    return found
        return None

    output = whole(r.get("output_tokens")) or whole(get(r, "output_metrics", "total_tokens"))
    iterations = whole(get(r, "info", "timings", "token_iterations"))
    if output is not None and iterations is not None and 0 < iterations < output:
        notes.count("{n} requests received several tokens in one chunk", name)
    error = get(r, "info", "error") or r.get("error")
    return Row(
        id=name,
        arrival=stamp("targeted_start", "targeted_start_time"),
        sent=stamp("request_start", "request_start_time", "start_time"),
        first=stamp("first_token_iteration", "first_token_time", "first_iteration"),
        last=stamp("last_token_iteration", "last_token_time", "last_iteration"),
        end=stamp("request_end", "request_end_time", "end_time"),
        input_tokens=whole(r.get("prompt_tokens")) or whole(get(r, "input_metrics", "total_tokens")),
        output_tokens=output,
        status=of_error(str(error)) if status is Status.ERROR and error else status,
        error=None if error is None else str(error),
    )
