"""What weakens an answer, with its numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from scopedown.account import intervals
from scopedown.account.population import SHARES, find
from scopedown.decide.rules.late_client import from_send, in_words, lateness, name_of
from scopedown.decide.rules.partial_capture import HOLES, holes
from scopedown.decide.situation import Situation
from scopedown.read.base import PREFILL_ROOF, STATUSES, UNKNOWN, RequestLog
from scopedown.terms import Metric, Statistic, Status
from scopedown.trace.model import DeviceOps, HostKind
from scopedown.trace.names import OverheadMeaning, overhead_meaning
from scopedown.units import show_ns, show_share

#: One request's recorded value is the observed one to this share; a statistic within its interval or ten per cent.
ONE_AGREES, STATISTIC_AGREES = 0.02, 0.10
#: Failures from this share on are a population of their own.
FAILURES = 0.01
#: Tool overhead inside the interval is said from this share on.
OVERHEAD = 0.02
_ONCE = re.compile(r"initiali[sz]ation|dlopen", re.IGNORECASE)


def warnings(s: Situation) -> list[str]:
    """Everything a reader has to know before believing the report, what changes most first."""
    found = [*_of_summary(s), *_of_symptom(s), *_of_client(s), *_of_sample(s), *_of_monitor(s)]
    found += [*_of_capture(s), *_of_overhead(s), *_of_question(s)]
    return list(dict.fromkeys(found))


def _of_summary(s: Situation) -> Iterator[str]:
    if s.summary is None:
        return
    yield (
        "a summary is the only evidence of the requests: no phases, no interval of a statistic, no late client and no "
        "first wave can be seen; keep the requests (for AIPerf profile_export.jsonl, for bench serving --save-detailed "
        "or --output-details)"
    )
    if s.chosen is not None:
        count = s.chosen.population.get("values")
        yield f"{count or 'an unknown number of'} values, percentiles as the tool interpolates them"


def _of_symptom(s: Situation) -> Iterator[str]:
    y, log = s.symptom, s.log
    if y is None or (log is None and s.summary is None) or not y.metric.is_latency:
        return
    if log is None:
        pass
    elif y.statistic is Statistic.REQUEST and find(log, y.request) is None:
        yield f"request {y.request!r} of the symptom is not in the log ({len(log)} requests)"
    elif s.chosen is None and y.metric is not Metric.STEP_TIME:
        yield f"the log has no {y.metric} for this symptom ({len(log)} requests): stamps are absent"
    if s.chosen is None or y.observed_ns is None:
        return
    recorded, one = s.chosen.value_ns, y.statistic is Statistic.REQUEST
    low, high = s.chosen.interval95_ns or (recorded, recorded)
    away = abs(recorded - y.observed_ns)
    if away > (ONE_AGREES if one else STATISTIC_AGREES) * y.observed_ns and not low <= y.observed_ns <= high:
        yield (
            f"{name_of(y)}: {show_ns(y.observed_ns)} observed, {show_ns(recorded)} recorded "
            f"({100 * (recorded - y.observed_ns) / y.observed_ns:+.0f} %): the report is about what is recorded"
        )


def _of_client(s: Situation) -> Iterator[str]:
    if s.log is None or s.symptom is None or not s.symptom.metric.is_latency:
        return
    found = lateness(s.log, s.symptom.metric)
    if found is None:
        return
    sent = from_send(s.log, s.symptom)
    value = s.chosen.value_ns if s.chosen is not None else None
    text = in_words(found)
    if sent is not None and value is not None:
        text += f"; {name_of(s.symptom)} is {show_ns(value)} from the arrival, {show_ns(sent)} from the send"
    yield f"{text}: the client is no longer on its schedule, repair it before the server is judged"


def _of_sample(s: Situation) -> Iterator[str]:
    y, log, chosen = s.symptom, s.log, s.chosen
    if y is None or log is None or chosen is None:
        return
    if s.wave is not None and s.wave.statistic_ns is not None and s.wave.without_ns is not None:
        yield (
            f"warm-up in the sample: the first {len(s.wave.rows)} requests took {show_ns(s.wave.median_ns)} (median), "
            f"the others {show_ns(s.wave.rest_median_ns)}; {name_of(y)} is {show_ns(s.wave.statistic_ns)} with them, "
            f"{show_ns(s.wave.without_ns)} without"
        )
    if s.row is not None and log.warmup[s.row]:
        yield f"request {log.id[s.row]!r} is marked as warm-up"
    count = chosen.population
    if y.metric is Metric.STEP_TIME:
        # Steps of one capture: none of them timed out, failed or lacks its stamps.
        count = {"values": count["steps"], "timeouts": 0, "errors": 0, "cancelled": 0, "excluded": 0}
    p = SHARES.get(y.statistic)
    if p is not None and p < 1 and chosen.interval95_ns is None:
        enough = max(math.ceil(math.log(0.025) / math.log(p)), math.ceil(math.log(0.025) / math.log(1 - p)))
        yield (
            f"{y.statistic} of {count['values']} values has no 95 % interval: it takes {enough} of them to bound it "
            "from both sides"
        )
    if count["timeouts"]:
        least = f"{name_of(y)} is at least {show_ns(chosen.value_ns)}" if chosen.at_least else "none reaches it"
        yield f"{count['timeouts']} time-outs of {count['requests']} requests enter with the time they had: {least}"
    failed = count["errors"] + count["cancelled"]
    if failed and failed >= FAILURES * count["requests"]:
        yield f"{failed} of {count['requests']} requests failed or were cancelled: the latencies are those of the rest"
    fast = int((log.too_fast & ~log.warmup).sum()) if y.metric in (Metric.TTFT, Metric.E2E) else 0
    if fast:
        yield (
            f"{fast} requests have their first token faster than any device can prefill ({PREFILL_ROOF:.0e} input "
            f"tokens/s): cached, or a wrong stamp; the {y.metric} is without them"
        )
    if count["excluded"] > fast:
        absent = count["excluded"] - fast
        yield f"{absent} requests have no {y.metric}: their stamps are absent, the statistic is without them"


def _of_monitor(s: Situation) -> Iterator[str]:
    m = s.monitor
    if m is None or m.utilisation is None or not s.is_latency:
        return
    if not m.placed or m.period_ns is None:
        why = "its samples have no date" if not m.placed else "it looked at chosen instants"
        yield f"the monitor gives the state of the device, nothing of this interval: {why}"
    elif m.period_ns > s.total_ns:
        yield (
            f"the monitor's window is {show_ns(m.period_ns)}, longer than the interval of {show_ns(s.total_ns)}: it "
            "averages over other work and idle time as well, and its utilisation says nothing of this request"
        )


def _of_capture(s: Situation) -> Iterator[str]:
    """Holes of the interval, and of the capture as a whole."""
    c = s.coverage
    if c is None or s.account.timeline is None:
        return
    bound = ""
    for what, _, ns, of in holes(s.account):
        if len(ns) and len(ns) >= HOLES * of:
            yield f"{len(ns)} of {of} in the interval are {what}: busy time is a lower bound"
            bound = what
    if not bound and c.launches_without_op and c.launches_without_op >= HOLES * c.launches:
        yield f"{c.launches_without_op} of {c.launches} launches of the capture have no device op, none in the interval"
    if c.graph_launches > c.graph_records and "graph" not in bound:
        yield f"{c.graph_launches - c.graph_records} of {c.graph_launches} graph launches have no record on the device"
    if c.overlapping_on_stream:
        yield (
            f"{c.overlapping_on_stream} device ops start before the op before them on their stream ended (programmatic "
            "launch, or stamps that cannot be right)"
        )
    if c.dropped:
        yield f"the tool reports lost events {c.dropped} times: what is missing cannot be counted"
    if c.processes_without_device_rows:
        yield f"{c.processes_without_device_rows} traced processes made API calls and have no device rows"
    path, host = s.account.path, s.account.timeline.host
    if (before := int(path.ns[path.label == host.before_first].sum())) >= max(s.material_ns, 1):
        yield (
            f"{show_ns(before)} of the interval come before the first event of the thread that the path runs on: it "
            "may have done nothing, or the capture began later than it says"
        )
    clipped = host.clipped
    if clipped:
        yield f"{clipped} host events reach beyond the one that encloses them: cut to it"


def _of_overhead(s: Situation) -> Iterator[str]:
    ns = tool_ns(s)
    if ns and ns >= min(s.material_ns, OVERHEAD * s.total_ns):
        yield (
            f"the tool's own overhead records take {show_ns(ns)} ({show_share(ns, s.total_ns)}) of the interval: "
            "the untraced request is shorter"
        )


def _of_question(s: Situation) -> Iterator[str]:
    """Of a captured window without a complaint."""
    t = s.account.timeline
    if s.symptom is not None or t is None:
        return
    yield from _edges(s, t.trace.ops)
    if s.account.steps is None:
        yield "nothing repeats in this capture: first calls (loading, compiling, tuning) count as work, all is warm-up"


def _edges(s: Situation, ops: DeviceOps) -> Iterator[str]:
    """Start-up and tear-down around the device's work, and the flags that leave them out."""
    lo, hi = s.account.lo, s.account.hi
    inside = (ops.end > lo) & (ops.start < hi)
    if not inside.any():
        return
    first, last = max(int(ops.start[inside].min()), lo), min(int(ops.end[inside].max()), hi)
    parts = [
        f"{what}: {show_ns(ns)} ({show_share(ns, s.total_ns)}) pass {when} device op"
        for what, ns, when in (("start-up", first - lo, "before the first"), ("tear-down", hi - last, "after the last"))
        if ns >= max(s.material_ns, 1)
    ]
    if parts:
        yield (
            f"the window contains {' and '.join(parts)}; without them: --from {first} --to {last} "
            f"({show_ns(last - first)}), or --range, or --step"
        )


