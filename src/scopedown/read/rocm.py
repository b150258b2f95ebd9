"""What ROCm's formats share: their databases, and what their names of copies, memsets and markers mean."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import Source
from scopedown.read.nsys_tables import MAGIC, Database
from scopedown.trace.model import NONE, CopyKind, HostKind, Ints, OpKind

#: rocprofiler-sdk, roctracer and rocprof stamp with the time since boot; no file says what UTC that was.
NO_UTC = "when it ran on another clock: times are since the machine's boot, the file has no wall clock time"


class RocmDatabase(Database):
    again: ClassVar[str] = "copy it again from where it was written, or capture again"


@lru_cache(maxsize=2)
def tables(source: Source) -> dict[str, frozenset[str]] | None:
    """Columns by table of an SQLite file; None for anything else and for a database that cannot be opened."""
    if not source.head.startswith(MAGIC):
        return None
    try:
        with source.file() as path, RocmDatabase(path, source.path) as db:
            return db.columns
    except InputError:
        return None


_WORDS = {
    "HOST_TO_DEVICE": CopyKind.HTOD,
    "HOSTTODEVICE": CopyKind.HTOD,
    "DEVICE_TO_HOST": CopyKind.DTOH,
    "DEVICETOHOST": CopyKind.DTOH,
    "DEVICE_TO_DEVICE": CopyKind.DTOD,
    "DEVICETODEVICE": CopyKind.DTOD,
    "HOST_TO_HOST": CopyKind.HTOH,
    "HOSTTOHOST": CopyKind.HTOH,
    "PEER": CopyKind.PTOP,
}


def copy_kind(name: str) -> CopyKind:
    """The direction in names such as ``MEMORY_COPY_HOST_TO_DEVICE``, ``CopyDeviceToHost``, ``CopyDeviceToDevice2D``."""
    text = name.upper()
    return next((kind for word, kind in _WORDS.items() if word in text), CopyKind.UNKNOWN)


#: hipMemcpyKind (hip_runtime_api.h)
HIP_COPY_KINDS = {0: CopyKind.HTOH, 1: CopyKind.HTOD, 2: CopyKind.DTOH, 3: CopyKind.DTOD}


def op_kind(name: str) -> OpKind:
    """What a device op of roctracer is, by its operation: ``CopyHostToDevice``, ``FillBuffer``, ``KernelExecution``."""
    if name.startswith(("Copy", "hcMemcpy")):
        return OpKind.COPY
    return OpKind.MEMSET if name.startswith(("Fill", "hcMemset")) else OpKind.KERNEL


def blocks(grid: Ints, block: Ints) -> Ints:
    """Grids in blocks from grids in work-items, as HSA dispatches state them; shapes (n, 3)."""
    return -(-grid // np.maximum(block, 1))


def in_order(stream: Ints, queue: Ints) -> Ints:
    """What orders device work: the HIP stream; the queue where the tool did not follow streams (all are number 0)."""
    if len(stream) and (stream <= 0).all() and len(np.unique(queue)) > 1:
        return queue
    return stream


def copy_device(kind: Ints, target: Ints, origin: Ints) -> tuple[Ints, Ints]:
    """(copy kind, device) from the devices at both ends, NONE for a host.

    ROCm names a copy between two devices like one within a device: the ends tell them apart. It counts for the one
    that it comes from.
    """
    peer = (target != NONE) & (origin != NONE) & (target != origin)
    kind = np.where(peer & (kind == CopyKind.DTOD), CopyKind.PTOP, kind)
    device = np.where((target != NONE) & ~peer, target, origin)
    return kind, np.maximum(device, 0)


_MARKER = re.compile(r"MARKER|ROCTX")
_LIBRARY = re.compile(r"RCCL|ROCDECODE|ROCJPEG|OMPT|ROCSHMEM")


def host_kind(category: str, name: str, instant: bool = False) -> HostKind:
    """The kind of a host row by rocprofiler-sdk's category (``HIP_RUNTIME_API_EXT``, ``MARKER_CORE_RANGE_API``)."""
    if _MARKER.search(category):
        if instant or "Mark" in name:
            return HostKind.MARK
        return HostKind.RANGE if "RangeStart" in name else HostKind.ANNOTATION
    return HostKind.OP if _LIBRARY.search(category) else HostKind.API
