"""What a device op waits for beside its stream: events of other streams, a copy engine, peers of a collective."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from scopedown.account.calls import Calls, Streams, join
from scopedown.trace.model import NONE, CopyKind, HostKind, Ints, OpKind, Trace

#: From the end of a copy to the start of the next on its engine: up to 6 us were seen.
ENGINE_SLACK_NS = 8_000


def event_waits(trace: Trace, st: Streams, calls: Calls) -> dict[int, int]:
    """For an op that its stream was told to hold until an event: the op that the event stands for.

    Numbers of streams repeat from context to context (and so from device to device): a stream is (process, context,
    number), or (process, device, number) in a trace that does not tell contexts.
    """
    ev, y = trace.events, trace.syncs
    if ev is None or y is None or not len(ev) or not len(y):
        return {}
    api = np.flatnonzero(trace.host.kind == HostKind.API)
    when_of = trace.host.start[api]
    recorded_at = join(ev.process, ev.correlation, trace.host.process[api], trace.host.correlation[api])
    waits_at = join(y.process, y.correlation, trace.host.process[api], trace.host.correlation[api])
    names = np.array([("WaitEvent" in n) for n in trace.names])
    ops = trace.ops
    where, of_record, of_wait = (
        (ops.device, ev.device, y.device) if ops.context is None else (ops.context, ev.context, y.context)
    )
    records: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for k in np.flatnonzero(recorded_at >= 0).tolist():
        records.setdefault((int(ev.process[k]), int(ev.event[k])), []).append(
            (int(when_of[recorded_at[k]]), int(of_record[k]), int(ev.stream[k]))
        )
    for r in records.values():
        r.sort()
    queue: dict[tuple[int, int, int], tuple[Ints, list[int]]] = {}
    launched = np.where(calls.of_op >= 0, calls.start[calls.of_op] if len(calls) else 0, np.iinfo(np.int64).min)
    for k in range(len(st.bound) - 1):
        rows = st.order[st.bound[k] : st.bound[k + 1]]
        key = int(ops.process[rows[0]]), int(where[rows[0]]), int(ops.stream[rows[0]])
        queue[key] = rows, np.maximum.accumulate(launched[rows]).tolist()
    out: dict[int, int] = {}
    for k in np.flatnonzero(waits_at >= 0).tolist():
        row = api[waits_at[k]]
        if not names[trace.host.name[row]] or y.event[k] == NONE:
            continue
        when, p = int(trace.host.start[row]), int(y.process[k])
        earlier = [r for r in records.get((p, int(y.event[k])), []) if r[0] <= when]
        waiting = queue.get((p, int(of_wait[k]), int(y.stream[k])))
        if not earlier or waiting is None:
            continue
        recorded, place, stream = earlier[-1]
        source = queue.get((p, place, stream))
        if source is None:
            continue
        i, j = bisect_left(waiting[1], when), bisect_left(source[1], recorded) - 1
        if i < len(waiting[0]) and j >= 0:
            op, before = int(waiting[0][i]), int(source[0][j])
            kept = out.get(op)
            if kept is None or ops.end[before] > ops.end[kept]:
                out[op] = before
    return out


def engine_waits(trace: Trace, st: Streams, calls: Calls) -> dict[int, int]:
    """For a copy that was queued and whose stream was free: the copy of another stream that held the engine.

    A device has an engine a direction for copies to and from the host; copies on it follow each other within some
    microseconds, whatever their streams.
    """
    ops = trace.ops
    if ops.copy_kind is None:
        return {}
    out: dict[int, int] = {}
    for device in np.unique(ops.device).tolist():
        for direction in (CopyKind.HTOD, CopyKind.DTOH):
            rows = np.flatnonzero((ops.device == device) & (ops.kind == OpKind.COPY) & (ops.copy_kind == direction))
            rows = rows[np.argsort(ops.start[rows], kind="stable")]
            if len(rows) < 2 or not len(calls):
                continue
            before, mine = rows[:-1], rows[1:]
            call, prev, ended = calls.of_op[mine], st.previous[mine], ops.end[before]
            queued = (call >= 0) & (calls.handed_over[call] <= ended)
            free = np.where(prev >= 0, ops.end[prev], np.iinfo(np.int64).min) < ended
            close = (ended <= ops.start[mine]) & (ops.start[mine] - ended <= ENGINE_SLACK_NS)
            held = np.flatnonzero((st.key[before] != st.key[mine]) & queued & free & close)
            out |= dict(zip(mine[held].tolist(), before[held].tolist(), strict=True))
    return out


def collective_peers(trace: Trace) -> dict[int, int]:
    """For a collective op the op of the same collective that started last on another device, where the capture holds
    several: same name, overlapping, ending within 50 us of each other."""
    ops = trace.ops
    rows = np.flatnonzero(ops.kind == OpKind.COLLECTIVE)
    if len(np.unique(ops.device[rows])) < 2:
        return {}
    out: dict[int, int] = {}
    by_name: dict[int, list[int]] = {}
    for i in rows.tolist():
        by_name.setdefault(int(ops.name[i]), []).append(i)
    for group in by_name.values():
        group.sort(key=lambda i: int(ops.end[i]))
        first = 0
        for k in range(1, len(group) + 1):
            if k == len(group) or ops.end[group[k]] - ops.end[group[k - 1]] > 50_000:
                members = group[first:k]
                last = max(members, key=lambda i: int(ops.start[i]))
                for i in members:
                    overlaps = ops.start[last] < ops.end[i] and ops.device[i] != ops.device[last]
                    if overlaps and ops.start[last] > ops.start[i]:
                        out[i] = last
                first = k
    return out
