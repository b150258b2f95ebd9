"""The files: they open, they hold what the run holds, and they take the shapes that tools wrote over the years."""

import csv
import json
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from scopedown.errors import UsageError
from scopedown.simulate import SITUATIONS, NsysOptions, truth_of, write_case, write_nsys
from scopedown.simulate.write_nsys import SCHEMAS, count_rows
from scopedown.trace.model import OpKind


def columns(path: Path, table: str) -> set[str]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return {row[1] for row in db.execute(f"PRAGMA table_info({table})")}


@pytest.mark.parametrize("name", [n for n, make in SITUATIONS.items() if make(1).run])
def test_export_holds_the_run(name: str, tmp_path: Path):
    write_case(name, 1, tmp_path)
    r = SITUATIONS[name](1).run.recorded
    kinds = [o.work.kind for o in r.ops]
    expected = {
        "CUPTI_ACTIVITY_KIND_KERNEL": kinds.count(OpKind.KERNEL) + kinds.count(OpKind.COLLECTIVE),
        "CUPTI_ACTIVITY_KIND_MEMCPY": kinds.count(OpKind.COPY),
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": kinds.count(OpKind.GRAPH),
        "CUPTI_ACTIVITY_KIND_RUNTIME": len(r.calls),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": len(r.syncs),
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": len(r.events),
        "NVTX_EVENTS": len(r.ranges) + len(r.traced_marks),
        "OSRT_API": len(r.os_calls),
    }
    assert count_rows(tmp_path / "evidence" / "report.sqlite", expected) == expected


@pytest.mark.parametrize("product", SCHEMAS)
def test_every_product_writes_its_own_shape(product: str, tmp_path: Path):
    run = SITUATIONS["module_load"](1).run
    path = tmp_path / "report.sqlite"
    counts = write_nsys(run, path, NsysOptions(product=product))
    old, new = SCHEMAS[product] < (3, 4), SCHEMAS[product] >= (3, 24)
    assert ("EXPORT_META_DATA" in counts) == old
    assert ("META_DATA_EXPORT" in counts) != old
    assert ("CUPTI_ACTIVITY_KIND_OVERHEAD" in counts) == new
    assert ("greenContextId" in columns(path, "CUPTI_ACTIVITY_KIND_KERNEL")) == (SCHEMAS[product] >= (3, 11))


def test_ops_join_their_calls_by_process_and_correlation(tmp_path: Path):
    write_case("two_processes", 1, tmp_path)
    with closing(sqlite3.connect(tmp_path / "evidence" / "report.sqlite")) as db:
        key = "o.correlationId = r.correlationId AND o.globalPid = (r.globalTid & ~16777215)"
        joined = f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL o JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON {key}"
        assert db.execute(joined).fetchone() == db.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
        assert db.execute(f"SELECT count(*) FROM ({joined} WHERE o.start < r.start)").fetchone()[0] == 1
        assert db.execute(f"{joined} WHERE o.start < r.start").fetchone()[0] == 0
        of_process = "globalPid = (SELECT {}(globalPid) FROM PROCESSES)"
        by_pid = f"SELECT correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE {of_process}"
        assert set(db.execute(by_pid.format("min"))) & set(db.execute(by_pid.format("max")))


def test_holes_and_cuts(tmp_path: Path):
    run = SITUATIONS["worked_example"](1).run
    path = tmp_path / "report.sqlite"
    whole = write_nsys(run, path)
    window = (run.mark("scheduled") + 20_000_000, run.mark("scheduled") + 60_000_000)
    api = "CUPTI_ACTIVITY_KIND_RUNTIME"
    left_out = frozenset({"OSRT_API", "NVTX_EVENTS.textId"})
    cut = write_nsys(run, path, NsysOptions(window=window, drop={api: 0.3}, leave_out=left_out))
    assert 0.1 < cut["CUPTI_ACTIVITY_KIND_KERNEL"] / whole["CUPTI_ACTIVITY_KIND_KERNEL"] < 0.6
    assert cut[api] < whole[api]
    assert "OSRT_API" not in cut
    assert "textId" not in columns(path, "NVTX_EVENTS")


@pytest.mark.parametrize(("texts", "by_id"), [("inline", 0), ("ids", 34), ("mixed", 17)])
def test_annotation_texts(texts: str, by_id: int, tmp_path: Path):
    path = tmp_path / "report.sqlite"
    write_nsys(SITUATIONS["worked_example"](1).run, path, NsysOptions(texts=texts))
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT count(*) FROM NVTX_EVENTS n JOIN StringIds s ON s.id = n.textId"
        assert db.execute(query).fetchone()[0] == by_id


def test_scheduling_rows_come_in_pairs(tmp_path: Path):
    path = tmp_path / "report.sqlite"
    write_nsys(SITUATIONS["os_wait"](1).run, path, NsysOptions(sched=True))
    with closing(sqlite3.connect(path)) as db:
        moves = dict(db.execute("SELECT isSchedIn, count(*) FROM SCHED_EVENTS GROUP BY 1"))
    assert moves[0] == moves[1] >= 40


def test_case_files(tmp_path: Path):
    truth = write_case("worked_example", 1, tmp_path)
    case = tomllib.loads((tmp_path / "case.toml").read_text(encoding="utf-8"))
    assert case["symptom"]["metric"] == "ttft"
    assert case["symptom"]["request"] == truth.situation.subject.id
    lines = (tmp_path / "evidence" / "requests.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {r["id"]: r for r in map(json.loads, lines)}
    row = rows[case["symptom"]["request"]]
    assert row["first_token_ns"] - row["arrival_ns"] == truth.observed_ns
    assert sum(bool(r.get("warmup")) for r in rows.values()) == 1
    with (tmp_path / "evidence" / "gpu.csv").open(encoding="utf-8", newline="") as f:
        header, *samples = csv.reader(f, skipinitialspace=True)
    assert header[3] == "utilization.gpu [%]"
    assert all(0 <= int(s[3].removesuffix(" %")) <= 100 for s in samples)
    assert {len(s) for s in samples} == {len(header)}


def test_same_seed_same_bytes(tmp_path: Path):
    for name in ("worked_example", "near_saturation"):
        files = []
        for side in ("a", "b"):
            write_case(name, 7, tmp_path / side)
            found = sorted((tmp_path / side).rglob("*.*"))
            files.append([(p.name, p.read_bytes()) for p in found if p.is_file()])
        assert files[0] == files[1]


def test_unknown_situation_is_one_clear_line(tmp_path: Path):
    with pytest.raises(UsageError, match="choose one of worked_example"):
        write_case("nothing_like_it", 1, tmp_path)


def test_by_hand(tmp_path: Path):
    command = [sys.executable, "-m", "scopedown.simulate", "slow_monitor", "--seed", "3", "-o", str(tmp_path / "case")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "right answer: measure at timeline" in shown
    assert (tmp_path / "case" / "evidence" / "gpu.csv").is_file()


def test_queue_truth_agrees_with_little():
    """Mean number in the system = arrival rate times mean time in it, for the simulated queue."""
    s = truth_of(SITUATIONS["near_saturation"](4)).situation
    span = max(r.tokens[0] for r in s.requests) - s.requests[0].queued
    inside = sum(r.tokens[0] - r.queued for r in s.requests)
    times = sorted([(r.queued, 1) for r in s.requests] + [(r.tokens[0], -1) for r in s.requests])
    level, area, last = 0, 0, times[0][0]
    for time, change in times:
        area += level * (time - last)
        level, last = level + change, time
    assert area == inside
    assert area / span == pytest.approx(len(s.requests) / span * (inside / len(s.requests)))
