"""Columns of a SQLite table from its leaf pages (``sqlite_pages``): int64 values, and one column of texts.

Records of one table have few different headers (the storage classes and lengths of their values). Rows with the same
header are taken together: then a column lies at one distance from the record's begin, and is one gather of the eight
bytes that *end* with the value, of which the sign is extended. Where there are many headers (texts of many lengths),
the columns are walked one by one.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scopedown.read.sqlite_pages import Bytes, Pages, leaf_cells, refuse, varint
from scopedown.trace.model import NONE, Codes, Ints, Mask

#: Bytes of integers by serial type; 8 and 9 are the constants 0 and 1, 7 is a float.
_BYTES = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0], np.int64)
_FLOAT = 7
_FIRST_TEXT = 13
#: So many headers, of which none has so many rows, and the columns are walked.
_HEADERS, _ROWS = 48, 256
#: Longer headers belong to tables of more than a hundred columns; a longer type to a text of two megabytes.
_LONGEST_HEADER, _LARGEST_TYPE = 16_000, 1 << 21
#: Rows that SQLite is asked for one by one: records that go on on another page, or end before a column with a default.
_ASKED = 20_000


@dataclass(frozen=True, slots=True)
class Table:
    columns: dict[str, Ints]
    codes: Codes | None
    """Index into ``texts``, NONE for NULL."""
    texts: list[bytes]
    """In the order in which they occur."""


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    place: int
    default: int
    """Of the caller, where the value is NULL."""
    is_rowid: bool
    added: bool
    """The schema has a default for rows that are older than the column."""


def read_table(path: Path, db: sqlite3.Connection, table: str, defaults: Mapping[str, int], text: str | None) -> Table:
    """All rows in the order of the table: the columns that are keys of ``defaults`` (which stand for NULL), and a
    column of text. Raises Unsupported where only SQLite can read the table, sqlite3.Error as SQLite does."""
    return _Reader(path, db, table, defaults, text).read()


class _Reader:
    def __init__(
        self, path: Path, db: sqlite3.Connection, table: str, defaults: Mapping[str, int], text: str | None
    ) -> None:
        self.path, self.db, self.table, self.text = path, db, table, text
        found = db.execute("SELECT rootpage, sql FROM sqlite_master WHERE type='table' AND name=?", (table,)).fetchall()
        refuse(len(found) != 1 or not isinstance(found[0][0], int) or found[0][0] < 2, "no table of its own")
        self.root = int(found[0][0])
        info = db.execute(
            'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)', (table,)
        ).fetchall()
        refuse(any(row[5] for row in info), "columns that are computed")
        # A scan may follow an index that holds all columns, in its own order.
        refuse(bool(db.execute("SELECT 1 FROM pragma_index_list(?)", (table,)).fetchall()), "an index")
        keys = [row for row in info if row[4]]
        names = [row[0] for row in info]
        alias = keys[0][0] if len(keys) == 1 and keys[0][1].upper() == "INTEGER" else None
        refuse(
            alias is not None and re.search(r"\bDESC\b", str(found[0][1]), re.IGNORECASE) is not None, "descending key"
        )
        self.rowid = next((n for n in ("rowid", "_rowid_", "oid") if n not in {x.lower() for x in names}), "")
        refuse(not self.rowid, "no name for the row id")
        self.columns = []
        for name, default in defaults.items():
            place = names.index(name)
            refuse("INT" not in info[place][1].upper(), "not an integer column")
            self.columns.append(_Column(name, place, default, name == alias, info[place][3] is not None))
        self.text_place = NONE
        if text is not None:
            self.text_place = names.index(text)
            kind = info[self.text_place][1].upper()
            refuse("INT" in kind or not any(k in kind for k in ("TEXT", "CHAR", "CLOB")), "not a text column")
            refuse(info[self.text_place][3] is not None, "a default text")
        self.last = max([c.place for c in self.columns] + [self.text_place])
        self.seen = _Seen()
        self.asked = 0

    def read(self) -> Table:
        whole = [_Growing(np.dtype(np.int64)) for _ in self.columns]
        codes = _Growing(np.dtype(np.int32))
        before = np.iinfo(np.int64).min
        with Pages(self.path) as pages:
            for buf, count, leaves in pages.leaves(self.root):
                length, rowid, at, local = leaf_cells(buf, count, pages.size, only=leaves == 1)
                if not len(rowid):
                    continue
                # Rows are found by their ids, and a scan is in their order, in every tree that is whole.
                refuse(bool(rowid[0] <= before or (rowid[1:] <= rowid[:-1]).any()), "order of the rows")
                before = rowid[-1]
                rows = _Chunk(self, buf, length, rowid, at, local)
                likely = len(rowid) * leaves // count
                for column, values in zip(whole, rows.values, strict=True):
                    column.add(values, likely)
                if self.text is not None:
                    codes.add(rows.codes(), likely)
        columns = {c.name: column.values() for c, column in zip(self.columns, whole, strict=True)}
        return Table(columns, codes.values() if self.text is not None else None, list(self.seen))

    def ask(self, rowids: list[int]) -> list[tuple[list[int], bytes | None]]:
        """Rows as SQLite reads them: the integers in order, and the text."""
        self.asked += len(rowids)
        refuse(self.asked > _ASKED, "too many rows to ask for")
        names = [f"coalesce({_quoted(c.name)}, {c.default})" for c in self.columns]
        names.append(f"CAST({_quoted(self.text)} AS BLOB)" if self.text is not None else "NULL")
        sql = f"SELECT {', '.join(names)} FROM {_quoted(self.table)} WHERE {self.rowid} = ?"  # noqa: S608
        rows: list[tuple[list[int], bytes | None]] = []
        for i in rowids:
            found = self.db.execute(sql, (i,)).fetchall()
            refuse(len(found) != 1, "a row that its id does not find")
            *numbers, text = found[0]
            refuse(any(type(v) is not int for v in numbers), "not an integer")
            refuse(text is not None and type(text) is not bytes, "not a text")
            rows.append((numbers, text))
        return rows


class _Chunk:
    """The rows of some leaf pages."""

    def __init__(self, reader: _Reader, buf: Bytes, length: Ints, rowid: Ints, at: Ints, local: Mask) -> None:
        self.r, self.buf, self.rowid, self.at = reader, buf, rowid, at
        self.end = at + length
        n = len(rowid)
        self.eight = np.ndarray((len(buf) - 7,), ">i8", buffer=buf, strides=(1,))
        self.words = np.ndarray((len(buf) - 7,), "<u8", buffer=buf, strides=(1,))
        self.values = [np.empty(n, np.int64) for _ in reader.columns]
        self.text_at, self.text_end = np.zeros(n, np.int64), np.full(n, NONE, np.int64)
        self.spilled: dict[int, bytes | None] = {}
        inside = np.flatnonzero(local)
        self.header = np.zeros(n, np.int64)
        self.header[inside], _ = varint(buf, at[inside])
        refuse(bool((self.header[inside] < 1).any()), "length of a header")
        refuse(bool((self.header > np.minimum(length, _LONGEST_HEADER)).any()), "length of a header")
        self.short = np.zeros(n, np.bool_)
        self._by_header(inside)
        self._ask(np.flatnonzero(~local | self.short))

    def _by_header(self, todo: Ints) -> None:
        at, header = self.at, self.header
        headers = 0
        while len(todo):
            one = int(todo[0])
            size = int(header[one])
            same = np.ones(len(todo), np.bool_)
            for word in range(0, size, 8):
                differs = self.words[at[todo] + word] ^ self.words[at[one] + word]
                if size - word < 8:
                    differs &= np.uint64((1 << 8 * (size - word)) - 1)
                same &= differs == 0
            rows = todo[same]
            headers += 1
            if headers > _HEADERS and len(rows) < _ROWS:
                self._walk(todo)
                return
            self._together(rows, bytes(self.buf[at[one] : at[one] + size]))
            todo = todo[~same]

    def _together(self, rows: Ints, header: bytes) -> None:
        """Rows of one header."""
        types = _types(header)
        offsets, size = [], len(header)
        for t in types:
            offsets.append(size)
            size += int(_BYTES[t]) if t < 10 else (t - 12) // 2
        begin = self.at[rows]
        refuse(bool((self.end[rows] - begin != size).any()), "length of a record")
        for c, out in zip(self.r.columns, self.values, strict=True):
            if c.is_rowid:
                out[rows] = self.rowid[rows]
                continue
            t = types[c.place] if c.place < len(types) else 0
            if c.place >= len(types) and c.added:
                self.short[rows] = True
            elif t == 0:
                out[rows] = c.default
            elif t in (8, 9):
                out[rows] = t - 8
            else:
                refuse(t == _FLOAT or t > 9, "not an integer")
                width = int(_BYTES[t])
                value = self.eight[begin + (offsets[c.place] + width - 8)].astype(np.int64)
                out[rows] = value << 64 - 8 * width >> 64 - 8 * width
        if self.r.text is not None and self.r.text_place < len(types):
            t = types[self.r.text_place]
            if t:
                refuse(t < _FIRST_TEXT or t % 2 == 0, "not a text")
                self.text_at[rows] = begin + offsets[self.r.text_place]
                self.text_end[rows] = begin + offsets[self.r.text_place] + (t - 13) // 2

    def _walk(self, rows: Ints) -> None:
        """Rows of many headers: column by column."""
        at, end = self.at[rows], self.end[rows]
        header_end = at + self.header[rows]
        _, pos = varint(self.buf, at)
        body = header_end.copy()
        wanted: dict[int, tuple[_Column, Ints]] = {
            c.place: (c, out) for c, out in zip(self.r.columns, self.values, strict=True)
        }
        for place in range(self.r.last + 1):
            there = pos < header_end
            types, after = varint(self.buf, np.where(there, pos, at))
            types = np.where(there, types, 0)
            refuse(bool(((types < 0) | (types > _LARGEST_TYPE) | (types == 10) | (types == 11)).any()), "type")
            pos = np.where(there, after, pos)
            size = np.where(types < 10, _BYTES[np.minimum(types, 9)], (types - 12) >> 1)
            refuse(bool(((pos > header_end) | (body + size > end)).any()), "a record")
            if place in wanted:
                c, out = wanted[place]
                self._column(rows, c, out, there, types, body, size)
            if place == self.r.text_place:
                refuse(bool(((types != 0) & ((types < _FIRST_TEXT) | (types % 2 == 0))).any()), "not a text")
                real = types != 0
                self.text_at[rows[real]] = body[real]
                self.text_end[rows[real]] = (body + size)[real]
            body = body + size
        refuse(bool(((pos == header_end) & (body != end)).any()), "length of a record")

    def _column(self, rows: Ints, c: _Column, out: Ints, there: Mask, types: Ints, body: Ints, size: Ints) -> None:
        if c.is_rowid:
            out[rows] = self.rowid[rows]
            return
        refuse(bool(((types == _FLOAT) | (types > 9)).any()), "not an integer")
        if c.added:
            self.short[rows[~there]] = True
        shift = 64 - 8 * np.clip(size, 1, 8)
        value = self.eight[body + np.maximum(size, 1) - 8].astype(np.int64) << shift >> shift
        value = np.where(types >= 8, types - 8, value)
        out[rows] = np.where(types == 0, c.default, value)

    def _ask(self, rows: Ints) -> None:
        if not len(rows):
            return
        for row, found in zip(rows.tolist(), self.r.ask(self.rowid[rows].tolist()), strict=True):
            numbers, text = found
            for out, value in zip(self.values, numbers, strict=True):
                out[row] = value
            if self.r.text is not None:
                self.spilled[row], self.text_end[row] = text, NONE

    def codes(self) -> Codes:
        """Texts as indices into the reader's dictionary."""
        seen, raw = self.r.seen, self.buf.tobytes()
        known = np.flatnonzero(self.text_end != NONE)
        begin, end = self.text_at[known].tolist(), self.text_end[known].tolist()
        texts = [raw[b:e] for b, e in zip(begin, end, strict=True)]
        if self.spilled:
            # In the order of rows, as the dictionary is.
            whole = {**dict(zip(known.tolist(), texts, strict=True)), **self.spilled}
            rows = sorted(row for row, text in whole.items() if text is not None)
            known, texts = np.array(rows, np.int64), [t for row in rows if (t := whole[row]) is not None]
        codes = np.full(len(self.rowid), NONE, np.int32)
        codes[known] = np.fromiter(map(seen.__getitem__, texts), np.int32, len(texts))
        return codes


