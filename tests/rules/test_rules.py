"""Every rule has the headings that pages are made from, a planted case and a look-alike, and vague words in none."""

import inspect
import re
from pathlib import Path

import pytest

from rules.made import SITUATIONS, simulated
from scopedown.decide.findings import REPLAYED, conclude, find_all
from scopedown.decide.rules import RULES
from scopedown.decide.rules.base import Rule

HEADINGS = (
    "What it sees",
    "Why it matters",
    "What it opens next",
    "What refutes it",
    "What it must not be confused with",
    "References",
)
TRACED = [n for n in SITUATIONS if n not in ("near_saturation", "late_client", "slow_monitor")]


def ids(rule: Rule) -> str:
    return rule.id


@pytest.mark.parametrize("rule", RULES, ids=ids)
def test_headings_in_order_each_with_text(rule: Rule):
    lines = inspect.cleandoc(type(rule).__doc__ or "").splitlines()
    at = [lines.index(h) for h in HEADINGS]
    assert at == sorted(at)
    assert lines[0]
    assert all(lines[i + 1].strip() for i in at)


@pytest.mark.parametrize("rule", RULES, ids=ids)
def test_one_file_a_rule(rule: Rule):
    assert Path(inspect.getfile(type(rule))).stem == rule.id


@pytest.mark.parametrize("rule", RULES, ids=ids)
def test_a_planted_case_and_a_look_alike(rule: Rule):
    """The test file of a rule shows it speak, and shows it silent."""
    text = (Path(__file__).parent / f"test_{rule.id}.py").read_text()
    assert len(re.findall(r"^def test_", text, re.MULTILINE)) >= 2
    assert re.search(r"\btold\(|found is not None|statement\(", text)
    assert re.search(r"silent|is None|not in|== \[\]", text)


def test_names_are_unique():
    assert len({r.id for r in RULES}) == len(RULES)


@pytest.mark.parametrize("name", TRACED)
def test_conclusions_hang_together(name: str):
    s = simulated(name)
    findings = find_all(s)
    c = conclude(s, findings)
    patterns, statements, table = c.patterns, c.statements, c.groups
    assert [p.id for p in patterns] == [f"p{i + 1}" for i in range(len(patterns))]
    assert [p.path_ns for p in patterns] == sorted((p.path_ns for p in patterns), reverse=True)
    assert [t.id for t in statements] == [p.statement for p in patterns if p.statement]
    assert all(p.count * p.spread_ns[0] <= p.total_ns or p.count < 4 for p in patterns)
    assert sum(f.cut is not None for f in findings) <= REPLAYED
    assert all(0 <= p.path_ns <= s.total_ns for p in patterns)
    assert table["top"].total_ns == max(g.total_ns for g in (*table.values(), *s.account.groups))
    assert set(table) - {"top"} <= {p.id for p in patterns}
    for t in statements:
        assert not re.search(r"(gpu|compute)[- ]bound", t.text, re.IGNORECASE)
        assert t.refuted_by
        assert t.predicts[0].metric == s.metric
        assert all("/" not in e for e in t.evidence)
