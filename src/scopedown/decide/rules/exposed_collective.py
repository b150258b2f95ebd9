from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from scopedown.account import scenarios
from scopedown.account.groups import Group
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding, of_group
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category, Scope
from scopedown.trace.model import OpKind
from scopedown.units import show_ns, show_share


class ExposedCollective:
    """Collective time on the path, with no compute running beside it.

    What it sees
    Collective kernels on the critical path, by family, and how much of the device's collective time no compute kernel
    covers. With one rank in the capture it says that the wait for a peer and the transfer cannot be told apart.

    Why it matters
    A collective starts on each rank when that rank arrives and ends on all when the last one has: on the early ranks
    most of its duration is waiting. Only the part after the last arrival is the link's.

    What it opens next
    The timeline of the other ranks, on one axis.

    What refutes it
    A trace of all ranks in which the last rank's collective is as short as the link allows while this one's is long:
    then the peer is late, and the link is innocent.

    What it must not be confused with
    A collective under compute, which costs nothing until it does; a slow link, where a peer came late.

    References
    marin-community/marin#8053 and #8054 (3.17 s of "exposed communication" that were 1.02 s).
    """

    id: ClassVar[str] = "exposed_collective"

    def find(self, s: Situation) -> list[Finding]:
        if s.account.timeline is None:
            return []
        groups = places.joined(s, Category.DEVICE_COLLECTIVE)
        return [self._finding(s, g) for g in groups if places.speaks(s, g.total_ns)]

    def _finding(self, s: Situation, g: Group) -> Finding:
        a = s.account
        t = a.timeline
        assert t is not None
        f = of_group(s, self.id, g, Scope.TIMELINE, places.steps(s, g.count))
        ops = t.trace.ops
        ranks = len(np.unique(ops.device[ops.kind == OpKind.COLLECTIVE]))
        mine = t.devices.ops.label == g.label
        alone = max(
            int(
                d.segments.ns[
                    (d.segments.category == Category.DEVICE_COLLECTIVE.code) & (d.segments.label == g.label)
                ].sum()
            )
            for d in a.devices
        )
        who = (
            "one rank is in the capture: a slow peer and a slow link look the same"
            if ranks < 2
            else f"{ranks} ranks are in the capture: the path is the transfer after the last arrival"
        )

        def state(saved: int) -> Statement:
            return places.told(
                s,
                f,
                saved,
                f"{f.label} is on the path {places.lasting(f.ns, of=f.of)}: {places.share(s, f.path_ns)}; on "
                f"the device {show_ns(alone)} ({show_share(alone, s.total_ns)}) pass with no compute beside it. {who}. "
                f"At no time at all it would save {show_ns(saved)}.",
                f.label,
                "traces of all ranks in which the last arrival's collective is short: then a peer is late",
            )

        return replace(f, cut=lambda: scenarios.kernels(a, mine), state=state)
