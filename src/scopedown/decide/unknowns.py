"""What the evidence does not say and a reader might assume."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scopedown.account.contract import GRAPH_MODE
from scopedown.account.population import values
from scopedown.decide.rules.neighbour_work import in_flight, owners_on_path
from scopedown.decide.situation import Situation
from scopedown.read.base import UNKNOWN
from scopedown.symptom import Symptom
from scopedown.terms import Category, Metric
from scopedown.units import show_ns


def unknowns(s: Situation) -> list[str]:
    """What the evidence does not say and a reader might assume."""
    return [*_unknown_of_trace(s), *_unknown_of_log(s), *_unknown_of_machine(s)]


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
