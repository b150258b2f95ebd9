"""Public results of load generators: what they are, how many requests, and their aggregates where these are ours."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scopedown.account.population import members, values
from scopedown.inspection import inspect
from scopedown.read import load
from scopedown.read.base import STATUSES, Clock, OfferedLoad, RequestLog, Summary
from scopedown.terms import Metric, Statistic, Status
from scopedown.trace.model import Ints
from shared_data import SHARED, needs_shared

ROOT = SHARED / "data" / "requests"
JOINED = SHARED / "data" / "joined_run_mi355x_kimi_conc1"
pytestmark = needs_shared

INFERENCE_PERF = "made_here/inference_perf_llamacpp_poisson10"
#: File -> (kind, requests, ok), or what the refusal says.
TABLE: dict[str, tuple[str, int | None, int | None] | str] = {
    "aiperf_profile_export.jsonl.gz": ("aiperf-jsonl", 100, 89),
    "aiperf_profile_export_summary.json": ("aiperf-summary", 100, 89),
    "azure_llm_code_2023.csv.gz": ("load-trace", None, None),
    "custom_vllm_a10g_results.json": "try --columns ttft=ttft_s,e2e=total_time_s",
    "guidellm_benchmarks.json": ("guidellm-json", 1, 1),
    "inference_perf_per_request.json": ("inference-perf-json", 6, 5),
    "infmax_agg_kimi_mi355x.json": ("bench-serving-summary", None, None),
    "llmperf_individual_llama2_7b.json": ("llmperf-json", 150, 150),
    "lmbench_llmd_llama70b_h100_q20.csv": ("lmbench-csv", 120, 120),
    "lmbench_vllm_llama70b_h100_q16_truncated.csv": ("lmbench-csv", 68, 68),
    "lmbench_vllm_llama70b_h100_q20.csv": ("lmbench-csv", 252, 252),
    "load_test_10rps_h100.json.gz": "try --columns e2e=latency_seconds,status=status,error=error",
    "mooncake_synthetic.jsonl.gz": ("load-trace", None, None),
    "sglang_bench_h100_caseA_vs.json": ("bench-serving-summary", 400, 400),
    "trtllm_bench_conc8.json": ("bench-serving-summary", 40, 40),
    "vllm_bench_conc8.json": ("bench-serving-summary", 40, 40),
    "vllm_bench_h100_caseA_vs.json": ("bench-serving-summary", 400, 400),
    "vllm_bench_mi355x_glm_conc16.json": ("bench-serving-summary", 160, 160),
    "made_here/README.md": "no known format",
    "made_here/aiperf_llamacpp_conc4/profile_export.jsonl.gz": ("aiperf-jsonl", 40, 40),
    "made_here/aiperf_llamacpp_conc4/profile_export_aiperf.csv": ("aiperf-summary", 40, 40),
    "made_here/aiperf_llamacpp_conc4/profile_export_aiperf.json": ("aiperf-summary", 40, 40),
    "made_here/aiperf_llamacpp_conc4/server_metrics_export.csv": "server's metrics",
    "made_here/aiperf_llamacpp_conc4/server_metrics_export.json": "server's metrics",
    "made_here/aiperf_llamacpp_poisson20/profile_export.jsonl.gz": ("aiperf-jsonl", 60, 59),
    "made_here/aiperf_llamacpp_poisson20/profile_export_aiperf.csv": ("aiperf-summary", 60, 59),
    "made_here/aiperf_llamacpp_poisson20/profile_export_aiperf.json": ("aiperf-summary", 60, 59),
    "made_here/aiperf_llamacpp_poisson20/profile_export_aiperf_timeslices.json.gz": "slices of time",
    "made_here/aiperf_llamacpp_poisson20/server_metrics_export.csv": "server's metrics",
    "made_here/aiperf_llamacpp_poisson20/server_metrics_export.json": "server's metrics",
    "made_here/guidellm_llamacpp_poisson20/benchmarks.csv": "GuideLLM's statistics as CSV",
    "made_here/guidellm_llamacpp_poisson20/benchmarks.json.gz": ("guidellm-json", 60, 60),
    f"{INFERENCE_PERF}/config.yaml": "no known format",
    f"{INFERENCE_PERF}/per_request_lifecycle_metrics.json.gz": ("inference-perf-json", 46, 46),
    f"{INFERENCE_PERF}/stage_0_lifecycle_metrics.json": ("inference-perf-summary", 46, 46),
    f"{INFERENCE_PERF}/summary_lifecycle_metrics.json": ("inference-perf-summary", 46, 46),
    "made_here/vllm_bench_vllm_poisson8/result.json": ("bench-serving-json", 40, 40),
} | {
    f"made_here/overhead_vllm_torch_profiler/{side}_{n}.jsonl.gz": ("requests-jsonl", 24, 24)
    for side in ("plain", "profiled")
    for n in (1, 2, 3)
}  # fmt: skip


def test_every_file_is_named() -> None:
    there = {p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if p.is_file()}
    assert there == set(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_inspect_says_what_it_is(name: str) -> None:
    found = inspect([ROOT / name])[0]
    expected = TABLE[name]
    if isinstance(expected, str):
        assert found.kind is None
        assert expected in (found.why or "")
        return
    kind, count, ok = expected
    assert found.kind == kind
    assert (found.requests.count if found.requests else None, found.requests.ok if found.requests else None) == (
        count,
        ok,
    )
    assert found.cannot_establish


def log_of(path: Path, columns: str | None = None) -> RequestLog:
    content = load(path, columns=columns).content
    assert isinstance(content, RequestLog)
    return content


def document(path: Path) -> Any:
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)


def brackets(sample: Ints, p: float, stated: float, unit: float) -> None:
    """A percentile that a tool interpolates lies between the two samples around the rank, whatever its method."""
    ordered = np.sort(sample) / unit
    k = p * (len(ordered) - 1)
    low, high = ordered[max(int(np.floor(k)) - 1, 0)], ordered[min(int(np.ceil(k)) + 1, len(ordered) - 1)]
    assert low * (1 - 1e-9) <= stated <= high * (1 + 1e-9)


@pytest.mark.parametrize(
    ("records", "summary"),
    [
        (ROOT / "aiperf_profile_export.jsonl.gz", ROOT / "aiperf_profile_export_summary.json"),
        *(
            (f / "profile_export.jsonl.gz", f / "profile_export_aiperf.json")
            for f in (ROOT / "made_here" / "aiperf_llamacpp_conc4", ROOT / "made_here" / "aiperf_llamacpp_poisson20")
        ),
    ],
)
def test_aiperf_against_its_own_aggregates(records: Path, summary: Path) -> None:
    """Means to 1e-9, percentiles between the samples around the rank; AIPerf's TTFT and latency run from the send."""
    log = log_of(records)
    top = document(summary)
    top = top.get("records", top)
    ok = log.status == STATUSES.index(Status.OK)
    ours = {
        ("time_to_first_token", "ttft"): (log.first_token - log.sent)[ok],
        ("request_latency",): (log.end - log.sent)[ok],
    }
    for names, sample in ours.items():
        stated = next(top[n] for n in names if n in top)
        assert sample.mean() / 1e6 == pytest.approx(stated["avg"], rel=1e-9)
        for p in (50, 90, 95, 99):
            brackets(sample, p / 100, stated[f"p{p}"], 1e6)
    ns, valid = values(log, Metric.TPOT)
    assert ns[ok & valid].mean() / 1e6 == pytest.approx(top["inter_token_latency"]["avg"], rel=1e-4)
    read = load(summary).content
    assert isinstance(read, Summary)
    assert read.completed == ok.sum()
    assert read.value(Metric.TTFT, Statistic.P50) == pytest.approx(np.median(next(iter(ours.values()))), abs=1)


