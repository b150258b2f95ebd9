"""Levels of detail: never more than the cap, nothing long lost, sums kept."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scopedown.account import intervals
from scopedown.account.thin import shares, thin
from scopedown.trace.model import Ints

events = st.lists(st.tuples(st.integers(-50, 3_000), st.integers(0, 400), st.integers(0, 4)), min_size=1, max_size=120)


def columns(rows: list[tuple[int, int, int]]) -> tuple[Ints, Ints, Ints]:
    table = np.array(sorted(rows), np.int64)
    return table[:, 0], table[:, 0] + table[:, 1], table[:, 2]


@settings(max_examples=200)
@given(events, st.integers(8, 60))
def test_pieces_stand_for_all_events(rows: list[tuple[int, int, int]], cap: int) -> None:
    start, end, key = columns(rows)
    t = thin(start, end, key, cap)
    assert len(t.start) <= cap
    assert t.count.sum() == len(rows)
    assert (np.diff(t.start) >= 0).all()
    assert set(t.key.tolist()) <= set(key.tolist())
    if t.below_ns is None:
        assert t.start.tolist() == start.tolist()
        return
    assert t.busy.sum() == intervals.total(*intervals.union(start, end))
    # What is as long as the width stands alone, and so do pauses.
    assert set(start[end - start >= t.below_ns].tolist()) <= set(t.start[t.count == 1].tolist())
    merged = t.count > 1
    assert (t.end[merged] - t.start[merged] <= 2 * t.below_ns).all()


def test_no_pause_as_long_as_the_width_is_covered() -> None:
    # Bursts of fifty events, with long pauses between them.
    start = np.sort(np.random.default_rng(3).integers(0, 10_000, 5_000)) + np.repeat(np.arange(100) * 100_000, 50)
    end = start + 300
    t = thin(start, end, np.zeros(5_000, np.int64), 400)
    assert t.below_ns is not None
    gap_s, gap_e = intervals.complement(*intervals.union(start, end), int(start[0]), int(end[-1]))
    long = gap_e - gap_s >= t.below_ns
    s, _, _, _ = intervals.intersect(gap_s[long], gap_e[long], *intervals.union(t.start, t.end))
    assert long.any()
    assert not len(s)


def test_a_piece_has_the_name_that_holds_most_of_it() -> None:
    start = np.arange(0, 1_000, 10)
    end = start + np.where(np.arange(100) % 3 == 0, 6, 2)
    t = thin(start, end, np.where(np.arange(100) % 3 == 0, 7, 1), 10)
    assert t.below_ns is not None
    assert set(t.key[t.count > 2].tolist()) == {7}


@given(st.lists(st.integers(0, 1_000), max_size=20), st.integers(0, 4_000))
def test_shares_keep_the_budget(sizes: list[int], budget: int) -> None:
    given_out = shares(sizes, budget)
    assert sum(given_out) <= budget
    assert all(0 <= g <= s for g, s in zip(given_out, sizes, strict=True))
    if sum(sizes) <= budget:
        assert given_out == sizes
