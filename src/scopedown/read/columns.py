"""Column mappings for request logs of one's own: ``arrival=start_time:s,first_token=first_token_time:s``.

``FIELD=COLUMN[:UNIT]``, several with commas; ``rows=PATH`` says where in a JSON file the rows lie (``results``,
``short.*.per_request``), ``run=N`` which of several runs. A column of a nested object is named with dots.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from scopedown.errors import UsageError

STAMPS = ("arrival", "sent", "first_token", "last_token", "end", "queued", "scheduled", "tokens")
"""Times; ``tokens`` is a list of them, one a chunk."""
DURATIONS = ("ttft", "e2e", "gaps")
"""From the send; ``gaps`` is a list, one after each chunk but the last."""
COUNTS = ("input_tokens", "output_tokens")
WORDS = ("id", "status", "error", "warmup")
FIELDS = (*STAMPS, *DURATIONS, *COUNTS, *WORDS)
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
#: A date and time of day, as ISO 8601 writes it.
ISO = 0
_SUFFIX = re.compile(r"(?:^|[_.\s(\[])(ns|us|ms|s|secs?|seconds?|millis|milliseconds|micros)[)\]]?$", re.IGNORECASE)
_LONG = {"sec": "s", "secs": "s", "second": "s", "seconds": "s", "millis": "ms", "milliseconds": "ms", "micros": "us"}
EXAMPLE = "--columns 'sent=start_time:s,ttft=ttft_ms:ms,end=end_time:s,output_tokens=tokens'"


@dataclass(frozen=True, slots=True)
class Columns:
    fields: dict[str, str] = field(default_factory=dict)
    """Field of a request log -> column of the file."""
    scales: dict[str, int] = field(default_factory=dict)
    """Field -> ns of one unit; ISO for dates."""
    rows: str | None = None
    run: int | None = None


def parse_columns(text: str) -> Columns:
    """Raises UsageError that names the part at fault."""
    fields: dict[str, str] = {}
    scales: dict[str, int] = {}
    rows, run = None, None
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, column = (p.strip() for p in part.partition("="))
        if not equals or not column:
            raise UsageError(f"--columns: {part!r} is no FIELD=COLUMN; write for example {EXAMPLE}")
        if name == "rows":
            rows = column
        elif name == "run":
            if not column.isdecimal() or len(column) > 9 or int(column) < 1:
                raise UsageError(f"--columns: run={column}: expected a number from 1")
            run = int(column)
        elif name not in FIELDS:
            raise UsageError(f"--columns: unknown field {name!r}; the fields are {', '.join(FIELDS)}")
        elif name in fields:
            raise UsageError(f"--columns: {name} is given twice")
        else:
            fields[name], scale = _unit(name, column)
            if scale is not None:
                scales[name] = scale
    if fields and not {"first_token", "end", "ttft", "e2e", "tokens"} & fields.keys():
        raise UsageError("--columns: there is no latency: name at least one of first_token, end, ttft, e2e, tokens")
    if not fields and run is None:
        raise UsageError(f"--columns {text!r} names no column; write for example {EXAMPLE}")
    if {"ttft", "gaps"} & fields.keys() and not {"sent", "arrival"} & fields.keys() and _stamped(fields):
        raise UsageError("--columns: durations run from the send: name sent or arrival, or no stamp at all")
    return Columns(fields, scales, rows, run)


def _stamped(fields: Iterable[str]) -> bool:
    return any(f in fields for f in STAMPS)


def _unit(name: str, column: str) -> tuple[str, int | None]:
    """``(column, ns of its unit)``: as written behind the colon, else as the column's own name ends."""
    if name not in (*STAMPS, *DURATIONS):
        return column, None
    bare, colon, unit = column.rpartition(":")
    if colon and unit in UNITS:
        return bare, UNITS[unit]
    if colon and unit == "iso":
        if name in DURATIONS:
            raise UsageError(f"--columns: {name} is a duration: its unit is one of {', '.join(UNITS)}")
        return bare, ISO
    found = unit_of(column)
    if found is None:
        known = ", ".join([*UNITS, *(["iso"] if name in STAMPS else [])])
        raise UsageError(f"--columns: {name}={column} does not say its unit: write {name}={column}:s (one of {known})")
    return column, UNITS[found]


