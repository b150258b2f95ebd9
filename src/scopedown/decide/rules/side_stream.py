from __future__ import annotations

from typing import ClassVar

import numpy as np

from scopedown.account import intervals, scenarios
from scopedown.decide.rules import places
from scopedown.decide.rules.base import Finding, unchanged
from scopedown.decide.situation import Situation
from scopedown.decide.statement import Statement
from scopedown.report import Prediction
from scopedown.terms import CATEGORIES
from scopedown.trace.model import Ints, OpKind
from scopedown.units import show_ns, show_share

#: Busy for this share of the interval, and at most this share of that on the path.
BUSY = 0.25
ON_PATH = 0.1


class SideStream:
    """A stream that is busy while the path waits elsewhere: taking its work out saves nothing.

    What it sees
    Device time by stream. A stream that executes for at least a quarter of the interval, of which at most a tenth is
    on the critical path.

    Why it matters
    The device looks busy, and the longest op of the trace may be on that stream: both are true, and neither is the
    symptom's time. The replay without the whole stream says what it would save.

    What it opens next
    Nothing: it is said so that nobody optimises it for this symptom.

    What refutes it
    A run without that stream's work whose interval falls by more than the replay says (the two then share a resource,
    such as memory bandwidth, which a timeline does not show).

    What it must not be confused with
    A copy that a later kernel waits for (exposed_copy); a stream whose ops are recorded without launch.

    References
    PyTorch Kineto and Nsight Systems list the longest ops whether or not anything waits for them.
    """

    id: ClassVar[str] = "side_stream"

    def find(self, s: Situation) -> list[Finding]:
        a = s.account
        t = a.timeline
        if t is None or a.service is None or not len(t.trace.ops):
            return []
        lo, hi = a.service
        ops, st = t.trace.ops, t.streams
        inside = np.flatnonzero((ops.start < hi) & (ops.end > lo))
        device = a.path.take(a.path.on_device & (a.path.op >= 0))
        on_path = np.zeros(len(ops), np.int64)
        np.add.at(on_path, device.op, device.ns)
        # A device without any time on the path is another rank's: its work is not beside this one's.
        devices = np.unique(ops.device[device.op])
        out = []
        for k in np.unique(st.key[inside]).tolist():
            rows = inside[st.key[inside] == k]
            if ops.device[rows[0]] not in devices:
                continue
            s0, e0 = intervals.clip(ops.start[rows], ops.end[rows], lo, hi)
            busy = intervals.total(*intervals.union(s0, e0))
            mine = int(on_path[rows].sum())
            # A collective that waits for its peers is another rank's side of this path.
            waiting = int((e0 - s0)[ops.kind[rows] == OpKind.COLLECTIVE].sum())
            if busy >= max(BUSY * s.total_ns, s.material_ns) and mine <= ON_PATH * busy and 2 * waiting < busy:
                out.append(self._finding(s, rows, e0 - s0, busy, mine))
        return out

    def _finding(self, s: Situation, rows: Ints, ns: Ints, busy: int, on_path: int) -> Finding:
        a = s.account
        t = a.timeline
        assert t is not None
        ops, label = t.trace.ops, t.devices.ops.label[rows]
        sums = np.bincount(label, weights=ns)
        main = int(sums.argmax())
        name, stream = places.label(s, main), int(ops.stream[rows[0]])
        category = CATEGORIES[int(t.devices.ops.category[rows[label == main][0]])]
        mask = np.zeros(len(ops), bool)
        mask[rows] = True

        def state(saved: int) -> Statement:
            small = saved < s.material_ns
            predicted: Prediction = unchanged(s, saved) if small else places.gain(s, saved)
            return Statement(
                f"Stream {stream} of device {int(ops.device[rows[0]])} is busy for {show_ns(busy)} "
                f"({show_share(busy, s.total_ns)}), mostly {name}, and {show_ns(on_path)} of that is on the path: it "
                f"runs beside what the interval waits for. Taking all of it out saves {show_ns(saved)}.",
                category,
                name,
                float(busy),
                "ns",
                len(rows),
                f"stream {stream} of device {int(ops.device[rows[0]])}",
                places.evidence(s),
                (predicted,),
                (f"a run without this stream's work that is shorter by much more than {show_ns(saved)}",),
            )

        return Finding(
            self.id,
            category,
            f"stream {stream}: {name}, beside the path",
            ns,
            on_path,
            None,
            cut=lambda: scenarios.kernels(a, mask),
            state=state,
        )
