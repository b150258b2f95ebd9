"""Whose work a device op is: the request that the ranges around its launch name."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from scopedown.account.account import Account
from scopedown.account.groups import of_segments
from scopedown.account.nest import flatten
from scopedown.account.segments import Segments, many
from scopedown.account.timeline import Timeline
from scopedown.terms import Category
from scopedown.trace.model import NONE, HostKind, Ints, Mask

#: More owners than this are one line: whose work it was in turn matters less than that it was not one's own.
NAMED_OWNERS = 4

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")
#: An id that no log knows: after the word request, or of the form that serving engines give.
_GENERIC = re.compile(
    r"\breq(?:uest)?(?:[ _-]?id)?[ =:#_-]+((?=[\w.-]*\d)[\w.-]+)|\b((?:chat)?cmpl-[\w-]+)"
    r"|\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Owners:
    """The owner of every device op of a trace."""

    owner: Ints
    """Index into ``names``; OWN for the request's own or shared work, NONE where no range says."""
    names: tuple[str, ...]
    """Other requests that own work."""
    range: Ints
    """Row of ``Trace.host`` of the innermost range with an id around the launch, or NONE."""

    @property
    def other(self) -> Mask:
        mask: Mask = self.owner >= 0
        return mask

    @property
    def own(self) -> Mask:
        mask: Mask = self.owner == OWN
        return mask


OWN = -2


def owners(timeline: Timeline, own_ids: Collection[str], other_ids: Collection[str]) -> Owners | None:
    """Owners by the innermost range with a request's id around each launch call. A range that names several requests,
    one's own among them, is shared: own work.

    None where no range carries the request's own id: then nothing tells its work from that of others.
    """
    trace = timeline.trace
    host, calls = trace.host, timeline.calls
    own, others = frozenset(own_ids), frozenset(other_ids)
    rows = np.flatnonzero((host.kind == HostKind.ANNOTATION) & (host.thread >= 0))
    names: dict[str, int] = {}
    of_name = np.full(len(trace.names) + 1, NONE, np.int64)
    for n in np.unique(host.name[rows]).tolist():
        found = _named(trace.names[n], own, others)
        if found is not None:
            of_name[n] = OWN if found == "" else names.setdefault(found, len(names))
    code = of_name[host.name[rows]]
    if not (code == OWN).any():
        return None
    rows, code = rows[code != NONE], code[code != NONE]
    owner = np.full(len(trace.ops), NONE, np.int64)
    where = np.full(len(trace.ops), NONE, np.int64)
    launched = np.flatnonzero(calls.of_op >= 0)
    call = calls.of_op[launched]
    for thread in np.unique(calls.thread[call]).tolist():
        mine = rows[host.thread[rows] == thread]
        flat = flatten(host.start[mine], host.end[mine])
        ops = calls.thread[call] == thread
        piece = np.searchsorted(flat.edge, calls.start[call[ops]], side="right") - 1
        innermost = np.where(piece >= 0, flat.owner[np.maximum(piece, 0)], NONE) if len(flat.owner) else piece * 0 - 1
        inside = innermost >= 0
        at = launched[ops][inside]
        where[at] = mine[innermost[inside]]
        owner[at] = of_name[host.name[where[at]]]
    return Owners(owner, tuple(names), where)


def _named(text: str, own: frozenset[str], others: frozenset[str]) -> str | None:
    """ "" for a range that names the request itself, another request's id, or None."""
    words: list[str] = _WORD.findall(text)
    if any(w in own for w in words):
        return ""
    known = next((w for w in words if w in others and (len(w) > 2 or not w.isdigit())), None)
    if known is not None:
        return known
    ids: list[str] = [m[m.lastindex or 0] for m in _GENERIC.finditer(text)]
    if any(i in own for i in ids):
        return ""
    return ids[0] if ids else None


def rename_owned(account: Account, own_ids: Collection[str], other_ids: Collection[str]) -> Segments:
    """The path with device work of other requests as the scheduler's time; the same path where owners are unknown."""
    path, t = account.path, account.timeline
    if t is None or not len(t.trace.ops):
        return path
    found = owners(t, own_ids, other_ids)
    if found is None:
        return path
    device = path.on_device & (path.op >= 0)
    owner = np.where(device, found.owner[np.maximum(path.op, 0)], NONE)
    mine = owner >= 0
    if not mine.any():
        return path
    present = np.unique(owner[mine]).tolist()
    label = path.label.copy()
    if len(present) > NAMED_OWNERS:
        label[mine] = account.labels.code(f"device work of {len(present)} other requests")
    else:
        for k in present:
            label[owner == k] = account.labels.code(f"device work of request {found.names[k]}")
    category = np.where(mine, Category.SCHEDULER.code, path.category)
    return many(path.start, path.end, category, label, path.op, path.thread)


def with_owners(account: Account, own_ids: Collection[str], other_ids: Collection[str]) -> Account:
    """The account with the renamed path, and its groups made from it."""
    path = rename_owned(account, own_ids, other_ids)
    return account if path is account.path else replace(account, path=path, groups=tuple(of_segments(path)))
