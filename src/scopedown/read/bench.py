"""What the readers of load generators share: rows that become a request log, texts that become JSON, times that become
nanoseconds. Each tool measures its own TTFT and TPOT; here only stamps are kept, and everything is computed from them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import STATUSES, UNKNOWN, Artifact, Clock, Reader, RequestLog, Source
from scopedown.read.request_checks import check, establishes
from scopedown.terms import Status
from scopedown.trace.model import Ints

BOM = b"\xef\xbb\xbf"
S, MS, US, NS = 10**9, 10**6, 10**3, 1
_ISO = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s*(Z|UTC|[+-]\d\d:?\d\d)?")
#: A file holds integers of 64 bits; nothing that is timed takes longer.
_LIMIT = 2**62
_TIMED_OUT = re.compile(r"time[d ]?-?\s?out", re.IGNORECASE)
_CANCELLED = re.compile(r"cancel|abort", re.IGNORECASE)


@dataclass(slots=True)
class Row:
    """One request. Times in ns on the clock of its log; None: the log does not say."""

    id: str
    arrival: int | None = None
    sent: int | None = None
    first: int | None = None
    last: int | None = None
    """Last token, where chunks are not stamped."""
    end: int | None = None
    chunks: Sequence[int] = ()
    chunk_tokens: Sequence[int] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    status: Status = Status.OK
    error: str | None = None
    warmup: bool = False
    queued: int | None = None
    scheduled: int | None = None


@dataclass(slots=True)
class Notes:
    """What a reader met, in the order met; ``count`` for what may occur in many rows."""

    texts: list[str] = field(default_factory=list)
    counts: dict[str, list[str]] = field(default_factory=dict)

    def say(self, text: str) -> None:
        self.texts.append(text)

    def count(self, text: str, row: str) -> None:
        """``text`` with ``{n}`` for the number of rows."""
        self.counts.setdefault(text, []).append(row)

    def all(self, of: int) -> list[str]:
        counted = [text.format(n=f"{len(rows)} of {of}") for text, rows in self.counts.items()]
        return list(dict.fromkeys([*self.texts, *counted]))


def ns(value: Any, scale: int) -> int | None:
    """A number of ``scale`` ns as integer ns, by its decimal digits: a float of epoch seconds keeps all it has.

    None for what is no finite number (null, NaN, Infinity, a text), and beyond 64 bits.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        found = value * scale
    else:
        try:
            exact = Decimal(repr(value) if isinstance(value, float) else str(value).strip())
        except InvalidOperation:
            return None
        if not exact.is_finite() or abs(exact) > _LIMIT:
            return None
        found = int((exact * scale).to_integral_value())
    return found if abs(found) < _LIMIT else None


def iso(value: Any, notes: Notes) -> int | None:
    """A date and time of day as Unix ns, with nine digits of a second; one without a zone is read as UTC."""
    match = _ISO.fullmatch(str(value).strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(g) for g in match.groups()[:6])
    try:
        at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    shift = 0
    if match[8] is None:
        notes.say("dates have no zone: read as UTC")
    elif match[8][0] in "+-":
        digits = match[8].replace(":", "")
        shift = (int(digits[1:3]) * 3600 + int(digits[3:5]) * 60) * (1 if digits[0] == "+" else -1)
    return (int(at.timestamp()) - shift) * 10**9 + int((match[7] or "0").ljust(9, "0"))


def after(start: int | None, value: Any, scale: int) -> int | None:
    """``start`` plus a duration."""
    length = ns(value, scale)
    return None if start is None or length is None else start + length


def whole(value: Any) -> int | None:
    """A count: 275, 275.0 and "275" are one."""
    found = ns(value, 1)
    return found if found is not None and 0 <= found < 2**40 else None


def many(values: Any, scale: int) -> Ints | None:
    """A list of numbers as integer ns; None where it is no list, or one of them is no finite number."""
    if not isinstance(values, list):
        return None
    if all(type(v) is float or (type(v) is int and abs(v) < _LIMIT) for v in values):
        with np.errstate(over="ignore"):
            product = np.array(values, np.float64) * scale
        # Below 2^52 a product is off by less than half a nanosecond; epoch times go digit by digit.
        if (np.abs(product) < 2**52).all():
            return np.rint(product).astype(np.int64)
    found = [ns(v, scale) for v in values]
    return None if any(t is None for t in found) else np.array(found, np.int64)


def steps(first: int | None, gaps: Any, scale: int) -> list[int]:
    """Chunk times from the first one and the gaps after it; empty where either is unknown."""
    lengths = many(gaps, scale)
    if first is None or lengths is None or not len(lengths):
        return []
    return [first, *(first + np.cumsum(lengths)).tolist()]


def of_error(text: str) -> Status:
    """A failed request's status from what its error says."""
    return Status.TIMEOUT if _TIMED_OUT.search(text) else Status.CANCELLED if _CANCELLED.search(text) else Status.ERROR


def head_of(source: Source) -> bytes:
    """The head from its first sign on."""
    return source.head.removeprefix(BOM).lstrip()


def text_of(source: Source) -> str:
    try:
        return source.read().removeprefix(BOM).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(source.path, "", f"cannot be read ({error.strerror})", "check its rights") from None


