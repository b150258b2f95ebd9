"""LMBench (long-input benchmark) results: CSV with Unix seconds.

``prompt_tokens,generation_tokens,ttft,generation_time,launch_time,finish_time``: TTFT runs from ``launch_time``, the
send; ``generation_time`` from the first token to ``finish_time``. No schedule is kept: a late client is not seen.
"""

from __future__ import annotations

import csv
from typing import ClassVar

from scopedown.read.base import Artifact, Clock, Source
from scopedown.read.bench import Notes, Row, S, after, artifact, head_of, ns, text_of, whole
from scopedown.terms import Scope

_COLUMNS = ("prompt_tokens", "generation_tokens", "ttft", "generation_time", "launch_time", "finish_time")


class LmBench:
    kind: ClassVar[str] = "lmbench-csv"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "LMBench request records (CSV)"

    def sniff(self, source: Source) -> bool:
        first = head_of(source).split(b"\n", 1)[0].decode("utf-8", "replace")
        return set(_COLUMNS) <= {c.strip().strip('"') for c in first.split(",")}

    def read(self, source: Source) -> Artifact:
        notes, rows = Notes(), []
        for number, r in csv_rows(text_of(source), notes):
            sent = ns(r["launch_time"], S)
            end = ns(r["finish_time"], S)
            if sent is None or end is None:
                notes.count("{n} rows have no launch_time or finish_time: left out", str(number))
                continue
            rows.append(
                Row(
                    id=str(number),
                    sent=sent,
                    first=after(sent, r["ttft"], S),
                    end=end,
                    input_tokens=whole(r["prompt_tokens"]),
                    output_tokens=whole(r["generation_tokens"]),
                )
            )
        return artifact(source, self, rows, Clock.EPOCH, notes, "LMBench")


def csv_rows(text: str, notes: Notes) -> list[tuple[int, dict[str, str]]]:
    """``(row number from 1, cells by column)`` of the rows that have all cells; others are counted in the notes."""
    table = csv.reader(text.replace("\0", "").splitlines(), skipinitialspace=True)
    header = [c.strip() for c in next(table, [])]
    found: list[tuple[int, dict[str, str]]] = []
    odd = 0
    for cells in table:
        if len(cells) == len(header):
            found.append((len(found) + 1, dict(zip(header, cells, strict=True))))
        elif cells:
            odd += 1
    if odd and not text.endswith("\n") and odd == 1:
        notes.say("the last line is cut off: dropped")
    elif odd:
        notes.say(f"{odd} lines do not have the {len(header)} cells of the header: left out")
    elif found and not text.endswith(("\n", "\r")):
        notes.say("the last line has no line end: its last number may be cut off")
    return found
