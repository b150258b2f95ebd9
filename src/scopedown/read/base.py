"""What a reader is, and what it returns."""

from __future__ import annotations

import hashlib
import io
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from zstandard import ZstdDecompressor, ZstdError

from scopedown.errors import InputError
from scopedown.terms import Metric, Scope, Statistic, Status
from scopedown.trace.model import Ints, Mask, Small, Trace

try:
    from isal.igzip import open as gzip_open
except ImportError:  # no wheel for this platform: the standard library inflates as well, slower
    from gzip import open as gzip_open

HEAD = 65536

#: "Unknown" in the integer columns of a request log; an absent time is never zero.
UNKNOWN = int(np.iinfo(np.int64).min)

STATUSES: tuple[Status, ...] = tuple(Status)

#: NVML's utilisation covers 1/6 s to 1 s before the query, by product (nvmlUtilization_t in nvml.h).
NVML_SHORTEST_NS, NVML_LONGEST_NS = 10**9 // 6, 10**9

#: Input tokens a second of one request, queue and network included, that no device of today reaches even with a small
#: model: 1e6 tokens/s of a model with 1e9 parameters are 2e15 operations/s. Beyond it the prompt was cached, or a stamp
#: is wrong.
PREFILL_ROOF = 1_000_000


class Source:
    """A file as readers see it: its content without compression, its head for recognition, its hash as it lies."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def compression(self) -> str | None:
        """ "gz", "zst" or None: by the first bytes, never by the name."""
        with self.path.open("rb") as f:
            magic = f.read(4)
        return "gz" if magic[:2] == b"\x1f\x8b" else "zst" if magic == b"\x28\xb5\x2f\xfd" else None

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB of the content; less where a compressed file is damaged."""
        with self.open() as f:
            found = b""
            while len(found) < HEAD and (more := self._try(f, HEAD - len(found))):
                found += more
            return found

    @staticmethod
    def _try(f: IO[bytes], n: int) -> bytes:
        try:
            return f.read(n)
        except (EOFError, ValueError, zlib.error, OSError, ZstdError):
            return b""

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The content as a stream. Reading a damaged compressed file raises InputError only through ``read``."""
        if self.compression == "gz":
            with gzip_open(self.path, "rb") as packed:  # type: ignore[no-untyped-call]
                yield packed
        elif self.compression == "zst":
            with self.path.open("rb") as raw, ZstdDecompressor().stream_reader(raw, read_across_frames=True) as packed:
                yield io.BufferedReader(packed)
        else:
            with self.path.open("rb") as plain:
                yield plain

    def read(self) -> bytes:
        """All of the content. Raises InputError where a compressed file is damaged."""
        try:
            with self.open() as f:
                return f.read()
        except (EOFError, ValueError, zlib.error, ZstdError) as e:
            raise self.damaged(str(e)) from None

    @contextmanager
    def file(self) -> Iterator[Path]:
        """A path with the content, for readers that need a real file: the file itself, or a temporary copy."""
        if self.compression is None:
            yield self.path
            return
        with tempfile.NamedTemporaryFile(prefix="scopedown-", suffix=".bin") as copy:
            try:
                with self.open() as f:
                    shutil.copyfileobj(f, copy, 1 << 20)
            except (EOFError, ValueError, zlib.error, ZstdError) as e:
                raise self.damaged(str(e)) from None
            copy.flush()
            yield Path(copy.name)

    def damaged(self, what: str) -> InputError:
        return InputError(self.path, f"{self.compression} data", f"is damaged ({what})", "fetch or compress it again")

    @cached_property
    def sha256(self) -> str:
        with self.path.open("rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()


class Clock(StrEnum):
    """What the times of a request log count from."""

    EPOCH = "epoch"
    OWN = "own"
    """One axis for all requests with an unknown zero (a monotonic clock): no trace can be laid on it."""
    NONE = "none"
    """Only durations are known: each request begins at 0 of its own."""


@dataclass(frozen=True, slots=True)
class RequestLog:
    """One row a request, in the file's order. Times: int64 ns since the Unix epoch (other zeros: ``clock``); UNKNOWN
    where the log has none."""

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
    last_token: Ints | None = None
    """For logs that stamp the last token but not every chunk; None: the last chunk, else the end."""
    clock: Clock = Clock.EPOCH

    def __len__(self) -> int:
        return len(self.id)

    @property
    def too_fast(self) -> Mask:
        """Rows whose first token came faster than any device can prefill: they stay out of statistics of TTFT."""
        begin = np.where(self.sent != UNKNOWN, self.sent, self.arrival)
        known = (begin != UNKNOWN) & (self.first_token != UNKNOWN) & (self.input_tokens != UNKNOWN)
        ns = np.where(known, self.first_token - begin, 0)
        wrong: Mask = known & (ns >= 0) & (self.input_tokens * 10**9 > ns.astype(np.float64) * PREFILL_ROOF)
        return wrong


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics that a tool printed of requests it did not keep. Nothing can be recomputed, no request looked into."""

    values: dict[Metric, dict[Statistic, int]]
    """In ns, as the tool defines its percentiles (most interpolate); only metrics whose definition is ours."""
    completed: int | None = None
    failed: int | None = None
    duration_ns: int | None = None
    request_rate: float | None = None
    """Completed requests a second."""
    output_rate: float | None = None
    """Output tokens a second."""
    load: str | None = None
    """What was asked for: ``8 requests/s``, ``16 in flight``."""

    def value(self, metric: Metric, statistic: Statistic) -> int | None:
        return self.values.get(metric, {}).get(statistic)


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """A load to be sent, not the result of one: int64 ns since the first arrival, in order; lengths in tokens."""

    arrival: Ints
    input_tokens: Ints
    output_tokens: Ints


