"""Request logs of one's own: any JSON, JSON lines or CSV, read through a column mapping (``read/columns.py``).

In JSON the rows are the objects of a list (or columns of equal length) that have a mapped column; several such lists
are several runs. Without any stamp each request has durations only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Clock, Source
from scopedown.read.bench import (
    Notes,
    Row,
    after,
    artifact,
    clock_of,
    document_or_lines,
    get,
    head_of,
    iso,
    many,
    ns,
    steps,
    text_of,
    whole,
)
from scopedown.read.bench import of_error as status_of_error
from scopedown.read.bench_lmbench import csv_rows
from scopedown.read.bench_runs import chosen_run
from scopedown.read.columns import ISO, Columns, parse_columns
from scopedown.terms import Scope, Status
from scopedown.units import show_ns

_OK = {"ok", "success", "successful", "succeeded", "completed", "complete", "done", "true", "1", "stop", "length", ""}


class CustomRequests:
    kind: ClassVar[str] = "columns"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "Any JSON, JSON lines or CSV with one row a request, through --columns"

    def __init__(self, columns: str | None = None) -> None:
        self.columns = None if columns is None else parse_columns(columns)

    def sniff(self, source: Source) -> bool:
        """Only with a mapping, and where the first bytes hold a mapped column."""
        if self.columns is None or not self.columns.fields:
            return False
        head = head_of(source).decode("utf-8", "replace")
        if head.startswith(("{", "[")):
            return any(f'"{c.split(".")[-1]}"' in head for c in self.columns.fields.values())
        cells = [c.strip().strip('"') for c in head.split("\n", 1)[0].split(",")]
        return any(c in cells for c in self.columns.fields.values())

    def read(self, source: Source) -> Artifact:
        if self.columns is None or not self.columns.fields:
            raise InputError(source.path, "", "is read through a column mapping only", "give one with --columns")
        notes = Notes()
        runs = _runs(source, self.columns, notes)
        if not runs:
            wanted = ", ".join(self.columns.fields.values())
            raise InputError(source.path, "", f"no row has one of the columns {wanted}", "correct --columns")
        rows = []
        for number, (_, found) in chosen_run(source, runs, [name for name, _ in runs], self.columns.run, notes):
            prefix = f"{number}/" if len(runs) > 1 and self.columns.run is None else ""
            rows += [_row(r, self.columns, prefix, i, notes) for i, r in enumerate(found)]
        for name, column in self.columns.fields.items():
            if all(get(r, *column.split(".")) is None and column not in r for _, found in runs for r in found):
                raise InputError(source.path, column, f"no row has this column (mapped to {name})", "correct --columns")
        stamped = {"arrival", "sent"} & self.columns.fields.keys()
        clock = clock_of(rows) if stamped else Clock.NONE
        if stamped and all(r.arrival is None and r.sent is None for r in rows):
            raise InputError(source.path, self.columns.fields[stamped.pop()], "holds no time", "correct --columns")
        if not stamped:
            notes.say("no start times: each request has durations only, nothing says which ones ran side by side")
        if clock is Clock.OWN:
            first = min(t for r in rows for t in (r.arrival, r.sent) if t is not None)
            text = f"times count from an unknown zero (the first is at {show_ns(first)})"
            notes.say(f"{text}: no trace can be laid on them; if they are Unix times the unit is wrong")
        return artifact(source, self, rows, clock, notes, "column mapping")


def _runs(source: Source, columns: Columns, notes: Notes) -> list[tuple[str, list[dict[str, Any]]]]:
    """``(name, rows)`` of each run."""
    head = head_of(source)
    if not head.startswith((b"{", b"[")):
        return [("rows", [r for _, r in csv_rows(text_of(source), notes)])]
    value, by_line = document_or_lines(source, notes)
    if by_line:
        return [("rows", value)]
    if columns.rows is not None:
        return list(_at(value, columns.rows.split("."), ()))
    return list(_walk(value, set(columns.fields.values()), ()))


def _at(value: Any, path: list[str], name: tuple[str, ...]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    if not path:
        if isinstance(value, list):
            yield ".".join(name) or "rows", [v for v in value if isinstance(v, dict)]
        return
    if not isinstance(value, dict):
        return
    for key in value if path[0] == "*" else [path[0]]:
        if key in value:
            yield from _at(value[key], path[1:], (*name, key))


def _walk(value: Any, wanted: set[str], name: tuple[str, ...]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Every list of objects that have a wanted column, and every set of wanted columns of one length."""
    if isinstance(value, list):
        rows = [v for v in value if isinstance(v, dict)]
        if any(any(w in r or get(r, *w.split(".")) is not None for w in wanted) for r in rows[:50]):
            yield ".".join(name) or "rows", rows
            return
        for i, v in enumerate(rows):
            yield from _walk(v, wanted, (*name, str(i)))
    elif isinstance(value, dict):
        lists = {k: v for k, v in value.items() if k in wanted and isinstance(v, list)}
        if lists and len({len(v) for v in lists.values()}) == 1:
            yield (
                ".".join(name) or "columns",
                [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)],
            )
            return
        for k, v in value.items():
            if isinstance(v, dict | list):
                yield from _walk(v, wanted, (*name, k))


def _row(r: dict[str, Any], columns: Columns, prefix: str, number: int, notes: Notes) -> Row:
    def cell(name: str) -> Any:
        column = columns.fields.get(name)
        return None if column is None else r[column] if column in r else get(r, *column.split("."))

    def time(name: str) -> int | None:
        scale = columns.scales.get(name, 1)
        return iso(cell(name), notes) if scale == ISO else ns(cell(name), scale)

    own = cell("id")
    name = f"{prefix}{number if own is None else own}"
    arrival, sent = time("arrival"), time("sent")
    # Without stamps a request begins at 0 of its own.
    start = sent if sent is not None else arrival if arrival is not None else None
    if start is None and not {"arrival", "sent"} & columns.fields.keys():
        start = sent = 0
    first = time("first_token") if "first_token" in columns.fields else after(start, *_length(cell, columns, "ttft"))
    stamps = cell("tokens")
    chunks: list[int] = []
    if isinstance(stamps, list):
        times = many(stamps, columns.scales["tokens"] or 1)
        chunks = [] if times is None else sorted(times.tolist())
    elif "gaps" in columns.fields:
        chunks = steps(first, cell("gaps"), columns.scales["gaps"])
    end = time("end") if "end" in columns.fields else after(start, *_length(cell, columns, "e2e"))
    status, error = _status(cell("status"), cell("error"), "status" in columns.fields)
    return Row(
        id=name,
        arrival=arrival,
        sent=sent,
        first=first,
        last=time("last_token"),
        end=end,
        chunks=chunks,
        input_tokens=whole(cell("input_tokens")),
        output_tokens=whole(cell("output_tokens")),
        status=status,
        error=error,
        warmup=str(cell("warmup")).lower() in ("true", "1", "warmup", "warm-up"),
        queued=time("queued"),
        scheduled=time("scheduled"),
    )


def _length(cell: Any, columns: Columns, name: str) -> tuple[Any, int]:
    return cell(name), columns.scales.get(name, 1)


def _status(status: Any, error: Any, has_status: bool) -> tuple[Status, str | None]:
    text = None if error in (None, "", False) else str(error)[:200]
    if has_status:
        word = str("" if status is None else status).strip().lower()
        if word in _OK or (word.isdecimal() and 200 <= int(word) < 300):
            return Status.OK, text
        return status_of_error(word), text or word
    return (
        (Status.OK, None) if text is None or text.lower() in ("nan", "none", "null") else (status_of_error(text), text)
    )
