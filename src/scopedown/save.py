"""What ``--save`` keeps in a case: the report, and one journal entry for the question that it answers."""

from __future__ import annotations

import msgspec

from scopedown import journal
from scopedown.case import Case
from scopedown.errors import InputError, UsageError
from scopedown.files import write_atomic
from scopedown.report import Report
from scopedown.tell.json import encode, mended
from scopedown.units import show_ns


def save(case: Case, report: Report) -> None:
    """Raises UsageError without a case folder, InputError where it cannot be written to."""
    if case.folder is None:
        raise UsageError("--save needs a case folder: make one with scopedown new")
    target = case.folder / "report.json"
    try:
        write_atomic(target, encode(report, indent=1))
    except OSError as e:
        raise InputError(target, "", f"cannot be written ({e.strerror})", "check the rights of the case") from None
    d, y = report.decision, report.symptom
    question = (
        f"Why is {y.metric} ({y.request or y.statistic}) {y.observed or ''}?".replace(" ?", "?")
        if y is not None
        else "Where does the time of the captured window go?"
    )
    top = report.ledger.lines[0] if report.ledger.lines else None
    answer = f"{d.kind} at {d.scope}: {d.why}"
    if top is not None:
        answer += f" Largest line: {top.category} ({top.label}) {show_ns(top.ns)}."
    entry = journal.Entry(
        question=question,
        measurement=", ".join(sorted({e.kind for e in report.evidence if e.kind})),
        evidence=[journal.EvidenceRef(e.path, e.sha256) for e in report.evidence],
        answer=answer,
        next=d.question,
    )
    journal.append(case.folder, msgspec.convert(mended(msgspec.to_builtins(entry)), journal.Entry))
