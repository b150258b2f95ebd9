"""Text that means harm: it acts on no terminal, costs bounded time, and is read back as it was."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from robust.hostile import TTFT, call, capture, case, changed, inside, requests
from scopedown.account.contract import _models, _rate
from scopedown.account.owners import _named
from scopedown.read.rows import hidden_home
from scopedown.tell.clean import clean
from scopedown.tell.json import compact, encode
from scopedown.trace.model import LONGEST_NAME, Names
from scopedown.trace.names import (
    api_meaning,
    clean_api,
    is_collective,
    kernel_family,
    short_kernel_name,
    without_counters,
)

ACTING = "a\x1b[31m\r\n\x07\x7f\x9b2J\u200b\u202e\u2066\u2028\ufeff\U000e0041b"
RAW = [c.encode() for c in ("\x1b", "\x07", "\x7f", "\x9b", "\u200b", "\u202e", "\u2066", "\u2028", "\ufeff")]


def quiet(data: bytes) -> None:
    """Nothing in it acts on a terminal; the product's own colours are off where nobody looks."""
    assert not [c for c in RAW if c in data]


@pytest.mark.parametrize("flags", [("--json",), ("--markdown",), (), ("--top", "20")])
def test_names_in_a_trace_act_on_nothing(tmp_path: Path, flags: tuple[str, ...]) -> None:
    trace = capture(tmp_path / "t.sqlite", names={1: ACTING, 2: ACTING, 4: ACTING}, nvtx=[(900, 10**6, ACTING)])
    changed(trace, "UPDATE PROCESSES SET name = ?", values=(ACTING,))
    for command in (("diagnose", trace, *flags), ("inspect", trace, *flags[:1] * (flags == ("--json",)))):
        done = call(*command)
        assert done.code == 0, done.err
        quiet(done.out)
        quiet(done.err.encode())


def test_json_escapes_and_reads_back() -> None:
    quiet(encode({"x": ACTING, ACTING: [ACTING]}))
    import json

    assert json.loads(encode({"x": ACTING}))["x"] == ACTING
    assert compact("é…漢\U0001f600") == '"é…漢\U0001f600"'.encode()
    assert json.loads(compact({"x": "a\udcffb\x9b"})) == {"x": "a?b\x9b"}


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", ACTING), ("inspect", ACTING), ("diagnose", "--metric", ACTING), ("diagnose", f"--{ACTING}"),
        ("diagnose", ".", f"--{ACTING}=1"), (ACTING,), ("explain", ACTING), ("new", "d", "--contract", ACTING),
        ("diagnose", "x" * 100_000), ("diagnose", f"{'x/' * 50_000}"), ("explain", "x" * 100_000),
        ("diagnose", "*" * 3000), ("diagnose", "a\udcff"), ("whatif", ".", "--scale", ACTING),
    ],
    ids=range(14),
)  # fmt: skip
def test_words_of_a_command_line_act_on_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    with inside(tmp_path):
        call(*words).refused()


def test_a_long_message_keeps_what_to_do() -> None:
    done = call("diagnose", "/" + "x/" * 2000 + "y")
    done.refused("scopedown: /x/x", " … ")
    assert done.err.endswith("check the path and its rights\n") or "check the path" in done.err


def test_files_may_have_any_name(tmp_path: Path) -> None:
    for name in (b"bad\xff.jsonl", os.fsencode(ACTING.replace("\U000e0041", "") + ".jsonl")):
        log = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        requests(log)
        for words in (("inspect",), ("inspect", "--json"), ("diagnose",), ("diagnose", "--json", "-")):
            done = call(words[0], log, *words[1:])
            assert done.code == 0, done.err
            quiet(done.out)
        page = tmp_path / "page.html"
        assert call("diagnose", log, "--html", page).code == 0
        quiet(page.read_bytes())


