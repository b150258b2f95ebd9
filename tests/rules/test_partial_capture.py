"""Captures with a part missing, and captures whose edges only look like holes."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rules.logs import of_case, pattern, statement
from scopedown.simulate import SITUATIONS, NsysOptions, write_case
from scopedown.terms import Category, Kind, Scope

RULE = "partial_capture"


def cut(folder: Path, share: float, trigger: str = "CudaProfilerApi") -> int:
    """Writes the case with the trace from ``share`` of the request's service on; returns its service in ns."""
    s = SITUATIONS["worked_example"](1)
    assert s.run is not None
    begin, end = s.run.mark("scheduled"), s.run.mark(s.token_marks[0])
    at = begin + int(share * (end - begin))
    write_case(s, 1, folder, NsysOptions(window=(at, s.run.end_ns + 1)))
    with closing(sqlite3.connect(folder / "evidence" / "report.sqlite")) as db, db:
        db.execute("UPDATE META_DATA_CAPTURE SET value = ? WHERE name LIKE '%START_TRIGGER'", (trigger,))
    return end - begin


def test_a_window_that_misses_a_third(tmp_path: Path):
    service = cut(tmp_path, 1 / 3)
    r = of_case(tmp_path)
    found = pattern(r, RULE)
    assert found is not None
    assert (found.category, found.opens) == (Category.OUTSIDE_CAPTURE, Scope.TIMELINE)
    assert found.path_ns == pytest.approx(service / 3, rel=0.05)
    told = statement(r, RULE)
    assert "outside the capture" in told.text
    assert "enough to change the decision" in told.text


def test_a_window_that_misses_most_is_captured_again(tmp_path: Path):
    cut(tmp_path, 0.9)
    r = of_case(tmp_path)
    assert r.decision.kind is Kind.RECAPTURE
    assert "outside the capture" in r.decision.why or "does not cover" in r.decision.why


def test_a_thread_that_begins_late_is_said(tmp_path: Path):
    """Started at once, so that all of it should be there: before its first event the thread may have been idle."""
    cut(tmp_path, 1 / 3, "Immediate")
    r = of_case(tmp_path)
    assert any("come before the first event of the thread" in w for w in r.warnings)


def test_lost_device_rows_are_counted(tmp_path: Path):
    write_case("dominating_kernel", 1, tmp_path, NsysOptions(drop={"CUPTI_ACTIVITY_KIND_KERNEL": 0.3}))
    r = of_case(tmp_path)
    found = next(p for p in r.patterns if p.rule == RULE and "without a device op" in p.label)
    assert found.of is not None
    assert found.count / found.of == pytest.approx(0.3, abs=0.06)
    assert any(f"{found.count} of {found.of} in the interval are launches without a device op" in w for w in r.warnings)


def test_lost_launch_records_are_counted(tmp_path: Path):
    write_case("dominating_kernel", 1, tmp_path, NsysOptions(drop={"CUPTI_ACTIVITY_KIND_RUNTIME": 0.4}))
    found = next(p for p in of_case(tmp_path).patterns if p.rule == RULE)
    assert found.category is Category.NO_LAUNCH_RECORD
    assert found.of is not None
    assert found.count / found.of == pytest.approx(0.4, abs=0.08)


def test_no_device_rows_at_all_is_captured_again(tmp_path: Path):
    lost = dict.fromkeys(("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"), 1.0)
    write_case("dominating_kernel", 1, tmp_path, NsysOptions(drop=lost))
    r = of_case(tmp_path)
    assert r.decision.kind is Kind.RECAPTURE
    assert "no device row" in r.decision.why


def test_graph_launches_without_records_are_captured_again(tmp_path: Path):
    write_case("opaque_graph", 1, tmp_path, NsysOptions(drop={"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": 1.0}))
    r = of_case(tmp_path)
    assert any("graph launches" in p.label for p in r.patterns if p.rule == RULE)
    assert r.decision.kind is Kind.RECAPTURE
    assert "graph launches of the interval have no record" in r.decision.why


@pytest.mark.parametrize(
    "name", ["dominating_kernel", "opaque_graph", "graph_by_node", "launch_bound", "two_processes"]
)
def test_whole_captures_are_silent(tmp_path: Path, name: str):
    write_case(name, 2, tmp_path)
    r = of_case(tmp_path)
    assert pattern(r, RULE) is None
    assert not any("lower bound" in w for w in r.warnings)


def test_a_hundredth_lost_at_the_edge_is_no_hole(tmp_path: Path):
    write_case("launch_bound", 1, tmp_path, NsysOptions(drop={"CUPTI_ACTIVITY_KIND_KERNEL": 0.002}))
    assert pattern(of_case(tmp_path), RULE) is None
