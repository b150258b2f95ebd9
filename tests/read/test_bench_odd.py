"""What real files of load generators have and their formats do not promise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from make import bench
from request_logs import MS, T0, log_of, row, write
from scopedown.account.align import align
from scopedown.account.contract import arrivals_of
from scopedown.account.population import count, members, values
from scopedown.answer import diagnose
from scopedown.case import case_from_files, load_case, load_evidence
from scopedown.errors import InputError, ScopedownError, UsageError
from scopedown.new_case import write_case
from scopedown.read import detect, load
from scopedown.read.base import UNKNOWN, Artifact, Clock, RequestLog, Source, Summary
from scopedown.read.columns import parse_columns
from scopedown.report import Report
from scopedown.simulate import SITUATIONS
from scopedown.simulate.as_trace import as_trace
from scopedown.terms import Kind, Metric, Scope, Statistic

BENCH = {
    "mean_ttft_ms": 120.5, "median_ttft_ms": 100.0, "p99_ttft_ms": 400.25, "mean_tpot_ms": 10.0, "mean_itl_ms": 30.0,
    "request_rate": "inf", "max_concurrency": 16, "completed": 40, "failed": 2, "duration": 12.5,
    "request_throughput": 3.2, "output_throughput": 900.0, "request_goodput:": None,
}  # fmt: skip


def said(artifact: Artifact) -> str:
    return "\n".join(artifact.warnings)


def requests(artifact: Artifact) -> RequestLog:
    assert isinstance(artifact.content, RequestLog)
    return artifact.content


def summary(artifact: Artifact) -> Summary:
    assert isinstance(artifact.content, Summary)
    return artifact.content


def test_a_cut_array_keeps_its_whole_requests(tmp_path: Path) -> None:
    path = bench.llmperf(tmp_path, bench.run(10, failures=False))
    raw = path.read_bytes()
    path.write_bytes(raw[: raw.rindex(b'"ttft_s"')])
    artifact = load(path)
    assert len(requests(artifact)) == 9
    assert "cut off" in said(artifact)
    path.write_bytes(bench.vllm(tmp_path, bench.run(10)).read_bytes()[:-700])
    with pytest.raises(InputError, match="cut off"):
        load(path)


def test_cut_lines(tmp_path: Path) -> None:
    path = bench.aiperf_new(tmp_path, bench.run(10))
    path.write_bytes(path.read_bytes()[:-100])
    artifact = load(path)
    assert len(requests(artifact)) == 9
    assert "line 10 is cut off" in said(artifact)
    path.write_bytes(path.read_bytes() + b"\n{}\n")
    with pytest.raises(InputError, match="line 10"):
        load(path)
    path = bench.lmbench(tmp_path, bench.run(10, failures=False))
    path.write_bytes(path.read_bytes()[:-60])
    artifact = load(path)
    assert len(requests(artifact)) == 9
    assert "cut off" in said(artifact)


def test_crlf_bom_and_quotes(tmp_path: Path) -> None:
    path = bench.lmbench(tmp_path, bench.run(10, failures=False))
    before = requests(load(path)).end
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert (requests(load(path)).end == before).all()
    path = bench.aiperf_new(tmp_path, bench.run(10))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert len(requests(load(path))) == 10


def test_tokens_that_are_no_json(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(json.dumps(BENCH | {"request_rate": float("inf"), "p90_ttft_ms": float("nan")}))
    assert "Infinity" in path.read_text()
    found = summary(load(path))
    assert found.load == "closed loop, 16 in flight"
    assert found.value(Metric.TTFT, Statistic.P99) == 400_250_000
    assert found.value(Metric.TTFT, Statistic.P90) is None
    assert (found.completed, found.failed, found.duration_ns) == (40, 2, 12_500_000_000)
    rows = bench.run(5, failures=False)
    path = bench.vllm(tmp_path, rows, request_goodput=float("nan"))
    value = json.loads(path.read_text())
    value["ttfts"][2], value["itls"][2] = float("nan"), []
    path.write_text(json.dumps(value))
    log = requests(load(path))
    assert log.first_token[2] == UNKNOWN
    assert len(members(log, Metric.TTFT)[0]) == 4


@pytest.mark.parametrize(
    ("more", "scale", "why"),
    [
        ({"mean_tpot": 0.017, "median_tpot": 0.017, "median_intvty": 58.8}, 10**9, "reciprocal"),
        ({"mean_tpot": 17.0, "median_tpot": 17.0, "median_intvty": 58.8}, 10**6, "reciprocal"),
        ({"mean_tpot": 0.017, "median_tpot": 0.017}, 10**9, "seconds"),
        ({"mean_tpot": 17.0, "median_tpot": 17.0}, 10**6, "ms"),
    ],
)
def test_units_that_no_name_says(tmp_path: Path, more: dict[str, Any], scale: int, why: str) -> None:
    artifact = load(bench.dump(tmp_path, "a", {"mean_ttft": 2.5, "tput_per_gpu": 1.0, **more}))
    assert summary(artifact).value(Metric.TTFT, Statistic.MEAN) == 2.5 * scale
    assert why in said(artifact)


def test_a_unit_that_nothing_tells_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no unit"):
        load(bench.dump(tmp_path, "a", {"mean_ttft": 2.5, "tput_per_gpu": 1.0}))


def test_a_chat_endpoint_s_role_chunk_is_dropped_and_no_other(tmp_path: Path) -> None:
    rows = bench.run(20, failures=False)
    chat, plain = load(bench.vllm(tmp_path, rows)), None
    assert "20 of 20 requests: the first chunk held the role" in said(chat)
    plain = load(bench.vllm(tmp_path, rows, chat=False))
    assert "role" not in said(plain)
    assert (requests(chat).token_times == requests(plain).token_times).all()


def test_retokenised_counts(tmp_path: Path) -> None:
    artifact = load(bench.aiperf_new(tmp_path, bench.run(20, failures=False), retokenised=4))
    assert "20 of 20 requests: the server's usage" in said(artifact)
    artifact = load(bench.inference_perf(tmp_path, bench.run(20, failures=False)))
    assert "usage is taken" in said(artifact)
    rows = bench.run(5, failures=False)
    more = {"total_output_tokens": 100, "total_output_tokens_retokenized": 93, "max_concurrency": 4}
    artifact = load(bench.vllm(tmp_path, rows, stamps=False, chat=False, **more))
    assert "93 counted again" in said(artifact)
    assert "--max-concurrency" in said(artifact)


def test_several_runs_of_one_file(tmp_path: Path) -> None:
    rows = bench.run(10, failures=False)
    path = bench.guidellm_new(tmp_path, rows, runs=3)
    artifact = load(path)
    assert len(requests(artifact)) == 30
    assert "3 runs of different load" in said(artifact)
    assert requests(artifact).id[10].startswith("2/")
    one = load(path, columns="run=2")
    assert len(requests(one)) == 10
    assert "different load" not in said(one)
    with pytest.raises(UsageError, match="holds 3 runs"):
        load(path, columns="run=4")
    lines = [json.dumps(BENCH | {"completed": n}) for n in (10, 20, 30)]
    path.write_text("\n".join(lines) + "\n")
    artifact = load(path)
    assert summary(artifact).completed == 30
    assert "3 runs in one file" in said(artifact)
    assert summary(load(path, columns="run=1")).completed == 10
    detailed = [bench.vllm(tmp_path, rows, stamps=False, chat=False).read_text() for _ in range(2)]
    path.write_text("\n".join(detailed) + "\n")
    assert len(requests(load(path))) == 20
    assert len(requests(load(path, columns="run=2"))) == 10


def test_lists_of_different_length_are_refused(tmp_path: Path) -> None:
    path = bench.vllm(tmp_path, bench.run(5))
    value = json.loads(path.read_text())
    value["itls"].pop()
    path.write_text(json.dumps(value))
    with pytest.raises(InputError, match="expected 5 entries"):
        load(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("genai-perf", {"request_latency": {"unit": "ms", "avg": 5.0}, "request_count": {"unit": "", "avg": 3}}),
        ("llmperf", {"results_ttft_s_mean": 0.5, "results_ttft_s_quantiles_p95": 0.75, "results_number_errors": 1}),
        ("inference-perf", {"load_summary": {}, "successes": {"count": 1, "latency": {"request_latency": {"p90": 2}}}}),
        ("vllm", BENCH),
    ],
)
def test_summaries_say_what_they_cost(tmp_path: Path, name: str, text: dict[str, Any]) -> None:
    artifact = load(bench.dump(tmp_path, name, text))
    assert isinstance(artifact.content, Summary)
    assert artifact.interval_ns is None
    assert any("no phases" in c for c in artifact.cannot_establish)
    with pytest.raises(InputError, match="no latency and no rate"):
        load(bench.dump(tmp_path, "b", {"mean_ttft_ms": None}))


def test_llmperf_summary(tmp_path: Path) -> None:
    text = {"results_ttft_s_mean": 0.5, "results_ttft_s_quantiles_p95": 0.75, "results_inter_token_latency_s_mean": 1}
    found = summary(load(bench.dump(tmp_path, "a", text)))
    assert found.values == {Metric.TTFT: {Statistic.MEAN: 500_000_000, Statistic.P95: 750_000_000}}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("sent=a", "does not say its unit"),
        ("sent=a:h,end=b:s", "does not say its unit"),
        ("sent=a:s", "no latency"),
        ("begin=a:s", "unknown field"),
        ("e2e=a:s,e2e=b:s", "twice"),
        ("e2e", "FIELD=COLUMN"),
        ("", "no column"),
        ("rows=x", "no column"),
        ("run=0", "from 1"),
        ("e2e=a:iso", "duration"),
        ("ttft=a:s,end=b:s", "run from the send"),
    ],
)
def test_bad_mappings(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as error:
        parse_columns(text)
    assert "\n" not in str(error.value)


def test_a_mapping_that_fits_nothing(tmp_path: Path) -> None:
    path = bench.dump(tmp_path, "a", [{"latency": 1.0, "n": 2}])
    assert detect(Source(path), "e2e=nothing:s") is None
    with pytest.raises(InputError, match="no row has this column"):
        load(path, columns="e2e=latency:s,output_tokens=m")
    with pytest.raises(InputError, match="through a column mapping only"):
        load(path, kind="columns")
    assert len(requests(load(path, kind="columns", columns="e2e=latency:s"))) == 1


def test_an_unknown_table_names_its_columns_and_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("request_id,start_time,ttft_ms,total_latency_s,completion_tokens\n1,100.0,20,1.5,7\n")
    with pytest.raises(InputError) as error:
        load(path)
    mapping = error.value.do.rpartition(" ")[2].strip("'")
    assert mapping == "sent=start_time:s,ttft=ttft_ms,e2e=total_latency_s,output_tokens=completion_tokens,id=request_id"
    log = requests(load(path, columns=mapping))
    assert (log.first_token - log.sent).tolist() == [20 * MS]


def test_case_keeps_the_mapping(tmp_path: Path) -> None:
    rows = bench.run(10)
    own = bench.own(tmp_path, rows, "csv")
    (tmp_path / "evidence.txt").write_text("x")
    write_case(tmp_path / "case", {"metric": "ttft", "statistic": "p50", "observed": "200 ms"}, [own],
               columns=bench.OWN_COLUMNS)  # fmt: skip
    case = load_case(tmp_path / "case")
    assert case.evidence[0].columns == bench.OWN_COLUMNS
    artifacts = load_evidence(case)
    assert [a.kind for a in artifacts] == ["columns"]
    toml = tmp_path / "case" / "case.toml"
    toml.write_text(toml.read_text().replace("id=n", "idd=n"))
    with pytest.raises(InputError, match="unknown field"):
        load_case(tmp_path / "case")


# What a log's own numbers contradict.


def test_a_prefill_that_no_device_does_is_left_out(tmp_path: Path) -> None:
    rows = [row(n, 100 * n, 50, input_tokens=1000) for n in range(20)]
    rows[3] = row(3, 300, 0.02, input_tokens=21_000)
    path = write(tmp_path, rows)
    artifact = load(path)
    assert "1 of 20 requests have their first token faster" in said(artifact)
    log = requests(artifact)
    assert 3 not in members(log, Metric.TTFT)[0]
    assert count(log, Metric.TTFT)["excluded"] == 1
    complaint = {"metric": "ttft", "statistic": "p50", "observed": "50 ms"}
    report = diagnose(case_from_files([path], complaint))
    assert any("faster than any device" in w for w in report.warnings)
    assert not any("stamps are absent" in w for w in report.warnings)


def test_time_zones_of_server_stamps(tmp_path: Path) -> None:
    hour = 3_600_000 * MS
    rows = [
        row(n, 100 * n, 50, queued_ns=T0 + 100 * n * MS + 2 * hour, scheduled_ns=T0 + 100 * n * MS + 2 * hour + MS)
        for n in range(5)
    ]
    assert "+2 h" in said(load(write(tmp_path, rows)))


def test_chunks_against_tokens(tmp_path: Path) -> None:
    stamps = [T0 + k * 10 * MS for k in range(1, 9)]
    rows = [row(n, 0, 10, token_ns=stamps, end_ns=stamps[-1], output_tokens=4) for n in range(3)]
    assert "more chunks than output tokens" in said(load(write(tmp_path, rows)))
    stamps[1] = stamps[0] + 1000
    rows = [row(n, 0, 10, token_ns=stamps, end_ns=stamps[-1], output_tokens=8) for n in range(3)]
    assert "below 5 % of the median gap in 3 of 3" in said(load(write(tmp_path, rows)))


# What follows from a clock without a zero.


def test_a_log_without_a_zero_is_laid_on_no_trace(tmp_path: Path) -> None:
    made = SITUATIONS["worked_example"](1).run
    assert made is not None
    trace = as_trace(made)
    for writer, clock in ((bench.inference_perf, Clock.OWN), (bench.llmperf, Clock.NONE)):
        log = requests(load(writer(tmp_path, bench.run())))
        assert log.clock is clock
        assert align(trace, log) is None
        assert (align(trace, log, 5) is None) is (clock is Clock.NONE)
    assert arrivals_of(requests(load(bench.llmperf(tmp_path, bench.run())))) is None
    assert align(trace, log_of(tmp_path, [row(n, n, 5) for n in range(3)]), 5) is not None


# What an answer is from a summary.


def answer(path: Path, **complaint: str) -> Report:
    return diagnose(case_from_files([path], complaint or None))


def test_a_summary_alone(tmp_path: Path) -> None:
    path = bench.dump(tmp_path, "a", BENCH)
    report = answer(path, metric="ttft", statistic="p99", observed="400 ms", target="100 ms")
    assert report.symptom is not None
    assert (report.symptom.recorded_ns, report.symptom.confirmed) == (400_250_000, True)
    assert report.symptom.recorded_interval_ns is None
    assert (report.decision.kind, report.decision.scope) == (Kind.MEASURE, Scope.APPLICATION)
    assert sum(line.ns for line in report.ledger.lines) == report.ledger.total_ns == 400_250_000
    assert any("a summary is the only evidence" in w for w in report.warnings)
    assert answer(path, metric="ttft", statistic="p99", observed="400 ms", target="500 ms").decision.kind is Kind.ENOUGH
    report = answer(path, metric="ttft", statistic="p99", observed="900 ms")
    assert any("900.0 ms observed, 400.2 ms recorded" in w for w in report.warnings)


def test_what_a_summary_does_not_state(tmp_path: Path) -> None:
    path = bench.dump(tmp_path, "a", BENCH)
    report = answer(path, metric="ttft", statistic="p95", observed="300 ms")
    assert (report.decision.kind, report.decision.scope) == (Kind.RECAPTURE, Scope.APPLICATION)
    assert "has no p95 of ttft" in report.decision.why
    report = answer(path, metric="ttft", request="r7", observed="300 ms")
    assert "keeps no requests" in report.decision.why
    report = answer(path, metric="request_throughput", observed="3.2 req/s", target="3 req/s")
    assert report.decision.kind is Kind.ENOUGH
    assert answer(path).ledger.total_ns == 12_500_000_000


def test_requests_come_before_their_summary(tmp_path: Path) -> None:
    log, short = bench.aiperf_new(tmp_path, bench.run()), bench.dump(tmp_path, "b", BENCH)
    complaint = {"metric": "ttft", "statistic": "p50", "observed": "200 ms"}
    report = diagnose(case_from_files([log, short], complaint))
    assert report.symptom is not None
    assert report.symptom.request is not None
    assert not any("only evidence" in w for w in report.warnings)


def test_a_load_is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\nx,1,2")
    artifact = load(path)
    assert artifact.kind == "load-trace"
    assert "1 of 2 rows" in said(artifact)
    with pytest.raises(ScopedownError):
        answer(path)


# Whatever stands in the file: an artifact or one line.

WRITERS = [bench.aiperf_old, bench.aiperf_new, bench.guidellm_old, bench.guidellm_new, bench.vllm, bench.llmperf,
           bench.inference_perf, bench.lmbench]  # fmt: skip
_LONG = [b"1" * 400, b"1" * 5000]
_JUNK = st.sampled_from([*_LONG, b"null", b"-1", b'"x"', b"[]", b"{}", b"1e400", b"NaN", b"true"])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damage_is_an_artifact_or_one_line(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("damage")
    path = data.draw(st.sampled_from(WRITERS))(folder, bench.run(6))
    raw = path.read_bytes()
    kind = detect(Source(path))
    assert kind is not None
    numbers = [i for i in range(len(raw)) if raw[i : i + 1].isdigit() and not raw[i - 1 : i].isalnum()]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from(numbers))
        end = at
        while raw[end : end + 1] in b"0123456789.eE" and end < len(raw):
            end += 1
        raw = raw[:at] + data.draw(_JUNK) + raw[max(end, at + 1) :]
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(len(raw) // 2, len(raw)))]
    path.write_bytes(raw)
    try:
        artifact = kind.read(Source(path))
    except ScopedownError as error:
        message = str(error)
    else:
        message, log = "", artifact.content
    if message:
        assert "\n" not in message
        return
    assert isinstance(log, RequestLog)
    for metric in (Metric.TTFT, Metric.TPOT, Metric.ITL, Metric.E2E):
        ns, valid = values(log, metric)
        assert (ns[valid] >= 0).all()
        members(log, metric)
    assert (np.diff(log.token_offsets) >= 0).all()
