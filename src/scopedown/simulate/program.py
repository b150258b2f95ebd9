"""Programs: what host threads do, as data, and the scripts that write them.

A program is a list of instructions a host thread. Every duration stands in the instructions: all random draws are made
while a program is written, so running it again with one cause changed (``changed``, ``without``) is a fair rerun of the
same machine. Causes are named by tags; an instruction's tag names its own duration.

::

    program = Program(seed=1)
    engine = program.thread("EngineCore")
    with engine.range("step 0"):
        engine.host(1_800_000, tag="shape logic")
        engine.kernel("gemm", 400_000)
        engine.sync()
    engine.mark("token 0")
    run(program).path(...)

What the machine leaves out, on purpose: kernels do not slow each other down, copies do not share a link, and a thread
is never taken off its core unless the program says so. Two threads may not feed one stream (their order would depend
on durations, and a rerun would not be the same program).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from scopedown.trace.model import NONE, CopyKind, MemKind, OpKind


@dataclass(frozen=True, slots=True)
class Work:
    """One device op. ``gap`` is the device's own pause between the op it waits for and its start."""

    kind: OpKind
    name: str
    ns: int
    gap: int
    tag: str = ""
    owner: str = ""
    """Id of the request that the op serves; empty: nobody's in particular."""
    bytes: int = NONE
    copy: int = NONE
    source: int = NONE
    target: int = NONE
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    registers: int = 64
    shared: int = 0
    graph_node: int = NONE
    group: str = ""
    """Collectives: ops of one group start to move data when the last of them has started; ``ns`` is the transfer."""


@dataclass(frozen=True, slots=True)
class Host:
    """Host code; ``os_call`` names the OS call that it sits in (poll, sleep), if it does."""

    ns: int
    tag: str = ""
    os_call: str = ""


@dataclass(frozen=True, slots=True)
class Submit:
    """An API call that puts work on a stream. The op can start ``after_ns`` after the call's return (it may be
    negative: some ops start before their call returns)."""

    api: str
    work: tuple[Work, ...]
    call_ns: int
    after_ns: int
    device: int = 0
    stream: int = 7
    tag: str = ""
    """Names ``call_ns``."""
    hidden_ns: int = 0
    """Time inside the call, before the submission, that is no launch: module load, JIT, staging of a copy."""
    hidden_tag: str = ""
    overhead: str = ""
    """Name of the tool's overhead record over the hidden part; empty: nothing tells what the call did."""
    blocking: bool = False
    """The call returns ``return_ns`` after its op ended (pageable copies)."""
    return_ns: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """An API call that puts nothing on the device. ``drains`` (cudaFree): it returns after all earlier ops of its
    device have ended."""

    api: str
    ns: int
    tag: str = ""
    drains: bool = False
    device: int = 0
    return_ns: int = 0


@dataclass(frozen=True, slots=True)
class Sync:
    """A synchronising call: returns ``return_ns`` after the awaited op's end, ``ns`` after its own start at least.
    Exactly one of stream, event, or neither (the whole device)."""

    api: str
    ns: int
    return_ns: int
    device: int = 0
    stream: int | None = None
    event: str | None = None


@dataclass(frozen=True, slots=True)
class RecordEvent:
    event: str
    ns: int
    device: int = 0
    stream: int = 7


@dataclass(frozen=True, slots=True)
class StreamWait:
    """Ops put on the stream from now on start after the op before the event has ended."""

    event: str
    ns: int
    device: int = 0
    stream: int = 7


