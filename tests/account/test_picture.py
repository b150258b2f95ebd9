"""A picture shows the account that it is of: the whole path, members as their group has them, gaps with their call."""

from __future__ import annotations

import pytest

from scopedown.account.account import Account, window
from scopedown.account.picture import Budget, picture, pictures
from scopedown.account.timeline import Timeline
from scopedown.picture import Picture, Pieces
from scopedown.simulate import SITUATIONS
from scopedown.simulate.as_trace import as_trace

NAMES = ["worked_example", "launch_bound", "exposed_collective", "two_devices", "two_processes", "hand_over"]


def accounted(name: str) -> Account:
    situation = SITUATIONS[name](1)
    assert situation.run is not None
    t = Timeline(as_trace(situation.run))
    assert t.rows_span is not None
    return window(t, *t.rows_span)


@pytest.fixture(scope="module", params=NAMES)
def made(request: pytest.FixtureRequest) -> tuple[Account, Picture]:
    a = accounted(request.param)
    return a, picture(a, {f"p{i}": g for i, g in enumerate(a.groups[:5])})


def ends(p: Pieces) -> list[int]:
    return [s + d for s, d in zip(p.start, p.ns, strict=True)]


def test_the_path_is_drawn_without_a_gap(made: tuple[Account, Picture]) -> None:
    a, p = made
    assert (p.path.start[0], ends(p.path)[-1]) == (0, a.total_ns)
    assert ends(p.path)[:-1] == p.path.start[1:]
    drawn: dict[tuple[str, str], int] = {}
    for ns, name in zip(p.path.ns, p.path.name, strict=True):
        drawn[p.names[name]] = drawn.get(p.names[name], 0) + ns
    assert drawn == {(x.category, x.label): x.ns for x in a.lines()}


def test_the_path_runs_through_the_lane_that_holds_its_work(made: tuple[Account, Picture]) -> None:
    p = made[1]
    for lane, name in zip(p.path_lane, p.path.name, strict=True):
        category = p.names[name][0]
        if category.startswith("device."):
            assert p.lanes[lane].kind == "stream"
        if category.startswith("host.") and lane >= 0:
            assert p.lanes[lane].kind == "thread"


def test_rows_of_a_lane_are_in_order_and_inside_the_interval(made: tuple[Account, Picture]) -> None:
    a, p = made
    for lane in p.lanes:
        for row in lane.rows:
            assert row.start == sorted(row.start)
            assert min(row.start, default=0) >= 0
            assert max(ends(row), default=0) <= a.total_ns
            if lane.kind != "stream":
                assert all(x <= y for x, y in zip(ends(row), row.start[1:], strict=False))


def test_idle_time_of_a_lane_is_that_of_the_device_account(made: tuple[Account, Picture]) -> None:
    a, p = made
    idle = [lane for lane in p.lanes if lane.kind == "idle"]
    assert len(idle) == len(a.devices)
    for lane, device in zip(idle, a.devices, strict=True):
        assert sum(sum(r.ns) for r in lane.rows) == a.total_ns - device.busy_ns


def test_gaps_lead_to_the_call_that_ended_them(made: tuple[Account, Picture]) -> None:
    p = made[1]
    for links in p.links:
        for start, ns, repeat, call, at in zip(
            links.start, links.ns, links.repeat, links.call, links.call_lane, strict=True
        ):
            if repeat >= 0:
                members = p.repeats[repeat].members
                assert (start, ns) in set(zip(members.start, members.ns, strict=True))
            if call >= 0:
                assert call <= start + ns
                assert p.lanes[at].kind == "thread"


def test_members_sum_to_what_repeats(made: tuple[Account, Picture]) -> None:
    a, p = made
    by_id = {x.id: x for x in p.repeats}
    for i, line in enumerate(a.lines()[:20], 1):
        r = by_id[f"L{i}"]
        assert (r.category, r.label, r.total_ns) == (line.category, line.label, line.ns)
        assert sum(r.members.ns) == r.total_ns
        assert sum(r.bins) == r.count
        assert (min(r.dot_ns), max(r.dot_ns)) == (min(r.members.ns), max(r.members.ns))
    for i, g in enumerate(a.groups[:5]):
        assert by_id[f"p{i}"].total_ns == g.total_ns


def test_a_budget_is_kept_and_said() -> None:
    a = accounted("worked_example")
    small = picture(a, {}, Budget(path=200, rows=300, members=150, links=20, names=4))
    assert len(small.path.start) <= 200
    assert sum(len(r.start) for lane in small.lanes for r in lane.rows) <= 300
    assert sum(len(r.members.start) for r in small.repeats) <= 150
    assert sum(len(x.start) for x in small.links) <= 20
    assert len(small.names) <= 5
    assert small.other_names > 0
    assert small.path.below_ns is not None
    assert small.path.events > 200
    assert sum(small.path.count) == small.path.events
    assert sum(small.path.ns) == a.total_ns


def test_pictures_get_smaller() -> None:
    sizes = [sum(len(r.start) for lane in p.lanes for r in lane.rows) for p in pictures(accounted("launch_bound"), {})]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 1_000
