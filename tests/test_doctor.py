"""The doctor looks at the real machine; what it must see is put there by the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scopedown.doctor import examine
from scopedown.terms import Scope


def stand_in(folder: Path, name: str, says: str) -> None:
    program = folder / name
    program.write_text(f"#!{sys.executable}\nprint({says!r})\n")
    program.chmod(0o755)


def test_tools_on_path_are_found_with_their_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, "nsys", "NVIDIA Nsight Systems version 2025.5.1.121-255136380782v0")
    stand_in(tmp_path, "ncu", "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 3)")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = examine()
    versions = {t.name: t.version for t in found.tools if t.found}
    assert versions["nsys"] == "2025.5.1.121"
    assert versions["ncu"] == "2025.3.1.0"
    timeline = next(p for p in found.possible if p.scope is Scope.TIMELINE)
    assert timeline.possible, timeline.missing


def test_without_tools_every_measurement_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("scopedown.doctor.installed_nsys", list)
    found = examine()
    assert not any(t.found for t in found.tools if not t.name.startswith("torch"))
    for p in found.possible:
        if p.scope in (Scope.TIMELINE, Scope.KERNEL):
            assert not p.possible
            assert p.missing
            assert all(len(m) > 10 for m in p.missing)


def test_a_tool_that_fails_or_says_nonsense_is_found_without_a_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "nsys", "no number here")
    (tmp_path / "ncu").write_text("#!/nonexistent/interpreter\n")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    versions = {t.name: (t.found, t.version) for t in examine().tools}
    assert versions["nsys"] == (True, None)
    assert versions["ncu"] == (True, None)


def test_the_command_prints_both_ways() -> None:
    plain = subprocess.run([sys.executable, "-m", "scopedown", "doctor"], capture_output=True, text=True, check=True)
    assert "possible here" in plain.stdout
    done = subprocess.run(
        [sys.executable, "-m", "scopedown", "doctor", "--json"], capture_output=True, text=True, check=True
    )
    document = json.loads(done.stdout)
    assert {p["scope"] for p in document["possible"]} >= {"application", "timeline", "framework", "kernel"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_is_a_script_of_the_shell(shell: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scopedown", "completion", shell], capture_output=True, text=True, check=True
    )
    assert "diagnose" in done.stdout
    if shell == "bash" and os.access("/bin/bash", os.X_OK):
        script = tmp_path / "completion.sh"
        script.write_text(done.stdout)
        subprocess.run(["/bin/bash", "-n", str(script)], check=True)
