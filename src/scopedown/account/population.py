"""Statistics over the requests of a log: who counts, which value a statistic has, which request stands for it.

Percentiles are nearest rank, ``ceil(p * n)``, over requests with status ok that are no warm-up. A time-out enters as at
least the time it had; a percentile that it could have raised is "at least".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from scopedown.account.clock import server_clock
from scopedown.read.base import STATUSES, UNKNOWN, RequestLog
from scopedown.symptom import Symptom
from scopedown.terms import Metric, Statistic, Status
from scopedown.trace.model import Ints, Mask

_OK = STATUSES.index(Status.OK)
_TIMEOUT = STATUSES.index(Status.TIMEOUT)

SHARES = {Statistic.P50: 0.5, Statistic.P90: 0.9, Statistic.P95: 0.95, Statistic.P99: 0.99, Statistic.MAX: 1.0}

#: Requests whose input length is within this share of each other are of one class.
CLASS_WIDTH = 0.10


@dataclass(frozen=True, slots=True)
class Chosen:
    """A statistic of the log and the request that stands for it."""

    row: int
    value_ns: int
    """Of the statistic; for a mean that of the mean itself, not of its nearest request."""
    row_value_ns: int
    """Of the request."""
    interval95_ns: tuple[int, int] | None
    """None for one request, for max, and where the sample is too small for a bound."""
    at_least: bool
    """A time-out may hide a larger value."""
    population: dict[str, int]
    """requests, ok, errors, timeouts, cancelled, warmup, excluded (no value), values."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands among the requests of its class."""

    percentile: float
    """Share of the class at or below the value, in [0, 1]."""
    p5_ns: int
    p95_ns: int
    median_ns: int
    count: int
    by_shape: bool
    """Whether the class could be formed by input tokens; else it is all requests."""

    def inside(self, value_ns: int) -> bool:
        return self.p5_ns <= value_ns <= self.p95_ns


def starts(log: RequestLog) -> Ints:
    """Where latencies run from: the arrival; the send where the log has no arrival."""
    return np.where(log.arrival != UNKNOWN, log.arrival, log.sent)


def last_token(log: RequestLog) -> Ints:
    """Receive time of the last chunk; where the log has no chunks the last token's stamp, else the end of the reply."""
    has = np.diff(log.token_offsets) > 0
    out = log.end.copy() if log.last_token is None else np.where(log.last_token != UNKNOWN, log.last_token, log.end)
    out[has] = log.token_times[log.token_offsets[1:][has] - 1]
    return out


def interval(log: RequestLog, metric: Metric) -> tuple[Ints, Ints]:
    """``(start, end)`` of the metric's interval for each request; UNKNOWN where a stamp is absent.

    A request that timed out before the end of its interval has its end there.
    """
    begin = log.first_token if metric in (Metric.TPOT, Metric.ITL) else starts(log)
    match metric:
        case Metric.TTFT:
            end = log.first_token
        case Metric.TPOT | Metric.ITL:
            end = last_token(log)
        case Metric.E2E:
            end = log.end
        case Metric.QUEUE_TIME:
            # The interval starts on the client's clock: so must its end.
            end = np.where(log.scheduled != UNKNOWN, log.scheduled - server_clock(log).offset_ns, UNKNOWN)
        case _:
            return np.full(len(log), UNKNOWN, np.int64), np.full(len(log), UNKNOWN, np.int64)
    if metric in (Metric.TTFT, Metric.QUEUE_TIME):
        end = np.where((end == UNKNOWN) & (log.status == _TIMEOUT), log.end, end)
    return begin, end


def values(log: RequestLog, metric: Metric) -> tuple[Ints, Mask]:
    """``(ns, valid)`` a request: the metric, and whether the log has it. TPOT and ITL are per output token and per gap.

    Metrics of a step or of a window of load have no value of a request: nothing is valid.
    """
    begin, end = interval(log, metric)
    valid = (begin != UNKNOWN) & (end != UNKNOWN)
    ns = np.zeros(len(log), np.int64)
    ns[valid] = end[valid] - begin[valid]
    if metric in (Metric.TPOT, Metric.ITL):
        parts = log.output_tokens - 1 if metric is Metric.TPOT else np.diff(log.token_offsets) - 1
        valid &= (log.output_tokens != UNKNOWN) if metric is Metric.TPOT else True
        valid &= parts >= 1
        ns[valid] //= parts[valid]
    return ns, valid & (ns >= 0)


