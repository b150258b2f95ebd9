"""Files that are there whole or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_atomic(path: Path, data: bytes) -> None:
    """Write beside the target, then rename. Raises OSError that names the target, which is then left as it was.

    A link is followed. What is no regular file (a device, a pipe) is written to, never replaced.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        try:
            with path.open("wb", buffering=0) as special:
                special.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from None
        return
    _whole(path, lambda file: file.write(data))


def copy_whole(source: Path, target: Path) -> str:
    """Copy beside the target, then rename. Returns the SHA-256 of what was written. Raises OSError."""
    digest = hashlib.sha256()

    def write(file: BinaryIO) -> None:
        with source.open("rb") as read:
            while piece := read.read(1 << 20):
                digest.update(piece)
                file.write(piece)

    _whole(target, write)
    return digest.hexdigest()


def _whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
