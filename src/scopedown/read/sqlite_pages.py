"""The pages of a SQLite file's table b-trees, read without SQLite: https://www.sqlite.org/fileformat2.html.

A table of a million rows costs SQLite one step of its virtual machine a value and Python one object a value. Its leaf
pages hold the same bytes in the same order. What is read here is refused (``Unsupported``) wherever it is not the
plain case: then SQLite itself reads the table, and says what is wrong with it. Files are not trusted: every check of
SQLite's own page and cell sizes (``PRAGMA cell_size_check``) is made before an offset is followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from scopedown.trace.model import Ints, Mask

Bytes = npt.NDArray[np.uint8]

_MAGIC = b"SQLite format 3\0"
_LEAF, _INTERIOR = 13, 5
#: Bytes after the pages of a chunk, so that what begins in the last page may be read eight bytes at a time.
PAD = 128
#: Half a megabyte of pages at a time stays in the second-level cache.
_CHUNK = 512 * 1024
#: SQLite follows no deeper tree (BTCURSOR_MAX_DEPTH).
_DEEPEST = 20
#: The byte of the file that locks are taken on: its page holds nothing.
_LOCK_BYTE = 0x40000000


class Unsupported(Exception):
    """Not the plain case: SQLite has to read this."""


def refuse(when: bool | np.bool_, why: str) -> None:
    if when:
        raise Unsupported(why)


class Pages:
    """A file's pages. Use as a context manager. Raises Unsupported for write-ahead logs and journals, other encodings
    than UTF-8, reserved bytes, and a file of another length than its header says."""

    def __init__(self, path: Path) -> None:
        for beside in ("-wal", "-journal"):
            side = Path(f"{path}{beside}")
            refuse(side.exists() and side.stat().st_size > 0, "changes beside the file")
        self._file = path.open("rb", buffering=0)
        try:
            head = self._file.read(100)
            size = int.from_bytes(head[16:18], "big")
            self.size = 65536 if size == 1 else size
            refuse(len(head) < 100 or head[:16] != _MAGIC, "header")
            refuse(self.size < 512 or self.size.bit_count() != 1, "size of a page")
            refuse(head[18:24] != b"\x01\x01\x00\x40\x20\x20", "write-ahead log or reserved bytes")
            refuse(int.from_bytes(head[56:60], "big") != 1, "not UTF-8")
            self.count = int.from_bytes(head[28:32], "big")
            refuse(self.count * self.size != path.stat().st_size, "length")
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, numbers: Ints) -> Bytes:
        """The pages one after another, and PAD zeros."""
        refuse(bool(((numbers < 2) | (numbers > self.count)).any()), "page number")
        refuse(bool((numbers == _LOCK_BYTE // self.size + 1).any()), "page of the locks")
        out = bytearray(len(numbers) * self.size + PAD)
        view, at = memoryview(out), 0
        for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
            until = at + len(run) * self.size
            self._file.seek((int(run[0]) - 1) * self.size)
            while at < until:
                got = self._file.readinto(view[at:until]) or 0
                refuse(got == 0, "the file ends early")
                at += got
        return np.frombuffer(out, np.uint8)

    def leaves(self, root: int) -> Iterator[tuple[Bytes, int, int]]:
        """The leaf pages of a table in order: chunks of pages, how many they are, and how many the table has."""
        level = np.array([root], np.int64)
        step = max(_CHUNK // self.size, 1)
        for _ in range(_DEEPEST):
            # All pages of a level are of one kind, in a tree that SQLite has built.
            first = self.read(level[:1])[0]
            if first == _LEAF:
                for i in range(0, len(level), step):
                    part = level[i : i + step]
                    yield self.read(part), len(part), len(level)
                return
            refuse(first != _INTERIOR, "kind of page")
            parts = [self._children(level[i : i + step]) for i in range(0, len(level), step)]
            level = np.concatenate(parts)
            refuse(len(level) > self.count, "more pages than the file has")
        raise Unsupported("depth")

    def _children(self, numbers: Ints) -> Ints:
        """The pages below some interior pages, in order."""
        buf = self.read(numbers)
        page, cells, at, end = cell_places(buf, len(numbers), self.size, _INTERIOR, least=1)
        _, after = varint(buf, at + 4)
        refuse(bool((after > end).any()), "cell beyond its page")
        out = np.empty(len(at) + len(numbers), np.int64)
        last = np.cumsum(cells + 1) - 1
        mask = np.ones(len(out), np.bool_)
        mask[last] = False
        out[mask] = _be32(buf, at)
        out[last] = _be32(buf, page + 8)
        return out


def cell_places(buf: Bytes, pages: int, size: int, kind: int, least: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Of consecutive pages of one kind: the begin of each page and its number of cells; of all cells the begin, and
    the end of the page that each lies in."""
    page = np.arange(pages, dtype=np.int64) * size
    head = 8 if kind == _LEAF else 12
    cells = _be16(buf, page + 3)
    refuse(bool((buf[page] != kind).any()), "kind of page")
    refuse(bool(((cells > (size - 8) // 6) | (cells < least)).any()), "number of cells")
    begin = np.repeat(page, cells)
    nth = np.arange(int(cells.sum())) - np.repeat(np.cumsum(cells) - cells, cells)
    offset = _be16(buf, begin + head + 2 * nth)
    highest = size - 4 if kind == _LEAF else size - 5
    refuse(bool(((offset < head + 2 * np.repeat(cells, cells)) | (offset > highest)).any()), "place of a cell")
    return page, cells, begin + offset, begin + size


def leaf_cells(buf: Bytes, pages: int, size: int, *, only: bool) -> tuple[Ints, Ints, Ints, Mask]:
    """The cells of some leaf pages: length of the record, row id, where the record begins, and whether all of it lies
    in the page. ``only``: the leaf is the whole table, which may be empty."""
    _, _, at, end = cell_places(buf, pages, size, _LEAF, least=0 if only else 1)
    length, pos = varint(buf, at)
    rowid, pos = varint(buf, pos)
    refuse(bool(((length < 0) | (length >= 2**31)).any()), "length of a record")
    most = size - 35
    local = length <= most
    # What stays in the page of a record that goes on elsewhere, with the number of the page where it does.
    smallest = (size - 12) * 32 // 255 - 23
    kept = smallest + (length - smallest) % (size - 4)
    kept = np.where(kept > most, smallest, kept) + 4
    refuse(bool((np.maximum(pos + np.where(local, length, kept), at + 4) > end).any()), "cell beyond its page")
    return length, rowid, pos, local


def varint(buf: Bytes, pos: Ints) -> tuple[Ints, Ints]:
    """Values of one to nine bytes, seven bits each but for the ninth, and where they end."""
    byte = buf[pos].astype(np.int64)
    value, pos = byte & 0x7F, pos + 1
    more = np.flatnonzero(byte >= 0x80)
    for k in range(8):
        if not len(more):
            break
        byte = buf[pos[more]].astype(np.int64)
        pos[more] += 1
        if k == 7:
            value[more] = value[more] << 8 | byte
            break
        value[more] = value[more] << 7 | byte & 0x7F
        more = more[byte >= 0x80]
    return value, pos


def _be16(buf: Bytes, pos: Ints) -> Ints:
    return buf[pos].astype(np.int64) << 8 | buf[pos + 1]


def _be32(buf: Bytes, pos: Ints) -> Ints:
    return _be16(buf, pos) << 16 | _be16(buf, pos + 2)
