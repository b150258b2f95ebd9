"""``scopedown diagnose``: the report on a case, or on bare files with the symptom given as flags."""

from __future__ import annotations

import argparse
import sys

from scopedown.commands import evidence
from scopedown.commands.output import check_target, put


class Diagnose:
    name = "diagnose"
    help = "where the time of a symptom went, which scope to measure next, and why not a narrower one"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        evidence.add_arguments(parser)
        out = parser.add_argument_group("output")
        out.add_argument("--top", type=_count, metavar="N", help="also what stands behind it, N entries a section")
        out.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the report as JSON (see: schema)")
        out.add_argument("--markdown", nargs="?", const="-", metavar="FILE", help="the report as Markdown")
        out.add_argument("--html", metavar="FILE", help="the report as a page to look at: one file, opens offline")
        out.add_argument("--save", action="store_true", help="keep report and journal entry in the case")

    def run(self, args: argparse.Namespace) -> int:
        case = evidence.load_case(args)
        for target in (args.json, args.markdown, args.html):
            check_target(target, case)
        from scopedown.answer import answer
        from scopedown.tell.progress import progress

        with progress() as begins:
            answered = answer(case, evidence.options(args), begins)
        report = answered.report
        printed = False
        if args.json is not None:
            from scopedown.tell.json import encode

            printed |= put(encode(report), args.json)
        if args.markdown is not None:
            from scopedown.tell.markdown import render

            printed |= put(render(report).encode("utf-8", "replace"), args.markdown)
        if args.html is not None:
            from scopedown.tell.html import render as page

            printed |= put(page(report, answered.pictures()), args.html)
        if not printed:
            from scopedown.tell.text import show

            show(report, sys.stdout, top=args.top)
        return 0


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of 1 or more")
    return int(text)
