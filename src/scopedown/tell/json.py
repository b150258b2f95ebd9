"""The report as JSON: the object of the published schema, and nothing that the report does not hold."""

from __future__ import annotations

import msgspec

from scopedown.report import Report


def encode(report: msgspec.Struct) -> bytes:
    """UTF-8, indented by two, with a newline at the end. Not-a-number becomes null; lone surrogates "?"."""
    try:
        raw = msgspec.json.encode(report)
    except UnicodeEncodeError:
        raw = msgspec.json.encode(_mended(msgspec.to_builtins(report)))
    return msgspec.json.format(raw, indent=2) + b"\n"


def decode(data: bytes) -> Report:
    """The inverse of ``encode``. Raises msgspec.ValidationError where the object is no report."""
    return msgspec.json.decode(data, type=Report)


def _mended(value: object) -> object:
    """Text from a file with broken UTF-8 carries lone surrogates, which JSON in UTF-8 cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_mended(k): _mended(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(v) for v in value]
    return value
