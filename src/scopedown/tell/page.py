"""What the HTML page shows, as one value: every sentence made, every name cleaned; the page's script only lays out."""

from __future__ import annotations

from typing import Any

from scopedown.picture import Picture
from scopedown.report import Line, Report
from scopedown.tell import details, sentences
from scopedown.tell.clean import clean
from scopedown.tell.drawing import drawing, family
from scopedown.tell.glossary import CATEGORIES
from scopedown.tell.things import things
from scopedown.terms import Kind

#: Longer texts are cut on the page, never in the JSON; so are longer lists, with their number.
TEXT = 1_200
NAME = 160
ENTRIES = 200

_ORDER = ("pattern", "gaps", "line")

Value = dict[str, Any]


def page(report: Report, picture: Picture) -> Value:
    found = things(report, picture)
    index = {t["id"]: i for i, t in enumerate(found)}
    return {
        "head": _head(report),
        "decision": _decision(report),
        "scopes": _scopes(report),
        "ledger": _ledger(report, index),
        "things": found,
        "drawing": drawing(report, picture, found),
        "repeats": sorted(
            (i for i, t in enumerate(found) if t["shown"]), key=lambda i: (_ORDER.index(found[i]["kind"]), i)
        ),
        "statements": [_statement(report, s, index) for s in _first(report.statements)],
        "devices": _devices(report),
        "unknown": texts(report.unknown),
        "warnings": texts(report.warnings),
        "behind": _behind(report),
    }


def texts(values: list[str]) -> list[str]:
    shown = [clean(v, TEXT) for v in _first(values)]
    return shown if len(shown) == len(values) else [*shown, f"{len(values) - len(shown)} more: see the JSON report"]


def _first(values: list[Any]) -> list[Any]:
    return values[:ENTRIES]


def _head(report: Report) -> Value:
    s, book = report.symptom, report.ledger
    if s is None:
        name, value = "captured window", sentences.amount(book.total_ns, book)
    else:
        name = sentences.NAMES[s.metric]
        observed = s.recorded_ns if s.recorded_ns is not None else s.observed_ns
        value = sentences.ms(observed) if observed is not None else clean(s.observed or "", NAME)
    return {
        "title": f"scopedown: {clean(sentences.symptom(report), 90)}",
        "name": name,
        "value": value,
        "target": sentences.ms(s.target_ns) if s is not None and s.target_ns is not None else "",
        "symptom": clean(sentences.symptom(report), TEXT),
        "standing": clean(sentences.standing(report), TEXT),
    }


def _decision(report: Report) -> Value:
    d = report.decision
    command = d.command
    return {
        "kind": str(d.kind),
        "scope": str(d.scope),
        "verdict": sentences.verdict(report),
        "question": clean(d.question, TEXT),
        "why": clean(d.why, TEXT),
        "steps": [{"where": clean(s.where, 40), "why": clean(s.why, TEXT), "shell": clean(s.shell)}
                  for s in command.steps] if command else [],
        "needs": texts(command.needs) if command else [],
        "overhead": clean(command.overhead, TEXT) if command else "",
        "alternative": clean(command.alternative or "", TEXT) if command else "",
        "metrics": sentences.metrics(d),
    }  # fmt: skip


def _scopes(report: Report) -> Value:
    """Bars of what each scope could reach, against the distance to the target."""
    d = report.decision
    of = [r for r in d.rejected if r.bound_of_distance and r.bound_ns]
    distance = round(of[0].bound_ns / (of[0].bound_of_distance or 1)) if of else None
    rows: list[Value] = [] if d.kind is Kind.ENOUGH else [
        {"scope": str(d.scope), "ns": d.reachable_ns, "chosen": True, "reasons": [],
         "text": f"{sentences.amount(d.reachable_ns, report.ledger)} within reach"}
    ]  # fmt: skip
    rows += [
        {"scope": str(r.scope), "ns": r.bound_ns, "chosen": False, "reasons": texts(r.reasons),
         "text": sentences.rejected(r, short=True).partition(": ")[2]}
        for r in _first(d.rejected)
    ]  # fmt: skip
    scale = max([row["ns"] for row in rows] + [distance or 0, report.ledger.total_ns if not distance else 0, 1])
    return {
        "rows": rows,
        "scale": scale,
        "distance": distance,
        "distance_text": f"{sentences.ms(distance)} to the target" if distance else "",
        "heading": "Why not narrower" if d.kind is not Kind.ENOUGH else "What narrower scopes could explain",
    }


