"""Which interval a question is about: that of a request, a step, a range, a window, on which axis."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from scopedown.account import steps as steps_of
from scopedown.account.account import Account, account, window
from scopedown.account.align import Alignment, align, no_place
from scopedown.account.groups import of_segments
from scopedown.account.intervals import intersect, subtract, union
from scopedown.account.monitored import monitored
from scopedown.account.phases import Phase, phases, summed
from scopedown.account.population import SHARES, Chosen, nearest_rank, statistic
from scopedown.account.population import interval as intervals_of
from scopedown.account.segments import check_partition, concat, many
from scopedown.account.timeline import Timeline
from scopedown.errors import UsageError
from scopedown.read.base import UNKNOWN, MonitorLog, RequestLog
from scopedown.symptom import Symptom
from scopedown.terms import Category, Metric, Statistic
from scopedown.trace.model import NONE, HostKind
from scopedown.units import show_ns


@dataclass(slots=True)
class Where:
    """The user's own words for an interval; None where the symptom says it."""

    begin: int | None = None
    end: int | None = None
    range: str | None = None
    step: str | None = None
    offset_ns: int | None = None
    device: int | None = None
    """Whose samples of a device monitor count, by the monitor's own number."""


@dataclass(slots=True)
class Interval:
    """What was chosen, and its account."""

    account: Account
    row: int | None = None
    chosen: Chosen | None = None
    alignment: Alignment | None = None
    trace_is_other: bool = False
    parts: int = 1
    warnings: list[str] = field(default_factory=list)
    recapture: list[str] = field(default_factory=list)
    traced_rows: tuple[int, ...] = ()
    """Rows of the log whose interval the capture holds."""
    focus: Account | None = None
    """Of a captured window the part from first to last device op, where much of the window lies outside it: what a
    question without a complaint is about, and start-up and tear-down are not."""


def choose(
    symptom: Symptom | None,
    log: RequestLog | None,
    timeline: Timeline | None,
    monitor: MonitorLog | None,
    where: Where,
) -> Interval:
    """Raises UsageError where the words name nothing."""
    if where.begin is not None or where.end is not None or where.range is not None or where.step is not None:
        return _named(timeline, where)
    if symptom is not None and symptom.metric is Metric.STEP_TIME:
        return _step(symptom, timeline)
    if symptom is not None and log is not None and symptom.metric.is_latency:
        return _request(symptom, log, timeline, monitor, where)
    if timeline is None:
        return _log_window(log)
    if symptom is not None and not symptom.metric.is_latency:
        return _throughput(timeline)
    if timeline.rows_span is None:
        return _nothing(timeline)
    lo, hi = timeline.rows_span
    found = Interval(window(timeline, lo, hi))
    if symptom is None:
        found.focus = _device_span(found.account)
    if symptom is not None and symptom.metric.is_latency:
        found.warnings.append(
            f"no request log: the interval is the captured window of {show_ns(hi - lo)}, not the request; "
            "give --from/--to, --range or --step, or add the log"
        )
        if symptom.observed_ns is not None and not 0.5 <= (hi - lo) / max(symptom.observed_ns, 1) <= 2:
            found.recapture.append(
                f"the captured window is {show_ns(hi - lo)} and the symptom {show_ns(symptom.observed_ns)}: "
                "nothing says where in the capture the symptom lies"
            )
    return found


#: Start-up and tear-down below this share of a captured window do not matter.
OUTSIDE_SHARE = 0.05
#: With fewer ops the device's span says nothing of a program.
FEWEST_OPS = 10


def _device_span(whole: Account) -> Account | None:
    if whole.timeline is None:
        return None
    ops = whole.timeline.trace.ops
    inside = (ops.end > whole.lo) & (ops.start < whole.hi)
    if inside.sum() < FEWEST_OPS:
        return None
    lo, hi = max(int(ops.start[inside].min()), whole.lo), min(int(ops.end[inside].max()), whole.hi)
    if hi - lo > (1 - OUTSIDE_SHARE) * whole.total_ns:
        return None
    return window(whole.timeline, lo, hi)


def _nothing(timeline: Timeline) -> Interval:
    """A capture without rows of any program: all of its window, unaccounted."""
    lo, hi = timeline.trace.meta.window or (0, 1)
    found = Interval(account([Phase(lo, max(hi, lo + 1), Category.OUTSIDE_CAPTURE, "no event was captured")], None))
    found.recapture.append("the capture holds no event of a program: nothing can be accounted for")
    return found


