"""Every flag with every kind of nonsense: an answer or one line, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from robust.hostile import call, capture, inside, requests

NONSENSE = (
    "", " ", "--", "\0", "\x1b[31m\n\u202e", "\udcff", "9" * 5000, "-1", "nan", "1e999", "../../etc/passwd", "None",
    "host:", "+99:99", "Europe/../UTC", "vllm==" + "9" * 500, "run=" + "9" * 5000, "sent=x:parsec", ",,,", "%s{}",
)  # fmt: skip
FLAGS = (
    "--from", "--to", "--range", "--step", "--offset", "--tz", "--columns", "--nsys", "--server", "--scope", "--metric",
    "--statistic", "--request", "--observed", "--target", "--objective", "--load", "--top", "--json", "--html",
)  # fmt: skip
SYMPTOM = {"--metric": "ttft", "--statistic": "p50", "--observed": "40 ms"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("flags")
    return [capture(folder / "t.sqlite"), requests(folder / "r.jsonl")]


def settled(*words: str | Path) -> None:
    done = call(*words)
    if done.code:
        done.refused()


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_of_diagnose(files: list[Path], tmp_path: Path, flag: str) -> None:
    symptom = [word for name, value in SYMPTOM.items() if name != flag for word in (name, value)]
    with inside(tmp_path):
        for value in NONSENSE:
            settled("diagnose", *files, f"{flag}={value}", *symptom)


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "{}"), ("inspect", "{}"), ("inspect", "--columns={}", "r.jsonl"), ("new", "c", "--contract={}"),
        ("new", "c", "--observed={}"), ("explain", "{}"), ("next", "{}"), ("whatif", "t.sqlite", "--remove={}"),
        ("whatif", "t.sqlite", "--remove=host:{}"), ("whatif", "t.sqlite", "--scale=kernel:k={}"), ("{}",),
        ("schema", "{}"), ("completion", "{}"), ("doctor", "{}"), ("diagnose", "--{}"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_word_of_another_command(files: list[Path], words: tuple[str, ...]) -> None:
    with inside(files[0].parent):
        for value in NONSENSE:
            if value or words != ("{}",):
                settled(*(w.replace("{}", value) for w in words))
