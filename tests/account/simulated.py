"""Runs of the simulator with their accounts, made once a test session, and both against the truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from scopedown.account import intervals
from scopedown.account.account import Account, account
from scopedown.account.phases import Phase
from scopedown.account.replay import Scenario, without_waits
from scopedown.account.scenarios import Cut
from scopedown.account.segments import Segments
from scopedown.account.timeline import Ending, Timeline
from scopedown.simulate import SITUATIONS, Program, random_program, run
from scopedown.simulate.as_trace import as_trace
from scopedown.simulate.run import Run, Segment
from scopedown.simulate.situation import Situation
from scopedown.terms import Category

#: A copy that is staged by the host is its call's time: the machine calls the part in which its op could not start yet
#: ``launch``, the account ``host.copy``. Both say that the call took it.
SAME = {Category.HOST_COPY: Category.LAUNCH}


@dataclass(frozen=True)
class Ran:
    """A run and the account of what ``thread`` had done at ``hi``, back to ``lo``."""

    run: Run
    timeline: Timeline
    lo: int
    hi: int
    thread: int
    account: Account

    @property
    def total(self) -> int:
        return self.hi - self.lo


def accounted(r: Run, lo: int, hi: int, thread: int = 0) -> Ran:
    t = Timeline(as_trace(r))
    whole = [Phase(lo, hi, Category.UNACCOUNTED, "all of it")]
    return Ran(r, t, lo, hi, thread, account(whole, t, ending=Ending(hi, thread, -1), thread=thread))


@cache
def random_run(seed: int, steps: int = 12, max_threads: int = 9) -> Ran | None:
    """A random program, run and accounted for between its two marks; None where it has too many threads."""
    program = random_program(seed, steps)
    if len(program.threads) > max_threads:
        return None
    r = run(program)
    return accounted(r, r.mark("begin"), r.mark("end"))


@cache
def situation_run(name: str, seed: int) -> tuple[Situation, Ran] | None:
    """A situation of the simulator over its service phase; None where it has no trace."""
    s = SITUATIONS[name](seed)
    if s.run is None:
        return None
    begin = s.run.mark("scheduled")
    return s, accounted(s.run, begin, s.run.mark(s.token_marks[-1]), s.thread)


def agreement(true: list[Segment], mine: Segments) -> float:
    """Share of the instants at which two partitions of one interval name the same category."""

    def merged(code: np.ndarray) -> np.ndarray:
        for one, other in SAME.items():
            code = np.where(code == one.code, other.code, code)
        return code

    start, end = np.array([s.start for s in true]), np.array([s.end for s in true])
    a, b, i, j = intervals.intersect(start, end, mine.start, mine.end)
    same = merged(np.array([s.category.code for s in true]))[i] == merged(mine.category)[j]
    return float((b - a)[same].sum() / max((end - start).sum(), 1))


def without_tag(ran: Ran, tag: str) -> Cut:
    """Takes a cause of the program out of the account: the program's own list says which time is the cause's."""
    t = ran.timeline
    scenario = Scenario(0.0)
    for thread, pieces in enumerate(ran.run.recorded.pieces):
        mine = [(p.start, p.end) for p in pieces if p.tag == tag]
        if mine:
            start, end = intervals.union(*np.array(mine, np.int64).T)
            calls = t.calls
            own = np.zeros(len(calls), bool)
            for a, b in mine:
                own |= (calls.thread == thread) & (calls.start < b) & (calls.end > a)
            scenario.host[thread] = without_waits(t.graph, thread, start, end, own)
    ops = sorted(ran.run.recorded.ops, key=lambda o: (o.start, o.end, o.device, o.stream, o.correlation))
    tagged = np.array([o.work.tag == tag for o in ops], bool)
    scenario.ops = tagged if tagged.any() else None
    return Cut(scenario, np.zeros(len(ran.account.path), bool), 0, 0)


def nothing(ran: Ran) -> Cut:
    return Cut(Scenario(), np.zeros(len(ran.account.path), bool), 0, 0)


def length(program: Program) -> int:
    r = run(program)
    return r.mark("end") - r.mark("begin")
