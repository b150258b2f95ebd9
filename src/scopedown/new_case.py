"""A case folder made from a complaint and its evidence: whole, or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit

from scopedown.case import size_of
from scopedown.errors import InputError, UsageError
from scopedown.files import copy_whole
from scopedown.read import OF_RUNS, detect, expand, open_source
from scopedown.read.base import Source
from scopedown.read.bench_custom import CustomRequests
from scopedown.read.nsys_tables import MAGIC
from scopedown.symptom import parse_symptom


def write_case(
    folder: str | Path,
    symptom: Mapping[str, Any] | None,
    evidence: Sequence[str | Path] = (),
    *,
    contract: Mapping[str, str] | None = None,
    reference: bool = False,
    columns: str | None = None,
) -> Path:
    """Make a case folder and return its ``case.toml``.

    Evidence is copied into ``evidence/`` (hashes in ``[sha256]``), or with ``reference`` stays where it is
    (``[[evidence]]`` with path and hash). ``columns`` goes into the entry of each file that it makes readable. Raises
    InputError rather than overwrite anything.
    """
    folder = Path(folder)
    toml = folder / "case.toml"
    parse_symptom(symptom or {})
    if toml.exists() or toml.is_symlink():
        raise InputError(toml, "", "exists already", "choose another folder, or edit the file")
    sources = [open_source(p) for p in expand(evidence)]
    for source in sources:
        if not _writable(str(source.path.resolve() if reference else source.path.name)):
            raise InputError(source.path, "", "the name is not UTF-8, as case.toml has to be", "rename the file")
        log = Path(f"{source.path}-wal")
        if not reference and source.head.startswith(MAGIC) and log.is_file() and size_of(log):
            raise InputError(
                log, "", "holds rows of the database that a copy of it would lack", "end the program that writes it"
            )
    for text in (*(symptom or {}).values(), *(t for field in (contract or {}).items() for t in field), columns):
        if not _writable(str(text)):
            raise UsageError(f"{text!r} is not UTF-8, as case.toml has to be: write it otherwise")
    document = tomlkit.document()
    if symptom:
        document["symptom"] = {k: v for k, v in symptom.items() if v is not None}
    if contract:
        document["contract"] = dict(contract)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mapped = {s.path: columns for s in sources if columns and _uses(s, columns)}
        if reference:
            files = {str(s.path.resolve()): (s.sha256, mapped.get(s.path)) for s in sources}
        else:
            copies = _copy(sources, folder / "evidence") if sources else []
            files = {name: (sha256, mapped.get(s.path)) for (name, sha256), s in zip(copies, sources, strict=True)}
        if files and (reference or mapped):
            document["evidence"] = _table(files)
        elif files:
            document["sha256"] = {k: v for k, (v, _) in files.items()}
        _write_new(toml, tomlkit.dumps(document))
    except OSError as error:
        raise InputError(folder, "", f"cannot be written ({error.strerror})", "choose another folder") from None
    return toml


def _writable(text: str) -> bool:
    """Whether UTF-8 can hold the text: names of files and words of a command line may have any byte."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _uses(source: Source, columns: str) -> bool:
    """Whether the mapping has a say in how the file is read."""
    reader = detect(source, columns)
    return isinstance(reader, CustomRequests) or (isinstance(reader, OF_RUNS) and reader.run is not None)


def _table(files: Mapping[str, tuple[str, str | None]]) -> Any:
    """``[[evidence]]`` of ``{path: (hash, columns)}``."""
    entries = tomlkit.aot()
    for path, (sha256, columns) in files.items():
        entry = tomlkit.table()
        entry["path"], entry["sha256"] = path, sha256
        if columns is not None:
            entry["columns"] = columns
        entries.append(entry)
    return entries


def _copy(sources: list[Source], folder: Path) -> list[tuple[str, str]]:
    """Copies into the folder, each under its own name or a numbered one: ``(evidence/name, sha256)``.

    What an earlier run, which was ended before it wrote ``case.toml``, has copied is taken as it is.
    """
    folder.mkdir(exist_ok=True)
    found: dict[Path, str] = {}
    for source in sources:
        path = source.path
        target, number = folder / path.name, 2
        while target in found or (target.exists() and not _same(source, target)):
            target, number = folder / f"{path.stem}-{number}{path.suffix}", number + 1
        found[target] = source.sha256 if target.exists() else copy_whole(path, target)
    return [(f"{folder.name}/{target.name}", sha256) for target, sha256 in found.items()]


def _same(source: Source, path: Path) -> bool:
    return path.is_file() and Source(path).sha256 == source.sha256


def _write_new(path: Path, text: str) -> None:
    """Write whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".case-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        temporary.chmod(0o644)
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)
