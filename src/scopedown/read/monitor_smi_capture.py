"""Looks of nvidia-smi as text: the table of plain ``nvidia-smi``, ``nvidia-smi -q``, and captures of several commands
in sections that begin with ``# $ command``.

Where a capture has the same look in several forms the CSV of ``--query-gpu`` gives the sample (it has milliseconds),
then ``-q``, then the table; names, limits and modes come from any of them. The process tables are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Source
from scopedown.read.monitor import Table, artifact, decode, rows_table
from scopedown.read.monitor_look import fields, key_of
from scopedown.read.monitor_smi import NvidiaSmiCsv
from scopedown.read.stamps import LOOK_STAMP, Zoned, look_stamp, place_looks
from scopedown.terms import Scope

_COMMAND = re.compile(r"^# \$ (.*)$", re.MULTILINE)
_TITLE = re.compile(r"^# ([^\n:]*?) *:: [^\n]*\n\Z", re.MULTILINE)
_LOG = re.compile(r"^=+NVSMI LOG=+$", re.MULTILINE)
_TOP = re.compile(r"\| NVIDIA-SMI (\S+) +(?:KMD|Driver) Version: *(\S+)")
_GPU = re.compile(
    r"^\|\s*(\d+)\s+(\S.*?)\s+(?:On|Off|N/A|TCC|WDDM|MCDM)\s*\|\s*([0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d)\s.*\|\n"
    r"\|\s*\S+\s+(\S+?)C?\s+(P\d+|N/A)\s+(\S+?)W?\s*/\s*(\S+?)W?\s*\|"
    r"\s*(\S+?)(?:MiB)?\s*/\s*(\S+?)(?:MiB)?\s*\|\s*(\S+?)%?\s.*\|(?:\n\|[ |]*\|\s*(Enabled|Disabled|N/A)\*?\s*\|)?",
    re.MULTILINE,
)
_SKIPPED = ("processes", "mig_device", "accounted_processes")
#: What does not change between looks of one device.
_STATIC = ("name", "uuid", "pci.bus_id", "mig.mode.current", "clocks.max.sm", "clocks.max.memory", "power.limit")


@dataclass(slots=True)
class _Look:
    stamp: str | None
    rows: list[dict[str, str]]
    driver: str | None
    instances: int = 0


class NvidiaSmiCapture(Zoned):
    kind: ClassVar[str] = "nvidia-smi-look"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "nvidia-smi or nvidia-smi -q as text, or a capture of several commands under # $ lines"

    def __init__(self, tz: str | None = None) -> None:
        super().__init__(tz)
        self.csv = NvidiaSmiCsv(tz)

    def sniff(self, source: Source) -> bool:
        text = decode(source.head).replace("\r", "").lstrip()
        first, _, rest = text.partition("\n")
        if first.startswith("#"):
            return re.search(r"^# \$ (\S*/)?nvidia-smi\b", text, re.MULTILINE) is not None
        begins = LOOK_STAMP.fullmatch(first.strip()) or first.startswith("+--") or _LOG.fullmatch(first.strip())
        return bool(begins) and (first.startswith("==") or "| NVIDIA-SMI" in rest[:400] or "NVSMI LOG=" in rest[:200])

    def read(self, source: Source) -> Artifact:
        text = decode(source.read()).replace("\r", "")
        queries: list[Table] = []
        looks: list[_Look] = []
        tables: list[_Look] = []
        passes: dict[str, None] = {}
        sections = list(_sections(text))
        for title, command, body in sections:
            if "--query-gpu" in command:
                queries += self._csv(source, body)
            elif command.startswith("nvidia-smi") or not command:
                looks += _queried(body)
                tables += _tabled(body)
            else:
                continue
            if title and title != "capabilities":
                passes[title] = None
        table = self._table(source, queries, looks, tables)
        captured = len(sections) > 1
        table.regular = not captured
        if captured:
            table.counts["sections"] = len(sections)
        if len(passes) > 1:
            table.counts["passes"] = len(passes)
            table.cannot.append(f"what happened between the passes ({', '.join(passes)})")
        version = _TOP.search(text)
        return artifact(source, self.kind, "nvidia-smi", table, version[1] if version else None)

    def _csv(self, source: Source, body: str) -> list[Table]:
        try:
            return [self.csv.table(source, body.lstrip("#\n "))]
        except InputError:
            return []  # the command failed when the capture was made: its message stands in place of rows

    def _table(self, source: Source, queries: list[Table], looks: list[_Look], tables: list[_Look]) -> Table:
        known = looks or tables
        if not known and not queries:
            raise InputError(source.path, "", "holds no look at a device", "record nvidia-smi -q anew")
        static = {r["index"]: {k: r[k] for k in _STATIC if k in r} for look in known for r in look.rows}
        drivers = [look.driver for look in known if look.driver]
        shared = {"driver": drivers[-1]} if drivers else {}
        instances = max((look.instances for look in looks), default=0)
        counts = {"looks": len(queries or known), **({"mig_instances": instances} if instances else {})}
        if queries:
            merged = [static.get(r.get("index", "0"), {}) | r for t in queries for r in _rows(t)]
            time = [t for q in queries for t in q.time.tolist()]
            zone_known = all(q.zone_known for q in queries)
            return rows_table(merged, time, zone_known=zone_known, shared=shared, counts=counts)
        rows = [r for look in known for r in look.rows]
        at, zone_known = place_looks(source, [k.stamp for k in known for _ in k.rows], self.zone, "Timestamp")
        return rows_table(rows, at.tolist(), zone_known=zone_known, shared=shared, counts=counts)


def _rows(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.cells, row, strict=True)) for row in zip(*table.cells.values(), strict=True)]


def _sections(text: str) -> Iterator[tuple[str, str, str]]:
    """Title, command and body of each section; a text without ``# $`` lines is one without title and command."""
    marks = list(_COMMAND.finditer(text))
    if not marks:
        yield "", "", text
    for mark, after in zip(marks, [*marks[1:], None], strict=bool(marks)):
        title = _TITLE.search(text, max(0, mark.start() - 200), mark.start())
        yield (title[1] if title else ""), mark[1].strip(), text[mark.end() : after.start() if after else len(text)]


