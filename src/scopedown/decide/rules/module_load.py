from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from scopedown.account.groups import Group
from scopedown.account.host import FIRST_CALL, UNNAMED
from scopedown.account.segments import merge_equal
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding, lengths, of_group
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.terms import Category, Scope
from scopedown.trace.model import Ints
from scopedown.units import show_ns


class ModuleLoad:
    """Code is loaded, linked or compiled inside the interval, openly or inside a launch call of milliseconds.

    What it sees
    Module, library and linker calls on the critical path, the tool's own records of module loading and compilation,
    and launch calls that are far too long to be launches. Where a record names the cause it is named; where none does
    it says "long launch call, cause not recorded", never launch latency.

    Why it matters
    The first call of a kernel loads its module lazily, and a new shape may compile one: tens of milliseconds to
    seconds, once, in the request that happens to come first.

    What it opens next
    The timeline where a record names it: load eagerly or warm up. Else the framework scope, or a capture whose
    overhead records or driver calls tell what the call did.

    What refutes it
    A warmed-up run, or one with eager loading (CUDA_MODULE_LOADING=EAGER), in which the call is as long.

    What it must not be confused with
    Launch latency, which is microseconds; a launch that waits in a full command buffer, which is the device's work;
    a page fault or a thread off its core, which make a single call long too.

    References
    CUDA C++ Programming Guide, "Lazy loading"; aws-samples/aws-do-eks#88 (the first wave paid the compilation).
    """

    id: ClassVar[str] = "module_load"

    def find(self, s: Situation) -> list[Finding]:
        return list(self._find(s))

    def _find(self, s: Situation) -> Iterator[Finding]:
        if s.account.timeline is None:
            return
        for g in places.joined(s, Category.HOST_MODULE):
            if places.speaks(s, g.total_ns):
                yield self._finding(s, g, named=True)
        for g in places.joined(s, Category.HOST_API):
            if places.label(s, g.label).endswith(UNNAMED) and places.speaks(s, g.total_ns):
                yield self._finding(s, g, named=False)

    def _finding(self, s: Situation, g: Group, *, named: bool) -> Finding:
        f = of_group(s, self.id, g, Scope.TIMELINE if named else Scope.FRAMEWORK)
        if f.label.endswith(FIRST_CALL):
            # One call, whatever lies inside it.
            f = replace(f, ns=lengths(f.total_ns), period_ns=None, trend=None)
        on = places.thread_name(s, places.thread_of(s, g))
        kernel, first = _launched(s, g.rows)
        what = f.label if named else f"{f.label.removesuffix(UNNAMED)}: long launch call, cause not recorded"
        where = f", at {'the first launch' if first else 'launches'} of {kernel}" if kernel else ""
        tells = (
            ""
            if named
            else " Module load, compilation, or the thread off its core would look alike; overhead records of a newer "
            "capture, driver calls, or a second run with CUDA_MODULE_LOADING=EAGER tell them apart."
        )

        def state(saved: int) -> Statement:
            return Statement(
                f"{what}: {places.lasting(f.ns)}{places.mostly(s, g) if f.count > 1 else ''} on {on}{where}; "
                f"{places.share(s, f.path_ns)}. Without it the replay saves {show_ns(saved)}.{tells}",
                f.category,
                f.label,
                float(f.path_ns),
                "ns",
                f.count,
                f"{on}{where}",
                places.evidence(s),
                (places.gain(s, saved),),
                ("a second run of the same process, warmed up, in which the call is as long",),
            )

        return replace(f, label=what, state=state)


def _launched(s: Situation, rows: Ints) -> tuple[str, bool]:
    """The kernel family that the longest of the segments' calls launches, and whether the capture has none before."""
    a = s.account
    t = a.timeline
    segs = merge_equal(a.path).take(rows)
    if t is None or not len(t.calls):
        return "", False
    c = t.calls
    at = int(segs.ns.argmax())
    thread = int(segs.thread[at])
    if thread < 0:
        return "", False
    mine = slice(int(c.thread_bound[thread]), int(c.thread_bound[thread + 1]))
    k = int(c.thread_bound[thread]) + int(np.searchsorted(c.start[mine], segs.start[at], side="right")) - 1
    op = np.flatnonzero(c.of_op == k) if k >= mine.start else np.empty(0, np.int64)
    if not len(op):
        return "", False
    label = t.devices.ops.label
    before = (t.trace.ops.start < t.trace.ops.start[op[0]]) & (label == label[op[0]])
    return places.label(s, int(label[op[0]])), not before.any()
