"""What a timeline of any tool can establish and what was odd about it, from its content alone."""

from __future__ import annotations

import numpy as np

from scopedown.trace.coverage import Coverage
from scopedown.trace.model import NONE, HostKind, OpKind, Trace

#: Kernels that AMD's runtime launches itself to copy and to fill memory.
_RUNTIME_KERNEL = "__amd_rocclr_"


class Counted:
    """Rows by kind."""

    def __init__(self, trace: Trace) -> None:
        self.op: list[int] = np.bincount(trace.ops.kind, minlength=len(OpKind)).tolist()
        self.host: list[int] = np.bincount(trace.host.kind, minlength=len(HostKind)).tolist()

    def common(self) -> dict[str, int]:
        return {
            "kernels": self.op[OpKind.KERNEL] + self.op[OpKind.COLLECTIVE],
            "copies": self.op[OpKind.COPY],
            "memsets": self.op[OpKind.MEMSET],
            "graphs": self.op[OpKind.GRAPH],
            "api_calls": self.host[HostKind.API],
            "annotations": self.host[HostKind.ANNOTATION] + self.host[HostKind.RANGE],
            "marks": self.host[HostKind.MARK],
        }


class Claims:
    """What can be established and what cannot, in the order of saying."""

    def __init__(self) -> None:
        self.can: list[str] = []
        self.cannot: list[str] = []

    def claim(self, holds: bool, yes: str, no: str) -> None:
        (self.can if holds else self.cannot).append(yes if holds else no)

    def device_rows(self, trace: Trace) -> None:
        ops = trace.ops
        self.claim(
            len(ops) > 0,
            f"when the device executed: {len(ops)} ops on {len(np.unique(ops.device))} device(s)",
            "what the device did: there are no device rows",
        )

    def waits(self, trace: Trace) -> None:
        self.claim(
            trace.syncs is not None,
            "what a synchronising call waited for",
            "what a wait waited for: there are no sync records, it is inferred",
        )

    def graph_records(self, cover: Coverage) -> None:
        lacking = cover.graph_launches - cover.graph_records
        if lacking > 0:
            self.cannot.append(f"{lacking} of {cover.graph_launches} graph launches: no record")

    def both(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(self.can), tuple(self.cannot)


def links(trace: Trace, cover: Coverage, *, migrations: bool = False) -> list[str]:
    """What is odd about device ops and the calls that launched them. ``migrations``: the tool records those of unified
    memory, which no call asks for."""
    ops, said = trace.ops, []
    api = bool((trace.host.kind == HostKind.API).any())
    if cover.overlapping_on_stream:
        said.append(f"{cover.overlapping_on_stream} device ops start before the one before them on their stream ended")
    unlinked = int((ops.correlation == NONE).sum())
    if unlinked and (api or migrations):
        why = " (unified-memory migrations have none)" if migrations else ""
        said.append(f"{unlinked} of {len(ops)} device ops name no call{why}")
    lost = cover.ops_without_launch - unlinked
    if lost > 0 and api:
        said.append(
            f"the call of {lost} of {len(ops)} device ops is not in the file: launched before it begins, or lost"
        )
    if cover.launches_without_op and len(ops):
        said.append(f"{cover.launches_without_op} of {cover.launches} launch calls have no device op")
    return said


def counts(trace: Trace) -> dict[str, int]:
    """Rows by event kind."""
    rows = Counted(trace)
    return rows.common() | {
        "framework_ops": rows.host[HostKind.OP],
        "python_calls": rows.host[HostKind.PYTHON],
        "overhead": rows.host[HostKind.OVERHEAD],
    }


def oddities(trace: Trace, cover: Coverage) -> list[str]:
    ops = trace.ops
    said: list[str] = []
    if not len(ops) and not len(trace.host):
        said.append("the capture is empty: its tables exist and hold no event")
    said += links(trace, cover)
    runtime = np.array([n.startswith(_RUNTIME_KERNEL) for n in trace.names] or [False])
    if own := int(runtime[ops.name].sum()) if len(ops) else 0:
        said.append(f"{own} of {len(ops)} device ops are the runtime's own kernels, which copy or fill memory")
    if cover.processes_without_device_rows and len(ops):
        said.append(f"{cover.processes_without_device_rows} processes have API calls and no device ops")
    return said


def claims(trace: Trace, cover: Coverage) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(can, cannot) establish."""
    ops = trace.ops
    kinds = set(np.unique(trace.host.kind).tolist())
    c = Claims()
    c.device_rows(trace)
    linked = HostKind.API in kinds and (not len(ops) or cover.ops_without_launch < len(ops))
    c.claim(linked, "which call launched a device op, and when", "who launched the work: there are no launch records")
    c.waits(trace)
    c.claim(
        bool(kinds & {HostKind.ANNOTATION, HostKind.RANGE}),
        "which annotated range the host was in",
        "which step or request the work belongs to: no annotated ranges",
    )
    if HostKind.OP in kinds:
        c.can.append("which framework or library call a host thread was in")
    if HostKind.PYTHON in kinds:
        c.can.append("which Python function a host thread was in")
    c.cannot.append("whether a host thread waited for a lock, slept or was on a core: neither OS calls nor scheduling")
    c.graph_records(cover)
    if cover.dropped:
        c.cannot.append("totals: the tool says that events were lost, busy time is a lower bound")
    return c.both()
