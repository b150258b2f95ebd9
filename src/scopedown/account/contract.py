"""The comparison contract: what has to be equal before two measurements are compared, and what is known of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scopedown.account.population import starts
from scopedown.read.base import STATUSES, UNKNOWN, Clock, MonitorLog, RequestLog
from scopedown.report import ContractField
from scopedown.symptom import Symptom
from scopedown.terms import FieldSource, Statistic, Status
from scopedown.trace.model import Ints, Trace
from scopedown.units import show_ns

#: Fields in the order in which a missing one weakens a conclusion.
FIELDS = (
    "metric",
    "load",
    "offered_load",
    "model",
    "input_tokens",
    "output_tokens",
    "device",
    "precision",
    "arrival_process",
    "concurrency",
    "objective",
    "warmup",
    "error_rate",
    "quality",
    "queueing",
    "software",
    "clocks",
    "power",
    "throttling",
    "driver",
    "sampling",
    "profiler",
    "graph_trace_mode",
    "trace_options",
)
#: Only where there is a trace: without one nothing was traced.
_OF_TRACE = frozenset({"profiler", "graph_trace_mode", "trace_options"})
#: Never missing: they say more where they are stated.
_OPTIONAL = frozenset({"sampling", "throttling"})
_ALIASES = {
    "gpu": "device",
    "hardware": "device",
    "accelerator": "device",
    "dtype": "precision",
    "quantization": "precision",
    "queueing_policy": "queueing",
    "scheduling": "queueing",
    "quality_requirement": "quality",
    "driver_version": "driver",
    "server": "software",
    "server_version": "software",
    "framework": "software",
    "versions": "software",
    "warmup_requests": "warmup",
    "warm_up": "warmup",
}
_RATE = re.compile(
    r"(?<!\d)(\d{1,15}(?:\.\d{1,15})?)\s*(?:req\w*|rps|qps)\s*(?:/|\bper\b|a)?\s*(s\b|sec\w*|min\w*)?", re.IGNORECASE
)
_AT_A_TIME = re.compile(r"(?<!\d)(\d{1,15}|one)\s+(?:requests?\s+)?(?:at a time|in flight|concurrent)", re.IGNORECASE)
_PRECISION = re.compile(r"\b(?:bf16|fp16|fp8|fp4|nvfp4|mxfp4|fp32|tf32|int8|int4|w\d+a\d+|awq|gptq)\b", re.IGNORECASE)
#: Begins where a word does: from every letter of a long one it would take the square of its length.
_MODEL = re.compile(r"(?<![a-z])[a-z]+\d+[a-z]*")
_CLOCKS = ("clocks.current.sm", "clocks.sm", "clocks.current.graphics", "clocks.gr")
_LIMITS = ("enforced.power.limit", "power.limit")
#: Prefixes of a monitor's columns that say what held the clocks down; an idle device is not held down.
_THROTTLES = ("clocks_event_reasons.", "violation.")
_NO_THROTTLE = "clocks_event_reasons.gpu_idle"
_POWER = ("power.draw", "power.draw.instant", "power.draw.average")
GRAPH_MODE = "CUDA_GRAPH_TRACE_OPTIONS:MODE"

#: Coefficient of variation of the gaps between arrivals: 0 for a clock, 1 for a Poisson process.
CONSTANT, POISSON, BURSTS = 0.25, (0.75, 1.3), 1.3
#: Fewer gaps than this say nothing of the process.
GAPS = 8
#: A declared rate within this share of the observed one (or two standard errors of a Poisson count) agrees.
AGREES = 0.10


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How requests came, from the log: rates in 1/s."""

    rate: float
    requests: int
    span_ns: int
    cv: float
    """Coefficient of variation of the gaps."""
    process: str | None
    """constant, Poisson-like, bursts, irregular, closed loop; None with too few gaps."""
    mean_in_flight: float
    max_in_flight: int


