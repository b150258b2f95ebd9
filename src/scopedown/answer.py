"""From a case to its report: the data's way, one call a station."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from scopedown.account import scenarios
from scopedown.account.account import Account
from scopedown.account.groups import Group
from scopedown.account.picture import pictures
from scopedown.account.scenarios import Cut
from scopedown.case import Case
from scopedown.compose import compose
from scopedown.decide.findings import conclude, find_all
from scopedown.decide.kernels import families
from scopedown.decide.select import select
from scopedown.decide.situation import Situation
from scopedown.inquiry import Inquiry, inquire
from scopedown.options import Options
from scopedown.picture import Picture
from scopedown.report import Report
from scopedown.save import save
from scopedown.terms import Scope
from scopedown.units import show_ns


class Matched(msgspec.Struct, kw_only=True):
    events: int
    time_ns: int


class WhatIf(msgspec.Struct, kw_only=True):
    """All of the interval, also for tpot and itl."""

    baseline_ns: int
    predicted_ns: int
    saved_ns: int
    matched: Matched
    assumptions: list[str]


ASSUMPTIONS = (
    "the order of calls on a thread and of ops on a stream is kept",
    "a wait ends when what it waits for ends; one that is taken out does not wait",
    "resources are as recorded: no op runs faster because another is gone",
    "phases outside the trace keep their length",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A report and the account that it was made from."""

    report: Report
    account: Account
    groups: dict[str, Group]
    """The segments that the report's pattern ids name."""

    def pictures(self) -> Iterator[Picture]:
        """What a page draws of it, with less detail each time."""
        return pictures(self.account, self.groups)


def diagnose(case: Case, options: Options | None = None, progress: Callable[[str], None] = lambda _: None) -> Report:
    """The report on a case. Raises InputError for a file that breaks its format, UsageError for a question that names
    nothing; evidence that does not suffice is an answer (``recapture``)."""
    return answer(case, options, progress).report


def answer(case: Case, options: Options | None = None, progress: Callable[[str], None] = lambda _: None) -> Answer:
    """The same, with what a picture needs."""
    options = options or Options()
    q = inquire(case, options, progress)
    progress("asking the rules")
    s = q.situation
    focus = _focused(q)
    found = families(focus.account)
    selection = select(focus, found, Scope(options.scope) if options.scope else None)
    findings = find_all(s)
    c = conclude(s, findings)
    report = compose(q, focus, selection, found, c.patterns, c.statements, options)
    if options.save:
        save(case, report)
    return Answer(report, q.account, c.groups)


def _focused(q: Inquiry) -> Situation:
    """The situation that the decision is about: for a captured window the part in which the device has work."""
    focus = q.interval.focus
    if focus is None:
        return q.situation
    part = f"{show_ns(focus.total_ns)} from first to last device op"
    return replace(q.situation, account=focus, part=part)


def whatif(
    case: Case,
    options: Options | None = None,
    remove: Sequence[str] = (),
    scale: Sequence[tuple[str, float]] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> WhatIf:
    """The interval with time taken out or scaled. Raises UsageError for a selector that selects nothing known."""
    q = inquire(case, options or Options(), progress)
    a = q.account
    lines = {f"L{i}": (line.category, line.code) for i, line in enumerate(a.lines(), 1)}
    patterns: dict[str, Callable[[], Cut]] = {}
    if any("pattern:" in t for t in (*remove, *(t for t, _ in scale))):
        patterns = conclude(q.situation, find_all(q.situation)).cuts
    asked = [(text, 0.0) for text in remove] + list(scale)
    chosen = [scenarios.select(a, text, factor, lines, patterns) for text, factor in asked]
    cut = scenarios.without_selected(chosen)
    empty = [text for (text, _), c in zip(asked, chosen, strict=True) if not c.events]
    if empty:
        cut.assumptions += (f"nothing in the interval matches {', '.join(empty)}",)
    predicted = scenarios.predict(a, [cut])[0]
    return WhatIf(
        baseline_ns=a.total_ns,
        predicted_ns=predicted,
        saved_ns=a.total_ns - predicted,
        matched=Matched(events=cut.events, time_ns=cut.time_ns),
        assumptions=[*ASSUMPTIONS, *cut.assumptions],
    )
