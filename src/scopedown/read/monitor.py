"""What the readers of device monitors share: text cells under nvidia-smi's field names become a MonitorLog.

Each tool's file is laid out as a Table, one row a sample of one device; names, units and missing values are settled
here, once. Process names, ids, users, hosts and serial numbers are in none of the columns that are kept.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scopedown.errors import InputError
from scopedown.read.base import NVML_LONGEST_NS, NVML_SHORTEST_NS, UNKNOWN, Artifact, Meaning, MonitorLog, Source
from scopedown.terms import Scope
from scopedown.trace.model import Ints

_LEADING = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_BEYOND = 1e15
_MASK = re.compile(r"0x[0-9a-fA-F]{1,16}")

REASON, VIOLATION = "clocks_event_reasons.", "violation."
#: Bits of ``clocks_event_reasons.active`` (nvml.h, nvmlClocksEventReason*).
_REASON_BITS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
_ALIASES = {"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id"}
#: Columns of text that are kept, by the name of the fact.
_FACTS = {"driver_version": "driver", "mig.mode.current": "mig", "uuid": "uuid", "pci.bus_id": "bus"}
#: Never kept, though they are numbers: identity of the machine, or no measurement.
_DROPPED = frozenset({f"{REASON}supported", "index", "count", "serial", "pid", "accounting.buffer_size", "hostname"})
_DROPPED_GROUPS = ("pci.", "platform.", "fabric.", "inforom.", "uuid", "gpu_serial", "driver_version")

_CANNOT = {
    Meaning.KERNEL_RAN: "how busy a device was: a window counts as active if any kernel ran in it",
    Meaning.ENGINE_ACTIVE: "what the engine did while it was active, or how much of the device it used",
    Meaning.GFX_BUSY: "what ran while the pipe was busy, or how much of the device it used",
}
RECORD = (
    "record with nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,clocks.current.sm,power.draw "
    "--format=csv -lms 100"
)


@dataclass(slots=True)
class Table:
    """Samples as text, in any order."""

    time: Ints
    """ns since the epoch; UNKNOWN in all rows where nothing says when."""
    cells: dict[str, Sequence[str]]
    """Lower-case field name, without its unit, to one cell a row; ``index`` is the device."""
    zone_known: bool = True
    meaning: Meaning = Meaning.KERNEL_RAN
    regular: bool = True
    """False: looks at chosen instants, whose distance says nothing of what a sample covers."""
    period_ns: int | None = None
    """Where the stamps give no date but a distance."""
    shared: dict[str, str] = field(default_factory=dict)
    """Facts of all devices."""
    warnings: list[str] = field(default_factory=list)
    cannot: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def decode(data: bytes) -> str:
    """Text of a file, whatever wrote it: redirection in PowerShell makes UTF-16 with a byte order mark."""
    for mark, name in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return data[2:].decode(name, "replace")
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def csv_rows(source: Source, text: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each line that has any. Raises InputError for a quote that is never closed."""
    lines = csv.reader(text.splitlines(), skipinitialspace=True)
    try:
        for row in lines:
            if row:
                yield lines.line_num, row
    except csv.Error as error:
        raise InputError(source.path, f"line {lines.line_num}", f"is no CSV ({error})", "correct the line") from None


def rows_table(rows: Sequence[Mapping[str, str]], time: Sequence[int], **more: Any) -> Table:
    """A Table of rows that have different fields; a field that a row lacks is an empty cell."""
    names = dict.fromkeys(name for row in rows for name in row)
    return Table(np.array(time, np.int64), {n: [r.get(n, "") for r in rows] for n in names}, **more)


