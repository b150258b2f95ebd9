"""Nsight Systems exports: all public ones against SQL counts, and the oddities of the format one by one."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Source
from scopedown.read.nsys_sqlite import NsysSqlite
from scopedown.read.rows import show
from scopedown.terms import Scope
from scopedown.trace.model import NONE, CopyKind, HostKind, MemKind, OpKind, Trace
from shared_data import SHARED, needs_shared

NSYS = SHARED / "data" / "nsys"
EXPORTS = sorted([*NSYS.glob("*.sqlite"), *NSYS.glob("made_here/*.sqlite"), *NSYS.glob("made_here/*.sqlite.gz")])
CASES = sorted(SHARED.glob("cases/*/evidence/*.sqlite"))

Rows = list[dict[str, object]]
P1, P2 = 1 << 48 | 100 << 24, 1 << 48 | 200 << 24


def read(path: Path) -> Artifact:
    assert NsysSqlite().sniff(Source(path))
    return NsysSqlite().read(Source(path))


def trace_of(artifact: Artifact) -> Trace:
    assert isinstance(artifact.content, Trace)
    return artifact.content


def make(path: Path, tables: dict[str, Rows]) -> Path:
    """A database with these tables, their columns being the keys of the rows."""
    with closing(sqlite3.connect(path)) as db, db:
        for table, rows in tables.items():
            columns = list(dict.fromkeys(c for row in rows for c in row))
            listed = ", ".join(f'"{c}"' for c in columns)
            db.execute(f"CREATE TABLE {table} ({listed})")
            marks = ", ".join("?" * len(columns))
            db.executemany(f"INSERT INTO {table} VALUES ({marks})", [[row.get(c) for c in columns] for row in rows])
    return path


def strings(*texts: str) -> Rows:
    return [{"id": i, "value": text} for i, text in enumerate(texts)]


def kernel(start: int, end: int, **more: object) -> dict[str, object]:
    row = {"start": start, "end": end, "deviceId": 0, "streamId": 7, "correlationId": 1, "globalPid": P1}
    return row | {"demangledName": 0, "shortName": 0} | more


def call(start: int, end: int, **more: object) -> dict[str, object]:
    return {"start": start, "end": end, "globalTid": P1 + 1, "correlationId": 1, "nameId": 1} | more


SMALL = {
    "StringIds": strings("void f<int>(int)", "cudaLaunchKernel_v7000"),
    "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(300, 400)],
    "CUPTI_ACTIVITY_KIND_RUNTIME": [call(100, 200)],
}


@pytest.fixture(params=EXPORTS, ids=lambda p: p.name)
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path: Path = request.param
    if path.suffix != ".gz":
        return path
    plain = tmp_path / path.stem
    with gzip.open(path) as packed, plain.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return plain


@needs_shared
def test_all_29_public_exports_are_here() -> None:
    assert len(EXPORTS) == 29


def counted(db: sqlite3.Connection, table: str, where: str = "1") -> int:
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is None:
        return 0
    return int(db.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0])


@needs_shared
def test_counts_equal_sql(export: Path) -> None:
    artifact = read(export)
    with closing(sqlite3.connect(f"file:{export}?mode=ro&immutable=1", uri=True)) as db:
        cupti = "CUPTI_ACTIVITY_KIND_"
        python_domain = ""
        if counted(db, "NVTX_EVENTS", "eventType = 75 AND text = 'Python Backtrace'"):
            python_domain = (
                "AND (domainId NOT IN (SELECT domainId FROM NVTX_EVENTS WHERE eventType = 75 AND "
                "text = 'Python Backtrace') OR text IS NOT NULL OR textId IS NOT NULL)"
            )
        assert artifact.counts == {
            "kernels": counted(db, cupti + "KERNEL"),
            "copies": counted(db, cupti + "MEMCPY"),
            "memsets": counted(db, cupti + "MEMSET"),
            "graphs": counted(db, cupti + "GRAPH_TRACE"),
            "api_calls": counted(db, cupti + "RUNTIME"),
            "annotations": counted(db, "NVTX_EVENTS", "eventType IN (59, 60, 70, 71)"),
            "marks": counted(db, "NVTX_EVENTS", f"eventType IN (34, 65) {python_domain}"),
            "os_calls": counted(db, "OSRT_API", "nestingLevel IS NOT NULL"),
            "library_calls": 0,
            "overhead": counted(db, cupti + "OVERHEAD") + counted(db, "PROFILER_OVERHEAD"),
            "sync_records": counted(db, cupti + "SYNCHRONIZATION"),
            "event_records": counted(db, cupti + "CUDA_EVENT"),
            "scheduling": counted(db, "SCHED_EVENTS"),
            "stack_samples": counted(db, "COMPOSITE_EVENTS"),
        }


@needs_shared
def test_columns_are_whole_and_sorted(export: Path) -> None:
    artifact = read(export)
    trace = trace_of(artifact)
    ops, host = trace.ops, trace.host
    keys = np.stack([ops.start, ops.end, ops.device, ops.stream, ops.correlation], axis=1)
    assert keys.tolist() == sorted(keys.tolist())
    pairs = np.stack([host.start, -host.end], axis=1).tolist()
    assert pairs == sorted(pairs)
    for table in (ops, host):
        assert (table.start <= table.end).all()
        assert ((table.name >= 0) & (table.name < len(trace.names))).all()
        assert ((table.process >= 0) & (table.process < len(trace.processes))).all()
        assert (table.correlation != 0).all()
    assert ((host.thread >= NONE) & (host.thread < len(trace.threads))).all()
    for timed in (trace.scheduling, trace.samples):
        if timed is not None:
            assert (np.diff(timed.time) >= 0).all()
    # The window that the file states holds every device row.
    window = trace.meta.window
    if window and len(ops) and not artifact.path.name.startswith("h100x2"):
        assert window[0] <= ops.start[0]
        assert ops.end.max() <= window[1]
    assert artifact.scope is Scope.TIMELINE
    assert artifact.can_establish or artifact.cannot_establish


@needs_shared
def test_nothing_private_is_kept(export: Path) -> None:
    """Neither paths of homes, nor hosts or users, nor command lines or environment of the capture."""
    artifact = read(export)
    trace = trace_of(artifact)
    said = [*artifact.warnings, *artifact.can_establish, *artifact.cannot_establish, *trace.meta.options.values()]
    said += [p.name for p in trace.processes] + [artifact.producer, str(artifact.version), str(artifact.extra)]
    for text in said:
        assert "/home" not in text
        assert "host0" not in text
        assert "user0" not in text
    assert all("/" not in p.name and " " not in p.name for p in trace.processes)


@needs_shared
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.parts[-3])
def test_windows_on_another_clock_are_recognised(path: Path) -> None:
    """Here the rows lie between startTime and stopTime, not in [0, duration]."""
    trace = trace_of(read(path))
    assert trace.meta.window is not None
    start, stop = trace.meta.window
    assert start <= trace.host.start[0]
    assert trace.host.end.max() <= stop


# What single files teach


def shared(name: str) -> Artifact:
    return read(NSYS / name)


def busy_ns(trace: Trace, device: int) -> int:
    """Union of the device's ops, the slow and plain way."""
    total, reached = 0, -(2**62)
    mine = trace.ops.device == device
    for start, end in zip(trace.ops.start[mine].tolist(), trace.ops.end[mine].tolist(), strict=True):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


