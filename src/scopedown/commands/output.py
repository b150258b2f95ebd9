"""Where an answer goes: to standard output, or into a file that is there whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scopedown.errors import UsageError
from scopedown.files import write_atomic

if TYPE_CHECKING:
    from scopedown.case import Case


def put(data: bytes, target: str) -> bool:
    """Write to a file, or to standard output for "-"; True where it was printed."""
    if target == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return True
    write_atomic(Path(target), data)
    return False


def _ours(path: Path) -> bool:
    """Whether a file is empty or was written by an earlier run."""
    with path.open("rb") as f:
        head = f.read(4096)
    return not head or any(mark in head for mark in (b'"schema_version"', b"# scopedown report", b"<title>scopedown"))


def check_target(target: str | None, case: Case) -> None:
    """Refuse to write over evidence or onto a folder: ``--json FILE`` takes the word behind it, also where that was
    meant to be the case. Raises UsageError."""
    path = Path(target or "-")
    if str(path) == "-" or not path.exists():
        return
    if path.is_file() and not _ours(path):
        raise UsageError(
            f"{path} is no report of scopedown and would be written over: name another file, and write it last "
            "(scopedown diagnose CASE --json FILE)"
        )
    if path.is_dir() or any(path.samefile(e.path) for e in case.evidence if e.path.exists()):
        raise UsageError(f"{path} would be written over: name case and files first, then --json or --markdown")
