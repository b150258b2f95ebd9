"""A statement that can be refuted: measured, placed, counted, with a prediction. A vague one cannot be constructed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scopedown.report import Prediction, StatementReport
from scopedown.terms import Category


@dataclass(frozen=True, slots=True)
class Statement:
    """Raises ValueError where anything that makes it refutable is missing."""

    text: str
    category: Category
    subject: str
    value: float
    unit: str
    count: int
    location: str
    evidence: tuple[str, ...]
    predicts: tuple[Prediction, ...]
    refuted_by: tuple[str, ...]

    def __post_init__(self) -> None:
        missing = [
            n
            for n in ("text", "subject", "unit", "location", "evidence", "predicts", "refuted_by")
            if not getattr(self, n)
        ]
        if not math.isfinite(self.value):
            missing.append("value")
        if self.count < 1:
            missing.append("count")
        if any(not r.strip() for r in self.refuted_by):
            missing.append("refuted_by")
        if missing:
            raise ValueError(f"a statement needs {', '.join(missing)}: without it nothing could refute it")

    def report(self, number: int) -> StatementReport:
        return StatementReport(
            id=f"s{number}",
            text=self.text,
            category=self.category,
            subject=self.subject,
            value=self.value,
            unit=self.unit,
            count=self.count,
            location=self.location,
            evidence=list(self.evidence),
            predicts=list(self.predicts),
            refuted_by=list(self.refuted_by),
        )
