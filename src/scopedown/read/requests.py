"""Request logs: one JSON object a line, as ``replay`` writes them.

Keys: ``id``, ``arrival_ns``, ``sent_ns``, ``first_token_ns``, ``token_ns[]``, ``chunk_tokens[]``, ``end_ns``,
``input_tokens``, ``output_tokens``, ``status``, ``error``, ``warmup``, ``queued_ns``, ``scheduled_ns``. Times are
integer ns since the Unix epoch; ``queued_ns`` and ``scheduled_ns`` are on the server's clock. Other keys are ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import STATUSES, UNKNOWN, Artifact, RequestLog, Source
from scopedown.read.request_checks import check, establishes
from scopedown.terms import Scope
from scopedown.trace.model import Ints
from scopedown.units import LAST_NS

Time = Annotated[int, msgspec.Meta(ge=0, lt=LAST_NS)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**40)]


class Row(msgspec.Struct):
    """One line. A number without a fraction may be written as a float."""

    id: str | int
    arrival_ns: Time | None = None
    sent_ns: Time | None = None
    first_token_ns: Time | None = None
    token_ns: list[Time] | None = None
    chunk_tokens: list[Count] | None = None
    end_ns: Time | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    status: Literal["ok", "error", "timeout", "cancelled"] = "ok"
    error: str | None = None
    warmup: bool | None = None
    queued_ns: Time | None = None
    scheduled_ns: Time | None = None


_KEY = re.compile(rb'"(arrival_ns|sent_ns|first_token_ns|scheduled_ns)"\s*:')
_FLOAT = re.compile(rb"[0-9][.eE]")
_AT = re.compile(r"^(.*?)(?: - at `\$\.?(.*)`)?$", re.DOTALL)
_STATUS = {s.value: i for i, s in enumerate(STATUSES)}
_BOM = b"\xef\xbb\xbf"


class NativeRequests:
    kind: ClassVar[str] = "requests-jsonl"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "Request log in scopedown's own format: JSON lines with times in ns since the epoch"

    def sniff(self, source: Source) -> bool:
        if b'"traceEvents"' in source.head:
            return False
        lines = source.head.removeprefix(_BOM).splitlines()[:20]
        return any(line.lstrip().startswith(b"{") and _KEY.search(line) for line in lines)

    def read(self, source: Source) -> Artifact:
        rows, warnings = _rows(source)
        log, odd = _columns(rows)
        broken, found = check(log)
        times = np.concatenate(
            [log.arrival, log.sent, log.first_token, log.end, log.queued, log.scheduled, log.token_times]
        )
        known = times[times != UNKNOWN]
        can, cannot = establishes(log)
        return Artifact(
            path=source.path,
            sha256=source.sha256,
            kind=self.kind,
            scope=self.scope,
            producer="a request log in scopedown's own format",
            version=None,
            interval_ns=(int(known.min()), int(known.max())) if len(known) else None,
            utc_start_ns=0,
            counts={"requests": len(log), "chunks": len(log.token_times)},
            content=log,
            can_establish=can,
            cannot_establish=cannot,
            warnings=(*warnings, *odd, *found),
            extra={"broken_identities": broken},
        )


def _rows(source: Source) -> tuple[list[Row], list[str]]:
    """The lines as typed rows. A last line without a newline that does not parse was being written: it is dropped."""
    decoder = msgspec.json.Decoder(Row)
    path = source.path
    try:
        raw = source.read()
    except OSError as error:
        raise InputError(path, "", f"cannot be read ({error.strerror})", "check its rights") from None
    lines = raw.removeprefix(_BOM).split(b"\n")
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        try:
            row = _row(decoder, text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number == len(lines) and not isinstance(error, msgspec.ValidationError):
                return rows, [f"line {number} is cut off (no line end): dropped"]
            raise _bad_line(path, number, error) from None
        if row.chunk_tokens is not None and len(row.chunk_tokens) != len(row.token_ns or ()):
            expected = f"as many chunk_tokens as token_ns, found {len(row.chunk_tokens)} and {len(row.token_ns or ())}"
            raise InputError(path, f"line {number}, chunk_tokens", f"expected {expected}", "correct the line")
        rows.append(row)
    if not rows:
        raise InputError(path, "", "expected one JSON object a line, found no request", "check what wrote it")
    return rows, []


def _row(decoder: msgspec.json.Decoder[Row], text: bytes) -> Row:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        if not _FLOAT.search(text):
            raise
    return msgspec.convert(_whole(msgspec.json.decode(text)), Row)


def _whole(value: Any) -> Any:
    """Floats without a fraction as integers, also in lists."""
    if isinstance(value, dict):
        return {k: _whole(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_whole(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _bad_line(path: Path, number: int, error: Exception) -> InputError:
    if not isinstance(error, msgspec.ValidationError):
        return InputError(path, f"line {number}", f"expected one JSON object ({error})", "correct or remove the line")
    match = _AT.match(str(error))
    message, field = (match[1], match[2]) if match else (str(error), "")
    where = f"line {number}, {field}" if field else f"line {number}"
    return InputError(path, where, message[:1].lower() + message[1:], "correct or remove the line")


def _columns(rows: list[Row]) -> tuple[RequestLog, list[str]]:
    warnings = []
    ids = [str(r.id) for r in rows]
    doubles = [i for i, n in Counter(ids).items() if n > 1]
    if doubles:
        warnings.append(f"{len(doubles)} request ids occur more than once (first: {doubles[0]!r}): both rows are kept")

    chunks = [r.token_ns or [] for r in rows]
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in chunks])]).astype(np.int64)
    times = np.fromiter((t for c in chunks for t in c), np.int64, int(offsets[-1]))
    owner = np.repeat(np.arange(len(rows)), np.diff(offsets))
    sizes = _chunk_sizes(rows, int(offsets[-1]))
    back = (np.diff(times) < 0) & (owner[1:] == owner[:-1])
    if back.any():
        order = np.lexsort((times, owner))
        times = times[order]
        sizes = None if sizes is None else sizes[order]
        warnings.append(f"token_ns out of order in {len(np.unique(owner[1:][back]))} requests: sorted")

    first = _column([r.first_token_ns for r in rows])
    has = np.diff(offsets) > 0
    from_chunks = (first == UNKNOWN) & has
    first[from_chunks] = times[offsets[:-1][from_chunks]]
    output = _column([r.output_tokens for r in rows])
    if sizes is not None:
        total = np.bincount(owner, weights=sizes, minlength=len(rows)).astype(np.int64)
        differs = has & (output != UNKNOWN) & (output != total)
        if differs.any():
            warnings.append(f"{int(differs.sum())} requests: chunk_tokens do not add up to output_tokens")
        output = np.where(has & (output == UNKNOWN), total, output)
    log = RequestLog(
        id=ids,
        arrival=_column([r.arrival_ns for r in rows]),
        sent=_column([r.sent_ns for r in rows]),
        first_token=first,
        end=_column([r.end_ns for r in rows]),
        queued=_column([r.queued_ns for r in rows]),
        scheduled=_column([r.scheduled_ns for r in rows]),
        input_tokens=_column([r.input_tokens for r in rows]),
        output_tokens=output,
        status=np.array([_STATUS[r.status] for r in rows], np.int8),
        error=[r.error for r in rows],
        warmup=np.array([bool(r.warmup) for r in rows], np.bool_),
        token_offsets=offsets,
        token_times=times,
        chunk_tokens=sizes,
    )
    return log, warnings


def _chunk_sizes(rows: list[Row], total: int) -> Ints | None:
    """Tokens a chunk, only where every request with chunks says it: a column has no gaps."""
    if not any(r.chunk_tokens for r in rows) or any(r.token_ns and r.chunk_tokens is None for r in rows):
        return None
    return np.fromiter((n for r in rows for n in r.chunk_tokens or ()), np.int64, total)


def _column(values: list[int | None]) -> Ints:
    return np.array([UNKNOWN if v is None else v for v in values], np.int64)
