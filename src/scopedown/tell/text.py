"""The report for a terminal: one screen that answers, and with ``top`` what stands behind it.

The screen has at most 24 lines; a command is one line, never broken, so that it can be copied (a narrow terminal
folds it). Colour only where the output is a terminal; names from files are plain text, never markup.
"""

from __future__ import annotations

import re
import shutil
from typing import NamedTuple, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from scopedown.report import Report
from scopedown.tell import details, sentences
from scopedown.tell.clean import clean
from scopedown.terms import Category, Kind

SCREEN = 24
NARROWEST = 40
_HEAD = 9
"""Columns of the heading at the left."""

_STYLES = {"host": "yellow", "device": "green", "queue": "magenta", "unaccounted": "red"}


def show(report: Report, file: TextIO, *, top: int | None = None, width: int | None = None) -> None:
    """Write the report to ``file``: in the width of the terminal or of COLUMNS, else in 80."""
    columns = max(NARROWEST, width or shutil.get_terminal_size((80, SCREEN)).columns)
    console = Console(file=file, width=columns, highlight=False, markup=False, emoji=False)
    for row in rows(report, columns, top=top):
        console.print(row, soft_wrap=True)


def rows(report: Report, width: int, *, top: int | None = None) -> list[Text]:
    """The lines of the report; only those that hold a command may be longer than ``width``."""
    screen = _screen(report, width)
    if top is None:
        return screen
    return [*screen, Text(""), *ledger(report, width, top), *_behind(report, width, top)]


def _behind(report: Report, width: int, top: int) -> list[Text]:
    out = []
    for head, paragraphs in details.sections(report):
        shown = paragraphs[:top]
        if len(paragraphs) > top:
            shown.append(f"{len(paragraphs) - top} more")
        for i, paragraph in enumerate(shown):
            out += section("" if i else head, [paragraph], width)
    return out


class _Most(NamedTuple):
    """How many lines each part of the screen may take."""

    standing: int
    question: int
    found: int
    why: int
    rejected: int
    remark: int


#: From generous to tight: the first that leaves the ledger five lines is taken, else the last.
_LIMITS = (
    _Most(2, 2, 4, 4, 3, 2),
    _Most(2, 2, 3, 3, 2, 1),
    _Most(1, 2, 3, 2, 2, 1),
    _Most(1, 1, 2, 2, 1, 1),
    _Most(1, 1, 2, 1, 1, 1),
    _Most(1, 1, 1, 1, 1, 1),
)


def _screen(report: Report, width: int) -> list[Text]:
    for most in _LIMITS:
        before = section("symptom", [sentences.symptom(report)], width, most=2)
        standing = sentences.standing(report)
        if standing:
            before += section("", [standing], width, most=most.standing)
        after = [*_decision(report, width, most), *_commands(report, width), *_remarks(report, width, most.remark)]
        room = SCREEN - len(before) - len(after) - 1
        if room >= 5:
            break
    return [*before, *ledger(report, width, max(3, room)), *after]


def _decision(report: Report, width: int, most: _Most) -> list[Text]:
    d = report.decision
    out = section("next", [sentences.verdict(report)], width, most=2, style="bold")
    if d.question:
        out += section("", [clean(d.question)], width, most=most.question)
    found = sentences.found(report)
    if found:
        out += section("found", [clean(found)], width, most=most.found, whole=True)
    if d.why:
        out += section("because", [clean(d.why)], width, most=most.why, whole=True)
    heading = "not yet" if d.kind is not Kind.ENOUGH else "narrower"
    for i, r in enumerate(d.rejected[: most.rejected]):
        out += section("" if i else heading, [sentences.rejected(r, short=True)], width, most=1)
    return out


