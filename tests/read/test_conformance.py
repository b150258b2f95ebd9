"""The account does not care which tool wrote the trace: a simulated run read through each format has the account that
it has through Nsight Systems, category by category, to the nanosecond.

What a format has no rows for is left out of the Nsight Systems export too. Whole graphs are in none of these formats;
memsets are kernels in rocpd, in rocprofv3's JSON and in rocprof v1; rocprof v1 has no ranges; an XLA profile is of one
process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from make.rocm import BOOT, write_rocpd, write_rocprofv1, write_rocprofv3_json, write_rpd
from make.xplane import write_xplane
from scopedown.account.account import window
from scopedown.account.timeline import Timeline
from scopedown.read import load
from scopedown.simulate import SITUATIONS, NsysOptions, Run, random_program, run, write_nsys
from scopedown.terms import Category
from scopedown.trace.model import OpKind, Trace

CUPTI = "CUPTI_ACTIVITY_KIND_"
NO_TABLES = frozenset({f"{CUPTI}SYNCHRONIZATION", f"{CUPTI}CUDA_EVENT", f"{CUPTI}OVERHEAD", "OSRT_API", "SCHED_EVENTS"})
NO_NODES = frozenset(f"{CUPTI}{t}.graphNodeId" for t in ("KERNEL", "MEMCPY", "MEMSET"))
NO_MEMORY = frozenset({f"{CUPTI}MEMCPY.srcKind", f"{CUPTI}MEMCPY.dstKind"})


@dataclass(frozen=True)
class Format:
    write: Callable[[Run, Path], Path]
    lacks: frozenset[str]
    shift: int
    memsets: bool
    """Whether memsets are a kind of their own."""
    processes: bool = True


FORMATS = {
    "rocpd": Format(write_rocpd, NO_TABLES | NO_NODES | NO_MEMORY, BOOT, memsets=False),
    "rocprofv3-json": Format(write_rocprofv3_json, NO_TABLES | NO_NODES | NO_MEMORY, BOOT, memsets=False),
    "rpd": Format(write_rpd, NO_TABLES | NO_NODES | NO_MEMORY, BOOT, memsets=True),
    "rocprofv1": Format(write_rocprofv1, NO_TABLES | NO_NODES | NO_MEMORY | {"NVTX_EVENTS"}, BOOT, memsets=False),
    "xplane": Format(write_xplane, NO_TABLES | NO_NODES, 0, memsets=True, processes=False),
}


@cache
def simulated(name: str) -> Run | None:
    if name.startswith("random"):
        return run(random_program(int(name.removeprefix("random")), 8))
    return SITUATIONS[name](1).run


NAMES = [n for n in SITUATIONS if simulated(n)] + [f"random{seed}" for seed in range(8)]


def read(path: Path) -> Trace:
    content = load(path, cache=False).content
    assert isinstance(content, Trace)
    return content


def sums(trace: Trace, lo: int, hi: int, memsets: bool) -> tuple[dict[str, int], list[dict[str, int]]]:
    """Time by category of the path, and of each device."""

    def merged(lines: list[tuple[str, int]]) -> dict[str, int]:
        total: Counter[str] = Counter()
        for category, ns in lines:
            fill = category == Category.DEVICE_MEMSET and not memsets
            total[Category.DEVICE_KERNEL if fill else category] += ns
        return {c: n for c, n in sorted(total.items()) if n}

    timeline = Timeline(trace)
    path = merged([(line.category, line.ns) for line in window(timeline, lo, hi).lines()])
    devices = []
    for account in timeline.device_accounts(lo, hi):
        segs = account.segments
        devices.append(
            merged([(list(Category)[c], int(n)) for c, n in zip(segs.category.tolist(), segs.ns.tolist(), strict=True)])
        )
    return path, devices


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", FORMATS)
def test_same_account(kind: str, name: str, tmp_path: Path) -> None:
    form, made = FORMATS[kind], simulated(name)
    assert made is not None
    if any(o.work.kind == OpKind.GRAPH for o in made.recorded.ops):
        pytest.skip("graphs that were traced as a whole: the format has none")
    if not form.processes and len(made.program.processes) > 1:
        pytest.skip("several processes: a profile is of one")
    write_nsys(made, tmp_path / "nsys.sqlite", NsysOptions(leave_out=form.lacks))
    form.write(made, tmp_path / "other")
    assert load(tmp_path / "other").kind == kind
    one, other = read(tmp_path / "nsys.sqlite"), read(tmp_path / "other")
    assert len(one.ops) == len(other.ops)
    # Without a stated window the capture is from the first row to the last.
    rows = [t for t in (other.ops, other.host) if len(t)]
    lo = min(int(t.start.min()) for t in rows) - form.shift
    hi = min(max(int(t.end.max()) for t in rows) - form.shift, made.end_ns)
    expected = sums(one, lo, hi, form.memsets)
    found = sums(other, lo + form.shift, hi + form.shift, form.memsets)
    assert sum(found[0].values()) == hi - lo
    assert found == expected
