"""The picture as the page's script reads it: short keys, starts as differences, and words for what was left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from scopedown.picture import Lane, Picture, Pieces, Span
from scopedown.report import Report
from scopedown.tell.clean import clean
from scopedown.terms import HOST_WITHOUT_CAUSE, Category
from scopedown.units import show_ns

NAME = 120

#: Groups of categories with one colour and one hatching each, in the order of the legend.
FAMILIES = (
    ("host", "host, without a cause"),
    ("named", "host, cause named"),
    ("launch", "launch, dependency"),
    ("kernel", "compute kernels"),
    ("collective", "collectives"),
    ("copy", "copies, fills"),
    ("phase", "client, network, queue"),
    ("unknown", "not seen"),
)
_OF = {
    Category.LAUNCH: "launch",
    Category.DEPENDENCY: "launch",
    Category.DEVICE_KERNEL: "kernel",
    Category.DEVICE_COLLECTIVE: "collective",
    Category.DEVICE_COPY: "copy",
    Category.DEVICE_MEMSET: "copy",
    Category.CLIENT: "phase",
    Category.NETWORK: "phase",
    Category.FRONTEND: "phase",
    Category.QUEUE: "phase",
    Category.SCHEDULER: "phase",
}
_INDEX = {name: i for i, (name, _) in enumerate(FAMILIES)}


def family(category: Category | str) -> int:
    """Index into FAMILIES."""
    c = Category(category)
    if c in _OF:
        return _INDEX[_OF[c]]
    if c in HOST_WITHOUT_CAUSE:
        return _INDEX["host"]
    return _INDEX["named" if c.startswith("host.") else "unknown"]


def _phase_family(picture: Picture, p: Span) -> int:
    """-1: a phase that the trace opens has no colour of its own."""
    return -1 if p.category is Category.UNACCOUNTED and picture.lanes else family(p.category)


def columns(p: Pieces) -> dict[str, Any]:
    """``s``: difference to the start before, ``d``: ns, ``n``: name, ``c``: events, ``b``: busy ns."""
    out: dict[str, Any] = {"s": np.diff(np.array([0, *p.start], np.int64)).tolist(), "d": p.ns}
    if p.name:
        out["n"] = p.name
    if p.count:
        out["c"] = p.count
    if p.busy:
        out["b"] = p.busy
    return out


def drawing(report: Report, picture: Picture, found: list[dict[str, Any]]) -> dict[str, Any]:
    line = {(t["category"], t["label"]): i for i, t in enumerate(found) if t["kind"] == "line"}
    of_repeat = {t["repeat"]: i for i, t in enumerate(found)}
    names = [(str(c), clean(label, NAME)) for c, label in picture.names]
    steps = picture.steps
    return {
        "total": picture.total_ns,
        "axis": report.ledger.unit == "ns" and picture.total_ns > 0,
        "families": [name for name, _ in FAMILIES],
        "legend": [words for _, words in FAMILIES],
        "names": [{"c": c, "t": label, "f": family(c), "line": line.get((c, label), -1)} for c, label in names],
        "phases": [{"s": p.start, "d": p.ns, "f": _phase_family(picture, p), "c": str(p.category),
                    "t": clean(p.label, NAME)} for p in picture.phases[:50]],
        "path": columns(picture.path) | {"lane": picture.path_lane},
        "lanes": [{"kind": x.kind, "title": clean(x.title, 60), "main": x.main, "rows": [columns(r) for r in x.rows],
                   "note": _lane_note(x)} for x in picture.lanes],
        "links": [{"lane": x.lane, "s": x.start, "d": x.ns, "thing": [of_repeat.get(i, -1) for i in x.repeat],
                   "call": x.call, "from": x.call_lane, "to": x.op_lane} for x in picture.links],
        "steps": {"text": f"{steps.count} steps ({clean(steps.name, 60)}, {clean(steps.how, 60)})", "s": steps.start}
        if steps is not None else None,
        "work": picture.work,
        "notes": notes(picture),
    }  # fmt: skip


def _lane_note(lane: Lane) -> str:
    merged = [r for r in lane.rows if r.below_ns is not None]
    events = sum(r.events for r in lane.rows)
    if not merged:
        return f"{events:,} events, each drawn"
    below = show_ns(max(r.below_ns or 0 for r in merged))
    return (
        f"{events:,} events in {sum(len(r.start) for r in lane.rows):,} pieces: those under {below} are drawn together"
    )


def notes(picture: Picture) -> list[str]:
    """What the page does not draw one by one."""
    out = []
    if picture.path.below_ns is not None:
        out.append(
            f"Critical path: {picture.path.events:,} segments in {len(picture.path.start):,} pieces; neighbours "
            f"shorter than {show_ns(picture.path.below_ns)} are drawn together, in the colour of the longest part."
        )
    merged = [x for x in picture.lanes if any(r.below_ns is not None for r in x.rows)]
    if merged:
        below = max(r.below_ns or 0 for x in merged for r in x.rows)
        out.append(
            f"{len(merged)} of {len(picture.lanes)} lanes hold more events than can be drawn: events and pauses "
            f"shorter than {show_ns(below)} share a piece that carries their number and the time that they cover. No "
            "longer event and no longer pause is left out."
        )
    out += [
        f"{picture.lanes[x.lane].title}: the {len(x.start):,} longest of {x.gaps:,} idle gaps can be followed to the "
        "call that ended them."
        for x in picture.links
        if x.gaps > len(x.start)
    ]
    if picture.threads_left_out or picture.streams_left_out:
        out.append(
            f"Not drawn: {picture.threads_left_out} threads and {picture.streams_left_out} streams with less to show."
        )
    if picture.other_names:
        out.append(f'{picture.other_names:,} rarer names are drawn as "other".')
    few = [r for r in picture.repeats if len(r.dot_at) < r.count]
    if few:
        out.append(
            f"Charts of more than {max(len(r.dot_at) for r in few)} occurrences draw that many, chosen evenly, the "
            "shortest and the longest among them; their distributions count all."
        )
    if not out and picture.lanes:
        out.append("Every event of the interval is drawn.")
    return [clean(n, 600) for n in out]
