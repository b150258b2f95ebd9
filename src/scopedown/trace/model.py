"""The event model: one columnar trace, whatever tool wrote the file.

Columns are NumPy arrays of equal length. Times are int64 nanoseconds on the trace's own axis, half-open
``[start, end)``. Text is dictionary-coded: a ``name`` column holds indices into ``Trace.names``. Processes and
threads are indices into ``Trace.processes`` and ``Trace.threads``. What a file does not have is ``None``, not zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Small = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]

#: "None" in integer columns: no correlation, no thread, no name.
NONE = -1


class OpKind(IntEnum):
    """Device ops by what the device does; where ops overlap the lower number names the time."""

    KERNEL = 0
    COLLECTIVE = 1
    COPY = 2
    MEMSET = 3
    GRAPH = 4
    """A graph launch that was traced as a whole: its inside is not recorded."""


class CopyKind(IntEnum):
    """Values of CUPTI's memcpy kind (cupti_activity.h, CUpti_ActivityMemcpyKind)."""

    UNKNOWN = 0
    HTOD = 1
    DTOH = 2
    HTOA = 3
    ATOH = 4
    ATOA = 5
    ATOD = 6
    DTOA = 7
    DTOD = 8
    HTOH = 9
    PTOP = 10
    UVM_HTOD = 11
    UVM_DTOH = 12
    UVM_DTOD = 13


class MemKind(IntEnum):
    """Values of CUPTI's memory kind (CUpti_ActivityMemoryKind)."""

    PAGEABLE = 0
    PINNED = 1
    DEVICE = 2
    ARRAY = 3
    MANAGED = 4
    DEVICE_STATIC = 5
    MANAGED_STATIC = 6
    UNKNOWN = 7


class HostKind(IntEnum):
    API = 0
    """A runtime or driver call."""
    OP = 1
    """A framework operator."""
    PYTHON = 2
    OS = 3
    """An OS runtime call (lock, poll, sleep, read)."""
    ANNOTATION = 4
    """A range that nests on its thread (NVTX push/pop, record_function)."""
    RANGE = 5
    """A range that does not nest on a thread (NVTX start/end): it names time, it does not own it."""
    MARK = 6
    """An instant; start equals end."""
    OVERHEAD = 7
    """Time that the tool or the driver says it spent on its own business (module load, buffer flush)."""


class Columns:
    """Base of the column tables: length, row selection, and a check that the lengths agree."""

    __slots__ = ()

    def __post_init__(self) -> None:
        sizes = {len(v) for _, v in self.columns()}
        if len(sizes) > 1:
            raise ValueError(f"{type(self).__name__}: columns of different length {sorted(sizes)}")

    def columns(self) -> list[tuple[str, npt.NDArray[Any]]]:
        pairs = [(f.name, getattr(self, f.name)) for f in fields(self)]  # type: ignore[arg-type]
        return [(n, v) for n, v in pairs if v is not None]

    def __len__(self) -> int:
        return len(self.columns()[0][1])

    def take(self, rows: npt.NDArray[Any]) -> Self:
        """The rows (indices or mask) as a new table."""
        return replace(self, **{n: v[rows] for n, v in self.columns()})  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class DeviceOps(Columns):
    """Sorted by (start, end, device, stream, correlation)."""

    start: Ints
    end: Ints
    kind: Small
    name: Codes
    device: Codes
    stream: Ints
    process: Codes
    correlation: Ints
    """Joins to a host call of the same process; NONE where there is none."""
    context: Ints | None = None
    graph_node: Ints | None = None
    """NONE where the op is not a node of a graph launch."""
    bytes: Ints | None = None
    """NONE for kernels."""
    copy_kind: Small | None = None
    """CopyKind for copies, NONE for other ops."""
    src_kind: Small | None = None
    dst_kind: Small | None = None
    grid: Ints | None = None
    """Shape (n, 3); zeros for ops that are no kernels."""
    block: Ints | None = None
    registers: Ints | None = None
    shared_memory: Ints | None = None
    """Static and dynamic, bytes a block."""


@dataclass(frozen=True, slots=True)
class HostEvents(Columns):
    """Sorted by (start, -end)."""

    start: Ints
    end: Ints
    kind: Small
    name: Codes
    thread: Codes
    """NONE where the event belongs to a process as a whole."""
    process: Codes
    correlation: Ints


@dataclass(frozen=True, slots=True)
class SyncRecords(Columns):
    """What a synchronising call waited for, as the driver recorded it; joined to the call by (process, correlation).

    The numeric type of such records changed its meaning between versions and is deliberately absent.
    """

    start: Ints
    end: Ints
    process: Codes
    correlation: Ints
    device: Codes
    context: Ints
    stream: Ints
    """NONE: no stream (context or device wait)."""
    event: Ints
    """NONE: no event."""


@dataclass(frozen=True, slots=True)
class EventRecords(Columns):
    """cudaEventRecord: which stream an event was recorded on; joined to the call by (process, correlation)."""

    process: Codes
    correlation: Ints
    device: Codes
    context: Ints
    stream: Ints
    event: Ints


@dataclass(frozen=True, slots=True)
class Scheduling(Columns):
    """OS scheduling: a thread goes on (``runs`` true) or off a core at ``time``. Sorted by time."""

    time: Ints
    thread: Codes
    runs: Mask


@dataclass(frozen=True, slots=True)
class StackSamples(Columns):
    """Host samples: the innermost frame of a thread at an instant. Sorted by time."""

    time: Ints
    thread: Codes
    name: Codes
    """Innermost resolved symbol; NONE where it is unresolved."""


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class Thread:
    process: int
    """Index into ``Trace.processes``."""
    tid: int
    name: str


@dataclass(frozen=True, slots=True)
class Device:
    id: int
    name: str | None = None
    properties: dict[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Meta:
    tool: str
    version: str | None = None
    utc_start_ns: int | None = None
    """UTC at t = 0 of the trace's axis."""
    monotonic_start_ns: int | None = None
    """CLOCK_MONOTONIC at t = 0."""
    window: tuple[int, int] | None = None
    """The captured window where the file states it."""
    devices: tuple[Device, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    """Capture options that change what may be concluded (graph trace mode, skipped calls); never the environment."""
    dropped: int = 0
    """Diagnostics that say that events were lost."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    ops: DeviceOps
    host: HostEvents
    names: list[str]
    processes: tuple[Process, ...]
    threads: tuple[Thread, ...]
    meta: Meta
    syncs: SyncRecords | None = None
    events: EventRecords | None = None
    scheduling: Scheduling | None = None
    samples: StackSamples | None = None


def empty_ops() -> DeviceOps:
    z = np.empty(0, np.int64)
    c, s = z.astype(np.int32), z.astype(np.int8)
    return DeviceOps(z, z, s, c, c, z, c, z)


def empty_host() -> HostEvents:
    z = np.empty(0, np.int64)
    c, s = z.astype(np.int32), z.astype(np.int8)
    return HostEvents(z, z, s, c, c, c, z)


#: Characters of a name that are kept: no program has longer ones, and some patterns take the square of the length.
LONGEST_NAME = 4000


class Names:
    """Builds the string dictionary of a trace; names are cut at LONGEST_NAME, and differ where the whole texts do.

    >>> names = Names()
    >>> names.code("a"), names.code("b"), names.code("a"), names.values
    (0, 1, 0, ['a', 'b'])
    """

    def __init__(self) -> None:
        self.values: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = len(self.values)
            self.values.append(text[:LONGEST_NAME])
        return found
