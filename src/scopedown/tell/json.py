"""The report as JSON: the object of the published schema, and nothing that the report does not hold."""

from __future__ import annotations

from typing import Any

import msgspec

from scopedown.report import Report
from scopedown.tell.clean import acts


def encode(report: msgspec.Struct | dict[str, Any] | list[Any], indent: int = 2) -> bytes:
    """UTF-8, indented, with a newline at the end. Not-a-number becomes null; lone surrogates "?". Characters that act
    on a terminal (controls, direction overrides) are written as ``\\uXXXX``, which reads back as the same text."""
    return msgspec.json.format(compact(report), indent=indent) + b"\n"


def compact(value: Any) -> bytes:
    """The same on one line."""
    try:
        raw = msgspec.json.encode(value)
    except UnicodeEncodeError:
        raw = msgspec.json.encode(mended(msgspec.to_builtins(value)))
    if raw.isascii() and b"\x7f" not in raw:
        return raw
    text = raw.decode()
    acting = {ord(c): _escaped(c) for c in set(text) if not c.isprintable() and acts(c)}
    return text.translate(acting).encode() if acting else raw


def decode(data: bytes) -> Report:
    """The inverse of ``encode``. Raises msgspec.ValidationError where the object is no report."""
    return msgspec.json.decode(data, type=Report)


def mended(value: Any) -> Any:
    """Text from a file or a path with broken UTF-8 carries lone surrogates, which JSON in UTF-8 cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {mended(k): mended(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [mended(v) for v in value]
    return value


def _escaped(c: str) -> str:
    units = c.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
