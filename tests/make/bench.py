"""Results of load generators with a planted truth: the same requests, as each tool writes them.

Times are whole microseconds, so that every format can hold them exactly.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

US, MS, S = 10**3, 10**6, 10**9
#: A Unix time in ns.
EPOCH = 1_796_130_744_000_000_000
#: A monotonic clock's reading, 67 minutes after the machine began.
MONOTONIC = 4_053_160_361_000


@dataclass(frozen=True)
class Planted:
    """One request, in ns; times from the beginning of the run."""

    id: str
    arrival: int
    late: int
    """From arrival to send."""
    ttft: int
    """From the send."""
    gaps: tuple[int, ...]
    tail: int
    """From the last token to the end."""
    input_tokens: int
    status: str = "ok"
    warmup: bool = False

    @property
    def tokens(self) -> int:
        return len(self.gaps) + 1

    @property
    def sent(self) -> int:
        return self.arrival + self.late

    @property
    def first(self) -> int:
        return self.sent + self.ttft

    @property
    def last(self) -> int:
        return self.first + sum(self.gaps)

    @property
    def end(self) -> int:
        return self.last + self.tail


def run(count: int = 40, seed: int = 7, *, failures: bool = True) -> list[Planted]:
    """Requests every 50 ms or so; one cancelled, one failed, one warm-up."""
    dice = random.Random(seed)
    return [
        Planted(
            id=f"req-{i:04}",
            arrival=(i * 50_000 + dice.randrange(20_000)) * US,
            late=dice.randrange(200, 3000) * US,
            ttft=dice.randrange(20_000, 400_000) * US,
            gaps=tuple(dice.randrange(8_000, 30_000) * US for _ in range(dice.randrange(3, 24))),
            tail=dice.randrange(50, 900) * US,
            input_tokens=dice.randrange(50, 2000),
            warmup=failures and i == 0,
            status="cancelled" if failures and i == 5 else "error" if failures and i == 9 else "ok",
        )
        for i in range(count)
    ]


def truth(rows: list[Planted], metric: str, *, arrival: bool = True, tail: bool = True) -> dict[str, int]:
    """Nearest-rank percentiles of the requests that count. ``arrival``: latencies run from it, else from the send;
    ``tail``: the format knows the end beside the last token."""
    ok = [r for r in rows if r.status == "ok" and not r.warmup]
    match metric:
        case "ttft":
            values = [r.first - (r.arrival if arrival else r.sent) for r in ok]
        case "e2e":
            values = [(r.end if tail else r.last) - (r.arrival if arrival else r.sent) for r in ok]
        case "tpot":
            values = [(r.last - r.first) // (r.tokens - 1) for r in ok]
        case "tpot_to_end":
            values = [(r.end - r.first) // (r.tokens - 1) for r in ok]
        case _:
            values = [g for r in ok for g in r.gaps]
    values.sort()
    n = len(values)
    at = {"p50": (n + 1) // 2, "p90": -(-9 * n // 10), "p95": -(-19 * n // 20), "p99": -(-99 * n // 100), "max": n}
    return {k: values[max(rank, 1) - 1] for k, rank in at.items()}


def seconds(ns: int) -> float:
    return float(f"{ns / S:.6f}") if ns < 10**15 else float(f"{ns // S}.{ns % S // US:06}")


def ms(ns: int) -> float:
    return ns / MS


def dump(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(value))
    return path


def aiperf_old(folder: Path, rows: list[Planted]) -> Path:
    lines = []
    for r in rows:
        meta = {"x_request_id": r.id, "timestamp_ns": EPOCH + r.sent, "record_processor_id": "p",
                "credit_phase": "warmup" if r.warmup else "profiling"}  # fmt: skip
        metrics: dict[str, Any] = {}
        error = None
        if r.status == "ok":
            metrics = {
                "input_sequence_length": {"value": r.input_tokens, "unit": "tokens"},
                "ttft": {"value": ms(r.ttft), "unit": "ms"},
                "request_latency": {"value": ms(r.end - r.sent), "unit": "ms"},
                "inter_chunk_latency": {"value": [ms(g) for g in r.gaps], "unit": "ms"},
                "output_sequence_length": {"value": r.tokens, "unit": "tokens"},
                "inter_token_latency": {"value": 1.0, "unit": "ms"},
            }
        else:
            kind = "RequestCancellationError" if r.status == "cancelled" else "ClientOSError"
            error = {"code": 499, "type": kind, "message": "gone"}
        lines.append({"metadata": meta, "metrics": metrics, "error": error})
    path = folder / "a"
    path.write_text("".join(json.dumps(x) + "\n" for x in lines))
    return path


def aiperf_new(folder: Path, rows: list[Planted], *, retokenised: int = 0) -> Path:
    lines = []
    for r in rows:
        meta = {"x_request_id": r.id, "credit_issued_ns": EPOCH + r.arrival, "request_start_ns": EPOCH + r.sent,
                "request_end_ns": EPOCH + r.end + 77_000, "record_processor_id": "p",
                "benchmark_phase": "warmup" if r.warmup else "profiling",
                "was_cancelled": r.status == "cancelled"}  # fmt: skip
        line: dict[str, Any] = {"metadata": meta, "metrics": {}}
        if r.status == "ok":
            line["metrics"] = {
                "usage_prompt_tokens": {"value": r.input_tokens, "unit": "tokens"},
                "usage_completion_tokens": {"value": r.tokens, "unit": "tokens"},
                "output_sequence_length": {"value": r.tokens + retokenised, "unit": "tokens"},
                "time_to_first_token": {"value": ms(r.ttft), "unit": "ms"},
                "request_latency": {"value": ms(r.end - r.sent), "unit": "ms"},
                "inter_chunk_latency": {"value": [ms(g) for g in r.gaps], "unit": "ms"},
            }
        elif r.status == "error":
            line["error"] = {"code": 500, "type": "ServerError", "message": "no"}
        lines.append(line)
    path = folder / "a"
    path.write_text("".join(json.dumps(x) + "\n" for x in lines))
    return path


def guidellm_old(folder: Path, rows: list[Planted]) -> Path:
    def request(r: Planted) -> dict[str, Any]:
        done = r.status == "ok"
        return {
            "type_": "generative_text_response",
            "request_id": r.id,
            "scheduler_info": {"targeted_start_time": seconds(EPOCH + r.arrival), "errored": not done},
            "prompt_tokens": r.input_tokens,
            "output_tokens": r.tokens,
            "start_time": seconds(EPOCH + r.sent),
            "end_time": seconds(EPOCH + r.end),
            "first_token_time": seconds(EPOCH + r.first) if done else None,
            "last_token_time": seconds(EPOCH + r.last) if done else None,
            "time_per_output_token_ms": 99.0,
        }

    return dump(folder, "a", {"benchmarks": [_benchmark(rows, request, "synchronous")]})


def guidellm_new(folder: Path, rows: list[Planted], *, runs: int = 1) -> Path:
    def request(r: Planted) -> dict[str, Any]:
        done = r.status == "ok"
        timings = {
            "targeted_start": seconds(EPOCH + r.arrival),
            "queued": seconds(EPOCH + r.arrival) - 1,
            "request_start": seconds(EPOCH + r.sent),
            "first_request_iteration": seconds(EPOCH + r.first - 70 * US),
            "first_token_iteration": seconds(EPOCH + r.first) if done else None,
            "last_token_iteration": seconds(EPOCH + r.last) if done else None,
            "token_iterations": r.tokens,
            "request_end": seconds(EPOCH + r.end),
        }
        error = "no" if r.status == "error" else None
        return {
            "type_": "generative_request_stats",
            "request_id": r.id,
            "info": {"timings": timings, "error": error},
            "input_metrics": {"total_tokens": r.input_tokens},
            "output_metrics": {"total_tokens": r.tokens},
        }

    made = [_benchmark(rows, request, "poisson") for _ in range(runs)]
    return dump(folder, "a", {"metadata": {"version": 2, "guidellm_version": "0.8.1"}, "benchmarks": made})


def _benchmark(rows: list[Planted], request: Any, strategy: str) -> dict[str, Any]:
    groups = {"successful": "ok", "errored": "error", "incomplete": "cancelled"}
    warm = max((r.end + S // 100 for r in rows if r.warmup), default=0)
    return {
        "type_": "generative_benchmark",
        "config": {"strategy": {"type_": strategy, "rate": 20.0}},
        "requests": {g: [request(r) for r in rows if r.status == s] for g, s in groups.items()},
        "start_time": seconds(EPOCH),
        "end_time": seconds(EPOCH + 3600 * S),
        "warmup_duration": 0.0 if not warm else seconds(min(r.sent for r in rows if not r.warmup) - 1000),
        "cooldown_duration": 0.0,
    }


def vllm(folder: Path, rows: list[Planted], *, chat: bool = True, stamps: bool = True, **more: Any) -> Path:
    """``bench serve --save-detailed``; on a chat endpoint with the role's chunk 0.1 ms before the first token."""
    role = 100 * US if chat else 0
    value: dict[str, Any] = {
        "date": "20261201-131819",
        "backend": "openai-chat" if chat else "openai",
        "request_rate": 8.0,
        "max_concurrency": None,
        "duration": 5.0,
        "completed": sum(r.status == "ok" for r in rows),
        "total_input_tokens": 1,
        "request_throughput": 7.5,
        "input_lens": [r.input_tokens for r in rows],
        "output_lens": [r.tokens if r.status == "ok" else 0 for r in rows],
        "ttfts": [seconds(r.ttft - role) if r.status == "ok" else 0.0 for r in rows],
        "itls": [[*([seconds(role)] if chat else []), *map(seconds, r.gaps)] if r.status == "ok" else [] for r in rows],
        "generated_texts": ["" for _ in rows],
        "errors": ["" if r.status == "ok" else f"Traceback\n{r.status}" for r in rows],
        **more,
    }
    if stamps:
        value["start_times"] = [seconds(MONOTONIC + r.sent) for r in rows]
        value["queue_times"] = [seconds(r.late) for r in rows]
        value["latencies"] = [seconds(r.end - r.sent) for r in rows]
    return dump(folder, "a", value)


