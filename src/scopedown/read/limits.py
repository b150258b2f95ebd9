"""What a number in a file may be. Rows beyond it are left out and counted, so that no difference or sum overflows."""

from __future__ import annotations

from typing import Any, Final, TypeGuard

import numpy as np
import numpy.typing as npt

from scopedown.trace.model import Ints, Mask
from scopedown.units import LAST_NS

#: 104 days: no event lasts longer.
LONGEST_NS: Final = 2**53
#: All events of a table together; the tables of a file then fit int64 as well.
TOTAL_NS: Final = 2**60
#: Devices are columns of int32.
LAST_DEVICE: Final = 2**31 - 1

#: What is said of the rows; the count stands before it.
NO_TIME = "rows of {} have times that no clock shows: left out"
NO_DEVICE = "rows of {} name a device beyond any number of devices: left out"


def is_time(value: Any) -> TypeGuard[int]:
    """Whether one value of a file is a time in ns."""
    return isinstance(value, int) and -LAST_NS < value < LAST_NS


def shown(time: Ints) -> Mask:
    """Times that a clock can show."""
    mask: Mask = (time > -LAST_NS) & (time < LAST_NS)
    return mask


def lasting(start: Ints, end: Ints) -> Mask:
    """Events whose times a clock can show and that last no longer than an event can; the longest are left out until
    the total fits."""
    keep = shown(start) & shown(end)
    ns = np.where(keep, end - start, 0)
    longest = LONGEST_NS
    keep &= ns <= longest
    while keep.any() and float(np.maximum(ns[keep], 0).sum(dtype=np.float64)) > TOTAL_NS:
        longest //= 2
        keep &= ns <= longest
    return keep


def known_device(device: npt.NDArray[np.signedinteger[Any]]) -> Mask:
    """Device numbers that fit their column; NONE is one."""
    mask: Mask = (device >= -1) & (device <= LAST_DEVICE)
    return mask
