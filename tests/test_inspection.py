from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from request_logs import MS, row, write
from scopedown.cli import main
from scopedown.errors import InputError
from scopedown.inspection import Inspected, inspect
from scopedown.trace.coverage import merged, union_ns
from shared_data import SHARED, needs_shared

FIELDS = [
    *("path", "sha256", "kind", "why", "scope", "producer", "version", "interval_ns", "utc_start_ns", "counts"),
    *("devices", "coverage", "launches", "requests", "can_establish", "cannot_establish", "warnings"),
]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=30))
def test_union(pairs: list[tuple[int, int]]) -> None:
    start = np.array([a for a, _ in pairs], np.int64)
    end = start + np.array([b for _, b in pairs], np.int64)
    covered = {t for a, b in zip(start.tolist(), end.tolist(), strict=True) for t in range(a, b)}
    assert union_ns(start, end) == len(covered)
    starts, ends = merged(start, end)
    assert (starts[1:] > ends[:-1]).all()


def test_fields_and_unknown_files(tmp_path: Path) -> None:
    assert list(Inspected.__struct_fields__) == FIELDS
    write(tmp_path, [row(n, n, n + 1) for n in range(10)] + [row(10, 0, 5, status="error")])
    (tmp_path / "notes.txt").write_text("hello")
    notes, log = inspect([tmp_path])
    assert notes.kind is None
    assert notes.why
    assert log.kind == "requests-jsonl"
    assert log.requests is not None
    assert (log.requests.count, log.requests.ok) == (11, 10)
    assert log.requests.ttft_ns is not None
    assert (log.requests.ttft_ns["p50"], log.requests.ttft_ns["p95"]) == (5 * MS, 10 * MS)
    assert log.requests.tpot_ns is not None
    assert log.requests.tpot_ns["p50"] == MS


def test_missing_and_empty_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for path in (tmp_path / "no", tmp_path / "empty"):
        with pytest.raises(InputError):
            inspect([path])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, [row(n, n, n + 1) for n in range(10)], "a\x1b[31m.jsonl")
    assert main(["inspect", str(path), "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert isinstance(found, list)
    assert list(found[0]) == FIELDS
    assert main(["inspect", str(path)]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "TTFT" in text
    os.mkfifo(tmp_path / "pipe")
    assert main(["inspect", str(tmp_path / "pipe")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_new_makes_a_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, folder = write(tmp_path, [row(0, 0, 10)]), tmp_path / "my case"
    complaint = ["--metric", "ttft", "--statistic", "p95", "--observed", "10 ms", "--contract", "model=x"]
    assert main(["new", str(folder), str(path), *complaint]) == 0
    assert "'" in capsys.readouterr().out
    assert main(["new", str(folder), str(path), *complaint]) == 2
    assert main(["new", str(tmp_path / "b"), "--metric", "ttft"]) == 2
    assert main(["new", str(tmp_path / "c"), "--contract", "model"]) == 2


@needs_shared
@pytest.mark.parametrize(
    ("name", "ops", "busy"), [("gh200_jacobi_2023.4", 5004, 0.989), ("t4_nvtx_sparse_solve_2023.3", 2448, 0.478)]
)
def test_real_timelines(name: str, ops: int, busy: float) -> None:
    (found,) = inspect([SHARED / "data" / "nsys" / f"{name}.sqlite"])
    (device,) = found.devices
    assert device.ops == ops
    assert device.busy_ns / device.span_ns == pytest.approx(busy, abs=5e-4)
    assert device.busy_ns + device.idle_ns == device.span_ns
    assert found.coverage is not None
    assert found.coverage["launches_without_op"] == 0


@needs_shared
def test_real_folders_never_end_in_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("device", "requests", "metrics", "otel", "sass", "jax"):
        assert main(["inspect", str(SHARED / "data" / folder), "--json"]) in (0, 2)
        capsys.readouterr()
    for item in (SHARED / "data" / "device").glob("*.gz"):
        (tmp_path / item.stem).write_bytes(gzip.decompress(item.read_bytes()))
    assert main(["inspect", str(tmp_path), "--json"]) == 0
    kinds = {Path(f["path"]).name: f["kind"] for f in json.loads(capsys.readouterr().out)}
    assert kinds["smi_query_rtx4090_vlm.csv"] == "nvidia-smi-csv"
    assert kinds["smi_capture_h100.txt"] == "nvidia-smi-look"
