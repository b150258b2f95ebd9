"""The tables of words are complete."""

from __future__ import annotations

from scopedown.tell.glossary import CATEGORIES, SCOPES
from scopedown.terms import Category, Scope


def test_every_word_is_explained() -> None:
    assert set(CATEGORIES) == set(Category)
    assert set(SCOPES) == set(Scope)
    assert all(text and not text.endswith(".") for text in CATEGORIES.values())
