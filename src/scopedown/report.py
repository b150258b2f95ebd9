"""The report: what ``diagnose --json`` prints, as types. The published JSON Schema is generated from them."""

from __future__ import annotations

from typing import Any

import msgspec

from scopedown.terms import Category, FieldSource, Kind, Metric, Objective, Scope, Statistic, Verdict

SCHEMA_VERSION = "1.0"


class SymptomReport(msgspec.Struct, kw_only=True):
    metric: Metric
    statistic: Statistic
    request: str | None
    """The request (or step) whose interval the ledger accounts for."""
    observed_ns: int | None
    """As the user states it."""
    recorded_ns: int | None
    """As the evidence has it."""
    recorded_interval_ns: tuple[int, int] | None
    """95 % interval of the recorded statistic (order statistics); null for a single request."""
    target_ns: int | None
    observed: str | None
    target: str | None
    objective: Objective
    load: str | None
    population: dict[str, int]
    """Counts behind the statistic: requests, ok, errors, warmup, excluded."""
    percentile: float | None
    """Where the accounted request stands among the untraced ones of its class, in [0, 1]."""
    confirmed: bool | None
    """Whether the symptom repeats in the log; null where no log can say."""
    note: str


class ContractField(msgspec.Struct):
    name: str
    value: str | None
    source: FieldSource


class Contract(msgspec.Struct):
    fields: list[ContractField]


class Evidence(msgspec.Struct, kw_only=True):
    path: str
    sha256: str
    kind: str | None
    scope: Scope | None
    producer: str | None
    interval_ns: tuple[int, int] | None
    can_establish: list[str]
    cannot_establish: list[str]
    warnings: list[str]


class Line(msgspec.Struct, kw_only=True):
    id: str
    category: Category
    label: str
    ns: int
    share: float
    count: int
    scope: Scope
    explained: bool
    resolvable_by: list[Scope]
    statement: str | None = None


class LedgerReport(msgspec.Struct, kw_only=True):
    interval_ns: tuple[int, int]
    total_ns: int
    unit: str = "ns"
    lines: list[Line]


class Step(msgspec.Struct, kw_only=True):
    """One step of a command: ``shell`` is ``argv`` quoted, with environment in front."""

    argv: list[str]
    shell: str
    where: str
    """server | client | after"""
    why: str


class Command(msgspec.Struct, kw_only=True):
    steps: list[Step]
    needs: list[str]
    overhead: str
    alternative: str | None = None


class Rejected(msgspec.Struct, kw_only=True):
    scope: Scope
    bound_ns: int
    bound_share: float
    bound_of_distance: float | None
    reasons: list[str]


class DecisionReport(msgspec.Struct, kw_only=True):
    kind: Kind
    scope: Scope
    reachable_ns: int
    question: str
    why: str
    command: Command | None
    metrics: list[str]
    rejected: list[Rejected]


class Prediction(msgspec.Struct, kw_only=True):
    metric: str
    direction: str
    """falls | rises | unchanged"""
    amount_ns: int
    tolerance_ns: int


class StatementReport(msgspec.Struct, kw_only=True):
    id: str
    text: str
    category: Category
    subject: str
    value: float
    unit: str
    count: int
    location: str
    evidence: list[str]
    predicts: list[Prediction]
    refuted_by: list[str]
    verdict: Verdict = Verdict.OPEN


class PatternReport(msgspec.Struct, kw_only=True):
    id: str
    rule: str
    category: Category
    label: str
    count: int
    of: int | None
    median_ns: int
    spread_ns: tuple[int, int]
    total_ns: int
    path_ns: int
    period_ns: int | None
    trend: str | None
    opens: Scope | None
    statement: str | None


class DeviceReport(msgspec.Struct, kw_only=True):
    id: str
    name: str | None
    total_ns: int
    busy_ns: int
    busy_is_lower_bound: bool
    lines: list[Line]


class Resource(msgspec.Struct, kw_only=True):
    name: str
    capacity: str
    busy_ns: int
    share: float
    saturated: bool


class Law(msgspec.Struct, kw_only=True):
    law: str
    left: float
    right: float
    residual: float
    holds: bool


class KernelReport(msgspec.Struct, kw_only=True):
    family: str
    name: str
    """The kernel of the family that holds most of its time."""
    name_launches: int
    name_ns: int
    names: int
    """Different kernels in the family."""
    launches: int
    """Of the family, in the interval."""
    total_ns: int
    critical_ns: int
    bound_ns: int | None
    selected: bool
    representative_launch: int | None
    """Index of the launch to profile among the launches of this name in the capture, from 0."""


class Lead(msgspec.Struct, kw_only=True):
    """Launch lead: op start minus the return of its launch call; negative: the device waits for the host."""

    median_ns: int
    p10_ns: int
    p90_ns: int
    ops: int


class Report(msgspec.Struct, kw_only=True):
    schema_version: str = SCHEMA_VERSION
    symptom: SymptomReport | None
    contract: Contract
    evidence: list[Evidence]
    ledger: LedgerReport
    decision: DecisionReport
    statements: list[StatementReport]
    devices: list[DeviceReport]
    ranks: list[DeviceReport]
    patterns: list[PatternReport]
    resources: list[Resource]
    laws: list[Law]
    kernels: list[KernelReport]
    launch_lead: Lead | None
    steps: dict[str, Any] | None
    """How steps were found (annotations, graph launches, period), how many, and their median length in ns."""
    coverage: dict[str, Any]
    unknown: list[str]
    """What the evidence does not say and the reader might assume."""
    warnings: list[str]
