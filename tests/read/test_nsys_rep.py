"""Raw Nsight Systems reports: recognised by content, exported by a stand-in for the user's nsys."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
import time
from pathlib import Path

import pytest

from scopedown.errors import InputError
from scopedown.read.base import Source
from scopedown.read.cache import cache_dir
from scopedown.read.nsys_rep import NsysReport, export, report_version
from shared_data import SHARED, needs_shared

NSYS = SHARED / "data" / "nsys"
REPORTS = sorted([*NSYS.rglob("*.nsys-rep"), NSYS / "jacobi_single_gpu.qdrep"])
HEAD = b"NVIDIA Tegra Profiler Report 2025@5@1@121-255136380782v0.\n\x0b rest"

# What it does is told by the first line of a file beside it: ok, fail, lie, hang; each export is noted in "calls".
STAND_IN = """#!{python}
import pathlib, sqlite3, sys, time
here = pathlib.Path(__file__).parent
mood = (here / "mood").read_text()
if sys.argv[1:] == ["--version"]:
    print("NVIDIA Nsight Systems version {version}-252339873873v0")
    sys.exit(0)
with (here / "calls").open("a") as calls:
    print(*sys.argv[1:], file=calls)
assert sys.argv[1:4] == ["export", "--type", "sqlite"], sys.argv
out, report = sys.argv[5], sys.argv[6]
if mood == "hang":
    pathlib.Path(out).write_text("half")
    time.sleep(60)
if mood == "fail":
    print("Processing 1 event...")
    print("Exportation error: Version number is invalid: " + report, file=sys.stderr)
    sys.exit(1)
if mood == "lie":
    print("The importer binary and its dependencies were not found")
    sys.exit(0)
