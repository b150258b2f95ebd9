"""The command line: a parser from ``COMMANDS``, and the one place that turns errors into a line and an exit code."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import NoReturn

from scopedown.commands import COMMANDS, load
from scopedown.errors import ScopedownError

DESCRIPTION = """\
From one GPU performance symptom: where every nanosecond of it went, which scope to measure next (with the exact
command), and why a narrower tool would be premature."""

EPILOG = """\
start here:
  scopedown demo                                    the worked example, end to end
  scopedown inspect FILE...                         what your files are and what they can establish
  scopedown diagnose requests.jsonl trace.sqlite --metric ttft --statistic p95 --observed '900 ms'

exit codes: 0 answered, 1 a check you asked for failed, 2 bad input or usage, 3 internal error"""


class ExitCode(IntEnum):
    ANSWERED = 0
    CHECK_FAILED = 1
    USAGE = 2
    INTERNAL = 3
    INTERRUPTED = 130


#: An error line names what is wrong; a name from a file may be longer than any screen.
LONGEST = 500


class Parser(argparse.ArgumentParser):
    """Usage errors in one line, like every other error a user can mend."""

    def error(self, message: str) -> NoReturn:
        self.exit(ExitCode.USAGE, f"scopedown: {short(message)} (see: {self.prog} --help)\n")


class _Version(argparse.Action):
    """Reads the installed version only when it is asked for: importlib.metadata costs a third of the start-up."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        from importlib.metadata import version

        print(f"scopedown {version('scopedown')}")
        parser.exit()


def build_parser(only: str | None = None) -> Parser:
    """The parser of all commands, or of one (its module alone is then imported)."""
    parser = Parser(
        prog="scopedown",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error instead of one line")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, _ in COMMANDS:
        if only in (None, name):
            command = load(name)
            sub = commands.add_parser(
                name, help=command.help, description=command.help, formatter_class=argparse.RawDescriptionHelpFormatter
            )
            command.add_arguments(sub)
            sub.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line. Returns the exit code; argparse's own exits pass through as SystemExit."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by who started us (`>&-`): what nobody reads need not fail
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - open as long as the program runs
        elif isinstance(stream, io.TextIOWrapper):  # a terminal that knows no "…" gets it escaped, not an error
            stream.reconfigure(errors="backslashreplace")
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _main(words: list[str]) -> int:
    first = next((w for w in words if not w.startswith("-")), None)
    parser = build_parser(first if first in dict(COMMANDS) else None)
    # A system passes no null character on, and argparse makes a list of the value "--".
    if odd := next((w for w in words if "\0" in w or w.endswith("=--")), None):
        parser.error(f"{odd!r}: expected a value")
    args, rest = parser.parse_known_args(words)
    # Files may stand behind flags as well: argparse takes positional words in one place only.
    if rest and hasattr(args, "paths") and not any(w.startswith("-") for w in rest):
        args.paths = [*args.paths, *rest]
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        code = int(args.run(args))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough (`| head`). Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.ANSWERED
    except SystemExit as end:
        # rich has done the same by then, and ends the program with 1.
        if isinstance(end.__context__, BrokenPipeError):
            return ExitCode.ANSWERED
        raise
    except (ScopedownError, OSError) as error:
        if args.debug:
            raise
        print(f"scopedown: {one_line(error)}", file=sys.stderr)
        return ExitCode.USAGE
    except Exception:
        if args.debug:
            raise
        report_bug()
        return ExitCode.INTERNAL
    return code


def one_line(error: ScopedownError | OSError) -> str:
    """The message without control characters: part of it may come from a file."""
    if isinstance(error, OSError) and not isinstance(error, ScopedownError):
        name = "input or output" if error.filename is None else os.fsdecode(error.filename)
        return short(f"{name}: {(error.strerror or 'cannot be used').lower()}")
    return short(str(error))


def short(text: str) -> str:
    """The text on one line that can act on no terminal; of a long one the middle is left out, for the end says what
    to do."""
    from scopedown.tell.clean import clean

    if len(text) > 2 * LONGEST:
        text = f"{text[:LONGEST]}{text[-LONGEST:]}"
    text = clean(text)
    return text if len(text) <= LONGEST else f"{text[: 2 * LONGEST // 3]} … {text[-LONGEST // 3 + 3 :]}"


def report_bug() -> None:
    import platform
    import traceback
    from importlib.metadata import version

    for line in traceback.format_exc().splitlines():
        print(short(line), file=sys.stderr)
    print(
        f"scopedown: internal error. This is a bug in scopedown {version('scopedown')} "
        f"(Python {platform.python_version()}, {platform.system()} {platform.machine()}), not in your files. "
        "Please report it with the traceback above and the output of `scopedown inspect` on the files.",
        file=sys.stderr,
    )
