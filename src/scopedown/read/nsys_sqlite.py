"""Reader of Nsight Systems SQLite exports (2020 to 2026).

``python -m scopedown.read.nsys_sqlite FILE`` prints what was read.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import ClassVar

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Source
from scopedown.read.nsys_claims import claims, counts, oddities
from scopedown.read.nsys_device import read_events, read_ops, read_syncs
from scopedown.read.nsys_host import close_open, read_host, read_samples, read_scheduling
from scopedown.read.nsys_meta import (
    Session,
    read_devices,
    read_ordinals,
    read_session,
)
from scopedown.read.nsys_rows import Export
from scopedown.read.nsys_tables import MAGIC, Database
from scopedown.read.rows import show
from scopedown.terms import Scope
from scopedown.trace.coverage import coverage
from scopedown.trace.model import Device, DeviceOps, HostEvents, Meta, Trace

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
            *oddities(trace, cover, export.domains, ordinals),
        )
        can, cannot = claims(trace, cover)
        return Artifact(
            path=source.path,
            sha256=source.sha256,
            kind=self.kind,
            scope=self.scope,
            producer=_TOOL,
            version=session.version,
            interval_ns=window or _span(ops, host),
            utc_start_ns=session.utc_start_ns,
            counts=counts(trace),
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


if __name__ == "__main__":
    sys.exit(show(NsysSqlite(), sys.argv[1:]))