def test_the_csv_of_a_summary_is_its_json_rounded() -> None:
    folder = ROOT / "made_here" / "aiperf_llamacpp_conc4"
    exact, rounded = (load(folder / f"profile_export_aiperf.{e}").content for e in ("json", "csv"))
    assert isinstance(exact, Summary)
    assert isinstance(rounded, Summary)
    for metric, cells in exact.values.items():
        for statistic, value in cells.items():
            assert rounded.value(metric, statistic) == pytest.approx(value, abs=5001)
    assert rounded.request_rate == pytest.approx(exact.request_rate, abs=0.005)


def test_joined_run() -> None:
    log = log_of(JOINED / "profile_export.jsonl.gz")
    assert (len(log), int(log.warmup.sum())) == (196, 1)
    _, ns, _ = members(log, Metric.TTFT)
    assert len(ns) == 195
    assert np.median(ns) / 1e9 == pytest.approx(2.15, abs=0.01)
    assert (log.arrival <= log.sent).all()


def test_guidellm_against_its_own_aggregates() -> None:
    """TTFT from the send, as GuideLLM's; TPOT is its inter-token latency of each request, to the float's resolution."""
    path = ROOT / "made_here" / "guidellm_llamacpp_poisson20" / "benchmarks.json.gz"
    log, stated = log_of(path), document(path)["benchmarks"][0]
    ttft = (log.first_token - log.sent) / 1e6
    assert ttft.mean() == pytest.approx(stated["metrics"]["time_to_first_token_ms"]["successful"]["mean"], rel=1e-6)
    own = [r["inter_token_latency_ms"] for r in stated["requests"]["successful"]]
    assert values(log, Metric.TPOT)[0] / 1e6 == pytest.approx(own, abs=1e-4)
    wrong = np.mean([r["time_per_output_token_ms"] for r in stated["requests"]["successful"]])
    assert wrong > 2 * values(log, Metric.TPOT)[0].mean() / 1e6
    assert (log.arrival < log.sent).all()


