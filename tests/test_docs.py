"""The pages cannot drift: generated ones equal the code, links lead somewhere, commands on them run."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from scopedown.commands import COMMANDS
from shared_data import SHARED, needs_shared

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

#: A block of commands that the tests run: this comment, then a console block with lines that begin with "$ ".
RUNNABLE = re.compile(r"<!-- runnable -->\n```console\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_those_of_the_code(maker: ModuleType) -> None:
    for path, content in maker.pages().items():
        assert path.is_file(), f"{path.relative_to(ROOT)} is missing: run make docs"
        assert path.read_bytes() == content, f"{path.relative_to(ROOT)} is out of date: run make docs"
    assert maker.stale() == []


def test_every_command_has_its_section() -> None:
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for name, _ in COMMANDS:
        assert f"\n## scopedown {name}\n" in page


def test_every_command_on_a_page_exists() -> None:
    names = dict(COMMANDS)
    for path in PAGES:
        for word in re.findall(r"(?:^\$ |`)scopedown ([a-z]+)", path.read_text("utf-8"), re.MULTILINE):
            assert word in names, f"{path.name}: scopedown {word}"


def test_links_lead_somewhere() -> None:
    for path in PAGES:
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text("utf-8")):
            if not link.startswith("https://"):
                assert (path.parent / link).exists(), f"{path.relative_to(ROOT)}: {link}"


def test_every_page_is_listed() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "index.md" or f"({path.name})" in index, path.name


def runnable() -> list[tuple[str, str]]:
    return [(path.name, block) for path in PAGES for block in RUNNABLE.findall(path.read_text("utf-8"))]


@pytest.mark.parametrize(("page", "block"), runnable(), ids=[f"{p}-{i}" for i, (p, _) in enumerate(runnable())])
def test_commands_on_the_pages_run(page: str, block: str, tmp_path: Path) -> None:
    """In an empty folder, one after the other, with this environment's scopedown first on PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for line in block.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                line.removeprefix("$ "), shell=True, cwd=tmp_path, capture_output=True, text=True, check=False,
                env={**os.environ, "PATH": path, "SCOPEDOWN_CACHE": str(tmp_path / ".cache")},
            )  # fmt: skip
            assert done.returncode == 0, f"{page}: {line}\n{done.stderr}"


def test_the_python_example_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"<!-- python -->\n```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    made = [sys.executable, "-m", "scopedown", "demo", "-o", "demo-case"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "measure framework" in done.stdout


@needs_shared
def test_the_reports_of_the_readme_are_what_the_product_says(tmp_path: Path) -> None:
    """Every line of its two reports, in a terminal of 100 columns."""
    real, demo = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    shutil.copy(SHARED / "data/nsys/h100x2_train_nvtx_2026.2.sqlite", tmp_path / "train.sqlite")
    run = [sys.executable, "-m", "scopedown"]
    env = {**os.environ, "COLUMNS": "100"}
    subprocess.run([*run, "demo", "-o", "demo-case"], cwd=tmp_path, check=True, capture_output=True)
    for block, subject in ((real, "train.sqlite"), (demo, "demo-case")):
        said = subprocess.run(
            [*run, "diagnose", subject], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        lines = [line for line in block.splitlines() if not line.startswith("$ ")]
        assert len(lines) > 3
        assert [line for line in lines if line not in [x.rstrip() for x in said]] == []


def test_pages_hold_no_place_of_this_machine() -> None:
    for path in PAGES:
        assert not re.search(r"/home/\w|/work/|/Users/\w", path.read_text("utf-8")), path
