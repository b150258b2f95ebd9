"""What a situation is, and the truth about it: the interval of its symptom as a partition that nobody had to infer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from scopedown.simulate.program import Cause, changed
from scopedown.simulate.run import Run, Segment, by_tag, run
from scopedown.simulate.write_nsys import NsysOptions
from scopedown.terms import Category, Kind, Metric, Objective, Scope, Statistic


@dataclass(slots=True)
class Request:
    """A row of the request log: int ns since the epoch; None: the log does not say."""

    id: str
    arrival: int
    sent: int
    queued: int | None
    scheduled: int | None
    tokens: list[int]
    end: int
    input_tokens: int = 2048
    status: str = "ok"
    error: str | None = None
    warmup: bool = False

    @property
    def ttft(self) -> int:
        return self.tokens[0] - self.arrival


@dataclass(frozen=True, slots=True)
class Symptom:
    metric: Metric
    statistic: Statistic
    target_ns: int | None
    load: str
    request: str | None = None
    objective: Objective = Objective.LATENCY


@dataclass(frozen=True, slots=True)
class Expect:
    """What a right answer contains; the first of each is best. Empty: anything goes."""

    kinds: tuple[Kind, ...]
    scopes: tuple[Scope, ...]
    categories: tuple[Category, ...]
    """Their lines together hold the answer; ``Truth.answer_ns`` is the sum."""
    not_scopes: tuple[Scope, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class MonitorPlan:
    period_ns: int
    busy: list[tuple[int, int]]
    """Epoch intervals in which the device was busy, beside those of the run."""
    start: int
    end: int


@dataclass(frozen=True, repr=False)
class Situation:
    """A program that ran (or none: logs only), the log around it, and what should be said about them."""

    name: str
    seed: int
    symptom: Symptom
    requests: list[Request]
    subject: Request
    """The request whose interval the symptom is about."""
    expect: Expect
    run: Run | None = None
    thread: int = 0
    """Where the walk back from the subject's last token begins."""
    token_marks: tuple[str, ...] = ()
    """Marks of the program at which the engine had each token of the subject."""
    phases: bool = True
    """Whether the log tells the server's stamps."""
    nsys: NsysOptions = field(default_factory=NsysOptions)
    monitor: MonitorPlan | None = None
    contract: dict[str, str | int] = field(default_factory=dict)

    def epoch(self, t: int) -> int:
        """Epoch time of an instant of the trace's axis."""
        return t + self.nsys.session_utc_ns

    @property
    def interval(self) -> tuple[int, int]:
        """Of the symptom, in epoch time."""
        s = self.subject
        match self.symptom.metric:
            case Metric.TTFT:
                return s.arrival, s.tokens[0]
            case Metric.TPOT | Metric.ITL:
                return s.tokens[0], s.tokens[-1]
            case Metric.E2E:
                return s.arrival, s.end
            case Metric.QUEUE_TIME:
                return s.arrival, s.scheduled or s.arrival
        raise ValueError(f"no single interval for {self.symptom.metric}")


@dataclass(frozen=True, repr=False)
class Truth:
    situation: Situation
    interval_ns: tuple[int, int]
    observed_ns: int
    """Value of the symptom's metric and statistic over the log."""
    segments: list[Segment]
    """The interval in order of time, on the epoch."""
    busy_ns: dict[int, int]
    """Device -> time with an op running, within the interval."""
    tags: dict[str, int]
    """Cause -> its time on the path."""
    beside: dict[str, int]
    """Cause -> its time that is not on the path of the interval (beside it, or outside the interval)."""

    @property
    def total_ns(self) -> int:
        return self.interval_ns[1] - self.interval_ns[0]

    @property
    def lines(self) -> dict[Category, int]:
        total: Counter[Category] = Counter()
        for s in self.segments:
            total[s.category] += s.ns
        return dict(total)

    @property
    def answer_ns(self) -> int:
        return sum(self.lines.get(c, 0) for c in self.situation.expect.categories)

    @property
    def expect(self) -> Expect:
        return self.situation.expect

    def saving(self, cause: Cause) -> int:
        """By how much the interval shrinks when the program runs again without the cause: exact, by running it."""
        return self.change(cause, 0.0)

    def change(self, cause: Cause, factor: float) -> int:
        first = self.situation.run
        if first is None:
            return 0
        other = run(changed(first.program, cause, factor))
        return _service_ns(self.situation, first) - _service_ns(self.situation, other)


