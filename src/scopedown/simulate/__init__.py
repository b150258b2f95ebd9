"""A simulated machine and the situations that it shows: programs, exact truth, and files in the formats of real tools.

``write_case("worked_example", 1, folder)`` writes a case and returns the truth about it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scopedown.errors import UsageError
from scopedown.simulate import loads, situations
from scopedown.simulate.program import Program, changed, without
from scopedown.simulate.random_program import random_program
from scopedown.simulate.run import Run, Segment, run
from scopedown.simulate.situation import Expect, Request, Situation, Truth, truth_of
from scopedown.simulate.write_logs import write_case_file, write_monitor, write_requests
from scopedown.simulate.write_nsys import NsysOptions, write_nsys

__all__ = [
    "SITUATIONS",
    "Expect",
    "NsysOptions",
    "Program",
    "Request",
    "Run",
    "Segment",
    "Situation",
    "Truth",
    "changed",
    "random_program",
    "run",
    "truth_of",
    "without",
    "write_case",
    "write_nsys",
]

SITUATIONS: dict[str, Callable[[int], Situation]] = {
    f.__name__: f
    for f in (
        situations.worked_example,
        situations.dominating_kernel,
        situations.launch_bound,
        situations.sync_then_launch,
        situations.sync_is_device_work,
        situations.pageable_copies,
        situations.long_copy_then_idle,
        situations.allocation_in_loop,
        situations.module_load,
        situations.module_load_unrecorded,
        situations.opaque_graph,
        situations.graph_by_node,
        situations.exposed_collective,
        situations.os_wait,
        situations.hand_over,
        situations.rare_pauses,
        situations.side_stream,
        situations.neighbour_prefill,
        situations.nothing_wrong,
        situations.two_processes,
        situations.two_devices,
        loads.near_saturation,
        loads.late_client,
        loads.slow_monitor,
    )
}


def write_case(situation: str | Situation, seed: int, folder: Path, options: NsysOptions | None = None) -> Truth:
    """Writes ``case.toml`` and ``evidence/`` under ``folder`` (made where it is missing, files replaced).

    Args:
        situation: a name of SITUATIONS, or a situation that was built already (``seed`` is then its own).
        options: how the export is written; by default as the situation says.

    Raises:
        UsageError: there is no situation of that name.
    """
    if isinstance(situation, str):
        if situation not in SITUATIONS:
            raise UsageError(f"there is no situation {situation!r}: choose one of {', '.join(SITUATIONS)}")
        situation = SITUATIONS[situation](seed)
    truth = truth_of(situation)
    evidence = folder / "evidence"
    evidence.mkdir(parents=True, exist_ok=True)
    write_case_file(truth, folder / "case.toml")
    write_requests(situation, evidence / "requests.jsonl")
    if situation.run is not None:
        write_nsys(situation.run, evidence / "report.sqlite", options or situation.nsys)
    if situation.monitor is not None:
        write_monitor(situation, evidence / "gpu.csv")
    return truth