class Meaning(StrEnum):
    """What a monitor's utilisation is a share of, and of what."""

    KERNEL_RAN = "kernel-ran"
    """Share of the driver's own window in which at least one kernel ran (NVML: 1/6 s to 1 s by product)."""
    ENGINE_ACTIVE = "engine-active"
    """Share of the time in which the compute engine was active (DCGM_FI_PROF_GR_ENGINE_ACTIVE)."""
    GFX_BUSY = "gfx-busy"
    """Share of the time in which the graphics and compute pipe was busy, as AMD's firmware averages it."""


@dataclass(frozen=True, slots=True)
class MonitorLog:
    """Device monitor samples, sorted by (time, device). ``time`` is ns since the epoch read as UTC; a zone is unknown
    unless ``zone_known``. A sample at ``time`` describes the window ``[time - window_ns, time)``."""

    time: Ints
    """UNKNOWN in every row where the tool stamps no date: such samples have an order, no place."""
    device: Ints
    utilisation: npt.NDArray[np.float64] | None
    """Per cent, of what ``meaning`` says; NaN where the cell is N/A."""
    period_ns: int | None
    """Median distance of samples of one device; None with fewer than two samples, or looks at chosen instants."""
    zone_known: bool
    device_names: dict[int, str]
    columns: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    """Other numeric columns by nvidia-smi's names where it has one for them, without the unit."""
    meaning: Meaning = Meaning.KERNEL_RAN
    facts: dict[int, dict[str, str]] = field(default_factory=dict)
    """Of each device, what is no number: ``driver``, ``mig``, ``uuid``, ``bus``."""

    @property
    def placed(self) -> bool:
        """Whether the samples have a place in time."""
        return bool(len(self.time)) and int(self.time[0]) != UNKNOWN

    @property
    def window_ns(self) -> int | None:
        """What one sample describes: its period, of which NVML sees the last second at most."""
        if self.period_ns is None or self.meaning is not Meaning.KERNEL_RAN or self.period_ns < NVML_LONGEST_NS * 1.1:
            return self.period_ns
        return NVML_LONGEST_NS


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
    content: Trace | RequestLog | MonitorLog | Summary | OfferedLoad | None
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
