"""Small request logs for tests: rows as dictionaries, written and read as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scopedown.read import load
from scopedown.read.base import RequestLog

T0 = 1_781_082_000_000_000_000
MS = 1_000_000


def row(n: int, at: float, ttft: float, **more: Any) -> dict[str, Any]:
    """A request: arrival at ``at`` ms, first token ``ttft`` ms later, end 1 ms after that."""
    begin = T0 + int(at * MS)
    first = begin + int(ttft * MS)
    base = {"id": f"r{n}", "arrival_ns": begin, "sent_ns": begin, "first_token_ns": first, "end_ns": first + MS}
    return {**base, "input_tokens": 100, "output_tokens": 2, "status": "ok", **more}


def write(folder: Path, rows: list[dict[str, Any]], name: str = "requests.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def log_of(folder: Path, rows: list[dict[str, Any]]) -> RequestLog:
    content = load(write(folder, rows)).content
    assert isinstance(content, RequestLog)
    return content
