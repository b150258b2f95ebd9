"""Kernel, source and instruction scopes: one launch, offline, with few sections."""

from __future__ import annotations

from scopedown.decide import servers
from scopedown.decide.ask.steps import step
from scopedown.decide.servers import Context
from scopedown.decide.tools import NCU_SINCE, kernel_filter, knows, parse_version
from scopedown.report import Command

_ROOFS = ("SpeedOfLight", "LaunchStats", "Occupancy", "MemoryWorkloadAnalysis")
_LINES = ("WarpStateStats", "SourceCounters")


def kernel(context: Context, *, lines: bool = False) -> Command:
    sections = [word for name in (_ROOFS + _LINES if lines else _ROOFS) for word in ("--section", name)]
    argv = ["ncu", *kernel_filter(context.kernel_name or "KERNEL")]
    if context.launch_skip:
        argv += ["-s", str(context.launch_skip)]
    argv += ["-c", "1", "--clock-control", "none", *sections]
    if lines:
        argv += ["--import-source", "yes"]
    argv += ["--target-processes", "all", "-f", "-o", "k", *servers.offline_run(context)]
    version = parse_version(context.ncu_version)
    units = ["--print-units", "base"] if knows(NCU_SINCE, "--print-units", version) else ["--units", "base"]
    page = ["ncu", "--import", "k.ncu-rep", "--page", "raw", "--csv", *units, "--log-file", "k.csv"]
    why = "the same launch with warp states and source lines" if lines else "one launch against its roofs"
    return Command(
        steps=[
            step("server", f"{why}, in an offline run of one shape: never on a live server", argv),
            step("after", "its metrics as a table, in base units", page),
        ],
        needs=[
            f"ncu {context.ncu_version}" if context.ncu_version else "ncu (Nsight Compute) at least as new as the GPU",
            "permission for performance counters: root, CAP_SYS_ADMIN in a container, or "
            "NVreg_RestrictProfilingToAdminUsers=0",
            "this version of scopedown does not read kernel reports: set the duration against the roofs in the table",
            "one rank where possible: a launch that waits for a peer hangs under replay",
            *([] if context.kernel_name else ["the kernel's name in place of KERNEL"]),
            *(["lines of CUDA C++ need -lineinfo at build; Triton has them"] if lines else []),
        ],
        overhead=f"about {'30' if lines else '10'} passes over that one launch, alone, memory restored between them: "
        "its duration is not that in service",
    )


def source_lines(context: Context) -> Command:
    return kernel(context, lines=True)


def instructions(_: Context) -> Command:
    return Command(
        steps=[step("after", "the instructions with their source lines", ["nvdisasm", "-c", "-gi", "kernel.cubin"])],
        needs=[
            "the kernel's .cubin (Triton keeps it in its cache folder; for a library: cuobjdump -xelf all LIBRARY)",
            "nvdisasm at least as new as the GPU; PyTorch for CUDA has one in triton/backends/nvidia/bin",
        ],
        overhead="none: nothing runs",
    )
