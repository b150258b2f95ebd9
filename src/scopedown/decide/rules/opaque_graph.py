from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from scopedown.account.groups import Group
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding, of_group
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category, Scope
from scopedown.units import show_ns


class OpaqueGraph:
    """Graph launches that were recorded as a whole: their inside is not in the file.

    What it sees
    Device time on the path of graph launches that the tool traced as one op each.

    Why it matters
    The op counts as busy from its first node to its last. Which kernels run in it, and whether the device idles
    between them, cannot be told; a kernel list made from such a capture is a list of what is outside the graphs.

    What it opens next
    The timeline again, with graphs traced by node. That mode costs more: it is said so beside the command.

    What refutes it
    A capture by node in which the nodes' kernels sum to much less than the launch: then the graph itself idles.

    What it must not be confused with
    A long kernel; a device that is fully used.

    References
    NVIDIA Nsight Systems User Guide, --cuda-graph-trace; AMD-AGI/TraceLens#728 (97 % in one graph-launch row).
    """

    id: ClassVar[str] = "opaque_graph"

    def find(self, s: Situation) -> list[Finding]:
        if s.account.timeline is None:
            return []
        groups = places.joined(s, Category.DEVICE_OPAQUE_GRAPH)
        return [self._finding(s, g) for g in groups if places.speaks(s, g.total_ns)]

    def _finding(self, s: Situation, g: Group) -> Finding:
        f = of_group(s, self.id, g, Scope.TIMELINE, places.steps(s, g.count))

        def state(saved: int) -> Statement:
            return places.told(
                s,
                f,
                saved,
                f"{f.label} is on the path {places.lasting(f.ns, of=f.of)}: {places.share(s, f.path_ns)}. The "
                f"launches were recorded as a whole; what runs inside, and whether anything idles there, is not in the "
                f"file. At no time at all they would save {show_ns(saved)}.",
                f.label,
                f"a capture by node whose kernels sum to much less than {show_ns(f.median_ns)} a launch",
            )

        return replace(f, state=state)