@needs_shared
def test_two_devices_busy_with_copies() -> None:
    artifact = shared("h100x2_train_nvtx_2026.2.sqlite")
    trace = trace_of(artifact)
    for device in (0, 1):
        mine = trace.ops.device == device
        span = int(trace.ops.end[mine].max() - trace.ops.start[mine].min())
        assert 0.99 < busy_ns(trace, device) / span < 1
    assert trace.ops.copy_kind is not None
    assert trace.ops.src_kind is not None
    pinned = (trace.ops.copy_kind == CopyKind.HTOD) & (trace.ops.src_kind == MemKind.PINNED)
    assert {trace.names[n] for n in np.unique(trace.ops.name[pinned])} == {"copy HtoD pinned"}
    full = [trace.names[n] for n in trace.host.name[trace.host.kind == HostKind.OVERHEAD]]
    assert full == ["command buffer full"] * 198
    assert trace.meta.window == (155330248986, 156330248986)
    assert any("cut after the capture" in w for w in artifact.warnings)
    assert any("not in the file" in w for w in artifact.warnings)
    assert trace.meta.options["CUDA_SKIP_SOME_API_CALLS"] == "true"
    assert trace.meta.monotonic_start_ns == 35255823190
    assert trace.events is None, "an empty table is no record"
    assert trace.syncs is not None
    assert (trace.syncs.event != 0xFFFFFFFF).all()