def contract(
    case_declared: Mapping[str, str],
    symptom: Symptom | None,
    log: RequestLog | None,
    trace: Trace | None,
    monitor: MonitorLog | None,
) -> tuple[list[ContractField], list[str]]:
    """``(fields, contradictions)``. Known fields come first, then missing ones, what weakens most first. An observed
    value stands before a declared one; where the two contradict each other a line names both."""
    declared = _declared(case_declared, symptom)
    arrivals = arrivals_of(log) if log is not None else None
    observed = _of_log(log, arrivals) | _of_trace(trace) | _of_monitor(monitor)
    if "device" in observed and trace is not None and monitor is not None:
        observed["device"] = _of_trace(trace).get("device", observed["device"])
    fields = []
    for name in (*FIELDS, *(n for n in declared if n not in FIELDS)):
        if name in observed:
            fields.append(ContractField(name, observed[name], FieldSource.OBSERVED))
        elif name in declared:
            fields.append(ContractField(name, declared[name], FieldSource.DECLARED))
    known = {f.name for f in fields}
    expected = (n for n in FIELDS if n not in _OPTIONAL and (trace is not None or n not in _OF_TRACE))
    fields += [ContractField(name, None, FieldSource.MISSING) for name in expected if name not in known]
    return fields, _contradictions(declared, log, arrivals, trace, monitor)


def arrivals_of(log: RequestLog) -> Arrivals | None:
    """None with fewer than two requests that have a start, and where a log has durations only. Warm-up is load as well,
    so it counts."""
    begin = starts(log)
    rows = np.flatnonzero(begin != UNKNOWN)
    if len(rows) < 2 or log.clock is Clock.NONE:
        return None
    begin, end = begin[rows], log.end[rows]
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    span = int(begin[-1] - begin[0])
    gaps = np.diff(begin)
    mean = float(gaps.mean())
    cv = float(gaps.std()) / mean if mean else 0.0
    done = end != UNKNOWN
    edge = np.concatenate([begin[done], end[done]])
    step = np.repeat(np.array([1, -1], np.int64), int(done.sum()))
    # At one instant ends come first: a request that begins where another ended is not beside it.
    depth = np.cumsum(step[np.lexsort((step, edge))])
    most = int(depth.max()) if len(depth) else 0
    window = int(edge.max() - begin[0]) if len(edge) else 0
    in_flight = float((end[done] - begin[done]).sum()) / window if window else 0.0
    return Arrivals(
        rate=len(gaps) / (span / 1e9) if span else float("inf"),
        requests=len(rows),
        span_ns=span,
        cv=cv,
        process=_process(begin, end, cv, most),
        mean_in_flight=in_flight,
        max_in_flight=most,
    )


def _process(begin: Ints, end: Ints, cv: float, most: int) -> str | None:
    if len(begin) <= GAPS:
        return None
    if _closed(begin, end, most):
        return f"closed loop, {most} in flight"
    if cv < CONSTANT:
        return "constant"
    if POISSON[0] <= cv <= POISSON[1]:
        return "Poisson-like"
    return "bursts" if cv > BURSTS else "irregular"


def _closed(begin: Ints, end: Ints, most: int) -> bool:
    """Each arrival follows the end of an earlier request at once: within 2 ms or 2 % of the median latency."""
    known = np.sort(end[end != UNKNOWN])
    late = begin[most:]
    if most < 1 or len(late) < GAPS or not len(known):
        return False
    latency = float(np.median((end - begin)[end != UNKNOWN]))
    at = np.searchsorted(known, late, "right") - 1
    wait = late - known[np.maximum(at, 0)]
    near = (at >= 0) & (wait <= max(2e6, 0.02 * latency))
    # By chance an open loop has an end just before some of its arrivals: nearly all must have one.
    return float(near.mean()) >= 0.9


