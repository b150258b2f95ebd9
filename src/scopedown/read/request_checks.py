"""Identities that the stamps of a request log must keep, and what a log with these columns can establish.

A broken identity means that a stamp is not what its name says (a reply that was not streamed, the send taken for the
arrival, another unit): a ledger made from it would be exact and wrong.
"""

from __future__ import annotations

import numpy as np

from scopedown.read.base import STATUSES, UNKNOWN, RequestLog
from scopedown.terms import Status
from scopedown.trace.model import Ints, Mask

_OK = STATUSES.index(Status.OK)
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
    clock = _after(log.sent, log.queued) | _after(log.scheduled, log.first_token)
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
    if (log.arrival == UNKNOWN).any():
        n = int((log.arrival == UNKNOWN).sum())
        warnings.append(f"{n} requests have no arrival_ns: times run from the send, a late client cannot be seen")
    if log.chunk_tokens is not None and (log.chunk_tokens > 1).any():
        warnings.append("chunks hold several tokens: gaps are between chunks, not tokens")
    return broken, warnings


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


def _not_streamed(log: RequestLog) -> tuple[str, str]:
    """First token = end on every request that made several tokens: the reply came as a whole."""
    name = "first token < end of a streamed reply"
    rows = (log.status == _OK) & (log.first_token != UNKNOWN) & (log.end != UNKNOWN) & (log.output_tokens != 1)
    if rows.sum() < 2 or (log.first_token[rows] != log.end[rows]).any():
        return name, ""
    return name, "TTFT equals E2E on all requests: the replies were not streamed, TTFT says nothing of the first token"


def _wrong_unit(log: RequestLog) -> tuple[str, str]:
    """Epoch times of our decades lie between 1e18 and 4e18 ns; a factor of 1000 less is another unit."""
    times = np.concatenate([log.arrival, log.sent, log.end])
    known = times[times != UNKNOWN]
    name = "times in ns"
    for scale, unit in _UNITS:
        if len(known) and known.min() >= 1.2 * scale and known.max() < 4 * scale:
            return name, f"times look like {unit} since the epoch: they are read as ns"
    return name, ""
