"""Graphs recorded as a whole, and graphs recorded by node."""

import pytest

from rules.made import silent, simulated, told
from scopedown.decide.rules.opaque_graph import OpaqueGraph
from scopedown.terms import Category, Scope

RULE = OpaqueGraph()


def test_the_inside_is_not_in_the_file():
    s = simulated("opaque_graph")
    f, t = told(RULE, s)
    assert (f.count, f.of, f.category, f.opens) == (30, 30, Category.DEVICE_OPAQUE_GRAPH, Scope.TIMELINE)
    assert "recorded as a whole" in t.text
    assert "by node" in t.refuted_by[0]
    assert f.path_ns == s.path_ns(Category.DEVICE_OPAQUE_GRAPH)


@pytest.mark.parametrize("name", ["graph_by_node", "dominating_kernel"])
def test_what_is_recorded_is_not_opaque(name: str):
    assert silent(RULE, simulated(name))
