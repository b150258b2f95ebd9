"""What follows from names, looked up once a name and only for those that occur.

A trace may have as many names as events (ranges that carry a counter), most of which no question is about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from scopedown.trace.model import Codes, Ints, Mask


def used(names: Sequence[str], codes: Codes | Ints) -> list[int]:
    """The codes that occur, sorted, NONE not among them."""
    seen = np.zeros(len(names) + 1, np.bool_)
    # NONE marks the last entry, which is no name's.
    seen[codes] = True
    return [int(c) for c in np.flatnonzero(seen[:-1])]


def values(names: Sequence[str], codes: Codes | Ints, value: Callable[[str], int], default: int = 0) -> Ints:
    """``value(name)`` by code for the names that occur in ``codes``, ``default`` for all others and, as the last
    entry, for NONE: shape (len(names) + 1,)."""
    out = np.full(len(names) + 1, default, np.int64)
    for c in used(names, codes):
        out[c] = value(names[c])
    return out


def where(names: Sequence[str], codes: Codes | Ints, test: Callable[[str], Any]) -> Mask:
    """Whether the name of each entry of ``codes`` passes the test; NONE does not."""
    out: npt.NDArray[np.bool_] = np.zeros(len(names) + 1, np.bool_)
    for c in used(names, codes):
        out[c] = bool(test(names[c]))
    return np.asarray(out[codes], np.bool_)
