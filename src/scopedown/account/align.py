"""Alignment of a request log to a trace: one offset, and how far it can be trusted."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from scopedown.read.base import UNKNOWN, Clock, RequestLog
from scopedown.trace.model import HostKind, Ints, Trace
from scopedown.units import show_ns


@dataclass(frozen=True, slots=True)
class Mark:
    """A range of the trace that carries a request's id."""

    row: int
    """Of the log."""
    start: int
    end: int
    thread: int


@dataclass(frozen=True, slots=True)
class Alignment:
    offset_ns: int
    """Epoch time of the log = offset + time of the trace."""
    uncertainty_ns: int
    how: str
    warnings: tuple[str, ...]
    marks: tuple[Mark, ...]

    def on_trace(self, epoch_ns: int) -> int:
        return epoch_ns - self.offset_ns


def find_marks(trace: Trace, log: RequestLog) -> tuple[Mark, ...]:
    """Ranges and marks whose text holds a request id as a whole word; ids that the log repeats are left out."""
    ids = {r: i for i, r in enumerate(log.id)}
    if len(ids) < len(log.id):
        seen: set[str] = set()
        double = {r for r in log.id if r in seen or seen.add(r)}  # type: ignore[func-returns-value]
        ids = {r: i for r, i in ids.items() if r not in double}
    if not ids:
        return ()
    host = trace.host
    rows = np.flatnonzero(
        (host.kind == HostKind.ANNOTATION) | (host.kind == HostKind.RANGE) | (host.kind == HostKind.MARK)
    )
    word = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")
    of_name: dict[int, int] = {}
    for n in np.unique(host.name[rows]).tolist():
        for w in word.findall(trace.names[n]):
            if w in ids and (len(w) > 2 or not w.isdigit()):
                of_name[n] = ids[w]
                break
    carrying = rows[np.isin(host.name[rows], list(of_name))] if of_name else rows[:0]
    return tuple(
        Mark(of_name[int(host.name[i])], int(host.start[i]), int(host.end[i]), int(host.thread[i]))
        for i in carrying.tolist()
    )


def no_place(log: RequestLog) -> str | None:
    """Why no trace can be laid on the log's clock; None where one may."""
    if log.clock is Clock.NONE:
        return "it has durations only, no time of day"
    if log.clock is Clock.OWN:
        return "its times count from an unknown zero (a monotonic clock), not from the Unix epoch"
    return None


def align(trace: Trace, log: RequestLog, user_offset_ns: int | None = None) -> Alignment | None:
    """None where nothing ties the log to the trace: nothing can where its times have no known zero (``no_place``), but
    for an offset that the user states.

    A range that carries a request's id lies inside [arrival, end] of that request. Where the session's own start time
    violates this, the middle of the allowed offsets is taken and half their width is the uncertainty.
    """
    if log.clock is Clock.NONE or (log.clock is Clock.OWN and user_offset_ns is None):
        return None
    marks = find_marks(trace, log)
    low, high = _allowed(marks, log)
    session = trace.meta.utc_start_ns
    if user_offset_ns is not None:
        return Alignment((session or 0) + user_offset_ns, 0, "as given", (), marks)
    if session is not None and (low is None or high is None or low <= session <= high):
        how = "session start in UTC" + (", agrees with marks that carry request ids" if marks else "")
        return Alignment(session, 0, how, (), marks)
    if low is None or high is None:
        return None
    if low > high:
        text = "ranges that carry request ids contradict each other: no offset puts each inside its request"
        return Alignment(session, 0, "session start in UTC", (text,), marks) if session is not None else None
    low, high = _tighten(trace, log, marks, low, high)
    offset, half = (low + high) // 2, (high - low + 1) // 2
    if session is None:
        return Alignment(offset, half, "marks that carry request ids", (), marks)
    away = session - offset
    text = (
        f"the log's clock and the trace's session start disagree by {show_ns(abs(away))}"
        f"{_zone(away)}: corrected by marks that carry request ids, uncertain by {show_ns(half)}"
    )
    return Alignment(offset, half, "marks that carry request ids", (text,), marks)


def _zone(ns: int) -> str:
    quarter = round(ns / (900 * 10**9))
    near = abs(ns - quarter * 900 * 10**9) < 5 * 10**9
    return f" (a time zone of {quarter / 4:+.2f} h?)" if quarter and near else ""


def _allowed(marks: tuple[Mark, ...], log: RequestLog) -> tuple[int | None, int | None]:
    low: int | None = None
    high: int | None = None
    for m in marks:
        begin = int(log.arrival[m.row]) if log.arrival[m.row] != UNKNOWN else int(log.sent[m.row])
        end = int(log.end[m.row]) if log.end[m.row] != UNKNOWN else int(log.first_token[m.row])
        if begin != UNKNOWN:
            low = begin - m.start if low is None else max(low, begin - m.start)
        if end != UNKNOWN:
            high = end - m.end if high is None else min(high, end - m.end)
    return low, high


def _tighten(trace: Trace, log: RequestLog, marks: tuple[Mark, ...], low: int, high: int) -> tuple[int, int]:
    """Where the capture holds one request only, all device work after its mark's begin lies in its service phase."""
    rows = {m.row for m in marks}
    if len(rows) != 1 or not len(trace.ops):
        return low, high
    row = rows.pop()
    first = min(m.start for m in marks)
    mine: Ints = np.flatnonzero(trace.ops.start >= first)
    began = int(log.scheduled[row]) if log.scheduled[row] != UNKNOWN else UNKNOWN
    ended = int(log.first_token[row])
    if not len(mine) or UNKNOWN in (began, ended) or int(log.output_tokens[row]) != 1:
        return low, high
    begin, end = int(trace.ops.start[mine].min()), int(trace.ops.end[mine].max())
    if end - begin > ended - began:
        return low, high
    tight_low, tight_high = max(low, began - begin), min(high, ended - end)
    return (tight_low, tight_high) if tight_low <= tight_high else (low, high)
