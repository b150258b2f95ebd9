"""``python -m scopedown.simulate SITUATION --seed N -o DIR``: writes a case and prints the truth about it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scopedown.simulate import SITUATIONS, write_case
from scopedown.units import show_ns, show_share


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scopedown.simulate", description="Write a simulated case.")
    parser.add_argument("situation", choices=list(SITUATIONS))
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    truth = write_case(args.situation, args.seed, args.output)
    total, expect = truth.total_ns, truth.expect
    out = [f"{args.situation}, seed {args.seed}: {(SITUATIONS[args.situation].__doc__ or '').strip()}"]
    out.append(f"interval {show_ns(total)}, symptom {show_ns(truth.observed_ns)}")
    for category, ns in sorted(truth.lines.items(), key=lambda item: -item[1]):
        out.append(f"  {category:22} {show_ns(ns):>12} {show_share(ns, total):>8}")
    out += [f"device {d} busy {show_share(ns, total)}" for d, ns in truth.busy_ns.items()]
    for title, tags in (("on the path", truth.tags), ("beside it", truth.beside)):
        top = sorted(tags.items(), key=lambda item: -item[1])[:8]
        out += [f"{title}: {tag[:60]} {show_ns(ns)}" for tag, ns in top]
    out.append(f"right answer: {' or '.join(expect.kinds)} at {' or '.join(expect.scopes)}")
    sys.stdout.write("\n".join(out) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
