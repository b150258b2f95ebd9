"""DCGM: ``dcgmi dmon`` text, and the Prometheus text of dcgm-exporter (one scrape or several, one after the other).

The fields are those of dcgm_fields.h. GPU_UTIL is NVML's; GR_ENGINE_ACTIVE (1001) is a share of time and is preferred
where both are there. dmon stamps nothing; a scrape has a time only where its samples carry one (ms since the epoch).
A MIG instance is a device of its own. Hosts, pods, containers and processes in labels are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from scopedown.errors import InputError
from scopedown.read.base import UNKNOWN, Artifact, Meaning, Source
from scopedown.read.monitor import REASON, Table, artifact, decode, missing, number, rows_table
from scopedown.terms import Scope

_ENGINE, _UTIL = "engine_active", "utilization.gpu"
_REASONS = f"{REASON}active"
#: dmon's tag and the exporter's field for one column.
_FIELDS = {
    _UTIL: ("GPUTL", "DEV_GPU_UTIL"),
    _ENGINE: ("GRACT", "PROF_GR_ENGINE_ACTIVE"),
    "sm_active": ("SMACT", "PROF_SM_ACTIVE"),
    "sm_occupancy": ("SMOCC", "PROF_SM_OCCUPANCY"),
    "tensor_active": ("TENSO", "PROF_PIPE_TENSOR_ACTIVE"),
    "dram_active": ("DRAMA", "PROF_DRAM_ACTIVE"),
    "utilization.memory": ("MCUTL", "DEV_MEM_COPY_UTIL"),
    "clocks.current.sm": ("SMCLK", "DEV_SM_CLOCK"),
    "clocks.current.memory": ("MMCLK", "DEV_MEM_CLOCK"),
    "clocks.max.sm": ("MAXSM", "DEV_MAX_SM_CLOCK"),
    "power.draw": ("POWER", "DEV_POWER_USAGE"),
    "power.limit": ("PMLMT", "DEV_POWER_MGMT_LIMIT"),
    "temperature.gpu": ("TMPTR", "DEV_GPU_TEMP"),
    "memory.used": ("FBUSD", "DEV_FB_USED"),
    _REASONS: ("DVCCTR", "DEV_CLOCK_THROTTLE_REASONS"),
}
_MORE = {"POWR": "power.draw", "GTEMP": "temperature.gpu", "DEV_CLOCKS_EVENT_REASONS": _REASONS}
_TAGS = {tag: name for name, (tag, _) in _FIELDS.items()} | _MORE
_EXPORTED = {field: name for name, (_, field) in _FIELDS.items()} | _MORE
_SHARES = (_ENGINE, "sm_active", "sm_occupancy", "tensor_active", "dram_active")

_DMON = re.compile(r"#\s*Entity\s+(\S.*)", re.IGNORECASE)
_ROW = re.compile(r"(GPU|GPU-I|GPU-CI|GI|CI)[ /]?(\S+)\s+(.*)")
_SAMPLE = re.compile(r'DCGM_FI_(\w+)\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}\s+(\S+)(?:\s+(\d{10,16}))?\s*')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Dcgm:
    kind: ClassVar[str] = "dcgm"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "dcgmi dmon, or a scrape of dcgm-exporter (Prometheus text)"

    def sniff(self, source: Source) -> bool:
        lines = (s for line in decode(source.head).splitlines() if (s := line.strip()))
        first = next(lines, "")
        if _DMON.fullmatch(first):
            return True
        while first.startswith("#"):
            first = next(lines, "")
        return _SAMPLE.fullmatch(first) is not None

    def read(self, source: Source) -> Artifact:
        text = decode(source.read())
        dmon = _DMON.search(text.lstrip().split("\n", 1)[0]) is not None
        table = _of_dmon(text) if dmon else _of_scrapes(text)
        if not len(table.time):
            raise InputError(source.path, "", "holds no sample of a device", "record it anew")
        for name in _SHARES:
            if name in table.cells:
                table.cells[name] = [t if missing(t) else f"{100 * number(t):.10g}" for t in table.cells[name]]
        if (masks := table.cells.get(_REASONS)) is not None:
            table.cells[_REASONS] = [hex(int(v)) if 0 <= (v := number(m)) < 2**63 else "" for m in masks]
        engine = [number(t) for t in table.cells.get(_ENGINE, ())]
        if any(v == v for v in engine):
            # The other one stays beside it under a name that says whose window it has.
            if _UTIL in table.cells:
                table.cells["utilization.nvml"] = table.cells[_UTIL]
            table.cells[_UTIL] = table.cells.pop(_ENGINE)
            table.meaning = Meaning.ENGINE_ACTIVE
        return artifact(source, self.kind, "dcgmi dmon" if dmon else "dcgm-exporter", table)


def _of_dmon(text: str) -> Table:
    header: list[str] = []
    rows = []
    for line in text.splitlines():
        bare = line.strip()
        if (head := _DMON.fullmatch(bare)) is not None:
            header = head[1].split()
        elif (row := _ROW.fullmatch(bare)) is not None and header:
            cells = row[3].split()
            if len(cells) == len(header):
                entity = row[2] if row[1] == "GPU" else f"{row[1]} {row[2]}"
                values = {_TAGS[tag]: v for tag, v in zip(header, cells, strict=True) if tag in _TAGS}
                rows.append({"index": entity, **values})
    table = rows_table(rows, [UNKNOWN] * len(rows))
    if rows:
        table.warnings.append(
            "dcgmi dmon stamps no time: samples cannot be placed; pipe it through a stamp, or scrape dcgm-exporter"
        )
    return table


def _of_scrapes(text: str) -> Table:
    """A row a device and scrape: a field that comes again for a device begins the next scrape."""
    rows: list[dict[str, str]] = []
    time: list[int] = []
    at: dict[str, int] = {}
    for field, labels, value, stamp in _samples(text):
        who = _entity(labels)
        name = _EXPORTED.get(field)
        row = at.get(who)
        if row is None or (name is not None and name in rows[row]) or (stamp is not None and time[row] != stamp):
            row = at[who] = len(rows)
            rows.append({"index": who, **_identity(labels)})
            time.append(UNKNOWN if stamp is None else stamp)
        if name is not None:
            rows[row][name] = value
    stamped = bool(time) and UNKNOWN not in time
    table = rows_table(rows, time if stamped else [UNKNOWN] * len(rows))
    instances = {r["index"] for r in rows if "instance" in r["index"]}
    if instances:
        table.counts["mig_instances"] = len(instances)
    if rows and not stamped:
        table.warnings.append("the scrape has no time of its own: a look, which cannot be placed")
    return table


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], str, int | None]]:
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line.strip())
        if match is not None:
            ms = int(match[4]) if match[4] else None
            ns = ms * 10**6 if ms is not None and ms < 2**62 // 10**6 else None
            yield match[1], dict(_LABEL.findall(match[2])), match[3], ns


def _entity(labels: Mapping[str, str]) -> str:
    instance = labels.get("GPU_I_ID")
    return labels.get("gpu", "0") + (f" instance {instance}" if instance else "")


def _identity(labels: Mapping[str, str]) -> dict[str, str]:
    profile = labels.get("GPU_I_PROFILE")
    name = labels.get("modelName", "") + (f" (MIG {profile})" if profile else "")
    found = {"name": name, "uuid": labels.get("UUID", ""), "driver_version": labels.get("DCGM_FI_DRIVER_VERSION", "")}
    if profile:
        found["mig.mode.current"] = "Enabled"
    return {k: v for k, v in found.items() if v}
