"""Amounts with units: parsed to integers, printed for people."""

from __future__ import annotations

import re
import sys
from decimal import Decimal, InvalidOperation

from scopedown.errors import UsageError

NS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
#: The furthest from its zero that a time in ns may be; differences of two such times fit int64. The clock of the Unix
#: epoch gets there in 2043.
LAST_NS = 2**61
#: No number that a person means is longer.
_LONGEST = 100
_AMOUNT = re.compile(r"\s*([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(.*?)\s*")
_BARE = re.compile(r"\s*[+-]?[0-9]{1,90}\s*")


def split_amount(text: str) -> tuple[Decimal, str]:
    """``"121.5 ms"`` -> ``(Decimal("121.5"), "ms")``. Raises UsageError where there is no number."""
    match = _AMOUNT.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise UsageError(f'{text!r} is not an amount: expected a number and a unit, such as "121 ms"')
    try:
        return Decimal(match[1].replace("_", "")), match[2]
    except InvalidOperation:
        raise UsageError(f'{text!r} is not an amount: expected a number and a unit, such as "121 ms"') from None


def parse_duration(text: str) -> int:
    """A duration in integer nanoseconds: ``"121 ms"`` -> 121000000. A unit is required."""
    value, unit = split_amount(text)
    if unit not in NS:
        raise UsageError(f'{text!r} has no unit of time: write for example "{value} ms" (one of ns, us, ms, s, min, h)')
    # The exponent first: a number such as 1e999999999 cannot even be multiplied.
    if value and (value.adjusted() > 30 or abs(value * NS[unit]) >= LAST_NS):
        raise UsageError(f"{text!r} is longer than a clock can count (73 years)")
    return int((value * NS[unit]).to_integral_value()) if value.adjusted() > -30 else 0


def parse_time(text: str) -> int:
    """A point in time in integer nanoseconds: ``"1.5 s"``, or bare nanoseconds: ``"1500000000"``."""
    if _BARE.fullmatch(text) is None:
        return parse_duration(text)
    ns = int(text)
    if abs(ns) >= LAST_NS:
        raise UsageError(f"{text!r} ns is more than a clock can count (73 years)")
    return ns


def parse_rate(text: str) -> float:
    """A rate in 1/s: ``"8.5 req/s"``, ``"120 tok/s"``, ``"500 req/min"``."""
    value, unit = split_amount(text)
    _, slash, per = unit.rpartition("/")
    if not slash or per not in NS:
        raise UsageError(f'{text!r} is not a rate: write for example "{value} req/s"')
    rate = float(value) * 1e9 / NS[per]
    if value and not sys.float_info.min <= abs(rate) <= sys.float_info.max:
        raise UsageError(f"{text!r} is a rate that nothing has")
    return rate


def show_ns(ns: int | float) -> str:
    """A duration with three significant digits and a unit that keeps it readable."""
    size = abs(ns)
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if size >= scale:
            value = ns / scale
            digits = 3 if size < 10 * scale else 2 if size < 100 * scale else 1
            return f"{value:.{digits}f} {unit}"
    return f"{ns:.0f} ns"


def show_share(part: int | float, whole: int | float) -> str:
    """``part/whole`` in per cent, or a dash where the whole is nothing."""
    return "-" if whole == 0 else f"{100 * part / whole:.1f} %"


def show_bytes(n: int | float) -> str:
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if abs(n) >= scale:
            return f"{n / scale:.3g} {unit}"
    return f"{n:.0f} B"
