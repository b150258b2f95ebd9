"""The machine: host threads, device streams and devices, run to exact integer nanoseconds.

The start of every event is the maximum of its constraints, and the machine writes down which constraint bound it: that
record, not an analysis of the finished timeline, is the truth about the critical path (``run.Run.path``).

What binds what:

- a host instruction starts where the one before it on its thread ended;
- an op starts at the latest of: its launch (call return plus latency), the op before it on its stream, the ops before
  the events that its stream waits for (each plus the op's gap);
- a synchronising or blocking call returns after the awaited op; a launch call waits for room in the command buffer;
- the transfer of a collective starts when its last op has started;
- a wait for another thread ends after that thread's signal.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from scopedown.simulate.program import (
    Call,
    Host,
    Mark,
    Pop,
    Program,
    Push,
    RecordEvent,
    Signal,
    StreamWait,
    Submit,
    Sync,
    WaitFor,
    Work,
)
from scopedown.terms import Category
from scopedown.trace.model import NONE, OpKind

ALLOCATING = frozenset({"cudaMalloc", "cudaFree", "cudaMallocAsync", "cudaFreeAsync", "cudaHostAlloc", "cudaFreeHost"})


@dataclass(slots=True, eq=False, repr=False)
class Piece:
    """A stretch of a host thread. Pieces of a thread follow each other without a hole."""

    start: int
    end: int
    category: Category
    label: str
    tag: str = ""
    after_op: Op | None = None
    """The op whose end is this piece's start and bound it."""
    after_piece: tuple[int, int] | None = None
    """(thread, index) of the piece of another thread whose end is this piece's start and bound it."""


@dataclass(slots=True, eq=False, repr=False)
class Op:
    work: Work
    device: int
    stream: int
    process: int
    correlation: int
    call: tuple[int, int]
    """(thread, index) of the piece that submitted it."""
    call_start: int
    """Start of the API call: earlier than the piece where the call hid something or waited for room."""
    ready: int
    """When the launch alone would have let it start."""
    after: list[Op]
    """Ops that have to end first: the one before on the stream, and those before awaited events."""
    start: int = NONE
    end: int = NONE
    bound_by: Op | None = None
    """None: the launch."""
    last_peer: Op | None = None
    """Of a collective: the op of the group that started last."""


@dataclass(slots=True)
class ApiCall:
    name: str
    start: int
    end: int
    thread: int
    correlation: int


@dataclass(slots=True)
class NamedSpan:
    """An annotation, an OS call, or an overhead record."""

    name: str
    start: int
    end: int
    thread: int
    correlation: int = NONE


@dataclass(slots=True)
class SyncRecord:
    api: str
    start: int
    end: int
    process: int
    correlation: int
    device: int
    stream: int
    event: int


@dataclass(slots=True)
class EventRecord:
    process: int
    correlation: int
    device: int
    stream: int
    event: int
    after: Op | None
    """The op whose completion completes the event."""


@dataclass(slots=True, repr=False)
class Recorded:
    """Everything that happened."""

    pieces: list[list[Piece]]
    ops: list[Op] = field(default_factory=list)
    calls: list[ApiCall] = field(default_factory=list)
    ranges: list[NamedSpan] = field(default_factory=list)
    os_calls: list[NamedSpan] = field(default_factory=list)
    overheads: list[NamedSpan] = field(default_factory=list)
    syncs: list[SyncRecord] = field(default_factory=list)
    events: list[EventRecord] = field(default_factory=list)
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)
    """name -> (time, thread)."""
    traced_marks: list[NamedSpan] = field(default_factory=list)


class Deadlock(RuntimeError):
    """No thread can go on: the program waits for something that never happens."""