def _commands(report: Report, width: int) -> list[Text]:
    command = report.decision.command
    if command is None:
        return []
    out = []
    for step in command.steps:
        line = Text(set_cell_size(f"{clean(step.where, 6)}$", _HEAD), "cyan")
        out.append(line.append(clean(step.shell), "default"))
    needs = sentences.needs(command)
    return out + (section("needs", [needs], width, most=2) if needs else [])


def _remarks(report: Report, width: int, most: int) -> list[Text]:
    """What is not known, and the first warning."""
    known = [clean(u) for u in report.unknown]
    warned = [clean(w) for w in report.warnings]
    out = section("unknown", known[:1] or ["nothing that this question needs"], width, most=most)
    more = len(known) - 1 if known else 0
    if warned:
        out += section("warning", warned[:1], width, most=most)
        more += len(warned) - 1
    if more > 0:
        out += section("", [f"{more} more such remarks: --top 20"], width, most=1)
    return out


def _fitting(paragraph: str, room: int, most: int) -> str:
    """The longest run of clauses from the beginning that fits; the paragraph itself where not even one does."""
    console = Console(width=room)
    if len(Text(paragraph).wrap(console, room)) <= most:
        return paragraph
    ends = [m.start() for m in re.finditer(r"[.;:](?= )|,(?= [a-z])", paragraph)]
    for end in reversed(ends):
        part = paragraph[:end] + " …"
        if len(Text(part).wrap(console, room)) <= most:
            return part
    return paragraph


def ledger(report: Report, width: int, most: int) -> list[Text]:
    """The account: a heading and at most ``most`` lines, the last of which sums what is not shown."""
    book = report.ledger
    lines = sorted(book.lines, key=lambda line: -line.ns)
    shown = lines if len(lines) <= most else lines[: most - 1]
    exact = f"{sentences.amount(book.total_ns, book)} in {len(lines)} lines, which sum to it exactly"
    out = section("ledger", [exact], width, most=1)
    categories = max((len(line.category) for line in shown), default=0)
    for line in shown:
        end = sentences.resolved(line)
        row = Text(_amount(line.ns, line.share))
        row.append(f"{line.category:<{categories}}  ", _style(line.category))
        room = width - row.cell_len - cell_len(end) - 2
        if room < 12:  # too narrow for both: the name says more than who could resolve it
            end, room = "", width - row.cell_len
        row.append(set_cell_size(sentences.label(line, room), room))
        out.append(row.append(f"  {end}" if end else "", "dim"))
    rest = lines[len(shown) :]
    if rest:
        row = Text(_amount(sum(line.ns for line in rest), sum(line.share for line in rest)))
        out.append(row.append(f"{len(rest)} more lines (--top {len(lines)})", "dim"))
    for row in out:
        row.rstrip()
        row.truncate(width, overflow="ellipsis")
    return out


def _amount(ns: int, share: float) -> str:
    return f"{sentences.ms(ns):>14} {sentences.percent(share):>7}  "


def _style(category: Category) -> str:
    return _STYLES.get(category.split(".")[0], "default")


def section(
    head: str, paragraphs: list[str], width: int, *, most: int = 1000, style: str = "", whole: bool = False
) -> list[Text]:
    """Paragraphs beside a heading, folded to ``width``; at most ``most`` lines, a cut is marked with "…". ``whole``:
    cut behind a clause where one ends in time, so that what is shown can be read as it stands."""
    room = width - _HEAD
    if whole:
        paragraphs = [_fitting(p, room, most) for p in paragraphs]
    console = Console(width=room)
    folded: list[Text] = []
    for paragraph in paragraphs:
        folded += Text(paragraph, style).wrap(console, room, tab_size=1) or [Text("")]
    if len(folded) > most:
        folded = folded[:most]
        folded[-1].rstrip()
        folded[-1].truncate(room - 1)
        folded[-1].append("…")
    out = []
    for i, text in enumerate(folded):
        text.rstrip()
        out.append(Text(set_cell_size("" if i else head, _HEAD), "bold cyan").append_text(text))
    return out
