"""Every format: times that no clock shows, damage, depth, and text that patterns would take for ever with."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from make.rocm import rocprofv3_object, write_rocpd, write_rocprofv1, write_rpd
from make.xplane import xspace
from robust.hostile import call
from scopedown.simulate import random_program, run
from scopedown.simulate.run import Run


@pytest.fixture(scope="module")
def small() -> Run:
    return run(random_program(3, steps=3))


def answered(path: Path) -> None:
    done = call("diagnose", path, "--json")
    if done.code == 2:
        done.refused(path.name)
    else:
        done.exact()


VALUES = (-(2**63), 2**63 - 1, 2**61 - 1, 2**53 - 1, -1, 2**32)


@pytest.mark.parametrize("write", [write_rocpd, write_rpd, write_rocprofv1])
def test_times_and_ids_of_a_database(tmp_path: Path, small: Run, write: Callable[[Run, Path], Path]) -> None:
    whole = write(small, tmp_path / "whole.db")
    columns = {"start", "end", "beginns", "endns", "agent_id", "gpuid", "dev-id", "stream_id", "queue_id", "stack_id"}
    with closing(sqlite3.connect(whole)) as db:
        tables = [t for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        filled = [t for t in tables if db.execute(f'SELECT 1 FROM "{t}" LIMIT 1').fetchone()]
        info = "SELECT name FROM pragma_table_info(?)"
        places = [(t, n) for t in filled for (n,) in db.execute(info, (t,)).fetchall() if n.lower() in columns]
    assert len(places) >= 6
    path = tmp_path / "changed.db"
    for n, (table, column) in enumerate(places):
        shutil.copyfile(whole, path)
        with closing(sqlite3.connect(path)) as db:
            some = " WHERE rowid % 2" * (n % 2)
            db.execute(f'UPDATE "{table}" SET "{column}" = ?{some}', (VALUES[n % len(VALUES)],))
            db.commit()
        answered(path)


def numbers(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where an object holds integers; of each list the first two items."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, (*place, key))
    elif isinstance(value, list):
        for at, item in enumerate(value[:2]):
            yield from numbers(item, (*place, at))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield place


def test_times_and_ids_of_a_json_trace(tmp_path: Path, small: Run) -> None:
    text = json.dumps(rocprofv3_object(small))
    path = tmp_path / "results.json"
    for n, place in enumerate(list(numbers(json.loads(text)))[::2]):
        changed = item = json.loads(text)
        for key in place[:-1]:
            item = item[key]
        item[place[-1]] = (*VALUES, 2**64, 10**30, "x", None)[n % 10]
        path.write_text(json.dumps(changed))
        answered(path)


def test_a_damaged_profile(tmp_path: Path, small: Run) -> None:
    whole, rng = xspace(small), random.Random(5)
    path = tmp_path / "x.xplane.pb"
    for _ in range(80):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3, 10))):
            data[rng.randrange(len(data))] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        if rng.random() < 0.3:
            at = rng.randrange(len(data))
            data[at:at] = b"\xff" * 9 + b"\x01"
        path.write_bytes(data)
        answered(path)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "text",
    [
        f'{{"arrival_ns": 1, "id": "a", "x": {DEEP}}}\n', f'{{"ttfts": {DEEP}}}',
        f'{{"rocprofiler-sdk-tool": [{DEEP}]}}',
        f'{{"traceEvents": {DEEP}}}', f'{{"gpu_data": [{{"gpu": 0, "x": {DEEP}}}]}}', f'{{"card0": {{"x": {DEEP}}}}}',
        f'{{"generative_benchmark": {DEEP}}}', f'{{"mean_ttft_ms": 1, "x": {DEEP}}}',
        f'{{"timestamp": 1, "input_length": {DEEP}}}',
        "<nvidia_smi_log>" + "<a>" * 50_000 + "</a>" * 50_000 + "</nvidia_smi_log>", DEEP, '{"a":' * 50_000,
    ],
    ids=range(12),
)  # fmt: skip
def test_depth_is_refused_or_left_out(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep"
    path.write_text(text)
    call("diagnose", path).refused(str(path))
    done = call("inspect", path, "--json")
    assert done.code == 0 or done.refused(str(path)) is None


N = 200_000
LONG = {
    "brackets": "[" * N, "pairs": "[[" * N, "looks": "<nvidia_smi_log>" * (N // 16), "spaces": " " * N + "x",
    "lines": "\n" * N, "quotes": '"' * N, "titles": "# a :: b\n" * (N // 9), "commands": "# $ " * (N // 4),
    "labels": "DCGM_FI_A{" * (N // 10), "label": 'DCGM_FI_A{g="' + '\\"' * (N // 2), "names": "DCGM_FI_A\n" * (N // 10),
    "cards": "device,\n" + "card0,\n" * (N // 7), "stamps": '{"timestamp":' * (N // 13), "digits": "1" * N,
    "columns": "timestamp, index, utilization.gpu\n" + "2026/06/10 09:00:00.0," * (N // 22),
    "remarks": "WARNING\n" * (N // 8),
}  # fmt: skip


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_no_text_takes_the_square_of_its_length(tmp_path: Path, text: str) -> None:
    path = tmp_path / "long"
    path.write_text(text)
    begin = time.process_time()
    call("diagnose", path).refused()
    assert time.process_time() - begin < 2
