"""Where the evidence does not allow an answer, and why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scopedown.account.population import Place
from scopedown.account.timeline import Timeline
from scopedown.decide.rules.partial_capture import holes
from scopedown.decide.situation import Situation
from scopedown.decide.warnings import STATISTIC_AGREES, not_streamed, tool_ns
from scopedown.read.base import UNKNOWN
from scopedown.terms import Category, Metric
from scopedown.trace.model import HostKind
from scopedown.trace.names import ApiMeaning
from scopedown.units import show_ns, show_share

#: From this share of the interval on the tool's overhead outweighs what it measures.
OVERHEAD_RULES = 0.5
#: Calls that leave something for a device to do.
GIVES_WORK = [ApiMeaning.LAUNCH, ApiMeaning.GRAPH_LAUNCH, ApiMeaning.COPY, ApiMeaning.MEMSET]


def recapture_reasons(s: Situation) -> tuple[str, ...]:
    """Why the evidence does not cover what was asked, or contradicts itself. Empty: it can be answered from it."""
    return tuple(dict.fromkeys([*_log_contradicts(s), *_trace_contradicts(s), *_not_covered(s), *_another(s)]))


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
