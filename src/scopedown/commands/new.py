"""``scopedown new``: a case folder from a complaint and its evidence."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from scopedown.commands.evidence import add_columns
from scopedown.errors import UsageError
from scopedown.terms import Metric, Objective, Statistic


class New:
    name = "new"
    help = "make a case folder from a complaint and its evidence"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR", help="the case to make")
        parser.add_argument("paths", nargs="*", metavar="FILE", help="evidence: files, folders or patterns")
        parser.add_argument("--metric", choices=[str(m) for m in Metric])
        parser.add_argument("--statistic", choices=[str(s) for s in Statistic])
        parser.add_argument("--request", metavar="ID", help="one request instead of a statistic")
        parser.add_argument("--observed", metavar="VALUE", help="with its unit: '121 ms', '8.5 req/s'")
        parser.add_argument("--target", metavar="VALUE", help="with its unit")
        parser.add_argument("--objective", choices=[str(o) for o in Objective])
        parser.add_argument("--objective-text", metavar="TEXT", help="what is to become better (objective: other)")
        parser.add_argument("--load", metavar="TEXT", help="the load it was seen under: '8.5 requests/s, open loop'")
        parser.add_argument(
            "--contract", action="append", default=[], metavar="NAME=VALUE", help="what a comparison has to keep"
        )
        parser.add_argument(
            "--reference", action="store_true", help="leave the evidence where it is: record path and hash"
        )
        add_columns(parser)

    def run(self, args: argparse.Namespace) -> int:
        from scopedown.new_case import write_case
        from scopedown.symptom import KEYS
        from scopedown.tell.clean import clean

        symptom = {key: value for key in KEYS if (value := getattr(args, key, None)) is not None}
        toml = write_case(
            args.folder,
            symptom,
            args.paths,
            contract=_fields(args.contract),
            reference=args.reference,
            columns=args.columns,
        )
        print(f"wrote {clean(str(toml))}")
        if not args.paths:
            print(f"put evidence into {clean(shlex.quote(str(args.folder / 'evidence')))}")
        print(f"next: scopedown diagnose {clean(shlex.quote(str(args.folder)))}")
        return 0


def _fields(pairs: list[str]) -> dict[str, str]:
    fields = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(f"--contract {pair!r}: write NAME=VALUE, for example model=llama-8b")
        fields[name.strip()] = value.strip()
    return fields
