"""Access to a Nsight Systems SQLite export whose tables and columns are not known beforehand.

Tables exist only where they have rows (except in 2026.2), columns came and went over 30 schema versions: everything
is tested for, nothing is derived from a version. Rows leave as int64 columns; NULL becomes a default of the caller.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import quote

import numpy as np

from scopedown.errors import InputError
from scopedown.read.sqlite_columns import Table, read_table
from scopedown.read.sqlite_pages import Unsupported
from scopedown.trace.model import NONE, Codes, Ints

MAGIC = b"SQLite format 3\0"

#: NULL where no other value can stand for it.
MISSING = int(np.iinfo(np.int64).min)

_BATCH = 65536


class Database:
    """A SQLite file, opened read only. Use as a context manager; raises InputError for what SQLite cannot read."""

    again: ClassVar[str] = "export it again: nsys export --type sqlite -o NEW.sqlite REPORT.nsys-rep"
    """What to do about a damaged file."""

    def __init__(self, path: Path, named: Path | None = None) -> None:
        """``named``: what errors call the file, where ``path`` is a copy of it."""
        self.path = named or path
        self._file = path
        self._strings: dict[int, str] | None = None
        # "immutable" takes no locks and writes no side files, so that a read-only folder will do. It also ignores a
        # write-ahead log: where one holds rows, SQLite has to read it and may need to write beside the file.
        wal = Path(f"{path}-wal")
        mode = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
        with self._reading("schema"):
            self._db = sqlite3.connect(f"file:{quote(os.fsencode(path.absolute()))}?{mode}", uri=True)
            try:
                self._db.text_factory = lambda raw: raw.decode("utf-8", "replace")
                # The file is data: functions in its schema must not run.
                self._db.execute("PRAGMA trusted_schema=OFF")
                self._db.execute("PRAGMA cell_size_check=ON")
                found = self._db.execute(
                    "SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
                ).fetchall()
                self.columns: dict[str, frozenset[str]] = {
                    name: frozenset(
                        row[0] for row in self._db.execute("SELECT name FROM pragma_table_info(?)", (name,))
                    )
                    for (name,) in found
                }
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @contextmanager
    def _reading(self, where: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError) as e:
            # SQLite quotes the damaged bytes in its message, which then cannot be decoded.
            said = "malformed schema" if isinstance(e, UnicodeDecodeError) else " ".join(str(e).split())
            raise InputError(
                self.path,
                where,
                f"expected a whole SQLite database, SQLite says: {said}",
                self.again,
            ) from None

    def has(self, table: str, *columns: str) -> bool:
        """Whether the table exists and has all these columns."""
        return table in self.columns and self.columns[table].issuperset(columns)

    def rows(self, table: str, *columns: str, where: str = "") -> list[tuple[Any, ...]]:
        """All rows of a small table; None for NULL and for columns that do not exist; [] without the table."""
        if table not in self.columns:
            return []
        names = ", ".join(_quoted(c) if c in self.columns[table] else "NULL" for c in columns)
        with self._reading(f"table {table}"):
            return self._db.execute(f"SELECT {names} FROM {_quoted(table)} {where}").fetchall()  # noqa: S608

    def ints(self, table: str, defaults: Mapping[str, int], sql: str = "") -> dict[str, Ints]:
        """Integer columns of a table, in the file's order: one int64 array a key of ``defaults``, which hold the
        default where the value is NULL or the column does not exist. ``sql`` replaces the table as a subquery."""
        present = [c for c in defaults if c in self.columns.get(table, ())]
        empty = np.empty(0, np.int64)
        if not present:
            return dict.fromkeys(defaults, empty)
        read = None if sql else self._from_pages(table, {c: defaults[c] for c in present})
        if read is not None:
            return _completed(read.columns, defaults)
        names = ", ".join(f"coalesce({_quoted(c)}, {defaults[c]})" for c in present)
        with self._reading(f"table {table}"):
            cursor = self._db.execute(f"SELECT {names} FROM {sql or _quoted(table)}")  # noqa: S608
            with self._integers(table, present, sql):
                flat = np.fromiter(chain.from_iterable(cursor), np.int64)
        block = np.ascontiguousarray(flat.reshape(-1, len(present)).T)
        return _completed(dict(zip(present, block, strict=True)), defaults)

    def ints_and_text(
        self, table: str, defaults: Mapping[str, int], text: str, code: Callable[[str], int]
    ) -> tuple[dict[str, Ints], Codes]:
        """As ``ints``, with one text column as codes beside it (NONE for NULL)."""
        if not self.has(table, text):
            columns = self.ints(table, defaults)
            return columns, np.full(len(next(iter(columns.values()))), NONE, np.int32)
        present = [c for c in defaults if c in self.columns[table]]
        read = self._from_pages(table, {c: defaults[c] for c in present}, text) if present else None
        if read is not None and read.codes is not None:
            known = np.array([*(code(t.decode("utf-8", "replace")) for t in read.texts), NONE], np.int32)
            return _completed(read.columns, defaults), known[read.codes]
        names = ", ".join([f"coalesce({_quoted(c)}, {defaults[c]})" for c in present] + [_quoted(text)])
        parts: list[Ints] = []
        codes: list[Codes] = []
        with self._reading(f"table {table}"):
            cursor = self._db.execute(f"SELECT {names} FROM {_quoted(table)}")  # noqa: S608
            while rows := cursor.fetchmany(_BATCH):
                *numbers, texts = zip(*rows, strict=True)
                with self._integers(table, present):
                    parts.append(np.array(numbers, np.int64).reshape(len(present), len(rows)))
                codes.append(np.fromiter((NONE if t is None else code(str(t)) for t in texts), np.int32, len(rows)))
        block = np.concatenate(parts, axis=1) if parts else np.empty((len(present), 0), np.int64)
        full = _completed(dict(zip(present, block, strict=True)), defaults)
        return full, np.concatenate(codes) if codes else np.empty(0, np.int32)

    def _from_pages(self, table: str, defaults: Mapping[str, int], text: str | None = None) -> Table | None:
        """The same without SQLite's virtual machine, where the file is plain enough for that."""
        with self._reading(f"table {table}"):
            try:
                return read_table(self._file, self._db, table, defaults, text)
            except (Unsupported, OSError):
                return None

    @contextmanager
    def _integers(self, table: str, columns: Sequence[str], sql: str = "") -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, OverflowError) as e:
            other = "typeof({0}) IN ('text', 'blob') OR typeof({0}) = 'real' AND abs({0}) >= 9e18"
            of = sql or _quoted(table)
            column = next(
                (
                    f", column {c}"
                    for c in columns
                    if self._db.execute(f"SELECT 1 FROM {of} WHERE {other.format(_quoted(c))} LIMIT 1").fetchone()  # noqa: S608
                ),
                "",
            )
            raise InputError(
                self.path,
                f"table {table}{column}",
                f"expected integers, found something else ({e})",
                self.again,
            ) from None

    @property
    def strings(self) -> dict[int, str]:
        """``StringIds``: what the name columns of all tables refer to."""
        if self._strings is None:
            self._strings = {i: str(v) for i, v in self.rows("StringIds", "id", "value") if v is not None}
        return self._strings


def _completed(columns: Mapping[str, Ints], defaults: Mapping[str, int]) -> dict[str, Ints]:
    """All columns of ``defaults``, in their order: what the table lacks is the default."""
    n = len(next(iter(columns.values())))
    return {c: columns[c] if c in columns else np.full(n, d, np.int64) for c, d in defaults.items()}


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
