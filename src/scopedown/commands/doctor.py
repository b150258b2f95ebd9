"""``scopedown doctor``: what this machine allows to be measured."""

from __future__ import annotations

import argparse
import sys


class Doctor:
    name = "doctor"
    help = "which tools and rights are here, and so which measurements are possible"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="the findings as JSON")

    def run(self, args: argparse.Namespace) -> int:
        from scopedown.doctor import examine
        from scopedown.tell.clean import clean
        from scopedown.tell.json import encode

        found = examine()
        if args.json:
            sys.stdout.buffer.write(encode(found))
            return 0
        print("tools")
        for t in found.tools:
            what = f"{t.version or 'version unknown'}" if t.found else "not found"
            print(f"  {t.name:<20} {clean(what):<16} {t.needed_for}")
        print("rights")
        for r in found.rights:
            mark = {True: "ok", False: "no", None: "-"}[r.allows]
            print(f"  {r.name:<22} {mark:<3} {clean(r.value)}{'; ' + clean(r.why) if r.why else ''}")
        print("possible here")
        for p in found.possible:
            print(f"  {'yes' if p.possible else 'no ':<4} {p.scope:<12} {p.measurement}")
            for reason in p.missing:
                print(f"       {'':<12} {clean(reason)}")
        return 0
