"""Files that hold several runs: one load after another, whose requests are of different populations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from scopedown.errors import UsageError
from scopedown.read.base import Source
from scopedown.read.bench import Notes

Run = TypeVar("Run")


def chosen_run(
    source: Source, runs: Sequence[Run], loads: Sequence[str], run: int | None, notes: Notes
) -> list[tuple[int, Run]]:
    """``(number, run)`` from 1: the one that was chosen, else all of them with a warning. Raises UsageError."""
    if run is not None:
        if not 1 <= run <= len(runs):
            raise UsageError(f"--columns run={run}: {source.path.name} holds {len(runs)} runs")
        return [(run, runs[run - 1])]
    if len(runs) > 1:
        named = ", ".join(f"{i} = {load}" for i, load in enumerate(loads[:8], 1))
        more = f" and {len(loads) - 8} more" if len(loads) > 8 else ""
        notes.say(
            f"{len(runs)} runs of different load in one file ({named}{more}): statistics mix them; "
            "choose one with --columns run=N"
        )
    return list(enumerate(runs, 1))
