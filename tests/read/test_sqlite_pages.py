"""Tables read from their pages are what SQLite reads, or are left to SQLite."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scopedown.errors import InputError
from scopedown.read.nsys_tables import Database
from scopedown.read.sqlite_columns import read_table
from scopedown.read.sqlite_pages import Unsupported

Value = int | str | None
Row = tuple[Value, ...]

#: Around every width that SQLite stores integers in.
WIDTHS = [0, 1, -1, *(s * (2**b + d) for b in (7, 15, 23, 31, 47, 62) for d in (-1, 0, 1) for s in (1, -1)), 2**63 - 1]
integers = st.one_of(st.none(), st.sampled_from(WIDTHS), st.integers(-(2**63), 2**63 - 1))
texts = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.sampled_from(["", "step 7", "é", "a\0b"]),
    st.builds("x".__mul__, st.integers(100, 9000)),
)


@dataclass(frozen=True)
class Made:
    page: int
    columns: int
    text: int
    """Place of the text column among the integers."""
    rows: list[Row]
    gone: list[int]
    """Rows that are deleted again."""
    added: list[tuple[Value, Value]]
    """Rows from after two columns were added, one with a default."""
    key: bool
    """The first column is the row id."""


@st.composite
def tables(draw: st.DrawFn) -> Made:
    columns = draw(st.integers(1, 20))
    text = draw(st.integers(0, columns))
    one = st.tuples(*(texts if i == text else integers for i in range(columns + 1)))
    rows = draw(st.lists(one, max_size=40)) * draw(st.sampled_from([1, 1, 7]))
    return Made(
        draw(st.sampled_from([512, 1024, 4096, 65536])),
        columns,
        text,
        rows,
        draw(st.lists(st.integers(1, max(len(rows), 1)), max_size=5)),
        draw(st.lists(st.tuples(integers, integers), max_size=5)),
        draw(st.booleans()),
    )


def write(made: Made, path: Path) -> tuple[list[str], str]:
    """The file, and the names of its integer columns and of its text column."""
    names = [f"c{i}" for i in range(made.columns + 1)]
    kinds = ["TEXT" if i == made.text else "INTEGER" for i in range(len(names))]
    if made.key:
        names, kinds = ["id", *names], ["INTEGER PRIMARY KEY", *kinds]
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA page_size={made.page}")
        db.execute(f"CREATE TABLE t ({', '.join(map(' '.join, zip(names, kinds, strict=True)))})")
        given_ = [n for n in names if n != "id"]
        marks = ", ".join("?" * len(given_))
        db.executemany(f"INSERT INTO t ({', '.join(given_)}) VALUES ({marks})", made.rows)
        db.executemany("DELETE FROM t WHERE rowid = ?", [(i,) for i in made.gone])
        if made.added:
            db.execute("ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 42")
            db.execute("ALTER TABLE t ADD COLUMN later INT")
            db.executemany("INSERT INTO t (late, later) VALUES (?, ?)", made.added)
            names, kinds = [*names, "late", "later"], [*kinds, "INTEGER", "INT"]
        db.commit()
    return [n for n, k in zip(names, kinds, strict=True) if k != "TEXT"], f"c{made.text}"


def by_sqlite(db: sqlite3.Connection, integers_of: Sequence[str], text: str) -> list[Row]:
    names = [*(f"coalesce({c}, -7)" for c in integers_of), f"CAST({text} AS BLOB)"]
    return db.execute(f"SELECT {', '.join(names)} FROM t").fetchall()


def by_pages(db: sqlite3.Connection, path: Path, integers_of: Sequence[str], text: str) -> list[Row]:
    read = read_table(path, db, "t", dict.fromkeys(integers_of, -7), text)
    assert read.codes is not None
    assert sorted(set(read.codes.tolist()) - {-1}) == list(range(len(read.texts)))
    said = [None if c < 0 else read.texts[c] for c in read.codes.tolist()]
    return list(zip(*(read.columns[c].tolist() for c in integers_of), said, strict=True))


@given(tables())
@settings(max_examples=150, deadline=None)
def test_any_table_is_what_sqlite_reads(made: Made) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.sqlite"
        numbers, text = write(made, path)
        with closing(sqlite3.connect(path)) as db:
            assert by_pages(db, path, numbers, text) == by_sqlite(db, numbers, text)


@given(tables(), st.data())
@settings(max_examples=150, deadline=None)
def test_a_damaged_table_is_read_as_sqlite_reads_it_or_left_to_it(made: Made, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.sqlite"
        numbers, text = write(made, path)
        whole = bytearray(path.read_bytes())
        table = whole[made.page :]
        for _ in range(data.draw(st.integers(1, 3))):
            table[data.draw(st.integers(0, len(table) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(whole[: made.page] + table)
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as db:
            db.execute("PRAGMA cell_size_check=ON")
            try:
                read = by_pages(db, path, numbers, text)
            except (Unsupported, sqlite3.Error):
                return
            assert read == by_sqlite(db, numbers, text)


def test_a_tree_of_several_levels_with_texts_of_many_lengths(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    rows = [(i, -i * i, "n" * (i % 300), i % 3 or None) for i in range(20_000)]
    with closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA page_size=512; CREATE TABLE t (a INTEGER, b INTEGER, s TEXT, c INTEGER)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        db.commit()
        assert by_pages(db, path, ["a", "b", "c"], "s") == by_sqlite(db, ["a", "b", "c"], "s")


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE t (a INTEGER, s TEXT); INSERT INTO t VALUES (1.5, '')",
        "CREATE TABLE t (a INTEGER, s TEXT); INSERT INTO t VALUES ('one', '')",
        "CREATE TABLE t (a REAL, s TEXT); INSERT INTO t VALUES (1, '')",
        "CREATE TABLE t (a INTEGER, s TEXT); INSERT INTO t VALUES (1, x'00')",
        "CREATE TABLE t (a INTEGER, s ANY); INSERT INTO t VALUES (1, 2)",
        "CREATE TABLE t (a INTEGER, s TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO t VALUES (1, '')",
        "CREATE TABLE t (a INTEGER, s TEXT); CREATE INDEX i ON t (a, s)",
        "CREATE TABLE t (a INTEGER PRIMARY KEY DESC, s TEXT); INSERT INTO t VALUES (1, '')",
        "CREATE TABLE t (a INTEGER, s TEXT, d INTEGER GENERATED ALWAYS AS (a + 1))",
        "CREATE TABLE t (a INTEGER, s TEXT, rowid, _rowid_, oid)",
        "PRAGMA encoding='UTF-16'; CREATE TABLE t (a INTEGER, s TEXT)",
        "PRAGMA journal_mode=WAL; CREATE TABLE t (a INTEGER, s TEXT)",
        "CREATE VIEW t AS SELECT 1 AS a, '' AS s",
    ],
)
def test_what_is_not_plain_is_left_to_sqlite(tmp_path: Path, script: str) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script)
        db.commit()
        with pytest.raises(Unsupported):
            read_table(path, db, "t", {"a": 0}, "s")


def test_a_text_among_integers_is_said(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE t (a INTEGER, s TEXT); INSERT INTO t VALUES (1, ''), ('one', '')")
    with Database(path) as read, pytest.raises(InputError, match="expected integers"):
        read.ints("t", {"a": 0})


def test_rows_in_the_log_beside_the_file_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (5)")
        with Database(path) as read:
            assert read.ints("t", {"a": 0, "missing": 3})["a"].tolist() == [5]


def test_texts_get_their_codes_in_the_order_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    long = "long" * 5000
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (a INTEGER, s TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [(1, "b"), (2, None), (3, long), (4, "a"), (5, "b")])
        db.commit()
    met: list[str] = []

    def code(text: str) -> int:
        met.append(text)
        return 10 + len(met)

    with Database(path) as read:
        rows, codes = read.ints_and_text("t", {"a": 0, "missing": 3}, "s", code)
    assert met == ["b", long, "a"]
    assert codes.tolist() == [11, -1, 12, 13, 11]
    assert rows["a"].tolist() == [1, 2, 3, 4, 5]
    assert rows["missing"].dtype == np.int64
    assert rows["missing"].tolist() == [3] * 5