@needs_shared
def test_every_layer_of_one_file() -> None:
    artifact = shared("t4_nvtx_sparse_solve_2023.3.sqlite")
    trace = trace_of(artifact)
    assert trace.syncs is not None
    assert trace.scheduling is not None
    assert trace.samples is not None
    assert busy_ns(trace, 0) == 76_027_330
    assert [p.name for p in trace.processes][:1] == ["run_sparse"]
    joined = np.isin(trace.ops.correlation, trace.host.correlation[trace.host.kind == HostKind.API])
    assert joined.all()
    assert not any(n.endswith(("_v7000", "_v11020")) for n in trace.names)
    device = trace.meta.devices[0]
    assert device.name == "Tesla T4"
    assert device.properties["sm_count"] == 40
    assert device.properties["memory_bandwidth_bytes_per_s"] == 320_064_000_000


@needs_shared
def test_unified_memory_has_no_call() -> None:
    artifact = shared("a100_uvm_2022.2.sqlite")
    trace = trace_of(artifact)
    moved = np.isin(trace.ops.copy_kind, (CopyKind.UVM_HTOD, CopyKind.UVM_DTOH))
    assert moved.sum() == 1792
    assert (trace.ops.correlation[moved] == NONE).all()
    assert any("1792 of 1793 device ops name no call" in w for w in artifact.warnings)


@needs_shared
def test_units_of_the_oldest_export() -> None:
    trace = trace_of(shared("old_2419kernels_noGPUinfo.sqlite"))
    properties = trace.meta.devices[0].properties
    assert properties["clock_hz"] == 1_380_000_000
    assert properties["memory_bytes"] == 32510 * 2**20
    assert "memory_bandwidth_bytes_per_s" not in properties
    assert properties["compute_capability"] == "7.0"
    assert trace.meta.version is None
    assert trace.meta.window is None


@needs_shared
def test_texts_inline_and_by_id() -> None:
    trace = trace_of(shared("nvtx_only_titanrtx_2022.4.sqlite"))
    assert int((trace.host.kind == HostKind.RANGE).sum()) == 1350
    assert "unnamed range" not in {trace.names[n] for n in np.unique(trace.host.name)}
    assert trace.host.start.min() >= 0, "the domains created 10.9 s before are no events"


@needs_shared
def test_missing_columns_and_a_negative_start() -> None:
    artifact = shared("derived_h100_6tables.sqlite")
    trace = trace_of(artifact)
    assert trace.host.start[0] == -3000
    assert artifact.interval_ns == (0, 403990000)
    assert any("negative" in w for w in artifact.warnings)
    assert trace.syncs is None
    assert len(trace.processes) == 1
    assert np.isin(trace.ops.correlation, trace.host.correlation).all()


@needs_shared
@pytest.mark.parametrize("name", ["nogpu_nocuda_2023.4.sqlite", "julia_a100_nvtx_cpu_2026.2.sqlite"])
def test_no_device_rows(name: str) -> None:
    artifact = shared(name)
    assert any("no device rows" in c for c in artifact.cannot_establish)
    assert len(trace_of(artifact).ops) == 0


@needs_shared
def test_module_loading_is_named() -> None:
    trace = trace_of(shared("mini_rtx3080_2026.1.sqlite"))
    over = trace.host.take(trace.host.kind == HostKind.OVERHEAD)
    names = [trace.names[n] for n in over.name[over.correlation != NONE]]
    assert names.count("module loading") == 4
    assert names.count("lazy function loading") == 2


