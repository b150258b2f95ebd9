"""The frame round the code: make targets, licence, and no word of a category outside its list."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from scopedown.terms import Category

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("target", ["demo", "test", "lint", "format", "docs", "wheel", "clean"])
def test_make_knows_its_targets(target: str) -> None:
    shown = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shown.strip()


def test_continuous_integration_runs_what_a_contributor_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text("utf-8").splitlines()[0] == "#!/usr/bin/env bash"
    assert script.read_text("utf-8").rstrip().endswith("exec make test")


@pytest.mark.parametrize("version", ["3.10", None], ids=["too old", "absent"])
def test_setup_says_which_python_it_needs(version: str | None, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    if version:
        python.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "Python {version}" && exit 0\nexit 1\n')
        python.chmod(0o755)
    venv = tmp_path / "venv"
    done = subprocess.run(
        [ROOT / "scripts" / "setup.sh"],
        env={**os.environ, "PYTHON": str(python), "VENV": str(venv)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "3.11 or newer" in done.stderr
    assert not venv.exists()


@pytest.mark.parametrize("root", [True, False])
def test_setup_installs_a_missing_venv_as_root_or_says_so(root: bool, tmp_path: Path) -> None:
    """A Python without ensurepip, as Debian ships it; apt-get and id are stand-ins: a test changes no machine."""
    log = tmp_path / "log"
    programs = {
        "python3": 'case "$*" in *ensurepip*) exit 1;; *-venv*) echo python3.12-venv;; "-m venv"*) exit 7;; esac',
        "apt-get": f'echo "$@" >> "{log}"',
        "id": f"echo {0 if root else 1000}",
    }
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHON": "python3",
        "VENV": str(tmp_path / "venv"),
    }
    done = subprocess.run([ROOT / "scripts" / "setup.sh"], env=env, capture_output=True, text=True, check=False)
    if root:
        assert done.returncode == 7, done.stderr
        assert "installing python3.12-venv with apt-get" in done.stdout
        assert "install -y -qq python3.12-venv" in log.read_text()
    else:
        assert done.returncode == 1
        assert "apt-get install python3.12-venv" in done.stderr
        assert not log.exists()


def test_no_registry_is_named() -> None:
    for path in (ROOT / "Makefile", ROOT / "scripts" / "setup.sh", ROOT / ".ci" / "run", ROOT / "pyproject.toml"):
        assert not re.search(r"https?://|--(extra-)?index-url|pypi", path.read_text("utf-8")), path


def test_the_licence_is_the_one_that_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_category_words_come_from_the_list() -> None:
    """A category with a dot in it is no ordinary word: typed as a string anywhere else it would be a second list."""
    dotted = {str(c) for c in Category if "." in c or "-" in c}
    for path in sorted((ROOT / "src").rglob("*.py")):
        if path.name != "terms.py":
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    assert node.value not in dotted, f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