def gaps(log: RequestLog) -> tuple[Ints, Ints]:
    """``(ns, row)`` of every gap between two chunks of one request."""
    owner = np.repeat(np.arange(len(log)), np.diff(log.token_offsets))
    inner = owner[1:] == owner[:-1]
    return np.diff(log.token_times)[inner], owner[1:][inner]


def nearest_rank(sample: Ints, p: float) -> int:
    """The value at rank ``ceil(p * n)`` of a sample that is not empty."""
    return int(np.partition(sample, (k := rank(len(sample), p) - 1))[k])


def rank(n: int, p: float) -> int:
    """Nearest rank, from 1; the small shift keeps 0.95 * 20 at 19 despite binary fractions."""
    return min(n, max(1, math.ceil(p * n - 1e-9)))


def members(log: RequestLog, metric: Metric) -> tuple[Ints, Ints, Mask]:
    """``(rows, ns, at least)``: who counts for a statistic. For ITL every gap counts, for others every request."""
    counts = ((log.status == _OK) | (log.status == _TIMEOUT)) & ~log.warmup
    if metric is Metric.ITL:
        ns, owner = gaps(log)
        inside = counts[owner] & (ns >= 0)
        return owner[inside], ns[inside], np.zeros(int(inside.sum()), np.bool_)
    ns, valid = values(log, metric)
    late = _censored(log, metric)
    if metric is Metric.TPOT:
        counts &= ~late
    if metric in (Metric.TTFT, Metric.E2E):
        counts &= ~log.too_fast
    rows = np.flatnonzero(counts & valid)
    return rows, ns[rows], late[rows]


def statistic(log: RequestLog, symptom: Symptom) -> Chosen | None:
    """The symptom's statistic on this log; None where the log has no value for it (or not its request).

    Ties go to the request that comes first in the file.
    """
    population = count(log, symptom.metric)
    if symptom.statistic is Statistic.REQUEST:
        row = find(log, symptom.request)
        ns, valid = values(log, symptom.metric)
        if row is None or not valid[row]:
            return None
        late = bool(_censored(log, symptom.metric)[row])
        return Chosen(row, int(ns[row]), int(ns[row]), None, late, population)
    rows, ns, censored = members(log, symptom.metric)
    if not len(ns):
        return None
    if symptom.statistic is Statistic.MEAN:
        mean = int(np.rint(ns.mean()))
        at = int(np.argmin(np.abs(ns - mean)))
        return Chosen(int(rows[at]), mean, int(ns[at]), _mean_interval(ns), bool(censored.any()), population)
    p = SHARES[symptom.statistic]
    value = nearest_rank(ns, p)
    at = int(np.argmax(ns == value))
    bounds = None if symptom.statistic is Statistic.MAX else quantile_interval(ns, p)
    return Chosen(int(rows[at]), value, value, bounds, bool((censored & (ns <= value)).any()), population)


def count(log: RequestLog, metric: Metric) -> dict[str, int]:
    """The counts behind a statistic. ``excluded``: would count, but the log has no value for them."""
    main = ~log.warmup
    counted = main & ((log.status == _OK) | (log.status == _TIMEOUT))
    rows, _, _ = members(log, metric)
    return {
        "requests": len(log),
        "ok": int((main & (log.status == _OK)).sum()),
        "errors": int((main & (log.status == STATUSES.index(Status.ERROR))).sum()),
        "timeouts": int((main & (log.status == _TIMEOUT)).sum()),
        "cancelled": int((main & (log.status == STATUSES.index(Status.CANCELLED))).sum()),
        "warmup": int(log.warmup.sum()),
        "excluded": int(counted.sum()) - len(np.unique(rows)),
        "values": len(rows),
    }


