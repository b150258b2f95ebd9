"""Who is innermost on a thread."""

from __future__ import annotations

import numpy as np

from scopedown.account.nest import Flat, flatten


def flat(*spans: tuple[int, int]) -> Flat:
    rows = sorted(spans, key=lambda r: (r[0], -r[1]))
    return flatten(np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.int64))


def pieces(f: Flat) -> list[tuple[int, int]]:
    return list(zip(f.edge.tolist(), f.owner.tolist(), strict=True))


def test_the_innermost_event_owns_the_time() -> None:
    f = flat((0, 100), (10, 40), (20, 30), (50, 60))
    assert pieces(f) == [(0, 0), (10, 1), (20, 2), (30, 1), (40, 0), (50, 3), (60, 0), (100, -1)]
    assert f.parent.tolist() == [-1, 0, 1, 0]
    assert f.clipped == 0


def test_of_equal_starts_the_longer_one_is_outside() -> None:
    assert pieces(flat((0, 10), (0, 30))) == [(0, 1), (10, 0), (30, -1)]


def test_of_equal_events_the_later_row_is_inside() -> None:
    assert pieces(flat((0, 10), (0, 10))) == [(0, 1), (10, -1)]


def test_an_event_that_outlives_the_one_around_it_ends_with_it() -> None:
    f = flat((0, 50), (30, 80), (60, 90))
    assert f.clipped == 1
    assert pieces(f) == [(0, 0), (30, 1), (50, -1), (60, 2), (90, -1)]


def test_an_event_of_no_length_owns_nothing() -> None:
    assert pieces(flat((0, 50), (20, 20))) == [(0, 0), (50, -1)]


def test_a_thread_without_events() -> None:
    assert pieces(flat()) == []
