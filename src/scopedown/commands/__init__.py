"""The commands: one file, one class each; this tuple is the whole registry.

A command is a class with ``name``, ``help`` (one line), ``add_arguments(parser)`` and ``run(args) -> int`` (the exit
code). Its module imports what costs time (NumPy, the readers) inside ``run``, so that ``--help`` stays quick.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Protocol, cast

#: "module:class" in the order of the help page.
COMMANDS: tuple[tuple[str, str], ...] = (
    ("diagnose", "scopedown.commands.diagnose:Diagnose"),
    ("whatif", "scopedown.commands.whatif:WhatIf"),
    ("inspect", "scopedown.commands.inspect:Inspect"),
    ("new", "scopedown.commands.new:New"),
    ("next", "scopedown.commands.next:Next"),
    ("explain", "scopedown.commands.explain:Explain"),
    ("doctor", "scopedown.commands.doctor:Doctor"),
    ("demo", "scopedown.commands.demo:Demo"),
    ("schema", "scopedown.commands.schema:Schema"),
    ("completion", "scopedown.commands.completion:Completion"),
)


class Command(Protocol):
    name: str
    help: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def load(name: str) -> Command:
    """The command of that name. Raises KeyError where there is none."""
    module, _, cls = dict(COMMANDS)[name].partition(":")
    return cast(Command, getattr(import_module(module), cls)())
