"""What stands behind the first screen, in words: statements, patterns, kernels, contract, evidence, warnings."""

from __future__ import annotations

from scopedown.report import Report
from scopedown.tell import sentences
from scopedown.tell.clean import clean


def sections(report: Report) -> list[tuple[str, list[str]]]:
    """Heading and paragraphs, in the order of interest, empty ones left out; the layout is the caller's."""
    d = report.decision
    found: list[tuple[str, list[str]]] = [
        ("not yet", [_with_reasons(sentences.rejected(r), r.reasons) for r in d.rejected]),
        ("steps", [f"{clean(s.where, 40)}: {clean(s.why)}" for s in d.command.steps] if d.command else []),
        ("or else", [clean(d.command.alternative)] if d.command and d.command.alternative else []),
        ("metrics", [sentences.metrics(d)] if d.metrics else []),
        ("claims", statements(report)),
        ("patterns", [f"{clean(p.id, 40)}: {sentences.pattern(p)}" for p in report.patterns]),
        ("kernels", kernels(report)),
        ("devices", devices(report)),
        ("busy", resources(report)),
        ("contract", [f"{clean(f.name)}: {clean(f.value or 'unknown')} ({f.source})" for f in report.contract.fields]),
        ("evidence", evidence(report)),
        ("unknown", [clean(u) for u in report.unknown]),
        ("warnings", [clean(w) for w in report.warnings]),
    ]
    return [(head, paragraphs) for head, paragraphs in found if paragraphs]


def statements(report: Report) -> list[str]:
    out = []
    for s in report.statements:
        parts = [f"{clean(s.id, 40)} ({s.verdict}): {clean(s.text)}"]
        parts += [f"predicts: {sentences.prediction(p)}" for p in s.predicts]
        parts += [f"refuted by: {clean(r)}" for r in s.refuted_by]
        out.append("; ".join(parts))
    return out


def kernels(report: Report) -> list[str]:
    out = []
    for k in report.kernels:
        bound = "" if k.bound_ns is None else f", at least {sentences.ms(k.bound_ns)} by its roof"
        picked = f"; profile launch {k.representative_launch}" if k.selected else ""
        of = f"{k.names} kernels, " if k.names > 1 else ""
        most = f"; most of it {clean(k.name, sentences.NAME)}"
        most += f", {k.name_launches} launches, {sentences.ms(k.name_ns)}" if k.names > 1 else ""
        out.append(f"{clean(k.family, sentences.NAME)}: {of}{k.launches} launches, {sentences.ms(k.total_ns)}, "
                   f"{sentences.ms(k.critical_ns)} on the path{bound}{most}{picked}")  # fmt: skip
    return out


def devices(report: Report) -> list[str]:
    out = []
    for kind, entries in (("device", report.devices), ("rank", report.ranks)):
        for e in entries:
            name = f" {clean(e.name, sentences.NAME)}" if e.name else ""
            least = "at least " if e.busy_is_lower_bound else ""
            share = sentences.percent(e.busy_ns / e.total_ns) if e.total_ns else "-"
            out.append(f"{kind} {clean(e.id, 40)}{name}: busy {least}{sentences.ms(e.busy_ns)} of "
                       f"{sentences.ms(e.total_ns)} ({share})")  # fmt: skip
    return out


def resources(report: Report) -> list[str]:
    out = []
    for r in report.resources:
        full = ", saturated" if r.saturated else ""
        out.append(f"{clean(r.name, sentences.NAME)} ({clean(r.capacity, 40)}): {sentences.percent(r.share)}{full}")
    for law in report.laws:
        holds = "holds" if law.holds else "does not hold"
        out.append(f"{clean(law.law)}: {law.left:.4g} against {law.right:.4g}, {holds}")
    return out


def evidence(report: Report) -> list[str]:
    out = []
    for e in report.evidence:
        parts = [f"{clean(e.path)} ({clean(e.kind or 'unknown kind')}, {e.scope or 'no scope'})"]
        parts += [f"cannot establish {clean(c)}" for c in e.cannot_establish]
        parts += [f"warning: {clean(w)}" for w in e.warnings]
        out.append("; ".join(parts))
    return out


def _with_reasons(sentence: str, reasons: list[str]) -> str:
    return "; ".join([sentence, *(clean(r) for r in reasons)])
