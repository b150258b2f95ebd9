#!/usr/bin/env python3
"""Write the pages that are made from the code: the command line, the formats, the scopes, the categories, the rules,
and the JSON Schema. A test compares them with what this would write; ``make docs`` brings them up to date.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from scopedown.commands import COMMANDS, load
from scopedown.commands.explain import summary
from scopedown.decide.rules import RULES
from scopedown.read import READERS
from scopedown.tell import schema
from scopedown.tell.glossary import CATEGORIES, SCOPES
from scopedown.terms import EXPLAINED_BY, RESOLVABLE_BY, Category, Scope

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

#: The headings of a rule's docstring, in this order.
HEADINGS = (
    "What it sees",
    "Why it matters",
    "What it opens next",
    "What refutes it",
    "What it must not be confused with",
    "References",
)
_HEADING = re.compile(rf"({'|'.join(HEADINGS)})[.:]?\s*(.*)")


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    head = list(head)
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(cell, row))} |" for row in rows)


def cli_page() -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield "Exit codes: 0 answered, 1 a check that was asked for failed, 2 bad input or usage (one line on standard"
    yield "error), 3 internal error (a bug)."
    for name, _ in COMMANDS:
        parser = argparse.ArgumentParser(prog=f"scopedown {name}", add_help=False)
        command = load(name)
        command.add_arguments(parser)
        yield from ("", f"## scopedown {name}", "", f"{command.help[0].upper()}{command.help[1:]}.")
        for group in parser._action_groups:  # the one place where argparse keeps them
            rows = [_argument(action) for action in group._group_actions]
            if rows:
                title = (group.title or "").capitalize()
                yield from ("", f"**{title}**", "", *table(("argument", "meaning"), rows))
        if parser.epilog:
            yield from ("", "```text", *parser.epilog.splitlines(), "```")


def _argument(action: argparse.Action) -> tuple[str, str]:
    value = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper())
    shown = str(value) if action.nargs != 0 else ""
    if action.nargs == "?" and shown:
        shown = f"[{shown}]"
    if action.nargs in ("*", "+"):
        shown = f"{shown}..."
    flags = ", ".join(f"`{f} {shown}`" if shown else f"`{f}`" for f in action.option_strings)
    return flags or f"`{shown}`", action.help or ""


def readers_page() -> Iterator[str]:
    yield "# Formats"
    yield ""
    yield "What a file is follows from its content, never from its name. `scopedown inspect FILE` says what it is"
    yield "taken for."
    yield ""
    yield from table(("kind", "scope", "what"), [(f"`{r.kind}`", str(r.scope), r.about) for r in READERS])


def scopes_page() -> Iterator[str]:
    yield "# Scopes"
    yield ""
    yield "A measurement sees one scope. From wide to narrow:"
    for scope in Scope:
        row = SCOPES[scope]
        yield from ("", f"## {scope}", "", f"- Artifacts: {row.artifacts}.", f"- Answers: {row.answers}.")
        yield from (f"- Opens when: {row.opens_when}.", f"- Cannot establish: {row.cannot_establish}.")


def categories_page() -> Iterator[str]:
    yield "# Categories"
    yield ""
    yield "Every line of a ledger has one of these; the list is closed, other programs may rely on it."
    yield ""
    rows = []
    for category in Category:
        by = EXPLAINED_BY.get(category)
        could = ", ".join(RESOLVABLE_BY.get(category, ()))
        rows.append((f"`{category}`", CATEGORIES[category], str(by or ""), could))
    yield from table(("category", "what the time is", "explained by", "else resolvable by"), rows)


def rule_page(rule: object) -> Iterator[str]:
    """The docstring, its headings as headings. Raises ValueError where one is missing or out of order."""
    name = str(rule.id)  # type: ignore[attr-defined]
    yield from (f"# {name}", "")
    found = []
    for line in (inspect.getdoc(rule) or "").splitlines():
        match = _HEADING.fullmatch(line)
        if match:
            found.append(match[1])
            yield from (f"## {match[1]}", "", *([match[2]] if match[2] else []))
        else:
            yield line
    if tuple(found) != HEADINGS:
        raise ValueError(f"rule {name}: its docstring has the headings {found}, expected {list(HEADINGS)}")


def rules_index() -> Iterator[str]:
    yield "# Rules"
    yield ""
    rows = [(f"[{r.id}]({r.id}.md)", summary(r)) for r in sorted(RULES, key=lambda r: r.id)]
    yield from table(("rule", "in short"), rows)


def pages() -> dict[Path, bytes]:
    """Path -> content of everything that is generated."""
    made = {
        DOCS / "cli.md": cli_page(),
        DOCS / "readers.md": readers_page(),
        DOCS / "scopes.md": scopes_page(),
        DOCS / "categories.md": categories_page(),
        DOCS / "rules" / "index.md": rules_index(),
    }
    for rule in RULES:
        made[DOCS / "rules" / f"{rule.id}.md"] = rule_page(rule)
    out = {path: ("\n".join([*lines]).rstrip() + "\n").encode() for path, lines in made.items()}
    return out | {schema.PUBLISHED: schema.text()}


def stale() -> list[Path]:
    """Pages of rules that no longer exist."""
    return sorted(set((DOCS / "rules").glob("*.md")) - set(pages()))


def main() -> int:
    for path, content in pages().items():
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            print(f"wrote {path.relative_to(ROOT)}")
    for path in stale():
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
