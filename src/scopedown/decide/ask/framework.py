"""What the host does between launches: the framework's profiler, its stacks, its compile log."""

from __future__ import annotations

from scopedown.decide import servers
from scopedown.decide.ask.steps import keep, requests, restart, step
from scopedown.decide.servers import Context, Server
from scopedown.report import Command


def framework(context: Context, *, stacks: bool = False) -> Command:
    capture = servers.framework_capture(context, stacks=stacks)
    why = "Python functions, operators and launches" if stacks else "operators and launches, without stacks"
    steps = [step("server", why, capture.start, capture.env), *requests(context, capture)]
    return Command(
        steps=steps,
        needs=[
            *servers.version_need(context),
            f"this version of scopedown does not read PyTorch traces: open {capture.traces} in a trace viewer, look at "
            "what runs before the launches named above",
            "PyTorch with its profiler; disk: 1 to 10 MB a second of capture",
            restart(context),
            *([capture.note] if capture.note else []),
        ],
        overhead=_STACK_OVERHEAD if stacks else _TORCH_OVERHEAD,
        alternative=_PY_SPY,
    )


def python(context: Context) -> Command:
    return framework(context, stacks=True)


_TORCH_OVERHEAD = (
    "without stacks: +3 to +11 % of wall time in three paired runs of a CPU server; stopping took 20 s for a 2 s window"
)
_STACK_OVERHEAD = "with stacks: +47 % of wall time in a CPU server: durations of Python-heavy code are inflated"
_PY_SPY = (
    "without a restart: py-spy record --pid PID --subprocesses --gil --rate 100 --duration 30 --format speedscope "
    "-o py.json --nonblocking (needs CAP_SYS_PTRACE or root; it names Python functions, not operators)"
)


def compile_log(context: Context) -> Command:
    """TORCH_LOGS_OUT makes PyTorch write its log to a file of its own."""
    out = keep(context, "torch.log")
    start = {
        Server.VLLM: ("vllm", "serve", context.model_name),
        Server.SGLANG: ("python", "-m", "sglang.launch_server", "--model-path", context.model_name),
        Server.TRTLLM: ("trtllm-serve", context.model_name),
    }.get(context.server, context.program)
    env = {"TORCH_LOGS": "graph_breaks,recompiles", "TORCH_LOGS_OUT": out}
    steps = [step("server", "each graph break and recompilation with its place and guard", start, env)]
    if context.server is not Server.PLAIN:
        steps.append(step("client", "a request like the symptom's", servers.send_request(context)))
    return Command(
        steps=steps,
        needs=[
            f"this version of scopedown does not read the log: look in {out} for the places that repeat",
            "a PyTorch that knows TORCH_LOGS_OUT; an older one writes the log to standard error",
            restart(context),
            "the log names source files: look before you pass it on",
        ],
        overhead="at compile time only (PyTorch documentation)",
    )
