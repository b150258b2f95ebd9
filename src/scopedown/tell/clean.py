"""Names from files, made fit for a terminal or a page: nothing in them may act, only be read."""

from __future__ import annotations

import unicodedata

#: Cc control, Cf format (direction overrides, zero width), Cs lone surrogates, Zl and Zp line separators.
_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def acts(c: str) -> bool:
    """Whether a character may change how a terminal or a page shows others."""
    return unicodedata.category(c) in _ACTING


def clean(text: str, limit: int | None = None) -> str:
    """The text on one line, acting characters as escapes, at most ``limit`` characters (the cut is marked with "…").

    >>> clean("a\\x1b[31mb\\nc")
    'a\\\\x1b[31mb\\\\nc'
    >>> clean("void kernel<float>(int)", 12)
    'void kernel…'
    """
    if limit is not None and len(text) > 2 * limit:
        text = text[: 2 * limit]
    if not text.isprintable():
        text = "".join(c.encode("unicode_escape").decode("ascii") if acts(c) else c for c in text)
    if limit is not None and len(text) > limit:
        text = text[: limit - 1].rstrip() + "…"
    return text
