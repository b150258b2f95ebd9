"""What has to be equal before two measurements are compared, and where it is known from."""

import random
from pathlib import Path
from typing import Any

import pytest

from request_logs import MS, T0, log_of, row
from scopedown.account.contract import FIELDS, arrivals_of, contract
from scopedown.case import load_case, load_evidence
from scopedown.read.base import MonitorLog, RequestLog
from scopedown.report import ContractField
from scopedown.symptom import parse_symptom
from scopedown.terms import FieldSource
from scopedown.trace.model import Trace
from shared_data import SHARED, needs_shared

Y = parse_symptom({"metric": "ttft", "statistic": "p95", "observed": "1 s"})


def value(fields: list[ContractField], name: str) -> tuple[str | None, FieldSource]:
    f = next(f for f in fields if f.name == name)
    return f.value, f.source


def of_folder(folder: Path) -> tuple[list[ContractField], list[str]]:
    case = load_case(folder)
    content = [a.content for a in load_evidence(case)]
    log, trace, monitor = (
        next((c for c in content if isinstance(c, k)), None) for k in (RequestLog, Trace, MonitorLog)
    )
    return contract(case.contract, case.symptom, log, trace, monitor)  # type: ignore[arg-type]


def poisson(n: int, rate: float) -> list[dict[str, Any]]:
    rng, at, rows = random.Random(1), 0.0, []
    for i in range(n):
        at += rng.expovariate(rate / 1000)
        rows.append(row(i, at, 20))
    return rows


def closed(n: int, users: int) -> list[dict[str, Any]]:
    """Each user sends 0.2 ms after its last reply."""
    rng, rows = random.Random(2), []
    free = [0.0] * users
    for i in range(n):
        user = min(range(users), key=free.__getitem__)
        took = rng.uniform(40, 120)
        rows.append(row(i, free[user], took))
        free[user] += took + 1.2
    return rows


@pytest.mark.parametrize(
    ("rows", "process"),
    [
        ([row(i, 70 * i, 20) for i in range(100)], "constant"),
        (poisson(400, 10), "Poisson-like"),
        ([row(i, 2000 * (i // 10) + i % 10, 20) for i in range(100)], "bursts"),
        (closed(200, 4), "closed loop, 4 in flight"),
        ([row(i, 70 * i, 20) for i in range(5)], None),
    ],
)
def test_the_arrival_process_is_recognised(tmp_path: Path, rows: list[dict[str, Any]], process: str | None):
    found = arrivals_of(log_of(tmp_path, rows))
    assert found is not None
    assert found.process == process


def test_an_overloaded_open_loop_is_not_closed(tmp_path: Path):
    """Ends come every 50 ms at saturation, arrivals when they like."""
    rows, free = [], 0.0
    for r in poisson(300, 19):
        at = (r["arrival_ns"] - T0) / MS
        free = max(free, at) + 50
        rows.append(row(len(rows), at, free - at))
    found = arrivals_of(log_of(tmp_path, rows))
    assert found is not None
    assert found.process == "Poisson-like"


def test_the_rate_is_between_first_and_last_arrival(tmp_path: Path):
    found = arrivals_of(log_of(tmp_path, [row(i, 500 * i, 20) for i in range(7)]))
    assert found is not None
    assert (found.rate, found.max_in_flight) == (2.0, 1)


def test_observed_before_declared_before_missing(tmp_path: Path):
    log = log_of(tmp_path, [row(i, 70 * i, 20, input_tokens=100 + i, warmup=i < 3) for i in range(100)])
    declared = {"model": "7B dense, bf16", "gpu": "H100", "input_tokens": "150", "queueing_policy": "fcfs", "seed": "7"}
    fields, odd = contract(declared, Y, log, None, None)
    assert odd == []
    assert value(fields, "metric") == ("ttft p95", FieldSource.DECLARED)
    assert value(fields, "input_tokens") == ("p50 151 [103..199]", FieldSource.OBSERVED)
    assert value(fields, "device") == ("H100", FieldSource.DECLARED)
    assert value(fields, "precision") == ("bf16", FieldSource.DECLARED)
    assert value(fields, "queueing") == ("fcfs", FieldSource.DECLARED)
    assert value(fields, "warmup") == ("3 requests, left out", FieldSource.OBSERVED)
    assert value(fields, "error_rate") == ("0 of 97 requests", FieldSource.OBSERVED)
    assert value(fields, "seed") == ("7", FieldSource.DECLARED)
    missing = [f.name for f in fields if f.source is FieldSource.MISSING]
    assert [f.name for f in fields][-len(missing) :] == missing
    assert missing == ["load", "quality", "software", "clocks", "power", "driver"]
    assert missing == sorted(missing, key=FIELDS.index)
    assert all(f.value is None for f in fields if f.source is FieldSource.MISSING)


def test_nothing_known_at_all():
    fields, odd = contract({}, None, None, None, None)
    assert {f.source for f in fields} == {FieldSource.MISSING}
    assert odd == []
    assert not {"profiler", "graph_trace_mode"} & {f.name for f in fields}


@pytest.mark.parametrize(
    ("load", "part"),
    [
        ("20 requests/s", "declared load 20 requests/s, observed 14.3"),
        ("300 req/min", "declared load 5 requests/s"),
        ("14 rps, Poisson", "declared arrivals are poisson, the log's look like constant"),
        ("1 request at a time", "declared 1 in flight, observed up to 2"),
        ("14 requests/s, open loop, constant", None),
        ("2 in flight", None),
        ("as in production", None),
    ],
)
def test_a_declared_load_that_the_log_contradicts(tmp_path: Path, load: str, part: str | None):
    log = log_of(tmp_path, [row(i, 70 * i, 100) for i in range(100)])
    _, odd = contract({"load": load}, None, log, None, None)
    assert odd == [] if part is None else any(part in text for text in odd)


def test_declared_tokens_outside_the_observed_ones(tmp_path: Path):
    log = log_of(tmp_path, [row(i, 70 * i, 20) for i in range(20)])
    _, odd = contract({"input_tokens": "2048"}, None, log, None, None)
    assert odd == ["declared input_tokens 2048, observed p50 100 [100..100]"]


@needs_shared
@pytest.mark.parametrize("case", [f"0{n}" for n in (1, 2, 3, 4, 5, 8)])
def test_the_example_cases_do_not_contradict_themselves(case: str):
    fields, odd = of_folder(SHARED / "cases" / case)
    assert odd == []
    assert value(fields, "device")[0] == "NVIDIA H100 80GB HBM3"


@needs_shared
def test_trace_and_monitor_fill_the_contract():
    fields, _ = of_folder(SHARED / "cases" / "01")
    assert str(value(fields, "profiler")[0]).startswith("NVIDIA Nsight Systems 20")
    assert value(fields, "clocks")[1] is FieldSource.OBSERVED
    assert value(fields, "arrival_process")[0] == "too few requests to say (coefficient of variation 0.04)"
    fields, _ = of_folder(SHARED / "cases" / "03")
    assert value(fields, "offered_load")[0] == "9.7 requests/s (240 requests in 24.64 s)"
    assert str(value(fields, "arrival_process")[0]).startswith("Poisson-like")


@needs_shared
def test_another_device_is_said():
    case = load_case(SHARED / "cases" / "02")
    monitor = next(a.content for a in load_evidence(case) if isinstance(a.content, MonitorLog))
    _, odd = contract({"device": "A100 80GB"}, None, None, None, monitor)
    assert odd == ["declared device A100 80GB, the monitor is of NVIDIA H100 80GB HBM3"]
    assert contract({"device": "8 x H100"}, None, None, None, monitor)[1] == []