def tool_ns(s: Situation, *, once: bool = True) -> int:
    """Time of the profiler's own records inside the interval (union); the program's loading is not the tool's.

    ``once``: with what the tool does once a process, which is long and disturbs nothing that comes after it.
    """
    t = s.account.timeline
    if t is None:
        return 0
    host = t.trace.host
    rows = np.flatnonzero((host.kind == HostKind.OVERHEAD) & (host.start < s.account.hi) & (host.end > s.account.lo))
    names = t.trace.names
    own = [n for n in np.unique(host.name[rows]).tolist() if overhead_meaning(names[n]) is OverheadMeaning.TOOL]
    own = [n for n in own if once or not _ONCE.search(names[n])]
    rows = rows[np.isin(host.name[rows], own)]
    start, end = intervals.clip(host.start[rows], host.end[rows], s.account.lo, s.account.hi)
    order = np.argsort(start, kind="stable")
    return intervals.total(*intervals.union(start[order], end[order]))


def not_streamed(log: RequestLog) -> int:
    """Requests with several tokens whose first token came with the end, where that is so for all of them; else 0."""
    rows = (log.status == STATUSES.index(Status.OK)) & (log.first_token != UNKNOWN) & (log.end != UNKNOWN)
    rows &= (log.output_tokens != 1) & ~log.warmup
    same = log.first_token[rows] == log.end[rows]
    return int(rows.sum()) if rows.sum() >= 2 and same.all() else 0
