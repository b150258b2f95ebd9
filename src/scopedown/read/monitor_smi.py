"""Device monitor logs: ``nvidia-smi --query-gpu=timestamp,... --format=csv[,noheader][,nounits] -lms N``.

The stamp is local time without a zone (``2026/06/10 09:00:00.020``); units stand in the header, in the cells, or in
neither (``nounits``). A cell without a value is ``N/A``, ``[N/A]`` or ``[Not Supported]``. Without a header a cell
says its unit at most: such a log is read only where the device of each row is certain, and its columns are then
known by their unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Source
from scopedown.read.monitor import RECORD, Table, artifact, csv_rows, decode
from scopedown.read.stamps import STAMP, Zoned, times
from scopedown.terms import Scope

# Names of other tools' CSV have no dots.
_FIELD = re.compile(r"(utilization|memory|power|clocks|temperature|fan|pci|enforced|ecc|encoder)\.[a-z_.]+")
_HEADER_UNIT = re.compile(r"\s*\[[^\]]*\]$")
_UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}")
_BUS = re.compile(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d")
_BY_UNIT = {"%": "percent", "W": "watt", "MHz": "mhz", "MiB": "mib"}


class NvidiaSmiCsv(Zoned):
    kind: ClassVar[str] = "nvidia-smi-csv"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "nvidia-smi --query-gpu log as CSV, with its header or with a column that names the device"

    def sniff(self, source: Source) -> bool:
        text = decode(source.head).lstrip()
        first = text.split("\n", 1)[0]
        names = [_field(c) for c in first.split(",")]
        if len(names) > 1 and ("timestamp" in names or len(names) > 2) and any(map(_FIELD.fullmatch, names)):
            return True
        return bool(STAMP.match(first)) and _inferred(_bare_rows(text.rpartition("\n")[0] or text)) is not None

    def read(self, source: Source) -> Artifact:
        text = decode(source.read()).lstrip().replace("\0", "")
        return artifact(source, self.kind, "nvidia-smi", self.table(source, text))

    def table(self, source: Source, text: str) -> Table:
        """The samples of a CSV text. Raises InputError where it has none, or no column for their time."""
        if STAMP.match(text.split(",", 1)[0].strip()):
            return self._headerless(source, text)
        header, rows, warnings = _rows(source, text)
        cells: dict[str, Sequence[str]] = dict(zip(header, zip(*rows, strict=True), strict=True))
        return self._placed(source, cells, warnings)

    def _headerless(self, source: Source, text: str) -> Table:
        rows = _bare_rows(text)
        names = _inferred(rows)
        if names is None:
            raise InputError(
                source.path,
                "line 1",
                "has no header, and nothing tells for certain which device a row is of",
                f"put the header line back, or {RECORD}",
            )
        width = len(names)
        kept = [r for r in rows if len(r) == width]
        cells: dict[str, Sequence[str]] = dict(zip(names, zip(*kept, strict=True), strict=True))
        warning = "no header: columns are known by their unit only, none is taken for utilisation, power or a clock"
        odd = [f"{len(rows) - len(kept)} lines are cut: left out"] if len(kept) < len(rows) else []
        return self._placed(source, cells, [warning, *odd])

    def _placed(self, source: Source, cells: dict[str, Sequence[str]], warnings: list[str]) -> Table:
        try:
            time, known = times(cells.pop("timestamp"), self.zone)
        except ValueError as error:
            raise InputError(source.path, "timestamp", f"a stamp is no date ({error})", "correct the line") from None
        return Table(time, cells, zone_known=known, warnings=warnings)


def _rows(source: Source, text: str) -> tuple[list[str], list[list[str]], list[str]]:
    """Header names and the rows that have all cells and a stamp; other lines are counted."""
    first = text.split("\n", 1)[0]
    header = [_field(c) for c in first.split(",")]
    if "timestamp" not in header:
        raise InputError(source.path, "header", "expected a timestamp column", RECORD)
    if len(set(header)) != len(header):
        raise InputError(source.path, "header", "a column occurs twice", "query each field once")
    at = header.index("timestamp")
    rows, odd, where = [], 0, 0
    for line, row in csv_rows(source, text):
        if len(row) == len(header) and STAMP.fullmatch(row[at].strip()):
            rows.append(row)
        elif [_field(c) for c in row] != header:
            odd, where = odd + 1, where or line
    if not rows:
        at_line = f"line {where}" if where else ""
        expected = 'no row with a stamp such as "2026/06/10 09:00:00.020"'
        raise InputError(source.path, at_line, expected, RECORD)
    return header, rows, [f"{odd} lines are no samples (first: line {where}): left out"] if odd else []


def _field(cell: str) -> str:
    """``" utilization.gpu [%]"`` -> ``"utilization.gpu"``."""
    # A longer cell is no name of a field, and the pattern would take the square of its length.
    return _HEADER_UNIT.sub("", cell[:200].strip().strip('"')).lower()


def _bare_rows(text: str) -> list[list[str]]:
    """Rows of a log without a header: those that begin with a stamp."""
    rows = ([c.strip() for c in line.split(",")] for line in text.splitlines())
    return [r for r in rows if STAMP.fullmatch(r[0])]


def _inferred(rows: list[list[str]]) -> list[str] | None:
    """Names of the columns of a log without a header; None where the device of a row is not certain.

    Certain is a uuid, a bus id, or a column of bare integers that counts 0 to n-1 under each stamp, n at least 2: a
    temperature or a count does not do that.
    """
    if not rows:
        return None
    width = len(rows[0])
    columns = list(zip(*(r for r in rows if len(r) == width), strict=True))
    names, units = ["timestamp"], dict.fromkeys(_BY_UNIT, 0)
    for k, column in enumerate(columns[1:], 1):
        unit = column[0].rpartition(" ")[2]
        if all(map(_UUID.fullmatch, column)):
            names.append("uuid")
        elif all(map(_BUS.fullmatch, column)):
            names.append("pci.bus_id")
        elif "index" not in names and _counts(columns[0], column):
            names.append("index")
        elif unit in units:
            units[unit] += 1
            names.append(f"{_BY_UNIT[unit]}.{units[unit]}")
        else:
            names.append(f"column.{k + 1}")
    certain = {"uuid", "pci.bus_id", "index"} & set(names)
    return names if certain and len(set(names)) == width else None


def _counts(stamps: tuple[str, ...], column: tuple[str, ...]) -> bool:
    if not all(c.isdecimal() and len(c) < 4 for c in column):
        return False
    values = np.array([int(c) for c in column])
    n = int(values.max()) + 1
    if n < 2 or len(values) < 2 * n:
        return False
    whole = len(values) // n * n
    cycles = (values[:whole].reshape(-1, n) == np.arange(n)).all() and (
        values[whole:] == np.arange(n)[: len(values) - whole]
    ).all()
    # One query prints all devices within a few ms: under one stamp, or under stamps that differ in the last digits.
    heads = [s[:19] for s in stamps[:whole]]
    together = sum(heads[i] == heads[i + n - 1] for i in range(0, whole, n))
    return bool(cycles) and together * n >= 0.5 * whole
