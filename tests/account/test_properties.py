"""What must hold of any trace, however odd: exact partitions, and a replay that never invents time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from account.strategies import asked, examples
from scopedown.account.account import Account, account, window
from scopedown.account.groups import of_segments
from scopedown.account.phases import Phase
from scopedown.account.replay import Scenario
from scopedown.account.scenarios import Cut, category, kernels, predict
from scopedown.account.segments import Segments
from scopedown.account.timeline import Timeline
from scopedown.terms import Category
from scopedown.trace.model import Trace

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
@examples(400)
def test_a_window_is_accounted_for_exactly(given_: Asked) -> None:
    trace, lo, hi = given_
    exact(window(Timeline(trace), lo, hi))


@given(asked(), st.integers(0, 2))
@examples(200)
def test_a_range_of_a_thread_is_accounted_for_exactly(given_: Asked, thread: int) -> None:
    trace, lo, hi = given_
    whole = [Phase(lo, hi, Category.UNACCOUNTED, "range")]
    exact(account(whole, Timeline(trace), thread=thread % len(trace.threads)))


@given(asked(), st.integers(1, 9))
@examples(200)
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
@examples(400)
def test_nothing_taken_out_leaves_the_interval(given_: Asked) -> None:
    trace, lo, hi = given_
    found = window(Timeline(trace), lo, hi)
    assert predict(found, [empty(found)]) == [hi - lo]


@given(asked(), st.sampled_from([c for c in Category if c.startswith(("host.", "device."))] + [Category.LAUNCH]))
@examples(400)
def test_what_is_taken_out_never_prolongs(given_: Asked, chosen: Category) -> None:
    trace, lo, hi = given_
    found = window(Timeline(trace), lo, hi)
    cut, half, all_kernels = category(found, chosen), category(found, chosen, keep=0.5), kernels(found)
    nothing, gone, halved, bare = predict(found, [empty(found), cut, half, all_kernels])
    assert nothing == hi - lo
    assert 0 <= gone <= halved <= hi - lo
    assert 0 <= bare <= hi - lo