def _named(timeline: Timeline | None, where: Where) -> Interval:
    if timeline is None or timeline.rows_span is None:
        raise UsageError("--from/--to, --range and --step choose an interval of a trace: there is none with events")
    lo, hi = timeline.rows_span
    ways = [where.begin is not None or where.end is not None, where.range is not None, where.step is not None]
    if sum(ways) > 1:
        raise UsageError("--from/--to, --range and --step choose an interval each: give one of the three")
    if where.range is not None:
        return _range(timeline, where.range)
    if where.step is not None:
        found = steps_of.find(timeline.trace, timeline.annotated, timeline.calls, timeline.streams, lo, hi)
        if found is None:
            raise UsageError(
                "--step: no steps were found in this capture (no repeated annotation, graph launch or kernel sequence)"
            )
        return Interval(step_account(timeline, found, _step_number(where.step, found)))
    begin = lo if where.begin is None else where.begin
    end = hi if where.end is None else where.end
    if end <= begin:
        raise UsageError(f"--from {begin} ns is not before --to {end} ns (the capture covers {lo} to {hi} ns)")
    if end <= lo or begin >= hi:
        raise UsageError(f"--from {begin} ns --to {end} ns lies outside the capture, which covers {lo} to {hi} ns")
    ending = timeline.ending(begin, end) or timeline.last_row(begin, end)
    if ending is not None and ending.thread != NONE and ending.at < end:
        ending = dataclasses.replace(ending, at=end)
    whole = [Phase(begin, end, Category.UNACCOUNTED, "chosen interval")]
    return Interval(account(whole, timeline, ending=ending))


def _range(timeline: Timeline, text: str) -> Interval:
    name, _, number = text.rpartition("#") if _counts(text.rpartition("#")[2]) else (text, "", "1")
    if not name:
        raise UsageError(f"--range {text!r}: write the name of a range, or 'NAME#3' for its third")
    host, names = timeline.trace.host, timeline.trace.names
    exact = [i for i, n in enumerate(names) if n == name] or [i for i, n in enumerate(names) if name in n]
    rows = np.flatnonzero(
        np.isin(host.name, exact)
        & ((host.kind == HostKind.ANNOTATION) | (host.kind == HostKind.RANGE))
        & (host.end > host.start)
    )
    if not len(rows):
        some = sorted(
            {names[n] for n in host.name[(host.kind == HostKind.ANNOTATION) | (host.kind == HostKind.RANGE)].tolist()}
        )
        known = ", ".join(repr(n[:40]) for n in some[:6]) or "none"
        raise UsageError(f"--range {name!r}: no such range in the capture; there are: {known}")
    k = int(number) - 1
    if not 0 <= k < len(rows):
        raise UsageError(f"--range {name!r}: the capture has {len(rows)} of them, not {k + 1}")
    row = int(rows[k])
    lo, hi, thread = int(host.start[row]), int(host.end[row]), int(host.thread[row])
    found = Interval(_on_thread(timeline, lo, hi, thread))
    if len(rows) > 1:
        found.warnings.append(
            f"--range {name!r} names {len(rows)} ranges: this is number {k + 1}; 'NAME#N' takes another"
        )
    return found


def _on_thread(timeline: Timeline, lo: int, hi: int, thread: int) -> Account:
    """A range is over when its thread is, unless the thread itself never touches the device."""
    if thread != NONE and timeline.calls.thread_bound[thread + 1] > timeline.calls.thread_bound[thread]:
        return account([Phase(lo, hi, Category.UNACCOUNTED, "range")], timeline, thread=thread)
    return account([Phase(lo, hi, Category.UNACCOUNTED, "range")], timeline)


def _counts(text: str) -> bool:
    """Whether a text is a number that counts things."""
    return text.isdecimal() and len(text) <= 18


