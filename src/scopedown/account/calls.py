"""API calls of a trace, and how device ops and waits hang on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scopedown.trace import named, tally
from scopedown.trace.model import NONE, CopyKind, HostKind, Ints, Mask, MemKind, Trace
from scopedown.trace.names import ApiMeaning, api_meaning

#: Shorter than this, a launch call has not waited for anything.
LAUNCH_BLOCKED_NS = 8_000

AnyInts = npt.NDArray[np.signedinteger[Any]]

#: Device and host clocks of a capture agree to a few microseconds only (pytorch/kineto#1380 reports 8 to 9 us).
CLOCK_TOLERANCE_NS = 10_000
#: Copies of unified memory: CUPTI has no call for them.
PAGED = (CopyKind.UVM_HTOD, CopyKind.UVM_DTOH, CopyKind.UVM_DTOD)


@dataclass(frozen=True, slots=True)
class Calls:
    """The outermost API calls, sorted by (thread, start). ``event`` is the row in ``Trace.host``."""

    start: Ints
    end: Ints
    thread: Ints
    process: Ints
    meaning: Ints
    name: Ints
    event: Ints
    thread_bound: Ints
    """Calls of thread t are rows ``thread_bound[t]:thread_bound[t + 1]``."""
    of_op: Ints
    """For each device op the call that launched it, or NONE."""
    blocking: Mask
    """The call returns only after device work has ended."""
    awaited: Ints
    """For a blocking call the device op that ended last of those that it waited for, or NONE."""
    awaited_too: dict[int, tuple[int, ...]]
    """For a blocking call that waited for several streams: the last op of each of the others."""
    of_event: Ints
    """For each host event the outermost call that it is or lies in, or NONE."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def handed_over(self) -> Ints:
        """When the work was with the device: the call's return; for a call that waits for its own op, soon after its
        start."""
        return np.where(self.blocking, np.minimum(self.end, self.start + CLOCK_TOLERANCE_NS), self.end)


@dataclass(frozen=True, slots=True)
class Streams:
    """Device ops in stream order."""

    previous: Ints
    """For each op the op before it on its stream, or NONE."""
    order: Ints
    """Ops sorted by (stream key, start)."""
    bound: Ints
    """Ops of stream k are ``order[bound[k]:bound[k + 1]]``."""
    key: Ints
    """For each op its stream key: 0.. over (process, device, context, stream)."""


