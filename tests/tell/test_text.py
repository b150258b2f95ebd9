"""The first screen: 24 lines, 80 columns, plain in a pipe, and nothing in it that acts."""

from __future__ import annotations

import io
import unicodedata
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from scopedown.report import Report
from scopedown.tell.text import rows, show
from scopedown.terms import Kind
from tell.reports import HOSTILE, hostile, worked_example

SCREEN = Path(__file__).with_name("worked_example.txt")


def screen(report: Report, width: int = 80, top: int | None = None) -> str:
    out = io.StringIO()
    show(report, out, width=width, top=top)
    return out.getvalue()


def too_wide(text: str, width: int) -> list[str]:
    """Lines wider than the screen that are no commands."""
    return [x for x in text.splitlines() if cell_len(x) > width and "$" not in x[:9]]


def test_the_screen_answers() -> None:
    assert screen(worked_example()) == SCREEN.read_text("utf-8")


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("kind", list(Kind))
def test_it_fits(width: int, kind: Kind) -> None:
    report = worked_example()
    report.decision.kind = kind
    text = screen(report, width)
    assert not too_wide(text, width)
    if width >= 80:
        assert len(text.splitlines()) <= 24


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("top", [None, 5])
def test_names_from_files_do_not_act(text: str, top: int | None) -> None:
    shown = screen(hostile(text), 80, top)
    acting = {c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs"}} - {"\n"}
    assert not acting
    assert not too_wide(shown, 80)
    if top is None:
        assert len(shown.splitlines()) <= 24
    if text.startswith("[red]"):
        assert "[red]a[/red]" in shown


def test_plain_in_a_pipe_and_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    show(worked_example(), terminal, width=80)
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b" not in screen(worked_example())
    monkeypatch.setenv("NO_COLOR", "1")
    silent = Terminal()
    show(worked_example(), silent, width=80)
    assert "\x1b[3" not in silent.getvalue()


def test_the_width_is_that_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = io.StringIO()
    show(worked_example(), out)
    assert not too_wide(out.getvalue(), 60)


def test_top_shows_what_stands_behind() -> None:
    text = screen(worked_example(), top=20)
    for word in ("refuted by", "predicts: ttft falls by 75.000 ms", "cannot establish", "clock state", "py-spy",
                 "all kernels at zero time", "nothing seen"):  # fmt: skip
        assert word in " ".join(text.split()), word
    assert not too_wide(text, 80)


def test_a_window_without_a_symptom_and_an_empty_ledger() -> None:
    report = msgspec.structs.replace(worked_example(), symptom=None, unknown=[], warnings=[])
    report.ledger = msgspec.structs.replace(report.ledger, lines=[], total_ns=0)
    report.decision = msgspec.structs.replace(report.decision, command=None, rejected=[])
    text = screen(report)
    assert "no symptom stated" in text
    assert "nothing that this question needs" in text


def test_wide_characters_are_counted_as_the_terminal_does() -> None:
    report = worked_example()
    report.ledger.lines[0].label = "層" * 60
    assert all(row.cell_len <= 80 or "$" in row.plain[:9] for row in rows(report, 80))