@needs_shared
def test_lost_events_are_counted_and_told_once() -> None:
    artifact = shared("osrt_only_a5000_2025.3.sqlite")
    assert trace_of(artifact).meta.dropped == 4
    told = [w for w in artifact.warnings if "CUDA profiling might have not been started" in w]
    assert len(told) == 1
    assert "27 times" in told[0]
    assert artifact.path.name in told[0]


@needs_shared
def test_captures_made_with_a_truth() -> None:
    folder = NSYS / "made_here"
    for name, truth in json.loads((folder / "expected.json").read_text()).items():
        artifact = read(folder / f"{name}.sqlite")
        trace = trace_of(artifact)
        host = trace.host.take(trace.host.kind == HostKind.ANNOTATION)
        assert len(host) == truth["nvtx_ranges"]
        for text, total in truth.get("range_total_ns", {}).items():
            mine = host.name == trace.names.index(text)
            assert int((host.end - host.start)[mine].sum()) == total
        assert any("NVTX domains and no range" in w for w in artifact.warnings) is truth.get("must_warn", False)
        assert any("Python samples" in w for w in artifact.warnings) is ("profiler_domain" in truth)


# What the public files do not have


def test_graphs_traced_whole(tmp_path: Path) -> None:
    tables = SMALL | {
        "StringIds": strings("f", "cudaGraphLaunch_v10000"),
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(10, 20, correlationId=7)],
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [kernel(300, 900, graphId=5, graphExecId=6)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(100, 200), call(1000, 1100, correlationId=2)],
    }
    artifact = read(make(tmp_path / "graph.sqlite", tables))
    trace = trace_of(artifact)
    assert artifact.counts["graphs"] == 1
    assert trace.ops.kind.tolist() == [OpKind.KERNEL, OpKind.GRAPH]
    assert trace.names[trace.ops.name[1]] == "CUDA graph 5"
    assert any("traced whole" in c for c in artifact.cannot_establish)
    assert any("1 of 2 graph launches" in c for c in artifact.cannot_establish)


def test_graph_nodes_and_collectives(tmp_path: Path) -> None:
    tables = SMALL | {
        "StringIds": strings("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(Args)", "cudaGraphLaunch_v10000"),
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(300, 400, graphNodeId=9), kernel(500, 600, correlationId=2)],
    }
    trace = trace_of(read(make(tmp_path / "nodes.sqlite", tables)))
    assert trace.ops.kind.tolist() == [OpKind.COLLECTIVE] * 2
    assert trace.ops.graph_node is not None
    assert trace.ops.graph_node.tolist() == [9, NONE]


def test_devices_that_processes_number_for_themselves(tmp_path: Path) -> None:
    tables = SMALL | {
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(300, 400), kernel(300, 500, globalPid=P2)],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 0, "cudaId": 0, "pid": 100}, {"gpuId": 3, "cudaId": 0, "pid": 200}],
        "TARGET_INFO_GPU": [{"id": 3, "name": "GPU three", "smCount": 8}, {"id": 9, "name": "adapter", "smCount": 0}],
    }
    trace = trace_of(read(make(tmp_path / "ordinals.sqlite", tables)))
    assert trace.ops.device.tolist() == [0, 3]
    assert [(d.id, d.name) for d in trace.meta.devices] == [(0, None), (3, "GPU three")]
    del tables["TARGET_INFO_CUDA_DEVICE"]
    artifact = read(make(tmp_path / "mixed.sqlite", tables))
    assert trace_of(artifact).ops.device.tolist() == [0, 0]
    assert any("several processes" in w for w in artifact.warnings)


def test_correlation_ids_belong_to_a_process(tmp_path: Path) -> None:
    tables = SMALL | {
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(300, 400), kernel(310, 400, globalPid=P2)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(100, 200)],
        "PROCESSES": [{"globalPid": P1, "pid": 100, "name": "/opt/venv/bin/python -m serve --secret x"}],
    }
    artifact = read(make(tmp_path / "two.sqlite", tables))
    assert [(p.pid, p.name) for p in trace_of(artifact).processes] == [(100, "python"), (200, "")]
    assert any("the call of 1 of 2 device ops" in w for w in artifact.warnings)