def _codes(*columns: AnyInts) -> Ints:
    """Dense codes of row tuples, in the order of the tuples."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, place = tally.index(column)
        code = code * len(values) + place
    return tally.index(code)[1]


def streams(trace: Trace) -> Streams:
    ops = trace.ops
    context = ops.context if ops.context is not None else np.zeros(len(ops), np.int64)
    key = _codes(ops.process, ops.device, context, ops.stream)
    order = np.argsort(key, kind="stable")
    n_keys = int(key.max()) + 1 if len(key) else 0
    bound = np.searchsorted(key[order], np.arange(n_keys + 1))
    previous = np.full(len(ops), NONE, np.int64)
    same = key[order][1:] == key[order][:-1]
    previous[order[1:][same]] = order[:-1][same]
    return Streams(previous, order, bound, key)


def join(process: AnyInts, correlation: Ints, to_process: AnyInts, to_correlation: Ints) -> Ints:
    """For each (process, correlation) the first row of the other table with the same pair, or NONE."""
    out = np.full(len(correlation), NONE, np.int64)
    if not len(correlation) or not len(to_correlation):
        return out
    base = int(max(correlation.max(), to_correlation.max())) + 2
    low = int(min(correlation.min(), to_correlation.min(), 0))
    if (base - low) * (int(max(process.max(), to_process.max())) + 1) >= 2**62:
        values, inverse = np.unique(np.concatenate([correlation, to_correlation]), return_inverse=True)
        none = int(np.searchsorted(values, NONE)) if NONE in values else -2
        correlation, to_correlation = inverse[: len(correlation)], inverse[len(correlation) :]
        valid, to_valid = correlation != none, to_correlation != none
        base, low = len(values) + 1, 0
    else:
        valid, to_valid = correlation != NONE, to_correlation != NONE
    key = process.astype(np.int64) * (base - low) + (correlation - low)
    to_key = to_process.astype(np.int64) * (base - low) + (to_correlation - low)
    rows = np.flatnonzero(to_valid)
    rows = rows[np.argsort(to_key[rows], kind="stable")]
    if not len(rows):
        return out
    place = np.minimum(np.searchsorted(to_key[rows], key), len(rows) - 1)
    hit = valid & (to_key[rows[place]] == key)
    out[hit] = rows[place[hit]]
    return out


def calls(trace: Trace, st: Streams) -> Calls:
    host = trace.host
    api = np.flatnonzero((host.kind == HostKind.API) & (host.thread >= 0))
    api = api[np.argsort(host.thread[api], kind="stable")]
    thread, s, e = host.thread[api].astype(np.int64), host.start[api], host.end[api]
    # One running maximum over all threads: each thread is shifted behind the one before it.
    span = int(e.max() - s.min()) + 1 if len(api) else 1
    shift = np.cumsum(np.append(0, (thread[1:] != thread[:-1]).astype(np.int64))) if len(api) else thread
    if len(api) and span * (int(shift[-1]) + 1) < 2**62:
        reach = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(e + shift * span)[:-1])
        outer = s + shift * span >= reach
    else:
        outer = _outermost(thread, s, e)
    of_event = np.full(len(host), NONE, np.int64)
    of_event[api] = np.cumsum(outer) - 1
    rows = api[outer]
    meaning_of = named.values(trace.names, host.name[rows], api_meaning, ApiMeaning.OTHER)
    n_threads = len(trace.threads)
    event_of_op = join(trace.ops.process, trace.ops.correlation, host.process[api], host.correlation[api])
    of_op = np.where(event_of_op >= 0, of_event[api[event_of_op]] if len(api) else NONE, NONE)
    # The meaning of a call is that of the innermost API call with a meaning of its own: a runtime call that only
    # wraps a driver call has the better name, but a call without meaning takes it from its launch.
    meaning = meaning_of[host.name[rows]]
    launched = tally.distinct(of_op[of_op >= 0])
    plain = launched[meaning[launched] == ApiMeaning.OTHER]
    meaning[plain] = ApiMeaning.LAUNCH
    table = Calls(
        start=host.start[rows],
        end=host.end[rows],
        thread=host.thread[rows].astype(np.int64),
        process=host.process[rows].astype(np.int64),
        meaning=meaning,
        name=host.name[rows].astype(np.int64),
        event=rows,
        thread_bound=np.searchsorted(host.thread[rows], np.arange(n_threads + 1)),
        of_op=of_op,
        blocking=np.zeros(len(rows), bool),
        awaited=np.full(len(rows), NONE, np.int64),
        awaited_too={},
        of_event=of_event,
    )
    _waits(trace, st, table)
    return table


#: Waits that are looked at together: a table of them and of all streams is in memory.
_BLOCK = 1024


def _outermost(thread: Ints, s: Ints, e: Ints) -> Mask:
    out = np.ones(len(s), bool)
    reach, before = -1, -1
    for i, (t, a, b) in enumerate(zip(thread.tolist(), s.tolist(), e.tolist(), strict=True)):
        if t != before:
            reach, before = a, t
        out[i] = a >= reach
        reach = max(reach, b)
    return out


def _waits(trace: Trace, st: Streams, c: Calls) -> None:
    """Fills ``blocking`` and ``awaited``: the last op that was launched before the call on the stream that it waits
    for (all streams of the process where the file does not say), if its end fits the call's return."""
    ops = trace.ops
    if not len(ops):
        return
    launch = np.where(c.of_op >= 0, c.start[c.of_op] if len(c) else 0, np.iinfo(np.int64).min)
    queues = []
    for k in range(len(st.bound) - 1):
        rows = st.order[st.bound[k] : st.bound[k + 1]]
        # Pages move where code faults on them: a migration is part of that code, in no queue, and nobody awaits it.
        if ops.copy_kind is not None:
            rows = rows[~np.isin(ops.copy_kind[rows], PAGED)]
        if not len(rows):
            continue
        # Along a stream launches are in order; an op of unknown launch was launched no later than the next known one.
        known = np.where(c.of_op[rows] >= 0, launch[rows], np.iinfo(np.int64).max)
        upper = np.minimum.accumulate(known[::-1])[::-1]
        made = np.where(c.of_op[rows] >= 0, launch[rows], np.minimum(upper, ops.start[rows]))
        queues.append((rows, np.maximum.accumulate(made), np.maximum.accumulate(ops.end[rows])))
    of_device: dict[tuple[int, int], list[int]] = {}
    of_stream: dict[tuple[int, int, int], list[int]] = {}
    for k, (rows, _, _) in enumerate(queues):
        p = int(ops.process[rows[0]])
        for device in (int(ops.device[rows[0]]), NONE):
            of_device.setdefault((p, device), []).append(k)
            of_stream.setdefault((p, device, int(ops.stream[rows[0]])), []).append(k)

    wait_of = _sync_details(trace, c)
    used = _devices_used(trace, c)
    frees = named.where(
        trace.names, c.name, lambda n: n.startswith(("cudaFree", "hipFree", "cuMemFree")) and "Async" not in n
    )
    sync = (c.meaning == ApiMeaning.SYNC) | ((c.meaning == ApiMeaning.ALLOC) & frees)
    unnamed: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i in np.flatnonzero(sync).tolist():
        p, s0, s1 = int(c.process[i]), int(c.start[i]), int(c.end[i])
        # Without a record a thread waits on the device that it last gave work to.
        device, stream, before = wait_of.get(i) or (used(i), NONE, s0)
        meant = of_stream.get((p, device, stream), []) if stream != NONE else []
        if not meant:
            unnamed.setdefault((p, device), []).append((i, before))
            continue
        last: list[int] = []
        for k in meant:
            rows, made, _ = queues[k]
            j = int(np.searchsorted(made, before, side="left")) - 1
            if j >= 0 and ops.end[rows[j]] <= s1 + CLOCK_TOLERANCE_NS:
                last.append(int(rows[j]))
        _await(c, i, np.array(last, np.int64), ops.end)
    for where, waiting in unnamed.items():
        _await_streams(c, waiting, [queues[k] for k in of_device.get(where, [])], ops.end)
    _copies(trace, c)
    _full_queue(trace, c)
    _inferred_full_queue(trace, c, queues)