def test_vllm_against_its_own_aggregates() -> None:
    """Its first chunk is the role: its TTFT is earlier by the first gap, its ITL has one gap of nothing a request."""
    path = ROOT / "made_here" / "vllm_bench_vllm_poisson8" / "result.json"
    log, stated = log_of(path), document(path)
    role = np.array([i[0] for i in stated["itls"]])
    assert log.clock is Clock.OWN
    assert ((log.first_token - log.sent) / 1e9 - role).mean() * 1e3 == pytest.approx(stated["mean_ttft_ms"], rel=1e-6)
    assert (np.diff(log.token_offsets) == log.output_tokens).all()
    assert values(log, Metric.TPOT)[0].mean() / 1e6 == pytest.approx(stated["mean_tpot_ms"], rel=0.01)
    gaps = np.concatenate([np.array(i) for i in stated["itls"]])
    assert gaps.mean() * 1e3 == pytest.approx(stated["mean_itl_ms"], rel=1e-9)
    _, itl, _ = members(log, Metric.ITL)
    assert itl.mean() / 1e6 == pytest.approx(np.concatenate([np.array(i[1:]) for i in stated["itls"]]).mean() * 1e3)


def test_inference_perf_against_its_own_aggregates() -> None:
    folder = ROOT / "made_here" / "inference_perf_llamacpp_poisson10"
    path = folder / "per_request_lifecycle_metrics.json.gz"
    log, stated = log_of(path), document(folder / "summary_lifecycle_metrics.json")["successes"]["latency"]
    for metric, name in ((Metric.TTFT, "time_to_first_token"), (Metric.E2E, "request_latency")):
        ns = values(log, metric)[0]
        assert ns.mean() / 1e9 == pytest.approx(stated[name]["mean"], rel=1e-6)
        for p in (90, 95, 99):
            brackets(ns, p / 100, stated[name][f"p{p}"], 1e9)
    # Its tokens are counted again from the text, ours are the server's: the same decode over fewer tokens.
    assert log.output_tokens.sum() == 1077
    assert values(log, Metric.TPOT)[0].mean() / 1e9 > stated["time_per_output_token"]["mean"]


