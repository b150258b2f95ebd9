"""What can be selected on the page: ledger lines, patterns, and the gaps between two ops; with words and a chart."""

from __future__ import annotations

from typing import Any

from scopedown.picture import Picture, Repeat
from scopedown.report import Line, PatternReport, Report
from scopedown.tell import drawing, sentences
from scopedown.tell.clean import clean
from scopedown.tell.glossary import CATEGORIES
from scopedown.units import show_ns

NAME, TEXT = 120, 1_200
#: Patterns without segments of their own that can be selected.
PATTERNS = 100
#: Charts that the page shows without being asked.
CHARTS = 9
CHARTED_FROM = 4
#: Gaps and lines without a pattern get a chart from this share of the interval.
CHARTED_SHARE = 0.02

Thing = dict[str, Any]


def things(report: Report, picture: Picture) -> list[Thing]:
    lines = {line.id: line for line in report.ledger.lines}
    patterns = {p.id: p for p in report.patterns}
    out: list[Thing] = []
    for i, r in enumerate(picture.repeats):
        if r.kind == "gaps":
            out.append(_of_gaps(report, r, i))
        elif r.kind == "line" and r.id in lines:
            out.append(_of_line(report, lines[r.id], r, i))
        elif r.kind == "pattern" and r.id in patterns:
            out.append(_of_pattern(report, patterns[r.id], r, i))
    drawn = {t["id"] for t in out}
    # A pattern made of gaps has no segments of its own: its gaps are those with the same number and length.
    for p in [p for p in report.patterns if p.id not in drawn][:PATTERNS]:
        same = next((i for i, r in enumerate(picture.repeats)
                     if r.kind == "gaps" and r.count == p.count and r.total_ns == p.total_ns), None)  # fmt: skip
        out.append(_of_pattern(report, p, picture.repeats[same] if same is not None else None, -1))
    _link(out)
    _choose_charts(out, picture.total_ns)
    return out


def _of_line(report: Report, line: Line, r: Repeat, at: int) -> Thing:
    facts = [
        ["on the path", f"{sentences.ms(line.ns)}, {sentences.percent(line.share)}"],
        ["times", f"{line.count:,}"],
        *_facts(r, "segments"),
        ["seen at", f"{line.scope} scope"],
        ["explained", "yes" if line.explained else f"no; {', '.join(line.resolvable_by) or 'no'} scope could say"],
    ]
    return _thing(report, r, at, line.id, line.label, facts, line.statement)


def _of_pattern(report: Report, p: PatternReport, r: Repeat | None, at: int) -> Thing:
    of = f" of {p.of}" if p.of is not None else ""
    facts = [
        ["found by", f"rule {clean(p.rule, NAME)}"],
        ["occurs", f"{p.count}{of} times"],
        ["median", show_ns(p.median_ns)],
        ["p10 to p90", f"{show_ns(p.spread_ns[0])} to {show_ns(p.spread_ns[1])}"],
        ["in all", sentences.ms(p.total_ns)],
        ["on the path", sentences.ms(p.path_ns)],
    ]
    if p.period_ns is not None:
        facts.append(["comes every", show_ns(p.period_ns)])
    facts.append(["trend", clean(p.trend or "steady", NAME)])
    if p.opens is not None:
        facts.append(["opens", f"{p.opens} scope"])
    if r is None:
        thing = _words(report, p.id, "pattern", str(p.category), p.label, facts, p.statement)
        return thing | {
            "repeat": -1,
            "cause": "",
            "count": p.count,
            "total": p.total_ns,
            "members": None,
            "chart": None,
        }
    return _thing(report, r, at, p.id, p.label, facts, p.statement) | {"kind": "pattern"}


