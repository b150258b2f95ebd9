"""Hand-built reports: the worked example as a report would have it, and one whose every string is hostile."""

from __future__ import annotations

from typing import Any

import msgspec

from scopedown.report import (
    Command,
    Contract,
    ContractField,
    DecisionReport,
    DeviceReport,
    Evidence,
    KernelReport,
    Law,
    LedgerReport,
    Line,
    PatternReport,
    Prediction,
    Rejected,
    Report,
    Resource,
    StatementReport,
    Step,
    SymptomReport,
)
from scopedown.terms import Category, FieldSource, Kind, Metric, Objective, Scope, Statistic

MS = 1_000_000

#: Each of these acts somewhere: HTML, rich markup, terminals, Markdown, bidirectional text, JSON in UTF-8.
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "[red]a[/red] [link=x]",
    "two\nlines\r\n# three",
    "\x1b[31m\x1b]0;title\x07\x9b2J",
    "k" * 10_000,
    "\u202eevil\u2066\u200f שלום",
    "a|b `c` ``` d\\ | **e**",
    "\ud800 lone",
    "",
)


def line(category: Category, label: str, ns: int, total: int, *, count: int = 1, explained: bool = False) -> Line:
    return Line(
        id=f"line-{category}-{len(label)}",
        category=category,
        label=label,
        ns=ns,
        share=ns / total,
        count=count,
        scope=Scope.TIMELINE,
        explained=explained,
        resolvable_by=[] if explained else [Scope.FRAMEWORK],
    )


