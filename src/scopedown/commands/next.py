"""``scopedown next``: the decision of a case as it stands, after the questions that were asked before."""

from __future__ import annotations

import argparse
from pathlib import Path


class Next:
    name = "next"
    help = "the next measurement of a case, and the questions that led to it"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("case", type=Path, metavar="CASE", help="a case folder")
        parser.add_argument("--json", action="store_true", help="print one object: decision and journal")

    def run(self, args: argparse.Namespace) -> int:
        from scopedown.answer import diagnose
        from scopedown.case import load_case
        from scopedown.commands.output import put
        from scopedown.journal import read
        from scopedown.tell.clean import clean
        from scopedown.tell.json import encode

        case = load_case(args.case)
        entries = read(args.case if args.case.is_dir() else args.case.parent)
        decision = diagnose(case).decision
        if args.json:
            put(encode({"decision": decision, "journal": entries}, indent=1), "-")
            return 0
        for entry in entries:
            print(f"{entry.n}. {clean(entry.question)}")
            print(f"   measured: {clean(entry.measurement)}")
            print(f"   answer: {clean(entry.answer)}")
        print(f"next ({decision.kind}, {decision.scope}): {clean(decision.question)}")
        print(clean(decision.why))
        for step in decision.command.steps if decision.command is not None else ():
            print(f"  [{step.where}] {clean(step.shell)}")
        return 0
