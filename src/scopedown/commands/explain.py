"""``scopedown explain``: what a scope, a category or a rule means, from where the code itself says it."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator

from scopedown.errors import UsageError
from scopedown.tell.glossary import CATEGORIES, SCOPES, TERMS
from scopedown.terms import EXPLAINED_BY, RESOLVABLE_BY, Category, Scope


class Explain:
    name = "explain"
    help = "what a scope, a category or a rule means"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "topic", nargs="?", metavar="RULE|SCOPE|CATEGORY",
            help="a name, or one of: scope, category, rule (the lists); all lists without it",
        )  # fmt: skip

    def run(self, args: argparse.Namespace) -> int:
        print("\n".join(explain(args.topic)))
        return 0


LISTS = {"scope": 1, "scopes": 1, "category": 2, "categories": 2, "rule": 4, "rules": 4, None: 7}


def explain(topic: str | None) -> Iterator[str]:
    """The lines of the answer. Raises UsageError for a name that is none."""
    lists = LISTS.get(topic, 0)
    if lists & 1:
        yield "scopes, from wide to narrow"
        yield from (f"  {scope:<14}{SCOPES[scope].answers}" for scope in Scope)
    if lists & 2:
        yield "categories of ledger lines"
        yield from (f"  {category:<21}{CATEGORIES[category]}" for category in Category)
    if lists & 4:
        yield "rules"
        yield from (f"  {name:<21}{summary(rule)}" for name, rule in sorted(rules().items()))
    if topic in (None, "word", "words"):
        yield "words"
        yield from (f"  {word:<14}{meaning}" for word, meaning in TERMS.items())
    elif not lists:
        yield from one(str(topic))


def one(topic: str) -> Iterator[str]:
    if topic in set(Scope):
        about = SCOPES[Scope(topic)]
        yield f"{topic} scope"
        yield f"  artifacts         {about.artifacts}"
        yield f"  answers           {about.answers}"
        yield f"  opens when        {about.opens_when}"
        yield f"  cannot establish  {about.cannot_establish}"
    elif topic in set(Category):
        category = Category(topic)
        yield f"{topic}: {CATEGORIES[category]}"
        if category in EXPLAINED_BY:
            yield f"  explained by the {EXPLAINED_BY[category]} scope"
        if category in RESOLVABLE_BY:
            yield f"  resolvable by {', '.join(RESOLVABLE_BY[category])}"
    elif topic in TERMS:
        yield f"{topic}: {TERMS[topic]}"
    elif topic in rules():
        yield inspect.getdoc(rules()[topic]) or topic
    else:
        raise UsageError(f"nothing is called {topic!r}: scopedown explain lists scopes, categories, rules and words")


def rules() -> dict[str, object]:
    """The rules of the timeline and the log by their ids."""
    from scopedown.decide.rules import RULES

    return {rule.id: rule for rule in RULES}


def summary(rule: object) -> str:
    """The first line of a rule's docstring."""
    return (inspect.getdoc(rule) or "").partition("\n")[0]
