"""Writes what stands beside a trace: the request log, a device monitor's CSV, and the case file."""

from __future__ import annotations

import datetime as dt
import json
import random
from itertools import pairwise
from pathlib import Path

from scopedown.simulate.situation import Situation, Truth
from scopedown.terms import Statistic


def write_requests(s: Situation, path: Path) -> int:
    """One JSON object a line, in the order of arrival; returns the number of lines."""
    lines = []
    for r in sorted(s.requests, key=lambda r: r.arrival):
        row: dict[str, object] = {"id": r.id, "arrival_ns": r.arrival, "sent_ns": r.sent}
        if s.phases and r.queued is not None:
            row |= {"queued_ns": r.queued, "scheduled_ns": r.scheduled}
        if r.tokens:
            row |= {"first_token_ns": r.tokens[0], "token_ns": r.tokens}
        row |= {"end_ns": r.end, "input_tokens": r.input_tokens, "output_tokens": len(r.tokens), "status": r.status}
        if r.error is not None:
            row["error"] = r.error
        if r.warmup:
            row["warmup"] = True
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


def write_monitor(s: Situation, path: Path) -> int:
    """``nvidia-smi --query-gpu=... --format=csv -lms``: one device; the share of each period with an op running.

    Times are local to a machine on UTC, without a zone, as the tool prints them. Returns the number of samples.
    """
    plan = s.monitor
    if plan is None:
        raise ValueError(f"{s.name} has no monitor")
    rng = random.Random(s.seed)  # noqa: S311 - a seeded simulation
    traced: list[tuple[int, int]] = []
    if s.run is not None:
        zero = s.epoch(0)
        account = s.run.device_account(0, s.run.end_ns, 0)
        traced = [(a.start + zero, a.end + zero) for a in account if a.category.is_device]
    duty = sum(b - a for a, b in traced) / (traced[-1][1] - traced[0][0]) if traced else 0.35
    name = s.contract.get("device", "NVIDIA H100 80GB HBM3")
    lines = ["timestamp, index, name, utilization.gpu [%], utilization.memory [%], clocks.current.sm [MHz]"]
    for begin, end in pairwise(range(plan.start, plan.end, plan.period_ns)):
        active = _overlap(traced, begin, end) + duty * _overlap(plan.busy, begin, end)
        share = min(100, round(100 * active / plan.period_ns))
        clock = 1980 - rng.randrange(0, 3) * 15
        time = dt.datetime.fromtimestamp(end // 10**9, dt.UTC).strftime("%Y/%m/%d %H:%M:%S")
        stamp = f"{time}.{end % 10**9 // 10**6:03d}"
        lines.append(f"{stamp}, 0, {name}, {share} %, {share // 5} %, {clock} MHz")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines) - 1


def _overlap(intervals: list[tuple[int, int]], begin: int, end: int) -> int:
    return sum(max(0, min(b, end) - max(a, begin)) for a, b in intervals)


def write_case_file(truth: Truth, path: Path) -> None:
    """``case.toml``: the complaint as a user states it, and the declared part of the contract."""
    s = truth.situation
    symptom: dict[str, str] = {"metric": s.symptom.metric, "statistic": s.symptom.statistic}
    if s.symptom.statistic == Statistic.REQUEST:
        symptom["request"] = s.subject.id
    symptom["observed"] = f"{truth.observed_ns / 1e6:.3f} ms"
    if s.symptom.target_ns is not None:
        symptom["target"] = f"{s.symptom.target_ns / 1e6:.3f} ms"
    symptom |= {"objective": s.symptom.objective, "load": s.symptom.load}
    tables: dict[str, dict[str, str | int]] = {"symptom": {**symptom}, "contract": s.contract}
    # A JSON string of printable text is a TOML basic string too.
    parts = [
        f"[{title}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items())
        for title, rows in tables.items()
        if rows
    ]
    path.write_text("\n".join(parts), encoding="utf-8")
