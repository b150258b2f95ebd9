"""ROCm's timelines: the public files against SQL and JSON of their own, and the oddities of each format one by one."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from make.rocm import BOOT, GUID, SECRET, make, rocpd_tables, rocprofv3_object, write_rocpd, write_rocprofv1, write_rpd
from scopedown.answer import diagnose
from scopedown.case import case_from_files
from scopedown.errors import InputError
from scopedown.inspection import of_artifact
from scopedown.options import Options
from scopedown.read import READERS, detect, load
from scopedown.read.base import Artifact, Source
from scopedown.read.rocm import copy_kind
from scopedown.read.rocpd import Rocpd
from scopedown.read.rows import show
from scopedown.simulate import SITUATIONS, Run
from scopedown.terms import Kind, Scope
from scopedown.trace.model import NONE, CopyKind, HostKind, OpKind, Trace
from scopedown.trace.names import ApiMeaning, api_meaning
from shared_data import SHARED, needs_shared

ROCM = SHARED / "data" / "rocprof"
ROCPD = ("rocpd_mi300x_ck_gemm_results.db.gz", "rocpd_mi300x_hipblas_results.db.gz")
JSON = "rocprofv3_908_results.json.gz"
FILES = {
    **dict.fromkeys(ROCPD, "rocpd"),
    JSON: "rocprofv3-json",
    "old_rpd_matmul.rpd": "rpd",
    "rocprofv1_results.db": "rocprofv1",
    "hipprof_small.db": "rocprofv1",
}


def simulated(name: str = "worked_example") -> Run:
    made = SITUATIONS[name](1).run
    assert made is not None
    return made


def trace_of(artifact: Artifact) -> Trace:
    assert isinstance(artifact.content, Trace)
    return artifact.content


def plain(name: str, folder: Path) -> Path:
    """The public file without compression."""
    if not name.endswith(".gz"):
        return ROCM / name
    path = folder / name.removesuffix(".gz")
    with gzip.open(ROCM / name) as packed, path.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return path


def union(spans: list[tuple[int, int]]) -> int:
    total, reached = 0, -(2**62)
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def sql(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute(query).fetchall()


# The public files


@needs_shared
@pytest.mark.parametrize("name", FILES)
def test_every_file_is_recognised(name: str) -> None:
    reader = detect(Source(ROCM / name))
    assert reader is not None
    assert reader.kind == FILES[name]
    assert [r.kind for r in READERS if r.sniff(Source(ROCM / name))] == [FILES[name]]


@needs_shared
@pytest.mark.parametrize(("name", "kernels", "calls"), [(ROCPD[0], 151, 629), (ROCPD[1], 301, 624)])
def test_rocpd_equals_its_own_views(name: str, kernels: int, calls: int, tmp_path: Path) -> None:
    path = plain(name, tmp_path)
    artifact = load(ROCM / name)
    trace = trace_of(artifact)
    assert (artifact.counts["kernels"], artifact.counts["api_calls"]) == (kernels, calls)
    assert sql(path, "SELECT count(*) FROM kernels") == [(kernels,)]
    rows = sql(path, "SELECT start, end, name, agent_type_index, stack_id, grid_x / workgroup_x FROM kernels")
    ops = trace.ops
    assert ops.grid is not None
    mine = zip(ops.start.tolist(), ops.end.tolist(), ops.name.tolist(), ops.device.tolist(), strict=True)
    found = [(s, e, trace.names[n], d) for s, e, n, d in mine]
    assert [(s, e, d) for s, e, _, d in found] == [(s, e, d) for s, e, _, d, *_ in sorted(rows)]
    assert ops.correlation.tolist() == [r[4] for r in sorted(rows)]
    assert ops.grid[:, 0].tolist() == [r[5] for r in sorted(rows)]
    regions = sql(path, "SELECT start, end, name FROM regions ORDER BY start, -end")
    host = trace.host
    assert [
        (s, e, trace.names[n])
        for s, e, n in zip(host.start.tolist(), host.end.tolist(), host.name.tolist(), strict=True)
    ] == regions
    (device,) = of_artifact(artifact).devices
    assert device.busy_ns == union([(s, e) for s, e, *_ in rows])
    assert device.span_ns == max(r[1] for r in rows) - min(r[0] for r in rows)
    # The file's own share of busy time is a sum over kernels; they overlap by some ns.
    share = sql(path, "SELECT Busy FROM busy")[0][0]
    assert device.busy_ns / device.span_ns == pytest.approx(share, rel=1e-3)
    assert device.name == "AMD Instinct MI300X"
    assert trace.meta.window == sql(path, "SELECT init, fini FROM rocpd_info_process")[0]
    assert artifact.utc_start_ns is None


@needs_shared
def test_every_op_of_rocpd_has_its_call() -> None:
    for name in ROCPD:
        inspected = of_artifact(load(ROCM / name))
        assert inspected.coverage is not None
        assert inspected.coverage["ops_without_launch"] == 0
        assert inspected.coverage["launches_without_op"] == 0


@needs_shared
def test_json_equals_its_records(tmp_path: Path) -> None:
    (one,) = json.loads(plain(JSON, tmp_path).read_bytes())["rocprofiler-sdk-tool"]
    records = one["buffer_records"]["kernel_dispatch"]
    names = {s["kernel_id"]: s["formatted_kernel_name"] for s in one["kernel_symbols"]}
    artifact = load(ROCM / JSON)
    trace = trace_of(artifact)
    assert artifact.counts["kernels"] == len(records) == 43_915
    records.sort(key=lambda r: (r["start_timestamp"], r["end_timestamp"]))
    assert trace.ops.start.tolist() == [r["start_timestamp"] for r in records]
    assert trace.ops.end.tolist() == [r["end_timestamp"] for r in records]
    assert sorted(trace.ops.correlation.tolist()) == sorted(r["correlation_id"]["internal"] for r in records)
    nccl = sum(names[r["dispatch_info"]["kernel_id"]].startswith("nccl") for r in records)
    assert int((trace.ops.kind == OpKind.COLLECTIVE).sum()) == nccl > 0
    (device,) = of_artifact(artifact).devices
    assert device.busy_ns == union([(r["start_timestamp"], r["end_timestamp"]) for r in records]) == 4_233_112_334
    assert "who launched the work: there are no launch records" in artifact.cannot_establish
    assert any("instruction traces (80 files)" in w for w in artifact.warnings)


@needs_shared
def test_rpd_equals_sql() -> None:
    path = ROCM / "old_rpd_matmul.rpd"
    artifact = load(path)
    trace = trace_of(artifact)
    assert {k: n for k, n in artifact.counts.items() if n} == {
        "kernels": 29, "copies": 55, "memsets": 1, "api_calls": 120, "overhead": 5,
    }  # fmt: skip
    rows = sql(path, "SELECT start, end FROM rocpd_op ORDER BY start, end")
    assert list(zip(trace.ops.start.tolist(), trace.ops.end.tolist(), strict=True)) == rows
    (device,) = of_artifact(artifact).devices
    assert device.busy_ns == union(rows)
    joined = sql(path, "SELECT o.start, j.api_id FROM rocpd_op o JOIN rocpd_api_ops j ON j.op_id = o.id ORDER BY 1")
    assert trace.ops.correlation.tolist() == [i for _, i in joined]
    sizes = sql(path, "SELECT size, start FROM copyop ORDER BY start")
    assert trace.ops.bytes is not None
    assert trace.ops.bytes[trace.ops.kind == OpKind.COPY].tolist() == [s for s, _ in sizes]
    kernels = sql(path, "SELECT kernelName FROM kernel ORDER BY start")
    mine = [trace.names[n] for n in trace.ops.name[trace.ops.kind == OpKind.KERNEL].tolist()]
    assert mine[0] == kernels[0][0] or len(kernels[0][0]) > 300
    assert any("800 to 1700 MHz in 15 spans" in c for c in artifact.can_establish)


@needs_shared
def test_rocprofv1_equals_sql() -> None:
    path = ROCM / "rocprofv1_results.db"
    artifact = load(path)
    trace = trace_of(artifact)
    assert {k: n for k, n in artifact.counts.items() if n} == {"kernels": 1, "copies": 3, "api_calls": 13}
    rows = sql(path, 'SELECT BeginNs, EndNs, "Index" FROM OPS UNION ALL SELECT BeginNs, EndNs, "Index" FROM COPY')
    assert trace.ops.correlation.tolist() == [i for *_, i in sorted(rows)]
    (device,) = of_artifact(artifact).devices
    assert device.busy_ns == union([(s, e) for s, e, _ in rows])
    kinds = trace.ops.copy_kind
    assert kinds is not None
    assert kinds.tolist() == [CopyKind.HTOD, CopyKind.HTOD, NONE, CopyKind.DTOH]


#: What ``diagnose`` answers on each file: kind, scope, total in ns (first to last row of the program).
ANSWERS = {
    ROCPD[0]: (Kind.MEASURE, Scope.FRAMEWORK, 4_220_528_510),
    ROCPD[1]: (Kind.CHANGE, Scope.TIMELINE, 932_616_403),
    JSON: (Kind.MEASURE, Scope.TIMELINE, 15_122_023_494),
    "old_rpd_matmul.rpd": (Kind.MEASURE, Scope.FRAMEWORK, 3_269_027_080),
    "rocprofv1_results.db": (Kind.CHANGE, Scope.TIMELINE, 2_154_619_700),
    "hipprof_small.db": (Kind.RECAPTURE, Scope.TIMELINE, 1),
}


@needs_shared
@pytest.mark.parametrize("name", FILES)
def test_answer(name: str) -> None:
    r = diagnose(case_from_files([ROCM / name]), Options(cache=False))
    assert (r.decision.kind, r.decision.scope, r.ledger.total_ns) == ANSWERS[name]
    assert sum(line.ns for line in r.ledger.lines) == r.ledger.total_ns


@needs_shared
def test_the_total_is_that_of_the_rows(tmp_path: Path) -> None:
    for name in ROCPD:
        ((lo, hi),) = sql(plain(name, tmp_path), "SELECT min(start), max(end) FROM regions")
        assert ANSWERS[name][2] == hi - lo
    ((lo, hi),) = sql(ROCM / "rocprofv1_results.db", "SELECT min(BeginNs), max(EndNs) FROM HIP")
    assert ANSWERS["rocprofv1_results.db"][2] == hi - lo
    ((lo, hi),) = sql(ROCM / "old_rpd_matmul.rpd", "SELECT min(start), max(end) FROM rocpd_api WHERE id < 1 << 31")
    assert ANSWERS["old_rpd_matmul.rpd"][2] == hi - lo


@needs_shared
def test_an_empty_database_is_an_answer() -> None:
    artifact = load(ROCM / "hipprof_small.db")
    assert not any(artifact.counts.values())
    assert artifact.producer == "hipprof"
    assert any("the capture is empty" in w for w in artifact.warnings)


# The formats, one oddity each


def test_nothing_private_is_kept(tmp_path: Path) -> None:
    made = simulated()
    (tmp_path / "j").write_text(json.dumps(rocprofv3_object(made)), encoding="utf-8")
    paths = [write_rocpd(made, tmp_path / "a"), write_rocprofv1(made, tmp_path / "b"), tmp_path / "j"]
    for path in paths:
        artifact = load(path)
        trace = trace_of(artifact)
        said = repr((artifact.warnings, artifact.extra, trace.names, trace.processes, trace.threads, trace.meta))
        assert SECRET not in said
        assert "hunter2" not in said
        assert "someone" not in said
        assert "box" not in said


def test_tables_without_guid_and_merged_sessions(tmp_path: Path) -> None:
    one = rocpd_tables(simulated(), suffix="")
    assert load(make(tmp_path / "plain", one)).counts == load(write_rocpd(simulated(), tmp_path / "guid")).counts
    merged = {
        t: rows
        for suffix in ("_0000406d_08bf_78bf_9160_047813fc7bfc", "_0000406e_08bf_78bf_9160_047813fc7bfc")
        for t, rows in rocpd_tables(simulated(), suffix=suffix).items()
    }
    artifact = load(make(tmp_path / "merged", merged))
    trace = trace_of(artifact)
    assert artifact.counts["kernels"] == 2 * load(tmp_path / "guid").counts["kernels"]
    assert len(trace.processes) == 2 * len(simulated().program.processes)
    assert of_artifact(artifact).coverage["ops_without_launch"] == 0  # type: ignore[index]


def test_nodes_of_a_merged_database_have_devices_of_their_own(tmp_path: Path) -> None:
    merged: dict[str, list[dict[str, object]]] = {}
    for node, digit in ((7, "d"), (8, "e")):
        suffix = f"_0000406{digit}_08bf_78bf_9160_047813fc7bfc"
        tables = rocpd_tables(simulated(), suffix=suffix)
        agents = f"rocpd_info_agent{suffix}"
        merged |= tables | {agents: [a | {"nid": node} for a in tables[agents]]}
    trace = trace_of(load(make(tmp_path / "nodes", merged)))
    assert len(trace.meta.devices) == 2 * len(simulated().program.devices)


def test_markers_and_messages(tmp_path: Path) -> None:
    trace = trace_of(load(write_rocpd(simulated(), tmp_path / "m")))
    r = simulated().recorded
    kinds = trace.host.kind
    found = sorted(trace.names[n] for n in trace.host.name[kinds == HostKind.ANNOTATION].tolist())
    assert found == sorted(s.name for s in r.ranges)
    marks = sorted(trace.names[n] for n in trace.host.name[kinds == HostKind.MARK].tolist())
    assert marks == sorted(s.name for s in r.traced_marks)


def test_views_of_the_file_do_not_run(tmp_path: Path) -> None:
    path = write_rocpd(simulated(), tmp_path / "v")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE VIEW rocpd_kernel_dispatch AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
            "SELECT i AS start, i AS end FROM n"
        )
    assert load(path).counts["kernels"] > 0


@pytest.mark.parametrize("table", ["rocpd_event", "rocpd_info_agent", "rocpd_info_kernel_symbol", "rocpd_string"])
def test_any_table_of_names_may_be_missing(table: str, tmp_path: Path) -> None:
    tables = {t: rows for t, rows in rocpd_tables(simulated()).items() if not t.startswith(table)}
    artifact = load(make(tmp_path / "less", tables))
    assert artifact.counts["kernels"] > 0
    if table == "rocpd_event":
        assert "who launched the work: there are no launch records" in artifact.cannot_establish


def test_any_column_may_be_missing(tmp_path: Path) -> None:
    suffix = "_" + GUID.replace("-", "_")
    tables = rocpd_tables(simulated())
    for table in ("rocpd_kernel_dispatch", "rocpd_region", "rocpd_event", "rocpd_info_process", "rocpd_info_agent"):
        for column in tables[table + suffix][0]:
            if column in ("start", "end"):
                continue
            less = [{k: v for k, v in row.items() if k != column} for row in tables[table + suffix]]
            path = make(tmp_path / f"{table}-{column}", tables | {table + suffix: less})
            assert load(path).counts["kernels"] > 0, (table, column)


def test_rows_without_times_are_left_out_and_counted(tmp_path: Path) -> None:
    suffix = "_" + GUID.replace("-", "_")
    tables = rocpd_tables(simulated())
    kernels = tables["rocpd_kernel_dispatch" + suffix]
    kernels[0] |= {"start": 0, "end": 0}
    kernels[1] |= {"end": kernels[1]["start"] - 5}  # type: ignore[operator]
    artifact = load(make(tmp_path / "zero", tables))
    assert "1 rows of rocpd_kernel_dispatch without start or end were left out" in artifact.warnings
    assert "1 kernels end before they start: taken as instants" in artifact.warnings
    assert trace_of(artifact).ops.start.min() > BOOT


def test_queues_order_the_work_where_streams_were_not_followed(tmp_path: Path) -> None:
    suffix = "_" + GUID.replace("-", "_")
    tables = rocpd_tables(simulated("side_stream"))
    rows = tables["rocpd_kernel_dispatch" + suffix]
    for row in rows:
        row["queue_id"], row["stream_id"] = row["stream_id"], 0
    trace = trace_of(load(make(tmp_path / "q", tables)))
    assert len(set(trace.ops.stream.tolist())) > 1


def test_hipprof_names_and_columns(tmp_path: Path) -> None:
    artifact = load(write_rocprofv1(simulated(), tmp_path / "h", hygon=True))
    amd = load(write_rocprofv1(simulated(), tmp_path / "a"))
    assert artifact.producer == "hipprof"
    assert artifact.counts == amd.counts
    one, other = trace_of(artifact), trace_of(amd)
    assert [one.names[n] for n in one.host.name] == [other.names[n] for n in other.host.name]
    assert one.ops.correlation.tolist() == other.ops.correlation.tolist()


def test_rpd_records_of_the_tracer_are_overhead(tmp_path: Path) -> None:
    path = write_rpd(simulated(), tmp_path / "r")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO rocpd_string VALUES (9001, 'OpTable::writeRows')")
        last = db.execute("SELECT max(end) FROM rocpd_api").fetchone()[0]
        db.execute(
            "INSERT INTO rocpd_api (id, pid, tid, start, end, apiName_id) VALUES (?, 1, 1, ?, ?, 9001)",
            (2**31 + 1, last + 5, last + 10),
        )
    assert load(path).counts["overhead"] == 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MEMORY_COPY_HOST_TO_DEVICE", CopyKind.HTOD),
        ("CopyDeviceToHost", CopyKind.DTOH),
        ("CopyDeviceToDevice2D", CopyKind.DTOD),
        ("MEMORY_COPY_NONE", CopyKind.UNKNOWN),
    ],
)
def test_directions(name: str, kind: CopyKind) -> None:
    assert copy_kind(name) is kind


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("hipLaunchKernel_spt", ApiMeaning.LAUNCH),
        ("hipExtModuleLaunchKernel", ApiMeaning.LAUNCH),
        ("hipExtLaunchKernel", ApiMeaning.LAUNCH),
        ("hipGraphLaunch", ApiMeaning.GRAPH_LAUNCH),
        ("hipMemcpyWithStream", ApiMeaning.COPY),
        ("hipMemcpyDtoDAsync", ApiMeaning.COPY),
        ("hipDrvMemcpy3D", ApiMeaning.COPY),
        ("hipMemsetD32Async", ApiMeaning.MEMSET),
        ("hipExtMallocWithFlags", ApiMeaning.ALLOC),
        ("hipModuleLoadData", ApiMeaning.MODULE),
        ("__hipRegisterFatBinary", ApiMeaning.MODULE),
        ("hipEventSynchronize", ApiMeaning.SYNC),
        ("hipGetDevicePropertiesR0600", ApiMeaning.OTHER),
        ("__hipPushCallConfiguration", ApiMeaning.OTHER),
        ("hsa_signal_wait_scacquire", ApiMeaning.SYNC),
        ("hsa_amd_memory_async_copy_on_engine", ApiMeaning.COPY),
        ("hsa_amd_memory_copy_engine_status", ApiMeaning.OTHER),
        ("hsa_amd_memory_pool_allocate", ApiMeaning.ALLOC),
        ("hsa_executable_freeze", ApiMeaning.MODULE),
        ("hsa_signal_load_relaxed", ApiMeaning.OTHER),
    ],
)
def test_meanings(name: str, meaning: ApiMeaning) -> None:
    assert api_meaning(name) is meaning


# Files that are not what they should be


@needs_shared
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("name", [ROCPD[0], "old_rpd_matmul.rpd", JSON])
def test_cut_files_are_one_line(name: str, share: float, tmp_path: Path) -> None:
    whole = plain(name, tmp_path).read_bytes()
    path = tmp_path / "cut"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError, match=r"copy it again|no known schema") as caught:
        load(path)
    assert "\n" not in str(caught.value)


@needs_shared
@pytest.mark.parametrize("seed", range(8))
def test_damaged_files_read_or_say_so(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    for name in (ROCPD[1], "old_rpd_matmul.rpd", "rocprofv1_results.db"):
        raw = bytearray(plain(name, tmp_path).read_bytes())
        for _ in range(30):
            at = dice.randrange(100, len(raw) - 64)
            raw[at : at + 64] = dice.randbytes(64)
        path = tmp_path / "damaged"
        path.write_bytes(raw)
        said = ""
        try:
            load(path)
        except InputError as error:
            said = str(error)
        assert "\n" not in said


@pytest.mark.parametrize(
    "text",
    [
        '{"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [{"start_timestamp": "x"}]}}]}',
        '{"rocprofiler-sdk-tool": [{"kernel_symbols": 5}]}',
        '{"rocprofiler-sdk-tool": [',
        '{"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [{"start_timestamp": 1e30}]}}]}',
    ],
)
def test_json_that_is_something_else(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="is damaged or cut short"):
        load(path)


def test_json_without_records_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{\n  "rocprofiler-sdk-tool": [{}]\n}', encoding="utf-8")
    assert any("the capture is empty" in w for w in load(path).warnings)


def test_values_that_are_no_integers(tmp_path: Path) -> None:
    suffix = "_" + GUID.replace("-", "_")
    tables = rocpd_tables(simulated())
    tables["rocpd_region" + suffix][0]["tid"] = "seven"
    with pytest.raises(InputError, match="expected integers"):
        load(make(tmp_path / "text", tables))


def test_the_module_shows_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(Rocpd(), [str(write_rocpd(simulated(), tmp_path / "m"))]) == 0
    out = capsys.readouterr().out
    assert "kernels" in out
    assert "cannot establish: what a wait waited for" in out
