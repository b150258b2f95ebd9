"""What a Nsight Systems export says of itself: versions, clocks, window, options, devices, diagnostics.

An export also holds the target's environment, command lines, host and user names, even the machine's other processes.
Of all this only what ``_OPTIONS`` names is read.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from scopedown.read.limits import LAST_DEVICE, is_time
from scopedown.read.nsys_tables import Database
from scopedown.trace.model import Device

_OPTIONS = frozenset(
    {
        "CAPTURE_EVENT_TYPE",
        "COLLECT_UVM_CPU_PAGE_FAULTS",
        "COLLECT_UVM_GPU_PAGE_FAULTS",
        "CUDA_FLUSH_ON_CUDA_PROFILER_STOP",
        "CUDA_GRAPH_TRACE_OPTIONS:MODE",
        "CUDA_SKIP_SOME_API_CALLS",
        "CUDA_TRACE_SCOPE",
        "LINUX_PERF_OPTIONS:COLLECT_IP_BACKTRACE_SAMPLES",
        "OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS",
        "PYTHON_BACKTRACE_SAMPLING_OPTIONS:COLLECT_SAMPLES",
        "RUN_DURATION_MS",
        "START_DELAY_MS",
        "START_TRIGGER",
        "STOP_TRIGGER",
    }
)
GRAPH_MODE, SKIPPED_CALLS = "CUDA_GRAPH_TRACE_OPTIONS:MODE", "CUDA_SKIP_SOME_API_CALLS"
_PLAIN = re.compile(r"[\w.+-]{1,40}")
_PROCESS_PREFIX = re.compile(r"^PROCESS_\d+:")
_CUT = re.compile(r"(-?\d{1,18})-(-?\d{1,18})")
_LOST = re.compile(
    r"\b(?:lost|dropp|discard|overflow|missed)|not all .* (?:might|may) have been collected", re.IGNORECASE
)
_HOME = re.compile(r"(?:/home|/Users|/root)\b(?:/[^/\s]+)?")


@dataclass(frozen=True, slots=True)
class Session:
    version: str | None
    schema: str | None
    utc_start_ns: int | None
    monotonic_start_ns: int | None
    axis_shift_ns: int
    """What the export added to every time (``--ts-shift``, ``--ts-normalize``)."""
    windows: tuple[tuple[int, int], ...]
    """What may be the captured window on the events' axis, likeliest first."""
    cut: tuple[int, int] | None
    """The part that was kept, where the file was cut after the capture."""
    options: dict[str, str]
    dropped: int
    warnings: tuple[str, ...]


def read_session(db: Database) -> Session:
    export = {str(k): str(v) for t in ("EXPORT_META_DATA", "META_DATA_EXPORT") for k, v in db.rows(t, "name", "value")}
    warnings: list[str] = []
    started = db.rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "systemClockNs")
    utc, monotonic = (_integer(v) for v in started[0]) if started else (None, None)
    normalized = export.get("EXPORT_PARAM_TIME_NORMALIZE", "false").lower() not in ("false", "0", "")
    shift = _integer(export.get("EXPORT_PARAM_TIME_SHIFT")) or _integer(export.get("EXPORT_CONFIG_TIME_SHIFT")) or 0
    if normalized:
        warnings.append("times were normalised to UTC by the export: the axis is the Unix epoch")
        shift += utc or 0
    elif shift:
        warnings.append(f"times were shifted by {shift} ns by the export: taken into account where clocks are compared")
    windows: list[tuple[int, int]] = []
    for duration, start, stop in db.rows("ANALYSIS_DETAILS", "duration", "startTime", "stopTime")[:1]:
        if is_time(duration) and duration > 0:
            windows.append((shift, shift + duration))
        if is_time(start) and is_time(stop) and start < stop:
            windows.append((start, stop))
    cut = None
    if found := _CUT.fullmatch(export.get("DERIVED_WINDOW_NS", "")):
        cut = int(found[1]), int(found[2])
        warnings.append("the file was cut after the capture: ops launched before the cut have no call in it")
    elif export.get("EXPORT_PARAM_TIMES_TO_EXPORT"):
        windows = []
        warnings.append("the export holds a part of the capture: ops launched before it have no call in it")
    if tables := export.get("EXPORT_PARAM_TABLES_TO_EXPORT"):
        warnings.append(f"the export was limited to some tables ({len(tables.split(','))} named)")
    diagnostics, dropped = _diagnostics(db)
    return Session(
        version=export.get("EXPORT_PRODUCT_VERSION"),
        schema=export.get("EXPORT_SCHEMA_VERSION"),
        utc_start_ns=None if utc is None else utc - shift,
        monotonic_start_ns=None if monotonic is None else monotonic - shift,
        axis_shift_ns=shift,
        windows=tuple(windows),
        cut=cut,
        options=_options(db),
        dropped=dropped,
        warnings=(*warnings, *diagnostics),
    )


