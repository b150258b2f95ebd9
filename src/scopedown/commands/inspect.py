"""``scopedown inspect``: what files are, and what they can and cannot establish."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from scopedown.commands.evidence import add_columns

if TYPE_CHECKING:
    from rich.console import Console

    from scopedown.inspection import Inspected


class Inspect:
    name = "inspect"
    help = "what your files are, what they hold, what they can and cannot establish"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="FILE", help="files, folders or patterns")
        parser.add_argument("--json", action="store_true", help="print a list, one object a file")
        add_columns(parser)

    def run(self, args: argparse.Namespace) -> int:
        from scopedown.commands.output import put
        from scopedown.inspection import inspect
        from scopedown.tell.json import encode

        found = inspect(args.paths, args.columns)
        if args.json:
            put(encode(found, indent=1), "-")
            return 0
        from rich.console import Console

        # Lines are not broken at a width that nobody looks at.
        # A width at all: with COLUMNS=0 rich prints nothing.
        console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, file=sys.stdout, width=500)
        for number, item in enumerate(found):
            if number:
                console.print()
            _show(console, item)
        return 0


def _show(console: Console, item: Inspected) -> None:
    from rich.text import Text

    from scopedown.tell.clean import clean
    from scopedown.units import show_ns, show_share

    console.print(Text(clean(item.path), style="bold"))
    if item.kind is None:
        console.print(f"  unknown: {clean(item.why or '')}")
        return
    producer = " ".join(clean(p) for p in (item.producer, item.version) if p)
    console.print(f"  {item.kind}, scope {item.scope}, by {producer}, sha256 {item.sha256[:12]}")
    if item.interval_ns is not None:
        console.print(f"  covers      {show_ns(item.interval_ns[1] - item.interval_ns[0])}")
    if item.counts:
        console.print("  holds       " + ", ".join(f"{n} {clean(k)}" for k, n in item.counts.items() if n))
    for device in item.devices:
        name = f" {clean(device.name)}" if device.name else ""
        console.print(
            f"  device {device.id:<4} {device.ops} ops, busy {show_ns(device.busy_ns)} of {show_ns(device.span_ns)} "
            f"({show_share(device.busy_ns, device.span_ns)}), {device.gaps_over_100us} gaps above 100 us{name}"
        )
    if item.requests is not None:
        console.print(f"  requests    {item.requests.count}, ok {item.requests.ok}")
        for label, found in (
            ("TTFT", item.requests.ttft_ns),
            ("TPOT", item.requests.tpot_ns),
            ("E2E", item.requests.e2e_ns),
        ):
            if found is not None:
                console.print(f"  {label:<11} " + ", ".join(f"{k} {show_ns(v)}" for k, v in found.items()))
    if item.coverage is not None:
        said = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in item.coverage.items() if isinstance(v, int) and v)
        console.print(f"  coverage    {said}")
    for label, texts in (
        ("can", item.can_establish),
        ("cannot", item.cannot_establish),
        ("warning", item.warnings),
    ):
        for text in texts:
            console.print(f"  {label:<11} {clean(text)}")