def llmperf(folder: Path, rows: list[Planted]) -> Path:
    return dump(
        folder,
        "a",
        [
            {
                "error_code": None if r.status == "ok" else 499 if r.status == "cancelled" else 500,
                "error_msg": "" if r.status == "ok" else f"request {r.status}",
                "inter_token_latency_s": 0.5,
                "ttft_s": seconds(r.ttft),
                "end_to_end_latency_s": seconds(r.end - r.sent),
                "number_output_tokens": r.tokens,
                "number_input_tokens": r.input_tokens,
            }
            for r in rows
        ],
    )


def inference_perf(folder: Path, rows: list[Planted], *, old: bool = False) -> Path:
    def request(r: Planted) -> dict[str, Any]:
        times = list(accumulate(r.gaps, initial=MONOTONIC + r.first))
        chunks = [seconds(t) for t in times] if r.status == "ok" else []
        response: dict[str, Any] = {
            "output_tokens": r.tokens + 3,
            "server_usage": {"prompt_tokens": r.input_tokens, "completion_tokens": r.tokens},
            "chunk_times": chunks,
            "output_token_times": [*chunks, *chunks[:1] * 3],
        }
        info: dict[str, Any] = {"input_tokens": r.input_tokens, "response_metrics": response}
        if old:
            info = {"input_tokens": r.input_tokens, "output_tokens": r.tokens, "output_token_times": chunks}
        error = None if r.status == "ok" else {"error_type": r.status, "error_msg": "no"}
        return {"start_time": seconds(MONOTONIC + r.sent), "end_time": seconds(MONOTONIC + r.end), "request": "{}",
                "response": "x", "info": info, "error": error}  # fmt: skip

    return dump(folder, "a", [request(r) for r in rows])


