"""Names that a regular expression of the user selects, in bounded time."""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from scopedown.errors import UsageError

#: Seconds after which an expression is given up. ``(a+)+$`` takes 2**n steps on n letters.
PATIENCE = 5.0


def compiled(expression: str) -> re.Pattern[str]:
    """Raises UsageError for what is no regular expression."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        said = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"{expression!r} is not a regular expression: {said}") from None


def matching(pattern: re.Pattern[str], names: Sequence[str]) -> list[int]:
    """Indices of the names in which the pattern is found. Raises UsageError for one that takes longer than PATIENCE
    (where this runs on the main thread: elsewhere no signal can end it)."""
    with _within(PATIENCE, pattern.pattern):
        return [i for i, name in enumerate(names) if pattern.search(name)]


@contextmanager
def _within(seconds: float, expression: str) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def end(_: int, __: FrameType | None) -> None:
        raise UsageError(f"{expression!r} takes too long on the names of this capture: write it without nested repeats")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
