"""All that a rule or the selection may look at: facts, no files."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scopedown.account.account import Account
from scopedown.account.laws import Load, QueueEstimate
from scopedown.account.phases import PhaseDifference
from scopedown.account.population import Chosen, Place
from scopedown.account.repeats import Confirmation, FirstWave
from scopedown.read.base import MonitorLog, RequestLog, Summary
from scopedown.symptom import Symptom
from scopedown.terms import HOST_WITHOUT_CAUSE, Category, Metric
from scopedown.trace.coverage import Coverage

#: Shares that make time material (the case may say another amount).
OF_SYMPTOM, OF_DISTANCE = 0.05, 0.10


@dataclass(frozen=True, slots=True)
class Situation:
    account: Account
    symptom: Symptom | None = None
    log: RequestLog | None = None
    row: int | None = None
    """The accounted request in the log."""
    summary: Summary | None = None
    """Statistics of a tool, where no log has the requests."""
    chosen: Chosen | None = None
    place: Place | None = None
    confirmation: Confirmation | None = None
    wave: FirstWave | None = None
    load: Load | None = None
    queue: QueueEstimate | None = None
    differences: tuple[PhaseDifference, ...] = ()
    monitor: MonitorLog | None = None
    coverage: Coverage | None = None
    parts: int = 1
    """Into how many units the interval divides for the metric: tokens for tpot and itl, else 1."""
    recapture: tuple[str, ...] = ()
    """Why the evidence does not cover what was asked or contradicts itself."""
    trace_is_other: bool = False
    """The trace shows another request or step than the symptom's."""
    requests_in_trace: tuple[str, ...] = ()
    part: str = "interval"
    """What the account's interval is called."""
    evidence: dict[str, str] = field(default_factory=dict)
    """Role of an artifact (log, trace, monitor) to its path."""

    @property
    def total_ns(self) -> int:
        return self.account.total_ns

    @property
    def distance_ns(self) -> int | None:
        """From the accounted interval to the target, in time of the interval; None without a target."""
        if self.symptom is None or self.symptom.target_ns is None:
            return None
        return max(self.total_ns - self.symptom.target_ns * self.parts, 0)

    @property
    def material_ns(self) -> int:
        if self.symptom is not None and self.symptom.material_ns is not None:
            return self.symptom.material_ns * self.parts
        of_distance = OF_DISTANCE * (self.distance_ns or 0)
        return int(max(OF_SYMPTOM * self.total_ns, of_distance))

    @property
    def metric(self) -> str:
        return str(self.symptom.metric) if self.symptom is not None else "interval"

    @property
    def is_latency(self) -> bool:
        return self.symptom is None or Metric(self.symptom.metric).is_latency

    def share(self, ns: int) -> float:
        return ns / self.total_ns if self.total_ns else 0.0

    def path_ns(self, category: Category) -> int:
        return self.account.ns_of(category)

    def busy_share(self) -> float | None:
        """Duty cycle of the busiest device over the covered interval."""
        found = self.account.devices
        if not found or not self.account.total_ns:
            return None
        return max(d.busy_ns / max(int(d.segments.ns.sum()), 1) for d in found)

    def host_without_cause_ns(self) -> int:
        """Host time on the path that no event explains, without the profiler's own overhead."""
        path = self.account.path
        mine = np.isin(path.category, [c.code for c in HOST_WITHOUT_CAUSE])
        return int(path.ns[mine & ~np.isin(path.label, self.account.tool_labels)].sum())

    def host_ns(self) -> int:
        path = self.account.path
        return int(path.ns[path.on_host].sum())
