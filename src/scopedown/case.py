"""A case: a folder with ``case.toml``, ``evidence/`` (or references with hashes) and ``journal.jsonl``."""

from __future__ import annotations

import glob
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scopedown import read
from scopedown.errors import InputError, UsageError
from scopedown.read import READERS, detect, expand, open_source
from scopedown.read.base import Artifact
from scopedown.read.columns import parse_columns
from scopedown.read.stamps import parse_zone
from scopedown.read.unknown import looks_like
from scopedown.symptom import Symptom, parse_symptom
from scopedown.units import parse_duration, show_bytes

__all__ = [
    "Case",
    "EvidencePath",
    "Symptom",
    "case_from_files",
    "load",
    "load_case",
    "load_evidence",
    "parse_symptom",
]

_TABLES = ("symptom", "contract", "evidence", "sha256")
_ENTRY_KEYS = ("path", "kind", "offset", "columns", "sha256")
_ZONE = re.compile(r"(UTC)?[+-]\d\d:?\d\d|UTC|[A-Za-z_]+(/[A-Za-z_+\-0-9]+)+")


@dataclass(frozen=True, slots=True)
class EvidencePath:
    """A reference to a file of evidence; never executed, never used as anything but a file to read."""

    path: Path
    kind: str | None = None
    """Declared; None: detected from the content."""
    offset_ns: int | None = None
    """Added to the artifact's times to bring them onto the axis of the case."""
    zone: str | None = None
    """Zone of local times (``offset = "+02:00"``)."""
    columns: str | None = None
    """Column mapping of a request log of one's own, or the run of a file with several (``read/columns.py``)."""
    sha256: str | None = None
    """As recorded when the case was made."""
    source: str = "command line"
    """Who named it: ``case.toml``, ``evidence/`` or the command line."""


@dataclass(frozen=True, slots=True)
class Case:
    folder: Path | None
    symptom: Symptom | None
    contract: dict[str, str]
    """The contract's fields as declared."""
    evidence: tuple[EvidencePath, ...]
    warnings: tuple[str, ...] = ()


def load(paths: Sequence[str | Path], symptom: Mapping[str, Any] | None = None) -> Case:
    """The case folder that is named, else the files as a case without one. ``symptom``: as on a command line."""
    if len(paths) == 1 and (Path(paths[0]).name == "case.toml" or Path(paths[0], "case.toml").is_file()):
        return load_case(paths[0], symptom)
    return case_from_files(paths, symptom)


def load_case(path: str | Path, symptom: Mapping[str, Any] | None = None, columns: str | None = None) -> Case:
    """The case of a folder (or of its ``case.toml``). Raises InputError that names the entry at fault.

    ``symptom``: keys that are said instead of those of the file; with a metric among them they replace the whole.
    ``columns``: for evidence whose entry states none.
    """
    path = Path(path)
    folder = path.parent if path.name == "case.toml" else path
    toml = folder / "case.toml"
    document = _read_toml(toml)
    warnings = [f"case.toml: unknown table [{t}] is ignored" for t in document if t not in _TABLES]
    table = document.get("symptom", {})
    if not isinstance(table, dict):
        raise InputError(toml, "symptom", "expected a table", "write [symptom] and its keys below it")
    said = {k: v for k, v in (symptom or {}).items() if v is not None}
    try:
        complaint = parse_symptom(said if "metric" in said else {**table, **said})
    except UsageError as error:
        raise InputError(toml, "[symptom]", str(error), "complete the complaint") from None
    hashes = document.get("sha256", {})
    if "evidence" in document:
        evidence = _entries(toml, folder, document["evidence"])
    else:
        evidence = [
            EvidencePath(p, sha256=_text(hashes, p.relative_to(folder).as_posix()), source="evidence/")
            for p in expand([folder / "evidence"] if (folder / "evidence").is_dir() else [])
        ]
    usable, odd = _known(evidence, columns)
    if not usable:
        what = f": {odd[0]}" if odd else ""
        raise InputError(folder, "evidence/", f"no readable evidence{what}", "put a request log or a report there")
    return Case(folder, complaint, _contract(toml, document.get("contract", {})), usable, (*warnings, *odd))


def case_from_files(
    paths: Iterable[str | Path],
    symptom: Symptom | Mapping[str, Any] | None = None,
    contract: Mapping[str, str] | None = None,
    columns: str | None = None,
) -> Case:
    """A case without a folder, from files, folders or globs. A folder's unknown files are left out with a warning.

    ``columns``: the mapping for request logs of one's own, or the run of a file with several (``read/columns.py``).
    """
    paths = list(paths)
    evidence: list[EvidencePath] = []
    for item in paths:
        named = Path(item).is_file() or not (Path(item).is_dir() or glob.has_magic(str(item)))
        evidence += [EvidencePath(p, source="command line" if named else "folder") for p in expand([item])]
    usable, odd = _known(evidence, columns)
    if not usable:
        raise InputError(
            ", ".join(map(str, paths)) or ".",
            "",
            f"no readable evidence{': ' + odd[0] if odd else ''}",
            "name a request log or a report",
        )
    checked = symptom if symptom is None or isinstance(symptom, Symptom) else parse_symptom(symptom)
    return Case(None, checked, dict(contract or {}), usable, tuple(odd))