def unit_of(column: str) -> str | None:
    """``latency_ms`` -> ms."""
    match = _SUFFIX.search(column)
    return None if match is None else _LONG.get(match[1].lower(), match[1].lower())


_GUESSES = (
    ("ttft", re.compile(r"ttft|time.?to.?first", re.IGNORECASE)),
    ("first_token", re.compile(r"first.?token", re.IGNORECASE)),
    ("output_tokens", re.compile(r"(output|completion|generat\w*|decode|response)_?.*(tok|len)", re.IGNORECASE)),
    ("input_tokens", re.compile(r"(input|prompt|context|prefill)_?.*(tok|len)", re.IGNORECASE)),
    ("arrival", re.compile(r"arriv|scheduled.?(send|at)|intended|target", re.IGNORECASE)),
    ("sent", re.compile(r"^(start|sent|send|launch|begin|request.?start|timestamp|ts)", re.IGNORECASE)),
    ("end", re.compile(r"^(end|finish|complet|done|request.?end)(?!ion)", re.IGNORECASE)),
    ("e2e", re.compile(r"latency|e2e|duration|elapsed|total.?time|response.?time", re.IGNORECASE)),
    ("status", re.compile(r"status|success|^ok$", re.IGNORECASE)),
    ("error", re.compile(r"error|exception", re.IGNORECASE)),
    ("id", re.compile(r"(^|_)(id|uuid)$", re.IGNORECASE)),
)
_MEANS = re.compile(r"per_|avg|mean|median|p\d\d|throughput|std", re.IGNORECASE)


def guess(columns: Iterable[str]) -> str | None:
    """A mapping to try for these columns; None where none of them looks like a latency."""
    found: dict[str, str] = {}
    for column in columns:
        if "," in column or "=" in column or _MEANS.search(column):
            continue
        name = next((n for n, sign in _GUESSES if sign.search(column)), None)
        if name is not None and name not in found:
            timed = name in (*STAMPS, *DURATIONS)
            found[name] = column if not timed or unit_of(column) else f"{column}:s"
    if not {"first_token", "end", "ttft", "e2e"} & found.keys():
        return None
    if "e2e" in found and "end" in found:
        del found["e2e"]
    order = sorted(found, key=FIELDS.index)
    return ",".join(f"{n}={found[n]}" for n in order)


_OBJECT = re.compile(r"\{[^{}]*\}")
_CELL = re.compile(r"[A-Za-z_][\w .()/\[\]-]{0,50}")


def seen(head: bytes) -> list[str]:
    """Column names of the rows that a file's first bytes show: of a CSV header, or of the JSON objects that come most
    often. Empty where there are none."""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    if not text.startswith(("{", "[")):
        return _header(text)
    kinds: Counter[tuple[str, ...]] = Counter()
    for match in _OBJECT.finditer(text):
        try:
            row = json.loads(match[0])
        except (ValueError, RecursionError):
            continue
        if any(isinstance(v, int | float) and not isinstance(v, bool) for v in row.values()):
            kinds[tuple(row)] += 1
    able = [k for k in kinds if guess(k) is not None]
    kinds = Counter({k: n for k, n in kinds.items() if len(k) > 1})
    return list(max(able or kinds, key=lambda k: kinds[k], default=()))


def _header(text: str) -> list[str]:
    first, _, rest = text.partition("\n")
    cells = [c.strip().strip('"') for c in first.split(",")]
    second = rest.split("\n", 1)[0].split(",")
    is_header = len(cells) > 1 and len(second) == len(cells) and all(map(_CELL.fullmatch, cells))
    return cells if is_header else []
