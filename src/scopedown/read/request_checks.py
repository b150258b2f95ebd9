"""Identities that the stamps of a request log must keep, and what a log with these columns can establish.

A broken identity means that a stamp is not what its name says (a reply that was not streamed, the send taken for the
arrival, another unit): a ledger made from it would be exact and wrong.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import PREFILL_ROOF, STATUSES, UNKNOWN, Clock, RequestLog
from scopedown.read.limits import LONGEST_NS, TOTAL_NS
from scopedown.terms import Status
from scopedown.trace.model import Ints, Mask
from scopedown.units import LAST_NS

_OK = STATUSES.index(Status.OK)
_QUARTER_NS, _NEAR_NS = 900 * 10**9, 5 * 10**9
#: A first gap below this share of the median gap of its request follows a chunk without a token.
ROLE_GAP = 0.05
_UNITS = ((10**9, "seconds"), (10**12, "milliseconds"), (10**15, "microseconds"))


def check(log: RequestLog) -> tuple[dict[str, int], list[str]]:
    """``({identity: rows that break it}, warnings)``. Rows where a stamp is absent keep every identity."""
    last = last_chunk(log)
    orders: list[tuple[str, Mask]] = [
        ("arrival <= sent", _after(log.arrival, log.sent)),
        ("sent <= first token", _after(log.sent, log.first_token)),
        ("first token <= end", _after(log.first_token, log.end)),
        ("last chunk <= end", _after(last, log.end)),
        ("sent <= end", _after(log.sent, log.end)),
        ("queued <= scheduled", _after(log.queued, log.scheduled)),
    ]
    broken = {name: int(mask.sum()) for name, mask in orders if mask.any()}
    warnings = [
        f"{int(mask.sum())} of {len(log)} requests break {name} (first: {log.id[int(np.argmax(mask))]!r})"
        for name, mask in orders
        if mask.any()
    ]
    clock = np.zeros(len(log), np.bool_) if _zone(log) else _clock(log)
    if clock.any():
        warnings.append(
            f"{int(clock.sum())} of {len(log)} requests have server stamps outside sent to first token: "
            "the server's clock differs from the client's"
        )
    starts = log.token_offsets[:-1][np.diff(log.token_offsets) > 0]
    first = log.first_token[np.diff(log.token_offsets) > 0]
    differs = int((first != log.token_times[starts]).sum())
    if differs:
        broken["first token = first chunk"] = differs
        warnings.append(f"{differs} requests: first_token_ns is not the first of token_ns")
    for name, text in (_not_streamed(log), _wrong_unit(log)):
        if text:
            broken[name] = len(log)
            warnings.append(text)
    warnings += [text for text in (_zone(log), _too_fast(log), _tokens(log), _role_chunks(log)) if text]
    if (log.arrival == UNKNOWN).any():
        n = int((log.arrival == UNKNOWN).sum())
        warnings.append(f"{n} requests have no arrival_ns: times run from the send, a late client cannot be seen")
    if log.chunk_tokens is not None and (log.chunk_tokens > 1).any():
        warnings.append("chunks hold several tokens: gaps are between chunks, not tokens")
    return broken, warnings


def refuse_clocks(path: Path, log: RequestLog) -> None:
    """Raises InputError for a request whose own stamps lie further apart than any request lasts: they are of two
    clocks, or of two units, and no duration of the log can be trusted (nor fits int64 where many are added)."""
    last = last_chunk(log)
    total = 0.0
    for stamps in ((log.arrival, log.sent, log.first_token, last, log.end), (log.queued, log.scheduled)):
        table = np.stack(stamps)
        known = table != UNKNOWN
        low = np.where(known, table, LAST_NS).min(axis=0)
        high = np.where(known, table, -LAST_NS).max(axis=0)
        ns = np.where(known.any(axis=0), high - low, 0)
        total += float(ns.sum(dtype=np.float64))
        wrong = (ns > LONGEST_NS) | (known & (np.abs(table) >= LAST_NS)).any(axis=0)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                path,
                f"request {log.id[row]!r}",
                f"expected stamps of one clock, found some that lie {ns[row] / 86_400e9:.0f} days apart",
                "write all times of a request in ns since the same zero",
            )
    if total > TOTAL_NS:
        raise InputError(
            path, "", f"expected requests, found {total / 3.15576e16:.0f} years of them in all", "correct the unit"
        )


def last_chunk(log: RequestLog) -> Ints:
    """Receive time of each request's last chunk; UNKNOWN where the log has no chunks."""
    has = np.diff(log.token_offsets) > 0
    out = np.full(len(log), UNKNOWN, np.int64)
    out[has] = log.token_times[log.token_offsets[1:][has] - 1]
    return out