def test_open_ranges_end_with_the_capture(tmp_path: Path) -> None:
    nvtx = {"eventType": 59, "globalTid": P1 + 1, "text": None, "textId": None, "domainId": 0}
    tables = SMALL | {
        "NVTX_EVENTS": [
            nvtx | {"start": 50, "end": None, "text": "open"},
            nvtx | {"start": 60, "end": 70, "textId": 0},
            nvtx | {"start": 65, "end": None, "text": "now", "eventType": 34},
            nvtx | {"start": None, "end": 9, "text": "no start"},
            nvtx | {"start": 90, "end": 80, "text": "backward"},
            nvtx | {"start": -500, "end": None, "text": "domain", "eventType": 75},
            nvtx | {"start": 1, "end": None, "text": "category", "eventType": 33},
        ],
        "ANALYSIS_DETAILS": [{"duration": 1000, "startTime": 77_000, "stopTime": 78_000}],
    }
    artifact = read(make(tmp_path / "open.sqlite", tables))
    trace = trace_of(artifact)
    host = trace.host.take(trace.host.kind != HostKind.API)
    found = [(trace.names[n], s, e) for n, s, e in zip(host.name, host.start, host.end, strict=True)]
    assert found == [("open", 50, 1000), ("void f<int>(int)", 60, 70), ("now", 65, 65), ("backward", 90, 90)]
    assert trace.meta.window == artifact.interval_ns == (0, 1000)
    assert "1 ranges were still open at the end of the capture" in artifact.warnings
    assert any("without start" in w for w in artifact.warnings)
    assert any("end before they start" in w for w in artifact.warnings)


def test_nulls_and_rows_in_no_order(tmp_path: Path) -> None:
    tables = SMALL | {
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            kernel(900, 950, correlationId=None, demangledName=None),
            kernel(None, 5),  # type: ignore[arg-type]
            kernel(300, 400, globalPid=None),
            kernel(100, 200, demangledName=77, shortName=None),
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(500, 600, globalTid=None), call(100, 200, nameId=None)],
    }
    artifact = read(make(tmp_path / "nulls.sqlite", tables))
    trace = trace_of(artifact)
    assert trace.ops.start.tolist() == [100, 300, 900]
    assert trace.ops.correlation.tolist() == [1, 1, NONE]
    assert [trace.names[n] for n in trace.ops.name] == ["unnamed kernel", "void f<int>(int)", "void f<int>(int)"]
    assert trace.host.thread.tolist()[1] == NONE
    assert "1 rows of CUPTI_ACTIVITY_KIND_KERNEL without start or end were left out" in artifact.warnings


@pytest.mark.parametrize(
    "column", ["globalPid", "streamId", "correlationId", "deviceId", "demangledName", "shortName", "end"]
)
def test_missing_kernel_columns(tmp_path: Path, column: str) -> None:
    rows = [{k: v for k, v in kernel(300, 400).items() if k != column}]
    artifact = read(make(tmp_path / "less.sqlite", SMALL | {"CUPTI_ACTIVITY_KIND_KERNEL": rows}))
    assert artifact.counts["kernels"] == (0 if column == "end" else 1)


@pytest.mark.parametrize("column", ["globalTid", "correlationId", "nameId"])
def test_missing_api_columns(tmp_path: Path, column: str) -> None:
    rows = [{k: v for k, v in call(100, 200).items() if k != column}]
    artifact = read(make(tmp_path / "less.sqlite", SMALL | {"CUPTI_ACTIVITY_KIND_RUNTIME": rows}))
    assert artifact.counts["api_calls"] == 1