@dataclass(frozen=True, slots=True)
class Signal:
    name: str
    ns: int


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Waits for the next signal of that name: ``wake_ns`` after it, or ``ns`` where it was given before."""

    name: str
    ns: int
    wake_ns: int


@dataclass(frozen=True, slots=True)
class Push:
    """Opens an annotation; the push itself takes ``ns``, inside the range."""

    name: str
    ns: int = 0


@dataclass(frozen=True, slots=True)
class Pop:
    ns: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """An instant that the truth knows by name; ``traced``: the tool sees it too."""

    name: str
    traced: bool = False


Instruction = Host | Submit | Call | Sync | RecordEvent | StreamWait | Signal | WaitFor | Push | Pop | Mark


class Script:
    """Writes the instructions of one host thread; durations that are not given are drawn here."""

    def __init__(self, program: Program, name: str, process: int) -> None:
        self.program, self.name, self.process = program, name, process
        self.instructions: list[Instruction] = []
        self.owner = ""
        """Put on the ops that follow: the request they serve."""

    def add(self, instruction: Instruction) -> None:
        self.instructions.append(instruction)

    def _draw(self, low: int, high: int) -> int:
        return self.program.rng.randrange(low, high)

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        self.add(Push(name, self._draw(90, 240)))
        yield
        self.add(Pop(self._draw(60, 160)))

    def mark(self, name: str, *, traced: bool = False) -> None:
        self.add(Mark(name, traced))

    def host(self, ns: int, tag: str = "", spread: float = 0.0) -> None:
        self.add(Host(self.program.around(ns, spread), tag))

    def os_wait(self, ns: int, tag: str = "", call: str = "poll", spread: float = 0.0) -> None:
        self.add(Host(self.program.around(ns, spread), tag, call))

    def kernel(
        self,
        name: str,
        ns: int,
        tag: str = "",
        *,
        stream: int = 7,
        device: int = 0,
        spread: float = 0.0,
        blocks: int = 264,
        load_ns: int = 0,
        load_recorded: bool = True,
        load_tag: str = "module load",
    ) -> None:
        """A kernel launch; ``load_ns`` of the call go into loading its module."""
        work = self._work(OpKind.KERNEL, name, ns, tag, spread, grid=(blocks, 1, 1), registers=96)
        self._submit("cudaLaunchKernel", (work,), device, stream, load_ns, load_tag, "Module Loading" * load_recorded)

    def collective(
        self, group: str, ns: int, tag: str = "", *, stream: int = 7, device: int = 0, spread: float = 0.0
    ) -> None:
        """One rank's part of a collective: every op with this group name takes part."""
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        work = self._work(OpKind.COLLECTIVE, name, ns, tag, spread, group=group, grid=(16, 1, 1), registers=96)
        self._submit("cudaLaunchKernelExC", (work,), device, stream)

    def graph(
        self,
        kernels: list[tuple[str, int]],
        tag: str = "",
        *,
        whole: bool,
        stream: int = 7,
        device: int = 0,
        spread: float = 0.0,
    ) -> None:
        """A graph launch of a chain of kernels; ``whole``: the tool records the launch as one opaque op."""
        nodes = tuple(
            self._work(OpKind.KERNEL, name, ns, tag, spread, graph_node=1000 + i)
            for i, (name, ns) in enumerate(kernels)
        )
        if whole:
            ns = sum(n.ns for n in nodes) + sum(n.gap for n in nodes[1:])
            nodes = (self._work(OpKind.GRAPH, "", ns, tag, 0.0),)
        self._submit("cudaGraphLaunch", nodes, device, stream)

    def copy(
        self,
        kind: CopyKind,
        nbytes: int,
        ns: int,
        tag: str = "",
        *,
        pageable: bool = False,
        blocking: bool | None = None,
        stage_ns: int = 0,
        stream: int = 7,
        device: int = 0,
        spread: float = 0.0,
    ) -> None:
        """A copy; a pageable one blocks unless told otherwise. ``stage_ns``: the host's own part before the move."""
        host = MemKind.PAGEABLE if pageable else MemKind.PINNED
        source = MemKind.DEVICE if kind in (CopyKind.DTOH, CopyKind.DTOD, CopyKind.PTOP) else host
        target = host if kind == CopyKind.DTOH else MemKind.DEVICE
        work = self._work(OpKind.COPY, "", ns, tag, spread, bytes=nbytes, copy=kind, source=source, target=target)
        self.add(
            Submit(
                "cudaMemcpyAsync",
                (work,),
                self._draw(3500, 6500),
                self._draw(500, 3500),
                device,
                stream,
                hidden_ns=stage_ns,
                hidden_tag=tag,
                blocking=pageable if blocking is None else blocking,
                return_ns=self._draw(3000, 8000),
            )
        )

    def memset(self, nbytes: int, ns: int, tag: str = "", *, stream: int = 7, device: int = 0) -> None:
        work = self._work(OpKind.MEMSET, "", ns, tag, 0.0, bytes=nbytes, target=MemKind.DEVICE)
        self._submit("cudaMemsetAsync", (work,), device, stream)

    def sync(self, *, stream: int | None = 7, event: str | None = None, device: int = 0) -> None:
        """Waits for a stream, an event, or (stream None) the whole device."""
        api = (
            "cudaEventSynchronize" if event else "cudaDeviceSynchronize" if stream is None else "cudaStreamSynchronize"
        )
        # The return is no longer than the shortest call, so an op that ended before the call never decides its end.
        self.add(Sync(api, self._draw(3000, 6000), self._draw(1500, 3000), device, None if event else stream, event))

    def record(self, event: str, *, stream: int = 7, device: int = 0) -> None:
        self.add(RecordEvent(event, self._draw(1200, 2800), device, stream))

    def wait_event(self, event: str, *, stream: int, device: int = 0) -> None:
        self.add(StreamWait(event, self._draw(900, 2300), device, stream))

    def call(self, api: str, ns: int, tag: str = "") -> None:
        self.add(Call(api, ns, tag))

    def alloc(self, ns: int, tag: str = "", spread: float = 0.0) -> None:
        self.add(Call("cudaMalloc", self.program.around(ns, spread), tag))

    def free(self, ns: int, tag: str = "", spread: float = 0.0, device: int = 0) -> None:
        """cudaFree waits for the device, then works ``ns``."""
        ns = self.program.around(ns, spread)
        self.add(Call("cudaFree", ns, tag, drains=True, device=device, return_ns=ns))

    def signal(self, name: str) -> None:
        self.add(Signal(name, self._draw(700, 1600)))

    def wait_for(self, name: str) -> None:
        self.add(WaitFor(name, self._draw(300, 900), self._draw(18_000, 60_000)))

    def _work(self, kind: OpKind, name: str, ns: int, tag: str, spread: float, **more: object) -> Work:
        work = Work(kind, name, self.program.around(ns, spread), self._draw(700, 1500), tag, self.owner)
        return replace(work, **more)  # type: ignore[arg-type]

    def _submit(
        self,
        api: str,
        work: tuple[Work, ...],
        device: int,
        stream: int,
        hidden_ns: int = 0,
        hidden_tag: str = "",
        overhead: str = "",
    ) -> None:
        call, after = self._draw(3500, 6500), self._draw(-1000, 3500)
        self.add(Submit(api, work, call, after, device, stream, "", hidden_ns, hidden_tag * bool(hidden_ns), overhead))