def median_step(found: steps_of.Steps) -> int:
    """The step of median length."""
    length = found.end - found.start
    return int(np.argsort(length, kind="stable")[(len(length) - 1) // 2])


def _step_number(text: str, found: steps_of.Steps) -> int:
    if text == "median":
        return median_step(found)
    if not _counts(text) or int(text) >= len(found):
        raise UsageError(f"--step {text}: this capture has {len(found)} steps, 0 to {len(found) - 1}, or 'median'")
    return int(text)


def step_account(timeline: Timeline, found: steps_of.Steps, k: int) -> Account:
    """The account of one step."""
    lo, hi = int(found.start[k]), int(found.end[k])
    if found.how is steps_of.How.ANNOTATION:
        host = timeline.trace.host
        row = np.flatnonzero((host.start == lo) & (host.end == hi))
        return _on_thread(timeline, lo, hi, int(host.thread[row[0]]) if len(row) else NONE)
    return account([Phase(lo, hi, Category.UNACCOUNTED, "step")], timeline, ending=timeline.last_row(lo, hi))


def _step(symptom: Symptom, timeline: Timeline | None) -> Interval:
    if timeline is None or timeline.rows_span is None:
        raise UsageError("step_time needs a trace with steps: none is among the evidence")
    lo, hi = timeline.rows_span
    found = steps_of.find(timeline.trace, timeline.annotated, timeline.calls, timeline.streams, lo, hi)
    if found is None:
        out = Interval(window(timeline, lo, hi))
        out.recapture.append("no steps in this capture: annotate them (NVTX, ProfilerStep) or capture more of them")
        return out
    if symptom.statistic is Statistic.REQUEST:
        return Interval(step_account(timeline, found, _step_number(symptom.request or "median", found)))
    length = found.end - found.start
    if symptom.statistic is Statistic.MEAN:
        value = int(np.rint(length.mean()))
        k = int(np.argmin(np.abs(length - value)))
    else:
        value = nearest_rank(length, SHARES[symptom.statistic])
        k = int(np.argmax(length == value))
    out = Interval(step_account(timeline, found, k))
    out.chosen = Chosen(k, value, int(length[k]), None, False, {"steps": len(found)})
    return out


def _request(
    symptom: Symptom, log: RequestLog, timeline: Timeline | None, monitor: MonitorLog | None, where: Where
) -> Interval:
    chosen = statistic(log, symptom)
    found = phases(log, chosen.row, symptom.metric) if chosen is not None else None
    if chosen is None or found is None:
        return _not_in_log(symptom, log, timeline)
    row = chosen.row
    parts = _parts(log, row, symptom.metric)
    if timeline is None:
        cut, said = monitored(found.phases, monitor, where.device)
        return Interval(account(cut, None), row, chosen, None, False, parts, [*found.warnings, *said])
    alignment = align(timeline.trace, log, where.offset_ns)
    out_warnings = [*found.warnings, *(alignment.warnings if alignment is not None else ())]
    traced = _traced(log, symptom.metric, timeline, alignment)
    used, other = row, False
    if traced and row not in traced:
        # Another run's trace, or another request of this one: the one nearest in value stands for it.
        begins, ends = intervals_of(log, symptom.metric)
        used = min(traced, key=lambda r: (abs(int(ends[r] - begins[r]) - chosen.row_value_ns * parts), r))
        other = True
        again = phases(log, used, symptom.metric)
        assert again is not None
        found = again
    if alignment is None or not traced:
        what = (
            f"cannot be placed on the log's clock{'' if (why := no_place(log)) is None else f': {why}'}"
            if alignment is None
            else "does not cover this request or any other of the log"
        )
        lost = [
            dataclasses.replace(p, category=Category.OUTSIDE_CAPTURE, label=f"{p.label}: outside the capture")
            if p.category is Category.UNACCOUNTED
            else p
            for p in found.phases
        ]
        out = Interval(account(lost, None), row, chosen, alignment, False, parts, out_warnings)
        out.recapture.append(f"the trace {what}")
        return out
    shifted = [
        dataclasses.replace(p, start=alignment.on_trace(p.start), end=alignment.on_trace(p.end)) for p in found.phases
    ]
    marks = [m for m in alignment.marks if m.row == used]
    token = 1 if symptom.metric is Metric.TTFT else None
    made = account(shifted, timeline, marks=marks, token=token)
    made = _uncertain_edges(made, alignment.uncertainty_ns)
    out = Interval(made, used, chosen, alignment, other, _parts(log, used, symptom.metric), out_warnings)
    out.traced_rows = tuple(traced)
    return out


def _uncertain_edges(made: Account, uncertainty: int) -> Account:
    """Beside the edges of the service phase, where no event of the trace stands yet or any more, a stretch as long as
    the alignment's uncertainty belongs to nobody. What lies between events stays where it is."""
    if uncertainty <= 0 or made.service is None or made.ending is None or made.timeline is None:
        return made
    t, path = made.timeline, made.path
    begin = made.service[0]
    end = next((p.end for p in made.phases if p.start <= begin < p.end), made.hi)
    starts = [t.calls.start, t.trace.ops.start]
    first = min((int(s[s >= begin].min()) for s in starts if (s >= begin).any()), default=end)
    head = np.array([begin, min(begin + uncertainty, first)])
    tail = np.array([max(end - uncertainty, made.ending.at), end])
    # The two meet where little happens in a short phase.
    edge_s, edge_e = union(np.array([head[0], tail[0]]), np.array([max(head[0], head[1]), max(tail[0], tail[1])]))
    s, e, row, _ = intersect(path.start, path.end, edge_s, edge_e)
    label = made.labels.code("beside the edge of a phase: as long as the alignment is uncertain")
    unsure = many(s, e, Category.ALIGNMENT_UNCERTAIN.code, label)
    s, e, row = subtract(path.start, path.end, edge_s, edge_e)
    sure = many(s, e, path.category[row], path.label[row], path.op[row], path.thread[row])
    path = concat([sure, unsure])
    check_partition(path, made.lo, made.hi)
    return dataclasses.replace(made, path=path, groups=tuple(of_segments(path)))


def _not_in_log(symptom: Symptom, log: RequestLog, timeline: Timeline | None) -> Interval:
    """What was complained of is not in the log: nothing says where it lies, only how long it was."""
    one = symptom.statistic is Statistic.REQUEST
    who = f"request {symptom.request!r}" if one else f"{symptom.statistic} of {symptom.metric}"
    text = f"the log ({len(log)} requests) has no {symptom.metric} for {who}"
    if timeline is not None and timeline.rows_span is not None:
        found = Interval(window(timeline, *timeline.rows_span))
        found.warnings.append(f"{text}: the interval is the captured window")
    else:
        length = max(symptom.observed_ns or 1, 1)
        found = Interval(account([Phase(0, length, Category.UNACCOUNTED, "not in the log")], None))
    found.recapture.append(text)
    return found


def _parts(log: RequestLog, row: int, metric: Metric) -> int:
    """Into how many units the interval divides: tokens after the first, or gaps between chunks."""
    if metric is Metric.TPOT and log.output_tokens[row] != UNKNOWN:
        return max(int(log.output_tokens[row]) - 1, 1)
    if metric is Metric.ITL:
        return max(int(log.token_offsets[row + 1] - log.token_offsets[row]) - 1, 1)
    return 1


def _traced(log: RequestLog, metric: Metric, timeline: Timeline, alignment: Alignment | None) -> list[int]:
    """Rows whose interval has more than half of its service inside the rows of the capture."""
    span = timeline.rows_span
    if alignment is None or span is None:
        return []
    begins, ends = intervals_of(log, metric)
    known = (begins != UNKNOWN) & (ends != UNKNOWN)
    begin = np.where(log.scheduled != UNKNOWN, np.maximum(log.scheduled, begins), begins) - alignment.offset_ns
    begin = np.minimum(begin, ends - alignment.offset_ns)
    end = ends - alignment.offset_ns
    inside = np.minimum(end, span[1]) - np.maximum(begin, span[0])
    return np.flatnonzero(known & (inside > 0) & (2 * inside >= end - begin)).tolist()


def _log_window(log: RequestLog | None) -> Interval:
    """The window of load as the sum of all requests' phases, in request-nanoseconds."""
    if log is None or not len(log):
        raise UsageError("the evidence has neither requests nor a trace: there is no interval to account for")
    laid: list[Phase] = []
    at = 0
    for p in summed(log):
        laid.append(Phase(at, at + p.ns, p.category, p.label))
        at += p.ns
    if not at:
        raise UsageError("no request of the log has both a start and an end: there is no interval to account for")
    return Interval(account([p for p in laid if p.ns], None))


def _throughput(timeline: Timeline) -> Interval:
    """No critical path: what the busiest device did, or waited for, over the captured window."""
    span = timeline.rows_span
    if span is None:
        return _nothing(timeline)
    if not timeline.has_device_rows:
        return Interval(window(timeline, *span))
    lo, hi = int(timeline.trace.ops.start.min()), int(timeline.trace.ops.end.max())
    made = window(timeline, max(lo, span[0]), min(hi, span[1]))
    busiest = max(made.devices, key=lambda d: (d.busy_ns, -d.device))
    # Nothing of it is replayed: the lines of a device account are shares of a resource, not a chain.
    path = busiest.segments
    return Interval(
        dataclasses.replace(made, path=path, groups=tuple(of_segments(path)), service=None, ending=None, replay=None)
    )
