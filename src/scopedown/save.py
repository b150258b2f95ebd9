"""What ``--save`` keeps in a case: the report, and one journal entry for the question that it answers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from scopedown import journal
from scopedown.case import Case
from scopedown.errors import InputError, UsageError
from scopedown.report import Report
from scopedown.units import show_ns


def save(case: Case, report: Report) -> None:
    """Raises UsageError without a case folder, InputError where it cannot be written to."""
    if case.folder is None:
        raise UsageError("--save needs a case folder: make one with scopedown new")
    import msgspec

    write_whole(case.folder / "report.json", msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
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
    journal.append(case.folder, entry)


def write_whole(path: Path, data: bytes) -> None:
    """Written beside its place and renamed: never half there."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as e:
        raise InputError(
            path, "", f"cannot be written ({e.strerror})", "choose a folder that can be written to"
        ) from None
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(data)
        Path(name).replace(path)
    except OSError as e:
        Path(name).unlink(missing_ok=True)
        raise InputError(
            path, "", f"cannot be written ({e.strerror})", "free some space or choose another folder"
        ) from None
