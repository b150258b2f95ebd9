"""The arguments that name the evidence, the symptom and its interval, and the case that they make together."""

from __future__ import annotations

import argparse
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scopedown.errors import UsageError
from scopedown.options import Options
from scopedown.terms import Metric, Objective, Scope, Statistic

if TYPE_CHECKING:
    from scopedown.case import Case

SYMPTOM = ("metric", "statistic", "request", "observed", "target", "objective", "load")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", metavar="CASE-or-FILE",
        help="a case folder (default: the working folder), or files and folders of evidence",
    )  # fmt: skip
    symptom = parser.add_argument_group("symptom (where no case.toml states it, or to replace what it states)")
    symptom.add_argument("--metric", choices=[str(m) for m in Metric])
    symptom.add_argument("--statistic", choices=[str(s) for s in Statistic])
    symptom.add_argument("--request", metavar="ID", help="one request instead of a statistic")
    symptom.add_argument("--observed", metavar="VALUE", help="with its unit: '121 ms', '8.5 req/s'")
    symptom.add_argument("--target", metavar="VALUE", help="with its unit")
    symptom.add_argument("--objective", choices=[str(o) for o in Objective if o is not Objective.OTHER])
    symptom.add_argument("--load", metavar="TEXT", help="the load it was seen under: '8.5 requests/s, open loop'")
    interval = parser.add_argument_group("interval (instead of the symptom's own)")
    interval.add_argument("--from", dest="begin", metavar="TIME", help="on the trace's clock: '1.5 s', or ns")
    interval.add_argument("--to", dest="end", metavar="TIME", help="on the trace's clock")
    interval.add_argument("--range", metavar="NAME", help="an annotated range by name; 'NAME#3' is its third")
    interval.add_argument("--step", metavar="N|median", help="one step of a repeating sequence")
    reading = parser.add_argument_group("reading")
    reading.add_argument("--offset", metavar="TIME", help="add this to the log's clock to get the trace's")
    reading.add_argument(
        "--device", type=int, metavar="N", help="whose monitor samples count (default: the busiest device's)"
    )
    reading.add_argument("--tz", metavar="ZONE", help="time zone of a monitor log without one: 'Europe/Paris'")
    add_columns(reading)
    reading.add_argument("--nsys", metavar="PATH", help="the nsys that exports .nsys-rep files")
    reading.add_argument(
        "--server", default="auto", metavar="NAME[==VERSION]",
        help="whose commands to print: auto, plain, vllm, sglang, trtllm; 'vllm==0.13'",
    )  # fmt: skip
    reading.add_argument("--no-cache", dest="cache", action="store_false", help="read every file anew")
    reading.add_argument("--scope", choices=[str(s) for s in Scope], help="ask for this scope anyway")


def add_columns(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--columns", metavar="MAPPING",
        help="read a request log of your own: 'sent=start:s,ttft=ttft_ms:ms,end=end:s,output_tokens=n'; or of a file "
        "with several runs the N-th: 'run=N'",
    )  # fmt: skip


def load_case(args: argparse.Namespace) -> Case:
    """The case that the paths name, with the symptom that the flags state. Raises UsageError or InputError."""

    from scopedown import case
    from scopedown.symptom import parse_symptom

    paths = [Path(p) for p in args.paths]
    if not paths:
        if not Path("case.toml").is_file():
            raise UsageError("name a case folder or files of evidence (the working folder has no case.toml)")
        paths = [Path()]
    stated = {k: v for k in SYMPTOM if (v := getattr(args, k)) is not None}
    folders = [p for p in paths if p.name == "case.toml" or (p / "case.toml").is_file()]
    if len(folders) > 1:
        raise UsageError(f"{len(folders)} cases at once ({', '.join(map(str, folders))}): one case, one question")
    if not folders:
        return case.case_from_files(args.paths, stated, columns=args.columns)
    found = case.load_case(folders[0], columns=args.columns)
    extra = [p for p in paths if p not in folders]
    if extra:
        more = case.case_from_files(extra, columns=args.columns)
        found = replace(found, evidence=(*found.evidence, *more.evidence), warnings=(*found.warnings, *more.warnings))
    if stated:
        found = replace(found, symptom=parse_symptom(_restated(found, stated)))
    return found


def _restated(case: Case, stated: dict[str, str]) -> dict[str, str]:
    """The case's symptom with what the flags say instead. Another metric, statistic or request is another complaint,
    whose amounts are not those of the old one."""
    old = {} if case.symptom is None else {
        k: str(v) for k in (*SYMPTOM, "objective_text") if (v := getattr(case.symptom, k)) is not None
    }  # fmt: skip
    if stated.get("metric", old.get("metric")) != old.get("metric"):
        old = {k: v for k, v in old.items() if k == "load"}
    elif stated.keys() & {"statistic", "request"}:
        old = {k: v for k, v in old.items() if k not in ("statistic", "request", "observed")}
    return old | stated


def options(args: argparse.Namespace) -> Options:
    """The other flags."""
    return Options(**{f.name: getattr(args, f.name) for f in fields(Options) if hasattr(args, f.name)})
