"""Repetition: segments and gaps of one cause."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from account.small import Small, ns
from account.strategies import examples
from scopedown.account.groups import LENGTH_FACTOR, Group, by_length, of_gaps, of_segments
from scopedown.account.segments import many
from scopedown.terms import Category

C = Category


def group(ns_: list[int], every: int = 1_000_000) -> Group:
    start = np.arange(len(ns_)) * every
    (found,) = of_segments(many(start, start + np.array(ns_), C.HOST_ANNOTATION.code, 0))
    return found


def test_segments_of_one_category_and_label_are_a_group() -> None:
    start = np.array([0, 100, 200, 300]) * 1000
    segs = many(start, start + 50_000, np.array([20, 20, 21, 20]), np.array([0, 0, 0, 1]))
    assert [(g.count, g.total_ns) for g in of_segments(segs)] == [(2, 100_000), (1, 50_000), (1, 50_000)]


def test_segments_of_clearly_other_length_are_a_group_of_their_own() -> None:
    start = np.arange(24) * 10_000_000
    length = np.full(24, 400_000)
    length[7] = 5_000_000
    found = of_segments(many(start, start + length, C.HOST_ANNOTATION.code, 0))
    assert sorted((g.count, g.median_ns) for g in found) == [(1, 5_000_000), (23, 400_000)]


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=20))
@examples(100)
def test_lengths_are_split_and_none_is_lost(lengths: list[int]) -> None:
    parts = by_length(np.array(lengths))
    assert sorted(i for p in parts for i in p.tolist()) == list(range(len(lengths)))
    tops = [max(lengths[i] for i in p.tolist()) for p in parts]
    lows = [min(lengths[i] for i in p.tolist()) for p in parts]
    assert all(low > LENGTH_FACTOR * top for top, low in zip(tops, lows[1:], strict=False))


def test_a_group_tells_its_middle_spread_and_period() -> None:
    g = group([100_000 + 1_000 * n for n in range(10)])
    assert (g.median_ns, g.spread_ns, g.period_ns) == (104_000, (100_000, 108_000), 1_000_000)


def test_no_period_where_distances_disagree() -> None:
    start = np.array([0, 1, 30, 31, 90, 200]) * 1_000_000
    (g,) = of_segments(many(start, start + 50_000, C.HOST_ANNOTATION.code, 0))
    assert g.period_ns is None


def test_trends() -> None:
    assert group([900_000, 800_000] + [300_000 + n for n in range(18)]).trend == "first wave"
    assert group([100_000 + 5_000 * n for n in range(20)]).trend == "grows"
    assert group([195_000 - 5_000 * n for n in range(20)]).trend == "shrinks"
    assert group([100_000, 104_000] * 10).trend is None


def test_gaps_between_ops_of_the_same_names() -> None:
    s = Small()
    for n in range(6):
        at = 100 * n
        s.range("sample", at, at + 60).launch(at + 60, at + 64, n).op(at + 66, at + 100, n)
    t = s.timeline()
    d = t.devices.account(0, ns(66), ns(600))
    (found,) = of_gaps(d, t.devices.ops)
    assert (len(found.ns), int(found.ns.sum())) == (5, 5 * ns(66))
    assert (found.category, t.labels.values[found.label]) == (C.HOST_ANNOTATION, "sample")
    assert found.late_ns == 5 * ns(60)