def _queried(text: str) -> Iterator[_Look]:
    """The looks of ``-q`` in a text: keys by indentation, a block a device."""
    for part in _LOG.split(text)[1:]:
        # A line of # ends the section that the look stands in; "Timestamp  : ..." is a line of the look.
        look = _Look(look_stamp(part.partition("Attached GPUs")[0]), [], None)
        leaves: dict[str, str] | None = None
        stack: list[tuple[int, str]] = []
        for line in part.splitlines():
            if line.startswith("##") or line.startswith("+--"):
                break
            if re.match(r"GPU [0-9A-Fa-f]{4,}:", line):
                if leaves is not None:
                    look.rows.append(fields(leaves))
                leaves, stack = {}, []
                continue
            key, colon, value = line.partition(" : ")
            if leaves is None:
                if key_of(key) == "driver_version" and colon:
                    look.driver = value.strip()
                continue
            indent = len(line) - len(line.lstrip())
            if not line.strip():
                continue
            while stack and stack[-1][0] >= indent:
                stack.pop()
            stack.append((indent, key_of(key)))
            if stack[0][1] == "mig_device":
                look.instances += len(stack) == 1
            if colon and stack[0][1] not in _SKIPPED:
                leaves.setdefault("/".join(k for _, k in stack), value.strip())
        if leaves is not None:
            look.rows.append(fields(leaves))
        look.rows = [{"index": str(i), **r} for i, r in enumerate(look.rows)]
        if look.rows:
            yield look


def _tabled(text: str) -> Iterator[_Look]:
    """The tables of plain ``nvidia-smi``, each from its head to the next one's."""
    heads = list(_TOP.finditer(text))
    for head, after in zip(heads, [*heads[1:], None], strict=bool(heads)):
        body = text[head.end() : after.start() if after else len(text)]
        before = text[max(0, head.start() - 250) : head.start()]
        rows = []
        for m in _GPU.finditer(body):
            columns = ("index", "name", "pci.bus_id", "temperature.gpu", "pstate", "power.draw", "power.limit")
            more = ("memory.used", "memory.total", "utilization.gpu", "mig.mode.current")
            rows.append({k: v or "" for k, v in zip((*columns, *more), m.groups(), strict=True)})
        if rows:
            yield _Look(look_stamp(before), rows, head[2])