def worked_example() -> Report:
    """TTFT of 121 ms, 75.2 ms of it host time before layers: measure at the framework scope."""
    total = 121 * MS
    amounts = [
        (Category.HOST_ANNOTATION, "layer prologue", 75_200_000, 32),
        (Category.DEVICE_KERNEL, "flash_fwd_kernel", 20_000_000, 32),
        (Category.DEVICE_KERNEL, "gemm_bf16", 15_000_000, 224),
        (Category.LAUNCH, "cudaLaunchKernel", 4_000_000, 300),
        (Category.QUEUE, "queued to scheduled", 1_500_000, 1),
        (Category.FRONTEND, "sent to queued", 1_200_000, 1),
        (Category.DEVICE_COPY, "HtoD pageable", 900_000, 2),
        (Category.NETWORK, "reply", 700_000, 1),
        (Category.HOST_SYNC, "cudaStreamSynchronize", 500_000, 1),
    ]
    lines = [line(c, name, ns, total, count=n, explained=c is Category.QUEUE) for c, name, ns, n in amounts]
    rest = total - sum(x.ns for x in lines)
    lines.append(line(Category.UNACCOUNTED, "nothing seen", rest, total))
    shell = (
        "vllm serve MODEL --profiler-config '"
        '{"profiler":"torch","torch_profiler_dir":"./prof","torch_profiler_with_stack":false,"max_iterations":20}'
        "'"
    )
    steps = [
        Step(argv=["vllm"], shell=shell, where="server", why="operators and launches, without stacks"),
        Step(argv=["curl"], shell="curl -sS -X POST http://localhost:8000/start_profile", where="client", why="begin"),
        Step(argv=["curl"], shell="curl -sS http://localhost:8000/v1/completions", where="client", why="the request"),
        Step(argv=["curl"], shell="curl -sS -X POST http://localhost:8000/stop_profile", where="client", why="end"),
        Step(argv=["scopedown"], shell="scopedown diagnose case", where="after", why="ask again"),
    ]
    return Report(
        symptom=SymptomReport(
            metric=Metric.TTFT,
            statistic=Statistic.REQUEST,
            request="cmpl-7b03976a",
            observed_ns=121 * MS,
            recorded_ns=120_998_000,
            recorded_interval_ns=None,
            target_ns=60 * MS,
            observed="121 ms",
            target="60 ms",
            objective=Objective.LATENCY,
            load="1 request at a time",
            population={"requests": 40, "ok": 40, "errors": 0},
            percentile=0.55,
            confirmed=True,
            note="",
        ),
        contract=Contract([ContractField("model", "7B dense", FieldSource.DECLARED),
                           ContractField("clocks", None, FieldSource.MISSING)]),
        evidence=[
            Evidence(
                path="evidence/report.sqlite",
                sha256="0" * 64,
                kind="nsys-sqlite",
                scope=Scope.TIMELINE,
                producer="Nsight Systems",
                interval_ns=(0, total),
                can_establish=["gaps"],
                cannot_establish=["why host code between two events takes its time"],
                warnings=[],
            )
        ],
        ledger=LedgerReport(interval_ns=(0, total), total_ns=total, lines=lines),
        decision=DecisionReport(
            kind=Kind.MEASURE,
            scope=Scope.FRAMEWORK,
            reachable_ns=79_200_000,
            question="What does the host do in 'layer prologue' before each of 32 layers?",
            why="The device is idle in 32 of 32 gaps before a layer, 2.35 ms each, and the range that covers them says "
            "where the host is, not what it does. All kernels at zero time would still leave 79 ms.",
            command=Command(
                steps=steps,
                needs=["vLLM 0.13 or newer", "a restart of the server"],
                overhead="+3 to +11 % of wall time without stacks",
                alternative="py-spy record --pid PID",
            ),
            metrics=["operator time on the launching thread"],
            rejected=[
                Rejected(scope=Scope.KERNEL, bound_ns=42 * MS, bound_share=42 / 121, bound_of_distance=42 / 61,
                         reasons=["all kernels at zero time"]),
                Rejected(scope=Scope.SOURCE, bound_ns=42 * MS, bound_share=42 / 121, bound_of_distance=None,
                         reasons=[]),
            ],
        ),
        statements=[
            StatementReport(
                id="s1", text="32 gaps before 'layer prologue' hold 75.2 ms", category=Category.HOST_ANNOTATION,
                subject="layer prologue", value=75.2, unit="ms", count=32, location="thread 1",
                evidence=["evidence/report.sqlite"],
                predicts=[Prediction(metric="ttft", direction="falls", amount_ns=75 * MS, tolerance_ns=5 * MS)],
                refuted_by=["the gaps stay when the prologue is empty"],
            )
        ],
        devices=[DeviceReport(id="0", name="NVIDIA H100", total_ns=total, busy_ns=42 * MS, busy_is_lower_bound=False,
                              lines=[])],
        ranks=[],
        patterns=[
            PatternReport(
                id="p1", rule="host_gap", category=Category.HOST_ANNOTATION, label="layer prologue", count=32, of=32,
                median_ns=2_350_000, spread_ns=(2_300_000, 2_400_000), total_ns=75_200_000, path_ns=75_200_000,
                period_ns=3_600_000, trend=None, opens=Scope.FRAMEWORK, statement="s1",
            )
        ],
        resources=[Resource(name="device 0", capacity="1", busy_ns=42 * MS, share=0.35, saturated=False)],
        laws=[Law(law="Little", left=1.0, right=1.01, residual=0.01, holds=True)],
        kernels=[KernelReport(family="attention", name="flash_fwd_kernel", name_launches=32, name_ns=20 * MS, names=1,
                              launches=32, total_ns=20 * MS,
                              critical_ns=20 * MS, bound_ns=None, selected=False, representative_launch=None)],
        launch_lead=None,
        steps=None,
        coverage={"launches_without_op": 0},
        unknown=["which Python code runs inside 'layer prologue'", "clock state of the device"],
        warnings=["the monitor's window of 20 ms holds more than one gap"],
    )  # fmt: skip


def hostile(text: str) -> Report:
    """The worked example with every free string replaced by ``text``."""
    closed = {"category", "scope", "kind", "metric", "statistic", "objective", "verdict", "source", "opens",
              "resolvable_by", "schema_version"}  # fmt: skip

    def replaced(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {k: replaced(v, "evidence kind" if k == "kind" and "sha256" in value else k)
                    for k, v in value.items()}  # fmt: skip
        if isinstance(value, list | tuple):
            return [replaced(v, key) for v in value]
        return text if isinstance(value, str) and key not in closed else value

    built = replaced(msgspec.to_builtins(worked_example()), "")
    for prediction in (p for s in built["statements"] for p in s["predicts"]):
        prediction["metric"] = text
    return msgspec.convert(built, Report)
