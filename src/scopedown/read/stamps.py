"""Stamps of device monitors: local time without a zone, as nvidia-smi prints it, to ns since the epoch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import numpy as np

from scopedown.errors import InputError, UsageError
from scopedown.read.base import UNKNOWN, Source
from scopedown.trace.model import Ints

# A year that fits nanoseconds in 64 bits.
STAMP = re.compile(r"(19[7-9]|20\d|21\d)\d[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,9})?")
#: ``Tue Jul 14 08:12:38 2026``, as nvidia-smi heads a look.
LOOK_STAMP = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d) (19[7-9]\d|20\d\d|21\d\d)")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OFFSET = re.compile(r"(?:UTC)?([+-])(\d\d):?(\d\d)")
_NS = 10**9


class Zoned:
    """A reader of files whose stamps are local time: ``tz`` is their zone."""

    def __init__(self, tz: str | None = None) -> None:
        self.zone = None if tz is None else parse_zone(tz)


def parse_zone(text: str) -> tzinfo:
    """``"+02:00"``, ``"UTC"`` or an IANA name. Raises UsageError."""
    if text.upper() in ("UTC", "Z"):
        return UTC
    match = _OFFSET.fullmatch(text)
    if match is not None:
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=minutes if match[1] == "+" else -minutes))
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise UsageError(f'{text!r} is no time zone: write "+02:00" or a name such as "Europe/Berlin"') from None


def times(stamps: Iterable[str], zone: tzinfo | None) -> tuple[Ints, bool]:
    """Times in ns, and whether their zone is known. Where clocks go back an hour the first pass is taken.

    Raises ValueError for a stamp that is no date.
    """
    iso = np.array([s.strip().replace("/", "-").replace(" ", "T") for s in stamps], dtype="datetime64[ns]")
    time = iso.astype(np.int64)
    if zone is None:
        return time, False
    # Zones change on the minute at most: one look-up for each minute that occurs.
    minutes, inverse = np.unique(time // (60 * _NS), return_inverse=True)
    epoch = datetime(1970, 1, 1)
    shifts = [(epoch + timedelta(minutes=int(m))).replace(tzinfo=zone).utcoffset() for m in minutes]
    seconds = np.array([0 if s is None else int(s.total_seconds()) for s in shifts], np.int64)
    return time - seconds[inverse] * _NS, True


def look_stamp(text: str) -> str | None:
    """``Tue Jul 14 08:12:38 2026`` somewhere in the text, as a stamp that ``times`` reads."""
    match = LOOK_STAMP.search(text)
    if match is None or match[1] not in _MONTHS:
        return None
    return f"{match[4]}-{_MONTHS.index(match[1]) + 1:02}-{int(match[2]):02} {match[3]}"


def place_looks(source: Source, stamps: Sequence[str | None], zone: tzinfo | None, where: str) -> tuple[Ints, bool]:
    """Times of looks, some of which may have no stamp: then none has. Raises InputError for a stamp that is no date."""
    if not stamps or None in stamps:
        return np.full(len(stamps), UNKNOWN), True
    try:
        return times([s for s in stamps if s is not None], zone)
    except ValueError as error:
        raise InputError(source.path, where, f"a stamp is no date ({error})", "correct the line") from None