def test_a_case_takes_names_that_toml_can_hold_and_refuses_others_before_it_writes(tmp_path: Path) -> None:
    name = ACTING.replace("\U000e0041", "") + ".jsonl"
    log = requests(tmp_path / name)
    done = call("new", tmp_path / f"c{ACTING}", log, "--contract", f"{ACTING}={ACTING}")
    assert done.code == 0, done.err
    quiet(done.out)
    folder = tmp_path / f"c{ACTING}"
    assert call("diagnose", folder, "--save").code == 0
    quiet((folder / "report.json").read_bytes())
    bad = requests(Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.jsonl")))
    call("new", tmp_path / "d", bad).refused("not UTF-8")
    call("new", tmp_path / "d", log, bad).refused("not UTF-8")
    call("new", tmp_path / "d", "--reference", bad).refused("not UTF-8")
    call("new", tmp_path / "d", "--load", "\udcff").refused("not UTF-8")
    call("new", tmp_path / "d", "--contract", "x=\udcff").refused("not UTF-8")
    assert not (tmp_path / "d").exists()
    evidence = case(tmp_path / "e", "") / "evidence"
    (evidence / "requests.jsonl").rename(os.fsdecode(os.fsencode(evidence) + b"/\xfe.jsonl"))
    assert call("diagnose", tmp_path / "e", "--save").code == 0
    assert call("next", tmp_path / "e", "--json").code == 0


SELECTORS = {
    "a{99999999999}": "too large", "(" * 5000 + ")" * 5000: "not a regular expression", "(": "not a regular expression",
    "a**": "not a regular expression", "[": "not a regular expression", "(?P=x)": "not a regular expression",
    "\\": "not a regular expression", "(?i": "not a regular expression",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["host", "kernel"])
@pytest.mark.parametrize("expression", SELECTORS, ids=range(len(SELECTORS)))
def test_a_selector_that_is_no_expression_is_refused(tmp_path: Path, kind: str, expression: str) -> None:
    trace = capture(tmp_path / "t.sqlite")
    call("whatif", trace, "--remove", f"{kind}:{expression}").refused(
        "regular expression" if len(expression) > 1000 else SELECTORS[expression]
    )


def test_an_expression_that_would_take_for_ever_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scopedown.account.matching.PATIENCE", 0.5)
    trace = capture(tmp_path / "t.sqlite", names={4: "a" * 60 + "b"})
    begin = time.monotonic()
    call("whatif", trace, "--remove", "host:^(a+)+$").refused("takes too long")
    assert time.monotonic() - begin < 10
    assert call("whatif", trace, "--remove", "host:poll|a", "--json").json["matched"]["events"] > 0


def test_a_device_may_have_a_name_of_100_000_letters(tmp_path: Path) -> None:
    rows = [f"2026/06/10 09:00:0{k // 10}.{k % 10}00, 0, {'a' * 100_000}, 50 %" for k in range(12)]
    monitor = tmp_path / "gpu.csv"
    monitor.write_text("timestamp, index, name, utilization.gpu [%]\n" + "\n".join(rows) + "\n")
    toml = '[contract]\ndevice = "' + "b" * 100_000 + '"\n'
    folder = case(tmp_path / "c", toml)
    begin = time.monotonic()
    assert call("diagnose", folder, monitor, "--json", *TTFT).code == 0
    assert time.monotonic() - begin < 5


def test_names_are_cut_and_stay_apart() -> None:
    names = Names()
    long = "x" * 10**6
    first, second = names.code(long + "a"), names.code(long + "b")
    assert (first, second) == (0, 1)
    assert {len(n) for n in names.values} == {LONGEST_NAME}
    assert names.code(long + "a") == first


def test_models_are_the_words_with_a_number() -> None:
    assert _models("NVIDIA H100 80GB HBM3, MI300X and rtx4090") == {"h100", "mi300x", "rtx4090"}
    assert _rate("8.9 requests/s") == pytest.approx(8.9)


N = 100_000
EVIL = {
    "letters": "a" * N, "digits": "1" * N + "x", "dots": "1." * (N // 2) + "x", "underscores": "_" * N + "1x1\n",
    "request": "req" + "-" * N, "requests": "req-" * (N // 4), "versions": "_v1" * (N // 3) + "x",
    "variants": "_1d" * (N // 3) + "x", "tiles": "_a1x1" * (N // 5) + "\n", "brackets": "(<" * (N // 2),
    "wrappers": "cutlass::Kernel<" * (N // 16), "mangled": "_ZN" + "1a" * (N // 2), "size": "_ZN" + "9" * N,
    "hex": "a1" * (N // 2) + "g", "uuid": "12345678-1234-1234-1234-" * (N // 24), "nccl": "nccl" + "A" * N,
    "nccl sum": "ncclKernel_Sum_\n" * 5000, "nvfuser": "nvfuser_" + "_f1_c" * (N // 5), "home": "/home/" * (N // 6),
    "unnamed": "<unnamed>" * (N // 9), "operator": "operator(" * (N // 9), "spaces": " " * N + "x",
}  # fmt: skip
READ = (
    api_meaning, clean_api, kernel_family, short_kernel_name, is_collective, hidden_home, _models, _rate,
    lambda t: without_counters(t[:LONGEST_NAME]), lambda t: _named(t[:LONGEST_NAME], frozenset(), frozenset()),
    lambda t: clean(t, 200),
)  # fmt: skip


@pytest.mark.parametrize("text", EVIL.values(), ids=EVIL)
def test_no_name_takes_the_square_of_its_length(text: str) -> None:
    begin = time.process_time()
    for read in READ:
        read(text)
    assert time.process_time() - begin < 3


@pytest.mark.parametrize("text", ["wrappers", "size", "request", "brackets"])
def test_a_trace_of_such_names_is_answered(tmp_path: Path, text: str) -> None:
    evil = EVIL[text]
    trace = capture(tmp_path / "t.sqlite", names={1: evil, 2: evil, 4: evil}, nvtx=[(900, 10**6, evil)])
    begin = time.process_time()
    call("diagnose", trace, "--json").exact()
    assert time.process_time() - begin < 10