def _declared(given: Mapping[str, str], symptom: Symptom | None) -> dict[str, str]:
    out: dict[str, str] = {}
    for key, value in given.items():
        name = key.strip().lower().replace("-", "_").replace(" ", "_")
        out.setdefault(_ALIASES.get(name, name), value)
    if symptom is not None:
        whose = f" of {symptom.request}" if symptom.statistic is Statistic.REQUEST else f" {symptom.statistic}"
        out["metric"] = f"{symptom.metric}{whose}"
        out["objective"] = symptom.objective_text or str(symptom.objective)
        if symptom.load:
            out["load"] = symptom.load
    if "precision" not in out and (found := _PRECISION.search(out.get("model", ""))):
        out["precision"] = found[0]
    return out


def _of_log(log: RequestLog | None, arrivals: Arrivals | None) -> dict[str, str]:
    if log is None:
        return {}
    out = {}
    if arrivals is not None:
        out["offered_load"] = (
            f"{arrivals.rate:.3g} requests/s ({arrivals.requests} requests in {show_ns(arrivals.span_ns)})"
        )
        few = "too few requests to say" if arrivals.process is None else arrivals.process
        out["arrival_process"] = f"{few} (coefficient of variation {arrivals.cv:.2f})"
        out["concurrency"] = f"{arrivals.mean_in_flight:.2f} in flight on average, at most {arrivals.max_in_flight}"
    ok = (log.status == STATUSES.index(Status.OK)) & ~log.warmup
    for name, column in (("input_tokens", log.input_tokens), ("output_tokens", log.output_tokens)):
        values = column[ok & (column != UNKNOWN)]
        if len(values):
            out[name] = _spread(values.astype(np.float64))
    main = ~log.warmup
    failed = int((main & (log.status != STATUSES.index(Status.OK))).sum())
    out["error_rate"] = f"{failed} of {int(main.sum())} requests"
    warm = int(log.warmup.sum())
    out["warmup"] = f"{warm} requests, left out" if warm else "none marked"
    return out


def _of_trace(trace: Trace | None) -> dict[str, str]:
    if trace is None:
        return {}
    meta = trace.meta
    out = {"profiler": " ".join(p for p in (meta.tool, meta.version) if p)}
    names = [d.name for d in meta.devices if d.name]
    if names:
        out["device"] = _counted(names)
    options = dict(meta.options)
    if (mode := options.pop(GRAPH_MODE, None)) is not None:
        out["graph_trace_mode"] = mode
    if options:
        out["trace_options"] = ", ".join(f"{k}={v}" for k, v in sorted(options.items()))
    return out


def _of_monitor(monitor: MonitorLog | None) -> dict[str, str]:
    if monitor is None:
        return {}
    out = {}
    names = [n for n in monitor.device_names.values() if n]
    if names:
        out["device"] = _counted(names)
    for field, columns, unit in (("clocks", _CLOCKS, "MHz"), ("power", _POWER, "W")):
        found = next((c for c in columns if c in monitor.columns), None)
        if found is not None:
            values = monitor.columns[found]
            out[field] = f"{found} {_spread(values[~np.isnan(values)])} {unit}"
            tops = ("clocks.max.sm", "clocks.max.graphics") if field == "clocks" else _LIMITS
            top = next((c for c in tops if c in monitor.columns), None)
            if top is not None:
                out[field] += f", at most {np.nanmax(monitor.columns[top]):g} {unit}"
    if (held := _throttling(monitor)) is not None:
        out["throttling"] = held
    drivers = dict.fromkeys(f["driver"] for f in monitor.facts.values() if "driver" in f)
    if drivers:
        out["driver"] = ", ".join(drivers)
    if "device" in out and any(f.get("mig") == "Enabled" for f in monitor.facts.values()):
        out["device"] += " (MIG enabled)"
    return out