db = sqlite3.connect(out)
db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, shortName)")
db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 0, 7, 1, 1)")
db.execute("CREATE TABLE DIAGNOSTIC_EVENT (severity, text)")
db.execute("INSERT INTO DIAGNOSTIC_EVENT VALUES (2, 'careful')")
db.commit()
"""


def install(folder: Path, version: str, mood: str = "ok") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tool = folder / "nsys"
    tool.write_text(STAND_IN.replace("{python}", sys.executable).replace("{version}", version))
    tool.chmod(0o700)
    (folder / "mood").write_text(mood)
    return tool


@pytest.fixture(autouse=True)
def no_real_nsys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither this machine's nsys nor this user's cache takes part."""
    monkeypatch.delenv("NSYS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("scopedown.read.nsys_rep._INSTALLED", (str(tmp_path / "opt" / "*" / "nsys"),))
    monkeypatch.setenv("SCOPEDOWN_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "my run's $(report).nsys-rep"
    path.write_bytes(HEAD)
    return path


def test_report_version() -> None:
    assert report_version(HEAD) == "2025.5.1"
    assert report_version(b"NVIDIA Tegra Profiler Report 1.\n\x0b") is None
    assert report_version(b"SQLite format 3\0") is None


@needs_shared
@pytest.mark.parametrize("path", REPORTS, ids=lambda p: p.name)
def test_real_reports_without_a_tool(path: Path) -> None:
    source = Source(path)
    assert NsysReport().sniff(source)
    version = report_version(source.head)
    expected = {"gb200": "2025.5.1", "gh200": "2023.4.1", "jacobi": None, "toy_nvtx": None}
    assert version == next((v for k, v in expected.items() if path.name.startswith(k)), "2023.4.4")
    with pytest.raises(InputError) as e:
        NsysReport().read(source)
    needed = f"nsys {version} or newer" if version else "nsys (2022.4 or newer)"
    assert needed in e.value.do
    assert f"nsys export --type sqlite -o {path.stem}.sqlite {path.name}" in e.value.do
    assert "\n" not in str(e.value)


@needs_shared
def test_lfs_pointer() -> None:
    source = Source(NSYS / "lfs_pointer_baseline.qdrep")
    assert NsysReport().sniff(source)
    with pytest.raises(InputError, match=r"is a Git LFS pointer, not a report; fetch it with: git lfs pull"):
        NsysReport().read(source)


def test_raw_stream(tmp_path: Path) -> None:
    path = tmp_path / "run.qdstrm"
    path.write_bytes(b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-df9881f\n")
    assert NsysReport().sniff(Source(path))
    with pytest.raises(InputError, match=r"QdstrmImporter -i run\.qdstrm"):
        NsysReport().read(Source(path))


@pytest.mark.parametrize("head", [b"", b"SQLite format 3\0", b'{"id": "NVIDIA Tegra Profiler Report"}'])
def test_other_files(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "x.nsys-rep"
    path.write_bytes(head)
    assert not NsysReport().sniff(Source(path))


def test_read_through_the_tool_and_the_cache(tmp_path: Path, report: Path) -> None:
    install(tmp_path / "bin", "2025.5.1")
    source = Source(report)
    artifact = NsysReport().read(source)
    assert (artifact.path, artifact.sha256, artifact.kind) == (report, source.sha256, "nsys-rep")
    assert artifact.counts["kernels"] == 1
    assert artifact.warnings == (f"{report.name}: nsys says: careful",)
    NsysReport().read(Source(report))
    calls = (tmp_path / "bin" / "calls").read_text().splitlines()
    assert len(calls) == 1, "the second read finds the export"
    kept = list((tmp_path / "cache").iterdir())
    assert [p.name for p in kept] == [f"{source.sha256}-nsys-2025.5.1.sqlite"]
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    report.write_bytes(HEAD + b"other content")
    NsysReport().read(Source(report))
    assert len((tmp_path / "bin" / "calls").read_text().splitlines()) == 2


def test_the_newest_tool_that_will_do(tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "bin", "2023.4.4")
    install(tmp_path / "opt" / "2025.6.1", "2025.6.1")
    install(tmp_path / "opt" / "2024.1.1", "2024.1.1")
    assert export(report, None, tmp_path).name.endswith("-nsys-2025.6.1.sqlite")
    monkeypatch.setenv("NSYS", str(install(tmp_path / "mine", "2026.1.1")))
    assert export(report, None, tmp_path).name.endswith("-nsys-2026.1.1.sqlite")
    named = str(install(tmp_path / "named", "2025.10.1"))
    assert export(report, named, tmp_path).name.endswith("-nsys-2025.10.1.sqlite")


def test_tool_older_than_the_report(tmp_path: Path, report: Path) -> None:
    install(tmp_path / "bin", "2023.4.4")
    with pytest.raises(InputError, match=r"written by nsys 2025\.5\.1, the nsys here is 2023\.4\.4: too old") as e:
        export(report, None, tmp_path)
    assert not (tmp_path / "bin" / "calls").exists()
    assert shlex.quote(report.name) in e.value.do


def test_report_of_unknown_version_goes_to_any_tool(tmp_path: Path) -> None:
    install(tmp_path / "bin", "2022.4.2")
    old = tmp_path / "old.qdrep"
    old.write_bytes(b"NVIDIA Tegra Profiler Report 1.\n\x0b")
    assert export(old, None, tmp_path).exists()


@pytest.mark.parametrize(
    ("mood", "said"),
    [
        ("fail", r"nsys export \(2025\.5\.1\) failed: Exportation error: Version number is invalid"),
        ("lie", r"nsys export \(2025\.5\.1\) failed: The importer binary and its dependencies were not found"),
    ],
)
def test_export_fails(tmp_path: Path, report: Path, mood: str, said: str) -> None:
    install(tmp_path / "bin", "2025.5.1", mood)
    folder = tmp_path / "cache"
    folder.mkdir()
    with pytest.raises(InputError, match=said) as e:
        export(report, None, folder)
    assert "\n" not in str(e.value)
    assert os.listdir(folder) == []  # noqa: PTH208


def test_export_hangs(tmp_path: Path, report: Path) -> None:
    install(tmp_path / "bin", "2025.5.1", "hang")
    folder = tmp_path / "cache"
    folder.mkdir()
    begun = time.monotonic()
    with pytest.raises(InputError, match=r"did not end within 1 s and was stopped"):
        export(report, None, folder, timeout_s=1)
    assert time.monotonic() - begun < 20
    assert os.listdir(folder) == []  # noqa: PTH208


@pytest.mark.parametrize("make", [lambda p: p.write_text("#!/bin/sh\nexit 3\n"), lambda p: None])
def test_named_tool_does_not_work(tmp_path: Path, report: Path, make: object) -> None:
    tool = tmp_path / "broken"
    make(tool)  # type: ignore[operator]
    with pytest.raises(InputError, match=r"needs nsys 2025\.5\.1 or newer, and .*broken is no working nsys"):
        export(report, str(tool), tmp_path)


def test_cache_folder_that_cannot_be_written(tmp_path: Path, report: Path) -> None:
    install(tmp_path / "bin", "2025.5.1")
    with pytest.raises(InputError, match="cannot be written"):
        export(report, None, tmp_path / "absent")


def test_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_dir() == tmp_path / "cache"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SCOPEDOWN_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match="set SCOPEDOWN_CACHE"):
        cache_dir()
    monkeypatch.delenv("SCOPEDOWN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform == "linux":
        assert cache_dir() == tmp_path / "xdg" / "scopedown"
    shutil.rmtree(tmp_path / "xdg", ignore_errors=True)
