"""Short gaps of one kind on a device, so many that their sum matters."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scopedown.account.groups import GapGroup, nearest
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding, each, unchanged
from scopedown.decide.rules.launch_bound import trains
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.report import Prediction
from scopedown.terms import EXPLAINED_BY, RESOLVABLE_BY, Scope
from scopedown.units import show_ns

#: So many gaps, each at most so long.
AT_LEAST = 100
SHORT_NS = 50_000


class ShortGaps:
    """A device idles for microseconds at a time, hundreds of times after the same op and before the same op.

    What it sees
    Idle gaps of a device with the same op before and the same op after: at least a hundred, nine of ten of 50 us
    at most, whose sum is at least a quarter of what is material. Long members are counted with the rest and named; the
    part on the path is that of the short ones, since what made a long one is a finding of its own.

    Why it matters
    A list of the longest gaps does not hold them, and "no gap found" reads as a device that is well used. A thousand
    gaps of some microseconds can be half of a device's time.

    What it opens next
    What most of their time is, by the device account: the scope that names that category, or could.

    What refutes it
    A capture in which the two ops follow each other without the gaps, and the interval is as long as before.

    What it must not be confused with
    Launch-bound code, where the same gaps lie between launches that the host makes one by one (launch_bound); gaps
    after a wait for the device (sync_pattern); long gaps before a step (host_gap).

    References
    Public analysers of Nsight Systems exports that list gaps from a fixed length on.
    """

    id: ClassVar[str] = "short_gaps"

    def find(self, s: Situation) -> list[Finding]:
        if s.account.timeline is None or trains(s):
            return []
        return [
            self._finding(s, g)
            for g in s.account.gap_groups
            if len(g.ns) >= AT_LEAST
            and nearest(g.ns, 0.9) <= SHORT_NS
            and min(g.before, g.after) >= 0
            and places.speaks(s, int(g.ns.sum()))
        ]

    def _finding(self, s: Situation, g: GapGroup) -> Finding:
        before, after = places.label(s, g.before), places.label(s, g.after)
        short, total = g.ns <= SHORT_NS, int(g.ns.sum())
        order = np.flatnonzero(short)[np.argsort(g.start[short], kind="stable")]
        path_ns = places.path_idle_ns(s, g.start[order], (g.start + g.ns)[order])
        known = EXPLAINED_BY.get(g.category)
        opens: Scope | None = known or next(iter(RESOLVABLE_BY.get(g.category, ())), None)
        long = g.ns[~short]
        longest = f", {len(long)} of them longer than {show_ns(SHORT_NS)}" if len(long) else ""

        def state(_: int) -> Statement:
            predicted = Prediction(
                metric=s.metric, direction="falls", amount_ns=path_ns // s.parts, tolerance_ns=path_ns // s.parts
            )
            return Statement(
                f"Device {g.device} idles {len(g.ns)} times after {before} and before {after}, {each(g.ns)} each"
                f"{longest}: {places.share(s, total)}, {show_ns(int(g.ns[short].sum()))} without the longer ones, "
                f"{show_ns(path_ns)} of that on the path. Most of the time is {g.category}, "
                f"{places.label(s, g.label)!r}.",
                g.category,
                f"gaps after {before}, before {after}",
                float(nearest(g.ns, 0.5)),
                "ns",
                len(g.ns),
                f"device {g.device}, between {before} and {after}",
                places.evidence(s),
                (predicted if path_ns >= s.material_ns else unchanged(s, path_ns),),
                (f"a capture in which {after} follows {before} at once, and the interval is as long as now",),
            )

        period = int(np.median(np.diff(np.sort(g.start)))) if len(g.start) > 1 else None
        label = f"device idle after {before}, before {after}"
        return Finding(self.id, g.category, label, g.ns, path_ns, opens, period_ns=period, state=state)
