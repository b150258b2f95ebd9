"""``rocm-smi --json`` and ``--csv``: one look, no time; fields are sentences that differ by release."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from scopedown.errors import InputError
from scopedown.read.base import UNKNOWN, Artifact, Meaning, Source
from scopedown.read.monitor import artifact, csv_rows, decode, number, rows_table
from scopedown.terms import Scope

_JSON = re.compile(r'\s*\{\s*"(?:card\d+|system)"\s*:\s*\{')
_CSV = re.compile(r"device,.*\n(?:.*\n)*?card\d+,", re.IGNORECASE)
#: Tool's own remarks that stand before the data.
_REMARKS = re.compile(r"\A(?:\s*(?:WARNING|ERROR)[^\n]*\n|\s*\n)*")
#: Lower-case field, its colon gone, to the name of nvidia-smi's that means the same.
_NAMES = {
    "gpu use (%)": "utilization.gpu",
    "gpu memory use (%)": "utilization.memory",
    "sclk clock speed": "clocks.current.sm",
    "mclk clock speed": "clocks.current.memory",
    "average graphics package power (w)": "power.draw",
    "current socket graphics package power (w)": "power.draw",
    "max graphics package power (w)": "power.limit",
    "temperature (sensor edge) (c)": "temperature.gpu",
    "temperature (sensor junction) (c)": "temperature.junction",
    "temperature (sensor memory) (c)": "temperature.memory",
    "vram total memory (b)": "memory.total",
    "vram total used memory (b)": "memory.used",
    "card series": "name",
    "device name": "name",
    "pci bus": "pci.bus_id",
    "unique id": "uuid",
}
_BYTES = ("memory.total", "memory.used")


class RocmSmi:
    kind: ClassVar[str] = "rocm-smi"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "rocm-smi --json or --csv: one look at each card"

    def sniff(self, source: Source) -> bool:
        text = _REMARKS.sub("", decode(source.head))
        return bool(_JSON.match(text) or _CSV.match(text))

    def read(self, source: Source) -> Artifact:
        text = _REMARKS.sub("", decode(source.read()))
        cards, system = _of_json(source, text) if text.startswith("{") else (_of_csv(source, text), {})
        rows = []
        for card, said in cards:
            row = {"index": card.removeprefix("card")}
            for field, value in said.items():
                name = _NAMES.get(str(field).strip().rstrip(":").lower())
                if name is not None and isinstance(value, str | int | float):
                    row.setdefault(name, _cell(name, str(value)))
            rows.append(row)
        shared = {"driver": v} if (v := str(system.get("Driver version", ""))) else {}
        table = rows_table(rows, [UNKNOWN] * len(rows), meaning=Meaning.GFX_BUSY, shared=shared)
        return artifact(source, self.kind, "rocm-smi", table)


def _cell(name: str, text: str) -> str:
    """Bare numbers: ``"(300Mhz)"`` -> ``"300"``; memory in MiB, as nvidia-smi has it."""
    value = number(text)
    if name in ("name", "pci.bus_id", "uuid") or value != value:
        return text
    return f"{value / 2**20 if name in _BYTES else value:.12g}"


def _of_json(source: Source, text: str) -> tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]]:
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise InputError(source.path, "", f"is no whole JSON ({error})", "record rocm-smi --json anew") from None
    cards = [(k, v) for k, v in found.items() if re.fullmatch(r"card\d+", k) and isinstance(v, dict)]
    system = found.get("system")
    return cards, system if isinstance(system, dict) else {}


def _of_csv(source: Source, text: str) -> list[tuple[str, dict[str, Any]]]:
    """Tables under headers that begin with ``device``: several blocks with other fields are one look."""
    cards: dict[str, dict[str, Any]] = {}
    header: list[str] = []
    for _, row in csv_rows(source, text):
        if row[0].lower() == "device":
            header = row
        elif re.fullmatch(r"card\d+", row[0]) and len(row) == len(header):
            mine = cards.setdefault(row[0], {})
            for name, value in zip(header[1:], row[1:], strict=True):
                mine.setdefault(name, value)
    return list(cards.items())
