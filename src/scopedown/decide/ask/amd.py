"""The same questions for AMD devices: rocprofv3 for timelines, rocprof-compute for one kernel.

Options: rocm.docs.amd.com, rocprofiler-sdk "rocprofv3 CLI options" and "using rocprofv3 process attachment",
rocprofiler-compute "profile mode".
"""

from __future__ import annotations

import re

from scopedown.decide import servers
from scopedown.decide.ask.steps import diagnose_again, keep, requests, restart, step
from scopedown.decide.servers import Context
from scopedown.report import Command


def timeline(context: Context) -> Command:
    """``--runtime-trace`` is HIP calls, kernels and copies; a database because scopedown reads it."""
    capture = servers.framework_capture(context, stacks=False) if context.server is not servers.Server.PLAIN else None
    program = capture.start if capture is not None else context.program
    profiled = ["rocprofv3", "--runtime-trace", "--output-format", "rocpd", "-d", "out", "--", *program]
    out = keep(context, "tl.db")
    steps = [step("server", "HIP calls, kernels and copies on one axis", profiled)]
    if capture is not None:
        steps += requests(context, servers.Capture(capture.start))
    steps += [
        step("after", "the database, under a plain name", ["cp", "out/results.db", out]),
        diagnose_again(context, out),
    ]
    return Command(
        steps=steps,
        needs=[
            "ROCm 6.2 or newer (rocprofv3)",
            "the database is named after host and process: put its name in place of out/results.db",
            restart(context),
        ],
        overhead="not measured here: compare the symptom with and without it",
        alternative="without a restart, if the server was started with ROCP_TOOL_ATTACH=1: rocprofv3 --attach PID "
        "--kernel-trace --attach-duration-msec 5000 -d out, while the server is idle",
    )


def kernel(context: Context) -> Command:
    name = re.split(r"[<(\s]", context.kernel_name or "KERNEL")[0]
    argv = ["rocprof-compute", "profile", "-n", "k", "-k", name, "--no-roof", "--", *servers.offline_run(context)]
    return Command(
        steps=[step("server", "counters of one kernel, in an offline run of one shape: never on a live server", argv)],
        needs=[
            "rocprof-compute (ROCm 6.3 or newer; omniperf before)",
            "the program is run 13 to 20 times",
            "this version of scopedown does not read its tables",
        ],
        overhead="dispatches are serialised: a duration is not that in service",
    )


def monitor(context: Context) -> Command:
    out = keep(context, "monitor.csv")
    argv = ["sh", "-c", f"while sleep 1; do date +%s; rocm-smi --showuse --showclocks --showpower --csv; done > {out}"]
    return Command(
        steps=[step("server", "use, clocks and power once a second", argv)],
        needs=["rocm-smi; stop it with Ctrl-C"],
        overhead="a process a second",
    )


def tpu(context: Context) -> Command:
    """JAX writes xplane.pb files, which scopedown reads."""
    code = (
        "import jax, runpy, sys; sys.argv = sys.argv[1:]; jax.profiler.start_trace('out'); "
        "runpy.run_path(sys.argv[0], run_name='__main__'); jax.profiler.stop_trace()"
    )
    program = [w for w in context.program if w != "python"]
    return Command(
        steps=[
            step("server", "host, device and XLA ops on one axis", ["python", "-c", code, *program]),
            diagnose_again(context, "out"),
        ],
        needs=["JAX with its profiler", restart(context)],
        overhead="not measured here: compare the symptom with and without it",
    )
