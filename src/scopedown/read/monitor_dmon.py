"""``nvidia-smi dmon`` and ``pmon``: rows under two ``#`` lines, blanks or commas between, repeated now and then.

Stamps only with ``-o D`` (``20260714``) and ``-o T`` (``08:12:38``); the interval (``-d``) is not in the file. pmon's
command column and process ids are counted, never kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from typing import ClassVar

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import UNKNOWN, Artifact, Source
from scopedown.read.monitor import VIOLATION, Table, artifact, decode, number, rows_table
from scopedown.read.stamps import Zoned, times
from scopedown.terms import Scope

_NAMES = {
    "gpu": "index",
    "pwr": "power.draw",
    "temp": "temperature.gpu",
    "gtemp": "temperature.gpu",
    "mtemp": "temperature.memory",
    "sm": "utilization.gpu",
    "mem": "utilization.memory",
    "enc": "utilization.encoder",
    "dec": "utilization.decoder",
    "jpg": "utilization.jpeg",
    "ofa": "utilization.ofa",
    "mclk": "clocks.current.memory",
    "pclk": "clocks.current.graphics",
    "fb": "memory.used",
    "pviol": f"{VIOLATION}power",
    "tviol": f"{VIOLATION}thermal",
}
_HEAD = re.compile(r"#\s*(?:date[\s,]+)?(?:time[\s,]+)?gpu\b.*", re.IGNORECASE)
_UNITS = re.compile(r"#\s*(?:YYYYMMDD[\s,]+)?(?:HH:MM:SS[\s,]+)?Idx\b.*", re.IGNORECASE)
_DATE, _TIME = re.compile(r"(?:19[7-9]\d|20\d\d|21\d\d)\d{4}"), re.compile(r"(\d\d):(\d\d):(\d\d)")
_DAY = 86_400


class NvidiaSmiDmon(Zoned):
    kind: ClassVar[str] = "nvidia-smi-dmon"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "nvidia-smi dmon or pmon: rows under # headers"

    def sniff(self, source: Source) -> bool:
        lines = decode(source.head).lstrip().splitlines()[:2]
        return len(lines) == 2 and bool(_HEAD.fullmatch(lines[0].strip()) and _UNITS.fullmatch(lines[1].strip()))

    def read(self, source: Source) -> Artifact:
        rows = list(_rows(decode(source.read())))
        if not rows:
            raise InputError(source.path, "", "has headers and no rows", "record nvidia-smi dmon -s pucv -o DT anew")
        if any("pid" in r for r in rows):
            return artifact(source, self.kind, "nvidia-smi pmon", _processes(source, rows, self.zone))
        cells = [{_NAMES.get(k, k): v for k, v in r.items() if k not in ("date", "time")} for r in rows]
        table = rows_table(cells, [UNKNOWN] * len(rows))
        _place(source, table, rows, self.zone)
        return artifact(source, self.kind, "nvidia-smi dmon", table)


def _rows(text: str) -> Iterator[dict[str, str]]:
    """Column to cell of each row; a row with too few cells is cut and left out."""
    header: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if _HEAD.fullmatch(bare):
            header = _split(bare.lstrip("# ").lower(), 99)
        elif header and bare and not bare.startswith("#"):
            cells = _split(bare, len(header) - 1)
            if len(cells) == len(header) and cells[header.index("gpu")].isdecimal():
                yield dict(zip(header, cells, strict=True))


def _split(line: str, most: int) -> list[str]:
    parts = line.split(",", most) if "," in line else line.split(None, most)
    return [p.strip() for p in parts]


def _place(source: Source, table: Table, rows: list[dict[str, str]], zone: tzinfo | None) -> None:
    """Stamps where there is a date; with a time of day alone, the distance of samples."""
    clock = [_TIME.fullmatch(r.get("time", "")) for r in rows]
    date = [_DATE.fullmatch(r.get("date", "")) for r in rows]
    if all(clock) and all(date):
        texts = [f"{r['date'][:4]}-{r['date'][4:6]}-{r['date'][6:]} {r['time']}" for r in rows]
        try:
            table.time, table.zone_known = times(texts, zone)
        except ValueError as error:
            raise InputError(source.path, "date", f"a stamp is no date ({error})", "correct the line") from None
        return
    if all(clock):
        mine = [m for m, r in zip(clock, rows, strict=True) if m is not None and r["gpu"] == rows[0]["gpu"]]
        seconds = np.array([int(m[1]) * 3600 + int(m[2]) * 60 + int(m[3]) for m in mine])
        steps = np.diff(seconds) % _DAY
        steps = steps[steps > 0]
        table.period_ns = int(np.median(steps) * 10**9) if len(steps) else None
    table.warnings.append(
        "samples have no date and cannot be placed in time: record with nvidia-smi dmon -s pucv -o DT"
    )


def _processes(source: Source, rows: list[dict[str, str]], zone: tzinfo | None) -> Table:
    """Shares of processes summed by sample and device. A sample ends where a process comes again or the stamp moves."""
    found: list[dict[str, str]] = []
    first: list[dict[str, str]] = []
    seen: set[tuple[str, str]] = set()
    at: dict[str, int] = {}
    stamp: tuple[str | None, str | None] = (None, None)
    for r in rows:
        now, who = (r.get("date"), r.get("time")), (r["gpu"], r["pid"])
        if who in seen or now != stamp:
            seen, at, stamp = set(), {}, now
        seen.add(who)
        if r["gpu"] not in at:
            at[r["gpu"]] = len(found)
            found.append({"index": r["gpu"]})
            first.append(r)
        mine = found[at[r["gpu"]]]
        for column in ("sm", "mem"):
            value, name = number(r.get(column, "-")), f"processes.{column}"
            if value == value:
                mine[name] = f"{number(mine.get(name, '0')) + value:g}"
    table = rows_table(found, [UNKNOWN] * len(found))
    table.counts["processes"] = len({(r["gpu"], r["pid"]) for r in rows if r["pid"] != "-"})
    table.cannot.append("how busy the device was: shares of processes overlap, their sum is not the device's")
    _place(source, table, first, zone)
    return table