@needs_shared
@pytest.mark.parametrize("table", ["NVTX_EVENTS", "OSRT_API", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "PROCESSES"])
def test_any_column_of_a_real_export_may_be_missing(tmp_path: Path, table: str) -> None:
    original = NSYS / "t4_nvtx_sparse_solve_2023.3.sqlite"
    with closing(sqlite3.connect(original)) as db:
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    for column in columns:
        path = tmp_path / f"{column}.sqlite"
        shutil.copyfile(original, path)
        path.chmod(0o600)
        rest = ", ".join(f'"{c}"' for c in columns if c != column)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(f"CREATE TABLE rebuilt AS SELECT {rest} FROM {table}")
            db.execute(f"DROP TABLE {table}")
            db.execute(f"ALTER TABLE rebuilt RENAME TO {table}")
        assert read(path).counts["kernels"] == 1221
        path.unlink()


@pytest.mark.parametrize(
    ("normalize", "shift", "axis"), [("false", "0", 0), ("true", "0", 1_700_000_000_000_000_000), ("false", "-40", -40)]
)
def test_shifted_times(tmp_path: Path, normalize: str, shift: str, axis: int) -> None:
    tables = SMALL | {
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(300 + axis, 400 + axis)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(100 + axis, 200 + axis)],
        "META_DATA_EXPORT": [
            {"name": "EXPORT_PARAM_TIME_NORMALIZE", "value": normalize},
            {"name": "EXPORT_PARAM_TIME_SHIFT", "value": shift},
        ],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_000, "systemClockNs": 5000}],
        "ANALYSIS_DETAILS": [{"duration": 1000, "startTime": 1, "stopTime": 2}],
    }
    artifact = read(make(tmp_path / "shift.sqlite", tables))
    meta = trace_of(artifact).meta
    assert meta.utc_start_ns == 1_700_000_000_000_000_000 - axis
    assert meta.monotonic_start_ns == 5000 - axis
    assert meta.window == (axis, axis + 1000)
    assert any("by the export" in w for w in artifact.warnings) is bool(axis)


def test_only_named_options_are_kept(tmp_path: Path) -> None:
    capture = {
        "PROCESS_0:COMMAND": "/home/someone/secret",
        "PROCESS_0:ENVIRONMENT_VARIABLE": "TOKEN=hunter2",
        "PROCESS_0:CUDA_SKIP_SOME_API_CALLS": "false",
        "CUDA_SKIP_SOME_API_CALLS": "true",
        "CUDA_GRAPH_TRACE_OPTIONS:MODE": "Node",
        "START_TRIGGER": "<script>alert(1)</script>",
        "DEVICE_DISPLAY_NAME": "box",
    }
    rows: Rows = [{"name": k, "value": v} for k, v in capture.items()]
    artifact = read(make(tmp_path / "options.sqlite", SMALL | {"META_DATA_CAPTURE": rows}))
    assert trace_of(artifact).meta.options == {
        "CUDA_GRAPH_TRACE_OPTIONS:MODE": "Node",
        "CUDA_SKIP_SOME_API_CALLS": "true",
    }
    assert any("left them out" in c for c in artifact.cannot_establish)


def test_diagnostics_hide_homes(tmp_path: Path) -> None:
    rows: Rows = [{"severity": 3, "text": "Lost 12 events of /home/someone/run\nsecond line"}] * 3
    rows += [{"severity": 1, "text": "all is well"}, {"severity": 4, "text": "chatter"}, {"severity": 2, "text": None}]
    artifact = read(make(tmp_path / "d.sqlite", SMALL | {"DIAGNOSTIC_EVENT": rows}))
    assert artifact.warnings == ("d.sqlite: nsys says (3 times): Lost 12 events of ~/run",)
    assert trace_of(artifact).meta.dropped == 3


def test_long_kernel_names_keep_their_family(tmp_path: Path) -> None:
    long = "void at::native::reduce_kernel<512, 1, " + "at::native::ReduceOp<float>, " * 20 + "float>(T3)"
    tables = SMALL | {"StringIds": strings(long, "cudaLaunchKernel_v7000")}
    trace = trace_of(read(make(tmp_path / "long.sqlite", tables)))
    assert [trace.names[n] for n in trace.ops.name] == ["at::native::reduce_kernel"]