def _ledger(report: Report, index: dict[str, int]) -> Value:
    book = report.ledger
    lines = sorted(book.lines, key=lambda line: -line.ns)
    rest = lines[ENTRIES:]
    exact = (
        f"{len(lines)} lines in {sentences.unit(book)}, which sum to {sentences.amount(book.total_ns, book)} exactly."
    )
    return {
        "sum": exact,
        "rows": [_row(line, index) for line in lines[:ENTRIES]],
        "rest": f"{len(rest)} more lines, {sentences.amount(sum(r.ns for r in rest), book)}" if rest else "",
    }


def _row(line: Line, index: dict[str, int]) -> Value:
    return {
        "thing": index.get(line.id, -1),
        "amount": sentences.ms(line.ns).removesuffix(" ms"),
        "share": line.share,
        "percent": sentences.percent(line.share),
        "category": str(line.category),
        "meaning": CATEGORIES[line.category],
        "family": family(line.category),
        "label": clean(line.label, NAME),
        "count": line.count,
        "resolved": sentences.resolved(line).replace("->", "→"),
    }


def _statement(report: Report, s: Any, index: dict[str, int]) -> Value:
    thing = next((index.get(p.id, -1) for p in report.patterns if p.statement == s.id), -1)
    return {
        "id": clean(s.id, 40),
        "verdict": str(s.verdict),
        "family": family(s.category),
        "category": str(s.category),
        "text": clean(s.text, TEXT),
        "location": clean(s.location, TEXT),
        "evidence": ", ".join(clean(e, NAME) for e in s.evidence[:20]),
        "predicts": [sentences.prediction(p) for p in s.predicts],
        "refuted": texts(s.refuted_by),
        "thing": thing,
    }


def _devices(report: Report) -> list[Value]:
    out = []
    told = details.devices(report)
    for text, entry in zip(told, [*report.devices, *report.ranks], strict=True):
        sums: dict[str, int] = {}
        for line in entry.lines:
            sums[line.category] = sums.get(line.category, 0) + line.ns
        parts = [
            {"category": str(c), "family": family(c), "share": ns / entry.total_ns if entry.total_ns else 0.0,
             "text": f"{c}: {sentences.ms(ns)}"}
            for c, ns in sorted(sums.items(), key=lambda x: -x[1])
        ]  # fmt: skip
        out.append({"text": text, "parts": parts})
    return _first(out)


def _behind(report: Report) -> list[Value]:
    """Tables and lists that a reader opens on demand: ``kind`` is table or list."""
    found: list[Value] = []

    def table(title: str, head: list[str], rows: list[list[str]]) -> None:
        if rows:
            found.append({"title": title, "kind": "table", "head": head, "rows": _first(rows), "count": len(rows)})

    for e in report.evidence[:50]:
        facts = [["kind", e.kind or "unknown"], ["scope", str(e.scope or "none")], ["producer", e.producer or ""],
                 ["sha256", e.sha256]]  # fmt: skip
        facts += [["can establish", c] for c in e.can_establish] + [["cannot establish", c] for c in e.cannot_establish]
        facts += [["warning", w] for w in e.warnings]
        table(f"Evidence: {clean(e.path, NAME)}", [], [[k, clean(v, TEXT)] for k, v in facts if v])
    table(
        "Contract: what has to be equal for a comparison",
        ["field", "value", "source"],
        [[clean(f.name, NAME), clean(f.value or "unknown", TEXT), str(f.source)] for f in report.contract.fields],
    )
    table(
        "Kernels on the path",
        ["family", "name", "launches", "total", "on the path", ""],
        [
            [clean(k.family, NAME), clean(k.name, NAME), str(k.launches), sentences.ms(k.total_ns),
             sentences.ms(k.critical_ns), f"profile launch {k.representative_launch}" if k.selected else ""]
            for k in report.kernels
        ],
    )  # fmt: skip
    table(
        "Patterns",
        ["id", "what"],
        [[clean(p.id, 40), clean(sentences.pattern(p), TEXT)] for p in report.patterns],
    )
    table("Resources and laws", [], [[clean(x, TEXT)] for x in details.resources(report)])
    if report.launch_lead is not None:
        lead = report.launch_lead
        spread = f"p10 {sentences.ms(lead.p10_ns)}, p90 {sentences.ms(lead.p90_ns)}, {lead.ops} ops"
        table("Launch lead: op start minus the return of its call; negative: the device waits for the host", [],
              [[f"median {sentences.ms(lead.median_ns)} ({spread})"]])  # fmt: skip
    table("Coverage", [], [[clean(k.replace("_", " "), NAME), clean(str(v), TEXT)] for k, v in report.coverage.items()])
    return found