def _await_streams(c: Calls, waiting: list[tuple[int, int]], queues: list[tuple[Ints, Ints, Ints]], ends: Ints) -> None:
    """Calls that wait for all of ``queues``, as ``(call, instant before which the work was launched)``. Which streams a
    call waited for is unknown: work that outlives it was not waited for."""
    for at in range(0, len(waiting) if queues else 0, _BLOCK):
        call, before = np.array(waiting[at : at + _BLOCK], np.int64).T
        latest = c.end[call] + CLOCK_TOLERANCE_NS
        found = np.full((len(call), len(queues)), NONE, np.int64)
        for k, (rows, made, reach) in enumerate(queues):
            n = np.minimum(np.searchsorted(made, before, side="left"), np.searchsorted(reach, latest, side="right"))
            row = rows[np.maximum(n - 1, 0)]
            found[:, k] = np.where((n > 0) & (ends[row] <= latest), row, NONE)
        for i, last in zip(call.tolist(), found, strict=True):
            _await(c, i, last[last >= 0], ends)


def _await(c: Calls, call: int, last: Ints, ends: Ints) -> None:
    """Notes the last op of each stream that a call waits for: the one that ends last, then the others."""
    if not len(last):
        return
    last = last[np.argsort(-ends[last], kind="stable")]
    c.awaited[call], c.blocking[call] = last[0], True
    if len(last) > 1:
        c.awaited_too[call] = tuple(last[1:].tolist())


def _inferred_full_queue(trace: Trace, c: Calls, queues: list[tuple[Ints, Ints, Ints]]) -> None:
    """The same without a record: the stream holds as many ops as it ever does, the call takes far longer than launches
    of its name do, and it returns as soon as an op of its stream has ended."""
    launch = (c.meaning == ApiMeaning.LAUNCH) | (c.meaning == ApiMeaning.GRAPH_LAUNCH)
    took = c.end - c.start
    usual = np.zeros(len(c), np.int64)
    for name in np.unique(c.name[launch]).tolist():
        same = launch & (c.name == name)
        usual[same] = int(np.percentile(took[same], 25))
    ends = trace.ops.end
    for rows, _, _ in queues:
        known = c.of_op[rows] >= 0
        mine = rows[known]
        # One call may launch many ops: its first one counts.
        call, first = np.unique(c.of_op[mine], return_index=True)
        ahead = np.flatnonzero(known)[first]
        done = np.sort(ends[rows])
        gone = np.searchsorted(done, c.end[call], side="right")
        held = ahead - gone
        slow = launch[call] & ~c.blocking[call] & (took[call] > np.maximum(3 * usual[call], LAUNCH_BLOCKED_NS))
        if not slow.any():
            continue
        by_end = rows[np.argsort(ends[rows], kind="stable")]
        last = np.where(gone > 0, by_end[np.maximum(gone - 1, 0)], 0)
        let_go = (gone > 0) & (ends[last] > c.start[call]) & (c.end[call] - ends[last] <= CLOCK_TOLERANCE_NS)
        full = slow & let_go & (held >= max(int(held.max()) - 1, 1))
        c.blocking[call[full]] = True
        c.awaited[call[full]] = last[full]


def _devices_used(trace: Trace, c: Calls) -> Callable[[int], int]:
    """For a call: the device of the op that its thread launched last before it, or NONE."""
    launched = np.full(len(c), NONE, np.int64)
    rows = np.flatnonzero(c.of_op >= 0)
    launched[c.of_op[rows]] = trace.ops.device[rows]
    known = np.flatnonzero(launched >= 0)

    def used(call: int) -> int:
        j = int(np.searchsorted(known, call)) - 1
        return int(launched[known[j]]) if j >= 0 and c.thread[known[j]] == c.thread[call] else NONE

    return used


