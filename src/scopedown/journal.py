"""The journal of a case: question -> measurement -> answer -> next question, append-only, one JSON object a line."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from scopedown.errors import InputError


class EvidenceRef(msgspec.Struct, frozen=True):
    path: str
    sha256: str


class Entry(msgspec.Struct, kw_only=True):
    """``n`` counts from 1 and is given by ``append``."""

    n: int = 0
    question: str
    measurement: str
    evidence: list[EvidenceRef]
    answer: str
    next: str


def append(case_dir: str | Path, entry: Entry) -> Entry:
    """Write an entry and return it with its number; the one that is there where question and evidence are the same.

    The file is only ever added to. A last line that a crash cut off stays as it is, and the entry starts a new line.
    Raises InputError where the case cannot be written to.
    """
    path = Path(case_dir) / "journal.jsonl"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            raw = file.read()
            entries = _parse(raw)
            same = next((e for e in entries if _key(e) == _key(entry)), None)
            if same is not None:
                return same
            numbered = msgspec.structs.replace(entry, n=max((e.n for e in entries), default=0) + 1)
            line = (b"\n" if raw and not raw.endswith(b"\n") else b"") + msgspec.json.encode(numbered) + b"\n"
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(path, "", f"cannot be written ({error.strerror})", "check the rights of the case") from None
    return numbered


def read(case_dir: str | Path) -> list[Entry]:
    """The entries in the order of writing; none where there is no journal. Lines that a crash cut off are left out."""
    path = Path(case_dir) / "journal.jsonl"
    try:
        return _parse(path.read_bytes())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(path, "", f"cannot be read ({error.strerror})", "check the rights of the case") from None


def _parse(raw: bytes) -> list[Entry]:
    decoder, entries = msgspec.json.Decoder(Entry), []
    for line in raw.split(b"\n"):
        try:
            entries.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return entries


def _key(entry: Entry) -> tuple[str, tuple[str, ...]]:
    return entry.question, tuple(sorted({e.sha256 for e in entry.evidence}))