def _service_ns(s: Situation, r: Run) -> int:
    begin = r.mark("scheduled") if s.symptom.metric in (Metric.TTFT, Metric.E2E) else r.mark(s.token_marks[0])
    return r.mark(s.token_marks[0 if s.symptom.metric == Metric.TTFT else -1]) - begin


def truth_of(s: Situation) -> Truth:
    """The partition of the symptom's interval: the phases of the log, and the machine's path inside the service."""
    begin, end = s.interval
    segments: list[Segment] = []

    def phase(until: int | None, category: Category, label: str) -> None:
        at = segments[-1].end if segments else begin
        if until is not None and min(until, end) > at:
            segments.append(Segment(at, min(until, end), category, label, ""))

    if s.symptom.metric in (Metric.TTFT, Metric.E2E, Metric.QUEUE_TIME):
        phase(s.subject.sent, Category.CLIENT, "sent late")
        phase(s.subject.queued, Category.FRONTEND, "sent to queued")
        phase(s.subject.scheduled, Category.QUEUE, "queued to scheduled")
    at = segments[-1].end if segments else begin
    if s.run is not None:
        last = s.token_marks[0 if s.symptom.metric == Metric.TTFT else -1]
        done = s.run.mark(last)
        zero = s.epoch(0)
        owner = s.subject.id
        path = s.run.path(at - zero, min(done, end - zero), s.thread, owner)
        segments += [replace(p, start=p.start + zero, end=p.end + zero) for p in path]
        phase(end, Category.FRONTEND, "return")
        busy = {d: s.run.busy(begin - zero, end - zero, d) for d in range(len(s.run.program.devices))}
        total = s.run.tag_totals()
    else:
        phase(end, Category.UNACCOUNTED, "service: nothing looked inside")
        busy, total = {}, {}
    on_path = by_tag(segments)
    beside = {tag: n - on_path.get(tag, 0) for tag, n in total.items() if n > on_path.get(tag, 0)}
    return Truth(s, (begin, end), observed(s), segments, busy, on_path, beside)


def observed(s: Situation) -> int:
    """Nearest rank over the measured requests, or the subject's own value."""
    metric = s.symptom.metric
    if s.symptom.statistic == Statistic.REQUEST:
        return min(_values(s.subject, metric)) if metric != Metric.ITL else max(_values(s.subject, metric))
    values = sorted(v for r in s.requests if r.status == "ok" and not r.warmup for v in _values(r, metric))
    share = {Statistic.P50: 50, Statistic.P90: 90, Statistic.P95: 95, Statistic.P99: 99, Statistic.MAX: 100}
    if s.symptom.statistic == Statistic.MEAN:
        return sum(values) // len(values)
    return values[-(-share[s.symptom.statistic] * len(values) // 100) - 1]


def _values(r: Request, metric: Metric) -> list[int]:
    match metric:
        case Metric.TTFT:
            return [r.ttft]
        case Metric.E2E:
            return [r.end - r.arrival]
        case Metric.TPOT:
            return [(r.tokens[-1] - r.tokens[0]) // (len(r.tokens) - 1)] if len(r.tokens) > 1 else []
        case Metric.ITL:
            return [b - a for a, b in zip(r.tokens, r.tokens[1:], strict=False)]
        case Metric.QUEUE_TIME:
            return [] if r.scheduled is None else [r.scheduled - r.arrival]
    raise ValueError(f"no value of {metric} for one request")
