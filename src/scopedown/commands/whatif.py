"""``scopedown whatif``: the dependency graph replayed with some of its time taken out or scaled."""

from __future__ import annotations

import argparse

from scopedown.commands import evidence
from scopedown.commands.output import check_target, put
from scopedown.errors import UsageError

SELECTORS = """\
selectors:
  host:REGEX          host events by name
  kernel:REGEX        kernels by name
  copy:KIND           HtoD, DtoH, DtoD or PtoP
  category:NAME       lines of a category (scopedown explain category)
  line:ID             one line of the ledger
  pattern:ID          one pattern of the report; pattern:top is the largest on the path

A REGEX is looked for in the first 4000 characters of a name; one that takes longer than 5 s is given up.
The answer is a bound under the assumptions it prints: the order is kept, and what runs beside other work saves less
than its length."""


#: Replayed times stay within int64.
LARGEST_FACTOR = 1000


class WhatIf:
    name = "whatif"
    help = "the interval without, or with less of, the named time"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        evidence.add_arguments(parser)
        parser.epilog = SELECTORS
        parser.add_argument("--remove", action="append", default=[], metavar="SELECTOR", help="take this time out")
        parser.add_argument(
            "--scale", action="append", default=[], type=_scaled, metavar="SELECTOR=F", help="multiply it by F"
        )
        parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the answer as JSON")

    def run(self, args: argparse.Namespace) -> int:
        if not args.remove and not args.scale:
            raise UsageError("whatif needs --remove SELECTOR or --scale SELECTOR=F (see: scopedown whatif --help)")
        case = evidence.load_case(args)
        check_target(args.json, case)
        from scopedown.answer import whatif
        from scopedown.tell.clean import clean
        from scopedown.tell.json import encode
        from scopedown.tell.progress import progress
        from scopedown.tell.sentences import ms

        with progress() as begins:
            answer = whatif(case, evidence.options(args), args.remove, args.scale, begins)
        if args.json is not None and put(encode(answer), args.json):
            return 0
        matched = answer.matched
        print(f"matched    {matched.events} events, {ms(matched.time_ns)}")
        print(f"interval   {ms(answer.baseline_ns)} -> {ms(answer.predicted_ns)} (saves {ms(answer.saved_ns)})")
        for assumption in answer.assumptions:
            print(f"assuming   {clean(assumption)}")
        return 0


def _scaled(text: str) -> tuple[str, float]:
    """``"kernel:gemm=0.5"`` -> ``("kernel:gemm", 0.5)``; the selector itself may hold "="."""
    selector, sign, factor = text.rpartition("=")
    try:
        value = float(factor)
    except ValueError:
        value = -1.0
    if not sign or not 0 <= value <= LARGEST_FACTOR:
        raise argparse.ArgumentTypeError(f"{text!r}: expected SELECTOR=F with a factor F from 0 to {LARGEST_FACTOR}")
    return selector, value
