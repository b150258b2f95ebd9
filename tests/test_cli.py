"""The command line: help without NumPy, errors in one line, exit codes, files whole or not at all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scopedown import cli, commands
from scopedown.cli import ExitCode, main
from scopedown.commands import COMMANDS, load
from scopedown.commands.output import write_atomic
from scopedown.errors import InputError, MissingExtra, UsageError

REQUEST = (
    '{"id": "r1", "arrival_ns": 1000000000, "sent_ns": 1000000000, "first_token_ns": 1100000000, '
    '"end_ns": 1200000000, "input_tokens": 8, "output_tokens": 2, "status": "ok"}\n'
)


def run(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scopedown", *words], capture_output=True, text=True, check=False, **more
    )  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> object:
    """A command that raises what it is told to."""

    def install(error: BaseException) -> None:
        class Fails:
            name = "fails"
            help = "fails"

            def add_arguments(self, parser: object) -> None: ...

            def run(self, args: object) -> int:
                raise error

        monkeypatch.setattr(commands, "load", lambda _: Fails())
        monkeypatch.setattr(cli, "load", lambda _: Fails())

    return install


@pytest.mark.parametrize(("name", "place"), COMMANDS)
def test_every_command_says_what_it_is(name: str, place: str) -> None:
    command = load(name)
    assert command.name == name
    assert command.help
    assert not command.help.endswith(".")
    assert place.startswith("scopedown.commands.")


def test_help_is_quick_and_imports_no_numpy() -> None:
    probe = (
        "import sys; from scopedown.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as e: print(e.code, sorted({'numpy', 'msgspec', 'rich', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
    for name, _ in COMMANDS:
        assert re.search(rf"\n    {name}\s", done.stdout)


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"scopedown {version('scopedown')}\n")


@pytest.mark.parametrize(
    "words", [[], ["frobnicate"], ["diagnose", "--metric", "slow"], ["diagnose", "--top", "0"], ["diagnose", "--nope"],
              ["whatif", "--scale", "kernel:x"], ["whatif", "--scale", "kernel:x=-1"]]
)  # fmt: skip
def test_usage_errors_are_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == ExitCode.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("scopedown: ")
    assert shown.err.count("\n") == 1
    assert "--help" in shown.err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("a.json", "line 3", "no number", "write one"), "a.json (line 3): no number; write one"),
        (UsageError("one thing\nat a time \x1b[31m"), "one thing\\nat a time \\x1b[31m"),
        (
            MissingExtra("ncu_report", "ncu"),
            "ncu_report is not installed; install it with: pip install 'scopedown[ncu]'",
        ),
        (FileNotFoundError(2, "No such file or directory", "gone"), "gone: no such file or directory"),
        (PermissionError(13, "Permission denied", b"\xff"), "\\udcff: permission denied"),
    ],
    ids=range(5),
)
def test_errors_that_a_user_can_mend(error, said, failing, capsys) -> None:  # type: ignore[no-untyped-def]
    failing(error)
    assert main(["schema"]) == ExitCode.USAGE
    assert capsys.readouterr().err == f"scopedown: {said}\n"
    with pytest.raises(type(error)):
        main(["--debug", "schema"])


def test_an_internal_error_asks_for_a_report(failing, capsys) -> None:  # type: ignore[no-untyped-def]
    failing(ZeroDivisionError("x"))
    assert main(["schema"]) == ExitCode.INTERNAL
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "ZeroDivisionError: x" in said
    assert "report it" in said
    failing(KeyboardInterrupt())
    assert main(["schema"]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == ""


def test_a_reader_that_leaves_early_is_no_error() -> None:
    done = subprocess.run(
        f"'{sys.executable}' -m scopedown schema | head -c 10", shell=True, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    read, write = os.pipe()
    os.close(read)
    try:
        closed = subprocess.run(
            [sys.executable, "-m", "scopedown", "schema"], stdout=write, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(write)
    assert (closed.returncode, closed.stderr) == (0, "")


def test_output_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    done = run("explain", "kernel", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr


def test_the_schema_is_printed() -> None:
    import json

    assert json.loads(run("schema").stdout)["$schema"].endswith("2020-12/schema")


def test_the_explanations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    everything = capsys.readouterr().out
    assert "host.sync" in everything
    assert main(["explain", "kernel"]) == 0
    assert "cannot establish" in capsys.readouterr().out
    assert main(["explain", "host.untraced"]) == 0
    assert "resolvable by framework" in capsys.readouterr().out
    assert main(["explain", "gpu-bound"]) == ExitCode.USAGE
    assert "nothing is called 'gpu-bound'" in capsys.readouterr().err


def test_no_evidence_and_two_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["diagnose"]) == ExitCode.USAGE
    assert "has no case.toml" in capsys.readouterr().err
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "case.toml").touch()
    assert main(["diagnose", "a", "b"]) == ExitCode.USAGE
    assert "one case, one question" in capsys.readouterr().err


def test_evidence_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "requests.jsonl"
    log.write_text(REQUEST)
    assert main(["diagnose", str(log), "--json", str(log)]) == ExitCode.USAGE
    assert "written over" in capsys.readouterr().err
    assert main(["diagnose", str(log), "--markdown", str(tmp_path)]) == ExitCode.USAGE
    assert log.read_text() == REQUEST


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.json"
    write_atomic(target, b"one")
    assert target.read_bytes() == b"one"
    assert target.stat().st_mode & 0o777 == 0o666 & ~_umask()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match=r"report\.json"):
        write_atomic(target, b"two")
    assert target.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]
    with pytest.raises(OSError, match="nowhere"):
        write_atomic(tmp_path / "nowhere" / "x", b"")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_flags_restate_a_cases_symptom(tmp_path: Path) -> None:
    from scopedown.commands import evidence
    from scopedown.terms import Metric, Statistic

    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "requests.jsonl").write_text(REQUEST)
    (tmp_path / "case.toml").write_text(
        '[symptom]\nmetric = "ttft"\nrequest = "r1"\nobserved = "100 ms"\ntarget = "50 ms"\nload = "one"\n'
    )

    def symptom(*words: str):  # type: ignore[no-untyped-def]
        return evidence.load_case(cli.build_parser("diagnose").parse_args(["diagnose", str(tmp_path), *words])).symptom

    plain = symptom()
    assert (plain.request, plain.observed_ns, plain.target_ns) == ("r1", 10**8, 5 * 10**7)
    assert symptom("--target", "20 ms").target_ns == 2 * 10**7
    p95 = symptom("--statistic", "p95", "--observed", "90 ms")
    assert (p95.statistic, p95.request, p95.target_ns, p95.load) == (Statistic.P95, None, 5 * 10**7, "one")
    other = symptom("--metric", "e2e", "--statistic", "mean", "--observed", "1 s")
    assert (other.metric, other.target_ns, other.load) == (Metric.E2E, None, "one")


def test_what_is_no_regular_file_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    """Renaming over a device would replace it: as root that takes /dev/null from the whole machine."""
    import threading

    from scopedown.files import write_atomic

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, b"report")
    reader.join(timeout=10)
    assert got == [b"report"]
    assert pipe.is_fifo()
    write_atomic(Path(os.devnull), b"report")
    assert Path(os.devnull).is_char_device()
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
