"""Loads to be sent: when requests arrive and how long they are, without any result.

Azure LLM inference traces (CSV ``TIMESTAMP,ContextTokens,GeneratedTokens``, 7 decimals, no zone), BurstGPT (CSV
``Timestamp,Model,Request tokens,Response tokens,…``, seconds) and Mooncake (JSON lines ``timestamp`` in ms,
``input_length``, ``output_length``, ``hash_ids``). Only differences of their times mean anything.
"""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np

from scopedown.errors import InputError
from scopedown.read.base import Artifact, OfferedLoad, Source
from scopedown.read.bench import MS, Notes, S, column, head_of, iso, lines, ns, text_of, whole
from scopedown.read.bench_lmbench import csv_rows
from scopedown.terms import Scope
from scopedown.units import show_ns

_AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_BURST = ("Timestamp", "Request tokens", "Response tokens")
_MOONCAKE = re.compile(rb'\{[^{}]*"timestamp"\s*:[^{}]*"input_length"\s*:[^{}]*"output_length"')


class LoadTrace:
    kind: ClassVar[str] = "load-trace"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "Offered load without results: Azure LLM traces, BurstGPT, Mooncake"

    def sniff(self, source: Source) -> bool:
        head = head_of(source)
        if head.startswith(b"{"):
            return bool(_MOONCAKE.match(head))
        cells = {c.strip() for c in head.split(b"\n", 1)[0].decode("utf-8", "replace").split(",")}
        return set(_AZURE) <= cells or set(_BURST) <= cells

    def read(self, source: Source) -> Artifact:
        notes = Notes()
        producer, rows = _rows(source, notes)
        kept = [(t, i, o) for t, i, o in rows if t is not None]
        if len(kept) < len(rows):
            notes.say(f"{len(rows) - len(kept)} of {len(rows)} rows have no time that can be read: left out")
        if not kept:
            raise InputError(source.path, "", "holds no arrival with a time", "check what wrote it")
        arrival = column(t for t, _, _ in kept)
        if (np.diff(arrival) < 0).any():
            notes.say("arrivals are not in order: sorted")
        order = np.argsort(arrival, kind="stable")
        load = OfferedLoad(
            arrival=arrival[order] - arrival.min(),
            input_tokens=column(i for _, i, _ in kept)[order],
            output_tokens=column(o for _, _, o in kept)[order],
        )
        span = int(load.arrival[-1])
        rate = f" at {(len(kept) - 1) / (span / S):.3g} requests/s" if span else ""
        return Artifact(
            path=source.path,
            sha256=source.sha256,
            kind=self.kind,
            scope=self.scope,
            producer=producer,
            version=None,
            interval_ns=(0, span),
            utc_start_ns=None,
            counts={"arrivals": len(kept)},
            content=load,
            can_establish=(f"a load to offer: {len(kept)} requests over {show_ns(span)}{rate}, with their lengths",),
            cannot_establish=("any latency or throughput: it is a load to be sent, not the result of one",),
            warnings=tuple(notes.all(len(rows))),
        )


def _rows(source: Source, notes: Notes) -> tuple[str, list[tuple[int | None, int | None, int | None]]]:
    if head_of(source).startswith(b"{"):
        found = []
        for number, r in lines(source):
            if not r:
                notes.say(f"line {number} is cut off (no line end): dropped")
                continue
            found.append((ns(r.get("timestamp"), MS), whole(r.get("input_length")), whole(r.get("output_length"))))
        return "Mooncake", found
    rows = [r for _, r in csv_rows(text_of(source), notes)]
    if rows and _AZURE[1] in rows[0]:
        at, tokens_in, tokens_out = _AZURE
        return "Azure LLM trace", [(iso(r[at], Notes()), whole(r[tokens_in]), whole(r[tokens_out])) for r in rows]
    at, tokens_in, tokens_out = _BURST
    return "BurstGPT", [(ns(r[at], S), whole(r[tokens_in]), whole(r[tokens_out])) for r in rows]
