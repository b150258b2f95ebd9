"""``scopedown demo``: the worked example, written in the formats of the real tools, then diagnosed."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from pathlib import Path

from scopedown.errors import UsageError

TRY = """
try next
  scopedown diagnose {case} --top 20                       what stands behind this screen
  scopedown diagnose {case} --json                         the same for programs
  scopedown whatif {case} --remove pattern:top             what the largest repetition is worth
  scopedown whatif {case} --remove category:device.kernel  what all kernels together are worth
  scopedown inspect {case}/evidence/*                      what each file can and cannot establish"""


class Demo:
    name = "demo"
    help = "the worked example: files in real formats, diagnosed end to end"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="keep the case here (default: temporary)")
        parser.add_argument("--seed", type=int, default=1, metavar="N", help="another instance of the same situation")

    def run(self, args: argparse.Namespace) -> int:
        if args.output is not None:
            return play(args.output, args.seed, kept=True)
        with tempfile.TemporaryDirectory(prefix="scopedown-demo-") as folder:
            return play(Path(folder) / "case", args.seed, kept=False)


def play(folder: Path, seed: int, *, kept: bool) -> int:
    from scopedown.answer import answer
    from scopedown.case import load_case
    from scopedown.files import write_atomic
    from scopedown.simulate import write_case
    from scopedown.tell import html, markdown
    from scopedown.tell.clean import clean
    from scopedown.tell.text import show

    if folder.exists() and not (folder / "case.toml").is_file() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty and holds no case: name another folder with -o")
    write_case("worked_example", seed, folder)
    shown = clean(str(folder))
    print(f"wrote the worked example to {shown}: one request, 121 ms to its first token, and what its tools saw\n")
    answered = answer(load_case(folder))
    report = answered.report
    show(report, sys.stdout)
    if kept:
        write_atomic(folder / "report.md", markdown.render(report).encode("utf-8", "replace"))
        write_atomic(folder / "report.html", html.render(report, answered.pictures()))
        print(f"\nthe whole report: {shown}/report.html (a page to look at), {shown}/report.md")
        print(TRY.format(case=clean(shlex.quote(str(folder)))))
    else:
        print("\ntry next\n  scopedown demo -o demo-case    the same, kept, with commands to go on")
    return 0
