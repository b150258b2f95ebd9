"""What an Nsight Systems export can establish and what was odd about it, from its content alone."""

from __future__ import annotations

import numpy as np

from scopedown.read.claims import Claims, Counted, links
from scopedown.read.nsys_meta import GRAPH_MODE, SKIPPED_CALLS
from scopedown.trace.coverage import Coverage
from scopedown.trace.model import HostKind, OpKind, Trace


def counts(trace: Trace) -> dict[str, int]:
    rows = Counted(trace)
    return rows.common() | {
        "os_calls": rows.host[HostKind.OS],
        "library_calls": rows.host[HostKind.OP],
        "overhead": rows.host[HostKind.OVERHEAD],
        "sync_records": len(trace.syncs) if trace.syncs else 0,
        "event_records": len(trace.events) if trace.events else 0,
        "scheduling": len(trace.scheduling) if trace.scheduling else 0,
        "stack_samples": len(trace.samples) if trace.samples else 0,
    }


def oddities(trace: Trace, cover: Coverage, domains: int, ordinals: dict[tuple[int, int], int]) -> list[str]:
    ops, host = trace.ops, trace.host
    said: list[str] = []
    if not len(ops) and not (host.kind != HostKind.OVERHEAD).any() and trace.samples is None:
        said.append("the capture is empty: it ended before anything was traced, or nothing that was traced ran")
    early = int((ops.start < 0).sum()) + int((host.start < 0).sum())
    if early:
        said.append(f"{early} rows start before the capture (negative times): they do not extend it")
    said += links(trace, cover, migrations=True)
    if cover.processes_without_device_rows:
        called = np.setdiff1d(host.process[host.kind == HostKind.API], ops.process).tolist()
        names = ", ".join(f"{trace.processes[p].name or 'unnamed'} (pid {trace.processes[p].pid})" for p in called[:3])
        said.append(f"{len(called)} processes have API calls and no device ops: {names}{', ...' * (len(called) > 3)}")
    if domains and not int(np.isin(host.kind, (HostKind.ANNOTATION, HostKind.RANGE, HostKind.MARK)).sum()):
        said.append(
            f"{domains} NVTX domains and no range: an nvtx package newer than nsys loses all ranges without an error"
        )
    if not ordinals:
        shared = {d for d in np.unique(ops.device).tolist() if len(np.unique(ops.process[ops.device == d])) > 1}
        said += [
            f"device {d} has ops of several processes: where each sees another GPU under this number, they are mixed"
            for d in sorted(shared)
        ]
    return said


def claims(trace: Trace, cover: Coverage) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the content can establish, and what it cannot."""
    ops, host = trace.ops, trace.host
    kinds = set(np.unique(host.kind).tolist())
    c = Claims()
    c.device_rows(trace)
    c.claim(
        HostKind.API in kinds,
        "which call launched a device op, and when",
        "who launched the work: there are no API calls",
    )
    c.waits(trace)
    named = bool(kinds & {HostKind.ANNOTATION, HostKind.RANGE})
    c.claim(named, "which annotated range the host was in", "which step or request the work belongs to: no NVTX ranges")
    c.claim(HostKind.OS in kinds, "OS calls of the host threads (locks, polls, sleeps)",
          "whether a host thread waited for a lock, slept or polled: OS calls were not traced")  # fmt: skip
    c.claim(trace.scheduling is not None, "when a host thread was on a core",
          "whether a host thread was on a core: no scheduling records")  # fmt: skip
    c.claim(trace.samples is not None, "where host threads were, by sampling",
          "which host code ran between events: no stack samples")  # fmt: skip
    if HostKind.OP in kinds:
        c.can.append("library and MPI calls")
    graphs = bool((ops.kind == OpKind.GRAPH).any())
    whole = trace.meta.options.get(GRAPH_MODE, "").lower() == "graph"
    if graphs or (cover.graph_launches and whole and ops.graph_node is None):
        c.cannot.append("what ran inside a CUDA graph: graphs were traced whole (capture with --cuda-graph-trace=node)")
    c.graph_records(cover)
    if trace.meta.options.get(SKIPPED_CALLS, "").lower() == "true" and HostKind.API in kinds:
        c.cannot.append("cheap API calls: nsys left them out (CUDA_SKIP_SOME_API_CALLS)")
    if cover.dropped:
        c.cannot.append("totals: nsys says that events were lost, busy time is a lower bound")
    return c.both()
