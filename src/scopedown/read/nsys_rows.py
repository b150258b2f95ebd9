"""Rows of a Nsight Systems export with their names, processes and threads: what all its event tables share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from scopedown.read import limits
from scopedown.read.nsys_tables import MISSING, Database
from scopedown.trace import tally
from scopedown.trace.model import NONE, Codes, Ints, Mask, Names, Process, Thread

#: CUPTI_SYNCHRONIZATION_INVALID_VALUE
_NO_ID = 0xFFFFFFFF


class Texts:
    """Ids of ``StringIds`` -> codes of the trace's dictionary."""

    def __init__(self, db: Database, names: Names) -> None:
        self.db = db
        self.names = names

    def codes(self, ids: Ints, unknown: str, change: Callable[[str], str] | None = None) -> Codes:
        """Codes of the texts, after ``change``; ``unknown`` for ids without text."""
        distinct, inverse = tally.index(ids)
        strings, code = self.db.strings, self.names.code
        texts = (strings.get(i) for i in distinct.tolist())
        known = [code((change(t) if change else t) if t else unknown) for t in texts]
        return np.array(known, np.int32)[inverse] if known else np.empty(0, np.int32)


class Actors:
    """Processes and threads that occur in the events, as indices in the order they are met.

    Nsight Systems packs the thread into bits 0 to 23 of ``globalTid``, the process into bits 24 to 47 and the machine
    above; ``globalPid`` is the same number with a zero thread.
    """

    THREAD_MASK = 0xFFFFFF

    def __init__(self, db: Database) -> None:
        self._program = {
            g: _program(str(n)) for g, n in db.rows("PROCESSES", "globalPid", "name") if isinstance(g, int) and n
        }
        strings = db.strings if db.has("ThreadNames") else {}
        self._thread_name = {
            t: strings.get(n, "") for n, t in db.rows("ThreadNames", "nameId", "globalTid") if isinstance(t, int)
        }
        self._process_of: dict[int, int] = {}
        self._thread_of: dict[int, int] = {}
        self.processes: list[Process] = []
        self.threads: list[Thread] = []

    def _process(self, global_pid: int) -> int:
        if global_pid == MISSING:
            return NONE
        found = self._process_of.get(global_pid)
        if found is None:
            found = self._process_of[global_pid] = len(self.processes)
            pid = global_pid >> 24 & 0xFFFFFF
            self.processes.append(Process(pid, self._program.get(global_pid, "")))
        return found

    def _thread(self, global_tid: int) -> int:
        if global_tid == MISSING:
            return NONE
        found = self._thread_of.get(global_tid)
        if found is None:
            process = self._process(global_tid & ~self.THREAD_MASK)
            found = self._thread_of[global_tid] = len(self.threads)
            tid = global_tid & self.THREAD_MASK
            self.threads.append(Thread(process, tid, self._thread_name.get(global_tid, "")))
        return found

    def of_pids(self, global_pids: Ints) -> Codes:
        """Process indices; NONE where the id is MISSING."""
        distinct, inverse = tally.index(global_pids)
        known = np.array([self._process(g) for g in distinct.tolist()], np.int32)
        return known[inverse] if len(known) else np.empty(0, np.int32)

    def of_tids(self, global_tids: Ints) -> tuple[Codes, Codes]:
        """Thread and process indices; NONE where the id is MISSING."""
        distinct, inverse = tally.index(global_tids)
        if not len(distinct):
            return np.empty(0, np.int32), np.empty(0, np.int32)
        known = np.array([self._thread(g) for g in distinct.tolist()], np.int32)
        owner = np.array([NONE if t == NONE else self.threads[t].process for t in known.tolist()], np.int32)
        return known[inverse], owner[inverse]

    def only_process(self) -> int:
        """The process of rows that name none: the only one there is, else an unnamed one of its own."""
        return 0 if len(self.processes) == 1 else self._process(0)


def _program(command: str) -> str:
    """The program's base name: an export may hold whole paths and command lines of the machine."""
    words = command.split()
    return words[0].rsplit("/", 1)[-1].rsplit("\\", 1)[-1] if words else ""


@dataclass
class Export:
    """One export on its way into columns. ``odd`` counts what was strange, by what is said of the count."""

    db: Database
    names: Names = field(default_factory=Names)
    odd: dict[str, int] = field(default_factory=dict)
    domains: int = 0
    """NVTX domains that were created."""

    def __post_init__(self) -> None:
        self.actors = Actors(self.db)
        self.texts = Texts(self.db, self.names)

    def note(self, what: str, count: int) -> None:
        if count:
            self.odd[what] = self.odd.get(what, 0) + count

    def timed(self, table: str, defaults: Mapping[str, int]) -> dict[str, Ints]:
        """Rows with a start and an end; rows without, or with times that none can be, are left out, ends before the
        start are set to it."""
        rows = self.db.ints(table, {"start": MISSING, "end": MISSING} | dict(defaults))
        whole = (rows["start"] != MISSING) & (rows["end"] != MISSING)
        if not whole.all():
            self.note(f"rows of {table} without start or end were left out", int((~whole).sum()))
            rows = {c: v[whole] for c, v in rows.items()}
        rows = self.where(rows, limits.lasting(rows["start"], rows["end"]), limits.NO_TIME.format(table))
        backward = rows["end"] < rows["start"]
        if backward.any():
            self.note(f"rows of {table} end before they start: taken as instants", int(backward.sum()))
            rows["end"] = np.maximum(rows["end"], rows["start"])
        return rows

    def where(self, rows: dict[str, Ints], keep: Mask, what: str) -> dict[str, Ints]:
        """The rows under a mask; ``what`` is said of the others, with their count."""
        if keep.all():
            return rows
        self.note(what, int((~keep).sum()))
        return {c: v[keep] for c, v in rows.items()}

    def processes(self, global_pids: Ints) -> Codes:
        """Process indices; rows that name no process belong to the only one there is."""
        process = self.actors.of_pids(global_pids)
        unknown = process == NONE
        if unknown.any():
            process[unknown] = self.actors.only_process()
        return process


def ids(values: Ints) -> Ints:
    """Ids of which 0 means none (correlation ids, graph nodes)."""
    return np.where(values == 0, NONE, values)


def ids_or_none(values: Ints) -> Ints:
    """Ids of which CUPTI's invalid value means none (streams and events of synchronisations)."""
    return np.where(values == _NO_ID, NONE, values)
