"""``amd-smi`` as JSON or CSV: ``static`` and ``metric`` (a look each), ``monitor`` and ``--watch`` (stamps in whole
epoch seconds). A value is a number, ``{"value": 350, "unit": "W"}``, or text with its unit; absent is ``N/A``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import UNKNOWN, Artifact, Meaning, MonitorLog, Source
from scopedown.read.monitor import VIOLATION, Table, artifact, csv_rows, decode, number, rows_table
from scopedown.terms import Scope

_JSON = re.compile(r'\s*(?:\{\s*"gpu_data"\s*:\s*)?\[\s*\{\s*(?:"timestamp"\s*:\s*\d+\s*,\s*)?"gpu"\s*:\s*\d+')
ENERGY = "energy.total"
#: Place of a value, its path joined with dots or the header of a CSV, to nvidia-smi's name; the first found is taken.
_NAMES: dict[str, tuple[str, ...]] = {
    "name": ("asic.market_name", "market_name"),
    "driver_version": ("driver.version", "driver_version"),
    "pci.bus_id": ("bus.bdf", "bdf"),
    "utilization.gpu": ("usage.gfx_activity", "gfx_activity", "gfx", "gfx_util"),
    "utilization.memory": ("usage.umc_activity", "umc_activity", "mem_util"),
    "power.draw": ("power.socket_power", "power.current_socket_power", "power.average_socket_power", "socket_power",
                   "power_usage", "average_socket_power", "current_socket_power"),
    "power.limit": ("limit.ppt0.socket_power_limit", "limit.socket_power", "power.power_limit", "max_power"),
    "clocks.current.sm": ("clock.gfx_0.clk", "clock.sys.current_frequency", "gfx_0_clk", "gfx_clk", "gfx_clock"),
    "clocks.current.memory": ("clock.mem_0.clk", "clock.mem.current_frequency", "mem_0_clk", "mem_clk", "mem_clock"),
    "clocks.max.sm": ("clock.gfx_0.max_clk", "gfx_0_max_clk"),
    "temperature.gpu": ("temperature.hotspot", "hotspot", "hotspot_temperature"),
    "temperature.memory": ("temperature.mem", "memory_temperature"),
    "memory.used": ("mem_usage.used_vram", "vram_used", "used_vram"),
    "memory.total": ("mem_usage.total_vram", "vram.size", "vram_total", "total_vram"),
    ENERGY: ("energy.total_energy_consumption", "total_energy_consumption"),
}  # fmt: skip
_LEVELS = "clock.sys.frequency_levels."
_STATUS = re.compile(r"(?:throttle\.)?([a-z_]+?)_violation_status")


class AmdSmi:
    kind: ClassVar[str] = "amd-smi"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "amd-smi static, metric or monitor as JSON or CSV"

    def sniff(self, source: Source) -> bool:
        text = decode(source.head).lstrip()
        if _JSON.match(text):
            return True
        names = [c.strip().lower() for c in text.split("\n", 1)[0].split(",")]
        known = {place for places in _NAMES.values() for place in places}
        return "gpu" in names[:2] and len(names) > 1 and bool(known & set(names))

    def read(self, source: Source) -> Artifact:
        text = decode(source.read()).lstrip()
        found = _of_json(source, text) if text[:1] in "[{" else _of_csv(source, text)
        rows = [_row(f) for f in found]
        stamps = [number(f.get("timestamp", "")) for f in found]
        seconds = [int(s) if s == s and 0 < s < 2**33 else None for s in stamps]
        time = [UNKNOWN if s is None or None in seconds else s * 10**9 for s in seconds]
        table = rows_table(rows, time, meaning=Meaning.GFX_BUSY)
        _check_energy(table)
        return artifact(source, self.kind, "amd-smi", table)


def energy_between(first: MonitorLog, last: MonitorLog) -> dict[int, float]:
    """Increase of each device's energy counter from one reading to a later one, in the counter's unit.

    Raises ValueError where a device is missing or its counter falls: it was reset, or the readings are of two machines.
    """
    before, after = _counter(first), _counter(last)
    if not before or before.keys() != after.keys():
        raise ValueError(f"energy counters of devices {sorted(before)} and {sorted(after)} are not of the same set")
    for device, value in before.items():
        if after[device] < value:
            raise ValueError(
                f"the energy counter of device {device} falls from {value:g} to {after[device]:g}: it was reset, or "
                "the readings are of two machines; their difference is no energy"
            )
    return {device: after[device] - value for device, value in before.items()}


def _counter(log: MonitorLog) -> dict[int, float]:
    values = log.columns.get(ENERGY)
    if values is None:
        return {}
    return {int(d): float(v) for d, v in zip(log.device, values, strict=True) if v == v}


def _check_energy(table: Table) -> None:
    """A counter that falls is no counter: the column goes."""
    texts = table.cells.get(ENERGY)
    if texts is None:
        return
    values = np.array([number(t) for t in texts])
    index = np.array(table.cells["index"])
    order = np.argsort(table.time, kind="stable")
    for device in dict.fromkeys(index.tolist()):
        mine = values[order][index[order] == device]
        if (np.diff(mine[~np.isnan(mine)]) < 0).any():
            table.warnings.append(
                f"the energy counter of device {device} falls: it was reset, or logs of two machines were joined; "
                "no energy is taken from it"
            )
            del table.cells[ENERGY]
            return
    table.cannot.append("energy in joule: the counter's unit is not in the file, and one reading is no consumption")


def _of_json(source: Source, text: str) -> list[dict[str, str]]:
    """Flat fields of each entry; with ``--watch`` several lists may follow one another."""
    found: list[dict[str, str]] = []
    at, decoder = 0, json.JSONDecoder()
    while at < len(text):
        try:
            part, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if found:
                break  # the last look of a log that was stopped
            raise InputError(source.path, "", f"is no whole JSON ({error})", "record amd-smi --json anew") from None
        entries = part.get("gpu_data", []) if isinstance(part, dict) else part
        found += [_flat(e) for e in entries if isinstance(e, dict) and "gpu" in e]
        at += len(text[at:]) - len(text[at:].lstrip(" \r\n\t,"))
    return found


def _flat(value: Mapping[str, Any], path: str = "") -> dict[str, str]:
    out: dict[str, str] = {}
    for key, item in value.items():
        place = f"{path}{key}"
        if isinstance(item, dict) and "value" in item:
            out[place] = str(item["value"])
        elif isinstance(item, dict):
            out |= _flat(item, f"{place}.")
        elif not isinstance(item, list):
            out[place] = str(item)
    return out


def _of_csv(source: Source, text: str) -> list[dict[str, str]]:
    header: list[str] = []
    found = []
    for _, row in csv_rows(source, text):
        if "gpu" in [c.strip().lower() for c in row[:2]]:
            header = [c.strip().lower() for c in row]
        elif len(row) == len(header):
            found.append(dict(zip(header, map(str.strip, row), strict=True)))
    return found


def _row(found: Mapping[str, str]) -> dict[str, str]:
    """The fields that are kept, by nvidia-smi's names; serial numbers and process lists are not among them."""
    out = {"index": found.get("gpu", "0")}
    for name, places in _NAMES.items():
        said = next((found[p] for p in places if p in found), None)
        if said is not None:
            value = number(said)
            out[name] = said if value != value or name in ("name", "driver_version", "pci.bus_id") else f"{value:.15g}"
    levels = [number(v) for k, v in found.items() if k.startswith(_LEVELS)]
    if levels and "clocks.max.sm" not in out:
        out["clocks.max.sm"] = f"{max(levels):g}"
    for place, said in found.items():
        if (status := _STATUS.fullmatch(place)) is not None:
            out[f"{VIOLATION}{status[1]}"] = said
    return out