def find(log: RequestLog, request: str | None) -> int | None:
    """The row of a request id, the first one where it occurs more than once."""
    return next((i for i, name in enumerate(log.id) if name == request), None)


def classmates(log: RequestLog, input_tokens: int | None, exclude: tuple[int, ...] = ()) -> tuple[Mask, bool]:
    """``(mask, by shape)``: ok requests without warm-up whose input length is within 10 % of the given one."""
    mask = (log.status == _OK) & ~log.warmup
    mask[list(exclude)] = False
    known = log.input_tokens != UNKNOWN
    if input_tokens is None or not (mask & known).any():
        return mask, False
    return mask & known & (np.abs(log.input_tokens - input_tokens) <= CLASS_WIDTH * input_tokens), True


def place(log: RequestLog, metric: Metric, row: int, exclude: tuple[int, ...] = ()) -> Place | None:
    """Where a request of the log stands among the others of its class. ``exclude``: rows that do not count (traced)."""
    ns, valid = values(log, metric)
    if not valid[row]:
        return None
    tokens = int(log.input_tokens[row])
    return place_value(log, metric, int(ns[row]), None if tokens == UNKNOWN else tokens, exclude)


def place_value(
    log: RequestLog, metric: Metric, value_ns: int, input_tokens: int | None, exclude: tuple[int, ...] = ()
) -> Place | None:
    """The same for a value from elsewhere (a trace of another run); None where the class is empty."""
    ns, valid = values(log, metric)
    mask, by_shape = classmates(log, input_tokens, exclude)
    sample = ns[mask & valid]
    if not len(sample):
        return None
    return Place(
        percentile=float((sample <= value_ns).mean()),
        p5_ns=nearest_rank(sample, 0.05),
        p95_ns=nearest_rank(sample, 0.95),
        median_ns=nearest_rank(sample, 0.5),
        count=len(sample),
        by_shape=by_shape,
    )


def quantile_interval(sample: Ints, p: float, confidence: float = 0.95) -> tuple[int, int] | None:
    """Exact interval of a quantile by order statistics (binomial); None where the sample is too small to bound it.

    The values are taken as independent; under a queue they are not, and the true interval is wider.
    """
    n, tail = len(sample), (1 - confidence) / 2
    cdf = _binomial_cdf(n, p)
    # P(X(l) <= quantile) = P(B >= l) >= 1 - tail, and P(X(u) >= quantile) = P(B <= u - 1) >= 1 - tail.
    lower = int(np.searchsorted(cdf, tail, side="right"))
    upper = int(np.searchsorted(cdf, 1 - tail, side="left")) + 1
    if lower < 1 or upper > n:
        return None
    ordered = np.sort(sample)
    return int(ordered[lower - 1]), int(ordered[upper - 1])


def _binomial_cdf(n: int, p: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """P(B <= k) for k = 0..n, through logarithms so that large n does not underflow."""
    k = np.arange(n)
    log_ratio = np.log((n - k) / (k + 1)) + math.log(p / (1 - p))
    log_pmf = np.concatenate([[0.0], np.cumsum(log_ratio)]) + n * math.log1p(-p)
    return np.cumsum(np.exp(log_pmf))


def _mean_interval(sample: Ints, resamples: int = 1000) -> tuple[int, int] | None:
    """Bootstrap percentiles of the mean with a fixed seed; the normal interval where the sample is large."""
    n = len(sample)
    if n < 5:
        return None
    if n > 2000:
        half = 1.96 * float(sample.std(ddof=1)) / math.sqrt(n)
        return int(sample.mean() - half), int(sample.mean() + half)
    means = sample[np.random.default_rng(0).integers(0, n, (resamples, n))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return int(low), int(high)


def _censored(log: RequestLog, metric: Metric) -> Mask:
    """Time-outs whose value is a lower bound: the stamp that ends their interval never came."""
    late: Mask = log.status == _TIMEOUT
    if metric is Metric.TTFT:
        late &= log.first_token == UNKNOWN
    elif metric is Metric.QUEUE_TIME:
        late &= log.scheduled == UNKNOWN
    return late
