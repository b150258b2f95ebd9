"""Interval algebra against sets of nanoseconds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from account.strategies import examples
from scopedown.account import intervals

Pairs = list[tuple[int, int]]
spans = st.lists(st.tuples(st.integers(-30, 30), st.integers(0, 9)), max_size=9).map(
    lambda rows: sorted((s, s + n) for s, n in rows)
)


def columns(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def instants(pairs: Pairs) -> set[int]:
    return {t for s, e in pairs for t in range(s, e)}


def pairs_of(start: np.ndarray, end: np.ndarray) -> Pairs:
    return list(zip(start.tolist(), end.tolist(), strict=True))


@given(spans)
@examples(100)
def test_union(given_: Pairs) -> None:
    found = pairs_of(*intervals.union(*columns(given_)))
    assert instants(found) == instants(given_)
    assert all(a[1] < b[0] for a, b in pairwise(found))
    assert intervals.total(*columns(found)) == len(instants(given_))


@given(spans, spans)
@examples(100)
def test_subtract_and_intersect(one: Pairs, other: Pairs) -> None:
    a, b = intervals.union(*columns(one)), intervals.union(*columns(other))
    s, e, row = intervals.subtract(*a, *b)
    assert instants(pairs_of(s, e)) == instants(one) - instants(other)
    assert ((a[0][row] <= s) & (e <= a[1][row])).all()
    s, e, i, j = intervals.intersect(*a, *b)
    assert instants(pairs_of(s, e)) == instants(one) & instants(other)
    assert ((np.maximum(a[0][i], b[0][j]) == s) & (np.minimum(a[1][i], b[1][j]) == e)).all()


@given(spans, st.integers(-30, 0), st.integers(0, 30))
@examples(100)
def test_complement_fills_the_rest(given_: Pairs, lo: int, hi: int) -> None:
    inside = intervals.union(*intervals.clip(*columns(given_), lo, hi))
    rest = pairs_of(*intervals.complement(*inside, lo, hi))
    assert instants(rest) == set(range(lo, hi)) - instants(given_)


@given(spans)
@examples(100)
def test_of_overlapping_intervals_the_first_keeps_the_time(given_: Pairs) -> None:
    kept = pairs_of(*intervals.first_come(*columns(given_)))
    seen: set[int] = set()
    for whole, own in zip(given_, kept, strict=True):
        assert instants([own]) == instants([whole]) - seen
        seen |= instants([whole])


def test_touching_intervals_are_one() -> None:
    assert pairs_of(*intervals.union(*columns([(0, 5), (5, 9), (9, 9), (12, 13)]))) == [(0, 9), (12, 13)]


def test_pieces_of_a_row_sum_to_it() -> None:
    s, e, row, owner = intervals.split_at(*columns([(0, 10), (20, 30)]), np.array([4, 25]), np.array([7, 8]))
    assert list(zip(s.tolist(), e.tolist(), row.tolist(), owner.tolist(), strict=True)) == [
        (0, 4, 0, -1),
        (4, 10, 0, 7),
        (20, 25, 1, 7),
        (25, 30, 1, 8),
    ]
