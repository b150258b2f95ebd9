"""``scopedown diagnose``: the report on a case, or on bare files with the symptom given as flags."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from scopedown.commands.output import write_atomic
from scopedown.terms import Metric, Objective, Scope, Statistic

#: Flags that become fields of ``scopedown.diagnose.Options`` of the same name.
OPTIONS = (
    "metric", "statistic", "request", "observed", "target", "objective", "load", "begin", "end", "range", "step",
    "offset", "tz", "nsys", "server", "save", "cache", "scope",
)  # fmt: skip


class Diagnose:
    name = "diagnose"
    help = "where the time of a symptom went, which scope to measure next, and why not a narrower one"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_evidence(parser)
        out = parser.add_argument_group("output")
        out.add_argument("--top", type=_count, metavar="N", help="also what stands behind it, N entries a section")
        out.add_argument("--json", nargs="?", const="-", metavar="FILE", help="the report as JSON (see: schema)")
        out.add_argument("--markdown", nargs="?", const="-", metavar="FILE", help="the report as Markdown")
        out.add_argument("--save", action="store_true", help="keep report and journal entry in the case")

    def run(self, args: argparse.Namespace) -> int:
        from scopedown.diagnose import diagnose

        report = diagnose(load_case(args), options=options(args))
        printed = False
        if args.json is not None:
            from scopedown.tell.json import encode

            printed |= put(encode(report), args.json)
        if args.markdown is not None:
            from scopedown.tell.markdown import render

            printed |= put(render(report).encode("utf-8", "replace"), args.markdown)
        if not printed:
            from scopedown.tell.text import show

            show(report, sys.stdout, top=args.top)
        return 0


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """The arguments that name the evidence, the symptom and its interval (shared with ``whatif``)."""
    parser.add_argument("paths", nargs="*", type=Path, metavar="CASE-or-FILE", help="a case folder, or files")
    symptom = parser.add_argument_group("symptom (where no case.toml states it)")
    symptom.add_argument("--metric", choices=[str(m) for m in Metric])
    symptom.add_argument("--statistic", choices=[str(s) for s in Statistic])
    symptom.add_argument("--request", metavar="ID", help="one request instead of a statistic")
    symptom.add_argument("--observed", metavar="VALUE", help="with its unit: '121 ms', '8.5 req/s'")
    symptom.add_argument("--target", metavar="VALUE", help="with its unit")
    symptom.add_argument("--objective", choices=[str(o) for o in Objective])
    symptom.add_argument("--load", metavar="TEXT", help="the load it was seen under: '8.5 requests/s, open loop'")
    interval = parser.add_argument_group("interval (instead of the symptom's own)")
    interval.add_argument("--from", dest="begin", metavar="TIME", help="on the trace's clock: '1.5 s', or ns")
    interval.add_argument("--to", dest="end", metavar="TIME", help="on the trace's clock")
    interval.add_argument("--range", metavar="NAME", help="an annotated range by name; 'NAME#3' is its third")
    interval.add_argument("--step", metavar="N|median", help="one step of a repeating sequence")
    reading = parser.add_argument_group("reading")
    reading.add_argument("--offset", metavar="TIME", help="add this to the log's clock to get the trace's")
    reading.add_argument("--tz", metavar="ZONE", help="time zone of a monitor log without one: 'Europe/Paris'")
    reading.add_argument("--nsys", type=Path, metavar="PATH", help="the nsys that exports .nsys-rep files")
    reading.add_argument(
        "--server", default="auto", metavar="NAME[==VERSION]",
        help="whose commands to print: auto, plain, vllm, sglang, trtllm; 'vllm==0.13'",
    )  # fmt: skip
    reading.add_argument("--no-cache", dest="cache", action="store_false", help="read every file anew")
    reading.add_argument("--scope", choices=[str(s) for s in Scope], help="ask for this scope anyway")


def options(args: argparse.Namespace) -> Any:
    """The flags as ``scopedown.diagnose.Options``."""
    from scopedown.diagnose import Options

    return Options(**{name: getattr(args, name) for name in OPTIONS if hasattr(args, name)})


def load_case(args: argparse.Namespace) -> Any:
    """The case that the paths name: a folder with case.toml, the working folder if it is one, or bare files."""
    from scopedown.case import load

    return load(args.paths or [Path()])


def put(data: bytes, target: str) -> bool:
    """Write to a file, or to standard output for "-"; True where it was printed."""
    if target == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return True
    write_atomic(Path(target), data)
    return False


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value