def load_evidence(
    case: Case,
    *,
    tz: str | None = None,
    nsys: str | None = None,
    cache: bool = True,
    columns: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Artifact]:
    """Every file of the case, read. Raises InputError where one breaks its format or changed since it was recorded.

    ``tz`` and ``columns``: where the case states none; ``nsys``, ``cache``: as for ``read.load``; ``progress`` is told
    which file begins.
    """
    artifacts = []
    for item in case.evidence:
        progress(f"reading {item.path.name} ({show_bytes(size_of(item.path))})")
        artifact = read.load(
            item.path, kind=item.kind, tz=item.zone or tz, nsys=nsys, cache=cache, columns=item.columns or columns
        )
        if item.sha256 is not None and item.sha256.lower() != artifact.sha256:
            raise InputError(
                item.path,
                "",
                f"changed since the case was made (sha256 {artifact.sha256[:12]}, recorded {item.sha256[:12]})",
                "restore the file, or correct the hash in case.toml",
            )
        if item.offset_ns is not None:
            artifact = replace(artifact, extra={**artifact.extra, "offset_ns": item.offset_ns})
        artifacts.append(artifact)
    return artifacts


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read_toml(toml: Path) -> dict[str, Any]:
    if not toml.parent.is_dir():
        raise InputError(toml.parent, "", "no such case folder", "check the path")
    if not toml.is_file():
        raise InputError(toml.parent, "", "has no case.toml", "make a case with scopedown new, or name the files")
    try:
        document = tomllib.loads(toml.read_bytes().decode("utf-8-sig"))
    except RecursionError:
        raise InputError(toml, "", "is nested deeper than any case", "write tables and plain values") from None
    except tomllib.TOMLDecodeError as error:
        text = str(error)
        place = re.search(r"\(at (line \d+, column \d+|end of document)\)", text)
        what = text.replace(f" {place[0]}", "") if place else text
        raise InputError(toml, place[1] if place else "", f"is no TOML: {what}", "correct the line") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(toml, "", f"cannot be read ({error})", "check its rights and that it is UTF-8") from None
    except ValueError:
        raise InputError(toml, "", "holds a number or a date that none can be", "correct it") from None
    if (key := _too_large(document)) is not None:
        raise InputError(toml, key, "holds a number beyond 64 bits", "write what is meant as a text")
    return document


def _too_large(document: Mapping[str, Any]) -> str | None:
    """Where a document has an integer that no column holds."""
    left: list[tuple[str, Any]] = list(document.items())
    while left:
        key, value = left.pop()
        if isinstance(value, dict):
            left += [(f"{key}.{k}", v) for k, v in value.items()]
        elif isinstance(value, list):
            left += [(key, v) for v in value]
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            return key
    return None


def _entries(toml: Path, folder: Path, entries: Any) -> list[EvidencePath]:
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise InputError(toml, "evidence", "expected a list of tables", "write [[evidence]] before each entry")
    found = []
    for number, entry in enumerate(entries, 1):
        where = f"[[evidence]] entry {number}"
        unknown = [k for k in entry if k not in _ENTRY_KEYS]
        if unknown:
            raise InputError(toml, where, f"unknown key {unknown[0]!r}", f"the keys are {', '.join(_ENTRY_KEYS)}")
        if not all(isinstance(v, str) for v in entry.values()) or not entry.get("path"):
            raise InputError(toml, where, "expected texts, and a path", 'write for example path = "evidence/a.jsonl"')
        kinds = [r.kind for r in READERS]
        if entry.get("kind", kinds[0]) not in kinds:
            raise InputError(toml, where, f"unknown kind {entry['kind']!r}", f"use one of {', '.join(kinds)}")
        path = folder / entry["path"]
        if "\0" in entry["path"] or not path.is_file():
            raise InputError(toml, where, f"{entry['path']!r} is no file", "correct the path, or remove the entry")
        offset, zone = entry.get("offset"), None
        if offset is not None and _ZONE.fullmatch(offset):
            offset, zone = None, offset
            try:
                parse_zone(entry["offset"])
            except UsageError as error:
                raise InputError(toml, where, str(error), 'write for example offset = "+02:00"') from None
        try:
            shift = None if offset is None else parse_duration(offset)
        except UsageError as error:
            raise InputError(toml, where, str(error), 'write for example offset = "-3.2 ms"') from None
        columns = entry.get("columns")
        try:
            _ = columns is None or parse_columns(columns)
        except UsageError as error:
            raise InputError(toml, where, str(error), "correct columns") from None
        found.append(
            EvidencePath(path, entry.get("kind"), shift, zone, columns, sha256=entry.get("sha256"), source="case.toml")
        )
    return found


def _known(evidence: Iterable[EvidencePath], columns: str | None) -> tuple[tuple[EvidencePath, ...], list[str]]:
    """The files that a reader recognises, and a line for each other one. A file that was named must be known."""
    usable, odd = [], []
    for entry in evidence:
        item = entry if entry.columns is not None else replace(entry, columns=columns)
        named = item.source in ("case.toml", "command line")
        try:
            source = open_source(item.path)
        except InputError as error:
            if named:
                raise
            odd.append(str(error))
            continue
        if item.kind is not None or detect(source, item.columns) is not None:
            usable.append(item)
            continue
        what, do = looks_like(source.head)
        if named:
            raise InputError(item.path, "", what, do)
        odd.append(f"{item.path.name} {what}: left out")
    return tuple(usable), odd


def _contract(toml: Path, table: Any) -> dict[str, str]:
    if not isinstance(table, dict):
        raise InputError(toml, "contract", "expected a table", "write [contract] and its fields below it")
    for key, value in table.items():
        if isinstance(value, dict | list):
            raise InputError(toml, f"[contract] {key}", "expected one value", "write a text or a number")
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in table.items()}


def _text(table: Any, key: str) -> str | None:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, str) else None
