"""Numbers that no clock, device or person has: rows are left out and counted, files and flags refused in one line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from robust.hostile import EPOCH, MS, TTFT, call, capture, case, changed, requests
from scopedown.errors import UsageError
from scopedown.units import LAST_NS, parse_duration, parse_rate, parse_time

LOW, HIGH = -(2**63), 2**63 - 1
EVENTS = (
    "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "NVTX_EVENTS",
    "OSRT_API",
)  # fmt: skip


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return capture(tmp_path / "t.sqlite", nvtx=[(1000 + i, 10**6 - i, f"r{i}") for i in range(5)])


@pytest.mark.parametrize("table", EVENTS)
@pytest.mark.parametrize("one", ["", " WHERE rowid = 3"], ids=["all", "one"])
@pytest.mark.parametrize(
    "change",
    [f"start = {LOW + 1}", f"end = {HIGH}", "end = start + 4611686018427387904", f"start = {-(2**60)}",
     f"end = start + {2**53 - 1}", "end = start - 5"],
)  # fmt: skip
def test_extreme_times_leave_an_exact_ledger(trace: Path, table: str, one: str, change: str) -> None:
    changed(trace, f"UPDATE {table} SET {change}{one}")
    call("diagnose", trace, "--json").exact()


def test_rows_with_no_time_are_counted(trace: Path) -> None:
    changed(trace, f"UPDATE OSRT_API SET start = {LOW + 1} WHERE rowid < 4")
    changed(trace, f"UPDATE SCHED_EVENTS SET start = {HIGH} WHERE rowid < 3")
    said = call("inspect", trace, "--json").json[0]["warnings"]
    assert "3 rows of OSRT_API have times that no clock shows: left out" in said
    assert "2 rows of SCHED_EVENTS have times that no clock shows: left out" in said


def test_many_long_rows_sum_to_what_fits(trace: Path) -> None:
    changed(trace, f"UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = start + {2**53}")
    call("diagnose", trace, "--json").exact()


def test_epoch_times_are_times(trace: Path) -> None:
    for table in EVENTS:
        changed(trace, f"UPDATE {table} SET start = start + {EPOCH}, end = end + {EPOCH}")
    done = call("diagnose", trace, "--json")
    done.exact()
    assert not any("no clock" in w for e in done.json["evidence"] for w in e["warnings"])


@pytest.mark.parametrize("value", [LOW, -1, HIGH, 2**62])
@pytest.mark.parametrize(
    "column", ["ANALYSIS_DETAILS.duration", "ANALYSIS_DETAILS.stopTime", "TARGET_INFO_SESSION_START_TIME.utcEpochNs"]
)
def test_extreme_facts_about_the_session_are_none(trace: Path, column: str, value: int) -> None:
    table, name = column.split(".")
    changed(trace, f"UPDATE {table} SET {name} = {value}")
    call("diagnose", trace, "--json").exact()


@pytest.mark.parametrize("device", [-5, 2**31 - 1, 2**31, 2**32 - 2, 2**40, HIGH, LOW])
@pytest.mark.parametrize("where", ["", " WHERE rowid = 3"])
def test_device_ids_need_no_memory_and_never_wrap(trace: Path, device: int, where: str) -> None:
    changed(trace, f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = {device}{where}")
    done = call("diagnose", trace, "--json")
    done.exact()
    said = [w for e in done.json["evidence"] for w in e["warnings"] if "beyond any number of devices" in w]
    assert len(said) == (device != 2**31 - 1)
    assert all(int(d["id"]) >= 0 for d in done.json["devices"])


@pytest.mark.parametrize("value", ["x", b"\x00", 1e300, math.inf])
def test_a_column_that_holds_no_integers_is_named(trace: Path, value: object) -> None:
    changed(trace, "UPDATE OSRT_API SET nestingLevel = ? WHERE rowid = 2", values=(value,))
    call("diagnose", trace).refused("table OSRT_API, column nestingLevel", "expected integers")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--from", str(LOW), "--to", str(HIGH)), "clock can count"),
        (("--to", "9223372036854775808"), "clock can count"),
        (("--to", "9" * 5000), "not an amount"),
        (("--offset", "1180591620717411303424"), "clock can count"),
        (("--from", "1e999999999 ms"), "clock can count"),
        (("--from=--5",), "not an amount"),
        (("--from", "1 ns" + " " * 5000 + "x"), "not an amount"),
        (("--step", "9" * 5000), "--step"),
        (("--step=-1",), "--step"),
        (("--range", ""), "name of a range"),
        (("--range", "#3"), "name of a range"),
        (("--range", "r1#" + "9" * 5000), "no such range"),
        (("--range", "r1#7"), "the capture has 1"),
        (("--from", "0", "--step", "1"), "one of the three"),
        (("--to", "5 us", "--range", "r1"), "one of the three"),
        (("--range", "r1", "--step", "1"), "one of the three"),
        (("--top", "9" * 5000), "--top"),
        (("--metric", "ttft", "--statistic", "p50", "--observed", "0.0000000001 ns"), "shorter than 1 ns"),
        (("--metric", "ttft", "--statistic", "p50", "--observed", "1e-999999999 ms"), "shorter than 1 ns"),
        (("--metric", "ttft", "--statistic", "p50", "--observed", "1e999999999 ms"), "clock can count"),
        (("--metric", "request_throughput", "--observed", "1e400 req/s"), "nothing has"),
        (("--metric", "request_throughput", "--observed", "1e-400 req/s"), "nothing has"),
        (("--metric", "cost", "--observed", "1e400 USD"), "nothing has"),
    ],
)
def test_flags_without_sense_are_refused(trace: Path, flags: tuple[str, ...], said: str) -> None:
    call("diagnose", trace, *flags).refused(said)


def test_the_longest_interval_is_exact(trace: Path) -> None:
    call("diagnose", trace, "--json", "--from", str(1 - LAST_NS), "--to", str(LAST_NS - 1)).exact()


def test_a_factor_keeps_times_in_range(trace: Path) -> None:
    call("whatif", trace, "--scale", "kernel:k=1e308").refused("from 0 to 1000")
    assert call("whatif", trace, "--scale", "kernel:k=1000", "--json").code == 0


def test_amounts_end_where_clocks_do() -> None:
    assert parse_duration("1e-99999999 s") == 0
    assert parse_time("-12") == -12
    assert parse_time("1.5 us") == 1500
    assert parse_duration(f"{LAST_NS - 1} ns") == LAST_NS - 1
    for text in (f"{LAST_NS} ns", "-1e30 h", "1e999999999 ns"):
        with pytest.raises(UsageError, match="clock can count"):
            parse_duration(text)
    with pytest.raises(UsageError):
        parse_time(str(LAST_NS))
    assert parse_rate("500 req/min") == pytest.approx(500 / 60)


@pytest.mark.parametrize(
    "toml",
    [
        '[symptom]\nmetric = "ttft"\nstatistic = "p50"\nobserved = "1e999999999 ms"\n',
        '[symptom]\nmetric = "ttft"\nstatistic = "p50"\nobserved = "0.0000000001 ns"\n',
        '[symptom]\nmetric = "ttft"\nstatistic = "p50"\nobserved = "5 ms"\nmaterial = "1e999999999 ms"\n',
        '[[evidence]]\npath = "evidence/requests.jsonl"\noffset = "1e999999999 ms"\n',
        '[[evidence]]\npath = "evidence/requests.jsonl"\noffset = "Europe/Nowhere"\n',
        '[[evidence]]\npath = "evidence/requests.jsonl"\noffset = "+99:00"\n',
        "[contract]\nx = " + "9" * 5000 + "\n",
        "[contract]\nx = 0x" + "f" * 5000 + "\n",
        "[contract]\nx = 1979-13-45\n",
        "x = " + "[" * 5000 + "]" * 5000 + "\n",
        "x = " + "{a=" * 5000 + "1" + "}" * 5000 + "\n",
    ],
    ids=range(11),
)
def test_a_case_that_holds_no_case_is_refused(tmp_path: Path, toml: str) -> None:
    done = call("diagnose", case(tmp_path / "c", toml))
    done.refused("case.toml")
    if "[[evidence]]" in toml:
        done.refused("[[evidence]] entry 1")


@pytest.mark.parametrize("rows", [(3,), range(12)], ids=["one", "all"])
@pytest.mark.parametrize("keys", [("arrival_ns",), ("arrival_ns", "sent_ns"), ("end_ns",), ("first_token_ns",)])
def test_stamps_of_two_clocks_in_a_request_are_refused(tmp_path: Path, keys: tuple[str, ...], rows: range) -> None:
    log = requests(tmp_path / "r.jsonl", *((row, dict.fromkeys(keys, 0)) for row in rows))
    call("diagnose", log, *TTFT).refused(f"request 'r{rows[0]}'", "one clock", "days apart")


@pytest.mark.parametrize("value", [2**61, 2**62, 2**63, 10**400, -1, 1e300])
def test_times_beyond_any_clock_are_refused_with_their_line(tmp_path: Path, value: float) -> None:
    log = requests(tmp_path / "r.jsonl", (4, {"scheduled_ns": value}))
    call("diagnose", log, *TTFT).refused("line 5")


@pytest.mark.parametrize("metric", ["ttft", "e2e", "queue_time"])
def test_a_server_may_have_its_own_zero(tmp_path: Path, metric: str) -> None:
    stamps = ((i, {"queued_ns": 50 * i * MS, "scheduled_ns": (50 * i + 3) * MS}) for i in range(12))
    log = requests(tmp_path / "r.jsonl", *stamps)
    call("diagnose", log, "--json", "--metric", metric, "--statistic", "max", "--observed", "40 ms").exact()


def test_a_log_may_have_requests_of_other_years(tmp_path: Path) -> None:
    old = dict.fromkeys(("arrival_ns", "sent_ns"), 1000) | {"first_token_ns": 2000, "end_ns": 3000, "token_ns": [2000]}
    log = requests(tmp_path / "r.jsonl", (0, old | {"queued_ns": None, "scheduled_ns": None}))
    call("diagnose", log, "--json", *TTFT).exact()


HEAD = "timestamp, index, name, utilization.gpu [%], clocks.current.sm [MHz], power.draw [W]\n"


@pytest.mark.parametrize("column", range(6))
@pytest.mark.parametrize("cell", ["1e308", "inf", "-5", "9" * 400, "x" * 200_000, "9223372036854775808", "nan"])
@pytest.mark.parametrize("every", [False, True])
def test_cells_of_a_monitor_are_numbers_or_nothing(tmp_path: Path, column: int, cell: str, every: bool) -> None:
    rows = []
    for k in range(40):
        cells = [f"2026/06/10 09:00:0{k // 10}.{k % 10}00", str(k % 2), "NVIDIA H100", "50 %", "1980 MHz", "300.0 W"]
        if every or k == 5:
            cells[column] = cell
        rows.append(", ".join(cells))
    monitor = tmp_path / "gpu.csv"
    monitor.write_text(HEAD + "\n".join(rows) + "\n")
    at = EPOCH + 500 * MS
    long = {"arrival_ns": at, "sent_ns": at, "first_token_ns": at + 3000 * MS, "end_ns": at + 3001 * MS}
    bare = {"token_ns": None, "queued_ns": None, "scheduled_ns": None}
    log = requests(tmp_path / "r.jsonl", *((i, long | bare) for i in range(12)))
    done = call("diagnose", log, monitor, "--json", *TTFT)
    if len(cell) > 131_072 or (every and column == 0):
        done.refused("gpu.csv")
    else:
        done.exact()
