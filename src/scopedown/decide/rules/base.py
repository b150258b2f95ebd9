"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

import numpy as np

from scopedown.account import scenarios
from scopedown.account.groups import Group, nearest
from scopedown.account.scenarios import Cut
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.report import Prediction
from scopedown.terms import Category, Scope
from scopedown.trace.model import Ints
from scopedown.units import show_ns


@dataclass(frozen=True, slots=True)
class Finding:
    """A pattern: count, total and median are of one set of occurrences."""

    rule: str
    category: Category
    label: str
    ns: Ints
    """Length of each occurrence."""
    path_ns: int
    """The part on the critical path."""
    opens: Scope | None
    of: int | None = None
    """Of how many (steps, layers, requests)."""
    period_ns: int | None = None
    trend: str | None = None
    group: Group | None = None
    """The segments that ``--remove pattern:ID`` takes out."""
    cut: Callable[[], Cut] | None = None
    """What the replay takes out to predict the gain; None: nothing is predicted from it."""
    state: Callable[[int], Statement] | None = None
    """Makes the statement, given what the replay says that the cut saves (0 without a cut)."""

    @property
    def count(self) -> int:
        return len(self.ns)

    @property
    def total_ns(self) -> int:
        return int(self.ns.sum())

    @property
    def median_ns(self) -> int:
        return nearest(self.ns, 0.5) if len(self.ns) else 0

    @property
    def spread_ns(self) -> tuple[int, int]:
        return (nearest(self.ns, 0.1), nearest(self.ns, 0.9)) if len(self.ns) else (0, 0)


class Rule(Protocol):
    """A question to the situation. The docstring of the class has the fixed headings that pages are made from."""

    id: ClassVar[str]

    def find(self, s: Situation) -> Sequence[Finding]:
        """Nothing where the rule does not apply."""
        ...


def lengths(*ns: int) -> Ints:
    return np.array(ns, np.int64)


def falls(s: Situation, amount_ns: int, tolerance: float = 0.15) -> Prediction:
    """The symptom's metric falls by the amount, give or take the tolerance (at least 50 us)."""
    amount = amount_ns // s.parts
    return Prediction(
        metric=s.metric, direction="falls", amount_ns=amount, tolerance_ns=max(int(amount * tolerance), 50_000)
    )


def unchanged(s: Situation, within_ns: int) -> Prediction:
    return Prediction(
        metric=s.metric, direction="unchanged", amount_ns=0, tolerance_ns=max(within_ns // s.parts, 50_000)
    )


def of_group(s: Situation, rule: str, g: Group, opens: Scope | None, of: int | None = None) -> Finding:
    """A finding that is a group of the path, with the group as its cut."""
    label, cut = s.account.labels.values[g.label], partial(scenarios.group, s.account, g)
    return Finding(rule, g.category, label, g.ns, g.total_ns, opens, of, g.period_ns, g.trend, g, cut)


def times(count: int, of: int | None, unit: str = "steps") -> str:
    """``32 times``, ``31 of 32 steps``."""
    return f"{count} of {of} {unit}" if of else f"{count} times" if count != 1 else "once"


def each(ns: Ints) -> str:
    """``1.8 ms each`` with its spread where that says something."""
    low, mid, high = nearest(ns, 0.1), nearest(ns, 0.5), nearest(ns, 0.9)
    if len(ns) < 4 or high - low < 0.1 * mid:
        return f"{show_ns(mid)}"
    return f"{show_ns(mid)} (p10 {show_ns(low)}, p90 {show_ns(high)})"
