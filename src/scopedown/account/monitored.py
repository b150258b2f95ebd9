"""An unexplained phase divided by the samples of a device monitor, where no trace sees into it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from scopedown.account.phases import Phase
from scopedown.errors import UsageError
from scopedown.read.base import Meaning, MonitorLog
from scopedown.terms import Category

#: What the two parts of a sample's window are, by what its utilisation counts.
_SAMPLED = {
    Meaning.KERNEL_RAN: ("monitor: some kernel ran", "monitor: no kernel ran"),
    Meaning.ENGINE_ACTIVE: ("monitor: the compute engine was active", "monitor: the compute engine was idle"),
    Meaning.GFX_BUSY: ("monitor: the pipe was busy", "monitor: the pipe was idle"),
}


def monitored(
    found: Sequence[Phase], monitor: MonitorLog | None, device: int | None = None
) -> tuple[list[Phase], list[str]]:
    """Monitor samples whose period lies inside an unexplained phase divide it; longer periods say nothing of it. Of a
    period only the window that the sample describes is divided.

    The second part says which device was taken where the monitor saw several and nobody named one.
    """
    if monitor is None or not monitor.placed or monitor.utilisation is None or not monitor.period_ns or not found:
        return list(found), []
    period, window = monitor.period_ns, monitor.window_ns or monitor.period_ns
    device, warnings = _sampled_device(monitor, found[0].start, found[-1].end, device)
    one = (monitor.device == device) & ~np.isnan(monitor.utilisation)
    times, shares = monitor.time[one].tolist(), np.clip(monitor.utilisation[one], 0.0, 100.0).tolist()
    ran, idle = _SAMPLED[monitor.meaning]
    out: list[Phase] = []
    for p in found:
        at = p.start
        if p.category is Category.UNACCOUNTED:
            for time, busy in zip(times, shares, strict=True):
                begin = time - window
                if time - period < at or time > p.end:
                    continue
                active = int(window * busy / 100)
                out.append(Phase(at, begin, p.category, p.label))
                out.append(Phase(begin, begin + active, Category.DEVICE_ACTIVE, ran))
                out.append(Phase(begin + active, time, Category.DEVICE_INACTIVE, idle))
                at = time
        out.append(dataclasses.replace(p, start=at))
    return [p for p in out if p.end > p.start], warnings


def _sampled_device(monitor: MonitorLog, lo: int, hi: int, device: int | None) -> tuple[int, list[str]]:
    """The named device, else the one that was busiest in ``[lo, hi)``, else over the whole log.

    Raises UsageError where the monitor did not see the named one.
    """
    seen = np.unique(monitor.device).tolist()
    if device is not None:
        if device not in seen:
            raise UsageError(f"device {device} is not in the monitor's log, which has {', '.join(map(str, seen))}")
        return device, []
    if len(seen) == 1:
        return int(seen[0]), []
    assert monitor.utilisation is not None
    known = ~np.isnan(monitor.utilisation)
    inside = known & (monitor.time > lo) & (monitor.time <= hi)
    rows, when = (inside, "in the interval") if inside.any() else (known, "over the log, none of it in the interval")
    mean = {d: float(monitor.utilisation[of].mean()) for d in seen if (of := rows & (monitor.device == d)).any()}
    if not mean:
        return int(seen[0]), [f"the monitor saw {len(seen)} devices and gives no utilisation of any"]
    busiest = max(mean, key=lambda d: (mean[d], -d))
    rest = [share for d, share in mean.items() if d != busiest]
    others = f", the others {min(rest):.0f} to {max(rest):.0f} %" if rest else ""
    return int(busiest), [
        f"the monitor saw {len(seen)} devices and nothing names the one of this request: device {busiest} is taken, "
        f"the busiest {when} ({mean[busiest]:.0f} % on average{others})"
    ]