def _sync_details(trace: Trace, c: Calls) -> dict[int, tuple[int, int, int]]:
    """For synchronising calls with a driver record: the device and stream waited for, and the instant before which the
    work was launched (an event's record call, else the call itself)."""
    wait: dict[int, tuple[int, int, int]] = {}
    y = trace.syncs
    if y is None or not len(y):
        return wait
    api = np.flatnonzero(trace.host.kind == HostKind.API)
    row = join(y.process, y.correlation, trace.host.process[api], trace.host.correlation[api])
    # A process may number the devices that it sees in its own way; its contexts tell which of them is meant.
    device_of: dict[tuple[int, int], int] = {}
    ops, context = trace.ops, trace.ops.context
    if context is not None and len(ops):
        # One op of each combination; of several devices in one context the highest number.
        combination = _codes(ops.process, context, ops.device)
        op = np.zeros(int(combination.max()) + 1, np.int64)
        op[combination] = np.arange(len(ops))
        columns = (ops.process[op].tolist(), context[op].tolist(), ops.device[op].tolist())
        device_of = {(p, c): d for p, c, d in zip(*columns, strict=True)}
    recorded: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    ev = trace.events
    if ev is not None and len(ev):
        at = join(ev.process, ev.correlation, trace.host.process[api], trace.host.correlation[api])
        for k in np.flatnonzero(at >= 0).tolist():
            when = int(trace.host.start[api[at[k]]])
            recorded.setdefault((int(ev.process[k]), int(ev.event[k])), []).append(
                (when, device_of.get((int(ev.process[k]), int(ev.context[k])), int(ev.device[k])), int(ev.stream[k]))
            )
        for records in recorded.values():
            records.sort()
    for k in np.flatnonzero(row >= 0).tolist():
        call = int(c.of_event[api[row[k]]])
        if call < 0:
            continue
        start = int(c.start[call])
        event = int(y.event[k])
        known = recorded.get((int(y.process[k]), event), []) if event != NONE else []
        earlier = [r for r in known if r[0] <= start]
        if earlier:
            when, device, stream = earlier[-1]
            wait[call] = (device, stream, when)
        elif event == NONE:
            device = device_of.get((int(y.process[k]), int(y.context[k])), int(y.device[k]))
            wait[call] = (device, int(y.stream[k]) if y.stream[k] > 0 else NONE, start)
    return wait


def _copies(trace: Trace, c: Calls) -> None:
    """A copy whose call returns only after it ended is blocking, unless it is asynchronous by name and pinned."""
    ops = trace.ops
    if ops.copy_kind is None:
        return
    rows = np.flatnonzero((ops.copy_kind >= 0) & (c.of_op >= 0))
    rows = rows[ops.copy_kind[rows] != CopyKind.DTOD]
    call = c.of_op[rows]
    inside = ops.end[rows] <= c.end[call] + CLOCK_TOLERANCE_NS
    asynchronous = named.where(trace.names, c.name[call], lambda n: "Async" in n)
    pinned = pageable = np.zeros(len(rows), bool)
    if ops.src_kind is not None and ops.dst_kind is not None:
        host_side = np.where(ops.copy_kind[rows] == CopyKind.HTOD, ops.src_kind[rows], ops.dst_kind[rows])
        pinned, pageable = host_side == MemKind.PINNED, host_side == MemKind.PAGEABLE
    short = ops.end[rows] - ops.start[rows] < CLOCK_TOLERANCE_NS
    # A short copy may end inside an asynchronous call by chance.
    blocking = inside & ~(asynchronous & (pinned | (short & ~pageable)))
    rows, call = rows[blocking], call[blocking]
    order = np.argsort(ops.end[rows], kind="stable")
    c.awaited[call[order]] = rows[order]
    c.blocking[call] = True


def _full_queue(trace: Trace, c: Calls) -> None:
    """A launch that waits in a full command buffer is let go by the device: the driver's own record says so."""
    host, ops = trace.host, trace.ops
    records = np.flatnonzero(host.kind == HostKind.OVERHEAD)
    full = records[named.where(trace.names, host.name[records], lambda n: "command buffer full" in n.lower())]
    if not len(full):
        return
    ends = np.sort(ops.end)
    by_end = np.argsort(ops.end, kind="stable")
    for row in full.tolist():
        t = int(host.thread[row])
        if t < 0:
            continue
        lo, hi = int(c.thread_bound[t]), int(c.thread_bound[t + 1])
        i = lo + int(np.searchsorted(c.start[lo:hi], host.end[row] - 1, side="right")) - 1
        if i < lo or c.end[i] < host.end[row] - CLOCK_TOLERANCE_NS or c.blocking[i]:
            continue
        j = int(np.searchsorted(ends, c.end[i], side="right")) - 1
        if j >= 0 and ends[j] > c.start[i]:
            c.blocking[i], c.awaited[i] = True, by_end[j]