@dataclass(slots=True)
class Program:
    seed: int
    start_ns: int = 50_000_000
    """When the threads start, on the trace's axis."""
    processes: list[tuple[int, str]] = field(default_factory=list)
    """(pid, name)."""
    threads: list[Script] = field(default_factory=list)
    devices: tuple[str, ...] = ("NVIDIA H100 80GB HBM3",)
    queue_depth: int = 1022
    """A launch call blocks while so many ops of its stream are under way (the command buffer is full)."""
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)  # noqa: S311 - a seeded simulation

    def process(self, name: str = "python3") -> int:
        self.processes.append((self.rng.randrange(2000, 30000) + 40_000 * len(self.processes), name))
        return len(self.processes) - 1

    def thread(self, name: str, process: int = 0) -> Script:
        if not self.processes:
            self.process()
        self.threads.append(Script(self, name, process))
        return self.threads[-1]

    def around(self, ns: int, spread: float) -> int:
        """A draw near ``ns``: within three times ``spread`` (a share)."""
        return ns if spread == 0 else int(ns * (1 + spread * max(-3.0, min(3.0, self.rng.gauss(0, 1)))))

    def tags(self) -> set[str]:
        found = {""}
        for script in self.threads:
            for i in script.instructions:
                found.add(getattr(i, "tag", ""))
                if isinstance(i, Submit):
                    found |= {i.hidden_tag, *(w.tag for w in i.work)}
        return found - {""}


Cause = str | Callable[[str], bool]


def changed(program: Program, cause: Cause, factor: float) -> Program:
    """The same program with every duration whose tag is ``cause`` (or satisfies it) times ``factor``, order kept."""
    matches = cause if callable(cause) else lambda tag: tag == cause

    def scaled(ns: int, tag: str) -> int:
        return int(ns * factor) if tag and matches(tag) else ns

    def edit(i: Instruction) -> Instruction:
        if isinstance(i, Host):
            return replace(i, ns=scaled(i.ns, i.tag))
        if isinstance(i, Call):
            return replace(i, ns=scaled(i.ns, i.tag), return_ns=scaled(i.return_ns, i.tag))
        if isinstance(i, Submit):
            work = tuple(replace(w, ns=scaled(w.ns, w.tag)) for w in i.work)
            hidden, call = scaled(i.hidden_ns, i.hidden_tag), scaled(i.call_ns, i.tag)
            return replace(i, work=work, hidden_ns=hidden, call_ns=call)
        return i

    other = Program(program.seed, program.start_ns, list(program.processes), [], program.devices, program.queue_depth)
    for script in program.threads:
        other.thread(script.name, script.process).instructions = [edit(i) for i in script.instructions]
    return other


def without(program: Program, cause: Cause) -> Program:
    """The same program with a cause gone: its durations are zero, its calls and their order stay."""
    return changed(program, cause, 0.0)
