"""What a reader is, and what it returns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from scopedown.terms import Scope, Status
from scopedown.trace.model import Ints, Mask, Small, Trace

#: "Unknown" in the integer columns of a request log; an absent time is never zero.
UNKNOWN = int(np.iinfo(np.int64).min)

STATUSES: tuple[Status, ...] = tuple(Status)


class Source:
    """A file as readers see it: its head for recognition, its hash, its path for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB."""
        with self.path.open("rb") as f:
            return f.read(65536)

    @cached_property
    def sha256(self) -> str:
        with self.path.open("rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class RequestLog:
    """One row a request, in the file's order. Times: int64 ns since the Unix epoch; UNKNOWN where the log has none."""

    id: list[str]
    arrival: Ints
    sent: Ints
    first_token: Ints
    end: Ints
    queued: Ints
    scheduled: Ints
    input_tokens: Ints
    output_tokens: Ints
    status: Small
    """Index into STATUSES."""
    error: list[str | None]
    warmup: Mask
    token_offsets: Ints
    """Row i owns ``token_times[token_offsets[i]:token_offsets[i + 1]]``: receive times of its chunks."""
    token_times: Ints
    chunk_tokens: Ints | None = None
    """Tokens in each chunk, beside token_times; None where the log does not say."""

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, slots=True)
class MonitorLog:
    """Device monitor samples, sorted by (time, device). ``time`` is ns since the epoch read as UTC; a zone is unknown
    unless ``zone_known``. A sample at ``time`` describes the window ``[time - period, time)``."""

    time: Ints
    device: Ints
    utilisation: npt.NDArray[np.float64] | None
    """Per cent of the window in which at least one kernel ran; NaN where the cell is N/A."""
    period_ns: int | None
    """Median distance of samples of one device; None with fewer than two samples."""
    zone_known: bool
    device_names: dict[int, str]
    columns: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    """Other numeric columns by their name in the file, without the unit."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that was read: evidence at one scope."""

    path: Path
    sha256: str
    kind: str
    scope: Scope
    producer: str
    version: str | None
    interval_ns: tuple[int, int] | None
    """Covered interval on the artifact's own axis (a trace's t = 0, or the epoch)."""
    utc_start_ns: int | None
    """UTC at the axis' zero: 0 for logs in epoch time."""
    counts: dict[str, int]
    content: Trace | RequestLog | MonitorLog | None
    can_establish: tuple[str, ...] = ()
    cannot_establish: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


class Reader(Protocol):
    """One file format. ``kind`` is its name in ``inspect`` and in ``[[evidence]]``."""

    kind: ClassVar[str]
    scope: ClassVar[Scope]
    about: ClassVar[str]
    """One line for the table of formats."""

    def sniff(self, source: Source) -> bool:
        """Whether the content is of this format: from the head, never from the name."""
        ...

    def read(self, source: Source) -> Artifact:
        """Raises InputError where the file breaks its format."""
        ...
