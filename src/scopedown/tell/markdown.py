"""The report as GitHub-flavoured Markdown: the whole of it, with names from files that cannot act on the page."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scopedown.report import Report
from scopedown.tell import details, sentences
from scopedown.tell.clean import clean

#: Characters that begin or end something in Markdown or HTML. "&", "<" and ">" become entities, the rest is escaped.
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~$@:-])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

_TITLES = {
    "not yet": "Not yet",
    "steps": "What each step is for",
    "or else": "Where that is impossible",
    "metrics": "Metrics",
    "claims": "Statements",
    "patterns": "Patterns",
    "kernels": "Kernels",
    "devices": "Devices and ranks",
    "busy": "Resources and laws",
    "contract": "Contract",
    "evidence": "Evidence",
    "unknown": "What the evidence does not say",
    "warnings": "Warnings",
}


def escape(text: str) -> str:
    """Text that reads the same and means nothing to a Markdown or HTML parser.

    >>> escape("a|b </script> `x`")
    'a\\\\|b &lt;/script&gt; \\\\`x\\\\`'
    """
    plain = re.sub(r"[&<>]", lambda m: _ENTITIES[m[0]], clean(text))
    # Word-internal "-", ":" and "(" read better bare; they act only at the start of a line or after "]" or "http".
    return _MARKUP.sub(lambda m: m[0] if m[0] in "-+()#:!" and m.start() else f"\\{m[0]}", plain)


def code(lines: Iterable[str]) -> str:
    """A fenced block; the fence is longer than any run of backticks inside."""
    body = [clean(line) for line in lines]
    longest = max((len(run) for line in body for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}sh", *body, fence])


def render(report: Report) -> str:
    """The page."""
    d = report.decision
    out = ["# scopedown report", "", f"**Symptom.** {escape(sentences.symptom(report))}", ""]
    if standing := sentences.standing(report):
        out += [escape(standing), ""]
    out += ["## Next", "", f"**{escape(sentences.verdict(report))}**", ""]
    out += [line for text in (d.question, d.why) if text for line in (escape(text), "")]
    if d.command is not None:
        for step in d.command.steps:
            out += [f"{escape(step.where)}: {escape(step.why)}", "", code([step.shell]), ""]
        if needs := sentences.needs(d.command):
            out += [f"Needs: {escape(needs)}", ""]
    out += ["## Ledger", "", *_ledger(report), ""]
    for head, paragraphs in details.sections(report):
        if head != "steps":
            out += [f"## {_TITLES[head]}", "", *(f"- {escape(p)}" for p in paragraphs), ""]
    return "\n".join(out)


def _ledger(report: Report) -> list[str]:
    book = report.ledger
    total = sentences.amount(book.total_ns, book)
    rows = [f"| {escape(sentences.unit(book))} | share | category | what | |", "|---:|---:|---|---|---|"]
    for line in sorted(book.lines, key=lambda line: -line.ns):
        cells = [
            sentences.ms(line.ns).removesuffix(" ms"),
            sentences.percent(line.share),
            f"`{line.category}`",
            escape(sentences.label(line)),
            escape(sentences.resolved(line)),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return [*rows, "", f"{len(book.lines)} lines, which sum to {escape(total)} exactly."]