class Machine:
    def __init__(self, program: Program) -> None:
        self.program = program
        n = len(program.threads)
        self.recorded = Recorded([[] for _ in range(n)])
        self.clock = [program.start_ns] * n
        self._next = [0] * n
        self._stack: list[list[tuple[str, int]]] = [[] for _ in range(n)]
        self._streams: dict[tuple[int, int, int], deque[Op]] = {}
        self._waits: dict[tuple[int, int, int], list[Op]] = {}
        self._events: dict[tuple[int, str], tuple[int, Op | None]] = {}
        self._groups: dict[str, list[Op]] = {}
        self._group_sizes: dict[str, int] = {}
        self._signals: dict[str, deque[tuple[int, int, int]]] = {}
        self._correlation = [100] * max(1, len(program.processes))
        self._unsettled: list[Op] = []
        for script in program.threads:
            for i in script.instructions:
                for work in i.work if isinstance(i, Submit) else ():
                    if work.group:
                        self._group_sizes[work.group] = self._group_sizes.get(work.group, 0) + 1

    def run(self) -> Recorded:
        """Steps the thread with the earliest clock among those that can go on."""
        waiting: set[int] = set()
        while True:
            live = [t for t, s in enumerate(self.program.threads) if self._next[t] < len(s.instructions)]
            if not live:
                break
            ready = [t for t in live if t not in waiting]
            if not ready:
                raise Deadlock(f"threads wait for each other: {[self.program.threads[t].name for t in live]}")
            thread = min(ready, key=lambda t: (self.clock[t], t))
            if self._step(thread):
                self._next[thread] += 1
                waiting.clear()
            else:
                waiting.add(thread)
        if self._unsettled:
            raise Deadlock("a collective misses a peer")
        for thread, stack in enumerate(self._stack):
            self.recorded.ranges += [NamedSpan(name, start, NONE, thread) for name, start in stack]
        return self.recorded

    def _step(self, t: int) -> bool:
        """Runs a thread's next instruction; False where it has to wait for another thread first."""
        i = self.program.threads[t].instructions[self._next[t]]
        match i:
            case Host():
                self._host(t, i)
            case Submit():
                return self._submit(t, i)
            case Call():
                return self._call(t, i)
            case Sync():
                return self._sync(t, i)
            case RecordEvent():
                self._record_event(t, i)
            case StreamWait():
                return self._stream_wait(t, i)
            case Signal():
                span = self._piece(t, i.ns, Category.HOST_OS_WAIT, "pthread_cond_signal")
                self.recorded.os_calls.append(NamedSpan("pthread_cond_signal", span.start, span.end, t))
                self._signals.setdefault(i.name, deque()).append((span.end, t, len(self.recorded.pieces[t]) - 1))
            case WaitFor():
                return self._wait_for(t, i)
            case Push():
                self._stack[t].append((i.name, self.clock[t]))
                self._host(t, Host(i.ns))
            case Pop():
                self._host(t, Host(i.ns))
                name, start = self._stack[t].pop()
                self.recorded.ranges.append(NamedSpan(name, start, self.clock[t], t))
            case Mark():
                self.recorded.marks[i.name] = (self.clock[t], t)
                if i.traced:
                    self.recorded.traced_marks.append(NamedSpan(i.name, self.clock[t], self.clock[t], t))
        return True

    def _piece(self, t: int, ns: int, category: Category, label: str, tag: str = "") -> Piece:
        piece = Piece(self.clock[t], self.clock[t] + ns, category, label, tag)
        self.recorded.pieces[t].append(piece)
        self.clock[t] = piece.end
        return piece

    def _host(self, t: int, i: Host) -> None:
        if i.os_call:
            span = self._piece(t, i.ns, Category.HOST_OS_WAIT, i.os_call, i.tag)
            self.recorded.os_calls.append(NamedSpan(i.os_call, span.start, span.end, t))
        elif self._stack[t]:
            self._piece(t, i.ns, Category.HOST_ANNOTATION, self._stack[t][-1][0], i.tag)
        else:
            self._piece(t, i.ns, Category.HOST_UNTRACED, self.program.threads[t].name, i.tag)

    def _api(self, t: int, name: str, start: int) -> int:
        """Records an API call that has just ended, and returns its correlation id."""
        process = self.program.threads[t].process
        # Ids are counted per process and skip the calls that a tool was told not to record.
        self._correlation[process] += 1 + (start % 3)
        correlation = self._correlation[process]
        self.recorded.calls.append(ApiCall(name, start, self.clock[t], t, correlation))
        return correlation

    def _submit(self, t: int, i: Submit) -> bool:
        process = self.program.threads[t].process
        key = (process, i.device, i.stream)
        stream = self._streams.setdefault(key, deque())
        blocker = stream[-self.program.queue_depth] if len(stream) >= self.program.queue_depth else None
        if blocker is not None and blocker.end == NONE:
            return False
        if i.blocking and any(op.end == NONE for op in (*list(stream)[-1:], *self._waits.get(key, []))):
            return False
        start = self.clock[t]
        if i.hidden_ns:
            is_copy = i.work[0].kind == OpKind.COPY
            known = Category.HOST_COPY if is_copy else Category.HOST_MODULE if i.overhead else Category.HOST_API
            hidden = self._piece(t, i.hidden_ns, known, i.api, i.hidden_tag)
            if i.overhead:
                span = NamedSpan(i.overhead, hidden.start, hidden.end, t, self._correlation[process] + 1 + start % 3)
                self.recorded.overheads.append(span)
        if blocker is not None and blocker.end > self.clock[t]:
            self._piece(t, blocker.end - self.clock[t], Category.HOST_API, f"{i.api}: command buffer full")
        head = self._piece(t, i.call_ns, Category.HOST_API, i.api, i.tag)
        if blocker is not None and blocker.end == head.start:
            head.after_op = blocker
        where = (t, len(self.recorded.pieces[t]) - 1)
        ready = head.end + max(i.after_ns, 0 if i.blocking else -i.call_ns // 2)
        ops: list[Op] = []
        waits = self._waits.pop(key, [])
        for n, work in enumerate(i.work):
            before = list(stream)[-1:] + (waits if n == 0 else [])
            op = Op(work, i.device, i.stream, process, NONE, where, start, ready, before)
            ops.append(op)
            stream.append(op)
            if len(stream) > self.program.queue_depth:
                stream.popleft()
            self.recorded.ops.append(op)
            if work.group:
                self._groups.setdefault(work.group, []).append(op)
            self._unsettled.append(op)
        self._settle()
        if i.blocking:
            self._piece(t, ops[-1].end - self.clock[t], Category.HOST_COPY, i.api)
            self._piece(t, i.return_ns, Category.HOST_COPY, i.api).after_op = ops[-1]
        correlation = self._api(t, i.api, start)
        for op in ops:
            op.correlation = correlation
        return True

    def _settle(self) -> None:
        """Gives every op a start and an end whose constraints are known, until none is left that could have one."""
        progress = True
        while progress and self._unsettled:
            progress = False
            for op in list(self._unsettled):
                if op.start == NONE:
                    if any(o.end == NONE for o in op.after):
                        continue
                    op.start = op.ready
                    for other in op.after:
                        if other.end + op.work.gap > op.start:
                            op.start, op.bound_by = other.end + op.work.gap, other
                    progress = True
                if op.work.group:
                    peers = self._groups[op.work.group]
                    if len(peers) < self._group_sizes[op.work.group] or any(p.start == NONE for p in peers):
                        continue
                    op.last_peer = max(peers, key=lambda p: p.start)
                    op.end = op.last_peer.start + op.work.ns
                else:
                    op.end = op.start + op.work.ns
                self._unsettled.remove(op)
                progress = True

    def _drained(self, process: int, device: int) -> list[Op]:
        lasts = (ops[-1] for (p, d, _), ops in self._streams.items() if (p, d) == (process, device) and ops)
        return list(lasts)

    def _call(self, t: int, i: Call) -> bool:
        awaited = self._drained(self.program.threads[t].process, i.device) if i.drains else []
        if any(op.end == NONE for op in awaited):
            return False
        category = Category.HOST_ALLOC if i.api in ALLOCATING else Category.HOST_API
        start = self.clock[t]
        self._piece(t, i.ns, category, i.api, i.tag)
        self._wait(t, start, awaited, i.return_ns, category, i.api, i.tag)
        self._api(t, i.api, start)
        return True

    def _wait(
        self, t: int, start: int, awaited: list[Op], return_ns: int, category: Category, label: str, tag: str = ""
    ) -> None:
        """Prolongs the call that has just been written as one piece from ``start``, where an awaited op ends late."""
        last = max(awaited, key=lambda op: op.end, default=None)
        if last is None or last.end <= start or last.end + return_ns <= self.clock[t]:
            return
        self.recorded.pieces[t].pop()
        self.clock[t] = start
        self._piece(t, last.end - start, category, label)
        piece = self._piece(t, return_ns, category, label, tag)
        piece.after_op = last

    def _sync(self, t: int, i: Sync) -> bool:
        process = self.program.threads[t].process
        event = NONE
        if i.event is not None:
            if (process, i.event) not in self._events:
                return False
            event, op = self._events[process, i.event]
            awaited = [] if op is None else [op]
        elif i.stream is not None:
            awaited = list(self._streams.get((process, i.device, i.stream), ()))[-1:]
        else:
            awaited = self._drained(process, i.device)
        if any(op.end == NONE for op in awaited):
            return False
        start = self.clock[t]
        self._piece(t, i.ns, Category.HOST_SYNC, i.api)
        self._wait(t, start, awaited, i.return_ns, Category.HOST_SYNC, i.api)
        correlation = self._api(t, i.api, start)
        stream = NONE if i.stream is None else i.stream
        end = self.clock[t]
        record = SyncRecord(i.api, start + i.ns // 3, end - 200, process, correlation, i.device, stream, event)
        self.recorded.syncs.append(record)
        return True

    def _record_event(self, t: int, i: RecordEvent) -> None:
        process = self.program.threads[t].process
        start = self.clock[t]
        self._piece(t, i.ns, Category.HOST_API, "cudaEventRecord")
        correlation = self._api(t, "cudaEventRecord", start)
        ops = self._streams.get((process, i.device, i.stream))
        after = ops[-1] if ops else None
        number = self._events.get((process, i.event), (len(self._events) + 1, None))[0]
        self._events[process, i.event] = (number, after)
        self.recorded.events.append(EventRecord(process, correlation, i.device, i.stream, number, after))

    def _stream_wait(self, t: int, i: StreamWait) -> bool:
        process = self.program.threads[t].process
        if (process, i.event) not in self._events:
            return False
        number, op = self._events[process, i.event]
        start = self.clock[t]
        self._piece(t, i.ns, Category.HOST_API, "cudaStreamWaitEvent")
        correlation = self._api(t, "cudaStreamWaitEvent", start)
        record = SyncRecord(
            "cudaStreamWaitEvent",
            start + i.ns // 3,
            start + i.ns - i.ns // 5,
            process,
            correlation,
            i.device,
            i.stream,
            number,
        )
        self.recorded.syncs.append(record)
        if op is not None:
            self._waits.setdefault((process, i.device, i.stream), []).append(op)
        return True

    def _wait_for(self, t: int, i: WaitFor) -> bool:
        given = self._signals.get(i.name)
        if not given:
            return False
        time, other, index = given.popleft()
        start = self.clock[t]
        if time <= start:
            self._piece(t, i.ns, Category.HOST_OS_WAIT, "pthread_cond_wait")
        else:
            self._piece(t, time - start, Category.HOST_OS_WAIT, "pthread_cond_wait")
            self._piece(t, i.wake_ns, Category.HOST_OS_WAIT, "pthread_cond_wait").after_piece = (other, index)
        self.recorded.os_calls.append(NamedSpan("pthread_cond_wait", start, self.clock[t], t))
        return True