def _options(db: Database) -> dict[str, str]:
    """Capture options by name. Until 2025 they stand under each process, later also without: the latter wins."""
    whole: dict[str, list[str]] = {}
    of_process: dict[str, list[str]] = {}
    for name, value in db.rows("META_DATA_CAPTURE", "name", "value"):
        key = _PROCESS_PREFIX.sub("", str(name))
        if key in _OPTIONS and _PLAIN.fullmatch(str(value)):
            (whole if key == name else of_process).setdefault(key, []).append(str(value))
    return {k: ",".join(sorted(set(v))) for k, v in sorted((of_process | whole).items())}


def _diagnostics(db: Database) -> tuple[list[str], int]:
    """Warnings and errors of the tool (severity 2 and 3), each once with its count; and how many tell of a loss."""
    seen: Counter[str] = Counter()
    for severity, text in db.rows("DIAGNOSTIC_EVENT", "severity", "text"):
        if severity in (2, 3) and (lines := str(text or "").strip().splitlines()):
            seen[_HOME.sub("~", lines[0])[:200]] += 1
    said = [f"{db.path.name}: nsys says{f' ({n} times)' if n > 1 else ''}: {text}" for text, n in seen.most_common()]
    return said, sum(n for text, n in seen.items() if _LOST.search(text))


def read_devices(db: Database) -> dict[int, Device]:
    """Devices by id. Absent properties are left out; software adapters of virtual machines (all zero) too."""
    devices: dict[int, Device] = {}
    columns = ("id", "deviceId", "name", "smCount", "clockRate", "memoryBandwidth", "totalMemory", "l2CacheSize")
    for row in db.rows("TARGET_INFO_GPU", *columns, "computeMajor", "computeMinor"):
        number = row[0] if row[0] is not None else row[1]
        # Cut files keep id and name only; an adapter that is no GPU has the columns, with zeros in them.
        if _is_device(number) and (any(row[3:7]) or not db.has("TARGET_INFO_GPU", "smCount")):
            devices[number] = _device(number, row[2], *row[3:])
    # Exports of 2020: kHz and MiB, and a bandwidth of unknown unit.
    oldest = ("deviceId", "name", "numMultiprocessors", "coreClockRate", "globalMemorySize", "l2CacheSize")
    for number, name, sms, khz, mib, l2, major, minor in db.rows(
        "TARGET_INFO_CUDA_GPU", *oldest, "computeCapabilityMajor", "computeCapabilityMinor"
    ):
        if _is_device(number) and number not in devices:
            clock, memory = (_integer(khz) or 0) * 1000, (_integer(mib) or 0) * 2**20
            devices[number] = _device(number, name, sms, clock, 0, memory, l2, major, minor)
    return devices


def _is_device(number: Any) -> bool:
    return isinstance(number, int) and 0 <= number <= LAST_DEVICE


def _device(
    number: int, name: Any, sms: Any, clock: Any, bandwidth: Any, memory: Any, l2: Any, major: Any, minor: Any
) -> Device:
    found = {
        "sm_count": sms,
        "clock_hz": clock,
        "memory_bandwidth_bytes_per_s": bandwidth,
        "memory_bytes": memory,
        "l2_bytes": l2,
    }
    properties: dict[str, int | str] = {k: v for k, v in found.items() if isinstance(v, int) and v > 0}
    if major:
        properties["compute_capability"] = f"{major}.{minor or 0}"
    return Device(number, str(name) if name else None, properties)


def read_ordinals(db: Database) -> dict[tuple[int, int], int]:
    """(process id, CUDA ordinal) -> device id: processes number the devices that they were shown (since 2025.1)."""
    return {
        (pid, ordinal): gpu
        for gpu, ordinal, pid in db.rows("TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", "pid")
        if _is_device(gpu) and isinstance(ordinal, int) and isinstance(pid, int)
    }


def _integer(value: Any) -> int | None:
    try:
        number = None if value is None else int(value)
    except (ValueError, OverflowError):
        return None
    return number if is_time(number) else None