def artifact(source: Source, kind: str, producer: str, table: Table, version: str | None = None) -> Artifact:
    """The table as evidence. Raises InputError where it has no row."""
    if not len(table.time):
        raise InputError(source.path, "", "holds no sample of a device", RECORD)
    cells = {_canonical(name): values for name, values in table.cells.items()}
    warnings = list(table.warnings)
    time = table.time
    placed = bool((time != UNKNOWN).all())
    if not placed:
        time = np.full(len(time), UNKNOWN)
    elif not table.zone_known:
        warnings.append("times are local time without a zone: read as UTC")
    device, odd = _devices(cells, time, placed)
    warnings += odd
    order = np.lexsort((device, time)) if placed else np.arange(len(time))
    if placed and (np.diff(time) < 0).any():
        warnings.append("stamps go back: the clock was set, or several logs were joined; sorted by time")
    columns = _columns(cells, order)
    busy = columns.pop("utilization.gpu", None)
    if busy is None and "utilization.gpu" in cells:
        busy = np.full(len(time), np.nan)
    period = table.period_ns
    if placed and table.regular:
        period = _period(time[order], device[order])
    facts = _facts(cells, device, table.shared)
    names = {d: f.pop("name", "") for d, f in facts.items()}
    log = MonitorLog(time[order], device[order], busy, period, table.zone_known, names, columns, table.meaning, facts)
    can, cannot = _claims(log)
    return Artifact(
        path=source.path,
        sha256=source.sha256,
        kind=kind,
        scope=Scope.APPLICATION,
        producer=producer,
        version=version,
        interval_ns=(int(log.time[0]) - (log.window_ns or 0), int(log.time[-1])) if placed else None,
        utc_start_ns=0 if placed else None,
        counts={"samples": len(time), "devices": len(names), **table.counts},
        content=log,
        can_establish=can,
        cannot_establish=(*cannot, *table.cannot),
        warnings=tuple(warnings),
        extra={"device_facts": {d: {"name": names[d], **f} for d, f in facts.items()}},
    )


def number(text: str) -> float:
    """The number that a cell begins with, brackets aside: ``"33 %"``, ``"(300Mhz)"``; NaN where there is none."""
    match = _LEADING.match(text.strip().lstrip("("))
    return float(match[0]) if match else float("nan")


def missing(text: str) -> bool:
    """``N/A``, ``[Not Supported]``, ``-``, and the sentences that stand in cells of newer drivers."""
    bare = text.strip()
    return not bare or bare[0] in "[-" or bare.lower() in ("n/a", "none", "err!") or "deprecated" in bare


def _canonical(name: str) -> str:
    name = name.replace("clocks_throttle_reasons", REASON.rstrip("."))
    return _ALIASES.get(name, name)


def _columns(cells: Mapping[str, Sequence[str]], order: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float64]]:
    found: dict[str, npt.NDArray[np.float64]] = {}
    for name, texts in cells.items():
        if name in _DROPPED or name.startswith(_DROPPED_GROUPS):
            continue
        if name == f"{REASON}active":
            found |= {k: v[order] for k, v in _reasons(texts).items() if k not in cells}
            continue
        values = _flags(texts) if name.startswith((REASON, VIOLATION)) else _numbers(texts)
        # Infinity and the like are no measurement, and a sum with one is none.
        values[~(np.abs(values) < _BEYOND)] = np.nan
        if not np.isnan(values).all():
            found[name] = values[order]
    return found