def establishes(log: RequestLog) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the present columns can and cannot establish."""
    has = {name: bool((getattr(log, name) != UNKNOWN).any()) for name in ("arrival", "sent", "first_token", "end")}
    server = bool((log.scheduled != UNKNOWN).any())
    can, cannot = [], ["why a phase takes its time"]
    if has["first_token"] and (has["arrival"] or has["sent"]):
        can.append("time to first token and its percentiles")
    if has["end"] and (has["arrival"] or has["sent"]):
        can.append("end-to-end latency and throughput")
    if (np.diff(log.token_offsets) > 1).any():
        can.append("gaps between chunks")
    if has["arrival"] and has["sent"]:
        can.append("how late the client sent")
    else:
        cannot.append("whether the client sent late")
    if server:
        can.append("queue and service time of each request")
    else:
        cannot.append("how long a request queued (no server stamps)")
    if log.input_tokens.max(initial=UNKNOWN) == UNKNOWN:
        cannot.append("which requests have the same shape (no input_tokens)")
    return tuple(can), tuple(cannot)


def _after(early: Ints, late: Ints) -> Mask:
    """Rows where both stamps are known and the early one is the later."""
    wrong: Mask = (early != UNKNOWN) & (late != UNKNOWN) & (early > late)
    return wrong


def _clock(log: RequestLog) -> Mask:
    return _after(log.sent, log.queued) | _after(log.scheduled, log.first_token)


def _zone(log: RequestLog) -> str:
    """Server stamps that are off by a whole quarter of an hour or more are local time on one side."""
    early = np.where(log.queued != UNKNOWN, log.queued, log.scheduled)
    known = (early != UNKNOWN) & (log.sent != UNKNOWN)
    if not known.any():
        return ""
    away = int(np.median(early[known] - log.sent[known]))
    quarters = round(away / _QUARTER_NS)
    if quarters == 0 or abs(away - quarters * _QUARTER_NS) > _NEAR_NS:
        return ""
    return f"server stamps are {quarters / 4:+g} h from the client's: a time zone, one side writes local time"


def _too_fast(log: RequestLog) -> str:
    fast = log.too_fast
    if not fast.any():
        return ""
    return (
        f"{int(fast.sum())} of {len(log)} requests have their first token faster than {PREFILL_ROOF:.0e} input "
        f"tokens/s (first: {log.id[int(np.argmax(fast))]!r}): cached, or a wrong stamp; statistics are without them"
    )


def _tokens(log: RequestLog) -> str:
    """A chunk holds a token at least, but for one with the role or the usage alone."""
    chunks = np.diff(log.token_offsets)
    known = (log.output_tokens != UNKNOWN) & (log.status == _OK) & (chunks > 0)
    many = known & (chunks > log.output_tokens + 2)
    none = known & (log.output_tokens == 0)
    if none.any():
        return f"{int(none.sum())} of {len(log)} requests received chunks and have 0 output tokens"
    if many.any():
        at = int(np.argmax(many))
        return (
            f"{int(many.sum())} of {len(log)} requests received more chunks than output tokens (first: {log.id[at]!r}, "
            f"{int(chunks[at])} and {int(log.output_tokens[at])}): the tokens were counted elsewhere"
        )
    return ""


def _role_chunks(log: RequestLog) -> str:
    """A first gap of next to nothing follows a chunk without a token (role, empty delta)."""
    chunks = np.diff(log.token_offsets)
    rows = np.flatnonzero((chunks >= 4) & (log.status == _OK))
    if len(rows) < 2:
        return ""
    first = log.token_offsets[rows]
    steps = np.diff(log.token_times)
    medians = np.array([np.median(steps[a : a + n - 1]) for a, n in zip(first, chunks[rows], strict=True)])
    short = steps[first] < ROLE_GAP * medians
    if 2 * short.sum() < len(rows):
        return ""
    return (
        f"the first gap is below {100 * ROLE_GAP:.0f} % of the median gap in {int(short.sum())} of {len(rows)} requests"
        ": the first chunk may hold no token (role), the first token is then the second chunk"
    )


def _not_streamed(log: RequestLog) -> tuple[str, str]:
    """First token = end on every request that made several tokens: the reply came as a whole."""
    name = "first token < end of a streamed reply"
    rows = (log.status == _OK) & (log.first_token != UNKNOWN) & (log.end != UNKNOWN) & (log.output_tokens != 1)
    if rows.sum() < 2 or (log.first_token[rows] != log.end[rows]).any():
        return name, ""
    return name, "TTFT equals E2E on all requests: the replies were not streamed, TTFT says nothing of the first token"


def _wrong_unit(log: RequestLog) -> tuple[str, str]:
    """Epoch times of our decades lie between 1e18 and 4e18 ns; a factor of 1000 less is another unit."""
    if log.clock is not Clock.EPOCH:
        return "", ""
    times = np.concatenate([log.arrival, log.sent, log.end])
    known = times[times != UNKNOWN]
    name = "times in ns"
    for scale, unit in _UNITS:
        if len(known) and known.min() >= 1.2 * scale and known.max() < 4 * scale:
            return name, f"times look like {unit} since the epoch: they are read as ns"
    return name, ""