def test_library_and_mpi_calls(tmp_path: Path) -> None:
    rows = [{"start": 10, "end": 20, "globalTid": P1 + 1, "textId": 0}]
    artifact = read(make(tmp_path / "mpi.sqlite", SMALL | {"MPI_COLLECTIVES_EVENTS": rows}))
    assert artifact.counts["library_calls"] == 1


# Files that are not what they should be


def test_other_databases_are_not_ours(tmp_path: Path) -> None:
    other = make(tmp_path / "other.sqlite", {"rocpd_string": [{"id": 1}], "users": [{"name": "x"}]})
    assert not NsysSqlite().sniff(Source(other))
    (tmp_path / "text").write_text("NVTX_EVENTS")
    assert not NsysSqlite().sniff(Source(tmp_path / "text"))
    (tmp_path / "magic").write_bytes(b"SQLite format 3\0" + bytes(200))
    assert not NsysSqlite().sniff(Source(tmp_path / "magic"))


@needs_shared
@pytest.mark.parametrize("share", [0.05, 0.1, 0.5, 0.9, 0.99])
def test_truncated_export(tmp_path: Path, share: float) -> None:
    original = (NSYS / "t4_nvtx_sparse_solve_2023.3.sqlite").read_bytes()
    path = tmp_path / "cut.sqlite"
    path.write_bytes(original[: int(len(original) * share)])
    assert NsysSqlite().sniff(Source(path))
    with pytest.raises(InputError, match=r"cut\.sqlite \((schema|table).*SQLite says: .*; export it again"):
        NsysSqlite().read(Source(path))


@needs_shared
@pytest.mark.parametrize("seed", range(12))
def test_damaged_export_reads_or_says_so(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    raw = bytearray((NSYS / "mini_rtx3080_2026.1.sqlite").read_bytes())
    for _ in range(40):
        at = dice.randrange(100, len(raw) - 64)
        raw[at : at + 64] = dice.randbytes(64)
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(raw)
    said = ""
    try:
        NsysSqlite().read(Source(path))
    except InputError as e:
        said = str(e)
    assert "\n" not in said


def test_values_that_are_no_integers(tmp_path: Path) -> None:
    rows = [kernel(300, 400, streamId="seven")]
    path = make(tmp_path / "text.sqlite", SMALL | {"CUPTI_ACTIVITY_KIND_KERNEL": rows})
    with pytest.raises(InputError, match="expected integers"):
        read(path)


def test_write_ahead_log(tmp_path: Path) -> None:
    """Rows that are still in the log count; a log that was checkpointed does not disturb."""
    path = make(tmp_path / "wal.sqlite", SMALL)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        with db:
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, globalPid) "
                "VALUES (1, 2, 0, 7, ?)",
                (P1,),
            )
        assert Path(f"{path}-wal").stat().st_size
        assert read(path).counts["kernels"] == 2
    assert read(path).counts["kernels"] == 2


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "locked #1 50%?"
    folder.mkdir()
    yield folder
    folder.chmod(0o700)


def test_read_only_folder_with_a_name_to_quote(locked: Path) -> None:
    path = make(locked / "r%20 ?#.sqlite", SMALL)
    path.chmod(0o400)
    locked.chmod(0o500)
    assert read(path).counts["kernels"] == 1
    assert os.listdir(locked) == [path.name]  # noqa: PTH208


def test_invalid_utf8(tmp_path: Path) -> None:
    path = make(tmp_path / "bytes.sqlite", SMALL)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE StringIds SET value = CAST(x'66ff28' AS TEXT) WHERE id = 0")
    assert trace_of(read(path)).names[0:3].count("f\ufffd(") == 1


def test_views_and_virtual_tables_do_not_run(tmp_path: Path) -> None:
    path = make(tmp_path / "view.sqlite", SMALL)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
            "SELECT i AS start, i AS end FROM n"
        )
    assert read(path).counts["annotations"] == 0


def test_module_shows_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make(tmp_path / "small.sqlite", SMALL)
    assert show(NsysSqlite(), [str(path)]) == 0
    out = capsys.readouterr().out
    assert "kernels 1" in out
    assert "cannot establish: what a wait waited for" in out