def _reasons(texts: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
    """The mask as one column a reason, 1 where it holds."""
    masks = [int(t, 16) if _MASK.fullmatch(t.strip()) else -1 for t in texts]
    if all(m < 0 for m in masks):
        return {}
    return {
        REASON + name: np.array([np.nan if m < 0 else float(bool(m & bit)) for m in masks])
        for bit, name in _REASON_BITS.items()
    }


def _flags(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    words = {"active": 1.0, "not active": 0.0, "true": 1.0, "false": 0.0}
    return np.array([w if (w := words.get(t.strip().lower())) is not None else number(t) for t in texts], np.float64)


def _numbers(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """``"33 %"`` -> 33.0; NaN where a cell does not begin with a number that stands alone."""
    bare = [t.split(None, 1)[0] if t and not t.isspace() else "nan" for t in texts]
    try:
        return np.array(bare, np.float64)
    except ValueError:
        return np.array([_number(t) for t in bare], np.float64)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _devices(cells: Mapping[str, Sequence[str]], time: Ints, placed: bool) -> tuple[Ints, list[str]]:
    """Device of each row: its index, else the order in which uuids or bus ids occur, else 0."""
    index = cells.get("index")
    if index is not None and all(t.strip().isdecimal() and len(t.strip()) < 6 for t in index):
        return np.array([int(t) for t in index], np.int64), []
    texts = next((cells[k] for k in ("uuid", "pci.bus_id", "index") if k in cells), None)
    if texts is None:
        twice = placed and len(np.unique(time)) < len(time)
        warning = ["several rows share a stamp and no column names the device: query index too"] if twice else []
        return np.zeros(len(time), np.int64), warning
    order = {t: i for i, t in enumerate(dict.fromkeys(texts))}
    return np.array([order[t] for t in texts], np.int64), []


def _facts(cells: Mapping[str, Sequence[str]], device: Ints, shared: Mapping[str, str]) -> dict[int, dict[str, str]]:
    """Of each device the last cell that says something, and its name ("" where nothing does)."""
    found: dict[int, dict[str, str]] = {}
    for d in np.unique(device).tolist():
        rows = np.flatnonzero(device == d)[::-1].tolist()
        mine = {"name": "", **shared}
        for column, fact in (("name", "name"), *_FACTS.items()):
            texts = cells.get(column, ())
            said = next((texts[r].strip() for r in rows if not missing(texts[r])), None) if texts else None
            if said is not None:
                mine[fact] = said
        found[d] = mine
    return found


def _period(time: Ints, device: Ints) -> int | None:
    """Median distance of two samples of one device."""
    order = np.lexsort((time, device))
    steps = np.diff(time[order])[np.diff(device[order]) == 0]
    steps = steps[steps > 0]
    return int(np.median(steps)) if len(steps) else None


def _claims(log: MonitorLog) -> tuple[tuple[str, ...], tuple[str, ...]]:
    can, cannot = [], []
    busy, period, window = log.utilisation, log.period_ns, log.window_ns
    known = busy is not None and not np.isnan(busy).all()
    if known and period and window and log.placed:
        what = (
            "whether a device was active" if log.meaning is Meaning.KERNEL_RAN else "for how long a device was active"
        )
        can.append(f"{what}, in windows of {window / 1e6:.0f} ms")
    state = [w for w, m in (("clocks", "clock"), ("power", "power.draw")) if any(n.startswith(m) for n in log.columns)]
    if any(n.startswith((REASON, VIOLATION)) for n in log.columns):
        state.append("what limited the clocks")
    if state:
        can.append(f"{', '.join(state)} at each sample")
    if period is None:
        one = len(log.time) == len(log.device_names)
        cannot.append(
            "a rate or a share of time: "
            + ("one look at each device" if one else "looks at chosen instants, no period")
        )
    else:
        cannot.append("what happened inside one window")
    if not log.placed:
        cannot.append("when a sample was taken: none has a date")
    if busy is None:
        cannot.append("whether a device was active (no utilization.gpu column)")
    elif not known:
        cannot.append("whether a device was active: its utilisation is N/A in every sample (MIG, or not supported)")
    else:
        cannot.append(_CANNOT[log.meaning])
    if known and period and log.meaning is Meaning.KERNEL_RAN:
        if period < NVML_SHORTEST_NS:
            cannot.append(
                "what is shorter than the driver's own window (1/6 s to 1 s): it averages over that, not less"
            )
        elif window != period:
            unseen = (period - NVML_LONGEST_NS) / 1e6
            cannot.append(
                f"what the device did in the other {unseen:.0f} ms of each period: the driver sees 1 s at most"
            )
    return tuple(can), tuple(cannot)