def test_a_table_of_ones_own_against_its_summary() -> None:
    path = ROOT / "load_test_10rps_h100.json.gz"
    log, stated = log_of(path, "e2e=latency_seconds,status=status,error=error"), document(path)["summary"]
    ns = values(log, Metric.E2E)[0]
    assert (len(log), log.clock) == (3150, Clock.NONE)
    for p in (50, 95, 99):
        brackets(ns, p / 100, stated[f"latency_p{p}"], 1e9)
    path = ROOT / "custom_vllm_a10g_results.json"
    mapping = "ttft=ttft_s,e2e=total_time_s,input_tokens=input_tokens,output_tokens=output_tokens,id=request_id"
    assert len(log_of(path, mapping)) == 62
    stated = document(path)["short_prompts"]["16"]
    log = log_of(path, f"{mapping},run=5")
    assert len(log) == 16
    assert values(log, Metric.TTFT)[0].mean() / 1e9 == pytest.approx(stated["avg_ttft_s"], rel=1e-6)
    assert len(log_of(path, f"{mapping},rows=short_prompts.16.per_request")) == 16
    assert len(log_of(path, f"{mapping},rows=short_prompts.*.per_request")) == 31


def test_llmperf_and_lmbench() -> None:
    log = log_of(ROOT / "llmperf_individual_llama2_7b.json")
    first = document(ROOT / "llmperf_individual_llama2_7b.json")[0]
    assert log.clock is Clock.NONE
    assert values(log, Metric.TTFT)[0][0] == round(first["ttft_s"] * 1e9)
    ours = values(log, Metric.TPOT)[0][0] / 1e9
    assert ours == pytest.approx((first["end_to_end_latency_s"] - first["ttft_s"]) / 150, rel=1e-6)
    assert first["inter_token_latency_s"] > 1.1 * ours
    log = log_of(ROOT / "lmbench_vllm_llama70b_h100_q20.csv")
    assert values(log, Metric.TTFT)[0].max() / 1e9 == pytest.approx(75.3, abs=0.05)


def test_infmax_is_in_seconds() -> None:
    artifact = load(ROOT / "infmax_agg_kimi_mi355x.json")
    assert isinstance(artifact.content, Summary)
    assert artifact.content.value(Metric.TPOT, Statistic.MEAN) == 17294129
    assert artifact.content.value(Metric.E2E, Statistic.P50) == pytest.approx(16.26e9, rel=1e-3)
    assert artifact.producer == "InferenceMAX"
    assert any("seconds" in w for w in artifact.warnings)
    assert any("2.8 tokens" in w for w in artifact.warnings)


def test_bench_serving_summaries() -> None:
    artifact = load(ROOT / "sglang_bench_h100_caseA_vs.json")
    assert isinstance(artifact.content, Summary)
    assert artifact.content.load == "closed loop, 1 in flight"
    assert artifact.content.value(Metric.E2E, Statistic.P90) == pytest.approx(725.0836386e6)
    assert artifact.content.value(Metric.E2E, Statistic.P95) is None
    artifact = load(ROOT / "vllm_bench_mi355x_glm_conc16.json")
    assert isinstance(artifact.content, Summary)
    assert artifact.content.request_rate == pytest.approx(0.216793)
    assert artifact.content.duration_ns == pytest.approx(738.03e9, rel=1e-4)
    # Named after the server, written by TensorRT-LLM's and SGLang's scripts.
    assert load(ROOT / "vllm_bench_conc8.json").producer.startswith("TensorRT-LLM")
    assert load(ROOT / "vllm_bench_h100_caseA_vs.json").producer.startswith("SGLang")


def test_loads_to_offer() -> None:
    azure, mooncake = (load(ROOT / n) for n in ("azure_llm_code_2023.csv.gz", "mooncake_synthetic.jsonl.gz"))
    assert isinstance(azure.content, OfferedLoad)
    assert azure.content.arrival[:2].tolist() == [0, 52_000_000]
    assert azure.content.input_tokens[:2].tolist() == [4808, 3180]
    assert isinstance(mooncake.content, OfferedLoad)
    assert mooncake.content.arrival[:4].tolist() == [0, 0, 40_000_000, 277_000_000]
    assert "not the result" in mooncake.cannot_establish[0]
