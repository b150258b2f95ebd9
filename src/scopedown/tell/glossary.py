"""What the words mean: one line a category, one row a scope. Pages and ``explain`` are made from these tables."""

from __future__ import annotations

from typing import NamedTuple

from scopedown.terms import Category, Scope

#: Words of the first screen.
TERMS = {
    "path": "what the end of the interval waited for, step by step back to its start; its pieces tile the interval",
    "explained": "an event of the evidence names the cause; else the line says which scopes could",
    "reducible": "explained and not needed work: what a change could take away, by replay, at most its path time",
    "reach": "what one next step can reach: one category for the application and for explained lines, all host time "
    "without a cause for the framework, one kernel family for the kernel",
    "material": "at least 5 % of the symptom and at least 10 % of the distance to the target, unless the case says "
    "another amount; what is smaller is not worth the next measurement",
    "distance": "from the recorded value to the target; a bound above 100 % of it could reach the target alone",
    "bound": "the most that a whole scope could explain, by replay: why a narrower tool is premature",
    "lead": "from the return of a launch call to the start of its op; negative: the device waits for the host",
}


class ScopeRow(NamedTuple):
    artifacts: str
    answers: str
    opens_when: str
    cannot_establish: str


SCOPES: dict[Scope, ScopeRow] = {
    Scope.APPLICATION: ScopeRow(
        "request logs, benchmark results, server metrics, device monitors",
        "which phase (client, queue, service, return), under which load, for which requests",
        "always first",
        "why a phase takes its time; a monitor's utilisation says nothing of a request shorter than its window",
    ),
    Scope.TIMELINE: ScopeRow(
        "system traces: Nsight Systems, device rows of a Kineto trace",
        "when the host submits and the device executes: gaps, overlap, copies, collectives",
        "a phase is material and nothing says what happens inside it",
        "which instructions make a kernel slow; why host code between two events takes its time",
    ),
    Scope.FRAMEWORK: ScopeRow(
        "host rows of a Kineto trace, compile logs, Python samples",
        "graph breaks, recompilation, scalar reads, allocation, logging, data loading, and where in the source",
        "host time on the path is material and has no cause",
        "anything about the inside of a kernel",
    ),
    Scope.KERNEL: ScopeRow(
        "Nsight Compute reports, or operator shapes for a bound",
        "duration against the roofs, memory traffic, occupancy, scheduler and warp states",
        "one family of kernels holds material time on the path, and its inside is the question",
        "the effect on the request: the kernel ran alone, replayed, at another clock",
    ),
    Scope.SOURCE: ScopeRow(
        "source counters of a kernel report, line tables",
        "which lines make the traffic, the instructions or the stalls",
        "the kernel report names a limiter whose place is unknown",
        "whether the compiler could have done otherwise",
    ),
    Scope.INSTRUCTIONS: ScopeRow(
        "cubin, PTX, SASS, source counters",
        "a precise question to the compiler",
        "such a question is open, about a kernel that is already material",
        "any effect on latency",
    ),
}

CATEGORIES: dict[Category, str] = {
    Category.CLIENT: "the load client sent late, or received late",
    Category.NETWORK: "between client and server",
    Category.FRONTEND: "the server's front end: parsing, tokenising, detokenising, sending",
    Category.QUEUE: "waiting to be scheduled for the first time",
    Category.SCHEDULER: "the device works for other requests while this one waits",
    Category.HOST_SYNC: "the host waits in a synchronising call, and the device waits for the host",
    Category.HOST_ALLOC: "allocating or freeing memory",
    Category.HOST_COPY: "the host is held by a blocking copy",
    Category.HOST_API: "other calls of the runtime or driver",
    Category.HOST_MODULE: "loading or building device code: first calls, lazy loading, autotuning",
    Category.HOST_FRAMEWORK: "framework operators: dispatch, guards, hand-over between threads",
    Category.HOST_GRAPH_BREAK: "a compiled region ended early and Python took over",
    Category.HOST_RECOMPILE: "compiling inside the request or step",
    Category.HOST_SCALAR_READ: "Python reads a value from the device and decides",
    Category.HOST_SHAPE_LOGIC: "Python computes with dynamic shapes",
    Category.HOST_LOGGING: "writing logs",
    Category.HOST_DATA_LOADING: "waiting for the next batch",
    Category.HOST_GC: "collecting garbage",
    Category.HOST_PYTHON: "Python code, named by its function",
    Category.HOST_OS_WAIT: "off the core: lock, poll, sleep, or not scheduled",
    Category.HOST_ANNOTATION: "host time inside a named range: it says where, not why",
    Category.HOST_UNTRACED: "host time that no tool looked into",
    Category.LAUNCH: "from the launch call to the op's start",
    Category.DEPENDENCY: "waiting for another op, device or rank",
    Category.DEVICE_KERNEL: "compute kernels",
    Category.DEVICE_COLLECTIVE: "collectives: the transfer after the last rank arrived",
    Category.DEVICE_COPY: "copies",
    Category.DEVICE_MEMSET: "memory fills",
    Category.DEVICE_OPAQUE_GRAPH: "a graph launch whose inside was not recorded",
    Category.DEVICE_ACTIVE: "a monitor says that the device was active, not with what",
    Category.DEVICE_INACTIVE: "a monitor says that the device was inactive, not why",
    Category.ALIGNMENT_UNCERTAIN: "beside the edge of a phase, as long as two clocks may disagree",
    Category.NO_LAUNCH_RECORD: "an op whose launch the trace does not hold",
    Category.OUTSIDE_CAPTURE: "part of the interval that the trace does not cover",
    Category.UNACCOUNTED: "no evidence says what this was",
}
