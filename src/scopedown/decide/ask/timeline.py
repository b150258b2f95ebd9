"""System timelines with Nsight Systems: the server or program under ``nsys profile``, then its export."""

from __future__ import annotations

from scopedown.decide import servers
from scopedown.decide.ask.steps import diagnose_again, keep, requests, restart, step
from scopedown.decide.servers import Capture, Context, Server
from scopedown.decide.tools import NSYS_SINCE, knows, parse_version
from scopedown.report import Command


def _nsys(context: Context, traces: str, options: tuple[str, ...], capture: Capture, out: str) -> list[str]:
    """``nsys profile`` with what its version knows. ``--capture-range-end=stop``: the default ends the server."""
    version = parse_version(context.nsys_version)
    range_options: tuple[str, ...] = ()
    if capture.ranged:
        range_options = ("--capture-range=cudaProfilerApi", "--capture-range-end=stop")
    elif context.server is not Server.PLAIN:
        range_options = ("--delay=60", "--duration=30", "--kill=none")
    elif context.range_name is not None:
        range_options = ("--capture-range=nvtx", f"--nvtx-capture={context.range_name}",
                         "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0", "--capture-range-end=stop")  # fmt: skip
    always = ("--trace-fork-before-exec=true", "--discard-environment=true", "--force-overwrite=true")
    wanted = (f"--trace={traces}", *options, *range_options, *always, f"--output={out}")
    return ["nsys", "profile", *(o for o in wanted if knows(NSYS_SINCE, o, version))]


def _system(
    context: Context,
    why: str,
    *,
    traces: str = "cuda,nvtx",
    options: tuple[str, ...] = ("--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=graph"),
    overhead: str,
    more_needs: tuple[str, ...] = (),
) -> Command:
    capture = servers.system_capture(context)
    if context.server is Server.PLAIN and context.training and context.range_name is None:
        capture = Capture(("python", "-c", servers.cuda_range(context)))
    start = _nsys(context, traces, options, capture, "tl")
    out = keep(context, "tl.sqlite")
    steps = [step("server", why, [*start, *capture.start], capture.env)]
    steps += requests(context, capture)
    steps += [
        step("after", "the report as a database (20 to 60 times its size)",
             ["nsys", "export", "--type=sqlite", "--force-overwrite=true", f"--output={out}", "tl.nsys-rep"]),
        diagnose_again(context, out),
    ]  # fmt: skip
    return Command(
        steps=steps,
        needs=[
            *_nsys_needs(context),
            *servers.version_need(context),
            *more_needs,
            restart(context),
            *([capture.note] if capture.note else []),
        ],
        overhead=overhead,
        alternative=_no_restart_timeline(context),
    )


def _nsys_needs(context: Context) -> list[str]:
    if context.nsys_version:
        known = knows(NSYS_SINCE, "--discard-environment", parse_version(context.nsys_version))
        private = [] if known else [
            f"nsys {context.nsys_version} stores the environment in the report: do not pass it on"
        ]  # fmt: skip
        return [f"nsys {context.nsys_version} (the options are those of this version)", *private]
    return [
        "nsys; check `nsys --version`: before 2025.5 leave out --discard-environment, and do not pass the report on"
    ]


def _no_restart_timeline(context: Context) -> str | None:
    if context.server is Server.PLAIN:
        return None
    return (
        "nsys cannot attach to a running server: start a second instance under it and send it a copy of the load, "
        "or wait for the next restart"
    )


_GRAPH_OVERHEAD = (
    "graph level, no CPU samples: 10 % of throughput in one public serving run, more where calls are dense; "
    "compare the request's time with and without"
)


def timeline(context: Context) -> Command:
    return _system(context, "device and API rows on one clock, graphs as a whole", overhead=_GRAPH_OVERHEAD)


def graph_nodes(context: Context) -> Command:
    return _system(
        context,
        "the same with the inside of each graph",
        options=("--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node"),
        overhead="node level: NVIDIA documents significant overhead; do not read durations off it without a plain run",
        more_needs=("a driver for CUDA 11.7 or newer",),
    )


def os(context: Context) -> Command:
    return _system(
        context,
        "the host threads as the operating system sees them: blocking calls, scheduling, samples",
        traces="cuda,nvtx,osrt",
        options=("--sample=process-tree", "--cpuctxsw=process-tree", "--cuda-graph-trace=graph"),
        overhead="above the plain timeline: samples and scheduling records of every thread; compare with a plain run",
        more_needs=("kernel.perf_event_paranoid of 2 or less, or root; in a container CAP_SYS_ADMIN or CAP_PERFMON",),
    )


def ranks(context: Context) -> Command:
    """One report a rank. Under a server one nsys already follows all workers."""
    if context.server is not Server.PLAIN:
        return _system(context, "all workers of one node on one clock", overhead=_GRAPH_OVERHEAD)
    options = ("--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=graph")
    whole = Capture((), ranged=False)
    profile = _nsys(context, "cuda,nvtx", options, whole, "tl.%q{RANK}")
    count = max(2, context.ranks)
    out = [keep(context, f"tl.{rank}.sqlite") for rank in range(count)]
    export = [
        step("after", f"rank {rank}",
             ["nsys", "export", "--type=sqlite", "--force-overwrite=true", f"--output={o}", f"tl.{rank}.nsys-rep"])
        for rank, o in enumerate(out)
    ]  # fmt: skip
    run = ["torchrun", f"--nproc-per-node={count}", "--no-python", *profile, *context.program]
    return Command(
        steps=[step("server", "one report a rank", run), *export, diagnose_again(context, *out)],
        needs=[
            *_nsys_needs(context),
            "clocks of several nodes agree only as far as their time service",
            restart(context),
        ],
        overhead=_GRAPH_OVERHEAD,
    )
