"""What a page draws of an account, as types: plain columns, small whatever the trace. Times are ns from the interval's
start. ``scopedown.account.picture`` makes it, ``scopedown.tell.html`` puts it on a page."""

from __future__ import annotations

import msgspec

from scopedown.terms import Category


class Pieces(msgspec.Struct, kw_only=True):
    """Events in order of start; where there were too many, neighbours that are short and close are one piece."""

    start: list[int]
    ns: list[int]
    """From the first start to the last end of a piece."""
    name: list[int]
    """Index into ``Picture.names``: of the event that holds most of the piece."""
    count: list[int]
    """Events of each piece; empty where every piece is one event."""
    busy: list[int]
    """Of ``ns``: what events cover; empty where ``count`` is."""
    events: int
    below_ns: int | None
    """Events and pauses shorter than this may have been drawn together; null: every event is drawn."""


class Lane(msgspec.Struct, kw_only=True):
    kind: str
    """thread | stream | idle"""
    title: str
    rows: list[Pieces]
    """A thread: by depth, outermost first; the last row holds the innermost of all that lies deeper."""
    main: bool
    """Worth drawing before the reader asks for all lanes."""


class Links(msgspec.Struct, kw_only=True):
    """The longest idle gaps of a device one by one: whose repetition they are, and what ended them."""

    lane: int
    start: list[int]
    ns: list[int]
    repeat: list[int]
    """Index into ``Picture.repeats``; -1: none that is drawn."""
    call: list[int]
    """Start of the call that launched the op that ends the gap; -1: not recorded, or before the interval."""
    call_lane: list[int]
    op_lane: list[int]
    gaps: int
    """How many there are."""


class Repeat(msgspec.Struct, kw_only=True):
    """Occurrences of one thing: a ledger line, a pattern, or the gaps between two ops."""

    kind: str
    """line | pattern | gaps"""
    id: str
    """Of a line or pattern the report's own."""
    category: Category
    label: str
    device: int | None
    before: str | None
    """Of gaps: the op before (null: none)."""
    after: str | None
    count: int
    total_ns: int
    median_ns: int
    spread_ns: tuple[int, int]
    late_ns: int | None
    """Of gaps: the part in which the host had not asked yet."""
    trend: str | None
    members: Pieces
    dot_at: list[int]
    """Occurrences drawn one by one: all, or an even choice that holds the shortest and the longest."""
    dot_ns: list[int]
    log: bool
    """Lengths are binned by ratio, not by difference."""
    range_ns: tuple[int, int]
    bins: list[int]
    """How many occurrences are of which length, from one end of the range to the other."""
    course_at: list[int]
    course_ns: list[int]
    """Medians of up to sixteen stretches with equally many occurrences; empty where they are few."""


class Span(msgspec.Struct, kw_only=True):
    start: int
    ns: int
    category: Category
    label: str


class Beats(msgspec.Struct, kw_only=True):
    how: str
    name: str
    start: list[int]
    count: int


class Picture(msgspec.Struct, kw_only=True):
    total_ns: int
    names: list[tuple[Category, str]]
    phases: list[Span]
    path: Pieces
    path_lane: list[int]
    """Index into ``lanes`` for each piece of the path; -1: none of them."""
    lanes: list[Lane]
    links: list[Links]
    repeats: list[Repeat]
    work: tuple[int, int] | None
    """From the first device op to the end of the last, where that is clearly less than the interval."""
    steps: Beats | None
    """Starts only where there are few enough to be told apart."""
    threads_left_out: int
    streams_left_out: int
    other_names: int
    """Names too many to keep: their events are drawn as "other"."""
