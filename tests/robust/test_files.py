"""What is on the disk when a run is killed, doubled, or its files change beneath it: whole files, or none."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from robust.hostile import TTFT, call, capture, case, inside, requests, start

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
SYMPTOM = '[symptom]\nmetric = "ttft"\nstatistic = "p95"\nobserved = "40 ms"\n'


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def hidden(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("flag", ["--save", "--json"])
def test_a_killed_run_leaves_a_whole_file_or_the_old_one(tmp_path: Path, flag: str) -> None:
    folder = case(tmp_path / "c", SYMPTOM)
    target = folder / "report.json" if flag == "--save" else tmp_path / "out"
    words = ("diagnose", folder, flag) if flag == "--save" else ("diagnose", folder, flag, target)
    assert call(*words).code == 0
    whole = target.read_bytes()
    begin = time.monotonic()
    assert start(*words, **QUIET).wait() == 0
    takes = time.monotonic() - begin
    for part in (0.7, 0.9, 0.95):
        process = start(*words, **QUIET)
        time.sleep(takes * part)
        process.kill()
        process.wait()
        assert len(target.read_bytes()) == len(whole)
    if flag == "--save":
        for line in (folder / "journal.jsonl").read_text().splitlines():
            json.loads(line)


def test_a_killed_new_can_be_made_again(tmp_path: Path) -> None:
    log = requests(tmp_path / "requests.jsonl")
    log.write_bytes(log.read_bytes() * 8000)
    size = log.stat().st_size
    folder = tmp_path / "c"
    for wait in (0.0, 0.02, 0.05):
        shutil.rmtree(folder, ignore_errors=True)
        process = start("new", folder, log, **QUIET)
        while not (folder / "evidence").is_dir() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(wait)
        process.kill()
        process.wait()
        copy = folder / "evidence" / log.name
        assert not copy.exists() or copy.stat().st_size == size
        if not (folder / "case.toml").exists():
            assert call("new", folder, log).code == 0
        assert [p.name for p in (folder / "evidence").iterdir() if not p.name.startswith(".")] == [log.name]
        assert str(folder) not in hidden(folder)


def test_new_keeps_files_of_one_name_and_takes_equal_ones_once_more(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "r.jsonl", tmp_path / "b" / "r.jsonl"
    for path, change in ((first, {}), (second, {"input_tokens": 7})):
        path.parent.mkdir()
        requests(path, (0, change))
    folder = tmp_path / "c"
    assert call("new", folder, first, second).code == 0
    assert names(folder / "evidence") == ["r-2.jsonl", "r.jsonl"]
    assert (folder / "evidence" / "r-2.jsonl").read_bytes() == second.read_bytes()
    call("new", folder, first).refused("exists already")


def test_reference_may_stand_before_the_files(tmp_path: Path) -> None:
    log = requests(tmp_path / "r.jsonl")
    for number, words in enumerate((("--reference", log), (log, "--reference"), ("--load", "x", "--reference", log))):
        folder = tmp_path / f"c{number}"
        assert call("new", folder, *words).code == 0
        assert names(folder) == ["case.toml"]
        assert call("diagnose", folder, "--json", *TTFT).code == 0


def test_two_runs_at_once_write_one_entry(tmp_path: Path) -> None:
    folder = case(tmp_path / "c", SYMPTOM)
    assert [p.wait() for p in [start("diagnose", folder, "--save", **QUIET) for _ in range(3)]] == [0] * 3
    assert len((folder / "journal.jsonl").read_text().splitlines()) == 1
    json.loads((folder / "report.json").read_text())
    assert not hidden(folder)


@pytest.mark.parametrize("flag", ["--json", "--markdown", "--html"])
@pytest.mark.parametrize("name", ["no/such/folder/x", "folder", "n" * 300, "/dev/full", "requests.jsonl", "foreign"])
def test_an_output_that_cannot_be_written_is_one_line(tmp_path: Path, flag: str, name: str) -> None:
    with inside(tmp_path):
        log = requests(Path("requests.jsonl"))
        before = log.read_bytes()
        Path("folder").mkdir()
        Path("foreign").write_text("the only copy of something")
        call("diagnose", log, *TTFT, flag, name).refused()
        assert log.read_bytes() == before
        assert Path("foreign").read_text() == "the only copy of something"
        assert names(Path()) == ["folder", "foreign", "requests.jsonl"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_one_line(tmp_path: Path) -> None:
    folder = case(tmp_path / "c", SYMPTOM)
    folder.chmod(0o555)
    try:
        call("diagnose", folder, "--save").refused("permission denied")
        assert call("diagnose", folder).code == 0
    finally:
        folder.chmod(0o755)


def test_a_database_whose_rows_are_in_its_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as keeps_it_open:
        keeps_it_open.execute("PRAGMA journal_mode=WAL")
        keeps_it_open.execute("CREATE TABLE x (y)")
        keeps_it_open.commit()
        capture(path, wal=True)
        assert Path(f"{path}-wal").stat().st_size
        call("diagnose", path, "--json").exact()
        call("new", tmp_path / "c", path).refused("t.sqlite-wal", "copy")
        assert not (tmp_path / "c").exists()
    call("diagnose", path, "--json").exact()
    assert call("new", tmp_path / "c", path).code == 0


@pytest.mark.parametrize(
    ("how", "packed"), [("cut", False), ("cut", True), ("other", False), ("gone", False), ("folder", True)]
)
def test_a_file_that_changes_while_it_is_read_is_one_line_or_an_answer(tmp_path: Path, how: str, packed: bool) -> None:
    whole = capture(tmp_path / "whole", calls=400).read_bytes()
    path = tmp_path / "t.sqlite"
    for part in (0.4, 0.7):
        path.write_bytes(gzip.compress(whole, 1) if packed else whole)
        process = start("diagnose", path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(part)
        if how == "cut":
            os.truncate(path, 30_000)
        elif how == "other":
            path.write_bytes(b"x" * 5000)
        else:
            path.unlink()
            if how == "folder":
                path.mkdir()
        said = process.communicate()[1]
        assert process.returncode in (0, 2), said
        assert said.count(b"\n") == (process.returncode == 2)
        if path.is_dir():
            path.rmdir()


def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    trace = capture(tmp_path / "t.sqlite", calls=3000, streams=100)
    out = tmp_path / "out.json"
    for wait in (0.15, 0.7):
        process = start("diagnose", trace, "--json", out, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate()
        if process.returncode != 0:
            assert process.returncode in (130, -signal.SIGINT)
            assert not printed
        # Before the first line of the product runs, the interpreter itself answers.
        assert b"scopedown:" not in said
    assert not hidden(tmp_path)
