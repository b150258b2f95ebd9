"""Which tools and rights this machine has, and so which next measurements are possible on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from scopedown.read.cache import cache_dir
from scopedown.read.nsys_rep import installed_nsys
from scopedown.terms import Scope
from scopedown.units import show_bytes

#: Linux capability bits (include/uapi/linux/capability.h).
_SYS_PTRACE, _SYS_ADMIN, _PERFMON = 19, 21, 38
_TIMEOUT_S = 20.0


class Tool(msgspec.Struct, kw_only=True):
    name: str
    found: bool
    version: str | None
    needed_for: str


class Right(msgspec.Struct, kw_only=True):
    name: str
    value: str
    allows: bool | None
    """None: cannot be told here."""
    why: str


class Possible(msgspec.Struct, kw_only=True):
    scope: Scope
    measurement: str
    possible: bool
    missing: list[str]
    """What stands in the way, each with what to do about it."""


class Examination(msgspec.Struct, kw_only=True):
    tools: list[Tool]
    rights: list[Right]
    possible: list[Possible]


@dataclass(frozen=True, slots=True)
class _Probe:
    """A program and how it tells its version."""

    name: str
    argv: tuple[str, ...]
    needed_for: str


_PROBES = (
    _Probe("nsys", ("--version",), "system timelines (NVIDIA), and reading .nsys-rep files"),
    _Probe("ncu", ("--version",), "kernel reports (NVIDIA)"),
    _Probe("nvidia-smi", ("--version",), "device monitor (NVIDIA)"),
    _Probe("rocprofv3", ("--version",), "system timelines (AMD)"),
    _Probe("rocm-smi", ("--version",), "device monitor (AMD)"),
    _Probe("py-spy", ("--version",), "Python stacks of a running server"),
    _Probe("perf", ("--version",), "host samples"),
    _Probe("curl", ("--version",), "requests and metrics of a server"),
)


def examine() -> Examination:
    """Looks, starts nothing but ``TOOL --version``, changes nothing."""
    tools = [_tool(p) for p in _PROBES] + [_torch()]
    rights = [_counters(), _paranoid(), _ptrace(), _container(), _disk("working folder", Path.cwd()), _cache()]
    return Examination(tools=tools, rights=rights, possible=_possible(tools, rights))


def _tool(p: _Probe) -> Tool:
    path = shutil.which(p.name) or (next(iter(installed_nsys()), None) if p.name == "nsys" else None)
    return Tool(
        name=p.name, found=path is not None, version=_version(path, p.argv) if path else None, needed_for=p.needed_for
    )


def _version(path: str, argv: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run(
            [path, *argv], capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+\.\d+(?:\.\d+)*", done.stdout or done.stderr)
    return found[0] if found else None


def _torch() -> Tool:
    """PyTorch of this interpreter: that of the server may be another."""
    try:
        number: str | None = version("torch")
    except PackageNotFoundError:
        number = None
    return Tool(name="torch (this Python)", found=number is not None, version=number, needed_for="framework traces")


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return None


def _capabilities() -> int:
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", _read("/proc/self/status") or "", re.MULTILINE)
    return int(found[1], 16) if found else 0


def _has(bit: int) -> bool:
    return bool(_capabilities() >> bit & 1)


def _counters() -> Right:
    """NVIDIA restricts performance counters to administrators unless the driver is told otherwise."""
    name = "performance counters"
    text = _read("/proc/driver/nvidia/params")
    if text is None:
        return Right(name=name, value="no NVIDIA driver here", allows=None, why="/proc/driver/nvidia/params is absent")
    restricted = re.search(r"RmProfilingAdminOnly:\s*1", text) is not None
    admin = _has(_SYS_ADMIN)
    value = "administrators only" if restricted else "everybody"
    why = "RmProfilingAdminOnly is 1 and CAP_SYS_ADMIN is " + ("there" if admin else "missing") if restricted else ""
    return Right(name=name, value=value, allows=admin or not restricted, why=why)


def _paranoid() -> Right:
    text = _read("/proc/sys/kernel/perf_event_paranoid")
    name = "perf_event_paranoid"
    if text is None or not text.lstrip("-").isdigit():
        return Right(name=name, value="unknown", allows=None, why="not a Linux kernel with perf events")
    privileged = _has(_SYS_ADMIN) or _has(_PERFMON)
    allows = int(text) <= 2 or privileged
    why = "" if allows else "CPU sampling and thread scheduling need 2 or less, CAP_PERFMON, or root"
    return Right(name=name, value=text, allows=allows, why=why)


def _ptrace() -> Right:
    text = _read("/proc/sys/kernel/yama/ptrace_scope") or "0"
    allows = _has(_SYS_PTRACE) or text == "0"
    why = "" if allows else "attaching to a running server needs CAP_SYS_PTRACE, root, or ptrace_scope 0"
    return Right(name="ptrace scope", value=text, allows=allows, why=why)


def _container() -> Right:
    inside = (
        Path("/.dockerenv").exists()
        or Path("/run/.containerenv").exists()
        or "kubepods" in (_read("/proc/1/cgroup") or "")
    )
    names = [
        n for n, bit in (("SYS_ADMIN", _SYS_ADMIN), ("SYS_PTRACE", _SYS_PTRACE), ("PERFMON", _PERFMON)) if _has(bit)
    ]
    value = (
        "container" if inside else "no container seen"
    ) + f", capabilities: {', '.join(names) or 'none of interest'}"
    return Right(name="container", value=value, allows=None, why="")


def _disk(what: str, folder: Path) -> Right:
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return Right(name=f"disk: {what}", value="unknown", allows=None, why="the folder cannot be asked")
    enough = free > 2 * 10**9
    why = "" if enough else "a capture of a minute can take some GB"
    return Right(name=f"disk: {what}", value=f"{show_bytes(free)} free", allows=enough, why=why)


def _cache() -> Right:
    found = _disk("cache", cache_dir())
    writable = os.access(cache_dir(), os.W_OK)
    if writable:
        return found
    return Right(
        name=found.name,
        value=found.value,
        allows=False,
        why="cannot be written: set SCOPEDOWN_CACHE, or use --no-cache",
    )


def _possible(tools: list[Tool], rights: list[Right]) -> list[Possible]:
    has = {t.name: t.found for t in tools}
    by = {r.name: r for r in rights}

    def entry(scope: Scope, what: str, *needs: tuple[bool | None, str]) -> Possible:
        missing = [text for ok, text in needs if ok is False]
        return Possible(scope=scope, measurement=what, possible=not missing, missing=missing)

    torch = has["torch (this Python)"]
    return [
        entry(Scope.APPLICATION, "server metrics and a request log", (has["curl"], "curl is not on PATH")),
        entry(
            Scope.APPLICATION,
            "device monitor",
            (has["nvidia-smi"] or has["rocm-smi"], "neither nvidia-smi nor rocm-smi is on PATH: no GPU driver here"),
        ),
        entry(
            Scope.TIMELINE,
            "system timeline",
            (
                has["nsys"] or has["rocprofv3"],
                "neither nsys nor rocprofv3 was found: install Nsight Systems, or ROCm's profiler",
            ),
        ),
        entry(
            Scope.TIMELINE,
            "host threads and scheduling beside it",
            (has["nsys"], "nsys was not found"),
            (by["perf_event_paranoid"].allows, by["perf_event_paranoid"].why),
        ),
        entry(
            Scope.TIMELINE, "reading .nsys-rep files", (has["nsys"], "nsys was not found: export to SQLite where it is")
        ),
        entry(
            Scope.FRAMEWORK, "PyTorch profiler", (torch, "torch is not in this Python: run it where the server runs")
        ),
        entry(
            Scope.FRAMEWORK,
            "Python stacks without a restart",
            (has["py-spy"], "py-spy is not on PATH: pip install py-spy"),
            (by["ptrace scope"].allows, by["ptrace scope"].why),
        ),
        entry(
            Scope.KERNEL,
            "kernel report",
            (has["ncu"], "ncu is not on PATH: install Nsight Compute"),
            (by["performance counters"].allows, by["performance counters"].why),
        ),
    ]
