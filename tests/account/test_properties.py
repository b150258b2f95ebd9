"""What must hold of any trace, however odd: exact partitions, and a replay that never invents time."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from account.simulated import random_run
from account.strategies import Shape, asked, examples, shifted, sorted_ops, stacked, with_cut_ranges, with_stranger
from scopedown.account.account import Account, account, ledger_lines, window
from scopedown.account.groups import of_segments
from scopedown.account.phases import Phase
from scopedown.account.replay import Scenario
from scopedown.account.scenarios import Cut, category, kernels, predict
from scopedown.account.segments import Segments, by_category
from scopedown.account.timeline import Timeline
from scopedown.read.base import Source
from scopedown.read.nsys_sqlite import NsysSqlite
from scopedown.simulate import random_program, run, write_nsys
from scopedown.terms import Category
from scopedown.trace.model import OpKind, Trace

SEEDS = range(400, 410)
Asked = tuple[Trace, int, int]


def tiles(segs: Segments, lo: int, hi: int) -> None:
    assert (segs.end > segs.start).all()
    assert int(segs.start[0]) == lo
    assert int(segs.end[-1]) == hi
    assert (segs.start[1:] == segs.end[:-1]).all()


def exact(found: Account) -> None:
    tiles(found.path, found.lo, found.hi)
    lines = found.lines()
    assert sum(line.ns for line in lines) == found.total_ns
    assert all(line.ns > 0 and line.count > 0 for line in lines)
    assert sum(g.total_ns for g in of_segments(found.path)) == found.total_ns
    for d in found.devices:
        if len(d.segments):
            tiles(d.segments, int(d.segments.start[0]), int(d.segments.end[-1]))
        busy = np.isin(d.segments.category, [c.code for c in Category if c.startswith("device.")])
        assert int(d.segments.ns[busy].sum()) == d.busy_ns
        assert int((d.gaps.end - d.gaps.start).sum()) + d.busy_ns == int(d.segments.ns.sum())


@given(asked())
@examples(250)
def test_a_window_is_accounted_for_exactly(given_: Asked) -> None:
    trace, lo, hi = given_
    exact(window(Timeline(trace), lo, hi))


@given(asked(), st.integers(0, 2))
@examples(120)
def test_a_range_of_a_thread_is_accounted_for_exactly(given_: Asked, thread: int) -> None:
    trace, lo, hi = given_
    whole = [Phase(lo, hi, Category.UNACCOUNTED, "range")]
    exact(account(whole, Timeline(trace), thread=thread % len(trace.threads)))


@given(asked(), st.integers(1, 9))
@examples(120)
def test_phases_and_path_are_accounted_for_exactly(given_: Asked, cut: int) -> None:
    trace, lo, hi = given_
    middle = lo + (hi - lo) * cut // 10
    parts = [Phase(lo, middle, Category.QUEUE, "queue"), Phase(middle, hi, Category.UNACCOUNTED, "service")]
    found = account([p for p in parts if p.ns], Timeline(trace))
    exact(found)
    assert found.ns_of(Category.QUEUE) >= middle - lo


def empty(found: Account) -> Cut:
    return Cut(Scenario(), np.zeros(len(found.path), bool), 0, 0)


@given(asked())
@examples(250)
def test_nothing_taken_out_leaves_the_interval(given_: Asked) -> None:
    trace, lo, hi = given_
    found = window(Timeline(trace), lo, hi)
    assert predict(found, [empty(found)]) == [hi - lo]


@given(asked(), st.sampled_from([c for c in Category if c.startswith(("host.", "device."))] + [Category.LAUNCH]))
@examples(250)
def test_what_is_taken_out_never_prolongs(given_: Asked, chosen: Category) -> None:
    trace, lo, hi = given_
    found = window(Timeline(trace), lo, hi)
    cut, half, all_kernels = category(found, chosen), category(found, chosen, keep=0.5), kernels(found)
    nothing, gone, halved, bare = predict(found, [empty(found), cut, half, all_kernels])
    assert nothing == hi - lo
    assert 0 <= gone <= halved <= hi - lo
    assert 0 <= bare <= hi - lo


# One answer, however the same facts are written


def answer(found: Account, segs: Segments | None = None) -> dict[tuple[str, str], int]:
    return {(x.category, x.label): x.ns for x in ledger_lines(found.path if segs is None else segs, found)}


def answers(found: Account) -> list[dict[tuple[str, str], int]]:
    return [answer(found), *(answer(found, d.segments) for d in found.devices)]


@given(asked(), st.sampled_from((-(2**40), -1, 1, 10**9, 2**40)))
@examples(150)
def test_an_axis_may_begin_anywhere(given_: Asked, by: int) -> None:
    trace, lo, hi = given_
    here, moved = window(Timeline(trace), lo, hi), window(Timeline(shifted(trace, by)), lo + by, hi + by)
    assert answers(moved) == answers(here)
    assert predict(moved, [kernels(moved)]) == predict(here, [kernels(here)])


@given(asked())
@examples(150)
def test_names_of_kernels_and_ranges_only_label(given_: Asked) -> None:
    trace, lo, hi = given_
    new = {"gemm_kernel<float>(int)": "matmul<int>(float)", "small_kernel(float*)": "tiny(int)", "layer": "block"}
    other = replace(trace, names=[new.get(n, n) for n in trace.names])
    here, there = window(Timeline(trace), lo, hi), window(Timeline(other), lo, hi)
    assert by_category(there.path) == by_category(here.path)
    assert sorted(x.ns for x in there.lines()) == sorted(x.ns for x in here.lines())


@given(asked())
@examples(150)
def test_a_stranger_changes_nothing(given_: Asked) -> None:
    trace, lo, hi = given_
    whole = [Phase(lo, hi, Category.UNACCOUNTED, "range")]
    here = account(whole, Timeline(trace), thread=0)
    there = account(whole, Timeline(with_stranger(trace)), thread=0)
    assert answer(there) == answer(here)
    mine = {d.device: answer(here, d.segments) for d in here.devices}
    assert mine == {d.device: answer(there, d.segments) for d in there.devices if d.device in mine}


@given(asked(), st.integers(1, 19))
@examples(150)
def test_a_range_in_two_parts_is_the_same_range(given_: Asked, where: int) -> None:
    trace, lo, hi = given_
    at = lo + (hi - lo) * where // 20
    here, there = window(Timeline(trace), lo, hi), window(Timeline(with_cut_ranges(trace, at)), lo, hi)
    assert answers(there) == answers(here)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_op_in_two_parts_is_the_same_op(seed: int) -> None:
    ran = random_run(seed)
    trace = ran.timeline.trace
    ops = trace.ops
    cut = np.flatnonzero((ops.kind == OpKind.KERNEL) & (ops.end - ops.start > 10))[::3]
    middle = ops.start[cut] + (ops.end[cut] - ops.start[cut]) // 3
    first = ops.end.copy()
    first[cut] = middle
    halves = sorted_ops(stacked(replace(ops, end=first), replace(ops.take(cut), start=middle)))
    assert len(halves) > len(ops)
    whole = [Phase(ran.lo, ran.hi, Category.UNACCOUNTED, "all of it")]
    there = account(whole, Timeline(replace(trace, ops=halves)), thread=ran.thread)
    assert answer(there) == answer(ran.account)
    # Where kernels of two streams overlap the earlier one names the time: only the family may change.
    mine, theirs = ([by_category(d.segments) for d in x.devices] for x in (ran.account, there))
    assert mine == theirs


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_file_may_hold_its_rows_in_any_order(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    r = run(random_program(seed))
    write_nsys(r, path)
    before = read(path)
    rng = random.Random(seed)
    with closing(sqlite3.connect(path)) as db, db:
        tables = [t for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            rows = db.execute(f'SELECT * FROM "{table}"').fetchall()
            if rows and not table.startswith(("META", "EXPORT")):
                rng.shuffle(rows)
                db.execute(f'DELETE FROM "{table}"')
                db.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(rows[0]))})', rows)
    lo, hi = r.mark("begin"), r.mark("end")
    assert answers(window(Timeline(read(path)), lo, hi)) == answers(window(Timeline(before), lo, hi))


def read(path: Path) -> Trace:
    content = NsysSqlite().read(Source(path)).content
    assert isinstance(content, Trace)
    return content


ONE_OF_EACH = Shape(processes=1, threads=1, devices=1, streams=1)


@given(asked(ONE_OF_EACH))
@examples(150)
def test_host_time_saves_at_most_itself(given_: Asked) -> None:
    """With one thread and one stream nothing else can move up: what is not spent is saved once, or waited for."""
    trace, lo, hi = given_
    found = window(Timeline(trace), lo, hi)
    for cut in (category(found, c) for c in (Category.HOST_ANNOTATION, Category.HOST_UNTRACED, Category.HOST_PYTHON)):
        assert hi - lo - predict(found, [cut])[0] <= cut.time_ns
