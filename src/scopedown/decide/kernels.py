"""The kernel gate: which family holds critical time, and which of its launches stands for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scopedown.account import intervals, scenarios
from scopedown.account.account import Account
from scopedown.account.scenarios import Cut
from scopedown.terms import Category
from scopedown.trace.model import Mask, OpKind


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    """Family label."""
    kernel: str
    """The name of the representative launch's kernel."""
    launches: int
    """In the interval."""
    total_ns: int
    """Sum of durations inside the interval."""
    critical_ns: int
    """On the path."""
    representative: int
    """Index of the representative launch among all launches of ``kernel`` in the capture, from 0."""
    median_ns: int
    """Duration of the representative launch."""
    names: int
    """Different kernels in the family."""
    kernel_launches: int
    """Of ``kernel``, in the interval."""
    kernel_ns: int
    """Of ``kernel``, on the path where the family is on it."""
    mask: Mask
    """Its ops in the whole trace."""

    def cut(self, account: Account) -> Cut:
        return scenarios.kernels(account, self.mask)


def families(account: Account) -> list[Family]:
    """Kernel families with work in the interval, by critical time, then by total."""
    t = account.timeline
    if t is None or not len(t.trace.ops):
        return []
    ops, labels = t.trace.ops, t.devices.ops.label
    lo, hi = account.service or (account.lo, account.hi)
    inside = (ops.kind == OpKind.KERNEL) & (ops.start < hi) & (ops.end > lo)
    path = account.path.take(account.path.category == Category.DEVICE_KERNEL.code)
    found = []
    for label in np.unique(labels[inside]).tolist():
        mine = np.flatnonzero(inside & (labels == label))
        on_path = path.take(path.label == label)
        s, e = intervals.clip(ops.start[mine], ops.end[mine], lo, hi)
        pool = np.unique(on_path.op[on_path.op >= 0]) if len(on_path) else mine
        names, kernel_of = np.unique(ops.name[pool], return_inverse=True)
        held_by = np.zeros(len(names), np.int64)
        np.add.at(held_by, kernel_of, ops.end[pool] - ops.start[pool])
        # The kernel that holds most of the family's critical time, and of its launches the one in the middle of that
        # time: many small ones of another shape do not stand for the few that hold it.
        pool = pool[kernel_of == int(held_by.argmax())]
        order = pool[np.argsort(ops.end[pool] - ops.start[pool], kind="stable")]
        held = np.cumsum(ops.end[order] - ops.start[order])
        chosen = int(order[np.searchsorted(held, (held[-1] + 1) // 2)])
        same = mine[ops.name[mine] == ops.name[chosen]]
        same_name = np.flatnonzero((ops.name == ops.name[chosen]) & (ops.process == ops.process[chosen]))
        found.append(
            Family(
                account.labels.values[label],
                t.trace.names[int(ops.name[chosen])],
                len(mine),
                int((e - s).sum()),
                int(on_path.ns.sum()),
                int(np.searchsorted(same_name, chosen)),
                int(ops.end[chosen] - ops.start[chosen]),
                len(np.unique(ops.name[mine])),
                len(same),
                int(held_by.max()),
                (ops.kind == OpKind.KERNEL) & (labels == label),
            )
        )
    return sorted(found, key=lambda f: (-f.critical_ns, -f.total_ns, f.name))
