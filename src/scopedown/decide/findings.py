"""All rules asked, their findings put in order, their predictions replayed, their statements made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from scopedown.account import scenarios
from scopedown.account.groups import Group
from scopedown.account.scenarios import Cut
from scopedown.decide.rules import RULES
from scopedown.decide.rules.base import Finding
from scopedown.decide.situation import Situation
from scopedown.report import PatternReport, StatementReport

#: Cuts that are replayed for predictions, in one batch; smaller findings make no statement.
REPLAYED = 12


def find_all(s: Situation) -> list[Finding]:
    return [f for rule in RULES for f in rule.find(s)]


@dataclass(frozen=True, slots=True)
class Conclusion:
    patterns: list[PatternReport]
    """By their time on the path."""
    statements: list[StatementReport]
    groups: dict[str, Group]
    """The segments of the patterns that are groups of the path, by id; ``top`` is the largest group."""
    cuts: dict[str, Callable[[], Cut]]
    """What ``pattern:ID`` takes out: a group's segments, else what the rule predicts from."""


def conclude(s: Situation, findings: list[Finding]) -> Conclusion:
    ordered = sorted(findings, key=lambda f: (-f.path_ns, -f.total_ns, f.rule, f.label))
    cut = [i for i, f in enumerate(ordered) if f.cut is not None][:REPLAYED]
    cuts = [made() for i in cut if (made := ordered[i].cut) is not None]
    saved = dict(zip(cut, scenarios.saved(s.account, cuts), strict=True))
    patterns: list[PatternReport] = []
    statements: list[StatementReport] = []
    table: dict[str, Group] = {}
    makers: dict[str, Callable[[], Cut]] = {}
    for i, f in enumerate(ordered):
        name = f"p{i + 1}"
        statement = None
        if f.state is not None and (f.cut is None or i in saved):
            statements.append(f.state(saved.get(i, 0)).report(len(statements) + 1))
            statement = statements[-1].id
        patterns.append(_report(name, f, statement))
        if f.group is not None:
            table[name] = f.group
            makers[name] = partial(scenarios.group, s.account, f.group)
        elif f.cut is not None:
            makers[name] = f.cut
    # A rule may have no words for the largest group: it is the top all the same.
    top = max((*table.values(), *s.account.groups[:1]), key=lambda g: g.total_ns, default=None)
    if top is not None:
        table["top"] = top
        makers["top"] = partial(scenarios.group, s.account, top)
    return Conclusion(patterns, statements, table, makers)


def _report(name: str, f: Finding, statement: str | None) -> PatternReport:
    return PatternReport(
        id=name,
        rule=f.rule,
        category=f.category,
        label=f.label,
        count=f.count,
        of=f.of,
        median_ns=f.median_ns,
        spread_ns=f.spread_ns,
        total_ns=f.total_ns,
        path_ns=f.path_ns,
        period_ns=f.period_ns,
        trend=f.trend,
        opens=f.opens,
        statement=statement,
    )