def _throttling(monitor: MonitorLog) -> str | None:
    """What held the clocks down, and in how many samples; None where the monitor does not say."""
    reasons = {n: v for n, v in monitor.columns.items() if n.startswith(_THROTTLES) and n != _NO_THROTTLE}
    if not reasons:
        return None
    of = len(monitor.time)
    held = {n.removeprefix(_THROTTLES[0]): int((v > 0).sum()) for n, v in reasons.items()}
    found = [f"{n} in {k} of {of} samples" for n, k in sorted(held.items(), key=lambda x: (-x[1], x[0])) if k]
    return ", ".join(found) or f"none in {of} samples"


def _spread(values: npt.NDArray[np.float64]) -> str:
    """``p50 2048 [128..4096]``."""
    low, high = float(values.min()), float(values.max())
    middle = float(np.sort(values)[(len(values) - 1) // 2])
    return f"p50 {middle:g} [{low:g}..{high:g}]"


def _counted(names: list[str]) -> str:
    """``2 x NVIDIA H100``, several kinds with a comma."""
    kinds = dict.fromkeys(names)
    return ", ".join(f"{n} x {name}" if (n := names.count(name)) > 1 else name for name in kinds)


def _contradictions(
    declared: Mapping[str, str],
    log: RequestLog | None,
    arrivals: Arrivals | None,
    trace: Trace | None,
    monitor: MonitorLog | None,
) -> list[str]:
    """A line for each declared value that the evidence does not bear out."""
    found = []
    load = declared.get("load", "")
    if arrivals is not None:
        rate = _rate(load)
        near = max(AGREES, 2 / arrivals.requests**0.5)
        if rate is not None and abs(arrivals.rate - rate) > near * rate:
            found.append(f"declared load {rate:g} requests/s, observed {arrivals.rate:.3g} requests/s in the log")
        for word, process in (("poisson", "Poisson-like"), ("constant", "constant"), ("closed loop", "closed loop")):
            seen = arrivals.process
            if word in load.lower() and seen not in (None, "irregular") and not str(seen).startswith(process):
                found.append(f"declared arrivals are {word}, the log's look like {seen} (variation {arrivals.cv:.2f})")
        if (at_once := _AT_A_TIME.search(load)) is not None:
            most = 1 if at_once[1].lower() == "one" else int(at_once[1])
            if arrivals.max_in_flight > most:
                found.append(f"declared {most} in flight, observed up to {arrivals.max_in_flight} in the log")
    if log is not None:
        for name, column in (("input_tokens", log.input_tokens), ("output_tokens", log.output_tokens)):
            values = column[(column != UNKNOWN) & ~log.warmup]
            text = declared.get(name, "")
            if len(values) and text.isdecimal() and not values.min() <= int(text) <= values.max():
                found.append(f"declared {name} {text}, observed {_spread(values.astype(np.float64))}")
    for source, names in (
        ("trace", [d.name or "" for d in trace.meta.devices] if trace is not None else []),
        ("monitor", list(monitor.device_names.values()) if monitor is not None else []),
    ):
        said, seen_models = _models(declared.get("device", "")), _models(" ".join(names))
        if said and seen_models and not said & seen_models:
            seen = _counted([n for n in names if n])
            found.append(f"declared device {declared['device']}, the {source} is of {seen}")
    return found


def _rate(text: str) -> float | None:
    """Requests a second that a load states: ``8.9 requests/s``, ``500 req/min``, ``14 rps``."""
    found = _RATE.search(text)
    if found is None or not (found[2] or re.search(r"rps|qps", found[0], re.IGNORECASE)):
        return None
    return float(found[1]) / (60 if (found[2] or "").lower().startswith("min") else 1)


def _models(text: str) -> set[str]:
    """Words that name a model of device: letters and digits (``h100``, ``mi300x``), no amounts (``80gb``)."""
    words = _MODEL.findall(text.lower())
    return {w for w in words if not w.startswith(("hbm", "sxm", "gddr", "x"))}
