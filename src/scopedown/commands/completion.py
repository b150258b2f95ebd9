"""``scopedown completion``: the completion script of a shell, made from the parser."""

from __future__ import annotations

import argparse


class Completion:
    name = "completion"
    help = "print the completion script of a shell"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))

    def run(self, args: argparse.Namespace) -> int:
        import shtab

        from scopedown.cli import build_parser

        print(shtab.complete(build_parser(), args.shell))
        return 0