def document(source: Source) -> tuple[Any, list[str]]:
    """``(value, warnings)`` of a JSON file. NaN and Infinity pass, as Python's tools write them.

    An array that is cut off keeps its whole elements. Raises InputError where nothing can be kept.
    """
    text = text_of(source)
    try:
        return json.loads(text, strict=False), []
    except json.JSONDecodeError as error:
        kept = _whole_elements(text) if error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg else []
        if kept:
            return kept, [f"the file is cut off (line {error.lineno}): its {len(kept)} whole elements are kept"]
        where = f"line {error.lineno}, column {error.colno}"
        cut = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
        what = "is cut off: it ends inside a value" if cut else f"is no JSON ({error.msg})"
        do = "copy it again, or let the tool end" if cut else "check what wrote it"
        raise InputError(source.path, where, what, do) from None
    except (RecursionError, ValueError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else f"holds no JSON ({error})"
        raise InputError(source.path, "", what, "check what wrote it") from None


def _whole_elements(text: str) -> list[Any]:
    """The elements of a cut top-level array that are whole."""
    decoder, found = json.JSONDecoder(strict=False), []
    at = len(text) - len(text.lstrip())
    if text[at : at + 1] != "[":
        return []
    at += 1
    blank = re.compile(r"[\s,]*")
    while (match := blank.match(text, at)) is not None and match.end() < len(text):
        try:
            value, at = decoder.raw_decode(text, match.end())
        except json.JSONDecodeError:
            break
        found.append(value)
    # A number at the very end may be the beginning of a longer one.
    return [v for v in found if isinstance(v, dict)]


def lines(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """``(line number, object)`` of a JSON-lines file; a last line that is cut off is (number, {}).

    Raises InputError for any other line that is no object.
    """
    found = text_of(source).split("\n")
    for number, line in enumerate(found, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, strict=False)
        except (ValueError, RecursionError) as error:
            if number == len(found):
                yield number, {}
                return
            what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise InputError(
                source.path, f"line {number}", f"expected one JSON object ({what})", "correct or remove the line"
            ) from None
        if not isinstance(value, dict):
            raise InputError(source.path, f"line {number}", "expected one JSON object", "correct or remove the line")
        yield number, value


def document_or_lines(source: Source, notes: Notes) -> tuple[Any, bool]:
    """The value of a JSON file, or the objects of a file with one a line, and whether it is such a file."""
    try:
        value, warnings = document(source)
    except InputError:
        found = [line for _, line in lines(source)]
        if len(found) < 2:
            raise
        if not found[-1]:
            notes.say(f"line {len(found)} is cut off (no line end): dropped")
        return [line for line in found if line], True
    notes.texts += warnings
    return value, False


def get(value: Any, *path: str) -> Any:
    """``value[path[0]][path[1]]…``; None where a step is absent."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def items(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; nothing of anything else."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def log_of(rows: Sequence[Row], clock: Clock) -> RequestLog:
    """Columns. Chunks are sorted by time; a first token that is absent is the first chunk."""
    chunks = [sorted(r.chunks) for r in rows]
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in chunks])]).astype(np.int64)
    sizes = None
    if any(r.chunk_tokens for r in rows) and all(len(r.chunk_tokens) == len(r.chunks) for r in rows):
        sizes = np.fromiter((n for r in rows for n in r.chunk_tokens), np.int64, int(offsets[-1]))
    first = [c[0] if r.first is None and c else r.first for r, c in zip(rows, chunks, strict=True)]
    has_last = any(r.last is not None for r in rows)
    return RequestLog(
        id=[r.id for r in rows],
        arrival=column(r.arrival for r in rows),
        sent=column(r.sent for r in rows),
        first_token=column(first),
        end=column(r.end for r in rows),
        queued=column(r.queued for r in rows),
        scheduled=column(r.scheduled for r in rows),
        input_tokens=column(r.input_tokens for r in rows),
        output_tokens=column(r.output_tokens for r in rows),
        status=np.array([STATUSES.index(r.status) for r in rows], np.int8),
        error=[r.error for r in rows],
        warmup=np.array([r.warmup for r in rows], np.bool_),
        token_offsets=offsets,
        token_times=np.fromiter((t for c in chunks for t in c), np.int64, int(offsets[-1])),
        chunk_tokens=sizes,
        last_token=column(r.last for r in rows) if has_last else None,
        clock=clock,
    )


def column(values: Iterable[int | None]) -> Ints:
    return np.array([UNKNOWN if v is None else v for v in values], np.int64)


def clock_of(rows: Sequence[Row]) -> Clock:
    """EPOCH where the earliest time lies after 2001, as no monotonic clock of a machine does."""
    times = [t for r in rows for t in (r.arrival, r.sent, r.end) if t is not None]
    return Clock.EPOCH if times and min(times) >= 10**18 else Clock.OWN


def artifact(
    source: Source, reader: Reader, rows: Sequence[Row], clock: Clock, notes: Notes, producer: str, version: Any = None
) -> Artifact:
    """The request log of the rows, checked. Raises InputError where there is no row."""
    if not rows:
        raise InputError(source.path, "", "holds no request", "check that the benchmark sent any, and kept them")
    log = log_of(rows, clock)
    doubles = len(log.id) - len(set(log.id))
    if doubles:
        notes.say(f"{doubles} request ids occur more than once: all rows are kept")
    broken, found = check(log)
    can, cannot = establishes(log)
    times = np.concatenate([log.arrival, log.sent, log.first_token, log.end, log.token_times])
    known = times[times != UNKNOWN]
    covers = len(known) and clock is not Clock.NONE
    return Artifact(
        path=source.path,
        sha256=source.sha256,
        kind=reader.kind,
        scope=reader.scope,
        producer=producer,
        version=None if version is None else str(version),
        interval_ns=(int(known.min()), int(known.max())) if covers else None,
        utc_start_ns=0 if clock is Clock.EPOCH else None,
        counts={"requests": len(log), "chunks": len(log.token_times)},
        content=log,
        can_establish=can,
        cannot_establish=cannot,
        warnings=(*notes.all(len(log)), *found),
        extra={"broken_identities": broken},
    )
