"""The public Nsight Systems files and what the product answers on each, worked out once a run."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path
from sqlite3 import Connection, connect
from typing import Any
from urllib.parse import quote

from scopedown import InputError, Options, Report, diagnose, load
from shared_data import SHARED

NSYS = SHARED / "data" / "nsys"
TABLE = Path(__file__).with_name("answers.tsv")
HEAD = ("file", "kind", "scope", "total_ns", "largest")


def files() -> list[str]:
    """Names below data/nsys: exports, raw reports, the pointer, and the captures made for the project."""
    if not NSYS.is_dir():
        return []
    found = [p for p in (*NSYS.iterdir(), *(NSYS / "made_here").glob("*.sqlite*")) if p.is_file()]
    return sorted(p.relative_to(NSYS).as_posix() for p in found)


@cache
def answer(name: str, begin: int | None = None, end: int | None = None) -> Report | InputError:
    """The report on a bare file, without a complaint, over the captured window or from ``begin`` to ``end`` (ns)."""
    options = Options(cache=False, begin=None if begin is None else str(begin), end=None if end is None else str(end))
    try:
        return diagnose(load([NSYS / name]), options)
    except InputError as error:
        return error


def report(name: str, begin: int | None = None, end: int | None = None) -> Report:
    found = answer(name if name.endswith((".sqlite", ".gz")) else f"{name}.sqlite", begin, end)
    assert isinstance(found, Report), found
    return found


def by_category(r: Report) -> Counter[str]:
    sums: Counter[str] = Counter()
    for line in r.ledger.lines:
        sums[line.category] += line.ns
    return sums


def row(name: str) -> tuple[str, ...]:
    """A line of the table."""
    found = answer(name)
    if isinstance(found, InputError):
        return name, "refused", "-", "-", "-"
    sums = by_category(found)
    largest = min(sums, key=lambda c: (-sums[c], c))
    return name, str(found.decision.kind), str(found.decision.scope), str(found.ledger.total_ns), largest


def table() -> dict[str, tuple[str, ...]]:
    """The committed answers by file."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    assert tuple(lines[0].split("\t")) == HEAD
    return {(cells := tuple(line.split("\t")))[0]: cells for line in lines[1:]}


def database(name: str) -> closing[Connection]:
    """The file itself, for figures that do not come from the product."""
    where = quote(str(NSYS / f"{name}.sqlite"))
    connection = connect(f"file:{where}?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return closing(connection)


def ops(name: str) -> list[tuple[Any, ...]]:
    """(start, end, device, process, correlation, what) of all device ops, by start; ``what`` is K, C or M."""
    found = []
    with database(name) as c:
        tables = {t for (t,) in c.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table_name, what in (("KERNEL", "K"), ("MEMCPY", "C"), ("MEMSET", "M")):
            if f"CUPTI_ACTIVITY_KIND_{table_name}" in tables:
                found += c.execute(
                    f"SELECT start, end, deviceId, globalPid, correlationId, '{what}' "
                    f"FROM CUPTI_ACTIVITY_KIND_{table_name}"
                ).fetchall()
    return sorted(found)


def gaps(rows: list[tuple[Any, ...]]) -> list[tuple[int, int, str, str]]:
    """(start, end, what before, what after) of the idle stretches between ops of one device."""
    found = []
    until, before = rows[0][1], rows[0][5]
    for start, end, *_, what in rows[1:]:
        if start > until:
            found.append((until, start, before, what))
        if end > until:
            until, before = end, what
    return found


if __name__ == "__main__":
    print("\n".join("\t".join(r) for r in (HEAD, *map(row, files()))))
