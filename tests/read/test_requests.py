from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from request_logs import MS, T0, log_of, row, write
from scopedown.errors import InputError
from scopedown.read import detect, expand, load
from scopedown.read.base import UNKNOWN, RequestLog, Source
from shared_data import SHARED, needs_shared


def read(path: Path) -> RequestLog:
    content = load(path).content
    assert isinstance(content, RequestLog)
    return content


def test_columns_and_absent_values(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        [
            {"id": 7, "arrival_ns": T0, "token_ns": [T0 + 5, T0 + 9], "chunk_tokens": [1, 3], "extra": {"a": 1}},
            {"id": "b", "sent_ns": T0 + 1, "status": "error", "error": "503", "warmup": True},
        ],
    )
    assert log.id == ["7", "b"]
    assert log.first_token.tolist() == [T0 + 5, UNKNOWN]
    assert log.output_tokens.tolist() == [4, UNKNOWN]
    assert log.token_offsets.tolist() == [0, 2, 2]
    assert log.warmup.tolist() == [False, True]
    assert log.error == [None, "503"]


def test_whole_floats_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b'{"id": "a", "arrival_ns": 1.781082e18, "token_ns": [1781082000000000512.0]}\n')
    assert read(path).arrival.tolist() == [T0]


@pytest.mark.parametrize(
    ("line", "where", "what"),
    [
        ('{"id": "a", "arrival_ns": "soon"}', "line 2, arrival_ns", "expected `int"),
        ('{"id": "a", "arrival_ns": 1.5}', "line 2, arrival_ns", "expected `int"),
        ('{"id": "a", "arrival_ns": -1}', "line 2, arrival_ns", ">= 0"),
        ('{"id": "a", "arrival_ns": true}', "line 2, arrival_ns", "expected `int"),
        ('{"id": "a", "end_ns": 99999999999999999999999}', "line 2, end_ns", "<="),
        ('{"id": "a", "token_ns": [1, "x"]}', "line 2, token_ns[1]", "expected `int"),
        ('{"id": "a", "status": "fine"}', "line 2, status", "fine"),
        ('{"id": "a", "token_ns": [1], "chunk_tokens": [1, 2]}', "line 2, chunk_tokens", "1"),
        ('{"arrival_ns": 1}', "line 2", "`id`"),
        ("[1]", "line 2", "object"),
        ("oops", "line 2", "JSON"),
        ('{"id": "a", "arrival_ns": NaN}', "line 2", "JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, where: str, what: str) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text('{"id": "ok", "arrival_ns": 1}\n' + line + "\n" + '{"id": "ok2", "arrival_ns": 2}\n')
    with pytest.raises(InputError) as error:
        load(path)
    assert error.value.where == where
    assert what in error.value.expected
    assert "\n" not in str(error.value)


def test_a_cut_last_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text('{"id": "a", "arrival_ns": 1}\n{"id": "b", "arr')
    artifact = load(path)
    assert artifact.counts["requests"] == 1
    assert any("line 2 is cut off" in w for w in artifact.warnings)
    path.write_text('{"id": "a", "arrival_ns": 1}\n{"id": "b", "arrival_ns": 2}')
    assert load(path).counts["requests"] == 2


def test_bom_crlf_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'\xef\xbb\xbf\r\n{"id": "a", "arrival_ns": 1}\r\n\r\n{"id": "b", "arrival_ns": 2}\r\n')
    assert read(path).id == ["a", "b"]


def test_broken_identities_are_counted(tmp_path: Path) -> None:
    rows = [row(0, 0, 10), row(1, 5, 10, end_ns=T0), row(1, 9, 10, sent_ns=T0)]
    artifact = load(write(tmp_path, rows))
    assert artifact.extra["broken_identities"] == {"arrival <= sent": 1, "first token <= end": 1, "sent <= end": 1}
    assert any("more than once" in w for w in artifact.warnings)


def test_unordered_chunks_are_sorted_with_their_sizes(tmp_path: Path) -> None:
    path = write(tmp_path, [{"id": "a", "arrival_ns": 1, "token_ns": [9, 5], "chunk_tokens": [2, 1]}])
    artifact = load(path)
    assert isinstance(artifact.content, RequestLog)
    assert artifact.content.token_times.tolist() == [5, 9]
    assert artifact.content.chunk_tokens is not None
    assert artifact.content.chunk_tokens.tolist() == [1, 2]
    assert any("out of order" in w for w in artifact.warnings)


def test_replies_that_were_not_streamed(tmp_path: Path) -> None:
    rows = [row(n, n, 10, output_tokens=50) for n in range(3)]
    for r in rows:
        r["end_ns"] = r["first_token_ns"]
    assert any("not streamed" in w for w in load(write(tmp_path, rows)).warnings)
    for r in rows:
        r["output_tokens"] = 1
    assert not load(write(tmp_path, rows)).warnings


@pytest.mark.parametrize(("scale", "unit"), [(10**9, "seconds"), (10**6, "milliseconds"), (10**3, "microseconds")])
def test_times_in_another_unit_are_noticed(tmp_path: Path, scale: int, unit: str) -> None:
    rows = [{"id": "a", "arrival_ns": T0 // scale, "end_ns": T0 // scale + 1}]
    assert any(unit in w for w in load(write(tmp_path, rows)).warnings)


def test_what_a_log_can_establish(tmp_path: Path) -> None:
    bare = load(write(tmp_path, [row(0, 0, 10)]))
    assert any("no server stamps" in c for c in bare.cannot_establish)
    full = load(write(tmp_path, [row(0, 0, 10, queued_ns=T0, scheduled_ns=T0 + 1)]))
    assert any("queue" in c for c in full.can_establish)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "empty"),
        (b"\x1f\x8b\x08\x00", "gz data.*damaged"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "LFS"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "args": {"arrival_ns": 1}}]}', "PyTorch trace"),
        (b"NVR\x00rest", "Nsight Compute"),
        (b"SQLite format 3\x00", "SQLite"),
        (b'[{"id": "a"}]', "JSON array"),
        (b'{"a": 1}', "JSON of no known format"),
        (b"2026/04/25 16:06:06.780, 0 %, 0 %\n", "without their header"),
        (b"hello\n", "no known format"),
        (b"\x00\x01", "binary"),
    ],
)
def test_what_is_no_evidence_is_named(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=what):
        load(path)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path / "pipe", "regular"), (tmp_path, "folder"), (tmp_path / "no", "no such file")):
        with pytest.raises(InputError, match=what):
            load(path)
    with pytest.raises(InputError, match="regular"):
        load(Path("/dev/null"))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InputError):
        load(tmp_path / "loop")


def test_expand(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("z.txt", "b/a.txt", ".hidden", "[x].txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    names = [str(p.relative_to(tmp_path)) for p in expand([tmp_path])]
    assert names == ["[x].txt", "b/a.txt", "z.txt"]
    assert expand([tmp_path / "[x].txt"]) == [tmp_path / "[x].txt"]
    assert expand([tmp_path / "*.txt", tmp_path / "z.txt"]) == [tmp_path / "[x].txt", tmp_path / "z.txt"]
    with pytest.raises(InputError, match="matches no file"):
        expand([tmp_path / "*.nothing"])


@needs_shared
def test_the_example_cases(tmp_path: Path) -> None:
    for case in sorted((SHARED / "cases").glob("0*")):
        path = case / "evidence" / "requests.jsonl"
        reader = detect(Source(path))
        assert reader is not None
        assert reader.kind == "requests-jsonl"
        artifact = load(path)
        assert not artifact.extra["broken_identities"]
        log = artifact.content
        assert isinstance(log, RequestLog)
        assert (log.first_token > log.arrival).all()
        assert np.diff(log.arrival).min() >= 0
        assert artifact.interval_ns is not None
        assert artifact.interval_ns[1] - artifact.interval_ns[0] >= MS
