"""What if: the dependency graph of an interval, run forward with time taken out.

The model. A host thread runs from call to call; its own time between them is kept unless a scenario takes it out. An
op starts when its launch call was made (plus the recorded lag, where the call was what it waited for), the op before it
on its stream has ended, and the op that it was told to wait for has ended. A wait returns when it was entered and the
op that it waits for has ended. Lags of edges that did not bind are what this trace shows where they did, at most what
leaves the record as it is: with nothing taken out the replay gives the record, exactly.

Between two waits a thread only shifts, and along a stream the recurrence
``end[i] = max(ready[i], end[i-1] + lag[i]) + ns[i]`` is a running maximum after a cumulative sum. So all scenarios run
at once as rows of arrays, and Python steps only from wait to wait.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from scopedown.account import intervals
from scopedown.account.path import CROSS_SLACK_NS, NEVER, STREAM_SLACK_NS, Graph
from scopedown.trace.model import NONE, Ints, Mask

Floats = npt.NDArray[np.float64]

_DEFAULT_LAG_NS = 5_000
_DEFAULT_GAP_NS = 1_000
#: Before everything, with room for sums.
_FAR = np.iinfo(np.int64).min // 4
#: Times of calls and ops that are held at once (128 MB): the more of them, the fewer scenarios in one run.
_ENTRIES = 16_000_000


@dataclass(slots=True)
class Scenario:
    """What is taken out. ``keep`` is the factor for matched time: 0 removes it, 0.5 halves it."""

    keep: float = 0.0
    host: dict[int, tuple[Ints, Ints]] = field(default_factory=dict)
    """Per thread: disjoint sorted intervals of its own time. Waits inside them stay."""
    ops: Mask | None = None
    """Device ops whose duration is scaled."""
    launches: Mask | None = None
    """Device ops whose lags (launch latency, start behind another) are scaled."""
    calls: Mask | None = None
    """Calls that are not made: a wait among them no longer waits."""


class Replay:
    """One graph for an interval; ``run`` replays any number of scenarios."""

    def __init__(self, graph: Graph, lo: int, hi: int, thread: int, op: int) -> None:
        """``thread`` or ``op``: where the interval ends, as for the walk."""
        self.graph, self.lo, self.hi, self.end_thread, self.end_op = graph, lo, hi, thread, op
        ops, c = graph.trace.ops, graph.calls
        self.inside = (ops.start < hi) & (ops.end > lo)
        if op != NONE:
            self.inside[op] = True
        self.prev = self._previous()
        used = np.zeros(len(c), bool)
        used[c.of_op[self.inside & (c.of_op >= 0)]] = True
        used |= c.blocking
        used &= (c.start < hi) & ((c.end > lo) | (c.start >= lo))
        self.rows = np.flatnonzero(used)
        self.items = {t: self._of_thread(t) for t in range(len(graph.trace.threads))}
        self.begin = np.maximum(c.start, lo)
        self.leading = self._leading()
        self._bound_lags()
        self._order()

    def _leading(self) -> set[int]:
        """Threads whose results the end of the interval needs: its own, and those that hand over to one of them."""
        found, more = set[int](), {self.end_thread}
        while more:
            found |= more
            more = {h.giver for h in self.graph.handovers if h.thread in more} - found
        return found

    def _previous(self) -> Ints:
        """For each op the one before it on its stream. Where ops of a stream overlap, one that ended before the
        interval may lie between two that did not: the replay does not have it."""
        st = self.graph.streams
        rows = st.order[self.inside[st.order]]
        prev = st.previous.copy()
        same = st.key[rows[1:]] == st.key[rows[:-1]]
        prev[rows[1:][same]] = rows[:-1][same]
        return prev

    def _of_thread(self, thread: int) -> tuple[Ints, Ints, Mask]:
        """What a thread does in order: ``(start, call or ~hand-over, whether it waits)``."""
        c, rows = self.graph.calls, self.rows[self.graph.calls.thread[self.rows] == thread]
        given = [
            (h.start, ~k)
            for k, h in enumerate(self.graph.handovers)
            if h.thread == thread and h.start < self.hi and h.end > self.lo
        ]
        more = np.array(given, np.int64).reshape(-1, 2)
        start, code = np.append(c.start[rows], more[:, 0]), np.append(rows, more[:, 1])
        if given:
            order = np.lexsort((code, start))
            start, code = start[order], code[order]
        waits: Mask = (code < 0) | c.blocking[np.maximum(code, 0)] if len(c) else code < 0
        return start, code, waits

    def _bound_lags(self) -> None:
        """Lags of every edge: as recorded where the edge bound, else typical and no more than the record allows."""
        g, ops, c = self.graph, self.graph.trace.ops, self.graph.calls
        n = len(ops)
        call, prev = c.of_op, self.prev
        has_call, has_prev = call >= 0, prev >= 0
        called = np.where(has_call, c.start[call] if len(c) else 0, 0)
        returned = np.where(has_call, c.handed_over[call] if len(c) else NEVER, NEVER)
        prev_end = np.where(has_prev, ops.end[prev], NEVER)
        ended = np.where(has_call, c.end[call] if len(c) else 0, 0)
        has_call = has_call & (called < ops.start)
        # A blocking copy returns after its own end: it was queued if its stream was busy when the call was made.
        own_wait = has_call & (np.where(has_call, c.awaited[call] if len(c) else NONE, NONE) == np.arange(n))
        behind = has_prev & (
            (prev_end >= returned)
            | (ops.start - prev_end <= STREAM_SLACK_NS)
            | ~has_call
            | own_wait & (prev_end > called)
        )
        self.dep = np.full(n, NONE, np.int64)
        for o, d in g.waited_event.items():
            self.dep[o] = d
        rest = np.flatnonzero(self.inside & has_call & ~behind & (ops.start - ended > g.plausible_ns) & (self.dep < 0))
        for o in rest.tolist():
            other = g.ended_before(int(ops.start[o]), other_than=o)
            if other != NONE and ops.start[o] - ops.end[other] <= CROSS_SLACK_NS:
                self.dep[o] = other
        # An op without call or stream predecessor hangs on the last op that ended before it on its device.
        lost = np.flatnonzero(self.inside & ~has_call & ~has_prev & (self.dep < 0) & (ops.start > self.lo))
        for o in lost.tolist():
            self.dep[o] = g.ended_before(int(ops.start[o]), int(ops.device[o]), o)
        has_dep = self.dep >= 0
        dep_end = np.where(has_dep, ops.end[self.dep], 0)
        by_dep = has_dep & (dep_end >= prev_end) & (dep_end >= returned) & (dep_end <= ops.start + CROSS_SLACK_NS)
        by_call = has_call & ~behind & ~by_dep
        lag = ops.start - called
        typical = np.full(n, _DEFAULT_LAG_NS, np.int64)
        # A copy that is staged takes longer from call to start than a kernel: calls of one name among themselves.
        api = np.where(call >= 0, c.name[call] if len(c) else 0, NONE)
        shown = by_call & self.inside
        typical[:] = int(np.median(lag[shown])) if shown.any() else _DEFAULT_LAG_NS
        for name in np.unique(api[shown]).tolist():
            typical[api == name] = int(np.median(lag[shown & (api == name)]))
        self.call_lag = np.where(by_call, lag, np.minimum(lag, typical))
        self.has_call, self.has_prev = has_call, has_prev
        gap = ops.start - prev_end
        bound = behind & ~by_dep & self.inside & has_call
        usual = int(np.median(gap[bound])) if bound.any() else _DEFAULT_GAP_NS
        self.prev_lag = np.where(behind & ~by_dep, gap, np.minimum(gap, usual))
        self.dep_lag = np.where(
            by_dep | ~has_call & ~has_prev, ops.start - dep_end, np.minimum(ops.start - dep_end, usual)
        )
        awaited = np.where(c.blocking, c.awaited, 0)
        done = ops.end[awaited] if n else np.zeros(len(c), np.int64)
        waited = c.blocking & (done > c.start)
        # What a call costs beside its wait comes after it: returning, or releasing what the wait was for. A call that
        # had nothing to wait for shows the same cost as its whole length.
        cost = np.where(waited, c.end - done, c.end - c.start)
        self.own = np.clip(cost, 0, c.end - c.start)
        self.ret = cost

    def _order(self) -> None:
        """What every run needs to know of the ops: their streams in order, and what lets each one start."""
        g, ops, c = self.graph, self.graph.trace.ops, self.graph.calls
        n, st = len(ops), g.streams
        self.stream_rows: list[Ints] = []
        for k in range(len(st.bound) - 1):
            rows = st.order[st.bound[k] : st.bound[k + 1]]
            self.stream_rows.append(rows[self.inside[rows]])
        self.place = np.full(n, NONE, np.int64)
        special = self.dep >= 0
        special[list(g.peer)] = True
        self.stops: list[list[int]] = []
        """Places on each stream of the ops that wait for other streams."""
        for rows in self.stream_rows:
            self.place[rows] = np.arange(len(rows))
            self.stops.append(np.flatnonzero(special[rows]).tolist())
        self.ns = ops.end - np.maximum(ops.start, self.lo)
        call = c.of_op
        self.called = np.where(self.has_call, c.start[call] if len(c) else 0, 0)
        self.until = np.minimum(ops.start, np.where(self.has_call, c.end[call] if len(c) else 0, 0))
        """How long the launch call's own time counts: to the op's start or the call's end."""
        # Calls made before the interval are as recorded.
        self.late = self.has_call & (self.called >= self.lo)
        self.fixed = ~self.has_call & ~self.has_prev & (self.dep < 0)
        self.before = ops.start <= self.lo

    def run(self, scenarios: list[Scenario]) -> Ints:
        """The interval's length under each scenario, in ns."""
        rows = len(self.graph.calls) + len(self.graph.trace.ops)
        step = max(_ENTRIES // max(rows, 1), 1)
        parts = [_Run(self, scenarios[i : i + step]).length() for i in range(0, len(scenarios), step)]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Taken:
    """Time that a scenario takes out of a thread."""

    k: int
    """The scenario."""
    lost: float
    start: Ints
    """Of each interval; before all of them an empty one stands at the beginning of time."""
    end: Ints
    total: Ints
    """Taken out before an interval, less its start."""

    def upto(self, times: Ints) -> Ints:
        """From the beginning of time to each instant, in the record's own ns."""
        i = np.searchsorted(self.start, times, side="right") - 1
        return np.asarray(self.total[i] + np.minimum(times, self.end[i]), np.int64)

    def rounded(self, ns: Ints) -> Ints:
        return ns if self.lost == 1.0 else np.rint(ns * self.lost).astype(np.int64)


class _Run:
    """Times of all calls and ops under K scenarios; filled from wait to wait."""

    def __init__(self, replay: Replay, scenarios: list[Scenario]) -> None:
        self.r, self.scenarios = replay, scenarios
        g = replay.graph
        self.g, self.ops, self.c = g, g.trace.ops, g.calls
        k, n_calls = len(scenarios), len(self.c)
        self.k = k
        # A result that nobody waits for on the way is still there at the end.
        self.owed = np.full(k, replay.lo, np.int64)
        self.call_begin = np.zeros((k, n_calls), np.int64)
        self.op_end = np.tile(self.ops.end, (k, 1))
        # Starts are asked for where collectives wait for each other.
        self.op_begin = np.tile(self.ops.start, (k, 1)) if g.peer else None
        self.shorter = [(i, s.ops, s.keep) for i, s in enumerate(scenarios) if s.ops is not None]
        self.sooner = [(i, s.launches, s.keep) for i, s in enumerate(scenarios) if s.launches is not None]
        self.unmade = [(i, s.calls, s.keep) for i, s in enumerate(scenarios) if s.calls is not None]
        self.taken: dict[int, list[_Taken]] = {}
        for i, scenario in enumerate(scenarios):
            for thread, (s, e) in scenario.host.items():
                if not len(s):
                    continue
                start, end = np.append(NEVER, s), np.append(NEVER, e)
                total = np.append(0, np.cumsum(end - start)[:-1]) - start
                self.taken.setdefault(thread, []).append(_Taken(i, 1.0 - scenario.keep, start, end, total))
        # Each thread after each of its waits: the recorded instant, and that under each scenario.
        self.anchors: dict[int, tuple[list[int], list[Ints]]] = {}
        for t in range(len(g.trace.threads)):
            self.anchors[t] = [replay.lo], [np.full(k, replay.lo, np.int64)]
        self.next_item = dict.fromkeys(self.anchors, 0)
        self.next_op = [0] * max(0, len(g.streams.bound) - 1)
        self.waits = {t: np.flatnonzero(waits).tolist() for t, (_, _, waits) in replay.items.items()}

    def _cut(self, ns: Ints, rows: Ints | slice, cuts: list[tuple[int, Mask, float]]) -> Ints:
        """Durations or lags of ops under each scenario: shape (K, n), or (1, n) where all have the recorded ones. A lag
        below nothing (an op that overlaps the one before it) is no time that could go."""
        recorded = ns[rows]
        if not cuts:
            return recorded[None, :]
        out = np.tile(recorded, (self.k, 1))
        for k, mask, keep in cuts:
            kept = np.rint(np.maximum(recorded, 0) * keep).astype(np.int64) + np.minimum(recorded, 0)
            out[k] = np.where(mask[rows], kept, recorded)
        return out

    def length(self) -> Ints:
        r = self.r
        waits = r.rows[self.c.blocking[r.rows]]
        meets = [(int(self.c.end[w]), 0, int(w)) for w in waits.tolist()]
        meets += [(h.end, 2, k) for k, h in enumerate(self.g.handovers) if h.start < r.hi and h.end > r.lo]
        meets += [(int(self.ops.start[o]), 1, int(o)) for o in np.flatnonzero(r.inside & (r.dep >= 0)).tolist()]
        for _, is_op, row in sorted(meets):
            if is_op == 1:
                self._stream(int(self.g.streams.key[row]), int(self.r.place[row]))
            elif is_op == 2:
                self._thread(self.g.handovers[row].thread, self.g.handovers[row].start)
            else:
                self._thread(int(self.c.thread[row]), int(self.c.start[row]))
        if r.end_op != NONE:
            self._stream(int(self.g.streams.key[r.end_op]), int(self.r.place[r.end_op]))
            beyond = max(int(self.ops.end[r.end_op]) - r.hi, 0)
            return self.op_end[:, r.end_op] - beyond - r.lo
        self._thread(r.end_thread, None)
        return np.maximum(self._shifted(r.end_thread, np.array([r.hi]))[:, 0], self.owed) - r.lo

    def _shifted(self, thread: int, times: Ints) -> Ints:
        """Recorded instants on a thread after the last wait that ends before the first of them, under each scenario:
        shape (K, n)."""
        at, nows = self.anchors[thread]
        i = max(bisect_right(at, int(times[0])) - 1, 0)
        base, now = at[i], nows[i]
        out = now[:, None] + (times - base)
        for cut in self.taken.get(thread, ()):
            out[cut.k] -= cut.rounded(cut.upto(times) - cut.upto(np.array([base])))
        return out

    def _thread(self, thread: int, upto: int | None) -> None:
        """Advances a thread through all that it does from calls that start by ``upto`` (None: all)."""
        starts, rows, _ = self.r.items[thread]
        waits = self.waits[thread]
        while self.next_item[thread] < len(rows):
            i = self.next_item[thread]
            if upto is not None and starts[i] > upto:
                return
            j = bisect_left(waits, i)
            end = waits[j] if j < len(waits) else len(rows)
            if end > i:
                free = _dense(rows[i:end])
                self.call_begin[:, free] = self._shifted(thread, self.r.begin[free])
                self.next_item[thread] = end
            else:
                self.next_item[thread] = i + 1
                if rows[i] < 0:
                    self._handed(thread, int(~rows[i]))
                else:
                    self._wait(thread, int(rows[i]))

    def _anchor(self, thread: int, at: int, now: Ints) -> None:
        times, nows = self.anchors[thread]
        # A wait that ends inside another one (an OS call in it) must not put the thread back.
        if at >= times[-1]:
            times.append(at)
            nows.append(now)

    def _handed(self, thread: int, k: int) -> None:
        """A wait for another thread's signal."""
        h = self.g.handovers[k]
        arrived = self._shifted(thread, np.array([max(h.start, self.r.lo)]))[:, 0]
        # What the giver does from the signal on comes after it, be it at the same instant.
        self._thread(h.giver, h.signal - 1)
        if h.signal <= self.r.lo:
            given = np.full(self.k, h.signal, np.int64)
        else:
            given = self._shifted(h.giver, np.array([h.signal]))[:, 0]
        woken = h.end - h.signal if h.bound else min(h.end - h.signal, _DEFAULT_LAG_NS)
        # Entering and leaving a wait that was not needed takes its time; one that was needed took none of its own.
        own = 0 if h.bound else h.end - max(h.start, self.r.lo)
        self._anchor(thread, h.end, np.maximum(arrived + own, given + woken))

    def _wait(self, thread: int, call: int) -> None:
        begin = self._shifted(thread, self.r.begin[call : call + 1])[:, 0]
        self.call_begin[:, call] = begin
        op = int(self.c.awaited[call])
        if self.r.place[op] >= 0:
            self._stream(int(self.g.streams.key[op]), int(self.r.place[op]))
        own = np.full(self.k, int(self.r.own[call]) - (int(self.r.begin[call]) - int(self.c.start[call])), np.int64)
        own = np.maximum(own, 0)
        end, ret = int(self.c.end[call]), np.full(self.k, int(self.r.ret[call]), np.int64)
        # The call's own cost goes where the scenario takes its time out.
        cost = max(min(int(self.r.ret[call]), end - int(self.r.begin[call])), 1)
        edges = np.array([end - cost, end])
        for cut in self.taken.get(thread, ()):
            k, (first, last) = cut.k, cut.rounded(cut.upto(edges)).tolist()
            # Python's integers: the product of two long times is beyond int64.
            gone = last - first
            own[k] -= round(int(own[k]) * gone / cost)
            ret[k] -= round(max(int(ret[k]), 0) * gone / cost)
        leave = np.maximum(begin + own, self._ended(op, begin, thread) + ret)
        if call in self.c.awaited_too:
            leave = np.maximum(leave, self._others_ended(np.asarray(self.c.awaited_too[call]), begin, thread, ret, end))
        for k, unmade, keep in self.unmade:
            if unmade[call]:
                leave[k] = begin[k] + int(np.rint((leave[k] - begin[k]) * keep))
                if thread in self.r.leading and end <= self.r.hi:
                    ops = np.array([op, *self.c.awaited_too.get(call, ())])
                    self.owed[k] = max(self.owed[k], int(self.op_end[k, ops].max()))
        self._anchor(thread, end, leave)

    def _others_ended(self, others: Ints, begin: Ints, thread: int, ret: Ints, end: int) -> Ints:
        """When a wait for all streams, which returned at ``end``, is done with those beside the one that ended last. A
        wait may be for thousands of streams: they are looked at one by one only where they have to be."""
        place, stream = self.r.place[others], self.g.streams.key[others]
        for s, i in zip(stream[place >= 0].tolist(), place[place >= 0].tolist(), strict=True):
            if i >= self.next_op[s]:
                self._stream(s, i)
        call = self.c.of_op[others]
        late = (place >= 0) & (call >= 0) & (self.c.thread[call] != thread) & (self.c.start[call] >= self.r.lo)
        done = self.op_end[:, others].copy()
        for n in np.flatnonzero(late).tolist():
            done[:, n] = self._ended(int(others[n]), begin, thread)
        found: Ints = (done + np.minimum(ret[:, None], (end - self.ops.end[others])[None, :])).max(axis=1)
        return found

    def _ended(self, op: int, begin: Ints, thread: int) -> Ints:
        """The end of what a wait that begins at ``begin`` waits for on the op's stream: work that another thread
        launches only afterwards is not waited for."""
        ended = self.op_end[:, op].copy()
        call = int(self.c.of_op[op])
        if self.r.place[op] < 0 or call < 0 or self.c.thread[call] == thread or self.c.start[call] < self.r.lo:
            return ended
        for k in range(self.k):
            at = op
            while at != NONE and self.r.place[at] >= 0:
                call = int(self.c.of_op[at])
                late = call >= 0 and self.c.thread[call] != thread and self.c.start[call] >= self.r.lo
                if not late or self.call_begin[k, call] < begin[k]:
                    break
                at = int(self.r.prev[at])
            if at != op:
                ended[k] = self.op_end[k, at] if at != NONE else self.r.lo
        return ended

    def _stream(self, stream: int, upto: int) -> None:
        """Advances a stream to its op number ``upto``."""
        if upto < self.next_op[stream]:
            return
        rows, stops = self.r.stream_rows[stream], self.r.stops[stream]
        # The threads that launch come first: on their way they may need this very stream, and advance it.
        self._launched(rows[self.next_op[stream] : upto + 1])
        while self.next_op[stream] <= upto:
            i = self.next_op[stream]
            j = bisect_left(stops, i)
            end = min(stops[j], upto + 1) if j < len(stops) else upto + 1
            if end > i:
                self.next_op[stream] = end
                self._plain(rows[i:end])
            else:
                self.next_op[stream] = i + 1
                self._special(int(rows[i]))

    def _launched(self, rows: Ints) -> None:
        """Advances every thread through its launches of these ops."""
        call = self.c.of_op[rows[self.r.has_call[rows]]]
        if not len(call):
            return
        thread = self.c.thread[call]
        for t in [int(thread[0])] if (thread == thread[0]).all() else np.unique(thread).tolist():
            self._thread(t, int(self.c.start[call[thread == t]].max()))

    def _ready(self, rows: Ints) -> Ints:
        """When each op's launch call lets it start; an op without one is let go by its stream alone."""
        late = self.r.late[rows]
        if late.all():
            ready = self._called(rows)
        else:
            ready = np.full((self.k, len(rows)), _FAR, np.int64)
            early = self.r.has_call[rows] & ~late
            ready[:, early] = (self.r.called[rows] + self.r.call_lag[rows])[early]
            if late.any():
                ready[:, late] = self._called(rows[late])
            fixed = self.r.fixed[rows]
            ready[:, fixed] = self.ops.start[rows[fixed]]
        before = self.r.before[rows]
        if before.any():
            ready[:, before] = self.r.lo
        return ready

    def _called(self, rows: Ints) -> Ints:
        """The same for ops whose launch calls lie in the interval: what the call takes before the op goes with it."""
        call = self.c.of_op[rows]
        lag = self._cut(self.r.call_lag, rows, self.sooner)
        thread = self.c.thread[call]
        for t in [int(thread[0])] if (thread == thread[0]).all() else np.unique(thread).tolist():
            for cut in self.taken.get(t, ()):
                mine = thread == t
                before, after = cut.upto(self.r.called[rows[mine]]), cut.upto(self.r.until[rows[mine]])
                whole = cut.rounded(after) - cut.rounded(before)
                if len(lag) < self.k:
                    lag = np.tile(lag, (self.k, 1))
                lag[cut.k, mine] = np.maximum(lag[cut.k, mine] - whole, 0)
        return np.asarray(self.call_begin[:, _dense(call)] + lag, np.int64)

    def _plain(self, rows: Ints) -> None:
        prev, at_once = int(self.r.prev[rows[0]]), bool(self.r.before[rows[0]])
        dense = _dense(rows)
        ready = self._ready(rows)
        ns, lag = self._cut(self.r.ns, dense, self.shorter), self._cut(self.r.prev_lag, dense, self.sooner)
        total = np.cumsum(lag + ns, axis=1)
        best = np.maximum.accumulate(ready - (total - ns), axis=1)
        if prev != NONE and not at_once:
            best = np.maximum(best, self.op_end[:, prev, None])
        self.op_end[:, dense] = total + np.maximum(best, _FAR)
        if self.op_begin is not None:
            self.op_begin[:, dense] = self.op_end[:, dense] - ns

    def _special(self, op: int) -> None:
        """An op that waits for another stream's op, or a collective that waits for its last arrival."""
        rows = np.array([op])
        start = self._ready(rows)[:, 0]
        prev = int(self.r.prev[op])
        if prev != NONE:
            start = np.maximum(start, self.op_end[:, prev] + self._cut(self.r.prev_lag, rows, self.sooner)[:, 0])
        dep = int(self.r.dep[op])
        if dep != NONE:
            if self.r.place[dep] >= 0:
                self._stream(int(self.g.streams.key[dep]), int(self.r.place[dep]))
            start = np.maximum(start, self.op_end[:, dep] + self._cut(self.r.dep_lag, rows, self.sooner)[:, 0])
        if self.r.before[op]:
            start = np.full(self.k, self.r.lo, np.int64)
        ns = self._cut(self.r.ns, rows, self.shorter)[:, 0]
        if self.op_begin is not None:
            self.op_begin[:, op] = start
            peer = self.g.peer.get(op, NONE)
            if peer != NONE and self.r.place[peer] >= 0:
                self._stream(int(self.g.streams.key[peer]), int(self.r.place[peer]))
                arrival = int(self.ops.start[peer])
                waited = max(arrival - max(int(self.ops.start[op]), self.r.lo), 0)
                start = np.maximum(start, self.op_begin[:, peer])
                ns = np.maximum(ns - waited, 0)
        self.op_end[:, op] = start + ns


def _dense(rows: Ints) -> Ints | slice:
    """Rows that follow one another as a slice."""
    first, last = int(rows[0]), int(rows[-1])
    follow = last - first == len(rows) - 1 and bool((rows[1:] > rows[:-1]).all())
    return slice(first, last + 1) if follow else rows


def without_waits(graph: Graph, thread: int, start: Ints, end: Ints, own: Mask | None = None) -> tuple[Ints, Ints]:
    """Sorted disjoint intervals of a thread less its waits: waiting is not the thread's own time. Calls of the mask
    ``own`` stay: the cost that they have beside waiting is meant."""
    c = graph.calls
    lo, hi = int(c.thread_bound[thread]), int(c.thread_bound[thread + 1])
    waits = c.blocking[lo:hi] if own is None else c.blocking[lo:hi] & ~own[lo:hi]
    rows = lo + np.flatnonzero(waits)
    s, e, _ = intervals.subtract(start, end, c.start[rows], c.end[rows])
    return s, e
