"""LLMPerf request records, ``*_individual_responses.json``: an array of objects with durations in seconds.

``ttft_s``, ``end_to_end_latency_s``, ``number_input_tokens``, ``number_output_tokens``, ``error_code`` (null: ok).
There is no time of day: requests cannot be laid beside each other. Tokens are counted by LLMPerf's own tokenizer.
``inter_token_latency_s`` divides the whole request, TTFT included, by its tokens, and is not taken over.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scopedown.read.base import Artifact, Clock, Source, Summary
from scopedown.read.bench import Notes, Row, S, artifact, document, head_of, items, ns, of_error, whole
from scopedown.read.summary import distribution, number, summary_artifact
from scopedown.terms import Metric, Scope, Status


class LlmPerf:
    kind: ClassVar[str] = "llmperf-json"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "LLMPerf request records (individual_responses.json)"

    def sniff(self, source: Source) -> bool:
        head = head_of(source)
        return head.startswith(b"[") and b'"end_to_end_latency_s"' in head and b'"ttft_s"' in head

    def read(self, source: Source) -> Artifact:
        value, warnings = document(source)
        notes = Notes(warnings)
        rows = [_row(r, i) for i, r in enumerate(items(value))]
        notes.say("no start times: each request has durations only, nothing says which ones ran side by side")
        notes.say("tokens are counted by LLMPerf's tokenizer; its inter_token_latency_s contains the TTFT: not used")
        return artifact(source, self, rows, Clock.NONE, notes, "LLMPerf")


def _row(r: dict[str, Any], number: int) -> Row:
    code, text = r.get("error_code"), str(r.get("error_msg") or "")
    failed = code is not None
    return Row(
        id=str(number),
        sent=0,
        first=None if failed else ns(r.get("ttft_s"), S),
        end=None if failed else ns(r.get("end_to_end_latency_s"), S),
        input_tokens=whole(r.get("number_input_tokens")),
        output_tokens=whole(r.get("number_output_tokens")),
        status=of_error(f"{code} {text}") if failed else Status.OK,
        error=f"{code}: {text}"[:200] if failed else None,
    )


class LlmPerfSummary:
    kind: ClassVar[str] = "llmperf-summary"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "LLMPerf summary (*_summary.json): statistics only"

    def sniff(self, source: Source) -> bool:
        head = head_of(source)
        return head.startswith(b"{") and b'"results_ttft_s_' in head

    def read(self, source: Source) -> Artifact:
        value, warnings = document(source)
        notes = Notes(warnings)
        values = {}
        for metric, name in ((Metric.TTFT, "ttft_s"), (Metric.E2E, "end_to_end_latency_s")):
            cells = {k.removeprefix(f"results_{name}_"): v for k, v in value.items()}
            if found := distribution({k.removeprefix("quantiles_"): v for k, v in cells.items()}, S):
                values[metric] = found
        most = value.get("num_concurrent_requests")
        rate = number(value.get("results_num_completed_requests_per_min"))
        summary = Summary(
            values=values,
            completed=whole(value.get("results_num_completed_requests")),
            failed=whole(value.get("results_number_errors")),
            request_rate=None if rate is None else rate / 60,
            output_rate=number(value.get("results_mean_output_throughput_token_per_s")),
            load=None if most is None else f"{most} in flight",
        )
        notes.say("LLMPerf's inter_token_latency_s contains the TTFT: not used")
        return summary_artifact(source, self, summary, notes, "LLMPerf")
