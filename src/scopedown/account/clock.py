"""The server's clock against the client's, from the stamps of a request log."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from scopedown.read.base import UNKNOWN, RequestLog
from scopedown.trace.model import Ints
from scopedown.units import show_ns

#: Offsets of time zones are multiples of a quarter of an hour.
ZONE_STEP_NS = 900 * 10**9


@dataclass(frozen=True, slots=True)
class ServerClock:
    """How far the server's clock is ahead of the client's."""

    offset_ns: int
    """To be taken from server stamps; 0 where they agree with the client's clock as they are."""
    uncertainty_ns: int
    disagree: int
    """Requests whose server stamps lie outside [sent, first token] as they are."""
    of: int
    warning: str | None


def server_clock(log: RequestLog) -> ServerClock:
    """The offset that brings server stamps between the send and the first token.

    A server that is ``o`` ahead allows ``scheduled - first token <= o <= queued - sent`` for every request. Where most
    requests disagree with 0, ``o`` is the multiple of 900 s in that range (a time zone), else its upper end: the
    quickest way to the server is taken as nothing. The width of the range is the uncertainty.
    """
    early = np.where(log.queued != UNKNOWN, log.queued, log.scheduled)
    leaves = np.where(log.sent != UNKNOWN, log.sent, log.arrival)
    has_way = (early != UNKNOWN) & (leaves != UNKNOWN)
    has_back = (log.scheduled != UNKNOWN) & (log.first_token != UNKNOWN)
    outside = np.zeros(len(log), np.bool_)
    outside[has_way] = early[has_way] < leaves[has_way]
    outside[has_back] |= log.scheduled[has_back] > log.first_token[has_back]
    disagree, of = int(outside.sum()), int((has_way | has_back).sum())
    if 2 * disagree <= of or not has_way.any():
        return ServerClock(0, 0, disagree, of, None)
    # One wild stamp must not move all others: the outermost hundredth does not vote.
    high = _trimmed(early[has_way] - leaves[has_way])
    low = -_trimmed(log.first_token[has_back] - log.scheduled[has_back]) if has_back.any() else high
    if low > high:
        text = f"server stamps contradict the client's for {disagree} of {of} requests, and no constant offset mends it"
        return ServerClock(0, low - high, disagree, of, text)
    zone = round((low + high) / 2 / ZONE_STEP_NS) * ZONE_STEP_NS
    offset = zone if zone != 0 and low <= zone <= high else high
    text = (
        f"the server's clock is {show_ns(abs(offset))} {'ahead of' if offset > 0 else 'behind'} the client's "
        f"({disagree} of {of} requests disagree): corrected, uncertain by {show_ns(high - low)}"
    )
    return ServerClock(offset, high - low, disagree, of, text)


def _trimmed(sample: Ints) -> int:
    """The smallest value but for the lowest hundredth."""
    k = math.floor(len(sample) / 100)
    return int(np.partition(sample, k)[k])
