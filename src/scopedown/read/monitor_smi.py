"""Device monitor logs: ``nvidia-smi --query-gpu=timestamp,... --format=csv -lms N``.

The stamp is local time without a zone (``2026/06/10 09:00:00.020``); units stand in the header, in the cells, or in
neither (``nounits``). A cell without a value is ``N/A``, ``[N/A]`` or ``[Not Supported]``.
"""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import ClassVar
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from scopedown.errors import InputError, UsageError
from scopedown.read.base import Artifact, MonitorLog, Source
from scopedown.terms import Scope
from scopedown.trace.model import Ints

# Names of other tools' CSV have no dots.
_FIELD = re.compile(r"(utilization|memory|power|clocks|temperature|fan|pci|enforced|ecc|encoder)\.[a-z_.]+")
# A year that fits nanoseconds in 64 bits.
_STAMP = re.compile(r"(19[7-9]|20\d|21\d)\d[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,9})?")
_OFFSET = re.compile(r"(?:UTC)?([+-])(\d\d):?(\d\d)")
_HEADER_UNIT = re.compile(r"\s*\[[^\]]*\]$")
_NS = 10**9


class NvidiaSmiCsv:
    kind: ClassVar[str] = "nvidia-smi-csv"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "nvidia-smi --query-gpu log as CSV with its header"

    def __init__(self, tz: str | None = None) -> None:
        self.zone = None if tz is None else parse_zone(tz)

    def sniff(self, source: Source) -> bool:
        head = source.head.decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
        first = head.split("\n", 1)[0]
        names = [_field(c) for c in first.split(",")]
        return len(names) > 1 and ("timestamp" in names or len(names) > 2) and any(map(_FIELD.fullmatch, names))

    def read(self, source: Source) -> Artifact:
        header, rows, warnings = _rows(source)
        cells = dict(zip(header, zip(*rows, strict=True), strict=True))
        try:
            time, local = _times(cells.pop("timestamp"), self.zone)
        except ValueError as error:
            raise InputError(source.path, "timestamp", f"a stamp is no date ({error})", "correct the line") from None
        if local:
            warnings.append("times are local time without a zone: read as UTC")
        device, names, odd = _devices(cells, time)
        order = np.lexsort((device, time))
        if (np.diff(time) < 0).any():
            warnings.append("stamps go back: the clock was set, or several logs were joined; sorted by time")
        columns = {}
        for name, texts in cells.items():
            values = _numbers(texts)
            if name not in ("index", "count") and not np.isnan(values).all():
                columns[name] = values[order]
        period = _period(time[order], device[order])
        busy = columns.pop("utilization.gpu", None)
        if busy is None and "utilization.gpu" in cells:
            busy = np.full(len(time), np.nan)
        log = MonitorLog(time[order], device[order], busy, period, not local, names, columns)
        can = [f"whether a device was active, in windows of {period / 1e6:.0f} ms" if period else ""]
        return Artifact(
            path=source.path,
            sha256=source.sha256,
            kind=self.kind,
            scope=self.scope,
            producer="nvidia-smi",
            version=None,
            interval_ns=(int(log.time[0]) - (period or 0), int(log.time[-1])),
            utc_start_ns=0,
            counts={"samples": len(time), "devices": len(names)},
            content=log,
            can_establish=tuple(can) if period and busy is not None else (),
            cannot_establish=(
                "what happened inside one window",
                "how busy a device was: a window counts as active if any kernel ran in it",
                *(() if busy is not None else ("whether a device was active (no utilization.gpu column)",)),
            ),
            warnings=(*warnings, *odd),
        )


def parse_zone(text: str) -> tzinfo:
    """``"+02:00"``, ``"UTC"`` or an IANA name. Raises UsageError."""
    if text.upper() in ("UTC", "Z"):
        return UTC
    match = _OFFSET.fullmatch(text)
    if match is not None:
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=minutes if match[1] == "+" else -minutes))
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise UsageError(f'{text!r} is no time zone: write "+02:00" or a name such as "Europe/Berlin"') from None