def _of_gaps(report: Report, r: Repeat, at: int) -> Thing:
    before, after = clean(r.before or "nothing", NAME), clean(r.after or "nothing more", NAME)
    facts = [
        ["idle", f"device {r.device}"],
        ["after", before],
        ["before", after],
        ["mostly", f"{r.category}: {clean(r.label, NAME)}"],
        *_facts(r, "gaps"),
        ["in all", sentences.ms(r.total_ns)],
        ["host late", sentences.ms(r.late_ns or 0)],
        ["trend", clean(r.trend or "steady", NAME)],
    ]
    # A statement speaks of these gaps where its pattern has the same number of the same length.
    told = next((p.statement for p in report.patterns if p.count == r.count and p.total_ns == r.total_ns), None)
    return _thing(report, r, at, r.id, f"idle before {after}", facts, told)


def _facts(r: Repeat, what: str) -> list[list[str]]:
    out = [[what, f"{r.count:,}"]]
    if r.count > 1:
        out.append(["median", show_ns(r.median_ns)])
        out.append(["p10 to p90", f"{show_ns(r.spread_ns[0])} to {show_ns(r.spread_ns[1])}"])
    return out


def _words(
    report: Report, name: str, kind: str, category: str, label: str, facts: list[list[str]], statement: str | None
) -> Thing:
    told = next((s for s in report.statements if s.id == statement), None) if statement else None
    return {
        "id": clean(name, 40),
        "kind": kind,
        "category": category,
        "meaning": CATEGORIES[next(c for c in CATEGORIES if c == category)],
        "family": drawing.family(category),
        "label": clean(label, NAME),
        "title": clean(label, NAME) or category,
        "facts": facts,
        "text": clean(told.text, TEXT) if told else "",
        "where": clean(told.location, TEXT) if told else "",
        "predicts": [sentences.prediction(p) for p in told.predicts] if told else [],
        "refuted": [clean(x, TEXT) for x in told.refuted_by[:20]] if told else [],
        "links": [],
        "shown": False,
    }


def _thing(
    report: Report, r: Repeat, at: int, name: str, label: str, facts: list[list[str]], statement: str | None
) -> Thing:
    return _words(report, name, r.kind, str(r.category), label, facts, statement) | {
        "repeat": at,
        "cause": clean(r.label, NAME),
        "count": r.count,
        "total": r.total_ns,
        "members": drawing.columns(r.members),
        "chart": _chart(r) if r.count >= CHARTED_FROM else None,
    }


def _chart(r: Repeat) -> dict[str, Any]:
    drawn = "" if len(r.dot_at) == r.count else f", {len(r.dot_at)} of them drawn"
    axis = ", scale by ratio" if r.log else f"; the scale begins at {show_ns(r.range_ns[0])}" if r.range_ns[0] else ""
    spread = f"p10 {show_ns(r.spread_ns[0])}, p90 {show_ns(r.spread_ns[1])}"
    return {
        "at": r.dot_at,
        "ns": r.dot_ns,
        "log": r.log,
        "range": r.range_ns,
        "bins": r.bins,
        "course_at": r.course_at,
        "course_ns": r.course_ns,
        "median": r.median_ns,
        "p10": r.spread_ns[0],
        "p90": r.spread_ns[1],
        "caption": f"{r.count:,} occurrences{drawn}; median {show_ns(r.median_ns)} ({spread}); "
        f"{r.trend or 'steady'} over the interval{axis}",
    }


def _link(found: list[Thing]) -> None:
    """Lines, patterns and gaps with one cause lead to each other."""
    by_cause: dict[tuple[str, str], list[int]] = {}
    for i, t in enumerate(found):
        by_cause.setdefault((t["category"], t["cause"]), []).append(i)
    for same in by_cause.values():
        for i in same:
            found[i]["links"] = [j for j in same if j != i][:8]


def _choose_charts(found: list[Thing], total: int) -> None:
    """Patterns first, then gaps and lines that hold something and that no pattern shows already."""
    left, seen = CHARTS, set()
    for kind in ("pattern", "gaps", "line"):
        for t in found:
            key = (t["category"], t["cause"], t["count"], t["total"])
            cause = (t["category"], t["cause"])
            large = kind == "pattern" or (t["total"] >= CHARTED_SHARE * total and cause not in seen)
            if left and t["kind"] == kind and t["chart"] is not None and large and key not in seen:
                t["shown"] = True
                left -= 1
                seen |= {key, cause}
