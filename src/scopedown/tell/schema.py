"""The JSON Schema of the report (draft 2020-12), generated from its types.

The generated text is kept beside this module as ``report.schema.json``, so that a change of the format shows in
review; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from scopedown.report import SCHEMA_VERSION, Report

PUBLISHED = Path(__file__).with_name("report.schema.json")


def schema() -> dict[str, Any]:
    """The schema as an object."""
    made = msgspec.json.schema(Report)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"scopedown report, schema version {SCHEMA_VERSION}",
        "description": "What `scopedown diagnose --json` prints. Times and amounts are integer nanoseconds.",
    }
    return head | made


def text() -> bytes:
    """The schema as it is published."""
    return msgspec.json.format(msgspec.json.encode(schema(), order="deterministic"), indent=2) + b"\n"
