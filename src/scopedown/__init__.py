"""From one GPU performance symptom: where every nanosecond went, which scope to measure next, and why none narrower.

>>> from scopedown import diagnose, load
>>> report = diagnose(load(["case"]))  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scopedown.errors import InputError, MissingExtra, ScopedownError, UsageError

if TYPE_CHECKING:
    from scopedown.answer import WhatIf, diagnose, whatif
    from scopedown.case import Case, load
    from scopedown.inspection import inspect
    from scopedown.options import Options
    from scopedown.report import Report
    from scopedown.trace.model import Trace

__all__ = [
    "Case",
    "InputError",
    "MissingExtra",
    "Options",
    "Report",
    "ScopedownError",
    "Trace",
    "UsageError",
    "WhatIf",
    "diagnose",
    "inspect",
    "load",
    "whatif",
]

_HOME = {
    "Case": "case",
    "load": "case",
    "Options": "options",
    "WhatIf": "answer",
    "diagnose": "answer",
    "whatif": "answer",
    "inspect": "inspection",
    "Report": "report",
    "Trace": "trace.model",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: ``scopedown --help`` needs no NumPy."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
