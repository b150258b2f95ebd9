"""Situations for rules: what a written case, a real file or a program looks like after reading and accounting."""

from __future__ import annotations

import dataclasses
import tempfile
from functools import cache
from pathlib import Path

from scopedown.account import account, align, phases
from scopedown.account.account import window
from scopedown.account.timeline import Timeline
from scopedown.case import load_case
from scopedown.decide.findings import conclude
from scopedown.decide.rules.base import Finding, Rule
from scopedown.decide.situation import Situation
from scopedown.read.base import RequestLog, Source
from scopedown.read.nsys_sqlite import NsysSqlite
from scopedown.read.requests import NativeRequests
from scopedown.report import StatementReport
from scopedown.simulate import SITUATIONS, NsysOptions, Program, Truth, run, truth_of, write_case, write_nsys
from scopedown.simulate import Situation as Simulated
from scopedown.terms import Metric
from scopedown.trace.model import Trace


def of_trace(path: Path) -> Situation:
    """The captured window of a file."""
    trace = NsysSqlite().read(Source(path)).content
    assert isinstance(trace, Trace)
    t = Timeline(trace)
    assert t.rows_span is not None
    return Situation(window(t, *t.rows_span), evidence={"trace": path.name})


def of_case(folder: Path) -> Situation:
    """The symptom of a case, one request of it, with its trace."""
    symptom = load_case(folder).symptom
    assert symptom is not None
    log = NativeRequests().read(Source(folder / "evidence" / "requests.jsonl")).content
    assert isinstance(log, RequestLog)
    path = next(p for p in sorted((folder / "evidence").iterdir()) if p.suffix == ".sqlite")
    trace = NsysSqlite().read(Source(path)).content
    assert isinstance(trace, Trace)
    row = log.id.index(symptom.request) if symptom.request else len(log) - 1
    metric = Metric(symptom.metric)
    found = align.align(trace, log)
    split = phases.phases(log, row, metric)
    assert split is not None
    on_trace = [dataclasses.replace(p, start=found.on_trace(p.start), end=found.on_trace(p.end)) for p in split.phases]
    tokens = int(log.output_tokens[row])
    token = 1 if metric is Metric.TTFT else tokens
    t = Timeline(trace)
    whole = account.account(on_trace, t, marks=[m for m in found.marks if m.row == row], token=token)
    parts = max(tokens - 1, 1) if metric in (Metric.TPOT, Metric.ITL) else 1
    return Situation(whole, symptom=symptom, log=log, row=row, parts=parts, evidence={"trace": path.name})


@cache
def simulated(name: str, seed: int = 1) -> Situation:
    """One of the simulator's situations, written and read again."""
    with tempfile.TemporaryDirectory() as folder:
        write_case(name, seed, Path(folder))
        return of_case(Path(folder))


@cache
def truth(name: str, seed: int = 1) -> Truth:
    return truth_of(SITUATIONS[name](seed))


def built(situation: Simulated, options: NsysOptions | None = None) -> Situation:
    with tempfile.TemporaryDirectory() as folder:
        write_case(situation, situation.seed, Path(folder), options)
        return of_case(Path(folder))


def ran(program: Program) -> Situation:
    """The captured window of a program."""
    with tempfile.TemporaryDirectory() as folder:
        write_nsys(run(program), Path(folder) / "report.sqlite")
        return of_trace(Path(folder) / "report.sqlite")


def found(rule: Rule, s: Situation) -> list[Finding]:
    return list(rule.find(s))


def silent(rule: Rule, s: Situation) -> bool:
    return not found(rule, s)


def told(rule: Rule, s: Situation) -> tuple[Finding, StatementReport]:
    """The largest finding of a rule with its statement, the prediction replayed."""
    findings = found(rule, s)
    c = conclude(s, findings)
    patterns, statements = c.patterns, c.statements
    first = max(findings, key=lambda f: (f.path_ns, f.total_ns))
    assert patterns[0].path_ns == first.path_ns
    return first, next(t for t in statements if t.id == patterns[0].statement)


def ms(ns: float) -> float:
    return ns / 1e6


__all__ = ["SITUATIONS", "built", "found", "ms", "of_case", "of_trace", "ran", "silent", "simulated", "told", "truth"]
