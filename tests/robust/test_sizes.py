"""Deep, wide and many: what would take the square of a number, or a frame of the interpreter each."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import pytest

from robust.hostile import call, capture


def nested(n: int) -> list[tuple[int, int, str]]:
    return [(1000 + i, 10**8 - i, f"range {i}") for i in range(n)]


@pytest.mark.parametrize(
    ("shape", "seconds"),
    [
        ({"nvtx": nested(20_000)}, 20),
        ({"nvtx": [(1000, 10**8, "same")] * 20_000}, 20),
        ({"threads": 1500, "calls": 3000}, 25),
        ({"streams": 500, "calls": 1000}, 25),
    ],
    ids=["nested", "equal", "threads", "streams"],
)
def test_time_and_memory_stay_sane(tmp_path: Path, shape: dict[str, Any], seconds: float) -> None:
    trace = capture(tmp_path / "t.sqlite", **shape)
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    call("diagnose", trace, "--json").exact()
    assert time.process_time() - begin < seconds
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 * 1024
