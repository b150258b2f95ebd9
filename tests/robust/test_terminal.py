"""Where the output goes: pipes that close, full disks, narrow and dumb terminals, other locales."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from robust.hostile import TTFT, capture, requests, start


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("terminal")
    return [capture(folder / "t.sqlite", nvtx=[(900, 10**6, "überall … 漢字")]), requests(folder / "r.jsonl")]


@pytest.mark.parametrize("words", [("diagnose",), ("diagnose", "--json"), ("inspect",), ("inspect", "--json")])
def test_a_reader_may_have_seen_enough(files: list[Path], words: tuple[str, ...]) -> None:
    with start(words[0], *files, *words[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (0, b"")


@pytest.mark.parametrize("words", [("diagnose",), ("diagnose", "--json"), ("inspect",), ("inspect", "--json")])
def test_a_full_disk_is_one_line(files: list[Path], words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        process = start(words[0], *files, *words[1:], stdout=full, stderr=subprocess.PIPE)
        said = process.communicate()[1]
    assert process.returncode == 2
    assert said.splitlines()[0] == b"scopedown: input or output: no space left on device"
    assert b"Traceback" not in said


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_may_be_closed(files: list[Path], closed: str) -> None:
    line = f'"{sys.executable}" -m scopedown diagnose "{files[0]}" {closed}'
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def seen(words: tuple[str, ...], env: dict[str, str]) -> tuple[int, str]:
    """Exit code and text of a run on a terminal."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "scopedown", *words], {**os.environ, **env})
    out = b""
    while True:
        select.select([descriptor], [], [])
        try:
            more = os.read(descriptor, 65536)
        except OSError:
            break
        if not more:
            break
        out += more
    os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out.decode("utf-8", "replace")


LOCALE = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize(
    "env",
    [{"NO_COLOR": "1"}, {"COLUMNS": "20"}, {"COLUMNS": "0"}, {"COLUMNS": "x"}, {"TERM": "dumb"}, LOCALE],
    ids=str,
)  # fmt: skip
def test_any_terminal_gets_the_answer(files: list[Path], env: dict[str, str]) -> None:
    for command, word in (("diagnose", "ledger"), ("inspect", "nsys")):
        code, text = seen((command, str(files[0])), env)
        assert code == 0, text
        assert word[:4] in text
        assert "Traceback" not in text
        if env.get("TERM") == "dumb":
            assert "\x1b" not in text
        if "NO_COLOR" in env:
            assert not any(f"\x1b[3{n}m" in text for n in range(8))


@pytest.mark.parametrize("env", [LOCALE, {"TZ": "nonsense"}, {"HOME": "/nonexistent"}, {"SCOPEDOWN_CACHE": "/proc/x"}])
def test_any_environment_gets_the_answer(files: list[Path], env: dict[str, str]) -> None:
    process = start("diagnose", *files, *TTFT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, said = process.communicate()
    assert (process.returncode, said) == (0, b"")
    assert b"\x1b" not in out
