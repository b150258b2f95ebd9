"""Every format of a load generator, written with a planted truth: percentiles come back exactly."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from make import bench
from scopedown.account.population import members, nearest_rank
from scopedown.read import load
from scopedown.read.base import STATUSES, Artifact, Clock, RequestLog
from scopedown.terms import Metric, Status

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
Writer = Callable[[Path, list[bench.Planted]], Path]

#: Writer, kind, clock, whether latencies run from the arrival, whether every chunk and the last token are stamped,
#: whether the end is told apart from the last token, whether warm-up is marked.
FORMATS: list[tuple[str, Writer, str, Clock, bool, bool, bool, bool, bool]] = [
    ("aiperf 2025", bench.aiperf_old, "aiperf-jsonl", Clock.EPOCH, False, True, True, True, True),
    ("aiperf 2026", bench.aiperf_new, "aiperf-jsonl", Clock.EPOCH, True, True, True, True, True),
    ("guidellm 0.2", bench.guidellm_old, "guidellm-json", Clock.EPOCH, True, False, True, True, True),
    ("guidellm 0.8", bench.guidellm_new, "guidellm-json", Clock.EPOCH, True, False, True, True, True),
    ("vllm chat", bench.vllm, "bench-serving-json", Clock.OWN, True, True, True, True, False),
    ("vllm", partial(bench.vllm, chat=False), "bench-serving-json", Clock.OWN, True, True, True, True, False),
    ("sglang", partial(bench.vllm, chat=False, stamps=False, server_info={}), "bench-serving-json", Clock.NONE, False,
     True, True, False, False),
    ("llmperf", bench.llmperf, "llmperf-json", Clock.NONE, False, False, False, True, False),
    ("inference-perf", bench.inference_perf, "inference-perf-json", Clock.OWN, False, True, True, True, False),
    ("inference-perf old", partial(bench.inference_perf, old=True), "inference-perf-json", Clock.OWN, False, True, True,
     True, False),
    ("lmbench", bench.lmbench, "lmbench-csv", Clock.EPOCH, False, False, False, True, False),
]  # fmt: skip


def percentiles(log: RequestLog, metric: Metric) -> dict[str, int]:
    _, ns, _ = members(log, metric)
    return {k: nearest_rank(ns, p) for k, p in SHARES.items()}


def log_of(artifact: Artifact) -> RequestLog:
    assert isinstance(artifact.content, RequestLog)
    return artifact.content


@pytest.mark.parametrize(
    ("writer", "kind", "clock", "arrival", "chunks", "last", "tail", "warmup"),
    [f[1:] for f in FORMATS],
    ids=[f[0] for f in FORMATS],
)
def test_the_planted_percentiles_come_back(
    tmp_path: Path, writer: Writer, kind: str, clock: Clock, arrival: bool, chunks: bool, last: bool, tail: bool,
    warmup: bool,
) -> None:  # fmt: skip
    rows = bench.run()
    if not warmup:
        rows = [r for r in rows if not r.warmup]
    artifact = load(writer(tmp_path, rows))
    log = log_of(artifact)
    assert artifact.kind == kind
    assert log.clock is clock
    assert (artifact.utc_start_ns == 0) is (clock is Clock.EPOCH)
    assert (artifact.interval_ns is None) is (clock is Clock.NONE)
    assert artifact.extra["broken_identities"] == {}
    counts = {s: sum(r.status == s for r in rows) for s in ("ok", "error", "cancelled")}
    if kind == "lmbench-csv":
        counts |= {"error": 0, "cancelled": 0}
    assert {s: int((log.status == STATUSES.index(Status(s))).sum()) for s in counts} == counts
    assert int(log.warmup.sum()) == sum(r.warmup for r in rows)
    assert percentiles(log, Metric.TTFT) == bench.truth(rows, "ttft", arrival=arrival)
    assert percentiles(log, Metric.E2E) == bench.truth(rows, "e2e", arrival=arrival, tail=tail)
    assert percentiles(log, Metric.TPOT) == bench.truth(rows, "tpot" if last else "tpot_to_end")
    if chunks:
        assert percentiles(log, Metric.ITL) == bench.truth(rows, "itl")
    else:
        assert not len(log.token_times)


@pytest.mark.parametrize(("writer", "kind"), [f[1:3] for f in FORMATS], ids=[f[0] for f in FORMATS])
def test_compressed_and_under_another_name(tmp_path: Path, writer: Writer, kind: str) -> None:
    path = writer(tmp_path, bench.run())
    plain = load(path)
    packed = tmp_path / "x.sqlite"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    again = load(packed)
    assert again.kind == kind
    assert again.counts == plain.counts
    assert (log_of(again).end == log_of(plain).end).all()


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "lists"])
def test_a_table_of_ones_own(tmp_path: Path, form: str) -> None:
    rows = bench.run()
    log = log_of(load(bench.own(tmp_path, rows, form), columns=bench.OWN_COLUMNS))
    rows = [bench.Planted(**{**r.__dict__, "warmup": False}) for r in rows]
    assert log.clock is Clock.EPOCH
    assert percentiles(log, Metric.TTFT) == bench.truth(rows, "ttft")
    assert percentiles(log, Metric.E2E) == bench.truth(rows, "e2e")
    assert log.id == [r.id for r in rows]
    statuses = [STATUSES[s] for s in log.status.tolist()]
    assert statuses == [Status(r.status) for r in rows]


def test_own_list_columns(tmp_path: Path) -> None:
    rows = [{"t0": 10.0, "times": [10.5, 10.6, 10.8], "done": 10.9}, {"t0": 11.0, "times": [], "done": None}]
    path = bench.dump(tmp_path, "a", rows)
    log = log_of(load(path, columns="sent=t0:s,tokens=times:s,end=done:s"))
    assert log.clock is Clock.OWN
    assert log.token_times.tolist() == [10_500_000_000, 10_600_000_000, 10_800_000_000]
    assert log.first_token[0] == 10_500_000_000
    path = bench.dump(tmp_path, "a", [{"ttft_ms": 5, "gaps_ms": [1, 2], "when": "2026-12-01T13:10:24.5+02:00"}])
    log = log_of(load(path, columns="sent=when:iso,ttft=ttft_ms,gaps=gaps_ms"))
    assert log.clock is Clock.EPOCH
    assert log.sent[0] == int(np.datetime64("2026-12-01T11:10:24.5", "ns").astype(np.int64))
    assert (log.token_times - log.sent[0]).tolist() == [5 * bench.MS, 6 * bench.MS, 8 * bench.MS]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 60))
def test_any_run_comes_back(tmp_path_factory: pytest.TempPathFactory, seed: int, count: int) -> None:
    folder = tmp_path_factory.mktemp("run")
    rows = bench.run(count, seed, failures=False)
    for _, writer, _, _, arrival, chunks, last, tail, _ in FORMATS:
        log = log_of(load(writer(folder, rows)))
        assert percentiles(log, Metric.TTFT) == bench.truth(rows, "ttft", arrival=arrival)
        assert percentiles(log, Metric.E2E) == bench.truth(rows, "e2e", arrival=arrival, tail=tail)
        assert percentiles(log, Metric.TPOT) == bench.truth(rows, "tpot" if last else "tpot_to_end")
        if chunks:
            assert percentiles(log, Metric.ITL) == bench.truth(rows, "itl")
