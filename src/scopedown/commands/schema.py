"""``scopedown schema``: the JSON Schema of the report."""

from __future__ import annotations

import argparse
import sys


class Schema:
    name = "schema"
    help = "print the JSON Schema of `diagnose --json`"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.description = f"{self.help} (draft 2020-12)"

    def run(self, args: argparse.Namespace) -> int:  # noqa: ARG002
        from scopedown.tell.schema import text

        sys.stdout.buffer.write(text())
        return 0