class _Growing:
    """A column that is filled from its beginning. Thousands of small parts, joined at the end, would leave holes in
    the memory of the process as large as themselves."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._held, self._count = np.empty(0, kind), 0

    def add(self, values: npt.NDArray[Any], likely: int) -> None:
        """``likely``: how many there will be."""
        until = self._count + len(values)
        if until > len(self._held):
            grown = np.empty(max(likely + likely // 16, until + until // 4), self._held.dtype)
            grown[: self._count] = self._held[: self._count]
            self._held = grown
        self._held[self._count : until] = values
        self._count = until

    def values(self) -> npt.NDArray[Any]:
        self._held.resize(self._count, refcheck=False)
        return self._held


class _Seen(dict[bytes, int]):
    """Texts numbered as they come."""

    def __missing__(self, text: bytes) -> int:
        number = self[text] = len(self)
        return number


def _types(header: bytes) -> list[int]:
    """Serial types of a record's values."""
    found: list[int] = []
    value = length = 0
    for byte in header:
        value, length = value << 7 | byte & 0x7F, length + 1
        refuse(length > 4, "a type")
        if byte < 0x80:
            refuse(value in (10, 11) and len(found) > 0, "a type")
            found.append(value)
            value = length = 0
    refuse(length > 0, "a header that ends within a type")
    return found[1:]


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
