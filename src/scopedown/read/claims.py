"""What a timeline of any tool can establish and what was odd about it, from its content alone."""

from __future__ import annotations

import numpy as np

from scopedown.trace.coverage import Coverage
from scopedown.trace.model import NONE, HostKind, OpKind, Trace

#: Kernels that AMD's runtime launches itself to copy and to fill memory.
_RUNTIME_KERNEL = "__amd_rocclr_"


def counts(trace: Trace) -> dict[str, int]:
    """Rows by event kind."""
    op = np.bincount(trace.ops.kind, minlength=len(OpKind)).tolist()
    host = np.bincount(trace.host.kind, minlength=len(HostKind)).tolist()
    return {
        "kernels": op[OpKind.KERNEL] + op[OpKind.COLLECTIVE],
        "copies": op[OpKind.COPY],
        "memsets": op[OpKind.MEMSET],
        "graphs": op[OpKind.GRAPH],
        "api_calls": host[HostKind.API],
        "annotations": host[HostKind.ANNOTATION] + host[HostKind.RANGE],
        "marks": host[HostKind.MARK],
        "framework_ops": host[HostKind.OP],
        "python_calls": host[HostKind.PYTHON],
        "overhead": host[HostKind.OVERHEAD],
    }


def oddities(trace: Trace, cover: Coverage) -> list[str]:
    ops, host = trace.ops, trace.host
    said: list[str] = []
    api = int((host.kind == HostKind.API).sum())
    if not len(ops) and not len(host):
        said.append("the capture is empty: its tables exist and hold no event")
    if cover.overlapping_on_stream:
        said.append(f"{cover.overlapping_on_stream} device ops start before the one before them on their stream ended")
    unlinked = int((ops.correlation == NONE).sum())
    if unlinked and api:
        said.append(f"{unlinked} of {len(ops)} device ops name no call")
    lost = cover.ops_without_launch - unlinked
    if lost > 0 and api:
        said.append(
            f"the call of {lost} of {len(ops)} device ops is not in the file: launched before it begins, or lost"
        )
    if cover.launches_without_op and len(ops):
        said.append(f"{cover.launches_without_op} of {cover.launches} launch calls have no device op")
    runtime = np.array([n.startswith(_RUNTIME_KERNEL) for n in trace.names] or [False])
    if own := int(runtime[ops.name].sum()) if len(ops) else 0:
        said.append(f"{own} of {len(ops)} device ops are the runtime's own kernels, which copy or fill memory")
    if cover.processes_without_device_rows and len(ops):
        said.append(f"{cover.processes_without_device_rows} processes have API calls and no device ops")
    return said


def claims(trace: Trace, cover: Coverage) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(can, cannot) establish."""
    ops, host = trace.ops, trace.host
    kinds = set(np.unique(host.kind).tolist())
    can: list[str] = []
    cannot: list[str] = []

    def claim(holds: bool, yes: str, no: str) -> None:
        (can if holds else cannot).append(yes if holds else no)

    claim(
        len(ops) > 0,
        f"when the device executed: {len(ops)} ops on {len(np.unique(ops.device))} device(s)",
        "what the device did: there are no device rows",
    )
    linked = HostKind.API in kinds and (not len(ops) or cover.ops_without_launch < len(ops))
    claim(linked, "which call launched a device op, and when", "who launched the work: there are no launch records")
    claim(
        trace.syncs is not None,
        "what a synchronising call waited for",
        "what a wait waited for: there are no sync records, it is inferred",
    )
    claim(
        bool(kinds & {HostKind.ANNOTATION, HostKind.RANGE}),
        "which annotated range the host was in",
        "which step or request the work belongs to: no annotated ranges",
    )
    if HostKind.OP in kinds:
        can.append("which framework or library call a host thread was in")
    if HostKind.PYTHON in kinds:
        can.append("which Python function a host thread was in")
    cannot.append("whether a host thread waited for a lock, slept or was on a core: neither OS calls nor scheduling")
    if cover.graph_launches > cover.graph_records:
        cannot.append(
            f"{cover.graph_launches - cover.graph_records} of {cover.graph_launches} graph launches: no record"
        )
    if cover.dropped:
        cannot.append("totals: the tool says that events were lost, busy time is a lower bound")
    return tuple(can), tuple(cannot)
