from __future__ import annotations

from typing import ClassVar

import numpy as np

from scopedown.account.groups import Group
from scopedown.decide.kernels import Family, families
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category, Scope
from scopedown.units import show_ns

#: From this share of the interval one family is the story.
SHARE = 0.4


class DominantKernel:
    """One kernel family holds most of the critical path.

    What it sees
    Device time on the path by kernel family (names without template arguments and tile shapes). A family that holds
    at least two fifths of the interval, and more than any other, is named with its launches and their median.

    Why it matters
    It is the one case in which a kernel is worth looking into at once: its time is on the path, and the replay says
    what would be gained at most if it took no time.

    What it opens next
    The kernel scope: one representative launch, its duration and its roofs first.

    What refutes it
    A faster kernel of this family (the same work, shorter launches) and an interval that does not fall with it.

    What it must not be confused with
    The longest kernel of the trace, which may run beside the path (side_stream); a family that is seen through a
    synchronising call (sync_is_work); a name that covers several shapes, of which one holds the time.

    References
    kekzl/imp#1267 and #1268: the share of attention is 4 % at a short context and 45 % at a long one.
    """

    id: ClassVar[str] = "dominant_kernel"

    def find(self, s: Situation) -> list[Finding]:
        found = families(s.account)
        if not found:
            return []
        f = found[0]
        if f.critical_ns < SHARE * s.total_ns or f.critical_ns < s.material_ns:
            return []
        return [self._finding(s, f)]

    def _finding(self, s: Situation, f: Family) -> Finding:
        a = s.account
        code = a.labels.code(f.name)
        mine = a.path.take((a.path.category == Category.DEVICE_KERNEL.code) & (a.path.label == code))
        _, launch = np.unique(mine.op, return_inverse=True)
        ns = np.zeros(int(launch.max()) + 1, np.int64)
        np.add.at(ns, launch, mine.ns)
        groups: list[Group] = places.joined(s, Category.DEVICE_KERNEL, code)
        # Launches of clearly other length are another shape: which one holds the time.
        main = places.mostly(s, groups[0]) if groups else ""

        def state(saved: int) -> Statement:
            return Statement(
                f"The kernel family {f.name} holds {places.share(s, f.critical_ns)}: on the path "
                f"{places.lasting(ns)}{main}. At no time at all it would save {show_ns(saved)}.",
                Category.DEVICE_KERNEL,
                f.name,
                float(f.critical_ns),
                "ns",
                len(ns),
                f"kernel {f.kernel}",
                places.evidence(s),
                (places.gain(s, saved),),
                (f"launches of {f.name} that take half as long, and an interval that falls by less than half of it",),
            )

        return Finding(
            self.id,
            Category.DEVICE_KERNEL,
            f.name,
            ns,
            f.critical_ns,
            Scope.KERNEL,
            places.steps(s, len(ns)),
            group=groups[0] if groups else None,
            cut=lambda: f.cut(a),
            state=state,
        )
