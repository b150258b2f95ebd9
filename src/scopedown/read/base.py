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
from functools import cached_property
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from zstandard import ZstdDecompressor, ZstdError

from scopedown.errors import InputError
from scopedown.terms import Scope, Status
from scopedown.trace.model import Ints, Mask, Small, Trace

try:
    from isal.igzip import open as gzip_open
except ImportError:  # no wheel for this platform: the standard library inflates as well, slower
    from gzip import open as gzip_open

HEAD = 65536

#: "Unknown" in the integer columns of a request log; an absent time is never zero.
UNKNOWN = int(np.iinfo(np.int64).min)

STATUSES: tuple[Status, ...] = tuple(Status)


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
