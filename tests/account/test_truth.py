"""Both partitions and the replay against the simulator, whose truth is a record and not an analysis."""

from __future__ import annotations

import pytest

from account.simulated import (
    Ran,
    agreement,
    length,
    nothing,
    random_run,
    situation_run,
    without_tag,
)
from scopedown.account.scenarios import predict
from scopedown.simulate import SITUATIONS, without
from scopedown.simulate.run import by_tag

BLOCKS = range(10)
TRACED = [n for n in SITUATIONS if situation_run(n, 1) is not None]


def block(n: int) -> range:
    """A tenth of the seeds."""
    return range(25 * n, 25 * n + 25)


def path_agreement(ran: Ran) -> float:
    return agreement(ran.run.path(ran.lo, ran.hi, ran.thread), ran.account.path)


def device_agreements(ran: Ran) -> list[float]:
    return [agreement(ran.run.device_account(ran.lo, ran.hi, d.device), d.segments) for d in ran.account.devices]


@pytest.mark.parametrize("n", BLOCKS)
def test_path_of_random_runs(n: int) -> None:
    found = {seed: path_agreement(random_run(seed)) for seed in block(n)}
    assert {s: a for s, a in found.items() if a < 0.97} == {}


@pytest.mark.parametrize("n", BLOCKS)
def test_devices_of_random_runs(n: int) -> None:
    found = {seed: min(device_agreements(random_run(seed)), default=1.0) for seed in block(n)}
    assert {s: a for s, a in found.items() if a < 0.97} == {}


@pytest.mark.parametrize("name", TRACED)
def test_situations(name: str) -> None:
    for seed in (1, 2, 3):
        _, ran = situation_run(name, seed)
        assert path_agreement(ran) >= 0.97, seed
        assert min(device_agreements(ran)) >= 0.97, seed


@pytest.mark.parametrize("n", BLOCKS)
def test_what_if_of_random_runs(n: int) -> None:
    """Every cause that the program names, on the path or beside it, against a rerun of the program without it.

    Up to two threads: with three, nothing in a trace tells who gave a signal that nobody had to wait for.
    """
    wrong = []
    for seed in block(n):
        ran = random_run(seed, 12, 2)
        if ran is None:
            continue
        tags = sorted(ran.run.program.tags())
        same, *predicted = predict(ran.account, [nothing(ran), *(without_tag(ran, tag) for tag in tags)])
        assert same == ran.total
        on_path = by_tag(ran.run.path(ran.lo, ran.hi, ran.thread))
        for tag, got in zip(tags, predicted, strict=True):
            true = length(without(ran.run.program, tag))
            if abs(got - true) > 0.03 * true or (tag not in on_path and ran.total - got > 0.03 * ran.total):
                wrong.append((seed, tag, got, true, ran.total))
    assert wrong == []
