"""Reader of Nsight Systems SQLite exports (2020 to 2026).

``python -m scopedown.read.nsys_sqlite FILE`` prints what was read.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Source
from scopedown.read.nsys_device import read_events, read_ops, read_syncs
from scopedown.read.nsys_host import close_open, read_host, read_samples, read_scheduling
from scopedown.read.nsys_meta import (
    GRAPH_MODE,
    SKIPPED_CALLS,
    Session,
    read_devices,
    read_ordinals,
    read_session,
)
from scopedown.read.nsys_rows import Export
from scopedown.read.nsys_tables import MAGIC, Database
from scopedown.terms import Scope
from scopedown.trace.coverage import Coverage, coverage
from scopedown.trace.model import NONE, Device, DeviceOps, HostEvents, HostKind, Meta, OpKind, Trace

_TOOL = "NVIDIA Nsight Systems"
_TABLES = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "OSRT_API", "TARGET_INFO_", "ANALYSIS_DETAILS", "META_DATA_CAPTURE")
_MARKS = (b"CUPTI_ACTIVITY_KIND_", b"TARGET_INFO_SESSION_START_TIME", b"ENUM_NSYS_EVENT_TYPE")


class NsysSqlite:
    kind: ClassVar[str] = "nsys-sqlite"
    scope: ClassVar[Scope] = Scope.TIMELINE
    about: ClassVar[str] = "Nsight Systems export (nsys export --type sqlite)"

    def sniff(self, source: Source) -> bool:
        if not source.head.startswith(MAGIC):
            return False
        try:
            with source.file() as path, Database(path) as db:
                return any(table.startswith(_TABLES) for table in db.columns)
        except InputError:
            # Damaged: ours if the schema at its head is, so that the damage is what gets reported.
            return any(mark in source.head for mark in _MARKS)

    def read(self, source: Source) -> Artifact:
        with source.file() as path, Database(path, source.path) as db:
            session = read_session(db)
            export = Export(db)
            # The host first: rows of the device that name no process belong to the only one that is known by then.
            open_host = read_host(export)
            ordinals = read_ordinals(db)
            ops = read_ops(export, ordinals)
            window, window_warnings = _window(session, ops, open_host)
            host = close_open(export, open_host, window[1] if window else _last(ops, open_host))
            syncs, events = read_syncs(export), read_events(export)
            scheduling, samples = read_scheduling(export), read_samples(export)
            devices = _devices(read_devices(db), ops)
        trace = Trace(
            ops=ops,
            host=host,
            names=export.names.values,
            processes=tuple(export.actors.processes),
            threads=tuple(export.actors.threads),
            meta=Meta(
                tool=_TOOL,
                version=session.version,
                utc_start_ns=session.utc_start_ns,
                monotonic_start_ns=session.monotonic_start_ns,
                window=window,
                devices=devices,
                options=session.options,
                dropped=session.dropped,
            ),
            syncs=syncs,
            events=events,
            scheduling=scheduling,
            samples=samples,
        )
        cover = coverage(trace)
        warnings = (
            *session.warnings,
            *window_warnings,
            *(f"{count} {what}" for what, count in export.odd.items()),
            *_oddities(trace, cover, export.domains, ordinals),
        )
        can, cannot = _claims(trace, cover)
        return Artifact(
            path=source.path,
            sha256=source.sha256,
            kind=self.kind,
            scope=self.scope,
            producer=_TOOL,
            version=session.version,
            interval_ns=window or _span(ops, host),
            utc_start_ns=session.utc_start_ns,
            counts=_counts(trace),
            content=_with_warnings(trace, warnings),
            can_establish=can,
            cannot_establish=cannot,
            warnings=warnings,
            extra={"schema": session.schema} if session.schema else {},
        )


def _with_warnings(trace: Trace, warnings: tuple[str, ...]) -> Trace:
    return replace(trace, meta=replace(trace.meta, warnings=warnings))


def _span(ops: DeviceOps, host: HostEvents) -> tuple[int, int] | None:
    """From the first row to the last; rows from before the capture (negative times) do not extend it."""
    starts = [int(c.min()) for c in (ops.start, host.start) if len(c)]
    return (max(0, min(starts)), max(0, _last(ops, host))) if starts else None


def _last(ops: DeviceOps, host: HostEvents) -> int:
    ends = [int(c.max()) for c in (ops.end, host.end, host.start) if len(c)]
    return max(ends, default=0)


def _window(session: Session, ops: DeviceOps, host: HostEvents) -> tuple[tuple[int, int] | None, list[str]]:
    """The captured window on the events' axis, and what was strange about it.

    ``[0, duration]`` of ANALYSIS_DETAILS, unless the rows lie in its ``[startTime, stopTime]`` instead, which is on
    another clock in what nsys itself writes. Early NVTX rows (domains, ranges opened before a capture range) may lie
    before the window.
    """
    if session.cut:
        return session.cut, []
    if not session.windows or not (len(ops) or len(host)):
        return (session.windows[0] if session.windows else None), []
    last = _last(ops, host)
    starts = np.concatenate([ops.start, host.start])
    first = int(min(starts[starts >= session.axis_shift_ns], default=last))
    for start, stop in session.windows:
        if start <= first and last <= stop:
            return (start, stop), []
    start, stop = session.windows[0]
    if first < stop and last > start:
        return (start, stop), [f"the last row ends {last - stop} ns after the captured window"]
    return None, ["the captured window that the file states holds none of its rows: the rows' own span is taken"]


def _devices(known: dict[int, Device], ops: DeviceOps) -> tuple[Device, ...]:
    used = np.unique(ops.device).tolist()
    return tuple((known | {d: Device(d) for d in used if d not in known})[d] for d in sorted({*known, *used}))


def _counts(trace: Trace) -> dict[str, int]:
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
        "os_calls": host[HostKind.OS],
        "library_calls": host[HostKind.OP],
        "overhead": host[HostKind.OVERHEAD],
        "sync_records": len(trace.syncs) if trace.syncs else 0,
        "event_records": len(trace.events) if trace.events else 0,
        "scheduling": len(trace.scheduling) if trace.scheduling else 0,
        "stack_samples": len(trace.samples) if trace.samples else 0,
    }


def _oddities(trace: Trace, cover: Coverage, domains: int, ordinals: dict[tuple[int, int], int]) -> list[str]:
    ops, host = trace.ops, trace.host
    said: list[str] = []
    api = int((host.kind == HostKind.API).sum())
    if not len(ops) and not (host.kind != HostKind.OVERHEAD).any() and trace.samples is None:
        said.append("the capture is empty: it ended before anything was traced, or nothing that was traced ran")
    early = int((ops.start < 0).sum()) + int((host.start < 0).sum())
    if early:
        said.append(f"{early} rows start before the capture (negative times): they do not extend it")
    if cover.overlapping_on_stream:
        said.append(f"{cover.overlapping_on_stream} device ops start before the one before them on their stream ended")
    unlinked = int((ops.correlation == NONE).sum())
    if unlinked:
        said.append(f"{unlinked} of {len(ops)} device ops name no call (unified-memory migrations have none)")
    if cover.ops_without_launch > unlinked and api:
        lost = cover.ops_without_launch - unlinked
        said.append(
            f"the call of {lost} of {len(ops)} device ops is not in the file: launched before it begins, or lost"
        )
    if cover.launches_without_op and len(ops):
        said.append(f"{cover.launches_without_op} of {cover.launches} launch calls have no device op")
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


def _claims(trace: Trace, cover: Coverage) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the content can establish, and what it cannot."""
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
    claim(
        HostKind.API in kinds,
        "which call launched a device op, and when",
        "who launched the work: there are no API calls",
    )
    claim(
        trace.syncs is not None,
        "what a synchronising call waited for",
        "what a wait waited for: there are no sync records, it is inferred",
    )
    named = bool(kinds & {HostKind.ANNOTATION, HostKind.RANGE})
    claim(named, "which annotated range the host was in", "which step or request the work belongs to: no NVTX ranges")
    claim(HostKind.OS in kinds, "OS calls of the host threads (locks, polls, sleeps)",
          "whether a host thread waited for a lock, slept or polled: OS calls were not traced")  # fmt: skip
    claim(trace.scheduling is not None, "when a host thread was on a core",
          "whether a host thread was on a core: no scheduling records")  # fmt: skip
    claim(trace.samples is not None, "where host threads were, by sampling",
          "which host code ran between events: no stack samples")  # fmt: skip
    if HostKind.OP in kinds:
        can.append("library and MPI calls")
    graphs = bool((ops.kind == OpKind.GRAPH).any())
    whole = trace.meta.options.get(GRAPH_MODE, "").lower() == "graph"
    if graphs or (cover.graph_launches and whole and ops.graph_node is None):
        cannot.append("what ran inside a CUDA graph: graphs were traced whole (capture with --cuda-graph-trace=node)")
    if cover.graph_launches > cover.graph_records:
        cannot.append(
            f"{cover.graph_launches - cover.graph_records} of {cover.graph_launches} graph launches: no record"
        )
    if trace.meta.options.get(SKIPPED_CALLS, "").lower() == "true" and HostKind.API in kinds:
        cannot.append("cheap API calls: nsys left them out (CUDA_SKIP_SOME_API_CALLS)")
    if cover.dropped:
        cannot.append("totals: nsys says that events were lost, busy time is a lower bound")
    return tuple(can), tuple(cannot)


def main(argv: list[str]) -> int:
    """Prints what was read from the files."""
    for name in argv:
        artifact = NsysSqlite().read(Source(Path(name)))
        trace = artifact.content
        assert isinstance(trace, Trace)
        print(
            f"{name}: {artifact.producer} {artifact.version or 'of unknown version'}, interval {artifact.interval_ns}"
        )
        print("  " + ", ".join(f"{k} {n}" for k, n in artifact.counts.items() if n))
        for device in trace.meta.devices:
            print(f"  device {device.id}: {device.name}, {int((trace.ops.device == device.id).sum())} ops")
        for title, lines in (
            ("can establish", artifact.can_establish),
            ("cannot establish", artifact.cannot_establish),
            ("warning", artifact.warnings),
        ):
            for line in lines:
                print(f"  {title}: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