def lmbench(folder: Path, rows: list[Planted]) -> Path:
    lines = ["prompt_tokens,generation_tokens,ttft,generation_time,launch_time,finish_time"]
    lines += [
        f"{r.input_tokens},{r.tokens},{seconds(r.ttft)},{seconds(r.end - r.first)},"
        f"{seconds(EPOCH + r.sent)},{seconds(EPOCH + r.end)}"
        for r in rows
        if r.status == "ok"
    ]
    path = folder / "a"
    path.write_text("\n".join(lines) + "\n")
    return path


def own(folder: Path, rows: list[Planted], form: str) -> Path:
    """A log of one's own: ``json``, ``jsonl``, ``csv`` or ``lists``."""
    table = [
        {
            "n": r.id,
            "planned": float(f"{EPOCH // MS + r.arrival // MS}.{r.arrival % MS // US:03}"),
            "start": seconds(EPOCH + r.sent),
            "timing": {"ttft_ms": ms(r.ttft)},
            "stop": seconds(EPOCH + r.end),
            "tok": r.tokens,
            "state": {"ok": "success", "error": "HTTP 500", "cancelled": "aborted"}[r.status],
        }
        for r in rows
    ]
    path = folder / "a"
    if form == "json":
        path.write_text(json.dumps({"meta": {"x": 1}, "out": {"rows": table}}))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(t) + "\r\n" for t in table))
    else:
        flat = [{**t, "timing.ttft_ms": t["timing"]["ttft_ms"]} for t in table]  # type: ignore[index]
        for t in flat:
            del t["timing"]
        if form == "lists":
            path.write_text(json.dumps({"data": {k: [t[k] for t in flat] for k in flat[0]}}))
        else:
            path.write_text("\n".join([",".join(flat[0]), *(",".join(map(str, t.values())) for t in flat)]) + "\n")
    return path


OWN_COLUMNS = "id=n,arrival=planned:ms,sent=start:s,ttft=timing.ttft_ms,end=stop:s,output_tokens=tok,status=state"
