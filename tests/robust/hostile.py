"""Files and command lines that mean harm, and what the product may do with them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from scopedown.cli import main
from scopedown.simulate import nsys_schema

PID = 7 << 24
EPOCH = 1_781_082_000_000_000_000
MS = 1_000_000
TTFT = ("--metric", "ttft", "--statistic", "p95", "--observed", "40 ms")

TABLES = (
    "StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME",
    "NVTX_EVENTS", "OSRT_API", "SCHED_EVENTS", "PROCESSES", "ANALYSIS_DETAILS", "TARGET_INFO_SESSION_START_TIME",
)  # fmt: skip
NAMES = {1: "cudaLaunchKernel_v7000", 2: "void k(int)", 3: "cudaStreamSynchronize_v3020", 4: "poll", 5: "cudaMemcpy"}


class Done:
    """What a command line did."""

    def __init__(self, code: int, out: bytes, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def refused(self, *words: str) -> None:
        """Exit code 2 and one line, short and without a character that acts, which says all of ``words``."""
        assert self.code == 2, (self.code, self.err)
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        assert len(self.err) < 700
        assert self.err[:-1].isprintable()
        assert not self.out
        for word in words:
            assert word in self.err, self.err

    def exact(self) -> None:
        """Exit code 0, and a ledger whose lines are times and sum to the whole."""
        assert self.code == 0, self.err
        ledger = self.json["ledger"]
        assert sum(line["ns"] for line in ledger["lines"]) == ledger["total_ns"]
        assert all(line["ns"] >= 0 for line in ledger["lines"])
        assert ledger["interval_ns"][1] - ledger["interval_ns"][0] == ledger["total_ns"]


class _Out(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)


def call(*words: str | Path) -> Done:
    """The command line in this process: warnings are errors here."""
    out, err = _Out(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(w) for w in words])
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.buffer.getvalue(), err.getvalue())  # type: ignore[attr-defined]


def start(*words: str | Path, **more: Any) -> subprocess.Popen[bytes]:
    """The same as a process of its own."""
    env = {**os.environ, **more.pop("env", {})}
    return subprocess.Popen([sys.executable, "-m", "scopedown", *map(str, words)], env=env, **more)


def capture(
    path: Path,
    *,
    threads: int = 1,
    streams: int = 1,
    calls: int = 60,
    nvtx: Iterable[tuple[int, int, str]] = (),
    names: dict[int, str] | None = None,
    wal: bool = False,
) -> Path:
    """An export with launches, kernels, copies, waits and polls, in turn on each thread and stream."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        if wal:
            db.execute("PRAGMA journal_mode=WAL")
        columns = nsys_schema.tables((3, 20))
        for table in TABLES:
            body = ", ".join(f"{c} {kind.replace(' NOT NULL', '')}" for c, kind in columns[table].items())
            db.execute(f"CREATE TABLE {table} ({body})")

        def add(table: str, names: str, rows: Iterable[tuple[Any, ...]]) -> None:
            marks = ", ".join("?" for _ in names.split(","))
            db.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)

        add("StringIds", "id, value", (NAMES | (names or {})).items())
        add("PROCESSES", "globalPid, pid, name", [(PID, 7, "python")])
        add("ANALYSIS_DETAILS", "globalVid, duration, startTime, stopTime", [(1, calls * 20_000 + 20_000, 5, 6)])
        add("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", [(EPOCH,)])
        add("NVTX_EVENTS", "start, end, text, eventType, globalTid", ((*row, 59, PID | 1) for row in nvtx))
        api, kernels, copies, waits = [], [], [], []
        for i in range(calls):
            at, tid, stream = 1000 + 20_000 * i, PID | (i % threads + 1), i % streams + 1
            copy = i % 5 == 4
            api += [(at, at + 5000, tid, i + 1, 5 if copy else 1), (at + 5500, at + 17_000, tid, calls + i + 1, 3)]
            op = (at + 6000, at + 16_000, 0, 1, stream, i + 1, PID)
            (copies if copy else kernels).append((*op, 4096, 1) if copy else (*op, 2, 2))
            waits.append((at + 17_100, at + 19_000, tid, 4, 0))
        add("CUPTI_ACTIVITY_KIND_RUNTIME", "start, end, globalTid, correlationId, nameId", api)
        op_columns = "start, end, deviceId, contextId, streamId, correlationId, globalPid"
        add("CUPTI_ACTIVITY_KIND_KERNEL", f"{op_columns}, demangledName, shortName", kernels)
        add("CUPTI_ACTIVITY_KIND_MEMCPY", f"{op_columns}, bytes, copyKind", copies)
        add("OSRT_API", "start, end, globalTid, nameId, nestingLevel", waits)
        add("SCHED_EVENTS", "start, cpu, isSchedIn, globalTid", [(500 + i, 0, i % 2, PID | 1) for i in range(8)])
        db.commit()
    return path


def changed(path: Path, *statements: str, values: tuple[Any, ...] = ()) -> Path:
    with contextlib.closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement, values)
        db.commit()
    return path


def requests(path: Path, *changes: tuple[int, dict[str, Any]]) -> Path:
    """Twelve requests, some with other stamps; None takes a key away."""
    rows: list[dict[str, Any]] = []
    for i in range(12):
        at = EPOCH + i * 50 * MS
        rows.append(
            {
                "id": f"r{i}", "arrival_ns": at, "sent_ns": at, "first_token_ns": at + 20 * MS, "end_ns": at + 30 * MS,
                "token_ns": [at + 20 * MS, at + 25 * MS], "queued_ns": at + 2 * MS, "scheduled_ns": at + 5 * MS,
                "input_tokens": 100, "output_tokens": 2,
            }
        )  # fmt: skip
    for row, change in changes:
        rows[row] |= change
    path.write_text("".join(json.dumps({k: v for k, v in r.items() if v is not None}) + "\n" for r in rows))
    return path


def case(folder: Path, toml: str) -> Path:
    """A case folder with one request log and the given ``case.toml``."""
    (folder / "evidence").mkdir(parents=True)
    requests(folder / "evidence" / "requests.jsonl")
    (folder / "case.toml").write_text(toml)
    return folder


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    with contextlib.chdir(folder):
        yield
