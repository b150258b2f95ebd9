"""What weakens an answer, with its numbers; and where the evidence does not allow one at all."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from scopedown.account import intervals
from scopedown.account.contract import GRAPH_MODE
from scopedown.account.population import SHARES, Place, find, values
from scopedown.account.timeline import Timeline
from scopedown.decide.rules.late_client import from_send, in_words, lateness, name_of
from scopedown.decide.rules.neighbour_work import in_flight, owners_on_path
from scopedown.decide.rules.partial_capture import HOLES, holes
from scopedown.decide.situation import Situation
from scopedown.read.base import PREFILL_ROOF, STATUSES, UNKNOWN, RequestLog
from scopedown.symptom import Symptom
from scopedown.terms import Category, Metric, Statistic, Status
from scopedown.trace.model import DeviceOps, HostKind
from scopedown.trace.names import ApiMeaning, OverheadMeaning, overhead_meaning
from scopedown.units import show_ns, show_share

#: One request's recorded value is the observed one to this share; a statistic within its interval or ten per cent.
ONE_AGREES, STATISTIC_AGREES = 0.02, 0.10
#: Failures from this share on are a population of their own.
FAILURES = 0.01
#: Tool overhead inside the interval is said from this share on; from the other on it outweighs what it measures.
OVERHEAD, OVERHEAD_RULES = 0.02, 0.5
_ONCE = re.compile(r"initiali[sz]ation|dlopen", re.IGNORECASE)
#: Calls that leave something for a device to do.
GIVES_WORK = [ApiMeaning.LAUNCH, ApiMeaning.GRAPH_LAUNCH, ApiMeaning.COPY, ApiMeaning.MEMSET]


def warnings(s: Situation) -> list[str]:
    """Everything a reader has to know before believing the report, what changes most first."""
    found = [*_of_summary(s), *_of_symptom(s), *_of_client(s), *_of_sample(s), *_of_monitor(s)]
    found += [*_of_capture(s), *_of_overhead(s), *_of_question(s)]
    return list(dict.fromkeys(found))


def recapture_reasons(s: Situation) -> tuple[str, ...]:
    """Why the evidence does not cover what was asked, or contradicts itself. Empty: it can be answered from it."""
    return tuple(dict.fromkeys([*_log_contradicts(s), *_trace_contradicts(s), *_not_covered(s), *_another(s)]))


def unknowns(s: Situation) -> list[str]:
    """What the evidence does not say and a reader might assume."""
    return [*_unknown_of_trace(s), *_unknown_of_log(s), *_unknown_of_machine(s)]


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


def _log_contradicts(s: Situation) -> Iterator[str]:
    y, log = s.symptom, s.log
    if y is None or log is None or y.metric not in (Metric.TTFT, Metric.TPOT, Metric.ITL):
        return
    if n := not_streamed(log):
        yield (
            f"TTFT equals E2E on all {n} requests: the replies were not streamed, or the last chunk was taken for the "
            "first; record the first token"
        )
    if s.row is not None:
        sent = int(log.sent[s.row]) if log.sent[s.row] != UNKNOWN else int(log.arrival[s.row])
        first = int(log.first_token[s.row])
        if UNKNOWN not in (sent, first) and first < sent:
            yield (
                f"request {log.id[s.row]!r} has its first token {show_ns(sent - first)} before it was sent: the stamps "
                "are of different clocks"
            )


def _trace_contradicts(s: Situation) -> Iterator[str]:
    t, c = s.account.timeline, s.coverage
    if t is None or c is None:
        return
    if not t.has_device_rows and c.launches:
        yield (
            f"the trace has {c.launches} launches and no device row: what the device did was not recorded (trace cuda, "
            "and the process that launches)"
        )
    if not len(t.trace.ops) and not len(t.trace.host):
        yield "the trace holds no event: nothing was captured"
    elif _only_system_events(t):
        yield (
            "the capture holds events of the operating system and of the tool only: no device row, no range, and no "
            "call that gives the device work; it ended before the device was used, or another process uses it"
        )
    lost = next((len(ns) for what, _, ns, _ in holes(s.account) if what.startswith("graph")), 0)
    of = next((of for what, _, _, of in holes(s.account) if what.startswith("graph")), 0)
    unseen = s.account.ns_of(Category.UNACCOUNTED, Category.NO_LAUNCH_RECORD, Category.HOST_SYNC)
    if lost and 2 * lost >= of and t.has_device_rows and 2 * unseen >= s.total_ns:
        yield (
            f"{lost} of {of} graph launches of the interval have no record on the device, and {show_ns(unseen)} of "
            f"{show_ns(s.total_ns)} hang on them: capture with graphs traced by node"
        )
    if (ns := tool_ns(s, once=False)) > OVERHEAD_RULES * s.total_ns:
        yield (
            f"the tool's own overhead takes {show_ns(ns)} of {show_ns(s.total_ns)}, more than it measures: trace less"
        )


def _only_system_events(t: Timeline) -> bool:
    named = np.isin(t.trace.host.kind, (HostKind.ANNOTATION, HostKind.RANGE, HostKind.OP, HostKind.PYTHON))
    return not t.has_device_rows and not named.any() and not np.isin(t.calls.meaning, GIVES_WORK).any()


def _not_covered(s: Situation) -> Iterator[str]:
    outside = s.path_ns(Category.OUTSIDE_CAPTURE)
    if not outside or outside < s.material_ns:
        return
    if s.account.timeline is not None and s.account.service is None:
        where = ""
        if (span := s.account.timeline.rows_span) is not None:
            away = s.account.lo - span[1] if s.account.lo >= span[1] else span[0] - s.account.hi
            when = "after" if s.account.lo >= span[1] else "before"
            where = f": it lies {show_ns(max(away, 0))} {when} it"
        yield f"the capture does not hold the interval{where}"
    elif 2 * outside > s.total_ns:
        share = show_share(outside, s.total_ns)
        yield f"{show_ns(outside)} ({share}) of the {show_ns(s.total_ns)} lie outside the capture"


def _ordinary(place: Place, value_ns: int) -> bool:
    """Within p5 to p95. Fewer than twenty have no such percentiles: their extremes are taken with ten per cent."""
    slack = STATISTIC_AGREES if place.count < 20 else 0.0
    return place.p5_ns * (1 - slack) <= value_ns <= place.p95_ns * (1 + slack)


def _another(s: Situation) -> Iterator[str]:
    """The trace shows another request: it stands for the symptom only where it is an ordinary one of its shape."""
    y, log = s.symptom, s.log
    if not s.trace_is_other or y is None or log is None or s.row is None:
        return
    own = f"the trace shows request {log.id[s.row]!r}, not the symptom's"
    value = s.total_ns // s.parts
    if s.place is not None and not _ordinary(s.place, value):
        yield (
            f"{own}: its {show_ns(value)} lie outside p5 to p95 of its class ({show_ns(s.place.p5_ns)} to "
            f"{show_ns(s.place.p95_ns)}, {s.place.count} requests)"
        )
    if s.chosen is not None and s.chosen.row != s.row:
        mine, theirs = int(log.input_tokens[s.chosen.row]), int(log.input_tokens[s.row])
        if UNKNOWN not in (mine, theirs) and abs(mine - theirs) > STATISTIC_AGREES * mine:
            yield f"{own}: it has {theirs} input tokens, the symptom's {mine}"


def _unknown_of_trace(s: Situation) -> Iterator[str]:
    t, c = s.account.timeline, s.coverage
    if t is None:
        if s.is_latency:
            why = "the capture does not hold it" if s.path_ns(Category.OUTSIDE_CAPTURE) else "there is no trace of it"
            yield f"what the server did inside the service phase: {why}"
        return
    trace = t.trace
    if not t.has_device_rows:
        yield "what the device did: the trace has no device rows"
    elif trace.syncs is None:
        yield "which stream or event a synchronising call waited for: the capture has no synchronisation records"
    if c is not None and c.graph_launches and trace.meta.options.get(GRAPH_MODE, "").lower() not in ("node", "none"):
        opaque = s.path_ns(Category.DEVICE_OPAQUE_GRAPH)
        if opaque:
            yield f"what runs inside the graphs ({show_ns(opaque)} of the path): they were recorded as a whole"
    if trace.scheduling is None and s.host_ns() >= max(s.material_ns, 1):
        yield "whether host code ran or waited for a core: the capture has no thread scheduling"
    beside = in_flight(s)
    if beside and owners_on_path(s) is None:
        yield f"whose work the device did: {beside} other requests were in flight, and no range names the owner"
    if len(np.unique(trace.ops.device)) == 1 and s.path_ns(Category.DEVICE_COLLECTIVE):
        yield "whether collectives wait for a slow peer or a slow link: only one rank was traced"
    if s.log is None or not _untraced(s):
        yield "how much the profiler slows the request: the same was not measured without it"


def _untraced(s: Situation) -> int:
    """Requests of the log that the capture does not hold, of the accounted one's metric."""
    if s.log is None or s.symptom is None:
        return 0
    _, valid = values(s.log, s.symptom.metric)
    valid &= ~s.log.warmup
    traced = set(s.requests_in_trace)
    return sum(1 for i in np.flatnonzero(valid).tolist() if s.log.id[i] not in traced and i != s.row)


def _unknown_of_log(s: Situation) -> Iterator[str]:
    log, y = s.log, s.symptom
    if log is None:
        if y is not None and y.metric.is_latency:
            known = s.confirmation is not None and s.confirmation.confirmed
            repeats = "" if known else "whether the symptom repeats, and "
            yield f"{repeats}how long it queued: there is no request log"
        return
    if (log.arrival == UNKNOWN).all():
        yield "whether the client sent on schedule: the log has no intended arrivals"
    if _needs_stamps(y) and (log.scheduled == UNKNOWN).all():
        yield "how long requests queued: the log has no server stamps"


def _needs_stamps(y: Symptom | None) -> bool:
    return y is None or y.metric in (Metric.TTFT, Metric.E2E, Metric.QUEUE_TIME) or not y.metric.is_latency


def _unknown_of_machine(s: Situation) -> Iterator[str]:
    columns = s.monitor.columns if s.monitor is not None else {}
    if not any("clock" in name for name in columns):
        yield "device clocks during the measurement: nothing recorded them"