def _rows(source: Source) -> tuple[list[str], list[list[str]], list[str]]:
    """Header names and the rows that have all cells and a stamp; other lines are counted."""
    text = source.read().decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    first = text.split("\n", 1)[0]
    header = [_field(c) for c in first.split(",")]
    if "timestamp" not in header:
        raise InputError(
            source.path, "header", "expected a timestamp column", "record with --query-gpu=timestamp,index,..."
        )
    if len(set(header)) != len(header):
        raise InputError(source.path, "header", "a column occurs twice", "query each field once")
    at = header.index("timestamp")
    rows, odd, where = [], 0, 0
    lines = csv.reader(text.replace("\0", "").splitlines(), skipinitialspace=True)
    for row in lines:
        if len(row) == len(header) and _STAMP.fullmatch(row[at].strip()):
            rows.append(row)
        elif row and [_field(c) for c in row] != header:
            odd, where = odd + 1, where or lines.line_num
    if not rows:
        at_line = f"line {where}" if where else ""
        expected = 'no row with a stamp such as "2026/06/10 09:00:00.020"'
        raise InputError(source.path, at_line, expected, "record with nvidia-smi --format=csv -lms 100")
    return header, rows, [f"{odd} lines are no samples (first: line {where}): left out"] if odd else []


def _field(cell: str) -> str:
    """``" utilization.gpu [%]"`` -> ``"utilization.gpu"``."""
    return _HEADER_UNIT.sub("", cell.strip().strip('"')).lower()


def _times(stamps: tuple[str, ...], zone: tzinfo | None) -> tuple[Ints, bool]:
    """Times in ns and whether they are still local time. Where clocks go back an hour the first pass is taken."""
    iso = np.array([s.strip().replace("/", "-").replace(" ", "T") for s in stamps], dtype="datetime64[ns]")
    time = iso.astype(np.int64)
    if zone is None:
        return time, True
    # Zones change on the minute at most: one look-up for each minute that occurs.
    minutes, inverse = np.unique(time // (60 * _NS), return_inverse=True)
    epoch = datetime(1970, 1, 1)
    shifts = [(epoch + timedelta(minutes=int(m))).replace(tzinfo=zone).utcoffset() for m in minutes]
    seconds = np.array([0 if s is None else int(s.total_seconds()) for s in shifts], np.int64)
    return time - seconds[inverse] * _NS, False


def _devices(cells: dict[str, tuple[str, ...]], time: Ints) -> tuple[Ints, dict[int, str], list[str]]:
    """Device of each row: its index, else the order in which uuids or bus ids occur, else 0."""
    texts = next((cells[k] for k in ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id") if k in cells), None)
    warnings = []
    if texts is None:
        device = np.zeros(len(time), np.int64)
        if len(np.unique(time)) < len(time):
            warnings.append("several rows share a stamp and no column names the device: query index too")
    elif "index" in cells and all(t.strip().isdecimal() for t in texts):
        device = np.array([int(t) for t in texts], np.int64)
    else:
        order = {t: i for i, t in enumerate(dict.fromkeys(texts))}
        device = np.array([order[t] for t in texts], np.int64)
    names = cells.get("name") or cells.get("gpu_name") or ("",) * len(time)
    first = np.unique(device, return_index=True)
    return device, {int(d): names[i].strip() for d, i in zip(*first, strict=True)}, warnings


def _numbers(texts: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """``"33 %"`` -> 33.0; NaN where a cell has no number."""
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


def _period(time: Ints, device: Ints) -> int | None:
    """Median distance of two samples of one device."""
    order = np.lexsort((time, device))
    steps = np.diff(time[order])[np.diff(device[order]) == 0]
    steps = steps[steps > 0]
    return int(np.median(steps)) if len(steps) else None
